"""The newest version of each table, as the changefeed publishes it: by it events are read."""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Final

from leasehold.adapters.codec.records import MessagePackCodec
from leasehold.adapters.kafka.leader_wait import ask_once_led
from leasehold.adapters.kafka.reader import STEADY_WAIT_MS, TopicReader
from leasehold.adapters.os.clock import boottime_ns
from leasehold.catalog.descriptor import Descriptor, read_descriptor
from leasehold.model.closing import Closing
from leasehold.model.errors import BusUnavailable, MalformedRequest
from leasehold.model.ids import is_enum_id, is_sequence_id
from leasehold.model.records.events import VersionEvent
from leasehold.settings.environment import KafkaSettings

RECORDS_MAX: Final = 1_000
READ_WAIT_S: Final = 0.2
READ_TIMEOUT_S: Final = 60.0
LOG: Final = logging.getLogger("leasehold.intake")


class Tables(Closing):
    """The tables of a database by name. Its methods raise BusUnavailable, and LogStopped where the
    topic was made anew."""

    def __init__(
        self, kafka: KafkaSettings, versions: str, give_up: Callable[[], bool] = lambda: False
    ) -> None:
        """Connect; `read_all` comes next. `versions`: the topic."""
        self._topic = versions
        self._give_up = give_up
        self._codec = MessagePackCodec()
        self._by_id: dict[bytes, Descriptor] = {}
        self._by_name: dict[str, Descriptor] = {}
        self._reader = TopicReader(
            kafka,
            "intake-versions",
            read_committed=True,
            tell_ends=True,
            fetch_wait_ms=STEADY_WAIT_MS,
            give_up=give_up,
        )

    def read_all(self) -> None:
        """Read what there is now."""
        reader = self._reader
        reader.start(self._topic, 0, ask_once_led(lambda: reader.first_offset(self._topic, 0)))
        end_ns = boottime_ns() + int(READ_TIMEOUT_S * 1e9)
        while (self._topic, 0) not in reader.ended:
            self._take(READ_WAIT_S)
            if self._give_up() or boottime_ns() > end_ns:
                raise BusUnavailable(f"topic {self._topic} was not read in {READ_TIMEOUT_S:g} s")

    def follow(self) -> None:
        """Take what has come since, without waiting."""
        while self._take(0.0):
            pass

    def find(self, name: str) -> Descriptor | None:
        """Return the table of that name that users see, None where there is none."""
        return self._by_name.get(name)

    def _take(self, wait_s: float) -> int:
        records = self._reader.read(RECORDS_MAX, wait_s)
        changed = False
        for record in records:
            key = record.key or b""
            if record.value is None:
                changed |= self._by_id.pop(key, None) is not None
                continue
            try:
                event = self._codec.decode_as(VersionEvent, record.value)
                if is_sequence_id(event.table_id) or is_enum_id(event.table_id):
                    continue
                self._by_id[key] = read_descriptor(event.body)
            except MalformedRequest as error:
                LOG.error("a version that can't be read is left out: %s", error.message)
                continue
            changed = True
        if changed:
            tables = self._by_id.values()
            self._by_name = {
                name: table for table in tables if table.sequence is None for name in table.names
            }
        return len(records)

    def close(self) -> None:
        self._reader.close()
