"""What is dead leaves the file bit by bit, and nothing else does."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from leasehold.adapters.sqlite.layout import entries_tables, physical_columns, tables_aside
from leasehold.adapters.sqlite.store import SqliteStore
from leasehold.catalog.descriptor import Descriptor, from_wire
from leasehold.catalog.edits import Edit, Kind, apply_edits, make_body
from leasehold.catalog.elements import Column, Index, Missing
from leasehold.catalog.states import State
from leasehold.model.errors import SnapshotTooOld
from leasehold.model.records.log import ChangeKind, LogPosition, RowChange
from leasehold.values.types import Type

ROWS = 25
KEY, A, B, BY_A = 1, 2, 3, 4
INTEGER = Type("integer")


def table(*, composite: bool) -> Descriptor:
    return Descriptor(
        1,
        "t",
        1,
        (Column(KEY, "id", INTEGER), Column(A, "a", INTEGER), Column(B, "b", INTEGER)),
        (KEY, B) if composite else (KEY,),
        (Index(BY_A, "by_a", (A,)),),
        next_element_id=5,
    )


class Filled:
    """A store with rows, and descriptors put one after the other."""

    def __init__(self, path: Path, *, composite: bool) -> None:
        self.store = SqliteStore(path / "store")
        self.newest = table(composite=composite)
        self.lsn = 0
        self.put(self.newest)
        for number in range(ROWS):
            key = (number, number) if composite else (number,)
            image = {KEY: number, A: number % 5, B: number}
            change = RowChange(ChangeKind.INSERT, 1, 1, key, image, {}, (0,))
            self.commit(lambda c=change: self.store.change(self.newest, c, self.lsn, 0, None))

    def commit(self, work: Any) -> None:
        self.lsn += 1
        self.store.begin()
        work()
        self.store.commit(LogPosition(offset=self.lsn, lsn=self.lsn))

    def put(self, descriptor: Descriptor, *, fenced: bool = True) -> None:
        def write() -> None:
            self.store.prepare(descriptor)
            self.store.put_descriptor(1, descriptor.version, descriptor.to_wire())
            if fenced:
                self.store.put_min_version(1, descriptor.version)

        self.commit(write)
        self.newest = descriptor

    def drop(self, *element_ids: int, fenced: bool = True) -> None:
        elements = [self.newest.element(e) for e in element_ids]
        kinds = {Column: Kind.COLUMN, Index: Kind.INDEX}
        edits = [
            Edit(kinds[type(e)], e.element_id, make_body(e), None)
            for e in elements
            if e is not None
        ]
        self.put(apply_edits(self.newest, tuple(edits)), fenced=fenced)

    def drop_table(self, *, fenced: bool = True) -> None:
        body = make_body(self.newest)
        gone = {**body, "state": State.ABSENT.label}
        self.put(apply_edits(self.newest, (Edit(Kind.TABLE, 0, body, gone),)), fenced=fenced)

    def remove(self, rows_max: int = 10) -> int:
        """Steps until nothing is left to do."""
        steps = 1
        while self.store.remove_dead(rows_max):
            steps += 1
        return steps

    def one(self, text: str) -> Any:
        return self.store._connection.execute(text).get

    def clean(self) -> bool:
        self.store.check(b"c", (1,), ())
        reports: list[Any] = []
        while not reports:
            reports.extend(self.store.checked())
        assert not reports[0].error, reports[0].error
        return bool(reports[0].findings_total == 0)


@pytest.fixture(params=[False, True], ids=["rowid", "composite"])
def filled(request: pytest.FixtureRequest, tmp_path: Path) -> Any:
    made = Filled(tmp_path, composite=request.param)
    yield made
    made.store.close()


def test_a_dead_column_is_emptied_in_pieces(filled: Filled) -> None:
    filled.drop(BY_A, A)
    assert filled.one("SELECT count(c2) FROM t1") == ROWS
    assert filled.remove() > ROWS // 10
    assert filled.one("SELECT count(c2) FROM t1") == 0
    assert filled.one("SELECT count(c3) FROM t1") == ROWS, "a living column was touched"
    assert filled.clean()


def test_dead_entries_and_their_table_go(filled: Filled) -> None:
    filled.drop(BY_A)
    filled.remove()
    assert entries_tables(filled.store._connection, 1) == ()
    assert filled.one("SELECT count(c2) FROM t1") == ROWS
    assert filled.clean()


def test_a_dropped_table_goes_whole(filled: Filled) -> None:
    filled.drop_table()
    filled.remove()
    assert physical_columns(filled.store._connection, "t1") == ()
    assert entries_tables(filled.store._connection, 1) == ()


@pytest.mark.parametrize("removed_before", [True, False])
def test_a_forgotten_table_leaves_nothing(filled: Filled, removed_before: bool) -> None:
    """Each node removes what is dead at its own pace: one that had not come to it does so after,
    and after a restart."""
    filled.store.keep_rows(True)
    filled.drop_table()
    version = filled.newest.version
    filled.commit(lambda: filled.store.collect_descriptor(1, version - 1, filled.lsn - 1))
    if removed_before:
        filled.remove()
    filled.commit(lambda: filled.store.put_job(7, {"id": 7}))

    def forget() -> None:
        filled.store.forget_table(1)
        filled.store.forget_job(7)

    filled.commit(forget)
    kept = filled.store.catalog()
    assert (list(kept.descriptors), dict(kept.min_versions), list(kept.jobs)) == ([], {}, [])
    path = filled.store.path
    filled.store.close()
    filled.store = SqliteStore(path)
    filled.remove()
    connection = filled.store._connection
    for name in ("t1", "h1"):
        assert physical_columns(connection, name) == ()
    assert entries_tables(connection, 1) == ()
    for name in ("descriptors", "min_versions", "collected", "removed", "row_counts"):
        assert filled.one(f"SELECT count(*) FROM {name}") == 0, name
    assert filled.one("SELECT count(*) FROM row_history") == 0
    with pytest.raises(SnapshotTooOld):
        filled.store.open_snapshot().descriptor_at("t", 2)


def test_a_truncated_table_is_empty_at_once_and_its_pages_go_in_pieces(filled: Filled) -> None:
    reader = filled.store.open_snapshot()
    filled.commit(lambda: filled.store.truncate(1, filled.lsn))
    assert filled.clean()
    assert filled.one("SELECT count(*) FROM t1") == filled.one(f"SELECT count(*) FROM x1_{BY_A}")
    kept = filled.one("SELECT count(*) FROM t1"), len(tables_aside(filled.store._connection))
    assert kept == (0, 2), "rows and entries are set aside"
    with filled.store.open_snapshot() as now:
        assert list(now.scan(filled.newest, None, None, rows_max=ROWS)) == []
    assert len(list(reader.scan(filled.newest, None, None, rows_max=ROWS))) == ROWS
    found = reader.get_by(filled.newest, BY_A, (2,), rows_max=ROWS)
    assert len(list(found)) == ROWS // 5, "an older snapshot goes on seeing what was there"
    assert filled.remove() > 2 * ROWS // 10
    assert len(list(reader.scan(filled.newest, None, None, rows_max=ROWS))) == ROWS
    reader.close()
    assert tables_aside(filled.store._connection) == ()


def test_a_key_that_was_truncated_is_free_at_once(filled: Filled) -> None:
    key = (3,) * len(filled.newest.primary_key)
    image = {KEY: 3, A: 9, B: 3}
    change = RowChange(ChangeKind.INSERT, 1, 1, key, image, {}, (0,))

    def truncated() -> None:
        filled.store.truncate(1, filled.lsn)
        assert filled.store.row(filled.newest, key) is None
        filled.store.change(filled.newest, change, filled.lsn, 0, None)

    filled.commit(truncated)
    filled.remove()
    row = filled.store.row(filled.newest, key)
    assert row is not None
    assert row.values == image
    assert filled.one(f"SELECT count(*) FROM x1_{BY_A}") == 1
    assert filled.clean()


def test_truncated_twice_and_started_again_before_anything_is_removed(filled: Filled) -> None:
    filled.drop(BY_A)
    for _ in range(2):
        filled.commit(lambda: filled.store.truncate(1, filled.lsn))
    path = filled.store.path
    filled.store.close()
    filled.store = SqliteStore(path)
    assert len(tables_aside(filled.store._connection)) == 3
    filled.remove()
    assert tables_aside(filled.store._connection) == ()
    assert filled.one("SELECT count(*) FROM t1") == 0
    assert filled.clean()


def test_a_truncation_rolled_back_leaves_every_row(filled: Filled) -> None:
    filled.store.begin()
    filled.store.truncate(1, 99)
    filled.store.rollback()
    assert filled.one("SELECT count(*) FROM t1") == ROWS
    assert filled.store.row(filled.newest, (3,) * len(filled.newest.primary_key)) is not None
    assert filled.clean()


def test_what_a_version_in_use_names_stays(filled: Filled) -> None:
    """D5: until the fence somebody may still read it under the version before."""
    filled.drop(BY_A, A, fenced=False)
    filled.remove()
    assert filled.one("SELECT count(c2) FROM t1") == ROWS
    assert entries_tables(filled.store._connection, 1) == (BY_A,)
    filled.drop_table(fenced=False)
    filled.remove()
    assert physical_columns(filled.store._connection, "t1")


def test_a_restart_goes_on_and_looks_through_no_column_twice(filled: Filled) -> None:
    filled.drop(BY_A, A)
    filled.store.remove_dead(10)
    path = filled.store.path
    filled.store.close()
    filled.store = SqliteStore(path)
    assert filled.remove() > 1
    assert filled.one("SELECT count(c2) FROM t1") == 0
    filled.store.close()
    filled.store = SqliteStore(path)
    assert filled.remove() == 1


def test_each_version_is_read_out_once(filled: Filled, monkeypatch: pytest.MonkeyPatch) -> None:
    """What is dead is looked for after every step of a job, among all versions that are kept."""
    read: list[int] = []

    def counted(body: Any) -> Descriptor:
        read.append(body["version"])
        return from_wire(body)

    monkeypatch.setattr("leasehold.adapters.sqlite.catalog.from_wire", counted)
    for number in range(20):
        filled.put(
            replace(
                filled.newest,
                version=filled.newest.version + 1,
                columns=(*filled.newest.columns, Column(10 + number, f"n{number}", INTEGER)),
                next_element_id=11 + number,
            )
        )
        filled.remove()
    assert read.count(filled.newest.version) == 1
    assert len(read) <= 21 + 1, "those of before are known"


def test_a_version_that_was_rolled_back_is_not_remembered(filled: Filled) -> None:
    """Its number is given again, to another one."""
    store, before = filled.store, filled.newest
    store.begin()
    with_a = replace(before, version=2)
    store.put_descriptor(1, 2, with_a.to_wire())
    store.put_min_version(1, 2)
    assert store._tables.dead_elements(1) == frozenset()
    store.rollback()
    filled.drop(BY_A, A)
    assert filled.newest.version == 2
    assert store._tables.dead_elements(1) == {BY_A, A}


VALUES_AT_ONCE = [7, -(2**63), 0.1, -0.0, 5e-324, float("inf"), "NaN", "it's; --", "", b"", b"\0'"]


@pytest.mark.parametrize("value", VALUES_AT_ONCE, ids=repr)
def test_a_column_comes_with_a_value_in_every_row(filled: Filled, value: Any) -> None:
    """None of them is touched, but for a value that SQLite reads otherwise than it was said; a
    new row has what its image says."""
    new, key = 5, (99,) * len(filled.newest.primary_key)
    missing = Missing(2, value, at_once=True)
    column = Column(new, "n", INTEGER, True, value, State.DELETE_ONLY, missing=missing)
    before = filled.one("SELECT total_changes()")
    filled.put(replace(filled.newest, version=2, columns=(*filled.newest.columns, column)))
    repeated = filled.one("SELECT total_changes()") - before
    assert repeated < ROWS or repr(value) == "-0.0"
    found = filled.store._connection.execute(f"SELECT DISTINCT quote(c{new}) FROM t1").fetchall()
    assert len(found) == 1
    filled.store.keep_rows(True)
    for image in ({KEY: 99, A: 1, B: 99, new: value}, {KEY: 99, A: 1, B: 99}):
        kind = ChangeKind.UPDATE if filled.store.row(filled.newest, key) else ChangeKind.INSERT
        genids = {0: filled.lsn << 20} if kind is ChangeKind.UPDATE else {}
        change = RowChange(kind, 1, 2, key, image, genids, (0,))
        filled.commit(lambda c=change: filled.store.change(filled.newest, c, filled.lsn, 0, None))
        row = filled.store.row(filled.newest, key)
        assert row is not None
        assert repr(sorted(row.values.items())) == repr(sorted(image.items()))
    old = filled.store.row(filled.newest, (3,) * len(key))
    assert old is not None
    assert repr(old.values[new]) == repr(value)


def test_a_dead_column_leaves_its_value_to_no_new_row(filled: Filled) -> None:
    new, key = 5, (99,) * len(filled.newest.primary_key)
    missing = Missing(2, "gone", at_once=True)
    column = Column(new, "n", Type("text"), True, "gone", State.DELETE_ONLY, missing=missing)
    filled.put(replace(filled.newest, version=2, columns=(*filled.newest.columns, column)))
    filled.drop(new)
    filled.remove()
    change = RowChange(ChangeKind.INSERT, 1, 3, key, {KEY: 99, A: 1, B: 99}, {}, (0,))
    filled.commit(lambda: filled.store.change(filled.newest, change, filled.lsn, 0, None))
    assert filled.one(f"SELECT count(c{new}) FROM t1") == 0
    assert filled.clean()
