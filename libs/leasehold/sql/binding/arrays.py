"""What an expression says of arrays → a bound one: ARRAY[…], ARRAY(…), a[1], ANY and ALL over an
array, and functions that give rows."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from leasehold.model.errors import (
    FeatureNotSupported,
    IndeterminateType,
    WrongObject,
    WrongType,
)
from leasehold.sql.binding.bound_tree import (
    OPEN,
    Aggregate,
    Apply,
    Bound,
    BoundQuery,
    BoundSelect,
    BoundSource,
    Column,
    Compared,
    ElementsSource,
    Field,
    JoinSource,
    Member,
    Scalar,
    SubSource,
    Value,
)
from leasehold.sql.binding.typing import Typing, bare, keyed, opened
from leasehold.sql.functions.aggregates.aggregates import array_query
from leasehold.sql.functions.arrays.array import array_slice, constructor, subscript
from leasehold.sql.functions.function import BOOLEAN, INTEGER, unchanged
from leasehold.sql.functions.registry import operator_for, set_for
from leasehold.sql.syntax import tree
from leasehold.sql.syntax.positions import refused_at
from leasehold.values.arrays import stored_form
from leasehold.values.types import Type, array_of, element_of

if TYPE_CHECKING:
    from leasehold.sql.binding.expressions import Expressions

SIDE_BY_SIDE_MAX: Final = 32


def element_kind(array: Bound) -> Type:
    """Raises no error: `array` is one."""
    element = element_of(array.kind)
    assert element is not None, array
    return element


# ---------------------------------------------------------- made


def array_of_items(self: Expressions, node: tree.ArrayOf, target: Type | None = None) -> Bound:
    """ARRAY[…]; `target`: the type of array that it is cast to, which each item is brought to."""
    parts = [self.bind(item) for item in node.items]
    if target is None and not parts:
        raise IndeterminateType(
            "cannot determine type of empty array: CAST it, as in ARRAY[]::integer[]",
            position=node.at,
        )
    if target is None:
        places = [item.at for item in node.items]
        element, parts = self.typing.unified(parts, node.at, "ARRAY", places)
    else:
        found = element_of(target)
        assert found is not None, target
        element = found
        pairs = zip(parts, node.items, strict=True)
        parts = [self.typing.cast(part, element, item.at) for part, item in pairs]
    if element_of(element):
        raise _dimensions(node.at)
    constants = [part.value for part in parts if isinstance(part, Value)]
    if len(constants) == len(parts):
        return Value(array_of(element), stored_form(constants))
    return Apply(constructor(bare(element)), tuple(parts), array_of(element))


def array_of_query(self: Expressions, node: tree.ArrayQuery) -> Bound:
    query = self.queries.bind_query(node.query, self.scope)
    if len(query.columns) != 1:
        raise WrongType("subquery must return only one column", position=node.at)
    kind = query.columns[0].kind
    if element_of(kind):
        raise _dimensions(node.at)
    relation = self.queries.new_relation()
    made = array_query(bare(kind))
    field = Field(relation, "o0", kind)
    output = Aggregate("", (field,), array_of(kind), function=made)
    body = BoundSelect((output,), SubSource(relation, query), None, (), True)
    whole = BoundQuery((Column("array", array_of(kind)),), body, correlated=query.correlated)
    return Scalar(whole, array_of(kind), single=True)


def _dimensions(at: int) -> FeatureNotSupported:
    return FeatureNotSupported("arrays of more than one dimension are not supported", position=at)


# ---------------------------------------------------------- taken apart


def subscripted(self: Expressions, node: tree.Subscript) -> Bound:
    if isinstance(node.array, tree.Subscript):
        raise _dimensions(node.at)
    array = self.bind(node.array)
    kind = self.typing.kind_of(array)
    if element_of(kind) is None:
        if kind.name == "jsonb":
            raise FeatureNotSupported(
                "a subscript of jsonb is not supported: -> and #> are", position=node.at
            )
        raise WrongType(
            f"cannot subscript type {kind}: it is no array (CAST it, or put parentheses around"
            " an expression)",
            position=node.at,
        )

    def place(found: tree.Node | None, otherwise: int) -> Bound:
        if found is None:
            return Value(INTEGER, otherwise)
        return self.typing.brought(self.bind(found), INTEGER, found.at, "assignment")

    low = place(node.low, 1)
    if node.is_slice:
        high = place(node.high, (1 << 31) - 1)
        return Apply(array_slice(bare(kind)), (array, low, high), kind)
    return Apply(subscript(bare(kind)), (array, low), element_kind(array))


def over_array(self: Expressions, node: tree.OverArray) -> Bound:
    """Bind `operand` `sign` ANY|ALL (array): a comparison with the array's elements as with a
    query's rows."""
    if isinstance(node.operand, tree.RowOf):
        raise FeatureNotSupported(
            "a row compared with an array's elements is not supported", position=node.at
        )
    typing = self.typing
    operand, array = self.bind(node.operand), self.bind(node.array)
    kind = typing.kind_of(array)
    if kind == OPEN:
        kind = array_of(_element_for(typing, node.sign, operand, node.at))
        array = typing.brought(array, kind, node.array.at)
    element = element_of(kind)
    if element is None:
        raise WrongObject("op ANY/ALL (array) requires array on right side", position=node.at)
    relation = self.queries.new_relation()
    source = ElementsSource(relation, (array,), members=True)
    field = Field(relation, "v0", element)
    member = (node.sign, node.every) in (("=", False), ("<>", True))
    common = typing.comparison_type("=", operand, field, node.at) if member else None
    if common is not None:
        output = keyed(typing.brought(field, common, node.at))
        operand = keyed(typing.brought(operand, common, node.at))
        return Member((operand,), _rows(output, source), node.every, BOOLEAN)
    compared = self.queries.new_relation()
    test = typing.tested(node.sign, operand, Field(compared, "o0", element), node.at)
    return Compared(test, _rows(field, source), compared, node.every, BOOLEAN)


