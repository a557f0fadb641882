"""When a node's store begins from another node's snapshot."""

from __future__ import annotations

from collections.abc import Sequence
from typing import cast

import pytest

from leasehold.adapters.codec.records import MessagePackCodec
from leasehold.adapters.kafka.reader import Record, TopicReader
from leasehold.adapters.os.clock import unix_us
from leasehold.model.records.acks import Ack
from leasehold.model.records.log import LogPosition
from leasehold.model.topics import Topics
from leasehold.node import bootstrap
from leasehold.node.bootstrap import is_far_behind, serving_nodes

TOPICS = Topics("db")
CODEC = MessagePackCodec()


def test_an_empty_store_copies_where_one_with_data_catches_up() -> None:
    """A new replica once applied a whole load again, record by record, and became coherent too
    late for whoever opened it."""
    assert is_far_behind(LogPosition(), end=1_000)
    assert not is_far_behind(LogPosition(offset=9_000), end=10_000)
    assert is_far_behind(LogPosition(offset=9_000), end=20_000)


def test_a_log_that_has_hardly_begun_is_read() -> None:
    assert not is_far_behind(LogPosition(), end=20)


# ------------------------------------------------------------ who serves one


def said(node: str, lsn: int, *, sent_us: int = 0, serves: str = "host:1") -> bytes:
    return CODEC.encode(Ack(node, b"", "replicant", 0, 1, lsn, 0, True, serves, sent_us))


class AcksTopic:
    """A reader of acknowledgements: some are there, others come while it is read."""

    def __init__(self, there: Sequence[bytes], coming: Sequence[bytes]) -> None:
        self._end = len(there)
        self._values = [*there, *coming]
        self._next = 0
        self.clock_ns = 0

    def first_offset(self, topic: str, partition: int) -> int:
        return 0

    def end_offset(self, topic: str, partition: int) -> int:
        return self._end

    def start(self, topic: str, partition: int, offset: int) -> None:
        self._next = offset

    def next_offset(self, topic: str, partition: int) -> int:
        return self._next

    def read(self, records_max: int, timeout_s: float) -> list[Record]:
        if self._next == len(self._values):
            self.clock_ns += int(timeout_s * 1e9)
            return []
        place = self._next
        self._next += 1
        return [Record(TOPICS.acks.name, 0, place, None, self._values[place], ())]


def found(monkeypatch: pytest.MonkeyPatch, topic: AcksTopic) -> list[str]:
    monkeypatch.setattr(bootstrap, "boottime_ns", lambda: topic.clock_ns)
    peers = serving_nodes(cast(TopicReader, topic), TOPICS, "r9")
    return [ack.node for ack in peers]


@pytest.mark.parametrize("ahead_s", [-3_600, 0, 3_600])
def test_another_machines_clock_decides_nothing(
    monkeypatch: pytest.MonkeyPatch, ahead_s: int
) -> None:
    """A node whose own clock was ten seconds ahead once found nobody to begin from."""
    sent_us = unix_us() + ahead_s * 1_000_000
    topic = AcksTopic([], [said("r1", 5, sent_us=sent_us)])
    assert found(monkeypatch, topic) == ["r1"]


def test_who_is_heard_now_comes_first_then_who_was_heard_lately(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The furthest ahead of each; whoever was heard last minute may be gone, or just slow."""
    there = [said("gone", 99), said("r1", 5), said("r2", 5), b"\0", said("r9", 7)]
    topic = AcksTopic(there, [said("r1", 6), said("r2", 8), said("m1", 9, serves="")])
    assert found(monkeypatch, topic) == ["r2", "r1", "gone"]


@pytest.mark.parametrize(
    ("serves", "ends_ms"), [("", 1_000), ("host:1", 250)], ids=["nobody serves", "one does"]
)
def test_it_listens_for_a_second_or_until_one_is_heard_that_serves(
    monkeypatch: pytest.MonkeyPatch, serves: str, ends_ms: int
) -> None:
    topic = AcksTopic([], [said("r1", 5, serves=serves)])
    assert found(monkeypatch, topic) == (["r1"] if serves else [])
    assert topic.clock_ns == ends_ms * 1_000_000
