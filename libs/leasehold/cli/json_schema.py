"""The words in which JSON Schemas of what commands print are made. PURE."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, NamedTuple, TypeAlias

Schema: TypeAlias = Mapping[str, Any]
DIALECT: Final = "https://json-schema.org/draft/2020-12/schema"

TEXT: Final[Schema] = {"type": "string"}
INTEGER: Final[Schema] = {"type": "integer"}
NUMBER: Final[Schema] = {"type": "number"}
BOOLEAN: Final[Schema] = {"type": "boolean"}
ANYTHING: Final[Schema] = {}


def list_of(each: Schema) -> Schema:
    """Return the schema of an array."""
    return {"type": "array", "items": each}


def map_of(each: Schema) -> Schema:
    """Return the schema of an object whose names are not known."""
    return {"type": "object", "additionalProperties": each}


def maybe(found: Schema) -> Schema:
    """Return the schema of a value that may be null: it is not known, or there is none."""
    return {**found, "type": [found["type"], "null"]}


def record(**fields: Schema) -> Schema:
    """Return the schema of an object that has these names, and perhaps more."""
    return {"type": "object", "properties": fields, "required": list(fields)}


def with_field(found: Schema, name: str, field: Schema) -> Schema:
    """Return the schema of an object with one more name."""
    properties, required = {**found["properties"], name: field}, [*found["required"], name]
    return {**found, "properties": properties, "required": required}


def any_of(*forms: Schema) -> Schema:
    """Return the schema of a value that is as one of these says."""
    return {"anyOf": list(forms)}


class Form(NamedTuple):
    """What a command prints. `each_line`: a value on each line of output, else one in all."""

    schema: Schema
    each_line: bool = False
