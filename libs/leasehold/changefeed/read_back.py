"""What a changefeed goes on from: its place, its jobs and the topics that are to go, as they stand
on its own topic and on that of jobs (L6).

Others may write there (Spark tells its progress on `jobs`), and a topic keeps what is no record. So
what can't be read is passed over: under its key the newest that can be read counts, which is what
the changefeed wrote last. ⚠ Only of the place that is no way out once compaction has taken all
that could be read: begun at the log's start, the changefeed would publish old images over new ones.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Iterator
from typing import Any, Final, Protocol

from leasehold.adapters.codec.records import MessagePackCodec
from leasehold.catalog.job import read_job
from leasehold.model.errors import LogStopped, MalformedRequest
from leasehold.model.records.jobs import JobEvent
from leasehold.model.records.log import LogPosition
from leasehold.replication.changefeed import job_of_key

POSITION_KEY: Final = b"position"
LOG: Final = logging.getLogger("leasehold.changefeed")
_CODEC: Final = MessagePackCodec()


class Stored(Protocol):
    """A record of a topic; `value` None is a tombstone."""

    @property
    def offset(self) -> int: ...

    @property
    def key(self) -> bytes | None: ...

    @property
    def value(self) -> bytes | None: ...


def keep_newest(records: Iterable[Stored], newest: dict[bytes, bytes | None]) -> Iterator[Stored]:
    """Yield the records, and put the value of each into `newest` under its key: until a topic is
    compacted it has any number of records of few keys."""
    for record in records:
        if record.key is not None:
            newest[record.key] = record.value
        yield record


def position_of(record: Stored) -> LogPosition | None:
    """Return the place that a record says; None for one of another key. Raises MalformedRequest for
    what is no place."""
    if record.key != POSITION_KEY:
        return None
    position = _CODEC.decode_as(LogPosition, record.value or b"")
    if min(position.offset, position.lsn, position.epoch) < 0:
        raise MalformedRequest("a place in the log has no negative numbers")
    return position


def read_position(records: Iterable[Stored]) -> LogPosition:
    """Return the place that the changefeed's own topic has, the log's start where it has none.
    Raises LogStopped where none of what stands there can be read."""
    found: LogPosition | None = None
    unread = 0
    for record in records:
        try:
            found = position_of(record) or found
        except MalformedRequest as error:
            unread += 1
            LOG.error(
                "offset %d of the changefeed's topic is no place in the log, and is left out: %s",
                record.offset,
                error.message,
            )
    if found is None and unread:
        raise LogStopped(
            f"The changefeed can't tell where to go on: its topic has {unread} records under"
            " 'position', and none of them can be read. Nothing was published. Somebody else has"
            " written them: take the right to write there from all others (`leasehold setup-acls`),"
            " and put back the last record that can be read."
        )
    return found or LogPosition()


def read_jobs(records: Iterable[Stored]) -> list[Any]:
    """Return the bodies of the newest event of each job that can be read."""
    found: dict[int, Any] = {}
    for record in records:
        job_id = job_of_key(record.key or b"")
        if job_id is None:
            continue  # progress and reports
        if record.value is None:
            found.pop(job_id, None)
            continue
        try:
            event = _CODEC.decode_as(JobEvent, record.value)
            if read_job(event.body).job_id != job_id:
                raise MalformedRequest("it is of another job than its key")
            found[job_id] = event.body
        except MalformedRequest as error:
            words = "offset %d of the topic of jobs is no job, and is left out: %s"
            LOG.error(words, record.offset, error.message)
    return list(found.values())
