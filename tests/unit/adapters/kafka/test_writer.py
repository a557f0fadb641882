"""What a TopicWriter tells of what became of its records."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable
from typing import Any

import pytest

from leasehold.adapters.kafka import writer as kafka_writer
from leasehold.adapters.kafka.writer import TopicWriter
from leasehold.settings.environment import KafkaSettings

DEADLINE_S = 30.0


class Message:
    """As confluent_kafka gives one that was delivered."""

    def __init__(self, offset: int | None) -> None:
        self._offset = offset

    def topic(self) -> str:
        return "log"

    def partition(self) -> int:
        return 0

    def offset(self) -> int | None:
        return self._offset


class Producer:
    """Delivers one record a call, at the offsets that it was given."""

    def __init__(self, offsets: list[int | None]) -> None:
        self._offsets = deque(offsets)
        self._calls: deque[Callable[[Any, Any], None]] = deque()

    def produce(self, *_: object, on_delivery: Callable[[Any, Any], None], **__: object) -> None:
        self._calls.append(on_delivery)

    def poll(self, _timeout_s: float) -> None:
        self._calls.popleft()(None, Message(self._offsets.popleft()))

    def __len__(self) -> int:
        return len(self._calls)


@pytest.fixture
def writer(monkeypatch: pytest.MonkeyPatch) -> TopicWriter:
    monkeypatch.setattr(kafka_writer, "make_client", lambda *_: Producer([7, None]))
    made = TopicWriter(KafkaSettings(), "test")
    for token in ("first", "second"):
        made.send("log", 0, None, b"x", token=token)
    return made


def test_an_offset_that_the_broker_no_longer_knows_is_told_as_unknown(writer: TopicWriter) -> None:
    told = [delivery for _ in range(2) for delivery in writer.deliveries()]
    assert [(each.token, each.offset, each.error) for each in told] == [
        ("first", 7, None),
        ("second", -1, None),
    ]


def test_waiting_ends_with_something_to_tell_and_keeps_it(writer: TopicWriter) -> None:
    assert writer.wait(1)
    assert writer.wait(1)
    assert [each.token for each in writer.deliveries()] == ["first", "second"]
    assert not writer.wait(1), "nothing is under way"


@pytest.mark.parametrize("brokers", [1, 2])
def test_where_another_broker_may_lead_a_record_that_timed_out_ends_its_producer(
    brokers: int,
) -> None:
    """It may send to one that does not lead the partition, and never to another one."""
    nobody = KafkaSettings(bootstrap=",".join(["127.0.0.1:1"] * brokers))
    writer = TopicWriter(nobody, "test", delivery_timeout_ms=100)
    first = writer._producer
    writer.send("log", 0, None, b"x", token="first")
    give_up_s = time.monotonic() + DEADLINE_S
    while not writer.wait(DEADLINE_S):  # it hears of the connection that fails, too
        assert time.monotonic() < give_up_s
    (told,) = writer.deliveries()
    assert (told.token, bool(told.error)) == ("first", True)
    writer.send("log", 0, None, b"x", token="second")
    assert (writer._producer is first) == (brokers == 1)
    writer.close(0)
