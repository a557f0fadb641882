"""The type that a foreign event says a field has: by a schema of Kafka Connect, by one of Avro, or
not at all.

Both kinds of schema are read into the same `SourceType`, whose names are those of Kafka Connect and
Debezium, so that what follows knows one vocabulary.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, NamedTuple

ANY: Final = "any"
"""Where nothing says what a value is: plain JSON, and unions of several types."""
BYTES: Final = "bytes"
STRUCT: Final = "struct"
DECIMAL: Final = "org.apache.kafka.connect.data.Decimal"
VARIABLE_DECIMAL: Final = "io.debezium.data.VariableScaleDecimal"
DATE: Final = "io.debezium.time.Date"
MILLI_TIMESTAMP: Final = "io.debezium.time.Timestamp"
MICRO_TIMESTAMP: Final = "io.debezium.time.MicroTimestamp"
NANO_TIMESTAMP: Final = "io.debezium.time.NanoTimestamp"
MILLI_TIME: Final = "io.debezium.time.Time"
MICRO_TIME: Final = "io.debezium.time.MicroTime"
NANO_TIME: Final = "io.debezium.time.NanoTime"
FIELDS_MAX: Final = 2_000
SCALE_MAX: Final = 20_000


class SourceType(NamedTuple):
    """The type of a field. `kind`: Connect's (`int32`, `string`, `struct` …), or ANY. `name`: the
    meaning, "" = none but the kind's. `scale`: digits behind a decimal's point. `items`: of an
    array. `in_json`: bytes are Base64."""

    kind: str = ANY
    name: str = ""
    scale: int | None = None
    items: SourceType | None = None
    in_json: bool = False


UNKNOWN: Final = SourceType(in_json=True)
"""Of a field in JSON that has no schema."""
Fields = Mapping[str, SourceType]
NO_FIELDS: Final[Fields] = {}


def connect_type(schema: Any) -> SourceType:
    """Return the type of a schema of Connect as its JSON converter writes it; ANY of what is
    none."""
    if not isinstance(schema, dict):
        return UNKNOWN
    kind, name = schema.get("type"), schema.get("name")
    parameters = schema.get("parameters")
    scale = parameters.get("scale") if isinstance(parameters, dict) else None
    return SourceType(
        kind if isinstance(kind, str) else ANY,
        name if isinstance(name, str) else "",
        scale_of(scale),
        connect_type(schema.get("items")) if kind == "array" else None,
        in_json=True,
    )


def connect_fields(schema: Any) -> dict[str, Any]:
    """Return the schemas of a struct's fields by name; {} of what is no struct."""
    fields = schema.get("fields") if isinstance(schema, dict) else None
    if not isinstance(fields, list):
        return {}
    return {
        field["field"]: field
        for field in fields[:FIELDS_MAX]
        if isinstance(field, dict) and isinstance(field.get("field"), str)
    }


def scale_of(value: Any) -> int | None:
    """Return a scale that is a number, or the text of one; None for what is no scale."""
    if isinstance(value, str) and len(value) <= 6 and value.lstrip("-").isdecimal():
        value = int(value)
    if type(value) is int and abs(value) <= SCALE_MAX:
        return value
    return None
