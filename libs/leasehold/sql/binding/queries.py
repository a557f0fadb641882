"""A query's tree → a bound one: VALUES, set operations, types of a result; what stands inside is
bound by `select.py`, `from_clause.py`, `with_clause.py` and `expressions.py`."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from zoneinfo import ZoneInfo

from leasehold.catalog.descriptor import Descriptor
from leasehold.catalog.namespaces import check_schema_of
from leasehold.catalog.schema_names import HIDDEN, PG_TEMP, PUBLIC
from leasehold.model.errors import (
    FeatureNotSupported,
    InvalidColumnReference,
    Refused,
    SyntaxInvalid,
    UnknownColumn,
    UnknownTable,
)
from leasehold.sql.binding.bound_tree import (
    OPEN,
    Bound,
    BoundQuery,
    BoundSelect,
    BoundSet,
    BoundValues,
    Column,
    Field,
    Key,
    Native,
    Output,
    SubSource,
    Value,
)
from leasehold.sql.binding.claims import BoundClaim, bind_claim, rows_of_claim
from leasehold.sql.binding.expressions import Expressions
from leasehold.sql.binding.from_clause import Sources
from leasehold.sql.binding.needed_privileges import Needs
from leasehold.sql.binding.order import ambiguous_order, as_sort_key, check_grouped, number_of
from leasehold.sql.binding.scope import Scope
from leasehold.sql.binding.select import SelectBinder
from leasehold.sql.binding.typing import Typing, common_type
from leasehold.sql.binding.views import FindNamed, Views, no_names
from leasehold.sql.binding.walk import walk
from leasehold.sql.binding.with_clause import Ctes
from leasehold.sql.functions.function import BIGINT, TEXT
from leasehold.sql.syntax import tree
from leasehold.sql.syntax.positions import refused_at
from leasehold.values.catalog_types import REGISTERED
from leasehold.values.enums import Enumeration
from leasehold.values.types import Type, array_of, element_of


class Binder:
    """The binder of one statement. `lookup` returns the descriptor of a table's name, or raises
    UnknownTable, `find_named` the view or the enum type of a name, or None; `types` are those of
    the parameters that are known, by number; `zone` is the session's time zone. `enums`: those that
    it names."""

    def __init__(
        self,
        lookup: Callable[[str], Descriptor],
        types: dict[int, Type],
        zone: ZoneInfo,
        find_named: FindNamed = no_names,
    ) -> None:
        self._lookup = lookup
        self._find_named = find_named
        self.enums: dict[str, Enumeration] = {}
        self.views = Views(self, find_named)
        self.typing = Typing(types, zone)
        self.used: dict[str, Descriptor] = {}
        self.needs = Needs()
        self.sources = Sources(self)
        self.relations = 0
        self.ctes = Ctes(self)
        self.claims: list[tuple[int, BoundClaim]] = []
        """Queries whose rows are claimed, by their number among those of WITH, as far as they have
        no place yet."""

    def new_relation(self) -> int:
        self.relations += 1
        return self.relations

    def descriptor(self, name: str, at: int, schema: str = "") -> Descriptor:
        """Return the table that a name means: by the search path, where temporary ones come first,
        or in the schema public or pg_temp. Raises UnknownTable."""
        named = name in self.used
        found = self._look_up(name, at)
        if schema == PG_TEMP and not found.temporary:
            raise UnknownTable(
                f"relation {f'{schema}.{name}'!r} does not exist", position=at, table=name
            )
        if schema == PUBLIC and found.temporary:
            if not named:
                del self.used[name]
            found = self._look_up(HIDDEN + name, at)
        return found

    def _look_up(self, name: str, at: int) -> Descriptor:
        found = self.used.get(name)
        if found is None:
            with refused_at(at):
                found = self._lookup(name)
            self.used[name] = found
        return found

    def is_temporary(self, name: str) -> bool:
        """Return whether a name means a temporary table, whatever else has it."""
        try:
            return self._lookup(name).temporary
        except Refused:
            return False

    def find_enum(self, name: str) -> Enumeration | None:
        """Return the enum type of a name, None for none. Raises UnknownSchema (3F000)."""
        found = self._find_named(name)
        if not isinstance(found, Enumeration):
            check_schema_of(name, self._find_named)
            return None
        self.enums[name] = found
        return found

    def as_called(self, kind: Type) -> Type:
        """Return a column's type under the name that it has now: a table's version may have been
        made before an enum type got it."""
        if kind.enum is None:
            return kind
        found = self.find_enum(kind.enum.kept_name)
        if found is None or found.name == kind.enum.name:
            return kind
        return replace(kind, enum=replace(kind.enum, name=found.name))

    # ---------------------------------------------------------- queries

    def bind_query(self, query: tree.Query, parent: Scope | None) -> BoundQuery:
        """Bind a query with every column's type known."""
        return self.settle(self.bind_open(query, parent), query.at)

    def bind_open(self, query: tree.Query, parent: Scope | None) -> BoundQuery:
        """Constants of the result may still be open."""
        self.needs.depth += 1
        try:
            visits = query.visits
            if visits is None or not visits.claims:
                return self._bind_open(query, parent)
            bound = self.settle(self._bind_open(replace(query, visits=None), parent), query.at)
            if self.views.within is not None:
                raise FeatureNotSupported(
                    f"{visits.words} with SKIP LOCKED or NOWAIT in a view is not supported",
                    position=visits.at,
                )
            number = self.ctes.new_number()
            self.claims.append((number, bind_claim(bound, visits, self.needs)))
            return rows_of_claim(self.new_relation(), number, bound.columns)
        finally:
            self.needs.depth -= 1

    def _bind_open(self, query: tree.Query, parent: Scope | None) -> BoundQuery:
        outer = Scope(parent)
        ctes = self.ctes.bind(query.ctes, outer)
        body = query.body
        if isinstance(body, tree.Select):
            found = SelectBinder(self, body, query, outer).bind()
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
            ctes=(*ctes, *found.ctes),
            correlated=found.correlated or outer.correlated,
        )

    def show(self, query: BoundQuery, at: int) -> BoundQuery:
        """Return the query as clients get it: what is shown by its name (regclass) is its name
        then."""
        kinds = [_shown_as(column.kind) for column in query.columns]
        made = self.convert_columns(query, kinds, at, "explicit")
        columns = zip(made.columns, query.columns, strict=True)
        return replace(made, columns=tuple(replace(c, kind=old.kind) for c, old in columns))

    def settle(self, query: BoundQuery, at: int) -> BoundQuery:
        """Open columns as text."""
        kinds = [TEXT if c.kind == OPEN else c.kind for c in query.columns]
        return self.convert_columns(query, kinds, at)

    def convert_columns(
        self, query: BoundQuery, kinds: list[Type], at: int, context: str = "implicit"
    ) -> BoundQuery:
        """The same query with its columns brought to these types."""
        if [c.kind for c in query.columns] == kinds:
            return query
        columns = tuple(
            replace(c, kind=kind, origin=c.origin if c.kind == kind else None)
            for c, kind in zip(query.columns, kinds, strict=True)
        )
        brought = self.typing.convert
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
        outer = BoundSelect(fields, SubSource(relation, query))
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
        expressions.clause = word
        part = expressions.bind(node)
        kind = self.typing.kind_of(part)
        if kind != OPEN and kind.name not in ("smallint", "integer", "bigint"):
            part = self.typing.convert(part, BIGINT, node.at, "assignment")
        if any(isinstance(found, Field) for found in walk(part)):
            raise InvalidColumnReference(
                f"argument of {word} must not contain variables", position=node.at
            )
        part = self.typing.convert(part, BIGINT, node.at)
        return Native(word.lower(), (part,), BIGINT)

    def _values(self, body: tree.Values, scope: Scope) -> BoundQuery:
        widths = {len(row) for row in body.rows}
        if len(widths) != 1:
            at = next(r for r in body.rows if len(r) != len(body.rows[0]))[0].at
            raise SyntaxInvalid("VALUES lists must all be the same length", position=at)
        expressions = Expressions(self, scope)
        expressions.clause = "VALUES"
        rows = [[expressions.bind(node) for node in row] for row in body.rows]
        columns: list[Column] = []
        for n in range(widths.pop()):
            cells = [row[n] for row in rows]
            at = body.rows[0][n].at
            kind = self.typing.find_common(cells, at, "VALUES")
            if kind != OPEN:
                for row in rows:
                    row[n] = self.typing.convert(row[n], kind, at)
            columns.append(Column(f"column{n + 1}", kind))
        made = BoundValues(tuple(map(tuple, rows)))
        return BoundQuery(tuple(columns), made, correlated=scope.correlated)

    def _set_operation(self, body: tree.SetOperation, scope: Scope) -> BoundQuery:
        left, right = self.bind_open(body.left, scope), self.bind_open(body.right, scope)
        return self.unite(body, left, right)

    def unite(self, body: tree.SetOperation, left: BoundQuery, right: BoundQuery) -> BoundQuery:
        word = body.word.upper()
        if len(left.columns) != len(right.columns):
            raise SyntaxInvalid(
                f"each {word} query must have the same number of columns", position=body.right.at
            )
        kinds: list[Type] = []
        for a, b in zip(left.columns, right.columns, strict=True):
            kind = common_type([a.kind, b.kind], body.right.at, word)
            kinds.append(TEXT if kind == OPEN else kind)
        left = self.convert_columns(left, kinds, body.left.at)
        right = self.convert_columns(right, kinds, body.right.at)
        if not (body.every and body.word == "union"):
            for kind in kinds:
                check_grouped(kind, word, body.at)
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
            number = number_of(key.node, len(query.columns))
            if number is None and isinstance(key.node, tree.Name) and len(key.node.parts) == 1:
                named = [n for n, c in enumerate(query.columns) if c.name == key.node.parts[0]]
                if len(named) > 1:
                    raise ambiguous_order(key.node)
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
            as_sort_key(Value(TEXT if kind == OPEN else kind, None), key.node.at)
            made.append(Key(Output(number, kind), key.descending, key.first))
        return tuple(made)

    # ---------------------------------------------------------- WITH


def _shown_as(kind: Type) -> Type:
    element = element_of(kind)
    if element is not None and element.name in REGISTERED:
        return array_of(TEXT)
    return TEXT if kind.name in REGISTERED else kind
