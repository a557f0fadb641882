"""EXTRACT, date_part and date_trunc."""

from __future__ import annotations

from collections.abc import Callable
from decimal import Decimal
from typing import Any, Final
from zoneinfo import ZoneInfo

from leasehold.model.errors import FeatureNotSupported, InvalidArgument, MomentOutOfRange
from leasehold.sql.functions.dates.arithmetic import fields_of
from leasehold.sql.functions.dates.times import CLOCK_FIELDS, zoned_fields
from leasehold.sql.functions.function import (
    DATE,
    DOUBLE,
    INTERVAL,
    NUMERIC,
    TEXT,
    TIME,
    TIMESTAMP,
    TIMESTAMPTZ,
    TIMETZ,
    Function,
    make_zoned,
)
from leasehold.sql.functions.numbers.arithmetic import divided, modulo, quotient
from leasehold.values.dates import DAY_US, date_of, is_infinite, midnight_of
from leasehold.values.interval import HOUR_US, MINUTE_US, Span, span_of, stored_form
from leasehold.values.letters import ascii_lower
from leasehold.values.numeric import EXACT
from leasehold.values.numeric import stored_form as stored_numeric
from leasehold.values.time_zone import at_zone, local_of, offset_at, zone_of_word
from leasehold.values.times import zoned_of

_PLAIN: Final = "timestamp without time zone"
_TIME: Final = "time without time zone"
_ZONED_TIME: Final = "time with time zone"
_ZONED: Final = "timestamp with time zone"
JULIAN_OF_EPOCH: Final = 2_440_588
_UNITS: Final = {
    "microseconds": "microseconds us usec usecs useconds microsecond",
    "milliseconds": "milliseconds ms msec msecs mseconds millisecond",
    "second": "second s sec secs seconds",
    "minute": "minute m min mins minutes",
    "hour": "hour h hr hrs hours",
    "day": "day d days",
    "week": "week w weeks",
    "month": "month mon mons months",
    "quarter": "quarter qtr",
    "year": "year y yr yrs years",
    "decade": "decade dec decs decades",
    "century": "century c cent centuries",
    "millennium": "millennium mil mils millennia",
    "dow": "dow",
    "isodow": "isodow",
    "doy": "doy",
    "isoyear": "isoyear",
    "epoch": "epoch",
    "julian": "julian j jd",
    "timezone": "timezone",
    "timezone_hour": "timezone_hour timezone_h",
    "timezone_minute": "timezone_minute timezone_m",
}
_UNIT_OF: Final = {spelling: unit for unit, all_ in _UNITS.items() for spelling in all_.split()}


def unit_of(name: str, kind: str) -> str:
    """Raises InvalidArgument (22023) for a word that is no unit."""
    unit = _UNIT_OF.get(ascii_lower(name))
    if unit is None:
        raise InvalidArgument(f'unit "{name:.40}" not recognized for type {kind}')
    return unit


def _unsupported(unit: str, kind: str) -> FeatureNotSupported:
    return FeatureNotSupported(f'unit "{unit}" not supported for type {kind}')


def _scaled(microseconds: int, digits: int) -> Decimal:
    return Decimal(microseconds).scaleb(-digits, context=EXACT)


