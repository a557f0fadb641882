"""A query's tree → a bound one: FROM, WITH, GROUP BY, ORDER BY and set operations."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Final, NoReturn

from leasehold.model.errors import (
    AmbiguousColumn,
    DuplicateAlias,
    FeatureNotSupported,
    GroupingError,
    InvalidColumnReference,
    InvalidRecursion,
    Refused,
    SyntaxInvalid,
    UnknownColumn,
    UnknownFunction,
    WindowingError,
    WrongType,
)
from leasehold.schema.descriptor import Descriptor
from leasehold.schema.types import Type
from leasehold.sql import query_tree as tree
from leasehold.sql.function import BIGINT, TEXT
from leasehold.sql.parse import placed
from leasehold.sql.query_bind import Expressions, sortable
from leasehold.sql.query_bound import (
    OPEN,
    Aggregate,
    Bound,
    BoundCte,
    BoundQuery,
    BoundSelect,
    BoundSet,
    BoundSource,
    BoundValues,
    Column,
    CteSource,
    Field,
    JoinSource,
    Key,
    Native,
    Origin,
    Output,
    SeriesSource,
    Slot,
    SubSource,
    TableSource,
    Value,
)
from leasehold.sql.query_labels import label_of
from leasehold.sql.query_scope import KnownCte, Names, Scope
from leasehold.sql.query_typing import KEYED, Typing, bare, common_type
from leasehold.sql.query_walk import has_aggregate, has_window, relations_in, walk

COLUMNS_MAX: Final = 1_664
RELATIONS_MAX: Final = 60
"""SQLite joins 64 tables at most, and an index is one more."""


class Binder:
    """Of one statement. `lookup`: the descriptor of a table's name, or UnknownTable."""

    def __init__(self, lookup: Callable[[str], Descriptor], types: dict[int, Type]) -> None:
        self._lookup = lookup
        self.typing = Typing(types)
        self.used: dict[str, Descriptor] = {}
        self._relations = 0
        self._ctes = 0

    def new_relation(self) -> int:
        self._relations += 1
        return self._relations

    def descriptor(self, name: str, at: int) -> Descriptor:
        found = self.used.get(name)
        if found is None:
            try:
                found = self._lookup(name)
            except Refused as error:
                raise placed(error, at) from error
            self.used[name] = found
        return found

    # ---------------------------------------------------------- queries

    def bind_query(self, query: tree.Query, parent: Scope | None) -> BoundQuery:
        """With every column's type known."""
        return self.settled(self.bind_open(query, parent), query.at)

    def bind_open(self, query: tree.Query, parent: Scope | None) -> BoundQuery:
        """Constants of the result may still be open."""
        outer = Scope(parent)
        ctes = self.bind_ctes(query.ctes, outer)
        body = query.body
        if isinstance(body, tree.Select):
            found = _Select(self, body, query, outer).bound()
        elif isinstance(body, tree.Values):
            found = self._values(body, outer)
            found = replace(found, order=self._output_order(query.order, found))
        else:
            found = self._set_operation(body, outer)
            found = replace(found, order=self._output_order(query.order, found))
        return replace(
            found,
            limit=self._row_count(query.limit, "LIMIT", outer),
            offset=self._row_count(query.offset, "OFFSET", outer),
            ctes=ctes,
            correlated=found.correlated or outer.correlated,
        )

    def settled(self, query: BoundQuery, at: int) -> BoundQuery:
        """Open columns as text."""
        kinds = [TEXT if c.kind == OPEN else c.kind for c in query.columns]
        return self.as_kinds(query, kinds, at)

    def as_kinds(
        self, query: BoundQuery, kinds: list[Type], at: int, context: str = "implicit"
    ) -> BoundQuery:
        """The same query with its columns brought to these types."""
        if [c.kind for c in query.columns] == kinds:
            return query
        columns = tuple(
            replace(c, kind=kind, origin=c.origin if c.kind == kind else None)
            for c, kind in zip(query.columns, kinds, strict=True)
        )
        brought = self.typing.brought
        body = query.body
        opened = [c.kind == OPEN for c in query.columns]
        if isinstance(body, BoundSelect):
            changed = tuple(
                brought(output, kind, at, context)
                for output, kind in zip(body.outputs, kinds, strict=True)
            )
            plain = body.distinct is None and not query.order and query.limit is None
            if plain or all(
                o or c.kind == k for o, c, k in zip(opened, query.columns, kinds, strict=True)
            ):
                return replace(query, columns=columns, body=replace(body, outputs=changed))
        if isinstance(body, BoundValues) and not query.order:
            rows = tuple(
                tuple(brought(v, k, at, context) for v, k in zip(row, kinds, strict=True))
                for row in body.rows
            )
            return replace(query, columns=columns, body=BoundValues(rows))
        relation = self.new_relation()
        fields = tuple(
            brought(Field(relation, f"o{n}", c.kind, c.nullable), kind, at, context)
            for n, (c, kind) in enumerate(zip(query.columns, kinds, strict=True))
        )
        outer = BoundSelect(fields, SubSource(relation, query), None, (), False, None, None)
        order = tuple(
            Key(Output(n, kinds[n]), key.descending, key.nulls_first)
            for key in query.order
            if isinstance(key.value, Output)
            for n in (key.value.number,)
        )
        return BoundQuery(columns, outer, order, correlated=query.correlated)

    def _row_count(self, node: tree.Node | None, word: str, scope: Scope) -> Bound | None:
        if node is None:
            return None
        expressions = Expressions(self, Scope(scope.parent))
        expressions.place = word
        part = expressions.bind(node)
        kind = self.typing.kind_of(part)
        if kind != OPEN and kind.name not in ("smallint", "integer", "bigint"):
            part = self.typing.brought(part, BIGINT, node.at, "assignment")
        if any(isinstance(found, Field) for found in walk(part)):
            raise InvalidColumnReference(
                f"argument of {word} must not contain variables", position=node.at
            )
        part = self.typing.brought(part, BIGINT, node.at)
        return Native(word.lower(), (part,), BIGINT)

    def _values(self, body: tree.Values, scope: Scope) -> BoundQuery:
        widths = {len(row) for row in body.rows}
        if len(widths) != 1:
            at = next(r for r in body.rows if len(r) != len(body.rows[0]))[0].at
            raise SyntaxInvalid("VALUES lists must all be the same length", position=at)
        expressions = Expressions(self, scope)
        expressions.place = "VALUES"
        rows = [[expressions.bind(node) for node in row] for row in body.rows]
        columns: list[Column] = []
        for n in range(widths.pop()):
            cells = [row[n] for row in rows]
            at = body.rows[0][n].at
            kind = self.typing.common(cells, at, "VALUES")
            if kind != OPEN:
                for row in rows:
                    row[n] = self.typing.brought(row[n], kind, at)
            columns.append(Column(f"column{n + 1}", kind))
        made = BoundValues(tuple(map(tuple, rows)))
        return BoundQuery(tuple(columns), made, correlated=scope.correlated)

    def _set_operation(self, body: tree.SetOperation, scope: Scope) -> BoundQuery:
        left, right = self.bind_open(body.left, scope), self.bind_open(body.right, scope)
        return self.united(body, left, right)

    def united(self, body: tree.SetOperation, left: BoundQuery, right: BoundQuery) -> BoundQuery:
        word = body.word.upper()
        if len(left.columns) != len(right.columns):
            raise SyntaxInvalid(
                f"each {word} query must have the same number of columns", position=body.right.at
            )
        kinds: list[Type] = []
        for a, b in zip(left.columns, right.columns, strict=True):
            known = [kind for kind in (a.kind, b.kind) if kind != OPEN]
            kind = common_type(known, body.right.at, word)
            kinds.append(TEXT if kind == OPEN else kind)
        left = self.as_kinds(left, kinds, body.left.at)
        right = self.as_kinds(right, kinds, body.right.at)
        if not (body.every and body.word == "union"):
            for kind in kinds:
                _check_grouped(kind, word, body.at)
        columns = tuple(
            Column(a.name, kind, None, a.nullable or b.nullable)
            for a, b, kind in zip(left.columns, right.columns, kinds, strict=True)
        )
        made = BoundSet(body.word, body.every, left, right)
        return BoundQuery(columns, made, correlated=left.correlated or right.correlated)

    def _output_order(self, keys: tuple[tree.SortKey, ...], query: BoundQuery) -> tuple[Key, ...]:
        """ORDER BY after UNION and VALUES: by a result's name or number alone."""
        made = []
        for key in keys:
            number = _number_of(key.node, len(query.columns))
            if number is None and isinstance(key.node, tree.Name) and len(key.node.parts) == 1:
                named = [n for n, c in enumerate(query.columns) if c.name == key.node.parts[0]]
                if len(named) > 1:
                    raise _ambiguous_order(key.node)
                if not named:
                    raise UnknownColumn(
                        f"column {key.node.parts[0]!r} does not exist", position=key.node.at
                    )
                number = named[0]
            if number is None:
                raise FeatureNotSupported(
                    "invalid UNION/INTERSECT/EXCEPT ORDER BY clause: only the result's column names"
                    " and numbers can be used",
                    position=key.node.at,
                )
            kind = query.columns[number].kind
            sortable(Value(TEXT if kind == OPEN else kind, None), key.node.at)
            made.append(Key(Output(number, kind), key.descending, key.first))
        return tuple(made)

    # ---------------------------------------------------------- WITH

    def bind_ctes(self, ctes: tree.With | None, scope: Scope) -> tuple[BoundCte, ...]:
        made: list[BoundCte] = []
        for cte in ctes.ctes if ctes else ():
            if cte.name in scope.ctes:
                raise DuplicateAlias(
                    f"WITH query name {cte.name!r} specified more than once", position=cte.at
                )
            self._ctes += 1
            number = self._ctes
            assert ctes is not None
            if ctes.recursive and _names(cte.query, cte.name):
                query = self._recursive(cte, number, scope)
                made.append(BoundCte(number, query, True, None))
            else:
                query = _renamed(self.bind_query(cte.query, scope), cte.columns, cte.name, cte.at)
                made.append(BoundCte(number, query, False, cte.materialized))
            scope.ctes[cte.name] = KnownCte(number, query.columns)
        return tuple(made)

    def _recursive(self, cte: tree.Cte, number: int, scope: Scope) -> BoundQuery:
        body = cte.query.body
        at = cte.at
        if not isinstance(body, tree.SetOperation) or body.word != "union":
            raise InvalidRecursion(
                f"recursive query {cte.name!r} does not have the form"
                " non-recursive-term UNION [ALL] recursive-term",
                position=at,
            )
        query = cte.query
        if query.order or query.limit is not None or query.offset is not None or query.ctes:
            raise FeatureNotSupported(
                "ORDER BY, LIMIT, OFFSET or WITH in a recursive query are not supported",
                position=at,
            )
        if _names(body.left, cte.name):
            raise InvalidRecursion(
                f"recursive reference to query {cte.name!r} must not appear within its"
                " non-recursive term",
                position=body.left.at,
            )
        left = _renamed(self.bind_query(body.left, scope), cte.columns, cte.name, at)
        inner = Scope(scope.parent, ctes=dict(scope.ctes))
        columns = tuple(replace(c, origin=None, nullable=True) for c in left.columns)
        inner.ctes[cte.name] = KnownCte(number, columns)
        right = self.bind_open(body.right, inner)
        self._check_recursive(right, number, cte)
        if len(left.columns) != len(right.columns):
            raise SyntaxInvalid(
                "each UNION query must have the same number of columns", position=body.right.at
            )
        for n, (a, b) in enumerate(zip(left.columns, right.columns, strict=True), 1):
            known = [kind for kind in (a.kind, b.kind) if kind != OPEN]
            if bare(common_type(known, body.right.at, "UNION")) != bare(a.kind):
                raise WrongType(
                    f"recursive query {cte.name!r} column {n} has type {a.kind} in non-recursive"
                    f" term but type {b.kind} overall; CAST the non-recursive term",
                    position=body.left.at,
                )
        right = self.as_kinds(right, [c.kind for c in left.columns], body.right.at)
        if not body.every:
            for column in columns:  # SQLite finds equal rows by itself here
                _check_grouped(column.kind, "INTERSECT", at)
        return BoundQuery(columns, BoundSet("union", body.every, left, right))

    def _check_recursive(self, right: BoundQuery, number: int, cte: tree.Cte) -> None:
        body = right.body

        def refuse(sentence: str) -> NoReturn:
            raise InvalidRecursion(
                f"recursive reference to query {cte.name!r} must not appear {sentence}",
                position=cte.at,
            )

        mentions = [n for n in walk(right) if isinstance(n, CteSource) and n.cte == number]
        if len(mentions) != 1:
            refuse("more than once")
        if not isinstance(body, BoundSelect) or body.source is None:
            raise FeatureNotSupported(
                "a recursive term that is no plain SELECT is not supported", position=cte.at
            )
        if not any(n is mentions[0] for n in _plain_sources(body.source)):
            refuse("within a subquery or an outer join")
        if body.aggregated or any(isinstance(n, Aggregate) for n in walk(body)):
            raise InvalidRecursion(
                "aggregate functions are not allowed in a recursive query's recursive term",
                position=cte.at,
            )
        if body.distinct is not None or right.order or right.limit or right.offset or right.ctes:
            raise FeatureNotSupported(
                "DISTINCT, ORDER BY, LIMIT or WITH in a recursive term are not supported",
                position=cte.at,
            )

    # ---------------------------------------------------------- FROM

    def bind_source(
        self, source: tree.Source, scope: Scope, before: Names
    ) -> tuple[BoundSource, Names]:
        """`before`: what LATERAL may see."""
        if self._relations > RELATIONS_MAX * 4:
            raise FeatureNotSupported("too many tables in one statement", position=source.at)
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
        cte = scope.cte(source.name)
        relation = self.new_relation()
        if cte is not None:
            columns = _fields(relation, cte.columns)
            named = _with_names(columns, source.columns, alias, source.at)
            return CteSource(relation, cte.number, len(columns)), Names([(alias, named)], named)
        descriptor = self.descriptor(source.name, source.at)
        found: list[tuple[str, Bound]] = list(table_fields(descriptor, relation))
        named = _with_names(found, source.columns, alias, source.at)
        return TableSource(relation, descriptor, alias), Names([(alias, named)], named)

    def _query_source(
        self, source: tree.QuerySource, scope: Scope, before: Names
    ) -> tuple[BoundSource, Names]:
        # A query in FROM sees what is outside of this one, not the tables beside it.
        parent = Scope(scope.parent, ctes=scope.ctes)
        if source.lateral:
            parent.siblings = before
        query = self.bind_query(source.query, parent)
        scope.correlated = scope.correlated or query.correlated
        relation = self.new_relation()
        columns = _fields(relation, query.columns)
        named = _with_names(columns, source.columns, source.alias, source.at)
        return SubSource(relation, query), Names([(source.alias, named)], named)

    def _call_source(
        self, source: tree.CallSource, scope: Scope, before: Names
    ) -> tuple[BoundSource, Names]:
        call = source.call
        if call.name != "generate_series":
            raise FeatureNotSupported(f"{call.name}() in FROM is not supported", position=source.at)
        plain = not (call.star or call.distinct or call.order or call.filter or call.over)
        if source.ordinality or not plain:
            raise FeatureNotSupported("WITH ORDINALITY is not supported", position=source.at)
        inner = Scope(scope.parent, before, ctes=scope.ctes)
        expressions = Expressions(self, inner)
        expressions.place = "functions in FROM"
        parts = [expressions.bind(node) for node in call.arguments]
        if not 2 <= len(parts) <= 3:
            raise UnknownFunction(
                f"function generate_series of {len(parts)} arguments does not exist",
                position=call.at,
            )
        kind = self.typing.common(parts, call.at, "generate_series")
        kind = Type("integer") if kind in (OPEN, Type("smallint")) else kind
        if kind.name not in ("integer", "bigint"):
            raise FeatureNotSupported(
                f"generate_series over {kind} is not supported: over integers it is",
                position=call.at,
            )
        parts = [self.typing.brought(part, kind, call.at) for part in parts]
        relation = self.new_relation()
        alias = source.alias or "generate_series"
        columns: list[tuple[str, Bound]] = [(alias, Field(relation, "value", kind, False))]
        named = _with_names(columns, source.columns, alias, source.at)
        return SeriesSource(relation, tuple(parts), False), Names([(alias, named)], named)

    def _join(self, source: tree.Join, scope: Scope, before: Names) -> tuple[BoundSource, Names]:
        left, mine = self.bind_source(source.left, scope, before)
        visible = before.beside(mine, source.at)
        right, theirs = self.bind_source(source.right, scope, visible)
        both = mine.beside(theirs, source.at)
        if source.kind in ("right", "full") and _depends(right, left):
            raise FeatureNotSupported(
                "a function over columns of the other side of RIGHT or FULL JOIN is not supported",
                position=source.at,
            )
        using = source.using
        if source.natural:
            names = [name for name, _ in theirs.columns]
            using = tuple(name for name, _ in mine.columns if name in names)
        condition: Bound | None = None
        if source.condition is not None:
            inner = Scope(scope.parent, both, ctes=scope.ctes)
            expressions = Expressions(self, inner)
            expressions.place = "JOIN conditions"
            condition = expressions.condition(source.condition, "JOIN/ON")
            scope.correlated = scope.correlated or inner.correlated
        merged: list[tuple[str, Bound]] = []
        tests: list[Bound] = []
        for name in using or ():
            a, b = (
                self._using(name, mine, source, "left"),
                self._using(name, theirs, source, "right"),
            )
            test = self.typing.compared("=", a, b, source.at)
            tests.append(test)
            kind = common_type([a.kind, b.kind], source.at, "JOIN/USING")
            a, b = (self.typing.brought(part, kind, source.at) for part in (a, b))
            full = Native("coalesce", (a, b), kind)
            merged.append(
                (name, full if source.kind == "full" else b if source.kind == "right" else a)
            )
        if tests:
            condition = tests[0] if len(tests) == 1 else Native("and", tuple(tests), tests[0].kind)
        if source.kind in ("right", "full"):
            mine = mine.as_nullable()
        if source.kind in ("left", "full"):
            theirs = theirs.as_nullable()
        tables = mine.tables + theirs.tables
        rest = [(n, b) for n, b in mine.columns + theirs.columns if n not in (using or ())]
        kind_of_join = "cross" if condition is None and source.kind == "inner" else source.kind
        made = JoinSource(kind_of_join, left, right, condition)
        return made, Names(tables, merged + rest)

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


