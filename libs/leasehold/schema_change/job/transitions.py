"""The transitions of a job: pure functions Job → Job, one per thing that can have happened.

    PUBLISHING ─published─▶ DRAINING ─fenced─▶ [BACKFILLING …] ─filled─▶ [VALIDATING] ─validated─┐
         ▲                                                                                       │
         └─────────────── next step ◀─────────────────────────────── verified ─ [VERIFYING] ◀────┘

A roll-back is more steps: `turn_back` cuts the steps not taken and puts the reverse ones behind
those taken, so that every step, forth or back, is published, drained and fenced by the same code.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace
from typing import Any, Final

from leasehold.catalog.job import Hold, Job, Phase, Status
from leasehold.model.records.log import CheckSlice

FENCE_HERE: Final = -1
"""`fence_lsn` of a job whose fence is the very commit that holds it; see Write.at."""

FINDINGS_MAX: Final = 20


def mark(job: Job, now_us: int) -> Job:
    """Add a mark for the job's (step, phase); marks of one job rise strictly, whatever the
    clock."""
    last = job.marks[-1][2] if job.marks else 0
    mark = (job.step, job.phase.value, max(last + 1, now_us))
    return replace(job, marks=(*job.marks, mark))


def record_published(job: Job, now_us: int) -> Job:
    """Return the job with its step's descriptor published; that goes into the log with it."""
    assert job.phase is Phase.PUBLISHING, job.phase
    return mark(replace(job, phase=Phase.DRAINING), now_us)


def record_ready(job: Job, now_us: int) -> Job:
    """Return the job where nothing is left to be done before its transaction's rows."""
    assert job.held, "it stands before the point of no return"
    return mark(replace(job, hold=Hold.READY), now_us)


def release(job: Job, now_us: int) -> Job:
    """Return the job with its point of no return published, in the commit of its transaction's
    rows."""
    assert job.held, "its transaction holds it"
    assert job.hold is Hold.READY, "the ledger has its versions (D2)"
    return record_published(replace(job, hold=Hold.NONE), now_us)


def record_fenced(
    job: Job, now_us: int, look: CheckSlice | None = None, by_range: Collection[int] = ()
) -> Job:
    """Return the job at its step's work, or at the next step; the step's `min_version` goes into
    the log with it (D5). `look`: what a verification looks at first, None = all in one pass.
    `by_range`: the elements that may be filled by range."""
    assert job.phase is Phase.DRAINING, job.phase
    job = replace(job, fence_lsn=FENCE_HERE)
    if job.status is Status.ROLLING_BACK:
        return _begin_next_step(job, now_us)
    if job.current.backfills:
        return _begin_backfill(replace(job, phase=Phase.BACKFILLING, backfill=0), now_us, by_range)
    if job.current.validates or not job.current.verifies:
        return _begin_after_backfill(job, now_us, look)
    return _begin_after_backfill(replace(job, run=job.run + 1), now_us, look)


def _begin_run(job: Job, now_us: int) -> Job:
    """Begin Spark's next run, of the phase that the job is in."""
    begun = replace(job, run=job.run + 1, rows_read=0, rows_applied=0, chunks_ended=False)
    return mark(begun, now_us)


def _begin_backfill(job: Job, now_us: int, by_range: Collection[int]) -> Job:
    """Begin the run of the backfill that the job is at. How it fills is said once, in the log, and
    holds for its run whoever is master."""
    begun = replace(job, by_range=job.element_id in by_range, through=())
    return _begin_run(begun, now_us)


def record_filled(
    job: Job, now_us: int, look: CheckSlice | None = None, by_range: Collection[int] = ()
) -> Job:
    """Return the job at its next backfill, or at what comes after the last: the end marker of the
    run was decided. `by_range`: see `record_fenced`."""
    assert job.phase is Phase.BACKFILLING, job.phase
    if job.backfill + 1 < len(job.current.backfills):
        return _begin_backfill(replace(job, backfill=job.backfill + 1), now_us, by_range)
    return _begin_after_backfill(job, now_us, look)


