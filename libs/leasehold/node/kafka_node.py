"""A node on Kafka and Redis: the loop that waits for what comes, and has the node take it.

One thread runs the loop. Nothing is decided here, and effects are carried out by `KafkaDriver`.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from queue import Empty, SimpleQueue
from random import SystemRandom
from threading import Event as Flag
from typing import Final

from leasehold.adapters.codec.records import MessagePackCodec
from leasehold.adapters.kafka.log_identity import explain_stop, log_offsets
from leasehold.adapters.kafka.reader import Record
from leasehold.adapters.os.clock import boottime_ns, new_incarnation, now, random_bytes
from leasehold.adapters.os.garbage import without_collecting
from leasehold.adapters.redis.requests import read_requests
from leasehold.lease.commands import SESSION_ID_MAX
from leasehold.model import metrics
from leasehold.model.audit import AuditLog, NotAudited
from leasehold.model.errors import LeaseholdError, LogStopped
from leasehold.model.measures import Sample
from leasehold.model.ports import StoreWriter
from leasehold.model.time_units import NS_PER_MS
from leasehold.model.topics import Topics
from leasehold.model.traces import NO_SPANS, SpanSink
from leasehold.node.broker_wait import once_there
from leasehold.node.disk_watch import DiskWatch
from leasehold.node.kafka_driver import KafkaDriver
from leasehold.node.node_samples import NodeLook
from leasehold.node.node_topics import NodeTopics
from leasehold.node.operator_watch import OperatorWatch
from leasehold.node.runner import LEAVE_NS_MAX, NodeRunner
from leasehold.replication.effects import (
    AckPublished,
    AppendFailed,
    Effect,
    Event,
    LedgerReplied,
    LogIdentified,
    MasterLooked,
    QueueLost,
    Sent,
    Tick,
)
from leasehold.replication.fast_path.path_samples import path_samples
from leasehold.replication.node import Node
from leasehold.replication.node_agent import FOR_AGENT
from leasehold.replication.node_settings import NodeSettings
from leasehold.settings.environment import KafkaSettings, RedisSettings

IDLE_NS: Final = 100_000_000
SECRET_BYTES: Final = 32
RECORDS_PER_READ_MAX: Final = 2_000
LEDGER_POLL_NS: Final = 1_000_000
"""Longest that records wait while the ledger is asked."""
LANDED_POLL_S: Final = 0.001
"""Longest that other records wait while the acknowledgement of an append is waited for."""
RECEIVE_POLL_S: Final = 0.001
RECEIVE_POLL_S_MAX: Final = 0.004
"""Longest that acknowledgements wait while a record of this master's is awaited; and that requests
do while acknowledgements are: twice as long each time that none came, since these are late then."""
TURN_NS_MAX: Final = 50_000_000
"""Longest that applied records wait for their commit. A follower that is behind could otherwise be
busy for seconds with what it has read, acknowledge nothing, and lose its coherency lease by it."""
SEND_AGAIN_NS: Final = 20_000_000
"""How long what Kafka's client has no room for waits for its next try, if nothing else comes."""
GIVE_BACK_NS: Final = 2_000_000_000
LEARN_EVERY_NS: Final = 300_000_000_000
"""How often a candidate asks who leads the queues' topics: well before its consumer forgets."""
LEAVE_POLL_NS: Final = 1_000_000
"""How often a master that leaves looks whether something is left to do: what it waits for last,
that nothing more comes, wakes nobody."""
LOG: Final = logging.getLogger("leasehold.node")


def session_ids() -> Iterator[int]:
    """Yield fresh random session numbers: a ledger that lost its state can't give one twice
    (D6)."""
    random = SystemRandom()
    while True:
        yield random.randint(1, SESSION_ID_MAX)


def _with_fast_paths(
    settings: NodeSettings, kafka: KafkaSettings, redis: RedisSettings
) -> NodeSettings:
    """Turn off the fast paths that the environment turns off."""
    if redis.fast_acks == "off":
        settings = replace(settings, fast_acks=replace(settings.fast_acks, on=False))
    if not redis.publishes_records(kafka):
        settings = replace(settings, fast_log=replace(settings.fast_log, on=False))
    if redis.fast_log == "off":
        settings = replace(settings, own_appends=replace(settings.own_appends, on=False))
    if not redis.publishes_requests(kafka):
        settings = replace(settings, fast_requests=replace(settings.fast_requests, on=False))
    return settings


