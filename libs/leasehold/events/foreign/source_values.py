"""Values of foreign events → values of change requests, by what the event says of a field and by
the type of the column that it goes to.

What an event says (a timestamp in microseconds, a decimal as bytes) is made one of a few meanings,
and each of these has a form in the types that can hold it. A value for which there is none is left
as it is: the column's own converter says what is wrong with it.
"""

from __future__ import annotations

import json
from base64 import b64decode
from binascii import Error as NoBase64
from collections.abc import Callable, Mapping
from decimal import Decimal
from enum import StrEnum
from functools import lru_cache
from typing import Any, Final

from leasehold.events.debezium.column_types import NOT_THERE, NOT_THERE_BYTES
from leasehold.events.debezium.infinite_times import (
    INFINITE_DATES,
    INFINITE_TIMESTAMPS,
    INFINITE_ZONED,
)
from leasehold.events.foreign import source_types as types
from leasehold.events.foreign.source_types import SourceType, scale_of
from leasehold.model.errors import InvalidText, OutOfRange, WrongType
from leasehold.values.dates import DAY_US, date_of, infinite_word, utc_of
from leasehold.values.interval import clock_text
from leasehold.values.numeric import EXACT, decimal_of_number
from leasehold.values.types import INTEGER_BITS, Type, element_of

Convert = Callable[[Any], Any]
_NOT_THERE: Final = frozenset({NOT_THERE, NOT_THERE_BYTES})
_NOT_THERE_RAW: Final = NOT_THERE.encode()
_JSON_TYPES: Final = frozenset({"json", "jsonb"})
_TIMESTAMPS: Final = frozenset({"timestamp", "timestamptz"})
DIGITS_MAX: Final = 4_000
"""Of a whole number that is a text."""


class Units(StrEnum):
    """The unit of times of day and timestamps that are whole numbers and say nothing of it, as
    those of plain JSON: Debezium's, for a column of six digits, Kafka Connect's, or nanoseconds."""

    MICROS = "micros"
    MILLIS = "millis"
    NANOS = "nanos"


_TO_MICROS: Final[Mapping[Units, tuple[int, int]]] = {
    Units.MICROS: (1, 1),
    Units.MILLIS: (1_000, 1),
    Units.NANOS: (1, 1_000),
}


def is_left_out(value: Any) -> bool:
    """Return whether a value stands for one that its source did not send (Debezium's, of a long
    value that has not changed)."""
    if isinstance(value, str):
        return value in _NOT_THERE
    if isinstance(value, bytes):
        return value == _NOT_THERE_RAW
    return isinstance(value, list) and len(value) == 1 and is_left_out(value[0])


@lru_cache(maxsize=4_096)
def converter(source: SourceType, target: Type, units: Units) -> Convert:
    """Return what makes a field's value (not null) one that a change request has for a column of
    that type. It raises InvalidText, OutOfRange and WrongType."""
    element = element_of(target)
    if element is not None:
        return _array(converter(source.items or _items_of(source), element, units))
    scaled = _TIMES.get(source.name)
    if scaled is not None:
        meaning, times, by = scaled
        return _shown(meaning, target, times, by)
    if source.name == types.DECIMAL and source.kind == types.BYTES:
        return _decimal_of_bytes(source.scale or 0, in_json=source.in_json)
    if source.name == types.VARIABLE_DECIMAL:
        return _variable_decimal(in_json=source.in_json)
    return _by_target(source, target, units)


def _items_of(source: SourceType) -> SourceType:
    return SourceType(in_json=source.in_json)


def _array(convert: Convert) -> Convert:
    def each(value: Any) -> Any:
        if not isinstance(value, list):
            return value  # JSON's text of one, or a PostgreSQL's: the column says
        return [None if item is None else convert(item) for item in value]

    return each


# ---------------------------------------------------------------- times

_DAYS, _TIMESTAMP, _CLOCK, _SPAN = "days", "timestamp", "clock", "span"
_TIMES: Final[Mapping[str, tuple[str, int, int]]] = {
    types.DATE: (_DAYS, 1, 1),
    "org.apache.kafka.connect.data.Date": (_DAYS, 1, 1),
    types.MILLI_TIMESTAMP: (_TIMESTAMP, 1_000, 1),
    "org.apache.kafka.connect.data.Timestamp": (_TIMESTAMP, 1_000, 1),
    types.MICRO_TIMESTAMP: (_TIMESTAMP, 1, 1),
    types.NANO_TIMESTAMP: (_TIMESTAMP, 1, 1_000),
    types.MILLI_TIME: (_CLOCK, 1_000, 1),
    "org.apache.kafka.connect.data.Time": (_CLOCK, 1_000, 1),
    types.MICRO_TIME: (_CLOCK, 1, 1),
    types.NANO_TIME: (_CLOCK, 1, 1_000),
    "io.debezium.time.MicroDuration": (_SPAN, 1, 1),
    "io.debezium.time.NanoDuration": (_SPAN, 1, 1_000),
}
"""What a whole number means by its schema's name, and what makes microseconds of it: times, by."""


