"""Spark's stand-in on the in-memory bus: backfill and validation runs and the retry of conflicts,
made of the same pure parts (`chunks`, `facts`, `schedule`, `retry_state`, `recompute`).

What Spark keeps in checkpoints survives a crash here too; what it has sent since the last one is
sent again, and what a dead task had on its way may arrive long after.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, field
from typing import Final

from leasehold.adapters.codec.records import UNREADABLE, MessagePackCodec
from leasehold.adapters.codec.request_encoding import encode_request
from leasehold.catalog.descriptor import Descriptor, from_wire
from leasehold.catalog.job import Job, Phase, job_from_wire
from leasehold.in_process.bus import MemoryBus, Message, Scheduler, Subscription
from leasehold.model.errors import Refused
from leasehold.model.records.events import VersionEvent
from leasehold.model.records.jobs import Chunk, ChunksEnd, Findings, JobEvent
from leasehold.model.records.requests import Conflict
from leasehold.model.time_units import NS_PER_MS
from leasehold.model.topics import Topics
from leasehold.pipeline.chunks import Chunker, rows_per_chunk, sorted_columns
from leasehold.pipeline.facts import (
    About,
    Fact,
    FactExtractor,
    find_sources,
    find_suspects,
    find_told,
    group_constraints,
    make_findings,
    select_counted,
    select_newest,
)
from leasehold.pipeline.retry_state import Arrived, Waiting, next_attempt, step
from leasehold.pipeline.schedule import RunId, decide
from leasehold.replication.changefeed import version_key

CODEC: Final = MessagePackCodec()
EARLY_MS: Final = 50
BACKFILLS_MAX: Final = 4


class PipelineHops:
    """Delays and accidents of the pipeline; the simulation overrides it."""

    def produce_ns(self) -> int:
        return 0

    def batch_ns(self) -> int:
        """Pause before a micro-batch."""
        return 0

    def batch_offsets(self) -> int:
        return 10_000

    def compacted(self) -> bool:
        """Whether an image that a newer one of its key follows is gone from the topic."""
        return False

    def zombie_ns(self) -> int:
        """When a dead task sends a chunk once more; 0 = it does not."""
        return 0


@dataclass(slots=True)
class _Checkpoint:
    """What a run has done for certain: next offset per table and partition, rows and chunks so
    far; of a validation the newest facts."""

    offsets: dict[tuple[int, int], int] = field(default_factory=dict)
    rows: int = 0
    chunks: int = 0
    facts: dict[About, Fact] = field(default_factory=dict)


@dataclass(slots=True)
class _Run:
    """`ends`: by table and partition. `descriptor`: what a validation takes the constraints from;
    `elements`: those."""

    job: Job
    ends: dict[tuple[int, int], int]
    descriptor: Descriptor | None = None
    elements: tuple[int, ...] = ()
    stopped: bool = False


class MemoryBackfill:
    """The driver: follows the jobs topic and brings every wanted run to its end marker."""

    def __init__(
        self, topics: Topics, scheduler: Scheduler, bus: MemoryBus, hops: PipelineHops | None = None
    ) -> None:
        self._topics = topics
        self._scheduler = scheduler
        self._bus = bus
        self._hops = hops or PipelineHops()
        self._checkpoints: dict[RunId, _Checkpoint] = {}  # durable
        self._jobs: dict[int, Job] = {}
        self._runs: dict[RunId, _Run] = {}
        self._finished: set[RunId] = set()
        self._subscription: Subscription | None = None
        self._life = 0
        self.up = False

    def start(self) -> None:
        assert not self.up, "it runs"
        self.up = True
        self._life += 1
        self._jobs, self._runs, self._finished = {}, {}, set()
        jobs = self._topics.jobs.name
        for message in self._bus.read(jobs):
            self._take(message)
        self._subscription = self._bus.subscribe(jobs, 0, self._bus.end(jobs), self._job_read)
        self._decide()

    def crash(self) -> None:
        self.up = False
        self._life += 1
        if self._subscription is not None:
            self._subscription.cancel()

    def _job_read(self, message: Message) -> None:
        self._take(message)
        self._decide()

    def _take(self, message: Message) -> None:
        if message.key.startswith(b"job/") and message.value is None:
            self._jobs.pop(int(message.key.removeprefix(b"job/")), None)
        elif message.key.startswith(b"job/") and message.value is not None:
            job = job_from_wire(CODEC.decode_as(JobEvent, message.value).body)
            self._jobs[job.job_id] = job

    def _decide(self) -> None:
        running = [run for run, state in self._runs.items() if not state.stopped]
        decision = decide(self._jobs, running, self._finished, backfills_max=BACKFILLS_MAX)
        for run in decision.stop:
            self._runs.pop(run).stopped = True
        for run in decision.start:
            job = self._jobs[run.job_id]
            state = self._runs[run] = self._begun(job)
            self._checkpoints.setdefault(run, _Checkpoint())
            self._later(self._hops.batch_ns(), run, state, self._next)
        for job_id in decision.forget:
            for run in [run for run in self._checkpoints if run.job_id == job_id]:
                del self._checkpoints[run]

    def _begun(self, job: Job) -> _Run:
        # The job event that starts this run was published after every image up to its fence, and
        # after the version that its step has published.
        if job.phase is not Phase.VALIDATING:
            return _Run(job, self._ends({job.table_id}))
        key = version_key(job.table_id)
        versions = self._bus.read(self._topics.versions.name, 0, 0)
        data = next(m.value for m in reversed(versions) if m.key == key)
        assert data is not None, "no table that a job names is forgotten"
        descriptor = from_wire(CODEC.decode_as(VersionEvent, data).body)
        elements = find_told(descriptor, job.current.validates)
        tables = {side.table_id for side in find_sources(descriptor, elements)}
        return _Run(job, self._ends(tables), descriptor, elements)

    def _ends(self, tables: Collection[int]) -> dict[tuple[int, int], int]:
        topics = {table_id: self._topics.rows(table_id) for table_id in sorted(tables)}
        return {
            (table_id, partition): self._bus.end(topic.name, partition)
            for table_id, topic in topics.items()
            for partition in range(topic.partitions)
        }

    def _later(
        self, delay_ns: int, run: RunId, state: _Run, action: Callable[[RunId, _Run], None]
    ) -> None:
        life = self._life

        def act() -> None:
            if self._life == life and not state.stopped:
                action(run, state)

        self._scheduler.later(delay_ns, act)

    def _next(self, run: RunId, state: _Run) -> None:
        """The run's next micro-batch."""
        done = self._checkpoints[run]
        after = dict(done.offsets)
        read: list[tuple[tuple[int, int], list[Message]]] = []
        for (table_id, partition), end in state.ends.items():
            first = after.get((table_id, partition), 0)
            if first >= end:
                continue
            last = min(end, first + self._hops.batch_offsets())
            topic = self._topics.rows(table_id).name
            read.append(((table_id, partition), self._kept(topic, partition, first, last)))
            after[table_id, partition] = last
        if state.job.phase is Phase.VALIDATING:
            self._tell(run, state, read, after)
        else:
            self._fill(run, state, [messages for _, messages in read], after)

    def _tell(
        self,
        run: RunId,
        state: _Run,
        read: list[tuple[tuple[int, int], list[Message]]],
        after: dict[tuple[int, int], int],
    ) -> None:
        """A micro-batch of a validation: facts into the checkpoint, at the end the findings."""
        done, job, descriptor = self._checkpoints[run], state.job, state.descriptor
        assert descriptor is not None, "it is a validation"
        if not read:
            found = find_suspects(
                done.facts.values(), group_constraints(descriptor, state.elements)
            )
            self._send([make_findings(job, done.rows, len(found), found)], run, state, None)
            return
        sides = find_sources(descriptor, state.elements)
        counted = {(s.element_id, s.parent) for s in select_counted(sides).values()}
        told: list[Fact] = []
        for (table_id, partition), messages in read:
            extractor = FactExtractor(descriptor, sides, table_id)
            for message in messages:
                told += extractor.extract(message.key, partition, message.offset, message.value)
        rows = done.rows + sum(1 for fact in told if fact[:2] in counted)
        facts = select_newest([*done.facts.values(), *told])
        self._send([], run, state, _Checkpoint(after, rows, 0, facts))

    def _fill(
        self,
        run: RunId,
        state: _Run,
        read: list[list[Message]],
        after: dict[tuple[int, int], int],
    ) -> None:
        """A micro-batch of a backfill: chunks of its images, at the end the marker."""
        done, job = self._checkpoints[run], state.job
        if not read:
            self._send([ChunksEnd(job.job_id, run.run, done.rows, done.chunks)], run, state, None)
            return
        template = Chunk(
            job.job_id, run.run, job.table_id, job.versions[job.table_id], job.element_id, ()
        )
        settings = job.settings
        rows_max = rows_per_chunk(settings.get("chunk_rows", 0), settings.get("rows_per_second", 0))
        chunks: list[Chunk] = []
        for messages in read:
            chunker = Chunker(template, sorted_columns(job), rows_max)
            chunks += chunker.take([m.key for m in messages], [m.value for m in messages])
            chunks += chunker.rest()
        rows = done.rows + sum(len(chunk.keys) for chunk in chunks)
        self._send(chunks, run, state, _Checkpoint(after, rows, done.chunks + len(chunks)))

    def _kept(self, topic: str, partition: int, first: int, last: int) -> list[Message]:
        """Records [first, last) as a compacted topic may still hold them."""
        messages = self._bus.read(topic, partition, 0)
        newest = {message.key: message.offset for message in messages}
        return [
            m
            for m in messages[first:last]
            if newest[m.key] == m.offset or not self._hops.compacted()
        ]

    def _send(
        self,
        records: Sequence[Chunk | ChunksEnd | Findings],
        run: RunId,
        state: _Run,
        after: _Checkpoint | None,
    ) -> None:
        """All of them, in order; then, if this task still lives, its checkpoint."""
        topic = self._topics.backfill.name
        at_ns = self._scheduler.now_ns
        for record in records:
            at_ns += self._hops.produce_ns()
            data = CODEC.encode(record)
            # Not guarded: what was handed to the network arrives, whoever has died.
            self._scheduler.at(at_ns, lambda data=data: self._append(topic, data))  # type: ignore[misc]
            zombie_ns = self._hops.zombie_ns()
            if zombie_ns:
                self._scheduler.later(zombie_ns, lambda data=data: self._append(topic, data))  # type: ignore[misc]

        def arrived(run: RunId, state: _Run) -> None:
            if after is None:
                self._finished.add(run)
                self._runs.pop(run, None)
                self._decide()
            else:
                self._checkpoints[run] = after
                self._later(self._hops.batch_ns(), run, state, self._next)

        self._later(at_ns - self._scheduler.now_ns, run, state, arrived)

    def _append(self, topic: str, data: bytes) -> None:
        self._bus.append(topic, 0, b"", data)


