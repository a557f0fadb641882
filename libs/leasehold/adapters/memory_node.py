"""One node on the in-memory bus and ledger: performs the effects of `replication.node.Node`.

A crash drops everything that was not on the bus or committed to the store. What was on its way to
the broker may still arrive afterwards, or not: both happen to real producers.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Final

from leasehold.adapters.codec import MessagePackCodec
from leasehold.adapters.memory import MemoryBus, Message, Scheduler, Subscription
from leasehold.adapters.memory_ledger import MemoryLedger
from leasehold.model.errors import LedgerUnavailable, LogStopped, MalformedRequest
from leasehold.model.ports import StoreWriter
from leasehold.model.records import Lane
from leasehold.model.topics import Topics
from leasehold.replication.effects import (
    AckRead,
    Append,
    AppendFailed,
    AskLogEnd,
    Became,
    CallLedger,
    DeleteBelow,
    Effect,
    Event,
    LaneRead,
    LedgerReplied,
    LogEnd,
    LogRead,
    PauseLane,
    ReadLane,
    ReadLog,
    ResumeLane,
    Send,
    Sent,
    Stop,
    StopLanes,
    Tick,
    Topic,
    Wake,
)
from leasehold.replication.node import Node, NodeSettings
from leasehold.replication.rules import RULES, ReplicationRules

CODEC: Final = MessagePackCodec()


class Hops:
    """Delays and losses between a node and the rest; the simulation overrides it."""

    def produce_ns(self) -> int:
        return 0

    def ledger_ns(self) -> int:
        return 0

    def append_outcome(self) -> str:
        """ "ok", "lost" (never arrives, error reported) or "unknown" (arrives, error reported)."""
        return "ok"


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
        rules: ReplicationRules = RULES,
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
        self._rules = rules
        self._life = 0
        self._subscriptions: dict[str, Subscription] = {}
        self._produced_ns: dict[str, int] = {}
        self._wakes: set[int] = set()
        self._tick_due = False
        self.node: Node | None = None
        self.paused_until_ns = 0
        self.history: list[Became | Stop] = []
        self.on_step: Callable[[MemoryNode], None] = lambda _: None

    @property
    def up(self) -> bool:
        return self.node is not None

    # ------------------------------------------------------------ life

    def start(self) -> None:
        assert self.node is None
        self._life += 1
        self._wakes.clear()
        self._tick_due = False
        self.store = self._make_store()
        self.node = Node(
            self.settings,
            self.store,
            CODEC,
            self._incarnation(),
            self._session_ids,
            self._scheduler.now(),
            self._rules,
        )
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
        self.node = None

    def stop(self) -> None:
        """A clean stop: the coherency lease is given back first."""
        if self.node is not None:
            self._perform(self.node.give_up_lease(self._scheduler.now()))
            self.crash()

    def pause(self, until_ns: int) -> None:
        """SIGSTOP until then: what arrives meanwhile waits."""
        self.paused_until_ns = max(self.paused_until_ns, until_ns)

    # ------------------------------------------------------------ events in

    def _guarded(self, action: Callable[[], None]) -> Callable[[], None]:
        """The action, unless the node has died meanwhile; after its pause if it is paused."""
        life = self._life

        def run() -> None:
            if self._life != life or self.node is None:
                return
            if self._scheduler.now_ns < self.paused_until_ns:
                self._scheduler.at(self.paused_until_ns, run)
                return
            action()

        return run

    def step(self, event: Event) -> None:
        assert self.node is not None
        self._perform(self.node.step(event, self._scheduler.now()))
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

    def _wake(self, at_ns: int) -> None:
        if at_ns in self._wakes:
            return
        self._wakes.add(at_ns)

        def woken() -> None:
            self._wakes.discard(at_ns)
            self._tick()

        self._scheduler.at(max(at_ns, self._scheduler.now_ns + 1), self._guarded(woken))

    def _subscribe(self, topic: str, offset: int, read: Callable[[Message], None]) -> None:
        old = self._subscriptions.pop(topic, None)
        if old is not None:
            old.cancel()

        def deliver(message: Message) -> None:
            self._guarded(lambda: read(message))()

        self._subscriptions[topic] = self._bus.subscribe(topic, 0, offset, deliver)

    def _log_read(self, message: Message) -> None:
        assert message.value is not None
        try:
            record = CODEC.decode_log(message.value)
        except LogStopped as error:
            self._perform([Stop(error)])
            return
        self.step(LogRead(message.offset, record, CODEC.digest(message.value)))

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
                self._subscribe(self._topics.log.name, offset, self._log_read)
            case AskLogEnd():
                self._scheduler.later(
                    self._hops.produce_ns(),
                    self._guarded(lambda: self.step(LogEnd(self._bus.end(self._topics.log.name)))),
                )
            case ReadLane(lane, offset):
                self._subscribe(self._lane_topic(lane), offset, self._lane_read(lane))
            case PauseLane(lane):
                self._subscriptions[self._lane_topic(lane)].paused = True
            case ResumeLane(lane):
                topic = self._lane_topic(lane)
                self._bus.resume(topic, 0, self._subscriptions[topic])
            case StopLanes():
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
            case Wake(at_ns):
                self._wake(at_ns)
            case Became():
                self.history.append(effect)
            case Stop():
                self.history.append(effect)
                self.crash()

    def _lane_topic(self, lane: Lane) -> str:
        topic = self._topics.requests if lane is Lane.REQUESTS else self._topics.backfill
        return topic.name

    def _arrival_ns(self, topic: str) -> int:
        """One producer's messages arrive in the order they were sent."""
        at_ns = self._scheduler.now_ns + self._hops.produce_ns()
        at_ns = max(at_ns, self._produced_ns.get(topic, 0))
        self._produced_ns[topic] = at_ns
        return at_ns

    def _append(self, data: bytes) -> None:
        topic = self._topics.log.name
        outcome = self._hops.append_outcome()
        at_ns = self._arrival_ns(topic)
        if outcome != "lost":
            # Not guarded: what was handed to the network arrives, whatever becomes of its sender.
            # Its offset is learnt by reading back, never from the producer (L4).
            self._scheduler.at(at_ns, lambda: _ignore(self._bus.append(topic, 0, b"", data)))
        if outcome != "ok":
            failed = self._guarded(lambda: self.step(AppendFailed(f"simulated: {outcome}")))
            self._scheduler.later(self._hops.produce_ns(), failed)

    def _send(self, send: Send) -> None:
        name = {
            Topic.RESULTS: self._topics.results,
            Topic.CONFLICTS: self._topics.conflicts,
            Topic.ACKS: self._topics.acks,
        }[send.topic].name
        data = CODEC.encode(send.record)
        partition = max(send.partition, 0)
        arrived = self._guarded(lambda: self.step(Sent(send.token)))

        def arrive() -> None:
            self._bus.append(name, partition, send.key, data)
            if send.token:
                arrived()

        self._scheduler.at(self._arrival_ns(name), arrive)

    def _call_ledger(self, token: object, command: object) -> None:
        life = self._life

        def call() -> None:
            reply: object
            try:
                reply = self._ledger.call(command)  # type: ignore[arg-type]
            except LedgerUnavailable as error:
                reply = error
            if self._life == life:
                answer = self._guarded(lambda: self.step(LedgerReplied(token, reply)))
                self._scheduler.later(self._hops.ledger_ns(), answer)

        self._scheduler.later(self._hops.ledger_ns(), call)


def _ignore(_: object) -> None:
    pass
