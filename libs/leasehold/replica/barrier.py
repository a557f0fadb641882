"""Barriers: a record that any process may append to the log, and that decides nothing (T6)."""

from __future__ import annotations

from typing import Final

from leasehold.adapters.os.clock import new_request_id
from leasehold.model.errors import BusUnavailable
from leasehold.model.records.log import Barrier, CheckSlice
from leasehold.settings.client import ClientSettings

APPEND_TIMEOUT_S: Final = 10.0
PLACES_UNKNOWN_MAX: Final = 3
"""Barriers in a row that the broker has taken and can't say where: each takes a batch that was sent
again so late that the broker had forgotten the first one."""


def append_barrier(
    settings: ClientSettings,
    check: int | None,
    repair: str = "",
    part: CheckSlice | None = None,
) -> bytes:
    """Append a barrier, wait until the log has it, and return its id. `check`: table id, -1 every
    table, None nothing; `repair`: the node that is to repair that table; `part`: the slice to
    check. Raises BusUnavailable."""
    barrier = Barrier(new_request_id(), check, repair, part)
    barriers = Barriers(settings)
    try:
        barriers.put(barrier)
    finally:
        barriers.close()
    return barrier.id


class Barriers:
    """Appends barriers, one after the other."""

    def __init__(self, settings: ClientSettings) -> None:
        from leasehold.adapters.kafka.writer import TopicWriter

        self._log = settings.topics.log.name
        self._writer = TopicWriter(
            settings.kafka, "leasehold-barrier", delivery_timeout_ms=9_000, topic=self._log
        )

    def append(self) -> int:
        """Append a barrier, and return its offset in the log, which has it now. Raises
        BusUnavailable.

        ⚠ T6: one that stands nobody knows where is none: a node would wait for nothing. Any later
        one serves as well."""
        for _ in range(PLACES_UNKNOWN_MAX):
            offset = self.put(Barrier(new_request_id()))
            if offset >= 0:
                return offset
        raise BusUnavailable("Kafka took the barrier into the log and does not know where")

    def put(self, barrier: Barrier) -> int:
        """Append this barrier, and return its offset in the log, which has it now; -1: the broker
        no longer knows. Raises BusUnavailable."""
        from leasehold.adapters.codec.records import MessagePackCodec

        self._writer.deliveries()  # of one that was not waited for any longer
        data = MessagePackCodec().encode(barrier)
        self._writer.send(self._log, 0, None, data, token=barrier.id)
        self._writer.flush(APPEND_TIMEOUT_S)
        told = [delivery for delivery in self._writer.deliveries() if delivery.token == barrier.id]
        if not told or told[0].error is not None:
            why = told[0].error if told else f"no confirmation in {APPEND_TIMEOUT_S:g} s"
            raise BusUnavailable(f"Kafka did not take the barrier into the log: {why}")
        return told[0].offset

    def close(self) -> None:
        self._writer.close(0)
