"""What a master gives once every coherent node has the record that it follows from (C1)."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator
from typing import Final

from leasehold.catalog.catalog import Catalog
from leasehold.model.records.jobs import JobEvent
from leasehold.model.records.log import Commit, DescriptorWrite, JobWrite
from leasehold.replication.changefeed import job_key, version_event
from leasehold.replication.effects import Effect, Send, Topic
from leasehold.replication.master.answers import Answers, PendingAnswers

ENDED_JOBS_MAX: Final = 1_000


class Release:
    """Holds back answers, and the ends of jobs: who hears that a change is done may look at any
    replica, so it is told when every coherent one has it (C1). `jobs` tells it for good.

    Both queues are in the order of the log."""

    def __init__(self, unanswered: Iterable[Answers]) -> None:
        """Begin with what records after `answered_through` have to give (L7)."""
        self.answers = PendingAnswers()
        for answers in unanswered:
            self.answers.add(answers)
        self._ended_jobs: deque[tuple[int, Send]] = deque(maxlen=ENDED_JOBS_MAX)

    @property
    def waits(self) -> bool:
        return self.answers.waiting() or bool(self._ended_jobs)

    def add_ended_jobs(self, offset: int, notices: Iterable[Send]) -> None:
        self._ended_jobs.extend((offset, notice) for notice in notices)

    def is_due(self, may_answer: Callable[[int], bool]) -> bool:
        """Whether `release` would give anything."""
        first = self.answers.first_waiting()
        if first is not None and may_answer(first):
            return True
        return bool(self._ended_jobs) and may_answer(self._ended_jobs[0][0])

    def release(self, may_answer: Callable[[int], bool]) -> list[Effect]:
        effects: list[Effect] = list(self.answers.release(may_answer))
        while self._ended_jobs and may_answer(self._ended_jobs[0][0]):
            effects.append(self._ended_jobs.popleft()[1])
        return effects


def notices_of_versions(commit: Commit, lsn: int, catalog: Catalog) -> list[Effect]:
    """Return what agents without a store are told of new versions at once; `versions` tells it for
    good."""
    return [
        Send(Topic.NOTICES, 0, str(write.table_id).encode(), event, 0)
        for write in commit.catalog
        if isinstance(write, DescriptorWrite)
        for event in (version_event(write, commit, lsn, catalog.running_at(write.table_id)),)
    ]


def notices_of_ended_jobs(commit: Commit, lsn: int, catalog: Catalog) -> Iterator[Send]:
    """Yield the end of each job, which somebody waits for. What it does until then can be read on
    `jobs` a moment later: each notice is a record and one more fetch of every agent's, as much for
    the broker as all versions of a job together."""
    for write in commit.catalog:
        job = catalog.jobs.get(write.job_id) if isinstance(write, JobWrite) else None
        if job is not None and job.status.ended:
            event = JobEvent(job.job_id, lsn, commit.commit_us, job.to_wire())
            yield Send(Topic.NOTICES, 0, job_key(job.job_id), event, 0)