class _Select:
    """One SELECT with the ORDER BY that belongs to it."""

    def __init__(
        self, binder: Binder, select: tree.Select, query: tree.Query, outer: Scope
    ) -> None:
        self._binder = binder
        self._select = select
        self._query = query
        self.scope = Scope(outer.parent, ctes=outer.ctes)
        # Names of WITH are found through the scope; what is outside of the query is its parent.
        self._expressions = Expressions(binder, self.scope)

    def bound(self) -> BoundQuery:
        select, expressions = self._select, self._expressions
        source: BoundSource | None = None
        if select.source is not None:
            source, self.scope.names = self._binder.bind_source(select.source, self.scope, Names())
        for name, window in select.windows:
            expressions.windows[name] = window
        expressions.place = "WHERE"
        where = None if select.where is None else expressions.condition(select.where, "WHERE")
        self.scope.mentions.clear()
        expressions.place = ""
        outputs, names = self._outputs()
        expressions.place = "GROUP BY"
        mentions = len(self.scope.mentions)
        group = self._group(outputs, names)
        del self.scope.mentions[mentions:]
        expressions.place = "HAVING"
        having = None if select.having is None else expressions.condition(select.having, "HAVING")
        expressions.place = "ORDER BY"
        order = self._order(outputs, names)
        distinct = self._distinct(outputs, names, order)
        seen = [*outputs, *(key.value for key in order), *([] if having is None else [having])]
        aggregated = select.grouped or having is not None or any(map(has_aggregate, seen))
        if aggregated:
            self._check_grouped(seen, group, source)
        outputs = [self._typed(o) for o in outputs]
        columns = tuple(
            Column(name, output.kind, _origin(output), _nullable(output))
            for name, output in zip(names, outputs, strict=True)
        )
        body = BoundSelect(tuple(outputs), source, where, group, aggregated, having, distinct)
        return BoundQuery(columns, body, order, correlated=self.scope.correlated)

    def _typed(self, output: Bound) -> Bound:
        if isinstance(output, Slot):
            return Slot(output.number, self._binder.typing.kind_of(output))
        return output

    def _outputs(self) -> tuple[list[Bound], list[str]]:
        outputs: list[Bound] = []
        names: list[str] = []
        for target in self._select.targets:
            node = target.node
            if isinstance(node, tree.Star):
                for name, bound in self._star(node):
                    outputs.append(bound)
                    names.append(name)
                continue
            outputs.append(self._expressions.bind(node))
            names.append(target.label or label_of(node))
        if len(outputs) > COLUMNS_MAX:
            raise SyntaxInvalid(
                f"target lists can have at most {COLUMNS_MAX} entries", position=self._select.at
            )
        return outputs, names

    def _star(self, node: tree.Star) -> list[tuple[str, Bound]]:
        if self._select.source is None:
            raise SyntaxInvalid("SELECT * with no tables specified is not valid", position=node.at)
        scope = self.scope
        found = scope.table(node.table, node.at) if node.table else scope.names.columns
        for _, bound in found:
            for part in walk(bound):
                if isinstance(part, Field):
                    scope.mentions.append((part, node.at))
        return list(found)

    # ---------------------------------------------------------- GROUP BY

    def _group(self, outputs: list[Bound], names: list[str]) -> tuple[Bound, ...]:
        made: list[Bound] = []
        for node in self._select.group:
            if isinstance(node, tree.RowOf):
                parts = [self._group_part(item, outputs, names) for item in node.items]
            else:
                parts = [self._group_part(node, outputs, names)]
            for part, at in ((p, node.at) for p in parts):
                if has_aggregate(part):
                    raise GroupingError(
                        "aggregate functions are not allowed in GROUP BY", position=at
                    )
                if has_window(part):
                    raise WindowingError(
                        "window functions are not allowed in GROUP BY", position=at
                    )
                part = self._binder.typing.settled(part, at)
                _check_grouped(part.kind, "GROUP BY", at)
                made.append(part)
        return tuple(made)

    def _group_part(self, node: tree.Node, outputs: list[Bound], names: list[str]) -> Bound:
        """A bare name is a column of FROM first, then one of the result."""
        number = _number_of(node, len(outputs), "GROUP BY")
        if number is not None:
            return outputs[number]
        if isinstance(node, tree.Name) and len(node.parts) == 1:
            inside = any(name == node.parts[0] for name, _ in self.scope.names.columns)
            if not inside and node.parts[0] in names:
                return self._output_named(node, outputs, names)
        return self._expressions.bind(node)

    def _output_named(self, node: tree.Name, outputs: list[Bound], names: list[str]) -> Bound:
        found = [o for o, name in zip(outputs, names, strict=True) if name == node.parts[0]]
        if any(other != found[0] for other in found):
            raise _ambiguous_order(node)
        return found[0]

    def _check_grouped(
        self, parts: list[Bound], group: tuple[Bound, ...], source: BoundSource | None
    ) -> None:
        """Every column is grouped, inside an aggregate, or follows from a grouped primary key."""
        free = _determined(group, source)
        own = {
            part.relation
            for _, columns in self.scope.names.tables
            for _, b in columns
            for part in walk(b)
            if isinstance(part, Field)
        }
        wrong: list[Field] = []

        def enter(node: object) -> bool:
            if isinstance(node, Aggregate) and node.over is None:
                return False
            return node not in group if isinstance(node, Bound) else True

        for part in parts:
            for node in walk(part, enter):
                mine = isinstance(node, Field) and node.relation in own - free
                if mine and node not in group:
                    wrong.append(node)
        if not wrong:
            return
        places = [at for field, at in self.scope.mentions if field in wrong]
        raise GroupingError(
            "a column must appear in the GROUP BY clause or be used in an aggregate function",
            position=min(places, default=self._select.at),
        )

    # ---------------------------------------------------------- ORDER BY and DISTINCT

    def _order(self, outputs: list[Bound], names: list[str]) -> tuple[Key, ...]:
        made = []
        for key in self._query.order:
            value = self._order_part(key.node, outputs, names)
            value = self._as_output(value, outputs)
            made.append(Key(value, key.descending, key.first))
        return tuple(made)

    def _order_part(self, node: tree.Node, outputs: list[Bound], names: list[str]) -> Bound:
        """A bare name is a column of the result first, then one of FROM."""
        number = _number_of(node, len(outputs))
        if number is not None:
            part = outputs[number]
        elif isinstance(node, tree.Name) and len(node.parts) == 1 and node.parts[0] in names:
            part = self._output_named(node, outputs, names)
        else:
            part = self._expressions.bind(node)
        if part not in outputs:
            part = self._binder.typing.settled(part, node.at)
        if part.kind != OPEN:
            sortable(part, node.at)
        if self._select.distinct == () and part not in outputs:
            raise InvalidColumnReference(
                "for SELECT DISTINCT, ORDER BY expressions must appear in select list",
                position=node.at,
            )
        return part

    def _as_output(self, part: Bound, outputs: list[Bound]) -> Bound:
        return Output(outputs.index(part), part.kind) if part in outputs else part

    def _distinct(
        self, outputs: list[Bound], names: list[str], order: tuple[Key, ...]
    ) -> tuple[Bound, ...] | None:
        nodes = self._select.distinct
        if nodes is None:
            return None
        if not nodes:
            for output in outputs:
                if output.kind != OPEN:
                    _check_grouped(output.kind, "DISTINCT", self._select.at)
            return ()
        parts = [self._order_part(node, outputs, names) for node in nodes]
        made = tuple(self._as_output(part, outputs) for part in parts)
        first = [key.value for key in order[: len(set(made))]]
        if order and not (
            set(first) <= set(made) and len(set(first)) == min(len(order), len(set(made)))
        ):
            raise InvalidColumnReference(
                "SELECT DISTINCT ON expressions must match initial ORDER BY expressions",
                position=nodes[0].at,
            )
        return made


