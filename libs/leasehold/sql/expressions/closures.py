"""Parts of a compiled expression: functions from a row's image to a storage value.

SQL's logic of NULL is here: every part answers None for it, and no operator ever sees it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeAlias

from leasehold.model.records.events import Image

Compute: TypeAlias = Callable[[Image], Any]


def constant(value: Any) -> Compute:
    return lambda row: value


def strict(function: Callable[..., Any], *parts: Compute) -> Compute:
    """NULL as soon as one operand is NULL."""
    if len(parts) == 1:
        (only_part,) = parts

        def one(row: Image) -> Any:
            value = only_part(row)
            return None if value is None else function(value)

        return one
    if len(parts) == 2:
        left, right = parts

        def two(row: Image) -> Any:
            a = left(row)
            if a is None:
                return None
            b = right(row)
            return None if b is None else function(a, b)

        return two

    def any_number(row: Image) -> Any:
        values = []
        for part in parts:
            value = part(row)
            if value is None:
                return None
            values.append(value)
        return function(*values)

    return any_number


def all_of(parts: Sequence[Compute]) -> Compute:
    """Return AND of the parts: one call for all of them, however many. Each within another one, a
    long list would be deeper than Python calls."""

    def conjunction(row: Image) -> int | None:
        unknown = False
        for part in parts:
            value = part(row)
            if value is None:
                unknown = True
            elif value == 0:
                return 0
        return None if unknown else 1

    return conjunction


def negated(part: Compute) -> Compute:
    return strict(lambda value: int(not value), part)


def any_of(parts: Sequence[Compute]) -> Compute:
    """Return OR of the parts, as `all_of`."""

    def disjunction(row: Image) -> int | None:
        unknown = False
        for part in parts:
            value = part(row)
            if value is None:
                unknown = True
            elif value:
                return 1
        return None if unknown else 0

    return disjunction


def first(parts: list[Compute]) -> Compute:
    def coalesce(row: Image) -> Any:
        return next((v for part in parts if (v := part(row)) is not None), None)

    return coalesce


def extreme(
    choose: Callable[..., Any], parts: list[Compute], key: Callable[[Any], Any] | None
) -> Compute:
    def most(row: Image) -> Any:
        values = [value for part in parts if (value := part(row)) is not None]
        return choose(values, key=key) if values else None

    return most


def chosen(branches: list[tuple[Compute, Compute]], default: Compute) -> Compute:
    def choose(row: Image) -> Any:
        for condition, value in branches:
            if condition(row):
                return value(row)
        return default(row)

    return choose
