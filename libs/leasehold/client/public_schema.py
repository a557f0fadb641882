"""Version events as everybody may read them: one self-describing JSON object each. PURE.

`encode_event` gives the value of a record on the versions topics, `decode_event` what Leasehold's
own readers make of it. The fields are described in services/examples/DESIGN.md: they are a promise
to programs in any language, so names are added and never changed. Elements travel with all that
their wire form holds, so that nothing has to be told twice when an element learns something new.

An event must always fit a Kafka record, or the changefeed could publish nothing after it. Names and
states of 1,000 columns are small; defaults, expressions and what repeats them may not be. What does
not fit is left out, the derived before the told, and `left_out` says what.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from typing import Any, Final

from leasehold.client.public_schema_avro import avro_schema
from leasehold.client.public_schema_json import json_schema
from leasehold.client.version_diff import ElementChange, diff, element_words
from leasehold.model.records import VersionEvent
from leasehold.model.topics import MESSAGE_BYTES_MAX
from leasehold.schema.descriptor import Descriptor, from_wire
from leasehold.schema.edits import Kind
from leasehold.schema.types import Type, to_json, to_storage

FORMAT: Final = 1
"""Raised when an old reader would misread a new event; a name that is added needs no new one."""
CONTENT_TYPE: Final = "application/json"
EVENT_BYTES_MAX: Final = MESSAGE_BYTES_MAX // 2
"""Half of what a record may be: headers, key and the batch around it have room whatever happens."""
TEXT_BYTES_MAX: Final = 256
"""Longest default or expression that is told when an event would not fit."""

_PLACES: Final[Mapping[Kind, str]] = {
    Kind.COLUMN: "columns",
    Kind.INDEX: "indexes",
    Kind.CHECK: "checks",
    Kind.LOCK: "locks",
}
"""Where a descriptor's wire form keeps its elements, in the order in which they are told."""

_NOT_AS_IT_IS: Final = frozenset(
    {"id", "name", "version", "modified_us", "alias", *_PLACES.values()},
)
"""Fields of the wire form that have other names in the event, or stand in it already."""

_EVENTS_OWN: Final = frozenset(
    {
        *("format", "table", "table_id", "former_name", "lsn", "commit_us", "elements"),
        *("job", "diff", "avro", "json_schema", "left_out"),
    }
)
_TOLD_BESIDE: Final = frozenset({"kind", "definition"})
"""Names of the event, and of an element in it, that the wire form has not."""


# ------------------------------------------------------------------ out


def public_event(event: VersionEvent) -> dict[str, Any]:
    """Everything that there is to tell, as plain data that JSON has forms for."""
    body = event.body
    descriptor = from_wire(body)
    changes = diff(before_event(event), descriptor)
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
        "diff": public_diff(event.version - 1, changes),
        "avro": avro_schema(descriptor),
        "json_schema": json_schema(descriptor),
        "left_out": [],
    }


def public_diff(version: int, changes: Sequence[ElementChange]) -> dict[str, Any]:
    """What changed since `version`: a sentence per element, and the same for programs."""
    return {
        "from": version,
        "words": [str(change) for change in changes],
        "changes": [change.to_json() for change in changes],
    }


def before_event(event: VersionEvent) -> Descriptor | None:
    """The version before, from the edits that led away from it; None for the first."""
    if event.version == 1:
        return None
    body = {**event.body, "version": event.version - 1}
    for kind, element_id, was, _is_now in event.edits:
        if kind == Kind.TABLE:
            body |= was
            continue
        place = _PLACES[Kind(kind)]
        others = [element for element in body.get(place, ()) if element["id"] != element_id]
        body[place] = sorted(others if was is None else [*others, was], key=lambda e: e["id"])
    return from_wire(body)


