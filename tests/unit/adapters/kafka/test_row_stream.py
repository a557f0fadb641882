"""Topics of rows that may not be read are told of, and keep nobody else's rows back."""

from __future__ import annotations

import pytest

from leasehold.adapters.kafka import row_stream
from leasehold.adapters.kafka.access import AccessDenied
from leasehold.adapters.kafka.client import TopicMissing
from leasehold.adapters.kafka.reader import Record
from leasehold.adapters.kafka.row_stream import KafkaRowStream
from leasehold.model.errors import BusUnavailable
from leasehold.model.topics import Topics
from leasehold.settings.environment import KafkaSettings

TOPICS = Topics("db")


class Reader:
    """A reader of topics, of which `away` says why one can't be read."""

    def __init__(self) -> None:
        self.away: dict[str, BusUnavailable] = {}
        self.started: set[str] = set()
        self.reads = 0

    def first_offset(self, topic: str, partition: int) -> int:
        if topic in self.away:
            raise self.away[topic]
        return 0

    def start(self, topic: str, partition: int, offset: int) -> None:
        self.started.add(topic)

    def read(self, records_max: int, timeout_s: float) -> list[Record]:
        self.reads += 1
        return []


def test_one_that_is_denied_is_told_of_and_holds_up_no_other(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    reader, now_ns = Reader(), [1]
    monkeypatch.setattr(row_stream, "TopicReader", lambda *_, **__: reader)
    monkeypatch.setattr(row_stream, "boottime_ns", lambda: now_ns[0])
    denied, missing, there = (TOPICS.rows(table).name for table in (1, 2, 3))
    reader.away = {denied: AccessDenied("no"), missing: TopicMissing("not there")}
    rows = KafkaRowStream(KafkaSettings(), TOPICS)
    for table in (1, 2, 3):
        rows.follow(table)
    with pytest.raises(AccessDenied):
        rows.rows(0, 10)
    assert reader.started == {there}
    assert rows.rows(0, 10) == []
    assert reader.reads == 1, "others are read before it is looked for again"
    now_ns[0] += row_stream.DENIED_AGAIN_NS
    del reader.away[denied]
    assert rows.rows(0, 10) == []
    assert reader.started == {there, denied}
