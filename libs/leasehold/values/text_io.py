"""Quoted constants → storage values, and storage values → text: PostgreSQL's input and output."""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from decimal import Decimal
from functools import partial
from typing import Any, Final
from zoneinfo import ZoneInfo

from leasehold.model.budget import charge_size
from leasehold.model.errors import InvalidArgument, InvalidText, OutOfRange, TooLong
from leasehold.values.array_text import array_of_text, text_of_array
from leasehold.values.arrays import ELEMENTS_MAX, elements_of, stored_form
from leasehold.values.catalog_types import TEXT_INPUT
from leasehold.values.date_text import date_of_text, timestamp_of_text
from leasehold.values.dates import (
    date_of,
    infinite_word,
    is_infinite,
    round_second,
    utc_of,
)
from leasehold.values.doubles import Stored, number_of
from leasehold.values.doubles import stored_form as stored_double
from leasehold.values.float_text import shortest
from leasehold.values.interval import clock_text
from leasehold.values.interval import text_of as interval_text
from leasehold.values.letters import BLANKS, ascii_lower
from leasehold.values.networks import text_of as network_text
from leasehold.values.numeric import text_of as numeric_text
from leasehold.values.singles import DIGITS_SURE, shortest_single, single_of, single_of_exact
from leasehold.values.storage import label_of, to_storage
from leasehold.values.time_text import time_of_text, zoned_time_of_text
from leasehold.values.time_zone import UTC, local_of, offset_text
from leasehold.values.times import check_time, round_time, round_zoned, text_of_zoned
from leasehold.values.types import (
    FLOATS,
    INTEGER_BITS,
    TEXT_BYTES_MAX,
    VECTORS,
    Type,
    element_of,
)

_TRUE: Final = frozenset({"t", "tr", "tru", "true", "y", "ye", "yes", "on", "1"})
_FALSE: Final = frozenset({"f", "fa", "fal", "fals", "false", "n", "no", "of", "off", "0"})
_DIGITS_MAX: Final = 400  # no double has more; int() of a longer text would be slow
_DOUBLE_DIGITS: Final = 15
_BYTE_WORK: Final = 9
_SECOND_US: Final = 1_000_000
_INTEGER: Final = re.compile(r"[+-]?[0-9]+")
_DOUBLE: Final = re.compile(r"[+-]?(?:[0-9]++\.?+[0-9]*+|\.[0-9]++)(?:[eE][+-]?[0-9]+)?")
_WORDS: Final = re.compile(r"([+-]?)(inf|infinity|nan)", re.IGNORECASE | re.ASCII)
_UUID: Final = re.compile(r"(?:[0-9a-f]{4}-?){7}[0-9a-f]{4}", re.IGNORECASE | re.ASCII)
_BYTE: Final = re.compile(rb"\\(\\|[0-3][0-7][0-7])")


def from_text(kind: Type, text: str, zone: ZoneInfo = UTC) -> Any:
    """Return the storage value of a quoted constant, e.g. integer '3', boolean 'yes'. A timestamptz
    that names no time zone is meant in `zone`.

    Raises InvalidText, InvalidArgument, OutOfRange, TooLong, InvalidMoment and MomentOutOfRange.
    """
    name = kind.name
    if name in ("text", "varchar", "char", "numeric", "json", "jsonb", "interval", "inet", "cidr"):
        if name == "char" and kind.length is None:
            return to_storage(Type("text"))(text).rstrip(" ")
        return to_storage(kind)(text)
    if name in TEXT_INPUT:
        return TEXT_INPUT[name](text)
    trimmed = text.strip(BLANKS)
    if name in INTEGER_BITS:
        if not _INTEGER.fullmatch(trimmed):
            raise _invalid(kind, text)
        value = integer(trimmed)
        if not -(1 << INTEGER_BITS[name] - 1) <= value < 1 << INTEGER_BITS[name] - 1:
            raise OutOfRange(f'value "{text:.80}" is out of range for type {kind}')
        return value
    if name in FLOATS:
        return _float(kind, trimmed, text)
    if name == "boolean":
        word = ascii_lower(trimmed)
        if word not in _TRUE and word not in _FALSE:
            raise _invalid(kind, text)
        return int(word in _TRUE)
    if name == "date":
        return date_of_text(text)
    if name in ("timestamp", "timestamptz"):
        found = timestamp_of_text(text, zoned=name == "timestamptz", session=zone)
        return round_second(found, kind.length)
    if name == "time":
        return check_time(round_time(time_of_text(text), kind.length))
    if name == "timetz":
        return round_zoned(zoned_time_of_text(text, zone), kind.length)
    if name == "uuid":
        return _uuid(kind, text)
    if name == "enum":
        return to_storage(kind)(text)
    element = element_of(kind)
    if element is not None and name in VECTORS:
        parts = text.split(None, ELEMENTS_MAX)  # one too many is refused
        return stored_form([from_text(element, part) for part in parts])
    if element is not None:
        return array_of_text(text, partial(from_text, element, zone=zone))
    assert name == "bytea", kind
    return _bytes(text)