def _shown(meaning: str, target: Type, times: int, by: int) -> Convert:
    """Return the converter of a number with a meaning."""
    if target.name in INTEGER_BITS or target.name in ("numeric", "real", "double precision"):
        return lambda value: value
    show = _SHOWN[meaning]

    infinite = _INFINITE.get(meaning, {})

    def convert(value: Any) -> Any:
        if type(value) in (int, str) and value in infinite:
            return infinite_word(infinite[value])
        if type(value) is not int:
            return value  # a text already, as some converters write it
        try:
            return show(value * times // by, target)
        except (OverflowError, ValueError) as error:
            raise OutOfRange(f"{str(value)[:40]} is no time that can be stored") from error

    return convert


_INFINITE: Final[Mapping[str, Mapping[Any, int]]] = {
    _DAYS: {sent: value for value, sent in INFINITE_DATES.items()},
    _TIMESTAMP: {
        sent: value
        for known in (INFINITE_TIMESTAMPS, INFINITE_ZONED)
        for value, sent in known.items()
    },
}
"""What Debezium sends for infinity and -infinity, whatever the unit."""


def _show_days(days: int, target: Type) -> Any:
    text = date_of(days).isoformat()
    return f"{text}T00:00:00" if target.name in _TIMESTAMPS else text


def _show_timestamp(microseconds: int, target: Type) -> Any:
    at = utc_of(microseconds)
    if target.name == "date":
        return at.date().isoformat()
    if target.name in ("time", "timetz"):
        return at.time().isoformat() + ("Z" if target.name == "timetz" else "")
    return (at if target.name == "timestamptz" else at.replace(tzinfo=None)).isoformat()


def _show_clock(microseconds: int, target: Type) -> Any:
    if not 0 <= microseconds <= DAY_US:
        raise OutOfRange(f"{microseconds} microseconds are no time of day")
    return clock_text(microseconds) + ("+00" if target.name == "timetz" else "")


def _show_span(microseconds: int, target: Type) -> Any:
    return f"{microseconds} microseconds"


_SHOWN: Final[Mapping[str, Callable[[int, Type], Any]]] = {
    _DAYS: _show_days,
    _TIMESTAMP: _show_timestamp,
    _CLOCK: _show_clock,
    _SPAN: _show_span,
}


# ---------------------------------------------------------------- numbers


def _decimal_of_bytes(scale: int, *, in_json: bool) -> Convert:
    def convert(value: Any) -> Any:
        data = _raw(value, in_json=in_json)
        return value if data is None else _decimal(data, scale)

    return convert


def _variable_decimal(*, in_json: bool) -> Convert:
    def convert(value: Any) -> Any:
        if not isinstance(value, dict):
            return value
        scale, data = scale_of(value.get("scale")), _raw(value.get("value"), in_json=in_json)
        if scale is None or data is None:
            raise InvalidText("a decimal of variable scale has `scale` and `value`")
        return _decimal(data, scale)

    return convert


def _raw(value: Any, *, in_json: bool) -> bytes | None:
    """Return bytes, which are Base64 in JSON; None of what is neither."""
    if isinstance(value, bytes):
        return value
    if not in_json or not isinstance(value, str):
        return None
    try:
        return b64decode(value, validate=True)
    except (NoBase64, ValueError) as error:
        raise InvalidText(f"{value[:40]!r} is no Base64") from error


def _decimal(data: bytes, scale: int) -> Decimal:
    """Return the number that Java's BigInteger and a scale are."""
    number = decimal_of_number(int.from_bytes(data, "big", signed=True))
    # ⚠ The default context would round to 28 digits.
    return number.scaleb(-scale, EXACT)


def _whole(value: Any) -> Any:
    """Return the whole number that a text says, as of numbers that JSON's readers would round."""
    if isinstance(value, str) and len(value) <= DIGITS_MAX:
        try:
            return int(value)
        except ValueError:
            return value
    return value


# ---------------------------------------------------------------- the rest


def _by_target(source: SourceType, target: Type, units: Units) -> Convert:
    """Return the converter of a value of which only the column says what it means."""
    name = target.name
    if name in INTEGER_BITS:
        return _whole
    if name == "date":
        return _shown(_DAYS, target, 1, 1)
    if name in _TIMESTAMPS:
        return _shown(_TIMESTAMP, target, *_TO_MICROS[units])
    if name in ("time", "timetz"):
        return _shown(_CLOCK, target, *_TO_MICROS[units])
    if name == "interval":
        return _shown(_SPAN, target, 1, 1)
    if name in _SIMPLE:
        return _SIMPLE[name]
    if name == "bytea":
        return lambda value: _bytea(value, in_json=source.in_json)
    if name in _JSON_TYPES:
        return _json
    return _text


def _boolean(value: Any) -> Any:
    """Return a boolean; databases without such a type have 0 and 1."""
    return bool(value) if type(value) is int and value in (0, 1) else value


def _double(value: Any) -> Any:
    if isinstance(value, str) and value not in ("NaN", "Infinity", "-Infinity"):
        try:
            return float(value)
        except ValueError:
            return value
    return _spelled(value)


def _spelled(value: Any) -> Any:
    """Return a number; as a text where JSON has none for it."""
    if isinstance(value, float) and (value != value or value in (float("inf"), -float("inf"))):
        return "NaN" if value != value else "Infinity" if value > 0 else "-Infinity"
    return value


_SIMPLE: Final[Mapping[str, Convert]] = {
    "boolean": _boolean,
    "numeric": _spelled,
    "real": _double,
    "double precision": _double,
}


def _bytea(value: Any, *, in_json: bool) -> Any:
    if isinstance(value, str) and not value.startswith("\\x"):
        return _raw(value, in_json=in_json)
    return value


def _json(value: Any) -> Any:
    """Return JSON: a text is one of JSON's, anything else its value."""
    if isinstance(value, str):
        return value
    try:
        return json.dumps(value, ensure_ascii=False, allow_nan=False)
    except (TypeError, ValueError, RecursionError) as error:
        raise InvalidText(f"it has no form in JSON: {error!s:.100}") from error


def _text(value: Any) -> Any:
    if isinstance(value, dict | list):
        raise WrongType("a struct or an array is no text: json and jsonb columns take it")
    return value
