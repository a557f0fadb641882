"""The storage form of a double: the float, and for NaN the text NaN.

SQLite keeps a float that is NaN as NULL, which would turn a value into an absent one. Text it
orders above all numbers and finds equal to itself, as PostgreSQL does with NaN; so a store's keys,
indexes and comparisons need to know nothing of it. Python does: what computes with doubles takes
and gives floats, behind `over_floats`.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, Final, TypeAlias

Stored: TypeAlias = float | str

NAN: Final = "NaN"


def stored_form(number: float) -> Stored:
    return number if number == number else NAN  # NaN alone differs from itself


def number_of(stored: Stored) -> float:
    """Return the float of a storage value."""
    return math.nan if stored == NAN else float(stored)


def order_of(stored: Stored) -> tuple[bool, float]:
    """Return what Python orders storage values by: NaN is equal to itself and above all numbers."""
    return (True, 0.0) if stored == NAN else (False, float(stored))


def over_floats(compute: Callable[..., Any]) -> Callable[..., Any]:
    """Turn a function of floats into one of storage forms: arguments that are the text NaN become
    floats, and a float that is NaN becomes the text. ⚠ Not where another argument may be the text
    NaN for itself."""

    def computed(*values: Any) -> Any:
        if NAN in values:
            values = tuple(math.nan if value == NAN else value for value in values)
        made = compute(*values)
        return NAN if made != made else made  # NaN alone differs from itself

    return computed
