"""Numeric and jsonb in a store: rows by exact key, entries by the sort key, and what CHECK TABLE
says of values that can't be there.

Method: a small table whose numbers have one value in several forms; damage behind the store's back.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from leasehold.adapters.sqlite.store import SqliteStore
from leasehold.catalog.descriptor import Column, Descriptor, Index
from leasehold.model.records import ChangeKind, CheckReport, LogPosition, RowChange
from leasehold.values.numeric import sort_key
from leasehold.values.types import Type, to_storage
from tests.support.memory_store.store import MemoryStore
from tests.support.sqlite.lockstep import reports_of

PRICE, FEE, DOC, NAME = 1, 2, 3, 4
BY_FEE, COMPUTED = 5, 6
NUMERIC = to_storage(Type("numeric"))
KEY = to_storage(Type("numeric", None, 9, 2))
TABLE = Descriptor(
    3,
    "prices",
    1,
    (
        Column(PRICE, "price", Type("numeric", None, 9, 2), nullable=False),
        Column(FEE, "fee", Type("numeric")),
        Column(DOC, "doc", Type("jsonb")),
        Column(NAME, "name", Type("char", 3)),
    ),
    (PRICE,),
    (
        Index(BY_FEE, "by_fee", (FEE,), included=(FEE,)),
        Index(COMPUTED, "computed", (0,), expressions=("fee * 2",), mentioned=(FEE,)),
    ),
    10,
)
AnyStore = SqliteStore | MemoryStore
ROWS = (("10", "1.50"), ("9.5", "-2"), ("-3", "1.5"), ("0", "100"), ("2", None))


def fill(store: AnyStore) -> None:
    store.begin()
    store.prepare(TABLE)
    store.put_descriptor(TABLE.table_id, 1, TABLE.to_wire())
    for lsn, (price, fee) in enumerate(ROWS, 1):
        image: dict[int, Any] = {PRICE: KEY(price), DOC: '{"a": 1.50}', NAME: "ab"}
        if fee is not None:
            image[FEE] = NUMERIC(fee)
        change = RowChange(ChangeKind.INSERT, 3, 1, (image[PRICE],), image, {}, (0,))
        store.change(TABLE, change, lsn, 0, None)
    store.commit(LogPosition(9, lsn=len(ROWS)))


@pytest.fixture
def store(tmp_path: Path) -> Iterator[SqliteStore]:
    made = SqliteStore(tmp_path / "node.db", cache_mb=1)
    fill(made)
    yield made
    made.close()


@pytest.fixture(params=["sqlite", "memory"])
def either(request: pytest.FixtureRequest, store: SqliteStore) -> AnyStore:
    if request.param == "sqlite":
        return store
    memory = MemoryStore()
    fill(memory)
    return memory


def check(store: SqliteStore) -> CheckReport:
    (report,) = reports_of(store, (3,))
    return report


def test_rows_and_entries_stand_in_the_order_of_the_numbers(
    either: AnyStore,
) -> None:
    with either.open_snapshot() as snapshot:
        rows = [key for key, _ in snapshot.scan(TABLE, None, None, rows_max=9)]
        assert rows == [(KEY(price),) for price in ("-3", "0", "2", "9.50", "10.00")]
        by_fee = [key for key, _ in snapshot.get_by(TABLE, BY_FEE, (), rows_max=9)]
        assert by_fee == [(KEY(price),) for price in ("9.5", "-3", "10", "0", "2")]


def test_one_value_of_two_forms_is_found_by_either(either: AnyStore) -> None:
    with either.open_snapshot() as snapshot:
        for form in ("1.5", "1.500"):
            key = (sort_key(NUMERIC(form)),)
            found = [key for key, _ in snapshot.get_by(TABLE, BY_FEE, key, rows_max=9)]
            assert found == [(KEY("-3"),), (KEY("10"),)]
        (first,) = snapshot.get_by(TABLE, COMPUTED, (sort_key(NUMERIC("200")),), rows_max=9)
        assert first[0] == (KEY("0"),)


def test_a_sound_table(store: SqliteStore) -> None:
    report = check(store)
    assert (report.findings, report.findings_total) == ((), 0)
    assert report.entries == {BY_FEE: 5, COMPUTED: 5}


@pytest.mark.parametrize(
    ("change", "element"),
    [
        ("c2 = 1.5", FEE),
        ("c2 = 'DQ150 2'", FEE),
        ("c2 = 'one'", FEE),
        ("c3 = '{\"b\":1}'", DOC),
        ("c3 = '{'", DOC),
        ("c4 = 'ab '", NAME),
        ("c4 = 'abcd'", NAME),
        ("c1 = 'DQ15 1'", PRICE),
    ],
)
def test_a_value_that_has_no_such_form_is_found(
    store: SqliteStore, change: str, element: int
) -> None:
    store._connection.execute(f"UPDATE t3 SET {change} WHERE c1 = ?", (KEY("9.5"),))
    found = {(condition, e) for condition, e, _, _ in check(store).findings}
    assert (1, element) in found


def test_an_entry_with_the_scale_in_it_differs(store: SqliteStore) -> None:
    store._connection.execute("UPDATE x3_5 SET k0 = k0 || '2' WHERE k0 = 'DQ15 ' AND p0 < 'C'")
    found = {(condition, e) for condition, e, _, _ in check(store).findings}
    assert found == {(4, BY_FEE), (5, BY_FEE)}
