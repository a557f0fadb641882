"""Goal: that a partition is asked of a broker which does not lead it is noticed, and it is read on.
Method: librdkafka's statistics as they come of a mock broker, and as they are of a stuck partition.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from contextlib import closing
from typing import Any

import pytest

from leasehold.adapters.kafka import reader as kafka_reader
from leasehold.adapters.kafka.client import STUCK_LOOKS, ClientWatch
from leasehold.adapters.kafka.reader import TopicReader
from leasehold.settings.environment import KafkaSettings
from tests.support.cluster.mock_broker import MockBroker

DEADLINE_S = 20.0
TOPIC = "log"


def statistics(broker: int, leader: int, fetch_state: str = "active") -> str:
    partition = {"partition": 0, "broker": broker, "leader": leader, "fetch_state": fetch_state}
    return json.dumps({"topics": {TOPIC: {"partitions": {"0": partition}}}})


@pytest.fixture
def watch() -> ClientWatch:
    return ClientWatch(KafkaSettings(bootstrap="127.0.0.1:1"), "test")


def test_a_partition_that_stays_with_one_that_does_not_lead_it_is_stuck(watch: ClientWatch) -> None:
    for _ in range(STUCK_LOOKS):
        assert not watch.stuck
        watch.look_at_statistics(statistics(2, 3))
    assert watch.stuck == "partition 0 of log is asked of one that does not lead it"
    watch.starts_anew(watch.stuck)
    watch.look_at_statistics(statistics(2, 3))
    assert not watch.stuck, "a new client has its time, too"


@pytest.mark.parametrize("between", [statistics(3, 3), statistics(2, 3, "none"), "{}"])
def test_one_that_moves_or_is_not_fetched_is_not_stuck(watch: ClientWatch, between: str) -> None:
    for _ in range(5):
        for _ in range(STUCK_LOOKS - 1):
            watch.look_at_statistics(statistics(2, 3))
        watch.look_at_statistics(between)
    assert not watch.stuck


@pytest.fixture
def broker(monkeypatch: pytest.MonkeyPatch) -> MockBroker:
    monkeypatch.setattr(kafka_reader, "STATISTICS_MS", 100)
    made = MockBroker()
    for number in range(3):
        made.producer.produce(TOPIC, b"%d" % number, partition=0)
    made.flush()
    return made


def several(broker: MockBroker) -> KafkaSettings:
    """Settings by which somebody else could lead."""
    return KafkaSettings(bootstrap=",".join([broker.settings.bootstrap] * 2))


def read_until(reader: TopicReader, is_met: Callable[[], bool]) -> list[bytes | None]:
    """Return the values of what is read until then."""
    values: list[bytes | None] = []
    give_up_s = time.monotonic() + DEADLINE_S
    while not is_met():
        assert time.monotonic() < give_up_s, f"{values} in {DEADLINE_S} s"
        values += [record.value for record in reader.read(100, 0.05)]
    return values


def test_a_reader_of_a_stuck_partition_begins_anew_where_it_was(
    broker: MockBroker, monkeypatch: pytest.MonkeyPatch
) -> None:
    told: list[dict[str, Any]] = []
    look = ClientWatch.look_at_statistics

    def look_and_keep(watch: ClientWatch, text: str) -> None:
        told.append(json.loads(text))
        look(watch, text)

    monkeypatch.setattr(ClientWatch, "look_at_statistics", look_and_keep)
    with closing(TopicReader(several(broker), "test")) as reader:
        reader.start(TOPIC, 0, 0)
        values: list[bytes | None] = []
        values += read_until(reader, lambda: reader.next_offset(TOPIC, 0) == 3)
        values += read_until(reader, lambda: any(TOPIC in each["topics"] for each in told))
        seen = told[-1]["topics"][TOPIC]["partitions"]["0"]
        assert (seen["fetch_state"], seen["broker"]) == ("active", seen["leader"])
        first = reader._consumer
        for _ in range(STUCK_LOOKS):
            reader._watch.look_at_statistics(statistics(2, 3))
        assert reader._watch.stuck
        broker.producer.produce(TOPIC, b"3", partition=0)
        broker.flush()
        values += read_until(reader, lambda: reader.next_offset(TOPIC, 0) == 4)
        assert values == [b"0", b"1", b"2", b"3"]
        assert reader._consumer is not first
        assert not reader._watch.stuck


def test_who_only_asks_gathers_no_statistics(broker: MockBroker) -> None:
    """They come with what librdkafka has to tell, which somebody has to take."""
    with closing(TopicReader(several(broker), "test")) as reader:
        taken: list[str] = []
        reader._options["stats_cb"] = taken.append
        reader._make_anew("the test has another callback")
        give_up_s = time.monotonic() + DEADLINE_S
        while not taken:
            assert time.monotonic() < give_up_s
            assert reader.end_offset(TOPIC, 0) == 3
