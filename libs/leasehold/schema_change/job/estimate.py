"""How long a step is likely to take, measured on the jobs that have ended. For people only."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import pairwise
from statistics import median
from typing import Final, NamedTuple

from leasehold.catalog.job import Job, Phase, Status, Step

RECENT_JOBS_MAX: Final = 10
NOT_KNOWN: Final = -1.0
ROWS_BEYOND: Final = 10
"""A run tells of tables of up to so many times its rows: with few rows its time went into beginning
and ending, and what it took for each of them is nothing to multiply by."""
_US: Final = 1_000_000


class WorkPace(NamedTuple):
    """The pace of one kind of work. `shortest_s`: the quickest run seen, which its beginning and
    end alone took; `rows_per_second`: the best rate seen; `rows`: of the largest run seen. All are
    0 where none was seen."""

    shortest_s: float = 0.0
    rows_per_second: float = 0.0
    rows: int = 0

    def seconds(self, rows: int, limit: int = 0) -> float:
        """Return the seconds for so many rows, at no more than `limit` a second (0 = no limit);
        NOT_KNOWN where nothing tells."""
        own = self.rows_per_second if rows <= self.rows * ROWS_BEYOND else 0.0
        rates = [rate for rate in (own, float(limit)) if rate > 0]
        if rows < 0 or not rates:
            return NOT_KNOWN
        return max(self.shortest_s, rows / min(rates))


class Pace(NamedTuple):
    """The pace of all that a step does. `lease_s`: what publishing a version and waiting for leases
    took in the middle."""

    lease_s: float = NOT_KNOWN
    backfill: WorkPace = WorkPace()
    verify: WorkPace = WorkPace()
    validate: WorkPace = WorkPace()

    def step_seconds(self, step: Step, rows: int, limit: int = 0) -> float:
        """Return the seconds of a whole step over a table of `rows` rows (-1 = not known);
        NOT_KNOWN where a part is."""
        parts = [self.lease_s]
        parts += [self.backfill.seconds(rows, limit)] * len(step.backfills)
        parts += [self.validate.seconds(rows, limit)] * bool(step.validates)
        parts += [self.verify.seconds(rows, limit)] * bool(step.verifies)
        return total(parts)


def total(parts: Iterable[float]) -> float:
    """Return the sum; NOT_KNOWN as soon as one part is."""
    found = list(parts)
    return NOT_KNOWN if NOT_KNOWN in found else round(sum(found), 3)


def measure_pace(jobs: Iterable[Job]) -> Pace:
    """Return what the newest jobs that have succeeded tell; the others' times are not whole."""
    done = [job for job in jobs if job.status is Status.SUCCEEDED]
    recent = sorted(done, key=lambda job: job.job_id)[-RECENT_JOBS_MAX:]
    leases = [seconds for job in recent for seconds in _lease_waits(job)]
    # A rate that somebody has set says nothing of what is possible.
    free = [job for job in recent if not job.settings.get("rows_per_second")]
    return Pace(
        median(leases) if leases else NOT_KNOWN,
        _work_pace(free, Phase.BACKFILLING),
        _work_pace(free, Phase.VERIFYING),
        _work_pace(free, Phase.VALIDATING),
    )


def spans_of(job: Job) -> Iterator[tuple[int, str, float]]:
    """Yield (step, phase, seconds) of each stretch between two marks."""
    for (step, phase, from_us), (_, _, until_us) in pairwise(job.marks):
        yield step, phase, (until_us - from_us) / _US


def _lease_waits(job: Job) -> list[float]:
    by_step: dict[int, float] = {}
    for step, phase, seconds in spans_of(job):
        if phase in (Phase.PUBLISHING, Phase.DRAINING):
            by_step[step] = by_step.get(step, 0.0) + seconds
    return list(by_step.values())


def _work_pace(jobs: Iterable[Job], phase: Phase) -> WorkPace:
    runs = [
        (seconds, job.rows)
        for job in jobs
        if job.rows >= 0
        for _, at, seconds in spans_of(job)
        if at == phase
    ]
    if not runs:
        return WorkPace()
    best = max((rows / s for s, rows in runs if s > 0), default=0.0)
    return WorkPace(min(s for s, _ in runs), best, max(rows for _, rows in runs))


def seconds_left(job: Job, pace: Pace, rows: int, in_step: float) -> float:
    """Return the seconds until a job that goes on ends: `in_step` for the step it is in, then the
    others."""
    limit = job.settings.get("rows_per_second", 0)
    rest = (pace.step_seconds(step, rows, limit) for step in job.steps[job.step + 1 :])
    return total((in_step, *rest))
