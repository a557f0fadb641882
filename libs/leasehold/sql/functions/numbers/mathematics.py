"""Functions over numbers: exact ones with PostgreSQL's digits, doubles by the C library."""

from __future__ import annotations

import math
from collections.abc import Callable
from decimal import ROUND_CEILING, ROUND_DOWN, ROUND_FLOOR, Decimal
from hashlib import blake2b
from typing import Final

from leasehold.catalog.elements import CommitContext
from leasehold.model.errors import (
    InvalidLogarithm,
    InvalidPower,
    OutOfRange,
    TooComplex,
)
from leasehold.sql.functions.function import (
    BIGINT,
    DOUBLE,
    INTEGER,
    INTEGERS,
    NUMERIC,
    REAL,
    Function,
    make_over_doubles,
)
from leasehold.sql.functions.numbers.arithmetic import (
    OPERATORS as ARITHMETIC,
)
from leasehold.sql.functions.numbers.arithmetic import (
    charge_dividing,
    check_finite,
    check_range,
    endless_quotient,
    over_charged_decimals,
    over_decimals,
    shown_scale,
    times_power,
)
from leasehold.sql.functions.numbers.digits import (
    charge_common_divisor,
    charge_common_multiple,
    charge_factorial,
)
from leasehold.sql.functions.numbers.powers import (
    exponential,
    logarithm,
    natural_logarithm,
    power,
    square_root,
)
from leasehold.values.numeric import EXACT, SCALE_MAX, decimal_of, round_number, stored_form

# ------------------------------------------------------------------ rounding


def _at_scale(compute: Callable[[Decimal, int], Decimal]) -> Callable[[str, int], str]:
    def stored(value: str, scale: int) -> str:
        number = decimal_of(value)
        if not number.is_finite():
            return value
        return stored_form(compute(number, max(min(scale, SCALE_MAX), -SCALE_MAX)))

    return stored


def _round(number: Decimal, scale: int) -> Decimal:
    return round_number(number, scale)


def _truncate(number: Decimal, scale: int) -> Decimal:
    unit = Decimal((0, (1,), -scale))
    made = number.quantize(unit, rounding=ROUND_DOWN, context=EXACT)
    made = made.quantize(Decimal(1), context=EXACT) if scale < 0 else made
    return made or made.copy_abs()


def _to_whole(rounding: str) -> Callable[[str], str]:
    def stored(value: str) -> str:
        number = decimal_of(value)
        if not number.is_finite():
            return value
        made = number.to_integral_value(rounding, context=EXACT)
        return stored_form(made or made.copy_abs())

    return stored


def _sign(number: Decimal) -> Decimal:
    if number.is_nan():
        return number
    return Decimal((number > 0) - (number < 0))


def _double_round(value: float) -> float:
    if not math.isfinite(value):
        return value
    return math.copysign(float(round(value)), value)


def _double_whole(compute: Callable[[float], int]) -> Callable[[float], float]:
    def whole(value: float) -> float:
        return math.copysign(float(compute(value)), value) if math.isfinite(value) else value

    return whole


# ------------------------------------------------------------------ whole numbers


def _whole_quotient(left: Decimal, right: Decimal) -> Decimal:
    endless = endless_quotient(left, right)
    if endless is not None:
        return endless
    whole = EXACT.divide_int(left, right)
    return whole or whole.copy_abs()


def _exact_gcd(
    compute: Callable[[int, int], int], charge: Callable[[int], None]
) -> Callable[[Decimal, Decimal], Decimal]:
    def made(left: Decimal, right: Decimal) -> Decimal:
        if not (left.is_finite() and right.is_finite()):
            return Decimal("NaN")
        if max(left.adjusted(), right.adjusted()) >= GCD_DIGITS_MAX:
            raise TooComplex(f"gcd and lcm take numbers of at most {GCD_DIGITS_MAX} digits")
        scale = max(shown_scale(left), shown_scale(right))
        digits = max(left.adjusted(), right.adjusted()) + scale + 1
        charge(digits)
        found = compute(times_power(left, scale), times_power(right, scale))
        return Decimal(found).scaleb(-scale, context=EXACT)

    return made


