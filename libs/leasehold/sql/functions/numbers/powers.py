"""Roots, powers and logarithms of exact numbers, with the digits that PostgreSQL gives them.

What does not come out even is computed with more digits than are shown and rounded once. How many
are shown PostgreSQL estimates from the first digits; the estimates are those of its sources.
"""

from __future__ import annotations

import math
from decimal import ROUND_DOWN, ROUND_HALF_EVEN, Context, Decimal

from leasehold.model.errors import (
    DivisionByZero,
    InvalidLogarithm,
    InvalidPower,
    OutOfRange,
    TooComplex,
)
from leasehold.sql.functions.numbers.arithmetic import (
    DIGITS_LEAST,
    DISPLAY_SCALE_MAX,
    bounded_scale,
    quotient,
    weight,
)
from leasehold.sql.functions.numbers.digits import (
    charge_exponential,
    charge_logarithm,
    charge_power,
    charge_product,
    charge_quotient,
    charge_root,
)
from leasehold.values.numeric import EXACT, WHOLE_DIGITS_MAX, round_number

_GUARD = 12
_HALVINGS = 48
"""Of an exponent, so that few terms of its series count."""
LOGARITHM_DIGITS_MAX = 2_000
"""One of more can't be interrupted for seconds; only a base within 10^-1000 of 1 needs them."""
_ROOT_DIGITS = 1_000
_NEAR_ONE = 20
"""Digits 0 behind the point of what 1 is taken from."""
_BITS_OF_DIGIT = 3.3219281
_LOG10_E = 0.434294481903252
_LN_10 = 2.302585092994046
_WHOLE_LEAST, _WHOLE_MOST = -(1 << 31), (1 << 31) - 1
_RESULT_SCALE_MAX = 2_000
_NAN = Decimal("NaN")
_INFINITY = Decimal("Infinity")


def _context(digits: int) -> Context:
    """Correctly rounded at so many digits; it raises nothing."""
    return Context(
        prec=max(digits, 1), rounding=ROUND_HALF_EVEN, Emin=-(10**9), Emax=10**9, traps=[]
    )


def square_root(value: Decimal) -> Decimal:
    """Raises InvalidPower (2201F) below zero."""
    if value.is_nan():
        return value
    if value < 0:
        raise InvalidPower("cannot take square root of a negative number")
    if value.is_infinite():
        return value
    position, _ = weight(value)
    # C divides towards zero.
    half = position * 4 // 2 + 1 if position >= 0 else 1 - (1 - position * 4) // 2
    return root_at(value, bounded_scale(DIGITS_LEAST - half, value))


