"""Goal: a topic that is missing when it is first asked for is read once it is there, and a leader
that is missing is waited for.

Method: librdkafka's own mock of a broker, in this process. They run on compiled modules, too
(`tests/integration/infra/test_compiled.py`): what kind of error it is must not be lost there.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from confluent_kafka import KafkaError, KafkaException

from leasehold.adapters.codec.published import row_message
from leasehold.adapters.kafka import row_stream
from leasehold.adapters.kafka.client import LEADERLESS, LeaderMissing, TopicMissing
from leasehold.adapters.kafka.leader_wait import ask_once_led
from leasehold.adapters.kafka.reader import TopicReader
from leasehold.adapters.kafka.row_stream import KafkaRowStream
from leasehold.adapters.os.clock import boottime_ns
from leasehold.events.rows import RowRecord
from leasehold.model.errors import BusUnavailable
from leasehold.model.records.events import RowImage
from leasehold.model.topics import Topics
from leasehold.settings.environment import KafkaSettings
from tests.support.cluster.mock_broker import MockBroker

TOPICS = Topics("demo")
SOON_NS = 30_000_000_000
LOOKS = 3
ONE, TWO = 1, 2


class Broker(MockBroker):
    """Writes rows."""

    def write(self, table_id: int, key: int) -> None:
        image = RowImage(table_id, (key,), {0: 1}, 9, 1, 1, {1: key})
        message = row_message((key,), image)
        assert message is not None
        self.producer.produce(TOPICS.rows(table_id).name, message[1], message[0], 0)
        self.flush()


@pytest.fixture
def broker() -> Broker:
    return Broker()


@pytest.fixture
def stream(broker: Broker, monkeypatch: pytest.MonkeyPatch) -> Iterator[KafkaRowStream]:
    monkeypatch.setattr(row_stream, "LOOK_AGAIN_NS", 0)
    made = KafkaRowStream(broker.settings, TOPICS)
    yield made
    made.close()


def until(broker: Broker, stream: KafkaRowStream, table_id: int) -> list[RowRecord]:
    """Return the first rows of this table that come while another one's do: a client that hears
    nothing for some seconds lists topics anyway."""
    give_up_ns = boottime_ns() + SOON_NS
    while boottime_ns() < give_up_ns:
        broker.write(ONE, 7)
        found = [row for row in stream.rows(0.1, 100) if row.table_id == table_id]
        if found:
            return found
    raise AssertionError(f"no row of table {table_id}")


def test_a_table_whose_topic_comes_later_is_followed(
    broker: Broker, stream: KafkaRowStream
) -> None:
    """The changefeed makes it with the first row, and other tables' rows are being read."""
    stream.follow(ONE)
    stream.follow(TWO)
    assert {row.key for row in until(broker, stream, ONE)} == {(7,)}
    for _ in range(LOOKS):
        assert {row.table_id for row in stream.rows(0.01, 100)} <= {ONE}
    broker.write(TWO, 8)
    assert [row.key for row in until(broker, stream, TWO)] == [(8,)]


def test_a_topic_that_was_missing_is_found_by_the_next_question(broker: Broker) -> None:
    topic = TOPICS.rows(ONE).name
    reader = TopicReader(broker.settings, "test")
    for _ in range(LOOKS):
        with pytest.raises(TopicMissing, match=f"has no topic {topic}; create it"):
            reader.offsets(topic, 0)
    broker.write(ONE, 7)
    assert reader.offsets(topic, 0) == (0, 1)
    with pytest.raises(TopicMissing, match="asking for the end of"):
        reader.offsets(topic, 99)
    reader.close()


class Consumer:
    """The consumer of a reader: the partition's leader is missing in the first answers."""

    def __init__(self, code: int, missing: int) -> None:
        self.code = code
        self.missing = missing

    def get_watermark_offsets(self, *_: Any, **__: Any) -> tuple[int, int]:
        self.missing -= 1
        if self.missing >= 0:
            raise KafkaException(KafkaError(self.code))
        return 3, 9

    def list_topics(self, *_: Any, **__: Any) -> None:
        pass

    def poll(self, _: float) -> None:
        pass

    def close(self) -> None:
        pass


def reader_of(consumer: Consumer) -> TopicReader:
    reader = TopicReader(KafkaSettings(bootstrap="127.0.0.1:1"), "test")
    reader._consumer.close()
    reader._consumer = consumer  # type: ignore[assignment]
    return reader


@pytest.mark.parametrize("code", sorted(LEADERLESS))
def test_a_leader_that_is_missing_is_waited_for(code: int) -> None:
    reader = reader_of(Consumer(code, missing=2))
    assert ask_once_led(lambda: reader.offsets("t", 0, 0)) == (3, 9)
    for_ever = reader_of(Consumer(code, missing=1_000))
    with pytest.raises(LeaderMissing, match="asking for the end of t failed"):
        ask_once_led(lambda: for_ever.offsets("t", 0, 0), timeout_s=0)


def test_a_broker_that_is_away_is_not_waited_for() -> None:
    reader = reader_of(Consumer(KafkaError._TRANSPORT, missing=1))
    with pytest.raises(BusUnavailable, match="asking for the end of t failed"):
        ask_once_led(lambda: reader.offsets("t", 0, 0))
