"""A node's store as those see it who share its process: read coherently, written through the
master. An embedded replica and the sessions of a replicant stand on it."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from typing import Final, Protocol

from leasehold.adapters.os.clock import boottime_ns, new_request_id, now
from leasehold.adapters.os.memory_pool import MemoryPool
from leasehold.adapters.os.temp_room import TempRoom
from leasehold.adapters.redis.ledger import RedisLedger
from leasehold.adapters.sqlite.store import SqliteStore
from leasehold.admin.dead_letters import DeadLetters
from leasehold.admin.feed_compatibility import FeedGate
from leasehold.admin.shared_watch import SharedWatch
from leasehold.admin.view import ClusterView
from leasehold.admin.watch import ClusterWatch
from leasehold.catalog.access import Access
from leasehold.catalog.descriptor import Descriptor
from leasehold.catalog.job import Job
from leasehold.client.change_producer import ChangeProducer
from leasehold.client.pending import Pending
from leasehold.lease.agent.held_leases import Use
from leasehold.lease.agent.session import HolderLimits
from leasehold.model.audit import AuditLog
from leasehold.model.errors import BusUnavailable, NotCoherent
from leasehold.model.measures import Sample
from leasehold.model.records.requests import ChangeRequest, DeadLetter, Outcome
from leasehold.model.traces import SpanSink
from leasehold.node.kafka_node import KafkaNode, session_ids
from leasehold.replica.advisory_locks import NodeLocks
from leasehold.replica.as_of import CLOSED_WAIT_S, snapshot_lsn_of
from leasehold.replica.barrier import AppendedBarriers, Barriers
from leasehold.replica.barrier_group import BarrierGroup
from leasehold.replica.notifications import NodeNotifications
from leasehold.replica.reads import Reads
from leasehold.replica.sequences.node_blocks import NodeSequenceValues
from leasehold.replica.sessions import Sessions
from leasehold.settings.client import ClientSettings
from leasehold.settings.environment import describe
from leasehold.transaction.isolation import Isolation
from leasehold.values.dates import AsOf

COHERENT_TIMEOUT_S: Final = 60.0


class SqlNode(Protocol):
    """What a SQL session asks of the node it is on."""

    @property
    def name(self) -> str: ...

    @property
    def database(self) -> str: ...

    @property
    def sessions(self) -> Sessions:
        """The SQL sessions that are on it."""
        ...

    @property
    def advisory_locks(self) -> NodeLocks:
        """The advisory locks of its sessions."""
        ...

    @property
    def notifications(self) -> NodeNotifications:
        """What its sessions are told that listen."""
        ...

    @property
    def audit(self) -> AuditLog:
        """Return where it is written down what was refused, and who has ended whose session."""
        ...

    @property
    def spans(self) -> SpanSink:
        """Return who is told of statements that are to be followed."""
        ...

    @property
    def temp(self) -> TempRoom:
        """The room for what its sessions have in files."""
        ...

    @property
    def pool(self) -> MemoryPool:
        """The memory that all its statements may hold together."""
        ...

    def cluster(self) -> ClusterView:
        """Return the whole database as the command and the dashboard see it, with the jobs and
        versions that are applied here. Raises BusUnavailable, LedgerUnavailable."""
        ...

    def dead_letters(self) -> list[tuple[int, DeadLetter]]:
        """Return dead letters with their offsets, oldest first. Raises BusUnavailable."""
        ...

    def uses(self) -> list[tuple[Use, int, int]]:
        """Return who has pinned which version of which table on this node."""
        ...

    def tables(self) -> Sequence[Descriptor]: ...

    def described(self) -> Mapping[str, str]:
        """Return its settings, secrets masked."""
        ...

    @property
    def access(self) -> Access:
        """Return who may do what, as applied here."""
        ...

    @property
    def coherent(self) -> bool: ...

    def reads(self, label: str, snapshot_lsn: int | None = None) -> Reads:
        """Return the reads of one transaction: what it uses is pinned and leased, in the name of
        `label`. With a `snapshot_lsn` (an LSN) all of it is read as of then."""
        ...

    def snapshot_lsn(
        self, isolation: Isolation, as_of: AsOf | None, timeout_s: float
    ) -> int | None:
        """Return what a transaction at that level, which begins now, reads as of. Raises what
        `snapshot_lsn_of` raises, and BusUnavailable."""
        ...

    def single_read(self, *, snapshot_lsn: int | None = None) -> Reads:
        """Return reads of who pins nothing that is to be waited for."""
        ...

    def submit(
        self, request: ChangeRequest, timeout_s: float, stopped: Callable[[], bool] | None = None
    ) -> Outcome:
        """Submit a request, and return its outcome. Raises OutcomeUnknown (08007), BusUnavailable;
        QueryCanceled once `stopped`."""
        ...

    def send(self, request: ChangeRequest) -> Pending | None:
        """Submit a request whose outcome comes later; None: sending would have to wait."""
        ...

    @property
    def sequence_values(self) -> NodeSequenceValues:
        """The numbers of sequences, as this node has taken them."""
        ...

    def jobs(self) -> Mapping[int, Job]: ...

    def has_newer(self, descriptor: Descriptor) -> bool:
        """Return whether a version of its table was applied here that reads see now, or soon."""
        ...

    def is_settled(self) -> bool:
        """Return whether reads see all that was applied here."""
        ...

    def sees_below(self, lsn: int) -> bool:
        """Return whether reads see all that stands in the log below that LSN."""
        ...

    def wait(self, met: Callable[[], bool], timeout_s: float) -> bool:
        """Wait until `met`, looked at whenever this node has taken a step, or the time is over;
        return whether it is. Raises what stopped the node."""
        ...

    def wake_waiters(self) -> None:
        """Let whoever waits look again."""
        ...

    def check_running(self) -> None:
        """Raise what has stopped the node, if it has stopped."""
        ...


class ServingNode:
    """Methods may be called from any thread. `close` ends what it has started; the node itself is
    the caller's."""

    def __init__(self, node: KafkaNode, store: SqliteStore, settings: ClientSettings) -> None:
        self.node = node
        self.store = store
        self._settings = settings
        self._producer: ChangeProducer | None = None
        self._producer_lock = threading.Lock()
        self._barriers = Barriers(
            lambda request: self._changes().submit(request, together=True),
            lambda: node.node.term,
            lambda: AppendedBarriers(settings),
            self.sees_below,
            lambda offset: node.node.has_committed(offset),
        )
        self._barrier_group = BarrierGroup(self._barriers.ask)
        self._turned = threading.Condition()
        self._turns = 0
        self._feed_gate = FeedGate(settings)
        self._looks = SharedWatch(lambda: ClusterWatch(settings))
        self.sessions = Sessions()
        self._advisory_locks: NodeLocks | None = None
        self.notifications = NodeNotifications(self.name, self.sessions.tell, self.sessions.end)
        node.node.followers = (*node.node.followers, self.notifications)
        self.sequence_values = NodeSequenceValues(self.submit, self.single_read)
        node.on_tick = self.wake_waiters

    @property
    def name(self) -> str:
        return self._settings.cluster.node

    @property
    def database(self) -> str:
        return self._settings.cluster.database

    @property
    def advisory_locks(self) -> NodeLocks:
        if self._advisory_locks is None:
            with self._producer_lock:
                if self._advisory_locks is None:
                    self._advisory_locks = self._make_locks()
        return self._advisory_locks

    def _make_locks(self) -> NodeLocks:
        settings = self._settings
        return NodeLocks(
            self.name,
            lambda: RedisLedger(settings.redis, self.database),
            session_ids(),
            HolderLimits.of_ttl(settings.session_ttl_ms),
            self.sessions.end,
            boottime_ns,
        )

    @property
    def audit(self) -> AuditLog:
        return self.node.audit

    @property
    def spans(self) -> SpanSink:
        return self.node.spans

    @property
    def temp(self) -> TempRoom:
        return self.store.memory.temp

    @property
    def pool(self) -> MemoryPool:
        return self.store.memory.pool

    def close(self) -> None:
        self.notifications.close()
        if self._advisory_locks is not None:
            self._advisory_locks.close()
        self._looks.close()
        with self._producer_lock:
            if self._producer is not None:
                self._producer.close()
            self._barriers.close()

    # ------------------------------------------------------------ what it tells

    def cluster(self) -> ClusterView:
        jobs = {number for number, job in list(self.jobs().items()) if not job.status.ended}
        versions = {t.table_id: t.version for t in self.tables() if t.sequence is None}

        def has_all(view: ClusterView) -> bool:
            return jobs <= view.jobs.keys() and all(
                table in view.tables and view.tables[table].event.version >= version
                for table, version in versions.items()
            )

        return self._looks.view(has_all)

    def dead_letters(self) -> list[tuple[int, DeadLetter]]:
        return DeadLetters(self._settings).read()

    def uses(self) -> list[tuple[Use, int, int]]:
        agent = self.node.node.agent
        return [] if agent is None else agent.leases.named_uses()

    def tables(self) -> Sequence[Descriptor]:
        with self.store.open_snapshot() as snapshot:
            return snapshot.tables()

    def described(self) -> Mapping[str, str]:
        given = self._settings
        parts = (given.cluster, given.kafka, given.redis, given.snapshot, given.requests)
        return {name: value for part in parts for name, value in describe(part).items()}

    def samples(self) -> Iterator[Sample]:
        """Yield what is counted of those who share the process: requests, sessions, replays."""
        producer = self._producer
        if producer is not None:
            yield from producer.samples()
        yield from self.sessions.samples()
        yield from self.notifications.samples()

    # ------------------------------------------------------------ how far the node is

    def wake_waiters(self) -> None:
        """Let whoever waits look again. Never waits for those: it is called on the node's own
        thread, and by whoever cancels."""
        with self._turned:
            self._turns += 1
            self._turned.notify_all()

    @property
    def coherent(self) -> bool:
        return self.node.node.lease.holds(boottime_ns())

    def wait_coherent(self, timeout_s: float = COHERENT_TIMEOUT_S) -> None:
        """Return once the node is coherent. Raises NotCoherent when that takes longer, or what
        stopped the node."""
        if not self.coherent:
            self.wait_for(lambda: self.coherent, timeout_s, "to become coherent")

    def wait(self, met: Callable[[], bool], timeout_s: float) -> bool:
        end_s = time.monotonic() + timeout_s
        turned = True
        while turned:
            seen = self._turns  # before the look, which is not under the lock: it may take long
            if self.node.error is not None or met():
                break
            left_s = max(end_s - time.monotonic(), 0.0)
            with self._turned:
                turned = self._turned.wait_for(lambda turn=seen: self._turns != turn, left_s)  # type: ignore[misc]
        self.check_running()
        return met()

    def wait_for(self, met: Callable[[], bool], timeout_s: float, what: str) -> None:
        """Return once it is met. Raises NotCoherent when that takes longer."""
        if not self.wait(met, timeout_s):
            raise NotCoherent(
                f"this replica took longer than {timeout_s:g} s {what}: is there a master? see"
                " `leasehold status`"
            )

    def jobs(self) -> Mapping[int, Job]:
        """Return jobs as applied here; what they did is seen by reads a moment later."""
        return self.node.node.catalog.jobs

    @property
    def access(self) -> Access:
        return self.node.node.catalog.access

    def has_newer(self, descriptor: Descriptor) -> bool:
        return self.node.node.catalog.has_newer(descriptor)

    def is_settled(self) -> bool:
        with self.store.open_snapshot() as snapshot:
            return snapshot.lsn >= self.node.node.position.lsn

    def sees_below(self, lsn: int) -> bool:
        return self.node.node.sees_below(lsn)

    # ------------------------------------------------------------ reads and writes

    def reads(self, label: str, snapshot_lsn: int | None = None) -> Reads:
        agent = self.node.node.agent
        leases = agent.leases if agent else None
        return Reads(self.store, self._holds, leases, self._users_left, label, snapshot_lsn)

    def single_read(self, wait_s: float = 0.0, *, snapshot_lsn: int | None = None) -> Reads:
        """Return reads that wait up to `wait_s` for the node to become coherent."""
        holds = partial(self._holds_within, wait_s) if wait_s else self._holds
        return Reads(self.store, holds, None, lambda: None, snapshot_lsn=snapshot_lsn)

    def _holds(self) -> bool:
        """Return whether the node is coherent. Raises what stopped it: who reads again until it is
        coherent is to hear of that."""
        if self.coherent:
            return True
        self.check_running()
        return False

    def check_running(self) -> None:
        if self.node.error is not None:
            # Without those of all the times before: they would stay as long as the error does.
            raise self.node.error.with_traceback(None)

    def _holds_within(self, wait_s: float) -> bool:
        return self.coherent or self.wait(lambda: self.coherent, wait_s)

    def snapshot_lsn(
        self, isolation: Isolation, as_of: AsOf | None, timeout_s: float
    ) -> int | None:
        def pass_barrier() -> None:
            self.wait_for(
                self._barrier_group.place(), timeout_s, "to read its own barrier in the log"
            )

        wait = partial(self.wait, timeout_s=CLOSED_WAIT_S)
        return snapshot_lsn_of(
            isolation, as_of, self.store, self._holds, pass_barrier, wait, now().wall_us
        )

    def _users_left(self) -> None:
        agent = self.node.node.agent
        if agent is not None:
            self.node.call_soon(lambda: agent.users_left(now().mono_ns))

    def submit(
        self, request: ChangeRequest, timeout_s: float, stopped: Callable[[], bool] | None = None
    ) -> Outcome:
        if request.sql is not None and not request.releases:
            self._feed_gate.check(request.sql, lambda sql: self._explain(request, sql, timeout_s))
        pending = self._changes().submit(request)
        if stopped is None:
            return pending.result(timeout_s)
        return pending.result_unless(stopped, timeout_s)

    def _explain(self, request: ChangeRequest, sql: str, timeout_s: float) -> Outcome:
        asks = request._replace(id=new_request_id(), operations=(), sql=sql, held=False, reads=None)
        return self._changes().submit(asks).result(timeout_s)

    def _changes(self) -> ChangeProducer:
        with self._producer_lock:
            if self._producer is None:
                self._producer = ChangeProducer(self._settings)
        return self._producer

    def send(self, request: ChangeRequest) -> Pending | None:
        if self._producer is None:  # it is made by whoever can wait for the broker
            return None
        try:
            return self._producer.submit(request, timeout_s=0.0, together=True)
        except BusUnavailable:
            return None
