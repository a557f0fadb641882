"""Constraints over rows that are there: the nodes' look is the proof.

A job that an earlier release has planned is looked through by Spark first: clean it goes on to the
nodes, with confirmed findings it goes back.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import msgpack
import pytest

from leasehold.catalog.job import Job, Phase, Status, job_from_wire
from leasehold.model.records.log import FindingsDecided
from leasehold.schema_change.coordinator.verification import judge
from leasehold.sql.syntax.statements import (
    Change,
    SetNotNull,
)
from tests.support.schema_change.job_world import World
from tests.support.schema_change.looked_through import planned_by_an_earlier_release
from tests.support.schema_change.made_job import index_job, report_of
from tests.support.schema_change.made_statements import (
    add_check,
    add_unique,
    alter,
    column,
    create_table,
)


@pytest.fixture
def earlier() -> Iterator[None]:
    with planned_by_an_earlier_release():
        yield


def ready_world(seed: int = 0) -> World:
    world = World(seed)
    world.ddl(create_table("t", column("a")))
    world.until_ready()
    return world


def places(job: Job) -> list[str]:
    return [phase for _, phase, _ in job.marks]


CONSTRAINTS = [alter("t", SetNotNull("a")), alter("t", add_check("a > 0"))]


@pytest.mark.parametrize("change", CONSTRAINTS)
def test_the_nodes_look_is_the_proof(change: Change) -> None:
    """Nobody but them reads the rows: what they find fails the job, with rows and code."""
    for findings, status in (({}, Status.SUCCEEDED), ({"r1": 2}, Status.FAILED)):
        world = ready_world()
        world.findings = findings
        world.spark = False
        job = world.ddl(change)
        assert not any(step.validates for step in job.steps)
        world.settle()
        assert world.job().status is status
        assert places(world.job())[:3] == ["publishing", "draining", "verifying"]


def test_a_row_without_a_value_is_named_as_one_that_breaks_a_constraint() -> None:
    """Of a pair that a fill has left out the words are others: no row is to blame for it."""
    job = index_job(1, 1, step=1)
    found = report_of(job, "m", 5, 2, 1)._replace(findings=((2, 3, (7,), "column 'a' is NULL"),))
    told = [judge(job, 5, {"m": found._replace(code=code)}, ["m"]) for code in ("23502", "22012")]
    assert told[0].words == f"1 row breaks {job.subject}: row (7,): column 'a' is NULL"
    assert "found 1 differences on node m, the first at key (7,)" in told[1].words
    assert [verdict.code for verdict in told] == ["23502", "22012"]


@pytest.mark.usefixtures("earlier")
@pytest.mark.parametrize("change", CONSTRAINTS)
@pytest.mark.parametrize("seed", range(5))
def test_without_findings_the_nodes_have_the_last_word(change: Change, seed: int) -> None:
    world = ready_world(seed)
    world.ddl(change)
    world.settle()
    job = world.job()
    assert (job.status, job.error) == (Status.SUCCEEDED, "")
    assert places(job)[:4] == ["publishing", "draining", "validating", "verifying"]
    assert job.rows_read == 3


@pytest.mark.usefixtures("earlier")
@pytest.mark.parametrize("change", CONSTRAINTS)
@pytest.mark.parametrize("seed", range(5))
def test_confirmed_findings_fail_the_job_before_any_node_looks(change: Change, seed: int) -> None:
    world = ready_world(seed)
    before = world.table()
    world.broken = "1 row breaks it: row (7,): words"
    world.ddl(change)
    world.settle()
    job = world.job()
    assert (job.status, job.error) == (Status.FAILED, world.broken)
    assert [key for _, _, key, _ in job.findings] == [(7,)]
    step = next(step for step, phase, _ in job.marks if phase == "validating")
    assert (step, "verifying") not in [(s, phase) for s, phase, _ in job.marks]
    assert replace(world.table(), version=0, next_element_id=0, modified_us=0) == replace(
        before, version=0, next_element_id=0, modified_us=0
    )


def test_unique_is_proved_by_its_entries_when_they_are_complete() -> None:
    """Once, and by every node: nobody reads the rows for it."""
    world = ready_world()
    job = world.ddl(alter("t", add_unique("a")))
    assert [(bool(s.backfills), bool(s.validates), bool(s.verifies)) for s in job.steps] == [
        (False, False, False),
        (True, False, False),
        (False, False, True),
        (False, False, False),
    ]


@pytest.mark.usefixtures("earlier")
def test_a_job_cancelled_while_findings_are_on_their_way_is_cancelled() -> None:
    world = ready_world()
    world.broken = "words"
    world.ddl(alter("t", add_check("a > 0")))
    world.until(lambda: world.job().phase is Phase.VALIDATING)
    world.control("cancel")
    world.settle()
    assert (world.job().status, world.job().findings) == (Status.CANCELLED, ())


@pytest.mark.usefixtures("earlier")
def test_a_new_master_goes_by_the_decided_findings() -> None:
    world = ready_world()
    world.broken = "words"
    world.ddl(alter("t", add_check("a > 0")))
    world.until(lambda: world.job().phase is Phase.VALIDATING)
    assert world.perform_findings()
    assert (world.job().chunks_ended, world.job().verdict) == (True, "words")
    world.takeover()
    world.settle()
    assert (world.job().status, world.job().error) == (Status.FAILED, "words")


@pytest.mark.usefixtures("earlier")
def test_findings_of_another_run_change_nothing() -> None:
    world = ready_world()
    world.ddl(alter("t", add_check("a > 0")))
    world.until(lambda: world.job().phase is Phase.VALIDATING)
    job = world.job()
    world.catalog.apply(FindingsDecided(1, job.run + 1, 9, 9, "words", ()), 1, 99)
    assert world.job() == job


def test_a_job_of_an_older_writer_has_nothing_to_validate() -> None:
    """Goal: logs and stores from before validation: three parts per step, no verdict."""
    body = index_job(1, 1).to_wire()
    old = {**body, "steps": [step[:3] for step in body["steps"]]}
    del old["verdict"], old["dropped"]
    travelled = msgpack.unpackb(msgpack.packb(old), use_list=False, strict_map_key=False)
    assert job_from_wire(travelled) == job_from_wire(
        msgpack.unpackb(msgpack.packb(body), use_list=False, strict_map_key=False)
    )
