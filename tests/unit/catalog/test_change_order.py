"""Who follows a ChangeOrder hears of each change once, the last first, and of what has gone."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from leasehold.catalog.change_order import GONE_TOLD_MAX, ChangeOrder

IDS = st.integers(1, 6)


@given(st.lists(IDS), st.lists(IDS))
def test_what_has_changed_since_is_told_once_the_last_first(
    before: list[int], since: list[int]
) -> None:
    order = ChangeOrder()
    for number in before:
        order.note(number)
    seen, kept = order.count, order.copy()
    for number in since:
        order.note(number)
    assert order.since(seen) == list(dict.fromkeys(reversed(since)))
    assert set(order.since(0)) == {*before, *since}
    assert kept.since(seen) == [], "a copy changes by itself"


def test_of_what_has_gone_the_newest_are_told() -> None:
    order = ChangeOrder()
    order.note(-2)
    for number in range(-1, GONE_TOLD_MAX - 1):
        order.note_gone(number)
    assert order.since(0)[-2:] == [-1, -2]
    order.note_gone(GONE_TOLD_MAX)
    assert order.since(0)[-2:] == [0, -2], "what is there still is told of for ever"
