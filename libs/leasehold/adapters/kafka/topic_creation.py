"""Creates the topics of a database, and says where existing ones differ from their description.

Nothing is ever altered: a setting that someone changed on purpose stays, and is reported.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass

from confluent_kafka import KafkaError, KafkaException
from confluent_kafka.admin import AdminClient, ConfigResource, NewTopic, ResourceType

from leasehold.adapters.kafka.client import ClientWatch, client_options, made
from leasehold.model.errors import BusUnavailable
from leasehold.model.topics import Topic
from leasehold.settings.environment import KafkaSettings

DEADLINE_S = 30.0


@dataclass(frozen=True, slots=True)
class TopicReport:
    """What was done. `drift` holds a sentence per difference between topic and description."""

    created: tuple[str, ...]
    existing: tuple[str, ...]
    drift: tuple[str, ...]


def ensure_topics(
    kafka: KafkaSettings, topics: Sequence[Topic], replication_factor: int = 1
) -> TopicReport:
    """Create what is missing and wait until every partition has a leader. May be repeated.

    Raises BusUnavailable when Kafka can't be reached or refuses.
    """
    watch = ClientWatch(kafka, "leasehold-topics")
    admin = made(AdminClient, client_options(kafka, "leasehold-topics", watch))
    wanted = [
        NewTopic(
            topic.name,
            num_partitions=topic.partitions,
            replication_factor=replication_factor,
            config=dict(topic.config),
        )
        for topic in topics
    ]
    created: list[str] = []
    existing: list[str] = []
    for name, future in admin.create_topics(wanted, request_timeout=DEADLINE_S).items():
        try:
            future.result(timeout=DEADLINE_S)
            created.append(name)
        except (KafkaException, TimeoutError) as error:
            if isinstance(error, TimeoutError) or not _is_there(error):
                admin.poll(0)  # runs the callbacks that tell why a call timed out
                raise watch.unavailable(f"creating topic {name}", error) from error
            existing.append(name)
    partitions = _wait_for_leaders(admin, kafka, topics)
    drift = _drift(admin, [t for t in topics if t.name in set(existing)], partitions)
    return TopicReport(tuple(created), tuple(existing), tuple(drift))


def _is_there(error: KafkaException) -> bool:
    code: int = error.args[0].code()
    return code == KafkaError.TOPIC_ALREADY_EXISTS


def _wait_for_leaders(
    admin: AdminClient, kafka: KafkaSettings, topics: Sequence[Topic]
) -> dict[str, int]:
    """Topic → partitions. A topic exists a moment before its partitions can be written."""
    give_up = time.monotonic() + DEADLINE_S
    names = {topic.name for topic in topics}
    while True:
        try:
            known = admin.list_topics(timeout=DEADLINE_S).topics
        except KafkaException as error:
            raise BusUnavailable(
                f"Kafka at {kafka.bootstrap} gives no metadata: {error}"
            ) from error
        led = {
            name: len(known[name].partitions)
            for name in names & known.keys()
            if known[name].partitions
            and all(part.leader >= 0 for part in known[name].partitions.values())
        }
        if led.keys() == names:
            return led
        if time.monotonic() > give_up:
            missing = ", ".join(sorted(names - led.keys()))
            raise BusUnavailable(f"Topics without a leader after {DEADLINE_S:g} s: {missing}.")
        time.sleep(0.02)


def _drift(admin: AdminClient, topics: Sequence[Topic], partitions: dict[str, int]) -> list[str]:
    sentences = [
        f"{topic.name} has {partitions[topic.name]} partitions, not {topic.partitions}"
        for topic in topics
        if partitions[topic.name] != topic.partitions
    ]
    if not topics:
        return sentences
    resources = {ConfigResource(ResourceType.TOPIC, topic.name): topic for topic in topics}
    for resource, future in admin.describe_configs(list(resources)).items():
        topic = resources[resource]
        actual = future.result(timeout=DEADLINE_S)
        for name, wanted in topic.config.items():
            value = actual[name].value if name in actual else None
            if value != wanted:
                sentences.append(f"{topic.name} has {name}={value}, not {wanted}")
    return sentences
