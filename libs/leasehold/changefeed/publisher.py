"""The changefeed's shell: log in, transactions out, exactly once.

One Kafka transaction holds what some whole log records gave *and* the position behind them (L6).
Whatever happens in between, the next start finishes or aborts it, reads the position back and goes
on there. The transactional id fences an older process, so that two can't both publish.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator
from contextlib import suppress
from functools import partial
from queue import SimpleQueue
from threading import Event
from typing import Final

from leasehold import __version__
from leasehold.adapters.codec.records import MessagePackCodec
from leasehold.adapters.kafka.admin import TopicAdmin
from leasehold.adapters.kafka.log_identity import TopicLook, explain_stop, log_offsets
from leasehold.adapters.kafka.reader import STEADY_WAIT_MS, Record, TopicReader
from leasehold.adapters.kafka.transaction import TransactionAborted, TransactionWriter
from leasehold.adapters.kafka.whole_topic import read_to_end
from leasehold.adapters.kafka.writer import TopicWriter
from leasehold.adapters.os.clock import boottime_ns, unix_us
from leasehold.changefeed.gone_topics import GoneTopics
from leasehold.changefeed.pending_messages import PendingMessages
from leasehold.changefeed.read_back import POSITION_KEY, keep_newest, read_jobs, read_position
from leasehold.changefeed.table_feeds import NO_REGISTRY, FeedShell
from leasehold.model import metrics
from leasehold.model.closing import Closing
from leasehold.model.errors import BusUnavailable, LogStopped
from leasehold.model.features import incarnation_of
from leasehold.model.measures import Measures, Sample
from leasehold.model.records.acks import Ack, NodeReport
from leasehold.model.records.jobs import ChangefeedReport
from leasehold.model.records.log import LogPosition
from leasehold.model.time_units import NS_PER_MS, NS_PER_S
from leasehold.model.topics import Topics
from leasehold.replication.changefeed import Changefeed
from leasehold.replication.disk_room import Room
from leasehold.replication.log.identity import LogIdentity
from leasehold.replication.log.truncation import CHANGEFEED_ROLE
from leasehold.settings.changefeed import ChangefeedSettings
from leasehold.settings.environment import KafkaSettings
from leasehold.settings.schema_registry import SchemaRegistrySettings

CLIENT_ID: Final = "changefeed"
READ_RECORDS_MAX: Final = 500
IDLE_WAIT_S: Final = 0.1
GATHER_MS: Final = 50
"""How often the log is read where its records come one by one: a fetch for each of 200 a second is
a fifth of what the broker does then. Less than what is published may linger."""
GATHERED_MAX: Final = 100
"""Publications of one reading from which on the next follows at once."""
BATCH_MS: Final = 5
"""How long the client waits for more of a batch while a transaction is sent; a commit waits for
nothing. Without it there are many batches of a few records."""
RESEND_MAX: Final = 100
REPORT_KEY: Final = b"changefeed"
REPORT_EVERY_NS: Final = 5_000_000_000
ACK_EVERY_NS: Final = 5_000_000_000
US_PER_S: Final = 1_000_000
LOG: Final = logging.getLogger("leasehold.changefeed")


class Publisher(Closing):
    """The loop of the changefeed: `open`, then `run` until `stop()`.

    Both raise LeaseholdError (BusUnavailable also when `stop()` is called while a broker is waited
    for); then `close` it and begin with a new one.
    """

    def __init__(
        self,
        kafka: KafkaSettings,
        topics: Topics,
        settings: ChangefeedSettings,
        stop: Callable[[], bool],
        registry: SchemaRegistrySettings = NO_REGISTRY,
        measures: Measures | None = None,
    ) -> None:
        """Make ready to open. `measures`: where it counts, of all publishers of the process."""
        self._measures = measures or Measures()
        self._kafka = kafka
        self._topics = topics
        self._settings = settings
        self._stop = stop
        self._codec = MessagePackCodec()
        self._admin = TopicAdmin(kafka, CLIENT_ID)
        # Half: what came by then has been fetched when it is read.
        self._reader = TopicReader(
            kafka, CLIENT_ID, gather_ms=GATHER_MS // 2, fetch_wait_ms=STEADY_WAIT_MS
        )
        self._writer = TransactionWriter(
            kafka,
            CLIENT_ID,
            transactional_id=f"leasehold-changefeed-{topics.database}",
            linger_ms=BATCH_MS,
            topic=topics.log.name,  # the one that is surely there
            give_up=stop,
        )
        self._identity = LogIdentity(boottime_ns())
        self._topic_ids: SimpleQueue[str] = SimpleQueue()  # of the log, as Kafka tells them
        self._look = TopicLook(self._admin, topics.log.name, self._topic_ids.put)
        self._feed = Changefeed()
        self._gone = GoneTopics(self._admin, topics)
        self._pending = PendingMessages(topics, self._gone)
        self._table_feeds = FeedShell(kafka, topics, settings, self._admin, stop, registry)
        self._due_ns = 0  # when what is pending is published at the latest
        self._gathers = False  # whether there is time before the next reading
        self._pause = Event()  # never set
        self._stored_ns = 0
        self._acks = TopicWriter(kafka, f"{CLIENT_ID}-acks", topic=topics.acks.name)
        self._acked_ns = 0
        self._reported_ns = 0
        self._stored = LogPosition()

    def open(self) -> None:
        """Take over, and read back where to go on."""
        # First the takeover: it ends the transaction of a process that was killed, so that the
        # position read afterwards is the last that can ever be.
        self._writer.open()
        self._admin.create([self._topics.changefeed], self._topics.replication_factor)
        stored: dict[bytes, bytes | None] = {}
        position = read_position(keep_newest(self._read_back(self._topics.changefeed.name), stored))
        jobs = read_jobs(partial(self._read_back, self._topics.jobs.name))
        self._gone.restore(stored)
        self._pending.there = self._admin.list_names(self._topics.changefeed.name)
        self._feed = Changefeed(position, jobs)
        self._stored = position
        self._stored_ns = boottime_ns()
        self._table_feeds.open(stored, position, self._codec.encode(position))
        log = self._topics.log.name
        self._identity.check_topic(log, self._admin.topic_id(log, self._stop), position)
        log_offsets(self._reader, log, position)
        self._reader.start(log, 0, position.offset)
        LOG.info(
            "goes on at offset %d of %s, LSN %d, %d jobs known",
            position.offset,
            self._topics.log.name,
            position.lsn,
            len(jobs),
        )

    def run(self) -> None:
        """Publish until `stop()`; what was read by then is published."""
        try:
            while not self._stop():
                self._check_log()
                self._take()
                self._tend_feeds()
                if self._is_due(boottime_ns()):
                    self._publish()
                self._gone.delete(boottime_ns())
        except LogStopped as error:
            log, position = self._topics.log.name, self._feed.position
            identity, admin, reader = self._identity, self._admin, self._reader
            raise explain_stop(error, identity, admin, reader, log, position) from None
        if self._feed.position != self._stored or self._table_feeds.waiting:
            self._publish()

    def _check_log(self) -> None:
        """Check now and then that the log is still the same topic, and goes on. Raises
        LogStopped."""
        words = self._feed.check(boottime_ns())
        if words:
            LOG.warning("%s", words)
        if self._identity.due(boottime_ns()):
            self._look.ask()
        while not self._topic_ids.empty():
            log = self._topics.log.name
            self._identity.check_topic(log, self._topic_ids.get_nowait(), self._feed.position)

    def close(self) -> None:
        self._writer.close()
        self._acks.close(1.0)
        self._admin.close()
        self._reader.close()
        self._table_feeds.close()

    def samples(self) -> Iterator[Sample]:
        """Yield what a scrape is told; from any thread."""
        stored, waiting = self._stored, len(self._pending.messages)
        yield from self._measures.samples()
        yield Sample(metrics.FEED_LSN, metrics.NO_LABELS, stored.lsn)
        yield Sample(metrics.FEED_OFFSET, metrics.NO_LABELS, self._feed.position.offset)
        if stored.commit_us:
            yield Sample(metrics.FEED_COMMIT_TIME, metrics.NO_LABELS, stored.commit_us / US_PER_S)
        yield Sample(metrics.FEED_WAITING, metrics.NO_LABELS, waiting + self._table_feeds.waiting)
        held, size = self._table_feeds.held
        yield Sample(metrics.FEED_HELD, metrics.NO_LABELS, held)
        yield Sample(metrics.FEED_HELD_BYTES, metrics.NO_LABELS, size)

    def _read_back(self, topic: str) -> Iterator[Record]:
        return read_to_end(self._kafka, CLIENT_ID, topic, give_up=self._stop)

    def _take(self) -> None:
        """Step over what is there."""
        if self._gathers:
            left_s = (self._due_ns - boottime_ns()) / 1e9
            self._pause.wait(max(0.0, min(left_s, GATHER_MS / 1e3)))
        feeds = self._table_feeds
        waits = not self._pending.messages and not feeds.has_snapshot and not feeds.is_loading
        wait_s = IDLE_WAIT_S if waits else 0.0
        taken = 0
        for record in self._reader.read(READ_RECORDS_MAX, wait_s):
            data = record.value or b""
            digest, read = self._codec.digest(data), self._codec.read_log(data)
            step = self._feed.step(read, record.offset, digest, boottime_ns())
            taken += len(step.publications)
            if step.publications:
                self._await(step.urgent, boottime_ns())
            self._pending.take(step.publications)
            if step.applied is not None:
                self._table_feeds.follow(step.applied, record.offset)
            if self._is_full:
                self._publish()
        self._gathers = bool(self._pending.messages) and taken < GATHERED_MAX

    def _tend_feeds(self) -> None:
        """Carry out orders about feeds, and take rows of a snapshot where there is room."""
        feeds = self._table_feeds
        if feeds.has_orders():
            if self._pending.messages or self._feed.position != self._stored:
                self._publish()
            feeds.obey(self._feed.position, self._codec.encode(self._stored))
        if not self._is_full:
            feeds.tell_held()
            feeds.snapshot(self._feed.position)

    @property
    def _is_full(self) -> bool:
        """Whether as much waits as one transaction may have."""
        count = len(self._pending.messages) + self._table_feeds.waiting
        return count >= self._settings.messages_max or self._table_feeds.is_full

    def _await(self, urgent: bool, now_ns: int) -> None:
        """Something is to be published; called before it is among the messages."""
        due_ns = now_ns if urgent else now_ns + self._settings.linger_ms * NS_PER_MS
        self._due_ns = min(self._due_ns, due_ns) if self._pending.messages else due_ns

    def _is_due(self, now_ns: int) -> bool:
        if self._pending.messages:
            return now_ns >= self._due_ns or self._is_full
        feeds = self._table_feeds
        if self._has_to_report(now_ns) or feeds.waiting or feeds.is_changed:
            return True
        waited_ns = now_ns - self._stored_ns
        return (
            self._feed.position != self._stored
            and waited_ns >= self._settings.position_every_ms * NS_PER_MS
        )

    def _has_to_report(self, now_ns: int) -> bool:
        """Return whether a report is due. One is due also where the log stands still: who looks
        can't tell that from a changefeed that is gone."""
        return now_ns - self._reported_ns >= REPORT_EVERY_NS

    def _publish(self) -> None:
        """Write one transaction: all messages and the position behind them."""
        position = self._feed.position
        assert position.offset >= self._stored.offset, "L6: the position only rises"
        stored = self._codec.encode(position)
        if self._pending.new_topics:
            # All tables of the transaction at once: a broker takes as long for one as for many.
            self._admin.create(self._pending.new_topics, self._topics.replication_factor)
            self._pending.new_topics = []
        now_ns, report = boottime_ns(), b""
        count = len(self._pending.messages) + self._table_feeds.waiting
        if self._has_to_report(now_ns):
            told = self._table_feeds.report
            at = position.offset, position.lsn
            report = self._codec.encode(ChangefeedReport(unix_us(), *at, told))
        for _attempt in range(RESEND_MAX):
            try:
                self._writer.begin()
                for topic, key, value, headers, partition in self._pending.messages:
                    self._writer.send(topic, partition, key, value, headers)
                for each in self._table_feeds.messages():
                    self._writer.send(each.topic, each.partition, each.key, each.value)
                for key, value in self._table_feeds.list_changes(position):
                    self._writer.send(self._topics.changefeed.name, 0, key, value)
                self._writer.send(self._topics.changefeed.name, 0, POSITION_KEY, stored)
                for key, value in self._gone.list_changes():
                    self._writer.send(self._topics.changefeed.name, 0, key, value)
                if report:
                    self._writer.send(self._topics.jobs.name, 0, REPORT_KEY, report)
                self._writer.commit()
                break
            except TransactionAborted as error:
                self._measures.add(metrics.FEED_ABORTS)
                LOG.warning("Kafka transaction failed and is sent again: %s", error)
        else:
            raise BusUnavailable(
                f"Kafka aborted {RESEND_MAX} transactions in a row up to offset {position.offset}"
            )
        if report:
            self._reported_ns = now_ns
        self._pending.messages.clear()
        self._gone.published()
        self._table_feeds.published(stored)
        self._stored = position
        self._stored_ns = boottime_ns()
        self._measures.add(metrics.FEED_MESSAGES, count)
        self._measures.observe(metrics.FEED_S, (self._stored_ns - now_ns) / NS_PER_S)
        self._acknowledge()

    def _acknowledge(self) -> None:
        """Tell the master now and then how far the log is published, so that it may be deleted
        below that. An ack that is lost only delays a deletion."""
        if self._stored_ns - self._acked_ns < ACK_EVERY_NS:
            return
        self._acked_ns = self._stored_ns
        at = self._stored
        ack = Ack(
            node=CLIENT_ID,
            incarnation=incarnation_of(b""),
            role=CHANGEFEED_ROLE,
            offset=at.offset,
            epoch=at.epoch,
            lsn=at.lsn,
            asked_ns=0,
            coherent=False,
            serves="",
            sent_us=unix_us(),
        )
        # It has no store, so nothing is said of a disk.
        report = NodeReport(
            *(CLIENT_ID, __version__, Room.UNKNOWN.value),
            *(0, 0, 0, 0, 0),
            sent_us=ack.sent_us,
        )
        self._acks.deliveries()
        with suppress(BusUnavailable):
            for told in (ack, report):
                data = self._codec.encode(told)
                self._acks.send(self._topics.acks.name, 0, CLIENT_ID.encode(), data)
