"""Carries out a node's effects on the bus and the ledger in memory.

A crash drops everything that was not on the bus or committed to the store. What was on its way to
the broker may still arrive afterwards, or not: both happen to real producers.
"""

from __future__ import annotations

import logging
from collections import deque
from collections.abc import Callable
from contextlib import suppress
from typing import Final

from leasehold.adapters.codec.published import messages_of
from leasehold.adapters.codec.records import MessagePackCodec
from leasehold.in_process.bus import MemoryBus, Message
from leasehold.in_process.ledger import MemoryLedger
from leasehold.in_process.network import Hops
from leasehold.in_process.process import MemoryProcess
from leasehold.in_process.pubsub import MemoryPubSub
from leasehold.model.audit import AuditEvent
from leasehold.model.errors import LeaseholdError, LedgerUnavailable, LogStopped, MalformedRequest
from leasehold.model.records.acks import Ack
from leasehold.model.records.requests import ResultBatch
from leasehold.model.topics import MESSAGE_BYTES_MAX, PUBLISHED_BYTES_MAX
from leasehold.model.traces import TRACEPARENT
from leasehold.node.node_topics import NodeTopics
from leasehold.node.runner import NodeRunner
from leasehold.replication.effects import (
    AckPublished,
    AppendFailed,
    Became,
    ClockNotice,
    Event,
    LedgerReplied,
    MasterLooked,
    QueueLost,
    ReadersFound,
    RequestsReceived,
    Send,
    Sent,
    Stop,
    Topic,
    Warn,
)
from leasehold.replication.fast_path.log import NOBODY, Term
from leasehold.replication.log.ack_history import AckHistory
from leasehold.replication.log.identity import check_reach
from leasehold.replication.master.queue_topics import Found
from leasehold.replication.node_settings import NodeSettings

CODEC: Final = MessagePackCodec()
LOG: Final = logging.getLogger("leasehold.node")
TERM_HEADER: Final = "term"
AUDITED_MAX: Final = 1_000
APPEND_TIMEOUT_NS: Final = 1_000_000_000
HISTORY_NS: Final = 50_000_000
"""What it takes to read who read the log before."""
LOOK_NS: Final = 1_000_000
"""What it takes to ask which log it is: not drawn, since nothing depends on it."""


