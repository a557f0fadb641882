"""Asks Kafka which log it has, before a reader goes on in it and while it reads
(`replication/log_identity.py` says what of it counts)."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator
from typing import Any, Final

from leasehold.adapters.clock import boottime_ns
from leasehold.adapters.codec import MessagePackCodec
from leasehold.adapters.kafka_admin import TopicAdmin, id_in
from leasehold.adapters.kafka_reader import ASK_TIMEOUT_S, TopicReader
from leasehold.model.errors import BusUnavailable, LeaseholdError, LogStopped
from leasehold.model.records import LogPosition
from leasehold.replication.log_identity import LogIdentity, check_log

RECORDS_PER_READ_MAX: Final = 1_000
READ_SLICE_S: Final = 0.1
CODEC: Final = MessagePackCodec()
LOG: Final = logging.getLogger("leasehold.log")


def log_offsets(reader: TopicReader, log: str, position: LogPosition) -> tuple[int, int]:
    """The first offset of the log and its next one; a reader at `position` may go on there, and
    nothing of the log is assigned. Raises LogStopped, BusUnavailable."""
    first, end = reader.offsets(log, 0)

    def digests(begin: int, below: int) -> Iterator[bytes]:
        give_up_ns = boottime_ns() + int(ASK_TIMEOUT_S * 1e9)
        reader.start(log, 0, begin)
        try:
            while reader.next_offset(log, 0) < below:
                records = reader.read(RECORDS_PER_READ_MAX, READ_SLICE_S)
                for record in records:
                    if record.offset < below:
                        yield CODEC.digest(record.value or b"")
                if records:
                    give_up_ns = boottime_ns() + int(ASK_TIMEOUT_S * 1e9)
                elif boottime_ns() > give_up_ns:
                    raise BusUnavailable(f"Kafka did not deliver offset {below - 1} of {log}")
        finally:
            reader.stop(log, 0)

    check_log(log, position, first, end, digests)
    return first, end


class LogLook:
    """One question at a time, which nobody waits for. `told` runs on a thread of the admin's."""

    def __init__(self, admin: TopicAdmin, log: str, told: Callable[[str], None]) -> None:
        self._admin = admin
        self._log = log
        self._told = told
        self._asked: Any = None

    def ask(self) -> None:
        if self._asked is None or self._asked.done():
            self._asked = self._admin.topic_id_soon(self._log)
            self._asked.add_done_callback(self._answered)

    def _answered(self, future: Any) -> None:
        if future.cancelled() or future.exception() is not None:
            return  # a broker that is away, or a topic that is: readers and writers say so
        self._told(id_in(future.result()))


def explained(
    error: LogStopped, identity: LogIdentity, admin: TopicAdmin, log: str, position: LogPosition
) -> LeaseholdError:
    """Why a reader was stopped: `error`, or that the log's topic is another one now, which is what
    most of them come from. Asks a broker, which has just answered."""
    try:
        identity.told(log, admin.topic_id(log), position)
    except LogStopped as cause:
        return cause
    except LeaseholdError:
        return error
    return error