# -------------------------------------------------------------- parts


def table_fields(descriptor: Descriptor, relation: int) -> list[tuple[str, Field]]:
    """Public columns in the order of their making."""
    return [
        (
            name,
            Field(
                relation,
                f"c{column.element_id}",
                column.type,
                column.nullable,
                Origin(descriptor.table_id, column.element_id),
            ),
        )
        for name, column in descriptor.by_name.items()
    ]


def _fields(relation: int, columns: tuple[Column, ...]) -> list[tuple[str, Bound]]:
    return [
        (c.name, Field(relation, f"o{n}", c.kind, c.nullable, c.origin))
        for n, c in enumerate(columns)
    ]


def _with_names(
    columns: list[tuple[str, Bound]], names: tuple[str, ...], alias: str, at: int
) -> list[tuple[str, Bound]]:
    if len(names) > len(columns):
        raise InvalidColumnReference(
            f"table {alias!r} has {len(columns)} columns available but {len(names)} columns"
            " specified",
            position=at,
        )
    return [
        (names[n] if n < len(names) else name, bound) for n, (name, bound) in enumerate(columns)
    ]


def _renamed(query: BoundQuery, names: tuple[str, ...], alias: str, at: int) -> BoundQuery:
    if len(names) > len(query.columns):
        raise InvalidColumnReference(
            f"WITH query {alias!r} has {len(query.columns)} columns available but {len(names)}"
            " columns specified",
            position=at,
        )
    columns = tuple(
        replace(c, name=names[n]) if n < len(names) else c for n, c in enumerate(query.columns)
    )
    return replace(query, columns=columns)