class MemoryDriver:
    """A `NodeDriver`, the same in each life of a process."""

    def __init__(
        self,
        process: MemoryProcess,
        settings: NodeSettings,
        topics: NodeTopics,
        bus: MemoryBus,
        ledger: MemoryLedger,
        pubsub: MemoryPubSub,
        hops: Hops,
        tick: Callable[[], None],
        end: Callable[[], None],
    ) -> None:
        """Use `tick` to give a Tick, and `end` when the node can't go on."""
        self._process = process
        self._scheduler = process.scheduler
        self._settings = settings
        self._topics = topics
        self._bus = bus
        self._ledger = ledger
        self._pubsub = pubsub
        self.hops = hops
        self._tick = tick
        self._end = end
        self._arrived_ns: dict[str, int] = {}
        self._term = NOBODY  # in which this node is master
        self._followed: Term = NOBODY
        self._wake_ns = 0
        self._tick_due = False
        self._requests_on_way = 0
        self.history: list[Became | ClockNotice | Stop | Warn] = []
        self.audited: deque[AuditEvent] = deque(maxlen=AUDITED_MAX)
        """What the audit log was told, in all its lives; the newest."""
        self.landed_records = 0
        """Of its own, in all its lives, that it did not read back from the log."""

    def begin(self) -> None:
        """Begin another life of the process."""
        self._requests_on_way = 0
        self._wake_ns = 0
        self._tick_due = False
        self._followed = NOBODY

    def drop(self) -> None:
        """Break the connections by which things are published."""
        self._pubsub.unfollow_log(self._settings.name)
        self.end_term()

    @property
    def _runner(self) -> NodeRunner:
        runner = self._process.runner
        assert runner is not None, "what comes to a process that is down is dropped"
        return runner

    def _step(self, event: Event) -> None:
        self._runner.step(event, self._process.now())

    # ------------------------------------------------------------ ticks

    def tick_soon(self) -> None:
        """Tick when everything that waits now has been handed over."""
        if not self._tick_due:
            self._tick_due = True
            self._scheduler.later(0, self._process.guarded(self._tick_now))

    def _tick_now(self) -> None:
        self._tick_due = False
        self._tick()

    def wake(self, at_ns: int) -> None:
        """Give a Tick then. The earliest is enough: every tick asks anew for all that is still
        wanted."""
        due_ns = max(self._process.clock.virtual_ns(at_ns), self._scheduler.now_ns + 1)
        if self._scheduler.now_ns < self._wake_ns <= due_ns:
            return
        self._wake_ns = due_ns

        def woken() -> None:
            if self._wake_ns == due_ns:
                self._wake_ns = 0
                self._tick_now()

        self._scheduler.at(due_ns, self._process.guarded(woken))

    # ------------------------------------------------------------ topics

    def read(self, topic: str, offset: int) -> None:
        self.stop(topic)

        def deliver(message: Message) -> None:
            # A subscription that was cancelled while the message waited delivers nothing.
            def take() -> None:
                if subscription.active:
                    self._take(topic, message)

            self._process.from_network(take)()

        def gone() -> None:
            def take() -> None:
                if self._process.subscriptions.get(topic) is subscription:
                    self._lose(topic)

            self._process.from_network(take)()

        can_lose = None if topic == self._topics.acks else gone
        subscription = self._bus.subscribe(
            topic, 0, offset, deliver, self.hops.deliver_ns, gone=can_lose
        )
        self._process.subscriptions[topic] = subscription

    def _lose(self, topic: str) -> None:
        """Tell the node that the next offset of the log, or of a queue, has been deleted."""
        self.stop(topic)
        queue = self._topics.queues.get(topic)
        if queue is not None:
            self._step(QueueLost(queue, topic))
            return
        runner, first, end = self._runner, self._bus.first(topic), self._bus.end(topic)
        try:
            check_reach(topic, runner.node.position, first, end)
        except LogStopped as error:
            runner.stop(error, self._process.now())
        else:
            runner.start(first)  # a candidate that reads again what it has (`reads_from`)

    def _take(self, topic: str, message: Message) -> None:
        runner, now = self._runner, self._process.now()
        if runner.is_new(topic, message.offset, now.mono_ns):
            content_type = message.headers.get("content-type")
            traceparent = message.headers.get(TRACEPARENT, "")
            data = message.value or b""
            runner.take(topic, message.offset, content_type, data, now, traceparent)

    def read_acks(self, end: int, *, with_history: bool) -> None:
        """Deliver acknowledgements from that offset on; `with_history`: and ReadersFound, of what
        stands before it."""
        topic = self._topics.acks
        self.read(topic, end)
        if not with_history:
            return
        history = AckHistory(self._settings.master.truncation.ask_late_ms)
        for message in self._bus.read(topic):
            with suppress(MalformedRequest):
                record = CODEC.decode(message.value or b"")
                if isinstance(record, Ack) and message.offset < end:
                    history.take(record)
        found = ReadersFound(history.readers(), history.span_ns())
        self._ask_broker(HISTORY_NS, lambda: self._step(found))

    def stop(self, topic: str) -> None:
        subscription = self._process.subscriptions.pop(topic, None)
        if subscription is not None:
            subscription.cancel()

    def pause(self, topic: str) -> None:
        self._process.subscriptions[topic].paused = True

    def resume(self, topic: str) -> None:
        self._bus.resume(topic, 0, self._process.subscriptions[topic])

    def find(self, topic: str) -> None:
        def answer() -> None:
            first, end = self._bus.first(topic), self._bus.end(topic)
            for event in self._topics.found(Found(topic, self._bus.topic_id(topic), first, end)):
                if self._process.up:
                    self._step(event)

        delay_ns = self.hops.produce_ns() if topic == self._topics.log else LOOK_NS
        self._ask_broker(delay_ns, answer)

    def identify(self, topic: str) -> None:
        def answer() -> None:
            self._step(self._topics.identified(topic, self._bus.topic_id(topic)))

        self._ask_broker(LOOK_NS, answer)

    def _ask_broker(self, delay_ns: int, answer: Callable[[], None]) -> None:
        arrive = self._process.from_network(answer)
        self._scheduler.later(delay_ns, lambda: self._bus.once_there(arrive))

    def delete_below(self, topic: str, offset: int) -> None:
        asked_ns = self._scheduler.now_ns
        self._bus.once_there(lambda: self._bus.delete_below(topic, 0, offset, asked_ns))

    def append(self, data: bytes) -> None:
        outcome = self.hops.append_outcome()
        if len(data) > MESSAGE_BYTES_MAX:
            outcome = f"{len(data)} bytes are more than the broker takes"
        failed = self._process.guarded(lambda: self._step(AppendFailed(f"simulated: {outcome}")))
        if self._process.isolated or self._bus.is_away:
            self._scheduler.later(APPEND_TIMEOUT_NS, failed)
            return
        if outcome == "unknown":
            late_ns = self.hops.produce_ns() + self.hops.late_ns()
            self._scheduler.later(late_ns, lambda: self._land(data, reported=False))
        elif outcome == "ok":
            self._arrive(self._topics.log, lambda: self._land(data, reported=True))
        if outcome != "ok":
            self._scheduler.later(self.hops.produce_ns(), failed)

    def _land(self, data: bytes, *, reported: bool) -> None:
        """Put it on the log, and have the broker say so if it is `reported`. Whose broker goes away
        meanwhile is told that it failed; whether it has nobody knows."""
        if self._bus.is_away:
            lost = AppendFailed("simulated: the broker went away")
            if self.hops.survives_crash():
                self._bus.once_there(lambda: self._bus.append(self._topics.log, 0, b"", data))
            if reported:
                failed = self._process.guarded(lambda: self._step(lost))
                self._scheduler.later(APPEND_TIMEOUT_NS, failed)
            return
        offset = self._bus.append(self._topics.log, 0, b"", data)

        def landed() -> None:
            self.landed_records += self._runner.take_own(offset, data, self._process.now())

        if reported and self._settings.own_appends.on:
            self._scheduler.later(self.hops.produce_ns(), self._process.from_network(landed))

    def send(self, send: Send) -> None:
        topic = self._topics.of_send[send.topic]
        messages = [data for data in messages_of(send.record) if self._fits(send, data)]
        sent = self._process.from_network(lambda: self._step(Sent(send.token)))
        headers: dict[str, str] = {}
        if send.topic == Topic.RESULTS and self._term != NOBODY and self._settings.fast_requests.on:
            epoch, incarnation = self._term
            headers = {TERM_HEADER: f"{epoch}:{incarnation.hex()}"}

        def arrive() -> None:
            for data in messages:
                self._bus.append(topic, max(send.partition, 0), send.key, data, headers)
            if send.token:
                sent()

        self._arrive(topic, lambda: self._bus.once_there(arrive))

    def _fits(self, send: Send, data: bytes) -> bool:
        """Return whether Kafka's producer would take it, and log it if not: it is dropped there,
        too."""
        fits = len(send.key) + len(data) <= PUBLISHED_BYTES_MAX
        if not fits:
            LOG.error("a %s of %d bytes is dropped", type(send.record).__name__, len(data))
        return fits

    def _arrive(self, topic: str, action: Callable[[], None]) -> None:
        """Do the action when a message arrives. What was handed to the network does, whatever
        becomes of its sender; what its sender had not got rid of dies with it. One producer's
        messages arrive in the order they were sent."""
        life, held_back = self._process.life, self._process.isolated

        def arrive() -> None:
            if self._process.life == life or (not held_back and self.hops.survives_crash()):
                action()

        at_ns = max(self._scheduler.now_ns, self._process.isolated_until_ns)
        at_ns += self._process.worked_ns
        at_ns = max(at_ns + self.hops.produce_ns(), self._arrived_ns.get(topic, 0))
        self._arrived_ns[topic] = at_ns
        self._scheduler.at(at_ns, arrive)

    # ------------------------------------------------------------ the fast paths

    def publish_ack(self, number: int, term: Term, ack: bytes) -> None:
        outcome = self.hops.publish_outcome()

        def answer(*, heard: bool) -> None:
            if outcome != "unanswered" and not self._process.isolated:
                told = self._process.guarded(lambda: self._step(AckPublished(number, heard)))
                self._scheduler.later(self.hops.publish_ns(), told)

        def arrive() -> None:
            if self._pubsub.away:
                return
            heard = outcome == "lost" or self._pubsub.publish_ack(term, ack)
            if outcome == "twice":
                self._scheduler.later(self.hops.late_ns(), arrive_again)
            answer(heard=heard)

        def arrive_again() -> None:
            self._pubsub.publish_ack(term, ack)

        if not self._process.isolated:
            self._scheduler.later(self.hops.publish_ns(), arrive)

    def look_for_master(self, term: Term) -> None:
        def told(*, listens: bool) -> None:
            if not self._process.isolated:
                answer = self._process.guarded(lambda: self._step(MasterLooked(*term, listens)))
                self._scheduler.later(self.hops.publish_ns(), answer)

        def arrive() -> None:
            if not self._pubsub.away:
                told(listens=self._pubsub.hears_acks(term))

        if not self._process.isolated:
            self._scheduler.later(self.hops.publish_ns(), arrive)

    def publish_answers(self, requester: bytes, answers: ResultBatch) -> None:
        if not self._process.isolated and not self._pubsub.away:
            self._pubsub.publish_answers(requester, answers)

    def publish_log(self, term: Term, offset: int, record: bytes) -> None:
        if self._settings.fast_log.on and not self._process.isolated:
            self._pubsub.publish_log(term, offset, record)

    def follow_log(self, term: Term) -> bool:
        if term != self._followed:
            self._followed = term
            self._pubsub.unfollow_log(self._settings.name)
            if term != NOBODY:
                self._pubsub.follow_log(self._settings.name, term, self._log_published)
        return True

    def _log_published(self, offset: int, data: bytes) -> None:
        """Receive a record that may be lost, doubled, late or overtaken on its way."""
        outcome = self.hops.publish_outcome()
        followed = self._followed

        def receive() -> None:
            if followed == self._followed:
                self._runner.receive_log(offset, data, self._process.now())
                self.tick_soon()

        if self._process.isolated or self._pubsub.away or outcome == "lost":
            return
        self._scheduler.later(self.hops.publish_ns(), self._process.guarded(receive))
        if outcome == "twice":
            self._scheduler.later(self.hops.late_ns(), self._process.guarded(receive))

    def begin_term(self, term: Term) -> None:
        self.end_term()
        self._term = term
        self._pubsub.subscribe_to_acks(term, self._ack_published)
        if self._settings.fast_requests.on:
            self._pubsub.subscribe_to_requests(term, self._requests_published)

    def end_requests(self) -> None:
        self._pubsub.end_requests(self._term)

    @property
    def receives_requests(self) -> bool:
        return self._requests_on_way > 0

    def end_term(self) -> None:
        if self._term != NOBODY:
            self._pubsub.end_term(self._term)
            self._term = NOBODY

    def _ack_published(self, data: bytes) -> None:
        self._receive_soon(lambda: self._runner.receive_ack(data, self._process.now()))

    def _requests_published(self, requests: RequestsReceived) -> None:
        def receive() -> None:
            self._requests_on_way -= 1
            self._step(requests)

        if not self._process.isolated:
            self._requests_on_way += 1
        self._receive_soon(receive)

    def _receive_soon(self, action: Callable[[], None]) -> None:
        """Do the action after a hop, in this term or never; who can't be reached never does."""
        term = self._term

        def receive() -> None:
            if term == self._term:
                action()

        if not self._process.isolated:
            self._scheduler.later(self.hops.publish_ns(), self._process.guarded(receive))

    # ------------------------------------------------------------ the rest

    def call_ledger(self, token: object, command: object) -> None:
        life = self._process.life

        def answer(reply: object) -> None:
            replied = self._process.guarded(lambda: self._step(LedgerReplied(token, reply)))
            self._scheduler.later(self.hops.ledger_ns(), replied)

        def call() -> None:
            reply: object
            try:
                reply = self._ledger.call(command)  # type: ignore[arg-type]
            except LedgerUnavailable as error:
                reply = error
            if self._process.isolated:  # carried out, and nobody hears of it
                reply = LedgerUnavailable("cut off from the ledger")
            if self._process.life == life:
                answer(reply)

        if self._process.isolated:
            answer(LedgerUnavailable("cut off from the ledger"))
        else:
            self._scheduler.later(self.hops.ledger_ns(), call)

    def report(self, notice: Became | ClockNotice | Warn) -> None:
        self.history.append(notice)

    def audit(self, event: AuditEvent) -> None:
        self.audited.append(event)

    def end(self, error: LeaseholdError) -> None:
        self.history.append(Stop(error))
        self._end()
