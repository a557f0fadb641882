"""The newest state of every job, followed on the compacted jobs topic."""

from __future__ import annotations

import logging
import uuid
from typing import Final

from confluent_kafka import OFFSET_BEGINNING, Consumer, KafkaError, TopicPartition

from leasehold.adapters.codec import MessagePackCodec
from leasehold.adapters.environment import KafkaSettings
from leasehold.model.errors import MalformedRequest
from leasehold.model.records import JobEvent
from leasehold.model.topics import Topics
from leasehold.schema.job import Job, job_from_wire
from spark_streaming.log_users import LogUsers

log: Final = logging.getLogger(__name__)

JOB_PREFIX: Final = b"job/"
MESSAGES_MAX: Final = 500


class JobsReader:
    """`jobs`: job id → Job; `users`: what their events tell of others. `caught_up` once the topic's
    end was met: before that a job may look as it did long ago."""

    def __init__(self, kafka: KafkaSettings, topics: Topics) -> None:
        self.jobs: dict[int, Job] = {}
        self.users = LogUsers()
        self.caught_up = False
        self._codec = MessagePackCodec()
        self._consumer = Consumer(
            {
                **kafka.librdkafka(),
                # Assigned by hand, from the start, no offsets kept: the topic is the state.
                "group.id": f"leasehold-spark-{uuid.uuid4()}",
                "enable.auto.commit": False,
                "isolation.level": "read_committed",
                "enable.partition.eof": True,
                "auto.offset.reset": "earliest",
                "fetch.wait.max.ms": 100,
            }
        )
        self._consumer.assign([TopicPartition(topics.jobs.name, 0, OFFSET_BEGINNING)])

    def poll(self, timeout_s: float) -> bool:
        """Take what has come, waiting at most `timeout_s`; True if a job has changed."""
        changed = False
        first = self._consumer.poll(timeout_s)
        # `consume` alone would wait for so many, or all that time.
        more = [] if first is None else self._consumer.consume(MESSAGES_MAX - 1, 0)
        for message in [] if first is None else [first, *more]:
            error = message.error()
            if error is None:
                changed |= self._take(message.key() or b"", message.value())
            elif error.code() == KafkaError._PARTITION_EOF:  # noqa: SLF001 - its public name
                self.caught_up = True
            else:
                log.warning("jobs topic: %s; reading goes on", error.str())
        return changed

    def close(self) -> None:
        self._consumer.close()

    def _take(self, key: bytes, value: bytes | None) -> bool:
        if not key.startswith(JOB_PREFIX):
            return False  # progress, ours and others'
        try:
            if value is None:
                return self.jobs.pop(int(key.removeprefix(JOB_PREFIX)), None) is not None
            event = self._codec.decode_as(JobEvent, value)
            self.jobs[event.job_id] = job_from_wire(event.body)
            self.users = self.users.after(event.lsn, event.commit_us)
        except (MalformedRequest, ValueError, TypeError, LookupError) as error:
            log.error("a job event under key %r can't be read and is left out: %s", key, error)
            return False
        return True
