"""The master's term of office: from the read-back of its Claim to the end of its epoch.

One record is on its way at a time; while it travels, the next requests gather: that is the group
commit. Meanwhile what it has decided is put into the store, whose write transaction stays open
until the record was read back as this master's own (L4), so a batch is in the log and in the store,
or in neither.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

from leasehold.catalog.catalog import Catalog
from leasehold.model.audit import AuditEvent
from leasehold.model.features import NEWEST, FeatureGate
from leasehold.model.measures import Measures
from leasehold.model.ports import Codec, Now
from leasehold.model.records.acks import (
    Ack,
    Acknowledgement,
    CheckReport,
    LeaseAck,
    MergeReport,
    PartReport,
)
from leasehold.model.records.log import Commit, Decisions, JobWrite, LogPosition
from leasehold.model.records.requests import Queue
from leasehold.model.time_units import NS_PER_MS
from leasehold.model.traces import NO_SPANS, SpanSink
from leasehold.replication.coherency import CoherencyWatch, RunningLeases
from leasehold.replication.disk_room import DiskRoom
from leasehold.replication.effects import (
    Append,
    AskQueue,
    Audit,
    BeginTerm,
    Effect,
    EndRequests,
    Wake,
)
from leasehold.replication.log.about import EVERYTHING, about
from leasehold.replication.log.apply import apply_catalog, keep_past
from leasehold.replication.log.clock import LogClock, Reading
from leasehold.replication.log.truncation import COPY_ROLE
from leasehold.replication.master.answers import Answers, answers_of
from leasehold.replication.master.attempts import Attempts, Spared
from leasehold.replication.master.audit_events import (
    event_of_finalization,
    events_of_commit,
    events_of_refusals,
)
from leasehold.replication.master.backfill_pacing import BackfillPace
from leasehold.replication.master.backfill_queue import BackfillQueue
from leasehold.replication.master.batch import Batch
from leasehold.replication.master.batch_limits import CommitLimits
from leasehold.replication.master.chunk_decider import ChunkDecider
from leasehold.replication.master.cleanup import Cleanup
from leasehold.replication.master.intake import Intake
from leasehold.replication.master.large_request import WORK_MS_MAX, OversizedRequest
from leasehold.replication.master.record_draft import Full, RecordDraft
from leasehold.replication.master.record_in_flight import RecordInFlight
from leasehold.replication.master.release import Release, notices_of_ended_jobs, notices_of_versions
from leasehold.replication.master.request_decider import RequestDecider
from leasehold.replication.master.request_queue import RequestQueue
from leasehold.replication.master.request_traces import RequestTraces
from leasehold.replication.master.row_copying import RowCopying
from leasehold.replication.master.schema_changes import SchemaChanges
from leasehold.replication.master.settings import MasterSettings
from leasehold.replication.master.term_measures import TermMeasures
from leasehold.replication.master.write_behind import WriteBehind
from leasehold.replication.queue_limits import ANSWERS_BYTES_MAX
from leasehold.replication.range_merging import MergeReports


class Master:
    """Made when this node's own Claim was read back; dropped when the epoch is lost.

    It owns the loop of the term: when the next record begins, what goes into it in which order, and
    what its read-back sets off. Each part owns the rest of the state: `intake` what waits,
    `RequestDecider` and `BackfillQueue` what is being decided, `RecordInFlight` what travels,
    `Release` what is given when nodes have it, `Cleanup` what is deleted."""

    def __init__(
        self,
        settings: MasterSettings,
        position: LogPosition,
        catalog: Catalog,
        store: WriteBehind,
        codec: Codec,
        unanswered: Iterable[Answers],
        changes: SchemaChanges,
        running: RunningLeases,
        now: Now,
        secret: bytes = b"",
        clock_ns: Callable[[], int] = lambda: 0,
        spared: Iterable[Spared] = (),
        name: str = "master",
        measures: Measures | None = None,
        disk: DiskRoom | None = None,
        spans: SpanSink = NO_SPANS,
    ) -> None:
        """Begin at `position`, right after the Claim. `unanswered`: what records after
        `answered_through` have to give (L7). `running`: the leases of its predecessors (C6).
        `secret`: at most 32 bytes, and `clock_ns`: see `Node`. `spared`: see `Attempts`. `name`:
        this node's. `measures`: where it counts. `disk`: of its store, None: nobody looks at it.
        `spans`: who is told of requests that are to be followed."""
        measures = measures or Measures()
        self._measures = TermMeasures(measures)
        self._settings = settings
        self._catalog = catalog
        self._store = store
        self._codec = codec
        self._clock_ns = clock_ns
        self._epoch = position.epoch
        self._incarnation = position.incarnation
        # The epoch: a record of an old master's that is lost may have had the same LSN.
        self._secret = secret + position.epoch.to_bytes(8, "big")
        self._log_end = position.offset
        self._appended_ns = 0
        self._leaves = False
        self.watch = CoherencyWatch(settings.coherency, now.mono_ns, running, position.offset)
        self.changes = changes
        self._feature_level = position.feature_level
        changes.features = FeatureGate(self.watch.all_know, lambda: self._feature_level)
        self._disk = disk or DiskRoom(name, "", 0)
        changes.check_room = self._disk.check_statements
        self._merges = MergeReports(name, self.watch, changes.features, store, position.offset)
        changes.coordinator.follow_ranges(self._merges)
        changes.coordinator.follow_holders(self.watch.holders)
        self.attempts = Attempts(position, spared)
        self._log_clock = LogClock(position, store, now, settings.outcomes)
        self._limits = CommitLimits(settings.batch, codec)
        self._traces = RequestTraces(spans, name, self.watch)
        self._queue = RequestQueue(codec, settings.verifier)
        self._requests = RequestDecider(
            self._queue,
            self.attempts,
            changes,
            catalog,
            self._log_clock,
            settings.batch,
            clock_ns,
            measures,
            self._disk,
            self._traces,
        )
        chunks = ChunkDecider(catalog, store, codec, self._limits)
        self._backfill = BackfillQueue(
            codec, store, changes, self.attempts, chunks, clock_ns, settings.verifier
        )
        self._copying = RowCopying(
            catalog,
            store,
            codec,
            self._limits,
            changes,
            settings.batch.record_bytes_max,
            clock_ns,
        )
        self._pace = BackfillPace(settings.backfill)
        self.intake = Intake(position, now.mono_ns, self._queue, self._backfill, self.attempts)
        self.flight = RecordInFlight(position, codec)
        self._release = Release(unanswered)
        self._cleanup = Cleanup(settings, position, catalog, now.mono_ns)

    @property
    def in_flight(self) -> bool:
        return self.flight.draft is not None

    @property
    def is_putting(self) -> bool:
        """Whether the store is still being told of what the record in flight changes, in turns of
        its own: what is read of the log waits for that."""
        return self._store.takes_long

    @property
    def at_rest(self) -> bool:
        """Whether nothing is decided, on its way or to be answered."""
        waits = self._queue or self._requests.verifies_large
        return not (self.in_flight or waits or self._release.answers.waiting())

    def on_its_way_ns(self, now_ns: int) -> int:
        """Return how long a record of this master's has been on its way, 0 while there is none."""
        return now_ns - self._appended_ns if self.in_flight else 0

    @property
    def answers_bytes(self) -> int:
        """Return about how many bytes of answers are not given, or not acknowledged."""
        return self._release.answers.size

    @property
    def rows_beside(self) -> int:
        """Return how many rows a round of a backfill beside users may have now."""
        return self._pace.rows_beside

    def records_behind(self, now_ns: int) -> int:
        """Return how many records the slowest coherent node has not acknowledged."""
        return self.watch.records_behind(self._log_end, now_ns)

    def begin(self) -> list[Effect]:
        """Ask for the topics of the queues, to read on where the log says (L3)."""
        return [BeginTerm(self._epoch, self._incarnation), *(AskQueue(queue) for queue in Queue)]

    # ------------------------------------------------------------ events

    def take_acknowledgement(self, record: Acknowledgement, now: Now) -> list[Effect]:
        if isinstance(record, Ack):
            if record.role != COPY_ROLE:
                self.watch.take_ack(record, self._log_end, now.mono_ns)
            self._cleanup.truncation.take_ack(record, now.mono_ns)
            return []
        if isinstance(record, LeaseAck):
            return self.changes.lease_acked(record, now)
        if isinstance(record, CheckReport):
            return self.changes.reported(record, now)
        if isinstance(record, MergeReport):
            self._merges.take(record)
            return []
        if isinstance(record, PartReport):
            self.watch.take_part(record, self._log_end, now.mono_ns)
            return []
        # Other reports are for those who look on; the ledger alone decides who is in the way.
        # ⚠ Whatever else can be read stops no master, for each of them would come to it.
        return []

    def take_published_ack(self, record: Acknowledgement, now: Now) -> None:
        """Take an acknowledgement of the fast path, where anybody may have said it: only a plain
        position, and only in the log that this term's Claim stands in. What is kept for others
        (truncation, those who look on) is fed by the topic."""
        if isinstance(record, Ack) and record.asked_ns == 0 and record.epoch == self._epoch:
            self.watch.take_published(record, now.mono_ns)

    @property
    def awaits_acks(self) -> bool:
        """Whether something waits that an acknowledgement can let go on: answers and ends of jobs
        (C1), rows of a backfill and requests that nodes must catch up for, the measure of a
        round."""
        if self._release.waits or self._queue or self._pace.measures:
            return True
        return self._backfill.waits or self._copying.is_under_way

    def has_due_answers(self, now: Now) -> bool:
        """Return whether a tick would give an answer, or the end of a job."""
        return self._release.is_due(self._may_answer(now))

    def acks_let_go(self, now: Now) -> bool:
        """Whether a tick after what was just heard would let it go on."""
        may_answer = self._may_answer(now)
        if self._release.is_due(may_answer) or self._pace.has_ended(may_answer):
            return True
        return not self.in_flight and self._has_work(now)

    def take_broker_ack(self, token: int) -> None:
        self._release.answers.sent(token)

    # ------------------------------------------------------------ the loop

    def tick(self, position: LogPosition, now: Now) -> list[Effect]:
        """Release what may be answered, drive the jobs, and start the next record."""
        begun_ns = self._clock_ns()
        may_answer = self._may_answer(now)
        effects = self._release.release(may_answer)
        self._released(now)
        if not self._leaves:
            effects += self.changes.tick(self.known_coherent(now), now)
        self._pace.end_rounds(may_answer, now.mono_ns)
        if not self.in_flight:
            effects += self._start(position, now)
        else:
            # What the next record would have to wait for.
            until_ns = begun_ns + WORK_MS_MAX * NS_PER_MS
            is_over = lambda: self._clock_ns() >= until_ns  # noqa: E731 - of this very turn
            self._store.settle_until(is_over)
            if not self._store.waits:
                self._requests.read_ahead(is_over)
        effects += self._log_clock.notices()
        effects += self.intake.resume()
        effects += self.intake.ask_missing(now.mono_ns)
        if self._cleanup.is_due(now.mono_ns):
            self.watch.sweep(now.mono_ns)
            self._merges.sweep()
            effects += self.intake.ask_identities()
            effects += self._cleanup.truncate_log(position, now.mono_ns)
        effects.append(Wake(self._wake_ns(now)))
        self.attempts.note_turn(self._clock_ns() - begun_ns)
        return effects

    def known_coherent(self, now: Now) -> frozenset[str] | None:
        """Return the nodes that may be serving reads. C4: until the leases of a deposed master are
        over, nobody knows who does."""
        if now.mono_ns < self.watch.serve_from_ns:
            return None
        return self.watch.coherent(now.mono_ns)

    def _may_answer(self, now: Now) -> Callable[[int], bool]:
        return lambda offset: self.watch.may_answer(offset, now.mono_ns)

    def _wake_ns(self, now: Now) -> int:
        pause_ms = self._settings.heartbeat_ms
        if self._requests.goes_on and not self.in_flight:
            return now.mono_ns
        if self.watch.has_asks():
            pause_ms = self._settings.grants_gather_ms
        wake = self._appended_ns + pause_ms * NS_PER_MS
        if self._leaves:
            # It owes neither heartbeat nor grant: one that is overdue would have it tick for ever.
            wake = now.mono_ns + self._settings.heartbeat_ms * NS_PER_MS
        if self.in_flight:
            # Its read-back (or the failure of its append) wakes; a heartbeat that is overdue
            # meanwhile would have this node tick without a pause.
            wake = now.mono_ns
            if not (self._store.waits or self._requests.may_read_ahead()):
                wake += self._settings.heartbeat_ms * NS_PER_MS
        if self._release.waits:
            wake = min(wake, now.mono_ns + 20 * NS_PER_MS)
        copies = self._copying.is_under_way
        if self._backfill.waits or copies:
            times_ns = [self._pace.rest_until_ns, *([self._copying.due_ns] if copies else ())]
            wake = min([wake, *(at_ns for at_ns in times_ns if at_ns > now.mono_ns)])
        return wake

    # ------------------------------------------------------------ the next record

    def _start(self, position: LogPosition, now: Now) -> list[Effect]:
        due = now.mono_ns - self._appended_ns >= self._settings.heartbeat_ms * NS_PER_MS
        if self._leaves:
            due = False  # the next record is its successor's
        large = self._requests.verify_large()
        if large is None and not (due or self._has_work(now)):
            return []
        begun_ns = self._clock_ns()
        reading = self._log_clock.read(now)
        if large is not None:
            reading = reading._replace(wall_us=large.wall_us)
        batch = self._new_batch(position, reading)
        self._begin_level(batch.draft, now)
        self._gather_batch(batch, large, now._replace(wall_us=reading.wall_us))
        grants_due = not self._leaves and self._grants_due(now)
        if batch.draft.is_empty and not (due or grants_due):
            self._store.rollback()
            return []
        return self._append(batch.draft, position, begun_ns, now)

    def _begin_level(self, draft: RecordDraft, now: Now) -> None:
        """Begin a database in which nothing was ever committed at the newest level, unless a
        process is there that does not read all of that: it could go back to no other release."""
        empty = draft.first_lsn == 1 and not self._feature_level
        if empty and self.watch.heard_know(NEWEST, now.mono_ns):
            draft.raise_level(NEWEST)
            # What the level permits may stand in this very record: readers judge it first.
            self._feature_level = NEWEST

    def _new_batch(self, position: LogPosition, clock: Reading) -> Batch:
        settings = self._settings
        draft = RecordDraft(position, clock, settings.batch.record_bytes_max, self._secret)
        return Batch(
            draft,
            self._catalog,
            self._store,
            self._codec,
            self._limits,
            settings.batch,
            settings.outcomes,
            self.changes.features,
        )

    def _gather_batch(self, batch: Batch, large: OversizedRequest | None, now: Now) -> None:
        """Decide `large`, of which all is known, or else what waits; beside a large request of
        which it is not there are heartbeats and grants alone."""
        self._store.begin()
        try:
            if large is not None:
                self._requests.settle_large(large, batch, now)
            elif not self._requests.verifies_large:
                self._take(batch, now)
        except BaseException:
            self._store.rollback()
            raise

    def _has_work(self, now: Now) -> bool:
        if self._leaves:
            return bool(self._queue) and not self._requests.verifies_large
        if self._grants_due(now):
            return True
        if self._requests.verifies_large:
            return False  # nothing else is decided until it is
        if self.changes.has_write():
            return True
        if self._release.answers.size > ANSWERS_BYTES_MAX:
            return False
        if self.watch.records_behind(self._log_end, now.mono_ns) > self._settings.ahead_max:
            return False
        return bool(self._queue) or self._rows_to_backfill(now) > 0

    def _rows_to_backfill(self, now: Now) -> int:
        """Return how many backfill rows of those that wait may be taken, in index entries."""
        if self._disk.is_short or not (self._backfill.waits or self._copying.waits(now)):
            return 0
        behind = self.watch.records_behind(self._log_end, now.mono_ns)
        users, gentle = self._has_users(now), self._catalog.is_gentle()
        return self._pace.rows(behind, now.mono_ns, users=users, gentle=gentle)

    def _has_users(self, now: Now) -> bool:
        taken_ns = self._requests.taken_ns
        recent_ns = self._settings.users_recent_ms * NS_PER_MS
        return taken_ns is not None and now.mono_ns - taken_ns < recent_ns

    def _grants_due(self, now: Now) -> bool:
        gathered = now.mono_ns - self._appended_ns >= self._settings.grants_gather_ms * NS_PER_MS
        return gathered and self.watch.has_asks()

    def _take(self, batch: Batch, now: Now) -> None:
        """Take requests first, then backfill rows (bounded), then catalog writes, which close the
        record, or else a range of rows that are copied, which does so, too; but a chunk that the
        log says is decided now comes alone."""
        draft = batch.draft
        try:
            if self._backfill.is_said() and not self._leaves:
                rows_max = self._rows_to_backfill(now)
                if rows_max > 0:
                    self._backfill.take_alone(batch, rows_max, now)
                    return
            if self._release.answers.size <= ANSWERS_BYTES_MAX:
                self._requests.take(batch, now)
            if self._leaves:
                return
            rows_max = 0 if draft.closed else self._rows_to_backfill(now)
            copies = self._copying.waits(now)
            if not draft.closed:
                # Of two jobs neither waits for the end of the other.
                self._backfill.take(batch, rows_max // 2 if copies else rows_max, now)
            if not draft.closed:
                self._take_writes(batch, now)
            if copies and not draft.closed:
                self._copying.take(batch, rows_max - draft.rows_filled, now)
        except Full:
            pass  # what did not fit waits for the next record (L8)

    def _take_writes(self, batch: Batch, now: Now) -> None:
        """Raises Full."""
        writes = self.changes.next_write(batch.draft.next_lsn)
        if writes is not None:
            batch.write_catalog(writes)
            self.changes.appended()
            return
        forgotten = self._cleanup.forget(now)
        if forgotten:
            batch.write_catalog(forgotten)

    def _append(
        self, draft: RecordDraft, position: LogPosition, begun_ns: int, now: Now
    ) -> list[Effect]:
        draft.grants = self.watch.grants(self._log_end, now.mono_ns)
        through, topics = self.intake.topics.append(draft.decided_through)
        answered_through = self._release.answers.answered_through(self._log_end)
        data = self.flight.pack(draft, position.digest, through, topics, answered_through)
        self._appended_ns = now.mono_ns
        users, waiting = self._has_users(now), self._backfill.waits or self._copying.waits(now)
        self._pace.appended(draft.rows_filled, now.mono_ns, users=users, waiting=waiting)
        decided_ns = self._clock_ns() - begun_ns
        self._measures.appended(data, decided_ns)
        self._traces.appended(now.mono_ns + decided_ns)
        return [Append(data)]

    # ------------------------------------------------------------ read-back

    def read_back(
        self, record: Decisions, offset: int, after: LogPosition, now: Now
    ) -> list[Effect]:
        """The record in flight counts: the store commits, and its answers wait for C1."""
        draft = self.flight.land(record)
        append_ns = now.mono_ns - self._appended_ns
        self._measures.read_back(draft, append_ns)
        self._traces.read_back(record, offset, now.mono_ns)
        self.intake.topics.read_back()
        self._log_end = after.offset
        self._feature_level = after.feature_level
        self._cleanup.commit_us = after.commit_us
        self.attempts.read_back(record, draft.decided_through)
        if draft.requests_taken:
            self.attempts.grow()
        store, catalog = self._store.settle(), self._catalog
        changed = False
        notices: list[Effect] = []
        audited: list[AuditEvent] = []
        for lsn, commit in enumerate(draft.commits, draft.first_lsn):
            if commit.catalog:
                audited += events_of_commit(commit, catalog)
                changed |= apply_catalog(commit, lsn, catalog, store)
                notices += notices_of_versions(commit, lsn, catalog)
                self._release.add_ended_jobs(offset, notices_of_ended_jobs(commit, lsn, catalog))
                self._count_jobs(commit)
        if record.feature_level and draft.commits:  # the record's last commit has raised it
            finalized = event_of_finalization(draft.commits[-1])
            audited += [finalized] if finalized is not None else []
        if draft.refusals:
            audited += events_of_refusals(draft.refusals)
        settings = self._settings
        keep_past(record, after, catalog, store, settings.outcomes, settings.history)
        store.commit(after)
        written = EVERYTHING
        if self.watch.asks_what_is_written:
            written = about(record, catalog)
        self.watch.read_back(offset, now.mono_ns, written, append_ns)
        self._pace.read_back(offset)
        self._merges.read_back(record, offset)
        answers = answers_of(record, offset, draft.repeats, draft.requesters)
        if self._release.answers.add(answers):
            self._measures.awaits(offset, now.mono_ns)
        effects = [*self._release.release(self._may_answer(now)), *notices, *map(Audit, audited)]
        self._released(now)
        if changed:
            effects += self.changes.catalog_changed(after.lsn, now)
        return effects + self.changes.mastership_confirmed(self._appended_ns, now)

    def _released(self, now: Now) -> None:
        """Count and tell which answers are given by now."""
        first_waiting = self._release.answers.first_waiting()
        self._measures.released(first_waiting, now.mono_ns)
        self._traces.released(first_waiting, now.mono_ns)

    def _count_jobs(self, commit: Commit) -> None:
        for write in commit.catalog:
            job = self._catalog.jobs.get(write.job_id) if isinstance(write, JobWrite) else None
            if job is not None:
                self._measures.job_written(job)

    def settle(self) -> None:
        """Tell the store of all that waits, at once."""
        self._store.settle()

    def pass_over(self, after: LogPosition) -> None:
        """A record that changes nothing here (barrier, skipped) has moved the log's end."""
        self._log_end = after.offset

    # ------------------------------------------------------------ the end

    def leave(self) -> list[Effect]:
        """Begin to end the term in order: what was read or published until now is decided here, all
        else by the next master. ⚠ Answers to what was published are given before it goes: no other
        master knows who waits for them (L7)."""
        self._leaves = True
        return [EndRequests(), *self.intake.end()]

    @property
    def has_left(self) -> bool:
        """Whether it has begun to leave, and nothing is left to decide or to answer."""
        return self._leaves and self.at_rest

    def close(self) -> list[Answers]:
        """End the term: what was decided and not read back never happened here. Return the answers
        that may not have reached the broker; whoever is master next gives them (L7)."""
        self._requests.drop_large()
        if self.flight.drop():
            self._store.rollback()
        return self._release.answers.not_given()
