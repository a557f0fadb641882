"""The rows of a table for its first feed, read from its rows topic while all else is published.

The rows topic goes on meanwhile, and what is published there is read, too. At the end nothing waits
to be published; then the last few records are read, and the rows are as of that very place.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Final

from leasehold.adapters.kafka.reader import TO_THE_END_MS, TopicReader
from leasehold.adapters.os.clock import boottime_ns
from leasehold.adapters.sqlite.fed_rows import FedRows, RowsLoad
from leasehold.model.closing import Closing
from leasehold.model.errors import BusUnavailable
from leasehold.settings.environment import KafkaSettings

CLIENT_ID: Final = "changefeed-loading"
SLICE_RECORDS: Final = 2_000
"""Read between two turns of the changefeed: some 20 ms of its time."""
SLICE_WAIT_S: Final = 0.005
FINISH_TIMEOUT_S: Final = 300.0
LOG: Final = logging.getLogger("leasehold.changefeed")


class RowsLoading(Closing):
    """Rows that are being read: `go_on` again and again until it `is_near` its end, then `finish`
    when all is published. Raises BusUnavailable, and StoreUnwritable."""

    def __init__(
        self,
        kafka: KafkaSettings,
        topic: str,
        table_id: int,
        rows: FedRows,
        give_up: Callable[[], bool],
    ) -> None:
        """Begin with the first records of a topic that is there."""
        self.table_id = table_id
        self._topic = topic
        self._give_up = give_up
        self._reader = TopicReader(
            kafka,
            CLIENT_ID,
            read_committed=True,
            tell_ends=True,
            fetch_wait_ms=TO_THE_END_MS,
            give_up=give_up,
        )
        self._load = RowsLoad(rows, table_id)
        try:
            self._partitions = self._reader.partitions(topic)
            for partition in range(self._partitions):
                self._reader.start(topic, partition, self._reader.first_offset(topic, partition))
        except BaseException:
            self._reader.close()
            raise

    def close(self) -> None:
        self._reader.close()

    @property
    def is_near(self) -> bool:
        """Whether each partition was read to an end that it had."""
        return len(self._reader.ended) >= self._partitions

    def go_on(self) -> None:
        """Take the next records."""
        records = self._reader.read(SLICE_RECORDS, SLICE_WAIT_S)
        self._load.take((record.key, record.value) for record in records)

    def finish(self) -> None:
        """Take what is there up to the end that the topic has now."""
        ends = {
            (self._topic, partition): self._reader.end_offset(self._topic, partition)
            for partition in range(self._partitions)
        }
        until_ns = boottime_ns() + int(FINISH_TIMEOUT_S * 1e9)
        while any(self._reader.ended.get(each, -1) < end for each, end in ends.items()):
            if self._give_up() or boottime_ns() > until_ns:
                raise BusUnavailable(f"topic {self._topic} was not read to its end for its feed")
            self.go_on()
        LOG.info("%d records of %s were read for its feed", self._load.end(), self._topic)
