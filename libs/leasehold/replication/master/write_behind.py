"""A master's store as its batches see it: what they change is put while their record travels.

A batch decides by rows that it finds by key, in the store or among those that it has just changed
itself, and by outcomes that are remembered. Both are known without the store being told of the
changes at once. So a record is on its way before what it decides is in the store, and the time
that the master would have waited for it is when it is put. Whoever asks for anything else, entries
or what was written since, asks the store after all that waits was put.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Any, Final

from leasehold.catalog.catalog import Catalog
from leasehold.model.budget import RangeLooks, is_spending, spending_nothing
from leasehold.model.errors import Refused
from leasehold.model.keys import Key
from leasehold.model.ports import CopyRange, Row, StoreWriter
from leasehold.model.records.log import Backfill, ChangeKind, Commit, RowChange, TableTruncated
from leasehold.model.records.requests import Outcome, ReadRange
from leasehold.replication.log.apply import apply_backfill, end_of_inserts
from leasehold.transaction.overlay import row_after

MANY_CHANGES: Final = 1_000
"""More are put in turns of their own: so many take some 20 ms, with their entries."""
LOOK_CHANGES: Final = 20
"""Put between two looks at the clock."""


class WriteBehind:
    """A store's writer that puts late. Between `begin` and `settle` what is put waits, in order;
    `row` and `outcome` know of it.

    Whatever `settle` raises is no request's fault (the disk is full, the store contradicts the
    log): the record may be in the log by then, and this node can't go on, as if it had failed to
    commit what was read back."""

    def __init__(self, store: StoreWriter) -> None:
        self._store = store
        self._waiting: deque[Callable[[], object]] = deque()
        self._rows: dict[tuple[int, Key], tuple[Any, Row | None]] = {}
        self._outcomes: dict[bytes, Outcome] = {}
        self._pieces: Iterator[None] | None = None  # of a commit of many changes; put first

    def begin(self) -> None:
        assert not self.waits
        self._store.begin()

    def rollback(self) -> None:
        self._forget()
        self._store.rollback()

    def savepoint(self) -> None:
        self.settle().savepoint()

    def release(self) -> None:
        self.settle().release()

    def rollback_to(self) -> None:
        """Roll back to the savepoint: what was put since never was."""
        self._forget()
        self._store.rollback_to()

    @property
    def waits(self) -> bool:
        return bool(self._waiting) or self._pieces is not None

    @property
    def takes_long(self) -> bool:
        """Whether putting all that waits takes longer than a moment."""
        return self._pieces is not None or len(self._waiting) > MANY_CHANGES

    def settle(self) -> StoreWriter:
        """Put all that waits; return the store, which then knows of it."""
        if self._waiting or self._pieces is not None:
            if is_spending():
                with spending_nothing():
                    self._put(_never)
            else:
                self._put(_never)
        return self._store

    def settle_until(self, is_over: Callable[[], bool]) -> None:
        """Put what waits, as much as can be until `is_over`."""
        assert not is_spending(), "entries are computed by everybody, and charged to nobody"
        if self._waiting or self._pieces is not None:
            self._put(is_over)

    def _put(self, is_over: Callable[[], bool]) -> None:
        waiting = self._waiting
        for _ in self._pieces or ():
            if is_over():
                return
        self._pieces = None
        while waiting:
            waiting.popleft()()
            if waiting and len(waiting) % LOOK_CHANGES == 0 and is_over():
                break
        if not waiting:
            self._forget()

    def _forget(self) -> None:
        self._pieces = None
        self._waiting.clear()
        self._rows.clear()
        self._outcomes.clear()

    # ------------------------------------------------------------ what is known at once

    def row(self, descriptor: Any, key: Key) -> Row | None:
        """Return a row, as StoreWriter does. Under another version than that of its writer a row
        may have genids of other locks, which the store alone knows."""
        known = self._rows.get((descriptor.table_id, key))
        if self._pieces is not None:
            self.settle()
        if known is None:
            return self._store.row(descriptor, key)
        written_under, row = known
        return row if written_under is descriptor else self.settle().row(descriptor, key)

    def outcome(self, request_id: bytes) -> Outcome | None:
        known = self._outcomes.get(request_id)
        return self._store.outcome(request_id) if known is None else known

    def oldest_outcomes(self, count: int) -> Sequence[Outcome]:
        return self.settle().oldest_outcomes(count)

    def oldest_id(self) -> bytes | None:
        return self.settle().oldest_id()

    # ------------------------------------------------------------ what waits

    def apply(
        self, commit: Commit, before: Sequence[Row | None], lsn: int, catalog: Catalog
    ) -> None:
        """Put what a commit changes. `before`: the rows under its changes, in their order."""
        for write in commit.catalog:
            if isinstance(write, TableTruncated):
                self.truncate(write.table_id, lsn)
        if len(commit.changes) > MANY_CHANGES and not commit.backfills:
            self.settle()
            self._pieces = self._put_pieces(commit, before, lsn, catalog)
            return
        for position, (change, row) in enumerate(zip(commit.changes, before, strict=True)):
            descriptor = catalog.version(change.table_id, change.version)
            self.change(descriptor, change, lsn, position, row)
        for backfill in commit.backfills:
            apply_backfill(backfill, lsn, catalog, self)

    def _put_pieces(
        self, commit: Commit, before: Sequence[Row | None], lsn: int, catalog: Catalog
    ) -> Iterator[None]:
        changes, end = commit.changes, 0
        for position, (change, row) in enumerate(zip(changes, before, strict=True)):
            if position < end:
                continue
            descriptor = catalog.version(change.table_id, change.version)
            end = end_of_inserts(changes, position)
            if end > position:
                self._store.insert(descriptor, changes[position:end], lsn, position)
            else:
                self._store.change(descriptor, change, lsn, position, row)
            yield

    def change(
        self, descriptor: Any, change: RowChange, lsn: int, position: int, before: Row | None
    ) -> None:
        """Put a change, as StoreWriter does. Where the row under it is not said the store alone
        knows what comes out of it."""
        if before is None and change.kind is not ChangeKind.INSERT:
            self.settle().change(descriptor, change, lsn, position, before)
            return
        self._waiting.append(partial(self._store.change, descriptor, change, lsn, position, before))
        after = row_after(change, before, lsn, position)
        self._rows[change.table_id, change.key] = (descriptor, after)

    def put_outcome(self, request_id: bytes, outcome: Outcome) -> None:
        self._waiting.append(partial(self._store.put_outcome, request_id, outcome))
        self._outcomes[request_id] = outcome

    def put_untimely(self, request_id: bytes, outcome: Outcome) -> None:
        self._waiting.append(partial(self._store.put_untimely, request_id, outcome))
        self._outcomes[request_id] = outcome

    # ------------------------------------------------------------ what the store is asked or told

    def backfill(self, descriptor: Any, backfill: Backfill) -> int:
        return self.settle().backfill(descriptor, backfill)

    def read_copy(self, source: Any, target: Any, after: Key, rows_max: int) -> CopyRange:
        return self.settle().read_copy(source, target, after, rows_max)

    def copy_rows(self, source: Any, target: Any, backfill: Backfill, lsn: int) -> int:
        return self.settle().copy_rows(source, target, backfill, lsn)

    def ranges_waiting(self, table_id: int | None = None) -> int:
        return self._store.ranges_waiting(table_id)

    def range_failure(self, table_id: int, element_id: int) -> tuple[Key, Refused] | None:
        return self._store.range_failure(table_id, element_id)

    def truncate(self, table_id: int, lsn: int) -> None:
        self.settle().truncate(table_id, lsn)

    def prepare(self, descriptor: Any) -> None:
        self.settle().prepare(descriptor)

    def lacks(self, descriptor: Any, keys: Sequence[Key]) -> bool:
        if self._pieces is not None:
            self.settle()
        table_id, known = descriptor.table_id, self._rows
        if known and any((table_id, key) in known for key in keys):
            return False
        return self._store.lacks(descriptor, keys)

    def is_empty(self, table_id: int) -> bool:
        return self.settle().is_empty(table_id)

    def rows_about(self, table_id: int) -> int:
        return self._store.rows_about(table_id)

    def count_lacking(self, descriptor: Any, element_id: int) -> int:
        return self.settle().count_lacking(descriptor, element_id)

    def holders(self, descriptor: Any, index_id: int, values: Key, rows_max: int) -> Sequence[Key]:
        return self.settle().holders(descriptor, index_id, values, rows_max)

    def kept_from(self, table_id: int) -> int | None:
        return self.settle().kept_from(table_id)

    def last_write(self, table_id: int) -> int:
        return self.settle().last_write(table_id)

    def written_in(
        self, descriptor: Any, index_id: int, part: ReadRange, lsn: int, looks: RangeLooks
    ) -> Key | None:
        return self.settle().written_in(descriptor, index_id, part, lsn, looks)

    def gone_from(
        self, descriptor: Any, index_id: int, part: ReadRange, lsn: int, looks: RangeLooks
    ) -> Key | None:
        return self.settle().gone_from(descriptor, index_id, part, lsn, looks)


def _never() -> bool:
    return False
