"""Avro as a feed's messages have it: schemas of Kafka Connect in the form that Connect's converter
gives them (https://avro.apache.org/docs/1.12.0/specification/), and values as bytes.

The encoders are made once for a version of a table, and know nothing but their field: a general
library looks at each value to see which branch of a union it is of, and takes three to four times
as long for an event.
"""

from __future__ import annotations

import json
import struct
from collections.abc import Callable, Mapping
from typing import Any, Final

from leasehold.events.avro_schema import avro_name
from leasehold.events.debezium.table_form import Struct
from leasehold.events.debezium.varints import varint, zigzag

Encoder = Callable[[Any], bytes]
SCHEMA_TYPE: Final = "AVRO"
MESSAGE_INDEXES: Final = b""
"""Behind a schema's number: Avro's messages have none."""
_NULL: Final = b"\x00"
_SOME: Final = b"\x02"
_FLOAT: Final = struct.Struct("<f").pack
_DOUBLE: Final = struct.Struct("<d").pack
_PLAIN: Final[Mapping[str, str]] = {
    "int16": "int",
    "int32": "int",
    "int64": "long",
    "float": "float",
    "double": "double",
    "boolean": "boolean",
    "string": "string",
    "bytes": "bytes",
}
_DECIMAL: Final = "org.apache.kafka.connect.data.Decimal"
_PRECISION: Final = "connect.decimal.precision"


def schema_text(schema: Struct) -> str:
    """Return a schema of Avro as JSON; the same for the same schema of Connect."""
    return json.dumps(_schema(schema, set()), ensure_ascii=False, separators=(",", ":"))


def _schema(schema: Struct, named: set[str]) -> Any:
    """Return a type of Avro; `named` has the records that were described before."""
    if schema["type"] == "struct":
        made: Any = _record(schema, named)
    elif schema["type"] == "array":
        made = {"type": "array", "items": _schema(schema["items"], named)}
    else:
        made = _plain(schema)
    if not schema.get("optional"):
        return made
    return [made, "null"] if schema.get("default") is not None else ["null", made]


def _record(schema: Struct, named: set[str]) -> Any:
    name = safe_full_name(schema["name"])
    if name in named:
        return name
    named.add(name)
    space, _, last = name.rpartition(".")
    record: dict[str, Any] = {"type": "record", "name": last, "namespace": space}
    record["fields"] = [_field(each, named) for each in schema["fields"]]
    if "version" in schema:
        record["connect.version"] = schema["version"]
    record["connect.name"] = name
    return record


def _field(schema: Struct, named: set[str]) -> dict[str, Any]:
    field: dict[str, Any] = {
        "name": avro_name(schema["field"]),
        "type": _schema(schema, named),
    }
    if "default" in schema or schema.get("optional"):
        field["default"] = schema.get("default")
    if field["name"] != schema["field"]:
        field["leasehold.column"] = schema["field"]
    return field


def _plain(schema: Struct) -> Any:
    kind = _PLAIN[schema["type"]]
    more: dict[str, Any] = {}
    parameters = schema.get("parameters", {})
    if schema.get("name") == _DECIMAL:
        more["scale"] = int(parameters["scale"])
        more["precision"] = int(parameters[_PRECISION])
    if "version" in schema:
        more["connect.version"] = schema["version"]
    if parameters:
        more["connect.parameters"] = dict(parameters)
    if "default" in schema:
        more["connect.default"] = schema["default"]
    if "name" in schema:
        more["connect.name"] = schema["name"]
    if schema["type"] == "int16":
        more["connect.type"] = "int16"
    if schema.get("name") == _DECIMAL:
        more["logicalType"] = "decimal"
    return {"type": kind, **more} if more else kind


def safe_full_name(name: str) -> str:
    """Return a name with dots as Avro allows it: what is not a letter, digit or underscore becomes
    an underscore, as Debezium's `schema.name.adjustment.mode=avro` has it."""
    return ".".join(_safe(part) for part in name.split("."))


def _safe(part: str) -> str:
    safe = "".join(c if c.isascii() and (c.isalnum() or c == "_") else "_" for c in part)
    return f"_{safe}" if not safe or safe[0].isdigit() else safe


def encoder_of(schema: Struct, number: int = 0) -> Encoder:
    """Return what makes bytes of a field's value, None where it is optional."""
    plain = _value_encoder(schema)
    if not schema.get("optional"):
        return plain
    if schema.get("default") is not None:
        return lambda value: _SOME if value is None else _NULL + plain(value)
    return _OPTIONAL_ENCODERS.get(schema["type"]) or _optional(plain)


def _optional(plain: Encoder) -> Encoder:
    return lambda value: _NULL if value is None else _SOME + plain(value)


def nested(schema: Struct, number: int = 0) -> Callable[[bytes | None], bytes]:
    """Return what makes a field's bytes of those of its record."""
    if not schema.get("optional"):
        return bytes_itself
    return lambda record: _NULL if record is None else _SOME + record


def bytes_itself(record: bytes | None) -> bytes:
    assert record is not None, "a record that is not optional"
    return record


def _value_encoder(schema: Struct) -> Encoder:
    kind = schema["type"]
    if kind == "struct":
        fields = [(field["field"], encoder_of(field)) for field in schema["fields"]]
        return lambda value: b"".join([encode(value[name]) for name, encode in fields])
    if kind == "array":
        item = encoder_of(schema["items"])
        return lambda value: _array(value, item)
    return _PLAIN_ENCODERS[kind]


def _array(values: list[Any], encode: Encoder) -> bytes:
    if not values:
        return _NULL
    return b"".join([zigzag(len(values)), *map(encode, values), _NULL])


def _text(value: str) -> bytes:
    data = value.encode()
    return varint(len(data) << 1) + data


def _optional_text(value: str | None) -> bytes:
    # Most columns are of these two kinds: each call less is a tenth of what a row takes.
    if value is None:
        return _NULL
    data = value.encode()
    size = len(data)
    return (_SOME_SIZES[size] if size < _SIZES_MAX else _SOME + varint(size << 1)) + data


def _optional_number(value: int | None) -> bytes:
    return _NULL if value is None else _SOME + varint((value << 1) ^ (value >> 63))


def _bytes(value: bytes) -> bytes:
    return varint(len(value) << 1) + value


def _boolean(value: bool) -> bytes:
    return b"\x01" if value else b"\x00"


_SIZES_MAX: Final = 64
_SOME_SIZES: Final = tuple(_SOME + varint(size << 1) for size in range(_SIZES_MAX))
_OPTIONAL_ENCODERS: Final[Mapping[str, Encoder]] = {
    "int16": _optional_number,
    "int32": _optional_number,
    "int64": _optional_number,
    "string": _optional_text,
}
_PLAIN_ENCODERS: Final[Mapping[str, Encoder]] = {
    "int16": zigzag,
    "int32": zigzag,
    "int64": zigzag,
    "float": _FLOAT,
    "double": _DOUBLE,
    "boolean": _boolean,
    "string": _text,
    "bytes": _bytes,
}
