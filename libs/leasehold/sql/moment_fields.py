"""EXTRACT, date_part and date_trunc."""

from __future__ import annotations

from collections.abc import Callable
from decimal import Decimal
from typing import Final

from leasehold.model.errors import FeatureNotSupported, InvalidArgument
from leasehold.schema.interval import HOUR_US, MINUTE_US, Span, span_of, stored_form
from leasehold.schema.moments import DAY_US, date_of
from leasehold.schema.numeric import EXACT
from leasehold.schema.numeric import stored_form as stored_numeric
from leasehold.sql.arithmetic import quotient
from leasehold.sql.function import (
    DATE,
    DOUBLE,
    INTERVAL,
    NUMERIC,
    TEXT,
    TIMESTAMP,
    TIMESTAMPTZ,
    Function,
)
from leasehold.sql.moment_arithmetic import fields_of
from leasehold.sql.moment_text import at_zone, local_of, zone_of

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
_OF_DATES: Final = frozenset(
    {
        *("day", "week", "month", "quarter", "year", "decade", "century", "millennium", "dow"),
        *("isodow", "doy", "isoyear", "epoch", "julian"),
    }
)
_OF_INTERVALS: Final = frozenset(
    {
        *("microseconds", "milliseconds", "second", "minute", "hour", "day", "month", "quarter"),
        *("year", "decade", "century", "millennium", "epoch"),
    }
)


def unit_of(name: str, kind: str) -> str:
    """Raises InvalidArgument (22023) for a word that is no unit."""
    unit = _UNIT_OF.get(name.lower())
    if unit is None:
        raise InvalidArgument(f'unit "{name:.40}" not recognized for type {kind}')
    return unit


def _unsupported(unit: str, kind: str) -> FeatureNotSupported:
    return FeatureNotSupported(f'unit "{unit}" not supported for type {kind}')


def _scaled(microseconds: int, digits: int) -> Decimal:
    return Decimal(microseconds).scaleb(-digits, context=EXACT)


def _century(year: int, of: int) -> int:
    return (year + of - 1) // of


def _of_calendar(unit: str, day: int) -> int:
    shown = date_of(day)
    match unit:
        case "day":
            return shown.day
        case "week":
            return shown.isocalendar().week
        case "month":
            return shown.month
        case "quarter":
            return (shown.month + 2) // 3
        case "year":
            return shown.year
        case "decade":
            return shown.year // 10
        case "century":
            return _century(shown.year, 100)
        case "millennium":
            return _century(shown.year, 1_000)
        case "dow":
            return shown.isoweekday() % 7
        case "isodow":
            return shown.isoweekday()
        case "doy":
            return shown.timetuple().tm_yday
        case "isoyear":
            return shown.isocalendar().year
    assert unit == "julian", unit
    return day + JULIAN_OF_EPOCH


