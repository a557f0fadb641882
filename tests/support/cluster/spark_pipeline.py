"""The driver process under test, and the topics around it as a test sees them."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from confluent_kafka import Consumer, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic

from infra.local_cluster import (
    ROOT,
    SPARK_JARS,
    SPARK_JAVA_OPTIONS,
    LocalCluster,
    spark_java_options,
)
from leasehold.adapters.codec.records import MessagePackCodec, row_key
from leasehold.adapters.kafka.topic_creation import ensure_topics
from leasehold.catalog.job import Job, Phase
from leasehold.model.records.events import RowImage
from leasehold.model.records.jobs import BackfillBorder, Chunk, ChunksEnd, JobEvent
from leasehold.model.topics import Topics
from leasehold.settings.environment import KafkaSettings
from tests.support.cluster.secure_suite import access_of
from tests.support.schema_change.made_job import index_job

DEADLINE_S = 120.0
CODEC = MessagePackCodec()


@contextmanager
def running_pipeline(
    servers: LocalCluster, database: str, data: Path, environ: Mapping[str, str]
) -> Iterator[Pipeline]:
    """One driver for a module: a JVM takes seconds to start."""
    servers.start_kafka()
    access = access_of(servers, "spark", database)
    ensure_topics(servers.kafka_settings, Topics(database).all_static())
    pipeline = Pipeline(servers.kafka_settings, Topics(database), data, {**access, **environ})
    try:
        pipeline.start()
        yield pipeline
    finally:
        pipeline.close()


class Pipeline:
    """`python -m spark_streaming.main` on one database, with one data folder over restarts."""

    def __init__(
        self, kafka: KafkaSettings, topics: Topics, data: Path, environ: Mapping[str, str]
    ) -> None:
        """`kafka`: how the test itself comes there, `environ`: how the driver does."""
        self._kafka = kafka.librdkafka()
        self.topics = topics
        self.data = data
        self.environ = dict(environ)
        self._process: subprocess.Popen[bytes] | None = None
        self._producer = Producer({**self._kafka, "linger.ms": 5, "compression.type": "lz4"})
        self._consumers: dict[str, Consumer] = {}
        self._starts = 0

    def start(self, **environ: str) -> None:
        """Returns when the process is ready for work. `environ`: what differs this time."""
        self._starts += 1
        ready = self.data / f"ready-{self._starts}"
        log = self.data / f"driver-{self._starts}.log"
        environ = {
            **os.environ,
            "PYTHONPATH": f"{ROOT}{os.pathsep}{ROOT / 'libs'}",
            "LEASEHOLD_DATA": str(self.data),
            "LEASEHOLD_SPARK_JARS": str(SPARK_JARS),
            "LEASEHOLD_SPARK_MEMORY_MB": "768",
            SPARK_JAVA_OPTIONS: spark_java_options(os.environ),
            "LEASEHOLD_READY_FILE": str(ready),
            **self.environ,
            **environ,
        }
        with log.open("wb") as output:
            self._process = subprocess.Popen(
                [sys.executable, "-m", "spark_streaming.main"],
                cwd=self.data,
                env=environ,
                stdout=output,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )
        give_up = time.monotonic() + DEADLINE_S
        while not ready.exists():
            assert self._process.poll() is None, log.read_text()[-3000:]
            assert time.monotonic() < give_up, log.read_text()[-3000:]
            time.sleep(0.05)

    def log(self) -> str:
        return (self.data / f"driver-{self._starts}.log").read_text()

    def kill(self) -> None:
        """SIGKILL to the Python process; the JVM sees its standard input end and follows."""
        assert self._process is not None
        self._process.kill()
        self._process.wait(DEADLINE_S)
        self._process = None

    def stop(self) -> int:
        """SIGTERM; the exit code."""
        assert self._process is not None
        self._process.send_signal(signal.SIGTERM)
        code = self._process.wait(DEADLINE_S)
        self._process = None
        return code

    def close(self) -> None:
        for consumer in self._consumers.values():
            consumer.close()
        if self._process is not None:
            self.kill()

    # ------------------------------------------------------------ topics

    def produce(
        self, topic: str, key: bytes, value: bytes | None, partition: int = 0, **headers: str
    ) -> None:
        while True:
            try:
                self._producer.produce(
                    topic, value, key=key, partition=partition, headers=list(headers.items())
                )
                return
            except BufferError:
                self._producer.poll(0.05)

    def flush(self) -> None:
        assert self._producer.flush(DEADLINE_S) == 0

    def publish_images(self, table_id: int, keys: Iterable[int], lsn: int = 1) -> None:
        """One row image per key; the topic is created when it is not there."""
        topic = self.topics.rows(table_id)
        admin = AdminClient(self._kafka)
        if topic.name not in admin.list_topics(timeout=DEADLINE_S).topics:
            new = NewTopic(topic.name, topic.partitions, 1, config=dict(topic.config))
            for future in admin.create_topics([new]).values():
                future.result(DEADLINE_S)
        for number in keys:
            key = (number, f"city {number % 97}")
            values = {1: number, 2: key[1], 3: f"user{number}@example.com", 4: number % 1000}
            image = RowImage(table_id, key, {0: lsn << 20}, lsn, 3, 1, values)
            partition = number % topic.partitions
            self.produce(topic.name, row_key(key), CODEC.encode(image), partition)
        self.flush()

    def publish_job(self, job: Job, lsn: int = 1, commit_us: int = 1) -> None:
        event = JobEvent(job.job_id, lsn, commit_us, job.to_wire())
        self.produce(self.topics.jobs.name, f"job/{job.job_id}".encode(), CODEC.encode(event))
        self.flush()

    def records(self, topic: str, until: Callable[[list[Any]], bool]) -> list[Any]:
        """Values of the topic from where the last call ended until `until(those so far)`."""
        if topic not in self._consumers:
            consumer = Consumer(
                {
                    **self._kafka,
                    "group.id": f"test-{topic}",
                    "isolation.level": "read_committed",
                    "fetch.wait.max.ms": 20,
                }
            )
            consumer.assign([TopicPartition(topic, 0, 0)])
            self._consumers[topic] = consumer
        found: list[Any] = []
        give_up = time.monotonic() + DEADLINE_S
        while not until(found):
            assert time.monotonic() < give_up, f"{len(found)} records; {self.log()[-3000:]}"
            for message in self._consumers[topic].consume(1, 0.5):
                assert message.error() is None, message.error()
                found.append(message)
        return found


def backfill_job(job_id: int, table_id: int, **settings: int) -> Job:
    """A job whose index waits for its rows: running, backfilling, run 1."""
    return index_job(
        job_id,
        table_id,
        request_id=job_id.to_bytes(16, "big"),
        step=1,
        phase=Phase.BACKFILLING,
        versions={table_id: 3},
        run=1,
        fence_lsn=7,
        settings=settings,
    )


def chunk_of(message: Any) -> Any:
    """What a record of the backfill queue says."""
    record = CODEC.decode(message.value())
    assert isinstance(record, Chunk | ChunksEnd | BackfillBorder)
    return record


def ended(job_id: int) -> Callable[[list[Any]], bool]:
    """For `Pipeline.records`: the end of a job's backfill has come."""

    def until(messages: list[Any]) -> bool:
        if not messages:
            return False
        last = chunk_of(messages[-1])
        return isinstance(last, ChunksEnd) and last.job_id == job_id

    return until


def keys_of(messages: list[Any]) -> list[int]:
    """First columns of all keys that the chunks name."""
    chunks = [chunk_of(m) for m in messages]
    return [key[0] for chunk in chunks if isinstance(chunk, Chunk) for key in chunk.keys]
