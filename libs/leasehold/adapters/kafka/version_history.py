"""Every version event that the topic versions-history has, read once from one end to the other."""

from __future__ import annotations

from typing import Final

from leasehold.adapters.codec.records import MessagePackCodec
from leasehold.adapters.kafka.reader import TopicReader
from leasehold.adapters.os.clock import boottime_ns
from leasehold.model.errors import BusUnavailable
from leasehold.model.records.events import VersionEvent
from leasehold.model.topics import Topics
from leasehold.settings.environment import KafkaSettings

RECORDS_MAX: Final = 1_000


def read_history(
    settings: KafkaSettings, topics: Topics, timeout_s: float = 60.0
) -> list[VersionEvent]:
    """In LSN order. Raises BusUnavailable when that takes longer than `timeout_s`, and
    MalformedRequest for a record that is no event: a history with a hole would lie."""
    name = topics.versions_history.name
    give_up_ns = boottime_ns() + int(timeout_s * 1e9)
    codec = MessagePackCodec()
    found: list[VersionEvent] = []
    reader = TopicReader(settings, "leasehold-history", read_committed=True, tell_ends=True)
    try:
        reader.start(name, 0, reader.first_offset(name, 0, timeout_s))
        while not reader.ended:
            if boottime_ns() > give_up_ns:
                raise BusUnavailable(f"Topic {name} was not read to its end in {timeout_s:g} s")
            values = (record.value for record in reader.read(RECORDS_MAX, 0.1))
            found += [codec.decode_as(VersionEvent, v) for v in values if v is not None]
    finally:
        reader.close()
    return found
