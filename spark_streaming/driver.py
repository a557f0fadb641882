"""The long-lived process of the data pipeline: `python -m spark_streaming.main`.

It follows the jobs topic, keeps a backfill or a validation running for each job that needs one, and
keeps the retry stream running. All its state is on Kafka and in Spark's checkpoints: kill it at any
moment.
"""

from __future__ import annotations

import logging
import shutil
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from threading import Event as Flag
from typing import TYPE_CHECKING, Final

from py4j.protocol import Py4JError
from pyspark.errors import PySparkException

from leasehold.adapters.kafka.access import AccessDenied
from leasehold.adapters.kafka.process_reports import ProcessReports
from leasehold.adapters.kafka.reader import TopicReader
from leasehold.adapters.metrics.exposition import Exposition
from leasehold.adapters.metrics.health import STOPPING
from leasehold.adapters.metrics.server import serve_metrics
from leasehold.adapters.os.readiness import announce_ready
from leasehold.adapters.os.scheduling import take_short_turns
from leasehold.adapters.service_process import Environment, run_service, stop_on_signals
from leasehold.catalog.job import Job, Phase
from leasehold.model import metrics
from leasehold.model.errors import BusUnavailable, ConfigurationError, SparkUnavailable
from leasehold.model.measures import Sample
from leasehold.model.signatures import NO_KEYS, RequestKeys
from leasehold.model.topics import Topics
from leasehold.pipeline.schedule import RunId, decide
from leasehold.settings.carried_kafka import carry
from leasehold.settings.environment import ClusterSettings, KafkaSettings, from_environment
from leasehold.settings.extras import need_extra
from leasehold.settings.private_files import make_private_folder
from leasehold.settings.request_key import RequestKeySettings
from leasehold.settings.traces import TraceSettings
from spark_streaming.backfill import Backfill
from spark_streaming.fact_store import LOCAL, path_of
from spark_streaming.failure_words import words_of
from spark_streaming.hadoop_folder import Folder, HadoopFolder
from spark_streaming.jobs_reader import JobsReader
from spark_streaming.progress import ProgressBoard, QueryListener
from spark_streaming.retry_thread import RetryThread
from spark_streaming.run_folder import runs_of_job
from spark_streaming.run_thread import RunResources, RunThread
from spark_streaming.session import DriverAddress, connector_jars, start_session, warm_up
from spark_streaming.spark_settings import SparkSettings
from spark_streaming.validation import Validation
from spark_streaming.verify_retry import NO_TRACES, RetryStream

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

log: Final = logging.getLogger("spark_streaming.driver")

POLL_S: Final = 0.2
PATIENCE_S: Final = 600.0
"""Longest that a turn takes: it starts queries, which ask Kafka and executors."""
STOP_S: Final = 15.0
BROKER_TIMEOUT_S: Final = 3.0
BROKER_RETRY_S: Final = 2.0


