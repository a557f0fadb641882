"""Every schema change of the menu, run to exhaustion against every writer, chunk and cancel.

Bounds: two rows, the values of menu.py. Operations, their delay and their number are unbounded,
and so are repeats of chunks. The tables to begin with are all that writers can have made, rows that
break a constraint to come among them.
"""

from __future__ import annotations

from typing import Final

import pytest

from tests.models.explorer import Report, explore
from tests.models.summary import AddLine, ModelLine
from tests.schema_change.changes import Change, changed
from tests.schema_change.menu import CONSTRAINTS, FOREIGN_KEYS, INDEX, MENU, UNIQUE, retyped
from tests.schema_change.model import Model
from tests.schema_change.rules import EVERY_RULE, Rules
from tests.schema_change.world import Row, World
from tests.support.every_third import every_third

STATES_MAX = 100_000


def explored(model: Model) -> Report[World]:
    return explore(model.starts(), model.successors, model.invariant, states_max=STATES_MAX)


def title(change: Change) -> str:
    return change.name.removeprefix("ALTER TABLE t ")


@pytest.mark.parametrize("change", every_third(MENU, title))
def test_the_plan_keeps_consistency(change: Change, model_line: AddLine) -> None:
    """d ⊨ S under every version in use at every step, and no harm to writers, whenever the job is
    cancelled; it ends where it should."""
    model = Model(change)
    report = explored(model)
    elements = [e.name for e in change.base.elements if e.name not in ("id", "a", "b")]
    words = f"over {', '.join(elements)}; 2 rows" if elements else "2 rows"
    model_line(ModelLine.of(title(change), "-", report, words))
    assert report.violation is None, report.violation.words(model.show)
    assert report.exhausted
    ends = model.reached.keys()
    assert {"succeeded", "cancelled"} <= ends, "the model did not come where the rules matter"
    filled = any(step.backfills for step in change.job.steps)
    assert filled == any("backfilling" in place for place in ends)
    assert not any("validating" in place for place in ends), "the nodes' look is the proof"
    assert change.may_fail == ("failed" in ends)


MORE_KEYS: Final = FOREIGN_KEYS[1:]
ANOTHER_KEY: Final = pytest.mark.long(
    "a foreign key with actions of its own; the plain one is above"
)
LOOKED_THROUGH: Final = [
    pytest.param(change, marks=ANOTHER_KEY if change in MORE_KEYS else (), id=title(change))
    for change in (*CONSTRAINTS, *FOREIGN_KEYS)
    if change.may_fail
]


@pytest.mark.parametrize("change", LOOKED_THROUGH)
def test_so_does_the_plan_of_an_earlier_release(change: Change, model_line: AddLine) -> None:
    """Spark looks through the rows first; what it finds is confirmed."""
    earlier = change.by_an_earlier_release()
    model = Model(earlier)
    report = explored(model)
    model_line(ModelLine.of(title(change), "-", report, "as an earlier release; 2 rows"))
    assert report.violation is None, report.violation.words(model.show)
    assert report.exhausted
    assert any("validating" in place for place in model.reached)
    assert "failed" in model.reached


@pytest.mark.parametrize("change", LOOKED_THROUGH)
def test_slices_prove_what_one_look_proves(change: Change, model_line: AddLine) -> None:
    """Each row is looked at in a slice of its own, between which rows of all places are written,
    also of those that are past: what was right stays so, and the job ends as it would."""
    model = Model(change, sliced=True)
    report = explored(model)
    model_line(ModelLine.of(title(change), "-", report, "in slices of one row; 2 rows"))
    assert report.violation is None, report.violation.words(model.show)
    assert report.exhausted
    looked = [number for number, cell in enumerate(model.cells.all) if cell.looked]
    assert looked, "no slice was past while rows were written"
    whole = Model(change)
    explored(whole)
    assert ends_reached(model) == ends_reached(whole) == {"succeeded", "cancelled", "failed"}


def ends_reached(model: Model) -> set[str]:
    return {place for place in model.reached if place in ENDS}


