"""What stood in the topic of acknowledgements before a candidate began is read once, aside; a
candidate that can't find it out hears for as long as before."""

from __future__ import annotations

from collections.abc import Sequence
from queue import Empty, SimpleQueue
from threading import Event
from typing import Any, NamedTuple

import pytest

from leasehold.adapters.codec.records import MessagePackCodec
from leasehold.adapters.kafka import ack_history
from leasehold.adapters.kafka.ack_history import AckHistoryReader
from leasehold.model.errors import LogStopped
from leasehold.model.records.acks import Ack, LeaseAck
from leasehold.replication.effects import ReadersFound
from leasehold.settings.environment import KafkaSettings

CODEC = MessagePackCodec()
SOON_S = 30.0
MINUTE_NS = 60_000_000_000


class Read(NamedTuple):
    offset: int
    value: bytes


class Topic:
    """What a reader is given: records, then nothing; `fails`: what it raises at its end."""

    def __init__(self) -> None:
        self.records: list[Read] = []
        self.first = 0
        self.fails: Exception | None = None
        self.started: list[int] = []
        self.idle = Event()
        self.closed = Event()


topic = Topic()


class Reader:
    def __init__(self, *_: Any, **__: Any) -> None:
        self._next = 0

    def first_offset(self, *_: Any) -> int:
        return topic.first

    def start(self, _topic: str, _partition: int, offset: int) -> None:
        topic.started.append(offset)
        self._next = offset

    def read(self, records_max: int, _timeout_s: float) -> Sequence[Read]:
        there = [each for each in topic.records if each.offset >= self._next][:records_max]
        if there:
            self._next = there[-1].offset + 1
        elif topic.fails is not None:
            raise topic.fails
        else:
            topic.idle.set()
        return there

    def close(self) -> None:
        topic.closed.set()


@pytest.fixture
def found(monkeypatch: pytest.MonkeyPatch) -> SimpleQueue[ReadersFound]:
    topic.__init__()  # type: ignore[misc]
    monkeypatch.setattr(ack_history, "TopicReader", Reader)
    monkeypatch.setattr(ack_history, "PAUSE_S", 0.0)
    return SimpleQueue()


def made(found: SimpleQueue[ReadersFound]) -> AckHistoryReader:
    return AckHistoryReader(KafkaSettings(), "demo.acks", "test", 0, found.put)


def said(node: str, minute: int, offset: int = 0) -> bytes:
    asked_ns = 1 + minute * MINUTE_NS
    return CODEC.encode(Ack(node, b"i", "replicant", offset, 1, 1, asked_ns, True, "", 0))


def fill(*values: bytes, first: int = 0) -> None:
    topic.records += [Read(first + number, value) for number, value in enumerate(values)]


def test_it_reads_up_to_where_the_owner_reads_on(found: SimpleQueue[ReadersFound]) -> None:
    other = CODEC.encode(LeaseAck("agent", 1, 2))
    fill(said("r1", 0), b"nothing known", other, said("r1", 50, 7), said("r1", 90, 9))
    history = made(found)
    history.begin(4)
    readers, span_ns = found.get(timeout=SOON_S)
    history.close()
    assert [(ack.node, ack.offset) for ack in readers] == [("r1", 7)]
    assert span_ns == 49 * MINUTE_NS, "50 minutes, less 2 %"
    assert topic.closed.is_set()


def test_what_stands_before_a_hole_is_left_out(found: SimpleQueue[ReadersFound]) -> None:
    fill(said("r2", 0), said("r1", 0))
    fill(said("r1", 50), said("r1", 60), first=3)
    history = made(found)
    history.begin(5)
    readers, span_ns = found.get(timeout=SOON_S)
    history.close()
    assert [ack.node for ack in readers] == ["r1"]
    assert span_ns == 10 * MINUTE_NS * 98 // 100


def test_of_a_long_topic_the_newest_are_read(
    found: SimpleQueue[ReadersFound], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ack_history, "RECORDS_MAX", 2)
    fill(*(said("r1", minute) for minute in range(5)))
    history = made(found)
    history.begin(5)
    assert found.get(timeout=SOON_S).span_ns == MINUTE_NS * 98 // 100
    history.close()
    assert topic.started == [3]


def test_an_empty_topic_has_nobody(found: SimpleQueue[ReadersFound]) -> None:
    topic.first = 9
    history = made(found)
    history.begin(9)
    assert found.get(timeout=SOON_S) == ((), 0)
    history.close()


def test_what_can_not_be_found_out_is_told_and_stops_nobody(
    found: SimpleQueue[ReadersFound], caplog: pytest.LogCaptureFixture
) -> None:
    fill(said("r1", 0))
    for fails, words in (
        (LogStopped("Offset 1 is not there.", topic="demo.acks", offset=1), "is not there"),
        (RuntimeError("anything else"), "anything else"),
    ):
        topic.fails = fails
        history = made(found)
        history.begin(2)
        assert history._thread is not None
        history._thread.join(SOON_S)
        assert words in caplog.records[-1].getMessage()
        assert "heard for an hour" in caplog.records[-1].getMessage()
        history.close()
    with pytest.raises(Empty):
        found.get_nowait()


def test_it_gives_up_in_time(
    found: SimpleQueue[ReadersFound],
    caplog: pytest.LogCaptureFixture,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(ack_history, "GIVE_UP_S", 0.0)
    fill(said("r1", 0))
    history = made(found)
    history.begin(3)
    assert history._thread is not None
    history._thread.join(SOON_S)
    history.close()
    assert "from offset 0 to 1 of 3" in caplog.text


def test_who_closes_does_not_wait_for_a_broker(
    found: SimpleQueue[ReadersFound], caplog: pytest.LogCaptureFixture
) -> None:
    history = made(found)
    history.begin(3)
    assert topic.idle.wait(SOON_S)
    history.close()
    assert topic.closed.wait(SOON_S)
    assert not caplog.records
    with pytest.raises(Empty):
        found.get_nowait()