_FACTORS_AT_ONCE: Final = 64
_FACTORIAL_MOST: Final = 32_177  # the largest that numeric holds
GCD_DIGITS_MAX: Final = 16_384
"""Before the point: Euclid's steps take time that grows with the square of the digits, and can't be
interrupted; so many, and as many behind the point, take some tens of milliseconds."""


def _factorial(value: int) -> str:
    if value < 0:
        raise OutOfRange("factorial of a negative number is undefined")
    if value > _FACTORIAL_MOST:
        raise OutOfRange("value overflows numeric format")
    charge_factorial(value)
    return stored_form(_product_of(1, max(value, 1)))


def _product_of(first: int, last: int) -> Decimal:
    """first × … × last; of decimals, since an int of 130,000 digits is slow to turn into one."""
    if last - first < _FACTORS_AT_ONCE:
        return Decimal(math.prod(range(first, last + 1)))
    middle = (first + last) // 2
    return EXACT.multiply(_product_of(first, middle), _product_of(middle + 1, last))


def _trim_scale(number: Decimal) -> Decimal:
    if not number.is_finite():
        return number
    return round_number(number, _least_scale(number))


def _least_scale(number: Decimal) -> int:
    digits = format(number, "f").partition(".")[2]
    return len(digits.rstrip("0"))


def _scale(compute: Callable[[Decimal], int]) -> Callable[[str], int | None]:
    def found(value: str) -> int | None:
        number = decimal_of(value)
        return compute(number) if number.is_finite() else None

    return found


# ------------------------------------------------------------------ doubles


def _double_power(base: float, exponent: float) -> float:
    if base == 0.0 and exponent < 0:
        raise InvalidPower("zero raised to a negative power is undefined")
    if base < 0 and math.isfinite(exponent) and not exponent.is_integer():
        raise InvalidPower(
            "a negative number raised to a non-integer power yields a complex result"
        )
    made = math.pow(base, exponent)
    if made == 0.0 and base != 0.0 and math.isfinite(base) and math.isfinite(exponent):
        raise OutOfRange("value out of range: underflow")
    return made


def _double_log(compute: Callable[[float], float]) -> Callable[[float], float]:
    def made(value: float) -> float:
        if value == 0.0:
            raise InvalidLogarithm("cannot take logarithm of zero")
        if value < 0.0:
            raise InvalidLogarithm("cannot take logarithm of a negative number")
        return compute(value)

    return made


def _double_root(value: float) -> float:
    if value < 0:
        raise InvalidPower("cannot take square root of a negative number")
    return math.sqrt(value)


def _double_exponential(value: float) -> float:
    if value == -math.inf:
        return 0.0
    made = math.exp(value)
    if made == 0.0:
        raise OutOfRange("value out of range: underflow")
    return made


def _within(compute: Callable[[float], float], least: float, most: float) -> Callable[..., float]:
    def made(value: float) -> float:
        if value < least or value > most:  # NaN is neither
            raise OutOfRange("input is out of range")
        return compute(value)

    return made


def _unbounded(compute: Callable[[float], float], value: float, beyond: float) -> float:
    try:
        return compute(value)
    except OverflowError:
        return beyond


_MATH: Final[dict[str, Callable[[float], float]]] = {
    "sin": _within(math.sin, -1.7e308, 1.7e308),
    "cos": _within(math.cos, -1.7e308, 1.7e308),
    "tan": _within(math.tan, -1.7e308, 1.7e308),
    "asin": _within(math.asin, -1.0, 1.0),
    "acos": _within(math.acos, -1.0, 1.0),
    "atan": math.atan,
    "sinh": lambda value: _unbounded(math.sinh, value, math.copysign(math.inf, value)),
    "cosh": lambda value: _unbounded(math.cosh, value, math.inf),
    "tanh": math.tanh,
    "degrees": check_finite(lambda value: value / (math.pi / 180.0)),
    "radians": lambda value: value * (math.pi / 180.0),
    "cbrt": lambda value: math.cbrt(value),
    "exp": check_finite(_double_exponential),
    "ln": _double_log(math.log),
    "log": _double_log(math.log10),
    "log10": _double_log(math.log10),
    "sqrt": _double_root,
    "abs": abs,
    "ceil": _double_whole(math.ceil),
    "ceiling": _double_whole(math.ceil),
    "floor": _double_whole(math.floor),
    "trunc": _double_whole(math.trunc),
    "round": _double_round,
    "sign": lambda value: float((value > 0) - (value < 0)),
}

