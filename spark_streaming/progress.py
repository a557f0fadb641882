"""Progress of backfill runs: rows, rate and phase, to the jobs topic under `progress/<job>/<run>`;
and under `spark`, that the driver is at work.

Rows are counted, not derived from offsets: compacted topics have gaps, and so have transactional
ones. A paced micro-batch may last long, so the sender reports as it goes; Spark's listener reports
at the end of each micro-batch and when a query is idle or over.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from contextlib import suppress
from functools import cached_property
from typing import Any, Final, cast

from pyspark import SparkContext
from pyspark.sql.streaming.listener import (
    JStreamingQueryListener,
    QueryIdleEvent,
    QueryProgressEvent,
    QueryStartedEvent,
    QueryTerminatedEvent,
    StreamingQueryListener,
)

from leasehold.adapters.codec.records import MessagePackCodec
from leasehold.model import metrics
from leasehold.model.errors import BusUnavailable
from leasehold.model.measures import Measures, Sample
from leasehold.model.records.jobs import JobProgress, SparkReport
from leasehold.model.topics import Topics
from leasehold.pipeline.rate_window import RateWindow
from leasehold.pipeline.schedule import RunId
from leasehold.replication.changefeed import progress_key
from leasehold.settings.environment import KafkaSettings
from spark_streaming.chunk_producer import ChunkProducer
from spark_streaming.run_folder import Totals

REPORT_MS: Final = 500
ALIVE_MS: Final = 5_000
QUERY_PREFIX: Final = "backfill-"


class ProgressBoard:
    """Newest progress per run, sent at most twice a second per run. Shared by all threads."""

    def __init__(self, kafka: KafkaSettings, topics: Topics) -> None:
        self._kafka = kafka
        self._topic = topics.jobs.name
        self._codec = MessagePackCodec()
        self._lock = threading.Lock()
        self._chunk_producer: ChunkProducer | None = None
        self._totals: dict[RunId, Totals] = {}
        self._phases: dict[RunId, str] = {}
        self._rates: dict[RunId, RateWindow] = {}
        self._sent_ns: dict[RunId, int] = {}
        self._alive: tuple[int, str] | None = None
        self.measures = Measures()
        """What is counted of micro-batches, under the lock."""

    def count(self, run: RunId, totals: Totals) -> None:
        """The run's totals so far. A replayed micro-batch starts again from lower ones."""
        with self._lock:
            now_ns = time.monotonic_ns()
            known = self._totals.get(run)
            if known is None or totals.rows < known.rows:
                self._rates[run] = RateWindow()
            self._totals[run] = totals
            self._rates[run].add(totals.rows, now_ns)
            if now_ns - self._sent_ns.get(run, 0) >= REPORT_MS * 1_000_000:
                self._send(run, now_ns)

    def phase(self, run: RunId, phase: str) -> None:
        """Sent at once: a phase is what people wait for."""
        with self._lock:
            self._phases[run] = phase
            self._send(run, time.monotonic_ns())

    def report(self, run: RunId) -> None:
        with self._lock:
            if run in self._totals:
                self._send(run, time.monotonic_ns())

    def count_batch(self, stream: str, seconds: float) -> None:
        """Count a micro-batch that has ended."""
        with self._lock:
            self.measures.add(metrics.SPARK_BATCHES, 1, (stream,))
            self.measures.observe(metrics.SPARK_BATCH_S, seconds, (stream,))

    def count_failure(self) -> None:
        """Count a query that ended with an error."""
        with self._lock:
            self.measures.add(metrics.SPARK_FAILURES)

    def samples(self) -> Iterator[Sample]:
        """Yield what a scrape is told; from any thread."""
        with self._lock:
            totals = list(self._totals.items())
            rates = {run: rate.rows_per_second() for run, rate in self._rates.items()}
            found = self.measures.samples()
            trouble = self._alive[1] if self._alive is not None else ""
        yield from found
        for run, total in totals:
            yield Sample(metrics.SPARK_ROWS, (str(run.job_id),), total.rows)
            yield Sample(metrics.SPARK_RATE, (str(run.job_id),), rates.get(run, 0.0))
        yield Sample(metrics.RETRY_TROUBLE, metrics.NO_LABELS, float(bool(trouble)))

    def alive(self, trouble: str = "") -> None:
        """Say that the driver is at work, now and then, and what troubles it at once."""
        with self._lock:
            now_ns = time.monotonic_ns()
            if self._alive is not None:
                sent_ns, told = self._alive
                if told == trouble and now_ns - sent_ns < ALIVE_MS * 1_000_000:
                    return
            self._alive = now_ns, trouble
            self._tell(b"spark", SparkReport(time.time_ns() // 1000, trouble))

    def drop(self, run: RunId) -> None:
        """The run is over here; its last progress stays on the topic."""
        with self._lock:
            for kept in (self._totals, self._phases, self._rates, self._sent_ns):
                kept.pop(run, None)

    def close(self) -> None:
        """Let the last reports arrive."""
        with self._lock:
            if self._chunk_producer is not None:
                with suppress(BusUnavailable):
                    self._chunk_producer.flush()

    def _send(self, run: RunId, now_ns: int) -> None:
        totals = self._totals.get(run, Totals())
        rate = self._rates[run].rows_per_second() if run in self._rates else 0.0
        phase = self._phases.get(run, "backfilling")
        progress = JobProgress(
            run.job_id, run.run, totals.rows, totals.chunks, rate, phase, time.time_ns() // 1000
        )
        self._sent_ns[run] = now_ns
        self._tell(progress_key(run.job_id, run.run), progress)

    def _tell(self, key: bytes, report: JobProgress | SparkReport) -> None:
        try:
            if self._chunk_producer is None:
                self._chunk_producer = ChunkProducer(self._kafka, self._topic)
            self._chunk_producer.send(self._codec.encode(report), key)
        except BusUnavailable:
            # Progress is for people; the next report says it again, with a new producer.
            self._chunk_producer = None


class RunsAlone(JStreamingQueryListener):
    """What the JVM calls: of a micro-batch's progress only which run it is of is read.

    PySpark's own reads all of it, value by value. Of a query with state that is hundreds of calls
    from one process to the other and back, during which nobody else has the processor: 98 ms of the
    JVM's and 23 of Python's were a writer's longest wait (tests/bench/DESIGN.md)."""

    def onQueryProgress(self, jevent: Any) -> None:  # noqa: N802 - Spark's name
        progress = jevent.progress()
        run_id = progress.runId().toString()
        listener = cast("QueryListener", self.pylistener)
        listener.ended_batch(run_id, progress.batchDuration() / 1_000)
        listener.report(run_id)


class QueryListener(StreamingQueryListener):
    """Forwards Spark's events about backfill queries to the board.

    `failures` counts queries that ended with an error, of any kind.
    """

    def __init__(self, board: ProgressBoard) -> None:
        self._board = board
        self._runs: dict[str, RunId] = {}
        self.failures = 0

    @cached_property
    def _jlistener(self) -> Any:
        """What `addListener` of PySpark gives to the JVM."""
        jvm: Any = SparkContext._jvm  # noqa: SLF001 - PySpark offers no other way
        return jvm.PythonStreamingQueryListenerWrapper(RunsAlone(self))

    def onQueryStarted(self, event: QueryStartedEvent) -> None:  # noqa: N802 - Spark's name
        run = run_of_query(event.name)
        if run is not None:
            self._runs[str(event.runId)] = run
            self._board.report(run)

    def onQueryProgress(self, event: QueryProgressEvent) -> None:  # noqa: N802
        self.ended_batch(str(event.progress.runId), event.progress.batchDuration / 1_000)
        self.report(str(event.progress.runId))

    def onQueryIdle(self, event: QueryIdleEvent) -> None:  # noqa: N802
        self.report(str(event.runId))

    def onQueryTerminated(self, event: QueryTerminatedEvent) -> None:  # noqa: N802
        if event.exception is not None:
            self.failures += 1
            self._board.count_failure()
        run = self._runs.pop(str(event.runId), None)
        if run is not None:
            self._board.report(run)

    def ended_batch(self, run_id: str, seconds: float) -> None:
        """Take that a micro-batch of a query's run has ended: of a backfill, or of the retry
        stream."""
        self._board.count_batch("backfill" if run_id in self._runs else "retry", seconds)

    def report(self, run_id: str) -> None:
        """Spark's id of a query's run: its progress, if it is a backfill's."""
        run = self._runs.get(run_id)
        if run is not None:
            self._board.report(run)


def query_name(database: str, run: RunId) -> str:
    return f"{QUERY_PREFIX}{database}-{run.name}"


def run_of_query(name: str | None) -> RunId | None:
    if name is None or not name.startswith(QUERY_PREFIX):
        return None
    _, job_id, run = name.rsplit("-", 2)
    return RunId(int(job_id), int(run))
