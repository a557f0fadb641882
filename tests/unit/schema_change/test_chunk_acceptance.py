"""⚠ Late chunks: only the run that is being filled is taken, in its version, for its element."""

from __future__ import annotations

from dataclasses import replace

import pytest

from leasehold.catalog.job import Phase, Status
from leasehold.model.records.jobs import Chunk, ChunksEnd, Findings
from leasehold.model.records.log import JobWrite
from leasehold.model.records.requests import JobControl
from leasehold.schema_change.job.chunk_acceptance import accept_chunk, accept_end, accept_findings
from leasehold.schema_change.job.control import control
from tests.models.mutants.schema import JobRules, broken
from tests.support.schema_change.job_world import World
from tests.support.schema_change.looked_through import planned_by_an_earlier_release
from tests.support.schema_change.made_statements import (
    add_check,
    alter,
    column,
    create_index,
    create_table,
)


def backfilling_world() -> World:
    world = World(agents=0)
    world.ddl(create_table("t", column("a")))
    world.until_ready()
    world.ddl(create_index("i", "t", "a"))
    world.until(lambda: world.job().phase is Phase.BACKFILLING)
    return world


CHUNK = Chunk(job_id=1, run=1, table_id=1, version=3, element_id=3, keys=((1,),))


def test_chunk_of_the_run_that_is_being_filled_is_taken() -> None:
    world = backfilling_world()
    assert accept_chunk(world.catalog, CHUNK)
    assert accept_chunk(world.catalog, CHUNK), "twice is harmless"
    assert accept_end(world.catalog, ChunksEnd(1, 1, 1, 1))


@pytest.mark.parametrize(
    "late",
    [
        CHUNK._replace(job_id=2),
        CHUNK._replace(run=0),
        CHUNK._replace(run=2),
        CHUNK._replace(table_id=2),
        CHUNK._replace(version=2),
        CHUNK._replace(version=4),
        CHUNK._replace(element_id=2),
    ],
)
def test_chunk_of_anything_else_is_not(late: Chunk) -> None:
    assert not accept_chunk(backfilling_world().catalog, late)


def test_end_of_another_run_ends_nothing() -> None:
    world = backfilling_world()
    assert not accept_end(world.catalog, ChunksEnd(1, 2, 1, 1))
    assert not accept_end(world.catalog, ChunksEnd(2, 1, 1, 1))


@pytest.mark.parametrize(
    "change",
    [
        {"phase": Phase.VERIFYING},
        {"phase": Phase.DRAINING},
        {"phase": Phase.DONE, "status": Status.SUCCEEDED},
        {"status": Status.ROLLING_BACK},
        {"chunks_ended": True},
    ],
)
def test_chunk_of_a_job_that_is_elsewhere_is_not(change: dict[str, object]) -> None:
    world = backfilling_world()
    job = replace(world.job(), **change)  # type: ignore[arg-type]
    world.catalog.apply(JobWrite(1, job.to_wire()), 1, 99)
    assert not accept_chunk(world.catalog, CHUNK)
    assert not accept_end(world.catalog, ChunksEnd(1, 1, 1, 1))


def test_paused_jobs_chunks_on_their_way_are_taken() -> None:
    world = backfilling_world()
    paused = control(world.catalog, JobControl(1, "pause"), 1)
    world.catalog.apply(JobWrite(1, paused.to_wire()), 1, 99)
    assert accept_chunk(world.catalog, CHUNK)


def test_races_8_chunk_of_a_cancelled_job_meets_the_next_index_of_that_name() -> None:
    world = backfilling_world()
    world.control("cancel")
    world.settle()
    world.ddl(create_index("i", "t", "a"))
    world.until(lambda: world.job(2).phase is Phase.BACKFILLING)
    assert not accept_chunk(world.catalog, CHUNK)


def test_rule_turned_off_takes_a_chunk_of_another_run() -> None:
    world = backfilling_world()
    other = CHUNK._replace(run=7)
    with broken(JobRules(chunk_names_run=False)):
        assert accept_chunk(world.catalog, other)
    assert not accept_chunk(world.catalog, other)


# ------------------------------------------------------------------ ⚠ late findings

FINDINGS = Findings(job_id=1, run=1, table_id=1, version=2, rows=1, total=1, found=((3, (1,)),))


def validating_world() -> World:
    world = World(agents=0)
    world.ddl(create_table("t", column("a")))
    world.until_ready()
    with planned_by_an_earlier_release():
        world.ddl(alter("t", add_check("a > 0", "c")))
    world.until(lambda: world.job().phase is Phase.VALIDATING)
    return world


def test_findings_of_the_run_that_is_validating_are_looked_at() -> None:
    world = validating_world()
    assert accept_findings(world.catalog, FINDINGS)
    assert not accept_end(world.catalog, ChunksEnd(1, 1, 1, 1)), "it ends with findings alone"
    paused = control(world.catalog, JobControl(1, "pause"), 1)
    world.catalog.apply(JobWrite(1, paused.to_wire()), 1, 99)
    assert accept_findings(world.catalog, FINDINGS), "they would never come again"


@pytest.mark.parametrize(
    "late",
    [
        FINDINGS._replace(job_id=2),
        FINDINGS._replace(run=0),
        FINDINGS._replace(run=2),
        FINDINGS._replace(table_id=2),
        FINDINGS._replace(version=1),
        FINDINGS._replace(version=3),
    ],
)
def test_findings_of_anything_else_are_not(late: Findings) -> None:
    assert not accept_findings(validating_world().catalog, late)


@pytest.mark.parametrize(
    "change",
    [
        {"phase": Phase.VERIFYING},
        {"phase": Phase.DRAINING},
        {"status": Status.ROLLING_BACK},
        {"chunks_ended": True},
    ],
)
def test_findings_on_a_job_that_is_elsewhere_are_not(change: dict[str, object]) -> None:
    world = validating_world()
    job = replace(world.job(), **change)  # type: ignore[arg-type]
    world.catalog.apply(JobWrite(1, job.to_wire()), 1, 99)
    assert not accept_findings(world.catalog, FINDINGS)


def test_findings_of_a_cancelled_job_meet_the_next_one_of_that_name() -> None:
    world = validating_world()
    world.control("cancel")
    world.settle()
    with planned_by_an_earlier_release():
        world.ddl(alter("t", add_check("a > 0", "c")))
    world.until(lambda: world.job(2).phase is Phase.VALIDATING)
    assert not accept_findings(world.catalog, FINDINGS)
    job = world.job(2)
    own = FINDINGS._replace(job_id=2, run=job.run, version=job.versions[1])
    assert accept_findings(world.catalog, own)
