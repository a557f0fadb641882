"""A topic or two of a test's own, and clients of the session's broker."""

from __future__ import annotations

import uuid
from collections.abc import Callable, Iterator

import pytest

from leasehold.adapters.kafka.admin import TopicAdmin
from leasehold.adapters.kafka.reader import TopicReader
from leasehold.adapters.kafka.writer import TopicWriter
from leasehold.model.topics import MESSAGE_BYTES_MAX, Topic
from leasehold.settings.environment import KafkaSettings


@pytest.fixture
def settings(kafka: KafkaSettings) -> KafkaSettings:
    return kafka


@pytest.fixture
def admin(settings: KafkaSettings) -> TopicAdmin:
    return TopicAdmin(settings, "test-admin")


@pytest.fixture
def new_topic(admin: TopicAdmin) -> Callable[..., str]:
    def make(partitions: int = 1, **config: str) -> str:
        name = f"t{uuid.uuid4().hex[:12]}"
        sizes = {"max.message.bytes": str(MESSAGE_BYTES_MAX)}
        topic = Topic(name, partitions, {**sizes, **config})
        assert admin.create([topic], 1) == (name,)
        return name

    return make


@pytest.fixture
def two_topics(new_topic: Callable[..., str]) -> tuple[str, str]:
    return new_topic(), new_topic()


@pytest.fixture
def one_topic(two_topics: tuple[str, str]) -> str:
    return two_topics[0]


@pytest.fixture
def reader(settings: KafkaSettings) -> Iterator[TopicReader]:
    made = TopicReader(settings, "test-reader")
    yield made
    made.close()


@pytest.fixture
def writer(settings: KafkaSettings) -> Iterator[TopicWriter]:
    made = TopicWriter(settings, "test-writer")
    yield made
    made.close(5)
