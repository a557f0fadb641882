"""One validation run: row images → facts about constraints → findings on the backfill lane.

Two passes. The first is a query like a backfill's, checkpointed and behind the job's gate: what
each image says to the constraints goes to files, one folder per micro-batch. The second compares
them, newest per row: it reads files alone, so a run that is killed in it just does it again.
"""

from __future__ import annotations

import logging
import time
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from functools import partial
from typing import Final, TypeAlias

from leasehold.adapters.kafka.whole_topic import read_compacted
from leasehold.catalog.descriptor import Descriptor, from_wire
from leasehold.model.errors import BusUnavailable
from leasehold.model.records import VersionEvent
from leasehold.pipeline.facts import (
    FINDINGS_MAX,
    Fact,
    Side,
    Teller,
    Wanted,
    counted_by,
    findings_of,
    sides_of,
    suspects,
    told_of,
    wanted_of,
)
from leasehold.replication.changefeed import version_key
from leasehold.settings.environment import KafkaSettings
from spark_streaming.comparison import Comparison
from spark_streaming.fact_files import FACTS, FactFile, fact_count, facts_of
from spark_streaming.few_images import FewImages
from spark_streaming.gate import RunStopped
from spark_streaming.lane import Lane
from spark_streaming.progress import query_name
from spark_streaming.range_reader import Range, Records, records_of
from spark_streaming.rows_query import RowsQuery
from spark_streaming.run_folder import Totals
from spark_streaming.run_thread import Convert, RunThread, topics_there

log: Final = logging.getLogger(__name__)

CLIENT: Final = "leasehold-spark-versions"
MakeTellers: TypeAlias = Callable[[], Mapping[str, Teller]]
Counted: TypeAlias = Collection[tuple[int, bool]]
"""(element, parent) of the sides whose facts are counted: one of each table."""
IN_MEMORY_MAX: Final = 20_000
"""So many facts are compared in this process, in 0.1 s; Spark takes 0.8 s for a single one."""


