"""Topics made, described, shortened and deleted while the system runs."""

from __future__ import annotations

import threading
import weakref
from collections.abc import Callable, Collection, Sequence
from typing import Any, Final

from confluent_kafka import KafkaError, KafkaException, TopicCollection, TopicPartition
from confluent_kafka.admin import (
    AdminClient,
    ConfigResource,
    NewTopic,
    ResourceType,
)

from leasehold.adapters.kafka.client import (
    ASK_SLICE_S,
    LOST,
    ClientWatch,
    client_options,
    error_of,
    make_client,
)
from leasehold.adapters.os.clock import boottime_ns
from leasehold.model.closing import Closing
from leasehold.model.errors import BusUnavailable
from leasehold.model.topics import Topic
from leasehold.replication.log.identity import NO_ID
from leasehold.settings.environment import KafkaSettings

TIMEOUT_S: Final = 10.0
ID_TIMEOUT_S: Final = 2.0
LEADER_TIMEOUT_S: Final = 0.5
"""Of a master that has other things to do, and asks again later."""
NO_UUID: Final = "AAAAAAAAAAAAAAAAAAAAAA"
_NOT_THERE: Final = frozenset({KafkaError.UNKNOWN_TOPIC_OR_PART, KafkaError._UNKNOWN_TOPIC})
ASKED_ONE_BY_ONE_MAX: Final = 16
LOOK_AGAIN_S: Final = 0.02


class AdminConnection(Closing):
    """An admin client, which is recreated once it has lost all its brokers.

    ⚠ Its answers come into Python by a thread of librdkafka, which knows nothing of an interpreter
    that ends: one that comes then may end the process by a segmentation fault. With the client that
    thread has ended. So it is given up by `close`, or else before the interpreter ends, whoever
    refers to this connection still, and however late a broker answers.
    """

    def __init__(self, settings: KafkaSettings, client_id: str) -> None:
        self._watch = ClientWatch(settings, client_id)
        self._options = client_options(settings, client_id, self._watch)
        self._held = [make_client(AdminClient, self._options)]  # nobody else refers to it
        self._give_up = weakref.finalize(self, self._held.clear)

    def close(self) -> None:
        """Give the client up, with what was asked and is not answered. May be repeated."""
        self._give_up()

    def poll(self) -> None:
        """Run callbacks: they tell why a call has timed out, and would gather otherwise."""
        for client in self._held:
            client.poll(0)

    def client_for(self, topic: str) -> AdminClient:
        """Return the client, to be asked about `topic` now."""
        assert self._held, "it is closed"
        self.poll()
        if self._watch.is_lost(self._held[0], topic):
            self._watch.starts_anew(LOST)
            self._held[0] = make_client(AdminClient, self._options)
        return self._held[0]

    def client_that_knows(self, topic: str, timeout_s: float) -> AdminClient:
        """Return the client once it knows who leads `topic`. Raises KafkaException.

        ⚠ What is asked of leaders, `list_offsets` and `delete_records`, a client that lacks one
        works on in the asking thread and in its own at once, and may end the process by a
        segmentation fault (librdkafka 2.16)."""
        client = self.client_for(topic)
        client.list_topics(topic, timeout=timeout_s)
        return client

    def works(self) -> None:
        """Note that a call has succeeded."""
        self._watch.works()

    def unavailable(self, doing: str, exception: KafkaException | TimeoutError) -> BusUnavailable:
        """Return the error to raise where `doing` ("creating topic a") has failed."""
        self.poll()
        return self._watch.unavailable(doing, exception)