class Driver:
    """Starts and stops runs as `schedule.decide` says, until asked to stop."""

    def __init__(
        self,
        session: SparkSession,
        kafka: KafkaSettings,
        topics: Topics,
        settings: SparkSettings,
        folder: Folder,
        keys: RequestKeys = NO_KEYS,
        traces: TraceSettings = NO_TRACES,
    ) -> None:
        """Make ready to start. `folder`: what another driver goes on from. Raises
        SparkUnavailable."""
        self._settings = settings
        self._runs = folder.below("backfill")
        self._runs.make("")
        self._kept = set(self._runs.names(""))
        self._board = ProgressBoard(kafka, topics)
        self._resources = RunResources(
            session, kafka, topics, settings, self._runs, self._board, keys
        )
        self._listener = QueryListener(self._board)
        self._reader = JobsReader(kafka, topics)
        stream = RetryStream(
            session,
            kafka,
            topics,
            folder.uri("retry"),
            attempts_max=settings.attempts_max,
            trigger_ms=settings.trigger_ms,
            carried=settings.on_cluster,
            keys=keys,
            traces=traces,
        )
        self._retries = RetryThread(stream, partial(_take_pool, session))
        self._running: dict[RunId, RunThread] = {}
        self._finished: set[RunId] = set()
        self._forgotten: set[int] = set()
        session.streams.addListener(self._listener)

    @property
    def jobs(self) -> Mapping[int, Job]:
        return self._reader.jobs

    def samples(self) -> Iterator[Sample]:
        """Yield what a scrape is told; from any thread."""
        yield from self._board.samples()
        yield Sample(metrics.RETRY_WAITING, metrics.NO_LABELS, self._retries.waiting)
        running = list(self._running.values())
        for kind in (Backfill, Validation):
            number = sum(isinstance(thread, kind) for thread in running)
            yield Sample(metrics.SPARK_RUNS, (kind.__name__.lower(),), number)

    def start_retries(self) -> None:
        """Start the retry stream. Raises PySparkException if it can't be started."""
        self._retries.start()
        self._board.alive()

    def catch_up(self, stop: Flag) -> None:
        """Read the jobs topic to its end: older states must not start anything."""
        while not self._reader.caught_up and not stop.is_set():
            self._reader.poll(POLL_S)

    def turn(self) -> None:
        """Do one turn of the loop: what has come from the jobs topic, then what follows from it."""
        self._reader.poll(POLL_S)
        self._retries.check()
        self._board.alive(self._retries.trouble)
        for run in [run for run, thread in self._running.items() if not thread.alive]:
            if self._running.pop(run).finished:
                self._finished.add(run)
            self._board.drop(run)
        jobs = self._reader.jobs
        decision = decide(
            jobs, self._running, self._finished, backfills_max=self._settings.backfills_max
        )
        for run, thread in self._running.items():
            if run.job_id in jobs and run not in decision.stop:
                self._tell(thread, jobs[run.job_id])
        for run in decision.stop:
            self._running[run].stop()
        for run in decision.start:
            self._start(run)
        for job_id in decision.forget:
            self._forget(job_id)

    def close(self) -> None:
        for thread in self._running.values():
            thread.stop()
        deadline = time.monotonic() + STOP_S
        for thread in self._running.values():
            thread.join(max(0.0, deadline - time.monotonic()))
        self._retries.close()
        self._reader.close()
        self._board.close()

    def _start(self, run: RunId) -> None:
        job = self._reader.jobs[run.job_id]
        work = Validation if job.phase is Phase.VALIDATING else Backfill
        log.info("%s %s starts", work.__name__.lower(), run.name, extra={"job": run.job_id})
        thread = self._running[run] = work(self._resources, job)
        self._kept.add(run.name)
        self._tell(thread, job)
        thread.start()

    def _tell(self, thread: RunThread, job: Job) -> None:
        beside = self._reader.users.beside
        thread.gate.follow(job.settings, job.rows_read, beside_users=beside)

    def _forget(self, job_id: int) -> None:
        if job_id not in self._forgotten:
            for name in runs_of_job(self._kept, job_id):
                self._kept.discard(name)
                try:
                    self._runs.remove(name)
                except SparkUnavailable as error:
                    log.warning("an ended run's folder stays until the next start: %s", error)
            self._forgotten.add(job_id)
            self._finished = {run for run in self._finished if run.job_id != job_id}


def _take_pool(session: SparkSession, pool: str) -> None:
    """Give the jobs of the calling thread, and of queries that it starts, a pool of Spark's
    scheduler: those of several share the processors, of one they stand one behind the other."""
    session.sparkContext.setLocalProperty("spark.scheduler.pool", pool)


def await_topics(kafka: KafkaSettings, topics: Topics, stop: Flag) -> bool:
    """Wait for a broker that is away, saying so; False when asked to stop meanwhile. Raises
    AccessDenied.

    Spark itself would end its first query with a page of a Java stack trace."""
    reader = TopicReader(kafka, "leasehold-spark", give_up=stop.is_set)
    try:
        while not stop.is_set():
            try:
                for topic in (topics.jobs, topics.conflicts, topics.backfill):
                    reader.partitions(topic.name, BROKER_TIMEOUT_S)
                return True
            except AccessDenied:
                raise
            except BusUnavailable as error:
                if stop.is_set():
                    break
                log.warning("waiting for Kafka: %s", error.message)
                stop.wait(BROKER_RETRY_S)
    finally:
        reader.close()
    return False


@dataclass(frozen=True, slots=True)
class ProcessSettings:
    cluster: ClusterSettings
    kafka: KafkaSettings
    spark: SparkSettings
    topics: Topics
    requests: RequestKeySettings
    keys: RequestKeys
    traces: TraceSettings

    @classmethod
    def read(cls, environ: Environment) -> ProcessSettings:
        """Raises ConfigurationError."""
        cluster = from_environment(ClusterSettings, environ)
        spark = from_environment(SparkSettings, environ)
        requests = from_environment(RequestKeySettings, environ)
        connector_jars(spark)  # as long as nothing else has begun
        return cls(
            cluster,
            from_environment(KafkaSettings, environ),
            spark,
            Topics(cluster.database, cluster.replication_factor),
            requests,
            _keys_of(requests),
            from_environment(TraceSettings, environ),
        )

    @property
    def groups(self) -> Sequence[object]:
        return self.cluster, self.kafka, self.spark, self.requests, self.traces


