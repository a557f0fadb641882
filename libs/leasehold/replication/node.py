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
from typing import Final, Protocol

from leasehold.catalog.catalog import Catalog
from leasehold.model.errors import LeaseholdError, LogStopped
from leasehold.model.features import refuse_level
from leasehold.model.measures import Measures
from leasehold.model.ports import Codec, Now, StoreWriter
from leasehold.model.records.acks import Ack
from leasehold.model.records.log import Barrier, Claim, Decisions, Grant, LogPosition
from leasehold.model.time_units import NS_PER_MS
from leasehold.model.traces import NO_SPANS, SpanSink
from leasehold.replication.acknowledging import Acknowledger
from leasehold.replication.coherency import GIVEN_UP, CoherencyLease
from leasehold.replication.disk_room import DiskRoom
from leasehold.replication.effects import (
    AckPublished,
    AckRead,
    AckReceived,
    Append,
    AppendFailed,
    AskLogEnd,
    AskLogIdentity,
    Became,
    DiskSeen,
    Effect,
    Event,
    LedgerReplied,
    LogEnd,
    LogIdentified,
    LogRead,
    LogReceived,
    LookForMaster,
    MasterLooked,
    PublishLogEnd,
    QueueFound,
    QueueIdentified,
    QueueLost,
    QueueRead,
    ReadersFound,
    ReadLog,
    RequestsReceived,
    Sent,
    Stop,
    StopQueues,
    Tick,
    TickPerformed,
    Wake,
    Warn,
)
from leasehold.replication.election import Election
from leasehold.replication.fast_path.log import NOBODY, Term
from leasehold.replication.granted_leases import GrantedLeases
from leasehold.replication.log.admission import Verdict, admit
from leasehold.replication.log.apply import apply_record
from leasehold.replication.log.foreign import ForeignRecords
from leasehold.replication.log.identity import LogIdentity
from leasehold.replication.log.truncation import LogTruncation
from leasehold.replication.master.attempts import Spared
from leasehold.replication.master.master import Master
from leasehold.replication.master.schema_changes import SchemaChanges
from leasehold.replication.master.write_behind import WriteBehind
from leasehold.replication.node_agent import FOR_AGENT, NodeAgent
from leasehold.replication.node_measures import NodeMeasures
from leasehold.replication.node_settings import NodeSettings
from leasehold.replication.unanswered import UnansweredRecords
from leasehold.replication.upkeep import StoreUpkeep

READ_MAX: Final = 10_000
"""Records of the log that may wait while a master tells its store of many changes: others write
barriers alone."""


PUT_OFF_MS_MAX: Final = 50
"""Of what a busy master has to do with its store beside requests."""


class LogFollower(Protocol):
    """What is told, on the thread that steps the node, of each record that it applies."""

    def applied(self, record: Decisions) -> None:
        """Take a record that readers don't see yet."""
        ...

    def committed(self, lsn: int) -> None:
        """Take it that readers see all that was applied, up to that LSN."""
        ...


