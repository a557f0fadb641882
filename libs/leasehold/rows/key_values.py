"""Row operation → key-value operations, by the element states of the version it was made under.

The one function behind T0: the master composes after-images with it, every node's store applies
with it, the models explore it and the checker is written against it. Source: F1's key-value form
and state table as restated in the project's schema-change design.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, NamedTuple

from leasehold.catalog.descriptor import Descriptor
from leasehold.catalog.elements import Moment
from leasehold.catalog.states import DELETED, WRITTEN, State
from leasehold.model.keys import Key
from leasehold.model.records.events import Image
from leasehold.model.records.log import ChangeKind
from leasehold.rows.defaults import Draw, default_of
from leasehold.rows.generated import derive
from leasehold.rows.index_entries import entries_kept

_FILL: Final = ChangeKind.FILL  # a member of an enum costs as much as a call


class EntryChange(NamedTuple):
    """One index entry to remove and/or put, as `entries.Entry`."""

    index_id: int
    remove: Key | None
    put: Key | None


class KeyValues(NamedTuple):
    """What one row operation does to the pairs of its row.

    `put`: column pairs to write; `delete`: element ids whose pair is removed; `exists`: the row's
    own pair afterwards; `entries`: index entries to change.
    """

    put: Mapping[int, Any]
    delete: tuple[int, ...]
    exists: bool
    entries: tuple[EntryChange, ...]


def compose(
    descriptor: Descriptor,
    kind: ChangeKind,
    before: Image | None,
    changed: Image,
    moment: Moment | None = None,
    draw: Draw | None = None,
) -> Image:
    """The after-image of an insert, update or fill under `descriptor` (T0), without NULL pairs.
    `moment`: as of when a new row's defaults are computed; None where they are known. `draw`:
    numbers for what draws them from a sequence and has none yet.

    Columns that the version can't see keep the pairs they have. ⚠ A write-only or public required
    column that has no pair yet gets its default, on any insert *and any update*: otherwise a row
    written after the fence would stay without its pair when the column becomes public.
    """
    image: dict[int, Any] = {} if before is None else dict(before)
    if kind is _FILL:
        for element_id, value in changed.items():
            if image.get(element_id) is None:
                image[element_id] = value
    else:
        image.update(changed)
    for column in descriptor.defaulted:
        if image.get(column.element_id) is not None:
            continue
        # An explicit NULL in a public column is a writer's own choice; only a pair that nobody
        # could have written takes the default. Once it is filled, a lacking pair is a NULL.
        unwritten = column.state is State.WRITE_ONLY and not column.filled
        if column.element_id not in changed and (
            before is None or not column.nullable or unwritten
        ):
            # ⚠ A row from before the column has its default as of when it was added, whoever is
            # first to write it: the backfill or an update.
            at = moment if before is None else column.moment or moment
            image[column.element_id] = default_of(descriptor, column, image, at, draw)
    if descriptor.has_derived:  # from what the defaults have put, too
        derive(descriptor, before, image)
    if None in image.values():
        return {element_id: value for element_id, value in image.items() if value is not None}
    return image


def entries(
    descriptor: Descriptor, before: Image | None, after: Image | None
) -> tuple[EntryChange, ...]:
    """Index entries that an operation touches under `descriptor`.

    delete-only: the old entry goes when the row or its key goes. write-only: also the new entry
    is put, ⚠ even when the key did not change, since the row may still lack it. public: the row
    has its entry, so an unchanged key touches nothing. A row that leaves the index's predicate
    goes, one that enters it comes.
    """
    changes: list[EntryChange] = []
    for index, entry_of in entries_kept(descriptor):
        old = None if before is None else entry_of(before)
        new = None if after is None else entry_of(after)
        remove = old if old != new else None
        put = None
        if new is not None and index.state in WRITTEN:
            put = new if old != new or index.state is State.WRITE_ONLY else None
        if remove is not None or put is not None:
            changes.append(EntryChange(index.element_id, remove, put))
    return tuple(changes)


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
