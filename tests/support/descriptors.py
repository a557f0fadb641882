"""Descriptors and rows as tests need them."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from leasehold.catalog.descriptor import Descriptor
from leasehold.catalog.states import State
from leasehold.events.rows import public_pairs
from leasehold.model.keys import Key
from leasehold.model.records.events import Image
from leasehold.values.storage import to_json


def with_state(descriptor: Descriptor, element_id: int, state: State) -> Descriptor:
    """Return the next version, with one element in another state (ABSENT takes it out)."""
    assert descriptor.element(element_id) is not None, element_id

    def moved(elements: tuple[Any, ...]) -> tuple[Any, ...]:
        return tuple(
            replace(e, state=state) if e.element_id == element_id else e
            for e in elements
            if e.element_id != element_id or state is not State.ABSENT
        )

    return replace(
        descriptor,
        version=descriptor.version + 1,
        columns=moved(descriptor.columns),
        indexes=moved(descriptor.indexes),
        checks=moved(descriptor.checks),
        foreign_keys=moved(descriptor.foreign_keys),
        modified_us=0,
        since_lsn=0,
    )


def row_json(descriptor: Descriptor, key: Key, values: Image) -> dict[str, Any]:
    """Return a row as JSON requests and results carry it: what its JSON Schema describes."""
    return {
        column.name: to_json(column.type, value)
        for column, value in public_pairs(descriptor, key, values)
    }
