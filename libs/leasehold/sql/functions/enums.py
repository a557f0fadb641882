"""Functions and operators over enum types. Each is made for the types of one call, as PostgreSQL's
over anyenum are: both sides of an operator are of the same enum type."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import Any, Final

from leasehold.sql.functions.comparisons import SIGNS, comparison
from leasehold.sql.functions.function import BOOLEAN, Function
from leasehold.sql.functions.resolution import with_more_labels
from leasehold.values.arrays import stored_form
from leasehold.values.types import Type, array_of, element_of, is_same_enum

Kinds = Sequence[Type | None]
Family = Callable[[Kinds], Function | None]


def _enum_of(kinds: Kinds) -> Type | None:
    """Return the one enum type of all arguments whose type is known; None: there is no such."""
    found: Type | None = None
    for kind in kinds:
        if kind is None:
            continue
        if kind.enum is None or element_of(kind) is not None:
            return None
        if found is not None and not is_same_enum(found, kind):
            return None
        found = kind if found is None else with_more_labels(found, kind)
    return found


def _compared(sign: str) -> Family:
    def family(kinds: Kinds) -> Function | None:
        kind = _enum_of(kinds)
        if kind is None or len(kinds) != 2:
            return None
        return Function(sign, (kind, kind), BOOLEAN, comparison(sign))

    return family


@lru_cache(maxsize=256)
def _first(kinds: tuple[Type | None, ...]) -> Function | None:
    return _end_of(kinds, "enum_first", 0)


@lru_cache(maxsize=256)
def _last(kinds: tuple[Type | None, ...]) -> Function | None:
    return _end_of(kinds, "enum_last", -1)


def _end_of(kinds: Kinds, name: str, position: int) -> Function | None:
    kind = _enum_of(kinds)
    if kind is None or kind.enum is None or len(kinds) != 1:
        return None
    places = kind.enum.places
    value = places[position] if places else None
    return Function(name, (kind,), kind, lambda _: value, strict=False)


def _range(kinds: Kinds) -> Function | None:
    """enum_range(any value of the type), or (from, to) of which NULL is no bound."""
    kind = _enum_of(kinds)
    if kind is None or kind.enum is None or not 1 <= len(kinds) <= 2:
        return None
    places = kind.enum.places

    def compute(*bounds: Any) -> str:
        low, high = bounds if len(bounds) == 2 else (None, None)
        return stored_form(
            [p for p in places if (low is None or p >= low) and (high is None or p <= high)]
        )

    return Function("enum_range", (kind,) * len(kinds), array_of(kind), compute, strict=False)


FAMILIES: Final[dict[str, Family]] = {
    "enum_first": lambda kinds: _first(tuple(kinds)),
    "enum_last": lambda kinds: _last(tuple(kinds)),
    "enum_range": _range,
}
OPERATOR_FAMILIES: Final[dict[str, Family]] = {sign: _compared(sign) for sign in SIGNS}
