"""How the ways of several elements share the steps of one job, and what waits for what."""

from __future__ import annotations

from leasehold.catalog.edits import FENCE_BEFORE
from leasehold.catalog.elements import Check, Index
from leasehold.catalog.job import Step
from leasehold.schema_change.steps import element_paths, table_paths
from leasehold.schema_change.steps.steps import steps_of
from tests.unit.schema_change.test_element_paths import (
    CHECK,
    INDEX,
    LOCK,
    NOT_VALID,
    NULLABLE,
    OPTIONAL,
    REQUIRED,
    TABLE,
)

OTHER = Check(8, "o", "id > 0", (1,))


def labels(steps: tuple[Step, ...]) -> list[list[str]]:
    return [[f"{edit.name} {edit.state}" for edit in step.edits] for step in steps]


def test_elements_of_one_statement_share_steps_and_commit_together() -> None:
    """A column, a unique index over it and a dropped index: three steps of the longest rise, and
    the fall behind them; what needs fewer steps waits for the commit. But the column is public when
    the index over it is enforced: nobody is refused for a value that he can't give."""
    old = Index(3, "old", (1,))
    made = steps_of(
        [
            element_paths.add_column(REQUIRED, at_once=False),
            element_paths.add_index(INDEX, unique=True),
            element_paths.drop_index(old),
        ]
    )
    assert labels(made.steps) == [
        ["c delete-only", "i delete-only"],
        ["c write-only", "i write-only"],
        ["c public", "i write-only"],
        ["old write-only", "i public"],
        ["old delete-only"],
        ["old absent"],
    ]
    assert [step.backfills for step in made.steps] == [(), (5, 6), (), (), (), ()]
    assert [step.verifies for step in made.steps] == [(), (5,), (6,), (), (), ()]
    assert made.point == 3, "what was made is public: the whole can't be undone any more"


def test_columns_are_filled_before_the_indexes_over_them_whatever_their_ids() -> None:
    early = Index(2, "early", (5,))
    made = steps_of(
        [
            element_paths.add_index(early, unique=False),
            element_paths.add_column(REQUIRED, at_once=False),
        ]
    )
    assert made.steps[1].backfills == (5, 2)


def test_point_is_the_first_stage_that_can_not_be_undone() -> None:
    drops = [element_paths.drop_index(INDEX), element_paths.drop_check(CHECK)]
    assert steps_of(drops).point == 1
    assert steps_of([*drops, element_paths.set_default(OPTIONAL, 1)]).point == 0
    assert (
        steps_of(
            [element_paths.reword_check(CHECK, "d > 0"), element_paths.drop_index(INDEX)]
        ).point
        == 1
    )


def test_two_tracks_of_one_element_are_one_edit() -> None:
    made = steps_of([element_paths.set_default(OPTIONAL, 3), element_paths.set_not_null(OPTIONAL)])
    assert len(made.steps) == 2
    (enforced,), (commit,) = (step.edits for step in made.steps)
    assert enforced.before is not None
    assert enforced.after == {**enforced.before, "not_null_enforced": True}
    assert commit.after == {
        **enforced.before,
        "default": 3,
        "nullable": False,
        "not_null_enforced": False,
    }
    assert made.point == 1


def test_two_tracks_of_one_element_that_change_the_same_step_merge_its_work() -> None:
    made = steps_of(
        [element_paths.add_column(NULLABLE, at_once=False), element_paths.rename(NULLABLE, "d")]
    )
    assert [step.backfills for step in made.steps] == [(), (5,), (), (), ()]
    assert [e.name for step in made.steps for e in step.edits] == ["c", "c", "c", "d", "d"]


def test_a_column_moves_between_locks_through_a_step_with_both() -> None:
    """Claim 8; what the old lock knows up to the fence of that step is taken over with the next."""
    moves = table_paths.record_moves(TABLE, [(8, 0)])
    made = steps_of([element_paths.add_lock(LOCK), element_paths.move_column(OPTIONAL, 8), moves])
    assert labels(made.steps) == [["c public", "l public"], ["t public", "c public"]]
    assert [edit.after["locks"] for edit in made.steps[0].edits[:1] if edit.after] == [[0, 8]]
    table, column = (edit.after for edit in made.steps[1].edits)
    assert table is not None
    assert column is not None
    assert (table["lock_moves"], column["locks"]) == ([[8, 0, FENCE_BEFORE]], [8])
    assert made.point == 1


def test_a_step_in_which_nothing_changes_has_no_edit() -> None:
    (first, _) = steps_of([element_paths.validate_check(NOT_VALID)]).steps
    assert (first.edits, first.verifies, first.label) == ((), (7,), "unchanged")


# ------------------------------------------------------------------ constraints over new columns


def test_a_check_is_looked_at_when_the_column_that_comes_with_it_is_filled_and_shown() -> None:
    """Before, every row would satisfy it for want of a value."""
    for column in (REQUIRED, NULLABLE):
        steps, point = steps_of(
            [
                element_paths.add_column(column, at_once=False),
                element_paths.add_check(CHECK, not_valid=False),
            ]
        )
        filled = next(n for n, step in enumerate(steps) if step.backfills)
        (verified,) = [n for n, step in enumerate(steps) if 7 in step.verifies]
        assert filled < verified < point
        assert "c public" in labels(steps)[verified]
        assert "k write-only" in labels(steps)[verified]
        assert labels(steps)[point] == ["k public"]


def test_an_optional_column_is_shown_with_the_step_that_enforces_a_constraint_over_it() -> None:
    unique = steps_of(
        [element_paths.add_column(OPTIONAL), element_paths.add_index(INDEX, unique=True)]
    )
    assert labels(unique.steps) == [
        ["c delete-only", "i delete-only"],
        ["i write-only"],
        ["c public", "i write-only"],
        ["i public"],
    ]
    not_null = steps_of([element_paths.add_column(OPTIONAL), element_paths.set_not_null(OPTIONAL)])
    assert labels(not_null.steps) == [["c delete-only"], ["c public"], ["c public"]]
    assert [step.verifies for step in not_null.steps] == [(), (5,), ()]


def test_constraints_over_columns_that_are_there_wait_for_nobody() -> None:
    steps, _ = steps_of(
        [
            element_paths.add_column(REQUIRED, at_once=False),
            element_paths.add_check(OTHER, not_valid=False),
        ]
    )
    assert labels(steps)[0] == ["c delete-only", "o write-only"]
    assert [step.verifies for step in steps] == [(8,), (5,), ()]


def test_a_plain_index_over_a_new_column_waits_for_nobody() -> None:
    steps, _ = steps_of(
        [element_paths.add_column(OPTIONAL), element_paths.add_index(INDEX, unique=False)]
    )
    assert labels(steps) == [
        ["c delete-only", "i delete-only"],
        ["i write-only"],
        ["c public", "i public"],
    ]
