"""One node on the in-memory bus and ledger: performs the effects of `replication.node.Node`.

A crash drops everything that was not on the bus or committed to the store. What was on its way to
the broker may still arrive afterwards, or not: both happen to real producers.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator
from typing import Final

from leasehold.adapters.codec.records import MessagePackCodec
from leasehold.in_process.bus import MemoryBus, Message, Scheduler, Subscription
from leasehold.in_process.ledger import MemoryLedger
from leasehold.in_process.network import Hops, NodeClock
from leasehold.in_process.pubsub import MemoryPubSub
from leasehold.model.errors import LedgerUnavailable, LogStopped, MalformedRequest
from leasehold.model.ports import Now, StoreWriter
from leasehold.model.records.requests import Lane
from leasehold.model.topics import Topics
from leasehold.replication.effects import (
    AckRead,
    AckReceived,
    Append,
    AppendFailed,
    AskLane,
    AskLaneIdentity,
    AskLogEnd,
    AskLogIdentity,
    Became,
    CallLedger,
    ClockNotice,
    DeleteBelow,
    DeleteLogBelow,
    Effect,
    Event,
    LaneFound,
    LaneIdentified,
    LaneRead,
    LedgerReplied,
    Listen,
    LogEnd,
    LogIdentified,
    LogRead,
    LogReceived,
    PauseLane,
    PublishAnswers,
    ReadLane,
    ReadLog,
    RequestsReceived,
    ResumeLane,
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
from leasehold.replication.fast_path.log import NOBODY, LogPath, Term
from leasehold.replication.fast_path.own_appends import OwnAppends
from leasehold.replication.master.queue_topics import Found
from leasehold.replication.node import Node, NodeSettings

CODEC: Final = MessagePackCodec()


TERM_HEADER: Final = "term"
APPEND_TIMEOUT_NS: Final = 1_000_000_000
LOOK_NS: Final = 1_000_000
"""What it takes to ask which log it is: not drawn, since nothing depends on it."""


class MemoryNode:
    """`make_store` opens the node's committed state (again after a crash)."""

    def __init__(
        self,
        settings: NodeSettings,
        topics: Topics,
        scheduler: Scheduler,
        bus: MemoryBus,
        ledger: MemoryLedger,
        make_store: Callable[[], StoreWriter],
        incarnation: Callable[[], bytes],
        session_ids: Iterator[int],
        hops: Hops | None = None,
        pubsub: MemoryPubSub | None = None,
    ) -> None:
        self.settings = settings
        self._topics = topics
        self._scheduler = scheduler
        self._bus = bus
        self._ledger = ledger
        self._make_store = make_store
        self._incarnation = incarnation
        self._session_ids = session_ids
        self._hops = hops or Hops()
        self._pubsub = pubsub or MemoryPubSub()
        self._listens: Term | None = None
        self._ways: LogPath | None = None
        self._follows: Term = NOBODY
        self._reads_kafka = True
        self.told_records = 0
        """Applied, in all its lives, that were told and not read."""
        self.ways_taken = 0
        """How often it changed from one way to the other."""
        self.landed_records = 0
        """Of its own, in all its lives, that it did not read back from the log."""
        self.fetching_changed = 0
        """How often it began to fetch the log, or ended to."""
        self._life = 0
        self._subscriptions: dict[str, Subscription] = {}
        self._produced_ns: dict[str, int] = {}
        self._wake_ns = 0
        self._tick_due = False
        self.node: Node | None = None
        self.clock = NodeClock()
        self.paused_until_ns = 0
        self.isolated_until_ns = 0
        self._held: deque[Callable[[], None]] = deque()  # while paused
        self._cut_off: deque[Callable[[], None]] = deque()  # while isolated
        self.history: list[Became | ClockNotice | Stop | Warn] = []
        self.on_step: Callable[[MemoryNode], None] = lambda _: None

    @property
    def up(self) -> bool:
        return self.node is not None

    # ------------------------------------------------------------ life

    def start(self) -> None:
        assert self.node is None
        self._life += 1
        self._wake_ns = 0
        self._tick_due = False
        self._held.clear()
        self._cut_off.clear()
        self.store = self._make_store()
        self.node = Node(
            self.settings,
            self.store,
            CODEC,
            self._incarnation(),
            self._session_ids,
            self.now(),
            clock_ns=lambda: max(self._scheduler.now_ns, self.paused_until_ns),
        )
        self._ways = None
        if self.settings.fast_log.on and self.settings.serving and not self.settings.candidate:
            offset = self.node.position.offset
            self._ways = LogPath(self.settings.fast_log, offset)
        self._follows, self._reads_kafka = NOBODY, True
        self._own = OwnAppends(self.settings.own_appends)
        self._fetches_log = True
        log = self._topics.log.name
        self.node.step(LogIdentified(log, self._bus.topic_id(log)), self.now())
        self._perform(self.node.start())
        acks = self._topics.acks.name
        if self.settings.candidate:
            self._subscribe(acks, self._bus.end(acks), self._ack_read)
        self._tick_soon()

    def crash(self) -> None:
        """Kill -9: no farewell."""
        self._life += 1
        for subscription in self._subscriptions.values():
            subscription.cancel()
        self._subscriptions.clear()
        self._pubsub.unfollow(self.settings.name)
        self._stop_listening()
        self.node = None

    def stop(self) -> None:
        """A clean stop: the coherency lease is given back first."""
        if self.node is not None:
            self._perform(self.node.give_up_lease(self.now()))
            self.crash()

    def pause(self, until_ns: int) -> None:
        """SIGSTOP until then: what arrives meanwhile waits."""
        self.paused_until_ns = max(self.paused_until_ns, until_ns)

    def isolate(self, until_ns: int) -> None:
        """Cut off from broker and ledger until then; the process and its clock go on."""
        self.isolated_until_ns = max(self.isolated_until_ns, until_ns)

    def heal(self) -> None:
        """End a pause and an isolation now."""
        self.paused_until_ns = self.isolated_until_ns = 0
        self._release()

    @property
    def paused(self) -> bool:
        return self._scheduler.now_ns < self.paused_until_ns

    @property
    def isolated(self) -> bool:
        return self._scheduler.now_ns < self.isolated_until_ns

    def now(self) -> Now:
        """This node's own clocks."""
        return self.clock.now(self._scheduler)

    def users_left(self) -> None:
        """A lease's last user of a version of the past has gone (D4)."""
        if self.node is not None and self.node.agent is not None:
            self._perform(self.node.agent.users_left(self.now().mono_ns))

    def reads(self) -> bool:
        """C2: whether this node answers reads now."""
        return (
            self.node is not None and not self.paused and self.node.lease.holds(self.now().mono_ns)
        )

    # ------------------------------------------------------------ events in

    def _guarded(self, action: Callable[[], None]) -> Callable[[], None]:
        """The action, unless the node has died meanwhile; after its pause if it is paused."""
        life = self._life

        def run() -> None:
            if self._life != life or self.node is None:
                return
            if self.paused or self._held:
                # In order, also when the pause is made longer meanwhile.
                self._held.append(action)
                self._scheduler.at(self.paused_until_ns, self._release)
                return
            action()

        return run

    def _from_network(self, action: Callable[[], None]) -> Callable[[], None]:
        """As `_guarded`, and not before an isolation is over."""
        inner = self._guarded(action)
        life = self._life

        def run() -> None:
            if self._life != life:
                return
            if self.isolated or self._cut_off:
                self._cut_off.append(inner)
                self._scheduler.at(self.isolated_until_ns, self._release)
                return
            inner()

        return run

    def _release(self) -> None:
        while self._cut_off and not self.isolated:
            self._cut_off.popleft()()
        while self._held and not self.paused and self.node is not None:
            self._held.popleft()()

    def step(self, event: Event) -> None:
        assert self.node is not None
        self._perform(self.node.step(event, self.now()))
        if not isinstance(event, Tick):
            self._tick_soon()
        self.on_step(self)

    def _tick_soon(self) -> None:
        if not self._tick_due:
            self._tick_due = True
            self._scheduler.later(0, self._guarded(self._tick))

    def _tick(self) -> None:
        self._tick_due = False
        self.step(Tick())
        self._keep_way()
        self._keep_fetching()

    def _wake(self, at_ns: int) -> None:
        """The earliest is enough: every tick asks anew for all that is still wanted."""
        due_ns = max(self.clock.virtual_ns(at_ns), self._scheduler.now_ns + 1)
        if self._scheduler.now_ns < self._wake_ns <= due_ns:
            return
        self._wake_ns = due_ns

        def woken() -> None:
            if self._wake_ns == due_ns:
                self._wake_ns = 0
                self._tick()

        self._scheduler.at(due_ns, self._guarded(woken))

    def _subscribe(self, topic: str, offset: int, read: Callable[[Message], None]) -> None:
        old = self._subscriptions.pop(topic, None)
        if old is not None:
            old.cancel()

        def deliver(message: Message) -> None:
            # A subscription that was cancelled while the message waited delivers nothing.
            def action() -> None:
                if subscription.active:
                    read(message)

            self._from_network(action)()

        subscription = self._bus.subscribe(topic, 0, offset, deliver, self._hops.deliver_ns)
        self._subscriptions[topic] = subscription

    def _log_read(self, message: Message) -> None:
        assert message.value is not None
        if not self._own.is_new(message.offset):
            return
        ways = self._ways
        if ways is not None and not ways.read(message.offset, self.now().mono_ns):
            return
        self._stands_at(message.offset, message.value)

    def _stands_at(self, offset: int, data: bytes) -> None:
        """That record in the log, read there or known from the broker."""
        assert self.node is not None
        if self.settings.fast_log.on and self.node.master is not None and not self.isolated:
            self._pubsub.tell_log(self.node.term, offset, data)
        try:
            record = CODEC.decode_log(data)
        except LogStopped as error:
            self._perform([Stop(error)])
            return
        self.step(LogRead(offset, record, CODEC.digest(data)))

    # ------------------------------------------------------------ a master's own records

    def _own_landed(self, offset: int, data: bytes) -> None:
        """The broker has said where a record stands; as `kafka_node.py` takes it."""
        node = self.node
        if node is None or node.master is None:
            return
        if self._own.landed(offset, node.position.offset, self.now().mono_ns):
            self.landed_records += 1
            self._stands_at(offset, data)

    def _keep_fetching(self) -> None:
        node, own = self.node, self._own
        if node is None:
            return
        own.tick(self.now().mono_ns, master=node.master is not None)
        if own.fetches != self._fetches_log:
            self._fetches_log = own.fetches
            self.fetching_changed += 1
            if own.fetches:
                self._subscribe(self._topics.log.name, node.position.offset, self._log_read)
            else:
                self._subscriptions.pop(self._topics.log.name).cancel()
        due_ns = own.due_ns()
        if due_ns is not None:
            self._wake(due_ns)

    # ------------------------------------------------------------ the log, told by the master

    def _keep_way(self) -> None:
        """As `log_source.py` does it after each turn."""
        ways, node = self._ways, self.node
        if ways is None or node is None:
            return
        now_ns = self.now().mono_ns
        ways.follow(node.term, node.granted_in, now_ns)
        if ways.term != self._follows:
            self._follows = ways.term
            self._pubsub.unfollow(self.settings.name)
            if ways.term != NOBODY:
                self._pubsub.follow(self.settings.name, ways.term, self._log_told)
        ways.tick(now_ns)
        if ways.fast == self._reads_kafka:
            self._reads_kafka = not ways.fast
            self.ways_taken += 1
            if self._reads_kafka:
                self._subscribe(self._topics.log.name, ways.next_offset, self._log_read)
            else:
                self._subscriptions.pop(self._topics.log.name).cancel()
        due_ns = ways.due_ns()
        if due_ns is not None:
            self._wake(due_ns)

    def _log_told(self, offset: int, data: bytes) -> None:
        """Lost, doubled, late or overtaken on its way."""
        outcome = self._hops.tell_outcome()
        follows, life = self._follows, self._life

        def receive() -> None:
            ways = self._ways
            if follows != self._follows or ways is None or life != self._life:
                return
            try:
                record = CODEC.decode_log(data)
            except LogStopped:
                self._perform([ReadLog(ways.next_offset)])
                return
            if ways.receive(offset, self.now().mono_ns, whole=True):
                self.told_records += 1
                self.step(LogReceived(offset, record, CODEC.digest(data)))
            self._tick_soon()

        if self.isolated or self._pubsub.away or outcome == "lost":
            return
        self._scheduler.later(self._hops.tell_ns(), self._guarded(receive))
        if outcome == "twice":
            self._scheduler.later(self._hops.late_ns(), self._guarded(receive))

    def _ack_read(self, message: Message) -> None:
        assert message.value is not None
        try:
            self.step(AckRead(CODEC.decode(message.value)))
        except MalformedRequest:
            return  # an acknowledgement that can't be read acknowledges nothing

    def _lane_read(self, lane: Lane) -> Callable[[Message], None]:
        def read(message: Message) -> None:
            content_type = message.headers.get("content-type", "application/msgpack")
            self.step(LaneRead(lane, message.offset, content_type, message.value or b""))

        return read

    # ------------------------------------------------------------ effects out

    def _perform(self, effects: list[Effect]) -> None:
        for effect in effects:
            self._perform_one(effect)

    def _perform_one(self, effect: Effect) -> None:
        match effect:
            case ReadLog(offset):
                if self._ways is not None:
                    self._ways.doubted(offset, self.now().mono_ns)
                self._subscribe(self._topics.log.name, offset, self._log_read)
            case AskLogEnd():
                self._scheduler.later(
                    self._hops.produce_ns(),
                    self._from_network(self._log_end),
                )
            case AskLogIdentity():
                self._scheduler.later(LOOK_NS, self._from_network(self._identified))
            case AskLane(lane):
                found = self._from_network(lambda: self._lane_found(lane))
                self._scheduler.later(LOOK_NS, found)
            case AskLaneIdentity(lane):
                looked_at = self._from_network(lambda: self._lane_identified(lane))
                self._scheduler.later(LOOK_NS, looked_at)
            case ReadLane(lane, offset):
                self._subscribe(self._lane_topic(lane), offset, self._lane_read(lane))
            case PauseLane(lane):
                self._subscriptions[self._lane_topic(lane)].paused = True
            case ResumeLane(lane):
                topic = self._lane_topic(lane)
                self._bus.resume(topic, 0, self._subscriptions[topic])
            case Listen(epoch, incarnation):
                self._stop_listening()
                self._listens = epoch, incarnation
                self._pubsub.listen(self._listens, self._told_of)
                if self.settings.fast_requests.on:
                    self._pubsub.listen_to_requesters(self._listens, self._asked)
            case PublishAnswers(requester, batch):
                if not self.isolated and not self._pubsub.away:
                    self._pubsub.answer(requester, batch)
            case Tell():
                self._tell(effect)
            case StopLanes():
                self._stop_listening()
                for lane in Lane:
                    gone = self._subscriptions.pop(self._lane_topic(lane), None)
                    if gone is not None:
                        gone.cancel()
            case Append(data):
                self._append(data)
            case Send():
                self._send(effect)
            case CallLedger(token, command):
                self._call_ledger(token, command)
            case DeleteBelow(lane, offset):
                self._bus.delete_below(self._lane_topic(lane), 0, offset)
            case DeleteLogBelow(offset):
                self._bus.delete_below(self._topics.log.name, 0, offset)
            case Wake(at_ns):
                self._wake(at_ns)
            case Became() | ClockNotice() | Warn():
                self.history.append(effect)
            case Stop():
                self.history.append(effect)
                self.crash()

    def _log_end(self) -> None:
        self._identified()
        if self.node is not None:
            self.step(LogEnd(self._bus.end(self._topics.log.name)))

    def _identified(self) -> None:
        log = self._topics.log.name
        self.step(LogIdentified(log, self._bus.topic_id(log)))

    def _lane_found(self, lane: Lane) -> None:
        topic = self._lane_topic(lane)
        first, end = self._bus.first(topic), self._bus.end(topic)
        self.step(LaneFound(lane, Found(topic, self._bus.topic_id(topic), first, end)))

    def _lane_identified(self, lane: Lane) -> None:
        topic = self._lane_topic(lane)
        self.step(LaneIdentified(lane, topic, self._bus.topic_id(topic)))

    def _lane_topic(self, lane: Lane) -> str:
        topic = self._topics.requests if lane is Lane.REQUESTS else self._topics.backfill
        return topic.name

    def _arrival_ns(self, topic: str) -> int:
        """One producer's messages arrive in the order they were sent."""
        at_ns = max(self._scheduler.now_ns, self.isolated_until_ns) + self._hops.produce_ns()
        at_ns = max(at_ns, self._produced_ns.get(topic, 0))
        self._produced_ns[topic] = at_ns
        return at_ns

    def _arrive(self, topic: str, action: Callable[[], None]) -> None:
        """What was handed to the network arrives, whatever becomes of its sender; what its sender
        had not got rid of dies with it."""
        life, held_back = self._life, self.isolated

        def arrive() -> None:
            if self._life == life or (not held_back and self._hops.survives_crash()):
                action()

        self._scheduler.at(self._arrival_ns(topic), arrive)

    def _append(self, data: bytes) -> None:
        topic = self._topics.log.name
        outcome = self._hops.append_outcome()
        failed = self._guarded(lambda: self.step(AppendFailed(f"simulated: {outcome}")))
        if self.isolated:
            self._scheduler.later(APPEND_TIMEOUT_NS, failed)
            return
        if outcome == "unknown":
            late_ns = self._hops.produce_ns() + self._hops.late_ns()
            self._scheduler.later(late_ns, lambda: self._arrived(topic, data))
        elif outcome == "ok":
            self._arrive(topic, lambda: self._landed(topic, data))
        if outcome != "ok":
            self._scheduler.later(self._hops.produce_ns(), failed)

    def _arrived(self, topic: str, data: bytes) -> None:
        self._bus.append(topic, 0, b"", data)

    def _landed(self, topic: str, data: bytes) -> None:
        """As `_arrived`, and the broker says so."""
        offset = self._bus.append(topic, 0, b"", data)
        if self.settings.own_appends.on:
            told = self._from_network(lambda: self._own_landed(offset, data))
            self._scheduler.later(self._hops.produce_ns(), told)

    def _send(self, send: Send) -> None:
        name = {
            Topic.RESULTS: self._topics.results,
            Topic.CONFLICTS: self._topics.conflicts,
            Topic.ACKS: self._topics.acks,
            Topic.NOTICES: self._topics.notices,
        }[send.topic].name
        data = CODEC.encode(send.record)
        partition = max(send.partition, 0)
        arrived = self._from_network(lambda: self.step(Sent(send.token)))

        headers: dict[str, str] = {}
        if send.topic == Topic.RESULTS and self._listens and self.settings.fast_requests.on:
            epoch, incarnation = self._listens
            headers = {TERM_HEADER: f"{epoch}:{incarnation.hex()}"}

        def arrive() -> None:
            self._bus.append(name, partition, send.key, data, headers)
            if send.token:
                arrived()

        self._arrive(name, arrive)

    def _stop_listening(self) -> None:
        if self._listens is not None:
            self._pubsub.leave(self._listens)
            self._listens = None

    def _told_of(self, data: bytes) -> None:
        term = self._listens

        def receive() -> None:
            if term != self._listens:
                return
            try:
                self.step(AckReceived(CODEC.decode(data)))
            except MalformedRequest:
                return  # anybody may say anything

        if not self.isolated:  # who can't be reached then hears of it never
            self._scheduler.later(self._hops.tell_ns(), self._guarded(receive))

    def _asked(self, requests: RequestsReceived) -> None:
        term = self._listens

        def receive() -> None:
            if term == self._listens:
                self.step(requests)

        if not self.isolated:
            self._scheduler.later(self._hops.tell_ns(), self._guarded(receive))

    def _tell(self, tell: Tell) -> None:
        data = CODEC.encode(tell.record)
        outcome = self._hops.tell_outcome()

        def answer(*, heard: bool) -> None:
            if outcome != "unanswered" and not self.isolated:
                told = self._guarded(lambda: self.step(Told(tell.number, heard)))
                self._scheduler.later(self._hops.tell_ns(), told)

        def arrive() -> None:
            if self._pubsub.away:
                return
            heard = outcome == "lost" or self._pubsub.tell((tell.epoch, tell.incarnation), data)
            if outcome == "twice":
                self._scheduler.later(self._hops.late_ns(), arrive_again)
            answer(heard=heard)

        def arrive_again() -> None:
            self._pubsub.tell((tell.epoch, tell.incarnation), data)

        if not self.isolated:
            self._scheduler.later(self._hops.tell_ns(), arrive)

    def _call_ledger(self, token: object, command: object) -> None:
        def answer(reply: object) -> None:
            self._scheduler.later(
                self._hops.ledger_ns(),
                self._guarded(lambda: self.step(LedgerReplied(token, reply))),
            )

        life = self._life

        def call() -> None:
            reply: object
            try:
                reply = self._ledger.call(command)  # type: ignore[arg-type]
            except LedgerUnavailable as error:
                reply = error
            if self.isolated:  # carried out, and nobody hears of it
                reply = LedgerUnavailable("cut off from the ledger")
            if self._life == life:
                answer(reply)

        if self.isolated:
            answer(LedgerUnavailable("cut off from the ledger"))
        else:
            self._scheduler.later(self._hops.ledger_ns(), call)
