"""time and timetz: the time of a day, without and with an offset from UTC.

The storage value of a time is its microseconds, to 24:00:00. That of a timetz is one number, too,
so that SQLite orders it as PostgreSQL does: by the time in UTC, which may lie a day before or
behind, then by how far west its clock is.
"""

from __future__ import annotations

from datetime import time, timedelta, timezone
from typing import Any, Final, NamedTuple

from leasehold.model.errors import MomentOutOfRange
from leasehold.values.dates import DAY_US
from leasehold.values.interval import clock_text

SECOND_US: Final = 1_000_000
WEST_MOST_S: Final = 16 * 3_600 - 1
"""PostgreSQL takes no offset of sixteen hours or more."""
_SPAN: Final = 1 << 18
_MIDDLE: Final = 1 << 17
_ALL_DIGITS: Final = 6


class ZonedTime(NamedTuple):
    """Microseconds as a clock shows them that is so many seconds west of UTC."""

    microseconds: int
    west_s: int


def stored_form(value: ZonedTime) -> int:
    """Return the storage value of a timetz. Raises MomentOutOfRange (22008)."""
    microseconds, west_s = value
    if not 0 <= microseconds <= DAY_US or abs(west_s) > WEST_MOST_S:
        raise MomentOutOfRange("time out of range")
    return (microseconds + west_s * SECOND_US) * _SPAN + west_s + _MIDDLE


def zoned_of(stored: int) -> ZonedTime:
    moment, west = divmod(stored, _SPAN)
    west_s = west - _MIDDLE
    return ZonedTime(moment - west_s * SECOND_US, west_s)


def check_time(microseconds: int) -> int:
    """Return a time's storage value. Raises MomentOutOfRange (22008)."""
    if not 0 <= microseconds <= DAY_US:
        raise MomentOutOfRange("time out of range")
    return microseconds


def round_time(microseconds: int, digits: int | None) -> int:
    """Return the time with so many digits of a second, None = all; a half goes up."""
    if digits is None or digits >= _ALL_DIGITS:
        return microseconds
    unit: int = 10 ** (_ALL_DIGITS - digits)
    return (microseconds + unit // 2) // unit * unit


def round_zoned(stored: int, digits: int | None) -> int:
    """Return the timetz with so many digits of a second, None = all."""
    microseconds, west_s = zoned_of(stored)
    return stored_form(ZonedTime(round_time(microseconds, digits), west_s))


def text_of_zoned(stored: int) -> str:
    """Return a timetz as PostgreSQL shows it: 10:20:30.5+02, -03:30."""
    microseconds, west_s = zoned_of(stored)
    minutes, seconds = divmod(abs(west_s), 60)
    hours, minutes = divmod(minutes, 60)
    offset = f"{'-' if west_s > 0 else '+'}{hours:02d}"
    if minutes or seconds:
        offset += f":{minutes:02d}"
    return clock_text(microseconds) + offset + (f":{seconds:02d}" if seconds else "")


# ------------------------------------------------------------------ Python's


def python_of(microseconds: int, zone: timezone | None = None) -> time | str:
    """Return the time as Python has it; 24:00:00, which it has not, as text."""
    if microseconds == DAY_US:
        return "24:00:00"
    seconds, fraction = divmod(microseconds, SECOND_US)
    minutes, second = divmod(seconds, 60)
    hour, minute = divmod(minutes, 60)
    return time(hour, minute, second, fraction, zone)


def python_of_zoned(stored: int) -> time | str:
    microseconds, west_s = zoned_of(stored)
    if microseconds == DAY_US:
        return text_of_zoned(stored)
    return python_of(microseconds, timezone(timedelta(seconds=-west_s)))


def microseconds_of_python(value: time) -> int:
    seconds = (value.hour * 60 + value.minute) * 60 + value.second
    return seconds * SECOND_US + value.microsecond


def zoned_of_python(value: Any) -> ZonedTime | None:
    """Return a time of Python's with its offset, None for one that has none."""
    offset = value.utcoffset()
    if offset is None:
        return None
    return ZonedTime(microseconds_of_python(value), -int(offset.total_seconds()))
