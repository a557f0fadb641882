"""Jobs that have not ended, and apart what is asked of them with each record and each statement:
thousands may run at once."""

from __future__ import annotations

from collections.abc import Container

from leasehold.catalog.job import Job, Phase, Status
from leasehold.catalog.job_names import collect_relation_names


class RunningJobs:
    """The running jobs, all of them in `by_id`. `copying`: those whose rows are being copied under
    another key. `gentle`: the ids of those that users are to feel half as much. `names`: of
    relations that each gives, or has yet to let go of. `by_table`: the ids of those that change a
    table, or need it as it is."""

    def __init__(self) -> None:
        self.by_id: dict[int, Job] = {}
        self.copying: dict[int, Job] = {}
        self.gentle: set[int] = set()
        self.names: dict[int, frozenset[str]] = {}
        self.by_table: dict[int, tuple[int, ...]] = {}

    def put(self, job: Job) -> None:
        """Keep a job as it is now; one that has ended is kept no more."""
        job_id = job.job_id
        if job.status.ended:
            self.remove(job_id)
            return
        self._put_tables(job)
        known = self.by_id.get(job_id)
        if known is None or known.steps is not job.steps:
            self.names[job_id] = collect_relation_names(job)
        self.by_id[job_id] = job
        if _is_copying(job):
            self.copying[job_id] = job
        else:
            self.copying.pop(job_id, None)
        if job.gentle:
            self.gentle.add(job_id)
        else:
            self.gentle.discard(job_id)

    def at(self, table_id: int) -> tuple[Job, ...]:
        """Return those that change a table, or need it as it is."""
        return tuple(self.by_id[job_id] for job_id in self.by_table.get(table_id, ()))

    def remove(self, job_id: int) -> None:
        """Keep a job no more, if it is kept."""
        job = self.by_id.pop(job_id, None)
        if job is not None:
            del self.names[job_id]
            self._forget_tables(job)
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
        made.names = dict(self.names)
        made.by_table = dict(self.by_table)
        return made

    def _put_tables(self, job: Job) -> None:
        known = self.by_id.get(job.job_id)
        if known is not None:
            if _tables_of(known) == _tables_of(job):
                return
            self._forget_tables(known)
        for table_id in _tables_of(job):
            self.by_table[table_id] = (*self.by_table.get(table_id, ()), job.job_id)

    def _forget_tables(self, job: Job) -> None:
        for table_id in _tables_of(job):
            left = tuple(each for each in self.by_table[table_id] if each != job.job_id)
            if left:
                self.by_table[table_id] = left
            else:
                del self.by_table[table_id]


def _tables_of(job: Job) -> frozenset[int]:
    return frozenset((*job.tables, *job.needs))


def _is_copying(job: Job) -> bool:
    is_running = job.status is Status.RUNNING and job.phase is Phase.BACKFILLING
    return job.copies_rows and is_running and not job.chunks_ended
