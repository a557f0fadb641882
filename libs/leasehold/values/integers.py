"""Whole numbers of a text, which may have more digits than Python reads."""

from __future__ import annotations

from typing import Final

DIGITS_MAX: Final = 40
"""More than any number that is in range anywhere has."""


def whole(digits: str) -> int:
    """Return the number; of one with more than DIGITS_MAX digits that of the first ones, which is
    out of range just as well."""
    return int(digits.lstrip("0")[:DIGITS_MAX] or "0")
