"""What a client sends, as text or binary → storage values.

Raises InvalidText (22P02), InvalidBinary (22P03), ProtocolViolation (08P01, too few bytes),
InvalidBytes (22021, no UTF-8) or OutOfRange (22003).
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, Final

from leasehold.model.errors import FeatureNotSupported, InvalidText, OutOfRange
from leasehold.pgwire.array_text import array_of_text
from leasehold.pgwire.double_text import double_of_text
from leasehold.pgwire.frontend import Body, as_text
from leasehold.pgwire.moments import ZoneOffset, timestamptz_of_text
from leasehold.pgwire.value_encoding import BINARY, EPOCH_2000_DAYS, EPOCH_2000_US
from leasehold.pgwire.wire_errors import (
    InvalidBinary,
    InvalidBytes,
    InvalidFormat,
    ProtocolViolation,
)
from leasehold.pgwire.wire_types import ArrayOf, WireType, oid_of
from leasehold.schema.types import Type, to_storage
from leasehold.sql.text_form import from_text

ELEMENTS_MAX: Final = 100_000
OID_MAX: Final = 4_294_967_295

Decoder = Callable[[bytes], Any]


def decoder(kind: WireType, form: int, zone: ZoneOffset) -> Decoder:
    """`form`: 0 text, 1 binary. Raises FeatureNotSupported for a type without that form."""
    if form == BINARY:
        return _array_binary(kind, zone) if isinstance(kind, ArrayOf) else _binary(kind)
    read = input_of(kind, zone)
    return lambda data: read(_text(data))


def input_of(kind: WireType, zone: ZoneOffset) -> Callable[[str], Any]:
    """The input function of a type: text → storage value."""
    if isinstance(kind, ArrayOf):
        element = input_of(kind.element, zone)
        return lambda text: array_of_text(text, element, ELEMENTS_MAX)
    if kind.name == "timestamptz":
        return lambda text: timestamptz_of_text(text, zone)
    if kind.name in _AS_THEY_ARE:
        return _same
    if kind.name == "oid":
        return _oid
    if kind.name == "double precision":
        return double_of_text
    if kind.name == "bytea":
        return bytea_of_text
    return partial(from_text, kind)


def bytea_of_text(text: str) -> bytes:
    r"""`\x` and hex digits, or the escape form: `\ooo` (octal), `\\`, all else as it is."""
    if text.startswith("\\x"):
        try:
            return bytes.fromhex(text[2:])
        except ValueError:
            raise InvalidFormat("invalid hexadecimal data in a bytea value") from None
    parts = text.split("\\")
    made, at = bytearray(parts[0].encode()), 1
    while at < len(parts):
        part = parts[at]
        if part == "" and at + 1 < len(parts):
            made += b"\\" + parts[at + 1].encode()
            at += 2
            continue
        octal = part[:3]
        if len(octal) < 3 or octal[0] not in "0123" or not set(octal) <= set("01234567"):
            raise InvalidText("invalid input syntax for type bytea")
        made.append(int(octal, 8))
        made += part[3:].encode()
        at += 1
    return bytes(made)


_AS_THEY_ARE: Final = frozenset({"text", "varchar", "name", '"char"'})


def _same(text: str) -> str:
    return text


def _oid(text: str) -> int:
    digits = text.strip()
    if not (digits.isascii() and digits.isdecimal() and len(digits) <= 10):
        raise InvalidText(f'invalid input syntax for type oid: "{text:.80}"')
    if int(digits) > OID_MAX:
        raise OutOfRange(f'value "{digits}" is out of range for type oid')
    return int(digits)


def _text(data: bytes) -> str:
    text = as_text(data)
    if "\0" in text:
        raise InvalidBytes('invalid byte sequence for encoding "UTF8": 0x00')
    return text


def _fixed(layout: str, name: str, shift: int = 0) -> Decoder:
    form = struct.Struct(layout)

    def decode(data: bytes) -> Any:
        _sized(data, form.size, name)
        value = form.unpack(data)[0]
        return value + shift if shift else value

    return decode


def _sized(data: bytes, size: int, name: str) -> None:
    if len(data) < size:
        raise ProtocolViolation(f"insufficient data left in message: {name} has {size} bytes")
    if len(data) > size:
        raise InvalidBinary(
            f"incorrect binary data format: {name} has {size} bytes, not {len(data)}"
        )


def _stored(kind: Type, decode: Decoder) -> Decoder:
    """What can't be stored (a double that is no number, a year above 9999) is refused at once."""
    check = to_storage(kind)
    return lambda data: check(decode(data))


def _boolean(data: bytes) -> int:
    _sized(data, 1, "boolean")
    return int(data != b"\0")


def _uuid(data: bytes) -> str:
    _sized(data, 16, "uuid")
    digits = data.hex()
    return "-".join((digits[:8], digits[8:12], digits[12:16], digits[16:20], digits[20:]))


def _moment(kind: str, low: int, high: int, decode: Decoder) -> Decoder:
    def checked(data: bytes) -> int:
        value: int = decode(data)
        if not low <= value <= high:
            raise OutOfRange(f"this {kind} is not in the years 1 to 9999")
        return value

    return checked


_DAY_MIN: Final = -719_162
_DAY_MAX: Final = 2_932_896
_DAY_US: Final = 86_400_000_000
_US_MIN: Final = _DAY_MIN * _DAY_US
_US_MAX: Final = (_DAY_MAX + 1) * _DAY_US - 1
_DOUBLE: Final = Type("double precision")
_BINARIES: Final[Mapping[str, Decoder]] = {
    "boolean": _boolean,
    "smallint": _fixed("!h", "smallint"),
    "integer": _fixed("!i", "integer"),
    "bigint": _fixed("!q", "bigint"),
    "oid": _fixed("!I", "oid"),
    "double precision": _stored(_DOUBLE, _fixed("!d", "double precision")),
    **dict.fromkeys(("text", "varchar", "name", '"char"'), _text),
    "bytea": bytes,
    "date": _moment("date", _DAY_MIN, _DAY_MAX, _fixed("!i", "date", EPOCH_2000_DAYS)),
    **{
        name: _moment("time", _US_MIN, _US_MAX, _fixed("!q", name, EPOCH_2000_US))
        for name in ("timestamp", "timestamptz")
    },
    "uuid": _uuid,
}


def _binary(kind: Type) -> Decoder:
    found = _BINARIES.get(kind.name)
    if found is None:
        raise FeatureNotSupported(f"parameters of type {kind} are taken as text only")
    return found


def _array_binary(kind: ArrayOf, zone: ZoneOffset) -> Decoder:
    element = decoder(kind.element, BINARY, zone)
    oid = oid_of(kind.element)

    def decode(data: bytes) -> tuple[Any, ...]:
        body = Body(data)
        dimensions, _, found = body.signed(), body.signed(), body.signed()
        if found != oid:
            raise InvalidBinary(f"an array of {kind.element} holds elements of type oid {found}")
        if dimensions == 0:
            body.end()
            return ()
        if dimensions != 1:
            raise FeatureNotSupported(f"an array of {dimensions} dimensions; one is supported")
        count, lower = body.signed(), body.signed()
        if lower != 1 or not 0 <= count <= ELEMENTS_MAX:
            raise FeatureNotSupported(f"an array may have {ELEMENTS_MAX} elements, from 1 on")
        pieces = [body.value() for _ in range(count)]
        body.end()
        return tuple([None if piece is None else element(piece) for piece in pieces])

    return decode
