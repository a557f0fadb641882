"""A job may be told to wait before its point of no return, and goes on when it is told to."""

from __future__ import annotations

import pytest

from leasehold.catalog.job import Job, Phase, Status
from leasehold.lease.commands import Publish
from leasehold.model.errors import OutOfRange, WrongJobState
from leasehold.schema_change.plan.plan import SETTINGS
from leasehold.sql.syntax.statements import (
    Change,
    DropColumn,
    DropTable,
)
from tests.support.schema_change.job_story import (
    INDEX,
    UNIQUE,
    reach,
    ready_world,
    same_but_for_ids,
)
from tests.support.schema_change.job_world import World
from tests.support.schema_change.made_statements import alter

CHANGES: list[Change] = [INDEX, UNIQUE, alter("t", DropColumn("a")), DropTable("t")]


def postponed_world(change: Change) -> World:
    """Where nothing happens any more, however long one waits."""
    world = ready_world()
    world.ddl(change)
    world.control("set", postpone=1)
    wait(world)
    return world


def wait(world: World) -> None:
    for _ in range(300):
        if not world.calm() and not world.perform_backfill():
            world.pass_time(20)


def before_the_point(job: Job) -> bool:
    return (job.step, job.phase, job.status) == (job.point, Phase.PUBLISHING, Status.RUNNING)


@pytest.mark.parametrize("change", CHANGES)
def test_it_waits_before_the_point_and_goes_on_when_told(change: Change) -> None:
    world = postponed_world(change)
    job = world.job()
    assert before_the_point(job)
    assert job.postponed
    assert "postponed" in world.coordinator.waiting_for(1)
    assert world.table().version == job.versions[1] - 1
    log = len(world.log)
    wait(world)
    assert len(world.log) == log
    world.control("set", postpone=0)
    assert not world.job().postponed
    world.settle()
    assert world.job().status is Status.SUCCEEDED


@pytest.mark.parametrize("change", CHANGES)
def test_the_next_master_waits_as_well(change: Change) -> None:
    world = postponed_world(change)
    world.takeover()
    wait(world)
    assert before_the_point(world.job())
    assert "postponed" in world.coordinator.waiting_for(1)
    world.control("set", postpone=0)
    world.settle()
    assert world.job().status is Status.SUCCEEDED


@pytest.mark.parametrize("change", CHANGES)
def test_it_can_be_cancelled_where_it_waits(change: Change) -> None:
    world = ready_world()
    before = world.table()
    world = postponed_world(change)
    world.control("cancel")
    world.settle()
    assert world.job().status is Status.CANCELLED
    assert same_but_for_ids(world.table(), before)


def test_the_ledger_is_not_even_asked_for_that_version() -> None:
    world = postponed_world(INDEX)
    asked = [c.to_version for _, command in world.published for c in command.changes]
    assert asked == [2, 3]


def test_told_while_the_ledger_is_asked_it_still_waits() -> None:
    """The ledger is one ahead of the log then; the job takes that number when it goes on."""
    world = ready_world()
    world.ddl(DropTable("t"))
    assert [type(call.command) for call in world.calls] == [Publish]
    world.control("set", postpone=1)
    wait(world)
    assert before_the_point(world.job())
    assert (world.ledger.tables[1].current, world.table().version) == (2, 1)
    world.control("set", postpone=0)
    world.settle()
    assert world.table().version == 3


def test_told_while_the_descriptor_is_on_its_way_to_the_log_it_still_waits() -> None:
    world = ready_world()
    world.ddl(DropTable("t"))
    while not world.writes:
        world.perform_call()
    world.control("set", postpone=1)
    wait(world)
    assert before_the_point(world.job())


def test_what_has_passed_the_point_is_not_held_and_whoever_asks_is_told() -> None:
    """Nor is anything else of such a wish taken; what was wished before says nothing any more."""
    world = ready_world()
    world.ddl(DropTable("t"))
    reach(world, 0, Phase.DRAINING)
    with pytest.raises(WrongJobState, match=r"\(table t\) is past its point .* can't be postponed"):
        world.control("set", postpone=1, chunk_rows=7)
    assert world.job().settings == SETTINGS
    world.control("set", postpone=0)
    with pytest.raises(WrongJobState, match="point of no return"):
        world.control("cancel")
    world.settle()
    assert world.job().status is Status.SUCCEEDED


def test_a_job_on_its_way_back_is_not_held() -> None:
    """Its steps are others now; the point was one of those that were cut."""
    world = ready_world()
    world.ddl(INDEX)
    world.control("set", postpone=1)
    reach(world, 1, Phase.BACKFILLING)
    world.control("cancel")
    with pytest.raises(WrongJobState, match="is rolling back: it has nothing"):
        world.control("set", postpone=1)
    world.settle()
    assert world.job().status is Status.CANCELLED


def test_a_paused_job_that_is_postponed_needs_both_words() -> None:
    world = postponed_world(INDEX)
    world.control("pause")
    world.control("set", postpone=0)
    wait(world)
    assert world.job().status is Status.PAUSED
    world.control("resume")
    world.settle()
    assert world.job().status is Status.SUCCEEDED


def test_once_told_nothing_says_that_it_is_postponed() -> None:
    world = postponed_world(INDEX)
    world.control("set", postpone=0)
    assert [type(call.command) for call in world.calls] == [Publish]
    assert "postponed" not in world.coordinator.waiting_for(1)


def test_postpone_is_yes_or_no() -> None:
    world = ready_world()
    world.ddl(INDEX)
    with pytest.raises(OutOfRange, match="postpone must be 0 to 1"):
        world.control("set", postpone=2)
