"""Types as PostgreSQL numbers and measures them, by what `declared.py` says of each."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, TypeAlias
from zlib import crc32

from leasehold.model.ids import ENUMS_FROM
from leasehold.values.declared import BY_NAME, DECLARED, ENUM, VARIABLE
from leasehold.values.types import TIMED, Type, array_of, element_of

UNSPECIFIED: Final = 0
"""Oid of a parameter whose type the client leaves to the server."""
UNKNOWN_OID: Final = 705
_ALL_FIELDS: Final = 0x7FFF  # of an interval: years to seconds
_HEADER: Final = 4  # what PostgreSQL adds to a length in a type modifier


WireType: TypeAlias = Type
"""One of DECLARED, or an array of one."""
_BY_OID: Final[Mapping[int, WireType]] = {
    **{each.oid: Type(each.name) for each in DECLARED},
    **{each.array_oid: array_of(Type(each.name)) for each in DECLARED if each.array_oid},
}


_MADE_FROM: Final = 16_384
_MADE_SIDE_BY_SIDE: Final = 2_048
"""Below the numbers of tables there is room for so many types and their arrays."""


def enum_oid(type_id: int, *, array: bool = False) -> int:
    """Return the number of an enum type, or of its array type, by its id: the same on every node.
    Beyond what fits below the numbers of tables it is drawn from the upper half, by a checksum."""
    number = type_id - ENUMS_FROM
    if 0 <= number < _MADE_SIDE_BY_SIDE:
        return _MADE_FROM + 2 * number + array
    return 1 << 31 | crc32(f"type.{number}.{int(array)}".encode()) >> 1


def label_oid(type_id: int, place: int) -> int:
    """Return the number of a label, which a new name of it does not change."""
    return 1 << 31 | crc32(f"label.{type_id}.{place}".encode()) >> 1


def oid_of(kind: WireType) -> int:
    if kind.enum is not None:
        return enum_oid(kind.enum.type_id, array=element_of(kind) is not None)
    known = BY_NAME.get(kind.name)
    return known.oid if known is not None else BY_NAME[kind.name.removesuffix("[]")].array_oid


def size_of(kind: WireType) -> int:
    if element_of(kind):
        return VARIABLE
    return ENUM.size if kind.enum is not None else BY_NAME[kind.name].size


def modifier_of(kind: WireType) -> int:
    """PostgreSQL's atttypmod: -1 without one."""
    name = (element_of(kind) or kind).name
    if kind.length is not None and name == "interval":
        return _ALL_FIELDS << 16 | kind.length
    if kind.length is not None and name in TIMED:
        return kind.length
    if kind.length is not None:
        return kind.length + _HEADER
    if kind.precision is not None:
        return (kind.precision << 16 | (kind.scale or 0) & 0x7FF) + _HEADER
    return -1


def may_be_made(oid: int) -> bool:
    """Say whether a number may be that of a type which a statement has made, or of its array."""
    return _MADE_FROM <= oid < _MADE_FROM + 2 * _MADE_SIDE_BY_SIDE or oid >= 1 << 31


def type_of_oid(oid: int) -> WireType | None:
    """Return the type of an oid, None where the client left it open, or it is one that nobody here
    knows."""
    return _BY_OID.get(oid)
