"""The model of columns that nodes compute by ranges: clean to exhaustion within its bounds, and
each of its rules broken is found (K1 to K4; `replication/range_merging.py`,
`adapters/sqlite/column_backfill.py`, `rows/computed_missing.py`)."""

from __future__ import annotations

import pytest

from tests.models.explorer import Report, explore
from tests.models.model_column_range import Bounds, Model, World
from tests.models.mutants import column_range as mutants
from tests.models.summary import AddLine, ModelLine

STATES_MAX = 300_000
ALONE = Bounds(writes=2, truncations=1, faults=1, nodes=1)
TWO = Bounds(writes=1, truncations=1, faults=1)


def explored(kind: type[Model], bounds: Bounds) -> Report[World]:
    model = kind(bounds)
    return explore(model.starts(), model.successors, model.invariant, states_max=STATES_MAX)


@pytest.mark.parametrize("bounds", [ALONE, TWO], ids=["one_node", "two_nodes"])
def test_pairs_are_of_rows_and_images_mean_what_rows_have(
    bounds: Bounds, model_line: AddLine
) -> None:
    report = explored(Model, bounds)
    model_line(ModelLine.of("K1 to K4: columns by range", "-", report, bounds.words()))
    assert report.violation is None, report.violation.words()
    assert report.exhausted


@pytest.mark.parametrize(
    ("kind", "harm", "bounds"),
    [
        (mutants.PutsWhatItHasRead, "K1", ALONE),
        (mutants.LeavesWhatHeMakesWrong, "K1", ALONE),
        (mutants.BeginsBeforeTheFence, "K2", ALONE),
        (mutants.LeavesAGap, "K2", ALONE),
        (mutants.BeginsAtTheFirstKeySeen, "K2", ALONE),
        (mutants.LeavesWithWhatWaits, "K2", ALONE),
        (mutants.KeepsItsPlaceBeforeItsPairs, "K2", ALONE),
        (mutants.CopiesNoRanges, "K2", TWO),
        (mutants.TakesNullForLacking, "K4", ALONE),
        (mutants.ReadsImagesAsTheyAre, "K4", ALONE),
        (mutants.CountsFromDeleteOnly, "K4", ALONE),
    ],
)
def test_a_broken_rule_is_found(
    kind: type[Model], harm: str, bounds: Bounds, model_line: AddLine
) -> None:
    report = explored(kind, bounds)
    model_line(ModelLine.of(harm, kind.__name__, report))
    assert report.violation is not None, "the harm of this mutation was not found"
    assert report.violation.harm.startswith(harm), report.violation.words()