def _invalid(kind: Type, text: str) -> InvalidText:
    return InvalidText(f'invalid input syntax for type {kind}: "{text:.80}"')


def integer(digits: str) -> int:
    """Return the number of a text of digits. Raises OutOfRange for more digits than any type
    holds."""
    if len(digits) > _DIGITS_MAX:
        raise OutOfRange(f"a number of {len(digits)} digits is out of range")
    return int(digits)


def _float(kind: Type, trimmed: str, text: str) -> Stored:
    word = _WORDS.fullmatch(trimmed)
    if word is not None:
        return stored_double(float(trimmed))
    if not _DOUBLE.fullmatch(trimmed):
        raise _invalid(kind, text)
    number = float(trimmed)
    vanished = number == 0.0 and any(digit in "123456789" for digit in re.split("[eE]", trimmed)[0])
    if math.isinf(number) or vanished:
        raise OutOfRange(f'"{text:.80}" is out of range for type {kind}')
    if kind.name == "real":
        try:  # of more digits than these none tells on which side of a double a number lies
            exact = len(trimmed) <= _DIGITS_MAX
            return single_of_exact(Decimal(trimmed)) if exact else single_of(number)
        except OutOfRange as error:
            raise OutOfRange(f'"{text:.80}" is out of range for type real') from error
    return number


def _uuid(kind: Type, text: str) -> str:
    spelled = text[1:-1] if text[:1] == "{" and text[-1:] == "}" else text
    if not _UUID.fullmatch(spelled):
        raise _invalid(kind, text)
    digits = ascii_lower(spelled.replace("-", ""))
    return "-".join((digits[:8], digits[8:12], digits[12:16], digits[16:20], digits[20:]))


def _bytes(text: str) -> bytes:
    """Return the bytes of `\\x` and hex digits, or of characters with `\\\\` and `\\ooo` among
    them."""
    if len(text) > 4 * TEXT_BYTES_MAX + 2:
        raise TooLong(
            f"{len(text)} characters of a bytea; at most {TEXT_BYTES_MAX} bytes are stored"
        )
    charge_size(len(text), _BYTE_WORK)
    if text.startswith("\\x"):
        spelled = re.sub(r"[ \t\n\r]", "", text[2:])
        try:
            data = bytes.fromhex(spelled)
        except ValueError as error:
            raise InvalidArgument("invalid hexadecimal data in a bytea constant") from error
    else:
        data = _BYTE.sub(_escaped, text.encode())
        if _BYTE.sub(b"", text.encode()).count(b"\\"):
            raise InvalidText("invalid input syntax for type bytea")
    return bytes(to_storage(Type("bytea"))(data))


def _escaped(found: re.Match[bytes]) -> bytes:
    return b"\\" if found[1] == b"\\" else bytes([int(found[1], 8)])


# ------------------------------------------------------------------ out


def shows_zone(kind: Type) -> bool:
    """Whether a value's text depends on the session's time zone."""
    return (element_of(kind) or kind).name == "timestamptz"


