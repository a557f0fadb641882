"""Dates and times as text → storage values: ISO 8601 and what PostgreSQL reads beside it.

Read: 2020-01-31, 20200131, January 31, 2020, 31 Jan 2020, with 10:20[:30[.5]] behind it, AM or PM,
and a zone (Z, +02, +05:30, a zone's name); epoch, infinity, -infinity. Of PostgreSQL's other
spellings none is guessed.
"""

from __future__ import annotations

import re
from datetime import date
from typing import Final
from zoneinfo import ZoneInfo

from leasehold.model.errors import (
    FeatureNotSupported,
    InvalidMoment,
    MomentOutOfRange,
    ZoneOutOfRange,
)
from leasehold.values.dates import (
    DAY_LEAST,
    DAY_MOST,
    DAY_US,
    INFINITE_WORDS,
    day_of,
    is_infinite,
)
from leasehold.values.letters import BLANKS, ascii_lower
from leasehold.values.time_zone import UTC, at_zone, in_range, zone_of_word

_MONTHS: Final = (
    "jan",
    "feb",
    "mar",
    "apr",
    "may",
    "jun",
    "jul",
    "aug",
    "sep",
    "oct",
    "nov",
    "dec",
)
_NAME: Final = r"(?P<month_name>[a-z]{3,9})\.?"
_DATES: Final = tuple(
    re.compile(pattern, re.IGNORECASE | re.ASCII)
    for pattern in (
        r"(?P<year>[0-9]{4,6})-(?P<month>[0-9]{1,2})-(?P<day>[0-9]{1,2})",
        r"(?P<year>[0-9]{4})/(?P<month>[0-9]{1,2})/(?P<day>[0-9]{1,2})",
        r"(?P<year>[0-9]{4})(?P<month>[0-9]{2})(?P<day>[0-9]{2})",
        rf"(?P<day>[0-9]{{1,2}})[ -]{_NAME}[ -](?P<year>[0-9]{{4}})",
        rf"(?P<year>[0-9]{{4}})[ -]{_NAME}[ -](?P<day>[0-9]{{1,2}})",
        rf"{_NAME} (?P<day>[0-9]{{1,2}}),? +(?P<year>[0-9]{{4}})",
    )
)
_CLOCK: Final = re.compile(
    r"(?:[ \t]*T|[ \t]+)(?P<hour>[0-9]{1,2}):(?P<minute>[0-9]{2})"
    r"(?::(?P<second>[0-9]{2})(?P<fraction>\.[0-9]*)?)?(?:[ \t]*(?P<half>am|pm))?",
    re.IGNORECASE | re.ASCII,
)
_ZONE: Final = re.compile(
    r"[ \t]*(?:(?P<utc>z|utc|gmt)|(?P<sign>[+-])(?P<hours>[0-9]{1,2})"
    r"(?::?(?P<minutes>[0-9]{2}))?(?::(?P<seconds>[0-9]{2}))?|(?P<name>[a-z][a-z0-9_+/-]*))",
    re.IGNORECASE | re.ASCII,
)
NOT_BUILT: Final = frozenset({"now", "today", "tomorrow", "yesterday", "allballs"})
_WORDS: Final = {"epoch": 0, **INFINITE_WORDS}
"""Moments that have a name, of dates and timestamps alike."""


def date_of_text(text: str) -> int:
    """Return the days since 1970-01-01; a time behind the date is passed over. Raises InvalidMoment
    (22007), MomentOutOfRange (22008)."""
    named = _WORDS.get(ascii_lower(text.strip(BLANKS)))
    if named is not None:
        return named
    day, _, _, _ = read_parts(text, "date")
    return day


def timestamp_of_text(text: str, *, zoned: bool, session: ZoneInfo = UTC) -> int:
    """Return the microseconds since 1970-01-01, UTC. A zone counts for a timestamptz alone, and one
    without is meant in that of the `session`. Raises as `date_of_text` does."""
    kind = "timestamp with time zone" if zoned else "timestamp"
    named = _WORDS.get(ascii_lower(text.strip(BLANKS)))
    if named is not None:
        return named
    day, microseconds, zone, _ = read_parts(text, kind)
    local = day * DAY_US + microseconds
    zone = session if zone is None else zone
    if zoned and isinstance(zone, ZoneInfo):
        return at_zone(local, zone)
    made = local - zone if zoned and isinstance(zone, int) else local
    return in_range(made)


