"""A validation run: row images → facts about constraints → findings on the backfill queue.

Two passes. The first is a query like a backfill's, checkpointed and behind the job's gate: what
each image says to the constraints goes to files, one folder per micro-batch. The second compares
them, newest per row: it reads files alone, so a run that is killed in it just does it again.
"""

from __future__ import annotations

import logging
import time
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from functools import partial
from typing import Final, TypeAlias

from leasehold.adapters.kafka.whole_topic import read_compacted
from leasehold.catalog.descriptor import Descriptor, read_descriptor
from leasehold.model.errors import BusUnavailable
from leasehold.model.records.events import VersionEvent
from leasehold.pipeline.facts import (
    FINDINGS_MAX,
    ConstraintGroups,
    Fact,
    FactExtractor,
    FactSource,
    find_sources,
    find_suspects,
    find_told,
    group_constraints,
    make_findings,
    select_counted,
)
from leasehold.replication.changefeed import version_key
from spark_streaming.chunk_producer import ChunkProducer
from spark_streaming.comparison import Comparison
from spark_streaming.fact_store import (
    Counts,
    MakeExtractors,
    extract,
    frame_of,
    read_few,
    write_facts,
)
from spark_streaming.few_images import FewImages
from spark_streaming.gate import RunStopped
from spark_streaming.run_folder import Totals
from spark_streaming.run_thread import RunThread, topics_there

log: Final = logging.getLogger(__name__)

CLIENT: Final = "leasehold-spark-versions"
Counted: TypeAlias = Collection[tuple[int, bool]]
"""(element, parent) of the sides whose facts are counted: one of each table."""
IN_MEMORY_MAX: Final = 20_000
"""So many facts are compared in this process, in 0.1 s; Spark takes 0.8 s for a single one."""


