"""Goal: a check costs in proportion to the rows, also once something is missing.

Method: SQLite's own steps are counted, for a table and for one of twice as many rows; all rows have
the same key in the index, so a look-up that ends before the row's own key goes through all of them.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from leasehold.adapters.sqlite.checking.findings import TableFindings
from leasehold.adapters.sqlite.checking.slice_check import SliceCheck
from leasehold.adapters.sqlite.checking.table_check import TableCheck
from leasehold.adapters.sqlite.store import SqliteStore
from leasehold.catalog.descriptor import Descriptor
from leasehold.catalog.elements import Column, Index
from leasehold.model.records.log import ChangeKind, CheckSlice, LogPosition, RowChange
from leasehold.values.types import Type

NUMBER, SAME, BY_SAME = 1, 2, 3
TABLE = Descriptor(
    1,
    "t",
    1,
    (Column(NUMBER, "n", Type("integer"), False), Column(SAME, "same", Type("integer"))),
    (NUMBER,),
    (Index(BY_SAME, "by_same", (SAME,)),),
    10,
)
STEPS_AT_ONCE = 10


def filled(path: Path, rows: int) -> SqliteStore:
    store = SqliteStore(path, cache_mb=1)
    store.begin()
    store.prepare(TABLE)
    store.put_descriptor(1, 1, TABLE.to_wire())
    for number in range(rows):
        image = {NUMBER: number, SAME: 7}
        change = RowChange(ChangeKind.INSERT, 1, 1, (number,), image, {}, (0,))
        store.change(TABLE, change, 1, 0, None)
    store.commit(LogPosition(1, lsn=1))
    store._connection.execute(f"DELETE FROM x1_{BY_SAME} WHERE p0 = {rows // 2}")
    return store


def counted(path: Path, rows: int, *, sliced: bool) -> tuple[int, TableFindings]:
    """SQLite's steps for a check, in units of STEPS_AT_ONCE, and what it found."""
    store, steps = filled(path, rows), 0

    def step() -> bool:
        nonlocal steps
        steps += 1
        return False

    with store.open_snapshot() as snapshot:
        snapshot.connection.set_progress_handler(step, STEPS_AT_ONCE)
        about = (snapshot.connection, (TABLE,), 1, frozenset[int](), 1)
        if sliced:
            found, _ = SliceCheck(*about, CheckSlice(0, (), 1_000_000)).run_slice()
        else:
            found = TableCheck(*about, repairs_max=10).run()
        snapshot.connection.set_progress_handler(None, 0)
    store.close()
    return steps, found


@pytest.mark.parametrize("sliced", [False, True], ids=["whole", "slice"])
def test_missing_entries_of_equal_keys_are_found_in_proportion_to_the_rows(
    tmp_path: Path, sliced: bool
) -> None:
    once, found = counted(tmp_path / "once.db", 500, sliced=sliced)
    assert {f[:3] for f in found.findings} == {(4, BY_SAME, (250,))}
    twice, _ = counted(tmp_path / "twice.db", 1_000, sliced=sliced)
    assert once > 100, "steps are counted"
    assert twice < 2.5 * once, (once, twice)


def test_rows_are_counted_in_steps_that_can_be_interrupted(tmp_path: Path) -> None:
    """⚠ SQLite counts a table in one step unless there is a condition."""
    rows, steps = 500, 0
    store = filled(tmp_path / "a.db", rows)

    def step() -> bool:
        nonlocal steps
        steps += 1
        return False

    with store.open_snapshot() as snapshot:
        check = TableCheck(snapshot.connection, (TABLE,), 1, frozenset(), 1)
        snapshot.connection.set_progress_handler(step, STEPS_AT_ONCE)
        assert check._rows_of("t1") == rows
        snapshot.connection.set_progress_handler(None, 0)
    store.close()
    assert steps * STEPS_AT_ONCE >= rows
