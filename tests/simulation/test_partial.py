"""Partial replicas in the whole system: what they hold is as fresh as anywhere (C1, C7), and nobody
waits for them for the sake of anything else.

The simulation judges each step of each node: who may answer reads has every record up to an
answered one that is about what it holds; and in the end it has the very rows that the log implies.
"""

from __future__ import annotations

import random
from dataclasses import replace
from typing import Final

import pytest

from leasehold.catalog.part import HeldTable, Part
from tests.simulation.partial import cut_r2_off, partial_stage, write_u
from tests.simulation.plan import plan_of
from tests.simulation.simulation import MS, Simulation

OTHERS: Final = pytest.mark.long("10 s and more each; two shorter runs are in make test")
SEEDS: Final = (600, 603, *(pytest.param(seed, marks=OTHERS) for seed in (601, 602)))
TABLES = range(1, 9)
"""Ids of tables that workloads make, and some that do not exist."""


def test_a_write_to_another_table_does_not_wait_for_a_part_that_is_cut_off() -> None:
    """The same write to t waits until its lease is over."""
    stage = partial_stage()
    cut_r2_off(stage)
    begun_ns = stage.scheduler.now_ns
    stage.settle(write_u(1))
    assert stage.scheduler.now_ns - begun_ns < 30 * MS
    assert "r2" in stage.coherent(), "it may answer reads of t meanwhile"
    stage.settle(stage.update(1, 11))
    assert stage.scheduler.now_ns - begun_ns > 400 * MS


def test_a_schema_change_of_another_table_needs_nothing_of_a_part() -> None:
    """Neither a lease, nor a look through its rows: it ends while r2 is cut off and coherent."""
    stage = partial_stage()
    stage.settle(write_u(1))
    cut_r2_off(stage)
    begun_ns = stage.scheduler.now_ns
    stage.settle({"sql": "alter table u add column b bigint"})
    stage.until(lambda: stage.job(1).status.ended, "the job")
    assert not stage.job(1).error
    assert stage.scheduler.now_ns - begun_ns < 400 * MS


def test_a_part_is_as_fresh_as_all_others_and_stores_nothing_else() -> None:
    stage = partial_stage()
    stage.settle(write_u(1))
    stage.settle(stage.update(2, 22))
    stage.until(lambda: len(stage.coherent()) == 2, "both")
    held = stage.stores.get("r2").contents
    assert {table for table, _ in held.exists} == {1}
    assert held.row(1, (2,)) == stage.stores.get("r1").contents.row(1, (2,))
    assert not held.outcomes


@pytest.mark.parametrize("seed", SEEDS)
def test_chaos_with_a_part(seed: int) -> None:
    """Faults of all kinds, schema changes among them, with one replica of some tables."""
    print(f"seed {seed}")
    plan = plan_of(seed)
    shape = replace(plan.shape, replicants=max(2, plan.shape.replicants))
    held = random.Random(f"{seed}/part").sample(TABLES, 4)
    parts = {"r1": Part.of(HeldTable(n, f"table {n}") for n in held)}
    Simulation(seed, replace(plan, shape=shape, parts=parts)).run()
