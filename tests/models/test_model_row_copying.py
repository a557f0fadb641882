"""The model of rows that are copied under another key by ranges: clean to exhaustion within its
bounds, and each of its rules broken is found (R1 to R4; `rows/row_copies.py`,
`replication/master/row_copying.py`, `adapters/sqlite/row_copying.py`)."""

from __future__ import annotations

import pytest

from tests.models.explorer import Report, explore
from tests.models.model_row_copying import Bounds, Model, World
from tests.models.mutants import row_copying as mutants
from tests.models.summary import AddLine, ModelLine

STATES_MAX = 600_000
BOUNDS = Bounds(writes=2, takeovers=1, faults=0)
WRONG = Bounds(writes=1, takeovers=1, faults=1)


def explored(kind: type[Model], bounds: Bounds) -> Report[World]:
    model = kind(bounds)
    return explore(model.starts(), model.successors, model.invariant, states_max=STATES_MAX)


@pytest.mark.parametrize("bounds", [BOUNDS, WRONG], ids=["writes", "wrong_rows"])
def test_the_copy_has_each_row_as_it_is(bounds: Bounds, model_line: AddLine) -> None:
    report = explored(Model, bounds)
    model_line(ModelLine.of("R1 to R4: copied rows", "-", report, bounds.words()))
    assert report.violation is None, report.violation.words()
    assert report.exhausted


@pytest.mark.parametrize(
    ("kind", "harm", "bounds"),
    [
        (mutants.CopiesRowsByTheirKeysOfBefore, "R1", BOUNDS),
        (mutants.OverwritesWhatIsThere, "R1", BOUNDS),
        (mutants.ForgetsARangeAfterATakeover, "R2", BOUNDS),
        (mutants.DigestsOtherRows, "R4", WRONG),
        (mutants.DigestsNoVersions, "R4", WRONG),
        (mutants.SkipsAWriteWhoseRangeIsToCome, "R1", BOUNDS),
        (mutants.WritesOnlyWhereTheOldKeyIsCopied, "R2", BOUNDS),
    ],
)
def test_a_broken_rule_is_found(
    kind: type[Model], harm: str, bounds: Bounds, model_line: AddLine
) -> None:
    report = explored(kind, bounds)
    model_line(ModelLine.of(harm, kind.__name__, report))
    assert report.violation is not None, "the harm of this mutation was not found"
    assert report.violation.harm.startswith(harm), report.violation.words()
