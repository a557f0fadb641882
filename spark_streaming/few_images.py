"""Rows topics that hold so little that the driver reads them itself.

A streaming query takes one to two seconds, be there one image: planning, checkpoint files, tasks,
workers. The pure parts that Spark's workers run take 4 µs for each.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from leasehold.model.closing import Closing
from leasehold.settings.environment import KafkaSettings
from spark_streaming.range_reader import Range, Records, images_reader, read_range


class FewImages(Closing):
    """The images that the topics hold from their beginning to the end that they have now. For one
    thread."""

    def __init__(
        self, kafka: KafkaSettings, topics: Sequence[str], give_up: Callable[[], bool]
    ) -> None:
        self._topics = topics
        self._reader = images_reader(kafka, give_up)

    def close(self) -> None:
        self._reader.close()

    def ranges(self, offsets_max: int) -> list[Range] | None:
        """Return all of it; None where it is more than that. Offsets, of which a compacted topic
        has no more than records. Raises BusUnavailable."""
        found = self.all_ranges()
        return found if sum(each.until - each.first for each in found) <= offsets_max else None

    def all_ranges(self) -> list[Range]:
        """Return all of it, however much it is. Raises BusUnavailable."""
        found = []
        for topic in self._topics:
            for partition in range(self._reader.partitions(topic)):
                first, until = self._reader.offsets(topic, partition)
                if first < until:
                    found.append(Range(topic, partition, first, until))
        return found

    def records(self, wanted: Range) -> Iterator[Records]:
        """Yield the records of a range. Raises BusUnavailable."""
        return read_range(self._reader, wanted)
