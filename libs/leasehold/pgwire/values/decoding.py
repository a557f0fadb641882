"""What a client sends, as text or binary → storage values.

Raises InvalidText (22P02), InvalidBinary (22P03), ProtocolViolation (08P01, too few bytes),
InvalidBytes (22021, no UTF-8) or OutOfRange (22003).
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, Final
from zoneinfo import ZoneInfo

from leasehold.model.errors import FeatureNotSupported, InvalidText, OutOfRange
from leasehold.pgwire.messages.frontend import Body, as_text
from leasehold.pgwire.values.encoding import (
    BINARY,
    EPOCH_2000_DAYS,
    EPOCH_2000_US,
    INFINITE_DATES,
    INFINITE_TIMESTAMPS,
)
from leasehold.pgwire.values.numeric import numeric_of_binary
from leasehold.pgwire.wire_errors import (
    InvalidBinary,
    InvalidBytes,
    ProtocolViolation,
)
from leasehold.values.array_text import array_of_text
from leasehold.values.arrays import check_number, refuse_bounds, refuse_dimensions
from leasehold.values.arrays import stored_form as array_form
from leasehold.values.date_text import day_in_range
from leasehold.values.interval import Span
from leasehold.values.interval import stored_form as interval_form
from leasehold.values.json_text import stored_form as json_form
from leasehold.values.jsonb import stored_form
from leasehold.values.networks import BITS, Address
from leasehold.values.networks import stored_form as address_form
from leasehold.values.oids import WireType, oid_of
from leasehold.values.storage import to_storage
from leasehold.values.text_io import from_text, reads_zone
from leasehold.values.time_zone import in_range
from leasehold.values.times import ZonedTime, check_time
from leasehold.values.times import stored_form as stored_time
from leasehold.values.types import VECTORS, Type, element_of

OID_MAX: Final = 4_294_967_295

Decoder = Callable[[bytes], Any]


def make_decoder(kind: WireType, form: int, zone: ZoneInfo) -> Decoder:
    """Return the function that reads values of a type in the format `form` (0 text, 1 binary).
    Raises FeatureNotSupported for a type without that form."""
    if form == BINARY:
        element = element_of(kind)
        return _binary(kind) if element is None else _array_binary(element, zone)
    read = make_input(kind, zone)
    return lambda data: read(_text(data))


def make_input(kind: WireType, zone: ZoneInfo) -> Callable[[str], Any]:
    """The input function of a type: text → storage value."""
    element = element_of(kind)
    if element is not None and kind.name not in VECTORS:
        read = make_input(element, zone)
        return lambda text: array_of_text(text, read)
    if reads_zone(kind):
        return partial(from_text, kind, zone=zone)
    if kind.name in _AS_THEY_ARE:
        return _same
    if kind.name == "oid":
        return _oid
    return partial(from_text, kind)


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
    """Return a decoder of storage values; `decode` gives Python values of the type."""
    store = to_storage(kind)
    return lambda data: store(decode(data))


def _boolean(data: bytes) -> int:
    _sized(data, 1, "boolean")
    return int(data != b"\0")


def _uuid(data: bytes) -> str:
    _sized(data, 16, "uuid")
    digits = data.hex()
    return "-".join((digits[:8], digits[8:12], digits[12:16], digits[16:20], digits[20:]))


def _checked(check: Callable[[int], int], decode: Decoder) -> Decoder:
    return lambda data: check(decode(data))


def _since_2000(
    decode: Decoder, infinite: Mapping[int, int], check: Callable[[int], int], epoch: int
) -> Decoder:
    """Return the decoder of what is counted from 2000 on, but for what stands for infinity."""
    stored = {sent: value for value, sent in infinite.items()}

    def decoded(data: bytes) -> int:
        sent = decode(data)
        found = stored.get(sent)
        return check(sent + epoch) if found is None else found

    return decoded


def _jsonb(data: bytes) -> str:
    if data[:1] != b"\1":
        raise InvalidBinary(f"unsupported jsonb version number {data[0] if data else 'none'}")
    return stored_form(_text(data[1:]))


def _interval(data: bytes) -> str:
    _sized(data, _SPAN.size, "interval")
    microseconds, days, months = _SPAN.unpack(data)
    return interval_form(Span(months, days, microseconds))


def _address(data: bytes, kind: str) -> str:
    family = {2: 4, 3: 6}.get(data[0] if data else 0)
    if family is None or len(data) != 4 + BITS[family] // 8 or data[3] != BITS[family] // 8:
        raise InvalidBinary(f"invalid address in external {kind} value")
    address = Address(family, int.from_bytes(data[4:]), data[1])
    if address.length > address.bits or (kind == "cidr" and address.number & ~address.mask):
        raise InvalidBinary(f"invalid bits in external {kind} value")
    return address_form(address)


def _zoned_time(data: bytes) -> int:
    _sized(data, _ZONED_TIME.size, "timetz")
    return stored_time(ZonedTime(*_ZONED_TIME.unpack(data)))


_ZONED_TIME: Final = struct.Struct("!qi")
_SPAN: Final = struct.Struct("!qii")
_DOUBLE: Final = Type("double precision")
_BINARIES: Final[Mapping[str, Decoder]] = {
    "boolean": _boolean,
    "smallint": _fixed("!h", "smallint"),
    "integer": _fixed("!i", "integer"),
    "bigint": _fixed("!q", "bigint"),
    "oid": _fixed("!I", "oid"),
    "real": _stored(Type("real"), _fixed("!f", "real")),
    "double precision": _stored(_DOUBLE, _fixed("!d", "double precision")),
    **dict.fromkeys(("text", "varchar", "name", '"char"'), _text),
    "bytea": bytes,
    "date": _since_2000(_fixed("!i", "date"), INFINITE_DATES, day_in_range, EPOCH_2000_DAYS),
    **{
        name: _since_2000(_fixed("!q", name), INFINITE_TIMESTAMPS, in_range, EPOCH_2000_US)
        for name in ("timestamp", "timestamptz")
    },
    "inet": lambda data: _address(data, "inet"),
    "cidr": lambda data: _address(data, "cidr"),
    "time": _checked(check_time, _fixed("!q", "time")),
    "timetz": _zoned_time,
    "uuid": _uuid,
    "char": lambda data: _text(data).rstrip(" "),
    "numeric": numeric_of_binary,
    "json": lambda data: json_form(_text(data)),
    "jsonb": _jsonb,
    "interval": _interval,
}


def _binary(kind: Type) -> Decoder:
    if kind.enum is not None:
        place_of = kind.enum.place_of
        return lambda data: place_of(_text(data))
    found = _BINARIES.get(kind.name)
    if found is None:
        raise FeatureNotSupported(f"parameters of type {kind} are taken as text only")
    return found


def _array_binary(kind: Type, zone: ZoneInfo) -> Decoder:
    """Return the decoder of arrays whose elements have the type `kind`."""
    element = make_decoder(kind, BINARY, zone)
    oid = oid_of(kind)

    def decode(data: bytes) -> str:
        body = Body(data)
        dimensions, _, found = body.read_signed(), body.read_signed(), body.read_signed()
        if found != oid:
            raise InvalidBinary(f"an array of {kind} holds elements of type oid {found}")
        if dimensions == 0:
            body.check_end()
            return array_form(())
        if dimensions != 1:
            refuse_dimensions()
        count, lower = body.read_signed(), body.read_signed()
        if lower != 1:
            refuse_bounds()
        if count < 0:
            raise InvalidBinary(f"an array of {count} elements")
        check_number(count)
        pieces = body.read_values(count)
        body.check_end()
        return array_form([None if piece is None else element(piece) for piece in pieces])

    return decode
