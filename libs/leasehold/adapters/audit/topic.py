"""Audit lines on the topic `audit`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from leasehold.adapters.kafka.writer import TopicWriter
from leasehold.model.errors import BusUnavailable
from leasehold.settings.environment import KafkaSettings

QUEUED_MAX: Final = 10_000
FLUSH_S: Final = 2.0


class AuditTopic:
    """The topic, for one thread. Its producer is made with the first event: most processes have
    none."""

    def __init__(self, kafka: KafkaSettings, topic: str, node: str) -> None:
        self._kafka = kafka
        self._topic = topic
        self._client_id = f"leasehold-audit-{node}"
        self._writer: TopicWriter | None = None
        self._why = ""

    def write(self, lines: Sequence[bytes]) -> None:
        """Queue lines; `poll` tells what became of them. Raises OSError for a queue that is
        full."""
        if self._writer is None:
            self._writer = TopicWriter(
                self._kafka, self._client_id, linger_ms=20, queued_max=QUEUED_MAX, tells_all=False
            )
        for line in lines:
            try:
                self._writer.send(self._topic, 0, None, line)
            except BusUnavailable as error:
                raise OSError(error.message) from error

    def poll(self) -> int:
        """Return how many lines were lost since the last call; `why` says by what."""
        if self._writer is None:
            return 0
        failed = [one.error for one in self._writer.deliveries() if one.error is not None]
        if failed:
            self._why = str(failed[-1])
        return len(failed)

    @property
    def why(self) -> str:
        return self._why

    @property
    def waits(self) -> bool:
        return self._writer is not None and len(self._writer) > 0

    def close(self) -> None:
        if self._writer is not None:
            self._writer.close(FLUSH_S)
            self._writer = None
