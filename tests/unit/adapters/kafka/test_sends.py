"""What a node puts on topics other than the log: nothing of it holds up the node's loop."""

from __future__ import annotations

import logging
from typing import Any

import pytest

from leasehold.adapters.codec.published import RESULTS_BYTES_MAX
from leasehold.adapters.codec.records import MessagePackCodec
from leasehold.adapters.kafka.client import MessageTooLarge
from leasehold.adapters.kafka.sends import Sends
from leasehold.adapters.kafka.writer import Delivery, TopicWriter
from leasehold.model.errors import BusUnavailable
from leasehold.model.records.acks import Ack
from leasehold.model.records.requests import Conflict, Outcome, Result, ResultBatch
from leasehold.model.topics import MESSAGE_BYTES_MAX
from leasehold.replication.effects import Send, Topic
from leasehold.settings.environment import KafkaSettings

CODEC = MessagePackCodec()
TOPICS = {word: f"db.{word}" for word in (Topic.RESULTS, Topic.CONFLICTS, Topic.ACKS)}


class Broker:
    """A writer whose queue has room for so many more messages; `flush` is not among its words."""

    def __init__(self, room: int = 100) -> None:
        self.room = room
        self.tries = 0
        self.queued: list[tuple[str, int, bytes, Any]] = []
        self.news: list[Delivery] = []

    def send(
        self, topic: str, partition: int, _key: bytes, data: bytes, _headers: Any, token: Any
    ) -> None:
        self.tries += 1
        if len(data) > MESSAGE_BYTES_MAX:
            raise MessageTooLarge("too large")
        if not self.room:
            raise BusUnavailable("the queue is full")
        self.room -= 1
        self.queued.append((topic, partition, data, token))

    def deliver(self, error: str | None = None, *, too_large: bool = False) -> None:
        """What becomes of all that is queued."""
        for topic, partition, _, token in self.queued:
            self.news.append(Delivery(token, topic, partition, 0, error, too_large))
        self.queued.clear()

    def deliveries(self) -> list[Delivery]:
        news, self.news = self.news, []
        return news


def sends_to(broker: Broker) -> Sends:
    return Sends(broker, TOPICS)  # type: ignore[arg-type]


def batch(results: int, characters: int = 1) -> ResultBatch:
    words = "漢" * characters
    refused = Outcome(1, 0, 0, 5, True, "23505", words, {"key": words})
    return ResultBatch(tuple(Result(bytes([n] * 16), 7, refused) for n in range(results)))


def answer(record: Any, token: int = 1) -> Send:
    return Send(Topic.RESULTS, 3, b"", record, token)


def test_an_answer_that_finds_no_room_is_tried_once_a_turn() -> None:
    """Until there is room; nothing waits for that, and what comes behind it stays behind it."""
    broker = Broker(room=0)
    sends = sends_to(broker)
    sends.send(answer(batch(1), 1))
    sends.send(answer(batch(1), 2))
    for turn in range(5):
        assert sends.is_waiting
        assert (sends.take_delivered(), broker.tries) == ([], turn + 2)
    broker.room = 100
    assert sends.take_delivered() == []
    assert not sends.is_waiting
    broker.deliver()
    assert sends.take_delivered() == [1, 2]


def test_an_answer_that_was_not_confirmed_is_sent_again() -> None:
    """L7: it is given until the broker has it; an acknowledgement comes again by itself."""
    broker = Broker()
    sends = sends_to(broker)
    ack = Ack("n", b"i", "master", 1, 1, 1, 0, True, "", 0)
    sends.send(answer(batch(1)))
    sends.send(Send(Topic.ACKS, 0, b"n", ack, 0))
    broker.deliver("timed out")
    assert sends.take_delivered() == []
    assert [topic for topic, *_ in broker.queued] == ["db.results"]
    broker.deliver()
    assert sends.take_delivered() == [1]


def test_results_are_split_by_bytes() -> None:
    """Eleven refusals that name a large key, asked for again at once: each comes, in messages that
    Kafka takes, and they count as given when the broker has the last of them."""
    broker = Broker()
    sends = sends_to(broker)
    told = batch(11, 131_000)
    assert len(CODEC.encode(told)) > MESSAGE_BYTES_MAX
    sends.send(answer(told))
    assert len(broker.queued) > 5
    assert all(len(data) <= RESULTS_BYTES_MAX for *_, data, _ in broker.queued)
    found = [r for *_, data, _ in broker.queued for r in CODEC.decode(data).results]
    assert found == list(told.results)
    last = broker.queued.pop()
    broker.deliver()
    assert sends.take_delivered() == []
    broker.queued.append(last)
    broker.deliver()
    assert sends.take_delivered() == [1]


@pytest.mark.parametrize("knows", ["client", "broker"])
def test_what_can_never_be_sent_is_dropped_and_named(
    knows: str, caplog: pytest.LogCaptureFixture
) -> None:
    """One line, and what comes behind it is sent: who waits for it asks again (T5)."""
    broker = Broker()
    sends = sends_to(broker)
    size = MESSAGE_BYTES_MAX + 1 if knows == "client" else 10
    conflict = Conflict(b"r" * 16, 1, 7, "t", "application/json", b"x" * size, None, "words")
    with caplog.at_level(logging.ERROR, "leasehold.node"):
        sends.send(Send(Topic.CONFLICTS, -1, b"r" * 16, conflict, 1))
        broker.deliver("too large", too_large=True)
        sends.send(answer(batch(1), 2))
        broker.deliver()
        assert sends.take_delivered() == [1, 2]
    assert not sends.is_waiting
    (line,) = caplog.messages
    assert "Conflict" in line
    assert "too large" in line


def test_what_a_deposed_master_had_to_give_is_its_successors() -> None:
    """L7: numbers of another term's answers mean others."""
    broker = Broker(room=1)
    sends = sends_to(broker)
    sends.send(answer(batch(1), 1))
    sends.send(answer(batch(1), 2))
    sends.end_term()
    broker.room = 10
    sends.send(answer(batch(2), 1))
    assert len(broker.queued) == 2
    one, other = broker.queued
    broker.queued[:] = [one]
    broker.deliver()
    assert sends.take_delivered() == []
    broker.queued[:] = [other]
    broker.deliver()
    assert sends.take_delivered() == [1]


def test_kafkas_client_says_what_it_will_never_take() -> None:
    """The real one, without a broker: its own limit refuses the message at once."""
    writer = TopicWriter(KafkaSettings(bootstrap="127.0.0.1:1"), "test")
    try:
        sends = Sends(writer, TOPICS)
        conflict = Conflict(b"r", 1, 7, "t", "", b"x" * (MESSAGE_BYTES_MAX + 1), None, "words")
        sends.send(Send(Topic.CONFLICTS, -1, b"r", conflict, 1))
        assert sends.take_delivered() == [1]
        assert not sends.is_waiting
    finally:
        writer.close(0)
