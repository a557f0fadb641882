"""Declares each SQL type once: its names, PostgreSQL's numbers for it, how it is compared and cast,
and since which release a column may have it.

A type is a line of DECLARED. What is done with its values has a line of its own in `storage.py`
(Python and JSON), `text_io.py` (text) and `pgwire/values` (binary); a test holds these to the lines
here. Tables elsewhere that ask which types are numbers, have an order … are made of these lines.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum
from typing import Any, Final

from leasehold.model.features import Feature

VARIABLE: Final = -1
"""Size of a type whose values have no fixed size."""


class Compared(Enum):
    """How SQLite compares the storage values of a type."""

    AS_STORED = "as they are"
    BY_KEY = "by a part of their text"
    BY_FORM = "by bytes that a function makes of them"
    BY_CATALOGUE = "by the operators of the catalogue alone"
    NEVER = "not at all: the type has no order"


class Modifier(Enum):
    """What may stand in parentheses behind a type's name."""

    NONE = "nothing"
    CHARACTERS = "a number of characters"
    DECIMALS = "a precision and a scale"
    SECOND_DIGITS = "digits of a second"


@dataclass(frozen=True, slots=True)
class Declared:
    """A type. `oid`, `array_oid`, `size` and `alignment` are PostgreSQL's; `pg_name` is typname,
    and `written` what PostgreSQL writes, "" = the name. `category` and `preferred` are those of
    pg_type, `implicit` the types that it becomes without being asked. `operators` is the class of a
    key column, "" = no index takes it. `column`: whether a column may have it; then a process has
    to read `known_by` (`model/features.py`) before one has. `as_it_is`: the storage value is the
    Python value; `many_forms`: equal values may have storage values that differ."""

    name: str
    oid: int
    array_oid: int
    size: int
    category: str
    compared: Compared
    alignment: str = "i"
    pg_name: str = ""
    written: str = ""
    synonyms: tuple[str, ...] = ()
    preferred: bool = False
    implicit: tuple[str, ...] = ()
    operators: str = ""
    modifier: Modifier = Modifier.NONE
    column: bool = True
    known_by: int = 0
    as_it_is: bool = False
    many_forms: bool = False


_REGISTERED: Final = (
    *("regclass", "regtype", "regproc", "regprocedure", "regoper", "regoperator"),
    *("regnamespace", "regrole"),
)
_NUMBERED: Final = (*_REGISTERED, "oid")

