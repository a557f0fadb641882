"""What stock libraries make of a feed's messages in Avro and Protobuf: fastavro, and Google's."""

from __future__ import annotations

import io
import json
import re
from collections.abc import Iterator, Mapping
from typing import Any, Final

import fastavro
from google.protobuf import descriptor_pb2, descriptor_pool, message_factory
from google.protobuf.message import Message

Proto: Final = descriptor_pb2.FieldDescriptorProto
_TYPES: Final[Mapping[str, int]] = {
    "int32": Proto.TYPE_INT32,
    "int64": Proto.TYPE_INT64,
    "double": Proto.TYPE_DOUBLE,
    "bool": Proto.TYPE_BOOL,
    "string": Proto.TYPE_STRING,
    "bytes": Proto.TYPE_BYTES,
}
_FIELD: Final = re.compile(
    r"(?:(?P<label>optional|repeated) )?(?P<type>\w+) (?P<name>\w+) = (?P<number>\d+)"
    r'(?: \[json_name = "(?P<json>\w+)"\])?;'
)


def read_avro(schema: str, data: bytes) -> Any:
    """Return what fastavro reads; all of `data` has to be the record's."""
    source = io.BytesIO(data)
    record = fastavro.schemaless_reader(source, fastavro.parse_schema(json.loads(schema)), None)
    assert source.read() == b"", "nothing stands behind the record"
    return record


def rewrite_avro(schema: str, record: Any) -> bytes:
    """Return a record as fastavro writes it."""
    target = io.BytesIO()
    fastavro.schemaless_writer(target, fastavro.parse_schema(json.loads(schema)), record)
    return target.getvalue()


def protobuf_class(text: str) -> type[Message]:
    """Return the class of the first message of a file, of as much of proto3 as feeds have."""
    lines = [line.partition("//")[0].strip() for line in text.splitlines()]
    rest = iter(line for line in lines if line)
    assert next(rest) == 'syntax = "proto3";'
    file = descriptor_pb2.FileDescriptorProto(name="feed.proto", syntax="proto3")
    file.package = next(rest).removeprefix("package ").removesuffix(";")
    first = next(rest)
    _read_message(file.message_type.add(), first, rest, f".{file.package}")
    assert next(rest, None) is None
    _name_types(file.message_type[0], f".{file.package}", {})
    pool = descriptor_pool.DescriptorPool()
    pool.Add(file)
    found = pool.FindMessageTypeByName(f"{file.package}.{file.message_type[0].name}")
    made: type[Message] = message_factory.GetMessageClass(found)
    return made


def _read_message(
    message: descriptor_pb2.DescriptorProto, head: str, rest: Iterator[str], scope: str
) -> None:
    message.name = head.removeprefix("message ").removesuffix(" {")
    for line in rest:
        if line == "}":
            return
        if line.startswith("message "):
            _read_message(message.nested_type.add(), line, rest, f"{scope}.{message.name}")
            continue
        found = _FIELD.fullmatch(line)
        assert found is not None, line
        field = message.field.add(name=found["name"], number=int(found["number"]))
        field.label = Proto.LABEL_REPEATED if found["label"] == "repeated" else Proto.LABEL_OPTIONAL
        field.json_name = found["json"] or found["name"]
        if found["type"] in _TYPES:
            field.type = _TYPES[found["type"]]
        else:
            field.type, field.type_name = Proto.TYPE_MESSAGE, found["type"]
        if found["label"] == "optional":
            field.proto3_optional = True
            field.oneof_index = len(message.oneof_decl)
            message.oneof_decl.add(name=f"_{found['name']}")


def _name_types(
    message: descriptor_pb2.DescriptorProto, scope: str, known: Mapping[str, str]
) -> None:
    inner = f"{scope}.{message.name}"
    known = {**known, **{each.name: f"{inner}.{each.name}" for each in message.nested_type}}
    for field in message.field:
        if field.type == Proto.TYPE_MESSAGE:
            field.type_name = known[field.type_name]
    for each in message.nested_type:
        _name_types(each, inner, known)


def as_record(message: Message) -> dict[str, Any]:
    """Return a message as a record of Avro would have it: what is not there is None, an array a
    list."""
    record: dict[str, Any] = {}
    for field in message.DESCRIPTOR.fields:
        value = getattr(message, field.name)
        if field.has_presence and not message.HasField(field.name):
            value = None
        elif field.message_type is not None and field.message_type.name.endswith("Array"):
            value = [as_record(item)["value"] for item in value.items]
        elif field.message_type is not None:
            value = as_record(value)
        record[field.json_name] = value
    return record
