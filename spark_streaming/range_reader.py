"""What a micro-batch of a run is, and how workers read it: ranges of rows topics' offsets.

Spark's Kafka source plans the micro-batches: how far each goes stands in the checkpoint before it
runs. Its rows are not asked for: the JVM makes a row of seven columns of every record, and hands it
on to Python, which costs as much as all that is done with it afterwards. A worker reads its range
from the broker itself.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from itertools import pairwise
from typing import Final, NamedTuple

from leasehold.adapters.kafka.reader import RECORDS_MAX, TO_THE_END_MS, TopicReader
from leasehold.model.errors import BusUnavailable
from leasehold.settings.environment import KafkaSettings

QUEUED_KBYTES_MAX: Final = 2 * 1024
"""What is read ahead is read beyond the range, too."""
POLL_S: Final = 1.0
SILENCE_POLLS_MAX: Final = 15
PIECE_OFFSETS: Final = 1_024
"""As many as one answer of the broker brings anyway."""
_VERSION: Final = "v1"


class Range(NamedTuple):
    """Offsets [first, until) of a partition."""

    topic: str
    partition: int
    first: int
    until: int


class Records(NamedTuple):
    """The records of one partition, in its order. An image is None where the row was deleted."""

    offsets: Sequence[int]
    keys: Sequence[bytes]
    images: Sequence[bytes | None]


class CheckpointUnreadable(OSError):
    """Spark's checkpoint does not say what a micro-batch is."""


def ranges_of(planned: Callable[[int], bytes | None], batch_id: int) -> list[Range]:
    """Return what Spark has planned as this micro-batch, by what it has noted of each before it
    ran. Raises CheckpointUnreadable."""
    ends = _ends(planned, batch_id)
    begins = _ends(planned, batch_id - 1) if batch_id else {}
    return [
        Range(topic, partition, begins.get((topic, partition), 0), until)
        for (topic, partition), until in sorted(ends.items())
        if until > begins.get((topic, partition), 0)
    ]


def windows_of(ranges: Sequence[Range], offsets_max: int) -> list[Range]:
    """Return the same offsets in the same order, in parts of at most so many; those of a range are
    of nearly one size."""
    assert offsets_max >= 1, offsets_max
    found = []
    for topic, partition, first, until in ranges:
        parts = -(-(until - first) // offsets_max)
        ends = [first + (until - first) * n // parts for n in range(parts + 1)]
        found += [Range(topic, partition, *ends) for ends in pairwise(ends)]
    return found


def pieces_of(ranges: Sequence[Range], offsets: int) -> list[Range]:
    """Return pieces of about so many offsets in all, from all over the ranges."""
    there = sum(each.until - each.first for each in ranges)
    every = max(PIECE_OFFSETS, there // max(1, offsets // PIECE_OFFSETS))
    found = []
    for topic, partition, first, until in ranges:
        begins = range(first, until, every)
        found += [Range(topic, partition, n, min(until, n + PIECE_OFFSETS)) for n in begins]
    return found


def _ends(planned: Callable[[int], bytes | None], batch_id: int) -> dict[tuple[str, int], int]:
    """Return the ends of a micro-batch: its file has a version, the batch's own settings, then a
    line for each source, which here is one."""
    try:
        content = planned(batch_id)
        if content is None:
            raise ValueError("there is no such file")
        version, _, line = content.decode("utf-8").splitlines()
        if version != _VERSION:
            raise ValueError(f"its version is {version!r}")
        return {
            (topic, int(partition)): int(offset)
            for topic, offsets in json.loads(line).items()
            for partition, offset in offsets.items()
        }
    except (OSError, ValueError, AttributeError, TypeError) as error:
        raise CheckpointUnreadable(
            f"Spark's file of micro-batch {batch_id} does not tell its offsets: {error}"
        ) from error


def records_of(kafka: KafkaSettings, wanted: Range) -> Iterator[Records]:
    """Yield the committed records of a range. Raises BusUnavailable."""
    reader = images_reader(kafka)
    try:
        yield from read_range(reader, wanted)
    finally:
        reader.close()


def images_reader(kafka: KafkaSettings, give_up: Callable[[], bool] = lambda: False) -> TopicReader:
    """Return a reader of rows topics. `give_up`: as of TopicReader."""
    return TopicReader(
        kafka,
        "leasehold-spark",
        read_committed=True,
        tell_ends=True,
        queued_kbytes_max=QUEUED_KBYTES_MAX,
        fetch_wait_ms=TO_THE_END_MS,
        give_up=give_up,
    )


def read_range(reader: TopicReader, wanted: Range) -> Iterator[Records]:
    """Yield the committed records of a range, by a reader made for it. Raises BusUnavailable."""
    topic, partition, first, until = wanted
    reader.start(topic, partition, max(first, reader.first_offset(topic, partition)))
    silent = 0
    while reader.next_offset(topic, partition) < until:
        messages = reader.messages(RECORDS_MAX, POLL_S)
        # What stands beyond was committed since. The range may end with marks of transactions,
        # which are no records: then its end is told.
        offsets = [message.offset() for message in messages]
        if offsets and offsets[-1] >= until:
            offsets = [offset for offset in offsets if offset < until]
            messages = messages[: len(offsets)]
        if messages:
            silent = 0
            yield Records(offsets, [m.key() for m in messages], [m.value() for m in messages])
        elif reader.ended.get((topic, partition), 0) >= until:
            break
        else:
            silent += 1
            if silent >= SILENCE_POLLS_MAX:
                raise BusUnavailable(f"Kafka sends nothing of partition {partition} of {topic}")
    reader.stop(topic, partition)
