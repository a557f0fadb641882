"""A tree of an expression → a closure, typed as PostgreSQL does; chosen by a node's exact class.

Functions, operators and casts are the catalogue's; here is what PostgreSQL has as syntax. What is
not known here is refused (0A000); nothing is ever evaluated as code.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final

from sqlglot import exp

from leasehold.catalog.descriptor import Column
from leasehold.model.errors import (
    CannotCast,
    FeatureNotSupported,
    SyntaxInvalid,
    UndefinedParameter,
    UnknownFunction,
    WrongType,
)
from leasehold.sql.expressions.closures import (
    Compute,
    both,
    chosen,
    constant,
    either,
    extreme,
    first,
    negated,
)
from leasehold.sql.expressions.typed import (
    Typed,
    brought,
    called,
    common,
    converted,
    of_constant,
    without_session,
    zone_computed_in,
)
from leasehold.sql.functions.bytea import random_uuid
from leasehold.sql.functions.function import BIGINT, BOOLEAN, DOUBLE, INTEGER, INTERVAL, NUMERIC
from leasehold.sql.functions.not_supported import FUNCTIONS as NOT_BUILT
from leasehold.sql.functions.registry import (
    FUNCTION_NAMES,
    cast_for,
    function_for,
    is_type_name,
    operator_for,
)
from leasehold.sql.functions.resolution import nullif_type
from leasehold.sql.parse import name_of, only, position_of, type_of
from leasehold.sql.words import VOLATILE
from leasehold.values.text_io import from_text
from leasehold.values.time_zone import NowInZone
from leasehold.values.types import Type, order_key_of

_ARITHMETIC: Final[dict[type[exp.Expression], str]] = {
    exp.Add: "+",
    exp.Sub: "-",
    exp.Mul: "*",
    exp.Div: "/",
    exp.Mod: "%",
}
_COMPARISONS: Final[dict[type[exp.Expression], str]] = {
    exp.EQ: "=",
    exp.NEQ: "<>",
    exp.LT: "<",
    exp.LTE: "<=",
    exp.GT: ">",
    exp.GTE: ">=",
}
_LIKE: Final[dict[type[exp.Expression], str]] = {exp.Like: "~~", exp.ILike: "~~*"}
_OTHER: Final[dict[type[exp.Expression], str]] = {
    exp.Pow: "^",
    exp.BitwiseAnd: "&",
    exp.BitwiseOr: "|",
    exp.BitwiseXor: "#",
    exp.BitwiseLeftShift: "<<",
    exp.BitwiseRightShift: ">>",
    exp.JSONExtract: "->",
    exp.JSONExtractScalar: "->>",
    exp.JSONBExtract: "#>",
    exp.JSONBExtractScalar: "#>>",
    exp.JSONBContainsTopKey: "?",
    exp.ArrayContainsAll: "@>",
    exp.ArrayContainedBy: "<@",
    exp.RegexpLike: "~",
    exp.RegexpILike: "~*",
    exp.StartsWith: "^@",
    exp.JSONBDeleteAtPath: "#-",
}
"""Operators that stand between others at another place in PostgreSQL's order than in the parser's:
their operands need parentheses where they are not plain."""
_LOOSE: Final = frozenset({*_OTHER, exp.DPipe, exp.AtTimeZone, exp.BitwiseNot})
_TIGHT: Final = frozenset({*_ARITHMETIC, exp.Neg})
_TESTS: Final = frozenset(
    {*_COMPARISONS, *_LIKE, exp.SimilarTo, exp.Escape, exp.In, exp.Between, exp.Is}
)
_PLAIN: Final = frozenset(
    {
        *(exp.Column, exp.Literal, exp.Paren, exp.Anonymous, exp.Cast, exp.Null, exp.Boolean),
        *(exp.Case, exp.Extract, exp.Substring, exp.StrPosition, exp.Trim, exp.Overlay),
        *(exp.Interval, exp.CurrentTimestamp, exp.CurrentDate, exp.Localtimestamp, exp.Parameter),
    }
)
_INTEGER_MOST: Final = {INTEGER: (1 << 31) - 1, BIGINT: (1 << 63) - 1}


DECIDED: Final = frozenset(
    {"now", "gen_random_uuid", "current_timestamp", "current_date", "localtimestamp"}
)
"""Words that change from call to call and can be in a default."""
_WITH_RULES: Final = frozenset({"coalesce", "greatest", "least", "nullif"})
_NO_FUNCTION_OF_ONE_ROW: Final = frozenset(
    {
        *("count", "sum", "avg", "min", "max", "array_agg", "string_agg", "bool_and", "bool_or"),
        *("jsonb_agg", "row_number", "rank", "lag", "lead", "generate_series", "unnest", "nextval"),
        *("row", "random", "exists"),
    }
)


def check_functions(tree: exp.Expression) -> None:
    """Looks at names alone, before any type is known. Raises FeatureNotSupported for what gives
    another value each time or is no function of one row, UnknownFunction."""
    for changing in tree.find_all(exp.CurrentTimestamp, exp.CurrentDate, exp.Localtimestamp):
        raise _changing_value(changing.sql("postgres").lower(), tree)
    for node in tree.find_all(exp.Anonymous):
        word = node.this
        name = name_of(word) if isinstance(word, exp.Identifier) else str(word).lower()
        if name in VOLATILE:
            raise _changing_value(name, node)
        if name in _NO_FUNCTION_OF_ONE_ROW:
            raise FeatureNotSupported(
                f"function {name!r} is not supported in an expression over one row",
                position=position_of(node),
            )
        known = name in FUNCTION_NAMES or name in _WITH_RULES or is_type_name(name)
        if not known and name in NOT_BUILT:
            raise FeatureNotSupported(
                f"function {name}: {NOT_BUILT[name]}", position=position_of(node)
            )
        if not known:
            raise UnknownFunction(
                f"function {name!r:.80} does not exist", position=position_of(node)
            )


def _changing_value(name: str, node: exp.Expression) -> FeatureNotSupported:
    return FeatureNotSupported(
        f"{name!r} gives another value each time and can't be used here",
        position=position_of(node),
    )


NOW: Final = -1
SEED: Final = -2
"""In the place of element ids of a row's image: the time in unix µs and the seed of random values,
for expressions that change from call to call."""


def argument(number: int) -> int:
    """In the place of an element id: where $`number` is."""
    return SEED - number


class Compiler:
    """`resolve`: the column of a name, or its refusal; `table`: what may stand before the dot;
    `decides`: the row that the closure gets has NOW and SEED, so what they make may be used;
    `kept`: a text of a descriptor, in which a number with a point is a double unless ::numeric
    stands behind it, as it was before there was numeric; `types`: of $1, $2 …, which the row has,
    too (`argument`)."""

    def __init__(
        self,
        resolve: Callable[[str], Column],
        table: str,
        *,
        decides: bool = False,
        kept: bool = False,
        types: Sequence[Type] = (),
    ) -> None:
        self._resolve = resolve
        self._table = table
        self._decides = decides
        self._kept = kept
        self._types = types
        self._random = 0  # how many random values so far

    def part(self, node: exp.Expression) -> Typed:
        """The compiled form of one node of the tree, chosen by its exact class."""
        kind = type(node)
        if kind in _ARITHMETIC:
            return self._arithmetic(node, _ARITHMETIC[kind])
        if kind in _COMPARISONS:
            return self._comparison(node, _COMPARISONS[kind])
        if kind in _LIKE:
            return self._like(node, None)
        if kind in _OTHER:
            return self._other(node, _OTHER[kind])
        make = self._makers.get(kind)
        if make is None:
            raise FeatureNotSupported(
                f"{node.sql('postgres')!r:.80} is not supported in an expression",
                position=position_of(node),
            )
        return make(self, node)

    # ---------------------------------------------------------- leaves

    def _column(self, node: exp.Expression) -> Typed:
        only(node, "this", "table")
        table = node.args.get("table")
        if table is not None and name_of(table) != self._table:
            raise FeatureNotSupported("only columns of the row itself can be used")
        column = self._resolve(name_of(node.this))
        element_id = column.element_id
        return Typed(column.type, lambda row: row.get(element_id))

    def _argument(self, node: exp.Expression) -> Typed:
        only(node, "this")
        said = str(node.this.name)
        if not self._types or not said.isdecimal():
            raise FeatureNotSupported(
                f"{node.sql('postgres')!r:.80} is not supported in an expression",
                position=position_of(node),
            )
        if said not in map(str, range(1, len(self._types) + 1)):
            raise UndefinedParameter(f"there is no parameter ${said:.20}")
        number = int(said)
        place = argument(number)
        return Typed(self._types[number - 1], lambda row: row.get(place))

    def _literal(self, node: exp.Expression) -> Typed:
        if node.args["is_string"]:
            return Typed(None, constant(None), str(node.this))
        return self._number(str(node.this))

    def _number(self, text: str, *, cast: bool = False) -> Typed:
        """`cast`: a type is named for it, so its digits count."""
        if text.isdecimal():
            value = int(text) if len(text) < 20 else 1 << 64
            for kind, most in _INTEGER_MOST.items():
                if value <= most:
                    return Typed(kind, constant(value), fixed=True)
        kind = DOUBLE if self._kept and not cast and not text.isdecimal() else NUMERIC
        return Typed(kind, constant(from_text(kind, text)), fixed=True)

    def _null(self, node: exp.Expression) -> Typed:
        return Typed(None, constant(None))

    def _boolean(self, node: exp.Expression) -> Typed:
        return Typed(BOOLEAN, constant(int(bool(node.this))), fixed=True)

    def _paren(self, node: exp.Expression) -> Typed:
        only(node, "this")
        return self.part(node.this)

    # ---------------------------------------------------------- what changes from call to call

    def _current(self, node: exp.Expression) -> Typed:
        only(node)
        words: dict[type[exp.Expression], str] = {
            exp.CurrentTimestamp: "current_timestamp",
            exp.CurrentDate: "current_date",
            exp.Localtimestamp: "localtimestamp",
        }
        return self._called(words[type(node)], [], node)

    def _changing(self, name: str) -> Typed:
        function = function_for(name, [])
        if name == "gen_random_uuid":
            self._random += 1
            number = self._random
            return Typed(function.result, lambda row: random_uuid(row[SEED], number))
        compute, zone = function.compute, zone_computed_in()
        return Typed(function.result, lambda row: compute(NowInZone(row[NOW], row[SEED], zone)))

    # ---------------------------------------------------------- operators

    def _arithmetic(self, node: exp.Expression, sign: str) -> Typed:
        only(node, "this", "expression", "typed", "safe")
        self._unmixed(node, _LOOSE)
        return self._operated(sign, self.part(node.this), self.part(node.expression))

    def _operated(self, sign: str, left: Typed, right: Typed) -> Typed:
        return called(operator_for(sign, left.kind, right.kind), [left, right])

    def _unmixed(self, node: exp.Expression, refused: frozenset[type[exp.Expression]]) -> None:
        """Which of two operators binds closer is not left to the parser where PostgreSQL may say
        something else."""
        for side in (node.this, node.args.get("expression")):
            if side is not None and type(side) in refused:
                raise FeatureNotSupported(
                    f"{node.sql('postgres')!r:.80} mixes operators: put parentheses around"
                    f" {side.sql('postgres')!r:.60}",
                    position=position_of(node),
                )

    def _plain(self, node: exp.Expression) -> None:
        for side in (node.this, node.args.get("expression")):
            if isinstance(side, exp.Expression) and type(side) not in _PLAIN:
                self._unmixed(node, frozenset({type(side)}))

    def _other(self, node: exp.Expression, sign: str) -> Typed:
        only(node, "this", "expression")
        self._plain(node)
        return self._operated(sign, self.part(node.this), self.part(node.expression))

    def _negative(self, node: exp.Expression) -> Typed:
        only(node, "this")
        self._unmixed(node, _LOOSE)
        inner = node.this
        if type(inner) is exp.Literal and not inner.args["is_string"]:
            made = self._number(str(inner.this))
            least = {"integer": 1 << 31, "bigint": 1 << 63}
            for kind in (INTEGER, BIGINT):
                if str(inner.this) == str(least[kind.name]):
                    return Typed(kind, constant(-least[kind.name]), fixed=True)
            assert made.kind is not None
            negated_one = function_for("-", [made.kind]).compute(made.compute({}))
            return Typed(made.kind, constant(negated_one), fixed=True)
        return self._unary("-", inner)

    def _unary(self, sign: str, inner: exp.Expression) -> Typed:
        made = self.part(inner)
        return called(function_for(sign, [made.kind]), [made])

    def _bitwise_not(self, node: exp.Expression) -> Typed:
        only(node, "this")
        self._plain(node)
        return self._unary("~", node.this)

    def _comparison(self, node: exp.Expression, sign: str) -> Typed:
        only(node, "this", "expression")
        for side in (node.this, node.expression):
            if type(side) in _COMPARISONS:
                raise SyntaxInvalid("comparisons can't be chained: use parentheses")
        return self._operated(sign, self.part(node.this), self.part(node.expression))

    def _like(self, node: exp.Expression, escape: Typed | None) -> Typed:
        only(node, "this", "expression", "negate")
        self._unmixed(node, _TESTS)
        pattern = self.part(node.expression)
        if escape is not None:
            escaped = function_for("like_escape", [pattern.kind, escape.kind])
            pattern = called(escaped, [pattern, escape])
        sign = _LIKE[type(node)]
        sign = f"!{sign}" if node.args.get("negate") else sign
        return self._operated(sign, self.part(node.this), pattern)

    def _similar(self, node: exp.Expression) -> Typed:
        only(node, "this", "expression")
        self._unmixed(node, _TESTS)
        pattern = self.part(node.expression)
        made = called(function_for("similar_to_escape", [pattern.kind]), [pattern])
        return self._operated("~", self.part(node.this), made)

    def _escape(self, node: exp.Expression) -> Typed:
        only(node, "this", "expression")
        if type(node.this) not in _LIKE:
            raise FeatureNotSupported("ESCAPE is for LIKE and ILIKE alone")
        return self._like(node.this, self.part(node.expression))

    def _concatenation(self, node: exp.Expression) -> Typed:
        only(node, "this", "expression", "safe")
        self._unmixed(node, _LOOSE - {exp.DPipe})
        if type(node.expression) is exp.DPipe:
            self._unmixed(node, frozenset({exp.DPipe}))
        return self._operated("||", self.part(node.this), self.part(node.expression))

    def _at_zone(self, node: exp.Expression) -> Typed:
        only(node, "this", "zone")
        self._plain(node)
        return self._called("timezone", [node.args["zone"], node.this], node)

    def _condition(self, node: exp.Expression) -> Compute:
        made = self.part(node)
        if made.kind is not None and made.kind != BOOLEAN:
            raise WrongType(f"{node.sql('postgres')!r:.80} is of type {made.kind}, not boolean")
        return brought(made, BOOLEAN)

    def _conjunction(self, node: exp.Expression) -> Typed:
        only(node, "this", "expression")
        join = both if type(node) is exp.And else either
        return Typed(BOOLEAN, join(self._condition(node.this), self._condition(node.expression)))

    def _negation(self, node: exp.Expression) -> Typed:
        return Typed(BOOLEAN, negated(self._condition(node.this)))

    def _is(self, node: exp.Expression) -> Typed:
        only(node, "this", "expression", "negate")
        wanted = node.expression
        opposite = bool(node.args.get("negate"))
        if type(wanted) is exp.Null:
            made = self.part(node.this)
            if made.kind is None:
                raise FeatureNotSupported("IS NULL of a constant is not supported")
            value = made.compute
            return Typed(BOOLEAN, lambda row: int((value(row) is None) != opposite))
        if type(wanted) is exp.Boolean:
            truth = self._condition(node.this)
            said = int(bool(wanted.this))
            return Typed(BOOLEAN, lambda row: int((truth(row) == said) != opposite))
        raise FeatureNotSupported(f"{node.sql('postgres')!r:.80} is not supported")

    def _distinct(self, node: exp.Expression) -> Typed:
        only(node, "this", "expression")
        left, right = self.part(node.this), self.part(node.expression)
        equal = operator_for("=", left.kind, right.kind)
        a, b = brought(left, equal.arguments[0]), brought(right, equal.arguments[1])
        compute, same = without_session(equal).compute, type(node) is exp.NullSafeEQ

        def test(row: Any) -> int:
            one, other = a(row), b(row)
            if one is None or other is None:
                return int((one is None and other is None) == same)
            return int(bool(compute(one, other)) == same)

        return Typed(BOOLEAN, test)

    def _between(self, node: exp.Expression) -> Typed:
        only(node, "this", "low", "high")
        value = self.part(node.this)
        low = self._operated(">=", value, self.part(node.args["low"]))
        high = self._operated("<=", value, self.part(node.args["high"]))
        return Typed(BOOLEAN, both(low.compute, high.compute))

    def _in(self, node: exp.Expression) -> Typed:
        only(node, "this", "expressions")
        value = self.part(node.this)
        tests = [self._operated("=", value, self.part(e)).compute for e in node.expressions]
        if not tests:
            raise SyntaxInvalid("IN needs a list of values")
        found = tests[0]
        for test in tests[1:]:
            found = either(found, test)
        return Typed(BOOLEAN, found)

    # ---------------------------------------------------------- functions

    def _function(self, node: exp.Expression) -> Typed:
        only(node, "this", "expressions")
        word = node.this
        name = name_of(word) if isinstance(word, exp.Identifier) else str(word).lower()
        special = self._with_rules.get(name)
        if special is not None:
            return special(self, node.expressions, name)
        return self._called(name, node.expressions, node)

    def _called(self, name: str, arguments: list[exp.Expression], node: exp.Expression) -> Typed:
        if name in DECIDED and arguments:
            raise FeatureNotSupported(
                f"{name} takes no precision here: it counts microseconds",
                position=position_of(node),
            )
        parts = [self.part(argument) for argument in arguments]
        function = function_for(name, [part.kind for part in parts])
        if function.zoned or function.volatility == "immutable":
            return called(function, parts)
        if not self._decides or parts or name not in DECIDED:
            raise _changing_value(name, node)
        return self._changing(name)

    def _list_function(self, arguments: list[exp.Expression], name: str) -> Typed:
        if not arguments:
            raise SyntaxInvalid(f"{name} needs a value")
        kind, parts = common([self.part(e) for e in arguments], name.upper())
        if name == "coalesce":
            return Typed(kind, first(parts))
        operator_for("<", kind, kind)  # is there an order at all?
        return Typed(kind, extreme(max if name == "greatest" else min, parts, order_key_of(kind)))

    def _nullif(self, arguments: list[exp.Expression], name: str) -> Typed:
        if len(arguments) != 2:
            raise SyntaxInvalid(f"{name} takes two values")
        left, right = (self.part(argument) for argument in arguments)
        equal = operator_for("=", left.kind, right.kind)
        test = called(equal, [left, right]).compute
        kind = nullif_type(left.kind, right.kind) if left.kind else equal.arguments[0]
        value = left.compute if left.kind == kind else brought(left, kind)
        return Typed(kind, lambda row: None if test(row) else value(row))

    def _substring(self, node: exp.Expression) -> Typed:
        only(node, "this", "start", "length")
        places = [node.args[name] for name in ("start", "length") if node.args.get(name)]
        if len(places) == 1 and node.args.get("length"):
            places = [exp.Literal.number(1), *places]
        return self._called("substring", [node.this, *places], node)

    def _position(self, node: exp.Expression) -> Typed:
        only(node, "this", "substr")
        return self._called("position", [node.this, node.args["substr"]], node)

    def _extract(self, node: exp.Expression) -> Typed:
        only(node, "this", "expression")
        unit = exp.Literal.string(node.this.name.lower())
        return self._called("extract", [unit, node.expression], node)

    def _trim(self, node: exp.Expression) -> Typed:
        only(node, "this", "expression", "position")
        names = {"LEADING": "ltrim", "TRAILING": "rtrim"}
        name = names.get(str(node.args.get("position") or "BOTH").upper(), "btrim")
        more = [node.expression] if node.args.get("expression") else []
        return self._called(name, [node.this, *more], node)

    def _overlay(self, node: exp.Expression) -> Typed:
        only(node, "this", "expression", "from_", "for_")
        places = [node.args[name] for name in ("from_", "for_") if node.args.get(name)]
        return self._called("overlay", [node.this, node.expression, *places], node)

    def _interval(self, node: exp.Expression) -> Typed:
        only(node, "this", "unit")
        if type(node.this) is not exp.Literal or not node.this.args["is_string"]:
            raise FeatureNotSupported("INTERVAL takes a quoted constant")
        unit = node.args.get("unit")
        text = node.this.name if unit is None else f"{node.this.name} {unit.name}"
        return Typed(INTERVAL, constant(from_text(INTERVAL, text)), fixed=True)

    def _case_of(self, node: exp.Expression) -> Typed:
        only(node, "this", "ifs", "default")
        subject = None if node.args.get("this") is None else self.part(node.this)
        conditions: list[Compute] = []
        results: list[Typed] = []
        for branch in node.args["ifs"]:
            only(branch, "this", "true")
            if subject is None:
                conditions.append(self._condition(branch.this))
            else:
                test = self._operated("=", subject, self.part(branch.this))
                conditions.append(test.compute)
            results.append(self.part(branch.args["true"]))
        default = node.args.get("default")
        results.append(self._null(node) if default is None else self.part(default))
        kind, values = common(results, "CASE")
        branches = list(zip(conditions, values[:-1], strict=True))
        return Typed(kind, chosen(branches, values[-1]))

    def _cast(self, node: exp.Expression) -> Typed:
        only(node, "this", "to")
        target = type_of(node.args["to"])
        inner = node.this
        if type(inner) is exp.Literal and not inner.args["is_string"]:
            made = self._number(str(inner.this), cast=True)
        else:
            made = self.part(inner)
        if made.kind is None:
            value = None if made.text is None else of_constant(target, made.text, "explicit")
            return Typed(target, constant(value), fixed=True)
        cast = cast_for(made.kind, target, "explicit")
        if cast is None:
            raise CannotCast(f"cannot cast type {made.kind} to {target}")
        return Typed(target, converted(made, cast), fixed=made.fixed)

    _with_rules: Final[dict[str, Callable[[Compiler, list[exp.Expression], str], Typed]]] = {
        "coalesce": _list_function,
        "greatest": _list_function,
        "least": _list_function,
        "nullif": _nullif,
    }
    _makers: Final[dict[type[exp.Expression], Callable[[Compiler, exp.Expression], Typed]]] = {
        exp.Column: _column,
        exp.Literal: _literal,
        exp.Parameter: _argument,
        exp.Null: _null,
        exp.Boolean: _boolean,
        exp.Paren: _paren,
        exp.Neg: _negative,
        exp.BitwiseNot: _bitwise_not,
        exp.DPipe: _concatenation,
        exp.And: _conjunction,
        exp.Or: _conjunction,
        exp.Not: _negation,
        exp.Is: _is,
        exp.NullSafeEQ: _distinct,
        exp.NullSafeNEQ: _distinct,
        exp.Between: _between,
        exp.In: _in,
        exp.Escape: _escape,
        exp.SimilarTo: _similar,
        exp.Case: _case_of,
        exp.Cast: _cast,
        exp.Interval: _interval,
        exp.AtTimeZone: _at_zone,
        exp.Anonymous: _function,
        exp.Substring: _substring,
        exp.StrPosition: _position,
        exp.Extract: _extract,
        exp.Trim: _trim,
        exp.Overlay: _overlay,
        exp.CurrentTimestamp: _current,
        exp.Localtimestamp: _current,
        exp.CurrentDate: _current,
    }
