"""Goal: a client of librdkafka's that has lost all its brokers is noticed, and goes on.

Method: a real broker, and a first client that is as one is left behind by its restart. One that is
merely away is waited for.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from infra.ports import Ports
from leasehold.adapters.kafka import (
    admin as kafka_admin,
)
from leasehold.adapters.kafka import (
    client as kafka_client,
)
from leasehold.adapters.kafka import (
    reader as kafka_reader,
)
from leasehold.adapters.kafka import (
    transaction,
)
from leasehold.adapters.kafka import (
    writer as kafka_writer,
)
from leasehold.adapters.kafka.admin import TopicAdmin
from leasehold.adapters.kafka.reader import TopicReader
from leasehold.adapters.kafka.transaction import TransactionWriter
from leasehold.adapters.kafka.writer import Delivery, TopicWriter
from leasehold.model.errors import BusUnavailable
from leasehold.replication.log.identity import NO_ID
from leasehold.settings.environment import KafkaSettings
from tests.support.cluster.broker_talk import DEADLINE_S, read, told


@pytest.fixture
def first_has_no_brokers(two_topics: tuple[str, str], monkeypatch: pytest.MonkeyPatch) -> None:
    """The topics are there. The first client that an adapter makes is as librdkafka leaves one
    whose last broker was not among those that Kafka told (its issue 5301): it knows none, looks for
    none, and is silent."""
    monkeypatch.setattr(kafka_client, "LOST_AFTER_S", 0.5)
    made = iter([{"bootstrap.servers": ""}])

    def make(client: Callable[[dict[str, Any]], Any], options: dict[str, Any]) -> Any:
        return client({**options, **next(made, {})})

    for module in (kafka_admin, kafka_reader, transaction, kafka_writer):
        monkeypatch.setattr(module, "make_client", make)


@pytest.mark.usefixtures("first_has_no_brokers")
def test_l4_a_writer_that_has_lost_its_brokers_tells_what_waits_and_goes_on(
    settings: KafkaSettings, one_topic: str
) -> None:
    writer = TopicWriter(settings, "test-writer")
    writer.send(one_topic, 0, None, b"waits", token="waits")
    why = "the client has lost all its brokers"
    assert told(writer, 1) == [Delivery("waits", one_topic, 0, -1, why)]
    writer.send(one_topic, 0, None, b"goes on", token="goes on")
    assert told(writer, 1) == [Delivery("goes on", one_topic, 0, 0, None)]
    assert writer.close(5) == 0


@pytest.mark.usefixtures("first_has_no_brokers")
def test_a_writer_that_has_lost_its_brokers_while_idle_loses_no_record(
    settings: KafkaSettings, one_topic: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    writer = TopicWriter(settings, "test-writer", topic=one_topic)
    with monkeypatch.context() as idle_for_long:
        idle_for_long.setattr(kafka_client, "LOST_AFTER_S", 0)
        writer.send(one_topic, 0, None, b"the first", token="the first")
    assert told(writer, 1) == [Delivery("the first", one_topic, 0, 0, None)]
    assert writer.close(5) == 0


@pytest.mark.usefixtures("first_has_no_brokers")
def test_a_reader_that_has_lost_its_brokers_goes_on_where_it_was(
    settings: KafkaSettings, two_topics: tuple[str, str], caplog: pytest.LogCaptureFixture
) -> None:
    reader = TopicReader(settings, "test-reader")
    free, held = two_topics
    writer = TopicWriter(settings, "test-writer")
    for topic in two_topics:
        for number in range(4):
            writer.send(topic, 0, None, b"%d" % number)
        reader.start(topic, 0, 2)
    assert writer.close(DEADLINE_S) == 0
    reader.pause(held, 0)
    assert [(r.topic, r.offset) for r in read(reader, 2)] == [(free, 2), (free, 3)]
    assert reader.read(10, 0.3) == [], "it is paused as before"
    reader.resume(held, 0)
    assert [(r.topic, r.offset) for r in read(reader, 2)] == [(held, 2), (held, 3)]
    assert [r.message for r in caplog.records].count(
        "test-reader: begins with a new connection to Kafka: the client has lost all its brokers"
    ) == 1
    reader.close()


@pytest.mark.usefixtures("first_has_no_brokers")
def test_who_has_lost_its_brokers_and_only_asks_is_answered_again(
    settings: KafkaSettings, one_topic: str
) -> None:
    admin = TopicAdmin(settings, "test-admin")
    with pytest.raises(BusUnavailable):
        admin.topic_id(one_topic)
    assert admin.topic_id(one_topic) != NO_ID


@pytest.mark.usefixtures("first_has_no_brokers")
def test_transactions_that_have_lost_their_brokers_have_to_be_made_anew(
    settings: KafkaSettings, one_topic: str
) -> None:
    lost = TransactionWriter(settings, "test", f"lost-{one_topic}", topic=one_topic)
    with pytest.raises(BusUnavailable, match="opening transactions failed"):
        lost.open()
    lost.close()
    again = TransactionWriter(settings, "test", f"lost-{one_topic}", topic=one_topic)
    again.open()
    again.begin()
    again.send(one_topic, 0, b"key", b"value")
    again.commit()
    again.close()


def test_l4_a_broker_that_is_away_is_waited_for_and_no_record_is_given_up_for_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """It has no connection either, and hears so every second or sooner."""
    monkeypatch.setattr(kafka_client, "LOST_AFTER_S", 2.5)
    nowhere = KafkaSettings(bootstrap=f"127.0.0.1:{Ports.free().kafka}")
    writer = TopicWriter(nowhere, "test", delivery_timeout_ms=7_000)
    writer.send("anything", 0, None, b"x", token=1)
    why = "Local: Message timed out"
    assert told(writer, 1) == [Delivery(1, "anything", 0, -1, why)], "by its own time-out"
