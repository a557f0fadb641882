"""Scenarios 76 and 78: schema changes in a loop under inserts, under inserts and deletes, under
updates of the same rows, beside TRUNCATE, and of a table that is dropped while it is written to;
in calm and with faults. All ends as every run of the simulation does: nodes equal, d ⊨ S."""

from __future__ import annotations

from dataclasses import replace

import pytest

from leasehold.schema_change.coordinator.sliced_verification import WalkSettings
from tests.models.summary import Tell
from tests.simulation.change_loop import (
    ChangeLoop,
    Drops,
    Inserts,
    InsertsDeletes,
    Load,
    RepeatedUpdates,
    Truncates,
)
from tests.simulation.plan import SHAPE, Plan
from tests.simulation.simulation import Simulation
from tests.simulation.test_seeds import run

SEED = 76
COORDINATOR = replace(SHAPE.schema.coordinator, walk=WalkSettings())
QUICK = replace(SHAPE, subscribers=0, schema=replace(SHAPE.schema, coordinator=COORDINATOR))
"""Nobody holds a version for long, and small tables are compared in one slice."""
CALM = pytest.mark.long("the same with faults, which goes through more, is in make test")
FEWER = pytest.mark.long("ten seconds; the next one, in make test, inserts as well")
weather = pytest.mark.parametrize(
    "pause_ms", [pytest.param(1_000_000, id="calm", marks=CALM), pytest.param(1_500, id="faults")]
)


def looped(load: type[Load] | None, loop: type[ChangeLoop], pause_ms: int) -> Simulation:
    loads = ((load, 15),) if load is not None else ()
    workloads = (*loads, (loop, 40))
    plan = Plan(chaos_ms=5_000, fault_pause_ms=pause_ms, shape=QUICK, workloads=workloads)
    return run(SEED, plan)


@weather
@pytest.mark.parametrize(
    "load",
    [pytest.param(Inserts, marks=FEWER), InsertsDeletes, RepeatedUpdates],
    ids=lambda load: load.__doc__.split("`")[1],
)
def test_76(load: type[Load], pause_ms: int, tell: Tell) -> None:
    simulation = looped(load, ChangeLoop, pause_ms)
    writer, loop = simulation.workloads
    assert isinstance(loop, ChangeLoop)
    asked = writer.client.asked.values()
    committed = sum(1 for each in asked if each.final is not None and each.final.lsn)
    tell(f"{load.__name__}: {committed} writes committed beside {len(loop.jobs)} changes")
    assert len(loop.jobs) >= 3
    assert committed > 60


@weather
def test_76_sc_drop(pause_ms: int, tell: Tell) -> None:
    simulation = looped(None, Drops, pause_ms)
    (loop,) = simulation.workloads
    assert isinstance(loop, Drops)
    done = [each for each in loop.written if each.final is not None and each.final.lsn]
    tell(f"sc_drop: {len(done)} of {len(loop.written)} writes in {loop.rounds} tables")
    assert loop.rounds > 2
    assert 0 < len(done) < len(loop.written)


@weather
def test_78_sc_truncate_and_truncatesc(pause_ms: int, tell: Tell) -> None:
    simulation = looped(Truncates, ChangeLoop, pause_ms)
    writer, loop = simulation.workloads
    assert isinstance(writer, Truncates)
    assert isinstance(loop, ChangeLoop)
    done, refused = writer.ended()
    tell(f"sc_truncate: {done} TRUNCATE done, {refused} refused, beside {len(loop.jobs)} changes")
    assert len(loop.jobs) >= 3
    assert done
    assert refused
