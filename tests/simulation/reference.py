"""The log as an observer reads it who sees every record at the instant it is appended.

It tells what is true: which records count, what was decided, what every store must hold at which
offset. What nodes, masters and clients say is compared with it.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable
from typing import Final, NamedTuple

from leasehold.adapters.codec.records import MessagePackCodec
from leasehold.catalog.catalog import Catalog
from leasehold.catalog.descriptor import from_wire
from leasehold.catalog.job import Job, job_from_wire
from leasehold.in_process.bus import Message
from leasehold.model.errors import Refused, TooComplex
from leasehold.model.records.log import (
    Claim,
    Commit,
    Decisions,
    DescriptorWrite,
    JobWrite,
    LogPosition,
    MinVersion,
)
from leasehold.model.records.requests import Outcome, Queue
from leasehold.replication.log.about import About, about
from leasehold.replication.log.admission import Verdict, admit
from leasehold.replication.log.apply import apply_record
from leasehold.replication.log.foreign import ForeignRecords
from leasehold.replication.log.retention import HistorySettings
from leasehold.replication.master.attempts import LOST_MAX
from leasehold.replication.outcomes import (
    OutcomeSettings,
    outcome_of_commit,
    outcome_of_refusal,
)
from tests.simulation.harm import Harm, demand
from tests.support.memory_store.check import check_contents
from tests.support.memory_store.store import MemoryStore

CODEC: Final = MessagePackCodec()
JUDGED_MAX: Final = 30
UNREAD: Final = (Queue.REQUESTS, TooComplex.sqlstate)
"""Queue and SQLSTATE of a refusal that, without a request id, nobody has looked into."""


class JobMove(NamedTuple):
    """What a commit says of a job; `before` is None: it begins."""

    request_id: bytes
    before: Job | None
    after: Job


OnJobs = Callable[[int, tuple[JobMove, ...], Catalog], None]


class Reference:
    def __init__(
        self, outcomes: OutcomeSettings | None = None, history: HistorySettings | None = None
    ) -> None:
        self._outcomes = outcomes or OutcomeSettings()
        self._history = history or HistorySettings()
        self.position = LogPosition()
        self.last_change = 0  # offset behind the last record that a store has to follow
        self.positions: dict[int, LogPosition] = {0: self.position}  # by offset
        self.store = MemoryStore()
        self.store.keep_rows(self._history.rows_ms > 0)
        self.catalog = Catalog()
        self.commits: dict[bytes, tuple[int, Commit]] = {}  # by request id
        # What the log has said of each id, in order; nodes forget it by the id horizon (L5).
        self.said: defaultdict[bytes, list[Outcome]] = defaultdict(list)
        self.decided_at: dict[tuple[bytes, int], int] = {}  # (request id, attempt) → offset
        self.in_order: list[tuple[int, Commit]] = []  # those of requests
        self.every: list[tuple[int, Commit]] = []  # and those of the master's own, as jobs'
        self.requests: list[tuple[bytes, int]] = []  # (id, attempt) by offset of the queue
        self.places_asked: set[int] = set()  # offsets of requests that only ask for a place
        self.seen_by: dict[bytes, int] = {}  # their ids → LSN that had been answered before (T6)
        self.refused_at: set[int] = set()  # offsets of requests, also of what is none
        self.foreign = ForeignRecords()
        self.foreign_records = False
        """Whether somebody else writes to the log."""
        self.attempted: defaultdict[tuple[str, int], set[int]] = defaultdict(set)
        """The epochs of the terms that have said of a message (queue, offset) that it is next."""
        self.refused_unread: set[bytes] = set()
        """Bodies of requests that nobody was to look into, so that nobody is answered (L10)."""
        self.refusals = 0
        self.skipped = 0
        self.about: list[tuple[int, About]] = []
        """What each record is about that changes anything, by offset."""
        self.filled_apart: set[tuple[int, int]] = set()
        """Columns (table, element) that a job has ever filled by range, each node for itself."""
        self.public: set[tuple[int, int]] = set()
        """Elements that anybody could ever read, also by versions that are collected by now."""
        self.on_jobs: list[OnJobs] = []  # with a record's offset and the catalog after it

    def request_appended(self, message: Message, answered_lsn: int) -> None:
        """Ids are looked up when their offset is decided (L3). `answered_lsn`: the highest of the
        answers so far."""
        assert message.offset == len(self.requests), "offsets are dense"
        content_type = message.headers.get("content-type", "application/msgpack")
        try:
            request = CODEC.decode_request(content_type, message.value or b"")
        except Refused:
            self.requests.append((b"", 1))
            return
        if request.barrier is not None and request.barrier.check is None:
            self.places_asked.add(message.offset)
            self.seen_by.setdefault(request.id, answered_lsn)
        self.requests.append((request.id, request.attempt))

    @property
    def all_decided(self) -> bool:
        return self.position.decided_through.get(Queue.REQUESTS, 0) == len(self.requests)

    def log_appended(self, message: Message) -> str:
        """→ words for the history, "" where nothing is worth telling."""
        data = message.value or b""
        record, digest = CODEC.read_log(data), CODEC.digest(data)
        before = self.position
        verdict, after = self.foreign.judge(admit, before, message.offset, record, digest, 0)
        if verdict is Verdict.FOREIGN and not self.foreign_records:
            raise Harm(f"L2: a record at offset {message.offset} does not follow: {record!r:.200}")
        self.position = after
        self.positions[after.offset] = after
        words = ""
        if verdict is Verdict.APPLY:
            assert isinstance(record, Decisions), "only decisions are applied"
            held = self._held()
            words = self._apply(record, before, after)
            # A record that decides nothing may be the one by which the past is collected.
            if record.commits or record.refusals or self._held() != held:
                self.last_change = after.offset
        elif isinstance(record, Claim | Decisions):
            words = self._other(record, verdict, after)
        return words

    def _held(self) -> tuple[int, int, int]:
        """Return how much of the past is held that nodes forget by the log's time."""
        contents = self.store.contents
        return len(contents.descriptors), len(contents.outcomes), len(contents.untimely)

    def _other(self, record: Claim | Decisions, verdict: Verdict, after: LogPosition) -> str:
        self.store.begin()
        self.store.commit(after)
        offset = after.offset - 1
        if verdict is Verdict.CLAIMED:
            assert isinstance(record, Claim), "only claims are claimed"
            return f"log {offset}: {record.node} claims epoch {record.epoch}"
        self.skipped += 1
        kind = "claim" if isinstance(record, Claim) else "record"
        return f"log {offset}: a {kind} of epoch {record.epoch} is skipped"

    def _apply(self, record: Decisions, before: LogPosition, after: LogPosition) -> str:
        for number, commit in enumerate(record.commits):
            self._judge_commit(commit, record.first_lsn + number)
        for lsn, commit in enumerate(record.commits, record.first_lsn):
            self.said[commit.request_id].append(outcome_of_commit(commit, lsn))
        for refusal in record.refusals:
            self.said[refusal.request_id].append(outcome_of_refusal(refusal))
        moves = self._job_moves(record) if self.on_jobs else ()
        self.store.begin()
        changed = apply_record(
            record, after, self.catalog, self.store, self._outcomes, self._history
        )
        self._note_versions(record)
        self._judge_attempts(record)
        self.store.commit(after)
        self.refusals += len(record.refusals)
        offset = after.offset - 1
        said = about(record, self.catalog)
        if said.tables != frozenset():
            self.about.append((offset, said))
        self.decided_at.update(((c.request_id, c.attempt), offset) for c in record.commits)
        self.decided_at.update(((r.request_id, r.attempt), offset) for r in record.refusals)
        self.refused_at |= {r.offset for r in record.refusals if r.queue == Queue.REQUESTS}
        self._judge_queues(before, after)
        for told in self.on_jobs if moves else ():
            told(offset, moves, self.catalog)
        if not changed:
            return ""
        self._judge_tables(said.tables)
        return f"log {after.offset - 1}: " + "; ".join(
            words for commit in record.commits for words in self._catalog_words(commit)
        )

    def _judge_attempts(self, record: Decisions) -> None:
        """L10: two terms may end over a message that is looked into, and one over reading it."""
        for attempt in record.attempts:
            self.attempted[attempt.queue, attempt.offset].add(record.epoch)
        for refusal in record.refusals:
            if refusal.request_id or (refusal.queue, refusal.code) != UNREAD:
                continue
            terms = self.attempted[refusal.queue, refusal.offset] - {record.epoch}
            words = f"request {refusal.offset} is refused unread; said by terms {terms} alone"
            demand(len(terms) > LOST_MAX, "L10", words)
            if refusal.body is not None:
                self.refused_unread.add(refusal.body)

    def _note_versions(self, record: Decisions) -> None:
        for commit in record.commits:
            for write in commit.catalog:
                if isinstance(write, DescriptorWrite):
                    table = write.table_id
                    made = from_wire(write.body)
                    self.filled_apart |= {(table, element) for element in made.filled_apart}
                    self.public |= {(table, element) for element in made.public_ids}

    def _job_moves(self, record: Decisions) -> tuple[JobMove, ...]:
        jobs, moves = dict(self.catalog.jobs), []
        for commit in record.commits:
            for write in commit.catalog:
                if isinstance(write, JobWrite):
                    job = job_from_wire(write.body)
                    moves.append(JobMove(commit.request_id, jobs.get(job.job_id), job))
                    jobs[job.job_id] = job
        return tuple(moves)

    def _judge_commit(self, commit: Commit, lsn: int) -> None:
        self.every.append((lsn, commit))
        if commit.request_id:
            known = self.commits.get(commit.request_id)
            demand(known is None, "R1", f"request {commit.request_id.hex()} committed twice")
            demand(
                not any(outcome.final for outcome in self.said[commit.request_id]),
                "L5",
                f"request {commit.request_id.hex()} was refused for good and then committed",
            )
            self.commits[commit.request_id] = (lsn, commit)
            self.in_order.append((lsn, commit))
        for table_id, version in commit.versions.items():
            lowest = self.catalog.min_version(table_id)
            demand(version >= lowest, "D5", f"LSN {lsn} used version {version} below {lowest}")
        for write in commit.catalog:
            # One that takes another table's place begins at that one's number.
            if isinstance(write, DescriptorWrite) and self.catalog.has(write.table_id):
                lowest = self.catalog.min_version(write.table_id)
                demand(
                    lowest == write.version - 1,
                    "D5",
                    f"version {write.version} published while min_version is {lowest}",
                )

    def _judge_queues(self, before: LogPosition, after: LogPosition) -> None:
        """L3: what the log says is decided has an outcome, and nothing goes back."""
        for queue, offset in after.decided_through.items():
            first = before.decided_through.get(queue, 0)
            demand(offset >= first, "L3", f"{queue} decided through {first}, then {offset}")
            if queue != Queue.REQUESTS:
                continue
            for place, (request_id, attempt) in enumerate(self.requests[first:offset], first):
                if place in self.refused_at or place in self.places_asked:
                    continue
                outcome = self.outcome(request_id)
                demand(
                    outcome is not None
                    and (outcome.final or bool(outcome.lsn) or outcome.attempt >= attempt - 1),
                    "L3",
                    f"request {request_id.hex()} attempt {attempt} was passed over: {outcome}",
                )

    def _judge_tables(self, about: frozenset[int] | None) -> None:
        """Judge all tables, or of very many only those that the record was about: at the end of a
        run all are."""
        every = self.catalog.tables()
        if about is not None and len(every) > JUDGED_MAX:
            every = tuple(descriptor for descriptor in every if descriptor.table_id in about)
        for descriptor in every:
            report = check_contents(self.store.contents, b"", descriptor.table_id, ())
            demand(not report.findings, "d ⊨ S", f"{descriptor.name}: {report.findings[:3]}")

    def _catalog_words(self, commit: Commit) -> list[str]:
        words = []
        for write in commit.catalog:
            match write:
                case DescriptorWrite(table_id=table, version=version):
                    words.append(f"table {table} version {version}")
                case MinVersion(table_id=table, version=version):
                    words.append(f"table {table} min_version {version}")
                case JobWrite(body=body):
                    job = job_from_wire(body)
                    state = job.current.label if job.step < len(job.steps) else ""
                    words.append(
                        f"job {job.job_id} {job.status.value}, step {job.step} to {state},"
                        f" {job.phase.value}, run {job.run} {job.error}".rstrip()
                    )
                case _:
                    words.append(str(write))
        return words

    def outcome(self, request_id: bytes) -> Outcome | None:
        """The newest."""
        said = self.said.get(request_id)
        return said[-1] if said else None
