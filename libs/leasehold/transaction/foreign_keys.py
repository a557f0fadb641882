"""Foreign keys, looked at when the whole request is known (T3): a row may come before the one that
it refers to, and both may go together.

The master knows the children of every table, so a parent's writer needs to know nothing of them:
its deletes are checked by every foreign key that some version in use of another table enforces.
"""

from __future__ import annotations

from collections.abc import Generator, Iterable, Mapping, Sequence
from typing import Any, Protocol

from leasehold.catalog.descriptor import Descriptor
from leasehold.catalog.elements import ForeignKey
from leasehold.model.errors import ForeignKeyViolation
from leasehold.model.keys import Key
from leasehold.model.ports import Row
from leasehold.model.records.events import Image
from leasehold.transaction.overlay import Name, RowReader
from leasehold.transaction.uniqueness import FinalRow, HolderReader
from leasehold.values.types import Type, sort_key_of


def values_of(image: Image | None, columns: Iterable[int]) -> Key | None:
    """Return the values of these columns, None where one is NULL, or there is no row."""
    if image is None:
        return None
    found = tuple(image.get(column) for column in columns)
    return None if None in found else found


class Tables(Protocol):
    """The interface of a catalog, as far as foreign keys are asked of it."""

    def newest(self, table_id: int) -> Descriptor: ...

    def references(self, table_id: int) -> Iterable[tuple[Descriptor, ForeignKey]]:
        """Return the foreign keys that are enforced and refer to a table, each with its own."""
        ...


class References:
    """The foreign keys of one request: `touched` are its rows as it leaves them."""

    def __init__(
        self,
        catalog: Tables,
        touched: Mapping[Name, Row | None],
        read: RowReader,
        holders: HolderReader,
    ) -> None:
        self._catalog = catalog
        self._touched = touched
        self._read = read
        self._holders = holders
        self._present: dict[tuple[int, tuple[int, ...]], set[Key]] = {}

    def check(self, rows: Mapping[Name, FinalRow]) -> Generator[None, None, None]:
        """Raise ForeignKeyViolation for the first row that refers to none, or that is referred to
        and goes; yield behind each row. A reference that stays as it was is not looked at, nor is
        one with a NULL."""
        for (table_id, _), row in rows.items():
            if row.image is not None:
                for key in row.descriptor.enforced_foreign_keys:
                    self._check_child(row, key)
            if row.before is not None:
                for child, key in self._catalog.references(table_id):
                    self._check_parent(row, child, key)
            yield

    def _check_child(self, row: FinalRow, key: ForeignKey) -> None:
        assert row.image is not None
        values = values_of(row.image, key.columns)
        was = None if row.before is None else row.before.values
        if key.is_mixed(row.image) and (was is None or not _same(key, was, row.image)):
            raise mixed_values(row.descriptor, key, row.image)
        if values is None or values == values_of(was, key.columns):
            return
        parent = self._catalog.newest(key.parent)
        if self._found(parent, key.parent_columns, key.parent_index, values):
            return
        raise refers_to_none(row.descriptor, key, values, parent)

    def _check_parent(self, row: FinalRow, child: Descriptor, key: ForeignKey) -> None:
        assert row.before is not None
        values = values_of(row.before.values, key.parent_columns)
        if values is None or values == values_of(row.image, key.parent_columns):
            return
        parent = row.descriptor
        if not self._found(child, key.columns, key.index, values):
            return
        if self._found(parent, key.parent_columns, key.parent_index, values):
            return  # another row of this request has taken its place
        raise still_referred_to(parent, child, key, values)

    def _found(
        self, table: Descriptor, columns: tuple[int, ...], index_id: int, values: Key
    ) -> bool:
        """Will a row of `table` have `values` in `columns` after the request? By index, 0 = by
        key."""
        if values in self._present_values(table.table_id, columns):
            return True
        rows_max = len(self._touched) + 1
        found = keys_by(table, columns, index_id, values, rows_max, self._read, self._holders)
        # Rows that the request touches were looked at above, as it leaves them.
        return any((table.table_id, tuple(key)) not in self._touched for key in found)

    def _present_values(self, table_id: int, columns: tuple[int, ...]) -> set[Key]:
        """What touched rows have in these columns."""
        found = self._present.get((table_id, columns))
        if found is None:
            found = self._present[table_id, columns] = {
                values
                for (table, _), row in self._touched.items()
                if table == table_id and row is not None
                if (values := values_of(row.values, columns)) is not None
            }
        return found


