"""Goal: asking where topics end costs as many requests for thousands of tables as for one, and
nobody waits for the answers."""

from __future__ import annotations

from concurrent.futures import Future
from types import SimpleNamespace
from typing import Any

import pytest
from confluent_kafka import KafkaError, KafkaException, TopicPartition

from leasehold.adapters.kafka import admin as kafka_admin
from leasehold.adapters.kafka import topic_ends
from leasehold.adapters.kafka.topic_ends import ASK_EVERY_NS, ROWS_EVERY_NS, TopicEndsReader
from leasehold.model.errors import BusUnavailable
from leasehold.model.topics import Topics
from leasehold.settings.environment import KafkaSettings

TOPICS = Topics("demo")
TABLES = range(1, 2_001)


class Admin:
    """Each question's Futures, to be answered by the test."""

    def __init__(self, _options: dict[str, Any]) -> None:
        self.asked: list[dict[TopicPartition, Future[Any]]] = []

    def poll(self, _timeout: float) -> None:
        pass

    def list_offsets(
        self, places: dict[TopicPartition, Any], **_: Any
    ) -> dict[TopicPartition, Future[Any]]:
        futures: dict[TopicPartition, Future[Any]] = {place: Future() for place in places}
        self.asked.append(futures)
        return futures

    def answer(self, offset: int, **errors: int) -> None:
        """`errors`: codes by the last part of a topic's name."""
        for futures in self.asked:
            for place, future in futures.items():
                code = errors.get(place.topic.rpartition(".")[2].replace("-", "_"))
                if future.done():
                    continue
                if code is not None:
                    future.set_exception(KafkaException(KafkaError(code)))
                else:
                    future.set_result(SimpleNamespace(offset=offset))


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    now_ns = [10 * ROWS_EVERY_NS]
    monkeypatch.setattr(topic_ends, "boottime_ns", lambda: now_ns[0])
    monkeypatch.setattr(kafka_admin, "make_client", lambda client, options: Admin(options))
    return now_ns


def reader() -> tuple[TopicEndsReader, Admin]:
    made = TopicEndsReader(KafkaSettings(), TOPICS, "test")
    return made, made._connection._held[0]  # type: ignore[return-value]


def test_two_requests_however_many_tables(clock: list[int]) -> None:
    ends, admin = reader()
    assert ends.poll(TABLES) is None
    assert len(admin.asked) == 2
    assert ends.poll(TABLES) is None, "not answered yet: nobody waits, nobody asks again"
    assert len(admin.asked) == 2
    admin.answer(30)
    found = ends.poll(TABLES)
    assert found is not None
    assert found["log"] == 30
    assert found["rows/2000"] == 0, "as many records as lie between both offsets"
    assert len(found) == 4 + len(TABLES)


def test_rows_are_asked_for_less_often_than_queues(clock: list[int]) -> None:
    ends, admin = reader()
    ends.poll(TABLES)
    admin.answer(1)
    clock[0] += ASK_EVERY_NS
    assert ends.poll(TABLES) is not None
    assert len(admin.asked) == 3
    assert {place.topic for place in admin.asked[-1]} == {
        topic.name for topic in (TOPICS.log, TOPICS.requests, TOPICS.backfill, TOPICS.dead_letter)
    }


def test_a_table_without_a_topic_is_left_out_and_an_absent_broker_is_told(clock: list[int]) -> None:
    ends, admin = reader()
    ends.poll((7, 8))
    admin.answer(4, **{"7": KafkaError.UNKNOWN_TOPIC_OR_PART})
    found = ends.poll((7, 8))
    assert found is not None
    assert found.keys() == {"log", "requests", "backfill", "dead-letter", "rows/8"}
    clock[0] += ASK_EVERY_NS
    ends.poll(())
    admin.answer(4, requests=KafkaError.NOT_LEADER_FOR_PARTITION)
    found = ends.poll(())
    assert found is not None
    assert "requests" not in found, "its leader comes back"
    clock[0] += ASK_EVERY_NS
    ends.poll(())
    admin.answer(4, log=KafkaError._TIMED_OUT)
    with pytest.raises(BusUnavailable, match="asking where topics end"):
        ends.poll(())
