"""The newest state of every job, followed on the compacted jobs topic."""

from __future__ import annotations

import logging
from typing import Final

from leasehold.adapters.codec.records import MessagePackCodec
from leasehold.adapters.kafka.access import AccessDenied
from leasehold.adapters.kafka.leader_wait import ask_once_led
from leasehold.adapters.kafka.reader import Record, TopicReader
from leasehold.catalog.job import Job, job_from_wire
from leasehold.model.errors import BusUnavailable, LogStopped
from leasehold.model.records.jobs import JobEvent
from leasehold.model.topics import Topics
from leasehold.replication.changefeed import job_of_key
from leasehold.settings.environment import KafkaSettings
from spark_streaming.log_users import LogUsers

log: Final = logging.getLogger(__name__)

RECORDS_MAX: Final = 500


class JobsReader:
    """The reader of the jobs topic. `jobs`: job id → Job; `users`: what their events tell of
    others. `caught_up` once the topic's end was met: before that a job may look as it did long
    ago."""

    def __init__(self, kafka: KafkaSettings, topics: Topics) -> None:
        self.jobs: dict[int, Job] = {}
        self.users = LogUsers()
        self.caught_up = False
        self._codec = MessagePackCodec()
        self._topic = topics.jobs.name
        self._begun = False
        self._reader = TopicReader(kafka, "leasehold-jobs", read_committed=True, tell_ends=True)

    def poll(self, timeout_s: float) -> bool:
        """Take what has come, waiting at most `timeout_s` for it, and longer for a broker that is
        away; True if a job has changed. Raises AccessDenied."""
        changed = False
        for record in self._read(timeout_s):
            changed |= self._take(record.key or b"", record.value)
        self.caught_up = self.caught_up or bool(self._reader.ended)
        return changed

    def close(self) -> None:
        self._reader.close()

    def _read(self, timeout_s: float) -> list[Record]:
        try:
            if not self._begun:  # no offsets are kept: the topic is the state
                first = ask_once_led(lambda: self._reader.first_offset(self._topic, 0))
                self._reader.start(self._topic, 0, first)
                self._begun = True
            return self._reader.read(RECORDS_MAX, timeout_s)
        except AccessDenied:
            raise
        except LogStopped as error:
            log.warning("the jobs topic is read again from its start: %s", error.message)
            self._begun = False
        except BusUnavailable as error:
            log.warning("waiting for the jobs topic: %s", error.message)
        return []

    def _take(self, key: bytes, value: bytes | None) -> bool:
        job_id = job_of_key(key)
        if job_id is None:
            return False  # progress, ours and others'
        try:
            if value is None:
                return self.jobs.pop(job_id, None) is not None
            event = self._codec.decode_as(JobEvent, value)
            self.jobs[event.job_id] = job_from_wire(event.body)
            self.users = self.users.after(event.lsn, event.commit_us)
        except Exception as error:  # noqa: BLE001 - whatever it is, no other job waits for it
            log.error("a job event under key %r can't be read and is left out: %s", key, error)
            return False
        return True
