"""Rows of a table by column name, as Python values; own rows of a transaction among them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from leasehold.catalog.descriptor import Descriptor
from leasehold.model.errors import FeatureNotSupported, NotNullViolation
from leasehold.model.keys import Key
from leasehold.model.ports import Row
from leasehold.model.records.events import Image
from leasehold.rows.generated import derive
from leasehold.values.storage import from_storage, to_storage
from leasehold.values.types import STORED_AS_THEY_ARE, Type

_UNDECIDED: Final = object()
"""In an own row: the default of a column that only the master can compute."""


def inserted_row(descriptor: Descriptor, key: Key, values: Mapping[str, Any]) -> dict[str, Any]:
    """Return a row that is inserted, with defaults as far as they are known before its commit."""
    row: dict[str, Any] = {
        column.name: _UNDECIDED
        if column.default_expression
        else from_storage(column.type, column.default)
        for column in descriptor.by_name.values()
    }
    row.update(values)
    for column, value in zip(descriptor.key_columns, key, strict=True):
        if not column.hidden:
            row[column.name] = from_storage(column.type, value)
    return with_generated(descriptor, row)


def image_of(descriptor: Descriptor, row: dict[str, Any]) -> Image:
    """Return an own row in storage form. Raises what `decided` raises."""
    row = decided(descriptor, row)
    return {c.element_id: to_storage(c.type)(row[c.name]) for c in descriptor.by_name.values()}


def with_generated(descriptor: Descriptor, row: dict[str, Any]) -> dict[str, Any]:
    """Set the generated columns of an own row by its other ones, and return it. Raises what the
    expressions raise, as the commit would."""
    if not descriptor.generated:
        return row
    plain = [c for c in descriptor.by_name.values() if not c.generated]
    known = [c for c in plain if row[c.name] is not _UNDECIDED]
    image: dict[int, Any] = {c.element_id: to_storage(c.type)(row[c.name]) for c in known}
    derive(descriptor, None, image)
    missing = {c.element_id for c in plain} - image.keys()
    for column in descriptor.by_name.values():
        if column.derived is not None:
            value = from_storage(column.type, image.get(column.element_id))
            row[column.name] = value if missing.isdisjoint(column.derived.sources) else _UNDECIDED
    return row


def key_in_row(descriptor: Descriptor, row: Mapping[str, Any]) -> Key | None:
    """Return the primary key that an own row has, in storage form; None where a part of it is
    decided when the row is committed. Raises NotNullViolation (23502)."""
    values = [row[column.name] for column in descriptor.key_columns]
    if any(value is _UNDECIDED for value in values):
        return None
    for column, value in zip(descriptor.key_columns, values, strict=True):
        if value is None:
            raise NotNullViolation(
                f'column "{column.name}" of relation "{descriptor.name}" contains null values',
                table=descriptor.name,
                column=column.name,
            )
    pairs = zip(descriptor.key_columns, values, strict=True)
    return tuple(to_storage(column.type)(value) for column, value in pairs)


def values_in_row(
    descriptor: Descriptor, columns: Sequence[int], row: Mapping[str, Any]
) -> tuple[Any, ...]:
    """Return what an own row has in these columns, in storage form. Raises FeatureNotSupported
    where one is decided when the row is committed, or the row was written without it."""
    values = []
    for element_id in columns:
        column = descriptor.by_id[element_id]
        value = row.get(column.name, _UNDECIDED)
        decided(descriptor, {column.name: value})
        values.append(to_storage(column.type)(value))
    return tuple(values)


def given_in_row(descriptor: Descriptor, row: Mapping[str, Any]) -> dict[str, Any]:
    """Return what an insert of an own row gives beside its key: all but what is computed, and what
    is decided when it is committed."""
    key = {column.name for column in descriptor.key_columns}
    generated = {column.name for column in descriptor.by_name.values() if column.generated}
    return {
        name: value
        for name, value in row.items()
        if name not in key and name not in generated and value is not _UNDECIDED
    }


def decided(descriptor: Descriptor, row: dict[str, Any]) -> dict[str, Any]:
    """Return an own row. Raises FeatureNotSupported where a value is there only once the row is
    committed."""
    for name, value in row.items():
        if value is _UNDECIDED:
            raise FeatureNotSupported(
                f"the value of column {name!r} of table {descriptor.name!r} is decided when this"
                " transaction commits: read it afterwards, name other columns, or give a value",
                table=descriptor.name,
                column=name,
            )
    return row


def named(descriptor: Descriptor, row: Row) -> dict[str, Any]:
    """Return the public columns of a stored row."""
    values = row.values
    return {
        name: values.get(element_id) if plain else from_storage(kind, values.get(element_id))
        for name, element_id, kind, plain in _shape(descriptor)
    }


def named_values(descriptor: Descriptor, found: Sequence[Any]) -> dict[str, Any]:
    """Return the same of storage values of the public columns in their order; more may follow."""
    return {
        name: value if plain else from_storage(kind, value)
        for (name, _, kind, plain), value in zip(_shape(descriptor), found, strict=False)
    }


_SHAPES: dict[int, tuple[Descriptor, list[tuple[str, int, Type, bool]]]] = {}
_SHAPES_MAX: Final = 1_000


def _shape(descriptor: Descriptor) -> list[tuple[str, int, Type, bool]]:
    """Return (name, element id, type, whether storage and Python value are the same) per public
    column. By identity, which is one look-up; the descriptor is kept, so no id comes twice."""
    found = _SHAPES.get(id(descriptor))
    if found is None:
        if len(_SHAPES) >= _SHAPES_MAX:
            _SHAPES.clear()
        found = _SHAPES[id(descriptor)] = (
            descriptor,
            [
                (name, column.element_id, column.type, column.type.name in STORED_AS_THEY_ARE)
                for name, column in descriptor.by_name.items()
            ],
        )
    return found[1]
