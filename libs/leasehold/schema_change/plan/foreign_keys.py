"""The columns, types and indexes that a FOREIGN KEY of a statement needs, and the foreign keys that
need an index."""

from __future__ import annotations

from collections.abc import Container, Iterable
from dataclasses import replace
from typing import Final, NamedTuple

from leasehold.catalog.descriptor import Descriptor
from leasehold.catalog.elements import Column, ForeignKey, Index, OnChange
from leasehold.catalog.states import State
from leasehold.model.errors import (
    FeatureNotSupported,
    IndexNotFit,
    InvalidColumnReference,
    InvalidForeignKey,
    SyntaxInvalid,
    UnknownObject,
    WrongType,
)
from leasehold.sql.syntax.statements import (
    Action,
    AddColumn,
    AddForeignKey,
    AlterConstraint,
    AlterTable,
    Change,
    ColumnDefinition,
    CreateTable,
    ForeignKeyDefinition,
)
from leasehold.values.types import sort_key_of


class Referred(NamedTuple):
    """The target of a foreign key: columns of `parent` in the order of the key, and the id of the
    index that finds them, 0 = the primary key."""

    parent: Descriptor
    columns: tuple[Column, ...]
    index_id: int


def resolve_referred(definition: ForeignKeyDefinition, parent: Descriptor) -> Referred:
    """Return what a definition refers to. Raises UnknownColumn, UnknownObject, and
    InvalidForeignKey (42830) when the columns are not unique."""
    if definition.parent_columns:
        columns = tuple(parent.column(name) for name in definition.parent_columns)
    elif parent.hidden_key:
        raise UnknownObject(
            f"table {parent.name!r} has no primary key that a foreign key could refer to: name"
            " columns that are UNIQUE",
            table=parent.name,
            position=definition.position,
        )
    else:
        columns = parent.key_columns
    if len(columns) != len(definition.columns):
        raise InvalidForeignKey(
            f"a foreign key of {len(definition.columns)} columns can't refer to {len(columns)}"
            f" of table {parent.name!r}: name as many on both sides",
            position=definition.position,
        )
    index_id = find_index(parent, columns, unique=True)
    if index_id is not None:
        index = next((i for i in parent.indexes if i.element_id == index_id), None)
        if index is not None and index.deferrable:
            raise IndexNotFit(
                f'cannot use a deferrable unique constraint for referenced table "{parent.name}"',
                table=parent.name,
                position=definition.position,
            )
        return Referred(parent, columns, index_id)
    names = ", ".join(column.name for column in columns)
    raise InvalidForeignKey(
        f"({names}) of table {parent.name!r} is neither its primary key nor UNIQUE in this"
        f" order: ADD UNIQUE ({names}) to that table first",
        table=parent.name,
        position=definition.position,
    )


def check_types(columns: tuple[Column, ...], to: Referred, position: int) -> None:
    """Refuse columns of other types: values are compared as they are stored. Raises WrongType, and
    FeatureNotSupported for types of which one value has several forms, or no order."""
    for own, other in zip(columns, to.columns, strict=True):
        if sort_key_of(own.type) is not None and own.type.scale is None:
            hint = (
                "1.5 and 1.50 are one value of two forms there: say numeric(precision, scale)."
                if own.type.name == "numeric"
                else ""
            )
            raise FeatureNotSupported(
                f"column {own.name!r} is {own.type}: a foreign key over it is not supported",
                column=own.name,
                position=position,
                **({"hint": hint} if hint else {}),
            )
        if own.type.name == other.type.name and own.type.scale != other.type.scale:
            raise FeatureNotSupported(
                f"column {own.name!r} is {own.type}, column {other.name!r} of table"
                f" {to.parent.name!r} is {other.type}: a foreign key over numeric needs as many"
                " digits behind the point on both sides",
                column=own.name,
                position=position,
            )
        if _class_of(own) != _class_of(other):
            raise WrongType(
                f"column {own.name!r} is {own.type}, column {other.name!r} of table"
                f" {to.parent.name!r} is {other.type}: a foreign key needs types of one kind on"
                " both sides; change one of them first",
                column=own.name,
                position=position,
            )


_WRITES_ON_DELETE: Final = (OnChange.SET_NULL, OnChange.SET_DEFAULT)


def check_actions(columns: tuple[Column, ...], definition: ForeignKeyDefinition) -> None:
    """Refuse an action that would write a generated column. Raises SyntaxInvalid (42601, as
    PostgreSQL)."""
    generated = next((column for column in columns if column.generated), None)
    if generated is None:
        return
    for said, refusal, words in (
        (definition.on_update, (*_WRITES_ON_DELETE, OnChange.CASCADE), "ON UPDATE"),
        (definition.on_delete, _WRITES_ON_DELETE, "ON DELETE"),
    ):
        if said in refusal:
            raise SyntaxInvalid(
                f"column {generated.name!r} is generated, and {words} {said.upper()} would write"
                " it",
                column=generated.name,
                position=definition.position,
            )


