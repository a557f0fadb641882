"""+ - * / % over storage values: integers of three widths, doubles, exact numbers.

Integers are checked to the width of their type (22003), division truncates and refuses zero
(22012), % takes the sign of the dividend, doubles refuse to become infinite; a numeric has as many
digits behind the point as PostgreSQL gives it.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Callable
from decimal import Decimal
from typing import Final

from leasehold.model.errors import DivisionByZero, OutOfRange
from leasehold.sql.functions.function import (
    DOUBLE,
    INTEGER,
    INTEGERS,
    NUMERIC,
    REAL,
    Function,
    make_over_doubles,
    unchanged,
)
from leasehold.sql.functions.numbers.digits import charge_product, charge_quotient
from leasehold.values.numeric import (
    EXACT,
    SCALE_MAX,
    decimal_of,
    digits_in,
    round_number,
    stored_form,
)
from leasehold.values.singles import single_of
from leasehold.values.types import INTEGER_BITS, Type

DIGITS_LEAST: Final = 16
"""Significant digits of a quotient, a root, a logarithm."""
DISPLAY_SCALE_MAX: Final = 1_000
"""Digits behind the point of what does not come out even."""
_GROUP: Final = 4  # PostgreSQL's digits are groups of four, from which it estimates


# ------------------------------------------------------------------ integers


def check_range(kind: Type, compute: Callable[..., int]) -> Callable[..., int]:
    """Raises OutOfRange (22003) where the result has no room in `kind`."""
    limit = 1 << INTEGER_BITS[kind.name] - 1

    def checked(*values: int) -> int:
        value = compute(*values)
        if not -limit <= value < limit:
            raise OutOfRange(f"{kind} out of range")
        return value

    return checked


def divided(left: int, right: int) -> int:
    """Towards zero."""
    if right == 0:
        raise DivisionByZero("division by zero")
    quotient = abs(left) // abs(right)
    return quotient if (left < 0) == (right < 0) else -quotient


def modulo(left: int, right: int) -> int:
    if right == 0:
        raise DivisionByZero("division by zero")
    remainder = abs(left) % abs(right)
    return -remainder if left < 0 else remainder


_ON_INTEGERS: Final[dict[str, Callable[..., int]]] = {
    "+": operator.add,
    "-": operator.sub,
    "*": operator.mul,
    "/": divided,
    "%": modulo,
    "&": operator.and_,
    "|": operator.or_,
    "#": operator.xor,
}


# ------------------------------------------------------------------ doubles


def check_finite(compute: Callable[..., float], *, shrinks: bool = False) -> Callable[..., float]:
    """Raises OutOfRange (22003) where finite values give an infinite one, or, with `shrinks`, zero
    of values that are not."""

    def checked(*values: float) -> float:
        try:
            value = compute(*values)
        except ZeroDivisionError as error:
            raise DivisionByZero("division by zero") from error
        except OverflowError as error:
            raise OutOfRange("value out of range: overflow") from error
        if math.isinf(value) and all(map(math.isfinite, values)):
            raise OutOfRange("value out of range: overflow")
        if shrinks and value == 0.0 and all(values) and math.isfinite(values[1]):
            raise OutOfRange("value out of range: underflow")
        return value

    return checked


def _double_quotient(left: float, right: float) -> float:
    return left if math.isnan(left) else left / right


_DOUBLE: Final[dict[str, Callable[..., float]]] = {
    "+": check_finite(operator.add),
    "-": check_finite(operator.sub),
    "*": check_finite(operator.mul, shrinks=True),
    "/": check_finite(_double_quotient, shrinks=True),
}


def in_real(compute: Callable[..., float]) -> Callable[..., float]:
    """Return `compute` with its result rounded to a real. Raises OutOfRange where it has no
    room."""

    def computed(*values: float) -> float:
        made = compute(*values)
        return single_of(made) if math.isfinite(made) else made

    return computed


# ------------------------------------------------------------------ exact numbers


def over_decimals(compute: Callable[..., Decimal]) -> Callable[..., str]:
    """Return `compute`, which is over numbers, as a function over their storage forms."""

    def stored(*values: str) -> str:
        return stored_form(compute(*map(decimal_of, values)))

    return stored


def over_charged_decimals(
    compute: Callable[[Decimal, Decimal], Decimal],
    charge: Callable[[Decimal, Decimal, int, int], None],
) -> Callable[[str, str], str]:
    """Return what `over_decimals` does, where `charge` is told both numbers and the digits of each
    before."""

    def stored(left: str, right: str) -> str:
        a, b = decimal_of(left), decimal_of(right)
        charge(a, b, digits_in(left, a), digits_in(right, b))
        return stored_form(compute(a, b))

    return stored


def charge_multiplying(left: Decimal, right: Decimal, left_digits: int, right_digits: int) -> None:
    charge_product(left_digits + right_digits)


def charge_dividing(left: Decimal, right: Decimal, left_digits: int, right_digits: int) -> None:
    """Charge for a quotient, or for a remainder, of which either has digits behind the point."""
    charge_quotient(left, right, right_digits, DISPLAY_SCALE_MAX)


def shown_scale(value: Decimal) -> int:
    """Digits behind the point; 0 of what is not finite."""
    exponent = value.as_tuple().exponent
    return -exponent if isinstance(exponent, int) else 0


def weight(value: Decimal) -> tuple[int, int]:
    """Return which power of 10,000 the first group of digits that is not zero counts, and that
    group."""
    if not value:
        return 0, 0
    position = value.adjusted() // _GROUP
    first = int(value.copy_abs().scaleb(-position * _GROUP, context=EXACT))
    return position, first


def bounded_scale(scale: int, *values: Decimal) -> int:
    """Return a scale that is not less than any of the values has, nor more than what does not come
    out even may have."""
    return min(max(scale, 0, *map(shown_scale, values)), DISPLAY_SCALE_MAX)


def division_scale(left: Decimal, right: Decimal) -> int:
    left_place, left_first = weight(left)
    right_place, right_first = weight(right)
    position = left_place - right_place - (left_first <= right_first)
    return bounded_scale(DIGITS_LEAST - position * _GROUP, left, right)


def times_power(value: Decimal, power: int) -> int:
    """The whole number value × 10^power; `power` at least its digits behind the point."""
    return int(value.scaleb(power, context=EXACT))


def quotient(left: Decimal, right: Decimal, scale: int) -> Decimal:
    """Rounded half away from zero to `scale` digits behind the point.

    Of decimals, not of ints: a number of many digits is divided, and turned into an int, in time
    that grows with their square there."""
    by = right.copy_abs()
    whole, rest = EXACT.divmod(left.copy_abs().scaleb(scale, context=EXACT), by)
    if EXACT.add(rest, rest) >= by:
        whole = EXACT.add(whole, Decimal(1))
    if whole and left.is_signed() != right.is_signed():
        whole = whole.copy_negate()
    return whole.scaleb(-scale, context=EXACT)


def endless_quotient(left: Decimal, right: Decimal) -> Decimal | None:
    """Return the quotient where NaN or an infinity is among the operands, None where both are
    finite. Raises DivisionByZero."""
    if left.is_nan() or right.is_nan():
        return Decimal("NaN")
    if not right:
        raise DivisionByZero("division by zero")
    if right.is_infinite():
        return Decimal("NaN") if left.is_infinite() else Decimal(0)
    if left.is_infinite():
        return left if right > 0 else left.copy_negate()
    return None


def numeric_quotient(left: Decimal, right: Decimal) -> Decimal:
    endless = endless_quotient(left, right)
    return quotient(left, right, division_scale(left, right)) if endless is None else endless


def _remainder(left: Decimal, right: Decimal) -> Decimal:
    if left.is_nan() or right.is_nan():
        return Decimal("NaN")
    if not right:
        raise DivisionByZero("division by zero")
    if left.is_infinite():
        return Decimal("NaN")
    if right.is_infinite():
        return left
    rest = EXACT.remainder(left, right)  # of the dividend's sign
    return rest or rest.copy_abs()


def _product(left: Decimal, right: Decimal) -> Decimal:
    made = EXACT.multiply(left, right)
    return round_number(made, SCALE_MAX) if shown_scale(made) > SCALE_MAX else made


_EXACT: Final[dict[str, Callable[[str, str], str]]] = {
    "+": over_decimals(EXACT.add),
    "-": over_decimals(EXACT.subtract),
    "*": over_charged_decimals(_product, charge_multiplying),
    "/": over_charged_decimals(numeric_quotient, charge_dividing),
    "%": over_charged_decimals(_remainder, charge_dividing),
}


# ------------------------------------------------------------------ the operators


def wider(left: Type, right: Type) -> Type:
    return max(left, right, key=INTEGERS.index)


def _integer_operators() -> list[Function]:
    made = []
    for left in INTEGERS:
        for right in INTEGERS:
            kind = wider(left, right)
            signs = "+-*/%" if left != right else "+-*/%&|#"
            for sign in signs:
                compute = check_range(kind, _ON_INTEGERS[sign])
                made.append(Function(sign, (left, right), kind, compute))
        made.append(Function("-", (left,), left, check_range(left, operator.neg)))
        made.append(Function("+", (left,), left, operator.pos))
        made.append(Function("~", (left,), left, operator.invert))
    return made


def _shift_left(kind: Type) -> Function:
    """Bits that leave on the left are gone, as in C, which computes smallint in 32 bits."""
    bits = INTEGER_BITS[kind.name]
    by_most = max(bits, 32) - 1

    def shifted(value: int, by: int) -> int:
        made = (value << (by & by_most)) & (1 << bits) - 1
        return made - (1 << bits) if made >> bits - 1 else made

    return Function("<<", (kind, INTEGER), kind, shifted)


def _shift_right(kind: Type) -> Function:
    by_most = max(INTEGER_BITS[kind.name], 32) - 1
    return Function(">>", (kind, INTEGER), kind, lambda value, by: value >> (by & by_most))


OPERATORS: Final = (
    *_integer_operators(),
    *(
        make_over_doubles(sign, kinds, DOUBLE, compute)
        for sign, compute in _DOUBLE.items()
        for kinds in ((DOUBLE, DOUBLE), (REAL, DOUBLE), (DOUBLE, REAL))
    ),
    *(
        make_over_doubles(sign, (REAL, REAL), REAL, in_real(compute))
        for sign, compute in _DOUBLE.items()
    ),
    *(make_over_doubles("-", (kind,), kind, operator.neg) for kind in (REAL, DOUBLE)),
    *(Function("+", (kind,), kind, unchanged) for kind in (REAL, DOUBLE)),
    *(Function(sign, (NUMERIC, NUMERIC), NUMERIC, compute) for sign, compute in _EXACT.items()),
    Function("-", (NUMERIC,), NUMERIC, over_decimals(Decimal.copy_negate)),
    Function("+", (NUMERIC,), NUMERIC, unchanged),
    *(_shift_left(kind) for kind in INTEGERS),
    *(_shift_right(kind) for kind in INTEGERS),
)
