"""The messages of the next transaction beside those of feeds: rows, versions, jobs, dead letters.

It is compiled, since each row of the log comes through here.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final, NamedTuple

from leasehold.adapters.codec.published import feed_message, row_message
from leasehold.adapters.codec.records import MessagePackCodec, row_key
from leasehold.adapters.kafka.writer import BY_KEY, Headers
from leasehold.changefeed.gone_topics import GoneTopics
from leasehold.events.public_schema import CONTENT_TYPE
from leasehold.model.records.events import VersionEvent
from leasehold.model.topics import Topic, Topics
from leasehold.replication.changefeed import (
    Feed,
    FeedPublication,
    ForgottenJob,
    ForgottenTable,
    Publication,
    RowPublication,
    TruncationPublication,
    version_key,
)

VERSION_HEADERS: Final[Headers] = (("content-type", CONTENT_TYPE.encode()),)
_CODEC: Final = MessagePackCodec()


class Message(NamedTuple):
    topic: str
    key: bytes
    value: bytes | None
    headers: Headers = ()
    partition: int = BY_KEY


class PendingMessages:
    """What waits for a transaction. `there`: the topics that there are. `new_topics`: those that
    have to be made before `messages` are sent."""

    def __init__(self, topics: Topics, gone: GoneTopics) -> None:
        self.messages: list[Message] = []
        self.there: set[str] = set()
        self.new_topics: list[Topic] = []
        self._topics = topics
        self._gone = gone
        self._rows_topics: dict[int, str] = {}  # of tables that rows were published of
        self._feeds = {
            Feed.VERSIONS: (topics.versions.name, topics.versions_history.name),
            Feed.JOBS: (topics.jobs.name,),
            Feed.DEAD_LETTER: (topics.dead_letter.name,),
        }

    def take(self, publications: Iterable[Publication]) -> None:
        """Add the messages of what a record of the log publishes."""
        for publication in publications:
            if isinstance(publication, RowPublication):
                table_id, key, image = publication
                topic = self._rows_topics.get(table_id)
                if topic is None:
                    topic = self._rows_topics[table_id] = self._rows_topic(table_id)
                message = row_message(key, image)
                if message is not None:
                    self.messages.append(Message(topic, *message))
            else:
                self._take_other(publication)

    def _take_other(self, publication: Publication) -> None:
        if isinstance(publication, TruncationPublication):
            rows = self._topics.rows(publication.record.table_id)
            if rows.name not in self.there:
                return  # it has never had a row
            value = _CODEC.encode(publication.record)
            for partition in range(rows.partitions):
                self.messages.append(Message(rows.name, row_key(()), value, partition=partition))
        elif isinstance(publication, FeedPublication):
            value = feed_message(publication.key, publication.record)
            public = isinstance(publication.record, VersionEvent)
            headers = VERSION_HEADERS if public else ()
            for topic in self._feeds[publication.feed]:
                self.messages.append(Message(topic, publication.key, value, headers))
        elif isinstance(publication, ForgottenTable):
            table_id = publication.table_id
            self._rows_topics.pop(table_id, None)
            self.messages.append(Message(self._topics.versions.name, version_key(table_id), None))
            rows = self._topics.rows(table_id)
            if rows.name in self.there:
                self.there.remove(rows.name)
                self._gone.add(table_id)
        else:
            assert isinstance(publication, ForgottenJob), publication
            jobs = self._topics.jobs.name
            for key in publication.keys:
                self.messages.append(Message(jobs, key, None))

    def _rows_topic(self, table_id: int) -> str:
        """Return the name of a table's rows topic, which is made before anything is published on
        it."""
        topic = self._topics.rows(table_id)
        if topic.name not in self.there:
            self.there.add(topic.name)
            self.new_topics.append(topic)
        return topic.name
