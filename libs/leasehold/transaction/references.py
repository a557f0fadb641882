"""Foreign keys, looked at when the whole request is known (T3): a row may come before the one that
it refers to, and both may go together.

The master knows the children of every table, so a parent's writer needs to know nothing of them:
its deletes are checked by every foreign key that some version in use of another table enforces.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import TypeAlias

from leasehold.model.errors import ForeignKeyViolation
from leasehold.model.ports import Row
from leasehold.model.records import Image, Key
from leasehold.schema.catalog import Catalog
from leasehold.schema.descriptor import Descriptor
from leasehold.schema.elements import ForeignKey
from leasehold.transaction.uniqueness import FinalRow, HolderReader

Rows: TypeAlias = dict[tuple[int, Key], FinalRow]
RowReader: TypeAlias = Callable[[Descriptor, Key], Row | None]


def concerns(descriptor: Descriptor, catalog: Catalog) -> bool:
    """Can an operation on this table break a foreign key?"""
    return bool(descriptor.enforced_foreign_keys or catalog.references(descriptor.table_id))


def check_references(rows: Rows, catalog: Catalog, read: RowReader, holders: HolderReader) -> None:
    """Raises ForeignKeyViolation for the first row that refers to none, or that is referred to and
    goes. A reference that stays as it was is not looked at, nor is one with a NULL in it."""
    for (table_id, _), row in rows.items():
        if row.image is not None:
            for key in row.descriptor.enforced_foreign_keys:
                _check_child(row, key, rows, catalog, read, holders)
        if row.before is not None:
            for child_id, key in catalog.references(table_id):
                _check_parent(row, child_id, key, rows, catalog, read, holders)


def values_of(image: Image | None, columns: Iterable[int]) -> Key | None:
    """None where a value is NULL, or there is no row."""
    if image is None:
        return None
    found = tuple(image.get(column) for column in columns)
    return None if None in found else found


def _check_child(
    row: FinalRow,
    key: ForeignKey,
    rows: Rows,
    catalog: Catalog,
    read: RowReader,
    holders: HolderReader,
) -> None:
    values = values_of(row.image, key.columns)
    before = None if row.before is None else values_of(row.before.values, key.columns)
    if values is None or values == before:
        return
    parent = catalog.newest(key.parent)
    if _found(parent, key.parent_columns, key.parent_index, values, rows, read, holders):
        return
    raise _violation(
        row.descriptor,
        key,
        values,
        f"refers to {_words(parent, key.parent_columns, values)} of table {parent.name!r}, which is"
        " not there",
    )


def _check_parent(
    row: FinalRow,
    child_id: int,
    key: ForeignKey,
    rows: Rows,
    catalog: Catalog,
    read: RowReader,
    holders: HolderReader,
) -> None:
    assert row.before is not None
    values = values_of(row.before.values, key.parent_columns)
    if values is None or values == values_of(row.image, key.parent_columns):
        return
    parent, child = row.descriptor, catalog.newest(child_id)
    if not _found(child, key.columns, key.index, values, rows, read, holders):
        return
    if _found(parent, key.parent_columns, key.parent_index, values, rows, read, holders):
        return  # another row of this request has taken its place
    words = _words(child, key.columns, values)
    raise _violation(
        child, key, values, f"is still referred to by {words} of table {child.name!r}", parent
    )


def _found(
    table: Descriptor,
    columns: tuple[int, ...],
    index_id: int,
    values: Key,
    rows: Rows,
    read: RowReader,
    holders: HolderReader,
) -> bool:
    """Will a row of `table` have `values` in `columns` after the request? By index, 0 = by key."""
    for (table_id, _), row in rows.items():
        if table_id == table.table_id and values_of(row.image, columns) == values:
            return True
    found = _keys(table, columns, index_id, values, len(rows) + 1, read, holders)
    # Rows that the request touches were looked at above, as it leaves them.
    return any((table.table_id, tuple(key)) not in rows for key in found)


def row_referred_to(
    table: Descriptor,
    columns: tuple[int, ...],
    index_id: int,
    values: Key,
    read: RowReader,
    holders: HolderReader,
) -> bool:
    """Has a row of `table` these `values` in `columns` now? By index, 0 = by key."""
    return bool(_keys(table, columns, index_id, values, 1, read, holders))


def _keys(
    table: Descriptor,
    columns: tuple[int, ...],
    index_id: int,
    values: Key,
    rows_max: int,
    read: RowReader,
    holders: HolderReader,
) -> Sequence[Key]:
    if index_id:
        return holders(table, index_id, values, rows_max)
    by_column = dict(zip(columns, values, strict=True))
    key = tuple(by_column[column] for column in table.primary_key)
    return [] if read(table, key) is None else [key]


def _words(table: Descriptor, columns: tuple[int, ...], values: Key) -> str:
    names = ", ".join(table.by_id[column].name for column in columns)
    return f"({names}) = ({', '.join(repr(value)[:80] for value in values)})"


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
