"""What people can ask of a job: pause, resume, cancel, set, and to dismiss one that has failed;
decided on its newest state."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Final

from leasehold.catalog.catalog import Catalog
from leasehold.catalog.job import Job, Status
from leasehold.model.errors import (
    InvalidArgument,
    MalformedRequest,
    OutOfRange,
    UnknownJob,
    WrongJobState,
)
from leasehold.model.records.requests import JobControl
from leasehold.schema_change.job.transitions import can_turn_back, turn_back

LIMITS: Final[Mapping[str, tuple[int, int]]] = {
    "rows_per_second": (0, 100_000_000),
    "chunk_rows": (1, 50_000),
    "postpone": (0, 1),
    "cancel_blockers_after_ms": (0, 86_400_000),
    "gentle": (0, 1),
}

DISMISSED: Final = "dismissed"
"""Among a job's settings, which nobody else gives."""
NUMBER_MAX: Final = (1 << 31) - 1


def refuse_unaskable(asked: JobControl) -> None:
    """Refuse what no job could be asked, before it is sent: as a request it has no form. ⚠ Its
    settings are fields beside those of the request itself, so one called `id` would be its id.

    Raises UnknownJob, InvalidArgument (22023), OutOfRange or MalformedRequest.
    """
    if not 1 <= asked.job <= NUMBER_MAX:
        raise _unknown(asked.job)
    if asked.action == "set":
        _refuse_settings(asked.job, asked.settings)


def control(catalog: Catalog, asked: JobControl, now_us: int) -> Job:
    """Return the job as the request leaves it.

    Raises UnknownJob, WrongJobState (55000), MalformedRequest, InvalidArgument or OutOfRange, each
    with a sentence.
    """
    job = catalog.jobs.get(asked.job)
    if job is None:
        raise _unknown(asked.job)
    if asked.action == "dismiss":
        return _dismiss(job)
    if job.status.ended:
        raise WrongJobState(
            f"job {job.job_id} has ended: {job.status.value}; nothing of it is left to"
            f" {asked.action}",
            job=job.job_id,
        )
    match asked.action:
        case "pause":
            return _pause(job)
        case "resume":
            return _resume(job)
        case "cancel":
            return _cancel(job, now_us)
        case "set":
            return _set(job, asked.settings)
    raise MalformedRequest(
        f"job action {asked.action!r:.40} is not known; known are pause, resume, cancel, set,"
        " dismiss",
        job=job.job_id,
    )


def _unknown(job: int) -> UnknownJob:
    return UnknownJob(f"job {job} does not exist", job=job)


def _pause(job: Job) -> Job:
    if job.status is Status.PAUSED:
        raise WrongJobState(
            f"job {job.job_id} is paused already: `leasehold jobs resume {job.job_id}` lets it"
            " go on",
            job=job.job_id,
        )
    if job.status is not Status.RUNNING:
        raise WrongJobState(
            f"job {job.job_id} is {job.status.value}; only a running job can be paused",
            job=job.job_id,
        )
    return replace(job, status=Status.PAUSED)


def _resume(job: Job) -> Job:
    if job.postponed:
        raise WrongJobState(
            f"job {job.job_id} is postponed, not paused: `leasehold jobs complete {job.job_id}`"
            " lets it go on",
            job=job.job_id,
        )
    if job.status is not Status.PAUSED:
        raise WrongJobState(
            f"job {job.job_id} is {job.status.value}; only a paused job can be resumed",
            job=job.job_id,
        )
    return replace(job, status=Status.RUNNING)


def _cancel(job: Job, now_us: int) -> Job:
    if job.status is Status.ROLLING_BACK:
        raise WrongJobState(f"job {job.job_id} is rolling back already", job=job.job_id)
    if not can_turn_back(job):
        raise WrongJobState(
            f"job {job.job_id} ({job.subject}) is past its point of no return: it goes on, and"
            " another schema change can undo it when it has ended",
            job=job.job_id,
        )
    return turn_back(job, now_us)


def _dismiss(job: Job) -> Job:
    """Note that somebody has seen that it failed."""
    if job.status is not Status.FAILED:
        raise WrongJobState(
            f"job {job.job_id} is {job.status.value}; only a failed job can be dismissed",
            job=job.job_id,
        )
    return replace(job, settings={**job.settings, DISMISSED: 1})


def _set(job: Job, settings: Mapping[str, int]) -> Job:
    _refuse_settings(job.job_id, settings)
    if settings.get("postpone") and not can_turn_back(job):
        # Taken, it would promise what nobody keeps.
        if job.status is Status.ROLLING_BACK:
            words = "is rolling back: it has nothing that could be postponed"
        else:
            words = f"({job.subject}) is past its point of no return; it can't be postponed"
        raise WrongJobState(f"job {job.job_id} {words}", job=job.job_id)
    return replace(job, settings={**job.settings, **settings})


def _refuse_settings(job: int, settings: Mapping[str, int]) -> None:
    if not settings:
        raise MalformedRequest(f"job {job}: nothing to set; known are {', '.join(LIMITS)}", job=job)
    for name, value in settings.items():
        if name not in LIMITS:
            raise InvalidArgument(
                f"job setting {name!r:.40} is not known; known are {', '.join(LIMITS)}", job=job
            )
        low, high = LIMITS[name]
        if type(value) is not int or not low <= value <= high:
            raise OutOfRange(f"job setting {name} must be {low} to {high}", job=job)
