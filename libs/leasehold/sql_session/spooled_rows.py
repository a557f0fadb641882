"""Rows of a query that are put aside while its client takes its time: those of a cursor, what a
portal has left that gave as many as were asked for, and what a client that reads slowly has not
taken yet. So no snapshot is held open meanwhile."""

from __future__ import annotations

from typing import Any

from leasehold.adapters.os.row_spool import SPOOL_BATCH_ROWS, RowSpool, SpoolFull, SpoolRoom
from leasehold.adapters.sqlite.query import FETCH_BYTES_MAX, Part, Rows, bytes_of
from leasehold.model.errors import LeaseholdError, QueryCanceled
from leasehold.pgwire.wire_errors import DiskFull


class SpooledRows:
    """A query's rows as far as they could be computed and kept. `error`: what comes in the place of
    the next one. `has_all`: no more than these are wanted of the query."""

    def __init__(self, room: SpoolRoom) -> None:
        self._room = room
        self._spool = RowSpool(room)
        self._beside: list[tuple[Any, ...]] = []  # behind those, of the batch that had no room
        self.error: LeaseholdError | None = None
        self.has_all = True

    def take(self, rows: Rows, *, wholly: bool = True) -> None:
        """Put aside all rows. Not `wholly`: as many as there is room for, and `rows` goes on behind
        them. Raises QueryCanceled, DiskFull, and what is no error of the query."""
        error: Exception | None = None
        more = True
        try:
            while more:
                if not wholly and self._room.is_nearly_full:
                    break
                batch, error, more = rows.fetch_part(SPOOL_BATCH_ROWS)
                self._spool.add(batch)
            self._spool.end()
        except SpoolFull as full:
            if wholly:
                self.give_up(full.error)
                return
            self._beside = self._spool.not_kept()
        except OSError as failed:
            raise DiskFull(f"rows of a cursor could not be put aside: {failed}") from failed
        self.has_all = not more
        if error is None:
            return
        if isinstance(error, QueryCanceled) or not isinstance(error, LeaseholdError):
            raise error
        self.error = error.with_traceback(None)  # which holds the reader

    def give_up(self, error: LeaseholdError | None = None) -> None:
        """Let an error come in the place of what had no room."""
        self.error = error or self._room.full()
        self._beside.clear()
        self.has_all = True

    @property
    def count(self) -> int:
        return self._spool.count + len(self._beside)

    def fetch(self, first: int, count: int) -> list[tuple[Any, ...]]:
        """Return the rows that there are of `count` from number `first` (from 0) on: all, or as
        many as make a fetch, one at least. Raises DiskFull."""
        found: list[tuple[Any, ...]] = []
        size = 0
        try:
            while len(found) < count and size < FETCH_BYTES_MAX:
                rows = self._spool.rows(first + len(found), count - len(found))
                if not rows:
                    break
                found += rows
                size += bytes_of(rows)
        except OSError as failed:
            raise DiskFull(f"rows of a cursor could not be read again: {failed}") from failed
        if self._beside and len(found) < count and size < FETCH_BYTES_MAX:
            position = first + len(found) - self._spool.count
            found += self._beside[position : position + count - len(found)]
        return found

    def close(self) -> None:
        self._beside.clear()
        self._spool.close()


class SpooledRowsInTurn:
    """The same, as `Rows` gives them. `behind`: what gives those that had no room."""

    def __init__(self, rows: SpooledRows, behind: Rows | None = None) -> None:
        self._rows = rows
        self._behind = behind
        self._next = 0

    @property
    def reads_on(self) -> bool:
        """Whether the query is not at its end."""
        return self._behind is not None and not self._rows.has_all

    def fetch_part(self, rows_max: int) -> Part:
        """Return the next rows, and what the query has ended with, behind them."""
        found = self._rows.fetch(self._next, rows_max)
        self._next += len(found)
        if len(found) == rows_max or self._next < self._rows.count:
            return Part(found, None, more=True)
        if self._behind is None or self._rows.has_all:
            return Part(found, self._rows.error, more=False)
        if found:  # those behind are a fetch of their own
            return Part(found, None, more=True)
        return self._behind.fetch_part(rows_max)

    def what_follows(self) -> SpooledRowsInTurn | Rows:
        """Return this, or what is left of the query, once all is given that was put aside."""
        if self._behind is None or not self.reads_on or self._next < self._rows.count:
            return self
        self._rows.close()
        return self._behind

    def ends_reading(self) -> None:
        """Compute no more than was put aside."""
        if self.reads_on:
            self._rows.give_up()
        if self._behind is not None:
            self._behind.close()

    def close(self) -> None:
        self._rows.close()
        if self._behind is not None:
            self._behind.close()
