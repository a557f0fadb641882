"""The public shape of a table at one version as an Avro schema. PURE.

One record named after the table, one field per public column. Reading data written under one
version with the schema of the next gives what PostgreSQL would show: a new column shows its default
or NULL, a renamed one is found by its alias, one that is gone is passed over.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from datetime import time
from decimal import Decimal
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network
from math import isfinite
from typing import Any, Final

from leasehold.catalog.descriptor import Descriptor
from leasehold.catalog.elements import Column
from leasehold.events.version_diff import column_words
from leasehold.rows.defaults import default_of_old_rows
from leasehold.values.arrays import elements_of
from leasehold.values.dates import is_infinite
from leasehold.values.doubles import number_of
from leasehold.values.numeric import EXACT, decimal_of
from leasehold.values.storage import plain_form, to_json
from leasehold.values.types import DATES_AND_TIMESTAMPS, FLOATS, Type, element_of

_TYPES: Final[Mapping[str, Any]] = {
    "smallint": "int",
    "integer": "int",
    "bigint": "long",
    "real": "float",
    "double precision": "double",
    "text": "string",
    "varchar": "string",
    "char": "string",
    "boolean": "boolean",
    "bytea": "bytes",
    "date": {"type": "int", "logicalType": "date"},
    # Without a zone it is no instant; a reader that does not know the word sees the same long.
    "timestamp": {"type": "long", "logicalType": "local-timestamp-micros"},
    "timestamptz": {"type": "long", "logicalType": "timestamp-micros"},
    "uuid": {"type": "string", "logicalType": "uuid"},
    "jsonb": "string",
    # As text: Avro has no 24:00:00, no time with an offset, and no months beside days.
    **dict.fromkeys(("time", "timetz", "interval", "json", "inet", "cidr"), "string"),
    # Its label, which may be no name of Avro's, and of which there may be more later: a reader with
    # an enum of before could not read those.
    "enum": "string",
}
_AS_TEXT: Final = (time, IPv4Address, IPv4Network, IPv6Address, IPv6Network)
_DECIMALS_MAX: Final = 38
"""Digits that readers of Avro's decimal hold everywhere; a longer numeric is text."""
_RESERVED: Final = frozenset(
    [
        "null",
        "boolean",
        "int",
        "long",
        "float",
        "double",
        "bytes",
        "string",
        "record",
        "error",
        "enum",
        "array",
        "map",
        "fixed",
        "union",
    ]
)
"""Type words, which no record may be named by."""

_NOT_IN_NAMES: Final = re.compile(r"[^A-Za-z0-9_]|^[0-9]|_(?=x)")
_MANGLED: Final = re.compile(r"_x([0-9a-f]+)_")


def avro_name(name: str) -> str:
    """Return `name` as Avro allows names: what is not a letter, digit or underscore becomes
    `_x20_`, its code point. No two names become one, whatever else a table holds, and
    `named_in_avro` turns it back; therefore an underscore before an x is written `_x5f_`."""
    return _NOT_IN_NAMES.sub(lambda found: f"_x{ord(found[0]):x}_", name)


def avro_record_name(name: str) -> str:
    """Return `avro_name` for a record, where a word that Avro needs itself has its first letter
    written out."""
    return f"_x{ord(name[0]):x}_{name[1:]}" if name in _RESERVED else avro_name(name)


def named_in_avro(mangled: str) -> str:
    """Return the name that `avro_name` or `avro_record_name` was given."""
    return _MANGLED.sub(lambda found: chr(int(found[1], 16)), mangled)


def avro_schema(descriptor: Descriptor) -> dict[str, Any]:
    """Return the schema as plain data. Properties `leasehold.…` say what Avro has no word for."""
    schema: dict[str, Any] = {
        "type": "record",
        "name": avro_record_name(descriptor.name),
        "doc": f"table {descriptor.name}, version {descriptor.version}",
        "leasehold.table": descriptor.name,
        "leasehold.table_id": descriptor.table_id,
        "leasehold.version": descriptor.version,
        "fields": [_field(column) for column in descriptor.by_name.values()],
    }
    if descriptor.alias:
        schema["aliases"] = [avro_record_name(descriptor.alias)]
    return schema


def avro_row(values: Mapping[str, Any]) -> dict[str, Any]:
    """Return values of a row by column name (`RowEvent.values`) as an Avro library takes them, but
    for numeric, which `avro_numbers` brings to what the schema says. An infinite date or timestamp
    is its word still, which no library writes as one."""
    return {avro_name(name): _with_texts(value) for name, value in values.items()}


