"""Goal: what the harness does to a broker's disk, its clock and its topics befalls a real one, and
is over when it is mended.

Method: the broker of a harness's cluster, alone, and the harness's own injection.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import pytest
from confluent_kafka import Message, Producer
from confluent_kafka.admin import AdminClient, NewTopic

from leasehold.adapters.kafka.whole_topic import read_to_end
from leasehold.model.topics import Topics
from tests.faults.cluster import FaultCluster, make_preloads
from tests.faults.injection import FULL_FROM_BYTES, Injection
from tests.faults.kinds import BROKER_FULL
from tests.faults.links import Links
from tests.faults.parts import KAFKA, SETS
from tests.faults.schedule import Event
from tests.support.cluster.preloaded import find_compiler
from tests.support.cluster.system_clock import SKIPPED
from tests.support.cluster.system_cluster import until

DEADLINE_S: Final = 120
DAY_S: Final = 86_400
TOPIC: Final = "kept"
CHUNKS: Final = (b"\xc1 first", b"\xc1 second")


@pytest.fixture
def cluster(tmp_path: Path) -> Iterator[FaultCluster]:
    parts = SETS["light"]
    preloads = make_preloads(tmp_path, parts)
    made = FaultCluster(tmp_path / "cluster", parts, Links(), preloads)
    with made:
        made.start(KAFKA)
        yield made


def make_topic(cluster: FaultCluster, **config: str) -> None:
    admin = AdminClient(cluster.kafka_settings.librdkafka())
    admin.create_topics([NewTopic(TOPIC, 1, 1, config=config)])[TOPIC].result(DEADLINE_S)


class Writer:
    """Writes records; keeps what the broker has acknowledged, with its times in ms."""

    def __init__(self, cluster: FaultCluster, topic: str = TOPIC) -> None:
        self._topic = topic
        self._producer = Producer({**cluster.kafka_settings.librdkafka(), "acks": "all"})
        self.kept: list[bytes] = []
        self.times_ms: list[int] = []

    def send(self, data: bytes) -> None:
        self._producer.produce(self._topic, data, on_delivery=self._told)

    def write(self, data: bytes) -> None:
        """Write one, which is taken."""
        self.send(data)
        assert self._producer.flush(DEADLINE_S) == 0

    def hear(self) -> None:
        """Take what the broker has said meanwhile."""
        self._producer.poll(0)

    def give_up(self) -> None:
        """Send nothing more of what was not taken."""
        self._producer.purge()
        self._producer.flush(DEADLINE_S)

    def _told(self, error: object, message: Message) -> None:
        if error is None:
            self.kept.append(message.value() or b"")
            self.times_ms.append(message.timestamp()[1])


def test_a_broker_whose_disk_is_full_ends_and_has_what_it_has_taken(
    cluster: FaultCluster, tmp_path: Path
) -> None:
    """It takes nothing that it can't keep. (Random bytes, which no compression makes shorter.)"""
    injection, full = Injection(cluster, tmp_path), Event(0, BROKER_FULL, KAFKA, 0)
    make_topic(cluster)
    writer = Writer(cluster)
    writer.write(b"before")
    injection.begin(full)
    for _ in range(3):
        writer.send(os.urandom(FULL_FROM_BYTES // 2))

    def has_ended() -> bool:
        writer.hear()
        return not cluster.is_running(KAFKA)

    until(has_ended, "the broker's end")
    writer.give_up()
    injection.mend(full)
    until(lambda: cluster.is_ready(KAFKA), "the broker")
    there = [each.value for each in read_to_end(cluster.kafka_settings, "judge", TOPIC)]
    assert set(writer.kept) <= set(there)
    assert there[0] == b"before"
    writer.write(b"after")


def test_a_brokers_clock_is_set(cluster: FaultCluster, tmp_path: Path) -> None:
    """As it stamps records of a topic that says so: the host's time, a day on, a day back."""
    if find_compiler() is None:
        pytest.skip(SKIPPED)
    injection = Injection(cluster, tmp_path)
    make_topic(cluster, **{"message.timestamp.type": "LogAppendTime"})
    writer = Writer(cluster)
    writer.write(b"")
    for ahead_s in (DAY_S, -DAY_S):
        jump = Event(0, "broker_clock", KAFKA, 0, {"ahead_s": ahead_s})
        injection.begin(jump)
        writer.write(b"")
        injection.mend(jump)
        writer.write(b"")
    first_ms = writer.times_ms[0]
    days = [round((each_ms - first_ms) / (1_000 * DAY_S)) for each_ms in writer.times_ms]
    assert days == [0, 1, 0, -1, 0]


def test_what_spark_has_sent_comes_once_more(cluster: FaultCluster, tmp_path: Path) -> None:
    """As it was, behind what was sent meanwhile."""
    cluster.create_topics()
    topic = Topics(cluster.cluster_settings.database).backfill.name
    writer, injection = Writer(cluster, topic), Injection(cluster, tmp_path)
    for chunk in CHUNKS:
        writer.write(chunk)
    late = Event(0, "late_chunks", "backfill", 0)
    injection.begin(late)
    writer.write(b"\xc1 meanwhile")
    injection.mend(late)
    there = [each.value for each in read_to_end(cluster.kafka_settings, "judge", topic)]
    assert there == [*CHUNKS, b"\xc1 meanwhile", *CHUNKS]
    assert injection.effects["late_chunks"] == len(CHUNKS)
