"""Storage values → what a client sees, as text or binary, each with its length in front."""

from __future__ import annotations

import struct
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any, Final
from zoneinfo import ZoneInfo

from leasehold.model.errors import FeatureNotSupported
from leasehold.pgwire.values.numeric import numeric_binary
from leasehold.values.array_text import text_of_array
from leasehold.values.arrays import elements_of
from leasehold.values.dates import INFINITY
from leasehold.values.doubles import number_of
from leasehold.values.interval import Span, span_of
from leasehold.values.networks import address_of
from leasehold.values.oids import WireType, oid_of
from leasehold.values.text_io import shown_text
from leasehold.values.times import zoned_of
from leasehold.values.types import VECTORS, Type, element_of, first_subscript

TEXT: Final = 0
BINARY: Final = 1
NULL: Final = b"\xff\xff\xff\xff"
EPOCH_2000_DAYS: Final = 10_957
EPOCH_2000_US: Final = EPOCH_2000_DAYS * 86_400_000_000
INFINITE_DATES: Final = {INFINITY: (1 << 31) - 1, -INFINITY: -(1 << 31)}
INFINITE_TIMESTAMPS: Final = {INFINITY: (1 << 63) - 1, -INFINITY: -(1 << 63)}
"""What is sent in the binary form in the place of days and microseconds, by storage value."""

Encoder = Callable[[Any], bytes]
"""A value that is not NULL → length and bytes."""

_LENGTH: Final = struct.Struct("!i")
_SMALL: Final = struct.Struct("!ih")
_INTEGER: Final = struct.Struct("!ii")
_UNSIGNED: Final = struct.Struct("!iI")
_BIG: Final = struct.Struct("!iq")
_SINGLE: Final = struct.Struct("!if")
_DOUBLE: Final = struct.Struct("!id")
_SPAN: Final = struct.Struct("!iqii")
_ZONED_TIME: Final = struct.Struct("!iqi")
_HEAD: Final = struct.Struct("!cIH")
_ARRAY: Final = struct.Struct("!iiIii")


def make_encoder(kind: WireType, form: int, zone: ZoneInfo) -> Encoder:
    """Return the function that writes values of a type in the format `form` (TEXT or BINARY).
    Raises FeatureNotSupported for a type without that form."""
    if form == BINARY:
        element = element_of(kind)
        return _binary(kind) if element is None else _array_binary(kind, element, zone)
    if kind.name == "boolean":
        return _boolean_text
    if kind.name in _INTEGERS:
        return _integer_text
    return _prefixed(text_of(kind, zone))


def make_row_encoder(encoders: Sequence[Encoder]) -> Callable[[Sequence[Any]], bytes]:
    """Storage values of a row → a DataRow message."""
    columns = len(encoders)
    pack, join = _HEAD.pack, b"".join
    if not columns:
        # SQLite has no row without a value: what it gives is there to be counted.
        empty = pack(b"D", 6, 0)
        return lambda _: empty

    def encode(row: Sequence[Any]) -> bytes:
        body = join(
            [
                NULL if value is None else encode_value(value)
                for encode_value, value in zip(encoders, row, strict=True)
            ]
        )
        return pack(b"D", len(body) + 6, columns) + body

    return encode


def text_of(kind: Type, zone: ZoneInfo) -> Callable[[Any], str]:
    """The output function of a type: storage value → text, as PostgreSQL writes it."""
    element = element_of(kind)
    if element is not None and kind.name not in VECTORS:
        shown = text_of(element, zone)
        return lambda stored: text_of_array(stored, shown)
    if kind.name == "timestamptz":
        return partial(shown_text, kind, zone=zone)
    if kind.name in _AS_THEY_ARE:
        return str
    return partial(shown_text, kind)


def _prefixed(text: Callable[[Any], str]) -> Encoder:
    pack = _LENGTH.pack

    def encode(value: Any) -> bytes:
        data = text(value).encode()
        return pack(len(data)) + data

    return encode


def _integer_text(value: int) -> bytes:
    data = b"%d" % value
    return _LENGTH.pack(len(data)) + data


def _boolean_text(value: int) -> bytes:
    return b"\0\0\0\1t" if value else b"\0\0\0\1f"


