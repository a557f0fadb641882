"""What a TopicWriter tells of what became of its records."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from typing import Any

import pytest

from leasehold.adapters.kafka import writer as kafka_writer
from leasehold.adapters.kafka.writer import TopicWriter
from leasehold.settings.environment import KafkaSettings


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
