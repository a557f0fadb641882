"""Spans of time as PostgreSQL's interval: months, days and microseconds, which are not the same.

Its storage form is its sort key (all of
it in microseconds, a month taken as 30 days) and the three parts: '1 month' equals '30 days'.
"""

from __future__ import annotations

import re
from decimal import Decimal
from typing import Final, NamedTuple

from leasehold.model.errors import IntervalOverflow, InvalidMoment, MomentOutOfRange
from leasehold.values.dates import DAY_US
from leasehold.values.letters import BLANKS, ascii_lower

HOUR_US: Final = 3_600_000_000
MINUTE_US: Final = 60_000_000
SECOND_US: Final = 1_000_000
DAYS_OF_MONTH: Final = 30
MONTHS_MOST: Final = (1 << 31) - 1
MICROSECONDS_MOST: Final = (1 << 63) - 1
KEY_DIGITS: Final = 23
_WHOLE: Final = re.compile("-?[0-9]{1,23}")
_KEY_ZERO: Final = 10**22


class Span(NamedTuple):
    months: int
    days: int
    microseconds: int


def stored_form(span: Span) -> str:
    """Return the storage form. Raises MomentOutOfRange (22008) where a part has no room."""
    months, days, microseconds = span
    whole_parts = max(abs(months), abs(days)) <= MONTHS_MOST
    if not whole_parts or abs(microseconds) > MICROSECONDS_MOST:
        raise MomentOutOfRange("interval out of range")
    total = (months * DAYS_OF_MONTH + days) * DAY_US + microseconds
    return f"{total + _KEY_ZERO:0{KEY_DIGITS}d} {months} {days} {microseconds}"


def span_of(stored: str) -> Span:
    _, months, days, microseconds = stored.split(" ")
    return Span(int(months), int(days), int(microseconds))


def is_stored_form(value: object) -> bool:
    """Whether a value is a storage value."""
    parts = value.split(" ") if isinstance(value, str) else []
    if len(parts) != 4 or not all(map(_WHOLE.fullmatch, parts)):
        return False
    try:
        return stored_form(Span(*map(int, parts[1:]))) == value
    except MomentOutOfRange:
        return False


def sort_key(stored: str) -> str:
    return stored[:KEY_DIGITS]


def text_of(stored: str) -> str:
    """Return the text in PostgreSQL's own style: 1 year 2 mons 3 days 04:05:06.5"""
    months, days, microseconds = span_of(stored)
    years, months = _parted(months, 12)
    words: list[str] = []
    behind_minus = False  # after a negative part PostgreSQL says the sign of a positive one
    for number, unit in ((years, "year"), (months, "mon"), (days, "day")):
        if number:
            sign = "+" if behind_minus and number > 0 else ""
            words.append(f"{sign}{number} {unit}{'' if number == 1 else 's'}")
            behind_minus = number < 0
    if microseconds or not words:
        sign = "-" if microseconds < 0 else "+" if behind_minus else ""
        words.append(sign + clock_text(abs(microseconds)))
    return " ".join(words)


def clock_text(microseconds: int) -> str:
    """Return HH:MM:SS and as many digits behind as are needed."""
    seconds, fraction = divmod(microseconds, SECOND_US)
    minutes, seconds = divmod(seconds, 60)
    hours, minutes = divmod(minutes, 60)
    behind = f".{fraction:06d}".rstrip("0") if fraction else ""
    return f"{hours:02d}:{minutes:02d}:{seconds:02d}{behind}"


def _parted(number: int, by: int) -> tuple[int, int]:
    """Return quotient and rest, both with the sign of the number."""
    quotient, rest = divmod(abs(number), by)
    return (-quotient, -rest) if number < 0 else (quotient, rest)


# ------------------------------------------------------------------ input

