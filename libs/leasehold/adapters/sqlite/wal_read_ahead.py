"""Reads the blocks that a WAL will be written over before it is.

A WAL that has restarted is written over its own old blocks. A frame has 4,120 bytes, so it covers
parts of two blocks, and of a block that is changed in part the kernel needs the rest: where that
is no longer in the page cache, the commit waits for a read of the disk. Where memory is short, or
the system gives up what was not touched for a minute, commits waited 50 times a second for 1.5 ms
each, and up to 97 (tests/bench/DESIGN.md). So a thread asks the kernel to read ahead
(`POSIX_FADV_WILLNEED`): nothing is written, and nothing read that is in the page cache.

*Why not give the blocks up instead.* Cut the file, and the file system has to find and free blocks:
a commit waited 60 ms for it. Declare them unwritten (`FALLOC_FL_ZERO_RANGE`), and it waits until
what they hold has been written; from a thread it might reach frames of this WAL.
"""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path
from queue import Full, Queue
from threading import Thread
from typing import Final

from leasehold.adapters.os.scheduling import take_short_turns
from leasehold.adapters.sqlite.layout import WAL_BYTES_KEPT_MAX

AHEAD_BYTES: Final = 8 << 20
"""What is asked for before its turn: a second of 200 writes of ten pages, and a disk takes less."""
STEP_BYTES: Final = 1 << 20
"""What is asked for at a time."""
CALL_BYTES: Final = 128 << 10
"""And in one call: of a longer one Linux leaves out what the device does not read ahead."""

RANGES_MAX: Final = 16
"""That may wait for the thread. Of more, a disk that is so far behind has no use."""


class WalReadAhead:
    """The reading, as the writer's thread drives it: it says how far it is, and waits for no disk
    here."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._has_old = _keeps_room(path)  # blocks of before; those of a new file nobody reads
        self._asked = 0  # up to where, of what the WAL is now
        self._anew = 0  # up to where, of what it will be once it has restarted
        self._reader: _Reader | None = None

    def restarts_soon(self) -> None:
        """The next commits may write over the file's begin. Say so again where they do not: what
        was read may not stay."""
        self._anew = self._ask(0, AHEAD_BYTES)

    def note_new_begin(self) -> None:
        self._has_old = True
        self._asked, self._anew = self._anew, 0

    def written(self, end: int) -> None:
        """The WAL's frames end at this byte of the file."""
        begin = max(self._asked, end)
        if self._has_old and end + AHEAD_BYTES - begin >= STEP_BYTES:
            self._asked = self._ask(begin, end + AHEAD_BYTES)

    def _ask(self, begin: int, end: int) -> int:
        # Where the machine has no room for the thread, or that is far behind, commits read for
        # themselves.
        with suppress(RuntimeError, Full):
            if self._reader is None:
                self._reader = _Reader(self._path)
            self._reader.ranges.put_nowait(range(begin, end, CALL_BYTES))
        return end

    def close(self) -> None:
        if self._reader is not None:
            self._reader.close()


def _keeps_room(path: Path) -> bool:
    """Whether a process that was killed has left a WAL with its room."""
    try:
        return Path(f"{path}-wal").stat().st_size >= WAL_BYTES_KEPT_MAX
    except OSError:
        return False


class _Reader:
    """The thread: a call may wait until the disk takes one more request."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self.ranges: Queue[range | None] = Queue(RANGES_MAX)
        self._thread = Thread(target=self._run, name="store-wal-ahead", daemon=True)
        self._thread.start()

    def _run(self) -> None:
        take_short_turns()
        descriptor = -1
        while (begins := self.ranges.get()) is not None:
            # Without the file, or where the file system can't, commits read for themselves.
            with suppress(OSError):
                if descriptor < 0:
                    descriptor = os.open(f"{self._path}-wal", os.O_RDONLY | os.O_CLOEXEC)
                for begin in begins:
                    os.posix_fadvise(descriptor, begin, CALL_BYTES, os.POSIX_FADV_WILLNEED)
        if descriptor >= 0:
            os.close(descriptor)

    def close(self) -> None:
        self.ranges.put(None)
        self._thread.join()
