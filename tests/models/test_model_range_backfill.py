"""The model of backfills by range: clean to exhaustion within its bounds, and each of its rules
broken is found (R1 to R3; `replication/range_merging.py`, `adapters/sqlite/range_backfills.py`)."""

from __future__ import annotations

import pytest

from tests.models.explorer import Report, explore
from tests.models.model_range_backfill import Bounds, Model, World
from tests.models.mutants import range_backfill as mutants
from tests.models.summary import AddLine, ModelLine

STATES_MAX = 300_000
ALONE = Bounds(writes=2, truncations=1, faults=1, nodes=1)
TWO = Bounds(writes=1, truncations=0, faults=1)


def explored(kind: type[Model], bounds: Bounds) -> Report[World]:
    model = kind(bounds)
    return explore(model.starts(), model.successors, model.invariant, states_max=STATES_MAX)


@pytest.mark.parametrize("bounds", [ALONE, TWO], ids=["one_node", "two_nodes"])
def test_entries_are_of_rows_and_rows_have_entries(bounds: Bounds, model_line: AddLine) -> None:
    report = explored(Model, bounds)
    model_line(ModelLine.of("R1 R2 R3: backfills by range", "-", report, bounds.words()))
    assert report.violation is None, report.violation.words()
    assert report.exhausted


@pytest.mark.parametrize(
    ("kind", "harm"),
    [
        (mutants.MergesWhateverIsThere, "R1"),
        (mutants.LooksForTheRowAlone, "R1"),
        (mutants.ForgetsWhoWrote, "R1"),
        (mutants.RemembersNoTruncation, "R1"),
        (mutants.ReadsBeforeTheFence, "R1"),
        (mutants.BeginsBeforeTheFence, "R2"),
        (mutants.EndsAtTheLastKey, "R2"),
        (mutants.LeavesAGap, "R2"),
        (mutants.BeginsAtTheFirstKeySeen, "R2"),
        (mutants.LeavesWithWhatWaits, "R2"),
        (mutants.DropsWhatWaits, "R2"),
        (mutants.ForgetsTheRangeFirst, "R2"),
        (mutants.CopiesProgressWithoutItsRun, "R2"),
    ],
)
def test_a_broken_rule_is_found(kind: type[Model], harm: str, model_line: AddLine) -> None:
    report = explored(kind, ALONE)
    model_line(ModelLine.of(harm, kind.__name__, report))
    assert report.violation is not None, "the harm of this mutation was not found"
    assert report.violation.harm.startswith(harm), report.violation.words()


def test_what_a_node_has_merged_of_a_job_that_turns_back_differs(model_line: AddLine) -> None:
    report = explored(mutants.KeepsWhatItHasMerged, TWO)
    model_line(ModelLine.of("R3", "KeepsWhatItHasMerged", report))
    assert report.violation is not None, "the harm of this mutation was not found"
    assert report.violation.harm.startswith("R3"), report.violation.words()
