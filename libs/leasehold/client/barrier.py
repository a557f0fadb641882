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
    from leasehold.adapters.codec import MessagePackCodec
    from leasehold.adapters.kafka_writer import TopicWriter

    barrier = Barrier(new_request_id(), check, repair, part)
    writer = TopicWriter(settings.kafka, "leasehold-barrier", delivery_timeout_ms=9_000)
    try:
        data = MessagePackCodec().encode(barrier)
        writer.send(settings.topics.log.name, 0, None, data, token=barrier.id)
        writer.flush(APPEND_TIMEOUT_S)
        told = writer.deliveries()
    finally:
        writer.close(0)
    if not told or told[0].error is not None:
        why = told[0].error if told else f"no confirmation in {APPEND_TIMEOUT_S:g} s"
        raise BusUnavailable(f"Kafka did not take the barrier into the log: {why}")
    return barrier.id
