"""Symmetry reduction of the log model: a renamed state can do what the state can do, so the reduced
run visits a state for each class of those that are alike, and finds each harm in as many steps."""

from __future__ import annotations

from collections import Counter
from itertools import permutations, product
from typing import Final

import pytest

from tests.models.explorer import Report, explore
from tests.models.log_symmetry import Symmetry, orders
from tests.models.log_world import Bounds, Rules, World
from tests.models.model_log import Model
from tests.models.mutants.replication import CoherencyRules, FastLogRules, broken
from tests.models.summary import AddLine, ModelLine
from tests.models.switches import switches_off
from tests.models.test_model_log import FIRST_MISSED, STOPS, WRONG

STATES_MAX: Final = 3_000_000
SMALL: Final = {
    "one master": Bounds(ticks=1, records=2, acks=1, readers=2),
    "takeover": Bounds(records=2, acks=1, epochs=2, readers=2),
    "three candidates": Bounds(records=2, acks=1, epochs=2, candidates=3),
    "crashes": Bounds(records=2, epochs=2, crashes=1, any_crash=True, candidates=3),
    "told": Bounds(records=1, acks=1, tells=1, telling=1, reboots=1, readers=2),
}


def visit(
    rules: Rules, bounds: Bounds, *, reduced: bool
) -> tuple[Model, Report[World], set[World]]:
    """Return the report, and the states that were visited."""
    model = Model(rules, bounds)
    symmetry = Symmetry(model.records)
    visited: set[World] = set()

    def invariant(world: World) -> str | None:
        visited.add(world)
        return model.invariant(world)

    with broken(rules):
        report = explore(
            model.starts(),
            model.successors,
            invariant,
            states_max=STATES_MAX,
            canonical=symmetry.canonical if reduced else None,
        )
    return model, report, visited


LONGER: Final = pytest.mark.long("thousands of states, each by each name; the others are alike")
CASES: Final = [
    pytest.param(bounds, id=name, marks=LONGER if name in ("takeover", "three candidates") else ())
    for name, bounds in SMALL.items()
]


@pytest.mark.parametrize("bounds", CASES)
def test_what_is_renamed_can_do_the_same(bounds: Bounds) -> None:
    """Of every state, by every renaming."""
    model, report, visited = visit(Rules(), bounds, reduced=False)
    assert report.exhausted
    symmetry = Symmetry(model.records)
    candidates, readers = (
        list(permutations(range(count)))
        for count in (bounds.candidates if bounds.epochs > 1 else 1, bounds.readers)
    )
    classes: dict[World, Counter[World]] = {}
    for world in visited:
        following = Counter(symmetry.canonical(after) for _, after in model.successors(world))
        of_class = symmetry.canonical(world)
        assert classes.setdefault(of_class, following) == following
        for order in product(candidates, readers):
            renamed = symmetry.renamed(world, *order)
            assert symmetry.canonical(renamed) == of_class
            assert (model.invariant(renamed) is None) == (model.invariant(world) is None)
    assert len(classes) < 0.7 * len(visited), "hardly anything is alike"


@pytest.mark.parametrize("bounds", CASES)
def test_the_reduced_run_visits_a_state_of_each_class(bounds: Bounds, model_line: AddLine) -> None:
    model, whole, visited = visit(Rules(), bounds, reduced=False)
    symmetry = Symmetry(model.records)
    classes = {symmetry.canonical(world) for world in visited}
    _, reduced, representatives = visit(Rules(), bounds, reduced=True)
    words = f"{whole.states:,} states without; {bounds.words()}"
    model_line(ModelLine.of("symmetry of the log", "-", reduced, words))
    assert reduced.exhausted
    assert reduced.states == len(classes)
    assert whole.depth == reduced.depth
    assert len(representatives) == len(classes)


BROKEN: Final = [
    (Rules(repeats_wait_too=False), Bounds(ticks=3, records=3, acks=2, readers=2), FIRST_MISSED),
    (
        Rules(coherency=CoherencyRules(grant_names_an_ask=False)),
        Bounds(ticks=3, records=2, acks=1, reboots=1, readers=2),
        FIRST_MISSED,
    ),
    (
        Rules(coherency=CoherencyRules(lost_node_waits=False)),
        Bounds(ticks=2, records=2, acks=2, readers=2),
        FIRST_MISSED,
    ),
    (
        Rules(epoch_given_up_after_error=False),
        Bounds(records=3, commits=2, epochs=2, errors=1, readers=2),
        STOPS,
    ),
    (
        Rules(fast_log=FastLogRules(granted_first=False)),
        Bounds(records=2, commits=1, telling=2, copies=1, readers=2),
        WRONG,
    ),
]


@pytest.mark.parametrize(
    ("rules", "bounds", "harm"),
    [
        pytest.param(
            *row,
            id=switches_off(row[0]),
            marks=pytest.mark.long("tens of thousands of states") if row[1].acks else (),
        )
        for row in BROKEN
    ],
)
def test_a_broken_rule_is_found_in_as_many_steps(rules: Rules, bounds: Bounds, harm: str) -> None:
    _, whole, _ = visit(rules, bounds, reduced=False)
    _, reduced, _ = visit(rules, bounds, reduced=True)
    assert whole.violation is not None
    assert reduced.violation is not None
    for violation in (whole.violation, reduced.violation):
        assert violation.harm.startswith(harm)
    assert len(whole.violation.steps) == len(reduced.violation.steps)
    assert reduced.states <= whole.states


def test_equal_keys_are_tried_in_every_order() -> None:
    assert list(orders([2, 1, 2])) == [(1, 0, 2), (1, 2, 0)]
    assert list(orders([3])) == [(0,)]


MORE: Final = [
    ("two replicants, one master", Bounds(ticks=2, records=2, acks=2, readers=2)),
    ("two replicants, takeover", Bounds(records=3, acks=1, epochs=2, readers=2)),
    ("two replicants, takeover, time", Bounds(ticks=1, records=2, acks=1, epochs=2, readers=2)),
    (
        "three candidates, two takeovers",
        Bounds(records=3, commits=1, epochs=3, errors=1, candidates=3),
    ),
]


@pytest.mark.long("half a minute together: two replicants, three candidates")
@pytest.mark.parametrize(("subject", "bounds"), MORE, ids=[subject for subject, _ in MORE])
def test_the_protocol_does_no_harm(subject: str, bounds: Bounds, model_line: AddLine) -> None:
    model, report, _ = visit(Rules(), bounds, reduced=True)
    model_line(ModelLine.of(f"L C: {subject}", "-", report, bounds.words()))
    assert report.violation is None, report.violation.words(model.show)
    assert report.exhausted