class Node:
    """The state machine. `step` never raises for what comes from outside; a contradiction ends in
    Stop."""

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
        measures: Measures | None = None,
        spans: SpanSink = NO_SPANS,
    ) -> None:
        """Open the store. `incarnation`: fresh and random per start (L4, C3). `session_ids`: fresh
        random numbers for the agent's sessions, from 1 to lease.commands.SESSION_ID_MAX. `secret`:
        at most 32 random bytes that never leave the process; without them the incarnation, from
        which the random values of defaults can be foretold. `clock_ns`: a clock to measure by how
        long deciding takes, and for nothing else; one that stands still sets no limit to that.
        `measures`: where the node counts, and `spans`: whom it tells of requests that are to be
        followed, on the thread that steps it."""
        self._spans = spans
        self.measures = measures or Measures()
        self.counts = NodeMeasures(self.measures, now.mono_ns)
        self._clock_ns = clock_ns
        self._spared: list[Spared] = []  # of terms of this process
        self._secret = secret or incarnation
        self._settings = settings
        self._store = store
        self._codec = codec
        self.incarnation = incarnation
        store.keep_rows(settings.master.history.rows_ms > 0)
        self.position = store.position()
        refuse_level(self.position.feature_level, f"the store of node {settings.name}")
        self.catalog = Catalog.of_store(store.catalog())
        self.lease = CoherencyLease(settings.name, incarnation)
        self.master: Master | None = None
        self.agent = (
            NodeAgent(settings.name, session_ids, settings.leases) if settings.serving else None
        )
        self.on_catalog_changed: Callable[[], None] = lambda: None
        self.followers: tuple[LogFollower, ...] = ()
        """Those who are told of what is applied here. ⚠ Not of what a master applies: it serves no
        reads."""
        self._upkeep = StoreUpkeep(settings, store)
        self._checks = self._upkeep.checks
        self._election = Election(settings.election, now.mono_ns)
        self.identity = LogIdentity(now.mono_ns)
        self.disk = DiskRoom(settings.name, settings.release, settings.disk_reserve_bytes)
        self._open = False  # applied, not yet committed
        self.puts_off = False
        """Whether the store is looked after when the effects of this tick are carried out."""
        self._kept_up_ns = now.mono_ns
        self._pending_grants: list[Grant] = []
        self._catalog_changed = True
        self._unanswered = UnansweredRecords()  # of a candidate
        defer_ms = settings.master.coherency.defer_ms
        self._truncation = LogTruncation(settings.master.truncation)
        self._granted = GrantedLeases(now.mono_ns, self.position.longest_grant_ms, defer_ms)
        self._read: deque[LogRead] = deque()  # and waits for the master's store
        self.foreign = ForeignRecords()
        assert store.part.is_whole or not settings.candidate, "a master has everything"
        self.acknowledger = Acknowledger(
            settings, incarnation, self.lease, self.foreign, lambda: store.part
        )
        self.granted_in: Term = NOBODY
        """The term in which this incarnation was last granted a lease: its master reads what this
        process says, and this process reads what it writes."""
        self.stopped: LeaseholdError | None = None

    @property
    def role(self) -> str:
        if self.master is not None:
            return "master"
        return "standby" if self._settings.candidate else "replicant"

    @property
    def term(self) -> Term:
        """The term of the log at this node's position."""
        return self.position.epoch, self.position.incarnation

    @property
    def awaits_acks(self) -> bool:
        """Whether something waits here that an acknowledgement of a node's can let go on."""
        return self.master is not None and self.master.awaits_acks

    def has_committed(self, offset: int) -> bool:
        """Return whether that record of the log, with all before it, is applied and visible to
        readers. May be asked by any thread: the position passes an offset only when `_open` says so
        of what stands before it."""
        assert offset >= 0, "T6: a record that stands nobody knows where is waited for by nobody"
        return self.position.offset > offset and not self._open

    def sees_below(self, lsn: int) -> bool:
        """Return whether all that stands in the log below that LSN is applied and visible to
        readers; for any thread, as `has_committed`."""
        return self.position.lsn >= lsn - 1 and not self._open

    @property
    def reads_from(self) -> int:
        """The offset of the log from which it is to be read when the node starts. A candidate reads
        from `answered_through` on: should it become master, it gives again what its predecessor may
        not have given (L7). What it applied before is passed over."""
        offset = self.position.offset
        return min(offset, self.position.answered_through) if self._settings.candidate else offset

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
                return self._log_received(event, now)
            case Tick():
                return self._tick(now)
            case TickPerformed():
                return self._keep_up(now)
            case QueueRead():
                return master.intake.queue_message(event, now.mono_ns) if master is not None else []
            case RequestsReceived() | AckRead() | AckReceived():
                return self._take_told(event, now)
            case AckPublished(number, heard):
                self.acknowledger.confirm(number, now, received=heard)
                return []
            case MasterLooked(epoch, incarnation, listens):
                self._election.take_look((epoch, incarnation), now.mono_ns, listens=listens)
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
            case DiskSeen():
                self.disk.take(event)
                return []
            case ReadersFound(readers, span_ns):
                self._truncation.take_history(readers, span_ns, now.mono_ns)
                return []
            case LogEnd(offset):
                return self._bid(self._election.take_end(offset, self.position, now.mono_ns))
            case LogIdentified(topic, topic_id):
                self.identity.check_topic(topic, topic_id, self.position)
                return []
            case QueueFound():
                return master.intake.find_queue(event) if master is not None else []
            case QueueIdentified() | QueueLost():
                return self._queue_changed(event, now)

    def _take_told(self, event: RequestsReceived | AckRead | AckReceived, now: Now) -> list[Effect]:
        """Take what others tell the master, or a candidate. ⚠ Whatever it runs into is the teller's
        fault, who may be anybody and tells it again to the next one: it is passed over."""
        master = self.master
        try:
            match event:
                case RequestsReceived() if master is not None:
                    master.intake.queue_published(event, now.mono_ns)
                case AckReceived(record) if master is not None:
                    master.take_published_ack(record, now)
                case AckRead(record) if master is not None:
                    return master.take_acknowledgement(record, now)
                case AckRead(Ack() as ack) if self._settings.candidate:
                    self._take_ack(ack, now)
        except LeaseholdError:
            raise
        except Exception as error:  # noqa: BLE001 - see above
            if isinstance(event, AckRead):
                kind, what = type(error).__name__, type(event.record).__name__
                return [Warn(f"passed over an acknowledgement ({what}): {kind}: {error!s:.200}")]
        return []

    def _take_ack(self, ack: Ack, now: Now) -> None:
        """Take the acknowledgement of a node that a next master will have to wait for (C6), and of
        whoever reads the log (L11); or the last one of a master that leaves, whose records end
        there."""
        self._truncation.take_ack(ack, now.mono_ns)
        self._granted.take_ack(ack, now.mono_ns)
        if ack.asked_ns == GIVEN_UP and (ack.epoch, ack.incarnation) == self.term:
            self._election.take_farewell(ack.epoch, ack.offset)

    def stop(self, error: LeaseholdError) -> list[Effect]:
        """Serve nothing more: the log, the store or this program contradicts itself."""
        self.stopped = error
        self.lease.give_up()
        if self.master is not None:
            self.master.close()
            self.master = None
        elif self._open:
            self._store.rollback()
        self._open = False
        self._read.clear()
        return [StopQueues(), Stop(error)]

    def own_record(self, digest: bytes) -> Decisions | None:
        """Return the record in flight if the bytes read back have its digest: decoding them again
        would give the same."""
        return self.master.flight.find(digest) if self.master is not None else None

    # ------------------------------------------------------------ reading the log

    def _log_read(self, event: LogRead, now: Now) -> list[Effect]:
        master = self.master
        if self._read or (master is not None and master.is_putting):
            return self._keep_read(event, now)
        offset, record, digest = event
        if offset < self.position.offset:
            if self._settings.candidate:
                self._unanswered.read_again(event, self.position)
            return []
        foreign = self.foreign
        known = foreign.in_doubt
        verdict, after = foreign.judge(admit, self.position, offset, record, digest, now.mono_ns)
        if foreign.in_doubt > known == 0:
            # It may be of a master that this node has missed a record of: the next one tells.
            self._election.note_master(now.mono_ns)
        return self._follow_verdict(event, verdict, after, now)

    def _keep_read(self, event: LogRead, now: Now) -> list[Effect]:
        """Keep a record of the log that is read while the store is told of many changes, which
        takes turns of its own: its own record can't be committed yet, and the others stand behind
        it."""
        effects: list[Effect] = []
        if len(self._read) >= READ_MAX and self.master is not None:
            self.master.settle()
            effects = self._take_read(now)
        if not self._read or event.offset > self._read[-1].offset:
            self._read.append(event)
        return effects

    def _take_read(self, now: Now) -> list[Effect]:
        """Take what was read of the log meanwhile."""
        effects: list[Effect] = []
        read = list(self._read)
        self._read.clear()
        for event in read:
            effects += self._log_read(event, now)
        return effects

    def _log_received(self, event: LogReceived, now: Now) -> list[Effect]:
        """Apply a record that was published, if it follows. Whoever may publish records may make
        some up. What contradicts the log so far is none of
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
        self.foreign.followed()
        return self._follow_verdict(LogRead(*event), verdict, after, now)

    def _follow_verdict(
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
                self._checks.take_barrier(record, self.catalog)
        self.position = after
        if self.master is not None:
            self.master.pass_over(after)
        if isinstance(record, Claim) and self._is_own_claim(record):
            self._election.give_up_bid(now.mono_ns)
        return effects

    def _apply(
        self, record: Decisions, offset: int, digest: bytes, after: LogPosition, now: Now
    ) -> list[Effect]:
        master = self.master
        if self._settings.candidate:
            self._granted.read_grants(record.grants, now.mono_ns)
        if master is not None and not master.flight.is_own(record, digest):
            # Whoever has made it knows the chain. Every other node applies it: so does this one,
            # and what it has sent itself counts no more (L2, L4).
            why = (
                f"L4: a record of epoch {record.epoch}, sequence {record.sequence} counts as this"
                " master's own, which did not send it: who else may write to the log?"
            )
            left = [*self._step_down(why, self.position), Warn(why)]
            return [*left, *self._apply(record, offset, digest, after, now)]
        if master is not None:
            self._upkeep.record_read(record, now)
            self.position = after
            answered = master.read_back(record, offset, after, now)
            self.counts.applied(record)
            self._checks.record_applied(record, master=True)
            self._checks.take_barriers(record, self.catalog)
            return answered + self._announce_catalog(now)
        self._upkeep.record_read(record, now)
        begun_ns = self._clock_ns()
        if not self._open:
            self._store.begin()
            self._open = True
        settings = self._settings.master
        changed = apply_record(
            record, after, self.catalog, self._store, settings.outcomes, settings.history
        )
        # ⚠ From behind what was applied: the master needs as long for it, and writes nothing
        # meanwhile.
        took_ns = self._clock_ns() - begun_ns
        self._election.note_master(now.mono_ns + took_ns)
        self.counts.applied(record, took_ns)
        self.position = after
        for follower in self.followers:
            follower.applied(record)
        if self._settings.candidate:
            self._unanswered.remember(record, offset)
        self._pending_grants.extend(record.grants)
        effects: list[Effect] = []
        if changed:
            self._catalog_changed = True
            # A check of this very position has to see exactly it (a job's verification).
            if self._checks.starts_with(record):
                effects = self._commit_open(after, now)
        if record.barriers:
            effects += self._commit_open(after, now)
            self._checks.take_barriers(record, self.catalog)
        self._checks.record_applied(record, master=False)
        return effects

    def _commit_open(self, position: LogPosition, now: Now) -> list[Effect]:
        if self._open:
            self._store.commit(position)
            self._open = False
            for follower in self.followers:
                follower.committed(position.lsn)
        for grant in self._pending_grants:
            if self.lease.granted(grant):
                self.granted_in = self.term
        self._pending_grants.clear()
        return self._announce_catalog(now)

    def _announce_catalog(self, now: Now) -> list[Effect]:
        """PublishAck readers and the agent of the catalog, once what was applied is committed."""
        if not self._catalog_changed and self.master is None:
            return []
        self._catalog_changed = False
        self.on_catalog_changed()
        if self.agent is None:
            return []
        return self.agent.catalog_changed(self.catalog, now.mono_ns, self._store.part)

    def tidy(self) -> None:
        """Tidy the store if nobody waits for this node; for when a turn's effects are performed."""
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
        self._election.note_master(now.mono_ns)
        if not self._is_own_claim(claim):
            return effects
        late, upkeep = WriteBehind(self._store), self._upkeep
        changes = SchemaChanges(
            self._settings.schema,
            self._settings.name,
            self.catalog,
            after.epoch,
            self._store.rows_about,
            self._secret,
            late.is_empty,
            lambda: upkeep.beside_users,
        )
        self.master = Master(
            self._settings.master,
            after,
            self.catalog,
            late,
            self._codec,
            self._unanswered.hand_over(after.answered_through),
            changes,
            self._granted.running(),
            self._truncation,
            now,
            self._secret,
            self._clock_ns,
            self._spared,
            self._settings.name,
            self.measures,
            self.disk,
            self._spans,
        )
        self.counts.took_over()
        self._spared = []
        why = "its Claim counts"
        if self._election.was_left(after.epoch - 1):
            why = "its predecessor has handed its term over"
        effects.append(Became("master", after.epoch, why))
        effects += self.master.begin()
        return effects

    def _step_down(self, why: str, position: LogPosition) -> list[Effect]:
        assert self.master is not None
        self._spared = self.master.attempts.spared()
        self._unanswered.keep(self.master.close())
        self.master = None
        self.counts.lost_term()
        return [StopQueues(), Became("standby", position.epoch, why)]

    def _append_failed(self, reason: str, now: Now) -> list[Effect]:
        """Give the epoch up: ⚠ after any produce error, since nothing is appended twice (L4)."""
        if self.master is None:
            self._election.fail_bid(now.mono_ns)
            return []
        effects = self._step_down(f"an append failed: {reason}", self.position)
        return effects + self._bid(self._election.bid_again(self.position, now.mono_ns))

    def _queue_changed(self, event: QueueIdentified | QueueLost, now: Now) -> list[Effect]:
        """Give the epoch up if the queue is another topic now: ⚠ in one that was recreated the
        log's offsets mean other records (L3). The next term looks at both queues before it reads
        them, and says in the log from where."""
        if self.master is None:
            return []
        why = self.master.intake.explain_loss(event)
        if not why:
            return self.master.intake.delete_decided(event.queue, self.position)
        effects = [Warn(why), *self._step_down(why, self.position)]
        return effects + self._bid(self._election.bid_again(self.position, now.mono_ns))

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
        self._upkeep.give_way(self.catalog, now)
        self.foreign.check(now.mono_ns)
        words = self.foreign.warning(now.mono_ns)
        if words:
            effects.append(Warn(words))
        if self._read and self.master is None:  # its term has ended meanwhile
            effects += self._take_read(now)
        master = self.master
        if master is None:
            effects += self._commit_open(self.position, now)
            if self._settings.candidate and not self.foreign.breaks:
                effects += self._bid(self._election.tick(self.position, now.mono_ns))
                if self._election.look_is_due(self.term, now.mono_ns):
                    effects.append(LookForMaster(*self.term))
                effects.append(Wake(self._election.deadline_ns(self.term)))
        if self._is_awaited(now):
            self.puts_off = True
        else:
            effects += self._keep_up(now)
        if master is not None:
            effects += master.tick(self.position, now)
            if self._read and not master.is_putting:
                effects += self._take_read(now)
        if self.agent is not None:
            effects += self.agent.tick(now)
        effects += self._upkeep.reports(self.catalog, self.incarnation, self.position, now)
        effects += self.acknowledger.acknowledge(self.position, self.role, now)
        effects += self.disk.report(now, self.position.feature_level)
        if self._settings.serving:
            self.counts.note_coherency(now.mono_ns, holds=self.lease.holds(now.mono_ns))
        return effects

    def _is_awaited(self, now: Now) -> bool:
        """Return whether somebody waits for what this tick tells: an acknowledgement, which answers
        wait for, or answers themselves. ⚠ Of a master not for ever: while it has a record on its
        way nothing can be put off until behind the tick."""
        if self.master is None:
            return self.acknowledger.is_due(self.position)
        if not self.master.has_due_answers(now):
            return False
        return now.mono_ns - self._kept_up_ns < PUT_OFF_MS_MAX * NS_PER_MS

    def _keep_up(self, now: Now) -> list[Effect]:
        """Look after the store a little, between two records."""
        if self.master is not None and self.master.in_flight:
            return []
        self.puts_off, self._kept_up_ns = False, now.mono_ns
        return self._upkeep.work(self.catalog, self.position, now)

    def leave(self) -> list[Effect]:
        """Begin to leave the term, if this node is master: before a clean stop. It decides what it
        has, and begins nothing more."""
        return self.master.leave() if self.master is not None else []

    @property
    def has_left(self) -> bool:
        """Whether this node is no master, or one that has decided and answered all that it had."""
        return self.master is None or self.master.has_left

    def give_up_lease(self, now: Now) -> list[Effect]:
        """Serve no more reads, and let nobody wait for this node: before a clean stop. Of a master
        it is the farewell, for standbys: it appends nothing after that. Who receives the log from
        it reads Kafka from there on, and does not wait until it has been silent for a while."""
        self.lease.give_up()
        effects: list[Effect] = [self.acknowledger.give_up(self.position, self.role, now)]
        if self.master is not None:
            effects.append(PublishLogEnd(*self.term, self.position.offset))
        if self.agent is not None:
            effects += self.agent.drain(now.mono_ns)
        return effects
