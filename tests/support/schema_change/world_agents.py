"""Agents of a world: they read its log, take leases and give them back (D1, D4)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from leasehold.lease.commands import NEVER_LATE, Acquire, OpenSession, Release
from leasehold.lease.ledger import ledger
from leasehold.lease.ledger.state import LedgerState
from leasehold.model.records.log import CatalogWrite, DescriptorWrite


@dataclass
class AgentInWorld:
    """Holds leases; `applied` is how much of the log its store has."""

    name: str
    session: int
    counter: int = 0
    applied: int = 0
    versions: dict[int, int] = field(default_factory=dict)  # table → newest its store has

    def act(
        self,
        choice: int,
        log: Sequence[tuple[CatalogWrite, ...]],
        state: LedgerState,
        run_id: str,
    ) -> list[tuple[int, int]]:
        """One of three things an agent does; the (table, version) that it acknowledges."""
        if self.counter == 0:
            ledger.apply(state, OpenSession(self.name, self.session), run_id)
        self.counter += 1
        if choice == 0:
            self._read(log)
        elif choice == 1:
            for table, version in self.versions.items():
                acquire = Acquire(self.session, NEVER_LATE, table, version)
                ledger.apply(state, acquire, run_id)
        else:
            return self._release(state, run_id)
        return []

    def _read(self, log: Sequence[tuple[CatalogWrite, ...]]) -> None:
        if self.applied < len(log):
            for write in log[self.applied]:
                if isinstance(write, DescriptorWrite):
                    self.versions[write.table_id] = write.version
            self.applied += 1

    def _release(self, state: LedgerState, run_id: str) -> list[tuple[int, int]]:
        """D4: what is not the newest in its store is given back when its users are gone."""
        old = [x for x in state.held(self.session) if x.version < self.versions.get(x.table, 0)]
        for lease in old:
            ledger.apply(state, Release(self.session, NEVER_LATE, *lease), run_id)
        return [(lease.table, lease.version + 1) for lease in old]
