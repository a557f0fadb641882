"""The messages of the backfill queue that the master takes (⚠ the rule on late chunks)."""

from __future__ import annotations

from leasehold.catalog.catalog import Catalog
from leasehold.catalog.elements import ALL_ROWS
from leasehold.catalog.job import Job, Phase, Status
from leasehold.catalog.states import State
from leasehold.model.keys import is_key, order_of
from leasehold.model.records.jobs import BackfillBorder, Chunk, ChunksEnd, Findings


def _running(catalog: Catalog, phase: Phase, job_id: int, run: int) -> Job | None:
    """Return the job, if that run of it is under way in that phase and has not ended.

    A paused job's chunks are taken: they are right ones, and one that was refused would never come
    again. Pausing stops the sender, not what is on its way.
    """
    job = catalog.jobs.get(job_id)
    if job is None or job.phase is not phase or job.chunks_ended:
        return None
    if job.status not in (Status.RUNNING, Status.PAUSED):
        return None
    return job if _is_at_run(job, run) else None


def _is_at_run(job: Job, run: int) -> bool:
    """Say whether the job is at that run. ⚠ A late chunk of an earlier run is none of this one."""
    return job.run == run


def accept_border(catalog: Catalog, border: BackfillBorder) -> bool:
    """Say whether a border is taken: as a chunk, where the run fills ranges and the log has none as
    far as that. One that comes twice, or that no row can have as its key, is not."""
    job = _running(catalog, Phase.BACKFILLING, border.job_id, border.run)
    if job is None or not job.by_range or job.copies_rows or job.table_id != border.table_id:
        return False
    newest = catalog.newest(border.table_id)
    if border.version != newest.version or border.element_id != job.element_id:
        return False
    element = newest.element(border.element_id)
    if element is None or element.state is not State.WRITE_ONLY:
        return False
    if not is_key(border.through, len(newest.primary_key)):
        return False
    try:
        return not job.through or order_of(border.through) > order_of(job.through)
    except TypeError:  # a key of other types
        return False


def accept_chunk(catalog: Catalog, chunk: Chunk) -> bool:
    """Say whether a chunk is taken: its job's run is in that step and the element write-only, in
    the version it names, which is the newest. One that comes late, or twice after the end, is
    not."""
    job = _running(catalog, Phase.BACKFILLING, chunk.job_id, chunk.run)
    if job is None or job.copies_rows:
        return False
    if job.worked_table != chunk.table_id or job.element_id != chunk.element_id:
        return False
    newest = catalog.newest(chunk.table_id)
    if chunk.version != newest.version:
        return False
    if chunk.element_id == ALL_ROWS:
        return bool(newest.mirror) and catalog.newest(newest.mirror).state is State.WRITE_ONLY
    element = newest.element(chunk.element_id)
    return element is not None and element.state is State.WRITE_ONLY


def accept_end(catalog: Catalog, end: ChunksEnd) -> bool:
    """Say whether an end marker ends the run it names: none ends one that Spark has no part in."""
    job = _running(catalog, Phase.BACKFILLING, end.job_id, end.run)
    return job is not None and not job.copies_rows


def accept_findings(catalog: Catalog, findings: Findings) -> bool:
    """Say whether findings are looked at, which ends their run: those of a job or run that is over
    say nothing about the rows that matter now."""
    job = _running(catalog, Phase.VALIDATING, findings.job_id, findings.run)
    if job is None or job.worked_table != findings.table_id:
        return False
    return findings.version == catalog.newest(findings.table_id).version