def encode_event(event: VersionEvent) -> bytes:
    """One JSON object in UTF-8, of at most EVENT_BYTES_MAX bytes."""
    public = public_event(event)
    for leave_out in (_nothing, _renderings, _difference, _long_texts):
        leave_out(public)
        data = json.dumps(public, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
        encoded = data.encode()
        if len(encoded) <= EVENT_BYTES_MAX:
            break
    assert len(encoded) <= EVENT_BYTES_MAX, "1,000 columns of bounded names and texts fit"
    return encoded


def _elements(descriptor: Descriptor, body: Mapping[str, Any]) -> list[dict[str, Any]]:
    elements = []
    for kind, place in _PLACES.items():
        for wire in body.get(place, ()):
            element = descriptor.element(wire["id"])
            assert element is not None, wire
            told = {"id": wire["id"], "kind": kind.value, **wire}
            if kind is Kind.COLUMN:
                told["default"] = _told_default(wire)
            told["definition"] = element_words(descriptor, element)
            elements.append(told)
    return elements


def _told_default(wire: Mapping[str, Any]) -> Any:
    value = wire["default"]
    if isinstance(value, float) and not math.isfinite(value):
        return str(value)  # JSON has no number for it
    return to_json(Type(wire["type"], wire["length"]), value)


# ------------------------------------------------------------------ what does not fit


def _nothing(_public: dict[str, Any]) -> None:
    pass


def _renderings(public: dict[str, Any]) -> None:
    """They follow from the elements."""
    public |= {"avro": None, "json_schema": None}
    public["left_out"] += ["avro", "json_schema"]


def _difference(public: dict[str, Any]) -> None:
    """It follows from this event and the one before."""
    public["diff"] = None
    public["left_out"].append("diff")


def _long_texts(public: dict[str, Any]) -> None:
    """No reader of rows needs them; whoever does asks a node."""
    for element in public["elements"]:
        for name in ("default", "expression", "definition"):
            if _is_long(element.get(name)):
                element[name] = None
    if public["job"] is not None and _is_long(public["job"].get("sql")):
        public["job"]["sql"] = None
    public["left_out"].append("long texts")


def _is_long(value: Any) -> bool:
    return isinstance(value, str) and len(value.encode()) > TEXT_BYTES_MAX


# ------------------------------------------------------------------ in


def decode_event(data: bytes) -> VersionEvent:
    """What `encode_event` was given, but for `edits`, which became the diff.

    Raises ValueError, TypeError or LookupError for anything else."""
    public = json.loads(data)
    if public["format"] != FORMAT:
        raise ValueError(f"a version event of format {public['format']!r:.20}, {FORMAT} is known")
    job = dict(public["job"] or {})
    return VersionEvent(
        table_id=public["table_id"],
        name=public["table"],
        version=public["version"],
        lsn=public["lsn"],
        commit_us=public["commit_us"],
        body={
            **{name: value for name, value in public.items() if name not in _EVENTS_OWN},
            "id": public["table_id"],
            "name": public["table"],
            "modified_us": public["commit_us"],
            "alias": public["former_name"] or "",
            **{place: _wire_forms(public["elements"], kind) for kind, place in _PLACES.items()},
        },
        job_id=job.pop("id", 0),
        step=job.pop("to", ""),
        job=job,
    )


def _wire_forms(elements: Sequence[Mapping[str, Any]], kind: Kind) -> list[dict[str, Any]]:
    found = []
    for element in elements:
        if element["kind"] != kind.value:
            continue
        wire = {name: value for name, value in element.items() if name not in _TOLD_BESIDE}
        if kind is Kind.COLUMN:
            wire["default"] = _stored_default(wire)
        elif wire.get("expression", "") is None:
            wire["expression"] = ""
        found.append(wire)
    return found


def _stored_default(wire: Mapping[str, Any]) -> Any:
    value, kind = wire["default"], Type(wire["type"], wire["length"])
    if kind.name == "double precision" and isinstance(value, str):
        return float(value)
    return to_storage(kind)(value)
