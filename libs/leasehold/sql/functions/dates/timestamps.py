"""Dates and times: now and its kin, made from parts, in other zones, as text."""

from __future__ import annotations

import math
from collections.abc import Callable
from datetime import date
from decimal import Decimal
from typing import Any, Final

from leasehold.catalog.elements import CommitContext
from leasehold.model.errors import FeatureNotSupported, InvalidArgument, MomentOutOfRange
from leasehold.sql.functions.dates.templates import (
    date_by_template,
    timestamp_by_template,
    timestamp_text,
)
from leasehold.sql.functions.function import (
    BOOLEAN,
    DATE,
    DOUBLE,
    INTEGER,
    INTERVAL,
    TEXT,
    TIMESTAMP,
    TIMESTAMPTZ,
    Function,
    Volatility,
    make_over_doubles,
    make_zoned,
)
from leasehold.values.date_text import offset_of_text
from leasehold.values.dates import DAY_US, INFINITY, day_of, is_infinite
from leasehold.values.doubles import over_floats
from leasehold.values.interval import Span, span_of, stored_form, text_of
from leasehold.values.text_io import double_text
from leasehold.values.time_zone import at_zone, in_range, local_of, zone_at, zone_of_word


def _now(context: CommitContext) -> int:
    return context.now_us


def _local_now(context: CommitContext) -> int:
    return local_of(context.now_us, zone_at(context))


def _today(context: CommitContext) -> int:
    return _local_now(context) // DAY_US


def _make_date(year: int, month: int, day: int) -> int:
    try:
        return day_of(date(year, month, day))
    except (ValueError, OverflowError) as error:
        raise MomentOutOfRange(
            f"date field value out of range: {year}-{month:02d}-{day:02d}"
        ) from error


def _make_timestamp(year: int, month: int, day: int, hour: int, minute: int, second: float) -> int:
    inside = 0 <= hour <= 24 and 0 <= minute <= 59 and 0 <= second <= 60
    rest = (hour * 60 + minute) * 60_000_000 + round(second * 1_000_000) if inside else -1
    if not 0 <= rest <= DAY_US:
        shown = f"{second:02g}" if math.isfinite(second) else double_text(second)
        raise MomentOutOfRange(f"time field value out of range: {hour}:{minute:02d}:{shown}")
    return in_range(_make_date(year, month, day) * DAY_US + rest)


_make_local: Final = over_floats(_make_timestamp)


def _make_timestamptz(*parts: Any) -> int:
    """The last one is a zone; its digits count east, as in a time."""
    zone = parts[-1]
    offset = offset_of_text(zone)
    local = _make_local(*parts[:-1])
    return at_zone(local, zone_of_word(zone)) if offset is None else in_range(local - offset)


def _make_interval(
    years: int = 0,
    months: int = 0,
    weeks: int = 0,
    days: int = 0,
    hours: int = 0,
    minutes: int = 0,
    seconds: float = 0.0,
) -> str:
    microseconds = seconds * 1_000_000
    if not math.isfinite(microseconds):
        raise MomentOutOfRange("interval out of range")
    rest = (hours * 60 + minutes) * 60_000_000 + round(microseconds)
    return stored_form(Span(years * 12 + months, weeks * 7 + days, rest))


_MAKES_INTERVAL: Final = (INTEGER,) * 6 + (DOUBLE,)


def _of_seconds(seconds: float) -> int:
    if math.isnan(seconds):
        raise MomentOutOfRange("timestamp cannot be NaN")
    if math.isinf(seconds):
        return INFINITY if seconds > 0 else -INFINITY
    try:
        return in_range(int((Decimal(seconds) * 1_000_000).to_integral_value()))
    except (OverflowError, ValueError) as error:
        raise MomentOutOfRange(f"timestamp out of range: {seconds:g}") from error