class TopicAdmin(Closing):
    """Questions and orders about topics, through one connection. Every method raises
    BusUnavailable."""

    def __init__(self, settings: KafkaSettings, client_id: str) -> None:
        self._pause = threading.Event()  # never set: nothing tells when metadata has spread
        self._connection = AdminConnection(settings, client_id)

    def close(self) -> None:
        self._connection.close()

    def create(
        self, topics: Sequence[Topic], replication_factor: int, timeout_s: float = TIMEOUT_S
    ) -> tuple[str, ...]:
        """Create those topics that are missing, and return their names. May be repeated and raced.

        When it returns every partition of them has a leader, so that producing can begin. The
        controller is asked for nothing that is there: whoever starts goes on without one then.
        """
        there = self._known_names([topic.name for topic in topics], timeout_s)
        wanted = [
            NewTopic(t.name, t.partitions, replication_factor, config=dict(t.config))
            for t in topics
            if t.name not in there
        ]
        if not wanted:
            return ()
        created = []
        pending = self._connection.client_for(wanted[0].topic).create_topics(
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
            self.partitions(created, timeout_s)
        return tuple(created)

    def list_names(self, one: str, timeout_s: float = TIMEOUT_S) -> set[str]:
        """Return the names of all topics that there are. `one` of them is there."""
        try:
            client = self._connection.client_for(one)
            return set(client.list_topics(timeout=timeout_s).topics)
        except KafkaException as error:
            raise self._unavailable("asking for topics", error) from error

    def delete(self, name: str, timeout_s: float = TIMEOUT_S) -> None:
        """Delete a topic. One that is not there is gone already, so this may be repeated."""
        pending = self._connection.client_for(name).delete_topics(
            [name], operation_timeout=timeout_s, request_timeout=timeout_s
        )
        try:
            pending[name].result(timeout=timeout_s)
        except (KafkaException, TimeoutError) as error:
            if not is_missing(error):
                raise self._unavailable(f"deleting topic {name}", error) from error

    def partitions(self, names: Collection[str], timeout_s: float = TIMEOUT_S) -> dict[str, int]:
        """Wait until all partitions of these topics have leaders, and return how many each topic
        has: the controller says that a topic was made a moment before the brokers know of it."""
        give_up_ns = boottime_ns() + int(timeout_s * 1e9)
        wanted = frozenset(names)
        while True:
            try:
                known = self._describe(wanted, timeout_s)
            except KafkaException as error:
                raise self._unavailable("asking for topics", error) from error
            led = {
                name: len(topic.partitions)
                for name, topic in known.items()
                if name in wanted
                and topic.partitions
                and all(part.leader >= 0 for part in topic.partitions.values())
            }
            if led.keys() == wanted:
                return led
            if boottime_ns() > give_up_ns:
                missing = ", ".join(sorted(wanted - led.keys()))
                raise BusUnavailable(f"Topics without a leader after {timeout_s:g} s: {missing}")
            self._pause.wait(LOOK_AGAIN_S)

    def _known_names(self, names: Collection[str], timeout_s: float) -> set[str]:
        """Return those names of which the broker that is asked knows a topic."""
        if not names:
            return set()
        try:
            known = self._describe(names, timeout_s)
        except KafkaException as error:
            raise self._unavailable("asking for topics", error) from error
        return {name for name in names if name in known and known[name].error is None}

    def _describe(self, names: Collection[str], timeout_s: float) -> dict[str, Any]:
        """Return what the broker says of topics, by name: it is asked for those, not for all of a
        database with thousands of tables, unless they are many. Raises KafkaException."""
        client = self._connection.client_for(min(names))
        if len(names) > ASKED_ONE_BY_ONE_MAX:
            return client.list_topics(timeout=timeout_s).topics
        return {
            name: client.list_topics(name, timeout=timeout_s).topics[name] for name in sorted(names)
        }

    def settings(
        self, names: Sequence[str], timeout_s: float = TIMEOUT_S
    ) -> dict[str, dict[str, str | None]]:
        """Return the settings that the broker has for these topics, by topic and setting."""
        if not names:
            return {}
        resources = [ConfigResource(ResourceType.TOPIC, name) for name in names]
        pending = self._connection.client_for(names[0]).describe_configs(resources)
        try:
            return {
                resource.name: {
                    name: entry.value for name, entry in future.result(timeout=timeout_s).items()
                }
                for resource, future in pending.items()
            }
        except (KafkaException, TimeoutError) as error:
            raise self._unavailable("asking for the settings of topics", error) from error

    def delete_below_soon(
        self, topic: str, partition: int, offset: int, timeout_s: float = LEADER_TIMEOUT_S
    ) -> Any:
        """Begin to delete the records of a partition below `offset` (L7). Returns a Future, whose
        `low_watermark` is the partition's new first offset. Raises BusUnavailable where it is not
        told within `timeout_s` who leads the partition."""
        assert offset >= 0, offset
        topic_partition = TopicPartition(topic, partition, offset)
        try:
            client = self._connection.client_that_knows(topic, timeout_s)
        except KafkaException as error:
            raise self._unavailable(f"asking who leads {topic}", error) from error
        (future,) = client.delete_records([topic_partition]).values()
        return future

    def topic_id(self, topic: str, give_up: Callable[[], bool] = lambda: False) -> str:
        """Return the id that Kafka gave the topic when it was made: one that is deleted and made
        anew has another. A broker that gives none has NO_ID. `give_up` is asked twice a second
        meanwhile."""
        future = self.topic_id_soon(topic)
        end_ns = boottime_ns() + int(ID_TIMEOUT_S * 1e9)
        doing = f"asking which topic {topic} is"
        return id_in(self._told(future, topic, doing, end_ns, give_up))

    def _told(
        self, future: Any, topic: str, doing: str, end_ns: int, give_up: Callable[[], bool]
    ) -> Any:
        """Wait for what the broker says of a topic. Raises BusUnavailable."""
        while True:
            try:
                return future.result(timeout=ASK_SLICE_S)
            except (KafkaException, TimeoutError) as error:
                if isinstance(error, TimeoutError) and boottime_ns() < end_ns and not give_up():
                    continue
                if is_missing(error):
                    raise BusUnavailable(f"Kafka has no topic {topic}") from error
                raise self._unavailable(doing, error) from error

    def topic_id_soon(self, topic: str) -> Any:
        """Begin what `topic_id` does, and return a Future of what `id_in` takes."""
        asked = self._connection.client_for(topic).describe_topics(
            TopicCollection([topic]), request_timeout=ID_TIMEOUT_S
        )
        (future,) = asked.values()
        return future

    def _unavailable(self, doing: str, exception: KafkaException | TimeoutError) -> BusUnavailable:
        return self._connection.unavailable(doing, exception)


def id_in(description: Any) -> str:
    """Return the id that a topic's description has, NO_ID where it has none."""
    found = str(description.topic_id)
    return NO_ID if found == NO_UUID else found


def is_missing(error: BaseException) -> bool:
    """Whether the broker says that there is no such topic."""
    return isinstance(error, KafkaException) and error_of(error).code() in _NOT_THERE


def _is_there(error: KafkaException) -> bool:
    return error_of(error).code() == KafkaError.TOPIC_ALREADY_EXISTS
