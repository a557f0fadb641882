"""The choice of the runs of Spark that should be running now, given the jobs that are known. PURE.

The decision looks at the newest state of every job and at what runs; it keeps no state of its own,
so that a restarted driver comes to the same answer from the compacted jobs topic alone.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import NamedTuple

from leasehold.catalog.job import Job


class RunId(NamedTuple):
    """The id of one run of a job, a backfill or a validation; its query, checkpoint and folder are
    named by it."""

    job_id: int
    run: int

    @property
    def name(self) -> str:
        return f"{self.job_id}-{self.run}"


class Decision(NamedTuple):
    """The runs to `start` and to `stop`, which are disjoint, and the jobs to `forget`, which have
    ended: their folders may go."""

    start: tuple[RunId, ...]
    stop: tuple[RunId, ...]
    forget: tuple[int, ...]


def wanted_run(job: Job) -> RunId | None:
    """Return the run that this job needs now, if any. A run whose end is decided needs nothing."""
    return RunId(job.job_id, job.run) if job.awaits_run else None


def decide(
    jobs: Mapping[int, Job],
    running: Collection[RunId],
    finished: Collection[RunId],
    *,
    backfills_max: int,
) -> Decision:
    """Return the runs to start and to stop. `running`: started and not yet over, stopping ones
    included. `finished`: ended by this process, so that a run whose marker is sent but not yet
    decided is not started once more.

    A job's next run waits until the one before is really over: two queries of one job would share
    the queue and confuse the progress. Oldest job first when there are too many.
    """
    assert backfills_max >= 1, backfills_max
    wanted = {run for job in jobs.values() if (run := wanted_run(job)) is not None}
    stop = tuple(sorted(run for run in running if run not in wanted))
    busy = {run.job_id for run in running}
    room = backfills_max - len(running)
    ready = sorted(run for run in wanted if run.job_id not in busy and run not in finished)
    forget = tuple(sorted(i for i, j in jobs.items() if j.status.ended and i not in busy))
    return Decision(tuple(ready[: max(0, room)]), stop, forget)