def _with_texts(value: Any) -> Any:
    if isinstance(value, list):
        return list(map(_with_texts, value))
    return plain_form(value) if isinstance(value, _AS_TEXT) else value


def avro_numbers(schema: Mapping[str, Any], row: dict[str, Any]) -> dict[str, Any]:
    """Return a row of `avro_row` with each Decimal as the field takes it: itself, or as text where
    the schema has no decimal. NaN has no form as an Avro decimal: ValueError."""
    texts = {field["name"] for field in schema["fields"] if not _is_decimal(field["type"])}
    return {name: _number(name, value, name in texts) for name, value in row.items()}


def _number(name: str, value: Any, as_text: bool) -> Any:
    if isinstance(value, list):
        return [_number(name, each, as_text) for each in value]
    if not isinstance(value, Decimal):
        return value
    if as_text:
        return format(value, "f")
    if value.is_nan():
        raise ValueError(f"field {name!r} is NaN, for which an Avro decimal has no form")
    return value


def _is_decimal(kind: Any) -> bool:
    """Say whether numbers of a field, or those in its array, are decimals."""
    if isinstance(kind, list):
        return any(map(_is_decimal, kind))
    if isinstance(kind, dict) and kind.get("type") == "array":
        return _is_decimal(kind["items"])
    return isinstance(kind, dict) and kind.get("logicalType") == "decimal"


def _field(column: Column) -> dict[str, Any]:
    field = {
        "name": avro_name(column.name),
        "doc": column_words(column),
        **_type_and_default(column),
        "leasehold.column": column.name,
        "leasehold.element_id": column.element_id,
        "leasehold.type": str(column.type),
    }
    if column.derived is not None:
        field["leasehold.generated"] = column.derived.expression
    if column.alias:
        field["aliases"] = [avro_name(column.alias)]
    return field


def _type_and_default(column: Column) -> dict[str, Any]:
    """Return a field's type and default, which is what a reader shows for data older than the
    column. It belongs to the first type of a union: hence null stands second where old rows show
    something else."""
    plain = avro_type(column.type)
    missing = column.missing
    one_for_all = missing is not None and missing.computed is None
    shown = missing.value if missing and one_for_all else default_of_old_rows(column)
    if shown is None or not _has_form(column.type, shown):
        return {"type": ["null", plain], "default": None} if column.nullable else {"type": plain}
    default = _default(column.type, shown)
    return {"type": [plain, "null"] if column.nullable else plain, "default": default}


def _has_form(kind: Type, value: Any) -> bool:
    """Say whether a value can stand in a schema, which is JSON; there an element of an array has
    the first type of its union."""
    element = element_of(kind)
    if element is not None:
        return all(each is not None and _has_form(element, each) for each in elements_of(value))
    if kind.name in DATES_AND_TIMESTAMPS:
        return not is_infinite(value)
    if kind.name in FLOATS:
        return isfinite(number_of(value))
    return _decimal(kind) is None or decimal_of(value).is_finite()


def _numeric_default(kind: Type, value: str) -> str:
    """Return the default of a decimal: the digits as a whole number of two's complement, high byte
    first."""
    number = decimal_of(value)
    if _decimal(kind) is None:
        return format(number, "f")
    unscaled = int(number.scaleb(kind.scale or 0, context=EXACT))
    return unscaled.to_bytes(unscaled.bit_length() // 8 + 1, "big", signed=True).decode("latin-1")


def avro_type(kind: Type) -> Any:
    """Return a type of Avro: numeric(p, s) is a decimal where Avro has one; without p a scale could
    be any: text."""
    element = element_of(kind)
    if element is not None:
        return {"type": "array", "items": [avro_type(element), "null"]}
    if kind.name == "numeric":
        return _decimal(kind) or "string"
    return _TYPES[kind.name]


def _decimal(kind: Type) -> dict[str, Any] | None:
    precision, scale = kind.precision or 0, kind.scale or 0
    if not 0 <= scale <= precision <= _DECIMALS_MAX or not precision:
        return None
    return {"type": "bytes", "logicalType": "decimal", "precision": precision, "scale": scale}


def _default(kind: Type, value: Any) -> Any:
    """Return a storage value as Avro writes defaults: the underlying value, bytes as code
    points."""
    element = element_of(kind)
    if element is not None:
        return [_default(element, each) for each in elements_of(value)]
    match kind.name:
        case "numeric":
            return _numeric_default(kind, value)
        case "char" | "time" | "timetz" | "interval" | "inet" | "cidr" | "enum":
            return to_json(kind, value)
        case "boolean":
            return bool(value)
        case "bytea":
            return value.decode("latin-1")
    return value
