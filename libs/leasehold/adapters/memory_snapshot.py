"""Read snapshots of a store in memory."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from leasehold.adapters.memory_contents import Contents
from leasehold.model.errors import UnknownTable
from leasehold.model.ports import Row
from leasehold.model.records import Key, LogPosition
from leasehold.schema.descriptor import Descriptor, from_wire
from leasehold.schema.history import History
from leasehold.schema.states import READABLE


class MemorySnapshot:
    """StoreSnapshot on a copy of what was committed."""

    def __init__(self, contents: Contents) -> None:
        self._contents = contents

    def position(self) -> LogPosition:
        return self._contents.position

    def min_version(self, table_id: int) -> int:
        return self._contents.min_versions.get(table_id, 1)

    def newest(self, table: str) -> Descriptor:
        newest: dict[int, Descriptor] = {}
        for (table_id, _), body in sorted(self._contents.descriptors.items()):
            newest[table_id] = from_wire(body)
        for descriptor in newest.values():
            if table in descriptor.names:
                return descriptor
        raise UnknownTable(f"table {table!r} does not exist", table=table)

    def descriptor_at(self, table: str, lsn: int) -> Descriptor:
        held = self._contents
        tables = [held.versions(t) for t in sorted({t for t, _ in held.descriptors})]
        return History(tables, held.history_floor, held.position.lsn).table_at(table, lsn)

    def get(self, descriptor: Descriptor, key: Key) -> Row | None:
        row = self._contents.row(descriptor.table_id, key)
        if row is None:
            return None
        known = descriptor.by_id
        return row._replace(values={e: v for e, v in row.values.items() if e in known})

    def scan(
        self, descriptor: Descriptor, low: Key | None, high: Key | None, *, rows_max: int
    ) -> Iterator[tuple[Key, Row]]:
        keys = sorted(
            k
            for t, k in self._contents.exists
            if t == descriptor.table_id
            and (not low or k[: len(low)] >= low)
            and (not high or k[: len(high)] < high)
        )
        yield from self._rows(descriptor, keys[:rows_max])

    def get_by(
        self, descriptor: Descriptor, index_id: int, values: Key, *, rows_max: int
    ) -> Iterator[tuple[Key, Row]]:
        index = next(i for i in descriptor.indexes if i.element_id == index_id)
        assert index.state in READABLE, f"index {index.name!r} is not public in this version"
        found = sorted(
            (tuple((v is None, v) for v in entry[: len(index.columns)]), key)
            for t, i, entry, key in self._contents.entries
            if t == descriptor.table_id and i == index_id and entry[: len(values)] == values
        )
        yield from self._rows(descriptor, [key for _, key in found][:rows_max])

    def _rows(self, descriptor: Descriptor, keys: Sequence[Key]) -> Iterator[tuple[Key, Row]]:
        for key in keys:
            row = self.get(descriptor, key)
            if row is not None:
                yield key, row

    def close(self) -> None:
        """Nothing is held."""
