"""Functions and operators over time and timetz, and the casts between them and moments."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from decimal import Decimal
from typing import Any, Final
from zoneinfo import ZoneInfo

from leasehold.catalog.elements import CommitContext
from leasehold.model.errors import InvalidArgument, MomentOutOfRange
from leasehold.sql.functions.function import (
    DATE,
    DOUBLE,
    INTEGER,
    INTERVAL,
    TEXT,
    TIME,
    TIMESTAMP,
    TIMESTAMPTZ,
    TIMETZ,
    Function,
    make_over_doubles,
)
from leasehold.values.dates import DAY_US, is_infinite
from leasehold.values.interval import Span, span_of, stored_form, text_of
from leasehold.values.text_io import double_text
from leasehold.values.time_text import zoned_of_timestamp
from leasehold.values.time_zone import in_range, local_of, offset_at, zone_at, zone_of_word
from leasehold.values.times import SECOND_US, ZonedTime, zoned_of
from leasehold.values.times import stored_form as stored_zoned


def _time_plus(value: int, span: str) -> int:
    """Days and months don't count, and after midnight the next day begins."""
    return (value + span_of(span).microseconds) % DAY_US


def _time_minus(value: int, span: str) -> int:
    return (value - span_of(span).microseconds) % DAY_US


def _zoned_plus(value: int, span: str) -> int:
    microseconds, west_s = zoned_of(value)
    return stored_zoned(ZonedTime(_time_plus(microseconds, span), west_s))


def _zoned_minus(value: int, span: str) -> int:
    microseconds, west_s = zoned_of(value)
    return stored_zoned(ZonedTime(_time_minus(microseconds, span), west_s))


def _between(left: int, right: int) -> str:
    return stored_form(Span(0, 0, left - right))


def _timestamp(day: int, value: int) -> int:
    return day if is_infinite(day) else in_range(day * DAY_US + value)


def _zoned_timestamp(day: int, value: int) -> int:
    if is_infinite(day):
        return day
    microseconds, west_s = zoned_of(value)
    return in_range(day * DAY_US + microseconds + west_s * SECOND_US)


def _make_time(hour: int, minute: int, second: float) -> int:
    inside = 0 <= hour <= 24 and 0 <= minute <= 59 and 0 <= second <= 60
    made = (hour * 60 + minute) * 60 * SECOND_US + round(second * SECOND_US) if inside else -1
    if not 0 <= made <= DAY_US:
        shown = f"{second:02g}" if math.isfinite(second) else double_text(second)
        raise MomentOutOfRange(f"time field value out of range: {hour}:{minute:02d}:{shown}")
    return made


# ------------------------------------------------------------------ now, and other zones


def _local_now(context: CommitContext) -> int:
    return local_of(context.now_us, zone_at(context)) % DAY_US


def _now(context: CommitContext) -> int:
    return zoned_of_timestamp(context.now_us, zone_at(context))


def _shifted(value: int, west_s: int) -> int:
    """Return the same time of day in UTC on a clock so many seconds west."""
    microseconds, own_west_s = zoned_of(value)
    moved = microseconds + (own_west_s - west_s) * SECOND_US
    return stored_zoned(ZonedTime(moved % DAY_US, west_s))


def _in_named(context: CommitContext, name: str, value: int) -> int:
    """A zone's offset is that of now: a time of day has no date."""
    return _shifted(value, -offset_at(context.now_us, zone_of_word(name)))


