"""A backfill run: row images of a table → chunks on the backfill queue → the end marker."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from typing import Final, TypeAlias, TypeVar

from leasehold.adapters.codec.records import MessagePackCodec
from leasehold.catalog.job import Job
from leasehold.model.records.jobs import Chunk, ChunksEnd
from leasehold.pipeline.borders import ONE_RANGE_ROWS_MAX, Sample, cut_ranges, take_sample
from leasehold.pipeline.chunks import Chunker, chunk_template, sorted_columns
from leasehold.settings.environment import KafkaSettings
from spark_streaming.chunk_producer import ChunkProducer
from spark_streaming.few_images import FewImages
from spark_streaming.gate import RunStopped
from spark_streaming.range_reader import Range, Records, pieces_of, records_of
from spark_streaming.run_folder import Totals
from spark_streaming.run_thread import RunResources, RunThread, topics_there

log: Final = logging.getLogger(__name__)

Made = TypeVar("Made")
Convert: TypeAlias = Callable[[Iterable[Range]], Iterable[Made]]
"""What Python workers run."""

SAMPLED_OFFSETS: Final = 32_768
SAMPLED_OF_PIECES: Final = 8
"""Of a table of a million rows one key of 250 tells where to cut it: a range is then right to a
thirtieth."""


class Backfill(RunThread):
    """The thread that brings one run of a backfill to its end marker."""

    work = "backfill"

    def __init__(self, resources: RunResources, job: Job) -> None:
        super().__init__(resources, job)
        self._source = self._topics.rows(job.worked_table).name
        self._template = chunk_template(job)
        self._columns = sorted_columns(job)

    def _attempt(self) -> None:
        """Go from the checkpoint to the acknowledged end marker. Raises RunStopped when closed."""
        started_ns = time.monotonic_ns()
        chunk_producer = ChunkProducer(self._kafka, self._topics.backfill.name, self._sign)
        ended = self._folder.ended()
        if ended is None:
            self._board.count(self.run, self._folder.totals())
            self._board.phase(self.run, "backfilling")
            # Images up to the fence were published before the job event that brought us here
            # (one transactional changefeed, in log order): no topic means no rows.
            there = self._source in topics_there(self._kafka)
            by_range = self._job.by_range
            send_few = self._sample_few if by_range else partial(self._send_few, chunk_producer)
            ended = send_few() if there else Totals()
            if ended is None:
                send = self._sample_batch if by_range else partial(self._send_batch, chunk_producer)
                self._query((self._source,), send).read()
                ended = self._folder.totals()
            if self.gate.is_closed():
                raise RunStopped
            if by_range:
                ended = self._send_borders(chunk_producer, ended)
        self._send_end(chunk_producer, ChunksEnd(*self.run, ended.rows, ended.chunks), ended)
        self._board.count(self.run, ended)
        self._board.phase(self.run, "ended")
        log.info(
            "backfill %s ended: %d rows in %d chunks, %.1f s since this start",
            self.run.name,
            ended.rows,
            ended.chunks,
            (time.monotonic_ns() - started_ns) / 1e9,
        )

    def _send_few(self, chunk_producer: ChunkProducer) -> Totals | None:
        """Send all chunks, where the images are few; return None where a query has to read them.
        What goes wrong in between goes wrong before the marker, and all of them come once more."""
        totals = Totals()
        with FewImages(self._kafka, (self._source,), self.gate.is_closed) as images:
            ranges = images.ranges(self._few_max())
            if ranges is None:
                return None
            for wanted in ranges:
                chunker = Chunker(self._template, self._columns, self.gate.rows_per_chunk)
                for chunk in _chunks(images.records(wanted), chunker):
                    rows = len(chunk.keys)
                    self.gate.wait_turn(rows)
                    chunk_producer.send(self._codec.encode(chunk))
                    totals = Totals(totals.rows + rows, totals.chunks + 1)
                    self._board.count(self.run, totals)
        return totals

    def _send_batch(self, chunk_producer: ChunkProducer, batch_id: int) -> None:
        """Send the chunks of one micro-batch. Spark notes it as done only when the broker has them
        all."""
        before = totals = self._folder.totals_before(batch_id)
        for windows in self._rounds(self._windows(batch_id)):
            for rows, body in self._spread(windows, self._converter()):
                self.gate.wait_turn(rows)
                chunk_producer.send(body)
                totals = Totals(totals.rows + rows, totals.chunks + 1)
                self._board.count(self.run, totals)
            # Also behind the last one: what Spark does between two micro-batches is work, too.
            self.gate.wait_decided(totals.rows)
        chunk_producer.flush()
        self._folder.count(batch_id, before, totals)

    def _converter(self) -> Convert[tuple[int, bytes]]:
        """Return what workers run, as settings are by now."""
        kafka = self._kafka_of_workers()
        return converter(kafka, self._template, self._columns, self.gate.rows_per_chunk)

    def _spread(self, windows: list[Range], convert: Convert[Made]) -> list[Made]:
        """Return what workers make of the windows, one task each, in their order. Raises
        PySparkException."""
        spread = self._session.sparkContext.parallelize(windows, len(windows))
        return spread.mapPartitions(convert).collect()

    # ------------------------------------------------------------ by range

    def _sample_few(self) -> Totals | None:
        """Return how many images there are, and keep keys of as many as the driver reads itself;
        None where it reads none. Where images lie tells nothing of their keys, so that some pieces
        from all over a topic tell where to cut as well as all of it does."""
        few_max = self._few_max()
        if not few_max:
            return None
        with FewImages(self._kafka, (self._source,), self.gate.is_closed) as images:
            ranges = images.all_ranges()
            rows = sum(each.until - each.first for each in ranges)
            if rows <= max(few_max, ONE_RANGE_ROWS_MAX):
                return Totals(rows, 0)
            keys: list[bytes] = []
            for piece in pieces_of(ranges, min(few_max, SAMPLED_OFFSETS)):
                for records in images.records(piece):
                    if self.gate.is_closed():
                        raise RunStopped
                    keys += take_sample(records.keys, records.images, SAMPLED_OF_PIECES).keys
        self._folder.keep_sample(0, keys)
        return Totals(rows, 0)

    def _sample_batch(self, batch_id: int) -> None:
        """Read one micro-batch: count its rows, and keep some of their keys."""
        before = totals = self._folder.totals_before(batch_id)
        keys: list[bytes] = []
        for windows in self._rounds(self._windows(batch_id)):
            for sample in self._spread(windows, sampler(self._kafka_of_workers())):
                self.gate.wait_turn(sample.rows)
                keys += sample.keys
                totals = Totals(totals.rows + sample.rows, 0)
                self._board.count(self.run, totals)
        self._folder.keep_sample(batch_id, keys)
        self._folder.count(batch_id, before, totals)

    def _send_borders(self, chunk_producer: ChunkProducer, totals: Totals) -> Totals:
        """Send where to cut. After a failure they come again, and those that the log has are passed
        over."""
        borders = cut_ranges(self._job, self._folder.all_samples(), totals.rows)
        for border in borders:
            chunk_producer.send(self._codec.encode(border))
        return Totals(totals.rows, len(borders))


def sampler(kafka: KafkaSettings) -> Convert[Sample]:
    """Return what turns ranges of the topic into samples."""

    def convert(ranges: Iterable[Range]) -> Iterator[Sample]:
        for wanted in ranges:
            for each in records_of(kafka, wanted):
                yield take_sample(each.keys, each.images)

    return convert


def converter(
    kafka: KafkaSettings, template: Chunk, columns: Sequence[int], rows_max: int
) -> Convert[tuple[int, bytes]]:
    """Return what turns ranges of the topic into (rows, chunk)."""

    def convert(ranges: Iterable[Range]) -> Iterator[tuple[int, bytes]]:
        codec = MessagePackCodec()
        for wanted in ranges:
            for chunk in _chunks(records_of(kafka, wanted), Chunker(template, columns, rows_max)):
                yield len(chunk.keys), codec.encode(chunk)

    return convert


def _chunks(records: Iterable[Records], chunker: Chunker) -> Iterator[Chunk]:
    for each in records:
        yield from chunker.take(each.keys, each.images)
    yield from chunker.rest()
