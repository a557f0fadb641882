"""Avro's binary form, read with the schema that it was written with
(https://avro.apache.org/docs/1.12.0/specification/).

Bytes and schemas come from strangers. A decoder is made once for a schema; it reads no further than
its bytes, and makes at most VALUES_MAX values of them: an array of nulls has no bytes, and any
number of items. Whatever is wrong raises MalformedRequest, and nothing else.
"""

from __future__ import annotations

import json
import struct
from collections.abc import Callable
from typing import Any, Final, NamedTuple

from leasehold.events.foreign.source_types import (
    ANY,
    DATE,
    DECIMAL,
    MICRO_TIME,
    MICRO_TIMESTAMP,
    MILLI_TIME,
    MILLI_TIMESTAMP,
    NANO_TIMESTAMP,
    STRUCT,
    SourceType,
    scale_of,
)
from leasehold.model.errors import MalformedRequest

VALUES_MAX: Final = 1_000_000
"""Of one message: items of arrays and maps, which alone may be more than there are bytes."""
SCHEMA_CHARACTERS_MAX: Final = 2_000_000
DEPTH_MAX: Final = 60
"""Of a schema; of a message with a schema that refers to itself, too."""
LONG_BYTES_MAX: Final = 10
_FLOAT: Final = struct.Struct("<f")
_DOUBLE: Final = struct.Struct("<d")
_KINDS: Final = {
    "int": "int32",
    "long": "int64",
    "float": "float",
    "double": "double",
    "boolean": "boolean",
    "string": "string",
    "bytes": "bytes",
    "fixed": "bytes",
    "enum": "string",
    "array": "array",
    "map": "map",
    "record": STRUCT,
    "null": ANY,
}
_LOGICAL: Final = {
    "date": DATE,
    "time-millis": MILLI_TIME,
    "time-micros": MICRO_TIME,
    "timestamp-millis": MILLI_TIMESTAMP,
    "timestamp-micros": MICRO_TIMESTAMP,
    "timestamp-nanos": NANO_TIMESTAMP,
    "local-timestamp-millis": MILLI_TIMESTAMP,
    "local-timestamp-micros": MICRO_TIMESTAMP,
    "local-timestamp-nanos": NANO_TIMESTAMP,
    "decimal": DECIMAL,
}


class Reading:
    """The bytes of one message, and how far they are read. `left`: items that may still come."""

    __slots__ = ("data", "depth", "left", "place")

    def __init__(self, data: bytes, place: int = 0) -> None:
        """Begin at `place`."""
        self.data = data
        self.place = place
        self.left = VALUES_MAX
        self.depth = 0

    def take(self, size: int) -> bytes:
        """Return the next bytes."""
        end = self.place + size
        if size < 0 or end > len(self.data):
            raise MalformedRequest(f"its Avro ends in the middle of a value (byte {self.place})")
        found = self.data[self.place : end]
        self.place = end
        return found

    def long(self) -> int:
        """Return the next whole number."""
        number = shift = 0
        data, place = self.data, self.place
        while True:
            if place >= len(data) or shift >= 7 * LONG_BYTES_MAX:
                raise MalformedRequest(f"its Avro has no whole number at byte {self.place}")
            byte = data[place]
            place += 1
            number |= (byte & 127) << shift
            if byte < 128:
                break
            shift += 7
        self.place = place
        return (number >> 1) ^ -(number & 1)

    def count(self) -> int:
        """Return how many items the next block has."""
        count = self.long()
        if count < 0:  # then its size in bytes stands behind it
            count = -count
            self.long()
        self.left -= count
        if self.left < 0:
            raise MalformedRequest(f"its Avro has more than {VALUES_MAX} items in arrays and maps")
        return count


Decoder = Callable[[Reading], Any]


class AvroSchema(NamedTuple):
    """A schema that can be read with. `fields`: types of a record's fields by name, and `records`:
    those of the records among them."""

    decode: Decoder
    type: SourceType
    fields: dict[str, SourceType]
    records: dict[str, dict[str, SourceType]]