DECLARED: Final[tuple[Declared, ...]] = (
    Declared(
        *("smallint", 21, 1005, 2, "N", Compared.AS_STORED, "s", "int2"),
        synonyms=("int2",),
        implicit=(
            *("integer", "bigint", "numeric", "real", "double precision"),
            *_NUMBERED,
        ),
        operators="int2_ops",
        as_it_is=True,
    ),
    Declared(
        *("integer", 23, 1007, 4, "N", Compared.AS_STORED, "i", "int4"),
        synonyms=("int", "int4"),
        implicit=("bigint", "numeric", "real", "double precision", *_NUMBERED),
        operators="int4_ops",
        as_it_is=True,
    ),
    Declared(
        *("bigint", 20, 1016, 8, "N", Compared.AS_STORED, "d", "int8"),
        synonyms=("int8",),
        implicit=("numeric", "real", "double precision", *_NUMBERED),
        operators="int8_ops",
        as_it_is=True,
    ),
    Declared(
        *("numeric", 1700, 1231, VARIABLE, "N", Compared.BY_KEY),
        synonyms=("decimal", "dec"),
        implicit=("real", "double precision"),
        operators="numeric_ops",
        modifier=Modifier.DECIMALS,
        many_forms=True,
    ),
    Declared(
        *("real", 700, 1021, 4, "N", Compared.AS_STORED, "i", "float4"),
        synonyms=("float4",),
        implicit=("double precision",),
        operators="float4_ops",
        known_by=Feature.COLUMN_TYPES,
        many_forms=True,
    ),
    Declared(
        *("double precision", 701, 1022, 8, "N", Compared.AS_STORED, "d", "float8"),
        synonyms=("float8", "double", "float"),
        preferred=True,
        operators="float8_ops",
        many_forms=True,
    ),
    Declared(
        *("text", 25, 1009, VARIABLE, "S", Compared.AS_STORED),
        preferred=True,
        implicit=("varchar", "char", "name", "regclass"),
        operators="text_ops",
        as_it_is=True,
    ),
    Declared(
        *("varchar", 1043, 1015, VARIABLE, "S", Compared.AS_STORED),
        written="character varying",
        synonyms=("character varying",),
        implicit=("text", "char", "name", "regclass"),
        operators="text_ops",
        modifier=Modifier.CHARACTERS,
        as_it_is=True,
    ),
    Declared(
        *("char", 1042, 1014, VARIABLE, "S", Compared.BY_CATALOGUE, "i", "bpchar", "character"),
        synonyms=("character", "bpchar"),
        implicit=("text", "varchar", "name"),
        operators="bpchar_ops",
        modifier=Modifier.CHARACTERS,
    ),
    Declared(
        *("boolean", 16, 1000, 1, "B", Compared.AS_STORED, "c", "bool"),
        synonyms=("bool",),
        preferred=True,
        operators="bool_ops",
    ),
    Declared(
        *("bytea", 17, 1001, VARIABLE, "U", Compared.AS_STORED),
        operators="bytea_ops",
        as_it_is=True,
    ),
    Declared(
        *("date", 1082, 1182, 4, "D", Compared.AS_STORED),
        implicit=("timestamp", "timestamptz"),
        operators="date_ops",
    ),
    Declared(
        *("time", 1083, 1183, 8, "D", Compared.AS_STORED, "d", "", "time without time zone"),
        synonyms=("time without time zone",),
        implicit=("timetz", "interval"),
        operators="time_ops",
        modifier=Modifier.SECOND_DIGITS,
        known_by=Feature.COLUMN_TYPES,
    ),
    Declared(
        *("timetz", 1266, 1270, 12, "D", Compared.AS_STORED, "d", "", "time with time zone"),
        synonyms=("time with time zone",),
        operators="timetz_ops",
        modifier=Modifier.SECOND_DIGITS,
        known_by=Feature.COLUMN_TYPES,
    ),
    Declared(
        *("timestamp", 1114, 1115, 8, "D", Compared.AS_STORED, "d", ""),
        written="timestamp without time zone",
        synonyms=("timestamp without time zone",),
        implicit=("timestamptz",),
        operators="timestamp_ops",
        modifier=Modifier.SECOND_DIGITS,
    ),
    Declared(
        *("timestamptz", 1184, 1185, 8, "D", Compared.AS_STORED, "d", ""),
        written="timestamp with time zone",
        synonyms=("timestamp with time zone",),
        preferred=True,
        operators="timestamptz_ops",
        modifier=Modifier.SECOND_DIGITS,
    ),
    Declared(
        *("interval", 1186, 1187, 16, "T", Compared.BY_KEY, "d"),
        preferred=True,
        operators="interval_ops",
        modifier=Modifier.SECOND_DIGITS,
        known_by=Feature.COLUMN_TYPES,
        many_forms=True,
    ),
    Declared(
        *("uuid", 2950, 2951, 16, "U", Compared.AS_STORED, "c"),
        operators="uuid_ops",
    ),
    Declared(
        *("inet", 869, 1041, VARIABLE, "I", Compared.AS_STORED),
        preferred=True,
        operators="inet_ops",
        known_by=Feature.COLUMN_TYPES,
    ),
    Declared(
        *("cidr", 650, 651, VARIABLE, "I", Compared.AS_STORED),
        implicit=("inet",),
        operators="inet_ops",
        known_by=Feature.COLUMN_TYPES,
    ),
    Declared(
        *("json", 114, 199, VARIABLE, "U", Compared.NEVER),
        known_by=Feature.COLUMN_TYPES,
        as_it_is=True,
    ),
    Declared(
        *("jsonb", 3802, 3807, VARIABLE, "U", Compared.BY_FORM),
        as_it_is=True,
        many_forms=True,
    ),
    # Types of the system catalog, and of expressions alone.
    Declared(
        *('"char"', 18, 1002, 1, "Z", Compared.AS_STORED, "c", "char"),
        implicit=("text",),
        column=False,
    ),
    Declared(
        *("name", 19, 1003, 64, "S", Compared.AS_STORED, "c"), implicit=("text",), column=False
    ),
    Declared(
        *("oid", 26, 1028, 4, "N", Compared.AS_STORED),
        preferred=True,
        implicit=("bigint", *_REGISTERED),
        column=False,
    ),
    *(
        Declared(
            *(name, oid, array_oid, 4, "N", Compared.AS_STORED),
            implicit=("oid", "bigint"),
            column=False,
        )
        for name, oid, array_oid in (
            *(("regproc", 24, 1008), ("regprocedure", 2202, 2207), ("regoper", 2203, 2208)),
            *(("regoperator", 2204, 2209), ("regclass", 2205, 2210), ("regtype", 2206, 2211)),
            *(("regnamespace", 4089, 4090), ("regrole", 4096, 4097)),
        )
    ),
    Declared("int2vector", 22, 1006, VARIABLE, "A", Compared.BY_FORM, column=False),
    Declared("oidvector", 30, 1013, VARIABLE, "A", Compared.BY_FORM, column=False),
    Declared("void", 2278, 0, 4, "P", Compared.NEVER, column=False),
    Declared("record", 2249, 2287, VARIABLE, "P", Compared.NEVER, column=False),
)
BY_NAME: Final = {declared.name: declared for declared in DECLARED}
ENUM: Final = Declared(
    *("enum", 3500, 0, 4, "E", Compared.AS_STORED, "i", "anyenum"),
    operators="enum_ops",
    known_by=Feature.ENUMS,
)
"""What is said of all types that CREATE TYPE makes. They have names, numbers and labels of their
own (`enums.py`); the number here is that of PostgreSQL's anyenum, which no value is of."""


def names_where(holds: Callable[[Declared], Any]) -> frozenset[str]:
    """Return the names of the types for which `holds` is true."""
    return frozenset(declared.name for declared in (*DECLARED, ENUM) if holds(declared))


def names_compared(how: Compared) -> frozenset[str]:
    return names_where(lambda declared: declared.compared is how)


NUMBERS: Final = frozenset({"smallint", "integer", "bigint", "numeric", "real", "double precision"})
