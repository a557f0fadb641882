"""TopicEndsReader: where a database's topics end, asked while its owner reads on.

Two requests (first offsets, next offsets) a leader, however many tables there are. Asked partition
by partition through a consumer, each question waits behind that consumer's own fetch, and the
topics of 400 tables take 40 seconds.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from concurrent.futures import wait
from typing import Any, Final, NamedTuple

from confluent_kafka import IsolationLevel, KafkaException, TopicPartition
from confluent_kafka.admin import OffsetSpec

from leasehold.adapters.kafka.admin import AdminConnection
from leasehold.adapters.kafka.leader_wait import lacks_leader
from leasehold.adapters.os.clock import boottime_ns
from leasehold.model.topics import Topic, Topics
from leasehold.settings.environment import KafkaSettings

ASK_EVERY_NS: Final = 1_000_000_000
ROWS_EVERY_NS: Final = 5_000_000_000
"""Rows topics grow in number with the tables, and people look at their ends only as "about"."""
_EARLIEST: Final[OffsetSpec] = OffsetSpec.earliest()  # type: ignore[no-untyped-call]
_LATEST: Final[OffsetSpec] = OffsetSpec.latest()  # type: ignore[no-untyped-call]
ANSWER_TIMEOUT_S: Final = 3.0
"""A broker that has not answered for so long is said to be away."""


class _Asked(NamedTuple):
    """Partitions of one question, by (topic, partition), as Futures of the two offsets."""

    first: Mapping[TopicPartition, Any]
    end: Mapping[TopicPartition, Any]
    labels: Mapping[str, str]


class TopicEndsReader:
    """Asks where topics end, and takes the answers later: `poll` never waits for a broker. For one
    thread."""

    def __init__(self, settings: KafkaSettings, topics: Topics, client_id: str) -> None:
        self._topics = topics
        self._connection = AdminConnection(settings, client_id)
        self._asked: _Asked | None = None
        self._asked_ns = 0
        self._rows_asked_ns = 0

    def poll(self, table_ids: Collection[int]) -> dict[str, int] | None:
        """Ask when it is time to, take the answers that have come, and return what they say.

        These are next offsets by "log", "requests", "backfill" and "dead-letter", and of
        `rows/<table id>` how many records are kept, about; None while nothing new is known. What a
        broker can't tell just now is left out, and a table without a topic (it never had a row).
        Raises BusUnavailable when Kafka can't be reached.
        """
        self._connection.poll()
        answered = None
        if self._asked is not None and self._is_answered(self._asked):
            asked, self._asked = self._asked, None
            answered = self._ends_of(asked)
        now_ns = boottime_ns()
        if self._asked is None and now_ns - self._asked_ns >= ASK_EVERY_NS:
            self._asked_ns = now_ns
            self._asked = self._ask(table_ids, now_ns)
        return answered

    def close(self) -> None:
        """Wait for what is under way: an answer that comes while the interpreter ends would end it
        with a crash."""
        if self._asked is not None:
            for part in self._asked[:2]:
                wait(part.values(), timeout=ANSWER_TIMEOUT_S)
            self._asked = None

    def _ask(self, table_ids: Collection[int], now_ns: int) -> _Asked:
        topics = self._topics
        wanted: dict[str, Topic] = {
            "log": topics.log,
            "requests": topics.requests,
            "backfill": topics.backfill,
            "dead-letter": topics.dead_letter,
        }
        if table_ids and now_ns - self._rows_asked_ns >= ROWS_EVERY_NS:
            self._rows_asked_ns = now_ns
            wanted |= {f"rows/{table_id}": topics.rows(table_id) for table_id in table_ids}
        rows = [topic for label, topic in wanted.items() if label.startswith("rows/")]
        return _Asked(
            self._offsets(rows, _EARLIEST) if rows else {},
            self._offsets(wanted.values(), _LATEST),
            {topic.name: label for label, topic in wanted.items()},
        )

    def _offsets(self, topics: Collection[Topic], spec: OffsetSpec) -> Mapping[TopicPartition, Any]:
        return self._connection.client_for(self._topics.log.name).list_offsets(
            {
                TopicPartition(topic.name, number): spec
                for topic in topics
                for number in range(topic.partitions)
            },
            isolation_level=IsolationLevel.READ_COMMITTED,
            request_timeout=ANSWER_TIMEOUT_S,
        )

    @staticmethod
    def _is_answered(asked: _Asked) -> bool:
        return all(future.done() for part in asked[:2] for future in part.values())

    def _ends_of(self, asked: _Asked) -> dict[str, int]:
        found: dict[str, int] = {}
        unknown: set[str] = set()
        for sign, part in ((-1, asked.first), (1, asked.end)):
            for topic_partition, future in part.items():
                label = asked.labels[topic_partition.topic]
                try:
                    offset: int = future.result(timeout=0).offset
                except KafkaException as error:
                    # A table without a row yet has no topic; a missing leader comes back.
                    if not (label.startswith("rows/") or lacks_leader(error)):
                        doing = "asking where topics end"
                        raise self._connection.unavailable(doing, error) from error
                    unknown.add(label)
                else:
                    found[label] = found.get(label, 0) + sign * offset
        self._connection.works()
        return {label: max(0, count) for label, count in found.items() if label not in unknown}
