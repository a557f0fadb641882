"""Operator classes of indexes: how PostgreSQL names and numbers them, and which types each takes.

All are of the method btree, which every index is made as. Those that are here are those that CREATE
INDEX takes, and no other: a type that no index compares has none.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, NamedTuple

from leasehold.values.declared import BY_NAME, DECLARED, ENUM, Declared
from leasehold.values.types import Type


class Family(NamedTuple):
    """Operator classes whose types are compared with each other."""

    name: str
    oid: int


class OperatorClass(NamedTuple):
    """An operator class. `takes`: the type that PostgreSQL says of it. `by_default`: it is taken
    for that type where an index names none."""

    name: str
    oid: int
    family: Family
    takes: str
    by_default: bool = True


_DATES: Final = Family("datetime_ops", 434)
_FLOATS: Final = Family("float_ops", 1970)
_INTEGERS: Final = Family("integer_ops", 1976)
_NETWORKS: Final = Family("network_ops", 1974)
_TEXTS: Final = Family("text_ops", 1994)
_PATTERNS: Final = Family("text_pattern_ops", 2095)

CLASSES: Final = (
    OperatorClass("bool_ops", 10_003, Family("bool_ops", 424), "boolean"),
    OperatorClass("bpchar_ops", 10_004, Family("bpchar_ops", 426), "char"),
    OperatorClass(
        "bpchar_pattern_ops", 4_219, Family("bpchar_pattern_ops", 2_097), "char", by_default=False
    ),
    OperatorClass("bytea_ops", 10_006, Family("bytea_ops", 428), "bytea"),
    OperatorClass("cidr_ops", 10_009, _NETWORKS, "inet", by_default=False),
    OperatorClass("date_ops", 3_122, _DATES, "date"),
    OperatorClass("enum_ops", 10_069, Family("enum_ops", 3_522), ENUM.name),
    OperatorClass("float4_ops", 10_012, _FLOATS, "real"),
    OperatorClass("float8_ops", 3_123, _FLOATS, "double precision"),
    OperatorClass("inet_ops", 10_015, _NETWORKS, "inet"),
    OperatorClass("int2_ops", 1_979, _INTEGERS, "smallint"),
    OperatorClass("int4_ops", 1_978, _INTEGERS, "integer"),
    OperatorClass("int8_ops", 3_124, _INTEGERS, "bigint"),
    OperatorClass("interval_ops", 10_022, Family("interval_ops", 1_982), "interval"),
    OperatorClass("numeric_ops", 3_125, Family("numeric_ops", 1_988), "numeric"),
    OperatorClass("text_ops", 3_126, _TEXTS, "text"),
    OperatorClass("text_pattern_ops", 4_217, _PATTERNS, "text", by_default=False),
    OperatorClass("time_ops", 10_038, Family("time_ops", 1_996), "time"),
    OperatorClass("timestamp_ops", 3_128, _DATES, "timestamp"),
    OperatorClass("timestamptz_ops", 3_127, _DATES, "timestamptz"),
    OperatorClass("timetz_ops", 10_041, Family("timetz_ops", 2_000), "timetz"),
    OperatorClass("uuid_ops", 10_065, Family("uuid_ops", 2_968), "uuid"),
    OperatorClass("varchar_ops", 10_044, _TEXTS, "text", by_default=False),
    OperatorClass("varchar_pattern_ops", 4_218, _PATTERNS, "text", by_default=False),
)
"""Text is compared by code point here, so those of patterns order as the others do."""
BY_CLASS_NAME: Final[Mapping[str, OperatorClass]] = {each.name: each for each in CLASSES}
_DEFAULTS: Final = {
    each.name: BY_CLASS_NAME[each.operators] for each in (*DECLARED, ENUM) if each.operators
}


def default_class(kind: Type) -> OperatorClass | None:
    """Return the class by which an index compares a type where it names none; None: no index
    does."""
    return _DEFAULTS.get(kind.name)


def takes_type(named: OperatorClass, kind: Type) -> bool:
    """Say whether an index may compare a type by that class: that type, or one whose default class
    takes the same."""
    usual = default_class(kind)
    return usual is not None and usual.takes == named.takes


def class_of_key(kind: Type, order: str) -> OperatorClass | None:
    """Return the class of a part of an index's key: the one that stands before its order, else the
    type's."""
    named, _, _ = order.partition(" ")
    return BY_CLASS_NAME.get(named) or default_class(kind)


def number_of_input(named: OperatorClass) -> int:
    """Return PostgreSQL's number of the type that a class takes."""
    declared: Declared = BY_NAME.get(named.takes, ENUM)
    return declared.oid
