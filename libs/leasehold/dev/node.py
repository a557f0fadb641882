"""A replicant of `leasehold dev` as SQL sessions see the node that they are on."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING

from leasehold.adapters.os.clock import boottime_ns, now
from leasehold.adapters.os.memory_pool import MemoryPool
from leasehold.adapters.os.temp_room import TempRoom
from leasehold.adapters.sqlite.store import SqliteStore
from leasehold.admin.view import ClusterView
from leasehold.catalog.access import Access
from leasehold.catalog.descriptor import Descriptor
from leasehold.catalog.job import Job
from leasehold.client.pending import Pending
from leasehold.in_process.node import MemoryNode
from leasehold.lease.agent.held_leases import Use
from leasehold.model.audit import AuditLog
from leasehold.model.errors import NoMaster, NotCoherent
from leasehold.model.records.requests import BarrierRequest, ChangeRequest, DeadLetter, Outcome
from leasehold.model.traces import NO_SPANS, SpanSink
from leasehold.replica.advisory_locks import NodeLocks
from leasehold.replica.as_of import CLOSED_WAIT_S, snapshot_lsn_of
from leasehold.replica.notifications import NodeNotifications
from leasehold.replica.reads import Reads
from leasehold.replica.sequences.node_blocks import NodeSequenceValues
from leasehold.replica.sessions import Sessions
from leasehold.replication.node import Node
from leasehold.transaction.isolation import Isolation
from leasehold.values.dates import AsOf

if TYPE_CHECKING:
    from leasehold.dev.database import DevDatabase


class DevNode:
    """A `SqlNode`; see there."""

    def __init__(self, database: DevDatabase, node: MemoryNode, store: SqliteStore) -> None:
        self._all = database
        self._node = node
        self._store = store

    @property
    def name(self) -> str:
        return self._node.settings.name

    @property
    def database(self) -> str:
        return self._all.cluster.shape.database

    @property
    def sessions(self) -> Sessions:
        return self._all.sessions[self.name]

    @property
    def advisory_locks(self) -> NodeLocks:
        return self._all.advisory_locks(self.name)

    @property
    def notifications(self) -> NodeNotifications:
        return self._all.notifications[self.name]

    @property
    def audit(self) -> AuditLog:
        return self._all.audit

    @property
    def spans(self) -> SpanSink:
        return NO_SPANS

    @property
    def temp(self) -> TempRoom:
        return self._store.memory.temp

    @property
    def pool(self) -> MemoryPool:
        return self._store.memory.pool

    def cluster(self) -> ClusterView:
        return self._all.view()

    def dead_letters(self) -> list[tuple[int, DeadLetter]]:
        return self._all.dead_letters()

    def uses(self) -> list[tuple[Use, int, int]]:
        agent = self._running.agent
        return [] if agent is None else agent.leases.named_uses()

    def tables(self) -> Sequence[Descriptor]:
        with self._store.open_snapshot() as snapshot:
            return snapshot.tables()

    def described(self) -> Mapping[str, str]:
        return {"LEASEHOLD_DATABASE": self.database, "LEASEHOLD_NODE": self.name}

    @property
    def _running(self) -> Node:
        if self._node.node is None:
            raise NoMaster(f"node {self._node.settings.name} is down")
        return self._node.node

    @property
    def coherent(self) -> bool:
        return self._running.lease.holds(boottime_ns())

    def reads(self, label: str, snapshot_lsn: int | None = None) -> Reads:
        node = self._running
        leases = node.agent.leases if node.agent else None
        return Reads(self._store, self._holds, leases, self._users_left, label, snapshot_lsn)

    def single_read(self, *, snapshot_lsn: int | None = None) -> Reads:
        return Reads(self._store, self._holds, None, lambda: None, snapshot_lsn=snapshot_lsn)

    def _holds(self) -> bool:
        return self.coherent

    def snapshot_lsn(
        self, isolation: Isolation, as_of: AsOf | None, timeout_s: float
    ) -> int | None:
        def pass_barrier() -> None:
            request = ChangeRequest(self._all.cluster.fresh_id(), barrier=BarrierRequest())
            lsn = self.submit(request, timeout_s).lsn
            if not self.wait(lambda: self._running.sees_below(lsn), timeout_s):
                raise NotCoherent(f"no barrier of its own was read in {timeout_s:g} s")

        store, holds = self._store, self._holds
        wait = partial(self.wait, timeout_s=CLOSED_WAIT_S)
        return snapshot_lsn_of(isolation, as_of, store, holds, pass_barrier, wait, now().wall_us)

    def _users_left(self) -> None:
        with self._all.held():
            self._node.users_left()

    @property
    def sequence_values(self) -> NodeSequenceValues:
        found = self._all.sequence_values.get(self.name)
        if found is None:
            made = NodeSequenceValues(self.submit, self.single_read)
            found = self._all.sequence_values.setdefault(self.name, made)
        return found

    def submit(
        self, request: ChangeRequest, timeout_s: float, stopped: Callable[[], bool] | None = None
    ) -> Outcome:
        return self._all.submit(request, timeout_s, stopped)

    def send(self, request: ChangeRequest) -> Pending | None:
        return None

    def jobs(self) -> Mapping[int, Job]:
        return self._running.catalog.jobs

    @property
    def access(self) -> Access:
        return self._running.catalog.access

    def has_newer(self, descriptor: Descriptor) -> bool:
        return self._running.catalog.has_newer(descriptor)

    def is_settled(self) -> bool:
        with self._store.open_snapshot() as snapshot:
            return snapshot.lsn >= self._running.position.lsn

    def sees_below(self, lsn: int) -> bool:
        return self._running.sees_below(lsn)

    def wait(self, met: Callable[[], bool], timeout_s: float) -> bool:
        return self._all.until(met, timeout_s)

    def check_running(self) -> None:
        """Do nothing: a node that is down comes back, and its followers with it."""

    def wake_waiters(self) -> None:
        self._all.wake_waiters()