_MONTHS: Final = {"month": 1, "year": 12, "decade": 120, "century": 1200, "millennium": 12_000}
_DAYS: Final = {"day": 1, "week": 7}
_TIMES: Final = {
    "microsecond": 1,
    "millisecond": 1_000,
    "second": SECOND_US,
    "minute": MINUTE_US,
    "hour": HOUR_US,
}
_SPELLINGS: Final = {
    "microsecond": "us usec usecs usecond useconds microsecon",
    "millisecond": "ms msec msecs msecond mseconds millisecon",
    "second": "s sec secs",
    "minute": "m min mins",
    "hour": "h hr hrs",
    "day": "d",
    "week": "w",
    "month": "mon mons",
    "year": "y yr yrs",
    "decade": "dec decs decades",
    "century": "c cent centuries",
    "millennium": "mil mils millennia",
}
UNITS: Final = {
    spelling: unit
    for unit, others in _SPELLINGS.items()
    for spelling in (unit, f"{unit}s", *others.split())
}
_PART: Final = re.compile(
    r"(?P<clock>[+-]?[0-9]+:[0-9]{1,2}(?::[0-9]{1,2})?(?:\.[0-9]*)?)"
    r"|(?P<years>[+-]?[0-9]{1,9})-(?P<months>[0-9]{1,2})(?![0-9-])"
    r"|(?P<number>[+-]?(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+))(?:\s*(?P<unit>[a-z]+))?",
    re.ASCII,
)
_ISO: Final = re.compile(r"P(?=.)(?P<date>(?:-?[0-9.]+[YMWD])*)(?:T(?P<time>(?:-?[0-9.]+[HMS])+))?")
_ISO_PART: Final = re.compile(r"(-?[0-9]++\.?+[0-9]*+|-?\.[0-9]++)([A-Z])")
_ISO_DATE: Final = {"Y": "year", "M": "month", "W": "week", "D": "day"}
_ISO_TIME: Final = {"H": "hour", "M": "minute", "S": "second"}


TEXT_CHARACTERS_MAX: Final = 1_000
"""Of an interval's text; PostgreSQL reads 255. Its parts are taken off one by one."""
_ALL_DIGITS: Final = 6
FIELDS: Final = ("year", "month", "day", "hour", "minute", "second")


def span_of_fields(text: str, first: str, last: str, digits: int | None = None) -> Span:
    """Return the span of INTERVAL 'text' `first` TO `last`: they say which unit a number without
    one has, and which is the smallest that counts. `digits` are those of a fraction of a second.
    Raises as `span_of_text`."""
    span = span_of_text(text, last, minutes_first=(first, last) == ("minute", "second"))
    months, days, microseconds = span
    if last == "year":
        months = _parted(months, 12)[0] * 12
    if last in ("year", "month"):
        days = 0
    if last in ("year", "month", "day"):
        microseconds = 0
    elif last == "second":
        return round_span(Span(months, days, microseconds), digits)
    else:
        microseconds -= _parted(microseconds, _TIMES[last])[1]
    return Span(months, days, microseconds)


def round_span(span: Span, digits: int | None) -> Span:
    """Return the span with so many digits of a second, None = all; a half goes away from zero."""
    if digits is None or digits >= _ALL_DIGITS:
        return span
    step = 10 ** (_ALL_DIGITS - digits)
    half = step // 2 if span.microseconds >= 0 else -(step // 2)
    return span._replace(microseconds=_parted(span.microseconds + half, step)[0] * step)


