"""Asks Kafka which log it has, before a reader goes on in it and while it reads
(`replication/log/identity.py` says what of it counts)."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator
from typing import Any, Final

from leasehold.adapters.codec.records import MessagePackCodec
from leasehold.adapters.kafka.admin import TopicAdmin, id_in, is_missing
from leasehold.adapters.kafka.reader import ASK_TIMEOUT_S, TopicReader
from leasehold.adapters.os.clock import boottime_ns
from leasehold.model.errors import BusUnavailable, LeaseholdError, LogStopped
from leasehold.model.records.log import LogPosition
from leasehold.replication.log.identity import TO_DO, LogIdentity, check_log, check_reach

RECORDS_PER_READ_MAX: Final = 1_000
READ_SLICE_S: Final = 0.1
LOG_MISSING: Final = (
    "nothing can be decided, and nobody is coherent. If it was deleted, one that is recreated is"
    f" another log. {TO_DO}"
)
QUEUE_MISSING: Final = (
    "the master takes nothing from it. If it was deleted, make it anew (leasehold topics, or"
    " with its settings); it is then read from its begin: docs/how-to/recover-a-lost-log.md"
)
MISSING_SAID_NS: Final = 10_000_000_000
CODEC: Final = MessagePackCodec()
LOG: Final = logging.getLogger("leasehold.log")


def log_offsets(reader: TopicReader, log: str, position: LogPosition) -> tuple[int, int]:
    """Return the first offset of the log and its next one. A reader at `position` may go on there,
    and nothing of the log is assigned. Raises LogStopped, BusUnavailable."""
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
                elif reader.gives_up or boottime_ns() > give_up_ns:
                    raise BusUnavailable(f"Kafka did not deliver offset {below - 1} of {log}")
        finally:
            reader.stop(log, 0)

    check_log(log, position, first, end, digests)
    return first, end


class TopicLook:
    """A question to the broker that nobody waits for, one at a time. `told` runs on a thread of the
    admin's."""

    def __init__(
        self, admin: TopicAdmin, topic: str, told: Callable[[str], None], missing: str = LOG_MISSING
    ) -> None:
        """Prepare the question which topic has the name. `missing` says what it means that there is
        none, and what to do."""
        self._admin = admin
        self._topic = topic
        self._told = told
        self._missing = missing
        self._asked: Any = None
        self._said_ns = -MISSING_SAID_NS

    def ask(self) -> None:
        if self._asked is None or self._asked.done():
            self._asked = self._admin.topic_id_soon(self._topic)
            self._asked.add_done_callback(self._answered)

    def _answered(self, future: Any) -> None:
        if future.cancelled():
            return
        error = future.exception()
        if error is None:
            self._told(id_in(future.result()))
        elif is_missing(error):
            self._say_missing()
        # A broker that is away is told of by readers and writers.

    def _say_missing(self) -> None:
        """Log that the topic is missing. It is no reason to stop: a broker that has just started
        may not know of it yet."""
        now_ns = boottime_ns()
        if now_ns - self._said_ns >= MISSING_SAID_NS:
            self._said_ns = now_ns
            LOG.warning("Kafka has no topic %r now: %s", self._topic, self._missing)


def explain_stop(
    error: LogStopped,
    identity: LogIdentity,
    admin: TopicAdmin,
    reader: TopicReader,
    log: str,
    position: LogPosition,
) -> LeaseholdError:
    """Return why a reader was stopped: `error`, or that the log's topic is another one now, which
    is what most of them come from, or that the log ends before what was read. Asks a broker, which
    has just answered."""
    try:
        identity.check_topic(log, admin.topic_id(log), position)
        check_reach(log, position, *reader.offsets(log, 0))
    except LogStopped as cause:
        return cause
    except LeaseholdError:
        return error
    return error
