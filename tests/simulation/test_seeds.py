"""Runs of the whole system: a fixed list of seeds, and fresh ones each time, which are named.

`make sim SEED=n` replays one run exactly; `python -m tests.simulation --seeds 1000` is a long hunt.
"""

from __future__ import annotations

import os
import random
from typing import Any, Final

import pytest

from leasehold.model.records.requests import Queue
from tests.simulation.harm import Harm
from tests.simulation.plan import Plan
from tests.simulation.simulation import Simulation
from tests.support.run_id import run_id

FOUND: Final = (6, 171, 20101, 20256, 41375, 42236, 42775, 57591, 60245, 60747)
"""6: a deposed master's record was answered after a restart. 171: a late call of an agent left a
lease that nobody gave back. 20101: a node went on behind what had been deleted of the log. 20256: a
master took a failed write of its store for the fault of a schema change. 41375: what a column that
turned back had left in nodes was taken for a difference, by the judge. 42236: a lease that was
asked for amid the faults ended before the next one, and was taken for one lost. 42775: behind idle
hours a master whose clock was set back refused what was fresh, as it must, which the judge did not
expect. 57591: terms that faults ended had a request before them, so it was refused unread, and its
sender, who never asks again, was waited for. 60245: the past was collected while the end was
judged. 60747: a chunk was refused, its job could not be told in that record, and was never told."""
FIXED: Final = (24, 1, 2, 44)
"""The first is in `make test`."""
FRESH: Final = 6
ANOTHER: Final = pytest.mark.long("seeds that have found defects, and one more, are in make test")
NEW: Final = pytest.mark.long("a seed that is new in each run; make test does the same each time")


def seeds() -> list[Any]:
    """Return the one named by LEASEHOLD_SEED, or the fixed ones and, long, some that are new."""
    named = os.environ.get("LEASEHOLD_SEED")
    if named:
        return [int(named)]
    # All workers of one run must collect the same tests.
    fresh = random.Random(run_id())
    drawn = [fresh.randrange(10_000, 10_000_000) for _ in range(FRESH)]
    others = [pytest.param(seed, marks=ANOTHER) for seed in FIXED[1:]]
    return [*FOUND, FIXED[0], *others, *(pytest.param(seed, marks=NEW) for seed in drawn)]


def run(seed: int, plan: Plan | None = None) -> Simulation:
    """Raises Harm with the history and the command that replays it."""
    simulation = Simulation(seed, plan)
    try:
        simulation.run()
    except Exception as error:
        story = "\n".join(simulation.history)
        words = f"{error}\n\nhistory:\n{story}\n\nreplay with: make sim SEED={seed}"
        raise Harm(words) from error
    return simulation


@pytest.mark.parametrize("seed", seeds())
def test_everything_holds(seed: int) -> None:
    simulation = run(seed)
    assert simulation.chaos.count > 0, "a run without faults proves nothing"
    assert simulation.reference.in_order, "nothing was committed"


def test_a_run_does_what_it_is_for() -> None:
    simulation = run(3)
    reference = simulation.reference
    assert simulation.chaos.count > 10
    assert len(reference.commits) > 100
    assert reference.refusals > 20
    assert simulation.reads > 80
    assert simulation.decoded > 100
    assert reference.position.epoch > 1
    assert reference.position.decided_through[Queue.REQUESTS] > 100
    assert any(job.rows_applied for job in reference.catalog.jobs.values()), "no backfill"


def test_the_log_is_told_and_read_in_turns() -> None:
    """Faults of the fast way are among those of the run, and it is taken in between."""
    simulation = run(2)
    for name, node in simulation.cluster.nodes.items():
        assert (node.received_records > 50) == name.startswith("r"), (name, node.received_records)
        assert node.intake_changes > 2 or name.startswith("m"), (name, node.intake_changes)


def test_the_log_is_fetched_by_its_master_and_not_fetched_in_turns() -> None:
    simulation = run(5)
    masters = [node for name, node in simulation.cluster.nodes.items() if name.startswith("m")]
    assert sum(node.driver.landed_records for node in masters) > 50
    assert sum(node.intake_changes for node in masters) > 4


def test_a_seed_replays_exactly() -> None:
    plan = Plan(chaos_ms=1_500)
    first, second = run(77, plan), run(77, plan)
    assert list(first.history) == list(second.history)
    assert first.reference.position == second.reference.position
    assert first.scheduler.now_ns == second.scheduler.now_ns


def test_a_failing_seed_says_how_to_replay_it(monkeypatch: pytest.MonkeyPatch) -> None:
    def fails(_: Simulation) -> None:
        raise Harm("L6: for this test")

    monkeypatch.setattr(Simulation, "demand_end", fails)
    with pytest.raises(Harm, match=r"(?s)^L6: .*history:.*make sim SEED=78$"):
        run(78, Plan(chaos_ms=200))
