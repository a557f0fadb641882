"""Elements as statements define them."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace
from itertools import chain, repeat
from typing import Final, TypeVar

from leasehold.catalog.descriptor import INDEXES_MAX, Descriptor
from leasehold.catalog.elements import EXPRESSION, Column, Derived, Index
from leasehold.model.errors import (
    FeatureNotSupported,
    InvalidObject,
    OutOfRange,
    Refused,
    UnknownColumn,
)
from leasehold.rows.generated import value_of
from leasehold.schema_change.plan.column_sequences import Drawn
from leasehold.schema_change.plan.index_orders import written_orders
from leasehold.sql.expressions.expression import (
    column_positions,
    columns_of_expression,
    compile_condition,
    refuse_labels,
    refuse_session_zone,
    type_of_expression,
)
from leasehold.sql.syntax.kept import EXPRESSION_BYTES_MAX
from leasehold.sql.syntax.positions import position_of, with_position
from leasehold.sql.syntax.statements import (
    ColumnDefinition,
    CreateIndex,
    GeneratedDefinition,
    IndexExpression,
)
from leasehold.values.declared import BY_NAME, ENUM
from leasehold.values.types import Type

T = TypeVar("T")
MENTIONED_MAX: Final = 100
"""Columns that expressions of one index name; SQLite's functions take no more everywhere."""


def make_column(definition: ColumnDefinition, element_id: int) -> Column:
    return Column(
        element_id,
        definition.name,
        definition.type,
        definition.nullable,
        definition.default,
        default_expression=definition.default_expression,
        default_text=definition.default_text,
    )


def with_drawn_default(column: Column, drawn: Drawn) -> Column:
    """Return the column with a sequence's numbers for its default, at no moment: what an old row
    has is nobody's to foretell. Other sequences that it has for its own stay so."""
    sequence, owned, identity = drawn.numbering
    own = (*column.own_sequences, *((sequence,) if owned else ()))
    return replace(
        column.with_sequence_default(sequence, own, identity), default_expression=drawn.text
    )


def make_generated_column(
    column: Column, definition: GeneratedDefinition, table: Descriptor
) -> Column:
    """Return `column`, which `table` may have as yet without its expression, computed from others.

    Raises UnknownColumn, InvalidObject (over itself or another generated one), and what the
    expression raises when compiled: each with its position in the statement.
    """
    sources = []
    for name, element_key in column_positions(definition.expression).items():
        position = definition.position + element_key - 1
        try:
            source = table.column(name)
        except Refused as error:
            raise with_position(error, position) from error
        if source.generated or source.element_id == column.element_id:
            raise InvalidObject(
                f"column {name!r} can't be used in the expression of column {column.name!r}: a"
                " generated column is computed from columns that are not",
                column=column.name,
                position=position,
            )
        sources.append(source.element_id)
    text, zone = definition.expression, definition.zone
    derived = Derived(tuple(sorted(sources)), text, strict=True, generated=True, zone=zone)
    made = replace(column, derived=derived)
    try:
        value_of(table, made)
        refuse_labels(text, table)
        read_in_it = refuse_session_zone(text, table, made, zone).constants
    except Refused as error:
        prefix = f"generated column {column.name!r}: "
        raise with_position(error, definition.position + position_of(error) - 1, prefix) from error
    return made if read_in_it else replace(made, derived=derived._replace(zone=""))


def make_index(
    table: Descriptor, name: str, columns: Iterable[Column], element_id: int, *, present: int = 0
) -> Index:
    """Return an index over `columns`; `present`: indexes made by the same statement.

    Raises FeatureNotSupported, OutOfRange.
    """
    columns = tuple(columns)
    for column in columns:
        refuse_unordered(column.type, f"column {column.name!r}", column=column.name)
    if len(table.indexes) + present >= INDEXES_MAX:
        raise OutOfRange(f"table {table.name!r} has {INDEXES_MAX} indexes, the most allowed")
    return Index(element_id, name, tuple(column.element_id for column in columns))


