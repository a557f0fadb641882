"""Every command of people, at every place of jobs of every kind, and up to three of them in a row.

Method: each job is walked to its end, once plainly and once cancelled at each place. Wherever it
stands a table says what each command comes to: the kind of place it brings the job to, or the
sentence it is refused with. What the reports say then must fit: a command that words advise is one
that is taken, and nobody is told of a time or a rate where a person is waited for.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import replace
from functools import cache
from types import SimpleNamespace
from typing import Any, Final, cast

import pytest

from leasehold.admin.fold import fold
from leasehold.admin.report import report
from leasehold.admin.view import ClusterView, LogSeen
from leasehold.catalog.catalog import Catalog
from leasehold.catalog.descriptor import Descriptor
from leasehold.catalog.job import NO_WAY_BACK, Job, Phase, Status
from leasehold.model.errors import Refused, TableBusy
from leasehold.model.records.jobs import JobEvent, JobProgress
from leasehold.model.records.requests import JobControl
from leasehold.schema_change.job.control import control
from leasehold.schema_change.job.transitions import mark
from leasehold.schema_change.plan.busy_tables import free_table
from tests.support.schema_change.job_story import EVERY_CHANGE, OPTIONAL, ready_world
from tests.support.schema_change.job_world import World

COMMANDS: Final[Mapping[str, tuple[str, Mapping[str, int]]]] = {
    "pause": ("pause", {}),
    "resume": ("resume", {}),
    "cancel": ("cancel", {}),
    "postpone": ("set", {"postpone": 1}),
    "complete": ("set", {"postpone": 0}),
    "rate": ("set", {"rows_per_second": 7, "chunk_rows": 9, "cancel_blockers_after_ms": 30_000}),
    "dismiss": ("dismiss", {}),
}
BACK: Final = "back|cancelled"
PAST: Final = r"is past its point of no return: it goes on, and another"
TOO_LATE: Final = r"is past its point of no return; it can't be postponed$"
NOT_FAILED: Final = r"is [a-z ]+; only a failed job can be dismissed$"
NOT_PAUSED: Final = r"is running; only a paused job can be resumed$"
POSTPONED: Final = r"is postponed, not paused: `leasehold jobs complete 1` lets it go on$"
TWICE: Final = r"is paused already: `leasehold jobs resume 1` lets it go on$"
UNKNOWN: Final = r"^job 1 does not exist$"


def ended(how: str) -> tuple[str, ...]:
    return (*[rf"^job 1 has ended: {how}; nothing of it is left to [a-z]+$"] * 6, NOT_FAILED)


# Of each kind of place: what pause, resume, cancel, postpone, complete, a rate and dismiss come to.
TABLE: Final[Mapping[str, tuple[str, ...]]] = {
    "early": ("paused", NOT_PAUSED, BACK, "early", "early", "early", NOT_FAILED),
    "at": ("paused_at", NOT_PAUSED, BACK, "postponed", "at", "at", NOT_FAILED),
    "postponed": ("paused_at", POSTPONED, BACK, "postponed", "at", "postponed", NOT_FAILED),
    "paused": (TWICE, "early", BACK, "paused", "paused", "paused", NOT_FAILED),
    "paused_at": (
        *(TWICE, "at|postponed", BACK, "paused_at", "paused_at", "paused_at", NOT_FAILED),
    ),
    "past": ("paused_past", NOT_PAUSED, PAST, TOO_LATE, "past", "past", NOT_FAILED),
    "paused_past": (TWICE, "past", PAST, TOO_LATE, "paused_past", "paused_past", NOT_FAILED),
    "back": (
        "is rolling back; only a running job can be paused$",
        "is rolling back; only a paused job can be resumed$",
        "is rolling back already$",
        "is rolling back: it has nothing that could be postponed$",
        *("back", "back", NOT_FAILED),
    ),
    "succeeded": ended("succeeded"),
    "cancelled": ended("cancelled"),
    "failed": (*ended("failed")[:-1], "failed"),
    "unknown": (UNKNOWN,) * 7,
}


def kind_of(job: Job | None) -> str:
    if job is None:
        return "unknown"
    if job.status.ended:
        return job.status.value
    if job.status is Status.ROLLING_BACK:
        return "back"
    paused = job.status is Status.PAUSED
    if job.step > job.point or (job.step == job.point and job.phase is not Phase.PUBLISHING):
        return "paused_past" if paused else "past"
    if job.step < job.point:
        return "paused" if paused else "early"
    if paused:
        return "paused_at"
    return "postponed" if job.settings.get("postpone") else "at"


def told(job: Job | None, command: str) -> Job:
    action, settings = COMMANDS[command]
    jobs = {} if job is None else {job.job_id: job}
    catalog = cast(Catalog, SimpleNamespace(jobs=jobs))
    return control(catalog, JobControl(1, action, settings), 10**15)


def demand_row(job: Job | None) -> list[Job]:
    """What each command comes to, by the table; the jobs as they are then."""
    made = []
    for command, cell in zip(COMMANDS, TABLE[kind_of(job)], strict=True):
        if " " in cell:
            with pytest.raises(Refused, match=cell) as refusal:
                told(job, command)
            assert refusal.value.sqlstate == ("55000" if job is not None else "42704"), command
            continue
        after = told(job, command)
        assert kind_of(after) in cell.split("|"), (command, kind_of(job), kind_of(after))
        assert job is not None
        if command in ("pause", "resume"):
            assert replace(after, status=job.status) == job, command
        elif command != "cancel":
            assert replace(after, settings=job.settings) == job, command
            assert {**after.settings, **COMMANDS[command][1]} == after.settings
        made.append(after)
    return made


@cache
def walked(change: int) -> tuple[Job, ...]:
    """Each place of a job, in the log's order; and of its way back, cancelled at each of them."""
    places: dict[tuple[Any, ...], Job] = {}
    for stop in range(40):
        world = ready_world()
        world.ddl(EVERY_CHANGE[change])
        seen: set[tuple[Any, ...]] = set()
        while not world.job().status.ended:
            job = world.job()
            place = (
                job.step,
                job.phase,
                job.backfill,
                job.chunks_ended,
                job.status,
                len(job.steps),
            )
            places.setdefault(place, job)
            seen.add(place)
            if len(seen) == stop and job.status is Status.RUNNING and kind_of(job) != "past":
                world.control("cancel")
            elif not world.calm() and not world.perform_backfill():
                world.pass_time(5)
        job = world.job()
        places.setdefault((job.status, len(job.steps)), job)
        if job.status is Status.SUCCEEDED and stop:
            break
    return tuple(places.values())


