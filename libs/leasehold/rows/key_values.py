"""Row operation → key-value operations, by the element states of the version it was made under.

What T0 rests on: the master composes after-images with it, every node's store changes its entries
by it, the models explore it and the checker is written against it. Source: F1's key-value form and
state table as restated in the project's schema-change design.
"""

from __future__ import annotations

from typing import Any, Final, NamedTuple

from leasehold.catalog.descriptor import Descriptor
from leasehold.catalog.elements import CommitContext
from leasehold.catalog.states import WRITTEN, State
from leasehold.model.keys import Key
from leasehold.model.records.events import Image
from leasehold.model.records.log import ChangeKind
from leasehold.rows.defaults import Draw, default_of
from leasehold.rows.generated import derive
from leasehold.rows.index_entries import entries_kept

_BACKFILL: Final = ChangeKind.BACKFILL  # a member of an enum costs as much as a call


class EntryChange(NamedTuple):
    """The change of one index's entry: `remove` and `put` are entries as `index_entries` makes
    them."""

    index_id: int
    remove: Key | None
    put: Key | None


def compose(
    descriptor: Descriptor,
    kind: ChangeKind,
    before: Image | None,
    changed: Image,
    context: CommitContext | None = None,
    draw: Draw | None = None,
) -> Image:
    """Return the after-image of an insert, update or fill under `descriptor` (T0), without NULL
    pairs. A new row's defaults are computed as of `context`; None where they are known. `draw`
    gives numbers to what draws them from a sequence and has none yet.

    Columns that the version can't see keep the pairs they have. ⚠ A write-only or public required
    column that has no pair yet gets its default, on any insert *and any update*: otherwise a row
    written after the fence would stay without its pair when the column becomes public. A new row
    has what every row has at once.
    """
    image: dict[int, Any] = {} if before is None else dict(before)
    if kind is _BACKFILL:
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
            at = context if before is None else column.moment or context
            image[column.element_id] = default_of(descriptor, column, image, at, draw)
    if before is None:
        for column in descriptor.at_once:
            assert column.missing is not None, column
            image[column.element_id] = column.missing.value
    if descriptor.has_derived:  # from what the defaults have put, too
        derive(descriptor, before, image)
    if None in image.values():
        return {element_id: value for element_id, value in image.items() if value is not None}
    return image


def entries(
    descriptor: Descriptor, before: Image | None, after: Image | None
) -> tuple[EntryChange, ...]:
    """Return the index entries that an operation touches under `descriptor`.

    delete-only: the old entry goes when the row or its key goes. write-only: also the new entry is
    put, ⚠ even when the key did not change, since the row may still lack it. public: the row has
    its entry, so an unchanged key touches nothing. A row that leaves the index's predicate goes,
    one that enters it comes.
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
