"""The disks of a simulated cluster: they get full, refuse to write, and lose what they had not
written when the power is cut, as those below SQLite do (`synchronous = normal`).

    room is short      a master refuses what needs some (53100)      seen every second
    room is out        a node leaves in order, and stops              seen every second
    full               a write fails in the middle of a turn          seen by nobody before
    fsync fails        a commit fails, and may be there all the same  likewise

The last two have to stop the node at once: what it tells afterwards it might not have.
"""

from __future__ import annotations

import random
from collections import deque
from collections.abc import Mapping
from enum import Enum
from typing import Any, Final

from leasehold.catalog.part import Part
from leasehold.model.errors import StoreUnwritable
from leasehold.model.records.log import LogPosition
from leasehold.replication.effects import DiskSeen
from tests.support.memory_store.contents import Contents
from tests.support.memory_store.store import MemoryStore
from tests.support.memory_store.stores import MemoryStores

MIB: Final = 1 << 20
WHOLE_BYTES: Final = 100 * MIB
RESERVE_BYTES: Final = 8 * MIB
KEPT_COMMITS: Final = 24
"""A power cut may take so many at most."""


class Trouble(Enum):
    """What ails a disk, with how much is free of it."""

    NONE = 50 * MIB
    SHORT = 5 * MIB
    OUT = 1 * MIB
    FULL = 0
    SYNC_FAILS = 49 * MIB


class Disk:
    """One machine's. `failed`: a write has failed since the process began."""

    def __init__(self, rng: random.Random) -> None:
        self._rng = rng
        self.trouble = Trouble.NONE
        self.failed = False
        self.commits: deque[Contents] = deque(maxlen=KEPT_COMMITS)
        """What was committed in this life of the process, the newest last."""
        self.found: Contents | None = None
        """What the next process finds, where that is not what was committed last."""

    @property
    def refuses(self) -> bool:
        """Whether it takes no write."""
        return self.trouble in (Trouble.FULL, Trouble.SYNC_FAILS)

    def seen(self) -> DiskSeen:
        """What `statvfs` says; a disk that fails says nothing of it."""
        return DiskSeen(self.trouble.value, WHOLE_BYTES, MIB, MIB)

    def write(self) -> None:
        """Raises StoreUnwritable, where a page has to be put into a full file."""
        if self.trouble is Trouble.FULL and self._rng.random() < 0.3:
            self._fail()

    def commit(self, contents: Contents) -> None:
        """Keep what is committed. Raises StoreUnwritable; what was synced in vain may be read
        again by the next process."""
        if self.refuses:
            if self.trouble is Trouble.SYNC_FAILS and self._rng.random() < 0.5:
                self.found = contents
            self._fail()
        self.commits.append(contents)

    def _fail(self) -> None:
        self.failed = True
        raise StoreUnwritable(f"simulated: {self.trouble.name}")

    def cut_power(self) -> int:
        """Lose what was written last; return how many commits."""
        lost = self._rng.randrange(len(self.commits)) if self.commits else 0
        if lost:
            self.found = self.commits[-1 - lost]
        return lost

    def start(self) -> None:
        """Begin another life of the process."""
        self.failed, self.found = False, None
        self.commits.clear()


class StoreOnDisk(MemoryStore):
    """A store whose writes may fail."""

    def __init__(self, disk: Disk, contents: Contents | None, part: Part) -> None:
        super().__init__(contents, part)
        self._disk = disk

    def commit(self, position: LogPosition) -> None:
        contents = self._now
        contents.position, contents.newest_lsn = position, position.lsn
        self._disk.commit(contents)
        super().commit(position)

    def change(self, *arguments: Any) -> None:
        self._disk.write()
        super().change(*arguments)


class Disks:
    """Those of all machines, by their names."""

    def __init__(self, rng: random.Random) -> None:
        self._rng = rng
        self._disks: dict[str, Disk] = {}

    def of(self, name: str) -> Disk:
        return self._disks.setdefault(name, Disk(self._rng))


class DiskStores(MemoryStores):
    """The stores of all nodes, each on the disk of its own machine."""

    def __init__(self, disks: Disks, parts: Mapping[str, Part] | None = None) -> None:
        super().__init__(parts)
        self._disks = disks

    def open(self, name: str) -> MemoryStore:
        disk = self._disks.of(name)
        before = super().open(name)
        contents = disk.found.copy() if disk.found is not None else before.contents
        disk.start()
        store = self._stores[name] = StoreOnDisk(disk, contents, before.part)
        return store

    def put(self, name: str, store: MemoryStore) -> None:
        """Put a store there from elsewhere, whatever the machine's disk held before."""
        super().put(name, store)
        self._disks.of(name).start()
