"""Changes of rows as a node applies them, for those in its process who follow a table.

The node's thread hands in records and says what is committed; each follower takes what is his from
a queue of his own, of bounded size: who is too slow is told that he has lost some, and nobody waits
for him.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Collection, Iterable
from threading import Condition
from typing import Any, Final, NamedTuple

from leasehold.catalog.part import Part
from leasehold.model.keys import Key
from leasehold.model.records.events import Image
from leasehold.model.records.log import ChangeKind, Decisions, RowChange, TableTruncated

QUEUED_MAX: Final = 10_000
"""Changes that wait for one follower."""
QUEUED_BYTES_MAX: Final = 4 << 20
FOLLOWERS_MAX: Final = 256
_CHANGE_BYTES: Final = 200


class RowMoved(NamedTuple):
    """A change of a row in commit `lsn`: `image` is every pair of it afterwards, None: it is gone.
    Without a key all rows of before are gone. `version`: the writer's."""

    lsn: int
    key: Key
    image: Image | None
    version: int


class Following:
    """What one follower has not taken yet."""

    def __init__(self, table_id: int) -> None:
        self.table_id = table_id
        self.lost = False
        self._waiting: deque[RowMoved] = deque()
        self._bytes = 0

    def put(self, moved: RowMoved) -> None:
        """Queue a change, or forget all: he has lost some."""
        if self.lost:
            return
        self._bytes += _size_of(moved)
        if len(self._waiting) >= QUEUED_MAX or self._bytes > QUEUED_BYTES_MAX:
            self.lost = True
            self._waiting.clear()
            return
        self._waiting.append(moved)

    def take(self) -> list[RowMoved]:
        taken = list(self._waiting)
        self._waiting.clear()
        self._bytes = 0
        return taken

    @property
    def has_some(self) -> bool:
        return self.lost or bool(self._waiting)


class RowFeed:
    """Hands out changes. `applied` and `committed` are the node's, on its thread; all else is for
    any thread."""

    def __init__(
        self,
        part: Callable[[], Part],
        taken_out: Callable[[], Collection[tuple[int, Key]]] = tuple,
    ) -> None:
        """Make a feed. `part`: what the store has. `taken_out`: table ids and keys of rows that
        what is applied and not committed yet has taken out of it."""
        self._part = part
        self._taken_out = taken_out
        self._turned = Condition()
        self._followers: dict[int, list[Following]] = {}
        self._count = 0
        self._open: list[tuple[int, RowMoved]] = []  # applied, not committed
        self._lsn = 0
        self._closed = False

    # ------------------------------------------------------------ the node

    def applied(self, record: Decisions) -> None:
        """Take a record that was applied, and is not committed yet."""
        if not self._followers:
            return
        part, taken_out = self._part(), self._taken_out()

        def was_here(change: RowChange) -> bool:
            return (change.table_id, change.key) in taken_out

        for lsn, commit in enumerate(record.commits, record.first_lsn):
            for write in commit.catalog:
                if isinstance(write, TableTruncated) and write.table_id in self._followers:
                    self._open.append((write.table_id, RowMoved(lsn, (), None, 0)))
            changes = commit.changes
            if not part.is_whole:
                changes = tuple(change for _, change in part.seen(commit, was_here))
            for change in changes:
                if change.table_id in self._followers and change.kind is not ChangeKind.BACKFILL:
                    moved = RowMoved(lsn, change.key, change.image, change.version)
                    self._open.append((change.table_id, moved))

    def committed(self, lsn: int) -> None:
        """Hand out what was applied: readers see it now."""
        with self._turned:
            for table_id, moved in self._open:
                for follower in self._followers.get(table_id, ()):
                    follower.put(moved)
            self._open.clear()
            self._lsn = lsn
            self._turned.notify_all()

    # ------------------------------------------------------------ who follows

    def follow(self, table_id: int) -> Following | None:
        """Begin to follow a table; None: there are too many who follow. A snapshot that is opened
        afterwards has what comes no more, and of what comes the LSN says whether it has it."""
        with self._turned:
            if self._count >= FOLLOWERS_MAX:
                return None
            self._count += 1
            made = Following(table_id)
            others = self._followers.get(table_id, [])
            self._followers = {**self._followers, table_id: [*others, made]}
            return made

    def leave(self, following: Following) -> None:
        with self._turned:
            left = [f for f in self._followers[following.table_id] if f is not following]
            self._followers = {**self._followers, following.table_id: left}
            if not left:
                del self._followers[following.table_id]
            self._count -= 1

    def wait(self, following: Following, timeout_s: float) -> tuple[list[RowMoved], int]:
        """Return what is there for a follower, after at most that time, and the LSN up to which it
        is all."""
        with self._turned:
            self._turned.wait_for(lambda: following.has_some or self._closed, timeout_s)
            return following.take(), self._lsn

    def wait_lsn(self, lsn: int, timeout_s: float) -> bool:
        """Return whether that LSN was committed here within that time."""
        with self._turned:
            return self._turned.wait_for(lambda: self._lsn >= lsn or self._closed, timeout_s)

    def close(self) -> None:
        """Let nobody wait any longer."""
        with self._turned:
            self._closed = True
            self._turned.notify_all()

    @property
    def closed(self) -> bool:
        return self._closed


def _size_of(moved: RowMoved) -> int:
    return _CHANGE_BYTES + _bytes_of(moved.key) + _bytes_of((moved.image or {}).values())


def _bytes_of(values: Iterable[Any]) -> int:
    return sum(len(value) for value in values if isinstance(value, str | bytes))
