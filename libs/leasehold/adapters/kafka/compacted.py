"""A compacted topic as the table that it is: the newest value of each key."""

from __future__ import annotations

from collections.abc import Callable

from leasehold.adapters.kafka.reader import RECORDS_MAX, TO_THE_END_MS, TopicReader
from leasehold.adapters.os.clock import boottime_ns
from leasehold.model.errors import BusUnavailable
from leasehold.settings.environment import KafkaSettings


def read_compacted(
    settings: KafkaSettings,
    client_id: str,
    topic: str,
    timeout_s: float = 60.0,
    give_up: Callable[[], bool] = lambda: False,
) -> dict[bytes, bytes]:
    """The newest committed value per key of a compacted topic, from its first offset to its end.

    Raises BusUnavailable when that takes longer than `timeout_s`, or when `give_up()`.
    """
    give_up_ns = boottime_ns() + int(timeout_s * 1e9)
    newest: dict[bytes, bytes] = {}
    reader = TopicReader(
        settings,
        client_id,
        read_committed=True,
        tell_ends=True,
        fetch_wait_ms=TO_THE_END_MS,
        give_up=give_up,
    )
    try:
        partitions = reader.partitions(topic, timeout_s)
        for partition in range(partitions):
            reader.start(topic, partition, reader.first_offset(topic, partition, timeout_s))
        while len(reader.ended) < partitions:
            if boottime_ns() > give_up_ns or give_up():
                raise BusUnavailable(f"Topic {topic} was not read to its end in {timeout_s:g} s")
            for record in reader.read(RECORDS_MAX, 0.1):
                if record.key is None:
                    continue
                if record.value is None:
                    newest.pop(record.key, None)
                else:
                    newest[record.key] = record.value
    finally:
        reader.close()
    return newest
