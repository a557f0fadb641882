"""Rows of a query that are put aside while its client takes its time: those of a cursor, and what a
portal has left that gave as many as were asked for. So no snapshot is held open meanwhile."""

from __future__ import annotations

from typing import Any

from leasehold.adapters.row_spool import SPOOL_BATCH_ROWS, RowSpool, SpoolFull, SpoolRoom
from leasehold.adapters.sqlite_query import Rows
from leasehold.model.errors import LeaseholdError, QueryCanceled, RequestTooLarge
from leasehold.pgwire.wire_errors import DiskFull


class RowsAside:
    """A query's rows as far as they could be computed and kept. `error`: what comes in the place of
    the next one."""

    def __init__(self, room: SpoolRoom) -> None:
        self._room = room
        self._spool = RowSpool(room)
        self.error: LeaseholdError | None = None

    def take(self, rows: Rows) -> None:
        """All of them. Raises QueryCanceled, DiskFull, and what is no error of the query."""
        error: Exception | None = None
        try:
            more = True
            while more:
                batch, error = rows.partly(SPOOL_BATCH_ROWS)
                more = error is None and len(batch) == SPOOL_BATCH_ROWS
                self._spool.add(batch)
            self._spool.end()
        except SpoolFull:
            mib = self._room.bytes_max // (1024 * 1024)
            error = RequestTooLarge(
                f"the rows of this session's cursors are more than {mib} MiB: add a LIMIT, or close"
                " some of them"
            )
        except OSError as failed:
            raise DiskFull(f"rows of a cursor could not be put aside: {failed}") from failed
        if error is None:
            return
        if isinstance(error, QueryCanceled) or not isinstance(error, LeaseholdError):
            raise error
        self.error = error.with_traceback(None)  # which holds the reader

    @property
    def count(self) -> int:
        return self._spool.count

    def fetch(self, first: int, count: int) -> list[tuple[Any, ...]]:
        """Those that there are of `count` from number `first` (from 0) on. Raises DiskFull."""
        found: list[tuple[Any, ...]] = []
        try:
            while len(found) < count:
                rows = self._spool.rows(first + len(found), count - len(found))
                if not rows:
                    break
                found += rows
        except OSError as failed:
            raise DiskFull(f"rows of a cursor could not be read again: {failed}") from failed
        return found

    def close(self) -> None:
        self._spool.close()


class RowsAsideInTurn:
    """The same, as `Rows` gives them."""

    def __init__(self, rows: RowsAside) -> None:
        self._rows = rows
        self._next = 0

    def partly(self, rows_max: int) -> tuple[list[tuple[Any, ...]], LeaseholdError | None]:
        """With what the query has ended with, behind them."""
        found = self._rows.fetch(self._next, rows_max)
        self._next += len(found)
        return found, self._rows.error if len(found) < rows_max else None

    def close(self) -> None:
        self._rows.close()
