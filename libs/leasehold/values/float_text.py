"""The digits of a double as PostgreSQL chooses them."""

from __future__ import annotations

import math
from typing import Final

DIGITS_MAX: Final = 17
"""So many tell every double from its neighbours."""
_CLOSE_LEAST: Final = 2.0**53
_CLOSE_MOST: Final = 1e41


def shortest(value: float) -> str:
    """Return the shortest text that lies nearer to a finite double than to any other.

    repr also takes a text halfway to the next double, which is read back by rounding to even
    (1e23); PostgreSQL takes more digits then. Only large whole numbers have such neighbours.
    """
    text = repr(value)
    if not _CLOSE_LEAST <= abs(value) < _CLOSE_MOST:
        return text
    whole = int(value)
    halfways = {whole + int(math.nextafter(value, end)) for end in (-math.inf, math.inf)}
    if 2 * _whole(text) not in halfways:
        return text
    longer = (f"{value:.{digits}e}" for digits in range(DIGITS_MAX))
    return next(
        shown for shown in longer if float(shown) == value and 2 * _whole(shown) not in halfways
    )


def _whole(text: str) -> int:
    mantissa, _, exponent = text.partition("e")
    before, _, behind = mantissa.partition(".")
    zeros = int(exponent or "0") - len(behind)
    return int(before + behind) * 10**zeros if zeros >= 0 else int(before)