def read_schema(text: str) -> AvroSchema:
    """Return what reads messages of a schema. Raises MalformedRequest."""
    if len(text) > SCHEMA_CHARACTERS_MAX:
        raise MalformedRequest(f"its schema has {len(text)} characters")
    try:
        schema = json.loads(text)
        made = _Schemas()
        decode, kind = made.node(schema, "", 0)
        branch = _record_in(schema)
        fields = made.fields_of(branch)
        records = {
            str(field["name"]): made.fields_of(_record_in(field.get("type")))
            for field in (branch or {}).get("fields", ())
        }
    except MalformedRequest:
        raise
    except (ValueError, TypeError, LookupError, AttributeError, RecursionError) as error:
        raise MalformedRequest(f"its schema is none of Avro: {error!r:.200}") from error
    return AvroSchema(decode, kind, fields, records)


def decode(schema: AvroSchema, data: bytes, place: int = 0) -> Any:
    """Return the value of a message. Raises MalformedRequest."""
    reading = Reading(data, place)
    try:
        value = schema.decode(reading)
    except RecursionError as error:
        raise MalformedRequest("its Avro is nested too deeply") from error
    if reading.place != len(data):
        raise MalformedRequest(
            f"its Avro ends at byte {reading.place}, and {len(data) - reading.place} more follow"
        )
    return value


def column_name(field: dict[str, Any]) -> str:
    """Return the name of the column that a field is of: ours say it where Avro has no room for
    it."""
    said = field.get("leasehold.column")
    return said if isinstance(said, str) else str(field["name"])


def _record_in(schema: Any) -> dict[str, Any] | None:
    """Return the record that a schema is, or the one that its union with null has."""
    if isinstance(schema, list):
        found = [each for each in map(_record_in, schema) if each is not None]
        return found[0] if len(found) == 1 else None
    if isinstance(schema, str):
        return None if schema in _PRIMITIVE else {"type": "record", "named": schema}
    return schema if isinstance(schema, dict) and schema.get("type") == "record" else None


class _Schemas:
    """The named types of a schema, of which each may be referred to behind its definition."""

    def __init__(self) -> None:
        self._decoders: dict[str, tuple[Decoder, SourceType]] = {}
        self._fields: dict[str, dict[str, SourceType]] = {}
        self._names: dict[int, str] = {}

    def fields_of(self, record: dict[str, Any] | None) -> dict[str, SourceType]:
        """Return the types of a record's fields by the names of their columns."""
        if record is None:
            return {}
        name = record.get("named") or self._names.get(id(record), "")
        found = self._fields.get(str(name))
        if found is None:
            found = next((f for n, f in self._fields.items() if n.endswith(f".{name}")), {})
        return found

    def node(self, schema: Any, space: str, depth: int) -> tuple[Decoder, SourceType]:
        if depth > DEPTH_MAX:
            raise MalformedRequest("its schema is nested too deeply")
        if isinstance(schema, list):
            return self._union(schema, space, depth)
        if isinstance(schema, str):
            if schema in _PRIMITIVE:
                return _PRIMITIVE[schema], SourceType(_KINDS[schema])
            name = schema if "." in schema or not space else f"{space}.{schema}"
            return self._decoders[name if name in self._decoders else schema]
        kind = schema["type"]
        if not isinstance(kind, str) or kind not in _KINDS:
            return self.node(kind, space, depth + 1)
        decoder, items = self._made(kind, schema, space, depth)
        if kind == "record":
            return self._decoders[_full_name(schema, space)]
        return decoder, _type_of(kind, schema, items)

    def _made(
        self, kind: str, schema: dict[str, Any], space: str, depth: int
    ) -> tuple[Decoder, SourceType | None]:
        if kind == "record":
            return self._record(schema, space, depth), None
        if kind == "array":
            decoder, items = self.node(schema["items"], space, depth + 1)
            return _array(decoder), items
        if kind == "map":
            decoder, _ = self.node(schema["values"], space, depth + 1)
            return _map(decoder), None
        if kind in _PRIMITIVE:
            return _PRIMITIVE[kind], None
        if kind == "enum":
            made: Decoder = _enum([str(symbol) for symbol in schema["symbols"]])
        else:
            size = int(schema["size"])
            made = lambda reading: reading.take(size)  # noqa: E731 - one of several makers
        self._decoders[_full_name(schema, space)] = made, _type_of(kind, schema, None)
        return made, None

    def _record(self, schema: dict[str, Any], space: str, depth: int) -> Decoder:
        name = _full_name(schema, space)
        self._names[id(schema)] = name
        fields: list[tuple[str, Decoder]] = []

        def read(reading: Reading) -> dict[str, Any]:
            reading.depth += 1
            if reading.depth > DEPTH_MAX:
                raise MalformedRequest("its Avro is nested too deeply")
            value = {field: decode(reading) for field, decode in fields}
            reading.depth -= 1
            return value

        self._decoders[name] = read, SourceType(STRUCT, _meaning(schema) or name)
        types: dict[str, SourceType] = {}
        for field in schema["fields"]:
            decoder, kind = self.node(field["type"], name.rpartition(".")[0], depth + 1)
            column = column_name(field)
            types[column] = kind
            fields.append((column, decoder))
        self._fields[name] = types
        return read

    def _union(self, schemas: list[Any], space: str, depth: int) -> tuple[Decoder, SourceType]:
        branches = [self.node(each, space, depth + 1) for each in schemas]
        decoders = [decoder for decoder, _ in branches]

        def read(reading: Reading) -> Any:
            branch = reading.long()
            if not 0 <= branch < len(decoders):
                raise MalformedRequest(f"its Avro names branch {branch} of {len(decoders)}")
            return decoders[branch](reading)

        kinds = [kind for each, (_, kind) in zip(schemas, branches, strict=True) if each != "null"]
        return read, kinds[0] if len(kinds) == 1 else SourceType()


