"""Carries out a node's effects on Kafka and Redis.

The connections are public: the loop (`kafka_node.py`) reads what comes through them, and waits for
it. The ledger has a thread of its own so that a slow Redis never holds up a write.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from functools import partial
from typing import Any, Final

from leasehold.adapters.kafka.access import AccessDenied
from leasehold.adapters.kafka.ack_history import AckHistoryReader
from leasehold.adapters.kafka.admin import TopicAdmin
from leasehold.adapters.kafka.log_identity import LOG_MISSING, QUEUE_MISSING, TopicLook
from leasehold.adapters.kafka.reader import (
    ASK_TIMEOUT_S,
    FETCH_WAIT_MS,
    STEADY_WAIT_MS,
    TopicReader,
)
from leasehold.adapters.kafka.request_transport import TERM_HEADER, pack_term
from leasehold.adapters.kafka.sends import Sends
from leasehold.adapters.kafka.writer import Headers, TopicWriter, log_writer
from leasehold.adapters.redis.acks import CHANNELS as ACKS
from leasehold.adapters.redis.acks import AckPublisher, MasterLook
from leasehold.adapters.redis.ledger import RedisLedger
from leasehold.adapters.redis.ledger_thread import Completed, LedgerThread
from leasehold.adapters.redis.log import LogSubscriber
from leasehold.adapters.redis.master_subscriber import MasterSubscriber
from leasehold.adapters.redis.pubsub import Channels
from leasehold.adapters.redis.requests import REQUESTS, AnswerPublisher
from leasehold.model.audit import AuditEvent, AuditLog
from leasehold.model.errors import (
    AuditUnavailable,
    BusUnavailable,
    LeaseholdError,
    LedgerUnavailable,
)
from leasehold.model.measures import Sample
from leasehold.model.records.requests import ResultBatch
from leasehold.node.log_announcer import LogAnnouncer
from leasehold.node.node_topics import NodeTopics
from leasehold.replication.effects import (
    AckPublished,
    AppendFailed,
    Became,
    ClockNotice,
    Event,
    LedgerReplied,
    Send,
    Topic,
    Warn,
)
from leasehold.replication.fast_path.log import NOBODY, Term
from leasehold.replication.master.queue_topics import Found
from leasehold.replication.node_settings import NodeSettings
from leasehold.settings.environment import KafkaSettings, RedisSettings

QUEUE_ASK_TIMEOUT_S: Final = 1.0
"""The master decides nothing meanwhile, and says nothing; it asks again a second later."""
LOG: Final = logging.getLogger("leasehold.node")


class KafkaDriver:
    """A `NodeDriver`. What comes of an effect is handed to `take_later`, from any thread; what
    ends the node to `end`."""

    def __init__(
        self,
        settings: NodeSettings,
        topics: NodeTopics,
        database: str,
        kafka: KafkaSettings,
        redis: RedisSettings,
        take_later: Callable[[Event], None],
        end: Callable[[LeaseholdError], None],
        audit: AuditLog,
    ) -> None:
        self._audit = audit
        self._topics = topics
        self._take_later = take_later
        self._end = end
        client_id = f"leasehold-{settings.name}"
        # A follower reads the log alone; a master takes up queues and its log while it reads.
        wait_ms = FETCH_WAIT_MS if settings.candidate else STEADY_WAIT_MS
        self.reader = TopicReader(kafka, client_id, fetch_wait_ms=wait_ms, may_lose=topics.queues)
        self.log_writer = log_writer(kafka, f"{client_id}-log", topic=topics.log)
        self._writer = TopicWriter(kafka, client_id, topic=topics.acks)
        self.admin = TopicAdmin(kafka, f"{client_id}-admin")
        # ⚠ Not by the consumer that reads: a broker answers one connection's requests in their
        # order, so that a question would wait for the end of its fetch, a tenth of a second.
        self._ends = TopicReader(kafka, f"{client_id}-ends", give_up=lambda: self.reader.gives_up)
        self._ack_history = AckHistoryReader(
            kafka,
            topics.acks,
            f"{client_id}-readers",
            settings.master.truncation.ask_late_ms,
            take_later,
        )
        self._looks = {
            topic: TopicLook(self.admin, topic, partial(self._identified, topic), missing)
            for topic, missing in (
                (topics.log, LOG_MISSING),
                *((queue, QUEUE_MISSING) for queue in topics.queues),
            )
        }
        self.sends = Sends(self._writer, topics.of_send, self._headers)
        self._ledger = RedisLedger(redis, database)
        self._ledger_thread = LedgerThread(self._ledger, self._ledger_completed)
        self.ledger_calls = 0
        """Calls under way: one less for each LedgerReplied that is taken."""
        self.ack_publisher = AckPublisher(redis, database)
        self.master_look = MasterLook(redis, database)
        channels: tuple[Channels, ...] = (ACKS,) if settings.fast_acks.on else ()
        channels += (REQUESTS,) if settings.fast_requests.on else ()
        self.listener = MasterSubscriber(redis, database, channels)
        self._answers = AnswerPublisher(redis, database)
        self._announcer = LogAnnouncer(settings.fast_log, redis, database)
        self.log_subscriber = LogSubscriber(redis, database)
        self._term = NOBODY
        self.wake_ns = 0
        """When the node wants its next Tick, 0 = at no special time."""

    @property
    def ledger_is_away(self) -> bool:
        """Return whether the ledger has not answered when it was called last."""
        return self._ledger_thread.is_away

    def samples(self) -> list[Sample]:
        """Return what is counted of calls of the ledger; from any thread."""
        return self._ledger_thread.measures.samples()

    # ------------------------------------------------------------ topics

    def read(self, topic: str, offset: int) -> None:
        self.reader.start(topic, 0, offset)

    def read_acks(self, end: int, *, with_history: bool) -> None:
        """Deliver acknowledgements from that offset on, where the topic ends; `with_history`: and
        ReadersFound, of what stands before it."""
        self.reader.start(self._topics.acks, 0, end)
        if with_history:
            self._ack_history.begin(end)

    def stop(self, topic: str) -> None:
        self.reader.stop(topic, 0)

    def pause(self, topic: str) -> None:
        self.reader.pause(topic, 0)

    def resume(self, topic: str) -> None:
        self.reader.resume(topic, 0)

    def find(self, topic: str) -> None:
        """Ask as NodeDriver says; raises AccessDenied for a queue's topic. If Kafka is away, an
        election asks again by its own time-out, and so does a master."""
        of_log = topic == self._topics.log
        try:
            # ⚠ First which topic it is: a Claim in another log would stop all who read that (L1).
            topic_id = self.topic_id(topic)
            timeout_s = ASK_TIMEOUT_S if of_log else QUEUE_ASK_TIMEOUT_S
            first, end = self._ends.offsets(topic, 0, timeout_s)
        except BusUnavailable as error:
            if isinstance(error, AccessDenied) and not of_log:
                raise
            what = "the end offset of the log" if of_log else "the identity of a request topic"
            LOG.warning("could not read %s, trying again: %s", what, error.message)
            return
        for event in self._topics.found(Found(topic, topic_id, first, end)):
            self._take_later(event)

    def learn_queues(self) -> None:
        """Ask who leads the queues' topics, so that a new master's first read of them does not wait
        for that, half a second. What can't be learnt now is asked then."""
        try:
            for queue in self._topics.queues:
                for reader in (self.reader, self._ends):
                    reader.offsets(queue, 0, QUEUE_ASK_TIMEOUT_S)
        except BusUnavailable as error:
            LOG.info("could not ask who leads the request topics: %s", error.message)

    def topic_id(self, topic: str) -> str:
        """Return the id that the topic has now. Raises BusUnavailable."""
        return self.admin.topic_id(topic, lambda: self.reader.gives_up)

    def identify(self, topic: str) -> None:
        self._looks[topic].ask()

    def _identified(self, topic: str, topic_id: str) -> None:
        self._take_later(self._topics.identified(topic, topic_id))

    def delete_below(self, topic: str, offset: int) -> None:
        try:
            self.admin.delete_below_soon(topic, 0, offset)
        except BusUnavailable as error:
            LOG.info("%s is not cut at its beginning this time: %s", topic, error.message)

    def append(self, data: bytes) -> None:
        try:
            self.log_writer.send(self._topics.log, 0, None, data, token=data)
        except BusUnavailable as error:
            self._take_later(AppendFailed(error.message))

    def send(self, send: Send) -> None:
        self.sends.send(send)

    def _headers(self, send: Send) -> Headers:
        """Name the term in answers, so that who asks publishes its next requests to this master."""
        if send.topic == Topic.RESULTS and self.listener.hears_requests:
            self._answers.open()
            return ((TERM_HEADER, pack_term(self._term)),)
        return ()

    # ------------------------------------------------------------ the fast paths

    def publish_ack(self, number: int, term: Term, ack: bytes) -> None:
        if not self.ack_publisher.publish_to_term(term, ack, number):
            self._take_later(AckPublished(number, heard=False))

    def look_for_master(self, term: Term) -> None:
        self.master_look.ask(term)

    def publish_answers(self, requester: bytes, answers: ResultBatch) -> None:
        self._answers.publish_answers(requester, answers)

    def publish_log(self, term: Term, offset: int, record: bytes) -> None:
        self._announcer.publish(term, offset, record)

    def follow_log(self, term: Term) -> bool:
        self.log_subscriber.listen(term)
        return term == NOBODY or self.log_subscriber.up

    def begin_term(self, term: Term) -> None:
        self._term = term
        self.listener.listen(term)

    def end_requests(self) -> None:
        self.listener.end_requests()

    @property
    def receives_requests(self) -> bool:
        return self.listener.hears_requests

    def end_term(self) -> None:
        self.listener.listen(NOBODY)
        self.sends.end_term()

    # ------------------------------------------------------------ the rest

    def call_ledger(self, token: Any, command: Any) -> None:
        self.ledger_calls += 1
        if not self._ledger_thread.submit(command, token):
            full = LedgerUnavailable("too many calls wait for Redis")
            self._take_later(LedgerReplied(token, full))

    def _ledger_completed(self, completed: Completed) -> None:
        self._take_later(LedgerReplied(completed.token, completed.outcome))

    def wake(self, at_ns: int) -> None:
        self.wake_ns = min(self.wake_ns or at_ns, at_ns)

    def report(self, notice: Became | ClockNotice | Warn) -> None:
        match notice:
            case Became(role, epoch, why):
                # The first master of a log takes nothing over from anybody.
                level = logging.INFO if epoch <= 1 and role == "master" else logging.WARNING
                LOG.log(level, "this node is now %s of epoch %d: %s", role, epoch, why)
            case Warn(words):
                LOG.warning("%s", words)
            case ClockNotice(begins, words):
                LOG.log(logging.WARNING if begins else logging.INFO, "%s", words)

    def audit(self, event: AuditEvent) -> None:
        try:
            self._audit.record(event)
        except AuditUnavailable as error:
            # ⚠ What a master decides stands in the log, with who has asked for it.
            LOG.error("an event of the master's may be missing: %s", error.message)

    def end(self, error: LeaseholdError) -> None:
        self._end(error)

    def close(self) -> None:
        self._ack_history.close()
        self._writer.close(2.0)
        self.log_writer.close(0.5)
        self._ledger_thread.close()
        self._ledger.close()
        self.ack_publisher.close()
        self.master_look.close()
        self.listener.close()
        self._answers.close()
        self._announcer.close()
        self.log_subscriber.close()
        self.admin.close()
        self._ends.close()
        self.reader.close()
