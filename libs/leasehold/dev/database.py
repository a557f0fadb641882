"""A whole database inside this process, for developers: `leasehold dev` and programs' own tests.

The same state machines as the services', on the bus and the ledger in memory; stores are SQLite
files in a folder of their own. What is decided here is decided by the code that runs on Kafka.
"""

from __future__ import annotations

import random
import threading
from collections import deque
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any, Final, NamedTuple

from leasehold.adapters.codec.records import MessagePackCodec
from leasehold.adapters.codec.request_encoding import encode_request
from leasehold.adapters.os.clock import boottime_ns, unix_us
from leasehold.adapters.sqlite.statement_memory import StatementMemory
from leasehold.adapters.sqlite.store import SqliteStore
from leasehold.admin.parts import checks_table
from leasehold.admin.view import ClusterView
from leasehold.catalog.descriptor import Descriptor, from_wire
from leasehold.catalog.job import Job, Status, job_from_wire
from leasehold.dev.node import DevNode
from leasehold.dev.view import DevView
from leasehold.events.version_diff import diff
from leasehold.in_process.bus import Message, Scheduler
from leasehold.in_process.cluster import ClusterShape, MemoryCluster
from leasehold.in_process.ledger import MemoryLedger
from leasehold.lease.agent.session import HolderLimits
from leasehold.lease.commands import Command
from leasehold.lease.replies import Reply
from leasehold.model.audit import AuditEvent
from leasehold.model.errors import NoMaster, OutcomeUnknown, QueryCanceled
from leasehold.model.ids import format_request_id, parse_request_id
from leasehold.model.records.acks import ROLES_CHECKED, CheckReport
from leasehold.model.records.events import VersionEvent
from leasehold.model.records.jobs import JobEvent
from leasehold.model.records.log import JobForgotten
from leasehold.model.records.requests import (
    BarrierRequest,
    ChangeRequest,
    DeadLetter,
    Outcome,
    Queue,
)
from leasehold.model.signatures import NO_KEYS, RequestKeys
from leasehold.node.kafka_node import session_ids
from leasehold.replica.advisory_locks import NodeLocks
from leasehold.replica.notifications import NodeNotifications
from leasehold.replica.row_values import named
from leasehold.replica.sequences.node_blocks import NodeSequenceValues
from leasehold.replica.sessions import Sessions
from leasehold.settings.private_files import make_node_folder
from leasehold.transaction.binding import binding

ANSWER_TIMEOUT_S: Final = 30.0
JOB_TIMEOUT_S: Final = 60.0
REPLY_TO: Final = 0
ACKS_KEPT: Final = 1_000
EVENTS_MAX: Final = 1_000
EVERY_TABLE: Final = -1
IDLE_WAIT_S: Final = 0.5
LOCK_TTL_MS: Final = 15_000
"""How long a node's advisory locks last that it can't renew."""


class RealPace:
    """A thread that runs what is due by the clock of this host."""

    def __init__(self, scheduler: Scheduler) -> None:
        self._scheduler = scheduler
        self._changed = threading.Condition(threading.RLock())
        self._closed = False
        self._error: BaseException | None = None
        self._thread = threading.Thread(target=self._run, name="leasehold dev", daemon=True)
        self._thread.start()

    def held(self) -> AbstractContextManager[object]:
        """Return a context within which nothing moves."""
        return self._changed

    def until(self, reached: Callable[[], bool], timeout_s: float) -> bool:
        """Whether `reached` came true. Raises what ended the thread."""
        with self._changed:
            self._changed.notify_all()  # something may have been put in
            self._changed.wait_for(lambda: self._error is not None or reached(), timeout_s)
            if self._error is not None:
                raise self._error
            return reached()

    def wake_waiters(self) -> None:
        with self._changed:
            self._changed.notify_all()

    def close(self) -> None:
        with self._changed:
            self._closed = True
            self._changed.notify_all()
        self._thread.join()

    def _run(self) -> None:
        with self._changed:
            while not self._closed:
                try:
                    self._scheduler.run_until(boottime_ns())
                except BaseException as error:  # noqa: BLE001  the caller of `until` gets it
                    self._error = error
                    self._changed.notify_all()
                    return
                self._changed.notify_all()
                next_ns = self._scheduler.next_ns()
                wait_s = IDLE_WAIT_S
                if next_ns is not None:
                    wait_s = min(wait_s, max(0.0, (next_ns - boottime_ns()) / 1e9))
                self._changed.wait(wait_s)


