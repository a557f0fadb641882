"""Tells which elements of a table are dead: left over on purpose, seen by nobody any more."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from leasehold.catalog.descriptor import Descriptor
from leasehold.catalog.states import State


class VersionBrief(NamedTuple):
    """What counts here of a descriptor."""

    version: int
    state: State
    since_lsn: int
    elements: frozenset[int]


def element_ids_of(descriptor: Descriptor) -> frozenset[int]:
    columns = (column.element_id for column in descriptor.columns)
    return frozenset((*columns, *(index.element_id for index in descriptor.indexes)))


def brief_of(descriptor: Descriptor) -> VersionBrief:
    return VersionBrief(
        descriptor.version, descriptor.state, descriptor.since_lsn, element_ids_of(descriptor)
    )


def dead_elements(
    versions: Iterable[VersionBrief], min_version: int, collected: frozenset[int]
) -> frozenset[int]:
    """Ids that only kept versions below `min_version` name, or none but `collected` ones did.

    No operation can run under those versions any more (D5), so from that log position on no node
    reads or writes such a pair; each node removes it physically at its own pace. Element ids are
    never used again, so a dead id stays dead.
    """
    kept = tuple(versions)
    newest = max((each.version for each in kept), default=0)
    live: set[int] = set()
    named: set[int] = set(collected)
    for each in kept:
        named |= each.elements
        # Never past the newest (D5): a wrong min version must not make a whole table dead.
        if each.version >= min(min_version, newest):
            live |= each.elements
    return frozenset(named - live)


def needed_elements(versions: Iterable[VersionBrief], kept_from: int) -> frozenset[int]:
    """Ids that somebody may still read as of an LSN from `kept_from` on: those of the newest
    version, and of each that was current until later than that. Of one table, oldest first."""
    kept = tuple(versions)
    needed: set[int] = set()
    for each, after in zip(kept, (*kept[1:], None), strict=True):
        if after is None or after.since_lsn > kept_from:
            needed |= each.elements
    return frozenset(needed)
