"""MERGE as a plan: a query of the source's rows with the row of the table that each is matched
with, and what is done with them. Conditions and values of WHEN are queries of their own over one
such row, since of those that do not hold nothing is computed."""

from __future__ import annotations

from collections.abc import Sequence

from leasehold.catalog.descriptor import Descriptor
from leasehold.catalog.elements import Column
from leasehold.catalog.physical_names import lock_name
from leasehold.catalog.privileges import Privilege
from leasehold.model.errors import SyntaxInvalid
from leasehold.sql.binding.bound_tree import (
    Bound,
    BoundQuery,
    BoundSelect,
    Field,
    JoinSource,
    Slot,
    TableSource,
)
from leasehold.sql.binding.bound_write import GENIDS, BoundAction, BoundWrite, query_of
from leasehold.sql.binding.expressions import Expressions
from leasehold.sql.binding.from_clause import row_fields, table_fields
from leasehold.sql.binding.scope import Columns, NamedTable, Names, Scope
from leasehold.sql.binding.walk import walk
from leasehold.sql.binding.writes import WriteBinder, with_slots
from leasehold.sql.syntax import tree

_PRIVILEGES = {
    "INSERT": Privilege.INSERT,
    "UPDATE": Privilege.UPDATE,
    "DELETE": Privilege.DELETE,
    "NOTHING": Privilege.SELECT,
}


class _Row:
    """The row that an action is about, as slots behind the statement's parameters: the target's
    columns, then what is asked of the source."""

    def __init__(
        self, slots: dict[tuple[int, str], Slot], first: int, relations: frozenset[int]
    ) -> None:
        """Begin with the slots of the target; those of other fields are numbered from `first`."""
        self.slots = slots
        self._first, self._relations = first, relations
        self.extras: list[Field] = []

    def over(self, body: BoundSelect) -> BoundQuery:
        """Return a query over the row in the place of one over fields."""
        for field in walk(body):
            if isinstance(field, Field) and field.relation in self._relations:
                name = field.relation, field.name
                if name not in self.slots:
                    self.slots[name] = Slot(self._first + len(self.extras), field.kind)
                    self.extras.append(field)
        return query_of(with_slots(body, self.slots))


class MergeBinder(WriteBinder):
    """The binder of one MERGE."""

    def bind_merge(self, statement: tree.Merge) -> BoundWrite:
        """Return the statement's plan. Raises what its names and types are refused with."""
        _check_reachable(statement)
        binder, table = self._binder, statement.table
        descriptor = binder.sources.target(table)
        relation = binder.new_relation()
        first = _PRIVILEGES[statement.actions[0].kind]
        binder.needs.write_table(relation, descriptor, first)
        for action in statement.actions[1:]:
            binder.needs.add(relation, _PRIVILEGES[action.kind])
        alias = table.alias or table.name
        fields: Columns = [*table_fields(descriptor, relation)]
        mine = Names([NamedTable(alias, fields, table.said)], fields)
        scope = Scope(ctes=self._outer.ctes)
        source, theirs = binder.sources.bind(statement.source, scope, Names())
        both = mine.beside(theirs, statement.at)
        scope.names = both
        expressions = Expressions(binder, scope)
        expressions.clause = "JOIN conditions"
        condition = expressions.bind_condition(statement.condition, "MERGE ON")
        columns = descriptor.row_columns
        slots = self._slots(relation, columns, self._numbered)
        row = _Row(slots, self._numbered + len(columns) + 1, both.relations)
        actions = tuple(
            self._action(action, descriptor, relation, both if action.matched else theirs, row)
            for action in statement.actions
        )
        inserts = any(not action.matched for action in actions)
        kind = "left" if inserts else "inner"
        target = TableSource(relation, descriptor, alias)
        joined = JoinSource(kind, source, target, condition)
        genids = [
            Field(relation, lock_name(lock), GENIDS, nullable=True) for lock in descriptor.locks
        ]
        found = (*row_fields(descriptor, relation), *genids, *row.extras)
        find = query_of(BoundSelect(found, joined))
        extra = len(row.extras)
        return BoundWrite(
            "MERGE", descriptor, columns, (), find, extra, None, None, actions=actions
        )

    def _action(
        self,
        action: tree.MergeAction,
        descriptor: Descriptor,
        relation: int,
        names: Names,
        row: _Row,
    ) -> BoundAction:
        scope = Scope(names=names, ctes=self._outer.ctes)
        condition = None
        if action.condition is not None:
            expressions = Expressions(self._binder, scope)
            expressions.clause = "MERGE WHEN conditions"
            holds = expressions.bind_condition(action.condition, "WHEN")
            only = expressions.only_rows.beside(None)
            condition = row.over(BoundSelect((holds,), only))
        expressions = Expressions(self._binder, scope)
        given: tuple[Column, ...] = ()
        values: Sequence[Bound] = ()
        if action.kind == "UPDATE":
            expressions.clause = "UPDATE"
            given, values, _ = self._assigned(descriptor, relation, action.assignments, expressions)
        elif action.kind == "INSERT":
            expressions.clause = "VALUES"
            given, values = self._inserted(action, descriptor, relation, expressions)
        query = None
        if given:
            only = expressions.only_rows.beside(None)
            query = row.over(BoundSelect(tuple(values), only))
        return BoundAction(action.kind, action.matched, condition, given, query)

    def _inserted(
        self,
        action: tree.MergeAction,
        descriptor: Descriptor,
        relation: int,
        expressions: Expressions,
    ) -> tuple[tuple[Column, ...], list[Bound]]:
        """Return each column that can be given, and its value."""
        settable = tuple(c for c in descriptor.by_name.values() if not c.generated)
        named = self._named(action.columns, descriptor)
        values: dict[str, Bound] = {}
        if action.values is not None:
            width, at = len(action.values), action.values[0].at
            self._check_width(width, named, at, action.columns is not None)
            named = named[:width]
            cells = self._cells(action.values, descriptor, named, action.overriding, expressions)
            values = {
                c.name: value
                for c, value in zip(named, cells, strict=True)
                if not c.generated and not (c.identity and action.overriding == "user")
            }
            written = (c.element_id for c in named)
            self._binder.needs.add(relation, Privilege.INSERT, written)
        shown: list[Bound] = []
        for column in settable:
            value = values.get(column.name)
            shown.append(self._default(column, descriptor) if value is None else value)
        return settable, shown


def _check_reachable(statement: tree.Merge) -> None:
    """Refuse a WHEN behind one of its kind that has no condition."""
    ended: set[bool] = set()
    for action in statement.actions:
        if action.matched in ended:
            raise SyntaxInvalid(
                "unreachable WHEN clause specified after unconditional WHEN clause",
                position=statement.at,
            )
        if action.condition is None:
            ended.add(action.matched)
