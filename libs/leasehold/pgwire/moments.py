"""Dates and times as ISO text (DateStyle ISO), and the session's time zone.

Storage values are days since 1970-01-01 and microseconds since then; a zone is a function from
microseconds (UTC) to the seconds by which clocks there are ahead.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from datetime import date as calendar_date
from datetime import datetime, timedelta
from typing import Final

from leasehold.schema.types import Type
from leasehold.sql.text_form import from_text

ZoneOffset = Callable[[int], int]

_EPOCH_DAY: Final = calendar_date(1970, 1, 1).toordinal()
_EPOCH: Final = datetime(1970, 1, 1)  # noqa: DTZ001 - the zone is added as text
_MICROSECONDS: Final = 1_000_000
_TIMESTAMP: Final = Type("timestamp")
_TIMESTAMPTZ: Final = Type("timestamptz")
_WITH_ZONE: Final = re.compile(r"(:\d\d(\.\d+)?\s*([+-]\d[\d:]*|[A-Za-z/_]+)|[Zz])\s*$")


def utc(at_us: int) -> int:
    return 0


def date_text(day: int) -> str:
    return calendar_date.fromordinal(day + _EPOCH_DAY).isoformat()


def timestamp_text(at_us: int) -> str:
    text = (_EPOCH + timedelta(microseconds=at_us)).isoformat(" ")
    return text.rstrip("0") if "." in text else text


def timestamptz_text(at_us: int, zone: ZoneOffset) -> str:
    ahead = zone(at_us)
    return timestamp_text(at_us + ahead * _MICROSECONDS) + offset_text(ahead)


def offset_text(ahead: int) -> str:
    """+00, +05:30, -00:44:30."""
    sign, left = ("-", -ahead) if ahead < 0 else ("+", ahead)
    hours, minutes, seconds = left // 3600, left // 60 % 60, left % 60
    text = f"{sign}{hours:02}"
    if minutes or seconds:
        text += f":{minutes:02}"
    return f"{text}:{seconds:02}" if seconds else text


def timestamptz_of_text(text: str, zone: ZoneOffset) -> int:
    """A text without a zone is meant in the session's. Raises as `from_text`."""
    if _WITH_ZONE.search(text):
        at_us: int = from_text(_TIMESTAMPTZ, text)
        return at_us
    local: int = from_text(_TIMESTAMP, text)
    # The offset there is a function of UTC, which is what is looked for: once more settles it
    # everywhere but in the hour that a change of clocks leaves out.
    guess = local - zone(local) * _MICROSECONDS
    return local - zone(guess) * _MICROSECONDS
