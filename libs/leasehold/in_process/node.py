"""A node on the in-memory bus and ledger, as `node/kafka_node.py` is one on Kafka and Redis."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Final

from leasehold.adapters.codec.records import MessagePackCodec
from leasehold.adapters.http.copies import CopiesUnderWay
from leasehold.in_process.bus import MemoryBus, Scheduler
from leasehold.in_process.driver import MemoryDriver
from leasehold.in_process.ledger import MemoryLedger
from leasehold.in_process.network import Hops
from leasehold.in_process.process import MemoryProcess
from leasehold.in_process.pubsub import MemoryPubSub
from leasehold.model.ports import StoreWriter
from leasehold.model.topics import Topics
from leasehold.node.node_topics import NodeTopics
from leasehold.node.runner import LEAVE_NS_MAX, NodeRunner
from leasehold.replication.effects import (
    Became,
    ClockNotice,
    Event,
    LogIdentified,
    LogReceived,
    Stop,
    Tick,
    Warn,
)
from leasehold.replication.node import LogFollower, Node
from leasehold.replication.node_settings import NodeSettings

FLUSH_NS: Final = 5_000_000
"""What is said last gets on its way within that time."""


class MemoryNode(MemoryProcess):
    """A node that can die and start again. `make_store` opens its committed state, which is what
    is left of it then."""

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
        super().__init__(scheduler)
        self.settings = settings
        self._topics = NodeTopics(topics)
        self._bus = bus
        self._make_store = make_store
        self._incarnation = incarnation
        self._session_ids = session_ids
        self.driver = MemoryDriver(
            self,
            settings,
            self._topics,
            bus,
            ledger,
            pubsub or MemoryPubSub(),
            hops or Hops(),
            self._tick,
            self._end_by_itself,
        )
        self.received_records = 0
        """Of the log, in all its lives, that were published and not read."""
        self.intake_changes = 0
        """How often it began to read the log's topic, or ended to."""
        self.copies = CopiesUnderWay()
        self.on_step: Callable[[MemoryNode], None] = lambda _: None
        self._stops = self._ended = False
        self.followers: tuple[LogFollower, ...] = ()
        """Those of each of its lives (`Node.followers`)."""

    @property
    def node(self) -> Node | None:
        return None if self.runner is None else self.runner.node

    @property
    def history(self) -> list[Became | ClockNotice | Stop | Warn]:
        """What it had to say to people, in all its lives."""
        return self.driver.history

    # ------------------------------------------------------------ life

    def start(self) -> None:
        self.begin()
        self.driver.begin()
        self._stops = self._ended = False
        self.store = self._make_store()
        node = Node(
            self.settings,
            self.store,
            MessagePackCodec(),
            self._incarnation(),
            self._session_ids,
            self.now(),
            clock_ns=lambda: max(self.scheduler.now_ns, self.paused_until_ns) + self.worked_ns,
        )
        node.acknowledger.copies = self.copies.by_taker
        node.followers = self.followers
        self.runner = NodeRunner(node, self.settings, self._topics, self.driver, self._stepped)
        log, acks = self._topics.log, self._topics.acks
        identified = LogIdentified(log, self._bus.topic_id(log))
        self.runner.perform(node.step(identified, self.now()), self.now())
        self.runner.start(min(self._bus.first(log), node.position.offset))
        if self.settings.candidate:
            kept = self._bus.end(log) - self._bus.first(log)
            enough = kept > self.settings.master.truncation.kept_records
            self.driver.read_acks(self._bus.end(acks), with_history=enough)
        self.driver.tick_soon()

    def crash(self) -> None:
        """Kill -9: no farewell."""
        super().crash()
        self.driver.drop()

    def _end_by_itself(self) -> None:
        """End, for the reason that stands last in `history`."""
        self.crash()
        self.on_step(self)

    def stop(self) -> None:
        """Begin to stop cleanly: a master decides and answers what it has, as
        `KafkaNode` does it; then the coherency lease is given back."""
        if self.runner is None or self._stops:
            return
        self._stops = True
        self.runner.leave(self.now())
        self.scheduler.later(LEAVE_NS_MAX, self.guarded(self._end))
        self._end_if_left()

    @property
    def stopping(self) -> bool:
        """Whether it is told to stop, and has not yet."""
        return self.up and self._stops

    def _end_if_left(self) -> None:
        if self._stops and self.runner is not None and self.runner.has_left:
            self._end()

    def _end(self) -> None:
        if self.runner is not None and not self._ended:
            self._ended = True
            self.runner.perform(self.runner.node.give_up_lease(self.now()), self.now())
            self.scheduler.later(FLUSH_NS, self.guarded(self.crash))

    def users_left(self) -> None:
        """Tell the agent that a lease's last user of a version of the past has gone (D4)."""
        if self.runner is not None and self.runner.node.agent is not None:
            agent = self.runner.node.agent
            self.runner.perform(agent.users_left(self.now().mono_ns), self.now())

    def reads(self) -> bool:
        """Return whether this node answers reads now (C2)."""
        node = self.node
        return node is not None and not self.paused and node.lease.holds(self.now().mono_ns)

    # ------------------------------------------------------------ turns

    def _stepped(self, event: Event) -> None:
        if isinstance(event, LogReceived):
            self.received_records += 1
        if not isinstance(event, Tick):
            self.driver.tick_soon()
        self.on_step(self)

    def _tick(self) -> None:
        runner = self.runner
        assert runner is not None, "what comes to a process that is down is dropped"
        runner.step(Tick(), self.now())
        if not self.up:
            return
        intake, now_ns = runner.intake, self.now().mono_ns
        before = intake.reads_topic
        intake.choose(runner.node, now_ns)
        self.intake_changes += intake.reads_topic != before
        due_ns = intake.due_ns()
        if due_ns is not None:
            self.driver.wake(due_ns)
        self._end_if_left()
