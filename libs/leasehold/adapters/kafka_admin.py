"""Topics made and shortened while the system runs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from confluent_kafka import KafkaError, KafkaException, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic

from leasehold.adapters.environment import KafkaSettings
from leasehold.adapters.kafka_client import ClientWatch, client_options, error_of, unavailable
from leasehold.model.topics import Topic

TIMEOUT_S: Final = 10.0


class TopicAdmin:
    """One admin connection. Every method raises BusUnavailable."""

    def __init__(self, settings: KafkaSettings, client_id: str) -> None:
        self._bootstrap = settings.bootstrap
        watch = ClientWatch(settings.bootstrap, client_id)
        self._client = AdminClient(client_options(settings, client_id, watch))

    def create(
        self, topics: Sequence[Topic], replication_factor: int, timeout_s: float = TIMEOUT_S
    ) -> tuple[str, ...]:
        """Create those that are missing; the names that were. May be repeated and raced."""
        wanted = [
            NewTopic(t.name, t.partitions, replication_factor, config=dict(t.config))
            for t in topics
        ]
        if not wanted:
            return ()
        created = []
        # A topic exists for its creator when every broker knows it, so that a produce right
        # after finds it.
        pending = self._client.create_topics(
            wanted, operation_timeout=timeout_s, request_timeout=timeout_s
        )
        for name, future in pending.items():
            try:
                future.result(timeout=timeout_s)
                created.append(name)
            except KafkaException as error:
                if error_of(error).code() != KafkaError.TOPIC_ALREADY_EXISTS:
                    raise unavailable(f"creating topic {name}", self._bootstrap, error) from error
        return tuple(created)

    def delete_below(
        self, topic: str, partition: int, offset: int, timeout_s: float = TIMEOUT_S
    ) -> int:
        """Delete the records of a partition below `offset`; the new first offset (L7)."""
        return self._wait(self.delete_below_soon(topic, partition, offset), timeout_s)

    def delete_below_soon(self, topic: str, partition: int, offset: int) -> Any:
        """As `delete_below`, without waiting: a Future of the new first offset."""
        assert offset >= 0, offset
        place = TopicPartition(topic, partition, offset)
        (future,) = self._client.delete_records([place]).values()
        return future

    def _wait(self, future: Any, timeout_s: float) -> int:
        try:
            first: int = future.result(timeout=timeout_s).low_watermark
        except (KafkaException, TimeoutError) as error:
            raise unavailable("deleting records", self._bootstrap, error) from error
        return first
