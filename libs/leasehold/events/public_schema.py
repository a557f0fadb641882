"""Version events as everybody may read them: one self-describing JSON object each. PURE.

`encode_event` gives the value of a record on the versions topics; `public_reading` has what
Leasehold's own readers make of it. The fields are described in services/examples/DESIGN.md: they
are a promise to programs in any language, so names are added and never changed. Elements travel
with all that their wire form holds, so that nothing has to be told twice when an element learns
something new.

An event must always fit a Kafka record, or the changefeed could publish nothing after it. Names and
states of 1,000 columns are small; defaults, expressions and what repeats them may not be. What does
not fit is left out and `left_out` says what: the derived, and of the told at last long texts.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

from leasehold.catalog.descriptor import Descriptor, from_wire
from leasehold.catalog.edits import Kind
from leasehold.catalog.element_forms import derived_to_wire
from leasehold.catalog.enum_types import as_called, enums_of
from leasehold.events.avro_schema import avro_schema
from leasehold.events.json_schema import json_schema
from leasehold.events.public_missing import tell_missing, tell_value
from leasehold.events.public_reading import FORMAT, PLACES, WITHOUT
from leasehold.events.version_diff import diff, element_words, public_diff
from leasehold.model import byte_limits
from leasehold.model.records.events import VersionEvent

CONTENT_TYPE: Final = "application/json"
EVENT_BYTES_MAX: Final = byte_limits.EVENT
"""Half of what a record may be: headers, key and the batch around it have room whatever happens."""
LEFT_OUT_BYTES_MAX: Final = 256
"""Room for the braces and for saying what was left out."""
TEXT_BYTES_MAX: Final = 256
"""Longest default or expression that is told when an event would not fit."""

_NOT_AS_IT_IS: Final = frozenset(
    {"id", "name", "version", "modified_us", "alias", *PLACES.values()},
)
"""Fields of the wire form that have other names in the event, or stand in it already."""


def encode_event(event: VersionEvent) -> bytes:
    """Return one JSON object in UTF-8, of at most EVENT_BYTES_MAX bytes."""
    descriptor = from_wire(event.body)
    told = _told(event, descriptor)
    parts = _parts(told)
    left_out = []
    if _size(parts) > EVENT_BYTES_MAX:
        _cut_long_texts(told)
        parts = _parts(told)
        left_out.append("long texts")
    assert _size(parts) <= EVENT_BYTES_MAX, "1,000 columns of bounded names and texts fit"
    for name, derive in _DERIVED.items():
        part = _parts({name: derive(event, _shown(descriptor))})
        if _size(parts) + _size(part) > EVENT_BYTES_MAX:
            part = _parts({name: None})
            left_out.append(name)
        parts += part
    parts += _parts({"left_out": left_out})
    return b"{" + b",".join(parts) + b"}"


def _told(event: VersionEvent, descriptor: Descriptor) -> dict[str, Any]:
    body = event.body
    return {
        "format": FORMAT,
        "table": event.name,
        "table_id": event.table_id,
        "version": event.version,
        "former_name": descriptor.alias or None,
        "lsn": event.lsn,
        "commit_us": event.commit_us,
        **{name: value for name, value in body.items() if name not in _NOT_AS_IT_IS},
        "elements": _elements(descriptor, body),
        "job": {"id": event.job_id, "to": event.step, **event.job} if event.job_id else None,
    }


_DERIVED: Final[Mapping[str, Callable[[VersionEvent, Descriptor], dict[str, Any]]]] = {
    "diff": lambda event, after: public_diff(event.version - 1, diff(_before(event), after)),
    "avro": lambda _event, after: avro_schema(after),
    "json_schema": lambda _event, after: json_schema(after),
}
"""What follows from the elements, of this event and of the one before."""


def _parts(fields: Mapping[str, Any]) -> list[bytes]:
    """Return `"name":value` of each field."""
    return [f'"{name}":{_json(value)}'.encode() for name, value in fields.items()]


def _json(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, allow_nan=False, separators=(",", ":"))


def _size(parts: Sequence[bytes]) -> int:
    return sum(map(len, parts)) + len(parts) + LEFT_OUT_BYTES_MAX


def _shown(descriptor: Descriptor) -> Descriptor:
    """Return a table as people read it, with the names of enum types for their numbers."""
    return as_called(descriptor, enums_of(descriptor))


def _before(event: VersionEvent) -> Descriptor | None:
    before = before_event(event)
    return None if before is None else _shown(before)


def before_event(event: VersionEvent) -> Descriptor | None:
    """Return the version before, from the edits that led away from it; None for the first."""
    if event.version == 1:
        return None
    body = dict(event.body)
    for kind, element_id, was, _ in event.edits:
        if kind == Kind.TABLE:
            if was is None:
                return None
            body |= was
            continue
        position = PLACES[Kind(kind)]
        others = [element for element in body.get(position, ()) if element["id"] != element_id]
        if was is not None and was.get("missing"):
            # An edit doesn't number the version that it makes; the element as it stands does.
            is_now = next((e for e in body[position] if e["id"] == element_id), was)
            was = {**was, "missing": is_now.get("missing") or was["missing"]}
        body[position] = sorted(others if was is None else [*others, was], key=lambda e: e["id"])
    return from_wire({**body, "version": event.version - 1})


def _elements(descriptor: Descriptor, body: Mapping[str, Any]) -> list[dict[str, Any]]:
    elements, shown = [], _shown(descriptor)
    for kind, position in PLACES.items():
        for wire in sorted(body.get(position, ()), key=_place_of):
            element = shown.element(wire["id"])
            assert element is not None, wire
            told = {"id": wire["id"], "kind": kind.value, **wire}
            if kind is Kind.COLUMN:
                told["default"] = tell_value(wire["default"], wire)
                missing = wire.get("missing") or None
                told["missing"] = missing and tell_missing(missing, wire)
                column = descriptor.by_id[wire["id"]]
                told["generated"] = None
                if column.derived is not None and column.derived.generated:
                    # Its text is told once, by a name that people look for.
                    told["generated"] = column.derived.expression
                    told["derived"] = derived_to_wire(column.derived._replace(expression=""))
            told["definition"] = element_words(shown, element)
            elements.append(told)
    return elements


def _place_of(wire: Mapping[str, Any]) -> tuple[int, int]:
    """Return where an element stands among those of its kind: columns as a query sees them."""
    return wire.get("ordinal") or wire["id"], wire["id"]


def _cut_long_texts(told: Mapping[str, Any]) -> None:
    """Leave long texts out: no reader of rows needs them; whoever does asks a node."""
    for element in told["elements"]:
        for name in ("default", "default_expression", "generated", *WITHOUT, "definition"):
            if _is_long(element.get(name)):
                element[name] = None
        # A part of an index would be another index.
        texts = [name for name in WITHOUT if name in element]
        if any(element[name] is None for name in texts):
            element |= dict.fromkeys(texts)
    if told["job"] is not None and _is_long(told["job"].get("sql")):
        told["job"]["sql"] = None


def _is_long(value: Any) -> bool:
    texts = value if isinstance(value, list | tuple) else [value]
    return sum(len(t.encode()) for t in texts if isinstance(t, str)) > TEXT_BYTES_MAX
