"""One backfill run: row images of a table → chunks on the backfill lane → the end marker."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from confluent_kafka import KafkaException
from confluent_kafka.admin import AdminClient
from py4j.protocol import Py4JError
from pyspark.errors import PySparkException, StreamingQueryException

from leasehold.adapters.codec import MessagePackCodec
from leasehold.adapters.environment import KafkaSettings
from leasehold.model.errors import BusUnavailable, LeaseholdError
from leasehold.model.records import Chunk, ChunksEnd
from leasehold.model.topics import Topics
from leasehold.schema.job import Job
from spark_streaming.chunks import Chunker, sorted_columns
from spark_streaming.gate import Gate, RunStopped
from spark_streaming.lane import Lane
from spark_streaming.progress import ProgressBoard, query_name
from spark_streaming.run_folder import RunFolder, Totals
from spark_streaming.schedule import RunId

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

log: Final = logging.getLogger(__name__)

RETRY_LEAST_MS: Final = 1_000
RETRY_MOST_MS: Final = 30_000
METADATA_MS: Final = 10_000
RESIZE_FACTOR: Final = 4
PACED_BATCH_S: Final = 5
"""Under a rate limit a micro-batch holds about this many seconds' rows: what a pause or a crash
makes the run read and send once more."""


class Backfill:
    """A thread that brings one run to its end, through failures of Spark and Kafka, or until its
    gate is closed (pause, cancel, end of the job, end of the process)."""

    def __init__(
        self,
        session: SparkSession,
        kafka: KafkaSettings,
        topics: Topics,
        job: Job,
        root: Path,
        board: ProgressBoard,
        offsets_per_batch: int,
    ) -> None:
        self.run = RunId(job.job_id, job.run)
        self.gate = Gate(job.settings)
        self.finished = False
        self._session = session
        self._kafka = kafka
        self._topics = topics
        self._folder = RunFolder(root, self.run)
        self._board = board
        self._offsets_per_batch = offsets_per_batch
        self._batch_size = offsets_per_batch
        self._batches = 0  # of the query that runs now
        self._resize = False
        self._codec = MessagePackCodec()
        self._source = topics.rows(job.table_id).name
        self._template = Chunk(
            job.job_id,
            job.run,
            job.table_id,
            job.versions[job.table_id],
            job.element_id,
            (),
        )
        self._columns = sorted_columns(job)
        self._thread = threading.Thread(
            target=self._work, name=f"backfill-{self.run.name}", daemon=True
        )

    def start(self) -> None:
        self._thread.start()

    @property
    def alive(self) -> bool:
        return self._thread.is_alive()

    def stop(self) -> None:
        """Ask it to end after the chunk in hand; what is unsent comes again with the next start."""
        self.gate.close()

    def join(self, timeout_s: float) -> None:
        self._thread.join(timeout_s)

    def _work(self) -> None:
        pause_ms = RETRY_LEAST_MS
        while not self.gate.is_closed():
            try:
                self._attempt()
                self.finished = True
                return
            except RunStopped:
                break
            except (PySparkException, Py4JError, LeaseholdError, OSError) as error:
                if self.gate.is_closed():
                    break
                words = str(error).splitlines()[0][:300]
                log.error(
                    "backfill %s failed and starts again in %d ms: %s",
                    self.run.name,
                    pause_ms,
                    words,
                )
                self._board.phase(self.run, f"failing: {words}")
                self.gate.wait_closed(pause_ms / 1000)
                pause_ms = min(2 * pause_ms, RETRY_MOST_MS)
        log.info("backfill %s stopped; it goes on from its checkpoint", self.run.name)
        self._board.phase(self.run, "stopped")

    def _attempt(self) -> None:
        """From the checkpoint to the acknowledged end marker. Raises RunStopped when closed."""
        started_ns = time.monotonic_ns()
        lane = Lane(self._kafka, self._topics.backfill.name)
        ended = self._folder.ended()
        if ended is None:
            self._board.count(self.run, self._folder.totals())
            self._board.phase(self.run, "backfilling")
            # Images up to the fence were published before the job event that brought us here
            # (one transactional changefeed, in log order): no topic means no rows.
            if self._source_exists():
                self._read(lane)
            if self.gate.is_closed():
                raise RunStopped
            ended = self._folder.totals()
        # The marker may be sent twice (killed before it was noted here); the master takes one.
        lane.send(self._codec.encode(ChunksEnd(*self.run, ended.rows, ended.chunks)))
        lane.flush()
        self._folder.end(ended)
        self._board.count(self.run, ended)
        self._board.phase(self.run, "ended")
        log.info(
            "backfill %s ended: %d rows in %d chunks, %.1f s since this start",
            self.run.name,
            ended.rows,
            ended.chunks,
            (time.monotonic_ns() - started_ns) / 1e9,
        )

    def _source_exists(self) -> bool:
        try:
            known = AdminClient(self._kafka.librdkafka()).list_topics(timeout=METADATA_MS / 1000)
        except KafkaException as error:
            raise BusUnavailable(f"Kafka does not tell its topics: {error}.") from error
        return self._source in known.topics

    def _read(self, lane: Lane) -> None:
        while True:
            self._batch_size = self._batch_offsets()
            self._batches = 0
            self._resize = False
            try:
                self._query(lane)
                return
            except StreamingQueryException:
                if not self._resize:
                    raise

    def _query(self, lane: Lane) -> None:
        """From the checkpoint to the end that the topic has now."""
        images = (
            self._session.readStream.format("kafka")
            .options(**self._kafka.spark_options())
            .option("subscribe", self._source)
            .option("startingOffsets", "earliest")
            .option("kafka.isolation.level", "read_committed")
            .option("maxOffsetsPerTrigger", self._batch_size)
            .load()
            .select("key", "value")
        )
        query = (
            images.writeStream.queryName(query_name(self._topics.database, self.run))
            .foreachBatch(lambda frame, batch_id: self._send_batch(lane, frame, batch_id))
            .option("checkpointLocation", self._folder.checkpoint)
            .trigger(availableNow=True)
            .start()
        )
        try:
            while not query.awaitTermination(timeout=1):
                if self.gate.is_closed():
                    raise RunStopped
        finally:
            if query.isActive:
                query.stop()

    def _check_size(self) -> None:
        """Spark fixes the size of micro-batches when a query starts; a rate that has changed much
        needs another query. Raised before the batch sends anything, so nothing is done twice. The
        batch in hand keeps its size, being planned in the checkpoint already."""
        self._batches += 1
        wanted, size = self._batch_offsets(), self._batch_size
        if self._batches > 1 and not size // RESIZE_FACTOR < wanted < size * RESIZE_FACTOR:
            self._resize = True
            raise RunStopped

    def _batch_offsets(self) -> int:
        rate = self.gate.rows_per_second
        if rate == 0:
            return self._offsets_per_batch
        return min(self._offsets_per_batch, max(self.gate.rows_per_chunk, rate * PACED_BATCH_S))

    def _send_batch(self, lane: Lane, frame: DataFrame, batch_id: int) -> None:
        """One micro-batch. Spark notes it as done only when the broker has all its chunks."""
        if self.gate.is_closed():
            raise RunStopped
        self._check_size()
        before = totals = self._folder.totals_before(batch_id)
        convert = converter(self._template, self._columns, self.gate.rows_per_chunk)
        for rows, body in frame.mapInArrow(convert, "rows long, body binary").collect():
            self.gate.wait_turn(rows)
            lane.send(bytes(body))
            totals = Totals(totals.rows + rows, totals.chunks + 1)
            self._board.count(self.run, totals)
        lane.flush()
        self._folder.count(batch_id, before, totals)


def converter(
    template: Chunk, columns: Sequence[int], rows_max: int
) -> Callable[[Iterable[Any]], Iterator[Any]]:
    """The function that Python workers run over one partition: (key, value) → (rows, body)."""

    def convert(batches: Iterable[Any]) -> Iterator[Any]:
        import pyarrow as pa

        codec = MessagePackCodec()
        chunker = Chunker(template, columns, rows_max)

        def arrow(chunks: Iterator[Chunk]) -> Iterator[Any]:
            for chunk in chunks:
                rows = pa.array([len(chunk.rows)], pa.int64())
                body = pa.array([codec.encode(chunk)], pa.binary())
                yield pa.RecordBatch.from_arrays([rows, body], ["rows", "body"])

        for batch in batches:
            yield from arrow(chunker.take(_bytes(batch.column(0)), _bytes(batch.column(1))))
        yield from arrow(chunker.rest())

    return convert


def _bytes(column: Any) -> list[Any]:
    """An Arrow column of bytes as a list, NULL as None; `to_pylist` would make a scalar of each."""
    found: list[Any] = column.to_numpy(zero_copy_only=False).tolist()
    return found