def _keys_of(requests: RequestKeySettings) -> RequestKeys:
    """Raises ConfigurationError for a role's key: what fills rows is signed by the database."""
    keys = requests.keys
    if keys.of_role is not None:
        raise ConfigurationError(
            "LEASEHOLD_REQUEST_KEY of Spark's driver is a role's key; it has to be that of the"
            " masters.",
            variable="LEASEHOLD_REQUEST_KEY",
        )
    return keys


def open_folder(
    session: SparkSession, settings: SparkSettings, disk: Path, database: str
) -> HadoopFolder:
    """Return the folder of what another driver goes on from, closed to others where this machine's
    system says who may open it. Raises SparkUnavailable, ConfigurationError."""
    place = f"{LOCAL}{disk.absolute()}"
    if settings.folder is not None:
        place = f"{settings.folder}/{database}"
        path = path_of(place)
        if path is not None:
            make_private_folder(path)
    return HadoopFolder(session, place)


@contextmanager
def told_in_words(done: str, settings: SparkSettings) -> Iterator[None]:
    """Turn what Spark raises into SparkUnavailable."""
    try:
        yield
    except (PySparkException, Py4JError) as error:
        raise SparkUnavailable(
            f"Spark, with {settings.master_or_local} as its master, does not {done}:"
            f" {words_of(error)}"
        ) from error


def has_ended(session: SparkSession) -> bool:
    """Return whether Spark has stopped under this process: its master has taken it off, or does not
    answer any more. No query comes through then, however often it is tried."""
    try:
        return bool(session.sparkContext._jsc.sc().isStopped())  # noqa: SLF001 - no other way
    except Py4JError:
        return True


def run_pipeline(settings: ProcessSettings, stop: Flag) -> None:
    """Run what jobs need until `stop`. Raises AccessDenied."""
    logging.getLogger("py4j").setLevel(logging.ERROR)  # it tells of every call otherwise
    cluster, kafka, topics = settings.cluster, settings.kafka, settings.topics
    disk = cluster.data / "spark" / cluster.database
    make_private_folder(disk)
    # Shuffles and unpacked state of an earlier process; checkpoints stay.
    shutil.rmtree(disk / "scratch", ignore_errors=True)
    with serve_metrics(cluster) as exposition, ProcessReports(kafka, topics, "spark"):
        if await_topics(kafka, topics, stop):
            _run_driver(settings, disk, exposition, stop)


def _run_driver(settings: ProcessSettings, disk: Path, exposition: Exposition, stop: Flag) -> None:
    cluster, kafka, topics = settings.cluster, settings.kafka, settings.topics
    address = DriverAddress(cluster.advertise, cluster.listen)
    with told_in_words("start", settings.spark):
        session = start_session(settings.spark, disk, address)
    # Spark's own handler for SIGINT would end the JVM under running queries.
    stop_on_signals(stop)
    folder = open_folder(session, settings.spark, disk, cluster.database)
    keys, traces = settings.keys, settings.traces
    if traces.endpoint is not None:
        need_extra("traces", "LEASEHOLD_TRACES_ENDPOINT", "opentelemetry")
    driver = Driver(session, kafka, topics, settings.spark, folder, keys, traces)
    exposition.add("driver", driver.samples)
    try:
        known = carry(kafka) if settings.spark.on_cluster else kafka
        with told_in_words("work", settings.spark):
            warm_up(session, known, topics.jobs.name)
            driver.start_retries()
        driver.catch_up(stop)
        announce_ready(cluster.ready_file)
        exposition.health.watch(PATIENCE_S)
        exposition.health.ready_when(lambda: STOPPING if stop.is_set() else "")
        log.info("ready: %d jobs known", len(driver.jobs))
        while not stop.is_set():
            driver.turn()
            exposition.health.turned()
            if has_ended(session):
                raise SparkUnavailable(
                    f"{settings.spark.master_or_local} no longer knows this driver, or its JVM is"
                    " gone. Start it again: it goes on from its checkpoints."
                )
    finally:
        driver.close()
        with suppress(Py4JError):  # its JVM may be gone, and takes nothing along
            session.stop()


def main() -> int:
    """Run as `run_service`; a process of its own, whose JVM and workers inherit how it is
    scheduled."""
    take_short_turns()
    return run_service(log.name, ProcessSettings.read, run_pipeline)
