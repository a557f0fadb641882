"""T2: which answers a replay may change, level by level."""

from __future__ import annotations

import pytest

from leasehold.transaction.isolation import ISOLATION, Level
from leasehold.transaction.replay_comparison import Answer, Told, contradiction

ROWS = [(1, 10), (2, 20)]
OTHER = [(1, 10), (2, 21)]


@pytest.mark.parametrize("level", list(Level))
@pytest.mark.parametrize("told", list(Told))
def test_what_was_told_must_come_out_the_same(level: Level, told: Told) -> None:
    rows = told not in (Told.COUNT, Told.ERROR)
    before, after = (ROWS, OTHER) if rows else (1, 0)
    isolation = ISOLATION[level]
    assert not contradiction(isolation, [Answer(told, before)], [Answer(told, before, behind=1)])
    words = contradiction(isolation, [Answer(told, before)], [Answer(told, after, behind=1)])
    free = told is Told.SELECTED and not isolation.verifies_reads
    assert bool(words) != free
    assert free or "statement 1" in words


@pytest.mark.parametrize("level", list(Level))
def test_what_was_read_behind_locks_that_stand_is_free_where_reads_are_not_verified(
    level: Level,
) -> None:
    isolation = ISOLATION[level]
    before, after = Answer(Told.LOCKED, ROWS, behind=5), Answer(Told.LOCKED, OTHER, behind=5)
    assert bool(contradiction(isolation, [before], [after])) == isolation.verifies_reads
    assert contradiction(isolation, [before], [after._replace(told=Told.VISITED)])


def test_rows_without_an_order_are_compared_as_a_multiset() -> None:
    isolation = ISOLATION[Level.SERIALIZABLE]
    turned = ROWS[::-1]
    for ordered in (False, True):
        before, after = Answer(Told.SELECTED, ROWS, ordered), Answer(Told.SELECTED, turned, ordered)
        assert bool(contradiction(isolation, [before], [after])) == ordered
    twice = Answer(Told.SELECTED, [ROWS[0], ROWS[0]])
    assert contradiction(isolation, [twice], [Answer(Told.SELECTED, [ROWS[0]])])


def test_an_error_after_an_answer_and_an_answer_after_an_error() -> None:
    """A client may have taken another path after an error."""
    isolation = ISOLATION[Level.READ_COMMITTED]
    count, error = Answer(Told.COUNT, 1), Answer(Told.ERROR, "23505")
    assert contradiction(isolation, [count], [error])
    assert contradiction(isolation, [error], [count])
    assert "does not reach" in contradiction(isolation, [count, count], [count])


def test_what_was_not_answered_yet_is_free() -> None:
    isolation = ISOLATION[Level.SERIALIZABLE]
    assert not contradiction(isolation, [], [Answer(Told.COUNT, 1)])
