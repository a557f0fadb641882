"""Make a row with names and values of two Kafka records, a row image and a version event.

All that a subscriber in any language has to do, on nothing but json and msgpack; DESIGN.md beside
this file says what the records hold.
"""

from __future__ import annotations

import json
import math
import struct
from collections import deque
from collections.abc import Callable, Mapping
from contextlib import suppress
from datetime import UTC, date, datetime, timedelta
from functools import partial
from ipaddress import IPv4Interface, IPv6Interface
from typing import Any, Final, NamedTuple

import msgpack

Event = Mapping[str, Any]
"""A version event: the JSON object on `versions` and `versions-history`."""

ROW_IMAGE: Final = [1, 30]
TRUNCATION: Final = [1, 35]
LEFT_OUT: Final = [1, 38]
"""How records begin: the format, and the kind: a row image; the end of all rows before it; a row
that is there and whose image no message has room for."""
_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_INFINITE: Final = {1 << 62: "infinity", -(1 << 62): "-infinity"}

_MIRROR: Final = {code: 0x9E - code for code in range(0x20, 0x7F)}
_NO_NUMBERS: Final = {"A": "-Infinity", "E": "Infinity", "F": "NaN"}


def numeric_text(stored: str) -> str:
    """The digits of a numeric: on the wire it is text that is ordered as the numbers are."""
    sign, scale = stored[0], ord(stored[-1]) - 0x30
    if sign in _NO_NUMBERS:
        return _NO_NUMBERS[sign]
    body = stored[1:-2]  # without the blank that ends the digits
    if sign == "B":
        body = body.translate(_MIRROR)
    exponent, digits = 0, body[1:]
    if body[:1] in ("!", "~"):
        exponent, digits = int(body[1:7]) - 100_000, body[7:]
    elif body:
        exponent = ord(body[0]) - 0x50
    # The value is 0.digits × 10^exponent, shown with `scale` digits behind the point.
    whole = digits[: max(exponent, 0)].ljust(max(exponent, 0), "0") or "0"
    behind = "0" * max(-exponent, 0) + digits[max(exponent, 0) :]
    shown = f"{whole}.{behind.ljust(scale, '0')}" if scale else whole
    return f"-{shown}" if sign == "B" else shown


def double_json(stored: float | str) -> float | str:
    """A number; a text where JSON has none. NaN is that text on the wire, too."""
    if isinstance(stored, str) or math.isfinite(stored):
        return stored
    return "Infinity" if stored > 0 else "-Infinity"


def real_json(stored: float | str) -> float | str:
    """A number of the fewest digits that are this one of 24 bits: 0.1 has the double next to it."""
    if isinstance(stored, str) or not math.isfinite(stored):
        return double_json(stored)
    for digits in range(1, 10):
        short = float(f"{stored:.{digits}g}")
        with suppress(OverflowError):
            if struct.unpack("<f", struct.pack("<f", short))[0] == stored:
                return short
    return stored


def time_text(microseconds: int) -> str:
    """HH:MM:SS and, where there are any, six digits behind; a day's end is 24:00:00."""
    seconds, fraction = divmod(microseconds, 1_000_000)
    minutes, second = divmod(seconds, 60)
    behind = f".{fraction:06}" if fraction else ""
    return f"{minutes // 60:02}:{minutes % 60:02}:{second:02}{behind}"


def zoned_time_text(stored: int) -> str:
    """The same with the offset: on the wire the time in UTC stands before the seconds west."""
    utc, west_s = divmod(stored, 1 << 18)
    west_s -= 1 << 17
    shown = time_text(utc - west_s * 1_000_000)
    hours, rest = divmod(abs(west_s), 3_600)
    minutes, seconds = divmod(rest, 60)
    offset = f"{'-' if west_s > 0 else '+'}{hours:02}"
    if minutes or seconds or shown != "24:00:00":
        offset += f":{minutes:02}"
    return shown + offset + (f":{seconds:02}" if seconds else "")


