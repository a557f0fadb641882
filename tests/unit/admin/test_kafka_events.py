"""What a watcher makes of the topics' records: of those that it finds there the newest of each key,
then each as it comes."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from leasehold.adapters.codec.published import feed_message
from leasehold.adapters.codec.records import MessagePackCodec
from leasehold.adapters.kafka.reader import Record
from leasehold.admin import kafka_events
from leasehold.admin.kafka_events import KafkaEvents
from leasehold.admin.view import Event, Heard
from leasehold.catalog.descriptor import Descriptor
from leasehold.model.errors import LogStopped
from leasehold.model.records.events import VersionEvent
from leasehold.model.records.jobs import JobEvent
from leasehold.model.records.log import JobForgotten
from leasehold.model.topics import Topics
from leasehold.settings.environment import KafkaSettings
from tests.support.admin.view_events import NOW, SECOND, ack

TOPICS = Topics("db")
VERSIONS, JOBS = TOPICS.versions.name, TOPICS.jobs.name


class Reader:
    """Gives one of `portions` at each read; a name alone is that topic's end."""

    def __init__(self) -> None:
        self.portions: list[list[Record | str]] = []
        self.ended: dict[tuple[str, int], int] = {}
        self.started: dict[str, list[int]] = {}
        self.stops = False

    def offsets(self, topic: str, partition: int) -> tuple[int, int]:
        return 0, 9

    def next_offset(self, topic: str, partition: int) -> int:
        return 4

    def start(self, topic: str, partition: int, offset: int) -> None:
        self.started.setdefault(topic, []).append(offset)

    def read(self, records_max: int, timeout_s: float) -> list[Record]:
        if self.stops:
            self.stops = False
            raise LogStopped("deleted below")
        portion = self.portions.pop(0) if self.portions else []
        self.ended |= {(each, 0): 9 for each in portion if isinstance(each, str)}
        return [each for each in portion if isinstance(each, Record)]


@pytest.fixture
def reader(monkeypatch: pytest.MonkeyPatch) -> Reader:
    made = Reader()
    silent = SimpleNamespace(poll=lambda _: None, close=lambda: None)
    monkeypatch.setattr(kafka_events, "TopicReader", lambda *_, **__: made)
    monkeypatch.setattr(kafka_events, "TopicEndsReader", lambda *_: silent)
    monkeypatch.setattr(KafkaEvents, "_silent", lambda _: [])
    return made


def version(table: int, number: int) -> Record:
    body = Descriptor(table, f"t{table}", number, (), ()).to_wire()
    event = VersionEvent(table, f"t{table}", number, 1, 1, body, 0, "")
    return Record(VERSIONS, 0, number, b"%d" % table, feed_message(b"", event), ())


def job(number: int, lsn: int, *, gone: bool = False) -> Record:
    value = MessagePackCodec().encode(JobEvent(number, lsn, 1, {}))
    return Record(JOBS, 0, lsn, b"job/%d" % number, None if gone else value, ())


def told(events: list[Event]) -> list[tuple[Any, ...]]:
    return [
        (event.table_id, event.version) if isinstance(event, VersionEvent)
        else ("job", event.job_id, event.lsn) if isinstance(event, JobEvent)
        else ("forgotten", event.job_id)
        for event in events if isinstance(event, VersionEvent | JobEvent | JobForgotten)
    ]  # fmt: skip


def test_of_what_is_there_the_newest_of_each_key_is_told_at_the_end(reader: Reader) -> None:
    reader.portions = [
        [version(1, 1), version(2, 1), job(1, 5), job(2, 6)],
        [version(1, 2), job(1, 7), VERSIONS],
        [job(2, 8, gone=True), JOBS, job(1, 9)],
    ]
    events = KafkaEvents(KafkaSettings(), TOPICS)
    assert told(events.events(0)) == []
    assert events.not_read["versions"] == 5
    assert told(events.events(0)) == [(2, 1), (1, 2)]
    assert events.not_read.keys() == {"acks", "jobs", "log", "notices"}
    assert told(events.events(0)) == [("forgotten", 2), ("job", 1, 9)]


def test_behind_the_end_each_is_told_as_it_comes(reader: Reader) -> None:
    reader.portions = [[VERSIONS, JOBS], [version(1, 1), version(1, 2), job(1, 5), job(1, 6)]]
    events = KafkaEvents(KafkaSettings(), TOPICS)
    assert told(events.events(0)) == []
    assert told(events.events(0)) == [(1, 1), (1, 2), ("job", 1, 5), ("job", 1, 6)]


def test_only_what_is_told_is_decoded(reader: Reader, monkeypatch: pytest.MonkeyPatch) -> None:
    decoded: list[bytes] = []
    real = kafka_events.shown_event

    def decode(codec: MessagePackCodec, data: bytes, is_version: bool) -> Any:
        decoded.append(data)
        return real(codec, data, is_version)

    monkeypatch.setattr(kafka_events, "shown_event", decode)
    reader.portions = [[version(1, number) for number in range(1, 50)], [VERSIONS]]
    events = KafkaEvents(KafkaSettings(), TOPICS)
    events.events(0)
    assert told(events.events(0)) == [(1, 49)]
    assert len(decoded) == 1


def test_acks_are_not_told_again_where_it_begins_anew(reader: Reader) -> None:
    """An older one would take the place of what was read: of two the last one counts."""
    acks = TOPICS.acks.name
    reader.portions = [[Record(acks, 0, 4, b"r1", b"", ())]]
    events = KafkaEvents(KafkaSettings(), TOPICS)
    events.events(0)
    reader.stops = True
    events.events(0)
    events.events(0)
    assert reader.started[acks] == [0, 5]
    assert reader.started[VERSIONS] == [0, 0]


def test_whose_clock_is_behind_is_known_once_somebody_is_heard(
    reader: Reader, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Until then what stood there says who is silent by clocks alone, and all is not known."""
    monkeypatch.setattr(kafka_events, "unix_us", lambda: NOW)
    acks, encode = TOPICS.acks.name, MessagePackCodec().encode
    minutes = 300 * SECOND

    def said(node: str, offset: int, sent_us: int) -> Record:
        return Record(acks, 0, offset, node.encode(), encode(ack(node, sent_us=sent_us)), ())

    ends = [acks, VERSIONS, JOBS, TOPICS.log.name, TOPICS.notices.name]
    stood = [said("m1", 6, NOW - SECOND), said("r1", 7, NOW - minutes), said("m1", 8, NOW)]
    reader.portions = [[*stood, *ends], [], [said("m1", 9, NOW)]]
    events = KafkaEvents(KafkaSettings(), TOPICS)
    assert [each for each in events.events(0) if isinstance(each, Heard)] == []
    assert events.not_read == {"acks": -1}
    assert events.events(0) == []
    assert [each for each in events.events(0) if isinstance(each, Heard)] == [
        Heard("m1", 0),
        Heard("r1", -minutes),
    ]
    assert events.not_read == {}
