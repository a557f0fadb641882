"""NaN in a store: a key and an entry like others, behind all numbers, and sound to CHECK TABLE.

Method: the same rows in SQLite's store and in the one in memory; damage behind the store's back.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import pytest

from leasehold.adapters.sqlite.store import SqliteStore
from leasehold.catalog.descriptor import Column, Descriptor, Index
from leasehold.model.records import ChangeKind, CheckReport, LogPosition, RowChange
from leasehold.values.doubles import NAN, Stored
from leasehold.values.types import Type
from tests.support.memory_store.store import MemoryStore
from tests.support.sqlite.lockstep import reports_of

AT, HEAT = 1, 2
BY_HEAT, COMPUTED = 3, 4
DOUBLE = Type("double precision")
TABLE = Descriptor(
    3,
    "samples",
    1,
    (Column(AT, "at", DOUBLE, nullable=False), Column(HEAT, "heat", DOUBLE)),
    (AT,),
    (
        Index(BY_HEAT, "by_heat", (HEAT,)),
        Index(COMPUTED, "computed", (0,), expressions=("heat - heat",), mentioned=(HEAT,)),
    ),
    10,
)
ROWS: Final[tuple[tuple[Stored, Stored | None], ...]] = (
    *((NAN, 1.5), (math.inf, NAN), (0.5, math.inf), (-math.inf, NAN), (-1.0, None)),
)
AnyStore = SqliteStore | MemoryStore


def fill(store: AnyStore) -> None:
    store.begin()
    store.prepare(TABLE)
    store.put_descriptor(TABLE.table_id, 1, TABLE.to_wire())
    for lsn, (at, heat) in enumerate(ROWS, 1):
        image = {AT: at} if heat is None else {AT: at, HEAT: heat}
        change = RowChange(ChangeKind.INSERT, 3, 1, (at,), image, {}, (0,))
        store.change(TABLE, change, lsn, 0, None)
    store.commit(LogPosition(9, lsn=len(ROWS)))


@pytest.fixture
def sqlite(tmp_path: Path) -> Iterator[SqliteStore]:
    made = SqliteStore(tmp_path / "node.db", cache_mb=1)
    fill(made)
    yield made
    made.close()


@pytest.fixture(params=["sqlite", "memory"])
def store(request: pytest.FixtureRequest, sqlite: SqliteStore) -> AnyStore:
    if request.param == "sqlite":
        return sqlite
    memory = MemoryStore()
    fill(memory)
    return memory


def check(store: AnyStore) -> CheckReport:
    (report,) = reports_of(store, (3,))
    return report


def test_rows_and_entries_stand_behind_all_numbers(store: AnyStore) -> None:
    with store.open_snapshot() as snapshot:

        def keys(low: Stored | None, high: Stored | None) -> list[Stored]:
            bounds = (None if low is None else (low,), None if high is None else (high,))
            return [key[0] for key, _ in snapshot.scan(TABLE, *bounds, rows_max=9)]

        assert keys(None, None) == [-math.inf, -1.0, 0.5, math.inf, NAN]
        assert (keys(0.5, NAN), keys(NAN, None)) == ([0.5, math.inf], [NAN])
        by_heat = [key[0] for key, _ in snapshot.get_by(TABLE, BY_HEAT, (), rows_max=9)]
        assert by_heat == [NAN, 0.5, -math.inf, math.inf, -1.0]
        found = [key[0] for key, _ in snapshot.get_by(TABLE, BY_HEAT, (NAN,), rows_max=9)]
        assert found == [-math.inf, math.inf]
        above = snapshot.get_range(TABLE, BY_HEAT, (1.6,), (NAN,), rows_max=9)
        assert [key[0] for key, _ in above] == [0.5]
        made = [key[0] for key, _ in snapshot.get_by(TABLE, COMPUTED, (NAN,), rows_max=9)]
        assert made == [-math.inf, 0.5, math.inf]


def test_such_a_table_is_sound(store: AnyStore) -> None:
    report = check(store)
    assert (report.findings, report.findings_total, report.rows) == ((), 0, 5)


@pytest.mark.parametrize("text", ["nan", "Infinity", "1.5", ""])
def test_no_other_text_is_a_double(sqlite: SqliteStore, text: str) -> None:
    sqlite._connection.execute("UPDATE t3 SET c2 = ? WHERE c1 = -1.0", (text,))
    assert (1, HEAT) in {(condition, e) for condition, e, _, _ in check(sqlite).findings}