class HeldLedger:
    """The ledger in memory, for threads beside that of the pace."""

    def __init__(
        self, ledger: MemoryLedger, held: Callable[[], AbstractContextManager[object]]
    ) -> None:
        self._ledger = ledger
        self._held = held

    def call(self, command: Command) -> Reply:
        """Carry out a command. Raises LedgerUnavailable."""
        with self._held():
            return self._ledger.call(command)


class Answer(NamedTuple):
    request_id: str
    outcome: Outcome

    @property
    def committed(self) -> bool:
        return self.outcome.lsn > 0


class KeptAudit:
    """An `AuditLog` in memory: the newest events of sessions; those of masters stand in
    `MemoryDriver.audited`."""

    def __init__(self) -> None:
        self.events: deque[AuditEvent] = deque(maxlen=EVENTS_MAX)

    def record(self, event: AuditEvent) -> None:
        self.events.append(event)


class CheckSummary(NamedTuple):
    """The result of a check. `differences`: words per finding; empty when every node holds the same
    and it is right."""

    nodes: int
    tables: int
    rows: int
    differences: tuple[str, ...]


class DevDatabase:
    """A whole database in this process. `tell` gets words about versions and jobs as they happen,
    from the thread of the pace."""

    def __init__(
        self,
        folder: Path,
        tell: Callable[[str], None] = lambda _: None,
        *,
        replicants: int = 2,
        keys: RequestKeys | None = None,
        unsigned_role: str | None = None,
    ) -> None:
        self._folder = folder
        self._tell = tell
        self._codec = MessagePackCodec()
        started_ns = boottime_ns()
        scheduler = Scheduler(started_ns, unix_us() - started_ns // 1_000)
        self._stores: dict[str, SqliteStore] = {}
        self.cluster = MemoryCluster(
            scheduler,
            random.SystemRandom(),
            ClusterShape(
                candidates=1,
                replicants=replicants,
                keys=keys or NO_KEYS,
                unsigned_role=unsigned_role,
            ),
            open_store=self._open_store,
        )
        self._outcomes: dict[bytes, Outcome] = {}
        self._attempts: dict[bytes, Outcome] = {}  # the newest answer, be it the last or not
        self._jobs: dict[int, Job] = {}
        self._descriptors: dict[int, Descriptor] = {}
        self._checks: deque[CheckReport] = deque(maxlen=10_000)
        self._view = DevView(self.cluster)
        self.audit = KeptAudit()
        self.sessions = {name: Sessions() for name in self.cluster.nodes}
        self.notifications: dict[str, NodeNotifications] = {}
        for name, sessions in self.sessions.items():
            made = NodeNotifications(name, sessions.tell, sessions.end)
            self.notifications[name] = made
            self.cluster.nodes[name].followers = (made,)
        self.sequence_values: dict[str, NodeSequenceValues] = {}
        self._locks: dict[str, NodeLocks] = {}
        self.cluster.bus.on_append = self._appended
        self.cluster.start()
        self._pace = RealPace(scheduler)

    def memory(self, name: str) -> StatementMemory:
        """Return what bounds the statements on a node."""
        return self._stores[name].memory

    def _open_store(self, name: str) -> SqliteStore:
        if name in self._stores:
            self._stores[name].close()
        make_node_folder(self._folder / name)
        self._stores[name] = SqliteStore(self._folder / name / "store.db")
        return self._stores[name]

    def close(self) -> None:
        for locks in self._locks.values():
            locks.close()
        for notifications in self.notifications.values():
            notifications.close()
        self._pace.close()
        for store in self._stores.values():
            store.close()

    # ------------------------------------------------------------ what happens

    def _appended(self, topic: str, partition: int, message: Message) -> None:
        topics = self.cluster.topics
        if message.value is None:
            if topic == topics.jobs.name and message.key.startswith(b"job/"):
                self._view.record(JobForgotten(int(message.key.removeprefix(b"job/"))))
            return
        if topic == topics.log.name:
            self._view.log(message.offset, message.value)
        elif topic == topics.acks.name:
            record = self._codec.decode(message.value)
            self._view.record(record)
            if isinstance(record, CheckReport):
                self._checks.append(record)
            if message.offset % ACKS_KEPT == 0:
                self.cluster.bus.delete_below(topic, partition, message.offset - ACKS_KEPT)
        elif topic == topics.results.name:
            for result in self._codec.decode(message.value).results:
                self._attempts[result.request_id] = result.outcome
                if result.outcome.lsn or result.outcome.final:
                    self._outcomes[result.request_id] = result.outcome
        elif topic == topics.versions.name:
            event = self._codec.decode_as(VersionEvent, message.value)
            self._view.record(event)
            self._version(event)
        elif topic == topics.jobs.name and message.key.startswith(b"job/"):
            told = self._codec.decode_as(JobEvent, message.value)
            self._view.record(told)
            self._job(job_from_wire(told.body))

    def _version(self, event: VersionEvent) -> None:
        descriptor = from_wire(event.body)
        changes = diff(self._descriptors.get(event.table_id), descriptor)
        self._descriptors[event.table_id] = descriptor
        words = "; ".join(str(change) for change in changes) or "no element changed"
        self._tell(f"{event.name} version {event.version}: {words}")

    def _job(self, job: Job) -> None:
        before = self._jobs.get(job.job_id)
        self._jobs[job.job_id] = job
        if before is not None and _stage(before) == _stage(job):
            return
        words = f"job {job.job_id} {job.status}"
        if job.rows_read:
            words += f", {job.rows_read} rows"
        if not job.status.ended:
            words += f": {job.phase}"
        if job.error:
            words += f": {job.error}"
        self._tell(words)

    # ------------------------------------------------------------ asking

    def ask(
        self,
        fields: Mapping[str, Any],
        timeout_s: float = ANSWER_TIMEOUT_S,
        *,
        principal: str = "",
    ) -> Answer:
        """Submit a change request of that role's and wait for its final result.

        Raises OutcomeUnknown when none has come; the request may still be applied.
        """
        with self._pace.held():
            request_id = _id_of(fields.get("id")) or self.cluster.fresh_id()
            sent = {**fields, "id": request_id, "reply_to": REPLY_TO}
            self.cluster.submit(sent, principal)
        if not self._pace.until(lambda: request_id in self._outcomes, timeout_s):
            raise OutcomeUnknown(f"no answer within {timeout_s:.0f} s; ask again with the same id")
        return Answer(format_request_id(request_id), self._outcomes[request_id])

    def submit(
        self,
        request: ChangeRequest,
        timeout_s: float = ANSWER_TIMEOUT_S,
        stopped: Callable[[], bool] | None = None,
    ) -> Outcome:
        """Submit a request as a program does that replays by itself, and return the answer of this
        very attempt. Raises OutcomeUnknown, QueryCanceled once `stopped`."""
        with self._pace.held():
            media_type, body = encode_request(request, REPLY_TO)
            sign, role = self.cluster.sign, request.principal
            self.cluster.put(sign(Queue.REQUESTS, role, media_type, body), body)

        def answered() -> bool:
            found = self._attempts.get(request.id)
            return found is not None and (found.final or found.attempt >= request.attempt)

        ended = stopped or (lambda: False)
        if not self._pace.until(lambda: answered() or ended(), timeout_s):
            name = format_request_id(request.id)
            raise OutcomeUnknown(
                f"no answer to request {name} within {timeout_s:g} s: it may have been applied;"
                " ask again under the same id",
                request_id=name,
            )
        if not answered():
            raise QueryCanceled("the statement that has waited for it was ended")
        return self._attempts.pop(request.id)

    def wait_job(self, job_id: int, timeout_s: float = JOB_TIMEOUT_S) -> Job | None:
        """Return the job when it has ended or is paused; as it is after the time-out."""

        def rests() -> bool:
            job = self._jobs.get(job_id)
            return job is not None and (job.status.ended or job.status is Status.PAUSED)

        self._pace.until(rests, timeout_s)
        return self._jobs.get(job_id)

    def wait_ready(self, timeout_s: float = ANSWER_TIMEOUT_S) -> None:
        """Return once there is a master and every replicant answers reads. Raises NoMaster."""
        if not self._pace.until(self._ready, timeout_s):
            raise NoMaster(f"no master within {timeout_s:.0f} s")

    def _ready(self) -> bool:
        replicants = self.cluster.replicants()
        return self.cluster.master() is not None and all(node.reads() for node in replicants)

    # ------------------------------------------------------------ SQL

    def sql_node(self, name: str = "r1") -> DevNode:
        """Return what SQL sessions on that replicant stand on."""
        return DevNode(self, self.cluster.nodes[name], self._stores[name])

    def held(self) -> AbstractContextManager[object]:
        """Return a context within which nothing moves."""
        return self._pace.held()

    def advisory_locks(self, name: str) -> NodeLocks:
        """Return the advisory locks of a node's sessions."""
        with self._pace.held():
            found = self._locks.get(name)
            if found is None:
                found = self._locks[name] = NodeLocks(
                    name,
                    lambda: HeldLedger(self.cluster.ledger, self._pace.held),
                    session_ids(),
                    HolderLimits.of_ttl(LOCK_TTL_MS),
                    self.sessions[name].end,
                    boottime_ns,
                )
            return found

    def until(self, reached: Callable[[], bool], timeout_s: float) -> bool:
        return self._pace.until(reached, timeout_s)

    def wake_waiters(self) -> None:
        """Let whoever waits in `until` look again."""
        self._pace.wake_waiters()

    # ------------------------------------------------------------ looking

    def view(self) -> ClusterView:
        """Return the whole database. Raises LedgerUnavailable."""
        with self._pace.held():
            return self._view.newest()

    def dead_letters(self) -> list[tuple[int, DeadLetter]]:
        """Return dead letters with their offsets, oldest first."""
        with self._pace.held():
            messages = self.cluster.bus.read(self.cluster.topics.dead_letter.name)
        return [
            (message.offset, self._codec.decode_as(DeadLetter, message.value))
            for message in messages
            if message.value is not None
        ]

    def get(self, table: str, key: Mapping[str, Any] | tuple[Any, ...]) -> dict[str, Any] | None:
        """Return the row as a coherent replicant has it. Raises UnknownTable and what keys
        raise."""
        self._pace.until(self._ready, ANSWER_TIMEOUT_S)
        with self._pace.held(), self._stores["r1"].open_snapshot() as snapshot:
            descriptor = snapshot.newest(table)
            row = snapshot.get(descriptor, binding(descriptor).key(key))
            return None if row is None else named(descriptor, row)

    def tables(self) -> tuple[Descriptor, ...]:
        with self._pace.held(), self._stores["r1"].open_snapshot() as snapshot:
            return snapshot.tables()

    def jobs(self) -> list[Job]:
        with self._pace.held():
            return list(self._jobs.values())

    def status(self) -> list[dict[str, Any]]:
        """Return one mapping per node."""
        with self._pace.held():
            return [
                {
                    "node": name,
                    "role": node.node.role if node.node else "down",
                    "epoch": node.node.position.epoch if node.node else 0,
                    "lsn": node.node.position.lsn if node.node else 0,
                    "coherent": node.reads(),
                }
                for name, node in self.cluster.nodes.items()
            ]

    def check(self, timeout_s: float = ANSWER_TIMEOUT_S) -> CheckSummary:
        """Every node checks its store against its descriptors at one log position, and all of
        them must hold the same, roles and privileges too. Raises OutcomeUnknown when a node does
        not report."""
        with self._pace.held():
            subject = self.cluster.fresh_id()
            request = ChangeRequest(subject, barrier=BarrierRequest(EVERY_TABLE))
            media_type, body = encode_request(request, REPLY_TO)
            self.cluster.put(self.cluster.sign(Queue.REQUESTS, "", media_type, body), body)
        tables = self.tables()
        names = self.cluster.nodes.keys()

        def reports() -> list[CheckReport]:
            return [report for report in self._checks if report.subject == subject]

        view = self.view()
        ids = (ROLES_CHECKED, *(table.table_id for table in tables))
        wanted = {(name, each) for name in names for each in ids if checks_table(view, name, each)}

        def missed() -> set[tuple[str, int]]:
            return wanted - {(report.node, report.table_id) for report in reports()}

        if not self._pace.until(lambda: not missed(), timeout_s):
            missing = sorted({node for node, _ in missed()})
            raise OutcomeUnknown(f"no report within {timeout_s:.0f} s from {', '.join(missing)}")
        return _summary(reports(), {table.table_id: table.name for table in tables}, len(names))


def _stage(job: Job) -> tuple[object, ...]:
    return (job.status, job.step, job.phase)


def _id_of(given: object) -> bytes | None:
    """Raises InvalidText for an id that is no UUIDv7: its answer could not be told from others."""
    if given is None or isinstance(given, bytes):
        return given
    return parse_request_id(str(given))


def _summary(reports: list[CheckReport], tables: dict[int, str], nodes: int) -> CheckSummary:
    differences: list[str] = []
    first: dict[int, CheckReport] = {}
    for report in reports:
        table = tables.get(report.table_id, str(report.table_id))
        if report.table_id == ROLES_CHECKED:
            table = "roles and privileges"
        if report.error:
            differences.append(f"{report.node}: {table}: {report.error}")
        differences += [f"{report.node}: {table}: {words}" for _, _, _, words in report.findings]
        other = first.setdefault(report.table_id, report)
        if (other.rows, other.checksum) != (report.rows, report.checksum):
            differences.append(f"{table}: {other.node} and {report.node} hold different rows")
    first.pop(ROLES_CHECKED, None)
    rows = sum(report.rows for report in first.values())
    return CheckSummary(nodes, len(first), rows, tuple(differences))
