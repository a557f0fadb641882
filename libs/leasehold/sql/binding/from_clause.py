"""The binder of FROM: tables, queries, functions and joins → sources and the names that they
bring."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from leasehold.catalog.descriptor import Descriptor
from leasehold.catalog.elements import Column as TableColumn
from leasehold.catalog.schema_names import PG_CATALOG, PG_TEMP
from leasehold.catalog.sequence_ownership import refuse_sequence
from leasehold.catalog.view import View, ViewTable
from leasehold.model.budget import charge
from leasehold.model.errors import (
    AmbiguousColumn,
    FeatureNotSupported,
    GroupingError,
    InvalidColumnReference,
    SyntaxInvalid,
    UnknownColumn,
    UnknownFunction,
)
from leasehold.sql.binding import arrays as query_array
from leasehold.sql.binding.bound_tree import (
    OPEN,
    Bound,
    BoundQuery,
    BoundSelect,
    BoundSource,
    Column,
    CteSource,
    ElementsSource,
    Field,
    Native,
    Origin,
    SeriesSource,
    SubSource,
    SystemSource,
    TableSource,
    Value,
    join_parts,
)
from leasehold.sql.binding.expressions import Expressions
from leasehold.sql.binding.labels import label_of
from leasehold.sql.binding.lateral import check_lateral, join_sources
from leasehold.sql.binding.planning_work import FIELD_WORK
from leasehold.sql.binding.scope import Columns, NamedTable, Names, Scope
from leasehold.sql.binding.typing import common_type
from leasehold.sql.binding.walk import has_aggregate, has_window
from leasehold.sql.functions.arrays.set_returning import (
    COLUMN_NAMES,
    SERIES,
    SEVERAL_COLUMNS,
    WITHOUT_ROWS,
)
from leasehold.sql.functions.function import BIGINT, BOOLEAN, INTEGER, TEXT
from leasehold.sql.functions.registry import SET_NAMES
from leasehold.sql.syntax import tree
from leasehold.sql.syntax.positions import refused_at
from leasehold.sql.system_catalog.keywords import BARE_DESCRIPTIONS, DESCRIPTIONS, KEYWORDS
from leasehold.sql.system_catalog.oids import RELATIONS, table_oid
from leasehold.sql.system_catalog.relations import Relation
from leasehold.sql.system_catalog.system_relations import refuse_write, relation_of
from leasehold.values.arrays import stored_form
from leasehold.values.catalog_types import OID
from leasehold.values.types import INTEGER_BITS, Type, array_of

if TYPE_CHECKING:
    from leasehold.sql.binding.queries import Binder

_KEYWORDS: Final = "pg_get_keywords"
RELATIONS_MAX: Final = 60
"""SQLite joins 64 tables at most, and an index is one more."""


class Sources:
    """The binder of what stands in FROM, for one statement."""

    def __init__(self, binder: Binder) -> None:
        self._binder = binder

    def bind(self, source: tree.Source, scope: Scope, before: Names) -> tuple[BoundSource, Names]:
        """Return the bound source and the names that it brings. `before` are the names that LATERAL
        may see."""
        if self._binder.relations > RELATIONS_MAX * 4:
            raise FeatureNotSupported(
                "too many tables in one statement: compute a part of it in a statement before,"
                " into a temporary table",
                position=source.at,
            )
        match source:
            case tree.TableName():
                return self._table(source, scope)
            case tree.QuerySource():
                return self._query_source(source, scope, before)
            case tree.CallSource():
                return self._call_source(source, scope, before)
            case tree.Join():
                return self._join(source, scope, before)

    def _table(self, source: tree.TableName, scope: Scope) -> tuple[BoundSource, Names]:
        alias = source.alias or source.name
        cte = None if source.schema else scope.cte(source.name)
        relation = self._binder.new_relation()
        if cte is not None and not cte.returns:
            raise FeatureNotSupported(
                f"WITH query {source.name!r} does not have a RETURNING clause", position=source.at
            )
        if cte is not None:
            columns = _fields(relation, cte.columns)
            return _named(CteSource(relation, cte.number, len(columns)), source, alias, columns)
        system = self._system(source)
        if system is not None:
            number = RELATIONS.get(system.name) if system.schema == PG_CATALOG else None
            fields = system_fields(system, relation)
            return _named(SystemSource(relation, system), source, alias, fields, number)
        view = self._find_view(source)
        if view is not None:
            return self._view(view, source, relation)
        descriptor, known = self._binder.views.table(source.name, source.at, source.schema)
        self._binder.needs.read_table(relation, descriptor)
        found: list[tuple[str, Bound]] = list(table_fields(descriptor, relation))
        if known is not None:
            found = _fields_of_then(descriptor, known, relation)
        number = table_oid(descriptor.table_id)
        return _named(TableSource(relation, descriptor, alias), source, alias, found, number)

    def _view(self, view: View, source: tree.TableName, relation: int) -> tuple[BoundSource, Names]:
        self._binder.needs.read_table(relation, view)
        query = self._binder.views.bind(view, source.at)
        shown = _fields(relation, query.columns)
        known = self._binder.views.columns_known(view)
        fields = [(name, shown[place][1]) for place, name in known]
        number = table_oid(view.table_id)
        alias = source.alias or source.name
        made = SubSource(relation, query, barrier=view.is_barrier)
        return _named(made, source, alias, fields, number)

    def _find_view(self, named: tree.TableName) -> View | None:
        """Return the view that a name means; a temporary table comes before it."""
        if named.schema == PG_TEMP:
            return None
        view = self._binder.views.find(named.name)
        if view is not None and not named.schema and self._binder.is_temporary(named.name):
            return None
        return view

    def _system(self, source: tree.TableName) -> Relation | None:
        if source.schema == PG_TEMP:
            return None
        with refused_at(source.at):
            return relation_of(source.schema, source.name)

    def target(self, table: tree.TableName) -> Descriptor:
        """The table that a statement writes. Raises UnknownTable, InsufficientPrivilege."""
        system = self._system(table)
        if system is not None:
            with refused_at(table.at):
                refuse_write(system)
        view = self._find_view(table)
        if view is not None:
            raise FeatureNotSupported(
                f"view {view.name!r} can't be written to: write to its tables",
                position=table.at,
            )
        found = self._binder.descriptor(table.name, table.at, table.schema)
        return refuse_sequence(found, table.at)

    def _query_source(
        self, source: tree.QuerySource, scope: Scope, before: Names
    ) -> tuple[BoundSource, Names]:
        # A query in FROM sees what is outside of this one, and of the tables beside it only by
        # LATERAL those before it.
        parent = Scope(scope.parent, before if source.lateral else Names(), ctes=scope.ctes)
        query = self._binder.bind_query(source.query, parent)
        lateral = source.lateral and check_lateral(query, before.relations, source.at)
        scope.correlated = scope.correlated or parent.correlated
        relation = self._binder.new_relation()
        columns = _fields(relation, query.columns)
        made = SubSource(relation, query, lateral)
        return _named(made, source, source.alias, columns)

    def _call_source(
        self, source: tree.CallSource, scope: Scope, before: Names
    ) -> tuple[BoundSource, Names]:
        call = source.call
        if call.name in WITHOUT_ROWS and not source.ordinality:
            return self._without_rows(source, scope, before)
        if call.name == _KEYWORDS and not call.arguments:
            return self._keywords(source)
        if call.name not in SET_NAMES and call.name not in SEVERAL_COLUMNS:
            return self._value_source(source, scope, before)
        if call.star or call.distinct or call.order or call.filter or call.over:
            raise SyntaxInvalid(f"{call.name} is not an aggregate function", position=source.at)
        inner = Scope(scope.parent, before, ctes=scope.ctes)
        expressions = Expressions(self._binder, inner)
        expressions.clause = "functions in FROM"
        parts = [expressions.bind(node) for node in call.arguments]
        scope.correlated = scope.correlated or inner.correlated
        relation = self._binder.new_relation()
        alias = source.alias or call.name
        made, columns = (
            self._series(call, parts, relation, alias, inner)
            if call.name == SERIES
            else self._elements(call, parts, relation, alias, inner)
        )
        whole = columns[0][1] if len(columns) == 1 else None
        if source.ordinality:
            columns.append(("ordinality", Field(relation, "ordinality", BIGINT, False)))
        bound, names = _named(made, source, alias, columns)
        if whole is not None and len(columns) == 1 and names.columns[0][0] != alias:
            # The row of a function that gives plain values is the value.
            names.hidden.append(NamedTable(alias, [(alias, whole)]))
        return bound, names

    def _keywords(self, source: tree.CallSource) -> tuple[BoundSource, Names]:
        """Return the rows of pg_get_keywords(): arrays side by side, which are the same always."""
        words, letters = array_of(TEXT), array_of(Type('"char"'))
        found: tuple[tuple[str, Type, list[object]], ...] = (
            ("word", words, [each.word for each in KEYWORDS]),
            ("catcode", letters, [each.category for each in KEYWORDS]),
            ("barelabel", array_of(BOOLEAN), [int(each.bare) for each in KEYWORDS]),
            ("catdesc", words, [DESCRIPTIONS[each.category] for each in KEYWORDS]),
            ("baredesc", words, [BARE_DESCRIPTIONS[each.bare] for each in KEYWORDS]),
        )
        relation = self._binder.new_relation()
        arrays = tuple(Value(kind, stored_form(values)) for _, kind, values in found)
        columns: list[tuple[str, Bound]] = [
            (name, Field(relation, f"v{n}", query_array.element_kind(array)))
            for n, ((name, _, _), array) in enumerate(zip(found, arrays, strict=True))
        ]
        if source.ordinality:
            columns.append(("ordinality", Field(relation, "ordinality", BIGINT, False)))
        made = ElementsSource(relation, arrays)
        return _named(made, source, source.alias or _KEYWORDS, columns)

    def _value_source(
        self, source: tree.CallSource, scope: Scope, before: Names
    ) -> tuple[BoundSource, Names]:
        """Return what a function that gives one value is in FROM: one row of one column, named like
        the alias or the function."""
        call = source.call
        inner = Scope(scope.parent, before, ctes=scope.ctes)
        expressions = Expressions(self._binder, inner)
        expressions.clause = "functions in FROM"
        part = expressions.settle(call)
        if has_aggregate(part) or has_window(part):
            raise GroupingError(
                "aggregate functions are not allowed in functions in FROM", position=call.at
            )
        scope.correlated = scope.correlated or inner.correlated
        outputs = [Column(source.alias or label_of(call), part.kind)]
        parts = [part]
        if source.ordinality:
            outputs.append(Column("ordinality", BIGINT, nullable=False))
            parts.append(Value(BIGINT, 1))
        query = BoundQuery(tuple(outputs), BoundSelect(tuple(parts)), correlated=inner.correlated)
        lateral = check_lateral(query, before.relations, call.at)
        made = SubSource(self._binder.new_relation(), query, lateral)
        alias = source.alias or call.name
        return _named(made, source, alias, _fields(made.relation, query.columns))

    def _without_rows(
        self, source: tree.CallSource, scope: Scope, before: Names
    ) -> tuple[BoundSource, Names]:
        call = source.call
        argument, columns = WITHOUT_ROWS[call.name]
        if len(call.arguments) != 1 or call.star or call.distinct or call.order or call.filter:
            raise UnknownFunction(
                f"function {call.name} of these arguments does not exist", position=call.at
            )
        inner = Scope(scope.parent, before, ctes=scope.ctes)
        part = Expressions(self._binder, inner).bind(call.arguments[0])
        self._binder.typing.convert(part, argument, call.at)  # it is to be such a one
        scope.correlated = scope.correlated or inner.correlated
        empty = tuple(Value(kind, None) for _, kind in columns)
        body = BoundSelect(empty, None, Value(BOOLEAN, 0))
        query = BoundQuery(tuple(Column(name, kind) for name, kind in columns), body)
        relation = self._binder.new_relation()
        alias = source.alias or call.name
        return _named(SubSource(relation, query), source, alias, _fields(relation, query.columns))

    def _elements(
        self, call: tree.Call, parts: list[Bound], relation: int, alias: str, scope: Scope
    ) -> tuple[BoundSource, list[tuple[str, Bound]]]:
        """unnest and its like; unnest of several arrays puts them side by side."""
        typing = self._binder.typing
        if call.name in SEVERAL_COLUMNS:
            return self._several(call, parts, relation)
        if call.name == tree.EXPAND_ARRAY:
            array = query_array.bind_set(typing, "unnest", parts, call.at)
            value = Field(relation, "v0", query_array.element_kind(array))
            number = Field(relation, "ordinality", INTEGER, False)
            return ElementsSource(relation, (array,)), [("x", value), ("n", number)]
        groups = [[part] for part in parts] if call.name == "unnest" and parts else [parts]
        arrays = [query_array.bind_set(typing, call.name, group, call.at) for group in groups]
        name = COLUMN_NAMES.get(call.name, alias if len(arrays) == 1 else call.name)
        columns: list[tuple[str, Bound]] = [
            (name, Field(relation, f"v{n}", query_array.element_kind(array)))
            for n, array in enumerate(arrays)
        ]
        if len(arrays) > query_array.SIDE_BY_SIDE_MAX:
            raise FeatureNotSupported(
                f"more than {query_array.SIDE_BY_SIDE_MAX} arrays side by side are not"
                " supported: take them apart in several queries in FROM",
                position=call.at,
            )
        return ElementsSource(relation, tuple(arrays)), columns

    def _several(
        self, call: tree.Call, parts: list[Bound], relation: int
    ) -> tuple[BoundSource, list[tuple[str, Bound]]]:
        """A function of several columns: an array for each of them, side by side."""
        typing = self._binder.typing
        functions = SEVERAL_COLUMNS[call.name]
        wanted = functions[0][1].arguments
        if len(parts) != len(wanted):
            raise UnknownFunction(
                f"function {call.name} of {len(parts)} arguments does not exist", position=call.at
            )
        given = [
            typing.convert(part, kind, call.at) for part, kind in zip(parts, wanted, strict=True)
        ]
        arrays = [typing.call(function, given, call.at) for _, function in functions]
        columns: list[tuple[str, Bound]] = [
            (name, Field(relation, f"v{n}", query_array.element_kind(array)))
            for n, ((name, _), array) in enumerate(zip(functions, arrays, strict=True))
        ]
        return ElementsSource(relation, tuple(arrays)), columns

    def _series(
        self, call: tree.Call, parts: list[Bound], relation: int, alias: str, scope: Scope
    ) -> tuple[BoundSource, list[tuple[str, Bound]]]:
        if not 2 <= len(parts) <= 3:
            raise UnknownFunction(
                f"function generate_series of {len(parts)} arguments does not exist",
                position=call.at,
            )
        kinds = {self._binder.typing.kind_of(part).name for part in parts}
        if kinds - {OPEN.name, *INTEGER_BITS}:
            return self._elements(call, parts, relation, alias, scope)
        kind = self._binder.typing.find_common(parts, call.at, "generate_series")
        kind = Type("integer") if kind in (OPEN, Type("smallint")) else kind
        parts = [self._binder.typing.convert(part, kind, call.at) for part in parts]
        field = Field(relation, "value", kind, False)
        return SeriesSource(relation, tuple(parts)), [(alias, field)]

    def _join(self, source: tree.Join, scope: Scope, before: Names) -> tuple[BoundSource, Names]:
        left, mine = self.bind(source.left, scope, before)
        visible = before.beside(mine, source.at)
        right, theirs = self.bind(source.right, scope, visible)
        both = mine.beside(theirs, source.at)
        using = source.using
        if source.natural:
            names = [name for name, _ in theirs.columns]
            using = tuple(name for name, _ in mine.columns if name in names)
        condition: Bound | None = None
        if source.condition is not None:
            inner = Scope(scope.parent, both, ctes=scope.ctes)
            expressions = Expressions(self._binder, inner)
            expressions.clause = "JOIN conditions"
            condition = expressions.bind_condition(source.condition, "JOIN/ON")
            scope.correlated = scope.correlated or inner.correlated
        merged: list[tuple[str, Bound]] = []
        tests: list[Bound] = []
        for name in using or ():
            a, b = (
                self._using(name, mine, source, "left"),
                self._using(name, theirs, source, "right"),
            )
            self._binder.needs.read(a)
            self._binder.needs.read(b)
            test = self._binder.typing.compare("=", a, b, source.at)
            tests.append(test)
            kind = common_type([a.kind, b.kind], source.at, "JOIN/USING")
            a, b = (self._binder.typing.convert(part, kind, source.at) for part in (a, b))
            full = Native("coalesce", (a, b), kind)
            merged.append(
                (name, full if source.kind == "full" else b if source.kind == "right" else a)
            )
        if tests:
            condition = join_parts("and", tests)
        if source.kind in ("right", "full"):
            mine = mine.as_nullable()
        if source.kind in ("left", "full"):
            theirs = theirs.as_nullable()
        tables = mine.tables + theirs.tables
        rest = [(n, b) for n, b in mine.columns + theirs.columns if n not in (using or ())]
        kind_of_join = "cross" if condition is None and source.kind == "inner" else source.kind
        made = join_sources(kind_of_join, left, right, condition, source.at)
        return made, Names(tables, merged + rest, mine.hidden + theirs.hidden)

    def _using(self, name: str, names: Names, join: tree.Join, side: str) -> Bound:
        found = [bound for column, bound in names.columns if column == name]
        if not found:
            raise UnknownColumn(
                f"column {name!r} specified in USING clause does not exist in {side} table",
                position=join.at,
                column=name,
            )
        if len(found) > 1:
            raise AmbiguousColumn(
                f"common column name {name!r} appears more than once in {side} table",
                position=join.at,
            )
        return found[0]


# -------------------------------------------------------------- parts


def table_fields(descriptor: Descriptor, relation: int) -> list[tuple[str, Field]]:
    """Public columns in the order of their making."""
    charge(len(descriptor.by_name) * FIELD_WORK)
    return [
        (name, _field(descriptor, column, relation)) for name, column in descriptor.by_name.items()
    ]


def _fields_of_then(
    descriptor: Descriptor, known: ViewTable, relation: int
) -> list[tuple[str, Bound]]:
    """Return the columns that a view knows of a table, by the names that they had then."""
    there = {column.element_id: column for column in descriptor.by_name.values()}
    return [
        (name, _field(descriptor, there[element], relation))
        for element, name in known.columns.items()
        if element in there
    ]


def row_fields(descriptor: Descriptor, relation: int) -> list[Field]:
    """Return the fields of all columns that a write has to know of a row."""
    return [_field(descriptor, column, relation) for column in descriptor.row_columns]


def _field(descriptor: Descriptor, column: TableColumn, relation: int) -> Field:
    origin = Origin(descriptor.table_id, column.element_id)
    return Field(relation, f"c{column.element_id}", column.type, column.nullable, origin)


def system_fields(system: Relation, relation: int) -> list[tuple[str, Bound]]:
    return [
        (
            column.name,
            Field(relation, f"c{n}", column.type, column.name in system.nullable),
        )
        for n, column in enumerate(system.columns)
    ]


def _fields(relation: int, columns: tuple[Column, ...]) -> list[tuple[str, Bound]]:
    return [
        (c.name, Field(relation, f"o{n}", c.kind, c.nullable, c.origin))
        for n, c in enumerate(columns)
    ]


def _named(
    bound: BoundSource,
    source: tree.TableName | tree.QuerySource | tree.CallSource,
    alias: str,
    columns: Columns,
    number: int | None = None,
) -> tuple[BoundSource, Names]:
    """Return a source with its columns under the names that the text gives them; `number` is the
    tableoid of a table that has one. Raises InvalidColumnReference."""
    names = source.columns
    if len(names) > len(columns):
        raise InvalidColumnReference(
            f"table {alias!r} has {len(columns)} columns available but {len(names)} columns"
            " specified",
            position=source.at,
        )
    named = [
        (names[n] if n < len(names) else name, column) for n, (name, column) in enumerate(columns)
    ]
    said = source.said if isinstance(source, tree.TableName) else ""
    made = Names([NamedTable(alias, named, said)], named)
    if number is not None:
        made.hidden.append(NamedTable(alias, [("tableoid", Value(OID, number))], said))
    return bound, made
