"""Reads a topic once, from its begin to the end that it has: as records, as the table that a
compacted topic is, or as the history of versions."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from functools import partial
from typing import Final

from leasehold.adapters.codec.records import MessagePackCodec
from leasehold.adapters.kafka.leader_wait import ask_once_led
from leasehold.adapters.kafka.reader import RECORDS_MAX, TO_THE_END_MS, Record, TopicReader
from leasehold.adapters.os.clock import boottime_ns
from leasehold.catalog.descriptor import read_descriptor
from leasehold.model.errors import BusUnavailable
from leasehold.model.records.events import VersionEvent
from leasehold.model.topics import Topics
from leasehold.settings.environment import KafkaSettings

READ_TIMEOUT_S: Final = 60.0


def read_to_end(
    settings: KafkaSettings,
    client_id: str,
    topic: str,
    timeout_s: float = READ_TIMEOUT_S,
    give_up: Callable[[], bool] = lambda: False,
    newest_max: int | None = None,
    ask_timeout_s: float | None = None,
) -> Iterator[Record]:
    """Yield the committed records of all partitions of a topic, those of a partition in their
    order. `newest_max`: of each partition only what has one of its last so many offsets.
    `ask_timeout_s`: how long a broker may take to say where the topic ends; None: `timeout_s`.

    Raises BusUnavailable when that takes longer than `timeout_s`, or when `give_up()`.
    """
    give_up_ns = boottime_ns() + int(timeout_s * 1e9)
    reader = TopicReader(
        settings,
        client_id,
        read_committed=True,
        tell_ends=True,
        fetch_wait_ms=TO_THE_END_MS,
        give_up=give_up,
    )
    asks_s = timeout_s if ask_timeout_s is None else ask_timeout_s
    try:
        partitions = reader.partitions(topic, timeout_s=asks_s)
        for partition in range(partitions):
            first, end = ask_once_led(partial(reader.offsets, topic, partition, timeout_s=asks_s))
            begin = first if newest_max is None else max(first, end - newest_max)
            reader.start(topic, partition, begin)
        while len(reader.ended) < partitions:
            if boottime_ns() > give_up_ns or give_up():
                raise BusUnavailable(f"Topic {topic} was not read to its end in {timeout_s:g} s")
            yield from reader.read(RECORDS_MAX, 0.1)
    finally:
        reader.close()


def read_compacted(
    settings: KafkaSettings,
    client_id: str,
    topic: str,
    timeout_s: float = READ_TIMEOUT_S,
    give_up: Callable[[], bool] = lambda: False,
) -> dict[bytes, bytes]:
    """Return the newest committed value of each key of a compacted topic. Raises BusUnavailable as
    `read_to_end` does."""
    newest: dict[bytes, bytes] = {}
    for record in read_to_end(settings, client_id, topic, timeout_s, give_up):
        if record.key is None:
            continue
        if record.value is None:
            newest.pop(record.key, None)
        else:
            newest[record.key] = record.value
    return newest


def read_history(settings: KafkaSettings, topics: Topics) -> list[VersionEvent]:
    """Return every version event of the topic versions-history, in LSN order. Raises
    BusUnavailable as `read_to_end` does, and MalformedRequest for a record that is no event: a
    history with a hole would lie."""
    records = read_to_end(settings, "leasehold-history", topics.versions_history.name)
    return read_events(record.value for record in records)


def read_events(values: Iterable[bytes | None]) -> list[VersionEvent]:
    """Return the version events that values of a topic are. Raises MalformedRequest for what is
    none, or has no table in it."""
    codec, events = MessagePackCodec(), []
    for value in values:
        if value is not None:
            events.append(codec.decode_as(VersionEvent, value))
            read_descriptor(events[-1].body)
    return events
