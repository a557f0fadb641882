"""+ and - over dates, times and intervals; age and justify_….

A month is added to the calendar (its last day where the day is not there), then days, then time.
"""

from __future__ import annotations

from calendar import monthrange
from collections.abc import Callable
from typing import Any, Final, NamedTuple
from zoneinfo import ZoneInfo

from leasehold.catalog.elements import CommitContext
from leasehold.model.errors import DivisionByZero, MomentOutOfRange
from leasehold.sql.functions.function import (
    DATE,
    DOUBLE,
    INTEGER,
    INTERVAL,
    TIMESTAMP,
    TIMESTAMPTZ,
    Function,
    make_over_doubles,
    make_zoned,
)
from leasehold.sql.functions.numbers.arithmetic import divided, modulo
from leasehold.values.date_text import day_in_range
from leasehold.values.dates import DAY_US, date_of, day_of, is_infinite, midnight_of
from leasehold.values.interval import Span, span_of, stored_form
from leasehold.values.time_zone import UTC, at_zone, in_range, local_of, zone_at

_SECONDS_OF_DAY: Final = 86_400
_YEAR_MOST: Final = 9_999
_DAYS_OF_MONTH: Final = 30


class Fields(NamedTuple):
    """A moment as a calendar and a clock show it."""

    year: int
    month: int
    day: int
    hour: int
    minute: int
    second: int
    microsecond: int


def fields_of(timestamp: int) -> Fields:
    day, rest = divmod(in_range(timestamp), DAY_US)
    shown = date_of(day)
    seconds, microsecond = divmod(rest, 1_000_000)
    minutes, second = divmod(seconds, 60)
    return Fields(
        shown.year, shown.month, shown.day, minutes // 60, minutes % 60, second, microsecond
    )


def days_in_month(year: int, month: int) -> int:
    return monthrange(year, month)[1]


def plus_months(day: int, months: int) -> int:
    """A day of the calendar so many months on. Raises MomentOutOfRange."""
    start = date_of(day)
    year, month = divmod(start.year * 12 + start.month - 1 + months, 12)
    if not 1 <= year <= _YEAR_MOST:
        raise MomentOutOfRange("timestamp out of range: the years are 1 to 9999")
    last = days_in_month(year, month + 1)
    return day_of(start.replace(year=year, month=month + 1, day=min(start.day, last)))


def plus(timestamp: int, span: Span) -> int:
    """Return a timestamp so much later; an infinite one stays. Raises MomentOutOfRange."""
    if is_infinite(timestamp):
        return timestamp
    day, rest = divmod(in_range(timestamp), DAY_US)
    if span.months:
        day = plus_months(day, span.months)
    return in_range((day + span.days) * DAY_US + rest + span.microseconds)


def plus_in_zone(zone: ZoneInfo, timestamp: int, span: Span) -> int:
    """Months and days are added to what the clocks show, time to the moment."""
    if is_infinite(timestamp):
        return timestamp
    for part in (Span(span.months, 0, 0), Span(0, span.days, 0)):
        if any(part):
            timestamp = at_zone(plus(local_of(timestamp, zone), part), zone)
    return in_range(timestamp + span.microseconds)


def sum_spans(left: Span, right: Span) -> Span:
    return Span(*(a + b for a, b in zip(left, right, strict=True)))


def _opposite(span: Span) -> Span:
    return Span(*(-part for part in span))


def difference(left: int, right: int) -> str:
    """Days and time, never months."""
    if is_infinite(left) or is_infinite(right):
        raise MomentOutOfRange("cannot subtract infinite timestamps")
    between = left - right
    return stored_form(Span(0, divided(between, DAY_US), modulo(between, DAY_US)))


