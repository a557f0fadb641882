"""Goal: UNIQUE is looked at when the whole request is known (T3), on every store alike.

Method: requests against a table with a unique index, one over two columns and one that is enforced
only; each against the reference in memory and against SQLite.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from leasehold.catalog.descriptor import Descriptor
from leasehold.catalog.elements import Column, Index
from leasehold.catalog.states import State
from leasehold.model.errors import DuplicateKey
from leasehold.model.keys import Key
from leasehold.model.ports import Row
from leasehold.model.records.requests import Operation
from leasehold.transaction.uniqueness import FinalRow, check_unique
from leasehold.values.types import Type
from tests.support.transaction.written_table import (
    STORES,
    WrittenTable,
    delete,
    insert,
    opened,
    update,
    upsert,
)

TEXT = Type("text")
ID, A, B, C = 1, 2, 3, 4
TABLE = Descriptor(
    1,
    "t",
    1,
    (
        Column(ID, "id", Type("bigint"), False),
        Column(A, "a", Type("integer")),
        Column(B, "b", TEXT),
        Column(C, "c", TEXT),
    ),
    (ID,),
    (
        Index(5, "t_a_key", (A,), unique=True, constraint=True),
        Index(6, "t_b_c_key", (B, C), unique=True, constraint=True),
        Index(7, "plain", (C,)),
    ),
    8,
)
OTHER = replace(TABLE, table_id=2, name="o", indexes=(Index(5, "o_a_key", (A,), unique=True),))


@pytest.fixture(params=STORES)
def table(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[WrittenTable]:
    with opened(request.param, tmp_path) as store:
        made = WrittenTable(store, TABLE, OTHER)
        made.send(insert("t", 1, a=10, b="x", c="y"), insert("t", 2, a=20, b="x"))
        yield made


def refused(table: WrittenTable, *operations: Operation) -> DuplicateKey:
    with pytest.raises(DuplicateKey) as caught:
        table.send(*operations)
    return caught.value


# ------------------------------------------------------------------ refused


def test_a_value_that_another_row_has_is_refused_naming_key_and_constraint(
    table: WrittenTable,
) -> None:
    error = refused(table, insert("t", 3, a=10))
    assert error.detail == {
        "table": "t",
        "constraint": "t_a_key",
        "key": [10],
        "detail": "Key (a)=(10) already exists.",
    }
    assert error.sqlstate == "23505"
    assert str(error) == 'duplicate key value violates unique constraint "t_a_key"'
    assert table.row(1, 3) is None


@pytest.mark.parametrize(
    "operations",
    [
        (update("t", 2, a=10),),
        (upsert("t", 2, a=10),),
        (upsert("t", 3, a=20),),
        (insert("t", 3, a=30), insert("t", 4, a=30)),
        (insert("t", 3, a=30), update("t", 2, a=30)),
        (update("t", 1, a=20), insert("t", 3, a=10)),
        (delete("t", 1), insert("t", 3, a=10), insert("t", 4, a=10)),
        (update("t", 1, a=11), update("t", 1, a=10), insert("t", 3, a=10)),
        (delete("t", 1), insert("t", 1, a=20)),
        (update("t", 1, a=20), update("t", 1, c="z")),
        (insert("t", 3, a=10), update("t", 3, c="z")),
        (update("t", 2, c="y"),),
        (insert("t", 3, a=1), insert("t", 4, b="x", c="y")),
    ],
)
def test_two_rows_with_one_key_in_the_end_are_refused(
    table: WrittenTable, operations: tuple[Operation, ...]
) -> None:
    refused(table, *operations)
    assert table.row(1, 1) == {ID: 1, A: 10, B: "x", C: "y"}
    assert table.row(1, 2) == {ID: 2, A: 20, B: "x"}


# ------------------------------------------------------------------ fine


@pytest.mark.parametrize(
    "operations",
    [
        (update("t", 1, a=20), update("t", 2, a=10)),
        (update("t", 1, a=30), insert("t", 3, a=10)),
        (insert("t", 3, a=10), update("t", 1, a=30)),
        (delete("t", 1), insert("t", 3, a=10)),
        (insert("t", 3, a=10), delete("t", 1)),
        (insert("t", 3, a=10), update("t", 3, a=30)),
        (insert("t", 3, a=10), delete("t", 3)),
        (delete("t", 1), insert("t", 1, a=10)),
        (update("t", 1, a=10),),
        (update("t", 1, c="z"),),
        (update("t", 1, a=None), update("t", 2, a=None), insert("t", 3)),
        (insert("t", 3, b="x"), insert("t", 4, b="x")),
        (insert("t", 3, b="x", c="z"), insert("t", 4, b="z", c="y")),
        (insert("t", 3, c="y"), insert("t", 4, c="y")),
        (insert("o", 1, a=10), insert("o", 2, a=20)),
    ],
)
def test_what_differs_in_the_end_is_fine(
    table: WrittenTable, operations: tuple[Operation, ...]
) -> None:
    table.send(*operations)


def test_values_have_moved_on_whole(table: WrittenTable) -> None:
    table.send(update("t", 1, a=20), update("t", 2, a=10))
    rows = [table.row(1, key) for key in (1, 2)]
    assert [row and row[A] for row in rows] == [20, 10]
    refused(table, insert("t", 3, a=10))


def test_a_longer_circle_of_values_is_fine(table: WrittenTable) -> None:
    table.send(*[insert("t", key, a=100 + key) for key in range(10, 20)])
    table.send(*[update("t", key, a=100 + (key - 9) % 10 + 10) for key in range(10, 20)])
    refused(table, update("t", 10, a=113))


# ------------------------------------------------------------------ while it is being built


def state_of(state: State, **fields: Any) -> Descriptor:
    index = replace(TABLE.indexes[0], unique=False, state=state, **fields)
    return replace(TABLE, indexes=(index,))


@pytest.mark.parametrize("kind", STORES)
@pytest.mark.parametrize(
    ("version", "enforced"),
    [
        (state_of(State.DELETE_ONLY), False),
        (state_of(State.WRITE_ONLY), False),
        (state_of(State.WRITE_ONLY, unique_enforced=True), True),
        (state_of(State.DELETE_ONLY, unique_enforced=True), False),
        (state_of(State.PUBLIC), False),
    ],
)
def test_enforced_from_the_step_on_in_which_all_entries_are_there(
    kind: str, version: Descriptor, enforced: bool, tmp_path: Path
) -> None:
    with opened(kind, tmp_path) as store:
        table = WrittenTable(store, version)
        table.send(insert("t", 1, a=10))
        if enforced:
            refused(table, insert("t", 2, a=10))
        else:
            table.send(insert("t", 2, a=10))


@pytest.mark.parametrize("kind", STORES)
def test_a_duplicate_from_before_is_left_alone_until_its_key_changes(
    kind: str, tmp_path: Path
) -> None:
    """The job that finds it fails; meanwhile other columns of those rows can be written."""
    with opened(kind, tmp_path) as store:
        table = WrittenTable(store, state_of(State.WRITE_ONLY))
        table.send(insert("t", 1, a=10), insert("t", 2, a=10))
        table.publish(replace(state_of(State.WRITE_ONLY, unique_enforced=True), version=2))
        table.send(update("t", 1, b="other"))
        table.send(update("t", 1, b="more"), update("t", 2, b="more"))
        refused(table, insert("t", 3, a=10))
        refused(table, update("t", 1, b="x"), insert("t", 3, a=10))
        table.send(update("t", 1, a=11))
        refused(table, update("t", 1, a=10))


# ------------------------------------------------------------------ how much is read


def test_at_most_one_more_holder_than_the_request_has_rows_is_asked_for() -> None:
    """All but one of them may be rows that the request takes away."""
    asked: list[tuple[int, Key, int]] = []

    def holders(_: Descriptor, index: int, values: Key, rows_max: int) -> Sequence[Key]:
        asked.append((index, values, rows_max))
        return ()

    gone = FinalRow(TABLE, None, None)
    new = FinalRow(TABLE, None, {ID: 3, A: 10})
    [*check_unique({(1, (1,)): gone, (1, (3,)): new}, holders)]
    assert asked == [(5, (10,), 3)]


@pytest.mark.parametrize("leaves", [True, False])
@pytest.mark.parametrize("indexes", [(), (replace(TABLE.indexes[0]),)])
def test_rows_that_are_written_under_two_versions_meet(
    leaves: bool, indexes: tuple[Index, ...]
) -> None:
    """A foreign key acts under the newest version, whatever that of the request is."""
    newest = replace(TABLE, version=2, indexes=indexes)
    images: dict[int, dict[int, Any]] = {
        1: {ID: 1, A: 11 if leaves else 10, C: "new"},
        2: {ID: 2, A: 10},
    }
    rows = {
        (1, (2,)): FinalRow(TABLE, Row({ID: 2, A: 20}, {}, 1), images[2]),
        (1, (1,)): FinalRow(newest, Row({ID: 1, A: 10}, {}, 1), images[1]),
    }

    def holders(_: Descriptor, index: int, values: Key, most: int) -> Sequence[Key]:
        return [(1,)] if (index, values) == (5, (10,)) else []

    if leaves:
        [*check_unique(rows, holders)]
        return
    with pytest.raises(DuplicateKey):
        [*check_unique(rows, holders)]
