"""Runs a node: makes events of what has come, steps the node, and has its effects carried out.

    driver ─▶ NodeRunner ─▶ Node.step(event, now) ─▶ effects ─▶ NodeRunner.perform ─▶ driver

The same for a service and in memory: when it turns, and what carries effects out, is theirs.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Final

from leasehold.adapters.codec.records import MessagePackCodec
from leasehold.model.errors import LeaseholdError, MalformedRequest
from leasehold.model.ports import Now
from leasehold.model.traces import add_trace
from leasehold.node.driver import NodeDriver
from leasehold.node.log_intake import LogIntake
from leasehold.node.node_topics import NodeTopics
from leasehold.replication.effects import (
    AckRead,
    AckReceived,
    Append,
    AskLogEnd,
    AskLogIdentity,
    AskQueue,
    AskQueueIdentity,
    Audit,
    Became,
    BeginTerm,
    CallLedger,
    ClockNotice,
    DeleteBelow,
    DeleteLogBelow,
    Effect,
    EndRequests,
    Event,
    LogRead,
    LookForMaster,
    PauseQueue,
    PublishAck,
    PublishAnswers,
    PublishLogEnd,
    QueueRead,
    ReadLog,
    ReadQueue,
    ResumeQueue,
    Send,
    Stop,
    StopQueues,
    Tick,
    TickPerformed,
    Wake,
    Warn,
)
from leasehold.replication.node import Node
from leasehold.replication.node_settings import NodeSettings

CODEC: Final = MessagePackCodec()
DEFAULT_CONTENT_TYPE: Final = "application/json"
"""Of a request that comes without one."""
LOG: Final = logging.getLogger("leasehold.node")


LEAVE_NS_MAX: Final = 250_000_000
"""Longest that a master that is told to stop goes on: its answers may wait for a node that has
died, and a next master has nothing to wait for but that node."""


class NodeRunner:
    """The runner of one node, for one thread. `on_step` is called after each step, when its effects
    are performed."""

    def __init__(
        self,
        node: Node,
        settings: NodeSettings,
        topics: NodeTopics,
        driver: NodeDriver,
        on_step: Callable[[Event], None] | None = None,
    ) -> None:
        self.node = node
        self._topics = topics
        self._driver = driver
        self._on_step = on_step
        self.intake = LogIntake(settings, topics.log, node.position.offset, driver)

    def start(self, first: int = 0) -> None:
        """Begin to read the log, of which nothing is left below `first`."""
        self._driver.read(self._topics.log, max(self.node.reads_from, first))

    def step(self, event: Event, now: Now) -> None:
        effects = self.node.step(event, now)
        if effects:
            self.perform(effects, now)
        if self.node.puts_off and isinstance(event, Tick):
            self.perform(self.node.step(TickPerformed(), now), now)
        if self._on_step is not None:
            self._on_step(event)

    def stop(self, error: LeaseholdError, now: Now) -> None:
        """Serve nothing more; once stopped, a node stays so for the reason that it had first."""
        if self.node.stopped is None:
            self.perform(self.node.stop(error), now)

    def leave(self, now: Now) -> None:
        """Begin to leave the term, if this node is master: before a clean stop."""
        self.perform(self.node.leave(), now)

    @property
    def has_left(self) -> bool:
        """Whether this node is no master, or one that has decided and answered all that it had and
        all that was published for it."""
        if self.node.master is None:
            return True
        return self.node.has_left and not self._driver.receives_requests

    # ------------------------------------------------------------ what has come

    def take(
        self,
        topic: str,
        offset: int,
        content_type: str | None,
        data: bytes,
        now: Now,
        traceparent: str = "",
    ) -> None:
        """Step by a record that was read from a topic; one of the log is to be `is_new`.
        `traceparent`: of a request that says in a header of its own under which it was sent."""
        if topic == self._topics.log:
            self._take_log(offset, data, now)
            return
        queue = self._topics.queues.get(topic)
        if queue is not None:
            content_type = content_type or DEFAULT_CONTENT_TYPE
            if traceparent:
                content_type = add_trace(content_type, traceparent)
            self.step(QueueRead(queue, offset, content_type, data), now)
            return
        try:
            ack = CODEC.decode(data)
        except MalformedRequest as error:
            LOG.warning("skipped an acknowledgement that can't be decoded: %s", error.message)
            return
        self.step(AckRead(ack), now)

    def is_new(self, topic: str, offset: int, now_ns: int) -> bool:
        """Return whether a record that was just read from a topic is to be taken; to be asked of
        each, in order."""
        return topic != self._topics.log or self.intake.is_new(offset, now_ns)

    def take_own(self, offset: int, data: bytes, now: Now) -> bool:
        """Step by a record that this node has appended and that stands at `offset`, as the broker
        says, if that is enough to know that it is next. Return whether it was."""
        node = self.node
        if node.master is None:
            return False  # a Claim, or sent in a term that is over: the log says what counts
        if not self.intake.is_read_back(offset, node.position.offset, now.mono_ns):
            return False
        self._take_log(offset, data, now)
        return True

    def receive_log(self, offset: int, data: bytes, now: Now) -> None:
        """Step by a record that was published as the log's, if it is to be taken (see
        LogIntake.receive)."""
        received = self.intake.receive(offset, data, now.mono_ns)
        if received is not None:
            self.step(received, now)

    def receive_ack(self, data: bytes, now: Now) -> None:
        """Step by an acknowledgement that was published."""
        try:
            ack = CODEC.decode(data)
        except MalformedRequest:
            return  # anybody may publish one, as often as he likes: no line for each
        self.step(AckReceived(ack), now)

    def _take_log(self, offset: int, data: bytes, now: Now) -> None:
        if self.node.master is not None:
            # ⚠ Only what stands in the log; and before it is applied here: nodes apply it
            # meanwhile.
            self._driver.publish_log(self.node.term, offset, data)
        digest = CODEC.digest(data)
        record = self.node.own_record(digest) or CODEC.read_log(data)
        self.step(LogRead(offset, record, digest), now)

    # ------------------------------------------------------------ effects

    def perform(self, effects: list[Effect], now: Now) -> None:
        """Carry effects out, in their order."""
        for effect in effects:
            self._perform_one(effect, now)

    def _perform_one(self, effect: Effect, now: Now) -> None:
        driver, topics = self._driver, self._topics
        match effect:
            case Wake(at_ns):
                driver.wake(at_ns)
            case Append(data):
                driver.append(data)
            case Send():
                driver.send(effect)
            case PublishAck(number, epoch, incarnation, record):
                driver.publish_ack(number, (epoch, incarnation), CODEC.encode(record))
            case PublishLogEnd(epoch, incarnation, offset):
                driver.publish_log((epoch, incarnation), offset, b"")
            case LookForMaster(epoch, incarnation):
                driver.look_for_master((epoch, incarnation))
            case PublishAnswers(requester, answers):
                driver.publish_answers(requester, answers)
            case BeginTerm(epoch, incarnation):
                driver.begin_term((epoch, incarnation))
            case CallLedger(token, command):
                driver.call_ledger(token, command)
            case AskLogEnd():
                driver.find(topics.log)
            case AskLogIdentity():
                driver.identify(topics.log)
            case ReadLog(offset):
                self.intake.doubt(offset, now.mono_ns)
            case AskQueue(queue):
                driver.find(topics.of_queue[queue])
            case AskQueueIdentity(queue):
                driver.identify(topics.of_queue[queue])
            case ReadQueue(queue, offset):
                driver.read(topics.of_queue[queue], offset)
            case PauseQueue(queue):
                driver.pause(topics.of_queue[queue])
            case ResumeQueue(queue):
                driver.resume(topics.of_queue[queue])
            case EndRequests():
                driver.end_requests()
            case StopQueues():
                driver.end_term()
                for topic in topics.queues:
                    driver.stop(topic)
            case DeleteBelow(queue, offset):
                driver.delete_below(topics.of_queue[queue], offset)
            case DeleteLogBelow(offset):
                driver.delete_below(topics.log, offset)
            case Became() | ClockNotice() | Warn():
                driver.report(effect)
            case Audit(event):
                driver.audit(event)
            case Stop(error):
                driver.end(error)
