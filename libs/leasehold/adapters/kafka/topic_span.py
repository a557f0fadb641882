"""What a topic of one partition still has: from where, since when, and about how many bytes.

No client in use can ask a broker for the size of a topic (DescribeLogDirs). So it is taken from the
records: the mean size of some at its begin, in its middle and at its end, times their number. What
a broker keeps beside them (indexes, replicas, packing) is not in it.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Final, NamedTuple

from leasehold.adapters.kafka.reader import TO_THE_END_MS, TopicReader
from leasehold.adapters.os.clock import boottime_ns
from leasehold.model.errors import BusUnavailable
from leasehold.settings.environment import KafkaSettings

SAMPLE_RECORDS: Final = 32
SAMPLE_KBYTES_MAX: Final = 4 * 1024
"""Fetched ahead while a sample is taken, which is more than a sample of small records has."""
READ_SLICE_S: Final = 0.1


class TopicSpan(NamedTuple):
    """Offsets from `first` to below `end` are there. `first_us`: when the first record was sent, by
    its sender's clock, 0 for none. `bytes_about`: what the records have, about."""

    first: int
    end: int
    first_us: int
    bytes_about: int

    @property
    def records(self) -> int:
        return self.end - self.first


def read_spans(
    settings: KafkaSettings, topics: Iterable[str], timeout_s: float
) -> dict[str, TopicSpan]:
    """Return the spans of topics of one partition, all within `timeout_s`. Raises BusUnavailable,
    also for a topic that is not there; LogStopped for one that is shortened meanwhile."""
    give_up_ns = boottime_ns() + int(timeout_s * 1e9)
    reader = TopicReader(
        settings,
        "leasehold-span",
        queued_kbytes_max=SAMPLE_KBYTES_MAX,
        fetch_wait_ms=TO_THE_END_MS,
        give_up=lambda: boottime_ns() > give_up_ns,
    )
    try:
        return {topic: _read_span(reader, topic, give_up_ns) for topic in topics}
    finally:
        reader.close()


def _read_span(reader: TopicReader, topic: str, until: int) -> TopicSpan:
    left_s = max(0.1, (until - boottime_ns()) / 1e9)
    first, end = reader.offsets(topic, 0, timeout_s=left_s)
    if first >= end:
        return TopicSpan(first, end, 0, 0)
    samples = [
        each for at in sample_offsets(first, end) for each in _sample(reader, topic, at, end, until)
    ]
    mean = sum(size for size, _ in samples) / len(samples)
    return TopicSpan(first, end, samples[0][1], round(mean * (end - first)))


def sample_offsets(first: int, end: int) -> tuple[int, ...]:
    """Return where samples of a topic begin: each record is in one of them at most."""
    offsets = (first, (first + end) // 2, end - SAMPLE_RECORDS)
    chosen: list[int] = []
    for offset in offsets:
        if not chosen or offset >= chosen[-1] + SAMPLE_RECORDS:
            chosen.append(offset)
    return tuple(chosen)


def _sample(
    reader: TopicReader, topic: str, begin: int, end: int, until: int
) -> list[tuple[int, int]]:
    """Return up to SAMPLE_RECORDS records from `begin` on: of each its bytes, and when it was sent
    (unix µs). At least one; raises BusUnavailable where none comes in time."""
    found: list[tuple[int, int]] = []
    wanted = min(SAMPLE_RECORDS, end - begin)
    reader.start(topic, 0, begin)
    try:
        while len(found) < wanted:
            messages = reader.messages(wanted - len(found), READ_SLICE_S)
            found += [(_size_of(each), each.timestamp()[1] * 1_000) for each in messages]
            if messages or boottime_ns() < until:
                continue
            if not found:
                raise BusUnavailable(f"Kafka did not deliver offset {begin} of {topic} in time")
            break  # what else there was has been deleted, or is nothing that is delivered
    finally:
        reader.stop(topic, 0)
    return found


def _size_of(message: Any) -> int:
    size = len(message.key() or b"") + len(message.value() or b"")
    return size + sum(len(name) + len(value or b"") for name, value in message.headers() or ())
