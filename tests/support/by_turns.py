"""Families of cases of which a run takes a part: each case comes in one of three runs.

The run's id, on which all its worker processes agree, draws the part; TURN=0, 1 or 2 names it, and
`make test-all` takes all.
"""

from __future__ import annotations

import os
import random
from collections.abc import Callable, Iterable
from typing import Any, Final, TypeVar

import pytest

from tests.support.run_id import run_id

CaseT = TypeVar("CaseT")

TURNS: Final = 3
ANOTHER_RUN: Final = pytest.mark.long("of a family by turns: a third of it is in each make test")


def this_turn() -> int:
    """Return which part this run takes, from 0."""
    named = os.environ.get("TURN")
    if named:
        return int(named) % TURNS
    return random.Random(f"turn/{run_id()}").randrange(TURNS)


def by_turns(cases: Iterable[CaseT], name_of: Callable[[CaseT], str] = str) -> list[Any]:
    """Return the cases as parameters of a test, with their names; those of other turns are marked
    long. Neighbours, which are alike, come in different turns."""
    return rows_by_turns(((case,) for case in cases), lambda row: name_of(row[0]))


def seeds_by_turns(first: int, count: int) -> list[Any]:
    """Return `count` seeds from `first` on as parameters of a test that takes several in a row: of
    each turn every third one."""
    parts = [range(first + part, first + count, TURNS) for part in range(min(TURNS, count))]
    return by_turns(parts, lambda seeds: f"seeds {seeds.start} to {seeds[-1]}")


def rows_by_turns(
    rows: Iterable[tuple[Any, ...]], name_of: Callable[[Any], str | None] = lambda _: None
) -> list[Any]:
    """Return the same for a test of several parameters. No name: pytest makes one."""
    turn = this_turn()
    return [
        pytest.param(*row, id=name_of(row), marks=() if number % TURNS == turn else ANOTHER_RUN)
        for number, row in enumerate(rows)
    ]
