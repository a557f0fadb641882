"""A step's work: several backfills in a row, verification alone, a constraint that fails."""

from __future__ import annotations

import pytest

from leasehold.catalog.job import Job, Phase, Status
from leasehold.catalog.states import State
from leasehold.model.records.jobs import Chunk, ChunksEnd
from leasehold.schema_change.coordinator.effects import Reported
from leasehold.schema_change.coordinator.verification import make_subject
from leasehold.schema_change.job.chunk_acceptance import accept_chunk, accept_end
from leasehold.sql.syntax.statements import (
    Change,
    SetNotNull,
    ValidateConstraint,
)
from tests.support.schema_change.job_story import UNIQUE, reach, ready_world, same_but_for_ids
from tests.support.schema_change.job_world import World
from tests.support.schema_change.made_statements import add_check, add_column, add_unique, alter

TWO_BACKFILLS = alter("t", add_column("b", default=1), add_unique("a"))


def phases(job: Job) -> list[tuple[int, str]]:
    return [(step, phase) for step, phase, _ in job.marks if phase not in ("publishing", "done")]


def chunk_of(job: Job) -> Chunk:
    version = job.versions[1]
    return Chunk(job.job_id, job.run, job.table_id, version, job.element_id, ((1,),))


# ------------------------------------------------------------------ an empty table


@pytest.mark.parametrize("change", [TWO_BACKFILLS, alter("t", add_check("a > 0"))])
def test_an_empty_table_needs_no_spark(change: Change) -> None:
    world = ready_world()
    world.spark, world.rows = False, 0
    world.ddl(change)
    world.settle()
    assert world.job().status is Status.SUCCEEDED
    assert world.job().rows_read == 0


def test_a_table_that_becomes_empty_after_the_fence_is_filled() -> None:
    """What was there at the fence is gone; what comes later is written whole."""
    world = ready_world()
    world.spark = False
    world.ddl(TWO_BACKFILLS)
    reach(world, 1, Phase.BACKFILLING)
    for _ in range(200):
        world.one_of_many()
    assert world.job().phase is Phase.BACKFILLING, "there are rows, and nobody fills them"
    late = chunk_of(world.job())
    world.rows = 0
    world.pass_time()
    world.settle()
    assert world.job().status is Status.SUCCEEDED
    assert not accept_chunk(world.catalog, late)


# ------------------------------------------------------------------ verification alone


@pytest.mark.parametrize("change", [alter("t", SetNotNull("a")), alter("t", add_check("a > 0"))])
def test_a_constraint_is_verified_without_a_fill(change: Change) -> None:
    world = ready_world()
    job = world.ddl(change)
    assert (job.current.backfills, len(job.current.verifies)) == ((), 1)
    reach(world, 0, Phase.VERIFYING)
    assert world.job().run == 1, "a run of its own: reports name it"
    assert not world.perform_backfill()
    world.settle()
    assert world.job().status is Status.SUCCEEDED
    assert phases(world.job()) == [
        (0, "draining"),
        (0, "verifying"),
        (1, "draining"),
    ]


def test_validation_of_a_constraint_publishes_an_unchanged_version_first() -> None:
    """⚠ The step's fence: rows that were written before the check was enforced are in it."""
    world = ready_world()
    world.ddl(alter("t", add_check("a > 0", "k", not_valid=True)))
    world.settle()
    before = world.table()
    world.ddl(alter("t", ValidateConstraint("k")))
    world.until(lambda: world.job(2).phase is Phase.VERIFYING)
    assert same_but_for_ids(world.table(), before)
    assert world.table().version == before.version + 1
    world.settle()
    check = world.table().check("k")
    assert check is not None
    assert check.state is State.PUBLIC


def test_each_verification_is_a_run_that_older_reports_do_not_count_for() -> None:
    """A column, and then the unique index over it."""
    world = ready_world()
    job = world.ddl(TWO_BACKFILLS)
    verified, again = (number for number, each in enumerate(job.steps) if each.verifies)
    reach(world, verified, Phase.VERIFYING)
    old = list(world.reports)
    first = make_subject(world.job())
    reach(world, again, Phase.VERIFYING)
    assert make_subject(world.job()) != first
    world.reports.clear()
    for report in old:
        world.give(Reported(report._replace(lsn=len(world.log), offset=len(world.log) * 10)))
    assert world.job().phase is Phase.VERIFYING
    assert not world.writes


