"""What rows have in a column without an image of their own, as version events tell it. PURE.

`{"below": 3, "value": "A1"}` where it is one value for all; `{"below": 3, "computed": {…}}` where
it differs by row. The latter has no `value`: ⚠ a reader who knows the former alone stops there, and
takes no row for one that has NULL.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from leasehold.catalog.element_forms import MISSING_PARTS
from leasehold.values.doubles import stored_form
from leasehold.values.storage import to_json, to_storage
from leasehold.values.types import type_from_wire


def tell_missing(wire: Sequence[Any], kind: Mapping[str, Any]) -> dict[str, Any]:
    """Return the public form of a wire form, of a column whose type `kind` names."""
    below, value, *more = wire
    if len(wire) < MISSING_PARTS:
        told = {"below": below, "value": tell_value(value, kind)}
        return {**told, "at_once": True} if any(more) else told
    expression, of, sources = more[1]
    return {
        "below": below,
        "computed": {
            "expression": expression,
            **of,
            "sources": [
                {"id": e, "name": name, **own, "missing": said and tell_missing(said, own)}
                for e, name, own, said in sources
            ],
        },
    }


def read_missing(told: Mapping[str, Any], kind: Mapping[str, Any]) -> list[Any]:
    """Return the wire form that was told. Raises LookupError, TypeError, ValueError for what is
    none."""
    computed = told.get("computed")
    if computed is None:
        wire = [told["below"], read_value(told["value"], kind)]
        return [*wire, True] if told.get("at_once") else wire
    sources = [
        [
            *(source["id"], source["name"], _type_in(source)),
            source["missing"] and read_missing(source["missing"], source),
        ]
        for source in computed["sources"]
    ]
    said = [computed["expression"], _type_in(computed), sources]
    return [told["below"], None, False, said]


def _type_in(told: Mapping[str, Any]) -> dict[str, Any]:
    return {n: told[n] for n in ("type", "length", "precision", "scale") if n in told}


def tell_value(value: Any, kind: Mapping[str, Any]) -> Any:
    """Return a storage value of a column as JSON has it."""
    return to_json(type_from_wire(kind), value)


def read_value(value: Any, kind: Mapping[str, Any]) -> Any:
    """Return the storage value that was told."""
    named = type_from_wire(kind)
    if named.name == "double precision" and isinstance(value, str):
        return stored_form(float(value))  # earlier releases wrote inf
    return to_storage(named)(value)
