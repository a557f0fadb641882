"""Goal: what a version of a table does to its rows and its users is seen: a value that a writer at
an older version, or a late fill, has reverted (T0); a transaction whose version changed (D8); two
who had one advisory lock (D10).

Method: histories by hand, a good one and variants that are bad in one place.
"""

from __future__ import annotations

from typing import Any

import pytest

from tests.faults.checkers.kept import Cell, judge_kept
from tests.faults.checkers.stays import judge_stays
from tests.faults.checkers.turns import judge_turns
from tests.faults.workload.history import Op, Told


def write(ids: list[int], value: int | None, told: Told = Told.YES) -> Op:
    fields = {"table": "wide", "column": "x1", "ids": ids, "value": value}
    return Op("column", ids[0], "kept", 1, 2, told, "", fields)


def stay(*widths: int, told: Told = Told.YES) -> Op:
    return Op("stay", 1, "stay", 1, 2, told, "", {"table": "accounts", "widths": list(widths)})


def test_what_was_acknowledged_is_kept_on_each_node() -> None:
    ops = [write([0], 7), write([1, 2], None)]
    shown = {Cell("wide", "x1", 0): 7, Cell("wide", "x1", 1): None, Cell("wide", "x1", 2): None}
    assert judge_kept(ops, {"r1": shown, "r2": shown}) == []
    other = {**shown, Cell("wide", "x1", 2): 5}
    (found,) = judge_kept(ops, {"r1": shown, "r2": other})
    assert found == "kept: row 2 of wide.x1 is 5 on r2, None was acknowledged"


def test_a_value_that_is_not_shown_is_missed() -> None:
    (found,) = judge_kept([write([0], 7)], {"r1": {}})
    assert "does not show row 0 of wide.x1" in found


@pytest.mark.parametrize("told", [Told.NO, Told.UNKNOWN])
def test_what_was_not_acknowledged_may_be_there_or_not(told: Told) -> None:
    for value in (None, 7):
        assert judge_kept([write([0], 7, told)], {"r1": {Cell("wide", "x1", 0): value}}) == []


@pytest.mark.parametrize(
    ("op", "words"),
    [
        (stay(2, 2, 2), ""),
        (stay(2, 3, 3), "with [2, 3, 3] columns in one transaction"),
        (stay(2, 3, told=Told.NO), ""),
    ],
)
def test_a_row_has_as_many_columns_through_a_transaction(op: Op, words: str) -> None:
    found = judge_stays([op])
    assert found == [] if not words else words in found[0]


def test_a_turn_is_taken_once() -> None:
    rows: list[tuple[int, int]] = [(10, 1), (11, 2), (12, 4)]
    assert judge_turns({"r1": rows}) == []
    twice: dict[str, Any] = {"r1": rows, "r2": [*rows, (13, 2)]}
    (found,) = judge_turns(twice)
    assert found == "turns: taken twice under one lock, on r2: [2]"