class Validation(RunThread):
    """Brings one run of a validation to its findings, which end it; be there none."""

    work = "validation"

    def _attempt(self) -> None:
        """From the checkpoint to the acknowledged findings. Raises RunStopped when closed."""
        if self._folder.ended() is not None:
            return  # they are on the lane, and the job has yet to hear of it
        started_ns = time.monotonic_ns()
        # Now, so that it is connected when it is wanted.
        lane = Lane(self._kafka, self._topics.backfill.name)
        events = read_compacted(
            self._kafka, CLIENT, self._topics.versions.name, give_up=self.gate.is_closed
        )
        descriptor = self._descriptor(events)
        elements = told_of(descriptor, self._job.current.validates)
        sides = sides_of(descriptor, elements)
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
            parents = [from_wire(event.body) for event in told if event is not None]
            tellers = partial(tellers_of, descriptor, sides, sources, parents)
            counted = {
                (side.element_id, side.parent)
                for table, side in counted_by(sides).items()
                if table in sources.values()
            }
            facts = self._facts_of_few(tellers())
            if facts is not None:
                totals = self._passed(Totals(), Counter(fact[:2] for fact in facts), counted)
            else:
                self._query(tuple(sources), tellers, counted).read()
                totals = self._folder.totals()
        self._board.phase(self.run, "comparing")
        read_ns = time.monotonic_ns()
        total, first = self._suspects(wanted_of(descriptor, elements), facts)
        compared_ns = time.monotonic_ns() - read_ns
        if self.gate.is_closed():
            raise RunStopped
        findings = findings_of(self._job, totals.rows, total, first)
        # They may be sent twice (killed before it was noted here); the master takes the first.
        lane.send(self._codec.encode(findings))
        lane.flush()
        self._folder.end(Totals(totals.rows, totals.chunks))
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
        """The table as the job's step has published it: that event was before the job's.
        Raises RunStopped when the table has moved on, BusUnavailable."""
        wanted = self._job.versions[self._job.table_id]
        event = self._event(events, self._job.table_id)
        if event is None or event.version < wanted:
            raise BusUnavailable(
                f"version {wanted} of table {self._job.table!r} is not on"
                f" {self._topics.versions.name} yet"
            )
        if event.version > wanted:
            raise RunStopped
        return from_wire(event.body)

    # ------------------------------------------------------------ images → facts

    def _facts_of_few(self, tellers: Mapping[str, Teller]) -> list[Fact] | None:
        """All facts, where the images are few; None where a query has to read them."""
        with FewImages(self._kafka, tuple(tellers), self.gate.is_closed) as images:
            ranges = images.ranges(self._few_max())
            if ranges is None:
                return None
            return [
                fact
                for wanted in ranges
                for records in images.records(wanted)
                for fact in _told(tellers[wanted.topic], wanted.partition, records)
            ]

    def _query(self, sources: Sequence[str], tellers: MakeTellers, counted: Counted) -> RowsQuery:
        return RowsQuery(
            self._session,
            self._kafka,
            sources,
            name=query_name(self._topics.database, self.run),
            checkpoint=self._folder.checkpoint,
            gate=self.gate,
            offsets_per_batch=self._offsets_per_batch,
            handle=partial(self._keep, tellers, counted),
        )

    def _keep(self, tellers: MakeTellers, counted: Counted, batch_id: int) -> None:
        """One micro-batch, written over what a killed one has left of it."""
        before = totals = self._folder.totals_before(batch_id)
        place = self._folder.empty_facts(batch_id)
        made = partial(converter, self._kafka, tellers, place)
        for told in self._rounds(enumerate(self._windows(batch_id)), made):
            for counts in told:
                totals = self._passed(totals, counts, counted)
        self._folder.count(batch_id, before, totals)

    def _passed(
        self, totals: Totals, counts: Mapping[tuple[int, bool], int], counted: Counted
    ) -> Totals:
        """Reading is what costs here, so that images pass the gate when they are counted."""
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
        self, wanted: Wanted, facts: Iterable[Fact] | None
    ) -> tuple[int, list[tuple[int, bytes]]]:
        """`facts`: None where they are in the run's folder."""
        places = self._folder.all_facts()
        if facts is None and fact_count(places) <= IN_MEMORY_MAX:
            facts = facts_of(places)
        if facts is not None:
            found = suspects(facts, wanted)
            return len(found), found[:FINDINGS_MAX]
        files = self._session.read.schema(FACTS).parquet(*places)
        tasks = self._tasks(self._session.sparkContext.defaultParallelism)
        with Comparison(files.coalesce(tasks)) as comparison:
            return comparison.suspects(wanted, FINDINGS_MAX)


def tellers_of(
    descriptor: Descriptor,
    sides: Sequence[Side],
    sources: Mapping[str, int],
    parents: Sequence[Descriptor] = (),
) -> dict[str, Teller]:
    """By topic. `sources`: topic → table id. Compiled, so of this process alone."""
    return {
        topic: Teller(descriptor, sides, table_id, parents) for topic, table_id in sources.items()
    }


def _told(teller: Teller, partition: int, records: Records) -> Iterator[Fact]:
    for place, row, image in zip(*records, strict=True):
        yield from teller.tell(row, partition, place, image)


def converter(
    kafka: KafkaSettings, make_tellers: MakeTellers, place: str
) -> Convert[tuple[int, Range], Counter[tuple[int, bool]]]:
    """Numbered ranges of topics → a file of facts for each in the folder `place`, and how many
    those are."""

    def convert(numbered: Iterable[tuple[int, Range]]) -> Iterator[Counter[tuple[int, bool]]]:
        tellers = make_tellers()
        for number, wanted in numbered:
            teller = tellers[wanted.topic]
            with FactFile(place, number) as file:
                for records in records_of(kafka, wanted):
                    file.add(_told(teller, wanted.partition, records))
            yield file.counts

    return convert