def _same(key: ForeignKey, one: Image, other: Image) -> bool:
    return all(one.get(column) == other.get(column) for column in key.columns)


def row_referred_to(
    table: Descriptor,
    columns: tuple[int, ...],
    index_id: int,
    values: Key,
    read: RowReader,
    holders: HolderReader,
) -> bool:
    """Whether a row of `table` has these `values` in `columns` now: by index, 0 = by key."""
    return bool(keys_by(table, columns, index_id, values, 1, read, holders))


def keys_by(
    table: Descriptor,
    columns: tuple[int, ...],
    index_id: int,
    values: Key,
    rows_max: int,
    read: RowReader,
    holders: HolderReader,
) -> Sequence[Key]:
    """Keys of stored rows that have `values` in `columns`."""
    if index_id:
        keyed = map(_keyed, (table.by_id[column].type for column in columns), values)
        return holders(table, index_id, tuple(keyed), rows_max)
    key = key_with(table, columns, values)
    return [] if read(table, key) is None else [key]


def key_with(table: Descriptor, columns: tuple[int, ...], values: Key) -> Key:
    """Return the primary key of a table that has `values` in `columns`, which are its own in any
    order."""
    by_column = dict(zip(columns, values, strict=True))
    return tuple(by_column[column] for column in table.primary_key)


def _keyed(kind: Type, value: Any) -> Any:
    """Return what stands for a value in entries."""
    key = sort_key_of(kind)
    return value if key is None else key(value)


def _words(table: Descriptor, columns: tuple[int, ...], values: Key) -> str:
    names = ", ".join(table.by_id[column].name for column in columns)
    return f"({names}) = ({', '.join(repr(value)[:80] for value in values)})"


def refers_to_none(
    child: Descriptor, key: ForeignKey, values: Key, parent: Descriptor
) -> ForeignKeyViolation:
    """Return the error of a row of `child` that has `values` which no row of `parent` has."""
    found = _words(parent, key.parent_columns, values)
    words = f"refers to {found} of table {parent.name!r}, which is not there"
    return _violation(child, key, values, words)


def still_referred_to(
    parent: Descriptor, child: Descriptor, key: ForeignKey, values: Key
) -> ForeignKeyViolation:
    """Return the error of a row that loses `values`, by which a row of `child` refers to it."""
    words = f"is still referred to by {_words(child, key.columns, values)} of table {child.name!r}"
    return _violation(child, key, values, words, parent)


def mixed_values(child: Descriptor, key: ForeignKey, image: Image) -> ForeignKeyViolation:
    """Return the error of a row of which some values are NULL and some not (MATCH FULL)."""
    values = tuple(image.get(column) for column in key.columns)
    return ForeignKeyViolation(
        f"the row of table {child.name!r} has {_words(child, key.columns, values)}: of a MATCH FULL"
        f" foreign key all are NULL or none (foreign key {key.name!r})",
        table=child.name,
        constraint=key.name,
        key=list(values),
    )


def _violation(
    child: Descriptor, key: ForeignKey, values: Key, words: str, parent: Descriptor | None = None
) -> ForeignKeyViolation:
    table = parent or child
    return ForeignKeyViolation(
        f"the row of table {table.name!r} {words} (foreign key {key.name!r})",
        table=table.name,
        constraint=key.name,
        key=list(values),
    )
