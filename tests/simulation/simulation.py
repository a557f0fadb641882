"""One run of the whole system under a seed: setup, chaos, healing, then everything is demanded."""

from __future__ import annotations

import random
from collections import deque
from collections.abc import Callable, Collection
from contextlib import ExitStack
from dataclasses import replace
from typing import Final, NamedTuple

from leasehold.adapters.codec.records import MessagePackCodec
from leasehold.catalog.part import HeldTable, Part
from leasehold.in_process.bus import Message, Scheduler
from leasehold.in_process.cluster import MemoryCluster
from leasehold.in_process.node import MemoryNode
from leasehold.in_process.subscriber import MemorySubscriber
from leasehold.model.errors import (
    LeaseholdError,
    LogStopped,
    NotAuthentic,
    StoreUnwritable,
    UnknownTable,
)
from leasehold.model.features import incarnation_of
from leasehold.model.records.acks import Ack
from leasehold.model.records.requests import Result, ResultBatch
from leasehold.replication.disk_room import may_start
from leasehold.replication.effects import Became, Stop
from leasehold.replication.log.truncation import CHANGEFEED_ROLE
from tests.simulation.chaos import Chaos, ChaosHops, ChaosPipelineHops, Weather
from tests.simulation.disks import RESERVE_BYTES, Disks, DiskStores
from tests.simulation.ending import demand_end
from tests.simulation.harm import Harm, demand
from tests.simulation.log_readers import LogReaders
from tests.simulation.machines import MachineFaults
from tests.simulation.plan import Plan, plan_of
from tests.simulation.reference import Reference
from tests.simulation.work_costs import work_takes_time
from tests.simulation.workloads import (
    Workload,
)
from tests.support.memory_store.snapshot import MemorySnapshot
from tests.support.memory_store.store import MemoryStore
from tests.support.memory_store.stores import MemoryStores

MS: Final = 1_000_000
SECOND: Final = 1_000 * MS
HISTORY_LINES: Final = 40
HEAL_LOOK_MS: Final = 20
CALM_MS: Final = 2_200
SETTLED_MS: Final = 700
"""Longer than a lease lasts that was asked for amid the faults: it may come with some ms left, and
the next one a few ms behind its end."""
TURN_MS_MAX: Final = 250
"""Of a master: below the shortest election's time-out here, and two renewals of a lease."""

LOG_RECORDS: Final = 10_000
"""No run appends so many."""


def _follow_all(part: Part, store: MemoryStore) -> Part:
    """Return the part as it is with the tables of a store: who holds a table holds what its rows
    go over to, too."""
    newest = {table_id: made for (table_id, _), made in sorted(store.contents.descriptors.items())}
    for table_id in sorted(newest):
        part = part.followed_by(newest[table_id])
    return part


class Recovery(NamedTuple):
    """Virtual ms from the last fault until that was so."""

    answered: int
    ended: int
    coherent: int


