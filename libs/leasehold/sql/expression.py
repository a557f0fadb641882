"""An expression over one row, e.g. `seats - 1`, compiled once to a closure over its image.

Types are settled when it is compiled, as PostgreSQL does: a quoted constant takes the type it is
used with, a number with a point is a double (there is no numeric yet). What is not known here is
refused (0A000); nothing is ever evaluated as code.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from typing import Any, Final, NamedTuple, TypeAlias

from sqlglot import exp

from leasehold.model.errors import FeatureNotSupported, Refused, SyntaxInvalid, WrongType
from leasehold.model.records import Image
from leasehold.schema.descriptor import Column, Descriptor
from leasehold.schema.types import Type, to_storage
from leasehold.sql import operators
from leasehold.sql.literal import double, from_text, integer
from leasehold.sql.operators import BIGINT, BOOLEAN, DOUBLE, INTEGER, TEXT
from leasehold.sql.parse import name_of, only, position_of, tokens_of, tree_of, type_of

EXPRESSION_BYTES_MAX: Final = 4_096
_KEPT_MAX: Final = 4_096

Compute: TypeAlias = Callable[[Image], Any]


class Typed(NamedTuple):
    """A compiled part. `kind` None: a quoted constant (`text`) or NULL, its type still open."""

    kind: Type | None
    compute: Compute
    text: str | None = None


_kept: dict[tuple[int, int, int, str], tuple[Descriptor, Compute]] = {}


def compile_expression(
    text: str, descriptor: Descriptor, target: Column | None = None
) -> Callable[[Image], Any]:
    """A function from a row's image to the storage value of `text` under `descriptor`.

    With `target` the value is what is stored in that column: range, length and rounding are those
    of PostgreSQL's assignment, and a value of another type is refused here already.

    Raises SyntaxInvalid, UnknownColumn, WrongType, FeatureNotSupported and OutOfRange (limits)
    when compiling; the function raises DivisionByZero, OutOfRange, InvalidText and TooLong.
    """
    name = (descriptor.table_id, descriptor.version, target.element_id if target else 0, text)
    found = _kept.get(name)
    if found is not None and found[0] is descriptor:
        return found[1]
    compiled = _compile(text, descriptor, target)
    if len(_kept) >= _KEPT_MAX:
        _kept.clear()
    _kept[name] = (descriptor, compiled)
    return compiled


def compile_condition(text: str, descriptor: Descriptor) -> Compute:
    """A condition's value on a row's image: 1, 0 or None. Raises as `compile_expression` does, and
    WrongType for an expression that is not boolean."""
    tree = _tree(text)
    made = _Compiler(descriptor).part(tree)
    if made.kind is not None and made.kind != BOOLEAN:
        raise WrongType(f"the condition is of type {made.kind}, not boolean")
    return _settled(made, BOOLEAN)


def columns_of_expression(text: str) -> frozenset[str]:
    """Names of the columns that an expression mentions."""
    return frozenset(name_of(node.this) for node in _tree(text).find_all(exp.Column))


def rename_column_in(text: str, old: str, new: str) -> str:
    """The expression with one column named otherwise."""
    tree = _tree(text).copy()
    for node in tree.find_all(exp.Column):
        if name_of(node.this) == old:
            node.set("this", exp.to_identifier(new, quoted=True))
    return tree.sql("postgres")


@lru_cache(maxsize=1_024)
def _tree(text: str) -> exp.Expression:
    tree = tree_of(text, tokens_of(text, EXPRESSION_BYTES_MAX))
    if isinstance(tree, exp.Alias | exp.Command):
        raise SyntaxInvalid("the text is more than one expression", position=position_of(tree))
    return tree


def _compile(text: str, descriptor: Descriptor, target: Column | None) -> Compute:
    tree = _tree(text)
    try:
        made = _Compiler(descriptor).part(tree)
        if target is None:
            return _settled(made, made.kind or TEXT)
        return _assigned(made, target.type)
    except Refused as error:
        if "position" in error.detail:
            raise
        position = position_of(tree)
        raise type(error)(error.message, **{**error.detail, "position": position}) from error


def _assigned(made: Typed, target: Type) -> Compute:
    if made.kind is None:
        return _settled(made, target)
    convert = operators.assign(made.kind, target)
    if convert is None:
        raise WrongType(f"the expression is of type {made.kind}; {target} is needed: CAST it")
    return _strict(convert, made.compute)


# ------------------------------------------------------------------ closures


def _constant(value: Any) -> Compute:
    return lambda row: value


def _strict(function: Callable[..., Any], *parts: Compute) -> Compute:
    """NULL as soon as one operand is NULL."""
    if len(parts) == 1:
        (only_part,) = parts

        def one(row: Image) -> Any:
            value = only_part(row)
            return None if value is None else function(value)

        return one
    left, right = parts

    def two(row: Image) -> Any:
        a = left(row)
        if a is None:
            return None
        b = right(row)
        return None if b is None else function(a, b)

    return two


def _settled(part: Typed, kind: Type) -> Compute:
    """A part brought to `kind`: an open constant is read as it, an integer becomes a double."""
    if part.kind is None:
        return _constant(None if part.text is None else from_text(kind, part.text))
    if kind == DOUBLE and operators.is_integer(part.kind):
        return _strict(float, part.compute)
    return part.compute


def _common(parts: list[Typed]) -> tuple[Type, list[Compute]]:
    kind = operators.common_type([part.kind for part in parts if part.kind is not None])
    return kind, [_settled(part, kind) for part in parts]


def _and(left: Compute, right: Compute) -> Compute:
    def both(row: Image) -> int | None:
        a = left(row)
        if a == 0 and a is not None:
            return 0
        b = right(row)
        if b == 0 and b is not None:
            return 0
        return None if a is None or b is None else 1

    return both


def _not(part: Compute) -> Compute:
    return _strict(lambda value: int(not value), part)


def _or(left: Compute, right: Compute) -> Compute:
    return _not(_and(_not(left), _not(right)))


def _first(parts: list[Compute]) -> Compute:
    def coalesce(row: Image) -> Any:
        return next((v for part in parts if (v := part(row)) is not None), None)

    return coalesce


def _extreme(choose: Callable[..., Any], parts: list[Compute]) -> Compute:
    def extreme(row: Image) -> Any:
        values = [value for part in parts if (value := part(row)) is not None]
        return choose(values) if values else None

    return extreme


def _case(branches: list[tuple[Compute, Compute]], default: Compute) -> Compute:
    def choose(row: Image) -> Any:
        for condition, value in branches:
            if condition(row):
                return value(row)
        return default(row)

    return choose


# ------------------------------------------------------------------ compiling

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


class _Compiler:
    def __init__(self, descriptor: Descriptor) -> None:
        self._descriptor = descriptor

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
        if table is not None and name_of(table) != self._descriptor.name:
            raise FeatureNotSupported("only columns of the row itself can be used")
        column = self._descriptor.column(name_of(node.this))
        element_id = column.element_id
        return Typed(column.type, lambda row: row.get(element_id))

    def _literal(self, node: exp.Expression) -> Typed:
        if node.args["is_string"]:
            return Typed(None, _constant(None), str(node.this))
        return self._number(str(node.this))

    def _number(self, text: str) -> Typed:
        if not text.lstrip("-").isdecimal():
            return Typed(DOUBLE, _constant(double(text)))
        value = integer(text)
        kind = INTEGER if -(1 << 31) <= value < 1 << 31 else BIGINT
        return Typed(kind, _constant(to_storage(kind)(value)))

    def _null(self, node: exp.Expression) -> Typed:
        return Typed(None, _constant(None))

    def _boolean(self, node: exp.Expression) -> Typed:
        return Typed(BOOLEAN, _constant(int(bool(node.this))))

    def _paren(self, node: exp.Expression) -> Typed:
        only(node, "this")
        return self.part(node.this)

    # ---------------------------------------------------------- operators

    def _arithmetic(self, node: exp.Expression, sign: str) -> Typed:
        only(node, "this", "expression", "typed", "safe")
        parts = [self.part(node.this), self.part(node.expression)]
        kind, (left, right) = _common(parts)
        return Typed(kind, _strict(operators.arithmetic(sign, kind), left, right))

    def _negative(self, node: exp.Expression) -> Typed:
        if type(node.this) is exp.Literal and not node.this.args["is_string"]:
            return self._number("-" + str(node.this.this))
        made = self.part(node.this)
        kind = made.kind or TEXT
        return Typed(kind, _strict(operators.negate(kind), made.compute))

    def _comparison(self, node: exp.Expression, sign: str) -> Typed:
        only(node, "this", "expression")
        for side in (node.this, node.expression):
            if type(side) in _COMPARISONS:
                raise SyntaxInvalid("comparisons can't be chained: use parentheses")
        return self._compared(self.part(node.this), self.part(node.expression), sign)

    def _compared(self, left: Typed, right: Typed, sign: str) -> Typed:
        _, (a, b) = _common([left, right])
        return Typed(BOOLEAN, _strict(operators.COMPARISONS[sign], a, b))

    def _concatenation(self, node: exp.Expression) -> Typed:
        only(node, "this", "expression", "safe")
        sides = [self.part(node.this), self.part(node.expression)]
        if not any(side.kind is None or operators.is_text(side.kind) for side in sides):
            raise WrongType("|| needs text on one side at least")
        parts = [self._as_text(side) for side in sides]
        return Typed(TEXT, _strict(operators.concatenate, *parts))

    def _as_text(self, made: Typed) -> Compute:
        if made.kind is None:
            return _settled(made, TEXT)
        convert = operators.cast(made.kind, TEXT)
        if convert is None:
            raise FeatureNotSupported(f"there is no text form of {made.kind} yet")
        return _strict(convert, made.compute)

    def _condition(self, node: exp.Expression) -> Compute:
        made = self.part(node)
        if made.kind is not None and made.kind != BOOLEAN:
            raise WrongType(f"{node.sql('postgres')!r:.80} is of type {made.kind}, not boolean")
        return _settled(made, BOOLEAN)

    def _conjunction(self, node: exp.Expression) -> Typed:
        only(node, "this", "expression")
        join = _and if type(node) is exp.And else _or
        return Typed(BOOLEAN, join(self._condition(node.this), self._condition(node.expression)))

    def _negation(self, node: exp.Expression) -> Typed:
        return Typed(BOOLEAN, _not(self._condition(node.this)))

    def _is(self, node: exp.Expression) -> Typed:
        only(node, "this", "expression", "negate")
        wanted = node.expression
        negated = bool(node.args.get("negate"))
        if type(wanted) is exp.Null:
            made = self.part(node.this)
            if made.kind is None:
                raise FeatureNotSupported("IS NULL of a constant is not supported")
            value = made.compute
            return Typed(BOOLEAN, lambda row: int((value(row) is None) != negated))
        if type(wanted) is exp.Boolean:
            truth = self._condition(node.this)
            said = int(bool(wanted.this))
            return Typed(BOOLEAN, lambda row: int((truth(row) == said) != negated))
        raise FeatureNotSupported(f"{node.sql('postgres')!r:.80} is not supported")

    def _distinct(self, node: exp.Expression) -> Typed:
        only(node, "this", "expression")
        _, (left, right) = _common([self.part(node.this), self.part(node.expression)])
        same = type(node) is exp.NullSafeEQ
        return Typed(BOOLEAN, lambda row: int((left(row) == right(row)) == same))

    def _between(self, node: exp.Expression) -> Typed:
        only(node, "this", "low", "high")
        value = self.part(node.this)
        low = self._compared(value, self.part(node.args["low"]), ">=")
        high = self._compared(value, self.part(node.args["high"]), "<=")
        return Typed(BOOLEAN, _and(low.compute, high.compute))

    def _in(self, node: exp.Expression) -> Typed:
        only(node, "this", "expressions")
        value = self.part(node.this)
        tests = [self._compared(value, self.part(e), "=").compute for e in node.expressions]
        if not tests:
            raise SyntaxInvalid("IN needs a list of values")
        found = tests[0]
        for test in tests[1:]:
            found = _or(found, test)
        return Typed(BOOLEAN, found)

    # ---------------------------------------------------------- functions

    def _text_function(
        self, node: exp.Expression, function: Callable[[str], Any], result: Type
    ) -> Typed:
        only(node, "this")
        made = self.part(node.this)
        if made.kind is not None and not operators.is_text(made.kind):
            raise WrongType(f"{node.sql('postgres')!r:.80} needs text, not {made.kind}")
        return Typed(result, _strict(function, _settled(made, TEXT)))

    def _abs(self, node: exp.Expression) -> Typed:
        only(node, "this")
        made = self.part(node.this)
        kind = made.kind or DOUBLE
        return Typed(kind, _strict(operators.absolute(kind), _settled(made, kind)))

    def _list_function(self, node: exp.Expression) -> Typed:
        only(node, "this", "expressions", "ignore_nulls")
        kind, parts = _common([self.part(e) for e in (node.this, *node.expressions)])
        if type(node) is exp.Coalesce:
            return Typed(kind, _first(parts))
        return Typed(kind, _extreme(max if type(node) is exp.Greatest else min, parts))

    def _nullif(self, node: exp.Expression) -> Typed:
        only(node, "this", "expression")
        left = self.part(node.this)
        _, (a, b) = _common([left, self.part(node.expression)])
        kind = left.kind or TEXT
        value = _settled(left, kind)
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
        kind, values = _common(results)
        branches = list(zip(conditions, values[:-1], strict=True))
        return Typed(kind, _case(branches, values[-1]))

    def _cast(self, node: exp.Expression) -> Typed:
        only(node, "this", "to")
        target = type_of(node.args["to"])
        made = self.part(node.this)
        if made.kind is None:
            value = None if made.text is None else from_text(Type(target.name), made.text)
            cut = value[: target.length] if value is not None and target.length else value
            return Typed(target, _constant(cut))
        convert = operators.cast(made.kind, target)
        if convert is None:
            raise FeatureNotSupported(f"a cast from {made.kind} to {target} is not supported")
        return Typed(target, _strict(convert, made.compute))

    _makers: Final[dict[type[exp.Expression], Callable[[_Compiler, exp.Expression], Typed]]] = {
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
