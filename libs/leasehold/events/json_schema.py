"""The public shape of a table at one version as a JSON Schema (draft 2020-12). PURE.

It describes a row as JSON requests and results carry it: column name → the JSON form of
`values/storage.py`. A column that is missing is NULL.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from leasehold.catalog.descriptor import Descriptor
from leasehold.catalog.elements import Column
from leasehold.events.version_diff import column_words
from leasehold.values.storage import to_json
from leasehold.values.types import INTEGER_BITS, TIMED, Type, element_of

DIALECT: Final = "https://json-schema.org/draft/2020-12/schema"
_TIME: Final = r"[0-9]{2}:[0-9]{2}:[0-9]{2}(\.[0-9]{6})?"
_CLOCK: Final = rf"[0-9]{{4}}-[0-9]{{2}}-[0-9]{{2}}T{_TIME}"
_INFINITE: Final = {"enum": ["infinity", "-infinity"]}

_FORMS: Final[Mapping[str, Mapping[str, Any]]] = {
    # JSON has no number for these three.
    "real": {"type": ["number", "string"], "pattern": "^(NaN|-?Infinity)$"},
    "double precision": {"type": ["number", "string"], "pattern": "^(NaN|-?Infinity)$"},
    "text": {"type": "string"},
    "varchar": {"type": "string"},
    "char": {"type": "string"},
    "numeric": {"type": "string", "pattern": r"^(-?[0-9]+(\.[0-9]+)?|NaN|-?Infinity)$"},
    "boolean": {"type": "boolean"},
    "bytea": {"type": "string", "pattern": r"^\\x([0-9a-f]{2})*$"},
    "date": {"type": "string", "anyOf": [{"format": "date"}, _INFINITE]},
    # `date-time` wants an offset, which a timestamp without a zone has not.
    "timestamp": {"type": "string", "pattern": f"^({_CLOCK}|-?infinity)$"},
    "timestamptz": {
        "type": "string",
        "anyOf": [{"format": "date-time", "pattern": rf"^{_CLOCK}\+00:00$"}, _INFINITE],
    },
    "time": {"type": "string", "pattern": rf"^{_TIME}$"},
    "timetz": {"type": "string", "pattern": rf"^{_TIME}[+-][0-9]{{2}}(:[0-9]{{2}}){{0,2}}$"},
    "interval": {"type": "string"},
    "inet": {"type": "string"},
    "cidr": {"type": "string"},
    "uuid": {"type": "string", "format": "uuid"},
    "json": {"type": "string", "contentMediaType": "application/json"},
    # Its text, which is one for each value: numbers keep their digits, a null is not NULL.
    "jsonb": {"type": "string", "contentMediaType": "application/json"},
}


def json_schema(descriptor: Descriptor) -> dict[str, Any]:
    columns = descriptor.by_name
    return {
        "$schema": DIALECT,
        "title": descriptor.name,
        "description": f"a row of table {descriptor.name}, version {descriptor.version}",
        "type": "object",
        "properties": {name: _property(column) for name, column in columns.items()},
        "required": [name for name, column in columns.items() if not column.nullable],
        "additionalProperties": False,
    }


def _property(column: Column) -> dict[str, Any]:
    form = _form(column.type)
    if column.nullable:
        form = _or_null(form)
    form["description"] = column_words(column)
    if column.default is not None:
        form["default"] = to_json(column.type, column.default)
    if column.generated:
        form["readOnly"] = True
    return form


def _or_null(form: dict[str, Any]) -> dict[str, Any]:
    plain = form["type"]
    made = {**form, "type": [*([plain] if isinstance(plain, str) else plain), "null"]}
    return {**made, "enum": [*form["enum"], None]} if "enum" in form else made


def _form(kind: Type) -> dict[str, Any]:
    if kind.name in INTEGER_BITS:
        limit = 1 << INTEGER_BITS[kind.name] - 1
        return {"type": "integer", "minimum": -limit, "maximum": limit - 1}
    element = element_of(kind)
    if element is not None:
        return {"type": "array", "items": _or_null(_form(element))}
    if kind.enum is not None:
        return {"type": "string", "enum": [label.text for label in kind.enum.labels]}
    form = dict(_FORMS[kind.name])
    if kind.length is not None and kind.name not in TIMED:
        form["maxLength"] = kind.length
    return form