def refuse_unordered(kind: Type, words: str, **detail: object) -> None:
    """Raises FeatureNotSupported for a type whose values can't be in an index."""
    declared = ENUM if kind.name == ENUM.name else BY_NAME.get(kind.name)
    if declared is None or not declared.operators:
        raise FeatureNotSupported(
            f"{words} is {kind}, which can't be indexed; an expression over it can be, if it has"
            " another type",
            **detail,
        )


def define_index(statement: CreateIndex, table: Descriptor, name: str) -> Index:
    """Return the index that CREATE INDEX asks for, its expressions compiled against the table as it
    is.

    Raises UnknownColumn, WrongType, FeatureNotSupported, OutOfRange (limits), what expressions
    raise; with the position in the statement.
    """
    places = chain(statement.positions, repeat(1))
    zone = statement.zone
    parts = [_key_part(part, table, next(places), name, zone) for part in statement.columns]
    included = [
        _find_column(column, table, next(places)).element_id for column in statement.included
    ]
    texts = [part.text for part in statement.columns if isinstance(part, IndexExpression)]
    predicate = statement.predicate
    if predicate is not None:
        _compiled(lambda: compile_condition(predicate.text, table), predicate.position, name)
        _refuse_session_zone(predicate, table, statement.zone)
        texts.append(predicate.text)
    size = sum(len(text.encode()) for text in texts)
    if size > EXPRESSION_BYTES_MAX:
        raise OutOfRange(
            f"expressions and predicate of index {name!r} have {size} bytes; at most"
            f" {EXPRESSION_BYTES_MAX} are kept"
        )
    named = {table.column(c).element_id for text in texts for c in columns_of_expression(text)}
    if len(named) > MENTIONED_MAX:
        raise OutOfRange(
            f"the expressions of index {name!r} name {len(named)} columns; at most {MENTIONED_MAX}"
            " are allowed"
        )
    base = make_index(table, name, (), table.next_element_id)
    kinds = [_type_of(part, table) for part in statement.columns]
    return replace(
        base,
        columns=tuple(parts),
        orders=written_orders(statement.orders, kinds) if statement.orders else (),
        expressions=tuple(texts[: parts.count(EXPRESSION)]),
        predicate="" if predicate is None else predicate.text,
        included=tuple(included),
        mentioned=tuple(sorted(named)),
        equal_nulls=statement.equal_nulls,
    )


def _key_part(
    part: str | IndexExpression, table: Descriptor, position: int, index: str, zone: str
) -> int:
    if isinstance(part, IndexExpression):
        kind = _compiled(lambda: type_of_expression(part.text, table), part.position, index)
        refuse_unordered(kind, f"expression {part.text:.80}", position=part.position)
        _refuse_session_zone(part, table, zone)
        return EXPRESSION
    column = _find_column(part, table, position)
    refuse_unordered(column.type, f"column {column.name!r}", column=column.name, position=position)
    return column.element_id


def _type_of(part: str | IndexExpression, table: Descriptor) -> Type:
    if isinstance(part, IndexExpression):
        return type_of_expression(part.text, table)
    return table.column(part).type


def _refuse_session_zone(part: IndexExpression, table: Descriptor, zone: str) -> None:
    """Refuse texts in a session's time zone. ⚠ Entries are found by texts that say the same, hence
    in no zone of their own."""
    try:
        refuse_labels(part.text, table)
        asked = refuse_session_zone(part.text, table, zone=zone)
    except InvalidObject as error:
        raise with_position(error, part.position) from error
    if asked.constants:
        raise FeatureNotSupported(
            f"{asked.constants[0]!r:.80} in an index is read in UTC, and not in the session's time"
            f" zone, {zone}: say its offset, as in '2026-07-01 00:00+00'",
            position=part.position,
        )


def _find_column(name: str, table: Descriptor, position: int) -> Column:
    try:
        return table.column(name)
    except UnknownColumn as error:
        raise with_position(error, position) from error


def _compiled(compiled: Callable[[], T], position: int, index: str) -> T:
    try:
        return compiled()
    except Refused as error:
        raise with_position(error, position, f"index {index!r}: ") from error
