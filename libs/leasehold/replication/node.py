"""A node: follows the log, applies it to its store, acknowledges; and is master while its epoch
lasts. The one state machine that runs on Kafka, in the simulation and in `leasehold dev` alike.

    service:  event ─▶ Node.step(event, now) ─▶ effects ─▶ performed by adapters

Records are applied as they come and committed at the next Tick (the service gives one when it has
handed over all that was waiting), so a follower that is behind pays for one commit per batch. A
grant counts only once what stands before it is committed, hence visible to readers.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from typing import Final

from leasehold.catalog.catalog import Catalog
from leasehold.lease.agent.session import HolderLimits
from leasehold.model.errors import LeaseholdError, LogStopped
from leasehold.model.ports import Codec, Now, StoreWriter
from leasehold.model.records.acks import Ack, CheckReport
from leasehold.model.records.log import Barrier, Claim, Decisions, Grant, LogPosition
from leasehold.model.time_units import NS_PER_MS
from leasehold.replication.checks import Checks
from leasehold.replication.coherency import GIVEN_UP, CoherencyLease
from leasehold.replication.effects import (
    AckRead,
    AckReceived,
    Append,
    AppendFailed,
    AskLogEnd,
    AskLogIdentity,
    Became,
    Effect,
    Event,
    LaneFound,
    LaneIdentified,
    LaneLost,
    LaneRead,
    LedgerReplied,
    LogEnd,
    LogIdentified,
    LogRead,
    LogReceived,
    ReadLog,
    RequestsReceived,
    Send,
    Sent,
    Stop,
    StopLanes,
    Tell,
    Tick,
    Told,
    Topic,
    Wake,
    Warn,
)
from leasehold.replication.election import Election, ElectionSettings
from leasehold.replication.fast_path.acks import FastAcks, FastAckSettings
from leasehold.replication.fast_path.log import NOBODY, FastLogSettings, Term
from leasehold.replication.fast_path.own_appends import OwnAppendsSettings
from leasehold.replication.fast_path.requests import FastRequestSettings
from leasehold.replication.fast_path.state_machine import NOT_PUBLISHED
from leasehold.replication.log.admission import Verdict, admit
from leasehold.replication.log.apply import apply_record
from leasehold.replication.log.identity import LogIdentity
from leasehold.replication.log.retention import DROPPED_MS
from leasehold.replication.log.truncation import COPY_ROLE, copy_name
from leasehold.replication.master.answers import Answers, answers_of
from leasehold.replication.master.attempts import Spared
from leasehold.replication.master.master import Master
from leasehold.replication.master.schema_changes import SchemaChanges, SchemaSettings
from leasehold.replication.master.settings import MasterSettings
from leasehold.replication.master.write_behind import WriteBehind
from leasehold.replication.node_agent import FOR_AGENT, NodeAgent

UNANSWERED_RECORDS_MAX: Final = 20_000
# What is dead goes a few milliseconds' worth at a time, so that it delays no record noticeably.
REMOVED_ROWS_MAX: Final = 1_000
REMOVAL_PAUSE_MS: Final = 50
REMOVAL_LOOK_MS: Final = 1_000


@dataclass(frozen=True, slots=True)
class NodeSettings:
    """`candidate`: may become master. `serving`: answers reads, hence asks for coherency leases.
    `serves`: host:port of its snapshot server."""

    name: str
    candidate: bool = False
    serving: bool = True
    serves: str = ""
    master: MasterSettings = field(default_factory=MasterSettings)
    election: ElectionSettings = field(default_factory=ElectionSettings)
    schema: SchemaSettings = field(default_factory=SchemaSettings)
    leases: HolderLimits = field(default_factory=HolderLimits)
    fast_acks: FastAckSettings = field(default_factory=FastAckSettings)
    fast_log: FastLogSettings = field(default_factory=FastLogSettings)
    own_appends: OwnAppendsSettings = field(default_factory=OwnAppendsSettings)
    fast_requests: FastRequestSettings = field(default_factory=FastRequestSettings)

    def with_session_ttl(self, session_ttl_ms: int) -> NodeSettings:
        """Both sides of the ledger by one figure: what its agent keeps to, and after which the
        master counts a session as dead (D7) and waits when the ledger has lost its state (D6)."""
        coordinator = self.schema.coordinator
        ledger = replace(coordinator.ledger, session_ttl_ms=session_ttl_ms)
        schema = replace(self.schema, coordinator=replace(coordinator, ledger=ledger))
        return replace(self, schema=schema, leases=HolderLimits.of_ttl(session_ttl_ms))

    def with_history(
        self, keep_ms: int, rows_ms: int, dropped_ms: int = DROPPED_MS
    ) -> NodeSettings:
        """How long the past can be read, and what was dropped is kept; see HistorySettings."""
        history = replace(
            self.master.history, keep_ms=keep_ms, rows_ms=rows_ms, dropped_ms=dropped_ms
        )
        master = replace(self.master, history=history)
        return replace(self, master=master)


class Node:
    """`step` never raises for what comes from outside; a contradiction ends in Stop."""

    def __init__(
        self,
        settings: NodeSettings,
        store: StoreWriter,
        codec: Codec,
        incarnation: bytes,
        session_ids: Iterator[int],
        now: Now,
        secret: bytes = b"",
        clock_ns: Callable[[], int] = lambda: 0,
    ) -> None:
        """`incarnation`: fresh and random per start (L4, C3). `session_ids`: fresh random numbers
        for the agent's sessions, from 1 to lease.commands.SESSION_ID_MAX. `secret`: at most 32
        random bytes that never leave the process; without them the incarnation, from which the
        random values of defaults can be foretold. `clock_ns`: a clock to measure by how long
        deciding takes, and for nothing else; one that stands still sets no limit to that."""
        self._clock_ns = clock_ns
        self._spared: list[Spared] = []  # of terms of this process
        self._secret = secret or incarnation
        self._settings = settings
        self._store = store
        self._codec = codec
        self.incarnation = incarnation
        store.keep_rows(settings.master.history.rows_ms > 0)
        self.position = store.position()
        kept = store.catalog()
        self.catalog = Catalog.load(
            kept.descriptors, dict(kept.min_versions), kept.jobs, kept.ledger_run
        )
        self.lease = CoherencyLease(settings.name, incarnation)
        self.master: Master | None = None
        self.agent = (
            NodeAgent(settings.name, session_ids, settings.leases) if settings.serving else None
        )
        self.on_catalog_changed: Callable[[], None] = lambda: None
        self.oldest_copy: Callable[[], int | None] = lambda: None
        """The log position of the oldest copy of this store that another node is taking now."""
        self._checks = Checks(store, settings.name, serving=settings.serving)
        self._election = Election(settings.election, now.mono_ns)
        self.identity = LogIdentity(now.mono_ns)
        self._open = False  # applied, not yet committed
        self._pending_grants: list[Grant] = []
        self._catalog_changed = True
        self._unanswered: deque[Answers] = deque(maxlen=UNANSWERED_RECORDS_MAX)
        self._reread: deque[LogRead] = deque(maxlen=UNANSWERED_RECORDS_MAX)
        self._fast = FastAcks(settings.fast_acks)
        self.granted_in: Term = NOBODY
        """The term in which this incarnation was last granted a lease: its master reads what this
        process says, and this process reads what it writes."""
        self._acked_ns = 0
        self._acked_offset = -1
        self._given_up = False
        self._removal_ns = 0
        self._users_ns: int | None = None  # when rows that a request wrote were last read
        self._beside_users = False
        self.stopped: LeaseholdError | None = None

    @property
    def role(self) -> str:
        if self.master is not None:
            return "master"
        return "standby" if self._settings.candidate else "replicant"

    @property
    def term(self) -> Term:
        """That of the log up to this node's position."""
        return self.position.epoch, self.position.incarnation

    @property
    def awaits_acks(self) -> bool:
        """Whether something waits here that an acknowledgement of a node's can let go on."""
        return self.master is not None and self.master.awaits_acks

    def has_committed(self, offset: int) -> bool:
        """Is that record of the log, with all before it, applied and visible to readers? May be
        asked by any thread: the position passes an offset only when `_open` says so of what stands
        before it."""
        assert offset >= 0, "T6: a record that stands nobody knows where is waited for by nobody"
        return self.position.offset > offset and not self._open

    def start(self) -> list[Effect]:
        """A candidate reads from `answered_through` on: should it become master, it gives again
        what its predecessor may not have given (L7). What it applied before is passed over."""
        offset = self.position.offset
        if self._settings.candidate:
            offset = min(offset, self.position.answered_through)
        return [ReadLog(offset)]

    # ------------------------------------------------------------ step

    def step(self, event: Event, now: Now) -> list[Effect]:
        if self.stopped is not None:
            return []
        try:
            return self._step(event, now)
        except LeaseholdError as error:
            return self.stop(error)

    def _step(self, event: Event, now: Now) -> list[Effect]:
        master = self.master
        match event:
            case LogRead():
                return self._log_read(event, now)
            case LogReceived():
                return self._log_heard(event, now)
            case Tick():
                return self._tick(now)
            case LaneRead():
                return master.intake.queue_message(event) if master is not None else []
            case RequestsReceived():
                if master is not None:
                    master.intake.queue_published(event)
                return []
            case AckRead(record):
                return master.take_acknowledgement(record, now) if master is not None else []
            case AckReceived(record):
                if master is not None:
                    master.take_published_ack(record, now)
                return []
            case Told(number, heard):
                self._fast.confirm(number, now.mono_ns, received=heard)
                return []
            case Sent(token):
                if master is not None:
                    master.take_broker_ack(token)
                return []
            case LedgerReplied(token, reply):
                if token == FOR_AGENT:
                    return self.agent.ledger_replied(reply, now.mono_ns) if self.agent else []
                return (
                    master.changes.ledger_replied(token, reply, now) if master is not None else []
                )
            case AppendFailed(reason):
                return self._append_failed(reason, now)
            case LogEnd(offset):
                return self._bid(self._election.end_known(offset, self.position, now.mono_ns))
            case LogIdentified(topic, topic_id):
                self.identity.told(topic, topic_id, self.position)
                return []
            case LaneFound():
                return master.intake.find_lane(event) if master is not None else []
            case LaneIdentified() | LaneLost():
                return self._lane_looked_at(event, now)

    def stop(self, error: LeaseholdError) -> list[Effect]:
        """The log, the store or this program contradicts itself: serve nothing more."""
        self.stopped = error
        self.lease.give_up()
        if self.master is not None:
            self.master.close()
            self.master = None
        elif self._open:
            self._store.rollback()
        self._open = False
        return [StopLanes(), Stop(error)]

    def own_record(self, digest: bytes) -> Decisions | None:
        """The record in flight, if the bytes read back have its digest: decoding them again would
        give the same."""
        return self.master.flight.find(digest) if self.master is not None else None

    # ------------------------------------------------------------ reading the log

    def _log_read(self, event: LogRead, now: Now) -> list[Effect]:
        offset, record, digest = event
        if offset < self.position.offset:
            self._read_again(event)
            return []
        verdict, after = admit(self.position, offset, record, digest)
        return self._judged(event, verdict, after, now)

    def _log_heard(self, event: LogReceived, now: Now) -> list[Effect]:
        """Whoever may tell records may make some up. What contradicts the log so far is none of
        it, and no reason to stop; nor is a record passed over by hearsay, which names nothing that
        this reader has. In both cases Kafka says what stands there. (A record of the log has
        numbers where they are compared; one that was made up need not.)"""
        if self.master is not None or self._settings.candidate:
            return []
        try:
            verdict, after = admit(self.position, *event)
        except (LogStopped, TypeError, ValueError, AttributeError):
            verdict = Verdict.SKIP
        if verdict is Verdict.SKIP:
            return [ReadLog(self.position.offset)]
        return self._judged(LogRead(*event), verdict, after, now)

    def _judged(
        self, event: LogRead, verdict: Verdict, after: LogPosition, now: Now
    ) -> list[Effect]:
        offset, record, digest = event
        if verdict is Verdict.APPLY:
            assert isinstance(record, Decisions)
            return self._apply(record, offset, digest, after, now)
        if verdict is Verdict.CLAIMED:
            assert isinstance(record, Claim)
            return self._claimed(record, after, now)
        effects: list[Effect] = []
        if verdict is Verdict.BARRIER:
            assert isinstance(record, Barrier)
            if record.check is not None:
                # What is committed is exactly what stands before the barrier, on a master with
                # a record in flight too: its open transaction is no part of it.
                effects += self._commit_open(self.position, now)
                self._checks.barrier(record, self.catalog, after)
        self.position = after
        if self.master is not None:
            self.master.pass_over(after)
        if isinstance(record, Claim) and self._is_own_claim(record):
            self._election.lost(now.mono_ns)
        return effects

    def _apply(
        self, record: Decisions, offset: int, digest: bytes, after: LogPosition, now: Now
    ) -> list[Effect]:
        master = self.master
        first = record.commits[0] if record.commits else None  # those of requests come first
        if first is not None and first.request_id and first.changes:
            self._users_ns = now.mono_ns
        if master is not None:
            if not master.flight.is_own(record, digest):
                raise LogStopped(
                    f"L4: a record of epoch {record.epoch}, sequence {record.sequence} counts as"
                    " this master's own, which did not send it"
                )
            self.position = after
            answered = master.read_back(record, offset, after, now)
            self._note_catalog(record)
            return answered + self._announce_catalog(now)
        self._election.heard(now.mono_ns)
        if not self._open:
            self._store.begin()
            self._open = True
        settings = self._settings.master
        changed = apply_record(
            record, after, self.catalog, self._store, settings.outcomes, settings.history
        )
        self.position = after
        self._remember_answers(record, offset)
        self._pending_grants.extend(record.grants)
        effects: list[Effect] = []
        if changed:
            self._catalog_changed = True
            # A check of this very position has to see exactly it (a job's verification).
            if self._checks.wanted(record):
                effects = self._commit_open(after, now)
        self._note_catalog(record)
        return effects

    def _note_catalog(self, record: Decisions) -> None:
        self._checks.record_applied(record, master=self.master is not None)

    def _remember_answers(self, record: object, offset: int) -> None:
        if not self._settings.candidate or not isinstance(record, Decisions):
            return
        while self._unanswered and self._unanswered[0].offset < record.answered_through:
            self._unanswered.popleft()
        answers = answers_of(record, offset)
        if answers.results or answers.conflicts:
            self._unanswered.append(answers)

    def _read_again(self, event: LogRead) -> None:
        """A record from before this process, read for the answers it may still have to give (L7).

        L1 ⚠: whether it counts was judged in another life, and a deposed master's record that was
        passed over must not be answered now. What counts is the chain of digests that ends where
        this store stands (L2), so it is followed back from there.
        """
        if not self._settings.candidate:
            return
        self._reread.append(event)
        if event.offset + 1 < self.position.offset:
            return
        first: dict[bytes, LogRead] = {}
        for read in self._reread:
            first.setdefault(read.digest, read)
        counting: list[LogRead] = []
        at = first.pop(self.position.digest, None)
        while at is not None:
            counting.append(at)
            assert not isinstance(at.record, Barrier), "barriers are outside the chain"
            at = first.pop(at.record.previous, None)
        self._reread.clear()
        counting.reverse()
        for read in counting:
            self._remember_answers(read.record, read.offset)

    def _commit_open(self, position: LogPosition, now: Now) -> list[Effect]:
        if self._open:
            self._store.commit(position)
            self._open = False
        for grant in self._pending_grants:
            if self.lease.granted(grant):
                self.granted_in = self.term
        self._pending_grants.clear()
        return self._announce_catalog(now)

    def _announce_catalog(self, now: Now) -> list[Effect]:
        """What was applied is committed, so readers and the agent may see it."""
        if not self._catalog_changed and self.master is None:
            return []
        self._catalog_changed = False
        self.on_catalog_changed()
        return self.agent.catalog_changed(self.catalog, now.mono_ns) if self.agent else []

    def tidy(self) -> None:
        """When a turn's effects are performed: while nobody waits for this node."""
        master = self.master
        if not self._open and (master is None or master.at_rest):
            self._store.tidy()

    # ------------------------------------------------------------ mastership

    def _is_own_claim(self, claim: Claim) -> bool:
        return claim.node == self._settings.name and claim.incarnation == self.incarnation

    def _claimed(self, claim: Claim, after: LogPosition, now: Now) -> list[Effect]:
        effects: list[Effect] = []
        if self.master is not None:
            effects += self._step_down(f"{claim.node} claimed epoch {claim.epoch}", after)
        effects += self._commit_open(self.position, now)
        self._store.begin()
        self._store.commit(after)
        self.position = after
        self._election.heard(now.mono_ns)
        if not self._is_own_claim(claim):
            return effects
        late = WriteBehind(self._store)
        changes = SchemaChanges(
            self._settings.schema,
            self._settings.name,
            self.catalog,
            after.epoch,
            self._store.rows_about,
            self._secret,
            late.is_empty,
            self._users_write,
        )
        self.master = Master(
            self._settings.master,
            after,
            self.catalog,
            late,
            self._codec,
            [a for a in self._unanswered if a.offset >= after.answered_through],
            changes,
            now,
            self._secret,
            self._clock_ns,
            self._spared,
        )
        self._spared = []
        self._unanswered.clear()
        effects.append(Became("master", after.epoch, "its Claim counts"))
        effects += self.master.begin()
        return effects

    def _step_down(self, why: str, position: LogPosition) -> list[Effect]:
        assert self.master is not None
        self._spared = self.master.attempts.spared()
        self._unanswered.extend(self.master.close())
        self.master = None
        return [StopLanes(), Became("standby", position.epoch, why)]

    def _append_failed(self, reason: str, now: Now) -> list[Effect]:
        """L4 ⚠: after any produce error the epoch is given up; nothing is appended twice."""
        if self.master is None:
            self._election.lost(now.mono_ns)
            return []
        effects = self._step_down(f"an append failed: {reason}", self.position)
        return effects + self._bid(self._election.again(self.position, now.mono_ns))

    def _lane_looked_at(self, event: LaneIdentified | LaneLost, now: Now) -> list[Effect]:
        """⚠ L3: in a topic that was made anew the log's offsets mean other records. The next term
        looks at both lanes before it reads them, and says in the log from where."""
        if self.master is None:
            return []
        why = self.master.intake.explain_loss(event)
        if not why:
            return self.master.intake.delete_decided(event.lane, self.position)
        effects = [Warn(why), *self._step_down(why, self.position)]
        return effects + self._bid(self._election.again(self.position, now.mono_ns))

    def _bid(self, answer: str | None) -> list[Effect]:
        if answer == "ask":
            return [AskLogEnd()]
        if answer == "claim":
            claim = Claim(
                self.position.epoch + 1,
                self.incarnation,
                self.position.digest,
                self._settings.name,
            )
            return [Append(self._codec.encode(claim))]
        return []

    # ------------------------------------------------------------ tick

    def _tick(self, now: Now) -> list[Effect]:
        effects: list[Effect] = []
        if self.identity.due(now.mono_ns):
            effects.append(AskLogIdentity())
        self._give_way(now)
        if self.master is not None:
            if not self.master.in_flight:
                effects += self._repair(now)
                effects += self._remove_dead(now)
            effects += self.master.tick(self.position, now)
        else:
            effects += self._commit_open(self.position, now)
            if self._settings.candidate:
                effects += self._bid(self._election.tick(self.position, now.mono_ns))
                effects.append(Wake(self._election.deadline_ns()))
            effects += self._repair(now)
            effects += self._remove_dead(now)
        if self.agent is not None:
            effects += self.agent.tick(now)
        for report in self._checks.finished(self.incarnation):
            effects.append(self._report(report))
        effects += self._acknowledge(now)
        return effects

    def _users_write(self) -> bool:
        return self._beside_users

    def _give_way(self, now: Now) -> None:
        """Checks of the store go as fast as they can while no user waits for what they hold up."""
        recent_ns = self._settings.master.users_recent_ms * NS_PER_MS
        beside = self._users_ns is not None and now.mono_ns - self._users_ns < recent_ns
        if beside != self._beside_users:
            self._beside_users = beside
            self._store.give_way(beside_users=beside)

    def _remove_dead(self, now: Now) -> list[Effect]:
        """Between two records, a little at a time."""
        if now.mono_ns < self._removal_ns:
            return []
        more = self._store.remove_dead(REMOVED_ROWS_MAX)
        pause_ms = REMOVAL_PAUSE_MS if more else REMOVAL_LOOK_MS
        self._removal_ns = now.mono_ns + pause_ms * NS_PER_MS
        return [Wake(self._removal_ns)] if more else []

    def _repair(self, now: Now) -> list[Effect]:
        """Between two records, a little at a time, as with what is dead."""
        if not self._checks.repairing:
            return []
        done = self._checks.repair(self.catalog, self.position)
        return [self._report(done)] if done is not None else [Wake(now.mono_ns + NS_PER_MS)]

    def _report(self, report: CheckReport) -> Send:
        return Send(Topic.ACKS, 0, self._settings.name.encode(), report, 0)

    def _acknowledge(self, now: Now) -> list[Effect]:
        """Acknowledge what was applied, and ask for a lease when the renewal is due (C3).

        For ticks only: between them the position may be ahead of what readers see (C1)."""
        if self._given_up:
            return []
        effects: list[Effect] = []
        renewal_ns = self._settings.master.coherency.renewal_ms * NS_PER_MS
        serving = self._settings.serving
        if now.mono_ns - self._acked_ns >= renewal_ns:
            self._acked_ns = now.mono_ns
            asked_ns = self.lease.ask(now.mono_ns) if serving else 0
            effects.append(self._ack_on_topic(asked_ns, now))
            effects += self._acknowledge_copy(now)
        elif self._fast.overdue(now.mono_ns):
            effects.append(self._ack_on_topic(0, now))
        elif serving and self.position.offset != self._acked_offset:
            effects += self._tell(now)
        wake_ns = self._acked_ns + renewal_ns
        fast_ns = self._fast.due_ns()
        effects.append(Wake(wake_ns if fast_ns is None else min(wake_ns, fast_ns)))
        return effects

    def _tell(self, now: Now) -> list[Effect]:
        position = self.position
        self._acked_offset = position.offset
        number, on_topic = self._fast.choose(position.epoch, position.incarnation, now.mono_ns)
        effects: list[Effect] = []
        if number != NOT_PUBLISHED:
            told = Tell(number, position.epoch, position.incarnation, self._ack(0, now))
            effects.append(told)
        if on_topic:
            effects.append(self._ack_on_topic(0, now))
        return effects

    def _ack(self, asked_ns: int, now: Now) -> Ack:
        return Ack(
            node=self._settings.name,
            incarnation=self.incarnation,
            role=self.role,
            offset=self.position.offset,
            epoch=self.position.epoch,
            lsn=self.position.lsn,
            asked_ns=asked_ns,
            coherent=self.lease.holds(now.mono_ns),
            serves=self._settings.serves,
            sent_us=now.wall_us,
        )

    def _ack_on_topic(self, asked_ns: int, now: Now) -> Send:
        self._acked_offset = self.position.offset
        self._fast.on_topic()
        ack = self._ack(asked_ns, now)
        return Send(Topic.ACKS, 0, self._settings.name.encode(), ack, 0)

    def _acknowledge_copy(self, now: Now) -> list[Effect]:
        """In the place of the node that takes it: the log is to be kept from there."""
        offset = self.oldest_copy()
        if offset is None:
            return []
        name = copy_name(self._settings.name)
        ack = self._ack(0, now)._replace(
            node=name, role=COPY_ROLE, offset=offset, coherent=False, serves=""
        )
        return [Send(Topic.ACKS, 0, name.encode(), ack, 0)]

    def give_up_lease(self, now: Now) -> list[Effect]:
        """Before a clean stop: serve no more reads, and let nobody wait for this node."""
        self.lease.give_up()
        self._given_up = True
        effects: list[Effect] = [self._ack_on_topic(GIVEN_UP, now)]
        if self.agent is not None:
            effects += self.agent.drain(now.mono_ns)
        return effects
