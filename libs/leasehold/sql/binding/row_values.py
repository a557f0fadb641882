"""Rows of several values in expressions → a bound one: compared with each other, and taken from a
query's only row."""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING, Any

from leasehold.model.errors import FeatureNotSupported, SyntaxInvalid, UnknownFunction
from leasehold.sql.binding.bound_tree import (
    Apply,
    Bound,
    BoundQuery,
    BoundSelect,
    BoundSource,
    Column,
    ElementsSource,
    Field,
    JoinSource,
    Native,
    Scalar,
    SubSource,
    join_parts,
)
from leasehold.sql.binding.typing import as_key
from leasehold.sql.binding.walk import draws
from leasehold.sql.functions.arrays.array import constructor
from leasehold.sql.functions.function import BOOLEAN, TEXT, Function
from leasehold.sql.syntax import tree
from leasehold.values.arrays import elements_of, stored_form
from leasehold.values.types import Type, array_of

if TYPE_CHECKING:
    from leasehold.sql.binding.expressions import Expressions


def compare_rows(self: Expressions, node: tree.Binary) -> Bound:
    """Bind (a, b) < (c, d), and (a, b) < (query)."""
    left, right = node.left, node.right
    if isinstance(left, tree.RowOf) and isinstance(right, tree.SubQuery) and not right.exists:
        firsts = [self.bind(item) for item in left.items]
        query = self.queries.bind_query(right.query, self.scope)
        if len(query.columns) != len(firsts):
            few = "few" if len(query.columns) < len(firsts) else "many"
            raise SyntaxInvalid(f"subquery has too {few} columns", position=node.at)
        pairs = list(zip(firsts, unpack_row(self, query, node.at), strict=True))
        return bind_row_test(self, node.sign, pairs, node.at)
    if not isinstance(left, tree.RowOf) or not isinstance(right, tree.RowOf):
        raise UnknownFunction(
            f"operator does not exist: record {node.sign} a single value", position=node.at
        )
    if len(left.items) != len(right.items):
        raise SyntaxInvalid("unequal number of entries in row expressions", position=node.at)
    if not left.items:
        raise FeatureNotSupported("cannot compare rows of zero length", position=node.at)
    pairs = [(self.bind(a), self.bind(b)) for a, b in zip(left.items, right.items, strict=True)]
    return bind_row_test(self, node.sign, pairs, node.at)


def bind_row_test(self: Expressions, sign: str, pairs: list[tuple[Bound, Bound]], at: int) -> Bound:
    if sign in ("=", "<>"):
        tests = tuple(self.typing.compare(sign, a, b, at) for a, b in pairs)
        return join_parts("and" if sign == "=" else "or", tests)
    lefts: list[Bound] = []
    rights: list[Bound] = []
    for a, b in pairs:
        kind = self.typing.comparison_type(sign, a, b, at)
        if kind is None:
            raise FeatureNotSupported("rows of these types can't be compared", position=at)
        lefts.append(as_key(self.typing.convert(a, kind, at)))
        rights.append(as_key(self.typing.convert(b, kind, at)))
    # SQLite compares row values as PostgreSQL does, NULLs included.
    return Native(f"row {sign}", (*lefts, *rights), BOOLEAN)


class OnlyRows:
    """The rows of SET (a, b) = (query): the only row of each query stands beside the row that is
    changed, as one value that holds all of its columns, computed once a row."""

    def __init__(self) -> None:
        self._known: list[tuple[tree.Query, list[Bound]]] = []
        self._sources: list[ElementsSource] = []

    def part(self, expressions: Expressions, node: tree.RowPart) -> Bound:
        for query, parts in self._known:
            if query is node.query:
                return parts[node.number]
        parts = self._found(expressions, node)
        self._known.append((node.query, parts))
        return parts[node.number]

    def _found(self, expressions: Expressions, node: tree.RowPart) -> list[Bound]:
        query = expressions.queries.bind_query(node.query, expressions.scope)
        if len(query.columns) != node.width:
            raise SyntaxInvalid(
                "number of columns does not match number of values", position=node.at
            )
        if node.width == 1:
            return [Scalar(query, query.columns[0].kind, single=False)]
        relation = expressions.queries.new_relation()
        row = Apply(constructor(TEXT), (_only_row(expressions, query),), array_of(TEXT))
        self._sources.append(ElementsSource(relation, (row,)))
        return _fields_of(Field(relation, "v0", TEXT), query)

    def beside(self, source: BoundSource | None) -> BoundSource | None:
        for one in self._sources:
            source = one if source is None else JoinSource("cross", source, one, None)
        return source


def unpack_row(self: Expressions, query: BoundQuery, at: int) -> list[Bound]:
    """The values of its only row: NULLs if it has none, 21000 if it has more.

    Each is taken from one value that holds all of them, so that the query is the same for each:
    two that ask for other columns of a query may come to other rows (LIMIT without an order).
    """
    if draws(query) and len(query.columns) > 1:
        raise FeatureNotSupported(
            "several values of a query that changes from call to call are not supported: compute"
            " it in a query in FROM",
            position=at,
        )
    return _fields_of(_only_row(self, query), query)


def _only_row(self: Expressions, query: BoundQuery) -> Bound:
    relation = self.queries.new_relation()
    kinds = tuple(column.kind for column in query.columns)
    fields = tuple(Field(relation, f"o{n}", kind) for n, kind in enumerate(kinds))
    packed = Apply(_row_of(kinds), fields, TEXT)
    body = BoundSelect((packed,), SubSource(relation, query))
    whole = BoundQuery((Column("row", TEXT),), body, correlated=query.correlated)
    return Scalar(whole, TEXT, single=False)


def _fields_of(row: Bound, query: BoundQuery) -> list[Bound]:
    kinds = [column.kind for column in query.columns]
    return [Apply(_field_of(n, kind), (row,), kind) for n, kind in enumerate(kinds)]


@lru_cache(maxsize=256)
def _row_of(kinds: tuple[Type, ...]) -> Function:
    return Function("row_of", kinds, TEXT, lambda *values: stored_form(values), strict=False)


@lru_cache(maxsize=256)
def _field_of(number: int, kind: Type) -> Function:
    def compute(row: str) -> Any:
        return elements_of(row)[number]

    return Function("field_of", (TEXT,), kind, compute)