def span_of_text(text: str, last: str = "second", *, minutes_first: bool = False) -> Span:
    """Return the span that a text says: `1 day 2:30`, `1 year 2 mons`, `P1DT2H`, `3 days ago` …

    `last` is the unit of a number at the end that has none; with `minutes_first` 1:30 is a minute
    and a half. Raises InvalidMoment (22007), MomentOutOfRange (22008).
    """
    trimmed = text.strip(BLANKS)
    if len(trimmed) > TEXT_CHARACTERS_MAX:
        raise _invalid(text)
    iso = _ISO.fullmatch(trimmed)
    if iso:
        return _checked(_iso(iso, text), text)
    rest = ascii_lower(trimmed).removeprefix("@").strip(BLANKS)
    ago = rest.endswith(" ago")
    if ago:
        rest = rest[:-4]
    months, days, microseconds = Decimal(0), Decimal(0), Decimal(0)
    seen: set[str] = set()
    unit = last
    for found in reversed(_parts(rest, text)):  # a number's unit follows from what is behind it
        if found["clock"]:
            for each in ("hour", "minute", "second"):
                _once(seen, each, text)
            microseconds += _clock(found["clock"], text, minutes_first=minutes_first)
            unit = "day"
        elif found["years"]:
            _once(seen, "year", text)
            unit = "month"
            more = int(found["months"])
            if more > 11:
                raise IntervalOverflow(f'interval field value out of range: "{text:.80}"')
            sign = -1 if found["years"].startswith("-") else 1
            months += int(found["years"]) * 12 + sign * more
        else:
            unit = UNITS.get(found["unit"], "") if found["unit"] else unit
            if not unit:
                raise _invalid(text)
            _once(seen, unit, text)
            more_months, more_days, more_us = _of_unit(Decimal(found["number"]), unit)
            months += more_months
            days += more_days
            microseconds += more_us
            unit = "day" if unit == "hour" else unit
    span = Span(int(months), int(days), int(microseconds))
    return _checked(Span(*(-part for part in span)) if ago else span, text)


def _parts(rest: str, text: str) -> list[re.Match[str]]:
    made: list[re.Match[str]] = []
    while rest:
        found = _PART.match(rest)
        if found is None:
            raise _invalid(text)
        after = rest[found.end() :]
        rest = after.lstrip(" \t\n\r\v\f,")
        if rest and not (found["unit"] or len(rest) < len(after)):
            raise _invalid(text)  # 2024-03-15 is no interval
        made.append(found)
    if not made:
        raise _invalid(text)
    return made


def _invalid(text: str) -> InvalidMoment:
    return InvalidMoment(f'invalid input syntax for type interval: "{text:.80}"')


def _once(seen: set[str], unit: str, text: str) -> None:
    if unit in seen:
        raise _invalid(text)
    seen.add(unit)


def _clock(text: str, whole: str, *, minutes_first: bool) -> int:
    sign = -1 if text.startswith("-") else 1
    hours, minutes, *seconds = text.lstrip("+-").split(":")
    if not seconds and (minutes_first or "." in minutes):
        hours, minutes, seconds = "0", hours, [minutes]
    second = Decimal(seconds[0]) if seconds else Decimal(0)
    if int(minutes) > 59 or second > 60:
        raise IntervalOverflow(f'interval field value out of range: "{whole:.80}"')
    total = int(hours) * HOUR_US + int(minutes) * MINUTE_US + round(second * SECOND_US)
    return sign * total


def _of_unit(number: Decimal, unit: str) -> tuple[int, int, int]:
    """Return months, days and microseconds. A fraction of months becomes days, one of days a time,
    as in PostgreSQL."""
    if unit in _TIMES:
        return 0, 0, round(number * _TIMES[unit])
    if unit in _DAYS:
        days = number * _DAYS[unit]
        return 0, int(days), round((days - int(days)) * DAY_US)
    months = number * _MONTHS[unit]
    if unit != "month":  # rounded to months
        return round(months), 0, 0
    days = (months - int(months)) * DAYS_OF_MONTH
    return int(months), int(days), round((days - int(days)) * DAY_US)


def _iso(found: re.Match[str], text: str) -> Span:
    total = [0, 0, 0]
    for part, units in ((found["date"], _ISO_DATE), (found["time"] or "", _ISO_TIME)):
        at = 0
        while at < len(part):
            spelled = _ISO_PART.match(part, at)
            if spelled is None:
                raise _invalid(text)
            at = spelled.end()
            made = _of_unit(Decimal(spelled[1]), units[spelled[2]])
            total = [sum(pair) for pair in zip(total, made, strict=True)]
    return Span(*total)


def _checked(span: Span, text: str) -> Span:
    whole_parts = max(abs(span.months), abs(span.days)) <= MONTHS_MOST
    if not whole_parts or abs(span.microseconds) > MICROSECONDS_MOST:
        raise IntervalOverflow(f'interval field value out of range: "{text:.80}"')
    return span
