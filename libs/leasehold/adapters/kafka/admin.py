"""Topics made and shortened while the system runs."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from typing import Any, Final

from confluent_kafka import KafkaError, KafkaException, TopicCollection, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic

from leasehold.adapters.kafka.client import (
    ASK_SLICE_S,
    LOST,
    ClientWatch,
    client_options,
    error_of,
    made,
)
from leasehold.adapters.os.clock import boottime_ns
from leasehold.model.errors import BusUnavailable
from leasehold.model.topics import Topic
from leasehold.replication.log.identity import NO_ID
from leasehold.settings.environment import KafkaSettings

TIMEOUT_S: Final = 10.0
ID_TIMEOUT_S: Final = 2.0
NO_UUID: Final = "AAAAAAAAAAAAAAAAAAAAAA"
_NOT_THERE: Final = frozenset({KafkaError.UNKNOWN_TOPIC_OR_PART, KafkaError._UNKNOWN_TOPIC})
LOOK_AGAIN_S: Final = 0.02


class TopicAdmin:
    """One admin connection. Every method raises BusUnavailable."""

    def __init__(self, settings: KafkaSettings, client_id: str) -> None:
        self._pause = threading.Event()  # never set: nothing tells when metadata has spread
        self._watch = ClientWatch(settings, client_id)
        self._options = client_options(settings, client_id, self._watch)
        self._client = made(AdminClient, self._options)

    def create(
        self, topics: Sequence[Topic], replication_factor: int, timeout_s: float = TIMEOUT_S
    ) -> tuple[str, ...]:
        """Create those that are missing; the names that were. May be repeated and raced.

        When it returns every partition has a leader, so that producing can begin.
        """
        wanted = [
            NewTopic(t.name, t.partitions, replication_factor, config=dict(t.config))
            for t in topics
        ]
        if not wanted:
            return ()
        created = []
        self._look(wanted[0].topic)
        pending = self._client.create_topics(
            wanted, operation_timeout=timeout_s, request_timeout=timeout_s
        )
        for name, future in pending.items():
            try:
                future.result(timeout=timeout_s)
                created.append(name)
            except (KafkaException, TimeoutError) as error:
                if isinstance(error, TimeoutError) or not _is_there(error):
                    raise self._unavailable(f"creating topic {name}", error) from error
        if created:
            self._wait_for_leaders(frozenset(created), timeout_s)
        return tuple(created)

    def delete(self, name: str, timeout_s: float = TIMEOUT_S) -> None:
        """Delete a topic; one that is not there is gone already, so this may be repeated."""
        self._look(name)
        pending = self._client.delete_topics(
            [name], operation_timeout=timeout_s, request_timeout=timeout_s
        )
        try:
            pending[name].result(timeout=timeout_s)
        except (KafkaException, TimeoutError) as error:
            if not is_missing(error):
                raise self._unavailable(f"deleting topic {name}", error) from error

    def _wait_for_leaders(self, names: frozenset[str], timeout_s: float) -> None:
        """The controller answers a moment before the brokers know of the topic."""
        give_up_ns = boottime_ns() + int(timeout_s * 1e9)
        while True:
            try:
                known = self._client.list_topics(timeout=timeout_s).topics
            except KafkaException as error:
                raise self._unavailable("asking for topics", error) from error
            led = {
                name
                for name in names & known.keys()
                if known[name].partitions
                and all(part.leader >= 0 for part in known[name].partitions.values())
            }
            if led == names:
                return
            if boottime_ns() > give_up_ns:
                missing = ", ".join(sorted(names - led))
                raise BusUnavailable(f"Topics without a leader after {timeout_s:g} s: {missing}")
            self._pause.wait(LOOK_AGAIN_S)

    def delete_below(
        self, topic: str, partition: int, offset: int, timeout_s: float = TIMEOUT_S
    ) -> int:
        """Delete the records of a partition below `offset`; the new first offset (L7)."""
        return self._wait(self.delete_below_soon(topic, partition, offset), timeout_s)

    def delete_below_soon(self, topic: str, partition: int, offset: int) -> Any:
        """As `delete_below`, without waiting: a Future of the new first offset."""
        assert offset >= 0, offset
        place = TopicPartition(topic, partition, offset)
        self._look(topic)
        (future,) = self._client.delete_records([place]).values()
        return future

    def topic_id(self, topic: str, give_up: Callable[[], bool] = lambda: False) -> str:
        """The id that Kafka gave the topic when it was made: one that is deleted and made anew has
        another. NO_ID of a broker that has none. `give_up`: asked twice a second meanwhile."""
        future = self.topic_id_soon(topic)
        end_ns = boottime_ns() + int(ID_TIMEOUT_S * 1e9)
        while True:
            try:
                return id_in(future.result(timeout=ASK_SLICE_S))
            except (KafkaException, TimeoutError) as error:
                if isinstance(error, TimeoutError) and boottime_ns() < end_ns and not give_up():
                    continue
                if is_missing(error):
                    raise BusUnavailable(f"Kafka has no topic {topic}") from error
                raise self._unavailable(f"asking which topic {topic} is", error) from error

    def topic_id_soon(self, topic: str) -> Any:
        """As `topic_id`, without waiting: a Future, of what `id_in` takes."""
        self._look(topic)
        asked = self._client.describe_topics(TopicCollection([topic]), request_timeout=ID_TIMEOUT_S)
        (future,) = asked.values()
        return future

    def _look(self, topic: str) -> None:
        """Run callbacks, which else would gather, and begin anew if there is nobody to ask."""
        self._client.poll(0)
        if self._watch.is_lost(self._client, topic):
            self._watch.starts_anew(LOST)
            self._client = made(AdminClient, self._options)

    def _wait(self, future: Any, timeout_s: float) -> int:
        try:
            first: int = future.result(timeout=timeout_s).low_watermark
        except (KafkaException, TimeoutError) as error:
            raise self._unavailable("deleting records", error) from error
        return first

    def _unavailable(self, doing: str, exception: KafkaException | TimeoutError) -> BusUnavailable:
        self._client.poll(0)  # runs the callbacks that tell why a call timed out
        return self._watch.unavailable(doing, exception)


def id_in(description: Any) -> str:
    """Of a topic's description."""
    found = str(description.topic_id)
    return NO_ID if found == NO_UUID else found


def is_missing(error: BaseException) -> bool:
    """Whether the broker says that there is no such topic."""
    return isinstance(error, KafkaException) and error_of(error).code() in _NOT_THERE


def _is_there(error: KafkaException) -> bool:
    return error_of(error).code() == KafkaError.TOPIC_ALREADY_EXISTS