def _number_of(node: tree.Node, width: int, word: str = "ORDER BY") -> int | None:
    """ORDER BY 2 → 1. Raises InvalidColumnReference."""
    if not isinstance(node, tree.Constant) or node.kind == "null":
        return None
    if node.kind != "number" or not node.text.lstrip("-").isdecimal():
        raise SyntaxInvalid(f"non-integer constant in {word}", position=node.at)
    number = int(node.text)
    if not 1 <= number <= width:
        raise InvalidColumnReference(
            f"{word} position {number} is not in select list", position=node.at
        )
    return number - 1


def _ambiguous_order(node: tree.Name) -> Refused:
    return AmbiguousColumn(f"{node.parts[0]!r} is ambiguous", position=node.at)


def _check_grouped(kind: Type, word: str, at: int) -> None:
    """Values that are equal to PostgreSQL must be equal to SQLite where it looks for equal rows."""
    if kind.name in KEYED and kind.scale is None and word in ("INTERSECT", "EXCEPT"):
        raise FeatureNotSupported(
            f"{word} over numeric without a scale is not supported: CAST it to numeric(p, s)",
            position=at,
        )
    if kind.name not in KEYED:
        sortable(Value(kind, None), at)


def _origin(bound: Bound) -> Origin | None:
    return bound.origin if isinstance(bound, Field) else None


