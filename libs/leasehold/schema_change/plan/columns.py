"""Columns: added, dropped, renamed, changed."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import Any

from leasehold.catalog.descriptor import (
    COLUMNS_MAX,
)
from leasehold.catalog.elements import (
    Column,
    Constraint,
    Index,
)
from leasehold.model.errors import (
    DependentObjects,
    DuplicateColumn,
    FeatureNotSupported,
    InvalidDefinition,
    NotGenerated,
    OutOfRange,
    SyntaxInvalid,
)
from leasehold.schema_change.plan.constraints import ConstraintActions
from leasehold.schema_change.plan.definitions import column_of, drawing, generated_column
from leasehold.schema_change.plan.dependents import Doomed, cascades_to
from leasehold.schema_change.plan.draft import TableDraft
from leasehold.schema_change.steps import element_paths as way
from leasehold.schema_change.steps.element_paths import ElementPath
from leasehold.sql.ddl.columns import check_drawing, find_drawn_sequence
from leasehold.sql.expressions.conversion import (
    check_default_fits,
    conversions,
    convert_default,
    kept_in,
)
from leasehold.sql.expressions.default import Default, default_of_text
from leasehold.sql.expressions.expression import (
    rename_column_in,
)
from leasehold.sql.syntax.statements import (
    AddColumn,
    AlterType,
    ColumnDefinition,
    DropColumn,
    DropExpression,
    DropNotNull,
    GeneratedDefinition,
    NumberingDefinition,
    RenameColumn,
    SetDefault,
    SetNotNull,
)


class ColumnActions:
    """Of one draft; a column that is added may bring constraints."""

    def __init__(self, draft: TableDraft, constraints: ConstraintActions) -> None:
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
        if len(table.columns) + len(self._draft.tracks) >= COLUMNS_MAX:
            raise OutOfRange(
                f"table {table.name!r} has {COLUMNS_MAX} columns, the most allowed", **named
            )
        column = column_of(definition, self._draft.new_id())
        if definition.generated is not None:
            self._add_generated(column, definition.generated)
        else:
            if definition.numbering is not None:
                column = drawing(column, self._draft.drawn_by(definition))
            elif column.default_expression:
                column = replace(column, moment=self._draft.moment, moment_zone=definition.zone)
            if column.nullable or column.has_default:
                self._draft.take(way.add_column(column), f"column {column.name}")
            else:
                for track in way.add_required(column):
                    self._draft.take(track, f"column {column.name}")
            self._draft.columns[column.name] = column
        if definition.unique is not None:
            self._constraints.add_unique(definition.unique)
        for check in definition.checks:
            self._constraints.add_check(check)
        if definition.references is not None:
            self._constraints.add_foreign_key(definition.references)

    def _add_generated(self, column: Column, definition: GeneratedDefinition) -> None:
        """⚠ NOT NULL is a constraint over a new column: it waits until writers see the column."""
        table = replace(self._draft.table, columns=tuple(self._draft.columns.values()))
        made = generated_column(column, definition, table)
        assert made.derived is not None
        new = [c for c in table.columns if self._draft.table.element(c.element_id) is None]
        over = [c for c in new if c.element_id in made.derived.sources]
        if over:
            raise FeatureNotSupported(
                f"column {column.name!r} is computed from column {over[0].name!r}, which the same"
                " statement adds: add it by a statement of its own",
                column=column.name,
                position=definition.position,
            )
        made = replace(made, nullable=True)
        self._draft.take(way.add_generated(made), f"column {made.name}")
        if not column.nullable:
            self._draft.take(way.set_not_null(made), f"column {made.name}")
        self._draft.columns[made.name] = replace(made, nullable=column.nullable)

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
        self._refuse_unbound(column, action.position)
        indexes = [i for i in self._draft.table.indexes if column.element_id in i.over]
        table = self._draft.table.name
        words = f"column {column.name} of table {table}"
        doomed = Doomed(words, words, action.cascade, action.position)
        following = self._draft.computed_from(column)
        self._drop_following(following, doomed)
        ids = {index.element_id for index in indexes}
        referring = (
            (child, key)
            for child, key in self._draft.references()
            if column.element_id in key.parent_columns or key.parent_index in ids
        )
        late = self._draft.drop_referring(referring, doomed)
        constraints: tuple[Constraint, ...] = (
            *self._draft.table.checks,
            *self._draft.table.foreign_keys,
        )
        checks = [c for c in constraints if column.element_id in c.columns]
        for index in indexes:
            self._refuse_needed(index, {check.element_id for check in checks}, action)
            track = way.drop_index(index, waits=late)
            self._draft.drop_once(track, index, f"index {index.name}")
        for check in checks:
            self._draft.drop_once(way.drop_check(check), check, f"constraint {check.name}")
        del self._draft.columns[column.name]
        track = self._way_out(column, following, late)
        self._draft.take(track, f"column {column.name}")

    def _drop_following(self, following: Iterable[Column], doomed: Doomed) -> None:
        """Generated columns that are computed from a column, and do not go by themselves."""
        left = [
            other
            for other in following
            if other.name in self._draft.columns
            and other.name not in self._draft.going
            and other.element_id not in self._draft.unbound
        ]
        words = [f"column {other.name} of table {self._draft.table.name}" for other in left]
        if left and not doomed.cascade:
            raise doomed.refused(words, table=self._draft.table.name)
        for other, what in zip(left, words, strict=True):
            self._draft.notices.append(cascades_to(what))
            self.drop(DropColumn(other.name, position=doomed.position, cascade=True))

    def _refuse_needed(self, index: Index, going: set[int], action: DropColumn) -> None:
        """Raises DependentObjects where a foreign key that stays finds its rows by an index over
        more than its columns (INCLUDE)."""
        going = going | self._draft.dropped
        for key in self._draft.table.foreign_keys:
            if key.index == index.element_id and key.element_id not in going:
                raise DependentObjects(
                    f"foreign key {key.name!r} finds its rows by index {index.name!r}, which holds"
                    f" column {action.name!r}: drop the foreign key first, and add it again after",
                    column=action.name,
                    position=action.position,
                )

    def _way_out(
        self, column: Column, following: Iterable[Column] = (), late: int = 0
    ) -> ElementPath:
        """`following`: generated columns that are computed from it, which go first, or at least
        their expressions; `late`: what is over it goes so many steps later."""
        waits = int(self._rests_on(column)) + late
        for other in following:
            unbound = other.element_id in self._draft.unbound
            waits = max(waits, 1 if unbound else way.hidden_at(self._way_out(other)) + 1)
        return way.drop_column(column, waits=waits)

    def _rests_on(self, column: Column) -> bool:
        """Is it in an index or a constraint?"""
        table = self._draft.table
        constraints: tuple[Constraint, ...] = (*table.checks, *table.foreign_keys)
        over = [index.over for index in table.indexes]
        over += [frozenset(constraint.columns) for constraint in constraints]
        return any(column.element_id in columns for columns in over)

    def _refuse_unbound(self, column: Column, position: int) -> None:
        if column.element_id in self._draft.unbound:
            raise FeatureNotSupported(
                f"the expression of column {column.name!r} is dropped by the same statement: change"
                " the column by a statement of its own",
                column=column.name,
                position=position,
            )

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
        for other in self._draft.computed_from(column):
            assert other.derived is not None
            text = rename_column_in(other.derived.expression, column.name, action.to)
            self._draft.tracks.append(way.reword_generated(other, text))
        for index in self._draft.table.indexes:
            if column.element_id in index.mentioned:
                self._draft.tracks.append(_reworded(index, column.name, action.to))

    def set_default(self, action: SetDefault) -> None:
        column = self._draft.column(action.column, action.position)
        if column.generated:
            raise SyntaxInvalid(
                f"column {column.name!r} is generated and has no default: DROP EXPRESSION first",
                column=column.name,
                position=action.position,
            )
        self._refuse_identity(column, action.position)
        made = Default()
        name = None if action.value is None else find_drawn_sequence(action.value)
        if name is not None:
            self._set_drawn(column, name, action.position)
            return
        if action.value is not None:
            made = default_of_text(action.value, column.type, action.zone)
        if made == Default(column.default, column.default_expression):
            self._draft.notices.append(f"column {column.name!r} has that default already")
            return
        self._draft.drew |= {column.draws_from} - {0}
        self._draft.take(way.set_default(column, *made), f"column {column.name}")
        self._draft.columns[column.name] = replace(
            column,
            default=made.value,
            default_expression=made.expression,
            moment=None,
            moment_zone="",
        )

    def _set_drawn(self, column: Column, sequence: str, position: int) -> None:
        """Old rows stay as they are. A sequence that the column has for its own stays so."""
        check_drawing(column.type, position)
        said = NumberingDefinition(named=sequence, position=position)
        drawn = self._draft.drawn_by(ColumnDefinition(column.name, column.type, numbering=said))
        made = replace(drawing(column, drawn), default=None, moment=None, moment_zone="")
        if made == replace(column, moment=None, moment_zone=""):
            self._draft.notices.append(f"column {column.name!r} has that default already")
            return
        self._draft.drew |= {column.draws_from} - {0}
        self._draft.take(way.set_drawn(column, made), f"column {column.name}")
        self._draft.columns[column.name] = made

    def _refuse_identity(self, column: Column, position: int) -> None:
        if column.identity:
            raise SyntaxInvalid(
                f"column {column.name!r} of relation {self._draft.table.name!r} is an identity"
                " column",
                column=column.name,
                position=position,
            )

    def drop_expression(self, action: DropExpression) -> None:
        column = self._draft.column(action.column, action.position)
        if not column.generated:
            if action.if_exists:
                self._draft.notices.append(f"column {column.name!r} is not a generated column")
                return
            raise NotGenerated(
                f"column {column.name!r} is not a generated column",
                column=column.name,
                position=action.position,
            )
        if self._draft.table.element(column.element_id) is None:
            raise FeatureNotSupported(
                f"column {column.name!r} is added by the same statement: leave the expression out",
                column=column.name,
                position=action.position,
            )
        self._draft.unbound[column.element_id] = column
        self._draft.take(way.drop_expression(column), f"column {column.name}")
        self._draft.columns[column.name] = replace(column, derived=None)

    def alter_type(self, action: AlterType) -> None:
        old = self._draft.column(action.column, action.position)
        if old.type == action.type and action.using is None:
            self._draft.notices.append(f"column {old.name!r} is of type {old.type} already")
            return
        self._refuse_users(old, action.position)
        self._refuse_unbound(old, action.position)
        if old.generated:
            raise FeatureNotSupported(
                f"the type of generated column {old.name!r} can't be changed: drop it and add it"
                " again",
                column=old.name,
                position=action.position,
            )
        forth, back = conversions(old.type, action.type, old.name, action.using)
        new = replace(
            old,
            element_id=self._draft.new_id(),
            type=action.type,
            nullable=True,
            alias="",
            missing=None,
            moment=None,
            moment_zone="",
            ordinal=old.place,
        )
        check_default_fits(old, new)
        if old.default is not None:
            new = replace(new, default=convert_default(old, new, self._draft.table, action.zone))
        # Whether the expressions fit is seen before anything is written.
        as_new = replace(self._draft.table, columns=(*self._others(old), new))
        kept = [
            kept_in(text, seen, target, action.zone)
            for text, seen, target in ((forth, self._draft.table, new), (back, as_new, old))
        ]
        for track in way.change_type(old, new, *kept):
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
        self._refuse_identity(column, action.position)
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
            f"index {i.name}" for i in self._draft.table.indexes if column.element_id in i.over
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
        users += [f"generated column {c.name}" for c in self._draft.computed_from(column)]
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


def _reworded(index: Index, name: str, to: str) -> ElementPath:
    expressions = tuple(rename_column_in(text, name, to) for text in index.expressions)
    predicate = rename_column_in(index.predicate, name, to) if index.predicate else ""
    return way.reword_index(index, expressions, predicate)
