"""Backfills by range between two records: each node merges them into its store at its own pace, and
says how far it is. Pure.

The log says which rows (`Backfill.span`), each node when. So what waits of a range is no part of a
position: it may differ between nodes until the record by which the job leaves the run, which no
node applies before it has merged all (`log/apply.py`). The master writes that record when the
coherent nodes have said that they have, so that none has to do it then, with everybody waiting.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import Final, Protocol

from leasehold.catalog.catalog import Catalog
from leasehold.catalog.job import Job, Status
from leasehold.model.errors import Refused
from leasehold.model.features import Feature, FeatureGate
from leasehold.model.keys import Key
from leasehold.model.ports import Now, RangeWaiting, StoreWriter
from leasehold.model.records.acks import MERGED_TABLES_MAX, MergeReport, TableMerged
from leasehold.model.records.log import Decisions, LogPosition
from leasehold.model.time_units import NS_PER_MS, NS_PER_S
from leasehold.replication.coherency import NODES_MAX, CoherencyWatch
from leasehold.replication.effects import Effect, Send, Topic, Wake

REPORT_EVERY_MS: Final = 5_000
"""Also where nothing is new: a report may be lost."""
PROGRESS_EVERY_MS: Final = 1_000
"""While there is something to merge: people see how far it is."""
PAUSED_LOOK_MS: Final = 500
"""Until it is looked again whether a paused job goes on."""


class Waits(Protocol):
    def ranges_waiting(self, table_id: int | None = None) -> int: ...
    def range_failure(self, table_id: int, element_id: int) -> tuple[Key, Refused] | None: ...


class RangeMerging:
    """The merging of one node, and its reports."""

    def __init__(self, name: str, store: StoreWriter) -> None:
        self._name = name
        self._store = store
        self._due_ns = 0
        self._told: tuple[int, int, bytes] | None = None  # waiting, epoch, the master's incarnation
        self._told_ns = 0
        self._passed: dict[tuple[int, int], int] = {}  # rows by job and run

    def record_read(self, record: Decisions) -> None:
        """Note that ranges came, which is to be told even where all are merged at once."""
        if has_ranges(record):
            self._told = None

    def work(self, catalog: Catalog, now: Now) -> list[Effect]:
        """Merge a little; nothing is open in the store."""
        if not self._store.ranges_waiting():
            return []
        if now.mono_ns >= self._due_ns:
            self._due_ns = now.mono_ns + self._merge(catalog)
        return [Wake(self._due_ns)] if self._store.ranges_waiting() else []

    def _merge(self, catalog: Catalog) -> int:
        """Return how long to merge nothing more."""
        waiting = self._store.next_range()
        assert waiting is not None, "something waits"
        job = _job_of(waiting, catalog)
        if job is not None and job.status is Status.PAUSED:
            return PAUSED_LOOK_MS * NS_PER_MS
        rate = job.settings.get("rows_per_second", 0) if job is not None else 0
        # No more than a second's: whoever sets a rate wants no leaps, and none at the end.
        merged = self._store.merge_entries(
            catalog.version(waiting.table_id, waiting.version), rate or None
        )
        if job is not None:
            run = job.job_id, job.run
            self._passed[run] = self._passed.get(run, 0) + merged.rows
        return max(merged.pause_ns, merged.rows * NS_PER_S // rate if rate else 0)

    def report(
        self, catalog: Catalog, incarnation: bytes, position: LogPosition, now: Now
    ) -> list[Effect]:
        """Tell the master while a job fills by range: where there is news, and now and then.
        `position` is committed."""
        filled = [j for j in catalog.running.values() if j.by_range and not j.copies_rows]
        if not filled:
            self._told = None
            self._passed.clear()
            return []
        waiting = self._store.ranges_waiting()
        about = waiting, position.epoch, position.incarnation
        every_ms = PROGRESS_EVERY_MS if waiting else REPORT_EVERY_MS
        if about == self._told and now.mono_ns - self._told_ns < every_ms * NS_PER_MS:
            return []
        self._told, self._told_ns = about, now.mono_ns
        tables = tuple(map(self._progress, filled[:MERGED_TABLES_MAX]))
        report = MergeReport(self._name, incarnation, position.offset, waiting, tables)
        return [Send(Topic.ACKS, 0, self._name.encode(), report, 0)]

    def _progress(self, job: Job) -> TableMerged:
        passed = self._passed.get((job.job_id, job.run), 0)
        return TableMerged(job.table_id, self._store.ranges_waiting(job.table_id), passed)


def _job_of(waiting: RangeWaiting, catalog: Catalog) -> Job | None:
    """Return the job whose run noted the range."""
    found = (job for job in catalog.running_at(waiting.table_id) if job.by_range)
    return next((job for job in found if job.table_id == waiting.table_id), None)


class MergeReports:
    """What the nodes have told a master of their merging: `coordinator.RangeProgress`."""

    def __init__(
        self, name: str, watch: CoherencyWatch, features: FeatureGate, store: Waits, offset: int
    ) -> None:
        """Begin at `offset`, right after the Claim: what stands before may have ranges, too."""
        self._name = name
        self._watch = watch
        self._features = features
        self._store = store
        self._reports: dict[tuple[str, bytes], MergeReport] = {}
        self._offset = offset

    def take(self, report: MergeReport) -> None:
        """Take a report, which counts where the node itself is known by its acknowledgements. Of a
        node's processes the one heard of last has its store; one that is gone tells nothing."""
        process = report.node, report.incarnation
        if self._reports.pop(process, None) is not None or len(self._reports) < NODES_MAX:
            self._reports[process] = report

    def sweep(self) -> None:
        """Forget those of nodes that are not known: anybody may say anything."""
        nodes = self._watch.nodes()
        self._reports = {of: report for of, report in self._reports.items() if of in nodes}

    def read_back(self, record: Decisions, offset: int) -> None:
        """Take that the record stands at `offset`."""
        if has_ranges(record):
            self._offset = offset + 1

    def known(self, now_ns: int) -> bool:
        """Whether backfills by range may be written."""
        return self._features.is_written(Feature.RANGE_BACKFILLS, now_ns)

    def copies_known(self, now_ns: int) -> bool:
        """Whether rows that are copied by range may be written."""
        return self._features.is_written(Feature.COPIED_ROWS, now_ns)

    def find_failure(self, job: Job) -> tuple[Key, Refused] | None:
        """Return a row that has no value for the column that the job fills, and why: the first one
        that this node has met."""
        return self._store.range_failure(job.table_id, job.element_id)

    def still_merging(self, nodes: Collection[str]) -> tuple[str, ...]:
        """Return who of `nodes` and this one has not merged all ranges of the log, as far as is
        known."""
        newest = {name: report for (name, _), report in self._reports.items()}
        done = {
            name
            for name, report in newest.items()
            if not report.waiting and report.offset >= self._offset
        }
        done.discard(self._name)
        if not self._store.ranges_waiting():
            done.add(self._name)
        return tuple(sorted({self._name, *nodes} - done))


def has_ranges(record: Decisions) -> bool:
    """Say whether a record begins backfills by range; those stand in its last commit."""
    backfills = record.commits[-1].backfills if record.commits else ()
    if not backfills or backfills[0].span is None:
        return False
    return backfills[0].copied is None  # what is copied is there when the record is applied
