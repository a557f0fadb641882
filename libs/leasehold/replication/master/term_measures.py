"""What a master counts and times of its records, for whoever looks at its process."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable
from typing import Final

from leasehold.catalog.job import Job
from leasehold.model import metrics
from leasehold.model.measures import Measures
from leasehold.model.records.log import Disposition, Refusal
from leasehold.model.time_units import NS_PER_S
from leasehold.replication.master.record_draft import RecordDraft
from leasehold.schema_change.job.estimate import spans_of

AWAITED_MAX: Final = 10_000
"""Records whose answers wait and are timed; those beyond are given, and not timed."""
_DISPOSITIONS: Final = {each: each.name.lower().replace("_", " ") for each in Disposition}


class TermMeasures:
    """The counters of one master. Times are this host's monotonic clock, in ns; the four stations
    of a request are in `metrics.py`."""

    def __init__(self, measures: Measures) -> None:
        """Begin a term. `measures`: those of the node, which outlive it."""
        self._measures = measures
        self._awaited: deque[tuple[int, int]] = deque(maxlen=AWAITED_MAX)  # (offset, read back)

    def appended(self, data: bytes, decided_ns: int) -> None:
        """Count a record that is on its way, and that was decided in so long."""
        self._measures.add(metrics.RECORDS_WRITTEN)
        self._measures.add(metrics.RECORD_BYTES, len(data))
        self._measures.observe(metrics.DECIDE_S, decided_ns / NS_PER_S)

    def read_back(self, draft: RecordDraft, travelled_ns: int) -> None:
        """Count what the record decides that was read back after so long."""
        measures = self._measures
        measures.observe(metrics.APPEND_S, travelled_ns / NS_PER_S)
        if draft.commits:
            measures.add(metrics.COMMITS, len(draft.commits))
        if draft.refusals:
            self._refused(draft.refusals)
        if draft.repeats:
            measures.add(metrics.REPEATS, len(draft.repeats))
        if draft.rows_filled:
            measures.add(metrics.BACKFILL_ROWS, draft.rows_filled)

    def _refused(self, refusals: Iterable[Refusal]) -> None:
        for refusal in refusals:
            labels = (refusal.code, _DISPOSITIONS[refusal.disposition])
            self._measures.add(metrics.REFUSALS, 1, labels)

    def awaits(self, offset: int, now_ns: int) -> None:
        """Take that answers of the record at `offset` wait from now on."""
        self._awaited.append((offset, now_ns))

    def released(self, first_waiting: int | None, now_ns: int) -> None:
        """Take that all answers of records before that one are given; None: all are."""
        awaited = self._awaited
        while awaited and (first_waiting is None or awaited[0][0] < first_waiting):
            _, since_ns = awaited.popleft()
            self._measures.observe(metrics.NODES_S, (now_ns - since_ns) / NS_PER_S)

    def job_written(self, job: Job) -> None:
        """Count a job that has ended, and what each of its phases took."""
        if not job.status.ended:
            return
        self._measures.add(metrics.JOBS_ENDED, 1, (job.status.value,))
        for _, phase, seconds in spans_of(job):
            self._measures.observe(metrics.PHASE_S, seconds, (phase,))