def _full_name(schema: dict[str, Any], space: str) -> str:
    name = str(schema["name"])
    space = str(schema.get("namespace", space))
    return name if "." in name or not space else f"{space}.{name}"


def _meaning(schema: dict[str, Any]) -> str:
    said = schema.get("connect.name")
    return said if isinstance(said, str) else ""


def _type_of(kind: str, schema: dict[str, Any], items: SourceType | None) -> SourceType:
    logical = schema.get("logicalType")
    name = _meaning(schema) or (_LOGICAL.get(logical, "") if isinstance(logical, str) else "")
    parameters = schema.get("connect.parameters")
    scale = schema.get("scale")
    if scale is None and isinstance(parameters, dict):
        scale = parameters.get("scale")
    if scale is None and logical == "decimal":
        scale = 0
    return SourceType(_KINDS[kind], name, scale_of(scale), items)


def _boolean(reading: Reading) -> bool:
    return reading.take(1) != b"\x00"


def _bytes(reading: Reading) -> bytes:
    return reading.take(reading.long())


def _string(reading: Reading) -> str:
    try:
        return reading.take(reading.long()).decode()
    except UnicodeDecodeError as error:
        raise MalformedRequest("its Avro has a text that is not UTF-8") from error


def _array(decode: Decoder) -> Decoder:
    def read(reading: Reading) -> list[Any]:
        found: list[Any] = []
        while count := reading.count():
            found += [decode(reading) for _ in range(count)]
        return found

    return read


def _map(decode: Decoder) -> Decoder:
    def read(reading: Reading) -> dict[str, Any]:
        found: dict[str, Any] = {}
        while count := reading.count():
            for _ in range(count):
                name = _string(reading)
                found[name] = decode(reading)
        return found

    return read


def _enum(symbols: list[str]) -> Decoder:
    def read(reading: Reading) -> str:
        place = reading.long()
        if not 0 <= place < len(symbols):
            raise MalformedRequest(f"its Avro names symbol {place} of {len(symbols)}")
        return symbols[place]

    return read


_PRIMITIVE: Final[dict[str, Decoder]] = {
    "null": lambda reading: None,
    "boolean": _boolean,
    "int": Reading.long,
    "long": Reading.long,
    "float": lambda reading: _FLOAT.unpack(reading.take(4))[0],
    "double": lambda reading: _DOUBLE.unpack(reading.take(8))[0],
    "bytes": _bytes,
    "string": _string,
}
