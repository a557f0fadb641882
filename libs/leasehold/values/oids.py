"""Types as PostgreSQL numbers and measures them, by what `declared.py` says of each."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, TypeAlias

from leasehold.values.declared import BY_NAME, DECLARED, VARIABLE
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


def oid_of(kind: WireType) -> int:
    known = BY_NAME.get(kind.name)
    return known.oid if known is not None else BY_NAME[kind.name.removesuffix("[]")].array_oid


def size_of(kind: WireType) -> int:
    return VARIABLE if element_of(kind) else BY_NAME[kind.name].size


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


def type_of_oid(oid: int) -> WireType | None:
    """Return the type of an oid, None where the client left it open, or it is one that nobody here
    knows."""
    return _BY_OID.get(oid)
