"""All pairs that one row operation touches, pair by pair as F1 counts them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

from leasehold.catalog.descriptor import Descriptor
from leasehold.catalog.states import DELETED
from leasehold.model.records.events import Image
from leasehold.model.records.log import ChangeKind
from leasehold.rows.key_values import EntryChange, compose, entries


class KeyValues(NamedTuple):
    """What one row operation does to the pairs of its row.

    `put`: column pairs to write; `delete`: element ids whose pair is removed; `exists`: the row's
    own pair afterwards; `entries`: index entries to change.
    """

    put: Mapping[int, Any]
    delete: tuple[int, ...]
    exists: bool
    entries: tuple[EntryChange, ...]


def key_values(
    descriptor: Descriptor, kind: ChangeKind, before: Image | None, changed: Image
) -> KeyValues:
    """All pairs that one operation touches under `descriptor`, pair by pair as F1 counts them.

    `before` is the row's pairs now (None = no row); `changed` is what the writer set. A delete
    removes the pairs of the columns its version knows of; a column absent from its version keeps
    its pair, which is exactly how absent → public in one step makes an orphan.
    """
    if kind is ChangeKind.DELETE:
        gone = tuple(c.element_id for c in descriptor.columns if c.state in DELETED)
        return KeyValues({}, gone, False, entries(descriptor, before, None))
    after = compose(descriptor, kind, before, changed)
    known = before or {}
    put = {e: v for e, v in after.items() if known.get(e) != v or e not in known}
    delete = tuple(e for e in known if e not in after)
    return KeyValues(put, delete, True, entries(descriptor, before, after))
