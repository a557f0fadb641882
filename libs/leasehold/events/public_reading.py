"""What Leasehold's own readers make of version events (`public_schema`). PURE.

Apart from what writes them: that computes defaults, for which it needs all of SQL's functions, and
who watches a cluster should not wait for those to be loaded.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any, Final

from leasehold.catalog.edits import Kind
from leasehold.catalog.element_forms import derived_from_wire, derived_to_wire
from leasehold.events.public_missing import read_missing, read_value
from leasehold.model.records.events import VersionEvent

FORMAT: Final = 1
"""Raised when an old reader would misread a new event; a name that is added needs no new one."""

WITHOUT: Final[Mapping[str, Any]] = {"expression": "", "expressions": (), "predicate": ""}
"""Expressions of elements; what readers make of one that was left out."""

PLACES: Final[Mapping[Kind, str]] = {
    Kind.COLUMN: "columns",
    Kind.INDEX: "indexes",
    Kind.CHECK: "checks",
    Kind.LOCK: "locks",
    Kind.FOREIGN_KEY: "foreign_keys",
}
"""Where a descriptor's wire form keeps its elements, in the order in which they are told."""

EVENTS_OWN: Final = frozenset(
    {
        *("format", "table", "table_id", "former_name", "lsn", "commit_us", "elements"),
        *("job", "diff", "avro", "json_schema", "left_out"),
    }
)
TOLD_BESIDE: Final = frozenset({"kind", "definition"})
"""Names of the event, and of an element in it, that the wire form has not."""


def decode_event(data: bytes) -> VersionEvent:
    """Return what `encode_event` was given, but for `edits`, which became the diff.

    Raises ValueError, TypeError or LookupError for anything else.
    """
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
            **{name: value for name, value in public.items() if name not in EVENTS_OWN},
            "id": public["table_id"],
            "name": public["table"],
            "modified_us": public["commit_us"],
            "alias": public["former_name"] or "",
            **{
                position: _wire_forms(public["elements"], kind) for kind, position in PLACES.items()
            },
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
        wire = {name: value for name, value in element.items() if name not in TOLD_BESIDE}
        if kind is Kind.COLUMN:
            wire["default"] = read_value(wire["default"], wire)
            missing = wire.get("missing")
            if missing:
                wire["missing"] = read_missing(missing, wire)
            wire["default_expression"] = wire.get("default_expression") or ""
            generated = wire.pop("generated", None)
            if generated is not None:
                derived = derived_from_wire(wire["derived"])
                wire["derived"] = derived_to_wire(derived._replace(expression=generated))
        for text, without in WITHOUT.items():
            if wire.get(text, without) is None:
                wire[text] = without
        found.append(wire)
    return sorted(found, key=lambda wire: int(wire["id"]))
