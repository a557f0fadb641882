"""What a SQL statement sees, and what of it is remembered where the level verifies it (T1): places
that a plan names become keys, ranges and tables of a read set."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from math import inf, nextafter
from typing import Any, Final, Protocol, TypeAlias
from zoneinfo import ZoneInfo

from leasehold.adapters.sqlite.as_of import SqlitePast
from leasehold.adapters.sqlite.snapshot import SqliteSnapshot
from leasehold.catalog.access import Access
from leasehold.catalog.descriptor import Descriptor
from leasehold.model.keys import Key
from leasehold.model.records.requests import ReadRange
from leasehold.replica.reads import Reads
from leasehold.replica.replay_log import Types
from leasehold.sql.binding.views import FindNamed, Named
from leasehold.sql.planning.plan import HasChanged, Lookup, Prepared
from leasehold.sql.planning.reads import Read
from leasehold.transaction.read_set import PRIMARY, ReadsSoFar
from leasehold.values.doubles import NAN
from leasehold.values.types import sort_key_of

INTEGER_MAX: Final = 2**63 - 1


Seen: TypeAlias = SqliteSnapshot | SqlitePast
"""What one statement sees: what is newest, or what was there at the transaction's LSN."""


class Preparing(Protocol):
    """The interface of `Plans.get`, as a session makes use of it."""

    def __call__(
        self,
        text: str,
        lookup: Lookup,
        types: Types = ...,
        own: frozenset[int] = ...,
        has_changed: HasChanged | None = ...,
        zone: ZoneInfo = ...,
        *,
        find_named: FindNamed = ...,
    ) -> Prepared: ...


def planned(
    plan_of: Preparing,
    text: str,
    types: Types,
    own: frozenset[int],
    reads: Reads,
    pin: Lookup | None,
    zone: ZoneInfo,
    access: Callable[[], Access | None],
) -> tuple[Seen, Prepared]:
    """Return a snapshot for a statement, which is the caller's to close, and its plan, under the
    versions that `pin` gives, else under the snapshot's. What is pinned comes first, so that what
    is newest has it, or is too new for it, which is found out; what an LSN has does not change.

    `access`: who may do what and which views there are, as the transaction has it by now, None: as
    the snapshot has it. Raises what `prepare` and `Reads.snapshot` raise."""

    def of_now(name: str) -> Named | None:
        known = access()
        if known is None:
            with _seen(reads) as newest:
                known = newest.access
        return known.find_named(name)

    if pin is not None and reads.snapshot_lsn is None:
        plan = plan_of(text, pin, types, own, None, zone, find_named=of_now)
        return _seen(reads), plan
    seen = _seen(reads)
    changed = seen.has_changed if isinstance(seen, SqlitePast) else None
    try:
        lookup = pin or seen.newest
        find = (access() or seen.access).find_named
        return seen, plan_of(text, lookup, types, own, changed, zone, find_named=find)
    except BaseException:
        seen.close()
        raise


def _seen(reads: Reads) -> Seen:
    snapshot = reads.snapshot()
    assert isinstance(snapshot, Seen), "on a store of this process"
    return snapshot


def gather(so_far: ReadsSoFar, plan: Prepared, reads: Iterable[Read]) -> None:
    """Add the places that a statement reads (`adapters/sqlite/reads.py`) to a read set."""
    tables = {descriptor.table_id: descriptor for descriptor in plan.tables.values()}
    for read in reads:
        table = tables[read.table_id]
        if not table.temporary:  # which nobody else changes
            _gather(so_far, table, read)


def _gather(so_far: ReadsSoFar, descriptor: Descriptor, read: Read) -> None:
    width = len(descriptor.primary_key)
    if read.index_id == PRIMARY and len(read.prefix) == width:
        so_far.key(descriptor, read.prefix)
    elif read.prefix or read.low is not None or read.high is not None:
        so_far.range(descriptor, range_of(descriptor, read))
    else:
        so_far.table(descriptor)


def gather_sought(
    so_far: ReadsSoFar, descriptor: Descriptor, sought: Iterable[tuple[int, Key]]
) -> None:
    """Add the keys that ON CONFLICT has looked for. One with a NULL meets none."""
    for index_id, key in sought:
        if None in key or descriptor.temporary:
            continue
        if index_id == PRIMARY:
            so_far.key(descriptor, key)
            continue
        index = next(i for i in descriptor.indexes if i.element_id == index_id)
        keyed = tuple(
            _keyed(descriptor, element, value)
            for element, value in zip(index.columns, key, strict=True)
        )
        so_far.range(descriptor, ReadRange(descriptor.read_name(index), keyed))


def _keyed(descriptor: Descriptor, element: int, value: Any) -> Any:
    key = sort_key_of(descriptor.by_id[element].type)
    return value if key is None else key(value)


def range_of(descriptor: Descriptor, read: Read) -> ReadRange:
    """Return a read as a range. Its bounds both belong to it; of a range only the lower one
    does."""
    by = ""
    if read.index_id != PRIMARY:
        index = next(i for i in descriptor.indexes if i.element_id == read.index_id)
        by = descriptor.read_name(index)
    low = () if read.low is None else (read.low,)
    after = None if read.high is None else behind(read.high)
    return ReadRange(by, read.prefix, low, () if after is None else (after,))


def behind(value: Any) -> Any:
    """Return the next value in the order of a key; None where there is none."""
    match value:
        case int():
            return value + 1 if value < INTEGER_MAX else None
        case float():
            return nextafter(value, inf) if value < inf else NAN
        case str():
            return value + "\0"
        case bytes():
            return value + b"\0"
    return None
