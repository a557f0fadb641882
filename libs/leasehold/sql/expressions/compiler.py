"""A tree of an expression → a closure over a row, typed as PostgreSQL does.

Functions, operators and casts are the catalogue's; here is what PostgreSQL has as syntax. What is
not known here is refused (0A000); nothing is ever evaluated as code.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final

from leasehold.catalog.elements import Column
from leasehold.model.errors import (
    CannotCast,
    FeatureNotSupported,
    Refused,
    SyntaxInvalid,
    UndefinedParameter,
    UnknownFunction,
    WrongType,
)
from leasehold.sql.expressions.arrays import (
    compile_array,
    compile_over_array,
    compile_subscript,
)
from leasehold.sql.expressions.closures import (
    Compute,
    all_of,
    any_of,
    chosen,
    constant,
    extreme,
    first,
    negated,
)
from leasehold.sql.expressions.typed import (
    Held,
    Typed,
    call_function,
    cast_part,
    convert,
    fix_zone,
    note_meaning,
    read_constant,
    unify,
    zone_computed_in,
)
from leasehold.sql.functions.function import BOOLEAN, DOUBLE
from leasehold.sql.functions.not_supported import FUNCTIONS as NOT_BUILT
from leasehold.sql.functions.registry import (
    FUNCTION_NAMES,
    cast_for,
    function_for,
    is_type_name,
    operator_for,
)
from leasehold.sql.functions.resolution import nullif_type, number_constant
from leasehold.sql.functions.texts.bytea import random_uuid
from leasehold.sql.syntax import tree
from leasehold.sql.syntax.enum_names import FindEnum, no_enums
from leasehold.sql.syntax.kept import nodes_of
from leasehold.sql.syntax.positions import with_position
from leasehold.sql.syntax.types import type_of
from leasehold.sql.syntax.words import VOLATILE
from leasehold.values.text_io import from_text
from leasehold.values.time_zone import NowInZone
from leasehold.values.types import Type, element_of, order_key_of

DECIDED: Final = frozenset(
    {"now", "gen_random_uuid", "current_timestamp", "current_date", "localtimestamp"}
    | {"localtime", "current_time", "random"}
)
"""Words that change from call to call and can be in a default."""
_WITH_RULES: Final = frozenset({"coalesce", "greatest", "least", "nullif"})
_NO_FUNCTION_OF_ONE_ROW: Final = frozenset(
    {
        *("count", "sum", "avg", "min", "max", "array_agg", "string_agg", "bool_and", "bool_or"),
        *("jsonb_agg", "row_number", "rank", "lag", "lead", "generate_series", "unnest", "nextval"),
        *("random", "grouping", "overlaps"),
    }
)


def check_functions(node: tree.Node) -> None:
    """Looks at names alone, before any type is known. Raises FeatureNotSupported for what gives
    another value each time or is no function of one row, UnknownFunction."""
    for call in nodes_of(node):
        if not isinstance(call, tree.Call):
            continue
        name = call.name
        if name in VOLATILE:
            raise _changing_value(name, call)
        if name in _NO_FUNCTION_OF_ONE_ROW:
            raise FeatureNotSupported(
                f"function {name!r} is not supported in an expression over one row",
                position=call.at,
            )
        known = name in FUNCTION_NAMES or name in _WITH_RULES or is_type_name(name)
        if not known and name in NOT_BUILT:
            raise FeatureNotSupported(f"function {name}: {NOT_BUILT[name]}", position=call.at)
        if not known:
            raise UnknownFunction(f"function {name!r:.80} does not exist", position=call.at)


def _changing_value(name: str, node: tree.Node) -> FeatureNotSupported:
    return FeatureNotSupported(
        f"{name!r} gives another value each time and can't be used here", position=node.at
    )


_NUMBER_BYTES: Final = 4
NOW: Final = -1
SEED: Final = -2
"""In the place of element ids of a row's image: the time in unix µs and the seed of random values,
for expressions that change from call to call."""


def argument(number: int) -> int:
    """Return what stands in the place of an element id where $`number` is."""
    return SEED - number


class Compiler:
    """The compiler of one expression over a row. `resolve` returns the column of a name, or refuses
    it; `table` is what may stand before the dot. `decides`: the row that the closure gets has NOW
    and SEED, so what they make may be used. `kept`: it is a text of a descriptor, in which a number
    with a point is a double unless ::numeric stands behind it, as it was before there was numeric.
    `types` are those of $1, $2 …, which the row has, too (`argument`); `find_enum` knows the enum
    types that it may name."""

    def __init__(
        self,
        resolve: Callable[[str], Column],
        table: str,
        *,
        decides: bool = False,
        kept: bool = False,
        types: Sequence[Type] = (),
        find_enum: FindEnum = no_enums,
    ) -> None:
        self._find_enum = find_enum
        self._resolve = resolve
        self._table = table
        self._decides = decides
        self._kept = kept
        self._types = types
        self._random = 0  # how many random values so far

    def part(self, node: tree.Node) -> Typed:
        """The compiled form of one node of the tree. A refusal has the place of the node that meets
        it."""
        make = self._makers.get(type(node))
        if make is None:
            raise FeatureNotSupported(
                f"{_WORDS[type(node)]} is not supported in an expression over one row",
                position=node.at,
            )
        try:
            return make(self, node)
        except Refused as error:
            if "position" in error.detail:
                raise
            raise with_position(error, node.at) from error

    # ---------------------------------------------------------- leaves

    def _column(self, node: tree.Name) -> Typed:
        *table, name = node.parts
        if table not in ([], [self._table]):
            raise FeatureNotSupported("only columns of the row itself can be used")
        column = self._resolve(name)
        element_id = column.element_id
        return Typed(column.type, lambda row: row.get(element_id))

    def _argument(self, node: tree.Parameter) -> Typed:
        if not self._types:
            raise FeatureNotSupported(f"${node.number} is not supported in this expression")
        if node.number > len(self._types):
            raise UndefinedParameter(f"there is no parameter ${node.number}")
        position = argument(node.number)
        return Typed(self._types[node.number - 1], lambda row: row.get(position))

    def _constant(self, node: tree.Constant) -> Typed:
        match node.kind:
            case "string":
                return Typed(None, constant(None), node.text)
            case "number":
                return self._number(node.text)
            case "null":
                return _NULL
        return Typed(BOOLEAN, constant(int(node.kind == "true")), fixed=True)

    def _number(self, text: str, *, cast: bool = False) -> Typed:
        """Return a number; `cast` says that a type is named for it, so its digits count."""
        if self._kept and not cast and not text.removeprefix("-").isdecimal():
            return Typed(DOUBLE, constant(from_text(DOUBLE, text)), fixed=True)
        kind, value = number_constant(text)
        return Typed(kind, constant(value), fixed=True)

    # ---------------------------------------------------------- what changes from call to call

    def _changing(self, name: str) -> Typed:
        function = function_for(name, [])
        if name == "gen_random_uuid":
            self._random += 1
            number = self._random
            return Typed(function.result, lambda row: random_uuid(row[SEED], number))
        compute, zone = function.compute, zone_computed_in()
        if function.volatility != "volatile":
            return Typed(function.result, lambda row: compute(NowInZone(row[NOW], row[SEED], zone)))
        self._random += 1
        more = self._random.to_bytes(_NUMBER_BYTES)
        return Typed(
            function.result, lambda row: compute(NowInZone(row[NOW], row[SEED] + more, zone))
        )

    # ---------------------------------------------------------- operators

    def _binary(self, node: tree.Binary) -> Typed:
        return self.operated(node.sign, self.part(node.left), self.part(node.right))

    def operated(self, sign: str, left: Typed, right: Typed) -> Typed:
        """Return an operator over compiled parts."""
        return call_function(operator_for(sign, left.kind, right.kind), [left, right])

    def _unary(self, node: tree.Unary) -> Typed:
        made = self.part(node.operand)
        return call_function(function_for(node.sign, [made.kind]), [made])

    def _like(self, node: tree.Like) -> Typed:
        left, pattern = self.part(node.operand), self.part(node.pattern)
        if node.escape is not None:
            escape = self.part(node.escape)
            escaped = function_for("like_escape", [pattern.kind, escape.kind])
            pattern = call_function(escaped, [pattern, escape])
        sign = f"{'!' if node.negated else ''}~~{'*' if node.insensitive else ''}"
        return self.operated(sign, left, pattern)

    def _condition(self, node: tree.Node) -> Compute:
        made = self.part(node)
        if made.kind is not None and made.kind != BOOLEAN:
            raise WrongType(f"the condition is of type {made.kind}, not boolean", position=node.at)
        return convert(made, BOOLEAN)

    def _logic(self, node: tree.Logic) -> Typed:
        conditions = [self._condition(part) for part in node.parts]
        if node.word == "not":
            return Typed(BOOLEAN, negated(conditions[0]))
        join = all_of if node.word == "and" else any_of
        return Typed(BOOLEAN, join(conditions))

    def _test(self, node: tree.Test) -> Typed:
        opposite = node.negated
        if node.what == "null":
            made = self.part(node.operand)
            if made.kind is None:
                raise FeatureNotSupported("IS NULL of a constant is not supported")
            value = made.compute
            return Typed(BOOLEAN, lambda row: int((value(row) is None) != opposite))
        truth = self._condition(node.operand)
        said = {"true": 1, "false": 0, "unknown": None}[node.what]
        return Typed(BOOLEAN, lambda row: int((truth(row) == said) != opposite))

    def _distinct(self, node: tree.Distinct) -> Typed:
        left, right = self.part(node.left), self.part(node.right)
        equal = operator_for("=", left.kind, right.kind)
        a, b = convert(left, equal.arguments[0]), convert(right, equal.arguments[1])
        compute, same = fix_zone(equal).compute, node.negated

        def test(row: Any) -> int:
            one, other = a(row), b(row)
            if one is None or other is None:
                return int((one is None and other is None) == same)
            return int(bool(compute(one, other)) == same)

        return Typed(BOOLEAN, test)

    def _between(self, node: tree.Between) -> Typed:
        nodes = (node.operand, node.low, node.high)
        asked = len(nodes) if node.symmetric else 1  # more than once
        parts = [self.part(each) for each in nodes]
        held = Held(parts[:asked], nodes[:asked])
        value, low, high = held.parts + [held.beside(part) for part in parts[asked:]]

        def within(least: Typed, most: Typed) -> Compute:
            above = self.operated(">=", value, least).compute
            return all_of([above, self.operated("<=", value, most).compute])

        found = within(low, high)
        if node.symmetric:
            found = any_of([found, within(high, low)])
        found = held.over(found)
        return Typed(BOOLEAN, negated(found) if node.negated else found)

    def _in(self, node: tree.InList) -> Typed:
        held = Held([self.part(node.operand)], [node.operand])
        (value,) = held.parts
        items = [held.beside(self.part(item)) for item in node.items]
        found = held.over(any_of([self.operated("=", value, each).compute for each in items]))
        return Typed(BOOLEAN, negated(found) if node.negated else found)

    # ---------------------------------------------------------- functions

    def _call(self, node: tree.Call) -> Typed:
        more = node.star or node.distinct or node.order or node.filter is not None
        if more or node.over is not None:
            raise FeatureNotSupported(
                f"{node.name} as an aggregate is not supported in an expression over one row"
            )
        special = self._with_rules.get(node.name)
        if special is not None:
            return special(self, node)
        if node.name in DECIDED and node.arguments:
            raise FeatureNotSupported(
                f"{node.name} takes no precision here: it counts microseconds"
            )
        parts = [self.part(argument) for argument in node.arguments]
        function = function_for(node.name, [part.kind for part in parts])
        if function.zoned or function.volatility == "immutable":
            return call_function(function, parts)
        if not self._decides or parts or node.name not in DECIDED:
            raise _changing_value(node.name, node)
        return self._changing(node.name)

    def _list_function(self, node: tree.Call) -> Typed:
        kind, parts = unify([self.part(e) for e in node.arguments], node.name.upper())
        if node.name == "coalesce":
            return Typed(kind, first(parts))
        operator_for("<", kind, kind)  # is there an order at all?
        most = max if node.name == "greatest" else min
        order = order_key_of(kind)
        note_meaning(order)
        return Typed(kind, extreme(most, parts, order))

    def _nullif(self, node: tree.Call) -> Typed:
        if len(node.arguments) != 2:
            raise SyntaxInvalid(f"{node.name} takes two values")
        left, right = (self.part(argument) for argument in node.arguments)
        equal = operator_for("=", left.kind, right.kind)
        held = Held([left], node.arguments[:1])
        (kept,) = held.parts
        test = call_function(equal, [kept, held.beside(right)]).compute
        kind = nullif_type(left.kind, right.kind) if left.kind else equal.arguments[0]
        value = kept.compute if left.kind == kind else convert(kept, kind)
        return Typed(kind, held.over(lambda given: None if test(given) else value(given)))

    def _case_of(self, node: tree.Case) -> Typed:
        asked = [] if node.subject is None else [node.subject]
        held = Held([self.part(each) for each in asked], asked)
        conditions: list[Compute] = []
        results: list[Typed] = []
        for when, then in node.branches:
            if held.parts:
                given = held.beside(self.part(when))
                conditions.append(self.operated("=", held.parts[0], given).compute)
            else:
                conditions.append(self._condition(when))
            results.append(self.part(then))
        results.append(_NULL if node.default is None else self.part(node.default))
        kind, values = unify(results, "CASE")
        *made, default = map(held.given, values)
        branches = list(zip(conditions, made, strict=True))
        return Typed(kind, held.over(chosen(branches, default)))

    def _cast(self, node: tree.Cast) -> Typed:
        target = type_of(node.target, self._find_enum, in_query=False)
        inner = node.operand
        if isinstance(inner, tree.ArrayOf) and element_of(target) is not None:
            return compile_array(self, inner, target)
        if isinstance(inner, tree.Constant) and inner.kind == "number" and inner.text[0] != "-":
            made = self._number(inner.text, cast=True)
        else:
            made = self.part(inner)
        if made.kind is None:
            value = None if made.text is None else read_constant(target, made.text, "explicit")
            return Typed(target, constant(value), fixed=True)
        cast = cast_for(made.kind, target, "explicit")
        if cast is None:
            raise CannotCast(f"cannot cast type {made.kind} to {target}")
        return Typed(target, cast_part(made, cast), fixed=made.fixed)

    _with_rules: Final[dict[str, Callable[[Compiler, tree.Call], Typed]]] = {
        "coalesce": _list_function,
        "greatest": _list_function,
        "least": _list_function,
        "nullif": _nullif,
    }
    _makers: Final[dict[type, Callable[[Compiler, Any], Typed]]] = {
        tree.Name: _column,
        tree.Constant: _constant,
        tree.Parameter: _argument,
        tree.Unary: _unary,
        tree.Binary: _binary,
        tree.Logic: _logic,
        tree.Test: _test,
        tree.Distinct: _distinct,
        tree.Between: _between,
        tree.InList: _in,
        tree.Like: _like,
        tree.Case: _case_of,
        tree.Cast: _cast,
        tree.Call: _call,
        tree.ArrayOf: compile_array,
        tree.OverArray: compile_over_array,
        tree.Subscript: compile_subscript,
    }


_NULL: Final = Typed(None, constant(None))
_WORDS: Final[dict[type, str]] = {
    tree.Star: "*",
    tree.DefaultWord: "DEFAULT",
    tree.Quantified: "a query",
    tree.ArrayQuery: "a query",
    tree.Collated: "COLLATE",
    tree.RowOf: "a row",
    tree.SubQuery: "a query",
}
"""What has no value of one row, or is not computed here."""
