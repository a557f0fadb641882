"""Goal: an agent hears of every version, however often it is told that it lacks one.

Method: librdkafka's own mock of a broker, in this process, with more events than are read at once.
"""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from confluent_kafka import Producer

from leasehold.adapters.codec.records import MessagePackCodec
from leasehold.adapters.kafka import version_stream
from leasehold.adapters.kafka.version_stream import KafkaVersionStream
from leasehold.adapters.os.clock import boottime_ns
from leasehold.model.records.events import VersionEvent
from leasehold.model.topics import Topics
from tests.support.cluster.mock_broker import MockBroker

TOPICS = Topics("demo")
EVENTS = 400
SOON_NS = 30_000_000_000


class Versions:
    """The topics of version events on a mock of a broker."""

    def __init__(self) -> None:
        self._broker = MockBroker()
        self.settings = self._broker.settings
        self._producer: Producer = self._broker.producer
        self._codec = MessagePackCodec()
        for topic in (TOPICS.versions.name, TOPICS.notices.name):
            self._producer.produce(topic, b"\xc1", b"", 0)
        self._broker.flush()

    def publish(self, *versions: int) -> None:
        for version in versions:
            event = VersionEvent(7, "t", version, 0, 0, {}, 0, "")
            self._producer.produce(TOPICS.versions.name, self._codec.encode(event), b"7", 0)
        self._broker.flush()


@pytest.fixture
def versions() -> Versions:
    return Versions()


@pytest.fixture
def stream(versions: Versions) -> Iterator[KafkaVersionStream]:
    names = (topic.name for topic in (TOPICS.versions, TOPICS.notices, TOPICS.acks))
    made = KafkaVersionStream(versions.settings, *names)
    yield made
    made.close()


def read_until(stream: KafkaVersionStream, last: int, *, rewinds: bool) -> list[int]:
    """Return the versions that come until `last` does, with a rewind before each look."""
    give_up_ns, found = boottime_ns() + SOON_NS, list[int]()
    while last not in found:
        assert boottime_ns() < give_up_ns, f"version {last} has not come: {sorted(set(found))[-3:]}"
        if rewinds:
            stream.rewind()
        found += [event.version for event in stream.events(0.05)]
    return found


def test_rewinds_do_not_keep_a_reader_from_the_end(
    versions: Versions, stream: KafkaVersionStream, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As when the ledger has a newer version of a table that is asked for a hundred times a
    second."""
    monkeypatch.setattr(version_stream, "EVENTS_MAX", 20)
    monkeypatch.setattr(version_stream, "REWIND_EVERY_NS", 0)
    versions.publish(*range(1, EVENTS + 1))
    found = read_until(stream, EVENTS, rewinds=True)
    assert found == list(range(1, EVENTS + 1)), "each once"


def test_who_is_at_the_end_reads_all_once_more(
    versions: Versions, stream: KafkaVersionStream, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(version_stream, "REWIND_EVERY_NS", 0)
    versions.publish(1, 2)
    read_until(stream, 2, rewinds=False)
    again = read_until(stream, 1, rewinds=True)
    versions.publish(3)
    assert 1 in again
    assert 3 in read_until(stream, 3, rewinds=False), "and goes on behind it"


def test_the_topic_is_read_through_once_in_a_while_only(
    versions: Versions, stream: KafkaVersionStream, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where what is missing has not been published, a thousand agents would read nothing else."""
    now_ns = [1]
    monkeypatch.setattr(version_stream, "boottime_ns", lambda: now_ns[0])
    versions.publish(1)
    read_until(stream, 1, rewinds=False)
    while stream._reads_through:
        stream.events(0.05)
    stream.rewind()
    assert [event for _ in range(5) for event in stream.events(0.05)] == []
    now_ns[0] += version_stream.REWIND_EVERY_NS
    assert read_until(stream, 1, rewinds=False) == [1]
