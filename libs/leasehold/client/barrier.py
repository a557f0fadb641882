"""Barriers: a record that any process may append to the log, and that decides nothing (T6)."""

from __future__ import annotations

from typing import Final

from leasehold.adapters.clock import new_request_id
from leasehold.client.client_settings import ClientSettings
from leasehold.model.errors import BusUnavailable
from leasehold.model.records import Barrier, CheckSlice

APPEND_TIMEOUT_S: Final = 10.0


def append_barrier(
    settings: ClientSettings,
    check: int | None,
    repair: str = "",
    part: CheckSlice | None = None,
) -> bytes:
    """Append one and wait until the log has it; its id. `check`: table id, -1 every table, None
    nothing; `repair`: the node that is to repair that table; `part`: the slice to check. Raises
    BusUnavailable."""
    barrier = Barrier(new_request_id(), check, repair, part)
    barriers = Barriers(settings)
    try:
        barriers.append(barrier)
    finally:
        barriers.close()
    return barrier.id


class Barriers:
    """Appends barriers, one after the other."""

    def __init__(self, settings: ClientSettings) -> None:
        from leasehold.adapters.kafka_writer import TopicWriter

        self._log = settings.topics.log.name
        self._writer = TopicWriter(
            settings.kafka, "leasehold-barrier", delivery_timeout_ms=9_000, topic=self._log
        )

    def append(self, barrier: Barrier | None = None) -> int:
        """→ its offset in the log, which has it now. Raises BusUnavailable."""
        from leasehold.adapters.codec import MessagePackCodec

        made = barrier or Barrier(new_request_id())
        self._writer.deliveries()  # of one that was not waited for any longer
        data = MessagePackCodec().encode(made)
        self._writer.send(self._log, 0, None, data, token=made.id)
        self._writer.flush(APPEND_TIMEOUT_S)
        told = [delivery for delivery in self._writer.deliveries() if delivery.token == made.id]
        if not told or told[0].error is not None:
            why = told[0].error if told else f"no confirmation in {APPEND_TIMEOUT_S:g} s"
            raise BusUnavailable(f"Kafka did not take the barrier into the log: {why}")
        return told[0].offset

    def close(self) -> None:
        self._writer.close(0)
