"""Plans are kept up to a number of characters of their texts."""

from __future__ import annotations

import pytest

from leasehold.catalog.descriptor import Descriptor
from leasehold.model.errors import UnknownTable
from leasehold.sql.planning import plan
from leasehold.sql.planning.plan import Plans


def no_table(name: str) -> Descriptor:
    raise UnknownTable(name)


def test_a_long_text_is_planned_each_time() -> None:
    """Goal: nobody's literals and lists stay when he has gone."""
    plans = Plans()
    for text, kept in (("select 1", True), (f"select '{'x' * plan.PLAN_CHARACTERS_MAX}'", False)):
        first = plans.get(text, no_table)
        assert (plans.get(text, no_table) is first) is kept


def test_the_longest_unused_go_when_all_texts_are_too_long(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(plan, "PLANS_CHARACTERS_MAX", 30)
    plans = Plans()
    texts = [f"select {number:3}" for number in range(4)]  # of 10 characters each
    made = [plans.get(text, no_table) for text in texts]
    again = [plans.get(text, no_table) for text in texts[1:]]
    assert all(one is other for one, other in zip(again, made[1:], strict=True))
    assert plans.get(texts[0], no_table) is not made[0]
