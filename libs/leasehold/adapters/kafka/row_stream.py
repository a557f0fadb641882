"""A subscriber's stream: row images of chosen tables (`client/subscriber.py`)."""

from __future__ import annotations

from leasehold.adapters.codec.published import restore_image
from leasehold.adapters.codec.records import restore_row_key
from leasehold.adapters.kafka.reader import TopicReader
from leasehold.events.rows import RowRecord
from leasehold.model.errors import BusUnavailable
from leasehold.model.topics import Topics
from leasehold.settings.environment import KafkaSettings


class KafkaRowStream:
    """The rows of the tables that are followed. For one thread."""

    def __init__(self, settings: KafkaSettings, topics: Topics) -> None:
        self._topics = topics
        self._reader = TopicReader(settings, "leasehold-rows", read_committed=True)
        self._table_ids: dict[str, int] = {}
        self._wanted: set[int] = set()

    def follow(self, table_id: int) -> None:
        self._wanted.add(table_id)

    def rows(self, timeout_s: float, rows_max: int) -> list[RowRecord]:
        """Return the records that have come, waiting up to `timeout_s`. Raises MalformedRequest for
        a record that is no row image: stepping over it would show an old row as the newest. Raises
        LogStopped when records were deleted under the reader."""
        if self._wanted:
            self._start_wanted()
        found = []
        for record in self._reader.read(rows_max, timeout_s):
            if record.key is None:
                continue
            key = restore_row_key(record.key)
            image = None if record.value is None else restore_image(key, record.value)
            found.append(RowRecord(self._table_ids[record.topic], key, image))
        return found

    def _start_wanted(self) -> None:
        for table_id in sorted(self._wanted):
            wanted = self._topics.rows(table_id)
            try:
                firsts = [
                    self._reader.first_offset(wanted.name, partition)
                    for partition in range(wanted.partitions)
                ]
            except BusUnavailable:
                # The changefeed makes the topic with the table's first row; looked for again.
                continue
            self._table_ids[wanted.name] = table_id
            self._wanted.discard(table_id)
            for partition, first in enumerate(firsts):
                self._reader.start(wanted.name, partition, first)

    def close(self) -> None:
        self._reader.close()
