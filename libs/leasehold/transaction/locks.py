"""Genids by lock: which locks an operation concerns, and what a row's genids say (Claim 8).

A row has one genid per lock that was ever written for it. Columns that have moved to a lock take
along what their old lock knew of writes up to the fence of the dual state: computed when it is
asked for, without touching rows.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TypeAlias

from leasehold.catalog.descriptor import Descriptor
from leasehold.catalog.elements import DEFAULT_LOCK, DEFAULT_LOCK_NAME
from leasehold.catalog.states import READABLE
from leasehold.model.errors import MalformedRequest
from leasehold.model.ids import genid_lsn
from leasehold.model.records.events import Genids
from leasehold.model.records.requests import ANY_GENID

Expected: TypeAlias = int | Mapping[str, int]
"""One genid for all that a request concerns, or one per lock by its name."""


def effective_genids(descriptor: Descriptor, genids: Genids) -> Genids:
    """A row's genid per lock, with what a lock takes over from the old one of its columns: all
    while both cover them, then what that one says of writes up to the fence. A later genid of the
    old lock says nothing of them: whoever wrote it has kept what it replaced (`carry_genids`)."""
    if not descriptor.moves_locks:
        return genids
    found = dict(genids)
    for target, source, fence in descriptor.lock_moves:
        known = found.get(source, 0)
        if genid_lsn(known) <= fence:
            found[target] = max(found.get(target, 0), known)
    for column in descriptor.columns:
        for target in column.locks[1:]:
            found[target] = max(found.get(target, 0), found.get(column.locks[0], 0))
    return found


def carry_genids(descriptor: Descriptor, genids: Genids, written: Iterable[int]) -> Genids:
    """Return what locks that are not `written` now are to keep of what they took over. ⚠ Once the
    old lock is written for another column's sake, its genid says no more when theirs was."""
    if not descriptor.moves_locks:
        return {}
    now = effective_genids(descriptor, genids)
    locks = [lock for lock in descriptor.locks if lock not in written]
    return {k: now[k] for k in locks if now.get(k, 0) != genids.get(k, 0)}


def covering_locks(descriptor: Descriptor, element_ids: Iterable[int]) -> tuple[int, ...]:
    """Ids of the locks that cover columns, both while one moves; key columns have none."""
    if not descriptor.row_locks:
        return (DEFAULT_LOCK,)
    keys = descriptor.primary_key
    columns = (descriptor.by_id[e] for e in element_ids if e not in keys)
    return tuple(sorted({lock for column in columns for lock in column.locks})) or (DEFAULT_LOCK,)


def lock_names(descriptor: Descriptor) -> dict[str, int]:
    """Locks that cover something at this version, by name."""
    names = {k.name: k.element_id for k in descriptor.row_locks if k.state in READABLE}
    return {DEFAULT_LOCK_NAME: DEFAULT_LOCK, **names}


def expected_of(descriptor: Descriptor, genids: Genids, locks: Iterable[int]) -> Expected:
    """What a request that concerns `locks` is to expect of a row as it was seen."""
    if not descriptor.row_locks:
        return genids[DEFAULT_LOCK]
    now = effective_genids(descriptor, genids)
    wanted = set(locks)
    names = lock_names(descriptor)
    return {name: now.get(lock, 0) for name, lock in names.items() if lock in wanted}


def agrees(
    descriptor: Descriptor, genids: Genids, expected: Expected, locks: Iterable[int]
) -> bool:
    """Whether the row, whose genids these are, is still the one that the request's sender has seen
    (T1).

    One number stands for the locks that the operation concerns, or for the whole row: genids only
    rise, so neither can be equal again once one of them was written. Raises MalformedRequest for a
    lock that does not exist."""
    if expected == ANY_GENID:
        return True
    if descriptor.one_lock and type(expected) is int:
        return genids.get(DEFAULT_LOCK, 0) == expected
    now = effective_genids(descriptor, genids)
    if isinstance(expected, int):
        return expected in (max(now.get(lock, 0) for lock in locks), max(now.values()))
    names = lock_names(descriptor)
    seen: dict[int, int] = {}
    for name, value in expected.items():
        if name not in names:
            raise MalformedRequest(
                f"table {descriptor.name!r} has no lock {name!r:.80}; it has {', '.join(names)}",
                table=descriptor.name,
            )
        seen[names[name]] = value
    # ⚠ Every lock that the operation concerns has to be named: a sender who read before the state
    # of both locks knows of one, and a writer after it sets only the other.
    return set(locks) <= seen.keys() and all(now.get(k, 0) == v for k, v in seen.items())
