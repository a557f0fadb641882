"""Jobs that have not ended, and apart those of them that are asked for with each record."""

from __future__ import annotations

from collections.abc import Container

from leasehold.catalog.job import Job, Phase, Status


class RunningJobs:
    """The running jobs, all of them in `by_id`. `copying`: those whose rows are being copied under
    another key. `gentle`: the ids of those that users are to feel half as much."""

    def __init__(self) -> None:
        self.by_id: dict[int, Job] = {}
        self.copying: dict[int, Job] = {}
        self.gentle: set[int] = set()

    def put(self, job: Job) -> None:
        """Keep a job as it is now; one that has ended is kept no more."""
        job_id = job.job_id
        if job.status.ended:
            self.remove(job_id)
            return
        self.by_id[job_id] = job
        if _is_copying(job):
            self.copying[job_id] = job
        else:
            self.copying.pop(job_id, None)
        if job.gentle:
            self.gentle.add(job_id)
        else:
            self.gentle.discard(job_id)

    def remove(self, job_id: int) -> None:
        """Keep a job no more, if it is kept."""
        self.by_id.pop(job_id, None)
        self.copying.pop(job_id, None)
        self.gentle.discard(job_id)

    def keep_without(self, job_ids: Container[int]) -> None:
        """Keep all but these."""
        for job_id in [number for number in self.by_id if number in job_ids]:
            self.remove(job_id)

    def copy(self) -> RunningJobs:
        made = RunningJobs()
        made.by_id = dict(self.by_id)
        made.copying = dict(self.copying)
        made.gentle = set(self.gentle)
        return made


def _is_copying(job: Job) -> bool:
    is_running = job.status is Status.RUNNING and job.phase is Phase.BACKFILLING
    return job.copies_rows and is_running and not job.chunks_ended