def among(self: Expressions, operand: Bound, items: list[Value], kind: Type) -> Bound:
    """Return `operand` IN constants, all of the type `kind`, as IN over one array of them, which is
    one value of the statement."""
    array = Value(array_of(bare(kind)), stored_form([item.value for item in items]))
    relation = self.queries.new_relation()
    source = ElementsSource(relation, (array,), members=True)
    output = keyed(Field(relation, "v0", bare(kind)))
    return Member((keyed(operand),), _rows(output, source), False, BOOLEAN)


def _rows(output: Bound, source: BoundSource) -> BoundQuery:
    body = BoundSelect((output,), source)
    return BoundQuery((Column("unnest", output.kind),), body)


def _element_for(typing: Typing, sign: str, operand: Bound, at: int) -> Type:
    """Return the element type of an array whose type is open: what the operator takes on its
    right."""
    kind = typing.kind_of(operand)
    found = typing.comparison_type(sign, operand, Value(OPEN, None), at)
    if found is not None and sign in ("=", "<>", "<", "<=", ">", ">="):
        return bare(found)
    with refused_at(at):
        return bare(operator_for(sign, opened(kind), None).arguments[1])


# ---------------------------------------------------------- functions that give rows


def set_of(typing: Typing, name: str, parts: list[Bound], at: int) -> Bound:
    """The array whose elements are the rows."""
    kinds = [typing.kind_of(part) for part in parts]
    with refused_at(at):
        function = set_for(name, tuple(opened(kind) for kind in kinds))
    if function.compute is unchanged:
        return parts[0]
    return typing.called(function, parts, at)


class Sets:
    """Functions that give rows among what a SELECT gives: they go side by side, as in PostgreSQL,
    each row of FROM as often as the longest of them is. `allowed`: the expression that may be one.
    """

    def __init__(self) -> None:
        self.allowed: tree.Node | None = None
        self._arrays: list[Bound] = []
        self._relation = 0
        self._at = 0

    def field(self, expressions: Expressions, node: tree.Call) -> Bound:
        if node is not self.allowed:
            raise FeatureNotSupported(
                f"{node.name} is supported in FROM, and alone among the columns of a SELECT",
                position=node.at,
            )
        if len(self._arrays) == SIDE_BY_SIDE_MAX:
            raise FeatureNotSupported(
                f"more than {SIDE_BY_SIDE_MAX} functions that give rows", position=node.at
            )
        if not self._arrays:
            self._relation = expressions.queries.new_relation()
            self._at = node.at
        parts = [expressions.bind(argument) for argument in node.arguments]
        array = set_of(expressions.typing, node.name, parts, node.at)
        self._arrays.append(array)
        return Field(self._relation, f"v{len(self._arrays) - 1}", element_kind(array))

    def beside(self, source: BoundSource | None) -> BoundSource | None:
        if not self._arrays:
            return source
        elements = ElementsSource(self._relation, tuple(self._arrays))
        return elements if source is None else JoinSource("cross", source, elements, None)

    def check(self, *, aggregated: bool, windows: bool) -> None:
        """Groups and windows are made before such rows: they would see too many here."""
        if self._arrays and (aggregated or windows):
            raise FeatureNotSupported(
                "a function that gives rows beside an aggregate or a window function is not"
                " supported: put one of them into a query in FROM",
                position=self._at,
            )