def _by_offset(sign: int) -> Callable[[str, int], int]:
    def moved(offset: str, timestamp: int) -> int:
        span = span_of(offset)
        if span.months or span.days:
            raise InvalidArgument(
                f'interval time zone "{text_of(offset)}" must not include months or days'
            )
        if is_infinite(timestamp):
            return timestamp
        return in_range(timestamp + sign * span.microseconds)

    return moved


def _binned(step: str, timestamp: int, origin: int) -> int:
    if is_infinite(timestamp):
        return timestamp
    if is_infinite(origin):
        raise MomentOutOfRange("origin out of range")
    span = span_of(step)
    width = span.days * DAY_US + span.microseconds
    if span.months:
        raise FeatureNotSupported(
            "timestamps cannot be binned into intervals containing months or years"
        )
    if width <= 0:
        raise MomentOutOfRange("stride must be greater than zero")
    return in_range(origin + (timestamp - origin) // width * width)


_STABLE: Final[Volatility] = "stable"

FUNCTIONS: Final[tuple[Function, ...]] = (
    *(
        Function(name, (), TIMESTAMPTZ, _now, volatility=_STABLE)
        for name in (
            "now",
            "current_timestamp",
            "transaction_timestamp",
            "statement_timestamp",
        )
    ),
    Function("localtimestamp", (), TIMESTAMP, _local_now, volatility=_STABLE),
    Function("current_date", (), DATE, _today, volatility=_STABLE),
    Function("clock_timestamp", (), TIMESTAMPTZ, _now, volatility="volatile"),
    Function("make_date", (INTEGER, INTEGER, INTEGER), DATE, _make_date),
    Function("make_timestamp", (INTEGER,) * 5 + (DOUBLE,), TIMESTAMP, _make_local),
    make_zoned(
        "make_timestamptz",
        (INTEGER,) * 5 + (DOUBLE,),
        TIMESTAMPTZ,
        lambda zone, *parts: at_zone(_make_local(*parts), zone),
    ),
    Function("make_timestamptz", (INTEGER,) * 5 + (DOUBLE, TEXT), TIMESTAMPTZ, _make_timestamptz),
    *(
        make_over_doubles("make_interval", _MAKES_INTERVAL[:count], INTERVAL, _make_interval)
        for count in range(8)
    ),
    make_over_doubles("to_timestamp", (DOUBLE,), TIMESTAMPTZ, _of_seconds),
    make_zoned(
        "to_timestamp",
        (TEXT, TEXT),
        TIMESTAMPTZ,
        lambda zone, text, t: at_zone(timestamp_by_template(text, t), zone),
    ),
    Function("to_date", (TEXT, TEXT), DATE, date_by_template),
    Function("to_char", (TIMESTAMP, TEXT), TEXT, timestamp_text),
    make_zoned("to_char", (TIMESTAMPTZ, TEXT), TEXT, lambda zone, v, t: timestamp_text(v, t, zone)),
    Function(
        "timezone",
        (TEXT, TIMESTAMP),
        TIMESTAMPTZ,
        lambda zone, local: at_zone(local, zone_of_word(zone)),
    ),
    Function(
        "timezone",
        (TEXT, TIMESTAMPTZ),
        TIMESTAMP,
        lambda zone, m: in_range(local_of(m, zone_of_word(zone))),
    ),
    Function("timezone", (INTERVAL, TIMESTAMP), TIMESTAMPTZ, _by_offset(-1)),
    Function("timezone", (INTERVAL, TIMESTAMPTZ), TIMESTAMP, _by_offset(1)),
    *(
        Function("date_bin", (INTERVAL, kind, kind), kind, _binned)
        for kind in (TIMESTAMP, TIMESTAMPTZ)
    ),
    *(
        Function("isfinite", (kind,), BOOLEAN, lambda value: int(not is_infinite(value)))
        for kind in (DATE, TIMESTAMP, TIMESTAMPTZ)
    ),
    Function("isfinite", (INTERVAL,), BOOLEAN, lambda value: 1),
)
