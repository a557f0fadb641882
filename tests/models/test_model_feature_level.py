"""The model of upgrades: clean to exhaustion within its bounds, and each of its rules broken is
found (G1, G2; `model/features.py`, `replication/log/foreign.py`, `adapters/sqlite/layout.py`)."""

from __future__ import annotations

import pytest

from tests.models.explorer import Report, explore
from tests.models.model_feature_level import Bounds, Model, World
from tests.models.mutants import feature_level as mutants
from tests.models.summary import AddLine, ModelLine

STATES_MAX = 200_000
BOUNDS = Bounds()


def explored(kind: type[Model]) -> Report[World]:
    model = kind(BOUNDS)
    return explore(model.starts(), model.successors, model.invariant, states_max=STATES_MAX)


def test_nobody_comes_to_what_he_can_not_read_and_no_finalization_stops_one(
    model_line: AddLine,
) -> None:
    report = explored(Model)
    model_line(ModelLine.of("G1, G2: upgrades", "-", report, BOUNDS.words()))
    assert report.violation is None, report.violation.words()
    assert report.exhausted


@pytest.mark.parametrize(
    ("kind", "harm"),
    [
        (mutants.WritesOnceAllRead, "G1"),
        (mutants.ReadsOverTheLevel, "G1"),
        (mutants.OpensAnyStore, "G1"),
        (mutants.WritesWithTheLevel, "G1"),
        (mutants.KeepsTheLevelInMind, "G1"),
        (mutants.FinalizesUnasked, "G2"),
        (mutants.TakesSilenceForConsent, "G2"),
    ],
)
def test_a_broken_rule_is_found(kind: type[Model], harm: str, model_line: AddLine) -> None:
    report = explored(kind)
    model_line(ModelLine.of(harm, kind.__name__, report))
    assert report.violation is not None, "the harm of this mutation was not found"
    assert report.violation.harm.startswith(harm), report.violation.words()