def _begin_after_backfill(job: Job, now_us: int, look: CheckSlice | None) -> Job:
    job = replace(job, by_range=False, through=())
    if job.current.validates:
        begun = replace(job, phase=Phase.VALIDATING, dropped=0, verdict="", code="")
        return _begin_run(begun, now_us)
    if job.current.verifies:
        return mark(replace(job, phase=Phase.VERIFYING, look=look, looked=0), now_us)
    return _begin_next_step(job, now_us)


def record_validated(job: Job, now_us: int, look: CheckSlice | None = None) -> Job:
    """Return the job verifying: no row breaks the step's constraints, as far as Spark and the
    master have seen. The nodes' word is the last one."""
    assert job.phase is Phase.VALIDATING, job.phase
    return mark(replace(job, phase=Phase.VERIFYING, look=look, looked=0), now_us)


def ask_verification_again(job: Job, now_us: int, look: CheckSlice | None = None) -> Job:
    """Ask for a verification once more, at the LSN of this record: `look` is the slice that it is
    at, else it starts over (with the first slice, or None: all in one pass)."""
    assert job.phase is Phase.VERIFYING, job.phase
    looked = job.looked if look is not None and look == job.look else 0
    return mark(replace(job, look=look, looked=looked), now_us)


def record_slice(job: Job, look: CheckSlice, keys: int) -> Job:
    """Return the job at its next slice `look`: every coherent node found the one before right, of
    so many keys."""
    assert job.phase is Phase.VERIFYING, job.phase
    assert job.look is not None, "what is looked at in one pass has no slices"
    assert look != job.look, "a slice is followed by another one"
    return replace(job, look=look, looked=job.looked + keys)


def record_verified(job: Job, now_us: int) -> Job:
    """Return the job at its next step: every coherent node found the elements complete."""
    assert job.phase in (Phase.VERIFYING, Phase.BACKFILLING), job.phase
    return _begin_next_step(job, now_us)


def _begin_next_step(job: Job, now_us: int) -> Job:
    job = replace(job, look=None)
    if job.step + 1 < len(job.steps):
        return _begin_publishing(job, job.step + 1, now_us)
    status = Status.SUCCEEDED
    if job.status is Status.ROLLING_BACK:
        status = Status.FAILED if job.error else Status.CANCELLED
    return mark(replace(job, phase=Phase.DONE, status=status), now_us)


def _begin_publishing(job: Job, step: int, now_us: int) -> Job:
    """Write the intent of a step (D2), which names the version before anybody is asked to publish
    it."""
    versions = {t: version + job.publishes(t) for t, version in job.versions.items()}
    return mark(replace(job, step=step, phase=Phase.PUBLISHING, versions=versions), now_us)


# ------------------------------------------------------------------ turning back


def can_turn_back(job: Job) -> bool:
    """Say whether the job is before its point of no return: the descriptor of step `point` is not
    in the log."""
    if job.status not in (Status.RUNNING, Status.PAUSED):
        return False
    return job.step < job.point or (job.step == job.point and job.phase is Phase.PUBLISHING)


def turn_back(
    job: Job, now_us: int, error: str = "", findings: tuple[Any, ...] = (), code: str = ""
) -> Job:
    """Return the job on its way back to where it began; with an `error` it ends failed, else
    cancelled. `code`: the error's SQLSTATE.

    The version that is out is drained and fenced before the first reverse one is published, as on
    the way forth. While PUBLISHING, the version asked of the ledger stays the same and gets the
    reverse content: the ledger knows numbers only, so it may be ahead by it already.
    """
    assert can_turn_back(job), (job.step, job.phase, job.status)
    taken = job.steps[: job.step if job.phase is Phase.PUBLISHING else job.step + 1]
    turned = replace(
        job,
        status=Status.ROLLING_BACK,
        steps=(*taken, *(step.reversed for step in reversed(taken))),
        error=error,
        findings=findings[:FINDINGS_MAX],
        code=code,
        look=None,
        by_range=False,
        through=(),
        hold=Hold.NONE,
    )
    if not taken:
        status = Status.FAILED if error else Status.CANCELLED
        ended = replace(turned, steps=job.steps, phase=Phase.DONE, status=status)
        return mark(ended, now_us)
    if job.phase in (Phase.PUBLISHING, Phase.DRAINING):
        return mark(turned, now_us)
    return _begin_publishing(turned, job.step + 1, now_us)
