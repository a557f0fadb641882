"""INSERT, UPDATE and DELETE as plans: a query that finds rows and computes new values, and what is
done with what it gives. Nothing is written here: whoever runs the plan gets keys, values and the
genids that were seen, which a write set is made of.

What a row's own columns are after the write is known only then, so RETURNING and DO UPDATE are
queries of their own, which get the row's values as further parameters.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from leasehold.catalog.descriptor import Descriptor
from leasehold.catalog.elements import Column
from leasehold.catalog.physical_names import column_name, lock_name
from leasehold.catalog.privileges import Privilege
from leasehold.catalog.states import READABLE
from leasehold.model.errors import (
    DuplicateColumn,
    FeatureNotSupported,
    GeneratedAlways,
    IndexNotFit,
    InvalidColumnReference,
    Refused,
    SyntaxInvalid,
    UnknownColumn,
    UnknownObject,
)
from leasehold.sql.binding.bound_tree import (
    Apply,
    Bound,
    BoundQuery,
    BoundSelect,
    BoundValues,
    Field,
    JoinSource,
    Slot,
    SubSource,
    TableSource,
    Value,
)
from leasehold.sql.binding.bound_tree import Column as ResultColumn
from leasehold.sql.binding.bound_write import GENIDS, BoundConflict, BoundWrite, is_whole, query_of
from leasehold.sql.binding.expressions import Expressions
from leasehold.sql.binding.from_clause import row_fields, table_fields
from leasehold.sql.binding.kept_expressions import bound_expression
from leasehold.sql.binding.labels import label_of
from leasehold.sql.binding.queries import Binder
from leasehold.sql.binding.scope import NamedTable, Names, Scope
from leasehold.sql.binding.typing import Typing
from leasehold.sql.binding.walk import has_aggregate, has_window, mapped, walk
from leasehold.sql.expressions.default import decided_default, is_random
from leasehold.sql.functions.function import BIGINT, BOOLEAN
from leasehold.sql.functions.system.sequence import DRAWN, DRAWN_BY_ROLE
from leasehold.sql.syntax import tree
from leasehold.sql.syntax.positions import with_position


class WriteBinder:
    """The binder of one statement that writes. `numbered` is the highest number of the statement's
    parameters; `outer` knows what WITH names, which whoever binds that gives to those who read
    it."""

    def __init__(self, binder: Binder, numbered: int, outer: Scope) -> None:
        self._binder = binder
        self._typing: Typing = binder.typing
        self._numbered = numbered
        self._outer = outer

    def bind(self, statement: tree.Insert | tree.Update | tree.Delete) -> BoundWrite:
        """Return the statement's plan. Raises what its names and types are refused with."""
        match statement:
            case tree.Insert():
                return self._insert(statement)
            case tree.Update():
                return self._changed(statement, statement.assignments, statement.source)
            case tree.Delete():
                return self._changed(statement, (), statement.source)

    # ---------------------------------------------------------- UPDATE and DELETE

    def _changed(
        self,
        statement: tree.Update | tree.Delete,
        assignments: Sequence[tree.Assignment],
        other: tree.Source | None,
    ) -> BoundWrite:
        binder, table = self._binder, statement.table
        descriptor = binder.sources.target(table)
        relation = binder.new_relation()
        changes = isinstance(statement, tree.Update)
        privilege = Privilege.UPDATE if changes else Privilege.DELETE
        binder.needs.write_table(relation, descriptor, privilege)
        columns = descriptor.row_columns
        fields = table_fields(descriptor, relation)
        alias = table.alias or table.name
        names = Names([NamedTable(alias, list(fields), table.said)], list(fields))
        target = TableSource(relation, descriptor, alias)
        scope = Scope(names=names, ctes=self._outer.ctes)
        source: TableSource | JoinSource = target
        if other is not None:
            bound, more = binder.sources.bind(other, scope, Names())
            scope.names = names.beside(more, statement.at)
            source = JoinSource("cross", target, bound, None)
        expressions = Expressions(binder, scope)
        expressions.clause = "WHERE"
        where = None
        if statement.where is not None:
            where = expressions.bind_condition(statement.where, "WHERE")
        expressions.clause = "UPDATE"
        given, values, parts = self._assigned(descriptor, relation, assignments, expressions)
        genids = [
            Field(relation, lock_name(lock), GENIDS, nullable=True) for lock in descriptor.locks
        ]
        found = row_fields(descriptor, relation)
        outputs: list[Bound] = [*found, *genids, *values]
        slots = self._slots(relation, columns, self._numbered)
        returning, extras = self._returning(statement.returning, scope, slots, len(columns))
        whole = expressions.only_rows.beside(source)
        body = BoundSelect((*outputs, *extras), whole, where)
        kind = "UPDATE" if changes else "DELETE"
        found_by = query_of(body)
        return BoundWrite(
            kind, descriptor, columns, given, found_by, len(extras), returning, None, parts
        )

    def _assigned(
        self,
        descriptor: Descriptor,
        relation: int,
        assignments: Sequence[tree.Assignment],
        expressions: Expressions,
    ) -> tuple[tuple[Column, ...], list[Bound], tuple[Bound, ...]]:
        """Columns, their values, and the same before they were brought to the columns' types."""
        given: list[Column] = []
        values: list[Bound] = []
        parts: list[Bound] = []
        for assignment in assignments:
            column = _column(descriptor, assignment.column, assignment.at)
            self._binder.needs.add(relation, Privilege.UPDATE, (column.element_id,))
            if column in given:
                raise SyntaxInvalid(
                    f"multiple assignments to same column {column.name!r}", position=assignment.at
                )
            node = assignment.node
            if isinstance(node, tree.DefaultWord):
                if column.generated:
                    continue
                part = value = self._default(column, descriptor)
            else:
                _refuse_generated(column, node.at)
                if column.identity == "a":
                    raise GeneratedAlways(
                        f"column {column.name!r} can only be updated to DEFAULT: it is an identity"
                        " column defined as GENERATED ALWAYS",
                        column=column.name,
                        position=assignment.at,
                    )
                part = expressions.bind(node)
                value = self._stored(part, column, node.at)
            given.append(column)
            values.append(value)
            parts.append(part)
        return tuple(given), values, tuple(parts)

    def _stored(self, part: Bound, column: Column, at: int) -> Bound:
        """Return a part as PostgreSQL's assignment brings it to a column."""
        if has_aggregate(part) or has_window(part):
            raise FeatureNotSupported(
                "an aggregate or window function can't be assigned here", position=at
            )
        try:
            kind = self._binder.as_called(column.written_type)
            return self._typing.convert(part, kind, at, "assignment")
        except Refused as error:
            if "column" in error.detail:
                raise
            position = int(str(error.detail.get("position", at)))
            raise with_position(
                error, position, f"column {column.name!r}: ", column=column.name
            ) from error

    def _default(self, column: Column, descriptor: Descriptor) -> Bound:
        if not column.default_expression:
            return Value(column.type, column.default)
        if column.draws_from:
            # The sequence of an identity column nobody names, and nobody is asked about.
            draws = DRAWN if column.identity else DRAWN_BY_ROLE
            drawn = Apply(draws, (Value(BIGINT, column.draws_from),), BIGINT)
            return self._typing.convert(drawn, column.type, 1, "assignment")
        if not is_random(column.default_expression):
            return Apply(decided_default(column.default_expression, column.type), (), column.type)
        made = bound_expression(self._binder, column.default_expression, descriptor, 0)
        if made is None:
            raise FeatureNotSupported(
                f"the default {column.default_expression!r:.80} of column {column.name!r} can't be"
                " computed in a statement: give a value"
            )
        return self._typing.convert(made, column.type, 1, "assignment")

    # ---------------------------------------------------------- INSERT

    def _insert(self, statement: tree.Insert) -> BoundWrite:
        binder, table = self._binder, statement.table
        descriptor = binder.sources.target(table)
        columns = descriptor.row_columns
        settable = tuple(c for c in descriptor.by_name.values() if not c.generated)
        relation = binder.new_relation()
        binder.needs.write_table(relation, descriptor, Privilege.INSERT)
        named = self._named(statement.columns, descriptor)
        outputs, source = self._source(statement, descriptor, named)
        written = [column.element_id for column, _ in zip(named, outputs, strict=False)]
        binder.needs.add(relation, Privilege.INSERT, written)
        values: dict[str, Bound] = {
            c.name: o
            for c, o in zip(named, outputs, strict=False)
            if not c.generated and not (c.identity and statement.overriding == "user")
        }
        shown = tuple(values.get(c.name) or self._default(c, descriptor) for c in settable)
        body = BoundSelect(shown, source)
        fields = table_fields(descriptor, relation)
        alias = table.alias or table.name
        names = Names([NamedTable(alias, list(fields), table.said)], list(fields))
        scope = Scope(names=names, ctes=self._outer.ctes)
        slots = self._slots(relation, columns, self._numbered)
        returning, extras = self._returning(statement.returning, scope, slots, len(columns))
        assert not extras, "an INSERT has no other tables"
        conflict = None
        if statement.conflict is not None:
            conflict = self._conflict(statement.conflict, descriptor, relation, alias, columns)
        return BoundWrite(
            "INSERT", descriptor, columns, settable, query_of(body), 0, returning, conflict
        )

    def _named(
        self, columns: tuple[tuple[str, int], ...] | None, descriptor: Descriptor
    ) -> tuple[Column, ...]:
        if columns is None:
            return tuple(descriptor.by_name.values())
        named: list[Column] = []
        for name, at in columns:
            column = _column(descriptor, name, at)
            if column in named:
                raise DuplicateColumn(
                    f"column {name!r} specified more than once", position=at, column=name
                )
            named.append(column)
        return tuple(named)

    def _source(
        self, statement: tree.Insert, descriptor: Descriptor, named: tuple[Column, ...]
    ) -> tuple[list[Bound], SubSource | None]:
        """Values for the first of `named`, and where they come from."""
        query = statement.source
        if query is None:
            return [], None
        plain = not query.order and query.limit is None and query.offset is None
        if isinstance(query.body, tree.Values) and plain and query.ctes is None:
            found = self._rows(
                query.body,
                descriptor,
                named,
                statement.overriding,
                explicit=statement.columns is not None,
            )
        else:
            found = self._binder.bind_open(query, self._outer)
            self._check_width(len(found.columns), named, query.at, statement.columns is not None)
            for column, _ in zip(named, found.columns, strict=False):
                _refuse_generated(column, query.at)
                _refuse_identity(column, statement.overriding, query.at)
            kinds = [
                self._binder.as_called(c.written_type)
                for c, _ in zip(named, found.columns, strict=False)
            ]
            found = self._binder.convert_columns(found, kinds, query.at, "assignment")
        relation = self._binder.new_relation()
        outputs: list[Bound] = [
            Field(relation, f"o{n}", column.kind) for n, column in enumerate(found.columns)
        ]
        return outputs, SubSource(relation, found)

    def _rows(
        self,
        body: tree.Values,
        descriptor: Descriptor,
        named: tuple[Column, ...],
        overriding: str,
        *,
        explicit: bool,
    ) -> BoundQuery:
        expressions = Expressions(self._binder, Scope(ctes=self._outer.ctes))
        expressions.clause = "VALUES"
        width = len(body.rows[0])
        rows: list[tuple[Bound, ...]] = []
        for row in body.rows:
            if len(row) != width:
                raise SyntaxInvalid("VALUES lists must all be the same length", position=row[0].at)
            self._check_width(len(row), named, row[min(len(row), len(named)) - 1].at, explicit)
            cells = self._cells(row, descriptor, named[: len(row)], overriding, expressions)
            rows.append(tuple(cells))
        columns = tuple(ResultColumn(c.name, c.type) for c in named[:width])
        return BoundQuery(columns, BoundValues(tuple(rows)))

    def _cells(
        self,
        row: tuple[tree.Node, ...],
        descriptor: Descriptor,
        named: tuple[Column, ...],
        overriding: str,
        expressions: Expressions,
    ) -> list[Bound]:
        """Return the values of one row for these columns."""
        cells: list[Bound] = []
        for column, node in zip(named, row, strict=True):
            if isinstance(node, tree.DefaultWord):
                cells.append(
                    Value(column.type, None)
                    if column.generated
                    else self._default(column, descriptor)
                )
                continue
            _refuse_generated(column, node.at)
            _refuse_identity(column, overriding, node.at)
            cells.append(self._stored(expressions.bind(node), column, node.at))
        return cells

    def _check_width(self, width: int, named: tuple[Column, ...], at: int, explicit: bool) -> None:
        if width > len(named):
            raise SyntaxInvalid("INSERT has more expressions than target columns", position=at)
        if explicit and width < len(named):
            raise SyntaxInvalid("INSERT has more target columns than expressions", position=at)

    # ---------------------------------------------------------- ON CONFLICT

    def _conflict(
        self,
        conflict: tree.Conflict,
        descriptor: Descriptor,
        relation: int,
        alias: str,
        columns: tuple[Column, ...],
    ) -> BoundConflict:
        arbiters = self._arbiters(conflict, descriptor, relation)
        _refuse_deferrable(arbiters, descriptor, conflict.at)
        if not conflict.updates:
            return BoundConflict(arbiters, (), None)
        there, excluded = self._binder.new_relation(), self._binder.new_relation()
        self._binder.needs.rename(there, relation)
        self._binder.needs.rename(excluded, relation)
        mine, theirs = table_fields(descriptor, there), table_fields(descriptor, excluded)
        there_named = NamedTable(alias, [*mine], descriptor.name)
        names = Names([there_named, NamedTable("excluded", [*theirs])], [*mine])
        scope = Scope(names=names, ctes=self._outer.ctes)
        expressions = Expressions(self._binder, scope)
        expressions.clause = "ON CONFLICT DO UPDATE"
        self._binder.needs.add(relation, Privilege.UPDATE)
        assigned, values, _ = self._assigned(descriptor, relation, conflict.updates, expressions)
        holds: Bound | None = None
        if conflict.where is not None:
            holds = expressions.bind_condition(conflict.where, "WHERE")
        slots = {
            **self._slots(there, columns, self._numbered),
            **self._slots(excluded, columns, self._numbered + len(columns)),
        }
        beside = expressions.only_rows.beside(None)
        # What SET says is computed for a row of which WHERE holds alone.
        body = BoundSelect((Value(BOOLEAN, 1), *values), beside, holds)
        return BoundConflict(arbiters, assigned, query_of(with_slots(body, slots)))

    def _arbiters(
        self, conflict: tree.Conflict, descriptor: Descriptor, relation: int
    ) -> tuple[int, ...]:
        """Return the indexes that are looked at. Their columns are read, of a constraint too."""
        needs = self._binder.needs
        uniques = [i for i in descriptor.indexes if i.unique and i.state in READABLE]
        if conflict.constraint:
            if conflict.constraint == descriptor.key_constraint and not descriptor.hidden_key:
                needs.add(relation, Privilege.SELECT, descriptor.primary_key)
                return (0,)
            named = [i for i in uniques if i.name == conflict.constraint]
            found = [i.element_id for i in named]
            needs.add(relation, Privilege.SELECT, (e for i in named for e in i.columns))
            if not found:
                raise UnknownObject(
                    f"constraint {conflict.constraint!r} for table {descriptor.name!r} does not"
                    " exist",
                    position=conflict.at,
                )
            return tuple(found)
        if not conflict.columns:
            return ()
        wanted = {_column(descriptor, name, conflict.at).element_id for name in conflict.columns}
        needs.add(relation, Privilege.SELECT, wanted)
        made = [0] if wanted == set(descriptor.primary_key) else []
        made += [i.element_id for i in uniques if set(i.columns) == wanted and is_whole(i)]
        if not made:
            raise InvalidColumnReference(
                "there is no unique or exclusion constraint matching the ON CONFLICT specification",
                position=conflict.at,
            )
        return tuple(made)

    # ---------------------------------------------------------- RETURNING

    def _slots(
        self, relation: int, columns: tuple[Column, ...], before: int
    ) -> dict[tuple[int, str], Slot]:
        return {
            (relation, column_name(c.element_id)): Slot(before + n, c.type)
            for n, c in enumerate(columns, 1)
        }

    def _returning(
        self,
        targets: tuple[tree.Target, ...],
        scope: Scope,
        slots: dict[tuple[int, str], Slot],
        width: int,
    ) -> tuple[BoundQuery | None, list[Bound]]:
        """The query over the written row's slots, and what else the finding query must give."""
        if not targets:
            return None, []
        expressions = Expressions(self._binder, scope)
        expressions.clause = "RETURNING"
        outputs: list[Bound] = []
        names: list[str] = []
        for target in targets:
            node = target.node
            if isinstance(node, tree.Star):
                for name, bound in scope.star(node):
                    self._binder.needs.read(bound)
                    outputs.append(bound)
                    names.append(name)
                continue
            outputs.append(expressions.settle(node))
            names.append(target.label or label_of(node))
        columns = tuple(
            ResultColumn(name, o.kind, o.origin if isinstance(o, Field) else None)
            for name, o in zip(names, outputs, strict=True)
        )
        extras: list[Bound] = []
        mine = scope.names.relations
        for output in outputs:
            for field in walk(output):
                known = isinstance(field, Field) and field.relation in mine
                if isinstance(field, Field) and known and (field.relation, field.name) not in slots:
                    extras.append(field)
                    number = self._numbered + width + len(extras)
                    slots[field.relation, field.name] = Slot(number, field.kind)
        body = BoundSelect(tuple(outputs))
        return BoundQuery(columns, with_slots(body, slots)), extras