def jobs_about(change: int) -> Iterator[Job]:
    """Those places, and where up to three commands bring a job from them; failed ones, too."""
    for at in walked(change):
        known: dict[str, Job] = {}
        reached = [at]
        if at.status is Status.CANCELLED:
            reached.append(replace(at, status=Status.FAILED, error="no room"))
        if at.status is Status.RUNNING:
            reached.append(replace(at, point=NO_WAY_BACK))
        for _ in range(4):
            fresh = [job for job in reached if repr(job) not in known]
            known |= {repr(job): job for job in fresh}
            reached = [after for job in fresh for after in demand_row(job)]
        yield from known.values()


@pytest.mark.parametrize("change", range(len(EVERY_CHANGE)))
def test_each_command_at_each_place_does_what_the_table_says(change: int) -> None:
    """One whose first step is the point of no return has no place before it."""
    kinds = {kind_of(job) for job in jobs_about(change)}
    rising = {"early", "paused", "back"}
    assert kinds | {"unknown"} | rising == TABLE.keys()
    assert rising <= kinds if walked(change)[0].point else not rising & kinds


def test_of_a_job_that_is_not_there_each_command_says_so() -> None:
    assert demand_row(None) == []


# ------------------------------------------------------------------ what people are told of it

NOW: Final = 2_000_000_000_000_000
ADVICE: Final = re.compile(r"leasehold jobs (resume|complete|cancel) 1\b")
WISHES: Final = {"resume it": "resume", "complete it": "complete", "cancel it": "cancel"}


def taken(job: Job, command: str) -> bool:
    try:
        after = told(job, command)
    except Refused:
        return False
    return after != job


def told_of(job: Job) -> dict[str, Any]:
    view = fold(ClusterView(), JobEvent(1, 9, NOW, job.to_wire()), NOW)
    progress = JobProgress(1, job.run, 3, 1, 50.0, "reading", NOW)
    (found,) = report(fold(view, progress, NOW), NOW)["jobs"]
    return dict(found)


@pytest.mark.parametrize("change", range(len(EVERY_CHANGE)))
def test_what_is_told_fits_where_it_stands(change: int) -> None:
    for job in jobs_about(change):
        found, kind = told_of(replace(job, rows=10)), kind_of(job)
        words = (kind, found["doing"], found["waits_for"])
        assert found["can_cancel"] == taken(job, "cancel"), words
        assert found["postponed"] == (kind == "postponed"), words
        person = kind in ("postponed", "paused", "paused_at", "paused_past")
        advised = ADVICE.findall(" ".join((found["doing"], *found["waits_for"])))
        assert bool(advised) == person, words
        assert all(taken(job, command) for command in advised), words
        assert found["attempts"] == 1, words
        assert 0 <= found["fraction"] <= 1, words
        assert (found["fraction"] == 1) == job.status.ended, words
        if person or job.status.ended:
            assert found["ends_in_s"] is None, words
        if kind.startswith("paused") or job.status.ended:
            assert (found["eta_s"], found["rows_per_second"]) == (None, 0.0), words