# ------------------------------------------------------------------ two fills


def test_two_fills_of_a_step_are_two_runs_before_it_is_verified() -> None:
    world = ready_world()
    job = world.ddl(TWO_BACKFILLS)
    step = next(number for number, each in enumerate(job.steps) if each.backfills)
    column, index = job.steps[step].backfills
    reach(world, step, Phase.BACKFILLING)
    seen = []
    while world.job().phase is Phase.BACKFILLING:
        seen.append((world.job().element_id, world.job().run))
        world.calm() or world.perform_backfill()
    assert list(dict.fromkeys(seen)) == [(column, 1), (index, 2)]
    assert world.job().phase is Phase.VERIFYING
    assert world.job().current.verifies == (column,), "the index when it is enforced"
    assert world.job().run == 2
    assert [phase for at, phase in phases(world.job()) if at == step] == [
        "draining",
        "backfilling",
        "backfilling",
        "verifying",
    ]
    world.settle()
    assert world.job().status is Status.SUCCEEDED


def backfilling_second(world: World) -> Chunk:
    """Where the second backfill runs; → a chunk of the first, on its way still."""
    world.ddl(TWO_BACKFILLS)
    reach(world, 1, Phase.BACKFILLING)
    late = chunk_of(world.job())
    while world.job().run == 1:
        world.calm() or world.perform_backfill()
    return late


def test_a_chunk_of_the_first_fill_is_late_in_the_second() -> None:
    world = ready_world()
    late = backfilling_second(world)
    job = world.job()
    assert (job.rows_read, job.rows_applied, job.chunks_ended) == (0, 0, False)
    assert not accept_chunk(world.catalog, late)
    assert not accept_end(world.catalog, ChunksEnd(1, 1, 1, 1))
    assert not accept_chunk(world.catalog, late._replace(run=2)), "of that run, another element"
    assert accept_chunk(world.catalog, chunk_of(job))


def test_the_next_master_goes_on_with_the_second_fill() -> None:
    world = ready_world()
    backfilling_second(world)
    before = world.job()
    world.takeover()
    assert world.job() == before
    world.settle()
    assert world.job().status is Status.SUCCEEDED
    assert [phase for _, phase in phases(world.job())].count("backfilling") == 2


def test_cancelled_in_the_second_fill_both_elements_go() -> None:
    world = ready_world()
    table = world.table()
    backfilling_second(world)
    world.control("cancel")
    world.settle()
    assert world.job().status is Status.CANCELLED
    assert same_but_for_ids(world.table(), table)


# ------------------------------------------------------------------ a constraint that fails


def test_duplicates_turn_the_job_back_and_the_error_names_the_key() -> None:
    world = ready_world()
    before = world.table()
    job = world.ddl(UNIQUE)
    reach(world, 2, Phase.DRAINING)
    world.findings = {"m": 2, "r1": 2, "r2": 2}
    world.settle()
    failed = world.job()
    assert failed.status is Status.FAILED
    assert "constraint t_a_key found 2 differences on node" in failed.error
    assert "the first at key (7,): entry missing" in failed.error
    element_id = job.steps[0].edits[0].element_id
    assert [tuple(f) for f in failed.findings] == [(4, element_id, (7,), "entry missing")] * 2
    walked = [edit.state for step in failed.steps for edit in step.edits]
    assert walked == ["delete-only", *["write-only"] * 3, "delete-only", "absent"]
    assert same_but_for_ids(before, world.table())
    world.findings.clear()
    world.ddl(UNIQUE)
    world.settle()
    assert world.job(2).status is Status.SUCCEEDED


def test_a_failed_not_null_is_enforced_no_more() -> None:
    world = ready_world()
    before = world.table()
    world.findings["r2"] = 1
    world.ddl(alter("t", SetNotNull("a")))
    world.settle()
    assert world.job().status is Status.FAILED
    assert same_but_for_ids(before, world.table())
    assert not world.table().by_id[2].refuses_null
