"""Jobs of every kind that people steer at random, with few faults and with many."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import replace
from typing import Final

import pytest

from leasehold.catalog.job import Job, Status
from leasehold.schema_change.job import control, transitions
from tests.simulation.harm import Harm
from tests.simulation.plan import Plan
from tests.simulation.steering import OK, WRONG, Steering
from tests.simulation.test_seeds import run
from tests.support.every_third import every_third_row

CALM: Final = Plan(chaos_ms=12_000, fault_pause_ms=1_000_000, workloads=((Steering, 30),))
FAULTS: Final = replace(CALM, fault_pause_ms=1_500)
CALMER: Final = pytest.mark.long("the same with faults, which goes through more, is in make test")


def seeds() -> list[int]:
    """LEASEHOLD_SEED replays one, or goes on to others."""
    return [int(os.environ.get("LEASEHOLD_SEED") or 601)]


@pytest.mark.parametrize("seed", seeds())
@pytest.mark.parametrize(
    "plan", [pytest.param(CALM, id="calm", marks=CALMER), pytest.param(FAULTS, id="faults")]
)
def test_jobs_do_as_they_are_told(plan: Plan, seed: int) -> None:
    simulation = run(seed, plan)
    (people,) = simulation.workloads
    assert isinstance(people, Steering)
    answers = {(action, code) for action, _, code in people.commands}
    assert {("pause", OK), ("resume", OK), ("set", OK), ("resume", WRONG)} <= answers
    assert len({phase for action, phase, code in people.commands if code == OK}) > 2
    ends = {job.status for job in simulation.reference.catalog.jobs.values()}
    assert Status.SUCCEEDED in ends


# ------------------------------------------------------------------ what it must find


def never_postponed(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(Job, "postponed", property(lambda _: False))


def settings_are_lost(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(control, "_set", lambda job, settings: replace(job, settings={**settings}))


def resumed_by_any_word(patch: pytest.MonkeyPatch) -> None:
    resumed = lambda job, settings: replace(  # noqa: E731
        job, status=Status.RUNNING, settings={**job.settings, **settings}
    )
    patch.setattr(control, "_set", resumed)


def half_the_way_back(patch: pytest.MonkeyPatch) -> None:
    whole = transitions.turn_back

    def half(job: Job, now_us: int) -> Job:
        turned = whole(job, now_us)
        at_its_last = turned.step + 1 == len(turned.steps)
        ended = turned.status.ended or at_its_last
        return turned if ended else replace(turned, steps=turned.steps[:-1])

    patch.setattr(control, "turn_back", half)


@pytest.mark.parametrize(
    ("broken", "harm"),
    every_third_row(
        [
            (never_postponed, "59: nobody let it go on"),
            (settings_are_lost, "jobs: Command"),
            (resumed_by_any_word, "jobs: "),
            (half_the_way_back, "60: "),
        ]
    ),
)
def test_a_broken_rule_is_found(
    monkeypatch: pytest.MonkeyPatch, broken: Callable[[pytest.MonkeyPatch], None], harm: str
) -> None:
    broken(monkeypatch)
    with pytest.raises(Harm, match=f"^{harm}"):
        _run_several()


def _run_several() -> None:
    for seed in range(601, 606):
        run(seed, CALM)
