"""A world for one coordinator: a log, the pure ledger, agents, nodes that verify. No clock, no
threads: a seeded scheduler decides what happens next, and any master can end at any point.

Every step asserts the harm that a rule is there to prevent, so a broken rule shows as a Harm.
"""

from __future__ import annotations

import random
from typing import Any

from leasehold.catalog.catalog import Catalog
from leasehold.catalog.descriptor import Descriptor
from leasehold.catalog.elements import CommitContext
from leasehold.catalog.job import Job, Phase, Status, job_from_wire
from leasehold.lease.commands import (
    Command,
    Liveness,
    Publish,
)
from leasehold.lease.ledger import ledger
from leasehold.lease.ledger.state import LedgerState
from leasehold.model.errors import LedgerUnavailable
from leasehold.model.ports import Now
from leasehold.model.records.acks import CheckReport
from leasehold.model.records.jobs import Chunk, ChunksEnd, Findings
from leasehold.model.records.log import (
    CatalogWrite,
    ChunkDecided,
    DescriptorWrite,
    FindingsDecided,
    JobWrite,
)
from leasehold.model.records.requests import JobControl
from leasehold.schema_change.coordinator.coordinator import Coordinator, CoordinatorSettings
from leasehold.schema_change.coordinator.effects import (
    Call,
    CatalogChanged,
    CoherentNodes,
    Controlled,
    Event,
    LeaseAcked,
    LedgerReplied,
    Reported,
    Tick,
    Wake,
    Write,
)
from leasehold.schema_change.coordinator.ledger import LedgerSideSettings
from leasehold.schema_change.coordinator.sliced_verification import WalkSettings
from leasehold.schema_change.job.chunk_acceptance import accept_chunk, accept_end, accept_findings
from leasehold.schema_change.plan.plan import plan
from leasehold.schema_change.plan.results import CreateTablePlan, JobPlan
from leasehold.sql.syntax.statements import (
    Change as Statement,
)
from tests.support.schema_change.job_harm import Harm, judge_call, judge_write
from tests.support.schema_change.made_job import report_of
from tests.support.schema_change.world_agents import AgentInWorld

MS = 1_000_000
RUN = "run-1"


