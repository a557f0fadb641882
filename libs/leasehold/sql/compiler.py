"""A tree of an expression → a closure, typed as PostgreSQL does; chosen by a node's exact class.

A quoted constant takes the type it is used with, a number with a point is a double (there is no
numeric yet). What is not known here is refused (0A000); nothing is ever evaluated as code.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from sqlglot import exp

from leasehold.model.errors import FeatureNotSupported, SyntaxInvalid, WrongType
from leasehold.schema.descriptor import Column
from leasehold.schema.types import Type, to_storage
from leasehold.sql import operators
from leasehold.sql.closures import (
    Compute,
    both,
    chosen,
    constant,
    either,
    extreme,
    first,
    negated,
    strict,
)
from leasehold.sql.operators import BIGINT, BOOLEAN, DOUBLE, INTEGER, TEXT
from leasehold.sql.parse import name_of, only, position_of, type_of
from leasehold.sql.text_form import from_text, integer
from leasehold.sql.typed import Typed, common, settled

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
_TEXT_FUNCTIONS: Final[dict[type[exp.Expression], tuple[Callable[[str], Any], Type]]] = {
    exp.Upper: (str.upper, TEXT),
    exp.Lower: (str.lower, TEXT),
    exp.Length: (len, INTEGER),
}


NOW: Final = -1
SEED: Final = -2
"""In the place of element ids of a row's image: the time in unix µs and the seed of random values,
for expressions that change from call to call."""


class Compiler:
    """`resolve`: the column of a name, or its refusal; `table`: what may stand before the dot;
    `decides`: the row that the closure gets has NOW and SEED, so what they make may be used."""

    def __init__(
        self, resolve: Callable[[str], Column], table: str, *, decides: bool = False
    ) -> None:
        self._resolve = resolve
        self._table = table
        self._decides = decides
        self._random = 0  # how many random values so far

    def part(self, node: exp.Expression) -> Typed:
        """The compiled form of one node of the tree, chosen by its exact class."""
        kind = type(node)
        if kind in _ARITHMETIC:
            return self._arithmetic(node, _ARITHMETIC[kind])
        if kind in _COMPARISONS:
            return self._comparison(node, _COMPARISONS[kind])
        if kind in _TEXT_FUNCTIONS:
            return self._text_function(node, *_TEXT_FUNCTIONS[kind])
        make = self._makers.get(kind)
        if make is None and self._decides:
            make = self._decided.get(kind)
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

    def _literal(self, node: exp.Expression) -> Typed:
        if node.args["is_string"]:
            return Typed(None, constant(None), str(node.this))
        return self._number(str(node.this))

    def _number(self, text: str) -> Typed:
        if not text.lstrip("-").isdecimal():
            return Typed(DOUBLE, constant(from_text(DOUBLE, text)))
        value = integer(text)
        kind = INTEGER if -(1 << 31) <= value < 1 << 31 else BIGINT
        return Typed(kind, constant(to_storage(kind)(value)))

    def _null(self, node: exp.Expression) -> Typed:
        return Typed(None, constant(None))

    def _boolean(self, node: exp.Expression) -> Typed:
        return Typed(BOOLEAN, constant(int(bool(node.this))))

    def _paren(self, node: exp.Expression) -> Typed:
        only(node, "this")
        return self.part(node.this)

    # ---------------------------------------------------------- what changes from call to call

    def _now(self, node: exp.Expression) -> Typed:
        only(node)
        zoned = type(node) is exp.CurrentTimestamp
        return Typed(Type("timestamptz" if zoned else "timestamp"), lambda row: row[NOW])

    def _today(self, node: exp.Expression) -> Typed:
        only(node)
        return Typed(Type("date"), lambda row: row[NOW] // operators.DAY_US)

    def _uuid(self, node: exp.Expression) -> Typed:
        only(node, "is_string")
        self._random += 1
        number = self._random
        return Typed(Type("uuid"), lambda row: operators.random_uuid(row[SEED], number))

    # ---------------------------------------------------------- operators

    def _arithmetic(self, node: exp.Expression, sign: str) -> Typed:
        only(node, "this", "expression", "typed", "safe")
        parts = [self.part(node.this), self.part(node.expression)]
        kind, (left, right) = common(parts)
        return Typed(kind, strict(operators.arithmetic(sign, kind), left, right))

    def _negative(self, node: exp.Expression) -> Typed:
        if type(node.this) is exp.Literal and not node.this.args["is_string"]:
            return self._number("-" + str(node.this.this))
        made = self.part(node.this)
        kind = made.kind or TEXT
        return Typed(kind, strict(operators.negate(kind), made.compute))

    def _comparison(self, node: exp.Expression, sign: str) -> Typed:
        only(node, "this", "expression")
        for side in (node.this, node.expression):
            if type(side) in _COMPARISONS:
                raise SyntaxInvalid("comparisons can't be chained: use parentheses")
        return self._compared(self.part(node.this), self.part(node.expression), sign)

    def _compared(self, left: Typed, right: Typed, sign: str) -> Typed:
        _, (a, b) = common([left, right])
        return Typed(BOOLEAN, strict(operators.COMPARISONS[sign], a, b))

    def _concatenation(self, node: exp.Expression) -> Typed:
        only(node, "this", "expression", "safe")
        sides = [self.part(node.this), self.part(node.expression)]
        if not any(side.kind is None or operators.is_text(side.kind) for side in sides):
            raise WrongType("|| needs text on one side at least")
        parts = [self._as_text(side) for side in sides]
        return Typed(TEXT, strict(operators.concatenate, *parts))

    def _as_text(self, made: Typed) -> Compute:
        if made.kind is None:
            return settled(made, TEXT)
        convert = operators.cast(made.kind, TEXT)
        if convert is None:
            raise FeatureNotSupported(f"there is no text form of {made.kind} yet")
        return strict(convert, made.compute)

    def _condition(self, node: exp.Expression) -> Compute:
        made = self.part(node)
        if made.kind is not None and made.kind != BOOLEAN:
            raise WrongType(f"{node.sql('postgres')!r:.80} is of type {made.kind}, not boolean")
        return settled(made, BOOLEAN)

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
        _, (left, right) = common([self.part(node.this), self.part(node.expression)])
        same = type(node) is exp.NullSafeEQ
        return Typed(BOOLEAN, lambda row: int((left(row) == right(row)) == same))

    def _between(self, node: exp.Expression) -> Typed:
        only(node, "this", "low", "high")
        value = self.part(node.this)
        low = self._compared(value, self.part(node.args["low"]), ">=")
        high = self._compared(value, self.part(node.args["high"]), "<=")
        return Typed(BOOLEAN, both(low.compute, high.compute))

    def _in(self, node: exp.Expression) -> Typed:
        only(node, "this", "expressions")
        value = self.part(node.this)
        tests = [self._compared(value, self.part(e), "=").compute for e in node.expressions]
        if not tests:
            raise SyntaxInvalid("IN needs a list of values")
        found = tests[0]
        for test in tests[1:]:
            found = either(found, test)
        return Typed(BOOLEAN, found)

    # ---------------------------------------------------------- functions

    def _text_function(
        self, node: exp.Expression, function: Callable[[str], Any], result: Type
    ) -> Typed:
        only(node, "this")
        made = self.part(node.this)
        if made.kind is not None and not operators.is_text(made.kind):
            raise WrongType(f"{node.sql('postgres')!r:.80} needs text, not {made.kind}")
        return Typed(result, strict(function, settled(made, TEXT)))

    def _abs(self, node: exp.Expression) -> Typed:
        only(node, "this")
        made = self.part(node.this)
        kind = made.kind or DOUBLE
        return Typed(kind, strict(operators.absolute(kind), settled(made, kind)))

    def _list_function(self, node: exp.Expression) -> Typed:
        only(node, "this", "expressions", "ignore_nulls")
        kind, parts = common([self.part(e) for e in (node.this, *node.expressions)])
        if type(node) is exp.Coalesce:
            return Typed(kind, first(parts))
        return Typed(kind, extreme(max if type(node) is exp.Greatest else min, parts))

    def _nullif(self, node: exp.Expression) -> Typed:
        only(node, "this", "expression")
        left = self.part(node.this)
        _, (a, b) = common([left, self.part(node.expression)])
        kind = left.kind or TEXT
        value = settled(left, kind)
        # Compared in the common type, answered in the first one's own.
        return Typed(kind, lambda row: None if a(row) == b(row) else value(row))

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
                test = self._compared(subject, self.part(branch.this), "=")
                conditions.append(test.compute)
            results.append(self.part(branch.args["true"]))
        default = node.args.get("default")
        results.append(self._null(node) if default is None else self.part(default))
        kind, values = common(results)
        branches = list(zip(conditions, values[:-1], strict=True))
        return Typed(kind, chosen(branches, values[-1]))

    def _cast(self, node: exp.Expression) -> Typed:
        only(node, "this", "to")
        target = type_of(node.args["to"])
        made = self.part(node.this)
        if made.kind is None:
            value = None if made.text is None else from_text(Type(target.name), made.text)
            cut = value[: target.length] if value is not None and target.length else value
            return Typed(target, constant(cut))
        convert = operators.cast(made.kind, target)
        if convert is None:
            raise FeatureNotSupported(f"a cast from {made.kind} to {target} is not supported")
        return Typed(target, strict(convert, made.compute))

    _makers: Final[dict[type[exp.Expression], Callable[[Compiler, exp.Expression], Typed]]] = {
        exp.Column: _column,
        exp.Literal: _literal,
        exp.Null: _null,
        exp.Boolean: _boolean,
        exp.Paren: _paren,
        exp.Neg: _negative,
        exp.DPipe: _concatenation,
        exp.And: _conjunction,
        exp.Or: _conjunction,
        exp.Not: _negation,
        exp.Is: _is,
        exp.NullSafeEQ: _distinct,
        exp.NullSafeNEQ: _distinct,
        exp.Between: _between,
        exp.In: _in,
        exp.Abs: _abs,
        exp.Coalesce: _list_function,
        exp.Greatest: _list_function,
        exp.Least: _list_function,
        exp.Nullif: _nullif,
        exp.Case: _case_of,
        exp.Cast: _cast,
    }
    _decided: Final[dict[type[exp.Expression], Callable[[Compiler, exp.Expression], Typed]]] = {
        exp.CurrentTimestamp: _now,
        exp.Localtimestamp: _now,
        exp.CurrentDate: _today,
        exp.Uuid: _uuid,
    }
