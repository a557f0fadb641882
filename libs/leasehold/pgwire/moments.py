"""Times as clocks of the session's time zone show them (DateStyle ISO)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final
from zoneinfo import ZoneInfo

from leasehold.schema.types import Type
from leasehold.sql.moment_text import local_of, timestamp_of_text
from leasehold.sql.text_form import to_text

_SECOND_US: Final = 1_000_000
_TIMESTAMP: Final = Type("timestamp")


def timestamptz_text(zone: ZoneInfo) -> Callable[[int], str]:
    def write(at_us: int) -> str:
        local = local_of(at_us, zone)
        return to_text(_TIMESTAMP, local) + offset_text((local - at_us) // _SECOND_US)

    return write


def timestamptz_of_text(zone: ZoneInfo) -> Callable[[str], int]:
    """A text without a zone is meant in the session's."""
    return lambda text: timestamp_of_text(text, zoned=True, session=zone)


def offset_text(ahead_s: int) -> str:
    """+00, +05:30, -00:44:30."""
    sign, left = ("-", -ahead_s) if ahead_s < 0 else ("+", ahead_s)
    hours, minutes, seconds = left // 3600, left // 60 % 60, left % 60
    text = f"{sign}{hours:02}"
    if minutes or seconds:
        text += f":{minutes:02}"
    return f"{text}:{seconds:02}" if seconds else text