@pytest.mark.parametrize("change", range(len(EVERY_CHANGE)))
def test_who_meets_it_on_a_table_is_told_what_can_be_done(change: int) -> None:
    for job in jobs_about(change):
        catalog = Catalog()
        catalog.put_job(job)
        table = cast(Descriptor, SimpleNamespace(table_id=1, name="t"))
        if job.status.ended:
            free_table(catalog, table)
            continue
        with pytest.raises(TableBusy) as busy:
            free_table(catalog, table)
        words = busy.value.message
        wishes = {command for wish, command in WISHES.items() if wish in words}
        assert all(taken(job, command) for command in wishes), words
        assert ("cancel" in wishes) == taken(job, "cancel"), words
        assert ("wait for it" in words) != bool(wishes - {"cancel"}), words
        needed = replace(job, table_id=2, versions={2: 2}, needs=(1,))
        catalog.put_job(needed)
        with pytest.raises(TableBusy, match="table 't' has to stay as it is for job 1"):
            free_table(catalog, table)


def test_of_several_fills_in_one_step_the_bar_never_goes_back() -> None:
    backfilling = next(job for job in walked(0) if job.phase is Phase.BACKFILLING)
    step = replace(backfilling.current, backfills=backfilling.current.backfills * 2)
    steps = (
        *backfilling.steps[: backfilling.step],
        step,
        *backfilling.steps[backfilling.step + 1 :],
    )
    two = replace(backfilling, steps=steps, rows=100)
    at = [
        replace(two, backfill=backfill, rows_read=rows)
        for backfill in (0, 1)
        for rows in (0, 50, 100)
    ]
    found = [told_of(job)["fraction"] for job in at]
    assert found == sorted(found)
    assert found[0] < found[-1]


def test_without_a_master_that_is_what_it_waits_for() -> None:
    world = ready_world()
    world.ddl(OPTIONAL)
    heard = LogSeen(3, 1, 1, 2, NOW, 1, 0, 0, {}, 0)
    for status, words in ((Status.RUNNING, "nothing is heard of a master for 4.0 s"),
                          (Status.PAUSED, "a person paused it")):  # fmt: skip
        job = mark(replace(world.job(), status=status), NOW)
        view = fold(ClusterView(), JobEvent(1, 9, NOW, job.to_wire()), NOW)
        view = fold(view, heard, NOW)
        (found,) = report(view, NOW + 4_000_000)["jobs"]
        (said,) = found["waits_for"]
        assert said.startswith(words)
        assert report(view, NOW + 1_000_000)["jobs"][0]["waits_for"] == (
            [] if status is Status.RUNNING else found["waits_for"]
        )


# ------------------------------------------------------------------ and it goes on, or back


@pytest.mark.parametrize("change", range(len(EVERY_CHANGE)))
@pytest.mark.parametrize("first", ["pause", "postpone", "rate"])
@pytest.mark.parametrize("second", ["", "cancel", "crash"])
def test_a_job_that_was_told_something_ends_as_it_should(
    change: int, first: str, second: str
) -> None:
    """At each place of it; who has forgotten it lets it go."""
    for stop in range(40):
        world = ready_world()
        world.ddl(EVERY_CHANGE[change])
        places: set[tuple[Any, ...]] = set()
        while not world.job().status.ended and len(places) <= stop:
            job = world.job()
            places.add((job.step, job.phase, job.backfill, job.chunks_ended))
            if len(places) <= stop and not world.calm() and not world.perform_backfill():
                world.pass_time(5)
        if world.job().status.ended:
            return
        way = _steered(world, first, second)
        assert world.job().status is way, (stop, first, second, world.job())


def _steered(world: World, first: str, second: str) -> Status:
    """How it is to end."""
    for command in filter(None, (first, second)):
        if command == "crash":
            world.takeover()
        elif taken(world.job(), command):
            action, settings = COMMANDS[command]
            world.control(action, 1, **settings)
    cancelled = world.job().status in (Status.ROLLING_BACK, Status.CANCELLED)
    if world.job().status is Status.PAUSED:
        world.control("resume")
    if world.job().settings.get("postpone") and not world.job().status.ended:
        world.control("set", 1, postpone=0)
    world.settle()
    return Status.CANCELLED if cancelled else Status.SUCCEEDED
