"""What keeps transactions apart, one rule at a time: without it the harm is there to see."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, NamedTuple

import pytest

from tests.isolation.broken_rules import (
    a_row_goes_after_it_was_counted,
    a_row_is_deleted_twice,
    a_visited_row_changes,
    the_last_money_is_spent_twice,
    two_find_a_range_empty_and_each_fills_it,
    two_look_at_both_rows_and_each_writes_one,
)
from tests.isolation.rule_off import harm_shown
from tests.models.mutants.transaction import ReplayRules, VerifyRules, broken
from tests.models.summary import AddLine
from tests.models.switches import switches_off

Story = Callable[[], None]


class Case(NamedTuple):
    invariant: str
    story: Story
    rules: VerifyRules | ReplayRules


OFF: Final = [
    Case("T1", two_look_at_both_rows_and_each_writes_one, VerifyRules(reads_are_validated=False)),
    Case("T1", two_find_a_range_empty_and_each_fills_it, VerifyRules(ranges_are_validated=False)),
    Case("T1", a_row_goes_after_it_was_counted, VerifyRules(what_is_gone_counts=False)),
    Case("T1", a_visited_row_changes, VerifyRules(visited_rows_are_validated=False)),
    Case("T2", a_row_is_deleted_twice, VerifyRules(uncommittable_is_recognised=False)),
    Case("T2", the_last_money_is_spent_twice, ReplayRules(answers_are_compared=False)),
]


def words(case: Case) -> str:
    return switches_off(case.rules)


@pytest.mark.parametrize("case", OFF, ids=words)
def test_harm_with_the_rule_off(case: Case, model_line: AddLine) -> None:
    with broken(case.rules):
        model_line(harm_shown(case.invariant, words(case), case.story, case.story))


@pytest.mark.parametrize("case", OFF, ids=lambda c: c.story.__name__)
def test_no_harm_with_every_rule(case: Case) -> None:
    case.story()
