"""One node on Kafka and Redis: reads events, steps the node, performs its effects.

One thread runs the loop; the ledger has a thread of its own so that a slow Redis never holds up a
write. Nothing is decided here.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import replace
from queue import Empty, SimpleQueue
from random import SystemRandom
from threading import Event as Flag
from typing import Final

from leasehold.adapters.codec.records import MessagePackCodec
from leasehold.adapters.kafka.access import AccessDenied
from leasehold.adapters.kafka.admin import TopicAdmin
from leasehold.adapters.kafka.log_identity import LANE_MISSING, TopicLook, explain_stop, log_offsets
from leasehold.adapters.kafka.reader import FETCH_WAIT_MS, STEADY_WAIT_MS, Record, TopicReader
from leasehold.adapters.kafka.request_transport import TERM_HEADER, pack_term
from leasehold.adapters.kafka.sends import Sends
from leasehold.adapters.kafka.writer import Headers, TopicWriter, log_writer
from leasehold.adapters.os.clock import boottime_ns, new_incarnation, now, random_bytes
from leasehold.adapters.redis.acks import CHANNELS as ACKS
from leasehold.adapters.redis.acks import AckPublisher
from leasehold.adapters.redis.ledger import RedisLedger
from leasehold.adapters.redis.ledger_thread import Completed, LedgerThread
from leasehold.adapters.redis.master_subscriber import MasterSubscriber
from leasehold.adapters.redis.pubsub import Channels
from leasehold.adapters.redis.requests import REQUESTS, AnswerPublisher, read_requests
from leasehold.lease.commands import SESSION_ID_MAX
from leasehold.model.errors import (
    BusUnavailable,
    LeaseholdError,
    LedgerUnavailable,
    LogStopped,
    MalformedRequest,
)
from leasehold.model.ports import StoreWriter
from leasehold.model.records.requests import Lane
from leasehold.model.topics import Topics
from leasehold.node.log_source import LogAnnouncer, LogSource, OwnLog
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
    LaneLost,
    LaneRead,
    LedgerReplied,
    Listen,
    LogEnd,
    LogIdentified,
    LogRead,
    PauseLane,
    PublishAnswers,
    ReadLane,
    ReadLog,
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
from leasehold.replication.fast_path.log import NOBODY
from leasehold.replication.master.queue_topics import Found
from leasehold.replication.node import Node, NodeSettings
from leasehold.replication.node_agent import FOR_AGENT
from leasehold.settings.environment import KafkaSettings, RedisSettings

CODEC: Final = MessagePackCodec()
IDLE_NS: Final = 100_000_000
SECRET_BYTES: Final = 32
LEDGER_POLL_NS: Final = 1_000_000
"""Longest that records wait while the ledger is asked."""
HEAR_POLL_S: Final = 0.001
HEAR_POLL_S_MAX: Final = 0.004
"""Longest that acknowledgements wait while a record of this master's is awaited; and that requests
do while acknowledgements are: twice as long each time that none came, since these are late then."""
TURN_NS_MAX: Final = 50_000_000
"""Longest that applied records wait for their commit. A follower that is behind could otherwise be
busy for seconds with what it has read, acknowledge nothing, and lose its coherency lease by it."""
ASKED_LATELY_NS: Final = 100_000_000
"""How long after a request was told the next one is awaited there rather than from Kafka."""
SEND_AGAIN_NS: Final = 20_000_000
"""How long what Kafka's client has no room for waits for its next try, if nothing else comes."""
GIVE_BACK_NS: Final = 2_000_000_000
BROKER_RETRY_S: Final = 0.5
LANE_ASK_TIMEOUT_S: Final = 1.0
"""The master decides nothing meanwhile, and says nothing; it asks again a second later."""
DEFAULT_CONTENT_TYPE: Final = "application/json"
LOG: Final = logging.getLogger("leasehold.node")


def session_ids() -> Iterator[int]:
    """Fresh random session numbers: a ledger that lost its state can't give one twice (D6)."""
    random = SystemRandom()
    while True:
        yield random.randint(1, SESSION_ID_MAX)