def _in_offset(offset: str, value: int) -> int:
    span = span_of(offset)
    if span.months or span.days:
        raise InvalidArgument(
            f'interval time zone "{text_of(offset)}" must not include months or days'
        )
    return _shifted(value, -(span.microseconds // SECOND_US))


# ------------------------------------------------------------------ casts

Convert = Callable[..., Any]


def _with_offset_of_now(context: CommitContext, value: int) -> int:
    return stored_zoned(ZonedTime(value, -offset_at(context.now_us, zone_at(context))))


def _time_of(timestamp: int) -> int | None:
    """Return the time of day; an infinite timestamp has none."""
    return None if is_infinite(timestamp) else timestamp % DAY_US


def _zoned_time_of(zone: ZoneInfo, timestamp: int) -> int | None:
    return None if is_infinite(timestamp) else zoned_of_timestamp(timestamp, zone)


CASTS: Final[Mapping[tuple[str, str], Convert]] = {
    ("timestamp", "time"): _time_of,
    ("time", "interval"): lambda value: stored_form(Span(0, 0, value)),
    ("interval", "time"): lambda value: span_of(value).microseconds % DAY_US,
    ("timetz", "time"): lambda value: zoned_of(value).microseconds,
}
ZONED_CASTS: Final[Mapping[tuple[str, str], Convert]] = {
    ("timestamptz", "time"): lambda zone, value: _time_of(local_of(value, zone)),
    ("timestamptz", "timetz"): _zoned_time_of,
}
"""Those that take the session's time zone, too."""
STABLE_CASTS: Final[Mapping[tuple[str, str], Convert]] = {("time", "timetz"): _with_offset_of_now}
"""Those that take the moment, too."""
ASSIGNED: Final = frozenset({*CASTS, *ZONED_CASTS})
"""Those that are made when a value is put into a column."""


# ------------------------------------------------------------------ extract

_MINUTE_US: Final = 60 * SECOND_US
CLOCK_FIELDS: Final[Mapping[str, Callable[[int], Decimal]]] = {
    "microseconds": lambda value: Decimal(value % _MINUTE_US),
    "milliseconds": lambda value: Decimal(value % _MINUTE_US).scaleb(-3),
    "second": lambda value: Decimal(value % _MINUTE_US).scaleb(-6),
    "minute": lambda value: Decimal(value // _MINUTE_US % 60),
    "hour": lambda value: Decimal(value // (60 * _MINUTE_US)),
    "epoch": lambda value: Decimal(value).scaleb(-6),
}


def zoned_fields(value: int) -> Mapping[str, Decimal]:
    """Return the fields of a timetz that a time has not, or has otherwise."""
    microseconds, west_s = zoned_of(value)
    sign = -1 if west_s > 0 else 1
    return {
        "epoch": Decimal(microseconds + west_s * SECOND_US).scaleb(-6),
        "timezone": Decimal(-west_s),
        "timezone_hour": Decimal(sign * (abs(west_s) // 3_600)),
        "timezone_minute": Decimal(sign * (abs(west_s) // 60 % 60)),
    }


OPERATORS: Final[tuple[Function, ...]] = (
    Function("+", (TIME, INTERVAL), TIME, _time_plus),
    Function("+", (INTERVAL, TIME), TIME, lambda span, value: _time_plus(value, span)),
    Function("-", (TIME, INTERVAL), TIME, _time_minus),
    Function("-", (TIME, TIME), INTERVAL, _between),
    Function("+", (TIMETZ, INTERVAL), TIMETZ, _zoned_plus),
    Function("+", (INTERVAL, TIMETZ), TIMETZ, lambda span, value: _zoned_plus(value, span)),
    Function("-", (TIMETZ, INTERVAL), TIMETZ, _zoned_minus),
    Function("+", (DATE, TIME), TIMESTAMP, _timestamp),
    Function("+", (TIME, DATE), TIMESTAMP, lambda value, day: _timestamp(day, value)),
    Function("+", (DATE, TIMETZ), TIMESTAMPTZ, _zoned_timestamp),
    Function("+", (TIMETZ, DATE), TIMESTAMPTZ, lambda value, day: _zoned_timestamp(day, value)),
)
FUNCTIONS: Final[tuple[Function, ...]] = (
    make_over_doubles("make_time", (INTEGER, INTEGER, DOUBLE), TIME, _make_time),
    Function("localtime", (), TIME, _local_now, volatility="stable"),
    Function("current_time", (), TIMETZ, _now, volatility="stable"),
    Function("timezone", (TEXT, TIMETZ), TIMETZ, _in_named, volatility="stable"),
    Function("timezone", (INTERVAL, TIMETZ), TIMETZ, _in_offset),
)
