"""Days and microseconds since 1970-01-01 (UTC) as dates and times of Python, and back."""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta
from typing import Final, TypeAlias

from leasehold.model.errors import MomentOutOfRange, OutOfRange

DAY_US: Final = 86_400_000_000
AsOf: TypeAlias = int | datetime
"""A moment of the past: an LSN, or a time (with a time zone): the last commit at or before it."""
_EPOCH_DAY: Final = date(1970, 1, 1).toordinal()
_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_YEAR_2000_US: Final = (date(2000, 1, 1).toordinal() - _EPOCH_DAY) * DAY_US
_ALL_DIGITS: Final = 6
_MICROSECOND: Final = timedelta(microseconds=1)
INFINITY: Final = 1 << 62
"""The storage value of infinity, of dates and timestamps alike, behind every other one; that of
-infinity is its opposite. It is so far from the ends of 64 bits that sums don't go round."""
INFINITE_WORDS: Final = {"infinity": INFINITY, "-infinity": -INFINITY}
"""What they are called. Python's dates and times have no such value: there it is these words."""
DAY_LEAST: Final = date.min.toordinal() - _EPOCH_DAY
DAY_MOST: Final = date.max.toordinal() - _EPOCH_DAY


def is_infinite(value: int) -> bool:
    """Say whether a storage value of a date or a timestamp is infinity or -infinity."""
    return abs(value) == INFINITY


def infinite_word(value: int) -> str:
    """Return what infinity or -infinity is called."""
    return "infinity" if value > 0 else "-infinity"


def midnight_of(day: int) -> int:
    """Return the timestamp with which a day begins; that of an infinite one is infinite."""
    return day if is_infinite(day) else day * DAY_US


def day_at(timestamp: int) -> int:
    """Return the day of a timestamp; that of an infinite one is infinite."""
    return timestamp if is_infinite(timestamp) else timestamp // DAY_US


def day_of(value: date) -> int:
    return value.toordinal() - _EPOCH_DAY


def date_of(day: int) -> date:
    return date.fromordinal(day + _EPOCH_DAY)


def round_second(value: int, digits: int | None) -> int:
    """Return microseconds with so many digits of a second, None = all. ⚠ As in PostgreSQL a half
    goes away from 2000."""
    if digits is None or digits >= _ALL_DIGITS or is_infinite(value):
        return value
    unit: int = 10 ** (_ALL_DIGITS - digits)
    since = value - _YEAR_2000_US
    whole = (abs(since) + unit // 2) // unit * unit
    rounded = _YEAR_2000_US + (whole if since >= 0 else -whole)
    if not DAY_LEAST <= rounded // DAY_US <= DAY_MOST:
        raise MomentOutOfRange("timestamp out of range")
    return rounded


def microseconds_of(timestamp: datetime, *, zoned: bool) -> int:
    """Return the microseconds of a time in UTC; without a zone, or where zones don't count, as it
    stands. Raises OutOfRange."""
    if timestamp.tzinfo is None or not zoned:
        timestamp = timestamp.replace(tzinfo=UTC)
    try:
        return (timestamp.astimezone(UTC) - _EPOCH) // _MICROSECOND
    except OverflowError as error:
        raise OutOfRange(f"{timestamp.isoformat()} in UTC is not in the years 1 to 9999") from error


def utc_of(microseconds: int) -> datetime:
    return _EPOCH + timedelta(microseconds=microseconds)