class Simulation:
    """`run()` raises Harm; `history` tells in words what happened before."""

    def __init__(self, seed: int, plan: Plan | None = None) -> None:
        self.seed = seed
        self.plan = plan or plan_of(seed)
        self.codec = MessagePackCodec()
        self.scheduler = Scheduler()
        self.weather = Weather()
        self.history: deque[str] = deque(maxlen=HISTORY_LINES)
        self.reference = Reference(self.plan.shape.master.outcomes, self.plan.shape.master.history)
        self.disks = Disks(self._rng("disks"))
        self.stores = self._made_stores()
        self.answered_offset = -1  # highest offset of a record of which an answer was given
        self.answered_lsn = 0  # highest LSN of an answer that was given
        self.reads = 0
        self.decoded = 0
        network = self._rng("network")
        self.hops: dict[str, ChaosHops] = {}
        self.cluster = MemoryCluster(
            self.scheduler,
            self._rng("cluster"),
            self.plan.shape,
            open_store=self.stores.open,
            hops_of=lambda name: self.hops.setdefault(name, ChaosHops(network, self.weather)),
            pipeline_hops=ChaosPipelineHops(self._rng("pipeline"), self.weather),
            changefeed_linger_ns=lambda: network.randrange(1 * MS, 30 * MS),
        )
        self.cluster.bus.on_append = self._appended
        self._log_readers: LogReaders | None = None
        if self._deletes_log:
            self._log_readers = LogReaders(
                self.cluster.bus,
                self.cluster.topics,
                self.plan.shape.master.truncation,
                self.codec,
            )
        self.cluster.pubsub.on_answers = self._given
        self._clocks()
        self.workloads: list[Workload] = []
        self.chaos = Chaos(self, self._rng("chaos"), self.plan.fault_pause_ms)
        self._reader = self._rng("reader")
        self.recovery: Recovery | None = None
        self.machines = MachineFaults(self, self._rng("machines"))
        if self.plan.machines:
            self.machines.make_one_fast()
        self._told: dict[str, int] = {}
        self._seen_of: dict[str, tuple[int, int]] = {}  # records of the log that were looked at
        self._goal = 0
        self._copies: dict[str, ExitStack] = {}  # that are under way, by who takes them

    @property
    def _deletes_log(self) -> bool:
        return self.plan.shape.master.truncation.kept_records < LOG_RECORDS

    def _made_stores(self) -> MemoryStores:
        return DiskStores(self.disks, self.plan.parts)

    def _rng(self, name: str) -> random.Random:
        return random.Random(f"{self.seed}/{name}")

    def _clocks(self) -> None:
        """No two machines agree; rates differ by up to 2 per mille."""
        rng = self._rng("clocks")
        for node in self.cluster.nodes.values():
            node.clock.boot_ns = rng.randrange(0, 10**15)
            node.clock.rate = rng.choice((1.0, 1.002, 0.998))
            node.on_step = self._stepped
        for agent in self.cluster.subscribers.values():
            agent.clock.boot_ns = rng.randrange(0, 10**15)
            agent.clock.rate = rng.choice((1.0, 1.002, 0.998))
            agent.hold_ns = lambda: rng.choice((0, 20, 300, 2_000)) * MS
            agent.on_row = self._row_decoded

    def note(self, words: str) -> None:
        self.history.append(f"{self.scheduler.now_ns / SECOND:9.4f} s  {words}")

    # ------------------------------------------------------------ watching

    def _appended(self, topic: str, partition: int, message: Message) -> None:
        topics = self.cluster.topics
        if self._log_readers is not None:
            self._log_readers.appended(topic, message, self.scheduler.now_ns)
        if topic == topics.log.name:
            words = self.reference.log_appended(message)
            if words:
                self.note(words)
                self._judge_leases()
        elif topic == topics.requests.name:
            self.reference.request_appended(message, self.answered_lsn)
        elif topic == topics.results.name:
            self._given(self.codec.decode(message.value or b""))
        elif topic == topics.conflicts.name:
            conflict = self.codec.decode(message.value or b"")
            self.answered_offset = max(self.answered_offset, conflict.offset)
            self._judge_coherence()

    def _given(self, batch: ResultBatch) -> None:
        """By either way."""
        for result in batch.results:
            if self._is_unproven(result):
                continue
            if result.request_id in self.reference.seen_by:
                if result.outcome.code:
                    continue  # refused: it says no place
                self._judge_place(result)
                continue
            self._judge_answer(result.request_id, result.outcome)
            self.answered_lsn = max(self.answered_lsn, result.outcome.lsn)
            decided = (result.request_id, result.outcome.attempt)
            decided_at = self.reference.decided_at[decided]
            self.answered_offset = max(self.answered_offset, result.offset, decided_at)
        self._judge_coherence()

    def _is_unproven(self, result: Result) -> bool:
        """Whether it says that a signature was none: under the id that stood there nothing is
        remembered, since it is somebody else's."""
        known = self.reference.outcome(result.request_id)
        return known is None and result.outcome.code == NotAuthentic.sqlstate

    def _judge_place(self, result: Result) -> None:
        """T6: whoever sees all below a barrier's LSN sees all that was answered before it was
        asked, and the log has it."""
        asked_lsn, lsn = self.reference.seen_by[result.request_id], result.outcome.lsn
        demand(asked_lsn < lsn, "T6", f"LSN {asked_lsn} was answered before a barrier at {lsn}")
        demand(lsn <= self.reference.position.lsn + 1, "T6", f"the log does not reach LSN {lsn}")
        self.answered_offset = max(self.answered_offset, result.offset)

    def _judge_answer(self, request_id: bytes, told: object) -> None:
        """L4: only what counts in the log is ever answered."""
        true = self.reference.outcome(request_id)
        lsn = getattr(told, "lsn", 0)
        final = lsn or getattr(told, "final", False)
        words = f"request {request_id.hex()} was answered {told}, the log says {true}"
        if final:
            demand(told in self.reference.said[request_id], "L4", words)
        else:
            attempt = getattr(told, "attempt", 0)
            demand(true is not None and (true.final or true.attempt >= attempt), "L4", words)

    def _judge_coherence(self) -> None:
        for node in self.cluster.replicants():
            self._judge_coherent(node)

    def _judge_coherent(self, node: MemoryNode) -> None:
        """C1, C2: who may answer reads shows everything that was answered."""
        if node.reads():
            offset, due = node.store.position().offset, self._due(node)
            demand(
                offset > due,
                "C1",
                f"{node.settings.name} reads at offset {offset}, although results of the record"
                f" at {due} were given",
            )

    def _due(self, node: MemoryNode) -> int:
        """Return the newest record up to an answered one that is about what a node holds."""
        part: Part = node.store.part
        if part.is_whole:
            return self.answered_offset
        count, due = self._seen_of.get(node.settings.name, (0, -1))
        records = self.reference.about
        while count < len(records) and records[count][0] <= self.answered_offset:
            offset, about = records[count]
            if about.tables is None or any(map(part.holds, about.tables)):
                due = offset
            count += 1
        self._seen_of[node.settings.name] = (count, due)
        return due

    def _judge_leases(self) -> None:
        for agent in self.cluster.subscribers.values():
            for lease in agent.in_use():
                self._judge_lease(agent, lease.table, lease.version)

    def _judge_lease(self, agent: MemorySubscriber, table: int, version: int) -> None:
        newest = self.reference.catalog.newest(table).version
        demand(
            version >= newest - 1,
            "D1",
            f"{agent.name} uses version {version} of table {table} under a lease; newest {newest}",
        )

    def _row_decoded(self, agent: MemorySubscriber, _row: object, lease: object) -> None:
        self.decoded += 1
        self._judge_lease(agent, lease.table, lease.version)  # type: ignore[attr-defined]

    def _stepped(self, node: MemoryNode) -> None:
        name = node.settings.name
        told = self._told.get(name, 0)
        for event in node.history[told:]:
            if isinstance(event, Became):
                self.note(f"{name} becomes {event.role} (epoch {event.epoch}): {event.why}")
        self._told[name] = len(node.history)
        for event in node.history[told:]:
            if isinstance(event, Stop):
                self._judge_stop(name, event.error)
        if node.node is None:
            return
        demand(not self.disks.of(name).failed, "disk", f"{name} goes on after a failed write")
        position = node.node.position
        if node.node.foreign.in_doubt:
            return  # it has what stands before, and knows that it may lack something
        true = self.reference.positions.get(position.offset)
        if position != true:  # the words take longer than the look, 60,000 times a run
            raise Harm(f"L1: {name} is at {position}, the log says {true}")
        if node.settings.serving:
            self._judge_coherent(node)

    def _judge_stop(self, name: str, error: LeaseholdError) -> None:
        """L2: nothing stops a node but its disk, and that the log has no longer what comes next for
        it (whether that may be is judged when it is deleted: L11); and it is started again."""
        full = isinstance(error, StoreUnwritable) and self.disks.of(name).failed
        if not full and not self._is_left_behind(name, error):
            raise Harm(f"L2: {name} stops: {error}")
        self.note(f"{name} stops: {error}")
        self.machines.restart_once_there_is_room(name)

    def _is_left_behind(self, name: str, error: LeaseholdError) -> bool:
        """Return whether a node was told that the log begins behind it, and it does. One that has
        read on behind the gap says something else."""
        first = self.cluster.bus.first(self.cluster.topics.log.name)
        told = isinstance(error, LogStopped) and f"begins at offset {first}" in error.message
        return told and self._read_from(name) < first

    def read(self) -> MemorySnapshot | None:
        """A snapshot of a replicant that is coherent now, by chance which."""
        able = [n for n in self.cluster.replicants() if n.reads() and n.store.part.is_whole]
        if not able:
            return None
        node = self._reader.choice(able)
        self.reads += 1
        snapshot: MemorySnapshot = node.store.open_snapshot()  # type: ignore[attr-defined]
        for workload in self.workloads:
            try_check(lambda w=workload: w.check(snapshot, f"at {node.settings.name}"))  # type: ignore[misc]
        return snapshot

    # ------------------------------------------------------------ faults' other half

    def restart(self, name: str) -> None:
        node = self.cluster.nodes[name]
        if node.stopping:
            self.note(f"{name} is killed while it stops")
            node.crash()
        if node.up:
            return
        if not may_start(self.disks.of(name).seen(), RESERVE_BYTES):
            self.machines.restart_once_there_is_room(name)
            return
        log = self.cluster.topics.log.name
        first = self.cluster.bus.first(log)
        if first and self._read_from(name) < first:
            others = [n for n in sorted(self.cluster.nodes) if self.stores.part_of(n).is_whole]
            having = [n for n in others if self._read_from(n) >= first]
            demand(bool(having), "copy", f"nobody has what the log has not, before {first}")
            self.restore(name, having[0])
        self.note(f"{name} starts")
        node.start()
        self._copies.pop(name, ExitStack()).close()  # it has been taken

    def _read_from(self, name: str) -> int:
        """Return the offset of the log from which a node goes on when it is started."""
        disk = self.disks.of(name)
        if disk.found is not None:
            return disk.found.position.offset
        return self.stores.get(name).position().offset

    def restore(self, name: str, source: str) -> None:
        """A new disk: empty, or with a snapshot of another node's committed store, which is a copy
        under way until this node starts."""
        part = self.stores.part_of(name)
        if source and not self.stores.part_of(source).is_whole:
            source = ""  # it hands out no copies
        store = MemoryStore(part=part)
        copy = self._copies.setdefault(name, ExitStack())
        copy.close()
        if source:
            store = self.stores.get(source).copy()
            if self.cluster.nodes[source].up:
                under_way = self.cluster.nodes[source].copies.of(store.position().offset, name)
                copy.enter_context(under_way)
            if not part.is_whole:
                store = store.narrowed(_follow_all(part, store))
        self.note(f"{name} will start from {f'a snapshot of {source}' if source else 'nothing'}")
        self.stores.put(name, store)

    def restart_rest(self) -> None:
        cluster = self.cluster
        for part in (cluster.changefeed, cluster.backfill, cluster.retry):
            if not part.up:
                part.start()
        for agent in cluster.subscribers.values():
            if not agent.up:
                agent.start()

    def ledger_back(self) -> None:
        self.cluster.ledger.reachable = True

    def ears_back(self) -> None:
        self.cluster.pubsub.away = False

    def heal(self) -> None:
        self.note("everything is healed")
        self.chaos.stop()
        self.machines.stop()
        self.weather.calm_down()
        for hops in self.hops.values():
            hops.slow = 1
        for name, node in self.cluster.nodes.items():
            node.heal()
            node.clock.wall_shift_us = 0
            self.restart(name)
        for agent in self.cluster.subscribers.values():
            agent.heal()
        self.restart_rest()
        self.ledger_back()
        self.ears_back()

    # ------------------------------------------------------------ the run

    def run(self) -> None:
        with work_takes_time(self.cluster, self.plan.work_factor) as meter:
            self._run()
        demand(
            meter.longest_ns < TURN_MS_MAX * MS,
            "turn",
            f"a turn of {meter.longest_of} took {meter.longest_ns // MS} ms as master",
        )

    def _run(self) -> None:
        self.setup()
        self.chaos.start()
        if self.plan.machines:
            self.machines.start()
        for workload in self.workloads:
            workload.start()
        self._pass(self.plan.chaos_ms)
        for workload in self.workloads:
            workload.stop()
        self.heal()
        self.demand_liveness()
        # The past may have been collected just now, which not all have followed yet.
        self._wait(self._caught_up, CALM_MS, "L6", self._behind_words)
        self.demand_end()

    def demand_end(self) -> None:
        demand_end(self)

    def setup(self) -> None:
        if self._deletes_log:
            self._let_the_log_be_deleted()
        self.cluster.start()
        for number, (kind, pause_ms) in enumerate(self.plan.workloads):
            workload = kind(self, self._rng(kind.__name__), number, pause_ms)
            self.workloads.append(workload)
        self._pass(300)
        for workload in self.workloads:
            workload.setup()
        self._wait(lambda: not self._waiting(), 20_000, "L7", self._waiting_words)
        for workload in self.workloads:
            workload.backfill()
        self._wait(lambda: not self._waiting(), 20_000, "L7", self._waiting_words)
        for name, numbers in self.plan.some_tables.items():
            self._begin_partial_replica(name, numbers)

    def _begin_partial_replica(self, name: str, numbers: Collection[int]) -> None:
        """Have a replica begin with a copy of some of the tables that are there, as one does that
        is told their names."""
        tables = self.reference.catalog.tables()
        chosen = [table for table in tables if table.table_id in numbers] or tables[:1]
        part = Part.of(HeldTable(table.table_id, table.name) for table in chosen)
        self.stores.choose_part(name, part)
        self.cluster.nodes[name].crash()
        self.restore(name, min(self.cluster.nodes))
        self.restart(name)

    def _let_the_log_be_deleted(self) -> None:
        """Have nodes say that copies are had from them, and somebody that the changefeed has
        published: without either everybody may need all of the log."""
        for name, node in self.cluster.nodes.items():
            node.settings = replace(node.settings, serves=f"{name}:1")
        self._acknowledge_for_the_changefeed()

    def _acknowledge_for_the_changefeed(self) -> None:
        cluster = self.cluster
        if cluster.changefeed.up and not cluster.bus.is_away:
            end = cluster.changefeed.position.offset
            said = Ack(
                "changefeed", incarnation_of(b""), CHANGEFEED_ROLE, end, 0, 0, 0, False, "", 0
            )
            acks = cluster.topics.acks.name
            cluster.bus.append(acks, 0, b"changefeed", self.codec.encode(said))
        self.scheduler.later(100 * MS, self._acknowledge_for_the_changefeed)

    def _pass(self, virtual_ms: int) -> None:
        self.scheduler.run_until(self.scheduler.now_ns + virtual_ms * MS)

    def _wait(
        self,
        until: Callable[[], bool],
        virtual_ms: int,
        invariant: str,
        words: Callable[[], str],
    ) -> None:
        end_ns = self.scheduler.now_ns + virtual_ms * MS
        while not until():
            demand(self.scheduler.now_ns < end_ns, invariant, words())
            self._pass(100)

    def _waiting(self) -> list[object]:
        """Return the requests that have no final answer, and can still have one: who was refused
        unread (L10) is answered when it asks again."""
        unread = self.reference.refused_unread
        return [
            asked
            for workload in self.workloads
            for asked in workload.client.waiting
            if workload.client.asks_again or asked.body not in unread
        ]

    def _waiting_words(self) -> str:
        waiting = self._waiting()
        return f"{len(waiting)} requests have no final answer, the first: {waiting[:1]}"

    def demand_liveness(self) -> None:
        """Once nothing is broken any more: each request has its answer, each job has ended, each
        node shows everything; within `heal_ms_max`; and nothing of it is lost again."""
        healed_ns, most_ms = self.scheduler.now_ns, self.plan.heal_ms_max
        goals = {"answered": self._answered, "ended": self._jobs_ended, "coherent": self._caught_up}
        since: dict[str, int] = {}
        while len(since) < len(goals):
            spent_ms = (self.scheduler.now_ns - healed_ns) // MS
            for goal, reached in goals.items():
                if not reached():
                    since.pop(goal, None)
                else:
                    since.setdefault(goal, spent_ms)
            missing = [goal for goal in goals if goal not in since]
            demand(not missing or spent_ms < most_ms, "liveness", self._missing_words(missing))
            if missing:
                self._pass(HEAL_LOOK_MS)
        self.recovery = Recovery(**since)
        self._settle(healed_ns + most_ms * MS)
        self._demand_calm()

    def _settle(self, end_ns: int) -> None:
        """Wait until everybody's lease has lasted for SETTLED_MS."""
        since_ns = self.scheduler.now_ns
        while self.scheduler.now_ns - since_ns < SETTLED_MS * MS:
            self._pass(HEAL_LOOK_MS)
            if not all(map(self._holds_lease, self.cluster.replicants())):
                since_ns = self.scheduler.now_ns
                demand(since_ns < end_ns, "liveness", self._behind_words())

    def _holds_lease(self, node: MemoryNode) -> bool:
        """Not whether it reads now: it may be at work, which is a pause here."""
        lease = node.node.lease if node.node is not None else None
        return lease is not None and lease.holds(node.now().mono_ns)

    def _demand_calm(self) -> None:
        """Who is coherent stays so while nothing is broken: for longer than any lease lasts."""
        end_ns = self.scheduler.now_ns + CALM_MS * MS
        while self.scheduler.now_ns < end_ns:
            self._pass(HEAL_LOOK_MS)
            for node in self.cluster.replicants():
                holds = self._holds_lease(node)
                demand(holds, "liveness", f"coherency is lost again: {self._behind_words()}")

    def _answered(self) -> bool:
        return not self._waiting()

    def _missing_words(self, goals: list[str]) -> str:
        words = {
            "answered": self._waiting_words,
            "ended": self._job_words,
            "coherent": self._behind_words,
        }
        return "; ".join(words[goal]() for goal in goals)

    def _jobs_ended(self) -> bool:
        return all(job.status.ended for job in self.reference.catalog.jobs.values())

    def _job_words(self) -> str:
        master = self.cluster.master()
        words = []
        for job in self.reference.catalog.jobs.values():
            if not job.status.ended:
                changes = master.node.master.changes if master and master.node else None  # type: ignore[union-attr]
                waits = changes.coordinator.waiting_for(job.job_id) if changes else "a master"
                words.append(
                    f"job {job.job_id} ({job.sql}) is {job.status}, {job.phase}: waits for {waits}"
                )
        return "; ".join(words)

    def _committed(self, name: str) -> int:
        return self.stores.get(name).contents.position.offset

    def _caught_up(self) -> bool:
        """And nothing is under way: a request that is sent twice may arrive after its answer."""
        self._goal = self.reference.last_change
        return (
            self.reference.all_decided
            and all(self._committed(name) >= self._goal for name in self.cluster.nodes)
            and self.cluster.changefeed.position.offset >= self._goal
            and all(node.reads() for node in self.cluster.replicants())
            and self.cluster.retry.idle
        )

    def _behind_words(self) -> str:
        at = {name: self._committed(name) for name in self.cluster.nodes}
        coherent = [n.settings.name for n in self.cluster.replicants() if n.reads()]
        return (
            f"the log ended at offset {self._goal}; nodes {at}, coherent {coherent},"
            f" changefeed {self.cluster.changefeed.position.offset}"
        )


def try_check(check: Callable[[], None]) -> None:
    """Before its table exists a workload has nothing to check."""
    try:
        check()
    except UnknownTable:
        return