def address_text(stored: str, *, network: bool = False) -> str:
    """An address, and the length of its mask where that is not all of it, or of a network; both
    stand behind what orders addresses."""
    digits = 8 if stored[0] == "4" else 32
    parts = int(stored[-digits:], 16), int(stored[1 + digits : 3 + digits], 16)
    address = IPv4Interface(parts) if stored[0] == "4" else IPv6Interface(parts)
    whole = parts[1] == address.max_prefixlen and not network
    return str(address.ip if whole else address)


def interval_text(stored: str) -> str:
    """PostgreSQL's text of months, days and microseconds, which stand behind what orders them."""
    months, days, microseconds = map(int, stored.split(" ")[1:])
    sign = -1 if months < 0 else 1
    years, months = sign * (abs(months) // 12), sign * (abs(months) % 12)
    words: list[str] = []
    minus = False  # behind a part below 0 a positive one says its sign
    for number, unit in ((years, "year"), (months, "mon"), (days, "day")):
        if number:
            plus = "+" if minus and number > 0 else ""
            words.append(f"{plus}{number} {unit}{'' if number == 1 else 's'}")
            minus = number < 0
    if microseconds or not words:
        sign_text = "-" if microseconds < 0 else "+" if minus else ""
        shown = time_text(abs(microseconds))
        words.append(sign_text + (shown.rstrip("0") if "." in shown else shown))
    return " ".join(words)


def date_json(days: int) -> str:
    """A date is days from 1970 on, 2**62 for infinity, and -(2**62) for -infinity."""
    return _INFINITE.get(days) or (date(1970, 1, 1) + timedelta(days=days)).isoformat()


def timestamp_json(us: int, epoch: datetime) -> str:
    """A timestamp is microseconds from 1970 on; infinite ones are those of dates."""
    return _INFINITE.get(us) or (epoch + timedelta(microseconds=us)).isoformat()


_FROM_STORAGE: Final[Mapping[str, Callable[[Any], Any]]] = {
    "boolean": bool,
    "bytea": lambda data: "\\x" + data.hex(),
    "date": date_json,
    "timestamp": lambda us: timestamp_json(us, _EPOCH.replace(tzinfo=None)),
    "timestamptz": lambda us: timestamp_json(us, _EPOCH),
    "real": real_json,
    "double precision": double_json,
    "time": time_text,
    "timetz": zoned_time_text,
    "interval": interval_text,
    "inet": address_text,
    "cidr": partial(address_text, network=True),
    "numeric": numeric_text,
}
"""Of every other type but arrays the value on the wire is the value."""


class RowRecord(NamedTuple):
    """A record of a rows topic as it came: `value` None says that the row was deleted."""

    key: bytes
    value: bytes | None


def _decoded(column: Mapping[str, Any], value: Any) -> Any:
    kind = column["type"]
    if kind.endswith("[]"):  # JSON of its elements, of which bytes are an object with hex digits
        of_element = {**column, "type": kind[:-2]}
        elements = json.loads(value, object_hook=lambda pairs: bytes.fromhex(pairs["\\x"]))
        return [None if each is None else _decoded(of_element, each) for each in elements]
    if kind == "char":
        return value.ljust(column["length"])  # stored without the blanks that fill it
    of_type = _FROM_STORAGE.get(kind)
    return value if of_type is None else of_type(value)


def decode_row(event: Event, key: list[Any], values: Mapping[int, Any]) -> dict[str, Any]:
    """The row as a reader of this version sees it: public columns by name, NULL where the image
    has nothing."""
    pairs = {**values, **dict(zip(event["primary_key"], key, strict=True))}
    row = {}
    for column in event["elements"]:
        shown = column["state"] == "public" and not column.get("hidden")
        if column["kind"] == "column" and shown:
            value = pairs.get(column["id"])
            row[column["name"]] = None if value is None else _decoded(column, value)
    return row


def named_key(event: Event, key: list[Any]) -> dict[str, Any]:
    names = {e["id"]: e["name"] for e in event["elements"]}
    return dict(zip((names[e] for e in event["primary_key"]), key, strict=True))


def _event_of(value: bytes) -> Event | None:
    try:
        event = json.loads(value)
        numbers = event["table_id"], event["version"]
        texts = event["table"], event["state"], event["former_name"] or ""
        listed = event["elements"], event["primary_key"]
        told = event["diff"] is None or isinstance(event["diff"]["words"], list)
    except Exception:  # noqa: BLE001 - whatever it is: nobody can read these bytes
        return None
    good = told and all(type(n) is int for n in numbers) and all(type(t) is str for t in texts)
    return event if good and all(type(each) is list for each in listed) else None


class VersionBook:
    """The versions heard of, and how a record is decoded with them."""

    def __init__(self) -> None:
        self._events: dict[tuple[int, int], Event] = {}
        self._newest: dict[int, Event] = {}

    def learn(self, value: bytes | None) -> Event | None:
        """Take an event; one that comes again changes nothing. None for what is no event, of
        whomever: the others are as good without it."""
        event = _event_of(value or b"")
        if event is None:
            return None
        table_id, version = event["table_id"], event["version"]
        self._events[table_id, version] = event
        known = self._newest.get(table_id)
        if known is None or known["version"] < version:
            self._newest[table_id] = event
        return event

    def table_id(self, name: str) -> int | None:
        """Return the id of the table that has this name now."""
        named = (
            table_id
            for table_id, event in self._newest.items()
            if name in (event["table"], event["former_name"]) and event["state"] == "public"
        )
        return max(named, default=None)

    def decode(self, table_id: int, record: RowRecord) -> dict[str, Any] | None:
        """What changed, under the version that its image names; None while that version has not
        been heard of. Never another one: its columns may be other columns. Of a record that is no
        row of the table, of whomever, the reason why."""
        try:
            return self._decoded(table_id, record)
        except Exception as error:  # noqa: BLE001 - whatever it is, the next row does not wait
            return {"unreadable": f"{type(error).__name__}: {str(error)[:200]}"}

    def _decoded(self, table_id: int, record: RowRecord) -> dict[str, Any] | None:
        key = msgpack.unpackb(record.key)
        if record.value is None:
            # Key columns are the same in every version, and a deleted row has no others.
            event = self._newest.get(table_id)
            if event is None:
                return None
            return {"table": event["table"], "deleted": named_key(event, key)}
        image = msgpack.unpackb(record.value, strict_map_key=False)
        if image[:2] == TRUNCATION:
            event = self._newest.get(table_id)
            return None if event is None else {"table": event["table"], "truncated": image[3]}
        if image[:2] not in (ROW_IMAGE, LEFT_OUT):
            raise ValueError(f"a record that begins with {image[:2]} is no row image known here")
        _format, _kind, _table_id, _key, _genids, lsn, version, commit_us, values, *_later = image
        event = self._events.get((table_id, version))
        if event is None:
            return None
        told = {"table": event["table"], "version": version, "lsn": lsn, "commit_us": commit_us}
        if image[:2] == LEFT_OUT:
            # Where the values would be stands how many bytes they have: a node is to be asked.
            return {**told, "left_out": named_key(event, key), "bytes": values}
        return {**told, "row": decode_row(event, key, values)}


class WaitingRows:
    """Rows of one partition in their order: behind one that waits for its version all wait."""

    def __init__(self, book: VersionBook, table_id: int) -> None:
        self._book = book
        self._table_id = table_id
        self._waiting: deque[RowRecord] = deque()

    def __len__(self) -> int:
        return len(self._waiting)

    def take(self, *records: RowRecord) -> list[dict[str, Any]]:
        """What can be decoded now; without records, of those that waited."""
        self._waiting.extend(records)
        decoded = []
        while self._waiting:
            row = self._book.decode(self._table_id, self._waiting[0])
            if row is None:
                break
            decoded.append(row)
            self._waiting.popleft()
        return decoded
