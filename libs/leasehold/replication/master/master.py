"""The master's term of office: from the read-back of its Claim to the end of its epoch.

One record is on its way at a time; while it travels, the next requests gather: that is the group
commit. Meanwhile what it has decided is put into the store, whose write transaction stays open
until the record was read back as this master's own (L4), so a batch is in the log and in the store,
or in neither.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from typing import Final

from leasehold.catalog.catalog import Catalog
from leasehold.model.errors import (
    LogStopped,
    Refused,
)
from leasehold.model.ports import Codec, Now
from leasehold.model.records import (
    Ack,
    Acknowledgement,
    ChangeRequest,
    CheckReport,
    Commit,
    Decisions,
    DescriptorWrite,
    JobEvent,
    JobWrite,
    Lane,
    LeaseAck,
    LogPosition,
)
from leasehold.model.time_units import NS_PER_MS
from leasehold.replication.changefeed import job_key, version_event
from leasehold.replication.coherency import CoherencySettings, CoherencyWatch
from leasehold.replication.effects import (
    NOWHERE,
    Append,
    AskLane,
    AskLaneIdentity,
    BeginTerm,
    DeleteBelow,
    DeleteLogBelow,
    Effect,
    LaneFound,
    LaneIdentified,
    LaneLost,
    LaneRead,
    PauseLane,
    ReadLane,
    RequestsReceived,
    ResumeLane,
    Send,
    Topic,
    Wake,
    Warn,
)
from leasehold.replication.fast_path.requests import ReceivedRequests
from leasehold.replication.log.apply import apply_catalog, keep_past
from leasehold.replication.log.clock import LogClock, Reading
from leasehold.replication.log.retention import (
    FORGET_EVERY_MS,
    HistorySettings,
    forgotten_before_us,
)
from leasehold.replication.log.truncation import COPY_ROLE, LogTruncation, TruncationSettings
from leasehold.replication.master.answers import Answers, PendingAnswers, answers_of
from leasehold.replication.master.attempts import Attempts, Spared, no_master_survives
from leasehold.replication.master.backfill_pacing import (
    USERS_RECENT_MS,
    BackfillPace,
    BackfillSettings,
)
from leasehold.replication.master.backfill_queue import BackfillLane
from leasehold.replication.master.batch import (
    LOOK_OPERATIONS,
    NOTHING_MADE,
    Batch,
    BatchSettings,
    Full,
    Made,
    failed,
)
from leasehold.replication.master.large_request import WORK_MS_MAX, OversizedRequest
from leasehold.replication.master.queue_topics import LaneTopics
from leasehold.replication.master.request_queue import RequestQueue
from leasehold.replication.master.schema_changes import Decision, SchemaChanges
from leasehold.replication.master.write_behind import WriteBehind
from leasehold.replication.outcomes import OutcomeSettings
from leasehold.replication.rules import RULES, ReplicationRules
from leasehold.schema_change.job.forgetting import FORGOTTEN_PER_COMMIT_MAX, forgettable

_REQUESTS: Final = Lane.REQUESTS  # a member of an enum costs as much as a call
WAITING_MAX: Final = 20_000
TOLD_WAITING_MAX: Final = 2_000
"""Requests that wait when one that is told is passed over: each may have 60 kB."""
RESUME_BELOW: Final = 5_000
NEWS_MAX: Final = 1_000


@dataclass(frozen=True, slots=True)
class MasterSettings:
    """`heartbeat_ms` between records when there is nothing to decide. Asks for coherency leases
    alone gather for `grants_gather_ms`, so that an idle log does not get a record per node and
    renewal; that and the renewal together stay well below a lease's duration. Users count as
    present for `users_recent_ms` after a request (see `BackfillPace`). While a coherent
    node is more than `ahead_max` records behind, requests gather for the next record: their answers
    would wait for the node anyway (C1), and fewer records are what lets it catch up."""

    coherency: CoherencySettings = field(default_factory=CoherencySettings)
    batch: BatchSettings = field(default_factory=BatchSettings)
    fill: BackfillSettings = field(default_factory=BackfillSettings)
    outcomes: OutcomeSettings = field(default_factory=OutcomeSettings)
    history: HistorySettings = field(default_factory=HistorySettings)
    truncation: TruncationSettings = field(default_factory=TruncationSettings)
    heartbeat_ms: int = 200
    grants_gather_ms: int = 120
    delete_every_ms: int = 5_000
    users_recent_ms: int = USERS_RECENT_MS
    ahead_max: int = 3


class Master:
    """Made when this node's own Claim was read back; dropped when the epoch is lost."""

    def __init__(
        self,
        settings: MasterSettings,
        node: str,
        position: LogPosition,
        catalog: Catalog,
        store: WriteBehind,
        codec: Codec,
        unanswered: Iterable[Answers],
        changes: SchemaChanges,
        now: Now,
        rules: ReplicationRules = RULES,
        secret: bytes = b"",
        clock_ns: Callable[[], int] = lambda: 0,
        spared: Iterable[Spared] = (),
    ) -> None:
        """`position` is the one right after the Claim. `unanswered`: what records after
        `answered_through` have to give (L7). `secret`: at most 32 bytes, and `clock_ns`: see
        `Node`. `spared`: see `Attempts`."""
        self._settings = settings
        self._node = node
        self._catalog = catalog
        self._store = store
        self._codec = codec
        self._changes = changes
        self._rules = rules
        # The epoch: a record of an old master's that is lost may have had the same LSN.
        self._clock_ns = clock_ns
        self._secret = secret + position.epoch.to_bytes(8, "big")
        self._epoch = position.epoch
        self._incarnation = position.incarnation
        self._log_end = position.offset
        self.watch = CoherencyWatch(settings.coherency, now.mono_ns, position.longest_grant_ms)
        self._answers = PendingAnswers()
        for answers in unanswered:
            self._answers.add(answers)
        self._news: deque[tuple[int, Send]] = deque(maxlen=NEWS_MAX)
        self._requests = RequestQueue(codec)
        self._heard = ReceivedRequests()
        self._attempts = Attempts(position, spared)
        self._backfill = BackfillLane(codec, store, changes, self._attempts, clock_ns)
        self._pace = BackfillPace(settings.fill)
        self._clock = LogClock(position, store, now, settings.outcomes)
        self._next = {lane: position.decided_through.get(lane, 0) for lane in Lane}
        self._paused: set[Lane] = set()
        self._batch: Batch | None = None
        self._large: OversizedRequest | None = None
        self._digest = b""
        self._record: Decisions | None = None
        self._sequence = position.sequence
        self._appended_ns = 0
        self._asked_ns = -settings.users_recent_ms * NS_PER_MS  # when a request was last taken
        self._deleted_ns = now.mono_ns
        self._lanes = LaneTopics(position, now.mono_ns)
        self._forgot_ns = now.mono_ns
        self._commit_us = position.commit_us
        self._truncation = LogTruncation(settings.truncation, now.mono_ns)

    @property
    def in_flight(self) -> bool:
        return self._batch is not None

    @property
    def at_rest(self) -> bool:
        """Whether nothing is decided, on its way or to be answered."""
        return not (self.in_flight or self._requests or self._answers.waiting() or self._large)

    def begin(self) -> list[Effect]:
        """L3: each lane from where the log says that it was decided through, if it is the topic
        that the log means."""
        return [BeginTerm(self._epoch, self._incarnation), *(AskLane(lane) for lane in Lane)]

    # ------------------------------------------------------------ events

    def lane_found(self, event: LaneFound) -> list[Effect]:
        begin = self._lanes.begin(event.lane, event.found)
        if begin is None:
            return []
        self._next[event.lane] = begin.offset
        if begin.words:
            self._attempts.forget(event.lane)
        read = ReadLane(event.lane, begin.offset)
        return [Warn(begin.words), read] if begin.words else [read]

    def lane_lost(self, event: LaneIdentified | LaneLost) -> str:
        """Why this term can't go on with the lane, "" where it can."""
        lane, topic = event.lane, event.topic
        if isinstance(event, LaneIdentified):
            if not self._lanes.is_another(lane, event.topic_id):
                return ""
            what = f"topic {topic!r} was deleted and made anew"
        else:
            what = f"topic {topic!r} no longer has offset {self._next[lane]}, which was next"
        waiting = len(self._requests if lane is _REQUESTS else self._backfill)
        return (
            f"L3: {what}; {waiting:,} messages of it that were read and not decided may be gone"
            " with it. The lane is looked at anew in the next term"
        )

    def delete_decided(self, lane: Lane, position: LogPosition) -> list[Effect]:
        """Of the topic that was looked at a moment ago: decided requests are in the log, with the
        body where somebody needs it later."""
        offset = position.decided_through.get(lane, 0)
        return [DeleteBelow(lane, offset)] if offset and self._lanes.may_delete(lane) else []

    def lane_read(self, message: LaneRead) -> list[Effect]:
        if message.offset < self._next[message.lane]:
            return []  # from before this term's seek, or delivered twice
        self._next[message.lane] = message.offset + 1
        queue: RequestQueue | BackfillLane = (
            self._requests if message.lane is _REQUESTS else self._backfill
        )
        queue.append(message)
        if len(queue) >= WAITING_MAX and message.lane not in self._paused:
            self._paused.add(message.lane)
            return [PauseLane(message.lane)]
        return []

    def requests_heard(self, told: RequestsReceived) -> None:
        """By the fast way. Whoever gets no answer asks through Kafka, so what there is no room for
        may be passed over."""
        if len(self._requests) >= TOLD_WAITING_MAX or not self._heard.accepts(*told[:3]):
            return
        for content_type, body in told.requests:
            said = LaneRead(_REQUESTS, NOWHERE, content_type, body, told.requester)
            self._requests.append(said)

    def acknowledged(self, record: Acknowledgement, now: Now) -> list[Effect]:
        if isinstance(record, Ack):
            if record.role != COPY_ROLE:
                self.watch.take_ack(record, self._log_end, now.mono_ns)
            self._truncation.take_ack(record, now.mono_ns)
            return []
        if isinstance(record, LeaseAck):
            return self._changes.lease_acked(record, now)
        if isinstance(record, CheckReport):
            return self._changes.reported(record, now)
        # A HoldingReport is for those who look on; the ledger alone decides who is in the way.
        # ⚠ Whatever else can be read stops no master, for each of them would come to it.
        return []

    def heard(self, record: Acknowledgement, now: Now) -> None:
        """By the fast way, where anybody may have said it: only a plain position, and only in the
        log that this term's Claim stands in. What is kept for others (truncation, those who look
        on) is fed by the topic."""
        if isinstance(record, Ack) and record.asked_ns == 0 and record.epoch == self._epoch:
            self.watch.take_published(record, now.mono_ns)

    @property
    def awaits_acks(self) -> bool:
        """Whether something waits that an acknowledgement can let go on: answers and news (C1),
        rows of a backfill and requests that nodes must catch up for, the measure of a round."""
        if self._answers.waiting() or self._news or self._requests or self._pace.measures:
            return True
        return self._backfill.waits

    def acks_let_go(self, now: Now) -> bool:
        """Whether a tick after what was just heard would let it go on."""
        may_answer = self._may_answer(now)
        first = self._answers.first_waiting()
        if first is not None and may_answer(first):
            return True
        if self._news and may_answer(self._news[0][0]):
            return True
        if self._pace.has_ended(may_answer):
            return True
        return not self.in_flight and self._has_work(now)

    def sent(self, token: int) -> None:
        self._answers.sent(token)

    def ledger_replied(self, token: object, reply: object, now: Now) -> list[Effect]:
        return self._changes.ledger_replied(token, reply, now)

    # ------------------------------------------------------------ the loop

    def tick(self, position: LogPosition, now: Now) -> list[Effect]:
        """Release what may be answered, drive the jobs, and start the next record."""
        begun_ns = self._clock_ns()
        effects = self._release(now)
        effects += self._changes.tick(self._known_coherent(now), now)
        self._pace.heard(self._may_answer(now), now.mono_ns)
        if self._batch is None:
            effects += self._start(position, now)
        else:
            self._use_the_time()
        effects += self._clock.notices()
        effects += self._resume()
        effects += [AskLane(lane) for lane in self._lanes.missing(now.mono_ns)]
        effects += self._delete(position, now)
        effects.append(Wake(self._wake_ns(now)))
        self._attempts.worked(self._clock_ns() - begun_ns)
        return effects

    def _use_the_time(self) -> None:
        """While a record travels: what the next one would have to wait for."""
        self._store.settle()
        if self._may_read_ahead():
            self._requests.read_ahead(self._settings.batch.requests_max)

    def _has_use_for_time(self) -> bool:
        return self._store.waits or self._may_read_ahead()

    def _may_read_ahead(self) -> bool:
        if self._attempts.alone(_REQUESTS):
            return False  # L10: nothing is looked into before the log says so
        return self._requests.may_read_ahead(self._settings.batch.requests_max)

    def _known_coherent(self, now: Now) -> frozenset[str] | None:
        """C4: until the leases of a deposed master are over, nobody knows who serves reads."""
        if now.mono_ns < self.watch.serve_from_ns:
            return None
        return self.watch.coherent(now.mono_ns)

    def _may_answer(self, now: Now) -> Callable[[int], bool]:
        return lambda offset: self.watch.may_answer(offset, now.mono_ns)

    def _wake_ns(self, now: Now) -> int:
        pause_ms = self._settings.heartbeat_ms
        if self._large is not None and not self.in_flight:
            return now.mono_ns
        if self.watch.has_asks():
            pause_ms = self._settings.grants_gather_ms
        wake = self._appended_ns + pause_ms * NS_PER_MS
        if self.in_flight:
            # Its read-back (or the failure of its append) wakes; a heartbeat that is overdue
            # meanwhile would have this node tick without a pause.
            wake = now.mono_ns
            if not self._has_use_for_time():
                wake += self._settings.heartbeat_ms * NS_PER_MS
        if self._answers.waiting() or self._news:
            wake = min(wake, now.mono_ns + 20 * NS_PER_MS)
        if self._backfill.waits:
            rest_until_ns = self._pace.rest_until_ns
            if rest_until_ns > now.mono_ns:
                wake = min(wake, rest_until_ns)
        return wake

    def _start(self, position: LogPosition, now: Now) -> list[Effect]:
        due = now.mono_ns - self._appended_ns >= self._settings.heartbeat_ms * NS_PER_MS
        if self._large is not None and not self._large.goes_on(self._clock_ns):
            return self._settle_large(self._large, position, now)
        if not (due or self._has_work(now)):
            return []
        reading = self._clock.read(now)
        now = now._replace(wall_us=reading.wall_us)
        batch = self._batch_of(position, reading)
        self._store.begin()
        try:
            if self._large is None:
                self._take(batch, now)
        except BaseException:
            self._store.rollback()
            raise
        if batch.empty and not due and not self._grants_due(now):
            self._store.rollback()
            return []
        return self._append(batch, position, now)

    def _batch_of(self, position: LogPosition, clock: Reading) -> Batch:
        return Batch(
            position,
            self._catalog,
            self._store,
            self._codec,
            clock,
            self._settings.batch,
            self._settings.outcomes,
            self._rules.verify,
            self._secret,
        )

    def _settle_large(
        self, large: OversizedRequest, position: LogPosition, now: Now
    ) -> list[Effect]:
        self._large = None
        batch = self._batch_of(position, self._clock.read(now)._replace(wall_us=large.wall_us))
        self._store.begin()
        try:
            large.settle(batch)
        except BaseException:
            self._store.rollback()
            raise
        self._requests.pop()
        return self._append(batch, position, now)

    def _has_work(self, now: Now) -> bool:
        if self._grants_due(now):
            return True
        if self._large is not None:
            return False  # nothing else is decided until it is
        if self._changes.has_write():
            return True
        if self.watch.records_behind(self._log_end, now.mono_ns) > self._settings.ahead_max:
            return False
        return bool(self._requests) or self._rows_to_fill(now) > 0

    def _rows_to_fill(self, now: Now) -> int:
        """How many backfill rows of those that wait may be taken, in index entries."""
        if not self._backfill.waits:
            return 0
        behind = self.watch.records_behind(self._log_end, now.mono_ns)
        return self._pace.rows(behind, now.mono_ns, users=self._users(now))

    def _users(self, now: Now) -> bool:
        return now.mono_ns - self._asked_ns < self._settings.users_recent_ms * NS_PER_MS

    def _grants_due(self, now: Now) -> bool:
        gathered = now.mono_ns - self._appended_ns >= self._settings.grants_gather_ms * NS_PER_MS
        return gathered and self.watch.has_asks()

    def _take(self, batch: Batch, now: Now) -> None:
        """Requests first, then backfill rows (bounded), then catalog writes, which close it; but a
        chunk that the log says is decided now comes alone."""
        place = self._backfill.to_say()
        try:
            if place is not None and self._attempts.is_said(Lane.BACKFILL, *place):
                rows_max = self._rows_to_fill(now)
                if rows_max > 0:
                    self._backfill.take_alone(batch, place, rows_max, now)
                    return
            self._take_requests(batch, now)
            rows_max = 0 if batch.closed else self._rows_to_fill(now)
            if place is None:
                self._backfill.take(batch, rows_max, now)
            elif rows_max > 0:
                batch.attempts += self._attempts.say(Lane.BACKFILL, *place)
            if not batch.closed:
                writes = self._changes.next_write(batch.next_lsn)
                if writes is not None:
                    batch.write_catalog(writes)
                    self._changes.appended()
                else:
                    self._forget(batch, now)
        except Full:
            pass  # what did not fit waits for the next record (L8)

    def _forget(self, batch: Batch, now: Now) -> None:
        """Tables that were dropped and jobs that ended long ago, by the log's time."""
        if now.mono_ns - self._forgot_ns < FORGET_EVERY_MS * NS_PER_MS:
            return
        before_us = forgotten_before_us(self._commit_us, self._settings.history)
        writes = forgettable(self._catalog, before_us)
        if len(writes) < FORGOTTEN_PER_COMMIT_MAX:
            self._forgot_ns = now.mono_ns
        if writes:
            batch.write_catalog(writes)

    def _take_requests(self, batch: Batch, now: Now) -> None:
        """As many as can be decided in a moment, in a turn of this loop: while it decides, no
        heartbeat and no grant go out."""
        requests, settings = self._requests, self._settings.batch
        if not requests:
            return
        self._asked_ns = now.mono_ns
        alone = self._attempts.alone(_REQUESTS)
        most, operations_max = self._attempts.most(settings.requests_max), settings.operations_max
        clock_ns, operations = self._clock_ns, 0
        until_ns = clock_ns() + WORK_MS_MAX * NS_PER_MS
        while requests and batch.requests_taken < most and not batch.closed:
            if alone and requests.next().offset != NOWHERE:
                self._take_alone(batch, requests.next(), now)
                return
            operations += self._take_request(batch, now)
            batch.requests_taken += 1
            if operations >= operations_max or clock_ns() >= until_ns:
                break

    def _take_request(self, batch: Batch, now: Now) -> int:
        """Decide the next one; → how many operations it has. Raises Full."""
        message, said = self._requests.first()
        request = batch.open(message, said)
        operations = 0
        if request is not None:
            operations = len(request.operations)
            if operations > self._settings.batch.large_operations:
                self._begin_large(batch, message, request, now)
            if request.reset_clock:
                self._reset_clock(batch, message, request)
            elif request.sql is None and request.control is None:
                batch.decide(message, request)
            else:
                try:
                    decision = self._changes.decide(request, now)
                except Refused as error:
                    batch.refuse(message, request, error)
                except Exception as error:  # noqa: BLE001 - planning changes nothing
                    batch.refuse(message, request, failed(error))
                else:
                    self._write(batch, message, request, decision)
        self._requests.pop()
        return operations

    def _take_alone(self, batch: Batch, message: LaneRead, now: Now) -> None:
        """L10: the first of the lane in this term, in a record of its own, once the log says so.
        Raises Full."""
        attempts, offset = self._attempts, message.offset
        if not attempts.is_said(_REQUESTS, offset):
            batch.attempts += attempts.say(_REQUESTS, offset)
            batch.closed = True
            return
        if not batch.empty:
            raise Full
        if attempts.is_refused(_REQUESTS, offset):
            self._refuse_attempted(batch, message)
        else:
            self._take_request(batch, now)
        batch.requests_taken += 1
        batch.closed = True

    def _refuse_attempted(self, batch: Batch, message: LaneRead) -> None:
        """Read it to know who waits for an answer, unless that has ended a master, too."""
        attempts, offset = self._attempts, message.offset
        error = no_master_survives(attempts.lost_over(_REQUESTS, offset))
        if attempts.is_refused_unread(_REQUESTS, offset):
            batch.dead_letter(message, error)
        else:
            request = batch.open(*self._requests.first())
            if request is not None:
                batch.dead_letter(message, error, request)
        self._requests.pop()

    def _reset_clock(self, batch: Batch, message: LaneRead, request: ChangeRequest) -> None:
        """Raises Full."""
        if not batch.empty:
            raise Full  # its record begins with it
        batch.reset_clock(message, request, self._clock.reset())

    def _begin_large(
        self, batch: Batch, message: LaneRead, request: ChangeRequest, now: Now
    ) -> None:
        """Raises Full, unless it is refused for its DDL."""
        if not batch.empty:
            raise Full  # it has a record of its own
        made, catalog = NOTHING_MADE, self._catalog
        if request.sql is not None:
            try:
                decision = self._changes.decide(request, now)
            except Refused:
                return  # at once, as any
            catalog, request = decision.catalog, _with_opening(request, decision)
            made = Made(decision.writes, decision.answer, decision.empty)
        slices = batch.verifying(request, made, catalog)
        slices_max = max(1, self._settings.batch.slice_operations // LOOK_OPERATIONS)
        self._large = OversizedRequest(
            message, request, made, catalog, now.wall_us, batch.next_lsn, slices, slices_max
        )
        raise Full

    def _write(
        self, batch: Batch, message: LaneRead, request: ChangeRequest, decision: Decision
    ) -> None:
        request = _with_opening(request, decision)
        if request.operations:
            made = Made(decision.writes, decision.answer, decision.empty)
            batch.decide_with(message, request, made, decision.catalog)
        else:
            batch.write_catalog(decision.writes, message, request, decision.answer)

    def _append(self, batch: Batch, position: LogPosition, now: Now) -> list[Effect]:
        batch.grants = self.watch.grants(self._log_end, now.mono_ns)
        decided_through, lane_topics = self._lanes.append(batch.decided_through)
        header = Decisions(
            epoch=self._epoch,
            incarnation=self._incarnation,
            sequence=self._sequence + 1,
            previous=position.digest,
            first_lsn=batch.first_lsn,
            commits=(),
            refusals=(),
            decided_through=decided_through,
            answered_through=self._answers.answered_through(self._log_end),
            grants=batch.grants,
            closed_us=batch.time_us,
            id_horizon_us=batch.id_horizon_us,
            reset_us=batch.reset_us,
            lane_topics=lane_topics,
            attempts=tuple(batch.attempts),
        )
        data = self._codec.join_decisions(header, batch.packed_commits, batch.packed_refusals)
        self._digest = self._codec.digest(data)
        self._batch = batch
        self._record = header._replace(commits=tuple(batch.commits), refusals=tuple(batch.refusals))
        self._appended_ns = now.mono_ns
        waiting = self._backfill.waits
        self._pace.appended(batch.rows_filled, now.mono_ns, users=self._users(now), waiting=waiting)
        return [Append(data)]

    # ------------------------------------------------------------ read-back

    def record_in_flight(self, digest: bytes) -> Decisions | None:
        if self._batch is None or digest != self._digest:
            return None
        return self._record

    def is_own(self, record: Decisions, digest: bytes) -> bool:
        """L4 ⚠: epoch, incarnation, sequence and content, not just the LSN."""
        own = (
            self._batch is not None
            and record.epoch == self._epoch
            and record.incarnation == self._incarnation
            and record.sequence == self._sequence + 1
        )
        if own and digest != self._digest:
            raise LogStopped(
                f"L4: epoch {record.epoch} sequence {record.sequence} was read back with other"
                " content than was sent"
            )
        return own

    def read_back(
        self, record: Decisions, offset: int, after: LogPosition, now: Now
    ) -> list[Effect]:
        """The record in flight counts: the store commits, and its answers wait for C1."""
        batch = self._batch
        assert batch is not None, "L4"
        self._batch = None
        self._lanes.read_back()
        self._sequence = record.sequence
        self._log_end = after.offset
        self._commit_us = after.commit_us
        self._attempts.read_back(record, batch.decided_through)
        if batch.requests_taken:
            self._attempts.grow()
        store = self._store.settle()
        changed = False
        notices: list[Effect] = []
        for lsn, commit in enumerate(batch.commits, batch.first_lsn):
            if commit.catalog:
                changed |= apply_catalog(commit, lsn, self._catalog, store)
                notices += self._notices(commit, lsn)
                self._news.extend((offset, send) for send in self._job_news(commit, lsn))
        settings = self._settings
        keep_past(
            record,
            after,
            self._catalog,
            store,
            settings.outcomes,
            settings.history,
        )
        store.commit(after)
        self.watch.read_back(offset, now.mono_ns)
        self._pace.read_back(offset)
        self._answers.add(answers_of(record, offset, batch.repeats, batch.requesters))
        effects = [*self._release(now), *notices]
        if changed:
            effects += self._changes.catalog_changed(after.lsn, now)
        return effects

    def _notices(self, commit: Commit, lsn: int) -> list[Effect]:
        """Agents without a store hear of a version at once; `versions` tells it for good."""
        jobs = self._catalog.jobs.values()
        return [
            Send(Topic.NOTICES, 0, str(write.table_id).encode(), event, 0)
            for write in commit.catalog
            if isinstance(write, DescriptorWrite)
            for event in (version_event(write, commit, lsn, jobs),)
        ]

    def _job_news(self, commit: Commit, lsn: int) -> Iterator[Send]:
        """The end of a job, which somebody waits for. What it does until then can be read on
        `jobs` a moment later: each notice is a record and one more fetch of every agent's, as much
        for the broker as all versions of a job together."""
        for write in commit.catalog:
            job = self._catalog.jobs.get(write.job_id) if isinstance(write, JobWrite) else None
            if job is not None and job.status.ended:
                event = JobEvent(job.job_id, lsn, commit.commit_us, job.to_wire())
                yield Send(Topic.NOTICES, 0, job_key(job.job_id), event, 0)

    def _release(self, now: Now) -> list[Effect]:
        """Answers, and news of jobs: who hears that a change is done may look at any replica, so
        it is told when every coherent one has it (C1). `jobs` tells it for good."""
        effects: list[Effect] = list(self._answers.release(self._may_answer(now)))
        while self._news and self.watch.may_answer(self._news[0][0], now.mono_ns):
            effects.append(self._news.popleft()[1])
        return effects

    def passed_over(self, after: LogPosition) -> None:
        """A record that changes nothing here (barrier, skipped) moved the log's end."""
        self._log_end = after.offset

    # ------------------------------------------------------------ housekeeping

    def _resume(self) -> list[Effect]:
        effects: list[Effect] = []
        waiting = ((Lane.REQUESTS, len(self._requests)), (Lane.BACKFILL, len(self._backfill)))
        for lane, messages in waiting:
            if lane in self._paused and messages < RESUME_BELOW:
                self._paused.discard(lane)
                effects.append(ResumeLane(lane))
        return effects

    def _delete(self, position: LogPosition, now: Now) -> list[Effect]:
        """Whether a lane is still the same topic is asked before something of it is deleted."""
        if now.mono_ns - self._deleted_ns < self._settings.delete_every_ms * NS_PER_MS:
            return []
        self._deleted_ns = now.mono_ns
        self.watch.sweep(now.mono_ns)
        effects: list[Effect] = [AskLaneIdentity(lane) for lane in self._lanes.found]
        floor = self._truncation.floor(position, now.mono_ns)
        return effects if floor is None else [*effects, DeleteLogBelow(floor)]

    def spared(self) -> list[Spared]:
        """For the next term of this process, if this one ends now."""
        return self._attempts.spared()

    def close(self) -> list[Answers]:
        """The epoch is lost: what was decided and not read back never happened here.

        → answers that may not have reached the broker; whoever is master next gives them (L7)."""
        self._large = None
        if self._batch is not None:
            self._store.rollback()
            self._batch = None
        return self._answers.not_given()


def _with_opening(request: ChangeRequest, decision: Decision) -> ChangeRequest:
    if not decision.opening:
        return request
    return request._replace(operations=(*decision.opening, *request.operations))