_INTEGERS: Final = frozenset({"smallint", "integer", "bigint", "oid"})
_AS_THEY_ARE: Final = frozenset(
    {*_INTEGERS, "text", "varchar", "name", '"char"', "uuid", "json", "jsonb", "void", "record"}
)


def _plain(value: Any) -> bytes:
    data = str(value).encode()
    return _LENGTH.pack(len(data)) + data


def _interval(span: Span) -> bytes:
    return _SPAN.pack(16, span.microseconds, span.days, span.months)


def _date(value: int) -> bytes:
    infinite = INFINITE_DATES.get(value)
    return _INTEGER.pack(4, value - EPOCH_2000_DAYS if infinite is None else infinite)


def _timestamp(value: int) -> bytes:
    infinite = INFINITE_TIMESTAMPS.get(value)
    return _BIG.pack(8, value - EPOCH_2000_US if infinite is None else infinite)


def _address(value: str, network: int) -> bytes:
    """PostgreSQL counts the families 2 and 3."""
    address = address_of(value)
    size = address.bits // 8
    head = bytes((2 if address.family == 4 else 3, address.length, network, size))
    return _bytes(head + address.number.to_bytes(size))


def _bytes(value: bytes) -> bytes:
    return _LENGTH.pack(len(value)) + value


def _record(value: str) -> bytes:
    """Return a record of a bigint and an integer, which is the only kind there is."""
    kinds = (("bigint", _BIG, 8), ("integer", _INTEGER, 4))
    fields = [_LENGTH.pack(len(kinds))]
    for part, (kind, packed, size) in zip(value[1:-1].split(","), kinds, strict=True):
        fields.append(_LENGTH.pack(oid_of(Type(kind))))
        fields.append(packed.pack(size, int(part)) if part else _LENGTH.pack(-1))
    return _bytes(b"".join(fields))


_BINARIES: Final[Mapping[str, Encoder]] = {
    "boolean": lambda value: b"\0\0\0\1\1" if value else b"\0\0\0\1\0",
    "smallint": lambda value: _SMALL.pack(2, value),
    "integer": lambda value: _INTEGER.pack(4, value),
    "bigint": lambda value: _BIG.pack(8, value),
    "oid": lambda value: _UNSIGNED.pack(4, value),
    "real": lambda value: _SINGLE.pack(4, number_of(value)),
    "double precision": lambda value: _DOUBLE.pack(8, number_of(value)),
    **dict.fromkeys(("text", "varchar", "name", "json"), _plain),
    '"char"': lambda value: _plain(value or "\0"),
    "bytea": _bytes,
    "date": _date,
    "timestamp": _timestamp,
    "timestamptz": _timestamp,
    "inet": lambda value: _address(value, 0),
    "cidr": lambda value: _address(value, 1),
    "time": lambda value: _BIG.pack(8, value),
    "timetz": lambda value: _ZONED_TIME.pack(12, *zoned_of(value)),
    "uuid": lambda value: b"\0\0\0\x10" + bytes.fromhex(value.replace("-", "")),
    "jsonb": lambda value: _bytes(b"\1" + value.encode()),
    "numeric": lambda value: _bytes(numeric_binary(value)),
    "interval": lambda value: _interval(span_of(value)),
    "void": lambda value: b"\0\0\0\0",
    "record": _record,
}


def _binary(kind: Type) -> Encoder:
    if kind.enum is not None:
        return _prefixed(kind.enum.text_of)
    if kind.name == "char":
        width = kind.length or 0
        return lambda value: _plain(value.ljust(width))
    found = _BINARIES.get(kind.name)
    if found is None:
        raise FeatureNotSupported(f"values of type {kind} have no binary form here: ask for text")
    return found


def _array_binary(kind: Type, of: Type, zone: ZoneInfo) -> Encoder:
    """Return the encoder of the array type `kind`, whose elements have the type `of`."""
    element = make_encoder(of, BINARY, zone)
    oid, first = oid_of(of), first_subscript(kind)

    def encode(stored: str) -> bytes:
        values = elements_of(stored)
        if not values:
            data = struct.pack("!iiI", 0, 0, oid)
        else:
            data = _ARRAY.pack(1, int(None in values), oid, len(values), first)
            data += b"".join([NULL if v is None else element(v) for v in values])
        return _LENGTH.pack(len(data)) + data

    return encode