def root_at(value: Decimal, scale: int) -> Decimal:
    """Return the root of a finite number that is not below zero, rounded to `scale` digits behind
    the point."""
    digits = max(value.adjusted() // 2 + 1, 0)
    charge_root(digits + scale)
    root = _root_of_digits(value, digits + scale + _GUARD)
    # One digit more than is shown decides the rounding: it must be the root's own.
    unit = Decimal((0, (1,), -scale - 1))
    root = root.quantize(unit, rounding=ROUND_DOWN, context=EXACT)
    while EXACT.multiply(root, root) > value:
        root = EXACT.subtract(root, unit)
    return round_number(root, scale)


def _root_of_digits(value: Decimal, digits: int) -> Decimal:
    """Return the root with so many right digits, but for the last few: by Heron's steps, each of
    which doubles them; `Context.sqrt` takes time that grows with the square of the digits."""
    right = min(digits, _ROOT_DIGITS)
    root = _context(right).sqrt(value)
    while right < digits:
        right = min(2 * right - 2, digits)
        context = _context(right)
        root = context.divide(context.add(root, context.divide(value, root)), Decimal(2))
    return root


def exponential(value: Decimal) -> Decimal:
    """Raises OutOfRange (22003) where numeric has no room."""
    if value.is_nan():
        return value
    if value.is_infinite():
        return value if value > 0 else Decimal(0)
    beyond = abs(value) >= _RESULT_SCALE_MAX * 3
    if beyond and value > 0:
        raise OutOfRange("value overflows numeric format")
    digits = -DISPLAY_SCALE_MAX if beyond else int(float(value) * _LOG10_E)
    scale = bounded_scale(DIGITS_LEAST - digits, value)
    if beyond:
        return round_number(Decimal(0), scale)
    return round_number(_exponential_at(value, scale + _GUARD, max(digits, 0)), scale)


def _exponential_at(value: Decimal, places: int, digits: int) -> Decimal:
    """e^value to `places` digits behind the point, with about `digits` before it; by whole numbers
    in units of 2^-bits, which is a hundred times as fast as `Context.exp` for many digits."""
    charge_exponential(places + digits)
    doublings = max(int(value.copy_abs()).bit_length(), 0) + _HALVINGS
    bits = int((places + digits + 4) * _BITS_OF_DIGIT) + 2 * doublings + 16
    ten = places + digits + 10 + doublings
    number = int(round_number(value.copy_abs(), ten).scaleb(ten, context=EXACT))
    part = ((number << bits) // 10**ten) >> doublings
    one = 1 << bits
    made = term = one
    count = 1
    while term:
        term = (term * part >> bits) // count
        made += term
        count += 1
    for _ in range(doublings):
        made = made * made >> bits
    if value < 0:
        made = (one << bits) // made
    return Decimal((made * 10**places) >> bits).scaleb(-places, context=EXACT)


def _check_logarithm(value: Decimal) -> None:
    if value.is_nan():
        return
    if value < 0:
        raise InvalidLogarithm("cannot take logarithm of a negative number")
    if not value:
        raise InvalidLogarithm("cannot take logarithm of zero")


def _logarithm_places(value: Decimal) -> int:
    """Return about the decimal place of the first digit of ln(value)."""
    if Decimal("0.9") <= value <= Decimal("1.1"):
        rest = EXACT.subtract(value, Decimal(1)).copy_abs()
        if not rest:
            return 0
        position, first = weight(rest)
        return position * 4 + int(math.log10(first))
    position, first = weight(value)
    digits, shift = first, position * 4
    whole = value.copy_abs().scaleb(-(position - 1) * 4, context=EXACT)
    if whole != first * 10_000 or _groups(value) > 1:
        digits, shift = int(whole), shift - 4
    estimate = math.log(digits) + shift * _LN_10
    return int(math.log10(abs(estimate))) if estimate else 0


def _groups(value: Decimal) -> int:
    """How many groups of four digits PostgreSQL keeps of it."""
    text = format(value.copy_abs(), "f")
    whole, _, fraction = text.partition(".")
    whole = whole.lstrip("0")
    whole = whole.rjust(-(-len(whole) // 4) * 4, "0") if whole else ""
    fraction = fraction.ljust(-(-len(fraction) // 4) * 4, "0")
    groups = [(whole + fraction)[at : at + 4] for at in range(0, len(whole + fraction), 4)]
    while groups and groups[0] == "0000":
        groups.pop(0)
    while groups and groups[-1] == "0000":
        groups.pop()
    return len(groups)


def _ln(value: Decimal, scale: int) -> Decimal:
    """Return ln(value), of which at least so many digits behind the point are right."""
    return _ln_of_digits(value, scale + 10 + _GUARD)


def _ln_of_digits(value: Decimal, digits: int) -> Decimal:
    """Return ln(value) with so many significant digits. Near 1 it is computed by the few terms of
    the series that count: `Context.ln` first finds out how near it is, with ever more digits."""
    context = _context(digits)
    rest = EXACT.subtract(value, Decimal(1))
    if not rest:
        return Decimal(0)
    if rest.adjusted() > -_NEAR_ONE:
        charge_logarithm(digits)
        return context.ln(context.plus(value))
    rest = term = made = context.plus(rest)
    for count in range(2, digits // _NEAR_ONE + 2):
        term = context.multiply(term, rest.copy_negate())
        if term.adjusted() < made.adjusted() - digits:
            break
        made = context.add(made, context.divide(term, Decimal(count)))
    return made


def natural_logarithm(value: Decimal) -> Decimal:
    """Raises InvalidLogarithm (2201E) for zero and below."""
    _check_logarithm(value)
    if not value.is_finite():
        return value
    scale = bounded_scale(DIGITS_LEAST - _logarithm_places(value), value)
    return round_number(_ln(value, scale), scale)


def logarithm(base: Decimal, value: Decimal) -> Decimal:
    """Raises InvalidLogarithm (2201E) for zero and below, DivisionByZero for base 1."""
    if base.is_nan() or value.is_nan():
        return _NAN
    _check_logarithm(base)
    _check_logarithm(value)
    if base.is_infinite():
        return _NAN if value.is_infinite() else Decimal(0)
    if value.is_infinite():
        return value
    places = _logarithm_places(value) - _logarithm_places(base)
    scale = bounded_scale(DIGITS_LEAST - places, base, value)
    digits = scale + 20 + _GUARD + abs(places)
    if digits > LOGARITHM_DIGITS_MAX:
        raise TooComplex(f"log to a base so near 1 takes {digits} digits of a logarithm")
    below = _ln_of_digits(base, digits)
    if not below:
        raise DivisionByZero("division by zero")
    return round_number(_context(digits).divide(_ln_of_digits(value, digits), below), scale)


def power(base: Decimal, exponent: Decimal) -> Decimal:
    """Raises InvalidPower (2201F), OutOfRange (22003)."""
    special = _special_power(base, exponent)
    if special is not None:
        return special
    if not base and exponent < 0:
        raise InvalidPower("zero raised to a negative power is undefined")
    is_whole = exponent == exponent.to_integral_value(context=EXACT)
    if base < 0 and not is_whole:
        raise InvalidPower(
            "a negative number raised to a non-integer power yields a complex result"
        )
    if is_whole and _WHOLE_LEAST <= exponent <= _WHOLE_MOST:
        return _whole_power(base, int(exponent))
    if not base:
        return round_number(Decimal(0), DIGITS_LEAST)
    negative = base < 0 and _is_odd(exponent)
    base = base.copy_abs()
    # Of the logarithm eight digits, as PostgreSQL takes them to see how large the result will be.
    rough = max(8 - _logarithm_places(base), 0)
    estimate = float(
        round_number(EXACT.multiply(round_number(_ln(base, rough), rough), exponent), rough)
    )
    if abs(estimate) > _RESULT_SCALE_MAX * 3.01:
        if estimate > 0:
            raise OutOfRange("value overflows numeric format")
        return round_number(Decimal(0), DISPLAY_SCALE_MAX)
    digits = int(estimate * _LOG10_E)
    scale = bounded_scale(DIGITS_LEAST - digits, base, exponent)
    places = scale + 10 + _GUARD
    # A small exponent takes digits of the logarithm away, a large one needs more.
    wide = _context(places + max(digits, 0) + max(exponent.adjusted(), 0) + 10)
    power = wide.multiply(_ln_of_digits(base, wide.prec), wide.plus(exponent))
    made = round_number(_exponential_at(power, places, max(digits, 0)), scale)
    return made.copy_negate() if negative else made


def _is_odd(number: Decimal) -> bool:
    """Return whether a whole number is odd: an int of it takes time that goes with the square of
    its digits."""
    return bool(EXACT.remainder(number, Decimal(2)))


def _special_power(base: Decimal, exponent: Decimal) -> Decimal | None:
    """Return the power where one of the operands is not finite, None where both are. Raises
    InvalidPower."""
    if base.is_finite() and exponent.is_finite():
        return None
    if base.is_nan() or exponent.is_nan():
        if exponent.is_finite() and not exponent:
            return Decimal(1)
        return Decimal(1) if base == 1 else _NAN
    if not exponent or base == 1:
        return Decimal(1)
    if not base and exponent < 0:
        raise InvalidPower("zero raised to a negative power is undefined")
    if base.is_infinite():
        if base > 0:
            return _INFINITY if exponent > 0 else Decimal(0)
        if exponent.is_infinite():
            return _INFINITY if exponent > 0 else Decimal(0)
        if exponent != exponent.to_integral_value():
            raise InvalidPower(
                "a negative number raised to a non-integer power yields a complex result"
            )
        if exponent < 0:
            return Decimal(0)
        return _INFINITY.copy_negate() if _is_odd(exponent) else _INFINITY
    if base == -1:
        return Decimal(1)
    grows = (abs(base) > 1) == (exponent > 0)
    return _INFINITY if grows else Decimal(0)


def _whole_power(base: Decimal, exponent: int) -> Decimal:
    scale = bounded_scale(DIGITS_LEAST, base)
    if exponent == 0:
        return round_number(Decimal(1), scale)
    if exponent == 1:
        return round_number(base, scale)
    base_digits = len(base.as_tuple().digits)
    if exponent == -1:
        charge_quotient(Decimal(1), base, base_digits, scale)
        return quotient(Decimal(1), base, scale)
    if exponent == 2:
        charge_product(2 * base_digits)
        return round_number(EXACT.multiply(base, base), scale)
    if not base:
        return round_number(base, scale)
    size = base.adjusted() + math.log10(
        float(base.copy_abs().scaleb(-base.adjusted(), context=EXACT))
    )
    places = size * exponent
    if places > WHOLE_DIGITS_MAX + 1:
        raise OutOfRange("value overflows numeric format")
    if places + 1 < -scale:
        return round_number(Decimal(0), scale)
    context = _context(scale + max(int(places), 0) + 20 + _GUARD)
    charge_power(base_digits, exponent, context.prec)
    made = context.power(base, exponent)
    if made.adjusted() >= WHOLE_DIGITS_MAX:
        raise OutOfRange("value overflows numeric format")
    return round_number(made, scale)
