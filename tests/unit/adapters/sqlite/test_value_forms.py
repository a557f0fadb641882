"""Values whose stored form is not the value: NaN, numeric and jsonb as keys, in entries, and as
CHECK TABLE looks at them.

Method: the same rows in SQLite's store and in the one in memory; damage behind the store's back.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from leasehold.adapters.sqlite.store import SqliteStore
from leasehold.catalog.descriptor import Descriptor
from leasehold.catalog.elements import Column, Index
from leasehold.model.records.acks import CheckReport
from leasehold.model.records.events import Image
from leasehold.model.records.log import ChangeKind, LogPosition, RowChange
from leasehold.values.doubles import NAN, Stored
from leasehold.values.numeric import sort_key
from leasehold.values.storage import to_storage
from leasehold.values.types import Type
from tests.support.memory_store.store import MemoryStore
from tests.support.sqlite.lockstep import reports_of

AT, HEAT = 1, 2
BY_HEAT, DIFFERENCE = 3, 4
DOUBLE = Type("double precision")
SAMPLES = Descriptor(
    3,
    "samples",
    1,
    (Column(AT, "at", DOUBLE, nullable=False), Column(HEAT, "heat", DOUBLE)),
    (AT,),
    (
        Index(BY_HEAT, "by_heat", (HEAT,)),
        Index(DIFFERENCE, "difference", (0,), expressions=("heat - heat",), mentioned=(HEAT,)),
    ),
    10,
)
SAMPLE_ROWS: tuple[Image, ...] = (
    {AT: NAN, HEAT: 1.5},
    {AT: math.inf, HEAT: NAN},
    {AT: 0.5, HEAT: math.inf},
    {AT: -math.inf, HEAT: NAN},
    {AT: -1.0},
)

PRICE, FEE, DOC, NAME = 1, 2, 3, 4
BY_FEE, DOUBLED = 5, 6
NUMERIC = to_storage(Type("numeric"))
KEY = to_storage(Type("numeric", None, 9, 2))
PRICES = Descriptor(
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
        Index(DOUBLED, "doubled", (0,), expressions=("fee * 2",), mentioned=(FEE,)),
    ),
    10,
)
PRICE_ROWS: tuple[Image, ...] = tuple(
    {PRICE: KEY(price), DOC: '{"a": 1.50}', NAME: "ab", **({FEE: NUMERIC(fee)} if fee else {})}
    for price, fee in (("10", "1.50"), ("9.5", "-2"), ("-3", "1.5"), ("0", "100"), ("2", None))
)
"""Of numbers that have one value in several forms."""

AnyStore = SqliteStore | MemoryStore
StoreOf = Callable[[Descriptor], AnyStore]


@pytest.fixture
def sqlite_of(tmp_path: Path) -> Iterator[Callable[[Descriptor], SqliteStore]]:
    made: list[SqliteStore] = []

    def make(table: Descriptor) -> SqliteStore:
        made.append(SqliteStore(tmp_path / "node.db", cache_mb=1))
        backfill(made[0], table)
        return made[0]

    yield make
    for store in made:
        store.close()


@pytest.fixture(params=["sqlite", "memory"])
def store_of(
    request: pytest.FixtureRequest, sqlite_of: Callable[[Descriptor], SqliteStore]
) -> StoreOf:
    def make(table: Descriptor) -> AnyStore:
        if request.param == "sqlite":
            return sqlite_of(table)
        memory = MemoryStore()
        backfill(memory, table)
        return memory

    return make


def backfill(store: AnyStore, table: Descriptor) -> None:
    store.begin()
    store.prepare(table)
    store.put_descriptor(table.table_id, 1, table.to_wire())
    (key,) = table.primary_key
    rows = SAMPLE_ROWS if table is SAMPLES else PRICE_ROWS
    for lsn, image in enumerate(rows, 1):
        change = RowChange(ChangeKind.INSERT, 3, 1, (image[key],), image, {}, (0,))
        store.change(table, change, lsn, 0, None)
    store.commit(LogPosition(9, lsn=len(rows)))


def check(store: AnyStore) -> CheckReport:
    (report,) = reports_of(store, (3,))
    return report


def faults(store: AnyStore) -> set[tuple[int, int]]:
    return {(condition, element) for condition, element, _, _ in check(store).findings}


def test_nan_stands_behind_all_numbers(store_of: StoreOf) -> None:
    with store_of(SAMPLES).open_snapshot() as snapshot:

        def keys(low: Stored | None, high: Stored | None) -> list[Stored]:
            bounds = (None if low is None else (low,), None if high is None else (high,))
            return [key[0] for key, _ in snapshot.scan(SAMPLES, *bounds, rows_max=9)]

        assert keys(None, None) == [-math.inf, -1.0, 0.5, math.inf, NAN]
        assert (keys(0.5, NAN), keys(NAN, None)) == ([0.5, math.inf], [NAN])
        by_heat = [key[0] for key, _ in snapshot.get_by(SAMPLES, BY_HEAT, (), rows_max=9)]
        assert by_heat == [NAN, 0.5, -math.inf, math.inf, -1.0]
        found = [key[0] for key, _ in snapshot.get_by(SAMPLES, BY_HEAT, (NAN,), rows_max=9)]
        assert found == [-math.inf, math.inf]
        made = [key[0] for key, _ in snapshot.get_by(SAMPLES, DIFFERENCE, (NAN,), rows_max=9)]
        assert made == [-math.inf, 0.5, math.inf]


def test_numerics_stand_in_the_order_of_the_numbers(store_of: StoreOf) -> None:
    with store_of(PRICES).open_snapshot() as snapshot:
        rows = [key for key, _ in snapshot.scan(PRICES, None, None, rows_max=9)]
        assert rows == [(KEY(price),) for price in ("-3", "0", "2", "9.50", "10.00")]
        by_fee = [key for key, _ in snapshot.get_by(PRICES, BY_FEE, (), rows_max=9)]
        assert by_fee == [(KEY(price),) for price in ("9.5", "-3", "10", "0", "2")]


def test_one_value_of_two_forms_is_found_by_either(store_of: StoreOf) -> None:
    with store_of(PRICES).open_snapshot() as snapshot:
        for form in ("1.5", "1.500"):
            key = (sort_key(NUMERIC(form)),)
            found = [key for key, _ in snapshot.get_by(PRICES, BY_FEE, key, rows_max=9)]
            assert found == [(KEY("-3"),), (KEY("10"),)]
        (first,) = snapshot.get_by(PRICES, DOUBLED, (sort_key(NUMERIC("200")),), rows_max=9)
        assert first[0] == (KEY("0"),)


@pytest.mark.parametrize("table", [SAMPLES, PRICES], ids=lambda table: table.name)
def test_such_a_table_is_sound(store_of: StoreOf, table: Descriptor) -> None:
    report = check(store_of(table))
    assert (report.findings, report.findings_total, report.rows) == ((), 0, 5)
    if table is PRICES:
        assert report.entries == {BY_FEE: 5, DOUBLED: 5}


@pytest.mark.parametrize(
    ("table", "change", "element"),
    [
        *((SAMPLES, f"c2 = '{text}'", HEAT) for text in ("nan", "Infinity", "1.5", "")),
        (PRICES, "c2 = 1.5", FEE),
        (PRICES, "c2 = 'DQ150 2'", FEE),
        (PRICES, "c2 = 'one'", FEE),
        (PRICES, "c3 = '{\"b\":1}'", DOC),
        (PRICES, "c3 = '{'", DOC),
        (PRICES, "c4 = 'ab '", NAME),
        (PRICES, "c4 = 'abcd'", NAME),
        (PRICES, "c1 = 'DQ15 1'", PRICE),
    ],
    ids=lambda value: getattr(value, "name", str(value)),
)
def test_a_value_that_has_no_such_form_is_found(
    sqlite_of: Callable[[Descriptor], SqliteStore], table: Descriptor, change: str, element: int
) -> None:
    store = sqlite_of(table)
    key: Any = -1.0 if table is SAMPLES else KEY("9.5")
    store._connection.execute(f"UPDATE t3 SET {change} WHERE c1 = ?", (key,))
    assert (1, element) in faults(store)


def test_an_entry_with_the_scale_in_it_differs(
    sqlite_of: Callable[[Descriptor], SqliteStore],
) -> None:
    store = sqlite_of(PRICES)
    store._connection.execute("UPDATE x3_5 SET k0 = k0 || '2' WHERE k0 = 'DQ15 ' AND p0 < 'C'")
    assert faults(store) == {(4, BY_FEE), (5, BY_FEE)}