def _of_clock(unit: str, rest: int) -> Decimal | None:
    """Of microseconds of a day; None for a unit of the calendar."""
    match unit:
        case "microseconds":
            return Decimal(rest % MINUTE_US)
        case "milliseconds":
            return _scaled(rest % MINUTE_US, 3)
        case "second":
            return _scaled(rest % MINUTE_US, 6)
        case "minute":
            return Decimal(rest // MINUTE_US % 60)
        case "hour":
            return Decimal(rest // HOUR_US)
    return None


def field_of_moment(unit: str, moment: int, *, zoned: bool) -> Decimal:
    kind = "timestamp with time zone" if zoned else "timestamp without time zone"
    if unit.startswith("timezone"):
        if not zoned:
            raise _unsupported(unit, kind)
        return Decimal(0)
    if unit == "epoch":
        return _scaled(moment, 6)
    day, rest = divmod(moment, DAY_US)
    found = _of_clock(unit, rest)
    if found is not None:
        return found
    if unit == "julian":
        whole = Decimal(day + JULIAN_OF_EPOCH)
        if not rest:
            return whole
        return whole + quotient(Decimal(rest), Decimal(DAY_US), 20)
    return Decimal(_of_calendar(unit, day))


def field_of_date(unit: str, day: int) -> Decimal:
    if unit not in _OF_DATES:
        raise _unsupported(unit, "date")
    if unit == "epoch":
        return Decimal(day * (DAY_US // 1_000_000))
    return Decimal(_of_calendar(unit, day))


def _quotient(number: int, by: int) -> int:
    """Towards zero."""
    return abs(number) // by * (1 if number >= 0 else -1)


def field_of_span(unit: str, span: Span) -> Decimal:
    if unit not in _OF_INTERVALS:
        raise _unsupported(unit, "interval")
    years, months = _quotient(span.months, 12), span.months - _quotient(span.months, 12) * 12
    seconds = span.microseconds - _quotient(span.microseconds, MINUTE_US) * MINUTE_US
    match unit:
        case "microseconds":
            return Decimal(seconds)
        case "milliseconds":
            return _scaled(seconds, 3)
        case "second":
            return _scaled(seconds, 6)
        case "minute":
            minutes = _quotient(span.microseconds, MINUTE_US)
            return Decimal(minutes - _quotient(minutes, 60) * 60)
        case "hour":
            return Decimal(_quotient(span.microseconds, HOUR_US))
        case "day":
            return Decimal(span.days)
        case "month":
            return Decimal(months)
        case "quarter":
            return Decimal(_quotient(months, 3) + 1)
        case "year":
            return Decimal(years)
        case "decade":
            return Decimal(_quotient(years, 10))
        case "century":
            return Decimal(_quotient(years, 100))
        case "millennium":
            return Decimal(_quotient(years, 1_000))
    # A year is 365.25 days here, a month of the rest 30.
    quarter_days = years * 1_461 + (months * 30 + span.days) * 4
    return _scaled(quarter_days * (DAY_US // 4) + span.microseconds, 6)


def _extract_moment(*, zoned: bool) -> Callable[[str, int], Decimal]:
    kind = "timestamp with time zone" if zoned else "timestamp without time zone"
    return lambda name, moment: field_of_moment(unit_of(name, kind), moment, zoned=zoned)


def _extract_date(name: str, day: int) -> Decimal:
    return field_of_date(unit_of(name, "date"), day)


def _part_of_date(name: str, day: int) -> Decimal:
    """date_part takes a date for the timestamp at its midnight."""
    return _extract_moment(zoned=False)(name, day * DAY_US)


def _extract_span(name: str, stored: str) -> Decimal:
    return field_of_span(unit_of(name, "interval"), span_of(stored))


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
            first = shown.replace(year=max(year // 10 * 10, 1), month=1, day=1)
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
_TRUNCATED: Final = frozenset(
    {*_STEPS, "day", "week", "month", "quarter", "year", "decade", "century", "millennium"}
)


def _check_truncated(unit: str, name: str, kind: str) -> None:
    if unit.startswith("timezone"):
        raise _unsupported(unit, kind)
    if unit not in _TRUNCATED:
        raise InvalidArgument(f'unit "{name:.40}" not recognized for type {kind}')


def _truncated(kind: str) -> Callable[[str, int], int]:
    def truncate(name: str, moment: int) -> int:
        unit = unit_of(name, kind)
        _check_truncated(unit, name, kind)
        if unit in _STEPS:
            return moment - moment % _STEPS[unit]
        fields_of(moment)  # the calendar's range
        return _truncated_day(unit, moment // DAY_US) * DAY_US

    return truncate


def _truncated_in_zone(name: str, moment: int, zone: str) -> int:
    where = zone_of(zone)
    local = local_of(moment, where)
    step = _STEPS.get(unit_of(name, "timestamp with time zone"))
    if step is not None:  # no clock is put forward or back inside it
        return moment - local % step
    return at_zone(_truncated("timestamp with time zone")(name, local), where)


def _truncated_span(name: str, stored: str) -> str:
    unit = unit_of(name, "interval")
    months, days, rest = span_of(stored)
    if unit in _STEPS:
        return stored_form(Span(months, days, _quotient(rest, _STEPS[unit]) * _STEPS[unit]))
    if unit == "day":
        return stored_form(Span(months, days, 0))
    of_months = {
        "month": 1,
        "quarter": 3,
        "year": 12,
        "decade": 120,
        "century": 1_200,
        "millennium": 12_000,
    }
    _check_truncated(unit, name, "interval")
    if unit == "week":
        raise FeatureNotSupported('unit "week" not supported for type interval')
    by = of_months[unit]
    return stored_form(Span(_quotient(months, by) * by, 0, 0))


def _numeric(compute: Callable[..., Decimal]) -> Callable[..., str]:
    return lambda name, value: stored_numeric(compute(name, value))


def _double(compute: Callable[..., Decimal]) -> Callable[..., float]:
    return lambda name, value: float(compute(name, value))


_SOURCES: Final = (
    (TIMESTAMP, _extract_moment(zoned=False)),
    (TIMESTAMPTZ, _extract_moment(zoned=True)),
    (INTERVAL, _extract_span),
)
FUNCTIONS: Final = (
    *(Function("extract", (TEXT, kind), NUMERIC, _numeric(f)) for kind, f in _SOURCES),
    Function("extract", (TEXT, DATE), NUMERIC, _numeric(_extract_date)),
    *(Function("date_part", (TEXT, kind), DOUBLE, _double(f)) for kind, f in _SOURCES),
    Function("date_part", (TEXT, DATE), DOUBLE, _double(_part_of_date)),
    Function("date_trunc", (TEXT, TIMESTAMP), TIMESTAMP, _truncated("timestamp without time zone")),
    Function(
        "date_trunc", (TEXT, TIMESTAMPTZ), TIMESTAMPTZ, _truncated("timestamp with time zone")
    ),
    Function("date_trunc", (TEXT, TIMESTAMPTZ, TEXT), TIMESTAMPTZ, _truncated_in_zone),
    Function("date_trunc", (TEXT, INTERVAL), INTERVAL, _truncated_span),
)