def reads_zone(kind: Type) -> bool:
    """Whether the value that a text means depends on the session's time zone."""
    return (element_of(kind) or kind).name in ("timestamptz", "timetz")


def to_text(kind: Type, value: Any, zone: ZoneInfo = UTC) -> str:
    """Return what a cast to text gives. A boolean is a word; char(n) has lost the blanks that
    backfill it up."""
    match kind.name:
        case "text" | "varchar" | "char" | "uuid" | "json" | "jsonb" | "record":
            return str(value)
        case "boolean":
            return "true" if value else "false"
        case "double precision":
            return double_text(number_of(value))
        case "real":
            return real_text(number_of(value))
        case "numeric":
            return numeric_text(value)
        case "bytea":
            return "\\x" + bytes(value).hex()
        case "date" | "timestamp" | "timestamptz" if is_infinite(value):
            return infinite_word(value)
        case "date":
            return date_of(value).isoformat()
        case "timestamp":
            return _timestamp_text(value)
        case "timestamptz":
            local = local_of(value, zone)
            return _timestamp_text(local) + offset_text((local - value) // _SECOND_US)
        case "interval":
            return interval_text(value)
        case "time":
            return clock_text(value)
        case "timetz":
            return text_of_zoned(value)
        case "inet" | "cidr":
            return network_text(value, whole=True)
        case "enum":
            return label_of(kind, value)
    element = element_of(kind)
    if element is not None and kind.name in VECTORS:
        return " ".join(map(str, elements_of(value)))
    if element is not None:
        return text_of_array(value, partial(shown_text, element, zone=zone))
    return str(value)


def shown_text(kind: Type, value: Any, zone: ZoneInfo = UTC) -> str:
    """Return what a client is shown, and `concat` and `format` use: a boolean is t or f."""
    if kind.name == "boolean":
        return "t" if value else "f"
    if kind.name == "inet":
        return network_text(value)
    if kind.name == "char" and kind.length:
        return str(value).ljust(kind.length)
    return to_text(kind, value, zone)


def _timestamp_text(value: int) -> str:
    text = utc_of(value).replace(tzinfo=None).isoformat(sep=" ")
    return text.rstrip("0") if "." in text else text


def double_text(value: float) -> str:
    """Return the shortest digits that are this double; with an exponent below 1e-4 and from 1e15
    on."""
    return _float_text(value, shortest, _DOUBLE_DIGITS)


def real_text(value: float) -> str:
    """Return the shortest digits that are this real; with an exponent below 1e-4 and from 1e6
    on."""
    return _float_text(value, shortest_single, DIGITS_SURE)


def _float_text(value: float, digits_of: Callable[[float], str], whole_digits: int) -> str:
    if not math.isfinite(value):
        return "Infinity" if value > 0 else "-Infinity" if value < 0 else "NaN"
    if value == 0.0:
        return "-0" if math.copysign(1.0, value) < 0 else "0"
    mantissa, _, exponent_text = digits_of(value).partition("e")
    sign = "-" if mantissa[0] == "-" else ""
    whole, _, fraction = mantissa.lstrip("-").partition(".")
    fraction = fraction if fraction.strip("0") else ""
    digits = (whole + fraction).lstrip("0")
    leading = len(whole + fraction) - len(digits)
    exponent = int(exponent_text or 0) + len(whole) - leading - 1
    digits = digits.rstrip("0") or "0"
    if -5 < exponent < whole_digits:
        if exponent < 0:
            return f"{sign}0.{'0' * (-exponent - 1)}{digits}"
        if len(digits) <= exponent + 1:
            return sign + digits.ljust(exponent + 1, "0")
        return f"{sign}{digits[: exponent + 1]}.{digits[exponent + 1 :]}"
    behind = f".{digits[1:]}" if len(digits) > 1 else ""
    return f"{sign}{digits[0]}{behind}e{'-' if exponent < 0 else '+'}{abs(exponent):02d}"
