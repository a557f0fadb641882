"""Protobuf as a feed's messages have it: a file of proto3 whose first message is the event, and
values as bytes (https://protobuf.dev/programming-guides/encoding/).

A column's field has the number of its element, which no other column of the table ever has: fields
keep their numbers through names and types, and a column that goes leaves its number unused.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final

from leasehold.events.avro_schema import avro_name
from leasehold.events.debezium.avro_wire import safe_full_name
from leasehold.events.debezium.table_form import Struct
from leasehold.events.debezium.varints import two_complement, varint

Encoder = Callable[[Any], bytes]
SCHEMA_TYPE: Final = "PROTOBUF"
MESSAGE_INDEXES: Final = b"\x00"
"""Behind a schema's number: the first message of the file, in Confluent's short form."""
FIRST_RESERVED: Final = 19_000
RESERVED: Final = 1_000
"""Numbers from 19,000 to 19,999 are Protobuf's own."""
_VARINT, _FIXED_64, _LENGTH, _FIXED_32 = 0, 1, 2, 5
_FLOAT: Final = struct.Struct("<f").pack
_DOUBLE: Final = struct.Struct("<d").pack
_TYPES: Final[Mapping[str, tuple[str, int]]] = {
    "int16": ("int32", _VARINT),
    "int32": ("int32", _VARINT),
    "int64": ("int64", _VARINT),
    "float": ("float", _FIXED_32),
    "double": ("double", _FIXED_64),
    "boolean": ("bool", _VARINT),
    "string": ("string", _LENGTH),
    "bytes": ("bytes", _LENGTH),
}


def field_number(element_id: int) -> int:
    """Return the number of the field of a column."""
    return element_id if element_id < FIRST_RESERVED else element_id + RESERVED


def schema_text(schema: Struct) -> str:
    """Return a file of proto3; the same for the same schema of Connect."""
    space, _, _ = safe_full_name(schema["name"]).rpartition(".")
    lines = ['syntax = "proto3";', *([f"package {space};"] if space else []), ""]
    return "\n".join([*lines, *_message(schema, "")]) + "\n"


def _message(schema: Struct, indent: str) -> Iterator[str]:
    """Yield a message with the messages that its fields need, each once."""
    yield f"{indent}message {_struct_name(schema)} {{"
    inner = f"{indent}  "
    for place, field in enumerate(schema["fields"], 1):
        name = avro_name(field["field"])
        label = "optional " if field.get("optional") else ""
        # The name that JSON has is the column's: those that Protobuf makes may be one for two.
        named = f' [json_name = "{name}"]' if name != name.lower() or "_" in name else ""
        says = f" // {field['name']}" if "name" in field and field["type"] != "struct" else ""
        number = field.get("number", place)
        yield f"{inner}{label}{_type_name(field)} {name} = {number}{named};{says}"
    yield from _needed(schema["fields"], inner)
    yield f"{indent}}}"


def _needed(fields: list[Struct], indent: str) -> Iterator[str]:
    for each in {_type_name(each): each for each in fields}.values():
        if each["type"] == "struct":
            yield from _message(each, indent)
        elif each["type"] == "array":
            yield from _array(each, indent)


def _array(schema: Struct, indent: str) -> Iterator[str]:
    """Yield the message of an array: a repeated field is never null, and neither are its items, so
    both are messages."""
    inner = f"{indent}    "
    yield f"{indent}message {_type_name(schema)} {{"
    yield f"{indent}  repeated Item items = 1;"
    yield f"{indent}  message Item {{"
    yield f"{inner}optional {_type_name(schema['items'])} value = 1;"
    yield from _needed([schema["items"]], inner)
    yield f"{indent}  }}"
    yield f"{indent}}}"


def _type_name(field: Struct) -> str:
    if field["type"] == "struct":
        return _struct_name(field)
    if field["type"] == "array":
        return f"{_type_name(field['items']).capitalize()}Array"
    name, _ = _TYPES[field["type"]]
    return name


def _struct_name(schema: Struct) -> str:
    return safe_full_name(schema["name"]).rpartition(".")[2]


def encoder_of(schema: Struct, number: int) -> Encoder:
    """Return what makes bytes of a field's value, none for None."""
    kind = schema["type"]
    if kind == "struct":
        fields = [
            (field["field"], encoder_of(field, field.get("number", place)))
            for place, field in enumerate(schema["fields"], 1)
        ]
        return _delimited(
            number, lambda value: b"".join([encode(value[name]) for name, encode in fields])
        )
    if kind == "array":
        # An item is a message, which is there where its value is not.
        item, head = encoder_of(schema["items"], 1), varint(1 << 3 | _LENGTH)
        return _delimited(
            number,
            lambda value: b"".join([_with_length(head, item(each)) for each in value]),
        )
    _, wire = _TYPES[kind]
    tag = varint(number << 3 | wire)
    if wire == _LENGTH:
        if kind == "bytes":
            return lambda value: b"" if value is None else tag + varint(len(value)) + value
        return lambda value: b"" if value is None else _with_length(tag, value.encode())
    if kind in ("float", "double"):
        pack = _FLOAT if kind == "float" else _DOUBLE
        return lambda value: b"" if value is None else tag + pack(value)
    return lambda value: b"" if value is None else tag + two_complement(value)


def nested(schema: Struct, number: int) -> Callable[[bytes | None], bytes]:
    """Return what makes a field's bytes of those of its message."""
    tag = varint(number << 3 | _LENGTH)
    return lambda data: b"" if data is None else _with_length(tag, data)


def _delimited(number: int, encode: Encoder) -> Encoder:
    tag = varint(number << 3 | _LENGTH)
    return lambda value: b"" if value is None else _with_length(tag, encode(value))


def _with_length(tag: bytes, data: bytes) -> bytes:
    return tag + varint(len(data)) + data