class KafkaNode:
    """Runs a Node until `stop` is set or the node can't go on (then `error` says why)."""

    def __init__(
        self,
        settings: NodeSettings,
        topics: Topics,
        kafka: KafkaSettings,
        redis: RedisSettings,
        store: StoreWriter,
        audit: AuditLog | None = None,
        file: Path | None = None,
        spans: SpanSink = NO_SPANS,
    ) -> None:
        """Make ready to run. `file`: the store's, if its disk is to be watched. `spans`: who is
        told of requests that are to be followed."""
        settings = _with_fast_paths(settings, kafka, redis)
        self._candidate = settings.candidate
        self._kept_records = settings.master.truncation.kept_records
        self._topics = NodeTopics(topics)
        self._inbox: SimpleQueue[Event | Callable[[], list[Effect]]] = SimpleQueue()
        self.audit: AuditLog = audit or NotAudited()
        self._driver = KafkaDriver(
            settings,
            self._topics,
            topics.database,
            kafka,
            redis,
            self._inbox.put,
            self._ended,
            self.audit,
        )
        with without_collecting():  # it reads all versions and jobs
            self.node = Node(
                settings,
                store,
                MessagePackCodec(),
                new_incarnation(),
                session_ids(),
                now(),
                secret=random_bytes(SECRET_BYTES),
                clock_ns=boottime_ns,
                spans=spans,
            )
        self.spans = spans
        self._runner = NodeRunner(self.node, settings, self._topics, self._driver)
        self._intake = self._runner.intake
        self._awaited_ns = settings.fast_requests.awaited_ms * NS_PER_MS
        self._requests_ns = -self._awaited_ns
        self._leaves = False
        self._learn_ns = 0  # when to ask next who leads the queues' topics
        self.error: LeaseholdError | None = None
        self.caught_up = Flag()
        self.on_tick: Callable[[], None] = lambda: None
        self.turned_ns = 0
        self._look = NodeLook(self.node)
        self._watch = OperatorWatch(self.node, self._intake, lambda: self._driver.ledger_is_away)
        self._disk = DiskWatch(file)

    def samples(self) -> Iterator[Sample]:
        """Yield what a scrape is told; for one other thread at a time, which waits for nothing."""
        at = now()
        yield from self._look.samples(at)
        yield from self._driver.samples()
        log, intake = self._topics.log, self._intake
        end = self._driver.reader.known_end(log, 0)
        if end is not None:
            lag = max(0, end - self.node.position.offset)
            yield Sample(metrics.LAG_RECORDS, metrics.NO_LABELS, lag)
        disk = self.node.disk
        if disk.seen.whole:
            yield Sample(metrics.DISK_RESERVE, metrics.NO_LABELS, disk.reserve_bytes)
            yield Sample(metrics.DISK_SHORT, metrics.NO_LABELS, float(disk.is_short))
        if intake.path is not None:
            yield from path_samples("log", intake.path.path, at.mono_ns)
        elif self._candidate:
            yield from path_samples("own appends", intake.own_path, at.mono_ns)

    def why_not_ready(self) -> str:
        """Return why this node serves nobody now, "" = it does; for other threads."""
        if self.error is not None:
            return f"it has stopped: {self.error.message}"
        if not self.caught_up.is_set():
            return f"it reads the log, and is at offset {self.node.position.offset}"
        if self.node.agent is not None and not self.node.lease.holds(boottime_ns()):
            return "it holds no coherency lease, so that it answers no reads"
        return ""

    # ------------------------------------------------------------ the loop

    def run(self, stop: Flag) -> None:
        """Return after `stop`, or when the node stopped by itself (`error`). Raises nothing else
        than AccessDenied."""
        self._driver.reader.give_up_when(stop.is_set)
        try:
            end = self._begin(stop)
            while not stop.is_set() and self.error is None and not self.node.disk.is_out:
                self._turn()
                if not self.caught_up.is_set() and self.node.position.offset >= end:
                    self.caught_up.set()
            self._leave()
            if self.error is None:
                self._give_back()
                if self.node.disk.is_out:
                    self._ended(self.node.disk.leaving())
        except LogStopped as error:
            self._runner.stop(error, now())
        finally:
            self._driver.close()

    def _ended(self, error: LeaseholdError) -> None:
        if isinstance(error, LogStopped):
            driver, node = self._driver, self.node
            error = explain_stop(
                error, node.identity, driver.admin, driver.reader, self._topics.log, node.position
            )
        self.error = error
        LOG.error("stopped: %s", error.message)

    def _leave(self) -> None:
        """Decide and answer what this node has as master, before a clean stop. Who has published a
        request that it receives no more asks the next master, through Kafka."""
        self._runner.leave(now())
        self._leaves = True
        give_up_ns = boottime_ns() + LEAVE_NS_MAX
        while self.error is None and not self._runner.has_left and boottime_ns() < give_up_ns:
            self._turn()

    def _give_back(self) -> None:
        """Serve no more reads, and give back every lease that is not in use, before a clean stop.
        The agent has one call under way at a time; what it can't give back in time would hold up
        schema changes until its session ends."""
        driver, runner = self._driver, self._runner
        runner.perform(self.node.give_up_lease(now()), now())
        give_up_ns = boottime_ns() + GIVE_BACK_NS
        while driver.ledger_calls and (left_ns := give_up_ns - boottime_ns()) > 0:
            with suppress(Empty):
                item = self._inbox.get(timeout=left_ns / 1e9)
                if isinstance(item, LedgerReplied):
                    driver.ledger_calls -= 1
                    if item.token == FOR_AGENT:
                        runner.step(item, now())

    def _begin(self, stop: Flag) -> int:
        """Wait for the broker, check that its log is the one that this store has applied, and still
        has what comes next; return where the log ended then."""
        driver, log, acks = self._driver, self._topics.log, self._topics.acks

        def ask() -> tuple[int, int, int]:
            # First which log it is: one that is recreated later is then known as another one.
            self._runner.step(LogIdentified(log, driver.topic_id(log)), now())
            first, end = log_offsets(driver.reader, log, self.node.position)
            return first, end, driver.reader.end_offset(acks, 0)

        answer = once_there(ask, stop)
        if answer is None:
            return 0
        first, end, acks_end = answer
        if self._candidate:
            driver.read_acks(acks_end, with_history=end - first > self._kept_records)
        self._runner.start(first)
        return end

    def _turn(self) -> None:
        """Take what has come, the records of the log at most TURN_NS_MAX long at a time; then a
        Tick."""
        self.turned_ns = boottime_ns()
        driver, runner = self._driver, self._runner
        asked = driver.ledger_calls > 0
        wait_s = self._wait_s()
        if driver.listener.up and (self.node.awaits_acks or self._asked_lately()):
            records = self._read_or_receive(wait_s)
        else:
            records = self._read(0 if asked else wait_s)
            if asked and not records:
                self._await_ledger(self._wait_s())
        log = self._topics.log
        step_now = begun = now()
        for record in records:
            data = record.value or b""
            headers = record.content_type, data, step_now, record.traceparent
            runner.take(record.topic, record.offset, *headers)
            if record.topic == log and boottime_ns() - begun.mono_ns > TURN_NS_MAX:
                step_now = begun = now()
                runner.step(Tick(), step_now)
        self._receive_log()
        if driver.reader.lost:
            self._take_lost()
        self._take_deliveries()
        self._receive_from_nodes()
        for number, heard in driver.ack_publisher.outcomes():
            runner.step(AckPublished(number, heard), now())
        for (epoch, incarnation), listens in driver.master_look.outcomes():
            runner.step(MasterLooked(epoch, incarnation, listens), now())
        while not self._inbox.empty():  # nobody else takes from it
            self._take(self._inbox.get_nowait())
        seen = self._disk.look(boottime_ns())
        if seen is not None:
            runner.step(seen, now())
        self._learn_queues()
        driver.wake_ns = 0
        runner.step(Tick(), now())
        self._intake.choose(self.node, boottime_ns())
        self.node.tidy()
        self._watch.look(boottime_ns())
        self.on_tick()

    def _learn_queues(self) -> None:
        """Prepare to be master, before this node is: a consumer forgets after a quarter of an
        hour."""
        if self._candidate and self.node.master is None and boottime_ns() >= self._learn_ns:
            self._learn_ns = boottime_ns() + LEARN_EVERY_NS
            self._driver.learn_queues()

    def _wait_s(self) -> float:
        driver, wait_ns = self._driver, IDLE_NS
        if driver.wake_ns:
            wait_ns = min(wait_ns, driver.wake_ns - boottime_ns())
        if driver.ledger_calls or not self._inbox.empty():
            wait_ns = min(wait_ns, LEDGER_POLL_NS)
        if driver.sends.is_waiting:
            wait_ns = min(wait_ns, SEND_AGAIN_NS)
        due_ns = self._intake.due_ns()
        if due_ns is not None:
            wait_ns = min(wait_ns, due_ns - boottime_ns())
        if self._leaves:
            wait_ns = min(wait_ns, LEAVE_POLL_NS)
        return max(wait_ns, 0) / 1e9

    # ------------------------------------------------------------ records

    def _read(self, wait_s: float) -> list[Record]:
        """Return new records of Kafka's; wait for one up to `wait_s`, or until something of the log
        has come the other way that it takes now."""
        path, now_ns = self._intake.path, boottime_ns()
        if path is not None:
            until_ns = path.due_ns() if path.fast else path.awaited_until_ns(now_ns)
            if until_ns:
                wait_s = max(0.0, min(wait_s, (until_ns - now_ns) / 1e9))
                self._driver.log_subscriber.wait(wait_s)
                return []
        if self._intake.reads_topic:
            return self._fetched(wait_s)
        writer, end_ns = self._driver.log_writer, now_ns + int(wait_s * 1e9)
        while True:
            left_s = max(0.0, (end_ns - boottime_ns()) / 1e9)
            if not len(writer):
                return self._fetched(left_s)
            records = self._fetched(0)
            if records or writer.wait(min(left_s, LANDED_POLL_S)) or not left_s:
                return records

    def _fetched(self, wait_s: float) -> list[Record]:
        """Return Kafka's records without those of the log that were taken before."""
        records = self._driver.reader.read(RECORDS_PER_READ_MAX, wait_s)
        runner, now_ns = self._runner, boottime_ns()
        return [record for record in records if runner.is_new(record.topic, record.offset, now_ns)]

    def _read_or_receive(self, wait_s: float) -> list[Record]:
        """Return records of Kafka's where something waits for nodes: until they let it go, a record
        comes, or `wait_s` is over.

        librdkafka can't be waited for together with another socket. So the one is waited for from
        which the next news are expected, and the other is looked at now and then."""
        end_ns = boottime_ns() + int(wait_s * 1e9)
        writer, listener = self._driver.log_writer, self._driver.listener
        master, poll_s = self.node.master, RECEIVE_POLL_S
        while master is not None:
            left_s = (end_ns - boottime_ns()) / 1e9
            slice_s = max(0.0, min(left_s, poll_s))
            # What has landed, and was not taken for read back, is on its way from Kafka.
            travels = len(writer) > 0
            records = self._fetched(slice_s if master.in_flight and not travels else 0)
            if records:
                return records
            if not master.in_flight:
                listener.wait(slice_s)
            elif travels and writer.wait(slice_s):
                break
            if self._receive_from_nodes():
                if master.acks_let_go(now()):
                    break
            elif not master.in_flight:
                poll_s = min(2 * poll_s, RECEIVE_POLL_S_MAX)
            if left_s <= 0 or not self._inbox.empty() or not listener.up:
                break
        return []

    def _take_lost(self) -> None:
        """Tell the node of queues whose next offset is gone: ⚠ no error that ends it, since another
        master would come to the same."""
        for topic, partition in tuple(self._driver.reader.lost):
            self._driver.reader.stop(topic, partition)
            self._runner.step(QueueLost(self._topics.queues[topic], topic), now())

    def _take_deliveries(self) -> None:
        """Take what the broker says of what this node has sent."""
        writer, runner = self._driver.log_writer, self._runner
        for delivery in writer.deliveries():
            if delivery.error is None:
                runner.take_own(delivery.offset, delivery.token, now())
            else:
                LOG.warning("the log did not confirm an append: %s", delivery.error)
                writer.purge()
                runner.step(AppendFailed(delivery.error), now())
        for token in self._driver.sends.take_delivered():
            runner.step(Sent(token), now())

    # ------------------------------------------------------------ what is published through Redis

    def _receive_log(self) -> None:
        """Take the records that the master has published since."""
        if self._intake.path is None:
            return
        begun = now()
        for offset, data in self._driver.log_subscriber.records():
            self._runner.receive_log(offset, data, now())
            if boottime_ns() - begun.mono_ns > TURN_NS_MAX:
                begun = now()
                self._runner.step(Tick(), begun)

    def _asked_lately(self) -> bool:
        """Whether a request was told in the last moments: the next ones come that way, too."""
        return boottime_ns() - self._requests_ns < self._awaited_ns

    def _receive_from_nodes(self) -> bool:
        """Take acknowledgements and requests; return whether there were any."""
        acks, requests = self._driver.listener.received()
        for data in requests:
            received = read_requests(data)
            if received is not None:
                self._requests_ns = boottime_ns()
                self._runner.step(received, now())
        for data in acks:
            self._runner.receive_ack(data, now())
        return bool(acks) or bool(requests)

    # ------------------------------------------------------------ from other threads

    def call_soon(self, action: Callable[[], list[Effect]]) -> None:
        """Run `action` on the node's thread and perform the effects it gives."""
        self._inbox.put(action)

    def _await_ledger(self, wait_s: float) -> None:
        """Take what comes from the ledger, up to `wait_s`: it answers in a fraction of a
        millisecond, which a wait for records would not see, and a step of a schema change asks it
        three times or more, one after the other."""
        with suppress(Empty):
            self._take(self._inbox.get(timeout=wait_s))

    def _take(self, item: Event | Callable[[], list[Effect]]) -> None:
        if callable(item):
            self._runner.perform(item(), now())
            return
        if isinstance(item, LedgerReplied):
            self._driver.ledger_calls -= 1
        self._runner.step(item, now())
