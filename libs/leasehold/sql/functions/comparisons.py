"""= <> < <= > >= over storage values, which are ordered as PostgreSQL orders the type.

Of a numeric, an interval and jsonb the sort key is compared, not the scale or the parts; of a
double what Python can order.
"""

from __future__ import annotations

import operator
from collections.abc import Callable
from functools import lru_cache
from typing import Any, Final
from zoneinfo import ZoneInfo

from leasehold.sql.functions.function import (
    BOOLEAN,
    BYTEA,
    CHAR,
    DATE,
    DOUBLE,
    INET,
    INTEGERS,
    INTERVAL,
    JSONB,
    NUMERIC,
    REAL,
    TEXT,
    TIME,
    TIMESTAMP,
    TIMESTAMPTZ,
    TIMETZ,
    UUID,
    Function,
    make_zoned,
    unchanged,
)
from leasehold.values.dates import midnight_of
from leasehold.values.doubles import NAN, order_of
from leasehold.values.time_zone import at_zone
from leasehold.values.types import FLOATS, Type, sort_key_of

SIGNS: Final[dict[str, Callable[[Any, Any], bool]]] = {
    "=": operator.eq,
    "<>": operator.ne,
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}
_FLOATS: Final = (REAL, DOUBLE)
_ORDERED: Final = (
    *(NUMERIC, TEXT, CHAR, BOOLEAN, BYTEA, DATE, TIMESTAMP, TIMESTAMPTZ),
    *(TIME, TIMETZ, INET, INTERVAL, UUID, JSONB),
)


@lru_cache(maxsize=256)
def comparison(
    sign: str, left: Callable[[Any], Any] | None = None, right: Callable[[Any], Any] | None = None
) -> Callable[[Any, Any], int]:
    """Return the comparison; `left` and `right` bring a side to what is compared, None as it is.
    What compares alike is one function, by which two expressions are told to mean the same."""
    compare = SIGNS[sign]
    if left is None and right is None:
        return lambda a, b: int(compare(a, b))
    first, second = left or unchanged, right or unchanged
    return lambda a, b: int(compare(first(a), second(b)))


def _double_comparison(sign: str) -> Callable[[Any, Any], int]:
    """Floats are compared at once: only NaN has another form."""
    compare, with_nan = SIGNS[sign], comparison(sign, order_of, order_of)

    def compared(a: Any, b: Any) -> int:
        return with_nan(a, b) if a == NAN or b == NAN else int(compare(a, b))

    return compared


def _of(left: Type, right: Type) -> list[Function]:
    if left.name in FLOATS:
        return [Function(s, (left, right), BOOLEAN, _double_comparison(s)) for s in SIGNS]
    key = sort_key_of(left)
    first = midnight_of if left == DATE and right != DATE else key
    second = midnight_of if right == DATE and left != DATE else key
    return [Function(s, (left, right), BOOLEAN, comparison(s, first, second)) for s in SIGNS]


def _in_zone(left: Type, right: Type) -> list[Function]:
    """Return the comparisons of two types of which one is timestamptz: the other one is, too, by
    the session's clocks."""

    def of(kind: Type, value: int, zone: ZoneInfo) -> int:
        if kind == TIMESTAMPTZ:
            return value
        return at_zone(midnight_of(value) if kind == DATE else value, zone)

    def compared(sign: str) -> Callable[[ZoneInfo, int, int], int]:
        compare = SIGNS[sign]
        return lambda zone, a, b: int(compare(of(left, a, zone), of(right, b, zone)))

    return [make_zoned(sign, (left, right), BOOLEAN, compared(sign)) for sign in SIGNS]


_LOCAL: Final = (DATE, TIMESTAMP)

OPERATORS: Final = (
    *(f for left in INTEGERS for right in INTEGERS for f in _of(left, right)),
    *(f for left in _FLOATS for right in _FLOATS for f in _of(left, right)),
    *(f for kind in _ORDERED for f in _of(kind, kind)),
    *(f for left in _LOCAL for right in _LOCAL if left != right for f in _of(left, right)),
    *(f for kind in _LOCAL for f in (*_in_zone(kind, TIMESTAMPTZ), *_in_zone(TIMESTAMPTZ, kind))),
)