class Validation(RunThread):
    """The thread that brings one run of a validation to its findings, which end it; be there
    none."""

    work = "validation"

    def _attempt(self) -> None:
        """Go from the checkpoint to the acknowledged findings. Raises RunStopped when closed."""
        if self._folder.ended() is not None:
            return  # they are on the queue, and the job has yet to hear of it
        started_ns = time.monotonic_ns()
        # Now, so that it is connected when it is wanted.
        chunk_producer = ChunkProducer(self._kafka, self._topics.backfill.name, self._sign)
        events = read_compacted(
            self._kafka, CLIENT, self._topics.versions.name, give_up=self.gate.is_closed
        )
        descriptor = self._descriptor(events)
        elements = find_told(descriptor, self._job.current.validates)
        sides = find_sources(descriptor, elements)
        self._board.count(self.run, self._folder.totals())
        self._board.phase(self.run, "validating")
        # As for a backfill: every image up to the fence is there, and no topic means no rows.
        there = topics_there(self._kafka)
        tables = {self._topics.rows(side.table_id).name: side.table_id for side in sides}
        sources = {topic: table for topic, table in tables.items() if topic in there}
        facts: list[Fact] | None = []
        totals = Totals()
        if descriptor.table_id in sources.values():
            # Other tables stay as they are while the job runs (D9); one not told of is harmless.
            others = {side.table_id for side in sides} - {descriptor.table_id}
            told = (self._event(events, table_id) for table_id in sorted(others))
            parents = [read_descriptor(event.body) for event in told if event is not None]
            extractors = partial(make_extractors, descriptor, sides, sources, parents)
            counted = {
                (side.element_id, side.parent)
                for table, side in select_counted(sides).items()
                if table in sources.values()
            }
            facts = self._facts_of_few(extractors())
            if facts is not None:
                totals = self._passed(Totals(), Counter(fact[:2] for fact in facts), counted)
            else:
                self._query(tuple(sources), partial(self._keep, extractors, counted)).read()
                totals = self._folder.totals()
        self._board.phase(self.run, "comparing")
        read_ns = time.monotonic_ns()
        total, first = self._suspects(group_constraints(descriptor, elements), facts)
        compared_ns = time.monotonic_ns() - read_ns
        if self.gate.is_closed():
            raise RunStopped
        findings = make_findings(self._job, totals.rows, total, first)
        self._send_end(chunk_producer, findings, totals)
        self._board.phase(self.run, "ended")
        log.info(
            "validation %s ended: %d rows, %d findings, %.1f s since this start, %.1f s to compare",
            self.run.name,
            totals.rows,
            total,
            (time.monotonic_ns() - started_ns) / 1e9,
            compared_ns / 1e9,
        )

    def _event(self, events: Mapping[bytes, bytes], table_id: int) -> VersionEvent | None:
        data = events.get(version_key(table_id))
        return None if data is None else self._codec.decode_as(VersionEvent, data)

    def _descriptor(self, events: Mapping[bytes, bytes]) -> Descriptor:
        """Return the table as the job's step has published it: that event was before the job's.
        Raises RunStopped when the table has moved on, BusUnavailable, MalformedRequest."""
        table_id = self._job.worked_table
        wanted = self._job.versions[table_id]
        event = self._event(events, table_id)
        if event is None or event.version < wanted:
            raise BusUnavailable(
                f"version {wanted} of table {table_id} is not on {self._topics.versions.name} yet"
            )
        if event.version > wanted:
            raise RunStopped
        return read_descriptor(event.body)

    # ------------------------------------------------------------ images → facts

    def _facts_of_few(self, extractors: Mapping[str, FactExtractor]) -> list[Fact] | None:
        """Return all facts, where the images are few; None where a query has to read them."""
        with FewImages(self._kafka, tuple(extractors), self.gate.is_closed) as images:
            ranges = images.ranges(self._few_max())
            if ranges is None:
                return None
            return [
                fact
                for wanted in ranges
                for records in images.records(wanted)
                for fact in extract(extractors[wanted.topic], wanted.partition, records)
            ]

    def _keep(self, extractors: MakeExtractors, counted: Counted, batch_id: int) -> None:
        """Keep the facts of one micro-batch, written over what a killed one has left of it."""
        before = totals = self._folder.totals_before(batch_id)
        place = self._folder.empty_facts(batch_id)
        for some in self._rounds(enumerate(self._windows(batch_id))):
            kafka = self._kafka_of_workers()
            for counts in write_facts(self._session, kafka, extractors, place, some):
                totals = self._passed(totals, counts, counted)
        self._folder.count(batch_id, before, totals)

    def _passed(self, totals: Totals, counts: Counts, counted: Counted) -> Totals:
        """Return the totals with `counts`. Reading is what costs here, so that images pass the gate
        when they are counted."""
        left = sum(count for side, count in counts.items() if side in counted)
        while left:
            rows = min(left, self.gate.rows_per_chunk)
            self.gate.wait_turn(rows)
            left -= rows
            totals = Totals(totals.rows + rows, totals.chunks)
            self._board.count(self.run, totals)
        return totals

    # ------------------------------------------------------------ facts → findings

    def _suspects(
        self, wanted: ConstraintGroups, facts: Iterable[Fact] | None
    ) -> tuple[int, list[tuple[int, bytes]]]:
        """Return how many rows are suspect, and the first. `facts`: None where they are in the
        run's folder."""
        places = self._folder.all_facts()
        if facts is None:
            facts = read_few(self._session, places, IN_MEMORY_MAX)
        if facts is not None:
            found = find_suspects(facts, wanted)
            return len(found), found[:FINDINGS_MAX]
        files = frame_of(self._session, places)
        tasks = self._tasks(self._session.sparkContext.defaultParallelism)
        with Comparison(files.coalesce(tasks)) as comparison:
            return comparison.find_suspects(wanted, FINDINGS_MAX)


def make_extractors(
    descriptor: Descriptor,
    sides: Sequence[FactSource],
    sources: Mapping[str, int],
    parents: Sequence[Descriptor] = (),
) -> dict[str, FactExtractor]:
    """Return the extractors by topic. `sources`: topic → table id. Compiled, so of this process
    alone."""
    return {
        topic: FactExtractor(descriptor, sides, table_id, parents)
        for topic, table_id in sources.items()
    }
