"""Types as PostgreSQL numbers and measures them: the only place that knows its oids."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, NamedTuple, TypeAlias

from leasehold.values.types import TIMESTAMPS, Type, array_of, element_of

VARIABLE: Final = -1
"""Size of a type whose values have no fixed size."""
UNSPECIFIED: Final = 0
"""Oid of a parameter whose type the client leaves to the server."""
UNKNOWN_OID: Final = 705
_HEADER: Final = 4  # what PostgreSQL adds to a length in a type modifier


WireType: TypeAlias = Type
"""One of NUMBERS, or an array of one."""


class TypeOids(NamedTuple):
    oid: int
    array_oid: int
    size: int


TYPE_OIDS: Final[Mapping[str, TypeOids]] = {
    "boolean": TypeOids(16, 1000, 1),
    "bytea": TypeOids(17, 1001, VARIABLE),
    '"char"': TypeOids(18, 1002, 1),
    "name": TypeOids(19, 1003, 64),
    "bigint": TypeOids(20, 1016, 8),
    "smallint": TypeOids(21, 1005, 2),
    "integer": TypeOids(23, 1007, 4),
    "text": TypeOids(25, 1009, VARIABLE),
    "oid": TypeOids(26, 1028, 4),
    "json": TypeOids(114, 199, VARIABLE),
    "double precision": TypeOids(701, 1022, 8),
    "char": TypeOids(1042, 1014, VARIABLE),
    "varchar": TypeOids(1043, 1015, VARIABLE),
    "date": TypeOids(1082, 1182, 4),
    "timestamp": TypeOids(1114, 1115, 8),
    "timestamptz": TypeOids(1184, 1185, 8),
    "interval": TypeOids(1186, 1187, 16),
    "numeric": TypeOids(1700, 1231, VARIABLE),
    "uuid": TypeOids(2950, 2951, 16),
    "jsonb": TypeOids(3802, 3807, VARIABLE),
    "void": TypeOids(2278, 0, 4),
    "record": TypeOids(2249, 2287, VARIABLE),
    "int2vector": TypeOids(22, 1006, VARIABLE),
    "oidvector": TypeOids(30, 1013, VARIABLE),
    "regproc": TypeOids(24, 1008, 4),
    "regprocedure": TypeOids(2202, 2207, 4),
    "regoper": TypeOids(2203, 2208, 4),
    "regoperator": TypeOids(2204, 2209, 4),
    "regclass": TypeOids(2205, 2210, 4),
    "regtype": TypeOids(2206, 2211, 4),
    "regnamespace": TypeOids(4089, 4090, 4),
    "regrole": TypeOids(4096, 4097, 4),
}
_BY_OID: Final[Mapping[int, WireType]] = {
    **{numbers.oid: Type(name) for name, numbers in TYPE_OIDS.items()},
    **{n.array_oid: array_of(Type(name)) for name, n in TYPE_OIDS.items() if n.array_oid},
}


def oid_of(kind: WireType) -> int:
    known = TYPE_OIDS.get(kind.name)
    return known.oid if known is not None else TYPE_OIDS[kind.name.removesuffix("[]")].array_oid


def size_of(kind: WireType) -> int:
    return VARIABLE if element_of(kind) else TYPE_OIDS[kind.name].size


def modifier_of(kind: WireType) -> int:
    """PostgreSQL's atttypmod: -1 without one."""
    if kind.length is not None and (element_of(kind) or kind).name in TIMESTAMPS:
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