def age(left: int, right: int, zone: ZoneInfo = UTC) -> str:
    """Years, months and days of the calendar between two moments, by a zone's clocks."""
    if is_infinite(left) or is_infinite(right):
        raise MomentOutOfRange("timestamp out of range")
    one, other = fields_of(local_of(left, zone)), fields_of(local_of(right, zone))
    sign = -1 if left < right else 1
    year, month, day, hour, minute, second, micro = (
        sign * (a - b) for a, b in zip(one, other, strict=True)
    )
    micros = ((hour * 60 + minute) * 60 + second) * 1_000_000 + micro
    while micros < 0:
        micros += DAY_US
        day -= 1
    lent = one if left < right else other
    while day < 0:
        day += days_in_month(lent.year, lent.month)
        month -= 1
    months = year * 12 + month
    return stored_form(Span(sign * months, sign * day, sign * micros))


# ------------------------------------------------------------------ intervals


def _added(left: str, right: str) -> str:
    return stored_form(sum_spans(span_of(left), span_of(right)))


def _taken(left: str, right: str) -> str:
    return stored_form(sum_spans(span_of(left), _opposite(span_of(right))))


def negated(value: str) -> str:
    return stored_form(_opposite(span_of(value)))


def _scaled(value: str, by: Callable[[float], float]) -> str:
    """What is not whole of a month becomes days, of a day a time."""
    span = span_of(value)
    try:
        months, days = int(by(span.months)), int(by(span.days))
        more_days = round((by(span.months) - months) * _DAYS_OF_MONTH, 6)
        seconds = (by(span.days) - days + more_days - int(more_days)) * _SECONDS_OF_DAY
        seconds = round(seconds, 6)
        if abs(seconds) >= _SECONDS_OF_DAY:
            days += int(seconds / _SECONDS_OF_DAY)
            seconds -= int(seconds / _SECONDS_OF_DAY) * _SECONDS_OF_DAY
        microseconds = round(by(span.microseconds) + seconds * 1_000_000)
    except (OverflowError, ValueError) as error:
        raise MomentOutOfRange("interval out of range") from error
    return stored_form(Span(months, days + int(more_days), microseconds))


def _times(value: str, factor: float) -> str:
    return _scaled(value, lambda part: part * factor)


def span_divided(value: str, by: float) -> str:
    if by == 0.0:
        raise DivisionByZero("division by zero")
    return _scaled(value, lambda part: part / by)


def _carried(number: int, rest: int, by: int) -> tuple[int, int]:
    """Whole ones of `rest` go to `number`, towards zero."""
    return number + divided(rest, by), modulo(rest, by)


def _of_one_sign(number: int, rest: int, by: int) -> tuple[int, int]:
    if number > 0 > rest:
        return number - 1, rest + by
    if number < 0 < rest:
        return number + 1, rest - by
    return number, rest


def justify_hours(value: str) -> str:
    months, days, rest = span_of(value)
    days, rest = _of_one_sign(*_carried(days, rest, DAY_US), DAY_US)
    return stored_form(Span(months, days, rest))


def justify_days(value: str) -> str:
    months, days, rest = span_of(value)
    months, days = _of_one_sign(*_carried(months, days, _DAYS_OF_MONTH), _DAYS_OF_MONTH)
    return stored_form(Span(months, days, rest))


def justify_interval(value: str) -> str:
    months, days, rest = span_of(value)
    days, rest = _carried(days, rest, DAY_US)
    months, days = _carried(months, days, _DAYS_OF_MONTH)
    if months > 0 and (days < 0 or (days == 0 and rest < 0)):
        months, days = months - 1, days + _DAYS_OF_MONTH
    elif months < 0 and (days > 0 or (days == 0 and rest > 0)):
        months, days = months + 1, days - _DAYS_OF_MONTH
    days, rest = _of_one_sign(days, rest, DAY_US)
    return stored_form(Span(months, days, rest))


# ------------------------------------------------------------------ the operators


def _days_added(day: int, days: int) -> int:
    return day if is_infinite(day) else day_in_range(day + days)


def _days_between(left: int, right: int) -> int:
    if is_infinite(left) or is_infinite(right):
        raise MomentOutOfRange("cannot subtract infinite dates")
    return left - right


