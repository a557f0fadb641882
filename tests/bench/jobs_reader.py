"""Reads jobs and notices alone: the least that tells when a job has ended."""

from __future__ import annotations

import time
from functools import partial
from typing import Final, NamedTuple

from leasehold.adapters.codec.records import MessagePackCodec
from leasehold.adapters.kafka.leader_wait import ask_once_led
from leasehold.adapters.kafka.reader import TopicReader
from leasehold.catalog.job import Job, job_from_wire
from leasehold.model.records.jobs import JobEvent
from leasehold.settings.client import ClientSettings

READ_S: Final = 0.2
EVENTS_MAX: Final = 1_000


class Ended(NamedTuple):
    """`took_ms`: from before the request was sent until the job's end was read here."""

    job: Job
    took_ms: float


class JobsReader:
    """For one thread."""

    def __init__(self, settings: ClientSettings) -> None:
        self._codec = MessagePackCodec()
        self._reader = TopicReader(settings.kafka, "leasehold-bench-jobs", read_committed=True)
        for topic in (settings.topics.jobs.name, settings.topics.notices.name):
            first = ask_once_led(partial(self._reader.first_offset, topic, 0))
            self._reader.start(topic, 0, first)

    def wait_ended(self, number: int, begin_ns: int, timeout_s: float) -> Ended | None:
        """`begin_ns` by time.monotonic_ns; None when it has not ended in time."""
        while time.monotonic_ns() - begin_ns < timeout_s * 1e9:
            for record in self._reader.read(EVENTS_MAX, READ_S):
                event = self._codec.decode(record.value) if record.value else None
                if not isinstance(event, JobEvent) or event.job_id != number:
                    continue
                job = job_from_wire(event.body)
                if job.status.ended:
                    return Ended(job, (time.monotonic_ns() - begin_ns) / 1e6)
        return None

    def close(self) -> None:
        self._reader.close()