class KafkaNode:
    """Runs a Node until `stop` is set or the node can't go on (then `error` says why)."""

    def __init__(
        self,
        settings: NodeSettings,
        topics: Topics,
        kafka: KafkaSettings,
        redis: RedisSettings,
        store: StoreWriter,
    ) -> None:
        if redis.fast_acks == "off":
            settings = replace(settings, fast_acks=replace(settings.fast_acks, on=False))
        if not redis.tells_records(kafka):
            settings = replace(settings, fast_log=replace(settings.fast_log, on=False))
        if redis.fast_log == "off":
            settings = replace(settings, own_appends=replace(settings.own_appends, on=False))
        if not redis.tells_requests(kafka):
            settings = replace(settings, fast_requests=replace(settings.fast_requests, on=False))
        self._topics = topics
        client_id = f"leasehold-{settings.name}"
        # A follower reads the log alone; a master takes up lanes and its log while it reads.
        wait_ms = FETCH_WAIT_MS if settings.candidate else STEADY_WAIT_MS
        lanes = (topics.requests.name, topics.backfill.name)
        self._reader = TopicReader(kafka, client_id, fetch_wait_ms=wait_ms, may_lose=lanes)
        self._log_writer = log_writer(kafka, f"{client_id}-log", topic=topics.log.name)
        self._writer = TopicWriter(kafka, client_id, topic=topics.acks.name)
        self._admin = TopicAdmin(kafka, f"{client_id}-admin")
        self._ledger = RedisLedger(redis, topics.database)
        self._publisher = AckPublisher(redis, topics.database)
        told: tuple[Channels, ...] = (ACKS,) if settings.fast_acks.on else ()
        told += (REQUESTS,) if settings.fast_requests.on else ()
        self._listener = MasterSubscriber(redis, topics.database, told)
        self._answers = AnswerPublisher(redis, topics.database)
        self._requests_ns = -ASKED_LATELY_NS
        self._inbox: SimpleQueue[Event | Callable[[], list[Effect]]] = SimpleQueue()
        self._ledger_thread = LedgerThread(self._ledger, self._ledger_completed)
        self._ledger_calls = 0
        self._lanes = {topics.requests.name: Lane.REQUESTS, topics.backfill.name: Lane.BACKFILL}
        self._lane_topics = {lane: topic for topic, lane in self._lanes.items()}
        self._log = topics.log.name
        self._acks = topics.acks.name
        names = {
            Topic.RESULTS: topics.results.name,
            Topic.CONFLICTS: topics.conflicts.name,
            Topic.ACKS: self._acks,
            Topic.NOTICES: topics.notices.name,
        }
        self._look = TopicLook(self._admin, self._log, self._identified)
        self._lane_looks = {
            lane: TopicLook(self._admin, topic, self._lane_identified(lane, topic), LANE_MISSING)
            for topic, lane in self._lanes.items()
        }
        self._sends = Sends(self._writer, names, self._headers)
        self._wake_ns = 0
        self._own_settings = settings
        self.node = Node(
            settings,
            store,
            CODEC,
            new_incarnation(),
            session_ids(),
            now(),
            secret=random_bytes(SECRET_BYTES),
            clock_ns=boottime_ns,
        )
        self._own = OwnLog(settings.own_appends, self._reader, self._log_writer, self._log)
        self._source: LogSource | OwnLog = self._own
        if settings.fast_log.on and settings.serving and not settings.candidate:
            offset = self.node.position.offset
            self._source = LogSource(
                settings.fast_log, redis, topics.database, self._reader, self._log, offset
            )
        self._voice = LogAnnouncer(settings.fast_log, redis, topics.database)
        self.error: LeaseholdError | None = None
        self.caught_up = Flag()
        self.on_tick: Callable[[], None] = lambda: None

    # ------------------------------------------------------------ the loop

    def run(self, stop: Flag) -> None:
        """Returns after `stop`, or when the node stopped by itself (`error`). Raises nothing else
        than AccessDenied."""
        self._reader.give_up_when(stop.is_set)
        try:
            end = self._begin(stop)
            while not stop.is_set() and self.error is None:
                self._turn()
                if not self.caught_up.is_set() and self.node.position.offset >= end:
                    self.caught_up.set()
            if self.error is None:
                self._give_back()
        except LogStopped as error:
            self._perform(self.node.stop(error))
        finally:
            self._close()

    def _explained(self, error: LeaseholdError) -> LeaseholdError:
        if not isinstance(error, LogStopped):
            return error
        return explain_stop(error, self.node.identity, self._admin, self._log, self.node.position)

    def _give_back(self) -> None:
        """Before a clean stop: serve no more reads, and give back every lease that is not in use.
        The agent has one call under way at a time; what it can't give back in time would hold up
        schema changes until its session ends."""
        self._perform(self.node.give_up_lease(now()))
        give_up_ns = boottime_ns() + GIVE_BACK_NS
        while self._ledger_calls and (left_ns := give_up_ns - boottime_ns()) > 0:
            with suppress(Empty):
                item = self._inbox.get(timeout=left_ns / 1e9)
                if isinstance(item, LedgerReplied):
                    self._ledger_calls -= 1
                    if item.token == FOR_AGENT:
                        self._perform(self.node.step(item, now()))

    def _begin(self, stop: Flag) -> int:
        """Wait for the broker, check that its log is the one that this store has applied, and still
        has what comes next."""
        while not stop.is_set():
            try:
                # First which log it is: one that is made anew later is then known as another one.
                identified = LogIdentified(self._log, self._topic_id())
                self._perform(self.node.step(identified, now()))
                first, end = log_offsets(self._reader, self._log, self.node.position)
                acks = self._reader.end_offset(self._acks, 0)
                break
            except AccessDenied:
                raise
            except BusUnavailable as error:
                if not stop.is_set():
                    LOG.warning("waiting for Kafka: %s", error.message)
                    stop.wait(BROKER_RETRY_S)
        else:
            return 0
        if self._own_settings.candidate:
            self._reader.start(self._acks, 0, acks)
        for effect in self.node.start():
            if isinstance(effect, ReadLog):
                self._reader.start(self._log, 0, max(effect.offset, first))
        return end

    def _turn(self) -> None:
        asked = self._ledger_calls > 0
        wait_s = self._wait_s()
        if self._listener.up and (self.node.awaits_acks or self._asked_lately()):
            records = self._read_or_hear(wait_s)
        else:
            records = self._source.read(0 if asked else wait_s)
            if asked and not records:
                self._await_ledger(self._wait_s())
        moment = begun = now()
        for record in records:
            if record.topic == self._log:
                self._tell_on(record.offset, record.value or b"")
            event = self._event(record)
            if event is not None:
                effects = self.node.step(event, moment)
                if effects:
                    self._perform(effects)
            if record.topic == self._log and boottime_ns() - begun.mono_ns > TURN_NS_MAX:
                moment = begun = now()
                self._perform(self.node.step(Tick(), moment))
        self._receive_log()
        if self._reader.lost:
            self._hear_of_lost()
        self._hear_writers()
        self._hear_nodes()
        self._hear_of_tells()
        self._empty_inbox()
        self._wake_ns = 0
        self._perform(self.node.step(Tick(), now()))
        self._source.keep(self.node)
        self.node.tidy()
        self.on_tick()

    def _receive_log(self) -> None:
        """The records that the master has told since."""
        begun = now()
        for heard in self._source.heard():
            effects = self.node.step(heard, now())
            if effects:
                self._perform(effects)
            if boottime_ns() - begun.mono_ns > TURN_NS_MAX:
                begun = now()
                self._perform(self.node.step(Tick(), begun))

    def _hear_of_lost(self) -> None:
        """⚠ Not an error that ends the node: another master would come to the same."""
        for topic, partition in tuple(self._reader.lost):
            self._reader.stop(topic, partition)
            self._perform(self.node.step(LaneLost(self._lanes[topic], topic), now()))

    def _tell_on(self, offset: int, record: bytes) -> None:
        """⚠ What stands in the log at that offset; before it is applied here: nodes apply it
        meanwhile."""
        if self.node.master is not None:
            self._voice.tell(self.node.term, offset, record)

    def _own_landed(self, offset: int, data: bytes) -> None:
        """The broker has said where a record stands that this node has appended."""
        if self.node.master is None:
            return  # a Claim, or what it sent in a term that is over: the log says what counts
        if self._own.landed(offset, self.node):
            self._tell_on(offset, data)
            self._perform(self.node.step(self._log_read(offset, data), now()))

    def _wait_s(self) -> float:
        wait_ns = IDLE_NS
        if self._wake_ns:
            wait_ns = min(wait_ns, self._wake_ns - boottime_ns())
        if self._ledger_calls or not self._inbox.empty():
            wait_ns = min(wait_ns, LEDGER_POLL_NS)
        if self._sends.is_waiting:
            wait_ns = min(wait_ns, SEND_AGAIN_NS)
        due_ns = self._own.due_ns()
        if due_ns is not None:
            wait_ns = min(wait_ns, due_ns - boottime_ns())
        return max(wait_ns, 0) / 1e9

    def _event(self, record: Record) -> Event | None:
        value = record.value or b""
        if record.topic == self._log:
            return self._log_read(record.offset, value)
        lane = self._lanes.get(record.topic)
        if lane is not None:
            content_type = record.content_type or DEFAULT_CONTENT_TYPE
            return LaneRead(lane, record.offset, content_type, value)
        try:
            return AckRead(CODEC.decode(value))
        except MalformedRequest as error:
            LOG.warning("skipped an acknowledgement that can't be decoded: %s", error.message)
            return None

    def _log_read(self, offset: int, data: bytes) -> LogRead:
        """Raises LogStopped."""
        digest = CODEC.digest(data)
        return LogRead(offset, self.node.own_record(digest) or CODEC.decode_log(data), digest)

    def _hear_writers(self) -> None:
        for delivery in self._log_writer.deliveries():
            if delivery.error is None:
                self._own_landed(delivery.offset, delivery.token)
            else:
                LOG.warning("the log did not confirm an append: %s", delivery.error)
                self._log_writer.purge()
                self._perform(self.node.step(AppendFailed(delivery.error), now()))
        for token in self._sends.take_delivered():
            self._perform(self.node.step(Sent(token), now()))

    # ------------------------------------------------------------ the fast way of acknowledgements

    def _read_or_hear(self, wait_s: float) -> list[Record]:
        """Something waits for nodes: until they let it go, a record comes, or `wait_s` is over.

        librdkafka can't be waited for together with another socket. So the one is waited for from
        which the next news are expected, and the other is looked at now and then."""
        end_ns = boottime_ns() + int(wait_s * 1e9)
        master, poll_s = self.node.master, HEAR_POLL_S
        while master is not None:
            left_s = (end_ns - boottime_ns()) / 1e9
            slice_s = max(0.0, min(left_s, poll_s))
            # What has landed, and was not taken for read back, is on its way from Kafka.
            travels = len(self._log_writer) > 0
            fetched_s = slice_s if master.in_flight and not travels else 0
            records = self._own.fetched(fetched_s)
            if records:
                return records
            if not master.in_flight:
                self._listener.wait(slice_s)
            elif travels and self._log_writer.wait(slice_s):
                break
            if self._hear_nodes():
                if master.acks_let_go(now()):
                    break
            elif not master.in_flight:
                poll_s = min(2 * poll_s, HEAR_POLL_S_MAX)
            if left_s <= 0 or not self._inbox.empty() or not self._listener.up:
                break
        return []

    def _asked_lately(self) -> bool:
        """Whether a request was told in the last moments: the next ones come that way, too."""
        return boottime_ns() - self._requests_ns < ASKED_LATELY_NS

    def _hear_nodes(self) -> bool:
        """Whether anything was heard, of nodes or of those who ask."""
        acks, requests = self._listener.received()
        for data in requests:
            asked = read_requests(data)
            if asked is not None:
                self._requests_ns = boottime_ns()
                self._perform(self.node.step(asked, now()))
        for data in acks:
            try:
                heard = AckReceived(CODEC.decode(data))
            except MalformedRequest:
                continue  # anybody may have said it, as often as he likes: no line for each
            self._perform(self.node.step(heard, now()))
        return bool(acks) or bool(requests)

    def _hear_of_tells(self) -> None:
        for number, heard in self._publisher.outcomes():
            self._perform(self.node.step(Told(number, heard), now()))

    # ------------------------------------------------------------ from other threads

    def call_soon(self, action: Callable[[], list[Effect]]) -> None:
        """Run `action` on the node's thread and perform the effects it gives."""
        self._inbox.put(action)

    def _ledger_completed(self, completed: Completed) -> None:
        self._inbox.put(LedgerReplied(completed.token, completed.outcome))

    def _topic_id(self) -> str:
        """Raises BusUnavailable."""
        return self._admin.topic_id(self._log, lambda: self._reader.gives_up)

    def _identified(self, topic_id: str) -> None:
        self._inbox.put(LogIdentified(self._log, topic_id))

    def _lane_identified(self, lane: Lane, topic: str) -> Callable[[str], None]:
        return lambda topic_id: self._inbox.put(LaneIdentified(lane, topic, topic_id))

    def _await_ledger(self, wait_s: float) -> None:
        """Redis answers in a fraction of a millisecond, which a wait for records would not see: a
        step of a schema change asks it three times or more, one after the other."""
        with suppress(Empty):
            self._take(self._inbox.get(timeout=wait_s))

    def _empty_inbox(self) -> None:
        while not self._inbox.empty():  # nobody else takes from it
            self._take(self._inbox.get_nowait())

    def _take(self, item: Event | Callable[[], list[Effect]]) -> None:
        if callable(item):
            self._perform(item())
            return
        if isinstance(item, LedgerReplied):
            self._ledger_calls -= 1
        self._perform(self.node.step(item, now()))

    # ------------------------------------------------------------ effects

    def _perform(self, effects: list[Effect]) -> None:
        for effect in effects:
            self._perform_one(effect)

    def _perform_one(self, effect: Effect) -> None:
        match effect:
            case Wake(at_ns):
                self._wake_ns = min(self._wake_ns or at_ns, at_ns)
            case Append(data):
                try:
                    self._log_writer.send(self._log, 0, None, data, token=data)
                except BusUnavailable as error:
                    self._inbox.put(AppendFailed(error.message))
            case Send():
                self._sends.send(effect)
            case Tell(number, epoch, incarnation, record):
                data = CODEC.encode(record)
                if not self._publisher.publish_to_term((epoch, incarnation), data, number):
                    self._inbox.put(Told(number, heard=False))
            case PublishAnswers(requester, batch):
                self._answers.publish_answers(requester, batch)
            case Listen(epoch, incarnation):
                self._listener.listen((epoch, incarnation))
            case CallLedger(token, command):
                self._ledger_calls += 1
                if not self._ledger_thread.submit(command, token):
                    full = LedgerUnavailable("too many calls wait for Redis")
                    self._inbox.put(LedgerReplied(token, full))
            case AskLogEnd():
                self._ask_log_end()
            case AskLogIdentity():
                self._look.ask()
            case ReadLog(offset):  # beside the one at the start
                assert isinstance(self._source, LogSource), "nobody tells this node anything"
                self._source.doubted(offset)
            case AskLane(lane):
                self._ask_lane(lane)
            case AskLaneIdentity(lane):
                self._lane_looks[lane].ask()
            case ReadLane(lane, offset):
                self._reader.start(self._lane_topics[lane], 0, offset)
            case PauseLane(lane):
                self._reader.pause(self._lane_topics[lane], 0)
            case ResumeLane(lane):
                self._reader.resume(self._lane_topics[lane], 0)
            case StopLanes():
                self._listener.listen(NOBODY)
                self._sends.end_term()
                for topic in self._lanes:
                    self._reader.stop(topic, 0)
            case DeleteBelow(lane, offset):
                self._admin.delete_below_soon(self._lane_topics[lane], 0, offset)
            case DeleteLogBelow(offset):
                self._admin.delete_below_soon(self._log, 0, offset)
            case Became(role, epoch, why):
                LOG.info("this node is now %s of epoch %d: %s", role, epoch, why)
            case Warn(words):
                LOG.warning("%s", words)
            case ClockNotice(begins, words):
                LOG.log(logging.WARNING if begins else logging.INFO, "%s", words)
            case Stop(error):
                self.error = self._explained(error)
                LOG.error("stopped: %s", self.error.message)

    def _ask_log_end(self) -> None:
        try:
            # ⚠ A Claim in another log would stop all who read that one (L1).
            topic_id = self._topic_id()
            end = self._reader.end_offset(self._log, 0)
        except BusUnavailable as error:
            LOG.warning("could not read the end offset of the log, trying again: %s", error.message)
            return  # the election's own time-out asks again
        self._identified(topic_id)
        self._inbox.put(LogEnd(end))

    def _ask_lane(self, lane: Lane) -> None:
        """Raises AccessDenied."""
        topic = self._lane_topics[lane]
        try:
            topic_id = self._admin.topic_id(topic, lambda: self._reader.gives_up)
            first, end = self._reader.offsets(topic, 0, LANE_ASK_TIMEOUT_S)
        except AccessDenied:
            raise
        except BusUnavailable as error:
            LOG.warning(
                "could not read the identity of a request topic, trying again: %s", error.message
            )
            return  # so does the master
        self._inbox.put(LaneFound(lane, Found(topic, topic_id, first, end)))

    def _headers(self, send: Send) -> Headers:
        if send.topic == Topic.RESULTS and self._listener.hears_requests:
            self._answers.open()
            return ((TERM_HEADER, pack_term(self.node.term)),)
        return ()

    def _close(self) -> None:
        self._writer.close(2.0)
        self._log_writer.close(0.5)
        self._ledger_thread.close()
        self._ledger.close()
        self._publisher.close()
        self._listener.close()
        self._answers.close()
        self._voice.close()
        self._source.close()
        self._reader.close()
