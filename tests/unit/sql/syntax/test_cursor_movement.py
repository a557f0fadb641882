"""FETCH and MOVE: which rows, and where the cursor stands then. That it is as in PostgreSQL is
compared by `tests/integration/postgres_compat/test_cursors_postgres.py`; here are the cases that
one reads."""

from __future__ import annotations

import pytest

from leasehold.model.errors import DivisionByZero
from leasehold.sql.syntax.cursor_movement import (
    ALL,
    CursorSensitivity,
    CursorWalk,
    Direction,
    Movement,
)

FORWARD, BACKWARD = Direction.FORWARD, Direction.BACKWARD
ABSOLUTE, RELATIVE = Direction.ABSOLUTE, Direction.RELATIVE


class Five:
    """Five rows. `fails`: in the place of the sixth comes an error."""

    def __init__(self, *, fails: bool = False) -> None:
        self.fails = fails
        self.reached = 0

    def reach(self, number: int | None) -> int:
        if self.fails and (number is None or number > 5):
            raise DivisionByZero("division by zero")
        self.reached = max(self.reached, 5 if number is None else min(number, 5))
        return 5


def fetched(walk: CursorWalk, *steps: tuple[Direction, int | None]) -> list[list[int]]:
    return [list(walk.fetch(Movement(*step), Five())) for step in steps]


def test_forward_and_back_over_both_ends() -> None:
    walk = CursorWalk(scrolls=True)
    assert fetched(walk, (FORWARD, 2), (FORWARD, 1), (FORWARD, 9), (FORWARD, 1)) == [
        [1, 2],
        [3],
        [4, 5],
        [],
    ]
    assert fetched(walk, (BACKWARD, 2), (BACKWARD, ALL), (BACKWARD, 1), (FORWARD, 1)) == [
        [5, 4],
        [3, 2, 1],
        [],
        [1],
    ]


def test_exactly_as_many_as_there_are_is_not_behind_the_last() -> None:
    walk = CursorWalk(scrolls=True)
    assert fetched(walk, (FORWARD, 5), (RELATIVE, 0), (BACKWARD, 1)) == [[1, 2, 3, 4, 5], [5], [4]]
    walk = CursorWalk(scrolls=True)
    assert fetched(walk, (FORWARD, 6), (RELATIVE, 0), (BACKWARD, 1)) == [[1, 2, 3, 4, 5], [], [5]]


def test_places_count_from_either_end() -> None:
    walk = CursorWalk(scrolls=True)
    assert fetched(walk, (ABSOLUTE, 4), (ABSOLUTE, 1), (ABSOLUTE, -1), (ABSOLUTE, -5)) == [
        *([4], [1], [5], [1]),
    ]
    assert fetched(walk, (ABSOLUTE, -6), (FORWARD, 1), (ABSOLUTE, 6), (BACKWARD, 1)) == [
        *([], [1], [], [5]),
    ]
    assert fetched(walk, (ABSOLUTE, 0), (RELATIVE, 3), (RELATIVE, -2), (FORWARD, -1)) == [
        *([], [3], [1], []),
    ]


def test_move_counts_what_it_passes() -> None:
    walk, rows = CursorWalk(scrolls=True), Five()

    def moved(direction: Direction, number: int | None) -> int:
        return walk.move(Movement(direction, number), rows)

    assert [moved(FORWARD, 0), moved(FORWARD, 3), moved(FORWARD, 0)] == [0, 3, 1]
    assert [moved(BACKWARD, ALL), moved(FORWARD, ALL), moved(FORWARD, 0)] == [2, 5, 0]
    assert [moved(BACKWARD, ALL), moved(ABSOLUTE, 0), moved(ABSOLUTE, 2)] == [5, 0, 1]


@pytest.mark.parametrize(
    "back",
    [
        *((BACKWARD, 1), (BACKWARD, ALL), (BACKWARD, 0), (FORWARD, -1), (ABSOLUTE, 1)),
        *((ABSOLUTE, 0), (ABSOLUTE, -1), (RELATIVE, -1), (RELATIVE, 0)),
    ],
)
def test_no_scroll_never_goes_back(back: tuple[Direction, int | None]) -> None:
    walk = CursorWalk(scrolls=False)
    assert fetched(walk, (FORWARD, 0), (ABSOLUTE, 2), (ABSOLUTE, 3)) == [[], [2], [3]]
    with pytest.raises(CursorSensitivity):
        walk.fetch(Movement(*back), Five())
    if back != (RELATIVE, 0) and back != (BACKWARD, 0):
        with pytest.raises(CursorSensitivity):
            walk.move(Movement(*back), Five())


def test_an_error_comes_when_its_row_is_reached_and_not_before() -> None:
    walk, rows = CursorWalk(scrolls=True), Five(fails=True)
    assert list(walk.fetch(Movement(FORWARD, 5), rows)) == [1, 2, 3, 4, 5]
    for ahead in ((FORWARD, 1), (FORWARD, ALL), (ABSOLUTE, -1), (ABSOLUTE, 7)):
        with pytest.raises(DivisionByZero):
            CursorWalk(scrolls=True, at=5).fetch(Movement(*ahead), rows)
    assert list(walk.fetch(Movement(BACKWARD, ALL), rows)) == [4, 3, 2, 1]


def test_no_more_is_reached_than_was_asked_for() -> None:
    rows = Five()
    CursorWalk(scrolls=True).fetch(Movement(ABSOLUTE, 3), rows)
    assert rows.reached == 3
