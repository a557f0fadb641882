"""Read snapshots of a store in memory."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from leasehold.catalog.descriptor import Descriptor
from leasehold.catalog.elements import Index
from leasehold.catalog.history import History, check_kept, tables_at
from leasehold.catalog.part import WHOLE, Part
from leasehold.catalog.states import READABLE, State
from leasehold.model.closing import Closing
from leasehold.model.errors import UnknownTable
from leasehold.model.keys import Key, order_of
from leasehold.model.ports import Row
from leasehold.model.records.log import LogPosition
from leasehold.rows.index_entries import entry_of
from tests.support.memory_store.contents import Contents


class MemorySnapshot(Closing):
    """StoreSnapshot on a copy of what was committed; `then` with its rows as of an earlier LSN."""

    def __init__(self, contents: Contents, then: int | None = None) -> None:
        self._now = contents
        self._contents = contents if then is None else contents.at(then)
        self._then = then
        self.lsn = contents.position.lsn if then is None else then

    @property
    def part(self) -> Part:
        return WHOLE

    def position(self) -> LogPosition:
        return self._contents.position

    def min_version(self, table_id: int) -> int:
        return self._contents.min_versions.get(table_id, 1)

    def as_of(self, lsn: int) -> MemorySnapshot:
        held = self._now
        if lsn == held.position.lsn:
            return MemorySnapshot(held)
        floor = None if held.rows_lsn is None else max(held.rows_lsn, held.history_floor)
        check_kept(floor, lsn, held.position.lsn)
        return MemorySnapshot(held, lsn)

    def keeps_rows(self) -> bool:
        return self._now.rows_lsn is not None

    def lsn_at(self, time_us: int) -> int:
        return self._now.lsn_at(time_us)

    def tables(self) -> tuple[Descriptor, ...]:
        held = self._contents
        kept = [held.versions(t) for t in sorted({t for t, _ in held.descriptors})]
        if self._then is not None:
            return tables_at(kept, self._then)
        return tuple(v[-1] for v in kept if v[-1].state is not State.ABSENT)

    def versions(self, table_id: int) -> tuple[Descriptor, ...]:
        return tuple(self._contents.versions(table_id))

    def _check_kept(self, table_id: int) -> None:
        if self._then is not None:
            check_kept(self._contents.emptied.get(table_id, 0), self._then)

    def newest(self, table: str) -> Descriptor:
        if self._then is not None:
            return self.descriptor_at(table, self._then)
        kept = self._contents.descriptors
        newest = {place[0]: kept[place] for place in sorted(kept)}
        for descriptor in newest.values():
            if table in descriptor.names:
                return descriptor
        raise UnknownTable(f"table {table!r} does not exist", table=table)

    def descriptor_at(self, table: str, lsn: int) -> Descriptor:
        held = self._contents
        tables = [held.versions(t) for t in sorted({t for t, _ in held.descriptors})]
        return History(tables, held.history_floor, held.position.lsn).table_at(table, lsn)

    def get(self, descriptor: Descriptor, key: Key) -> Row | None:
        self._check_kept(descriptor.table_id)
        row = self._row(descriptor.table_id, key)
        if row is None:
            return None
        known = descriptor.by_id
        return row._replace(values={e: v for e, v in row.values.items() if e in known})

    def _row(self, table_id: int, key: Key) -> Row | None:
        """Of then: what is dead now was not dead then."""
        held = self._contents
        if self._then is None:
            return held.row(table_id, key)
        stamp = held.exists.get((table_id, key))
        return None if stamp is None else Row(held.pairs.get((table_id, key), {}), *stamp)

    def scan(
        self, descriptor: Descriptor, low: Key | None, high: Key | None, *, rows_max: int
    ) -> Iterator[tuple[Key, Row]]:
        self._check_kept(descriptor.table_id)
        first, last = order_of(low or ()), order_of(high or ())
        found = sorted(
            (order, key)
            for order, key in (
                (order_of(k), k) for t, k in self._contents.exists if t == descriptor.table_id
            )
            if order[: len(first)] >= first and (not last or order[: len(last)] < last)
        )
        yield from self._rows(descriptor, [key for _, key in found][:rows_max])

    def get_by(
        self, descriptor: Descriptor, index_id: int, values: Key, *, rows_max: int
    ) -> Iterator[tuple[Key, Row]]:
        index = next(i for i in descriptor.indexes if i.element_id == index_id)
        assert index.state in READABLE, f"index {index.name!r} is not public in this version"
        found = sorted(
            (_sorted_as(entry, index), order_of(key), key)
            for entry, key in self._entries(descriptor, index)
            if entry[: len(values)] == values
        )
        yield from self._rows(descriptor, [key for *_, key in found][:rows_max])

    def _entries(self, descriptor: Descriptor, index: Index) -> Iterator[tuple[Key, Key]]:
        """(entry, primary key); of the past, each from the row as it was."""
        self._check_kept(descriptor.table_id)
        table, held = descriptor.table_id, self._contents
        if self._then is None:
            for t, i, entry, key in held.entries:
                if (t, i) == (table, index.element_id):
                    yield entry, key
            return
        made = entry_of(descriptor, index)
        for t, key in held.exists:
            row = self._row(t, key) if t == table else None
            then = None if row is None else made(row.values)
            if then is not None:
                yield then, key

    def _rows(self, descriptor: Descriptor, keys: Sequence[Key]) -> Iterator[tuple[Key, Row]]:
        for key in keys:
            row = self.get(descriptor, key)
            if row is not None:
                yield key, row

    def close(self) -> None:
        """Nothing is held."""


def _sorted_as(entry: Key, index: Index) -> Key:
    return order_of(entry[: len(index.columns)])
