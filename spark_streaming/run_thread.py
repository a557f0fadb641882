"""A thread that brings one run of a job to its end, whatever the run does."""

from __future__ import annotations

import logging
import threading
from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import lru_cache, partial
from typing import TYPE_CHECKING, ClassVar, Final, NamedTuple, TypeVar

from confluent_kafka import KafkaException
from confluent_kafka.admin import AdminClient
from py4j.protocol import Py4JError
from pyspark.errors import PySparkException

from leasehold.adapters.codec.records import MessagePackCodec
from leasehold.adapters.codec.request_bytes import MESSAGE_PACK
from leasehold.catalog.job import Job
from leasehold.model.errors import BusUnavailable, LeaseholdError
from leasehold.model.records.jobs import FAILING, ChunksEnd, Findings
from leasehold.model.records.requests import Queue
from leasehold.model.signatures import MACHINERY, NO_KEYS, RequestKeys, signer
from leasehold.model.topics import Topics
from leasehold.pipeline.chunks import WINDOW_ROWS_MAX
from leasehold.pipeline.schedule import RunId
from leasehold.settings.carried_kafka import carry
from leasehold.settings.environment import KafkaSettings
from spark_streaming.chunk_producer import ChunkProducer
from spark_streaming.failure_words import words_of
from spark_streaming.gate import RateLimiter, RunStopped
from spark_streaming.hadoop_folder import Folder
from spark_streaming.progress import ProgressBoard, query_name
from spark_streaming.range_reader import Range, ranges_of, windows_of
from spark_streaming.rows_query import RowsQuery
from spark_streaming.run_folder import RunFolder, Totals
from spark_streaming.spark_settings import SparkSettings

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

log: Final = logging.getLogger(__name__)

Part = TypeVar("Part")

RETRY_LEAST_MS: Final = 1_000
RETRY_MOST_MS: Final = 30_000
METADATA_MS: Final = 10_000
_BACKFILL: Final = Queue.BACKFILL.value


class RunResources(NamedTuple):
    """What every run of the driver works with; `runs` is the folder of all runs' folders."""

    session: SparkSession
    kafka: KafkaSettings
    topics: Topics
    settings: SparkSettings
    runs: Folder
    board: ProgressBoard
    keys: RequestKeys = NO_KEYS


class RunThread(ABC):
    """The thread of a run, which goes on through failures of Spark and Kafka, or until its gate is
    closed (pause, cancel, end of the job, end of the process). `finished`: its end is on the queue.
    `work` names what the run does, for people."""

    work: ClassVar[str]

    def __init__(self, resources: RunResources, job: Job) -> None:
        self._session = resources.session
        self._kafka = resources.kafka
        self._topics = resources.topics
        self._settings = resources.settings
        self._board = resources.board
        sign = signer(resources.keys, resources.topics.database)
        self._sign: Callable[[bytes], str] = partial(sign, _BACKFILL, MACHINERY, MESSAGE_PACK)
        self._job = job
        self._codec = MessagePackCodec()
        self.run = RunId(job.job_id, job.run)
        self._folder = RunFolder(resources.runs, self.run)
        self.gate = RateLimiter(job.settings)
        self.finished = False
        self._thread = threading.Thread(
            target=self._work, name=f"{self.work}-{self.run.name}", daemon=True
        )

    def start(self) -> None:
        self._thread.start()

    @property
    def alive(self) -> bool:
        return self._thread.is_alive()

    def stop(self) -> None:
        """Ask it to end after what is in hand; what is unsent comes again with the next start."""
        self.gate.close()

    def join(self, timeout_s: float) -> None:
        self._thread.join(timeout_s)

    @abstractmethod
    def _attempt(self) -> None:
        """Go from the checkpoint to the acknowledged end. Raises RunStopped when closed."""

    def _few_max(self) -> int:
        """Return how many offsets are few now: what is read without a query is reread after a
        pause or a crash, which nobody wants of a run that is to be slow, nor of one that a query
        has begun."""
        slow = self.gate.rows_per_second > 0
        return 0 if slow or self._folder.has_begun() else self._settings.few_offsets

    def _query(self, sources: Sequence[str], handle: Callable[[int], None]) -> RowsQuery:
        """Return the query over the rows topics `sources`, which gives `handle` the number of each
        micro-batch."""
        return RowsQuery(
            self._session,
            self._kafka_of_workers(),
            sources,
            name=query_name(self._topics.database, self.run),
            checkpoint=self._folder.checkpoint,
            gate=self.gate,
            offsets_per_batch=self._settings.offsets_per_batch,
            handle=handle,
        )

    def _send_end(
        self, chunk_producer: ChunkProducer, record: ChunksEnd | Findings, totals: Totals
    ) -> None:
        """Send the record that ends the run. It may be sent twice (killed before it was noted
        here); the master takes the first."""
        chunk_producer.send(self._codec.encode(record))
        chunk_producer.flush()
        self._folder.end(totals)

    def _tasks(self, most: int) -> int:
        """Return how many of so many tasks may run side by side now. Beside users one: each
        computes for seconds, and two of them are all that there is of a small machine."""
        there = 1 if self.gate.beside_users else self._session.sparkContext.defaultParallelism
        return max(1, min(most, there))

    def _windows(self, batch_id: int) -> list[Range]:
        """Return what Spark has planned as this micro-batch, in parts that a task has room for.
        Raises CheckpointUnreadable."""
        return windows_of(ranges_of(self._folder.planned, batch_id), WINDOW_ROWS_MAX)

    def _kafka_of_workers(self) -> KafkaSettings:
        """Return how workers reach Kafka: with what the files of the settings hold, where they run
        on other machines. Raises ConfigurationError."""
        return carry(self._kafka) if self._settings.on_cluster else self._kafka

    def _rounds(self, parts: Iterable[Part]) -> Iterator[list[Part]]:
        """Yield the parts in their order, as many at once as may be read side by side by then."""
        left = deque(parts)
        while left:
            yield [left.popleft() for _ in range(self._tasks(len(left)))]

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
                words = words_of(error)
                log.error(
                    "%s %s failed and starts again in %d ms: %s",
                    self.work,
                    self.run.name,
                    pause_ms,
                    words,
                )
                self._board.phase(self.run, f"{FAILING}{words}")
                self.gate.wait_closed(pause_ms / 1000)
                pause_ms = min(2 * pause_ms, RETRY_MOST_MS)
        log.info("%s %s stopped; it goes on from its checkpoint", self.work, self.run.name)
        self._board.phase(self.run, "stopped")


def topics_there(kafka: KafkaSettings) -> frozenset[str]:
    """Return the topics that there are. Raises BusUnavailable."""
    try:
        known = _admin(kafka).list_topics(timeout=METADATA_MS / 1000)
    except KafkaException as error:
        _admin.cache_clear()  # it may have lost its brokers for good (adapters/DESIGN.md, Kafka)
        raise BusUnavailable(f"could not list Kafka's topics: {error}.") from error
    return frozenset(known.topics)


@lru_cache(maxsize=1)
def _admin(kafka: KafkaSettings) -> AdminClient:
    """Return the one client for all runs: the answer takes 2 ms, and a connection 50."""
    return AdminClient(kafka.librdkafka())
