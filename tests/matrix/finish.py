"""The end of every case: the job ended as foreseen, nodes equal and consistent, nothing is lost."""

from __future__ import annotations

from typing import Final

from leasehold.catalog.job import Status
from tests.matrix.rows import demand_rows
from tests.matrix.shape import shape_of
from tests.matrix.world import OK, World
from tests.simulation.ending import _demand_equal, _demand_feed
from tests.simulation.harm import demand
from tests.support.memory_store.check import check_contents

WAIT_MS: Final = 60_000


def finish(world: World) -> None:
    """Heals what is broken, lets the job end, and demands everything."""
    world.heal()
    world.until(
        lambda: world.the_job.status.ended, "the job's end: " + world._job_words(), "jobs", WAIT_MS
    )
    world.until(lambda: _settled(world), "answers", "L7", WAIT_MS)
    world._goal = world.reference.position.offset
    world.until(world._caught_up, "everybody to catch up", "L6", WAIT_MS)
    _demand_job(world)
    _demand_answers(world)
    _demand_nodes(world)
    demand_rows(world)


def _settled(world: World) -> bool:
    """Every request has its final answer."""
    told = (world.results.get(request_id, ()) for request_id in world.asked)
    return all(any(o.lsn or o.final for o in outcomes) for outcomes in told)


def _demand_job(world: World) -> None:
    job, definition = world.the_job, world.definition
    demand(
        job.status.value == world.foreseen,
        "jobs",
        f"{job.sql} {job.status.value}, not {world.foreseen}: {job.error} {job.findings[:3]}",
    )
    for table in world.reference.catalog.tables():
        lowest = world.reference.catalog.min_version(table.table_id)
        words = f"the job has ended, and version {lowest} of {table.name} may be in use"
        demand(lowest == table.version, "72", f"{words}, {table.version} is the newest")
    if job.status is Status.SUCCEEDED:
        shape = shape_of(world.newest)
        demand(shape == definition.after, "after", f"the table is {shape}")
        return
    demand(world.as_before, "60", f"rolled back, it is {world.newest}, was {world.before}")
    if job.status is Status.FAILED:
        demand(bool(job.error and job.findings), "60", f"it does not say what is to blame: {job}")


def _demand_answers(world: World) -> None:
    for request_id, asked in world.asked.items():
        outcome = world.reference.outcome(request_id)
        assert outcome is not None, "settled"
        met = OK if outcome.lsn else outcome.code
        words = f"{asked.words}: {met}, not {sorted(asked.foreseen)}: {outcome.message}"
        demand(met in asked.foreseen, "outcome", words)
        told = world.results.get(request_id, [])
        demand(outcome in told, "L7", f"{asked.words}: {outcome} was never told, but {told}")
        stood = world.stood_at(request_id)
        words = f"{asked.words} was decided at {stood}: {outcome}"
        demand(asked.place in (None, stood), "place", words)


def _demand_nodes(world: World) -> None:
    """d ⊨ S, hence on every node, since stores are equal; versions dense."""
    true = world.reference.store
    for name in world.cluster.nodes:
        _demand_equal(world, name, world.stores.get(name), true)
    for table in world.reference.catalog.tables():
        report = check_contents(true.contents, b"", table.table_id, ())
        demand(not report.findings, "d ⊨ S", f"{table.name}: {report.findings[:3]}")
    _demand_feed(world, true)
    versions = [d.version for d in world.reference.catalog.versions(world.table_id)]
    demand(versions == list(range(1, len(versions) + 1)), "D2", f"versions {versions}")
