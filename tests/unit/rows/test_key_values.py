"""The table of states, cell by cell (T0): which pairs and entries an operation touches."""

from __future__ import annotations

from dataclasses import replace

import pytest

from leasehold.catalog.descriptor import Descriptor
from leasehold.catalog.elements import Column, Index
from leasehold.catalog.states import State
from leasehold.model.records.log import ChangeKind
from leasehold.rows.key_values import EntryChange, compose, entries
from leasehold.values.types import Type
from tests.support.memory_store.key_values import key_values

KEY = Column(1, "id", Type("bigint"), nullable=False)
A = Column(2, "a", Type("integer"))
C = Column(3, "c", Type("integer"), nullable=False, default=7)
INDEX = Index(4, "i", (2,))
INSERT, UPDATE, DELETE, BACKFILL = (
    ChangeKind.INSERT,
    ChangeKind.UPDATE,
    ChangeKind.DELETE,
    ChangeKind.BACKFILL,
)


def table(column: State = State.ABSENT, index: State = State.ABSENT) -> Descriptor:
    columns = (KEY, A) if column is State.ABSENT else (KEY, A, replace(C, state=column))
    indexes = () if index is State.ABSENT else (replace(INDEX, state=index),)
    return Descriptor(1, "t", 1, columns, (1,), indexes)


@pytest.mark.parametrize(
    ("state", "image"),
    [
        (State.ABSENT, {1: 5, 2: 6}),
        (State.DELETE_ONLY, {1: 5, 2: 6}),
        (State.WRITE_ONLY, {1: 5, 2: 6, 3: 7}),
        (State.PUBLIC, {1: 5, 2: 6, 3: 7}),
    ],
)
def test_insert_writes_the_pair_from_write_only_on(state: State, image: dict[int, int]) -> None:
    assert compose(table(state), INSERT, None, {1: 5, 2: 6}) == image


@pytest.mark.parametrize(
    ("state", "image"),
    [
        (State.ABSENT, {1: 5, 2: 9}),
        (State.DELETE_ONLY, {1: 5, 2: 9}),
        (State.WRITE_ONLY, {1: 5, 2: 9, 3: 7}),
        (State.PUBLIC, {1: 5, 2: 9, 3: 7}),
    ],
)
def test_update_of_any_column_writes_the_pair_the_row_lacks(
    state: State, image: dict[int, int]
) -> None:
    assert compose(table(state), UPDATE, {1: 5, 2: 6}, {2: 9}) == image


@pytest.mark.parametrize("state", list(State))
def test_t0_update_never_reverts_a_pair_it_can_not_see(state: State) -> None:
    assert compose(table(state), UPDATE, {1: 5, 2: 6, 3: 50}, {2: 9})[3] == 50


@pytest.mark.parametrize(
    ("state", "gone"),
    [
        (State.ABSENT, (1, 2)),
        (State.DELETE_ONLY, (1, 2, 3)),
        (State.WRITE_ONLY, (1, 2, 3)),
        (State.PUBLIC, (1, 2, 3)),
    ],
)
def test_delete_removes_the_pairs_its_version_knows(state: State, gone: tuple[int, ...]) -> None:
    done = key_values(table(state), DELETE, {1: 5, 2: 6, 3: 7}, {})
    assert done.delete == gone
    assert not done.exists


def test_fill_writes_only_where_nothing_is() -> None:
    write_only = table(State.WRITE_ONLY)
    assert compose(write_only, BACKFILL, {1: 5}, {3: 8}) == {1: 5, 3: 8}
    assert compose(write_only, BACKFILL, {1: 5, 3: 50}, {3: 8}) == {1: 5, 3: 50}


def test_null_is_no_pair() -> None:
    assert compose(table(), UPDATE, {1: 5, 2: 6}, {2: None}) == {1: 5}
    assert key_values(table(), UPDATE, {1: 5, 2: 6}, {2: None}).delete == (2,)


def test_only_changed_pairs_are_put() -> None:
    done = key_values(table(), UPDATE, {1: 5, 2: 6}, {2: 9})
    assert (done.put, done.delete, done.exists) == ({2: 9}, (), True)


@pytest.mark.parametrize(
    ("state", "insert", "same", "moved", "delete"),
    [
        (State.ABSENT, None, None, None, None),
        (State.DELETE_ONLY, None, None, ((6,), None), ((6,), None)),
        (State.WRITE_ONLY, (None, (6,)), (None, (6,)), ((6,), (9,)), ((6,), None)),
        (State.PUBLIC, (None, (6,)), None, ((6,), (9,)), ((6,), None)),
    ],
)
def test_entries(state: State, insert: object, same: object, moved: object, delete: object) -> None:
    descriptor = table(index=state)
    row, other = {1: 5, 2: 6}, {1: 5, 2: 9}
    found = (
        entries(descriptor, None, row),
        entries(descriptor, row, row),
        entries(descriptor, row, other),
        entries(descriptor, row, None),
    )
    expected = tuple(
        () if each is None else (EntryChange(4, *each),)  # type: ignore[misc]
        for each in (insert, same, moved, delete)
    )
    assert found == expected


def test_row_without_the_pair_has_an_entry_of_null() -> None:
    assert entries(table(index=State.PUBLIC), None, {1: 5}) == (EntryChange(4, None, (None,)),)
