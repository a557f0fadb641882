"""How the value of a column looks in a feed: the field's schema of Kafka Connect, and the value.

It is what Debezium's connector for PostgreSQL gives with `time.precision.mode=adaptive`,
`binary.handling.mode=bytes` and the `decimal.handling.mode` that the feed says. A type that has no
line here is its text.

JSON has bytes as Base64, as Connect's converter writes them, and no number that is none, or
infinite. Connect's converter writes these as texts, as everybody does, and reads such a text as
0.0. So beside a schema, which is for it, they are null. Forms for Avro and Protobuf (`BINARY`) have
bytes, and such numbers, as they are.
"""

from __future__ import annotations

import math
from base64 import b64encode
from collections.abc import Callable, Mapping
from enum import StrEnum
from functools import lru_cache
from typing import Any, Final, NamedTuple

from leasehold.events.debezium.infinite_times import (
    INFINITE_DATES,
    INFINITE_TIMESTAMPS,
    INFINITE_ZONED,
)
from leasehold.values.arrays import elements_of
from leasehold.values.dates import DAY_US, utc_of
from leasehold.values.doubles import number_of
from leasehold.values.interval import clock_text, span_of
from leasehold.values.numeric import decimal_of, text_of
from leasehold.values.storage import to_json
from leasehold.values.text_io import double_text, shown_text
from leasehold.values.times import SECOND_US, zoned_of
from leasehold.values.types import Type, element_of

Schema = Mapping[str, Any]
DAYS_KEPT: Final = 4_096
_TWO_DIGITS: Final = tuple(f"{number:02d}" for number in range(60))
NOT_THERE: Final = "__debezium_unavailable_value"
"""What stands for a long value where the message has no room, as Debezium has it for one that its
server does not send."""
NOT_THERE_BYTES: Final = b64encode(NOT_THERE.encode()).decode()


class Decimals(StrEnum):
    """The forms of a numeric: Debezium's `decimal.handling.mode`."""

    STRING = "string"
    PRECISE = "precise"
    DOUBLE = "double"


class Style(StrEnum):
    """The kind of message that a value is made for: JSON alone, JSON beside its schema, or one in
    a binary form."""

    PLAIN_JSON = "plain JSON"
    JSON_WITH_SCHEMA = "JSON with its schema"
    BINARY = "binary"


class ColumnForm(NamedTuple):
    """The form of a type's values. `schema`: of the field, without its name and `optional`.
    `convert`: a storage value (not NULL) → what the message has; None: itself. `long`: there may
    be values that no message has room for, which become `left_out` then. `may_lack`: some values
    have no form, or give way, and are null."""

    schema: Schema
    convert: Callable[[Any], Any] | None = None
    long: bool = False
    left_out: Any = None
    may_lack: bool = False


def _named(kind: str, name: str) -> Schema:
    return {"type": kind, "name": name, "version": 1}


def _double(value: Any) -> Any:
    return _json_double(number_of(value))


def _real(value: Any) -> Any:
    return to_json(Type("real"), value)


def _utc_time(value: int) -> str:
    """Return a time as the clocks of UTC show it."""
    microseconds, west_s = zoned_of(value)
    moved = (microseconds + west_s * SECOND_US) % DAY_US
    return f"{clock_text(moved)}Z"


def _duration(value: str) -> int:
    """Return microseconds, a month as the twelfth part of 365.25 days."""
    months, days, microseconds = span_of(value)
    return months * DAY_US * 1_461 // 48 + days * DAY_US + microseconds


def _base64(value: bytes) -> str:
    return b64encode(value).decode()


def _date(value: int) -> int:
    return INFINITE_DATES.get(value, value)


def _timestamp(value: int) -> int:
    return INFINITE_TIMESTAMPS.get(value, value)


def _zoned(value: int) -> str:
    if value in INFINITE_ZONED:
        return INFINITE_ZONED[value]
    days, rest = divmod(value, DAY_US)
    seconds, microseconds = divmod(rest, SECOND_US)
    minutes, seconds = divmod(seconds, 60)
    hours, minutes = divmod(minutes, 60)
    return (
        f"{_day_text(days)}T{_TWO_DIGITS[hours]}:{_TWO_DIGITS[minutes]}:{_TWO_DIGITS[seconds]}"
        f".{microseconds:06d}Z"
    )


@lru_cache(maxsize=DAYS_KEPT)
def _day_text(days: int) -> str:
    """Return a day since 1970 as ISO 8601 has it: rows of one time are of few days."""
    return utc_of(days * DAY_US).date().isoformat()


_FORMS: Final[Mapping[str, ColumnForm]] = {
    "smallint": ColumnForm({"type": "int16"}),
    "integer": ColumnForm({"type": "int32"}),
    "bigint": ColumnForm({"type": "int64"}),
    "boolean": ColumnForm({"type": "boolean"}, bool),
    "real": ColumnForm({"type": "float"}, _real),
    "double precision": ColumnForm({"type": "double"}, _double),
    "text": ColumnForm({"type": "string"}, None, True, NOT_THERE),
    "varchar": ColumnForm({"type": "string"}, None, True, NOT_THERE),
    "bytea": ColumnForm({"type": "bytes"}, _base64, True, NOT_THERE_BYTES),
    "date": ColumnForm(_named("int32", "io.debezium.time.Date"), _date),
    "time": ColumnForm(_named("int64", "io.debezium.time.MicroTime")),
    "timetz": ColumnForm(_named("string", "io.debezium.time.ZonedTime"), _utc_time),
    "interval": ColumnForm(_named("int64", "io.debezium.time.MicroDuration"), _duration),
    "timestamp": ColumnForm(_named("int64", "io.debezium.time.MicroTimestamp"), _timestamp),
    "timestamptz": ColumnForm(_named("string", "io.debezium.time.ZonedTimestamp"), _zoned),
    "uuid": ColumnForm(_named("string", "io.debezium.data.Uuid")),
    "json": ColumnForm(_named("string", "io.debezium.data.Json"), None, True, NOT_THERE),
    "jsonb": ColumnForm(_named("string", "io.debezium.data.Json"), None, True, NOT_THERE),
}

