"""Rows of a result, put aside: those of a cursor, whose client takes its time, so that no snapshot
is held open meanwhile. A few are kept in memory, more in a file without a name, which is gone with
whoever has it open."""

from __future__ import annotations

import marshal
import tempfile
from array import array
from bisect import bisect_right
from contextlib import suppress
from typing import IO, Any, Final

from leasehold.adapters.os.temp_room import TempRoom
from leasehold.model.errors import LeaseholdError, RequestTooLarge

MEMORY_BYTES_MAX: Final = 64 * 1024
"""Of one spool; beyond it is a file."""
SPOOLED_BYTES_MAX: Final = 256 * 1024 * 1024
SPOOL_BATCH_ROWS: Final = 256
SPOOL_BATCH_BYTES: Final = 128 * 1024
"""Of the values in it, about; a larger row is a batch by itself. Two are in memory at most."""
_VALUE_BYTES: Final = 16


class SpoolFull(Exception):
    """Raised where there is no more room for these rows; `error` is what their client is told."""

    def __init__(self, error: LeaseholdError) -> None:
        super().__init__(error.message)
        self.error = error


class SpoolRoom:
    """What all spools of one session may take together, of the room of its node."""

    def __init__(self, node: TempRoom | None = None, bytes_max: int = SPOOLED_BYTES_MAX) -> None:
        """Begin with nothing taken. `node` is shared with other sessions; None: nobody else's."""
        self.node = node or TempRoom(bytes_max)
        self.bytes_max = bytes_max
        self.bytes_taken = 0

    @property
    def is_nearly_full(self) -> bool:
        """Whether another batch perhaps has no room."""
        left = min(self.bytes_max - self.bytes_taken, self.node.bytes_left)
        return left < SPOOL_BATCH_BYTES

    def take(self, size: int) -> None:
        """Take `size` bytes. Raises SpoolFull."""
        if self.bytes_taken + size > self.bytes_max:
            raise SpoolFull(self.full())
        if not self.node.take(size):
            raise SpoolFull(self.node.full())
        self.bytes_taken += size

    def full(self) -> LeaseholdError:
        """Return what a client is told whose session has no room left."""
        mib = self.bytes_max // (1024 * 1024)
        return RequestTooLarge(
            f"more than {mib} MiB of rows of this session wait for its client: add a LIMIT, close"
            " cursors, or read faster"
        )

    def give_back(self, size: int) -> None:
        """Return `size` bytes that were taken."""
        self.node.give_back(size)
        self.bytes_taken -= size
        assert self.bytes_taken >= 0, "what was taken"


class RowSpool:
    """Rows by their number, from 0. Written to its end, then read; `close` gives the room back."""

    def __init__(self, room: SpoolRoom) -> None:
        self._room = room
        # Of each batch its first row and its first byte; one more of both, where the next begins.
        self._firsts, self._begins = array("Q", (0,)), array("Q", (0,))
        self._file: IO[bytes] | None = None
        self._last: list[tuple[Any, ...]] = []  # fewer than a batch
        self._last_bytes = 0
        self._batch: tuple[int, list[tuple[Any, ...]]] = (-1, [])
        self.count = 0
        self.closed = False

    def add(self, rows: list[tuple[Any, ...]]) -> None:
        """Append rows. Raises SpoolFull, of which nothing is kept that came after (`not_kept`), and
        OSError."""
        left = iter(rows)
        try:
            for row in left:
                self._last.append(row)
                self._last_bytes += _VALUE_BYTES * len(row)
                for value in row:
                    if type(value) is str or type(value) is bytes:
                        self._last_bytes += len(value)
                if len(self._last) == SPOOL_BATCH_ROWS or self._last_bytes >= SPOOL_BATCH_BYTES:
                    self._put()
        except SpoolFull:
            self._last += left
            raise

    def end(self) -> None:
        """Write what is left: no more rows come."""
        if self._last:
            self._put()

    def _put(self) -> None:
        data = marshal.dumps(self._last)
        self._room.take(len(data))
        rows, self._last, self._last_bytes = self._last, [], 0
        begin = self._begins[-1]
        self._begins.append(begin + len(data))
        if self._file is None:
            folder = self._room.node.rows_folder
            self._file = tempfile.SpooledTemporaryFile(  # noqa: SIM115 - `close`
                MEMORY_BYTES_MAX, dir=None if folder is None else str(folder)
            )
        self._file.seek(begin)
        self._file.write(data)
        self.count += len(rows)
        self._firsts.append(self.count)

    def not_kept(self) -> list[tuple[Any, ...]]:
        """Return the rows that were added and had no room, behind a SpoolFull. They are the
        caller's."""
        rows, self._last, self._last_bytes = self._last, [], 0
        return rows

    def rows(self, first: int, count: int) -> list[tuple[Any, ...]]:
        """Return those that there are of `count` rows from `first` on, at most to the end of their
        batch; [] only behind the last. Raises OSError."""
        if first >= self.count:
            return []
        number = bisect_right(self._firsts, first) - 1
        position = first - self._firsts[number]
        return self._batch_of(number)[position : position + count]

    def _batch_of(self, number: int) -> list[tuple[Any, ...]]:
        if self._batch[0] != number:
            assert self._file is not None
            begin, end = self._begins[number], self._begins[number + 1]
            self._file.seek(begin)
            self._batch = number, marshal.loads(self._file.read(end - begin))  # noqa: S302 - ours
        return self._batch[1]

    def close(self) -> None:
        """Give the room back; may be called twice."""
        if self.closed:
            return
        self.closed = True
        self._room.give_back(self._begins[-1])
        self.count, self._last, self._batch = 0, [], (-1, [])
        file, self._file = self._file, None
        if file is not None:
            with suppress(OSError):  # what could not be written is not wanted any more
                file.close()
