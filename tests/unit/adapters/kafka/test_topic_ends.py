"""Goal: asking where topics end costs as many requests for thousands of tables as for one, and
nobody waits for the answers."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from threading import Event
from typing import Any, ClassVar

import pytest
from confluent_kafka import KafkaError

from leasehold.adapters.kafka import topic_ends
from leasehold.adapters.kafka.reader import END, FIRST
from leasehold.adapters.kafka.topic_ends import ASK_EVERY_NS, ROWS_EVERY_NS, TopicEndsReader
from leasehold.model.errors import BusUnavailable, ConfigurationError
from leasehold.model.topics import Topics
from leasehold.settings.environment import KafkaSettings

TOPICS = Topics("demo")
TABLES = range(1, 2_001)
QUEUES = {TOPICS.log.name, TOPICS.requests.name, TOPICS.backfill.name, TOPICS.dead_letter.name}
SOON_S = 30.0


class Reader:
    """Answers with `offset`, or as `errors` says by the last part of a topic's name, once it may;
    `away`: nobody answers."""

    offset = 30
    errors: ClassVar[dict[str, int]] = {}
    away = False
    fails: ClassVar[list[Exception]] = []
    """What making one raises, the last first."""

    def __init__(self, *_: Any, **__: Any) -> None:
        self.closed = Event()
        if self.fails:
            raise self.fails.pop()

    def offsets_of(
        self, places: Collection[tuple[str, int]], spec: int, timeout_s: float
    ) -> dict[tuple[str, int], Any]:
        world.asked.append((spec, {topic for topic, _ in places}))
        assert world.may_answer.wait(SOON_S)
        if self.away:
            raise BusUnavailable("Kafka at nowhere: asking where topics begin and end failed")
        return {place: self._told(place[0], spec) for place in places}

    def _told(self, topic: str, spec: int) -> int | KafkaError:
        code = self.errors.get(topic.rpartition(".")[2])
        if code is not None:
            return KafkaError(code)
        return self.offset if spec == END else self.offset - 7

    def unavailable(self, doing: str, error: KafkaError) -> BusUnavailable:
        return BusUnavailable(f"{doing}: {error.name()}")

    def close(self) -> None:
        world.closed.set()


class World:
    def __init__(self) -> None:
        self.now_ns = 10 * ROWS_EVERY_NS
        self.asked: list[tuple[int, set[str]]] = []
        self.may_answer = Event()
        self.closed = Event()


world = World()


@pytest.fixture
def ends(monkeypatch: pytest.MonkeyPatch) -> Iterator[TopicEndsReader]:
    world.__init__()  # type: ignore[misc]
    world.may_answer.set()
    monkeypatch.setattr(topic_ends, "boottime_ns", lambda: world.now_ns)
    monkeypatch.setattr(topic_ends, "TopicReader", Reader)
    monkeypatch.setattr(Reader, "errors", {})
    made = TopicEndsReader(KafkaSettings(), TOPICS, "test")
    yield made
    world.may_answer.set()
    made.close()
    assert world.closed.wait(SOON_S) or not world.asked


def polled(ends: TopicEndsReader, tables: Collection[int]) -> dict[str, int]:
    """Poll until an answer has come."""
    pause = Event()
    for _ in range(int(SOON_S / 0.01)):
        if (found := ends.poll(tables)) is not None:
            return found
        pause.wait(0.01)
    raise AssertionError("no answer")


def test_two_requests_however_many_tables(ends: TopicEndsReader) -> None:
    world.may_answer.clear()
    assert ends.poll(TABLES) is None
    world.now_ns += 10 * ASK_EVERY_NS
    assert ends.poll(TABLES) is None, "not answered yet: nobody waits, nobody asks again"
    world.now_ns -= 10 * ASK_EVERY_NS
    world.may_answer.set()
    found = polled(ends, TABLES)
    rows = {TOPICS.rows(table).name for table in TABLES}
    assert world.asked == [(FIRST, rows), (END, rows | QUEUES)]
    assert found["log"] == 30
    partitions = TOPICS.rows(1).partitions
    assert found["rows/2000"] == 7 * partitions, "as many as lie between both offsets"
    assert len(found) == 4 + len(TABLES)


def test_rows_are_asked_for_less_often_than_queues(ends: TopicEndsReader) -> None:
    polled(ends, TABLES)
    world.now_ns += ASK_EVERY_NS
    polled(ends, TABLES)
    assert world.asked[2:] == [(FIRST, set()), (END, QUEUES)]
    world.now_ns += ROWS_EVERY_NS
    assert "rows/7" in polled(ends, TABLES)


def test_a_table_without_a_topic_is_left_out_and_an_absent_broker_is_told(
    ends: TopicEndsReader, monkeypatch: pytest.MonkeyPatch
) -> None:
    Reader.errors["7"] = KafkaError.UNKNOWN_TOPIC_OR_PART
    assert polled(ends, (7, 8)).keys() == {"log", "requests", "backfill", "dead-letter", "rows/8"}
    Reader.errors["requests"] = KafkaError.NOT_LEADER_FOR_PARTITION
    world.now_ns += ASK_EVERY_NS
    assert "requests" not in polled(ends, ()), "its leader comes back"
    Reader.errors["log"] = KafkaError.UNKNOWN_TOPIC_OR_PART
    world.now_ns += ASK_EVERY_NS
    with pytest.raises(BusUnavailable, match="asking where topics end"):
        polled(ends, ())
    Reader.errors.clear()
    monkeypatch.setattr(Reader, "away", True)
    world.now_ns += ASK_EVERY_NS
    with pytest.raises(BusUnavailable, match="nowhere"):
        polled(ends, ())
    monkeypatch.setattr(Reader, "away", False)
    world.now_ns += ASK_EVERY_NS
    assert polled(ends, ())["log"] == 30, "it asks on"


def test_whatever_it_runs_into_is_raised_where_it_was_asked(
    ends: TopicEndsReader, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Settings that only Kafka's client finds wrong, and a fault of this program's."""
    refused = ConfigurationError("The settings for Kafka can't be used: no such file")
    monkeypatch.setattr(Reader, "fails", [RuntimeError("a fault"), refused])
    with pytest.raises(ConfigurationError, match="no such file"):
        polled(ends, ())
    world.now_ns += ASK_EVERY_NS
    with pytest.raises(BusUnavailable, match="RuntimeError: a fault"):
        polled(ends, ())
    world.now_ns += ASK_EVERY_NS
    assert polled(ends, ())["log"] == 30, "it asks on"