class MemoryRetry:
    """The verify/retry stream: conflicts in, after their back-off the next attempts out."""

    def __init__(
        self, topics: Topics, scheduler: Scheduler, bus: MemoryBus, hops: PipelineHops | None = None
    ) -> None:
        self._topics = topics
        self._scheduler = scheduler
        self._bus = bus
        self._hops = hops or PipelineHops()
        self._offset = 0  # durable, together with what waits
        self._waiting: tuple[Waiting, ...] = ()
        self._subscription: Subscription | None = None
        self._life = 0
        self._busy = False
        self.up = False

    @property
    def idle(self) -> bool:
        return not self._waiting and self._offset >= self._bus.end(self._topics.conflicts.name)

    def start(self) -> None:
        assert not self.up, "it runs"
        self.up = True
        self._busy = False
        self._life += 1
        self._subscription = self._bus.subscribe(
            self._topics.conflicts.name, 0, self._offset, lambda _: self._trigger(0)
        )
        self._trigger(0)

    def crash(self) -> None:
        self.up = False
        self._life += 1
        if self._subscription is not None:
            self._subscription.cancel()

    def _trigger(self, delay_ns: int) -> None:
        life = self._life

        def act() -> None:
            if self._life == life and not self._busy:
                self._batch()

        self._scheduler.later(delay_ns + self._hops.batch_ns(), act)

    def _batch(self) -> None:
        conflicts = self._bus.read(self._topics.conflicts.name, 0, self._offset)
        arrived = []
        for message in conflicts:
            assert message.value is not None, "conflicts are never deleted"
            conflict = CODEC.decode_as(Conflict, message.value)
            arrived.append(Arrived(conflict.request_id, conflict.attempt, message.value))
        after = step(self._waiting, arrived, self._scheduler.now().wall_us // 1_000, EARLY_MS)
        self._busy = True
        life = self._life
        at_ns = self._scheduler.now_ns
        for entry in after.ready:
            encoded = _next_attempt(entry)
            if encoded is None:
                continue
            at_ns += self._hops.produce_ns()
            self._scheduler.at(at_ns, lambda e=encoded: self._append(*e))  # type: ignore[misc]
        offset = self._offset + len(conflicts)

        def committed() -> None:
            if self._life != life:
                return
            self._busy = False
            self._offset, self._waiting = offset, after.waiting
            if self._offset < self._bus.end(self._topics.conflicts.name):
                self._trigger(0)
            elif after.next_due_ms is not None:
                wait_ms = after.next_due_ms - self._scheduler.now().wall_us // 1_000
                self._trigger(max(1, wait_ms) * NS_PER_MS)

        self._scheduler.at(at_ns, committed)

    def _append(self, content_type: str, body: bytes) -> None:
        headers = {"content-type": content_type}
        self._bus.append(self._topics.requests.name, 0, b"", body, headers)


def _next_attempt(entry: Waiting) -> tuple[str, bytes] | None:
    """None: it can't be recomputed and waits for its sender."""
    try:
        return encode_request(next_attempt(CODEC, entry))
    except (Refused, *UNREADABLE):
        return None