def _nullable(bound: Bound) -> bool:
    if isinstance(bound, Field):
        return bound.nullable
    return not (isinstance(bound, Aggregate) and bound.name == "count")


def _determined(group: tuple[Bound, ...], source: BoundSource | None) -> set[int]:
    """Tables whose whole primary key is grouped."""
    found = set()
    for node in walk(source) if source is not None else ():
        if isinstance(node, TableSource):
            key = {f"c{e}" for e in node.descriptor.primary_key}
            grouped = {
                g.name for g in group if isinstance(g, Field) and g.relation == node.relation
            }
            if key and key <= grouped:
                found.add(node.relation)
    return found


def _plain_sources(source: BoundSource) -> list[BoundSource]:
    """Those that no outer join may leave out."""
    if not isinstance(source, JoinSource):
        return [source]
    left = _plain_sources(source.left) if source.kind not in ("right", "full") else []
    right = _plain_sources(source.right) if source.kind not in ("left", "full") else []
    return left + right


def _depends(source: BoundSource, other: BoundSource) -> bool:
    """Has `source` a function over columns of `other`?"""
    theirs = {n.relation for n in walk(other) if hasattr(n, "relation")}
    series = [node for node in walk(source) if isinstance(node, SeriesSource)]
    return any(relations_in(node) & theirs for node in series)


def _names(node: object, name: str) -> bool:
    """Does a tree mention a table of that name?"""
    if isinstance(node, tree.TableName):
        return node.name == name
    if isinstance(node, tuple):
        return any(_names(item, name) for item in node)
    fields = getattr(type(node), "__dataclass_fields__", None)
    return fields is not None and any(_names(getattr(node, f), name) for f in fields)
