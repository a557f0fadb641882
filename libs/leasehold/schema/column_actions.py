"""Columns: added, dropped, renamed, changed."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from leasehold.model.errors import (
    DependentObjects,
    DuplicateColumn,
    FeatureNotSupported,
    InvalidDefinition,
    NotNullViolation,
    OutOfRange,
)
from leasehold.schema import tracks as way
from leasehold.schema.constraint_actions import ConstraintActions
from leasehold.schema.descriptor import (
    COLUMNS_MAX,
)
from leasehold.schema.draft import Draft
from leasehold.schema.elements import (
    Column,
    Constraint,
    ForeignKey,
)
from leasehold.schema.making import column_of
from leasehold.schema.references import (
    refuse_referred_column,
    refuse_referred_index,
)
from leasehold.sql.conversion import conversions, converted
from leasehold.sql.expression import (
    compile_expression,
    rename_column_in,
)
from leasehold.sql.literal import default_value
from leasehold.sql.statements import (
    AddColumn,
    AlterType,
    DropColumn,
    DropNotNull,
    RenameColumn,
    SetDefault,
    SetNotNull,
)


class ColumnActions:
    """Of one draft; a column that is added may bring constraints."""

    def __init__(self, draft: Draft, constraints: ConstraintActions) -> None:
        self._draft = draft
        self._constraints = constraints

    def add(self, action: AddColumn) -> None:
        definition = action.column
        table = self._draft.table
        named: dict[str, Any] = {
            "table": table.name,
            "column": definition.name,
            "position": definition.position,
        }
        if definition.name in self._draft.columns:
            if not action.if_not_exists:
                raise DuplicateColumn(
                    f"column {definition.name!r} exists already in table {table.name!r}", **named
                )
            self._draft.notices.append(
                f"column {definition.name!r} exists already, nothing was done"
            )
            return
        if definition.name in table.by_name:
            # Else a version could show both.
            raise FeatureNotSupported(
                f"column {definition.name!r} is dropped by the same statement: add the new one by"
                " a statement of its own",
                **named,
            )
        if not definition.nullable and definition.default is None:
            raise NotNullViolation(
                f"column {definition.name!r} is NOT NULL and old rows would lack the value:"
                " give a DEFAULT",
                **named,
            )
        if len(table.columns) + len(self._draft.tracks) >= COLUMNS_MAX:
            raise OutOfRange(
                f"table {table.name!r} has {COLUMNS_MAX} columns, the most allowed", **named
            )
        column = column_of(definition, self._draft.new_id())
        self._draft.columns[column.name] = column
        self._draft.take(way.add_column(column), f"column {column.name}")
        if definition.unique is not None:
            self._constraints.add_unique(definition.unique)
        for check in definition.checks:
            self._constraints.add_check(check)
        if definition.references is not None:
            self._constraints.add_foreign_key(definition.references)

    def drop(self, action: DropColumn) -> None:
        if action.if_exists and action.name not in self._draft.columns:
            self._draft.notices.append(f"column {action.name!r} does not exist, nothing was done")
            return
        column = self._draft.column(action.name, action.position)
        if column.element_id in self._draft.table.primary_key:
            raise InvalidDefinition(
                f"column {column.name!r} belongs to the primary key and can't be dropped",
                column=column.name,
                position=action.position,
            )
        if self._draft.table.element(column.element_id) is None:
            raise InvalidDefinition(f"column {column.name!r} is added by the same statement")
        made = self._draft.made_over(column)
        if made:
            raise DependentObjects(
                f"{', '.join(made)} of the same statement rests on column {column.name!r}",
                column=column.name,
                position=action.position,
            )
        refuse_referred_column(self._draft.references, column)
        indexes = [i for i in self._draft.table.indexes if column.element_id in i.columns]
        constraints: tuple[Constraint, ...] = (
            *self._draft.table.checks,
            *self._draft.table.foreign_keys,
        )
        checks = [c for c in constraints if column.element_id in c.columns]
        for index in indexes:
            if not any(c.index == index.element_id for c in checks if isinstance(c, ForeignKey)):
                refuse_referred_index(self._draft.references, self._draft.table, index)
            self._draft.drop_once(way.drop_index(index), index, f"index {index.name}")
        for check in checks:
            self._draft.drop_once(way.drop_check(check), check, f"constraint {check.name}")
        del self._draft.columns[column.name]
        track = way.drop_column(column, indexed=bool(indexes), checked=bool(checks))
        self._draft.take(track, f"column {column.name}")

    def rename(self, action: RenameColumn) -> None:
        column = self._draft.column(action.name, action.position)
        if action.to in self._draft.columns or action.to in self._draft.table.by_alias:
            raise DuplicateColumn(
                f"column {action.to!r} exists already in table {self._draft.table.name!r}",
                table=self._draft.table.name,
                column=action.to,
                position=action.position,
            )
        self._draft.take(way.rename(column, action.to), f"column {column.name}")
        for check in self._draft.table.checks:
            if column.element_id in check.columns:
                text = rename_column_in(check.expression, column.name, action.to)
                self._draft.tracks.append(way.reword_check(check, text))

    def set_default(self, action: SetDefault) -> None:
        column = self._draft.column(action.column, action.position)
        value = None if action.value is None else default_value(action.value, column.type)
        if value == column.default:
            self._draft.notices.append(f"column {column.name!r} has that default already")
            return
        self._draft.take(way.set_default(column, value), f"column {column.name}")
        self._draft.columns[column.name] = replace(column, default=value)

    def alter_type(self, action: AlterType) -> None:
        old = self._draft.column(action.column, action.position)
        if old.type == action.type and action.using is None:
            self._draft.notices.append(f"column {old.name!r} is of type {old.type} already")
            return
        self._refuse_users(old, action.position)
        forth, back = conversions(old.type, action.type, old.name, action.using)
        new = replace(
            old,
            element_id=self._draft.new_id(),
            type=action.type,
            nullable=True,
            alias="",
            missing=None,
        )
        if old.default is not None:
            new = replace(new, default=converted(old, new, self._draft.table))
        # Whether the expressions fit is seen before anything is written.
        compile_expression(forth, self._draft.table, new)
        as_new = replace(self._draft.table, columns=(*self._others(old), new))
        compile_expression(back, as_new, old)
        for track in way.change_type(old, new, forth, back):
            self._draft.tracks.append(track)
        self._draft.words.append(f"column {old.name}")
        self._draft.columns[old.name] = new
        self._draft.retyped.add(new.element_id)

    def set_not_null(self, action: SetNotNull) -> None:
        column = self._draft.column(action.column, action.position)
        if column.refuses_null or column.element_id in self._draft.table.primary_key:
            self._draft.notices.append(f"column {column.name!r} is NOT NULL already")
            return
        self._draft.refuse_retyped([column])
        self._draft.take(way.set_not_null(column), f"column {column.name}")
        self._draft.columns[column.name] = replace(column, nullable=False)

    def drop_not_null(self, action: DropNotNull) -> None:
        column = self._draft.column(action.column, action.position)
        if column.element_id in self._draft.table.primary_key:
            raise InvalidDefinition(
                f"column {column.name!r} belongs to the primary key, which is NOT NULL",
                column=column.name,
                position=action.position,
            )
        if column.nullable:
            self._draft.notices.append(f"column {column.name!r} is not NOT NULL")
            return
        self._draft.take(way.drop_not_null(column), f"column {column.name}")
        self._draft.columns[column.name] = replace(column, nullable=True)

    def _others(self, column: Column) -> tuple[Column, ...]:
        return tuple(c for c in self._draft.table.columns if c.element_id != column.element_id)

    def _refuse_users(self, column: Column, position: int) -> None:
        """A column's type can't change under what rests on it."""
        users = [
            f"index {i.name}" for i in self._draft.table.indexes if column.element_id in i.columns
        ]
        users += [
            f"check {c.name}" for c in self._draft.table.checks if column.element_id in c.columns
        ]
        keys = self._draft.table.foreign_keys
        users += [f"foreign key {k.name}" for k in keys if column.element_id in k.columns]
        users += [
            f"foreign key {k.name} of table {table.name}"
            for table, k in self._draft.references()
            if column.element_id in k.parent_columns
        ]
        users += self._draft.made_over(column)
        if column.element_id in self._draft.table.primary_key:
            users.append("the primary key")
        if users:
            raise FeatureNotSupported(
                f"the type of column {column.name!r} can't be changed while"
                f" {', '.join(users)} rests on it: drop that first, add it again after",
                column=column.name,
                position=position,
            )
