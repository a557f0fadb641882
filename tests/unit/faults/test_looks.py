"""Goal: a read that lacks an acknowledged addition is seen, and one that shows too many.

Method: histories by hand; additions last from their number of tens on for five.
"""

from __future__ import annotations

import pytest

from tests.faults.checkers.looks import judge_looks
from tests.faults.workload.history import Op, Told


def count(begun: int, told: Told = Told.YES) -> Op:
    ended = 0 if told is Told.UNKNOWN else begun + 5
    return Op("count", begun, "count", begun, ended, told, "", {})


def look(begun: int, n: int | None) -> Op:
    return Op("look-0", begun, "look", begun, begun + 1, Told.YES, "", {"node": "r1", "n": n})


COUNTS = [count(10), count(20), count(30)]


@pytest.mark.parametrize(
    ("begun", "n", "words"),
    [
        (5, 0, ""),
        (12, 0, ""),
        (12, 1, ""),
        (15, 0, ""),
        (16, 0, "showed 0 of 1"),
        (16, 1, ""),
        (27, 1, "showed 1 of 2"),
        (40, 3, ""),
        (40, 4, "showed 4 additions, 3 had been asked for"),
        (8, 1, "showed 1 additions, 0"),
        (8, None, "showed -1 of 0"),
    ],
)
def test_a_read_shows_what_was_acknowledged_and_no_more_than_was_asked_for(
    begun: int, n: int | None, words: str
) -> None:
    found = judge_looks([*COUNTS, look(begun, n)])
    assert found == [] if not words else words in found[0]


def test_what_nobody_was_told_may_be_shown_or_not_and_what_was_refused_may_not() -> None:
    for n in (0, 1):
        assert judge_looks([count(10, Told.UNKNOWN), look(40, n)]) == []
    assert judge_looks([count(10, Told.NO), look(40, 1)]) != []


def test_a_read_that_was_not_answered_says_nothing() -> None:
    assert judge_looks([*COUNTS, look(40, 0)._replace(told=Told.NO)]) == []