def _span_added(timestamp: int, span: str) -> int:
    return plus(timestamp, span_of(span))


def _span_taken(timestamp: int, span: str) -> int:
    return plus(timestamp, _opposite(span_of(span)))


def _zoned_added(zone: ZoneInfo, timestamp: int, span: str) -> int:
    return plus_in_zone(zone, timestamp, span_of(span))


def _zoned_taken(zone: ZoneInfo, timestamp: int, span: str) -> int:
    return plus_in_zone(zone, timestamp, _opposite(span_of(span)))


def _age_of_today(context: CommitContext, value: int) -> str:
    return age(context.now_us // DAY_US * DAY_US, value)


def _age_in_zone(context: CommitContext, value: int) -> str:
    zone = zone_at(context)
    today = local_of(context.now_us, zone) // DAY_US * DAY_US
    return age(at_zone(today, zone), value, zone)


def _turned(compute: Callable[[Any, Any], Any]) -> Callable[[Any, Any], Any]:
    return lambda left, right: compute(right, left)


OPERATORS: Final[tuple[Function, ...]] = (
    Function("+", (DATE, INTEGER), DATE, _days_added),
    Function("+", (INTEGER, DATE), DATE, _turned(_days_added)),
    Function("-", (DATE, INTEGER), DATE, lambda day, days: _days_added(day, -days)),
    Function("-", (DATE, DATE), INTEGER, _days_between),
    Function("+", (DATE, INTERVAL), TIMESTAMP, lambda d, s: _span_added(midnight_of(d), s)),
    Function("+", (INTERVAL, DATE), TIMESTAMP, lambda s, d: _span_added(midnight_of(d), s)),
    Function("-", (DATE, INTERVAL), TIMESTAMP, lambda d, s: _span_taken(midnight_of(d), s)),
    Function("+", (TIMESTAMP, INTERVAL), TIMESTAMP, _span_added),
    Function("+", (INTERVAL, TIMESTAMP), TIMESTAMP, _turned(_span_added)),
    Function("-", (TIMESTAMP, INTERVAL), TIMESTAMP, _span_taken),
    make_zoned("+", (TIMESTAMPTZ, INTERVAL), TIMESTAMPTZ, _zoned_added),
    make_zoned(
        "+", (INTERVAL, TIMESTAMPTZ), TIMESTAMPTZ, lambda zone, s, m: _zoned_added(zone, m, s)
    ),
    make_zoned("-", (TIMESTAMPTZ, INTERVAL), TIMESTAMPTZ, _zoned_taken),
    *(Function("-", (kind, kind), INTERVAL, difference) for kind in (TIMESTAMP, TIMESTAMPTZ)),
    Function("+", (INTERVAL, INTERVAL), INTERVAL, _added),
    Function("-", (INTERVAL, INTERVAL), INTERVAL, _taken),
    Function("-", (INTERVAL,), INTERVAL, negated),
    make_over_doubles("*", (INTERVAL, DOUBLE), INTERVAL, _times),
    make_over_doubles("*", (DOUBLE, INTERVAL), INTERVAL, _turned(_times)),
    make_over_doubles("/", (INTERVAL, DOUBLE), INTERVAL, span_divided),
)
FUNCTIONS: Final[tuple[Function, ...]] = (
    Function("age", (TIMESTAMP, TIMESTAMP), INTERVAL, age),
    make_zoned("age", (TIMESTAMPTZ,) * 2, INTERVAL, lambda zone, a, b: age(a, b, zone)),
    Function("age", (TIMESTAMP,), INTERVAL, _age_of_today, volatility="stable"),
    Function("age", (TIMESTAMPTZ,), INTERVAL, _age_in_zone, volatility="stable"),
    Function("justify_hours", (INTERVAL,), INTERVAL, justify_hours),
    Function("justify_days", (INTERVAL,), INTERVAL, justify_days),
    Function("justify_interval", (INTERVAL,), INTERVAL, justify_interval),
)
