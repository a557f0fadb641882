"""What an expression says of arrays → a bound one: ARRAY[…], ARRAY(…), a[1], ANY and ALL over an
array, and functions that give rows."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from leasehold.model.errors import (
    FeatureNotSupported,
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
from leasehold.sql.binding.typing import Typing, as_key, known_or_none, without_length
from leasehold.sql.functions.aggregates.aggregates import array_query
from leasehold.sql.functions.arrays.array import (
    LETTER_OF_NAME,
    array_slice,
    constructor,
    subscript,
)
from leasehold.sql.functions.function import BOOLEAN, INTEGER, unchanged
from leasehold.sql.functions.registry import SET_NAMES, operator_for, set_for
from leasehold.sql.syntax import tree
from leasehold.sql.syntax.positions import refused_at
from leasehold.sql.syntax.types import check_items
from leasehold.values.arrays import refuse_dimensions, stored_form
from leasehold.values.catalog_types import NAME
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


def bind_array(self: Expressions, node: tree.ArrayOf, target: Type | None = None) -> Bound:
    """ARRAY[…]; `target`: the type of array that it is cast to, which each item is brought to."""
    check_items(node, target)
    parts = [self.bind(item) for item in node.items]
    if target is None:
        places = [item.at for item in node.items]
        element, parts = self.typing.unify(parts, node.at, "ARRAY", places)
    else:
        found = element_of(target)
        assert found is not None, target
        element = found
        pairs = zip(parts, node.items, strict=True)
        parts = [self.typing.cast(part, element, item.at) for part, item in pairs]
    if element_of(element):
        refuse_dimensions(node.at)
    constants = [part.value for part in parts if isinstance(part, Value)]
    if len(constants) == len(parts):
        return Value(array_of(element), stored_form(constants))
    return Apply(constructor(without_length(element)), tuple(parts), array_of(element))


def bind_array_query(self: Expressions, node: tree.ArrayQuery) -> Bound:
    query = self.queries.bind_query(node.query, self.scope)
    if len(query.columns) != 1:
        raise WrongType("subquery must return only one column", position=node.at)
    kind = query.columns[0].kind
    if element_of(kind):
        refuse_dimensions(node.at)
    relation = self.queries.new_relation()
    made = array_query(without_length(kind))
    field = Field(relation, "o0", kind)
    output = Aggregate("", (field,), array_of(kind), function=made)
    body = BoundSelect((output,), SubSource(relation, query), None, (), True)
    whole = BoundQuery((Column("array", array_of(kind)),), body, correlated=query.correlated)
    return Scalar(whole, array_of(kind), single=True)


# ---------------------------------------------------------- taken apart


def bind_subscript(self: Expressions, node: tree.Subscript) -> Bound:
    if isinstance(node.array, tree.Subscript):
        refuse_dimensions(node.at)
    array = self.bind(node.array)
    kind = self.typing.kind_of(array)
    if kind == NAME and node.low is not None and not node.is_slice:
        place = self.typing.convert(self.bind(node.low), INTEGER, node.low.at, "assignment")
        return Apply(LETTER_OF_NAME, (array, place), LETTER_OF_NAME.result)
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

    def bound(found: tree.Node | None, otherwise: int) -> Bound:
        if found is None:
            return Value(INTEGER, otherwise)
        return self.typing.convert(self.bind(found), INTEGER, found.at, "assignment")

    low = bound(node.low, 1)
    if node.is_slice:
        high = bound(node.high, (1 << 31) - 1)
        return Apply(array_slice(without_length(kind)), (array, low, high), kind)
    return Apply(subscript(without_length(kind)), (array, low), element_kind(array))


def bind_over_array(self: Expressions, node: tree.OverArray) -> Bound:
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
        array = typing.convert(array, kind, node.array.at)
    element = element_of(kind)
    if element is None:
        raise WrongObject("op ANY/ALL (array) requires array on right side", position=node.at)
    relation = self.queries.new_relation()
    source = ElementsSource(relation, (array,), members=True)
    field = Field(relation, "v0", element)
    member = (node.sign, node.every) in (("=", False), ("<>", True))
    common = typing.comparison_type("=", operand, field, node.at) if member else None
    if common is not None:
        output = as_key(typing.convert(field, common, node.at))
        operand = as_key(typing.convert(operand, common, node.at))
        return Member((operand,), _rows(output, source), node.every, BOOLEAN)
    compared = self.queries.new_relation()
    test = typing.test(node.sign, operand, Field(compared, "o0", element), node.at)
    return Compared(test, _rows(field, source), compared, node.every, BOOLEAN)


def bind_in_array(self: Expressions, operand: Bound, items: list[Value], kind: Type) -> Bound:
    """Return `operand` IN constants, all of the type `kind`, as IN over one array of them, which is
    one value of the statement."""
    array = Value(array_of(without_length(kind)), stored_form([item.value for item in items]))
    relation = self.queries.new_relation()
    source = ElementsSource(relation, (array,), members=True)
    output = as_key(Field(relation, "v0", without_length(kind)))
    return Member((as_key(operand),), _rows(output, source), False, BOOLEAN)


def _rows(output: Bound, source: BoundSource) -> BoundQuery:
    body = BoundSelect((output,), source)
    return BoundQuery((Column("unnest", output.kind),), body)


def _element_for(typing: Typing, sign: str, operand: Bound, at: int) -> Type:
    """Return the element type of an array whose type is open: what the operator takes on its
    right."""
    kind = typing.kind_of(operand)
    found = typing.comparison_type(sign, operand, Value(OPEN, None), at)
    if found is not None and sign in ("=", "<>", "<", "<=", ">", ">="):
        return without_length(found)
    with refused_at(at):
        return without_length(operator_for(sign, known_or_none(kind), None).arguments[1])


# ---------------------------------------------------------- functions that give rows


def bind_set(typing: Typing, name: str, parts: list[Bound], at: int) -> Bound:
    """The array whose elements are the rows."""
    kinds = [typing.kind_of(part) for part in parts]
    with refused_at(at):
        function = set_for(name, tuple(known_or_none(kind) for kind in kinds))
    if function.compute is unchanged:
        return parts[0]
    return typing.call(function, parts, at)


_COMPUTED_BY_NEED: Final = frozenset({"coalesce"})
"""What looks at its arguments one after the other, as CASE does."""


def find_sets(node: tree.Node) -> tuple[tree.Call, ...]:
    """Return the calls that give rows in a column of a SELECT, in their order: of whatever is
    computed with each row's value, and not whether it is."""
    match node:
        case tree.Call() if node.name in SET_NAMES:
            return (node,)
        case tree.Call() if node.name not in _COMPUTED_BY_NEED and node.filter is None:
            parts: tuple[tree.Node, ...] = node.arguments
        case tree.Binary():
            parts = (node.left, node.right)
        case tree.Unary() | tree.Cast() | tree.Collated():
            parts = (node.operand,)
        case _:
            parts = ()
    return tuple(found for part in parts for found in find_sets(part))


class Sets:
    """Functions that give rows among what a SELECT gives: they go side by side, as in PostgreSQL,
    each row of FROM as often as the longest of them is. `allowed`: the calls that may be one."""

    def __init__(self) -> None:
        self.allowed: tuple[tree.Call, ...] = ()
        self._arrays: list[Bound] = []
        self._relation = 0
        self._at = 0

    def field(self, expressions: Expressions, node: tree.Call) -> Bound:
        if not any(node is each for each in self.allowed):
            raise FeatureNotSupported(
                f"{node.name} is supported in FROM, and among the columns of a SELECT, there not"
                " within CASE, COALESCE, conditions or another of its kind",
                position=node.at,
            )
        if len(self._arrays) == SIDE_BY_SIDE_MAX:
            raise FeatureNotSupported(
                f"more than {SIDE_BY_SIDE_MAX} functions that give rows in one SELECT are not"
                " supported: put some of them into a query in FROM",
                position=node.at,
            )
        if not self._arrays:
            self._relation = expressions.queries.new_relation()
            self._at = node.at
        parts = [expressions.bind(argument) for argument in node.arguments]
        array = bind_set(expressions.typing, node.name, parts, node.at)
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
