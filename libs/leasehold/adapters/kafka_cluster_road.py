"""A watcher's road: what log, acks, versions and jobs say (`client/cluster_watch.py`)."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, Final

from leasehold.adapters.clock import boottime_ns
from leasehold.adapters.codec import MessagePackCodec
from leasehold.adapters.environment import KafkaSettings
from leasehold.adapters.kafka_leadership import once_led
from leasehold.adapters.kafka_reader import Record, TopicReader
from leasehold.adapters.log_header import LogHeader, read_header
from leasehold.client.cluster_view import (
    ClaimSeen,
    Event,
    LogSeen,
    Reachable,
    TopicEnds,
)
from leasehold.model.errors import BusUnavailable, LogStopped, MalformedRequest
from leasehold.model.records import (
    Ack,
    ChangefeedReport,
    CheckReport,
    HoldingReport,
    JobEvent,
    JobProgress,
    SparkReport,
    VersionEvent,
)
from leasehold.model.topics import Topics

RECORDS_MAX: Final = 2_000
LOG_TAIL_RECORDS: Final = 300
"""Of the log, the last few records are enough to see where it stands and who writes it."""
ACKS_TAIL_RECORDS: Final = 2_000
"""Each node acknowledges many times a second when it works: room for every node's last one."""
FOLLOWED: Final = 5  # log, acks, versions, jobs, notices
ENDS_EVERY_NS: Final = 1_000_000_000
ENDS_TIMEOUT_S: Final = 2.0

_SHOWN: Final = (
    *(Ack, HoldingReport, CheckReport, VersionEvent, JobEvent, JobProgress),
    *(SparkReport, ChangefeedReport),
)


class KafkaClusterRoad:
    """For one thread. Connects when first asked, and again after Kafka was away."""

    def __init__(
        self,
        settings: KafkaSettings,
        topics: Topics,
        give_up: Callable[[], bool] = lambda: False,
    ) -> None:
        """`give_up`: asked twice a second while a broker is waited for; then BusUnavailable."""
        self._topics = topics
        self._codec = MessagePackCodec()
        self._reader = TopicReader(
            settings, "leasehold-watch", read_committed=True, tell_ends=True, give_up=give_up
        )
        self._begun = False
        self._ends_ns = 0
        self._table_ids: set[int] = set()

    def events(self, timeout_s: float) -> list[Event]:
        """Raises BusUnavailable while Kafka can't be reached."""
        if not self._begun:
            self._begin()
        found: list[Event] = []
        try:
            for record in self._reader.read(RECORDS_MAX, timeout_s):
                found += self._decoded(record)
        except LogStopped:
            # What a watcher has not seen before it was deleted, it can do without.
            self._begun = False
        if boottime_ns() - self._ends_ns >= ENDS_EVERY_NS:
            self._ends_ns = boottime_ns()
            found += [TopicEnds(self._ends()), Reachable("kafka")]
        return found

    @property
    def caught_up(self) -> bool:
        return self._begun and len(self._reader.ended) == FOLLOWED

    def close(self) -> None:
        self._reader.close()

    # --- inside --------------------------------------------------------------------------------

    def _begin(self) -> None:
        topics = self._topics
        tails = {
            topics.log.name: LOG_TAIL_RECORDS,
            topics.acks.name: ACKS_TAIL_RECORDS,
            topics.versions.name: None,
            topics.jobs.name: None,
            topics.notices.name: 0,  # what versions and jobs say, sooner
        }
        for topic, tail in tails.items():
            first = once_led(partial(self._reader.first_offset, topic, 0))
            end = once_led(partial(self._reader.end_offset, topic, 0))
            self._reader.start(topic, 0, first if tail is None else max(first, end - tail))
        self._begun = True

    def _decoded(self, record: Record) -> list[Event]:
        if record.value is None:
            return []
        if record.topic == self._topics.log.name:
            return self._log_event(record.offset, record.value)
        try:
            event: Any = self._codec.decode(record.value)
        except MalformedRequest:
            return []  # of a newer release: not known here how to show it
        if isinstance(event, VersionEvent):
            self._table_ids.add(event.table_id)
        return [event] if isinstance(event, _SHOWN) else []

    def _log_event(self, offset: int, data: bytes) -> list[Event]:
        try:
            header = read_header(data)
        except LogStopped:
            return []  # nodes stop there and say so; a watcher shows who still moves
        if header is None:
            return []
        if isinstance(header, LogHeader):
            return [LogSeen(offset, *header)]
        return [ClaimSeen(offset, header.epoch, header.node)]

    def _ends(self) -> dict[str, int]:
        """Next offsets; it is also how a broker that is away is noticed (BusUnavailable)."""
        topics = self._topics
        singles = {
            "log": topics.log.name,
            "requests": topics.requests.name,
            "backfill": topics.backfill.name,
            "dead-letter": topics.dead_letter.name,
        }
        found = {
            label: once_led(partial(self._reader.end_offset, topic, 0, ENDS_TIMEOUT_S))
            for label, topic in singles.items()
        }
        for table_id in self._table_ids:
            rows = topics.rows(table_id)
            try:
                found[f"rows/{table_id}"] = sum(
                    self._reader.end_offset(rows.name, number, ENDS_TIMEOUT_S)
                    - self._reader.first_offset(rows.name, number, ENDS_TIMEOUT_S)
                    for number in range(rows.partitions)
                )
            except BusUnavailable:
                continue  # a table without a row yet has no topic
        return found