_NUMERIC: Final[dict[str, Callable[..., str]]] = {
    "abs": over_decimals(Decimal.copy_abs),
    "ceil": _to_whole(ROUND_CEILING),
    "ceiling": _to_whole(ROUND_CEILING),
    "floor": _to_whole(ROUND_FLOOR),
    "trunc": lambda value: _at_scale(_truncate)(value, 0),
    "round": lambda value: _at_scale(_round)(value, 0),
    "sign": over_decimals(_sign),
    "sqrt": over_decimals(square_root),
    "exp": over_decimals(exponential),
    "ln": over_decimals(natural_logarithm),
    "log": over_decimals(lambda value: logarithm(Decimal(10), value)),
    "log10": over_decimals(lambda value: logarithm(Decimal(10), value)),
    "trim_scale": over_decimals(_trim_scale),
}

_EXACT_PAIRS: Final[dict[str, Callable[[str, str], str]]] = {
    "div": over_charged_decimals(_whole_quotient, charge_dividing),
    "power": over_decimals(power),
    "pow": over_decimals(power),
    "log": over_decimals(logarithm),
    "gcd": over_decimals(_exact_gcd(math.gcd, charge_common_divisor)),
    "lcm": over_decimals(_exact_gcd(math.lcm, charge_common_multiple)),
}


def _random(context: CommitContext) -> float:
    bits = int.from_bytes(blake2b(context.seed, digest_size=8).digest(), "big") >> 11
    return bits / (1 << 53)


FUNCTIONS: Final[tuple[Function, ...]] = (
    *(Function("abs", (kind,), kind, check_range(kind, abs)) for kind in INTEGERS),
    make_over_doubles("abs", (REAL,), REAL, abs),
    *(make_over_doubles(name, (DOUBLE,), DOUBLE, compute) for name, compute in _MATH.items()),
    *(Function(name, (NUMERIC,), NUMERIC, compute) for name, compute in _NUMERIC.items()),
    *(
        Function(name, (NUMERIC, NUMERIC), NUMERIC, compute)
        for name, compute in _EXACT_PAIRS.items()
    ),
    Function("round", (NUMERIC, INTEGER), NUMERIC, _at_scale(_round)),
    Function("trunc", (NUMERIC, INTEGER), NUMERIC, _at_scale(_truncate)),
    make_over_doubles("power", (DOUBLE, DOUBLE), DOUBLE, check_finite(_double_power)),
    make_over_doubles("pow", (DOUBLE, DOUBLE), DOUBLE, check_finite(_double_power)),
    make_over_doubles("atan2", (DOUBLE, DOUBLE), DOUBLE, math.atan2),
    Function("pi", (), DOUBLE, lambda: math.pi),
    Function("scale", (NUMERIC,), INTEGER, _scale(shown_scale)),
    Function("min_scale", (NUMERIC,), INTEGER, _scale(_least_scale)),
    Function("factorial", (BIGINT,), NUMERIC, _factorial),
    *(Function("gcd", (k, k), k, check_range(k, math.gcd)) for k in INTEGERS[1:]),
    *(Function("lcm", (k, k), k, check_range(k, math.lcm)) for k in INTEGERS[1:]),
    *(
        Function("mod", f.arguments, f.result, f.compute)
        for f in ARITHMETIC
        if f.name == "%" and f.arguments[0] == f.arguments[1]
    ),
    Function("random", (), DOUBLE, _random, volatility="volatile"),
)
OPERATORS: Final[tuple[Function, ...]] = (
    Function("^", (NUMERIC, NUMERIC), NUMERIC, over_decimals(power)),
    make_over_doubles("^", (DOUBLE, DOUBLE), DOUBLE, check_finite(_double_power)),
    *(Function("@", (kind,), kind, check_range(kind, abs)) for kind in INTEGERS),
    *(make_over_doubles("@", (kind,), kind, abs) for kind in (REAL, DOUBLE)),
    Function("@", (NUMERIC,), NUMERIC, over_decimals(Decimal.copy_abs)),
    make_over_doubles("|/", (DOUBLE,), DOUBLE, _double_root),
    make_over_doubles("||/", (DOUBLE,), DOUBLE, lambda value: math.cbrt(value)),
)
