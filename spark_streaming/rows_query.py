"""The query under every run: rows topics from the checkpoint to the end that they have now."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Final

from pyspark.errors import StreamingQueryException

from leasehold.settings.environment import KafkaSettings
from spark_streaming.gate import RateLimiter, RunStopped

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

RESIZE_FACTOR: Final = 4
PACED_BATCH_S: Final = 5
"""Under a rate limit a micro-batch holds about this many seconds' rows: what a pause or a crash
makes the run read and send once more."""


class RowsQuery:
    """The query of one name and checkpoint; Spark plans each micro-batch and notes it as done when
    `handle` returns. What is in it says `range_reader.ranges_of`; the frame itself is not read."""

    def __init__(
        self,
        session: SparkSession,
        kafka: KafkaSettings,
        sources: Sequence[str],
        *,
        name: str,
        checkpoint: str,
        gate: RateLimiter,
        offsets_per_batch: int,
        handle: Callable[[int], None],
    ) -> None:
        self._session = session
        self._kafka = kafka
        self._sources = ",".join(sources)
        self._name = name
        self._checkpoint = checkpoint
        self._gate = gate
        self._offsets_per_batch = offsets_per_batch
        self._handle = handle
        self._batch_size = offsets_per_batch
        self._batches = 0  # of the query that runs now
        self._resize = False

    def read(self) -> None:
        """Read to the end. Raises RunStopped when the gate is closed, PySparkException."""
        while True:
            self._batch_size = self._batch_offsets()
            self._batches = 0
            self._resize = False
            try:
                self._query()
                return
            except StreamingQueryException:
                if not self._resize:
                    raise

    def _query(self) -> None:
        images = (
            self._session.readStream.format("kafka")
            .options(**self._kafka.spark_options())
            .option("subscribe", self._sources)
            .option("startingOffsets", "earliest")
            .option("kafka.isolation.level", "read_committed")
            .option("maxOffsetsPerTrigger", self._batch_size)
            .load()
        )
        query = (
            images.writeStream.queryName(self._name)
            .foreachBatch(self._batch)
            .option("checkpointLocation", self._checkpoint)
            .trigger(availableNow=True)
            .start()
        )
        try:
            while not query.awaitTermination(timeout=1):
                if self._gate.is_closed():
                    raise RunStopped
        finally:
            if query.isActive:
                query.stop()

    def _batch(self, _: DataFrame, batch_id: int) -> None:
        if self._gate.is_closed():
            raise RunStopped
        self._check_size()
        self._handle(batch_id)

    def _check_size(self) -> None:
        """End the query if its micro-batches are of the wrong size by now. Spark fixes that when a
        query starts; a rate that has changed much needs another query. Raised before the batch
        sends anything, so nothing is done twice. The batch in hand keeps its size, being planned in
        the checkpoint already."""
        self._batches += 1
        wanted, size = self._batch_offsets(), self._batch_size
        if self._batches > 1 and not size // RESIZE_FACTOR < wanted < size * RESIZE_FACTOR:
            self._resize = True
            raise RunStopped

    def _batch_offsets(self) -> int:
        rate = self._gate.rows_per_second
        if rate == 0:
            return self._offsets_per_batch
        return min(self._offsets_per_batch, max(self._gate.rows_per_chunk, rate * PACED_BATCH_S))
