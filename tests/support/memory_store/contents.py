"""What a store in memory holds: the key-value form as plain dictionaries and a set."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from leasehold.adapters.sqlite.dead_elements import brief_of, dead_elements
from leasehold.catalog.access import Access
from leasehold.catalog.descriptor import Descriptor
from leasehold.catalog.elements import Index
from leasehold.model.errors import Refused
from leasehold.model.keys import Key, order_of
from leasehold.model.ports import Row
from leasehold.model.records.events import Genids
from leasehold.model.records.log import KeySpan, LogPosition
from leasehold.model.records.requests import Outcome, ReadRange
from leasehold.rows.index_entries import entry_of

Entry = tuple[int, int, Key, Key]  # table id, index id, entry (key, included), primary key


class OldRow(NamedTuple):
    """What a row was from the LSN of its image up to just before `until`."""

    genids: Genids
    lsn: int
    until: int
    pairs: dict[int, Any]


class WaitingRange(NamedTuple):
    """A backfill by range that was noted: its version, and the run that was made of it (entry, key,
    LSN of the row), without what was merged; None: none was."""

    table_id: int
    version: int
    element_id: int
    span: KeySpan
    run: tuple[tuple[Key, Key, int], ...] | None = None

    def has(self, key: Key) -> bool:
        after, through = self.span
        place = order_of(key)
        return (not after or place > order_of(after)) and (
            not through or place <= order_of(through)
        )


@dataclass
class Contents:
    """Everything a store holds. `exists`: row → its genids and image LSN; `pairs`: (table, key,
    element) → value, with or without a row; `entries`: a set.

    Of the past: `old` rows by (table, key), oldest first, kept from `rows_lsn` on (None: none are);
    `emptied`: table → LSN of its last TRUNCATE; `written`: table → LSN of its last write; `times`:
    (LSN, commit time), where it does not just rise by 1 µs."""

    position: LogPosition = field(default_factory=LogPosition)
    exists: dict[tuple[int, Key], tuple[Genids, int]] = field(default_factory=dict)
    pairs: dict[tuple[int, Key], dict[int, Any]] = field(default_factory=dict)
    entries: set[Entry] = field(default_factory=set)
    outcomes: dict[bytes, Outcome] = field(default_factory=dict)
    descriptors: dict[tuple[int, int], Descriptor] = field(default_factory=dict)
    min_versions: dict[int, int] = field(default_factory=dict)
    jobs: dict[int, Any] = field(default_factory=dict)
    ledger_run: str = ""
    collected: dict[int, frozenset[int]] = field(default_factory=dict)  # ids, by table
    history_floor: int = 0
    dead: dict[int, frozenset[int]] = field(default_factory=dict)  # worked out from the catalog
    old: dict[tuple[int, Key], tuple[OldRow, ...]] = field(default_factory=dict)
    rows_lsn: int | None = None
    emptied: dict[int, int] = field(default_factory=dict)
    written: dict[int, int] = field(default_factory=dict)
    times: tuple[tuple[int, int], ...] = ()
    newest_lsn: int = 0  # applied, committed or not
    untimely: dict[bytes, Outcome] = field(default_factory=dict)
    access: Access = field(default_factory=Access)
    next_role_id: int = 0
    ranges: tuple[WaitingRange, ...] = ()
    failures: dict[tuple[int, int], tuple[Key, Refused]] = field(default_factory=dict)

    def copy(self) -> Contents:
        """Pairs of a row are replaced, never changed in place, so outer copies are enough."""
        return Contents(
            self.position,
            dict(self.exists),
            dict(self.pairs),
            set(self.entries),
            dict(self.outcomes),
            dict(self.descriptors),
            dict(self.min_versions),
            dict(self.jobs),
            self.ledger_run,
            dict(self.collected),
            self.history_floor,
            dict(self.dead),
            dict(self.old),
            self.rows_lsn,
            dict(self.emptied),
            dict(self.written),
            self.times,
            self.newest_lsn,
            dict(self.untimely),
            self.access,
            self.next_role_id,
            self.ranges,
            dict(self.failures),
        )

    def dead_elements(self, table_id: int) -> frozenset[int]:
        dead = self.dead.get(table_id)
        if dead is None:
            lowest = self.min_versions.get(table_id, 1)
            collected = self.collected.get(table_id, frozenset())
            versions = map(brief_of, self.versions(table_id))
            dead = dead_elements(versions, lowest, collected)
            self.dead[table_id] = dead
        return dead

    def versions(self, table_id: int) -> list[Descriptor]:
        """Kept ones, oldest first."""
        places = sorted(place for place in self.descriptors if place[0] == table_id)
        return [self.descriptors[place] for place in places]

    def row(self, table_id: int, key: Key) -> Row | None:
        stamp = self.exists.get((table_id, key))
        if stamp is None:
            return None
        dead = self.dead_elements(table_id)
        pairs = self.pairs.get((table_id, key), {})
        return Row({e: v for e, v in pairs.items() if e not in dead}, *stamp)

    def kept_from(self, table_id: int) -> int | None:
        """The LSN from which on a table's rows of the past are kept, None when none are."""
        if self.rows_lsn is None:
            return None
        return max(self.rows_lsn, self.history_floor, self.emptied.get(table_id, 0))

    def lsn_at(self, time_us: int) -> int:
        """Of the last commit at or before a time, 0 when that is no longer known."""
        before = [at for at in self.times if at[1] <= time_us]
        if not before:
            return 0
        lsn, commit_us = before[-1]
        after = [at[0] for at in self.times if at[0] > lsn]
        last = after[0] - 1 if after else self.newest_lsn
        return min(lsn + time_us - commit_us, last)

    def at(self, lsn: int) -> Contents:
        """Rows, pairs and entries as they were, with today's catalog and floors: each row from its
        image of then, each entry from its row."""
        then = self.copy()
        then.exists = {row: stamp for row, stamp in self.exists.items() if stamp[1] <= lsn}
        then.pairs = {row: self.pairs.get(row, {}) for row in then.exists}
        for row, versions in self.old.items():
            for old in versions:
                if old.lsn <= lsn < old.until:
                    assert row not in then.exists, "one version of a row is valid at a time"
                    then.exists[row] = (old.genids, old.lsn)
                    then.pairs[row] = old.pairs
        then.entries = set()
        return then

    def in_range(self, descriptor: Descriptor, index_id: int, part: ReadRange) -> Iterator[Key]:
        """Keys of rows in a range of the primary key (index id 0), or by their entry in an index,
        which is computed from the row."""
        index = descriptor.element(index_id) if index_id else None
        assert index is None or isinstance(index, Index)
        for table, key in self.exists:
            if table != descriptor.table_id:
                continue
            found: Key | None = key
            if index is not None:
                made = entry_of(descriptor, index)(self.pairs.get((table, key), {}))
                found = None if made is None else made[: len(index.columns)]
            if found is not None and within(found, part):
                yield key

    def key(self) -> tuple[Any, ...]:
        """Rows, pairs, entries and outcomes as one hashable value (catalog and position too)."""
        return (
            frozenset((row, frozenset(g.items()), lsn) for row, (g, lsn) in self.exists.items()),
            frozenset((row, e, v) for row, p in self.pairs.items() for e, v in p.items()),
            frozenset(self.entries),
            frozenset((i, repr(outcome)) for i, outcome in self.outcomes.items()),
            frozenset((i, repr(outcome)) for i, outcome in self.untimely.items()),
            frozenset(self.descriptors),
            frozenset(self.min_versions.items()),
            repr(sorted(self.jobs.items())),
            repr(self.position),
            self.ledger_run,
            repr(self.access.writes_since(Access())),
            repr(self.ranges),
        )


def within(key: Key, part: ReadRange) -> bool:
    width = len(part.equal)
    rest, low, high = order_of(key[width:]), order_of(part.low), order_of(part.high)
    return (
        key[:width] == part.equal
        and rest[: len(low)] >= low
        and (not high or rest[: len(high)] < high)
    )
