"""The rules of what is computed at commit, one at a time: without it the harm is there to see."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any, Final, NamedTuple

import pytest

from leasehold.transaction.isolation import Level
from tests.isolation.at_commit_stories import (
    a_row_is_gone_that_was_told_to_be_updated,
    a_sum_was_told_that_overflows_by_now,
    a_value_is_computed_of_what_was_made_of_a_row,
    an_error_is_told_of_a_row_that_changes,
    two_are_told_what_a_counter_stands_at,
    two_updates_that_do_not_see_each_other,
    what_was_made_of_a_row_is_written_down,
)
from tests.isolation.rule_off import harm_shown
from tests.isolation.sql_stage import SqlScene
from tests.models.mutants.transaction import AtCommitRules, VerifyRules, broken
from tests.models.summary import AddLine
from tests.models.switches import switches_off

Story = Callable[[SqlScene], None]
EVERY: Final = AtCommitRules()


class Case(NamedTuple):
    invariant: str
    story: Story
    rules: AtCommitRules | VerifyRules
    level: Level = Level.READ_COMMITTED


def off(invariant: str, story: Story, **rules: Any) -> Case:
    return Case(invariant, story, AtCommitRules(**rules))


OFF: Final = [
    off("T2", a_value_is_computed_of_what_was_made_of_a_row, read_rows_stay=False),
    off("T2", what_was_made_of_a_row_is_written_down, read_rows_stay=False, shown_rows_stay=False),
    off("T2", two_are_told_what_a_counter_stands_at, shown_rows_stay=False),
    off("T2", two_updates_that_do_not_see_each_other, unseen_updates_stay=False)._replace(
        level=Level.DEFAULT
    ),
    off("T2", a_row_is_gone_that_was_told_to_be_updated, row_has_to_be_there=False),
    off("T2", an_error_is_told_of_a_row_that_changes, nothing_after_an_error=False),
    Case(
        "T4",
        a_sum_was_told_that_overflows_by_now,
        VerifyRules(uncomputable_runs_again=False),
    ),
]


def words(case: Case) -> str:
    return switches_off(case.rules)


def run(case: Case, folder: Path, rules: AtCommitRules | VerifyRules) -> None:
    with broken(rules):
        scene = SqlScene(folder, case.level)
        try:
            case.story(scene)
        finally:
            scene.close()


@pytest.mark.parametrize("case", OFF, ids=words)
def test_harm_with_the_rule_off(case: Case, tmp_path: Path, model_line: AddLine) -> None:
    told = partial(run, case, tmp_path, case.rules)
    model_line(harm_shown(case.invariant, words(case), case.story, told))


@pytest.mark.parametrize("case", OFF, ids=lambda c: c.story.__name__)
def test_no_harm_with_every_rule(case: Case, tmp_path: Path) -> None:
    run(case, tmp_path, EVERY)
