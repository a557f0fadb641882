"""`holders`: who has exactly this entry, on every store alike; uncommitted changes included."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from leasehold.catalog.descriptor import Descriptor
from leasehold.catalog.elements import Column, Index
from leasehold.catalog.states import State
from leasehold.model.keys import Key
from leasehold.model.records.events import Image
from leasehold.model.records.log import ChangeKind, LogPosition, RowChange
from leasehold.values.types import Type
from tests.support.transaction.written_table import STORES, Store, opened

TEXT = Type("text")
PLACE, NUMBER, NAME, SIZE = 1, 2, 3, 4
BY_NAME, BY_BOTH, BY_KEY = 5, 6, 7
TABLE = Descriptor(
    1,
    "shops",
    1,
    (
        Column(PLACE, "place", TEXT, False),
        Column(NUMBER, "number", Type("integer"), False),
        Column(NAME, "name", TEXT),
        Column(SIZE, "size", Type("double precision")),
    ),
    (PLACE, NUMBER),
    (
        Index(BY_NAME, "by_name", (NAME,), unique=True),
        Index(BY_BOTH, "by_both", (SIZE, NAME)),
        Index(BY_KEY, "by_key", (NUMBER,)),
    ),
    8,
)
ROWS: list[Image] = [
    {PLACE: "b", NUMBER: 1, NAME: "x", SIZE: 1.5},
    {PLACE: "a", NUMBER: 2, NAME: "x", SIZE: 1.5},
    {PLACE: "a", NUMBER: 10, NAME: "x"},
    {PLACE: "a", NUMBER: 3, SIZE: 1.5},
    {PLACE: "a", NUMBER: 4},
    {PLACE: "c", NUMBER: 4, NAME: ""},
]


def key_of(image: Image) -> Key:
    return image[PLACE], image[NUMBER]


@pytest.fixture(params=STORES)
def store(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Store]:
    with opened(request.param, tmp_path) as made:
        made.begin()
        made.prepare(TABLE)
        made.put_descriptor(1, 1, TABLE.to_wire())
        for lsn, image in enumerate(ROWS, 1):
            insert = RowChange(ChangeKind.INSERT, 1, 1, key_of(image), image, {}, (0,))
            made.change(TABLE, insert, lsn, 0, None)
        made.commit(LogPosition(1, lsn=len(ROWS)))
        yield made


@pytest.mark.parametrize(
    ("index", "values", "keys"),
    [
        (BY_NAME, ("x",), [("a", 2), ("a", 10), ("b", 1)]),
        (BY_NAME, ("",), [("c", 4)]),
        (BY_NAME, ("X",), []),
        (BY_NAME, (None,), [("a", 3), ("a", 4)]),
        (BY_BOTH, (1.5, "x"), [("a", 2), ("b", 1)]),
        (BY_BOTH, (1.5, None), [("a", 3)]),
        (BY_BOTH, (None, "x"), [("a", 10)]),
        (BY_BOTH, (None, None), [("a", 4)]),
        (BY_BOTH, (2.5, "x"), []),
        (BY_KEY, (4,), [("a", 4), ("c", 4)]),
    ],
)
def test_rows_with_exactly_that_entry_in_key_order(
    store: Store, index: int, values: Key, keys: list[Key]
) -> None:
    assert list(store.holders(TABLE, index, values, 10)) == keys
    assert list(store.holders(TABLE, index, values, 1)) == keys[:1]


def test_uncommitted_changes_count_and_a_roll_back_takes_them_back(store: Store) -> None:
    store.begin()
    row = store.row(TABLE, ("b", 1))
    assert row is not None
    gone = RowChange(ChangeKind.DELETE, 1, 1, ("b", 1), None, row.genids, ())
    store.savepoint()
    store.change(TABLE, gone, 9, 0, row)
    assert list(store.holders(TABLE, BY_NAME, ("x",), 10)) == [("a", 2), ("a", 10)]
    store.rollback_to()
    assert len(store.holders(TABLE, BY_NAME, ("x",), 10)) == 3
    store.change(TABLE, gone, 9, 0, row)
    store.rollback()
    assert len(store.holders(TABLE, BY_NAME, ("x",), 10)) == 3


def test_an_index_that_is_write_only_is_asked_by_the_version_that_enforces_it(
    store: Store,
) -> None:
    index = replace(TABLE.indexes[0], unique=False, unique_enforced=True, state=State.WRITE_ONLY)
    version = replace(TABLE, version=2, indexes=(index,))
    store.begin()
    store.prepare(version)
    assert len(store.holders(version, BY_NAME, ("x",), 10)) == 3
    store.rollback()
