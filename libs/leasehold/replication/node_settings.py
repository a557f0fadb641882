"""The settings of a node: what it may be, and those of its parts."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

from leasehold.lease.agent.session import HolderLimits
from leasehold.replication.election import ElectionSettings
from leasehold.replication.fast_path.acks import FastAckSettings
from leasehold.replication.fast_path.log import FastLogSettings
from leasehold.replication.fast_path.own_appends import OwnAppendsSettings
from leasehold.replication.fast_path.requests import FastRequestSettings
from leasehold.replication.log.retention import DROPPED_MS
from leasehold.replication.master.schema_changes import SchemaSettings
from leasehold.replication.master.settings import MasterSettings


@dataclass(frozen=True, slots=True)
class NodeSettings:
    """What a node is told at its start. `candidate`: it may become master. `serving`: it answers
    reads, hence asks for coherency leases. `serves`: host:port of its snapshot server. `open_to`:
    a sentence on who is let in without being asked, "" = nobody. `release`: of this software, for
    whoever looks on. `disk_reserve_bytes`: see `DiskRoom`."""

    name: str
    candidate: bool = False
    serving: bool = True
    serves: str = ""
    open_to: str = ""
    release: str = ""
    disk_reserve_bytes: int = 0
    master: MasterSettings = field(default_factory=MasterSettings)
    election: ElectionSettings = field(default_factory=ElectionSettings)
    schema: SchemaSettings = field(default_factory=SchemaSettings)
    leases: HolderLimits = field(default_factory=HolderLimits)
    fast_acks: FastAckSettings = field(default_factory=FastAckSettings)
    fast_log: FastLogSettings = field(default_factory=FastLogSettings)
    own_appends: OwnAppendsSettings = field(default_factory=OwnAppendsSettings)
    fast_requests: FastRequestSettings = field(default_factory=FastRequestSettings)

    def with_session_ttl(self, session_ttl_ms: int) -> NodeSettings:
        """Return settings with one figure for both sides of the ledger: what its agent keeps to,
        and after which the master counts a session as dead (D7) and waits when the ledger has lost
        its state (D6)."""
        coordinator = self.schema.coordinator
        ledger = replace(coordinator.ledger, session_ttl_ms=session_ttl_ms)
        schema = replace(self.schema, coordinator=replace(coordinator, ledger=ledger))
        return replace(self, schema=schema, leases=HolderLimits.of_ttl(session_ttl_ms))

    def with_ledger_failover(self, on: bool) -> NodeSettings:
        """Return settings by which the master vouches for what extends sessions (D11): `on` where
        the ledger may be replaced by another one while it lives."""
        coordinator = self.schema.coordinator
        ledger = replace(coordinator.ledger, vouches=on)
        schema = replace(self.schema, coordinator=replace(coordinator, ledger=ledger))
        return replace(self, schema=schema)

    def with_column_images(self, on: bool) -> NodeSettings:
        """Return settings by which columns that follow others are told by images, or not."""
        return replace(self, schema=replace(self.schema, columns_by_images=on))

    def with_history(
        self, keep_ms: int, rows_ms: int, dropped_ms: int = DROPPED_MS
    ) -> NodeSettings:
        """Return settings by which the past can be read, and what was dropped is kept, for that
        long; see HistorySettings."""
        history = replace(
            self.master.history, keep_ms=keep_ms, rows_ms=rows_ms, dropped_ms=dropped_ms
        )
        master = replace(self.master, history=history)
        return replace(self, master=master)
