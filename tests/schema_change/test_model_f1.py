"""The F1-states model: safe orders run clean to exhaustion, every broken rule is found.

Bounds stand in each line of the summary: rows and values of the indexed column; operations, their
delay and their number are unbounded, and so are repeats of chunks.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from leasehold.schema.descriptor import Column, column_to_wire
from leasehold.schema.states import State
from tests.models.explorer import Report, explore
from tests.models.summary import AddLine, ModelLine
from tests.schema_change.model_f1 import EVERY_RULE, Model, Rules
from tests.schema_change.planned_change import (
    ADD_NULLABLE,
    ADD_REQUIRED,
    CREATE_INDEX,
    DROP_INDEX,
    DROP_NULLABLE,
    DROP_REQUIRED,
    Change,
)
from tests.schema_change.world import Row, World

STATES_MAX = 200_000
ABSENT, DELETE_ONLY, WRITE_ONLY, PUBLIC = State


def explored(model: Model) -> Report[World]:
    return explore(model.starts(), model.successors, model.invariant, states_max=STATES_MAX)


def bounds(model: Model) -> str:
    return f"{model.rows} rows, {len(model.values)} values, any number of operations"


def title(change: Change) -> str:
    return f"{'add' if change.adds else 'drop'} {change.name}"


SAFE = [
    pytest.param(CREATE_INDEX, 2, (0, 1, None), id="create_index"),
    pytest.param(CREATE_INDEX, 3, (0, 1), id="create_index_three_rows"),
    pytest.param(ADD_NULLABLE, 3, (0,), id="add_nullable"),
    pytest.param(ADD_REQUIRED, 3, (0,), id="add_required"),
    pytest.param(DROP_INDEX, 2, (0, 1, None), id="drop_index"),
    pytest.param(DROP_NULLABLE, 3, (0,), id="drop_nullable"),
    pytest.param(DROP_REQUIRED, 3, (0,), id="drop_required"),
]


@pytest.mark.parametrize(("change", "rows", "values"), SAFE)
def test_planned_order_keeps_consistency(
    change: Change, rows: int, values: tuple[Any, ...], model_line: AddLine
) -> None:
    """d ⊨ S under every version in use, at every step, with cancel and resume at any moment."""
    model = Model(change, rows=rows, values=values)
    report = explored(model)
    model_line(ModelLine.of(title(change), "-", report, bounds(model)))
    assert report.violation is None, report.violation.words(model.show)
    assert report.exhausted
    wanted = {"PUBLISHING", "DRAINING", "ENDED", "back ENDED"}
    wanted |= {"back PUBLISHING", "back DRAINING", "back CLEANED"} if change.adds else {"CLEANED"}
    if change.fills(WRITE_ONLY):
        wanted |= {"BACKFILLING", "VERIFYING"}
    assert wanted <= set(model.reached), "the model did not come where the rules matter"


UNSAFE = [
    (CREATE_INDEX, (PUBLIC,), {4}),
    (ADD_NULLABLE, (PUBLIC,), {1}),
    (ADD_REQUIRED, (PUBLIC,), {1, 2}),
    (CREATE_INDEX, (DELETE_ONLY, PUBLIC), {4}),
    (ADD_REQUIRED, (DELETE_ONLY, PUBLIC), {2}),
    (DROP_INDEX, (ABSENT,), {4, 5}),
    (DROP_NULLABLE, (ABSENT,), {1}),
    (DROP_REQUIRED, (ABSENT,), {1, 2}),
    (DROP_INDEX, (DELETE_ONLY, ABSENT), {4}),
    (DROP_REQUIRED, (DELETE_ONLY, ABSENT), {2}),
]


@pytest.mark.parametrize(
    ("change", "steps", "conditions"),
    UNSAFE,
    ids=[
        f"{title(c)}_{'_'.join(s.label for s in steps)}".replace(" ", "_") for c, steps, _ in UNSAFE
    ],
)
def test_unsafe_order_is_found(
    change: Change, steps: tuple[State, ...], conditions: set[int], model_line: AddLine
) -> None:
    """Claim 2, and delete-only → public for what needs a pair in every row. The table is empty at
    first, so that it is the writers who break it and not the rows that were never filled."""
    model = Model(replace(change, steps=steps), rows=1)
    report = explore(model.starts()[:1], model.successors, model.invariant, states_max=STATES_MAX)
    order = " → ".join(state.label for state in (change.begin, *steps))
    model_line(ModelLine.of(title(change), order, report))
    found_harm(model, report, conditions)


def found_harm(model: Model, report: Report[World], conditions: set[int]) -> None:
    """The model found a harm, and it is one of those the mutation stands for."""
    assert report.violation is not None, "the harm of this mutation was not found"
    print(report.violation.words(model.show))
    named = {n for n in range(1, 8) if f"condition {n} " in report.violation.harm}
    assert named, report.violation.harm
    assert named <= conditions, report.violation.harm


WITHOUT_VERIFICATION = replace(EVERY_RULE, verify=False)
BROKEN = [
    ("D2 D4 drain", "three versions at once", CREATE_INDEX, {"drain": False}, {3, 4, 5}),
    ("D2 D4 drain", "three versions at once", ADD_REQUIRED, {"drain": False}, {1, 2}),
    ("D2 D4 drain", "three versions at once", DROP_INDEX, {"drain": False}, {3, 4, 5}),
    ("D2 D4 drain", "three versions at once", DROP_REQUIRED, {"drain": False}, {1, 2}),
    ("D5 fence", "a straggler of v-1 is taken", CREATE_INDEX, {"fence": False}, {3, 4, 5}),
    ("D5 fence", "a straggler of v-1 is taken", ADD_NULLABLE, {"fence": False}, {1}),
    ("D5 fence", "a straggler of v-1 is taken", ADD_REQUIRED, {"fence": False}, {1, 2}),
    ("D5 fence first", "backfill before it", CREATE_INDEX, {"fence_before_backfill": False}, {4}),
    ("D5 fence first", "backfill before it", ADD_REQUIRED, {"fence_before_backfill": False}, {2}),
    ("⚠ chunk's run", "a cancelled job's chunk", CREATE_INDEX, {"chunk_check": False}, {3}),
    ("⚠ chunk's run", "a cancelled job's chunk", ADD_REQUIRED, {"chunk_check": False}, {1}),
    ("V3 own row", "entry of a stale image", CREATE_INDEX, {"own_row": False}, {5}),
    (
        "⚠ write-only update",
        "missing pair not written",
        CREATE_INDEX,
        {"write_missing": False, "fill_newer": False},
        {4},
    ),
    (
        "⚠ write-only update",
        "missing pair not written",
        ADD_REQUIRED,
        {"write_missing": False, "fill_newer": False},
        {2},
    ),
]


@pytest.mark.parametrize(
    ("rule", "words", "change", "off", "conditions"),
    BROKEN,
    ids=[f"{'_'.join(off)}_{title(c).replace(' ', '_')}" for _, _, c, off, _ in BROKEN],
)
def test_broken_rule_is_found(
    rule: str,
    words: str,
    change: Change,
    off: dict[str, bool],
    conditions: set[int],
    model_line: AddLine,
) -> None:
    """Verification is off as well, so that the trace goes on to the harm itself."""
    model = Model(change, rules=replace(WITHOUT_VERIFICATION, **off))
    report = explored(model)
    model_line(ModelLine.of(f"{rule}: {title(change)}", words, report))
    found_harm(model, report, conditions)


@pytest.mark.parametrize("change", [CREATE_INDEX, ADD_REQUIRED], ids=title)
def test_a_straggler_after_the_fence_is_seen_by_queries(
    change: Change, model_line: AddLine
) -> None:
    """D5 with harm that a query sees: the element is public and lacks what the straggler left
    out. Verification does not help: the straggler can come after it."""
    model = Model(change, rules=replace(EVERY_RULE, fence=False), public_only=True, rows=1)
    starts = model.starts()[1:]  # begins with its row there, so only a write can take the pair
    report = explore(starts, model.successors, self_made(model), states_max=STATES_MAX)
    model_line(ModelLine.of(f"D5 fence: {title(change)}", "seen by queries", report))
    found_harm(model, report, {1, 2, 4, 5})
    assert report.violation is not None
    assert any("verification: element and rows agree" in s for s, _ in report.violation.steps)


def self_made(model: Model) -> Any:
    """The model's invariant without its verdict on verification: that job is stopped in time."""

    def invariant(world: World) -> str | None:
        harm = model.invariant(world)
        return None if harm is not None and harm.startswith("verification") else harm

    return invariant


