"""What people ask of a job: cancel, pause, resume, set."""

from __future__ import annotations

from dataclasses import replace

import pytest

from leasehold.catalog.catalog import Catalog
from leasehold.catalog.job import Job, Phase, Status, job_from_wire
from leasehold.lease.commands import (
    Publish,
)
from leasehold.model.errors import (
    InvalidArgument,
    MalformedRequest,
    OutOfRange,
    UnknownJob,
    WrongJobState,
)
from leasehold.model.records.log import DescriptorWrite, JobWrite
from leasehold.model.records.requests import JobControl
from leasehold.schema_change.job.control import DISMISSED, control
from leasehold.schema_change.plan.plan import SETTINGS
from leasehold.sql.syntax.statements import (
    Change,
)
from tests.support.schema_change.job_story import (
    INDEX,
    OPTIONAL,
    REQUIRED,
    reach,
    ready_world,
    same_but_for_ids,
)
from tests.support.schema_change.job_world import World


@pytest.mark.parametrize(
    ("change", "step", "phase"),
    [
        (INDEX, 0, Phase.PUBLISHING),
        (INDEX, 0, Phase.DRAINING),
        (INDEX, 1, Phase.PUBLISHING),
        (INDEX, 1, Phase.DRAINING),
        (INDEX, 1, Phase.BACKFILLING),
        (INDEX, 1, Phase.VERIFYING),
        (INDEX, 2, Phase.PUBLISHING),
        (OPTIONAL, 0, Phase.DRAINING),
        (OPTIONAL, 1, Phase.PUBLISHING),
        (REQUIRED, 1, Phase.BACKFILLING),
    ],
)
@pytest.mark.parametrize("crash", [False, True])
def test_cancel_before_the_point_of_no_return(
    change: Change, step: int, phase: Phase, crash: bool
) -> None:
    world = ready_world()
    before = world.table()
    world.ddl(change)
    reach(world, step, phase)
    world.control("cancel")
    if crash:
        world.takeover()
    world.settle()
    assert world.job().status is Status.CANCELLED
    assert same_but_for_ids(before, world.table())
    assert world.catalog.min_version(1) == world.table().version
    world.ddl(change)
    world.settle()
    assert world.job(2).status is Status.SUCCEEDED


def cancelled_behind_the_ledger() -> World:
    """Job 1 was cancelled in PUBLISHING, when the ledger had its version and the log had not."""
    world = ready_world()
    world.ddl(INDEX)
    while not any(isinstance(call.command, Publish) for call in world.calls):
        world.calm() or world.pass_time(5)
    world.perform_call()
    world.writes.clear()
    world.control("cancel")
    return world


def test_cancel_while_the_ledger_has_published_uses_that_version_up() -> None:
    """PUBLISHING, and the ledger is one ahead: the next job takes the very number."""
    world = cancelled_behind_the_ledger()
    assert world.job().status is Status.CANCELLED
    assert (world.ledger.tables[1].current, world.table().version) == (2, 1)
    world.ddl(OPTIONAL)
    world.settle()
    assert world.job(2).status is Status.SUCCEEDED
    assert world.table().version == world.ledger.tables[1].current == 3


@pytest.mark.parametrize("say", ["set", "pause"])
def test_people_speak_while_a_version_that_the_ledger_has_already_goes_to_the_log(say: str) -> None:
    """⚠ The record is written for the job as it was before their word, so it does not count: the
    ledger is asked once more, of every table, as none of it may be there any more."""
    world = cancelled_behind_the_ledger()
    world.ddl(OPTIONAL)
    world.until(lambda: bool(world.writes))
    assert (world.ledger.tables[1].current, world.table().version) == (2, 1)
    if say == "set":
        world.control("set", 2, chunk_rows=7)
    else:
        world.control("pause", 2)
        world.control("resume", 2)
    world.settle()
    assert world.job(2).status is Status.SUCCEEDED
    assert world.table().version == world.ledger.tables[1].current == 3


def test_cancel_after_the_point_of_no_return_is_refused() -> None:
    world = ready_world()
    world.ddl(INDEX)
    reach(world, 2, Phase.DRAINING)
    with pytest.raises(WrongJobState, match="point of no return"):
        world.control("cancel")


