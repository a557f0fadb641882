"""What a transaction keeps of the rows that it reads (T1): what it has read first, each row once,
and which of them nobody else may change."""

from __future__ import annotations

from dataclasses import replace
from itertools import permutations
from typing import Final, TypeAlias

import pytest

from leasehold.catalog.descriptor import Descriptor
from leasehold.catalog.elements import Column, Lock
from leasehold.catalog.states import State
from leasehold.model.budget import Budget, size_of
from leasehold.model.errors import OutOfMemory
from leasehold.model.ports import Row
from leasehold.model.records.requests import Visited
from leasehold.replica.rows_seen import SEEN_BYTES, HeldRows, RowName, RowsSeen
from leasehold.values.types import Type

INTEGER: Final = Type("integer")
COLUMNS: Final = (
    Column(1, "id", INTEGER, False),
    Column(2, "a", INTEGER),
    Column(3, "b", INTEGER, locks=(5,)),
    Column(4, "c", INTEGER, state=State.WRITE_ONLY, locks=(6,)),
)
TABLE: Final = Descriptor(
    1, "t", 1, COLUMNS, (1,), row_locks=(Lock(5, "l"), Lock(6, "m")), next_element_id=10
)
OTHER: Final = replace(TABLE, table_id=2, name="u")
KEY: Final = (1,)
NAME: Final = (1, KEY)
A_ROW: Final = SEEN_BYTES + size_of(KEY)
FIRST: Final = {0: 10, 5: 11, 6: 12}
LATER: Final = {0: 20, 5: 21, 6: 22}


def row(genids: dict[int, int]) -> Row:
    return Row({1: 1, 2: 2, 3: 3}, genids, 0)


@pytest.fixture
def budget() -> Budget:
    return Budget(1_000_000)


@pytest.fixture
def seen(budget: Budget) -> RowsSeen:
    return RowsSeen(budget)


def visited(seen: RowsSeen) -> list[Visited]:
    found = seen.reads.read_set(1)
    return [] if found is None else [each for table in found.tables for each in table.visited]


# ---------------------------------------------------------------- held rows

Held: TypeAlias = list[tuple[RowName, dict[int, int]]]
SETS: Final[list[Held]] = [
    [],
    [(NAME, FIRST)],
    [(NAME, LATER)],
    [(NAME, {})],
    [((1, (2,)), FIRST)],
    [((2, KEY), FIRST)],
    [(NAME, FIRST), ((1, (2,)), FIRST)],
    [(NAME, FIRST), ((1, (2,)), LATER)],
    [(NAME, FIRST), (NAME, FIRST)],
]


def mark_of(rows: Held) -> int:
    held = HeldRows()
    for name, genids in rows:
        held.add(name, genids)
    assert bool(held) == bool(rows)
    return held.mark


def test_a_mark_stands_for_the_rows_and_their_genids() -> None:
    assert mark_of([]) == 0
    assert len({mark_of(rows) for rows in SETS}) == len(SETS)


def test_a_mark_does_not_depend_on_the_order() -> None:
    rows: Held = [(NAME, FIRST), ((1, (2,)), LATER), ((2, KEY), dict(reversed(FIRST.items())))]
    assert len({mark_of([*each]) for each in permutations(rows)}) == 1
    assert mark_of([(NAME, FIRST)]) == mark_of([(NAME, dict(reversed(FIRST.items())))])


def test_a_row_whose_hash_is_the_least_counts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("leasehold.replica.rows_seen.hash", lambda _: 0, raising=False)
    assert mark_of([(NAME, FIRST)]) == 1
    monkeypatch.setattr("leasehold.replica.rows_seen.hash", lambda _: -5, raising=False)
    assert mark_of([(NAME, FIRST)]) > 0


# ---------------------------------------------------------------- rows that were read


def test_the_genids_are_those_of_the_first_read(seen: RowsSeen, budget: Budget) -> None:
    seen.find(TABLE, KEY, None)
    assert seen.genids_of(NAME) is None
    assert budget.held == 0
    seen.find(TABLE, KEY, row(FIRST))
    seen.find(TABLE, KEY, row(LATER))
    seen.find(TABLE, KEY, None)
    seen.read(TABLE, KEY, row(LATER))
    seen.visit(TABLE, KEY, LATER, locks=True)
    assert seen.genids_of(NAME) == FIRST
    assert seen.genids_of((2, KEY)) is None
    assert seen.locked[NAME] == (TABLE, LATER)


