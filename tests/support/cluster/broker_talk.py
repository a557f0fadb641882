"""What came of a reader or a writer: waited for, with a deadline."""

from __future__ import annotations

import time
from typing import Final

from leasehold.adapters.kafka.reader import Record, TopicReader
from leasehold.adapters.kafka.writer import Delivery, TopicWriter

DEADLINE_S: Final = 30.0


def read(reader: TopicReader, count: int) -> list[Record]:
    give_up = time.monotonic() + DEADLINE_S
    records: list[Record] = []
    while len(records) < count:
        assert time.monotonic() < give_up, f"{len(records)} of {count} records came"
        records += reader.read(count - len(records), 0.1)
    return records


def told(writer: TopicWriter, count: int) -> list[Delivery]:
    give_up = time.monotonic() + DEADLINE_S
    deliveries: list[Delivery] = []
    while len(deliveries) < count:
        assert time.monotonic() < give_up, deliveries
        deliveries += writer.deliveries(0.1)
    return deliveries