def test_paused_job_does_nothing_until_resumed() -> None:
    world = ready_world()
    world.ddl(INDEX)
    reach(world, 1, Phase.PUBLISHING)
    world.control("pause")
    log = len(world.log)
    for _ in range(50):
        world.calm() or world.pass_time(50)
    assert len(world.log) == log
    assert world.coordinator.waiting_for(1) == "a person to resume it (leasehold jobs resume 1)"
    world.takeover()
    world.control("resume")
    world.settle()
    assert world.job().status is Status.SUCCEEDED


def test_chunks_of_a_paused_job_are_taken_and_verified_after_resume() -> None:
    world = ready_world()
    world.ddl(INDEX)
    reach(world, 1, Phase.BACKFILLING)
    world.control("pause")
    while not world.job().chunks_ended:
        assert world.perform_backfill()
    world.calm()
    assert world.job().phase is Phase.BACKFILLING
    world.control("resume")
    world.settle()
    assert world.job().status is Status.SUCCEEDED


def test_settings_of_a_job_are_changed_while_it_runs() -> None:
    world = ready_world()
    world.ddl(INDEX)
    reach(world, 1, Phase.BACKFILLING)
    world.control("set", rows_per_second=1_000)
    assert world.job().settings == {**SETTINGS, "rows_per_second": 1_000}
    world.settle()
    assert world.job().status is Status.SUCCEEDED


def test_control_refused_with_a_sentence() -> None:
    world = ready_world()
    with pytest.raises(UnknownJob):
        world.control("pause")
    world.ddl(INDEX)
    with pytest.raises(WrongJobState, match="only a paused job"):
        world.control("resume")
    with pytest.raises(MalformedRequest, match="known are pause"):
        world.control("stop")
    with pytest.raises(MalformedRequest, match="nothing to set"):
        world.control("set")
    with pytest.raises(InvalidArgument, match="'speed'"):
        world.control("set", speed=1)
    with pytest.raises(OutOfRange):
        world.control("set", chunk_rows=0)
    reach(world, 1, Phase.DRAINING)
    world.control("cancel")
    for action in ("cancel", "pause"):
        with pytest.raises(WrongJobState, match="rolling back"):
            world.control(action)
    world.settle()
    with pytest.raises(WrongJobState, match="has ended: cancelled"):
        world.control("cancel")


def test_a_write_made_stale_by_a_control_is_dropped() -> None:
    """The coordinator's Write was given before the cancel was decided: its job is no more."""
    world = ready_world()
    world.ddl(INDEX)
    while not any(isinstance(w, DescriptorWrite) for write in world.writes for w in write.writes):
        world.calm() or world.pass_time(5)
    (stale,) = world.writes
    world.control("cancel")
    assert not stale.holds(world.catalog)
    world.settle()
    assert world.table().version == 1


def test_counted_chunks_make_a_write_stale_so_that_no_count_is_lost() -> None:
    world = ready_world()
    world.ddl(INDEX)
    reach(world, 1, Phase.BACKFILLING)
    write = world.coordinator._write_controlled(replace(world.job(), status=Status.PAUSED))
    world.perform_backfill()
    assert not write.holds(world.catalog)


def test_a_failed_job_is_dismissed_and_no_other() -> None:
    """It is a word in the log about a job that has ended, and begins nothing."""
    world = ready_world()
    world.ddl(INDEX)
    job = world.job()
    catalog = world.catalog
    asked = JobControl(job.job_id, "dismiss", {})
    for status in Status:
        stood = replace(job, status=status, phase=Phase.DONE)
        catalog.apply(JobWrite(job.job_id, stood.to_wire()), 1, 1)
        if status is not Status.FAILED:
            with pytest.raises(WrongJobState, match=f"is {status.value}; only a failed job"):
                control(catalog, asked, 0)
            continue
        made = control(catalog, asked, 0)
        assert made == replace(stood, settings={**stood.settings, DISMISSED: 1})
        assert job_from_wire(made.to_wire()) == made
    with pytest.raises(InvalidArgument):
        control(_running(catalog, job), JobControl(job.job_id, "set", {DISMISSED: 1}), 0)


def _running(catalog: Catalog, job: Job) -> Catalog:
    catalog.apply(JobWrite(job.job_id, job.to_wire()), 1, 1)
    return catalog
