"""Time zones: IANA's by name, POSIX's by rule, offsets; and what their clocks show.

IANA's come from the package tzdata and never from the machine, so that all nodes of one release
have the same ones.
"""

from __future__ import annotations

import re
import struct
from collections.abc import Callable
from datetime import UTC as PYTHON_UTC
from datetime import datetime, timedelta
from functools import lru_cache
from importlib import resources
from io import BytesIO
from typing import Any, Final, NamedTuple
from zoneinfo import ZoneInfo

from leasehold.model.errors import InvalidArgument, MomentOutOfRange
from leasehold.values.dates import (
    DAY_LEAST,
    DAY_MOST,
    DAY_US,
    is_infinite,
    microseconds_of,
    utc_of,
)
from leasehold.values.interval import span_of_text
from leasehold.values.letters import BLANKS, ascii_lower, ascii_upper
from leasehold.values.zone_abbreviations import ABBREVIATIONS

_SECOND_US: Final = 1_000_000
_DAY_S: Final = 86_400
_OFFSET: Final = (
    r"(?P<{0}sign>[+-]?)(?P<{0}h>[0-9]{{1,3}})"
    r"(?::(?P<{0}m>[0-9]{{1,2}})(?::(?P<{0}s>[0-9]{{1,2}}))?)?"
)
_POSIX: Final = re.compile(
    r"(?P<std><[^>]*>|[^0-9,+<-]*)"
    + _OFFSET.format("")
    + r"(?:(?P<dst><[^>]+>|[^0-9,;+<-]+)(?:"
    + _OFFSET.format("d")
    + r")?(?:[,;](?P<rules>.+))?)?"
)
_NAME: Final = re.compile(r"[A-Za-z]{3,}|<[A-Za-z0-9+-]+>")
_AMERICAN_RULES: Final = "M3.2.0,M11.1.0"
_HOURS: Final = re.compile(r"[ \t]*([+-]?[0-9]+(?:\.[0-9]*)?|[+-]?\.[0-9]+)")
_INTERVAL: Final = re.compile(r"interval[ \t]*'([^']*)'", re.IGNORECASE | re.ASCII)
_NAME_CHARS_MAX: Final = 255


class InZone(NamedTuple):
    """What a function that depends on the session's time zone alone asks of a moment."""

    zone: ZoneInfo


class NowInZone(NamedTuple):
    """A moment (`catalog/elements.py`), and the time zone in which it is asked for."""

    now_us: int
    seed: bytes
    zone: ZoneInfo


def zone_at(context: Any) -> ZoneInfo:
    """Return the zone of the session whose statement has this moment, UTC where there is no
    session."""
    found: ZoneInfo = getattr(context, "zone", UTC)
    return found


# ------------------------------------------------------------------ which one is meant


@lru_cache(maxsize=1)
def _names() -> dict[str, str]:
    """Return the names of all of IANA's zones, by lower case."""
    listed = resources.files("tzdata").joinpath("zones").read_text(encoding="utf-8")
    return {ascii_lower(name): name for name in listed.split()}


def _listed(name: str) -> ZoneInfo:
    file = resources.files("tzdata").joinpath("zoneinfo", *name.split("/"))
    with file.open("rb") as opened:
        return ZoneInfo.from_file(opened, key=name)


@lru_cache(maxsize=512)
def zone_of(name: str) -> ZoneInfo:
    """Return the zone of a name of IANA's in any case, or of a rule of POSIX, where west is
    positive: EST5EDT, <+02>-2. Its `key` is what it is shown as. Raises InvalidArgument (22023) for
    what nobody knows."""
    found = _names().get(ascii_lower(name))
    if found is not None:
        return UTC if found == "UTC" else _listed(found)
    made = _of_rule(name) if len(name) <= _NAME_CHARS_MAX else None
    if made is None:
        raise InvalidArgument(f'time zone "{name:.80}" not recognized')
    return made


@lru_cache(maxsize=512)
def zone_of_word(name: str) -> ZoneInfo:
    """Return a zone as `zone_of` does, for a zone in a time or behind AT TIME ZONE, where an
    abbreviation (CET, PDT) is an offset."""
    offset = ABBREVIATIONS.get(ascii_lower(name))
    if offset is None:
        return zone_of(name)
    return _fixed(ascii_upper(name), ascii_upper(name), offset) if offset else UTC


@lru_cache(maxsize=512)
def zone_of_setting(text: str) -> ZoneInfo:
    """Return the zone that the setting TimeZone takes: as `zone_of`, or hours east (-8, 5.5), or
    INTERVAL '…'."""
    interval = _INTERVAL.fullmatch(text.strip(BLANKS))
    if interval is not None:
        return _ahead(_interval_s(interval[1]))
    hours = _HOURS.fullmatch(text)
    if hours is not None:
        return _ahead(int(float(hours[1]) * 3_600))
    return zone_of(text)


def _interval_s(text: str) -> int:
    span = span_of_text(text)
    if span.months or span.days:
        raise InvalidArgument(f"a time zone is hours and minutes, not {text!r:.60}")
    return span.microseconds // _SECOND_US


def _ahead(seconds: int) -> ZoneInfo:
    """Return the zone of an offset: east is positive, and it is shown as POSIX says it."""
    if abs(seconds) >= _DAY_S:
        raise InvalidArgument("a time zone is less than a day ahead or behind")
    east, shown = seconds >= 0, _clock(abs(seconds))
    return _fixed(f"<{'-+'[east]}{shown}>{'+-'[east]}{shown}", offset_text(seconds), seconds)