def test_each_row_is_held_once_for_each_thing_that_is_kept_of_it(
    seen: RowsSeen, budget: Budget
) -> None:
    for _ in range(3):
        seen.find(TABLE, KEY, row(FIRST))
        assert budget.held == A_ROW
    for _ in range(3):
        seen.read(TABLE, KEY, row(FIRST), COLUMNS[:1])
        assert budget.held == 2 * A_ROW
    for _ in range(3):
        seen.visit(TABLE, KEY, FIRST)
        assert budget.held == 2 * A_ROW
    for _ in range(3):
        seen.visit(TABLE, KEY, FIRST, locks=True)
        assert budget.held == 3 * A_ROW
    long = ("x" * 1_000,)
    seen.find(TABLE, long, row(FIRST))
    assert budget.held == 3 * A_ROW + SEEN_BYTES + size_of(long)
    assert size_of(long) > 1_000


def test_what_there_is_no_room_for_is_not_kept() -> None:
    tight = RowsSeen(Budget(A_ROW))
    tight.find(TABLE, KEY, row(FIRST))
    with pytest.raises(OutOfMemory):
        tight.find(TABLE, (2,), row(FIRST))
    assert tight.genids_of((1, (2,))) is None
    with pytest.raises(OutOfMemory):
        tight.visit(TABLE, KEY, FIRST, locks=True)
    assert not tight.locked
    assert not tight.held


def test_what_is_expected_are_the_locks_of_columns_that_were_read_or_are_changed(
    seen: RowsSeen,
) -> None:
    seen.find(TABLE, KEY, row(FIRST))
    only_a = seen.expected(TABLE, KEY, [2])
    only_b = seen.expected(TABLE, KEY, [3])
    assert (only_a, only_b) == ({"row": 10}, {"l": 11})
    seen.read(TABLE, KEY, row(LATER), COLUMNS[1:2])
    assert seen.expected(TABLE, KEY, [3]) == {"row": 10, "l": 11}
    assert seen.expected(TABLE, KEY, []) == {"row": 10}


def test_columns_of_several_reads_come_together(seen: RowsSeen) -> None:
    seen.read(TABLE, KEY, row(FIRST), COLUMNS[1:2])
    seen.read(TABLE, KEY, row(FIRST), COLUMNS[2:3])
    seen.read(TABLE, (2,), row(FIRST), COLUMNS[2:3])
    seen.read(OTHER, KEY, row(FIRST), COLUMNS[1:2])
    assert seen.expected(TABLE, KEY, []) == {"row": 10, "l": 11}
    assert seen.expected(TABLE, (2,), []) == {"l": 11}
    assert seen.expected(OTHER, KEY, []) == {"row": 10}


def test_a_read_without_columns_is_of_all_that_are_public(seen: RowsSeen) -> None:
    seen.read(TABLE, KEY, row(FIRST))
    assert seen.expected(TABLE, KEY, []) == {"row": 10, "l": 11}
    assert seen.expected(TABLE, KEY, [4]) == {"row": 10, "l": 11, "m": 12}


def test_columns_of_a_row_that_was_not_there_count_once_it_is_found(seen: RowsSeen) -> None:
    seen.read(TABLE, KEY, None, COLUMNS[2:3])
    assert seen.genids_of(NAME) is None
    seen.find(TABLE, KEY, row(FIRST))
    assert seen.expected(TABLE, KEY, []) == {"l": 11}


def test_only_what_selectv_and_for_update_show_is_verified(seen: RowsSeen) -> None:
    seen.find(TABLE, KEY, row(FIRST))
    seen.read(TABLE, KEY, row(FIRST))
    seen.read(TABLE, (2,), None, selectv=True)
    assert visited(seen) == []
    seen.read(TABLE, KEY, row(FIRST), selectv=True)
    assert [each.key for each in visited(seen)] == [KEY]
    seen.visit(TABLE, (3,), FIRST)
    seen.visit(TABLE, (4,), FIRST, locks=True)
    assert [each.key for each in visited(seen)] == [KEY, (3,), (4,)]
    assert seen.genids_of((1, (3,))) == seen.genids_of((1, (4,))) == FIRST


def test_a_row_is_locked_once_and_held_since(seen: RowsSeen) -> None:
    seen.visit(TABLE, KEY, FIRST)
    assert not seen.locked
    assert not seen.held
    seen.visit(TABLE, KEY, FIRST, locks=True)
    mark = seen.held.mark
    assert mark == mark_of([(NAME, FIRST)])
    seen.visit(TABLE, KEY, LATER, locks=True)
    assert seen.locked == {NAME: (TABLE, FIRST)}
    assert seen.held.mark == mark
    seen.visit(OTHER, KEY, FIRST, locks=True)
    assert seen.held.mark == mark_of([(NAME, FIRST), ((2, KEY), FIRST)])
