"""Elements as statements define them."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from leasehold.model.errors import (
    FeatureNotSupported,
    InvalidObject,
    OutOfRange,
    Refused,
)
from leasehold.schema.derived import value_of
from leasehold.schema.descriptor import (
    INDEXES_MAX,
    Descriptor,
)
from leasehold.schema.elements import (
    Column,
    Derived,
    Index,
)
from leasehold.sql.expression import column_places
from leasehold.sql.parse import place_of, placed
from leasehold.sql.statements import (
    ColumnDefinition,
    GeneratedDefinition,
)


def column_of(definition: ColumnDefinition, element_id: int) -> Column:
    return Column(
        element_id,
        definition.name,
        definition.type,
        definition.nullable,
        definition.default,
        default_expression=definition.default_expression,
    )


def generated_column(column: Column, definition: GeneratedDefinition, table: Descriptor) -> Column:
    """`column`, which `table` may have as yet without its expression, computed from others.

    Raises UnknownColumn, InvalidObject (over itself or another generated one), and what the
    expression raises when compiled: each with its position in the statement.
    """
    sources = []
    for name, place in column_places(definition.expression).items():
        position = definition.position + place - 1
        try:
            source = table.column(name)
        except Refused as error:
            raise placed(error, position) from error
        if source.generated or source.element_id == column.element_id:
            raise InvalidObject(
                f"column {name!r} can't be used in the expression of column {column.name!r}: a"
                " generated column is computed from columns that are not",
                column=column.name,
                position=position,
            )
        sources.append(source.element_id)
    derived = Derived(tuple(sorted(sources)), definition.expression, strict=True, generated=True)
    made = replace(column, derived=derived)
    try:
        value_of(table, made)
    except Refused as error:
        prefix = f"generated column {column.name!r}: "
        raise placed(error, definition.position + place_of(error) - 1, prefix) from error
    return made


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