def has_numeric_reference(table: Descriptor) -> bool:
    """Say whether a table refers to another one by a numeric column."""
    ids = {column for key in table.foreign_keys for column in key.columns}
    return any(c.type.name == "numeric" for c in table.columns if c.element_id in ids)


def resolve_delete_sets(
    columns: tuple[Column, ...], definition: ForeignKeyDefinition
) -> tuple[int, ...]:
    """Return the ids of the columns that ON DELETE SET … names. Raises InvalidColumnReference
    (42P10)."""
    ids = dict(zip(definition.columns, (c.element_id for c in columns), strict=True))
    for name in definition.delete_sets:
        if name not in ids:
            raise InvalidColumnReference(
                f"column {name!r} is named in ON DELETE {definition.on_delete.upper()}, and is not"
                " part of the foreign key",
                column=name,
                position=definition.position,
            )
    return tuple(ids[name] for name in definition.delete_sets)


def _class_of(column: Column) -> str:
    name = column.type.name
    if column.type.enum is not None:
        return column.type.enum.kept_name  # whatever labels the version of either knows
    if name in ("smallint", "integer", "bigint"):
        return "integer"
    # char(n) is stored without the blanks that fill it up, so that it is text like any other. (To
    # a key of char a text with blanks at its end refers to no row, while PostgreSQL passes over
    # them: an index over texts could not find all that refer to one.)
    return "text" if name in ("text", "varchar", "char") else name


def find_index(
    table: Descriptor, columns: tuple[Column, ...], *, unique: bool = False
) -> int | None:
    """Return the index that finds rows by exactly these columns, and with `unique` no more than
    one: 0 = the primary key, None = none."""
    ids = tuple(column.element_id for column in columns)
    if set(ids) == set(table.primary_key) and len(ids) == len(table.primary_key):
        return 0
    found = (i.element_id for i in table.indexes if _covers(i, ids) and (i.unique or not unique))
    return next(found, None)


def _covers(index: Index, columns: tuple[int, ...]) -> bool:
    """Say whether an index has every row, by exactly these columns."""
    return index.state is State.PUBLIC and index.columns == columns and not index.computed


def find_implied_index(table: Descriptor, key: ForeignKey, going: Container[int]) -> Index | None:
    """Return the index that goes with a foreign key: made for it, and needed by no other one of the
    table but those that go, too."""
    needed = {k.index for k in table.foreign_keys if k is not key and k.element_id not in going}
    found = (i for i in table.indexes if i.element_id == key.index and i.implied)
    return next((index for index in found if index.element_id not in needed), None)


Referring = tuple[Descriptor, ForeignKey]
"""A foreign key and the table that has it."""


def select_referring(references: Iterable[Referring], index: Index) -> tuple[Referring, ...]:
    """Return the foreign keys that need an index to find the row that they refer to."""
    return tuple((t, k) for t, k in references if k.parent_index == index.element_id)


def has_deferrable_unique(table: Descriptor) -> bool:
    """Return whether a table has a UNIQUE constraint that earlier releases can't read."""
    return any(index.deferrable for index in table.indexes)


def has_deferrable_key(table: Descriptor) -> bool:
    """Return whether a table has a foreign key that SET CONSTRAINTS may defer, which earlier
    releases can't read."""
    return any(key.deferrable for key in table.foreign_keys)


def alters_constraint(change: object) -> bool:
    """Return whether a statement changes when a foreign key is looked at."""
    if not isinstance(change, AlterTable):
        return False
    return any(isinstance(action, AlterConstraint) for action in change.actions)


def without_deferred(change: Change) -> Change:
    """Return a statement whose foreign keys don't say that they are deferred, which processes of an
    earlier release can't read."""
    match change:
        case CreateTable(foreign_keys=keys):
            columns = tuple(map(_column_without, change.columns))
            return replace(change, columns=columns, foreign_keys=tuple(map(_undeferred, keys)))
        case AlterTable(actions=actions):
            return replace(change, actions=tuple(map(_action_without, actions)))
    return change


def _action_without(action: Action) -> Action:
    match action:
        case AddForeignKey(key):
            return AddForeignKey(_undeferred(key))
        case AddColumn(column):
            return replace(action, column=_column_without(column))
    return action


def _column_without(column: ColumnDefinition) -> ColumnDefinition:
    key = column.references
    return column if key is None else replace(column, references=_undeferred(key))


def _undeferred(key: ForeignKeyDefinition) -> ForeignKeyDefinition:
    return replace(key, deferrable="") if key.deferrable == "deferred" else key
