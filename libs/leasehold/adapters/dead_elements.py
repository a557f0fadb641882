"""Which elements of a table are dead: left over on purpose, seen by nobody any more."""

from __future__ import annotations

from collections.abc import Iterable

from leasehold.schema.descriptor import Descriptor


def element_ids_of(descriptor: Descriptor) -> frozenset[int]:
    columns = (column.element_id for column in descriptor.columns)
    return frozenset((*columns, *(index.element_id for index in descriptor.indexes)))


def dead_elements(
    versions: Iterable[Descriptor], min_version: int, collected: frozenset[int]
) -> frozenset[int]:
    """Ids that only kept versions below `min_version` name, or none but `collected` ones did.

    No operation can run under those versions any more (D5), so from that log position on no node
    reads or writes such a pair; each node removes it physically at its own pace. Element ids are
    never used again, so a dead id stays dead.
    """
    kept = tuple(versions)
    newest = max((descriptor.version for descriptor in kept), default=0)
    live: set[int] = set()
    named: set[int] = set(collected)
    for descriptor in kept:
        ids = element_ids_of(descriptor)
        named |= ids
        # Never past the newest (D5): a wrong min version must not make a whole table dead.
        if descriptor.version >= min(min_version, newest):
            live |= ids
    return frozenset(named - live)


def needed_elements(versions: Iterable[Descriptor], kept_from: int) -> frozenset[int]:
    """Ids that somebody may still read as of an LSN from `kept_from` on: those of the newest
    version, and of each that was current until later than that. Of one table, oldest first."""
    kept = tuple(versions)
    needed: set[int] = set()
    for descriptor, after in zip(kept, (*kept[1:], None), strict=True):
        if after is None or after.since_lsn > kept_from:
            needed |= element_ids_of(descriptor)
    return frozenset(needed)
