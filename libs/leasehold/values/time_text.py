"""Times of a day as text → storage values: 10:20[:30[.5]], 102030, 10:20 PM, allballs, with a date
before or behind a zone, which a time without one passes over."""

from __future__ import annotations

import re
from datetime import UTC as PYTHON_UTC
from datetime import datetime, timedelta
from functools import lru_cache
from typing import Final
from zoneinfo import ZoneInfo

from leasehold.model.errors import FeatureNotSupported, InvalidMoment
from leasehold.values.date_text import (
    NOT_BUILT,
    begins_with_date,
    clock_of_parts,
    read_parts,
    read_zone,
)
from leasehold.values.dates import DAY_US
from leasehold.values.letters import BLANKS, ascii_lower
from leasehold.values.time_zone import UTC, at_zone, local_of, offset_at
from leasehold.values.times import SECOND_US, ZonedTime, check_time, stored_form

PLAIN: Final = "time"
ZONED: Final = "time with time zone"
_BEHIND: Final = r"(?P<fraction>\.[0-9]*)?"
_HALF: Final = r"(?:[ \t]*(?P<half>am|pm)(?![a-z]))?"
_CLOCKS: Final = tuple(
    re.compile(pattern + _HALF, re.IGNORECASE | re.ASCII)
    for pattern in (
        rf"T?(?P<hour>[0-9]{{1,2}}):(?P<minute>[0-9]{{1,2}})(?::(?P<second>[0-9]{{1,2}}){_BEHIND})?",
        rf"T?(?P<hour>[0-9]{{2}})(?P<minute>[0-9]{{2}})(?:(?P<second>[0-9]{{2}}){_BEHIND})?(?![0-9])",
    )
)


def time_of_text(text: str) -> int:
    """Return a time's storage value. Raises InvalidMoment (22007), MomentOutOfRange (22008)."""
    return check_time(_read(text, PLAIN)[1])


def zoned_time_of_text(text: str, session: ZoneInfo = UTC) -> int:
    """Return a timetz's storage value; without an offset it is by the clocks of the `session`, as
    long as these are never put forward or back. Raises as `time_of_text`, FeatureNotSupported."""
    day, microseconds, zone = _read(text, ZONED)
    check_time(microseconds)
    if isinstance(zone, int):
        return stored_form(ZonedTime(microseconds, -zone // SECOND_US))
    zone = session if zone is None else zone
    if day is not None:
        moment = at_zone(day * DAY_US + microseconds % DAY_US, zone)
        return stored_form(ZonedTime(microseconds, -offset_at(moment, zone)))
    offset_s = fixed_offset(zone)
    if offset_s is None:
        raise FeatureNotSupported(
            f'"{text.strip(BLANKS):.80}" as a {ZONED}: the clocks of {zone.key} are put forward'
            " and back; say the offset"
        )
    return stored_form(ZonedTime(microseconds, -offset_s))


@lru_cache(maxsize=512)
def fixed_offset(zone: ZoneInfo) -> int | None:
    """Return the seconds by which a zone is always ahead of UTC, None where that changes in a
    year."""
    begin = datetime(2030, 1, 1, tzinfo=PYTHON_UTC)
    offsets = {(begin + timedelta(days=10 * n)).astimezone(zone).utcoffset() for n in range(37)}
    found = offsets.pop()
    return None if offsets or found is None else int(found.total_seconds())


def zoned_of_timestamp(timestamp: int, zone: ZoneInfo) -> int:
    """Return the timetz that the clocks of a zone show at a moment."""
    return stored_form(ZonedTime(local_of(timestamp, zone) % DAY_US, -offset_at(timestamp, zone)))


def _read(text: str, kind: str) -> tuple[int | None, int, ZoneInfo | int | None]:
    """Return the date, if there is one, the microseconds, and the zone (µs, or its name)."""
    trimmed = text.strip(BLANKS)
    word = ascii_lower(trimmed)
    if word == "allballs":
        return None, 0, 0 if kind == ZONED else None
    if word in NOT_BUILT:
        raise FeatureNotSupported(f"{trimmed!r} as a {kind} is not supported: name the time")
    if begins_with_date(trimmed):
        if ":" not in trimmed:
            raise _invalid(text, kind)
        day, microseconds, zone, timed = read_parts(text, kind)
        if not timed:
            raise _invalid(text, kind)
        return day, microseconds, zone
    clock = next((found for each in _CLOCKS if (found := each.match(trimmed))), None)
    if clock is None:
        raise _invalid(text, kind)
    microseconds = clock_of_parts(clock, text)
    zone, rest = read_zone(trimmed[clock.end() :], text)
    if rest:
        raise _invalid(text, kind)
    if isinstance(zone, ZoneInfo) and kind == PLAIN and fixed_offset(zone) is None:
        raise _invalid(text, kind)  # PostgreSQL asks for the date of such a zone
    return None, microseconds, zone


def _invalid(text: str, kind: str) -> InvalidMoment:
    return InvalidMoment(f'invalid input syntax for type {kind}: "{text:.80}"')
