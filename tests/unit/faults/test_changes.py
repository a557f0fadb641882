"""Goal: a schema change that was acknowledged is seen to be missing on a node, or with other rows;
the menu's statements are what its items say.

Method: an item by hand; all items of `tests/matrix`.
"""

from __future__ import annotations

from typing import Any

import pytest

from tests.faults.checkers.changes import count_changes, judge_changes, table_of
from tests.faults.workload.history import Op, Told
from tests.faults.workload.menu_client import insert_all
from tests.matrix.definition import names, read

AFTER = ["table m", "id bigint not null", "c integer"]
SHAPES = {"s.m": tuple(AFTER)}
COUNTS = {"r1": {"s.m": 3}, "r2": {"s.m": 3}}


def change(told: Told = Told.YES, code: str = "", **more: Any) -> Op:
    value = {"schema": "s", "item": "add_column", "after": AFTER, "rows": 3, "ends": "succeeded"}
    return Op("menu", 1, "change", 1, 2, told, code, {**value, **more})


def test_what_is_there_on_every_node_passes() -> None:
    assert judge_changes([change()], SHAPES, COUNTS) == []
    gone = change(after=[])
    assert judge_changes([gone], {}, {"r1": {}, "r2": {}}) == []


@pytest.mark.parametrize(
    ("op", "shapes", "counts", "words"),
    [
        (change(), {}, COUNTS, "the table is []"),
        (change(), {"s.m": AFTER[:2]}, COUNTS, "not ['table m', 'id bigint not null', 'c"),
        (change(), SHAPES, {"r1": {"s.m": 3}, "r2": {"s.m": 2}}, "r2 has 2 rows of s.m, not 3"),
        (change(), SHAPES, {"r1": {}, "r2": {"s.m": 3}}, "r1 has None rows"),
        (change(after=[]), SHAPES, COUNTS, "not []"),
        (change(ends="failed"), SHAPES, COUNTS, "rows break it"),
    ],
)
def test_what_is_not_is_told(
    op: Op, shapes: dict[str, Any], counts: dict[str, dict[str, int]], words: str
) -> None:
    (found,) = judge_changes([op], shapes, counts)
    assert words in found


def test_what_was_not_acknowledged_may_be_either() -> None:
    for told in (Told.NO, Told.UNKNOWN):
        assert judge_changes([change(told)], {}, {}) == []


def test_changes_are_counted_by_what_was_told() -> None:
    ops = [change(), change(), change(Told.NO, "23505"), change(Told.UNKNOWN, "08006")]
    counted = count_changes(ops)
    assert counted["add_column", "yes"] == 2
    assert counted["add_column", "23505"] == counted["add_column", "unknown"] == 1
    made = Op("menu", 1, "menu", 1, 2, Told.NO, "40001", {"schema": "s", "item": "add_column"})
    assert count_changes([made, made._replace(told=Told.YES, code="")]) == {
        ("add_column", "tables 40001"): 1
    }


def test_a_renamed_table_is_looked_for_by_its_new_name() -> None:
    assert table_of(change(after=["table n", "id bigint"])) == "s.n"
    assert table_of(change(after=[])) == "s.m"


def test_rows_are_inserted_with_their_columns_and_values() -> None:
    rows: list[dict[str, Any]] = [{"id": 1, "a": None}, {"id": 2, "a": 1.5}, {"id": 3, "b": "it's"}]
    assert insert_all(rows) == [
        "INSERT INTO m (id, a) VALUES (1, NULL), (2, 1.5)",
        "INSERT INTO m (id, b) VALUES (3, 'it''s')",
    ]
    for name in names():
        told = insert_all(read(name).rows)
        assert sum(text.count("(") - 1 for text in told) >= len(read(name).rows)