def _clock(seconds: int) -> str:
    hours, minutes, rest = seconds // 3_600, seconds // 60 % 60, seconds % 60
    text = f"{hours:02}"
    if minutes or rest:
        text += f":{minutes:02}"
    return f"{text}:{rest:02}" if rest else text


def _of_rule(name: str) -> ZoneInfo | None:
    found = _POSIX.fullmatch(name)
    if found is None:
        return None
    west = _seconds(found, "")
    if abs(west) >= _DAY_S:
        return None
    key = ascii_upper(name)
    if found["dst"] is None:
        return _fixed(key, ascii_upper(found["std"].strip("<>")), -west)
    summer = _seconds(found, "d") if found["dh"] else west - 3_600
    names = (ascii_upper(found["std"]), ascii_upper(found["dst"]))
    if not all(map(_NAME.fullmatch, names)) or abs(summer) >= _DAY_S:
        return None
    rules = ascii_upper((found["rules"] or _AMERICAN_RULES).replace(";", ","))
    footer = f"{names[0]}{_spelled(west)}{names[1]}{_spelled(summer)},{rules}"
    if not footer.isascii():
        return None
    try:
        return ZoneInfo.from_file(BytesIO(_file(-west, "X", footer)), key=key)
    except ValueError:
        return None


def _seconds(found: re.Match[str], which: str) -> int:
    hours, minutes, seconds = (int(found[f"{which}{part}"] or 0) for part in "hms")
    total = (hours * 60 + minutes) * 60 + seconds
    return -total if found[f"{which}sign"] == "-" else total


def _spelled(seconds: int) -> str:
    return f"{'-' if seconds < 0 else ''}{_clock(abs(seconds))}"


def _fixed(key: str, abbreviation: str, ahead_s: int) -> ZoneInfo:
    return ZoneInfo.from_file(BytesIO(_file(ahead_s, abbreviation, "")), key=key)


def _file(ahead_s: int, abbreviation: str, footer: str) -> bytes:
    """Return a file of RFC 8536 without transitions: one offset, or the rule in its footer."""
    name = abbreviation.encode() + b"\0"
    head = b"TZif" + (b"2" if footer else b"\0") + bytes(15)
    counts = struct.pack(">6l", 0, 0, 0, 0, 1, len(name))
    block = head + counts + struct.pack(">lBB", ahead_s, 0, 0) + name
    return block + block + b"\n" + footer.encode() + b"\n" if footer else block


# ------------------------------------------------------------------ what clocks show


def in_range(microseconds: int) -> int:
    """Return the time, infinite ones too. Raises MomentOutOfRange outside the years 1 to 9999."""
    if is_infinite(microseconds):
        return microseconds
    if not DAY_LEAST <= microseconds // DAY_US <= DAY_MOST:
        raise MomentOutOfRange("timestamp out of range: the years are 1 to 9999")
    return microseconds


def at_zone(local: int, zone: ZoneInfo) -> int:
    """Return the moment at which the clocks of a zone show `local`: of two the later one, and where
    there is none, as if they had not been put forward yet."""
    if zone is UTC or is_infinite(local):
        return in_range(local)
    wall = utc_of(in_range(local))
    first = wall.replace(tzinfo=zone, fold=0)
    later = wall.replace(tzinfo=zone, fold=1)
    before, after = first.utcoffset() or timedelta(), later.utcoffset() or timedelta()
    # Clocks put back: the hour comes twice. Put forward: the offset from before the gap is what
    # fold=0 gives.
    chosen = later if before > after else first
    return in_range(microseconds_of(chosen.replace(tzinfo=PYTHON_UTC), zoned=True) - _us(chosen))


def local_of(timestamp: int, zone: ZoneInfo) -> int:
    """Return what the clocks of a zone show at a moment."""
    if zone is UTC or is_infinite(timestamp):
        return timestamp
    return timestamp + offset_at(timestamp, zone) * _SECOND_US


def offset_at(timestamp: int, zone: ZoneInfo) -> int:
    """Return the seconds by which a zone is ahead of UTC at a moment."""
    return _us(_shown(timestamp, zone)) // _SECOND_US


def abbreviation_at(timestamp: int, zone: ZoneInfo) -> str:
    return _shown(timestamp, zone).tzname() or ""


def _shown(timestamp: int, zone: ZoneInfo) -> datetime:
    try:
        return utc_of(in_range(timestamp)).astimezone(zone)
    except OverflowError as error:
        raise MomentOutOfRange("timestamp out of range: the years are 1 to 9999") from error


def _us(timestamp: datetime) -> int:
    offset = timestamp.utcoffset()
    assert offset is not None
    return offset // timedelta(microseconds=1)


def offset_text(ahead_s: int) -> str:
    """Return an offset as clocks show it: +00, +05:30, -00:44:30."""
    return ("-" if ahead_s < 0 else "+") + _clock(abs(ahead_s))


def by_zone(compute: Callable[..., Any]) -> Callable[..., Any]:
    """Turn a function of the zone and values into one of a moment and values."""
    return lambda timestamp, *values: compute(zone_at(timestamp), *values)


UTC: Final = _listed("UTC")
