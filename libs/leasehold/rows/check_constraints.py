"""Evaluates CHECK constraints on a row."""

from __future__ import annotations

from collections.abc import Callable

from leasehold.catalog.descriptor import Descriptor
from leasehold.catalog.elements import Check
from leasehold.model.errors import Refused
from leasehold.model.records.events import Image
from leasehold.sql.expressions.expression import compile_condition


def condition_of(descriptor: Descriptor, check: Check) -> Callable[[Image], bool]:
    """A function from a row's image to whether `check` holds; false alone breaks it, NULL does not.

    The columns it names may not be public yet, or no longer. Compile once per descriptor: it
    raises what expressions raise when they meet a value they can't take (DivisionByZero, …).
    """
    shown = descriptor.showing(check.columns)
    compute = compile_condition(check.expression, shown, check.zone)
    return lambda image: compute(image) in (1, None)


def explain_violation(holds: Callable[[Image], bool], image: Image) -> str:
    """Return why a row breaks a check, "" when it does not; one that can't be computed breaks it
    too."""
    try:
        return "" if holds(image) else "the row makes it false"
    except Refused as error:
        return f"it can't be computed on the row: {error.message}"


def find_sqlstate(compute: Callable[[Image], object], image: Image) -> str:
    """Return the SQLSTATE of what an expression raises on a row, "" when it has a value."""
    try:
        compute(image)
    except Refused as error:
        return error.sqlstate
    return ""
