"""An agent's stream: version events in, its acknowledgements out (`client/agent.py`)."""

from __future__ import annotations

import threading
from typing import Final

from leasehold.adapters.codec.records import MessagePackCodec
from leasehold.adapters.kafka.leader_wait import ask_once_led
from leasehold.adapters.kafka.reader import TopicReader
from leasehold.adapters.kafka.writer import TopicWriter
from leasehold.adapters.os.clock import boottime_ns
from leasehold.model.errors import BusUnavailable, LogStopped, MalformedRequest
from leasehold.model.records.acks import AgentMessage
from leasehold.model.records.events import VersionEvent
from leasehold.settings.environment import KafkaSettings

EVENTS_MAX: Final = 1_000
REWIND_EVERY_NS: Final = 1_000_000_000
"""An agent that lacks an event which nobody has published yet asks for it all the while."""


class KafkaVersionStream:
    """Connects when first read, so that an agent starts without a broker."""

    def __init__(self, settings: KafkaSettings, versions: str, notices: str, acks: str) -> None:
        """Prepare to read `versions` from its beginning and `notices`, which says the same sooner,
        from now on."""
        self._settings = settings
        self._versions = versions
        self._notices = notices
        self._acks = acks
        self._codec = MessagePackCodec()
        self._reader: TopicReader | None = None
        self._writer: TopicWriter | None = None
        self._begin_again = threading.Event()
        self._begin_again.set()
        self._reads_through = False  # from the beginning on, and not at the end yet
        self._rewind_ns = 0  # not before

    def events(self, timeout_s: float) -> list[VersionEvent]:
        """Return the version events that have come, waiting up to `timeout_s`. Raises
        BusUnavailable while Kafka can't be reached."""
        if self._reader is None:
            self._reader = TopicReader(
                self._settings, "leasehold-versions", read_committed=True, tell_ends=True
            )
        if self._begin_again.is_set() and not self._reads_through:
            self._start(self._reader)
        found = []
        for record in self._read(timeout_s):
            if record is None:
                continue
            try:
                found.append(self._codec.decode_as(VersionEvent, record))
            except MalformedRequest:
                continue  # of a newer release; the ledger's comparison finds out if it matters
        if self._reads_through and (self._versions, 0) in self._reader.ended:
            self._reads_through = False
            self._rewind_ns = boottime_ns() + REWIND_EVERY_NS
            self._begin_again.clear()
        return found

    def _start(self, reader: TopicReader) -> None:
        """Begin anew, at the earliest `REWIND_EVERY_NS` after the end was reached last."""
        if boottime_ns() < self._rewind_ns:
            return
        first = ask_once_led(lambda: reader.first_offset(self._versions, 0))
        newest = ask_once_led(lambda: reader.end_offset(self._notices, 0))
        self._begin_again.clear()
        reader.start(self._versions, 0, first)
        reader.start(self._notices, 0, newest)
        self._reads_through = True

    def _read(self, timeout_s: float) -> list[bytes | None]:
        assert self._reader is not None
        try:
            return [record.value for record in self._reader.read(EVENTS_MAX, timeout_s)]
        except LogStopped:
            # A topic that was recreated: its newest records are the state, whatever came before.
            self._reads_through = False
            self._rewind_ns = 0
            self._begin_again.set()
            return []

    def acknowledge(self, agent: str, record: AgentMessage) -> None:
        if self._writer is None:
            self._writer = TopicWriter(self._settings, "leasehold-acks", topic=self._acks)
        data = self._codec.encode(record)
        try:
            self._writer.send(self._acks, 0, agent.encode(), data)
            self._writer.deliveries()
        except BusUnavailable:
            return  # it wakes a waiter (D4), who looks anyway, or is for people

    def rewind(self) -> None:
        """Begin anew; may be called from any thread.

        ⚠ While `events` reads from the beginning on it goes on with that: what was published before
        the call is in front of it. To begin once more each time would never get to the end of a
        topic that is longer than what is read between two calls.
        """
        self._begin_again.set()

    def close(self) -> None:
        if self._reader is not None:
            self._reader.close()
        if self._writer is not None:
            self._writer.close(1.0)
