"""What a store in memory holds: the key-value form as plain dictionaries and a set."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from leasehold.adapters.dead_elements import dead_elements
from leasehold.model.ports import Row
from leasehold.model.records import Genids, Key, LogPosition, Outcome
from leasehold.schema.descriptor import Descriptor, from_wire

Entry = tuple[int, int, Key, Key]  # table id, index id, entry (key, included), primary key


@dataclass
class Contents:
    """Everything a store holds. `exists`: row → its genids and image LSN; `pairs`: (table, key,
    element) → value, with or without a row; `entries`: a set."""

    position: LogPosition = field(default_factory=LogPosition)
    exists: dict[tuple[int, Key], tuple[Genids, int]] = field(default_factory=dict)
    pairs: dict[tuple[int, Key], dict[int, Any]] = field(default_factory=dict)
    entries: set[Entry] = field(default_factory=set)
    outcomes: dict[bytes, Outcome] = field(default_factory=dict)
    descriptors: dict[tuple[int, int], Any] = field(default_factory=dict)
    min_versions: dict[int, int] = field(default_factory=dict)
    jobs: dict[int, Any] = field(default_factory=dict)
    ledger_run: str = ""
    collected: dict[int, frozenset[int]] = field(default_factory=dict)  # ids, by table
    history_floor: int = 0
    dead: dict[int, frozenset[int]] = field(default_factory=dict)  # worked out from the catalog

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
        )

    def dead_elements(self, table_id: int) -> frozenset[int]:
        dead = self.dead.get(table_id)
        if dead is None:
            lowest = self.min_versions.get(table_id, 1)
            collected = self.collected.get(table_id, frozenset())
            dead = dead_elements(self.versions(table_id), lowest, collected)
            self.dead[table_id] = dead
        return dead

    def versions(self, table_id: int) -> list[Descriptor]:
        """Kept ones, oldest first."""
        bodies = [b for (t, _), b in sorted(self.descriptors.items()) if t == table_id]
        return list(map(from_wire, bodies))

    def row(self, table_id: int, key: Key) -> Row | None:
        stamp = self.exists.get((table_id, key))
        if stamp is None:
            return None
        dead = self.dead_elements(table_id)
        pairs = self.pairs.get((table_id, key), {})
        return Row({e: v for e, v in pairs.items() if e not in dead}, *stamp)

    def key(self) -> tuple[Any, ...]:
        """Rows, pairs, entries and outcomes as one hashable value (catalog and position too)."""
        return (
            frozenset((row, frozenset(g.items()), lsn) for row, (g, lsn) in self.exists.items()),
            frozenset((row, e, v) for row, p in self.pairs.items() for e, v in p.items()),
            frozenset(self.entries),
            frozenset((i, repr(outcome)) for i, outcome in self.outcomes.items()),
            frozenset(self.descriptors),
            frozenset(self.min_versions.items()),
            repr(sorted(self.jobs.items())),
            repr(self.position),
            self.ledger_run,
        )