@pytest.mark.parametrize(
    ("sql", "rows", "values"),
    [(INDEX, 3, (0, 1)), (UNIQUE, 3, (0, 1)), (UNIQUE, 2, (0, 1, 2))],
    ids=["index_three_rows", "unique_three_rows", "unique_three_values"],
)
def test_the_plan_keeps_consistency_with_more_rows_or_values(
    sql: str, rows: int, values: tuple[int, ...], model_line: AddLine
) -> None:
    model = Model(changed(sql, domain={"a": values}), rows=rows)
    report = explored(model)
    words = f"{rows} rows, {len(values)} values and NULL"
    model_line(ModelLine.of(title(model.change), "-", report, words))
    assert report.violation is None, report.violation.words(model.show)
    assert report.exhausted


# ------------------------------------------------------------------ rows that are to blame


def ends_of(model: Model, world: World) -> set[str]:
    """How the job can end from here, with no further write."""
    seen, todo = {world}, [world]
    while todo:
        now = todo.pop()
        for words, after in model.successors(now):
            asked = ("made under", "cancelled", "TRUNCATE")
            silent = not any(each in words for each in asked)
            if silent and after not in seen:
                seen.add(after)
                todo.append(after)
    return {model.position(w).words for w in seen if model.position(w).words in ENDS}


ENDS = {"succeeded", "failed", "cancelled"}


def row(a: int, *entries: int) -> Row:
    return Row(True, ((2, a), (3, 0)), tuple((4, (value,)) for value in entries))


@pytest.mark.parametrize(
    ("first", "healed", "ends"),
    [((0, 0), False, {"failed"}), ((0, 1), False, {"succeeded"}), ((0, 0), True, {"succeeded"})],
    ids=["duplicates", "none", "healed"],
)
def test_duplicates_from_before_fail_the_job_unless_they_are_healed(
    first: tuple[int, int], healed: bool, ends: set[str]
) -> None:
    """The state of the rows when the entries are complete decides, whatever they went through."""
    model = Model(changed(UNIQUE, domain={"a": (0, 1)}), cancel=False)
    world = model.world((row(first[0]), row(first[1])))
    assert ends_of(model, world) == ({"failed"} if first == (0, 0) else {"succeeded"})
    if healed:
        backfilling = next(
            w for w in walk(model, world) if "backfilling" in model.position(w).words
        )
        after = next(w for words, w in model.successors(backfilling) if "UPDATE a = 1" in words)
        assert ends_of(model, after) == ends


def walk(model: Model, world: World) -> list[World]:
    """The worlds of a job that nobody disturbs, one after the other."""
    worlds = [world]
    while model.position(worlds[-1]).words not in ENDS:
        quiet = [w for words, w in model.successors(worlds[-1]) if "made under" not in words]
        worlds.append(quiet[-1])
    return worlds


def test_values_that_pass_by_each_other_do_not_fail_the_job() -> None:
    """0 → 1, 1 → 0 and another 0 → 1 … while the index is filled: rows that never were equal at
    the end are no duplicates, whatever stale images and entries of the past say."""
    model = Model(changed(UNIQUE, domain={"a": (0, 1, 2)}), cancel=False)
    world = model.world((row(0), row(1)))
    backfilling = next(w for w in walk(model, world) if "backfilling" in model.position(w).words)
    for words in ("a = 2", "a = 0", "a = 1"):
        moves = [w for said, w in model.successors(backfilling) if f"UPDATE {words}" in said]
        backfilling = next(w for w in moves if len({r.value(2) for r in model.rows_of(w)}) == 2)
        assert ends_of(model, backfilling) == {"succeeded"}


@pytest.mark.parametrize("definition", ["integer DEFAULT 7", "integer NOT NULL DEFAULT 7"])
def test_a_row_that_takes_the_default_is_converted_while_the_type_changes(definition: str) -> None:
    """INSERT without a column whose type changes: nullable, its default is NULL in the new type."""
    report = explored(Model(retyped("bigint", definition, {"a": (8,)})))
    assert report.violation is None, report.violation.words()


def test_two_runs_of_a_model_are_equal() -> None:
    first, second = Model(CONSTRAINTS[0]), Model(CONSTRAINTS[0])
    assert explored(first) == explored(second)
    assert first.reached == second.reached
    assert Rules() == EVERY_RULE