_CALENDAR: Final[dict[str, Callable[[Any], int]]] = {
    "day": lambda day: day.day,
    "week": lambda day: day.isocalendar().week,
    "month": lambda day: day.month,
    "quarter": lambda day: (day.month + 2) // 3,
    "year": lambda day: day.year,
    "decade": lambda day: day.year // 10,
    "century": lambda day: (day.year + 99) // 100,
    "millennium": lambda day: (day.year + 999) // 1_000,
    "dow": lambda day: day.isoweekday() % 7,
    "isodow": lambda day: day.isoweekday(),
    "doy": lambda day: day.timetuple().tm_yday,
    "isoyear": lambda day: day.isocalendar().year,
}
"""Fields of a date."""
_CLOCK: Final[dict[str, Callable[[int], Decimal]]] = {
    "microseconds": lambda rest: Decimal(rest % MINUTE_US),
    "milliseconds": lambda rest: _scaled(rest % MINUTE_US, 3),
    "second": lambda rest: _scaled(rest % MINUTE_US, 6),
    "minute": lambda rest: Decimal(rest // MINUTE_US % 60),
    "hour": lambda rest: Decimal(rest // HOUR_US),
}
"""Fields of the microseconds of a day."""


def _of_calendar(unit: str, day: int) -> int:
    return day + JULIAN_OF_EPOCH if unit == "julian" else _CALENDAR[unit](date_of(day))


_ENDLESS: Final = frozenset(
    {"year", "decade", "century", "millennium", "isoyear", "julian", "epoch"}
)
"""Fields that only grow: of an infinite moment they are infinite, where others are none."""


def _field_of_infinite(unit: str, value: int) -> Decimal | None:
    if unit not in _ENDLESS:
        return None
    return Decimal("Infinity" if value > 0 else "-Infinity")


def field_of_timestamp(unit: str, timestamp: int, zone: ZoneInfo | None = None) -> Decimal | None:
    """Return a field as the clocks of `zone` show it; None is for a timestamp, which has no zone.
    An infinite one has but a few fields. Raises FeatureNotSupported."""
    if is_infinite(timestamp):
        return _field_of_infinite(unit, timestamp)
    if unit.startswith("timezone"):
        if zone is None:
            raise _unsupported(unit, _PLAIN)
        ahead = offset_at(timestamp, zone)
        if unit == "timezone":
            return Decimal(ahead)
        hours, rest = divided(ahead, 3_600), modulo(ahead, 3_600)
        return Decimal(hours if unit == "timezone_hour" else divided(rest, 60))
    if unit == "epoch":
        return _scaled(timestamp, 6)
    timestamp = timestamp if zone is None else local_of(timestamp, zone)
    day, rest = divmod(timestamp, DAY_US)
    if unit in _CLOCK:
        return _CLOCK[unit](rest)
    if unit == "julian":
        whole = Decimal(day + JULIAN_OF_EPOCH)
        if not rest:
            return whole
        return whole + quotient(Decimal(rest), Decimal(DAY_US), 20)
    return Decimal(_of_calendar(unit, day))


def field_of_date(unit: str, day: int) -> Decimal | None:
    """Return a field of a date. An infinite one has but a few. Raises FeatureNotSupported."""
    if unit not in _CALENDAR and unit not in ("julian", "epoch"):
        raise _unsupported(unit, "date")
    if is_infinite(day):
        return _field_of_infinite(unit, day)
    if unit == "epoch":
        return Decimal(day * (DAY_US // 1_000_000))
    return Decimal(_of_calendar(unit, day))


def _epoch(span: Span) -> Decimal:
    """Return the seconds of an interval: a year is 365.25 days here, a month of the rest 30."""
    quarter_days = divided(span.months, 12) * 1_461
    quarter_days += (modulo(span.months, 12) * 30 + span.days) * 4
    return _scaled(quarter_days * (DAY_US // 4) + span.microseconds, 6)


_OF_SPANS: Final[dict[str, Callable[[Span], Decimal]]] = {
    "microseconds": lambda span: Decimal(modulo(span.microseconds, MINUTE_US)),
    "milliseconds": lambda span: _scaled(modulo(span.microseconds, MINUTE_US), 3),
    "second": lambda span: _scaled(modulo(span.microseconds, MINUTE_US), 6),
    "minute": lambda span: Decimal(modulo(divided(span.microseconds, MINUTE_US), 60)),
    "hour": lambda span: Decimal(divided(span.microseconds, HOUR_US)),
    "day": lambda span: Decimal(span.days),
    "month": lambda span: Decimal(modulo(span.months, 12)),
    "quarter": lambda span: Decimal(divided(modulo(span.months, 12), 3) + 1),
    "year": lambda span: Decimal(divided(span.months, 12)),
    "decade": lambda span: Decimal(divided(span.months, 120)),
    "century": lambda span: Decimal(divided(span.months, 1_200)),
    "millennium": lambda span: Decimal(divided(span.months, 12_000)),
    "epoch": _epoch,
}


def field_of_span(unit: str, span: Span) -> Decimal:
    if unit not in _OF_SPANS:
        raise _unsupported(unit, "interval")
    return _OF_SPANS[unit](span)


def _extract_local(name: str, timestamp: int) -> Decimal | None:
    return field_of_timestamp(unit_of(name, _PLAIN), timestamp)


def _extract_zoned(zone: ZoneInfo, name: str, timestamp: int) -> Decimal | None:
    return field_of_timestamp(unit_of(name, _ZONED), timestamp, zone)


def _extract_date(name: str, day: int) -> Decimal | None:
    return field_of_date(unit_of(name, "date"), day)


def _extract_span(name: str, stored: str) -> Decimal:
    return field_of_span(unit_of(name, "interval"), span_of(stored))


def _extract_time(name: str, value: int) -> Decimal:
    unit = unit_of(name, _TIME)
    if unit not in CLOCK_FIELDS:
        raise _unsupported(unit, _TIME)
    return CLOCK_FIELDS[unit](value)


def _extract_zoned_time(name: str, value: int) -> Decimal:
    unit = unit_of(name, _ZONED_TIME)
    found = zoned_fields(value).get(unit)
    if found is not None:
        return found
    if unit not in CLOCK_FIELDS:
        raise _unsupported(unit, _ZONED_TIME)
    return CLOCK_FIELDS[unit](zoned_of(value).microseconds)


# ------------------------------------------------------------------ date_trunc


def _truncated_day(unit: str, day: int) -> int:
    shown = date_of(day)
    year = shown.year
    match unit:
        case "day":
            return day
        case "week":
            return day - (shown.isoweekday() - 1)
        case "month":
            return day - (shown.day - 1)
        case "quarter":
            first = shown.replace(month=(shown.month - 1) // 3 * 3 + 1, day=1)
        case "year":
            first = shown.replace(month=1, day=1)
        case "decade":
            if year < 10:  # the decade begins with 1 BC
                raise MomentOutOfRange("timestamp out of range: the years are 1 to 9999")
            first = shown.replace(year=year // 10 * 10, month=1, day=1)
        case "century":
            first = shown.replace(year=(year - 1) // 100 * 100 + 1, month=1, day=1)
        case _:
            first = shown.replace(year=(year - 1) // 1_000 * 1_000 + 1, month=1, day=1)
    return day - (shown - first).days


_STEPS: Final = {
    "microseconds": 1,
    "milliseconds": 1_000,
    "second": 1_000_000,
    "minute": MINUTE_US,
    "hour": HOUR_US,
}
_MONTHS: Final = {
    "month": 1,
    "quarter": 3,
    "year": 12,
    "decade": 120,
    "century": 1_200,
    "millennium": 12_000,
}
_TRUNCATED: Final = frozenset({*_STEPS, "day", "week", *_MONTHS})


def _check_truncated(unit: str, name: str, kind: str) -> None:
    if unit.startswith("timezone"):
        raise _unsupported(unit, kind)
    if unit not in _TRUNCATED:
        raise InvalidArgument(f'unit "{name:.40}" not recognized for type {kind}')


def _truncated(name: str, timestamp: int, kind: str = _PLAIN) -> int:
    if is_infinite(timestamp):
        return timestamp
    unit = unit_of(name, kind)
    _check_truncated(unit, name, kind)
    if unit in _STEPS:
        return timestamp - timestamp % _STEPS[unit]
    fields_of(timestamp)  # the calendar's range
    return _truncated_day(unit, timestamp // DAY_US) * DAY_US


def _truncated_in_zone(zone: ZoneInfo, name: str, timestamp: int) -> int:
    if is_infinite(timestamp):
        return timestamp
    local = local_of(timestamp, zone)
    step = _STEPS.get(unit_of(name, _ZONED))
    if step is not None:  # no clock is put forward or back inside it
        return timestamp - local % step
    return at_zone(_truncated(name, local, _ZONED), zone)


def _truncated_in_named(name: str, timestamp: int, zone: str) -> int:
    return _truncated_in_zone(zone_of_word(zone), name, timestamp)


def _truncated_span(name: str, stored: str) -> str:
    unit = unit_of(name, "interval")
    months, days, rest = span_of(stored)
    if unit in _STEPS:
        return stored_form(Span(months, days, divided(rest, _STEPS[unit]) * _STEPS[unit]))
    if unit == "day":
        return stored_form(Span(months, days, 0))
    _check_truncated(unit, name, "interval")
    if unit == "week":
        raise FeatureNotSupported('unit "week" not supported for type interval')
    return stored_form(Span(divided(months, _MONTHS[unit]) * _MONTHS[unit], 0, 0))


def _numeric(compute: Callable[..., Decimal | None]) -> Callable[..., str | None]:
    def computed(*values: Any) -> str | None:
        found = compute(*values)
        return None if found is None else stored_numeric(found)

    return computed


def _double(compute: Callable[..., Decimal | None]) -> Callable[..., float | None]:
    def computed(*values: Any) -> float | None:
        found = compute(*values)
        return None if found is None else float(found)

    return computed


_SOURCES: Final = (
    *((TIMESTAMP, _extract_local), (INTERVAL, _extract_span)),
    *((TIME, _extract_time), (TIMETZ, _extract_zoned_time)),
)
FUNCTIONS: Final[tuple[Function, ...]] = (
    *(Function("extract", (TEXT, kind), NUMERIC, _numeric(f)) for kind, f in _SOURCES),
    Function("extract", (TEXT, DATE), NUMERIC, _numeric(_extract_date)),
    make_zoned("extract", (TEXT, TIMESTAMPTZ), NUMERIC, _numeric(_extract_zoned)),
    *(Function("date_part", (TEXT, kind), DOUBLE, _double(f)) for kind, f in _SOURCES),
    # It takes a date for the timestamp at its midnight.
    Function(
        "date_part",
        (TEXT, DATE),
        DOUBLE,
        _double(lambda name, day: _extract_local(name, midnight_of(day))),
    ),
    make_zoned("date_part", (TEXT, TIMESTAMPTZ), DOUBLE, _double(_extract_zoned)),
    Function("date_trunc", (TEXT, TIMESTAMP), TIMESTAMP, _truncated),
    make_zoned("date_trunc", (TEXT, TIMESTAMPTZ), TIMESTAMPTZ, _truncated_in_zone),
    Function("date_trunc", (TEXT, TIMESTAMPTZ, TEXT), TIMESTAMPTZ, _truncated_in_named),
    Function("date_trunc", (TEXT, INTERVAL), INTERVAL, _truncated_span),
)
