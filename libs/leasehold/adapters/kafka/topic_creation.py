"""Creates the topics of a database, and says where existing ones differ from their description.

Nothing is ever altered: a setting that someone changed on purpose stays, and is reported.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from leasehold.adapters.kafka.admin import TopicAdmin
from leasehold.model.topics import Topic
from leasehold.settings.environment import KafkaSettings

TIMEOUT_S: Final = 30.0


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
    with TopicAdmin(kafka, "leasehold-topics") as admin:
        created = admin.create(topics, replication_factor, TIMEOUT_S)
        existing = [topic for topic in topics if topic.name not in created]
        names = [topic.name for topic in existing]
        partitions = admin.partitions(names, TIMEOUT_S) if names else {}
        settings = admin.settings(names, TIMEOUT_S)
    drift = [
        f"{topic.name} has {partitions[topic.name]} partitions, not {topic.partitions}"
        for topic in existing
        if partitions[topic.name] != topic.partitions
    ]
    drift += [
        f"{topic.name} has {name}={settings[topic.name].get(name)}, not {wanted}"
        for topic in existing
        for name, wanted in topic.config.items()
        if settings[topic.name].get(name) != wanted
    ]
    return TopicReport(created, tuple(names), tuple(drift))
