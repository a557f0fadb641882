"""A subscriber's stream: row images of chosen tables (`client/subscriber.py`)."""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping
from typing import Final

from leasehold.adapters.codec.published import restore_image
from leasehold.adapters.codec.records import restore_row_key
from leasehold.adapters.kafka.access import AccessDenied
from leasehold.adapters.kafka.reader import Record, TopicReader
from leasehold.adapters.os.clock import boottime_ns
from leasehold.events.rows import RowRecord
from leasehold.model.errors import BusUnavailable, MalformedRequest
from leasehold.model.topics import Topics
from leasehold.settings.environment import KafkaSettings

LOOK_AGAIN_NS: Final = 100_000_000
"""Between two looks for topics that are not there: each is a question to a broker or two, which
rows of other tables wait for."""
DENIED_AGAIN_NS: Final = 5_000_000_000
"""The same for topics that may not be read, of which whoever reads is told each time."""


def take_rows(records: deque[Record], table_ids: Mapping[str, int]) -> list[RowRecord]:
    """Take records from the front, and return what they say up to one that is no row image. Raises
    MalformedRequest for that one once it is the first, and takes it, too."""
    found: list[RowRecord] = []
    while records:
        record = records[0]
        try:
            if record.key is not None:
                key = restore_row_key(record.key)
                image = None if record.value is None else restore_image(key, record.value)
                found.append(RowRecord(table_ids[record.topic], key, image))
        except MalformedRequest:
            if found:
                break
            records.popleft()
            raise
        records.popleft()
    return found


class KafkaRowStream:
    """The rows of the tables that are followed. For one thread."""

    def __init__(self, settings: KafkaSettings, topics: Topics) -> None:
        self._topics = topics
        self._reader = TopicReader(settings, "leasehold-rows", read_committed=True)
        self._table_ids: dict[str, int] = {}
        self._wanted: set[int] = set()
        self._look_ns = 0
        self._fetched: deque[Record] = deque()  # read, and not given out

    def follow(self, table_id: int) -> None:
        self._wanted.add(table_id)
        self._look_ns = 0

    def rows(self, timeout_s: float, rows_max: int) -> list[RowRecord]:
        """Return the records that have come, waiting up to `timeout_s`. Raises MalformedRequest for
        a record that is no row image: stepping over it in silence might show an old row as the
        newest. What came before it is returned first, and the next call goes on behind it. Raises
        LogStopped when records were deleted under the reader, and AccessDenied every few seconds
        while the rows of a table may not be read; those of the others come in between."""
        if self._wanted and boottime_ns() >= self._look_ns:
            denied = self._start_wanted()
            pause_ns = LOOK_AGAIN_NS if denied is None else DENIED_AGAIN_NS
            self._look_ns = boottime_ns() + pause_ns
            if denied is not None:
                raise denied
        if not self._fetched:
            self._fetched.extend(self._reader.read(rows_max, timeout_s))
        return take_rows(self._fetched, self._table_ids)

    def _start_wanted(self) -> AccessDenied | None:
        """Begin to read the topics that are there, and return what keeps one from being read."""
        denied = None
        for table_id in sorted(self._wanted):
            wanted = self._topics.rows(table_id)
            try:
                firsts = [
                    self._reader.first_offset(wanted.name, partition)
                    for partition in range(wanted.partitions)
                ]
            except AccessDenied as error:
                denied = error
                continue
            except BusUnavailable:
                # The changefeed makes the topic with the table's first row; looked for again.
                continue
            self._table_ids[wanted.name] = table_id
            self._wanted.discard(table_id)
            for partition, first in enumerate(firsts):
                self._reader.start(wanted.name, partition, first)
        return denied

    def close(self) -> None:
        self._reader.close()
