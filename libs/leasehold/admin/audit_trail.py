"""The audit log as its topic keeps it: read to the end, followed, filtered."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, Final

from leasehold.settings.client import ClientSettings

READ_TIMEOUT_S: Final = 30.0
FOLLOW_S: Final = 0.5
EVENTS_MAX: Final = 100_000
"""The newest so many are looked at."""
Event = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class AuditFilter:
    """The events that are wanted; "" and 0: all. `who` is a user or a role."""

    kinds: frozenset[str] = frozenset()
    who: str = ""
    node: str = ""
    subject: str = ""
    since_us: int = 0
    refused: bool = False

    def takes(self, event: Event) -> bool:
        if self.kinds and event.get("kind") not in self.kinds:
            return False
        if self.who and self.who not in (event.get("user"), event.get("role")):
            return False
        if self.node and event.get("node") != self.node:
            return False
        if self.subject and self.subject not in str(event.get("subject", "")):
            return False
        if self.refused and event.get("outcome", "ok") == "ok":
            return False
        return not self.since_us or time_us(event) >= self.since_us


def time_us(event: Event) -> int:
    """Return when it happened, 0 where it does not say so."""
    try:
        at = datetime.fromisoformat(str(event.get("time")))
    except ValueError:
        return 0
    return int(at.replace(tzinfo=at.tzinfo or UTC).timestamp() * 1_000_000)


class AuditTrail:
    def __init__(self, settings: ClientSettings) -> None:
        self._settings = settings

    def read(self, wanted: AuditFilter) -> list[Event]:
        """Return events up to the topic's end, oldest first. Raises BusUnavailable."""
        from leasehold.adapters.audit.lines import decode_line
        from leasehold.adapters.kafka.reader import ASK_TIMEOUT_S
        from leasehold.adapters.kafka.whole_topic import read_to_end

        records = read_to_end(
            self._settings.kafka,
            "leasehold-audit-reader",
            self._settings.topics.audit.name,
            READ_TIMEOUT_S,
            newest_max=EVENTS_MAX,
            ask_timeout_s=ASK_TIMEOUT_S,
        )
        found = (decode_line(record.value or b"") for record in records)
        return [event for event in found if event is not None and wanted.takes(event)]

    def follow(
        self, wanted: AuditFilter, stopped: Callable[[], bool] = lambda: False
    ) -> Iterator[Event]:
        """Yield events that come from now on. Raises BusUnavailable."""
        from leasehold.adapters.audit.lines import decode_line
        from leasehold.adapters.kafka.reader import TopicReader

        topic = self._settings.topics.audit.name
        reader = TopicReader(self._settings.kafka, "leasehold-audit-reader", give_up=stopped)
        try:
            reader.start(topic, 0, reader.end_offset(topic, 0))
            while not stopped():
                for record in reader.read(EVENTS_MAX, FOLLOW_S):
                    event = decode_line(record.value or b"")
                    if event is not None and wanted.takes(event):
                        yield event
        finally:
            reader.close()