BACKFILLED = [CREATE_INDEX, ADD_REQUIRED]


@pytest.mark.parametrize("change", BACKFILLED, ids=title)
@pytest.mark.parametrize(
    ("off", "stopped"),
    [
        ({"write_missing": False, "fill_newer": False}, True),
        ({"fence_before_backfill": False}, False),
    ],
    ids=["write_missing", "fence_before_backfill"],
)
def test_what_verification_can_and_cannot_stop(
    off: dict[str, bool], stopped: bool, change: Change, model_line: AddLine
) -> None:
    """A pair that a rule forgot is seen before public, the job ends there and no query meets it.
    Where the fence is late, a straggler comes after verification too: it proves nothing then."""
    model = Model(change, rules=replace(EVERY_RULE, **off), public_only=True)
    report = explored(model)
    assert report.violation is not None
    assert "verification before public" in report.violation.harm
    after = explore(model.starts(), model.successors, self_made(model), states_max=STATES_MAX)
    model_line(ModelLine.of(f"verification: {title(change)}", f"{'+'.join(off)} off", after))
    assert after.exhausted == stopped
    assert (after.violation is None) == stopped


@pytest.mark.parametrize("change", BACKFILLED, ids=title)
def test_write_missing_and_fill_newer_back_each_other(change: Change, model_line: AddLine) -> None:
    """Either rule alone keeps consistency: a row written under write-only has its pair already, or
    a chunk gives it all the same. Only without both (above) a row stays without."""
    for off in ({"write_missing": False}, {"fill_newer": False}):
        model = Model(change, rules=replace(EVERY_RULE, **off))
        report = explored(model)
        model_line(
            ModelLine.of(f"redundant alone: {title(change)}", f"{'+'.join(off)} off", report)
        )
        assert report.exhausted
        assert report.violation is None, report.violation.words(model.show)


def test_drop_of_a_required_column_without_default_refuses_inserts() -> None:
    """V5: in write-only a writer can't name the column, and there is no default to write. The pair
    stays required for readers at public, so every INSERT has to be refused (23502) for a column
    that its writer can't see: such a column must lose its NOT NULL first."""
    element = DROP_REQUIRED.element
    assert isinstance(element, Column)
    bare = replace(element, default=None)
    job = replace(DROP_REQUIRED.job, element=column_to_wire(bare))
    model = Model(replace(DROP_REQUIRED, element=bare, job=job), rows=1)
    inserts = {
        state: [w for w, _ in model.effects(Row(), 0, state) if w.startswith("INSERT")]
        for state in State
    }
    assert inserts[WRITE_ONLY] == []
    assert inserts[DELETE_ONLY] != []
    assert inserts[PUBLIC] != []


def test_two_runs_of_a_model_are_equal() -> None:
    first, second = Model(ADD_REQUIRED), Model(ADD_REQUIRED)
    assert explored(first) == explored(second)
    assert first.reached == second.reached
    assert Rules() == EVERY_RULE