def day_in_range(day: int) -> int:
    """Return the day, infinite ones too. Raises MomentOutOfRange outside the years 1 to 9999."""
    if not is_infinite(day) and not DAY_LEAST <= day <= DAY_MOST:
        raise MomentOutOfRange("date out of range: the years are 1 to 9999")
    return day


def begins_with_date(text: str) -> bool:
    return any(pattern.match(text) for pattern in _DATES)


def read_parts(text: str, kind: str) -> tuple[int, int, ZoneInfo | int | None, bool]:
    """Return the days, the microseconds of the day, the zone (its offset in µs, its name, or none),
    and whether a time was said. Raises InvalidMoment, MomentOutOfRange, FeatureNotSupported."""
    trimmed = text.strip(BLANKS)
    found = next((f for pattern in _DATES if (f := pattern.match(trimmed))), None)
    if found is None:
        if ascii_lower(trimmed) in NOT_BUILT:
            raise FeatureNotSupported(f"{trimmed!r} as a {kind} is not supported: name the moment")
        raise _invalid(kind, text)
    rest = trimmed[found.end() :]
    microseconds = 0
    clock = _CLOCK.match(rest)
    if clock is not None:
        microseconds = clock_of_parts(clock, text)
        rest = rest[clock.end() :]
    zone, rest = read_zone(rest, text)
    if rest:
        raise _invalid(kind, text)
    return _day(found, kind, text), microseconds, zone, clock is not None


def read_zone(rest: str, text: str) -> tuple[ZoneInfo | int | None, str]:
    """Return the zone that `rest` of a text begins with, as `read_parts` does, and what stands
    behind it."""
    spelled = _ZONE.match(rest) if rest else None
    return (None, rest) if spelled is None else (_zone(spelled, text), rest[spelled.end() :])


def _day(found: re.Match[str], kind: str, text: str) -> int:
    parts = found.groupdict()
    name = parts.get("month_name")
    if name is not None:
        short = ascii_lower(name)[:3]
        if short not in _MONTHS:
            raise _invalid(kind, text)
        month = _MONTHS.index(short) + 1
    else:
        month = int(parts["month"])
    try:
        return day_of(date(int(parts["year"]), month, int(parts["day"])))
    except ValueError as error:
        raise _out_of_range(text) from error


def clock_of_parts(found: re.Match[str], text: str) -> int:
    """Return the microseconds of hour, minute, second, fraction and half of the day. Raises
    MomentOutOfRange."""
    hour, minute = int(found["hour"]), int(found["minute"])
    second = int(found["second"] or 0)
    fraction = round(float("0" + found["fraction"]) * 1_000_000) if found["fraction"] else 0
    if found["half"]:
        if not 1 <= hour <= 12:
            raise _out_of_range(text)
        hour = hour % 12 + (12 if ascii_lower(found["half"]) == "pm" else 0)
    total = ((hour * 60 + minute) * 60 + second) * 1_000_000 + fraction
    if hour > 24 or minute > 59 or second > 60 or total > DAY_US:
        raise _out_of_range(text)
    return total


def _zone(found: re.Match[str], text: str) -> ZoneInfo | int:
    if found["utc"]:
        return 0
    if found["name"]:
        return zone_of_word(found["name"])
    return _offset(found, text)


def offset_of_text(text: str) -> int | None:
    """Return the µs of +02, -05:30 …, None for what is no number. Raises MomentOutOfRange."""
    found = _ZONE.fullmatch(text)
    return None if found is None or not found["hours"] else _offset(found, text)


def _offset(found: re.Match[str], text: str) -> int:
    hours, minutes, seconds = (int(found[part] or 0) for part in ("hours", "minutes", "seconds"))
    if hours > 15 or minutes > 59 or seconds > 59:
        raise ZoneOutOfRange(f'time zone displacement out of range: "{text:.80}"')
    total = ((hours * 60 + minutes) * 60 + seconds) * 1_000_000
    return -total if found["sign"] == "-" else total


def _invalid(kind: str, text: str) -> InvalidMoment:
    return InvalidMoment(f'invalid input syntax for type {kind}: "{text:.80}"')


def _out_of_range(text: str) -> MomentOutOfRange:
    return MomentOutOfRange(f'date/time field value out of range: "{text:.80}"')
