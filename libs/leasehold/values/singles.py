"""real: a number of 24 bits. Its storage value is the double that is the same number, NaN the text,
as in `doubles.py`; arithmetic is done with doubles and rounded, which gives what a processor's own
of 24 bits does."""

from __future__ import annotations

import math
import struct
from contextlib import suppress
from decimal import Decimal
from fractions import Fraction
from typing import Final

from leasehold.model.errors import OutOfRange

_SINGLE: Final = struct.Struct("<f")
_BITS: Final = struct.Struct("<i")
_LEAST_BITS: Final = -0x80000000
DIGITS_SURE: Final = 6
"""Decimal digits that every real keeps."""
_DIGITS_MAX: Final = 9


def is_single(number: float) -> bool:
    """Whether a double (not NaN) is a number that real has."""
    try:
        return bool(_SINGLE.unpack(_SINGLE.pack(number))[0] == number)
    except OverflowError:
        return False


def single_of(number: float) -> float:
    """Return the real next to a double, of two the even one. Raises OutOfRange (22003) where it is
    too large, or becomes 0."""
    try:
        made: float = _SINGLE.unpack(_SINGLE.pack(number))[0]
    except OverflowError as error:
        raise OutOfRange("value out of range: overflow") from error
    if made == 0.0 and number != 0.0:
        raise OutOfRange("value out of range: underflow")
    return made


def single_of_exact(number: Decimal | int) -> float:
    """Return the real next to a finite number. ⚠ The double next to it may lie halfway between two
    reals while the number does not. Raises as `single_of`."""
    try:
        nearest = float(number)
    except OverflowError as error:
        raise OutOfRange("value out of range: overflow") from error
    made = single_of(nearest)
    if made == nearest or not math.isfinite(nearest):
        return made
    other = _next(made, up=nearest > made)
    if not math.isfinite(other) or Fraction(made) + Fraction(other) != 2 * Fraction(nearest):
        return made
    beyond = Fraction(number) - Fraction(nearest)
    return other if beyond and (beyond > 0) == (other > made) else made


def _next(number: float, *, up: bool) -> float:
    """Return the real above or below a finite one."""
    (bits,) = _BITS.unpack(_SINGLE.pack(number))
    if number == 0.0:
        bits = 1 if up else _LEAST_BITS + 1
    else:
        bits += 1 if up == (number > 0) else -1
    made: float = _SINGLE.unpack(_BITS.pack(bits))[0]
    return made


def fewest_digits(number: float) -> float:
    """Return the double of the fewest digits, each the nearest, that is read as this finite
    real."""
    for digits in range(1, _DIGITS_MAX):
        short = float(f"{number:.{digits}g}")
        with suppress(OutOfRange):
            if single_of(short) == number:
                return short
    return float(f"{number:.{_DIGITS_MAX}g}")


def shortest_single(number: float) -> str:
    """Return the digits, with an exponent, of the shortest text that lies nearer to a finite real
    other than 0 than to any other; of several that which is nearest to it, of two the even one."""
    exact = Fraction(abs(number))
    low = (exact + Fraction(_next(abs(number), up=False))) / 2
    above = _next(abs(number), up=True)
    # The largest one has a gap above it, too, to what would be the next power of two.
    high = (exact + Fraction(above)) / 2 if math.isfinite(above) else 2 * exact - low
    position = int(f"{abs(number):e}".partition("e")[2])
    sign = "-" if number < 0 else ""
    for digits in range(1, _DIGITS_MAX + 1):
        unit = Fraction(10) ** (position - digits + 1)
        below = exact // unit
        near = sorted((below, below + 1), key=lambda whole: (abs(whole * unit - exact), whole % 2))
        for whole in near:
            if low < whole * unit < high:
                return f"{sign}{whole}e{position - digits + 1}"
    raise AssertionError(f"{number} is no real")
