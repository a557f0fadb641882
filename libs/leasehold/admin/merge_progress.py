"""Progress of nodes with what a job's run has read, of those that the job waits for. PURE.

In a backfill by range Spark says where to cut, which is soon done; what takes time is the nodes'
own work. So the job is as far as the slowest of them.
"""

from __future__ import annotations

from typing import Final, NamedTuple

from leasehold.admin.blocker_report import seconds_words
from leasehold.admin.view import ClusterView, JobView
from leasehold.catalog.job import Job, Phase, Status
from leasehold.model.records.acks import MergeReport

NOT_SAID: Final = -1


class Merging(NamedTuple):
    """A node that has not merged all, `ranges` it has left (NOT_SAID: it has not told yet), and
    about how many rows it has merged since it was started."""

    node: str
    ranges: int
    rows: int


def find_merging(view: ClusterView, seen: JobView) -> list[Merging]:
    """Return the master and the coherent nodes that have ranges left of a job's backfill, or have
    not applied all of the log that the job stands in; the slowest first. Where a job does not fill
    by range, that is nobody."""
    job = seen.job
    if not backfills_by_range(job):
        return []
    found = []
    for name, node in view.nodes.items():
        if not (node.ack.coherent or node.ack.role == "master"):
            continue
        ranges, rows = _told(view.merging.get(name), node.ack.incarnation, job.table_id)
        if ranges or node.ack.lsn < seen.event.lsn:
            found.append(Merging(name, ranges, rows))
    return sorted(found, key=lambda each: (each.rows, each.node))


def count_merged(view: ClusterView, job: Job, merging: list[Merging]) -> int | None:
    """Return about how many rows the slowest of them has merged; None where that does not tell how
    far a backfill is: there is none by range, nobody tells, or all is merged."""
    if not backfills_by_range(job) or not view.merging:
        return None
    if not job.chunks_ended:
        # Who has merged all that there was waits for more.
        return min((each.rows for each in merging), default=job.rows_read)
    if any(each.ranges == NOT_SAID for each in merging):
        return None
    return merging[0].rows if merging else None


def merging_words(job: Job, merging: list[Merging], total_rows: int, since_ms: int) -> list[str]:
    """Return a sentence for each that the job waits for, which is for none while Spark reads."""
    if not job.chunks_ended:
        return []
    return [_words(each, total_rows, since_ms) for each in merging]


def _words(merging: Merging, total_rows: int, since_ms: int) -> str:
    since = f"for {seconds_words(since_ms)}"
    if merging.ranges == NOT_SAID:
        return f"node {merging.node} has not told how far it has merged what was read, {since}"
    ranges = f"{merging.ranges} range{'s' * (merging.ranges != 1)} left"
    rows = f"{min(merging.rows, total_rows or merging.rows):,}"
    of = f" of about {total_rows:,}" if total_rows else ""
    return f"node {merging.node} merges what was read, {since}: {rows}{of} rows, {ranges}"


def backfills_by_range(job: Job) -> bool:
    """Say whether the run under way fills ranges that each node merges at its own pace."""
    merged = job.by_range and not job.copies_rows
    return merged and job.phase is Phase.BACKFILLING and job.status is Status.RUNNING


def _told(report: MergeReport | None, incarnation: bytes, table_id: int) -> tuple[int, int]:
    """Return ranges and rows. What another process of that name has told counts no more."""
    if report is None or report.incarnation != incarnation:
        return NOT_SAID, 0
    for table in report.tables:
        if table.table_id == table_id:
            return table.ranges, table.rows
    return NOT_SAID, 0