class World:
    def __init__(
        self,
        seed: int = 0,
        agents: int = 2,
        nodes: tuple[str, ...] = ("m", "r1", "r2"),
        walk: WalkSettings | None = None,
    ) -> None:
        self.random = random.Random(seed)
        self.now_ns = 1_000 * MS
        self.ledger = LedgerState()
        self.run_id = RUN
        self.ledger_up = True
        self.dead: set[int] = set()  # sessions whose agents renew no more
        self.log: list[tuple[CatalogWrite, ...]] = []
        self.catalog = Catalog()
        self.nodes = nodes
        self.coherent = frozenset(nodes)
        self.agents = [AgentInWorld(f"a{n}", n + 1) for n in range(agents)]
        self.epoch = 0
        self.writes: list[Write] = []
        self.calls: list[Call] = []
        self.stray: list[Command] = []  # of masters that are gone, still on their way
        self.reports: list[CheckReport] = []
        self.late_chunks: list[Chunk] = []
        self.findings: dict[str, int] = {}  # node → differences it will report
        self.broken: str = ""  # what a validation finds, in the master's words
        self.node_errors: dict[str, int] = {}  # node → how often it will fail to check
        self.published: list[tuple[int, Publish]] = []
        self.rows = 1  # in every table, as the master's store has them
        self.users = False  # write meanwhile
        self.spark = True
        self.settings = CoordinatorSettings(
            verification_ms=1_000,
            ledger=LedgerSideSettings(session_ttl_ms=100),
            walk=walk or WalkSettings(),
        )
        self.takeover()

    # ------------------------------------------------------------ the master

    @property
    def now(self) -> Now:
        return Now(self.now_ns, 1_700_000_000_000_000 + self.now_ns // 1_000)

    def takeover(self) -> None:
        """A new master, from what the log says; the old one's calls may still arrive."""
        self.epoch += 1
        self.stray += [call.command for call in self.calls]
        self.writes, self.calls = [], []
        kept = self.catalog
        self.catalog = Catalog.load(
            [d.to_wire() for table in kept._newest for d in kept.versions(table)],
            {table: kept.min_version(table) for table in kept._newest},
            [job.to_wire() for job in kept.jobs.values()],
            kept.ledger_run,
        )
        self.catalog.access = kept.access
        self.coordinator = Coordinator(
            self.catalog,
            self.epoch,
            "m",
            self.settings,
            lambda _: not self.rows,
            self.rows_about,
            lambda: self.users,
        )
        self.give(CoherentNodes(self.coherent))
        self.give(Tick())

    def rows_about(self, table_id: int) -> int:
        return self.rows

    def give(self, event: Event) -> None:
        for effect in self.coordinator.step(event, self.now):
            match effect:
                case Write():
                    self.writes.append(effect)
                case Call():
                    self.calls.append(effect)
                case Wake(at_ns):
                    assert at_ns > self.now_ns, "a wake in the past spins"

    # ------------------------------------------------------------ the log

    def append(self, *writes: CatalogWrite) -> None:
        lsn = len(self.log) + 1
        for write in writes:
            judge_write(write, self.catalog, self.ledger)
        for write in writes:
            self.catalog.apply(write, self.now.wall_us + lsn, lsn)
        self.log.append(writes)
        for write in writes:
            if isinstance(write, JobWrite):
                self._verify(job_from_wire(write.body), lsn)
        self.give(CatalogChanged(lsn))

    def _verify(self, job: Job, lsn: int) -> None:
        if job.phase is not Phase.VERIFYING or job.status is not Status.RUNNING:
            return
        for node in self.nodes:
            failing = self.node_errors.get(node, 0)
            self.node_errors[node] = max(0, failing - 1)
            total = self.findings.get(node, 0)
            version = self.catalog.newest(job.table_id).version
            report = report_of(job, node, lsn, version, total)
            self.reports.append(report._replace(error="disk" if failing else ""))

    def ddl(self, statement: Statement) -> Any:
        context = CommitContext(self.now.wall_us, b"s")
        made = plan(statement, self.catalog, context=context, in_place=False)  # there is more to do
        match made:
            case CreateTablePlan(descriptor):
                self.append(DescriptorWrite(descriptor.table_id, 1, descriptor.to_wire()))
                return descriptor
            case JobPlan(job):
                self.append(JobWrite(job.job_id, job.to_wire()))
                return job
        return made

    def control(self, action: str, job_id: int = 1, **settings: int) -> None:
        """Decided as the master decides it: on the newest state, in a commit of its own."""
        (write,) = self.coordinator.step(Controlled(JobControl(job_id, action, settings)), self.now)
        assert isinstance(write, Write)
        assert write.holds(self.catalog)
        self.append(*write.at(len(self.log) + 1, self.catalog.access))

    # ------------------------------------------------------------ things that happen

    def perform_write(self) -> bool:
        if not self.writes:
            return False
        write = self.writes.pop(0)
        if write.holds(self.catalog):
            self.append(*write.at(len(self.log) + 1, self.catalog.access))
        return True

    def perform_call(self) -> bool:
        if not self.calls:
            return False
        call = self.calls.pop(self.random.randrange(len(self.calls)))
        if not self.ledger_up:
            self.give(LedgerReplied(call.token, LedgerUnavailable("connection refused")))
            return True
        if judge_call(call.command, self.catalog) and isinstance(call.command, Publish):
            self.published.append((self.epoch, call.command))
        if isinstance(call.command, Liveness):
            self._renew_all()
        reply = ledger.apply(self.ledger, call.command, self.run_id)
        self.give(LedgerReplied(call.token, reply))
        return True

    def _renew_all(self) -> None:
        """Agents live: each has renewed since the last look, so none is counted dead (D7)."""
        for session, row in list(self.ledger.sessions.items()):
            if session in self.dead:
                continue
            self.ledger.sessions[session] = row._replace(counter=row.counter + 1)

    def perform_stray(self) -> bool:
        if not self.stray or not self.ledger_up:
            return False
        ledger.apply(self.ledger, self.stray.pop(0), self.run_id)
        return True

    def perform_report(self) -> bool:
        if not self.reports:
            return False
        report = self.reports.pop(self.random.randrange(len(self.reports)))
        if report.node in self.coherent or report.node == "m":
            self.give(Reported(report))
        return True

    def perform_backfill(self) -> bool:
        """One decided chunk or the end marker of a job that is being filled."""
        for job in self.catalog.jobs.values() if self.spark else ():
            if job.phase is not Phase.BACKFILLING or job.status.ended:
                continue
            version, row = job.versions[job.table_id], (1,)
            chunk = Chunk(job.job_id, job.run, job.table_id, version, job.element_id, (row,))
            if accept_chunk(self.catalog, chunk):
                self.late_chunks.append(chunk)
                end = self.random.random() < 0.5
                taken = accept_end(self.catalog, ChunksEnd(job.job_id, job.run, 1, 1))
                self.append(ChunkDecided(job.job_id, job.run, 1, 1, end and taken))
                return True
        return False

    def perform_findings(self) -> bool:
        """Spark's findings on a job that is being validated, decided."""
        for job in self.catalog.jobs.values() if self.spark else ():
            if job.phase is not Phase.VALIDATING or job.status is not Status.RUNNING:
                continue
            version = job.versions[job.table_id]
            findings = Findings(job.job_id, job.run, job.table_id, version, 3, 0, ())
            if accept_findings(self.catalog, findings):
                (element_id, *_) = job.current.validates
                named = ((6, element_id, (7,), self.broken),) if self.broken else ()
                self.append(FindingsDecided(job.job_id, job.run, 3, 0, self.broken, named))
                return True
        return False

    def perform_agent(self) -> bool:
        if not self.agents or not self.ledger_up:
            return False
        agent = self.random.choice(self.agents)
        choice = self.random.randrange(3)
        for table, version in agent.act(choice, self.log, self.ledger, self.run_id):
            self.give(LeaseAcked(table, version))
        return True

    def pass_time(self, ms: int = 10) -> bool:
        self.now_ns += ms * MS
        self.give(Tick())
        return True

    # ------------------------------------------------------------ runs

    def one_of_many(self, crash: float = 0.0) -> None:
        """Something happens; nothing is promised about the order."""
        if self.random.random() < crash:
            self.takeover()
        happen = [
            self.perform_write,
            self.perform_call,
            self.perform_report,
            self.perform_backfill,
            self.perform_findings,
            self.perform_agent,
            self.perform_stray,
        ]
        if not self.random.choice(happen)():
            self.pass_time(self.random.choice((1, 5, 20, 100)))

    def settle(self, steps: int = 5_000) -> None:
        """Until every job has ended; a run that does not get there has hung."""
        for _ in range(steps):
            if self.catalog.jobs and all(j.status.ended for j in self.catalog.jobs.values()):
                return
            self.one_of_many()
        job = next(j for j in self.catalog.jobs.values() if not j.status.ended)
        words = self.coordinator.waiting_for(job.job_id)
        raise Harm(f"job {job.job_id} hangs: {job.status}, {job.phase}, waits for {words!r}")

    def calm(self) -> bool:
        """Whatever is due is done at once, in order, without agents; False when nothing is due."""
        return (
            self.perform_call()
            or self.perform_write()
            or self.perform_report()
            or self.perform_findings()
        )

    def until(self, reached: Any, steps: int = 2_000) -> None:
        """Calm work, time passing where nothing is due, until `reached()`."""
        for _ in range(steps):
            if reached():
                return
            if not self.calm():
                self.pass_time(5)
        raise Harm(f"never reached; jobs {list(self.catalog.jobs.values())}")

    def until_ready(self) -> None:
        self.until(lambda: not self.coordinator.ledger.trouble(self.now) and self._tables_known())

    def _tables_known(self) -> bool:
        return all(self.coordinator.ledger.knows(t.table_id) for t in self.catalog.tables())

    def job(self, job_id: int = 1) -> Job:
        return self.catalog.jobs[job_id]

    def table(self, table_id: int = 1) -> Descriptor:
        return self.catalog.newest(table_id)
