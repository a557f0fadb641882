"""The changefeed on the in-memory bus: what it publishes and its position appear at one instant,
as a transaction of Kafka's does. A crash loses what was stepped over and not yet published."""

from __future__ import annotations

import zlib
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from typing import Final, NamedTuple

from leasehold.adapters.codec.published import feed_message, row_message
from leasehold.adapters.codec.records import MessagePackCodec, row_key
from leasehold.changefeed.read_back import (
    POSITION_KEY,
    position_of,
    read_jobs,
    read_position,
)
from leasehold.in_process.bus import MemoryBus, Message, Scheduler
from leasehold.in_process.task import MemoryTask
from leasehold.model.errors import LogStopped, MalformedRequest
from leasehold.model.records.log import LogPosition
from leasehold.model.topics import PUBLISHED_BYTES_MAX, Topics
from leasehold.replication.changefeed import (
    Changefeed,
    Feed,
    FeedPublication,
    ForgottenJob,
    ForgottenTable,
    Publication,
    RowPublication,
    TruncationPublication,
    version_key,
)
from leasehold.replication.log.identity import check_reach

CODEC: Final = MessagePackCodec()


class _Publication(NamedTuple):
    topic: str
    partition: int
    key: bytes
    value: bytes | None


def partition_of(key: bytes, partitions: int) -> int:
    """The same for the same key for ever, which compaction rests on."""
    return zlib.crc32(key) % partitions


class MemoryChangefeed(MemoryTask):
    """Steps the Changefeed. `linger_ns` gives the time for which publications are gathered."""

    def __init__(
        self,
        topics: Topics,
        scheduler: Scheduler,
        bus: MemoryBus,
        linger_ns: Callable[[], int] = lambda: 0,
    ) -> None:
        super().__init__(scheduler)
        self._topics = topics
        self._bus = bus
        self._linger_ns = linger_ns
        self._feed: Changefeed | None = None
        self._messages: list[_Publication] = []
        self._gone: list[int] = []  # tables whose rows topics go with these messages
        self._due = False
        self.error: LogStopped | None = None
        self._feeds = {
            Feed.VERSIONS: (topics.versions.name, topics.versions_history.name),
            Feed.JOBS: (topics.jobs.name,),
            Feed.DEAD_LETTER: (topics.dead_letter.name,),
        }

    @property
    def position(self) -> LogPosition:
        """The position of the log up to which it has published; known while it is down, too."""
        stored = self._bus.read(self._topics.changefeed.name)
        for message in reversed(stored):  # the topic in memory is never compacted
            with suppress(MalformedRequest):
                if (found := position_of(message)) is not None:
                    return found
        return read_position(stored)

    def start(self) -> None:
        self.begin()
        self._due = False
        self._messages = []
        self._gone = []
        jobs = read_jobs(partial(self._bus.read, self._topics.jobs.name))
        position = self.position
        self._feed = Changefeed(position, jobs)
        log = self._topics.log.name
        self.subscriptions[log] = self._bus.subscribe(
            log, 0, position.offset, self._read, gone=self._stop_behind
        )

    def _stop_behind(self) -> None:
        """End where the log has no longer what comes next."""
        assert self._feed is not None, "a cancelled subscription tells nothing"
        log, position = self._topics.log.name, self._feed.position
        try:
            check_reach(log, position, self._bus.first(log), self._bus.end(log))
        except LogStopped as error:
            self.error = error
        self.crash()

    def _read(self, message: Message) -> None:
        assert self._feed is not None, "a cancelled subscription delivers nothing"
        data = message.value or b""
        try:
            now_ns = self.scheduler.now_ns
            self._feed.check(now_ns)
            record = CODEC.read_log(data)
            step = self._feed.step(record, message.offset, CODEC.digest(data), now_ns)
        except LogStopped as error:
            self.error = error
            self.crash()
            return
        for publication in step.publications:
            self._prepare(publication)
        if not self._due:
            self._due = True
            self.later(self._linger_ns(), self._publish)

    def _prepare(self, publication: Publication) -> None:
        if isinstance(publication, RowPublication):
            table_id, key, image = publication
            topic = self._topics.rows(table_id)
            message = row_message(key, image)
            if message is None:
                return
            packed, value = message
            partition = partition_of(packed, topic.partitions)
            self._messages.append(_Publication(topic.name, partition, packed, value))
        elif isinstance(publication, FeedPublication):
            value = feed_message(publication.key, publication.record)
            for name in self._feeds[publication.feed]:
                self._messages.append(_Publication(name, 0, publication.key, value))
        elif isinstance(publication, TruncationPublication):
            topic = self._topics.rows(publication.record.table_id)
            value = CODEC.encode(publication.record)
            for partition in range(topic.partitions):
                self._messages.append(_Publication(topic.name, partition, row_key(()), value))
        elif isinstance(publication, ForgottenTable):
            name, gone = self._topics.versions.name, version_key(publication.table_id)
            self._messages.append(_Publication(name, 0, gone, None))
            self._gone.append(publication.table_id)
        elif isinstance(publication, ForgottenJob):
            for gone in publication.keys:
                self._messages.append(_Publication(self._topics.jobs.name, 0, gone, None))

    def _publish(self) -> None:
        self._bus.once_there(self.in_this_life(self._publish_now))

    def _publish_now(self) -> None:
        assert self._feed is not None, "only while it runs"
        self._due = False
        for topic, partition, key, value in self._messages:
            size = len(key) + len(value or b"")
            assert size <= PUBLISHED_BYTES_MAX, f"Kafka's producer refuses {size} bytes for {topic}"
            self._bus.append(topic, partition, key, value)
        self._messages = []
        for table_id in self._gone:
            self._bus.delete_topic(self._topics.rows(table_id).name)
        self._gone = []
        position = CODEC.encode(self._feed.position)
        self._bus.append(self._topics.changefeed.name, 0, POSITION_KEY, position)
