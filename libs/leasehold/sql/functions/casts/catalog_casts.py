"""Casts of the system catalog's types. Those between a name and its number ask the catalog."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from leasehold.model.errors import OutOfRange
from leasehold.sql.functions.function import unchanged
from leasehold.sql.functions.system.session import system_of
from leasehold.values.catalog_types import (
    LETTERED,
    NUMBERED,
    OIDS,
    REGISTERED,
    TEXT_INPUT,
    oid_of_number,
)
from leasehold.values.types import INTEGER_BITS, Type

_TEXTS: Final = frozenset({"text", "varchar", "char"})
_ASSIGNED: Final = frozenset({"smallint", "integer"})

Convert = Callable[..., Any]


def is_stable(source: Type | None, target: Type) -> bool:
    """Return whether the cast asks the catalog, by name or by number."""
    to_name = source is not None and source.name in REGISTERED
    of_name = source is None or source.name in _TEXTS | LETTERED
    return (to_name and target.name in _TEXTS | LETTERED) or (of_name and target.name in REGISTERED)


def allowed(source: Type, target: Type, context: str) -> bool | None:
    """Return whether the context allows the cast; None where neither is a type of the catalog."""
    one, other = source.name, target.name
    if one in LETTERED:
        assigned = other in _TEXTS | LETTERED
        return (assigned and context != "implicit") or (
            context == "explicit" and (other in REGISTERED or (one, other) == ('"char"', "integer"))
        )
    if one in NUMBERED:
        return (other in _ASSIGNED | _TEXTS | {"bigint"} and context != "implicit") or (
            other in NUMBERED and context == "explicit"
        )
    if other in LETTERED:
        return (context != "implicit" and one in _TEXTS) or context == "explicit"
    return context == "explicit" if other in NUMBERED else None


def changed(source: Type, target: Type) -> Convert | None:
    """The cast of one type of the catalog or into one; None: there is none."""
    one, other = source.name, target.name
    if is_stable(source, target):
        return _shown(one) if one in REGISTERED else _found(other)
    if one in NUMBERED and other in NUMBERED:
        return unchanged
    if one in INTEGER_BITS and other in NUMBERED:
        return oid_of_number
    if one in NUMBERED and other in INTEGER_BITS:
        return _number(target)
    if one in NUMBERED and other in _TEXTS | LETTERED:
        return str
    if one in _TEXTS | LETTERED and other in TEXT_INPUT:
        return TEXT_INPUT[other]
    if (one, other) == ('"char"', "integer"):
        return lambda value: ord(value or "\0")
    return unchanged if one in LETTERED and other in _TEXTS else None


def _number(target: Type) -> Convert:
    limit = 1 << INTEGER_BITS[target.name] - 1

    def convert(value: int) -> int:
        if INTEGER_BITS[target.name] == 32 and value >= limit:
            return value - OIDS
        if value >= limit:
            raise OutOfRange(f"{target} out of range")
        return value

    return convert


def _shown(kind: str) -> Convert:
    return lambda context, oid: system_of(context).catalog.names.show(kind, oid)


def _found(kind: str) -> Convert:
    return lambda context, text: system_of(context).catalog.names.oid(kind, text)