def with_slots(body: BoundSelect, slots: dict[tuple[int, str], Slot]) -> BoundSelect:
    """Return a SELECT over slots in the place of fields, by relation and name."""

    def change(node: Any) -> Any:
        if isinstance(node, Field):
            return slots.get((node.relation, node.name), node)
        return node

    found = mapped(body, change)
    assert isinstance(found, BoundSelect)
    return found


def _column(descriptor: Descriptor, name: str, at: int) -> Column:
    found = descriptor.by_name.get(name)
    if found is None:
        raise UnknownColumn(
            f"column {name!r} of relation {descriptor.name!r} does not exist",
            position=at,
            column=name,
        )
    return found


def _refuse_generated(column: Column, at: int) -> None:
    if column.generated:
        raise GeneratedAlways(
            f"column {column.name!r} is GENERATED ALWAYS and takes no value but DEFAULT",
            position=at,
            column=column.name,
        )


def _refuse_identity(column: Column, overriding: str, at: int) -> None:
    if column.identity == "a" and not overriding:
        raise GeneratedAlways(
            f"cannot insert a non-DEFAULT value into column {column.name!r}: it is an identity"
            " column defined as GENERATED ALWAYS; use OVERRIDING SYSTEM VALUE to override",
            position=at,
            column=column.name,
        )


def _refuse_deferrable(arbiters: tuple[int, ...], descriptor: Descriptor, at: int) -> None:
    """Refuse a constraint that is deferrable among the arbiters, () = all. Raises IndexNotFit."""
    for index in descriptor.indexes:
        if index.deferrable and (not arbiters or index.element_id in arbiters):
            raise IndexNotFit(
                "ON CONFLICT does not support deferrable unique constraints/exclusion constraints"
                " as arbiters",
                position=at,
                constraint=index.name,
            )
