"""Spark's stand-in on the in-memory bus for backfills and validations, made of the same pure parts
(`leasehold.pipeline`).

What Spark keeps in checkpoints survives a crash here too; what it has sent since the last one is
sent again, and what a dead task had on its way may arrive long after.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from typing import Final

from leasehold.adapters.codec.records import MessagePackCodec
from leasehold.adapters.codec.request_bytes import MESSAGE_PACK
from leasehold.catalog.descriptor import Descriptor, read_descriptor
from leasehold.catalog.job import Job, Phase, read_job
from leasehold.in_process.bus import MemoryBus, Message, Scheduler
from leasehold.in_process.network import PipelineHops
from leasehold.in_process.task import MemoryTask
from leasehold.model.errors import MalformedRequest
from leasehold.model.records.events import VersionEvent
from leasehold.model.records.jobs import (
    BackfillBorder,
    Chunk,
    ChunksEnd,
    Findings,
    JobEvent,
)
from leasehold.model.records.requests import Queue
from leasehold.model.signatures import MACHINERY, NO_KEYS, RequestKeys, signer
from leasehold.model.topics import Topics
from leasehold.pipeline.borders import cut_ranges, take_sample
from leasehold.pipeline.chunks import Chunker, chunk_template, rows_per_chunk, sorted_columns
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
from leasehold.pipeline.schedule import RunId, decide
from leasehold.replication.changefeed import job_of_key, version_key

CODEC: Final = MessagePackCodec()
BACKFILLS_MAX: Final = 4
RANGE_ROWS: Final = 25
"""So few that small tables have several ranges, too: what is to be looked at here."""


@dataclass(slots=True)
class _Checkpoint:
    """What a run has done for certain: next offset per table and partition, rows and chunks so
    far; of a validation the newest facts, of a backfill by range keys that tell where to cut."""

    offsets: dict[tuple[int, int], int] = field(default_factory=dict)
    rows: int = 0
    chunks: int = 0
    facts: dict[About, Fact] = field(default_factory=dict)
    samples: tuple[bytes, ...] = ()


@dataclass(slots=True)
class _Run:
    """A run under way. `ends`: the offset by table and partition up to which it reads.
    `descriptor`: what a validation takes the constraints `elements` from."""

    job: Job
    ends: dict[tuple[int, int], int]
    descriptor: Descriptor | None = None
    elements: tuple[int, ...] = ()
    stopped: bool = False


def _told(message: Message) -> Descriptor | None:
    """Return what a version event says, None for what is none."""
    try:
        return read_descriptor(CODEC.decode_as(VersionEvent, message.value or b"").body)
    except MalformedRequest:
        return None


class MemoryBackfill(MemoryTask):
    """The driver: follows the jobs topic and brings every wanted run to its end marker."""

    def __init__(
        self,
        topics: Topics,
        scheduler: Scheduler,
        bus: MemoryBus,
        hops: PipelineHops | None = None,
        keys: RequestKeys | None = None,
    ) -> None:
        super().__init__(scheduler)
        self._sign = signer(keys or NO_KEYS, topics.database)
        self._topics = topics
        self._bus = bus
        self._hops = hops or PipelineHops()
        self._checkpoints: dict[RunId, _Checkpoint] = {}  # durable
        self._jobs: dict[int, Job] = {}
        self._runs: dict[RunId, _Run] = {}
        self._finished: set[RunId] = set()

    def start(self) -> None:
        self.begin()
        self._jobs, self._runs, self._finished = {}, {}, set()
        jobs = self._topics.jobs.name
        for message in self._bus.read(jobs):
            self._take(message)
        end = self._bus.end(jobs)
        self.subscriptions[jobs] = self._bus.subscribe(jobs, 0, end, self._job_read)
        self._decide()

    def _job_read(self, message: Message) -> None:
        self._take(message)
        self._decide()

    def _take(self, message: Message) -> None:
        job_id = job_of_key(message.key)
        if job_id is None:
            return
        if message.value is None:
            self._jobs.pop(job_id, None)
        else:
            with suppress(MalformedRequest):  # Spark's driver says so, and goes on
                self._jobs[job_id] = read_job(CODEC.decode_as(JobEvent, message.value).body)

    def _decide(self) -> None:
        running = [run for run, state in self._runs.items() if not state.stopped]
        decision = decide(self._jobs, running, self._finished, backfills_max=BACKFILLS_MAX)
        for run in decision.stop:
            self._runs.pop(run).stopped = True
        for run in decision.start:
            job = self._jobs[run.job_id]
            state = self._runs[run] = self._begun(job)
            self._checkpoints.setdefault(run, _Checkpoint())
            self._act_later(self._hops.batch_ns(), run, state, self._next)
        for job_id in decision.forget:
            for run in [run for run in self._checkpoints if run.job_id == job_id]:
                del self._checkpoints[run]

    def _begun(self, job: Job) -> _Run:
        # The job event that starts this run was published after every image up to its fence, and
        # after the version that its step has published.
        if job.phase is not Phase.VALIDATING:
            return _Run(job, self._ends({job.worked_table}))
        key = version_key(job.worked_table)
        versions = self._bus.read(self._topics.versions.name, 0, 0)
        descriptor = next(found for m in reversed(versions) if m.key == key and (found := _told(m)))
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

    def _act_later(
        self, delay_ns: int, run: RunId, state: _Run, action: Callable[[RunId, _Run], None]
    ) -> None:
        def act() -> None:
            if not state.stopped:
                action(run, state)

        self.later(delay_ns, act)

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
        elif state.job.by_range:
            self._cut(run, state, [messages for _, messages in read], after)
        else:
            self._backfill(run, state, [messages for _, messages in read], after)

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

    def _backfill(
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
        template = chunk_template(job)
        settings = job.settings
        rows_max = rows_per_chunk(settings.get("chunk_rows", 0), settings.get("rows_per_second", 0))
        chunks: list[Chunk] = []
        for messages in read:
            chunker = Chunker(template, sorted_columns(job), rows_max)
            chunks += chunker.take([m.key for m in messages], [m.value for m in messages])
            chunks += chunker.rest()
        rows = done.rows + sum(len(chunk.keys) for chunk in chunks)
        self._send(chunks, run, state, _Checkpoint(after, rows, done.chunks + len(chunks)))

    def _cut(
        self,
        run: RunId,
        state: _Run,
        read: list[list[Message]],
        after: dict[tuple[int, int], int],
    ) -> None:
        """A micro-batch of a backfill by range: rows that are counted, and a sample of their keys;
        at the end the borders and the marker."""
        done, job = self._checkpoints[run], state.job
        if not read:
            cut = cut_ranges(job, done.samples, done.rows, RANGE_ROWS)
            end = ChunksEnd(job.job_id, run.run, done.rows, len(cut))
            self._send([*cut, end], run, state, None)
            return
        rows, samples = done.rows, done.samples
        for messages in read:
            taken = take_sample([m.key for m in messages], [m.value for m in messages], 1)
            rows, samples = rows + taken.rows, (*samples, *taken.keys)
        self._send([], run, state, _Checkpoint(after, rows, 0, samples=samples))

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
        records: Sequence[BackfillBorder | Chunk | ChunksEnd | Findings],
        run: RunId,
        state: _Run,
        after: _Checkpoint | None,
    ) -> None:
        """All of them, in order; then, if this task still lives, its checkpoint."""
        topic = self._topics.backfill.name
        at_ns = self.scheduler.now_ns
        for record in records:
            at_ns += self._hops.produce_ns()
            data = CODEC.encode(record)
            content_type = self._sign(Queue.BACKFILL, MACHINERY, MESSAGE_PACK, data)
            headers = {"content-type": content_type}
            append = partial(
                self._bus.once_there, partial(self._bus.append, topic, 0, b"", data, headers)
            )
            # In whatever life: what was handed to the network arrives, whoever has died.
            self.scheduler.at(at_ns, append)
            zombie_ns = self._hops.zombie_ns()
            if zombie_ns:
                self.scheduler.later(zombie_ns, append)

        def arrived(run: RunId, state: _Run) -> None:
            if after is None:
                self._finished.add(run)
                self._runs.pop(run, None)
                self._decide()
            else:
                self._checkpoints[run] = after
                self._act_later(self._hops.batch_ns(), run, state, self._next)

        self._act_later(at_ns - self.scheduler.now_ns, run, state, arrived)