_BYTES: Final = ColumnForm({"type": "bytes"}, bytes, True, NOT_THERE.encode())


def form_of(kind: Type, decimals: Decimals, style: Style = Style.PLAIN_JSON) -> ColumnForm:
    """Return the form of a type's values in a feed's messages."""
    form = _form_of(kind, decimals, style)
    if form.schema["type"] not in ("float", "double") or style is Style.PLAIN_JSON:
        return form
    if style is Style.BINARY:
        return form._replace(convert=_nearest_double if kind.name == "numeric" else number_of)
    convert = form.convert
    assert convert is not None
    return form._replace(convert=lambda value: _finite(convert(value)), may_lack=True)


def _finite(number: Any) -> float | None:
    """Return what JSON has as a number, and not as a text."""
    return number if isinstance(number, float) else None


def _json_double(number: float) -> Any:
    return number if math.isfinite(number) else double_text(number)


def _form_of(kind: Type, decimals: Decimals, style: Style) -> ColumnForm:
    if style is Style.BINARY and kind.name == "bytea":
        return _BYTES
    found = _FORMS.get(kind.name)
    if found is not None:
        return found
    if kind.enum is not None:
        labels = ",".join(label.text for label in kind.enum.labels)
        schema = {**_named("string", "io.debezium.data.Enum"), "parameters": {"allowed": labels}}
        return ColumnForm(schema, kind.enum.text_of)
    if kind.name == "numeric":
        return _numeric(kind, decimals, style)
    if kind.name == "char":
        length = kind.length or 1
        return _text(lambda value: str(value).ljust(length))
    element = element_of(kind)
    if element is not None:
        return _array(form_of(element, decimals, style))
    return _text(lambda value: shown_text(kind, value))


def _text(convert: Callable[[Any], str]) -> ColumnForm:
    return ColumnForm({"type": "string"}, convert, True, NOT_THERE)


def _array(element: ColumnForm) -> ColumnForm:
    convert = element.convert

    def converted(value: Any) -> list[Any]:
        found = elements_of(value)
        if convert is None:
            return found
        return [None if each is None else convert(each) for each in found]

    schema = {"type": "array", "items": {**element.schema, "optional": True}}
    if element.left_out is not None:
        return ColumnForm(schema, converted, True, [element.left_out], element.may_lack)
    return ColumnForm(schema, converted, True, None, True)


def _numeric(kind: Type, decimals: Decimals, style: Style) -> ColumnForm:
    if decimals is Decimals.STRING:
        return _text(text_of)
    if decimals is Decimals.DOUBLE:
        convert = _nearest_double
        return ColumnForm({"type": "double"}, lambda value: _json_double(convert(value)))
    shown: Callable[[bytes], Any] = bytes if style is Style.BINARY else _base64
    if kind.scale is not None:
        name = "org.apache.kafka.connect.data.Decimal"
        scale = max(
            kind.scale, 0
        )  # one below 0 rounds before the point, and has no digit behind it
        parameters = {"scale": str(scale), "connect.decimal.precision": str(kind.precision)}
        schema = {**_named("bytes", name), "parameters": parameters}
        return ColumnForm(schema, lambda value: _unscaled(value, scale, shown), True, None, True)
    fields = (
        {"type": "int32", "optional": False, "field": "scale"},
        {"type": "bytes", "optional": False, "field": "value"},
    )
    schema = {**_named("struct", "io.debezium.data.VariableScaleDecimal"), "fields": list(fields)}
    return ColumnForm(schema, lambda value: _with_scale(value, shown), True, None, True)


def _nearest_double(value: str) -> float:
    return float(decimal_of(value))


def _unscaled(value: str, scale: int, shown: Callable[[bytes], Any]) -> Any:
    """Return a number without its point, in two's complement; NaN and infinity have no form."""
    number = decimal_of(value)
    if not number.is_finite():
        return None
    parts = number.as_tuple()
    zeros = int(parts.exponent) + scale
    return shown(_complement(_whole(parts) * 10**zeros)) if zeros >= 0 else None


def _with_scale(value: str, shown: Callable[[bytes], Any]) -> dict[str, Any] | None:
    number = decimal_of(value)
    if not number.is_finite():
        return None
    parts = number.as_tuple()
    return {"scale": -int(parts.exponent), "value": shown(_complement(_whole(parts)))}


def _whole(parts: Any) -> int:
    # ⚠ Python takes no text of more than 4,300 digits as an int.
    whole = 0
    for begin in range(0, len(parts.digits), 1_000):
        some = parts.digits[begin : begin + 1_000]
        whole = whole * 10 ** len(some) + int("".join(map(str, some)))
    return -whole if parts.sign else whole


def _complement(whole: int) -> bytes:
    """Return a whole number as the bytes of Java's BigInteger."""
    size = (whole + (whole < 0)).bit_length() // 8 + 1
    return whole.to_bytes(size, "big", signed=True)
