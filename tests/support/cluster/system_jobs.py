"""Schema changes asked for and followed to their end, as an operator would."""

from __future__ import annotations

from collections.abc import Callable

from leasehold import ChangeProducer
from leasehold.admin.view import ClusterView
from leasehold.admin.watch import ClusterWatch
from leasehold.catalog.job import Job, Phase, Status
from leasehold.model.records.requests import ChangeRequest, JobControl
from tests.support.cluster.system_cluster import seen
from tests.support.cluster.system_load import settled


def begin(producer: ChangeProducer, sql: str) -> int:
    """Ask for the change; the number of its job once it is accepted."""
    outcome = settled(producer.submit({"sql": sql}))
    assert outcome.lsn, outcome
    return int(outcome.answer["job"])


def control(producer: ChangeProducer, job: int, action: str, **wishes: int) -> None:
    request = ChangeRequest(b"", control=JobControl(job, action, wishes))
    outcome = settled(producer.submit(request))
    assert outcome.lsn, outcome


def slowly(producer: ChangeProducer, sql: str, rows_per_second: int) -> int:
    """Begin a change whose backfill takes long enough to break something meanwhile."""
    job = begin(producer, sql)
    control(producer, job, "set", rows_per_second=rows_per_second, chunk_rows=100)
    return job


def at_full_speed(producer: ChangeProducer, job: int) -> None:
    control(producer, job, "set", rows_per_second=0)


def await_job(watch: ClusterWatch, job: int, wanted: Callable[[Job], bool], what: str) -> Job:
    def met(view: ClusterView) -> bool:
        found = view.jobs.get(job)
        return found is not None and wanted(found.job)

    try:
        return seen(watch, met, what).jobs[job].job
    except AssertionError:
        found = watch.view.jobs.get(job)
        raise AssertionError(f"job {job} stands at {found and found.job}: {what}") from None


def in_backfill(watch: ClusterWatch, job: int, rows: int = 200) -> None:
    """Wait until so many rows are read or filled, and more are to come. What is filled by range is
    read as a whole before the log knows of a row; until then Spark's progress alone tells."""

    def half_way(view: ClusterView) -> bool:
        found = view.jobs.get(job)
        if found is None:
            return False
        assert not found.status.ended, f"too fast to break anything: {found.job}"
        progress = view.progress.get(job)
        read = progress.rows if progress is not None and progress.run == found.job.run else 0
        return found.job.phase is Phase.BACKFILLING and max(found.job.rows_read, read) >= rows

    seen(watch, half_way, f"the middle of the backfill of job {job}")


def ended(watch: ClusterWatch, job: int, status: Status = Status.SUCCEEDED) -> Job:
    found = await_job(watch, job, lambda found: found.status.ended, "the end")
    assert found.status is status, (found.status, found.error, found.findings)
    return found
