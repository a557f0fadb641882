"""Elements as statements define them."""

from __future__ import annotations

from collections.abc import Iterable

from leasehold.model.errors import (
    FeatureNotSupported,
    OutOfRange,
)
from leasehold.schema.descriptor import (
    INDEXES_MAX,
    Descriptor,
)
from leasehold.schema.elements import (
    Column,
    Index,
)
from leasehold.sql.statements import (
    ColumnDefinition,
)


def column_of(definition: ColumnDefinition, element_id: int) -> Column:
    return Column(
        element_id, definition.name, definition.type, definition.nullable, definition.default
    )


def made_index(
    table: Descriptor, name: str, columns: Iterable[Column], element_id: int, *, present: int = 0
) -> Index:
    """An index over `columns`; `present`: indexes made by the same statement.

    Raises FeatureNotSupported, OutOfRange.
    """
    columns = tuple(columns)
    for column in columns:
        if column.type.name == "bytea":
            raise FeatureNotSupported(
                f"column {column.name!r} is bytea, which can't be indexed yet", column=column.name
            )
    if len(table.indexes) + present >= INDEXES_MAX:
        raise OutOfRange(f"table {table.name!r} has {INDEXES_MAX} indexes, the most allowed")
    return Index(element_id, name, tuple(column.element_id for column in columns))
