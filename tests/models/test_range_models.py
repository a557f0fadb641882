"""The three models of fills by range with more nodes, reduced by their symmetry, and their
liveness: whatever befalls nodes, every job ends on all of them."""

from __future__ import annotations

from typing import Any, Final

import pytest

from tests.models import model_column_range as columns
from tests.models import model_range_backfill as entries
from tests.models import model_row_copying as copies
from tests.models.explorer import Liveness, Report, explore, find_stuck
from tests.models.mutants import column_range, range_backfill, row_copying
from tests.models.summary import AddLine, ModelLine
from tests.support.every_third import every_third_row

STATES_MAX: Final = 6_000_000
SMALL: Final[list[tuple[Any, Any]]] = [
    (entries.Model, entries.Bounds(writes=0, truncations=0, faults=1, nodes=3)),
    (columns.Model, columns.Bounds(writes=0, truncations=0, faults=1, nodes=3)),
    (copies.Model, copies.Bounds(writes=0, takeovers=1, faults=1, nodes=3)),
]
NAMES: Final[dict[Any, str]] = {
    entries.Model: "entries",
    columns.Model: "columns",
    copies.Model: "copies",
}


def model_name(row: tuple[Any, Any]) -> str:
    return NAMES[row[0]]


def explored(model: Any, *, reduced: bool, states_max: int = STATES_MAX) -> Report[Any]:
    canonical = model.canonical if reduced else None
    return explore(
        model.starts(),
        model.successors,
        model.invariant,
        states_max=states_max,
        canonical=canonical,
    )


@pytest.mark.parametrize(("kind", "bounds"), every_third_row(SMALL, model_name))
def test_the_reduced_run_visits_a_state_of_each_class(
    kind: Any, bounds: Any, model_line: AddLine
) -> None:
    """What a renamed state can do is what the state can do, of every state; so classes are what the
    reduced run visits."""
    model = kind(bounds)
    visited: list[Any] = []
    whole = explore(model.starts(), model.successors, visited.append, states_max=STATES_MAX)
    classes: dict[Any, set[Any]] = {}
    for world in visited:
        following = {model.canonical(after) for _, after in model.successors(world)}
        assert classes.setdefault(model.canonical(world), following) == following
    reduced = explored(model, reduced=True)
    assert whole.exhausted
    assert reduced.exhausted
    assert reduced.violation is None
    assert (reduced.states, reduced.depth) == (len(classes), whole.depth)
    assert reduced.states < 0.7 * whole.states, "hardly anything is alike"
    words = f"{whole.states:,} states without; {bounds.words()}"
    model_line(ModelLine.of("symmetry of ranges", "-", reduced, words))


@pytest.mark.parametrize(
    ("kind", "bounds", "harm"),
    [
        (
            range_backfill.KeepsWhatItHasMerged,
            entries.Bounds(writes=0, truncations=0, faults=0, nodes=3),
            "R3",
        ),
        (
            range_backfill.BeginsAtTheFirstKeySeen,
            entries.Bounds(writes=0, truncations=0, faults=0, nodes=3),
            "R2",
        ),
        (
            column_range.LeavesAGap,
            columns.Bounds(writes=0, truncations=0, faults=0, nodes=3),
            "K2",
        ),
        (
            row_copying.ForgetsARangeAfterATakeover,
            copies.Bounds(writes=0, takeovers=1, faults=0, nodes=3),
            "R2",
        ),
    ],
)
def test_a_broken_rule_is_found_in_as_many_steps(kind: Any, bounds: Any, harm: str) -> None:
    whole = explored(kind(bounds), reduced=False)
    reduced = explored(kind(bounds), reduced=True)
    assert whole.violation is not None
    assert reduced.violation is not None
    assert reduced.violation.harm.startswith(harm), reduced.violation.words()
    assert len(whole.violation.steps) == len(reduced.violation.steps)
    assert reduced.states < whole.states


# ------------------------------------------------------------ liveness


def find_end(model: Any, calm: Any) -> tuple[Report[Any], Liveness[Any]]:
    reached: list[Any] = []
    report = explore(
        model.starts(),
        model.successors,
        reached.append,
        states_max=STATES_MAX,
        canonical=model.canonical,
    )
    found = find_stuck(
        reached, calm.successors, calm.goal, states_max=STATES_MAX, canonical=calm.canonical
    )
    return report, found


LIVE: Final[list[tuple[Any, Any]]] = [
    (entries.Model, entries.Bounds(writes=1, truncations=0, faults=1)),
    (columns.Model, columns.Bounds(writes=1, truncations=0, faults=1)),
    (copies.Model, copies.Bounds(writes=1, takeovers=1, faults=0)),
]


@pytest.mark.parametrize(("kind", "bounds"), every_third_row(LIVE, model_name))
def test_every_job_ends_everywhere(kind: Any, bounds: Any, model_line: AddLine) -> None:
    """From each state that faults lead to, once there are none, whoever takes the next step."""
    calm = kind(bounds._replace(faults=0))
    report, found = find_end(kind(bounds), calm)
    words = f"ended after {found.least} to {found.most} steps; {bounds.words()}"
    model_line(ModelLine.of("liveness: ranges", "-", report, words))
    assert report.exhausted
    assert found.exhausted
    assert found.stuck is None, found.stuck
    assert found.most is not None, "a run goes in circles"


def test_a_range_that_is_never_merged_is_found(model_line: AddLine) -> None:
    """A node that forgets, at a restart, that it has something to merge, is fine; one that makes
    its run again and again is not."""

    class NeverMerges(entries.Model):
        def merge(self, store: entries.Store, run: entries.Run) -> Any:
            yield "makes its run again", self.restarted(store)

        def leave(self, store: entries.Store) -> entries.Store:
            return store

    bounds = entries.Bounds(writes=0, truncations=0, faults=0, nodes=1)
    report, found = find_end(NeverMerges(bounds), NeverMerges(bounds))
    assert found.stuck is not None
    line = ModelLine.of("liveness: ranges", "a run is made again and again", report)
    model_line(line._replace(result="harm found: the job never ends there"))


# ------------------------------------------------------------ larger bounds

MORE: Final[list[tuple[Any, Any]]] = [
    (entries.Model, entries.Bounds(writes=1, truncations=0, faults=0, nodes=3)),
    (columns.Model, columns.Bounds(writes=1, truncations=0, faults=0, nodes=3)),
]


@pytest.mark.long("half a minute together: three nodes and a write")
@pytest.mark.parametrize(
    ("kind", "bounds"), MORE, ids=[f"{k.__module__[19:]} {b.words()}" for k, b in MORE]
)
def test_the_promises_hold_in_larger_bounds(kind: Any, bounds: Any, model_line: AddLine) -> None:
    report = explored(kind(bounds), reduced=True)
    model_line(ModelLine.of("ranges at length", "-", report, bounds.words()))
    assert report.violation is None, report.violation.words()
    assert report.exhausted
