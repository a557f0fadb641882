"""The model of one fast path: clean to exhaustion within its bounds, and each of its promises
broken is found (P1 to P4; `replication/fast_path/state_machine.py`)."""

from __future__ import annotations

import pytest

from leasehold.replication.fast_path.state_machine import FastPath
from tests.models.explorer import Report, explore
from tests.models.model_fast_path import Bounds, Model, World
from tests.models.mutants import fast_path as mutants
from tests.models.summary import AddLine, ModelLine

STATES_MAX = 600_000
FAULTS = Bounds(ticks=4, runs=1, numbers=2, restarts=0)
LATE_WORDS = Bounds(ticks=2, runs=2, numbers=2, restarts=1)


def explored(kind: type[FastPath], bounds: Bounds) -> Report[World]:
    model = Model(kind, bounds)
    return explore(model.starts(), model.successors, model.invariant, states_max=STATES_MAX)


@pytest.mark.parametrize("bounds", [FAULTS, LATE_WORDS], ids=["faults", "late_words"])
def test_a_fast_path_keeps_its_promises(bounds: Bounds, model_line: AddLine) -> None:
    report = explored(FastPath, bounds)
    model_line(ModelLine.of("P1 P2 P3 P4: a fast path", "-", report, bounds.words()))
    assert report.violation is None, report.violation.words()
    assert report.exhausted


@pytest.mark.parametrize(
    ("kind", "harm"),
    [
        (mutants.TriedInItsBackOff, "P1"),
        (mutants.RemembersWhatItGaveUp, "P2"),
        (mutants.BelievesALateWord, "P2"),
        (mutants.BacksOffAlike, "P1"),
        (mutants.BacksOffForGood, "P3"),
        (mutants.SkipsANumber, "P4"),
        (mutants.ProbesOn, "P1"),
    ],
)
def test_a_broken_promise_is_found(kind: type[FastPath], harm: str, model_line: AddLine) -> None:
    report = explored(kind, FAULTS)
    model_line(ModelLine.of(harm, kind.__name__, report))
    assert report.violation is not None, "the harm of this mutation was not found"
    assert report.violation.harm.startswith(harm), report.violation.words()
