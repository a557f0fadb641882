"""Rows as of an earlier LSN, on both stores: what is kept, for how long, and what it costs nothing
to leave out."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from leasehold.adapters.sqlite.layout import tables_aside, tables_of_rows
from leasehold.adapters.sqlite.store import SqliteStore
from leasehold.catalog.descriptor import Descriptor
from leasehold.catalog.elements import Column, Index
from leasehold.catalog.states import State
from leasehold.model.errors import NotCoherent, SnapshotTooOld, UnknownTable
from leasehold.model.ids import genid
from leasehold.model.records.log import ChangeKind, LogPosition, RowChange
from leasehold.values.types import Type
from tests.support.memory_store.store import MemoryStore

ID, A, BY_A = Column(1, "id", Type("bigint"), nullable=False), Column(2, "a", Type("integer")), 3
V1 = Descriptor(1, "t", 1, (ID, A), (1,), (Index(BY_A, "by_a", (2,)),), 4, since_lsn=1)
Store = SqliteStore | MemoryStore


class Written:
    """A store with table t; one call = one commit, at commit time LSN * 1 000 µs."""

    def __init__(self, store: Store, *, keep: bool = True) -> None:
        self.store = store
        self.lsn = 0
        self.newest = V1
        store.keep_rows(keep)
        self.publish(V1)

    def commit(self, work: Callable[[], None]) -> None:
        self.lsn += 1
        self.store.begin()
        work()
        self.store.put_commit_times([(self.lsn, self.lsn * 1_000)])
        self.store.commit(LogPosition(offset=self.lsn, lsn=self.lsn))

    def publish(self, descriptor: Descriptor) -> None:
        self.newest = replace(descriptor, since_lsn=self.lsn + 1)

        def work() -> None:
            self.store.prepare(self.newest)
            self.store.put_descriptor(1, descriptor.version, self.newest.to_wire())
            self.store.put_min_version(1, descriptor.version)

        self.commit(work)

    def put(self, *values: tuple[int, int | None]) -> None:
        """(id, a) in one commit; a None deletes."""

        def work() -> None:
            for position, (key, a) in enumerate(values):
                self._put(key, a, position)

        self.commit(work)

    def _put(self, key: int, a: int | None, position: int) -> None:
        row = self.store.row(self.newest, (key,))
        kind = ChangeKind.INSERT if row is None else ChangeKind.UPDATE
        image: dict[int, Any] | None = {1: key}
        if 2 in self.newest.by_id:
            image = {1: key, 2: a}
        if a is None:
            kind, image = ChangeKind.DELETE, None
        before = {} if row is None else row.genids
        locks = () if image is None else (0,)
        change = RowChange(kind, 1, self.newest.version, (key,), image, before, locks)
        self.store.change(self.newest, change, self.lsn, position, None)

    def seen(self, lsn: int) -> dict[int, Any]:
        """id → a, by a scan, compared with point reads and the index on the way."""
        with self.store.open_snapshot() as snapshot:
            past = snapshot.as_of(lsn)
            then = past.newest("t")
            found = {k[0]: row.values.get(2) for k, row in past.scan(then, None, None, rows_max=99)}
            for key, a in found.items():
                got = past.get(then, (key,))
                assert got is not None
                assert got.values.get(2) == a
            if then.index("by_a"):
                for a in set(found.values()):
                    by = past.get_by(then, BY_A, (a,), rows_max=99)
                    assert [k[0] for k, _ in by] == sorted(k for k, v in found.items() if v == a)
            return found

    def collect(self, before_lsn: int) -> None:
        self.commit(lambda: self.store.collect_rows(before_lsn * 1_000, self.lsn))

    def removed(self) -> int:
        steps = 0
        while self.store.remove_dead(2):
            steps += 1
        return steps


def made(kind: str, path: Path) -> Store:
    return SqliteStore(path / "store.db") if kind == "sqlite" else MemoryStore()


@pytest.fixture(params=["sqlite", "memory"])
def written(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Written]:
    store = made(request.param, tmp_path)
    yield Written(store)
    if isinstance(store, SqliteStore):
        store.close()


def test_a_row_is_read_as_it_was_at_each_lsn(written: Written) -> None:
    written.put((1, 10), (2, 20))  # 2
    written.put((1, 11))
    written.put((2, None), (3, 30))
    written.put((2, 22))  # 5
    assert [written.seen(lsn) for lsn in range(2, 6)] == [
        {1: 10, 2: 20},
        {1: 11, 2: 20},
        {1: 11, 3: 30},
        {1: 11, 2: 22, 3: 30},
    ]
    assert written.seen(1) == {}
    with pytest.raises(UnknownTable):
        written.seen(0)
    with pytest.raises(NotCoherent):
        written.seen(6)


def test_what_one_commit_makes_and_changes_again_was_never_there(written: Written) -> None:
    written.put((1, 10))
    written.put((1, 11), (1, 12), (2, 20), (2, None), (3, 30), (3, 31))
    assert written.seen(2) == {1: 10}
    written.put((1, 99), (3, 99))
    assert written.seen(3) == {1: 12, 3: 31}


def test_what_is_undone_was_never_there(written: Written) -> None:
    written.put((1, 10))
    store = written.store
    store.begin()
    store.savepoint()
    written.lsn = 3
    written._put(1, 11, 0)
    store.rollback_to()
    store.rollback()
    written.lsn = 2
    written.put((1, 12))
    written.put((1, 13))
    assert [written.seen(lsn)[1] for lsn in (2, 3, 4)] == [10, 12, 13]


def test_genids_are_those_of_then(written: Written) -> None:
    written.put((1, 10))
    written.put((1, 11))
    with written.store.open_snapshot() as snapshot:
        then = snapshot.as_of(2)
        row = then.get(then.newest("t"), (1,))
    assert row is not None
    assert (row.lsn, row.genids) == (2, {0: genid(2, 0)})


def test_below_the_floor_it_is_refused_and_leaves_the_file_bit_by_bit(written: Written) -> None:
    written.put((1, 10))
    for number in range(9):
        written.put((1, number))
    written.collect(8)
    assert written.seen(8) == {1: 5}
    with pytest.raises(SnapshotTooOld, match="before LSN 8"):
        written.seen(7)
    if isinstance(written.store, SqliteStore):
        left = "SELECT count(*) FROM h1"
        assert written.store._connection.execute(left).get == 9
        assert written.removed() == 3
        assert written.store._connection.execute(left).get == 3
    assert written.seen(9) == {1: 6}


def test_a_time_is_the_last_commit_at_or_before_it(written: Written) -> None:
    for number in range(4):
        written.put((1, number))  # LSNs 2 to 5
    with written.store.open_snapshot() as snapshot:
        found = [snapshot.lsn_at(us) for us in (999, 1_000, 2_999, 3_000, 99_000)]
        assert found == [0, 1, 2, 3, 5]
    written.collect(4)
    with written.store.open_snapshot() as snapshot:
        assert [snapshot.lsn_at(us) for us in (3_999, 4_000, 5_500)] == [0, 4, 5]


def test_a_dropped_column_is_read_as_of_a_time_at_which_it_was_there(written: Written) -> None:
    written.put((1, 10), (2, 20))
    written.put((2, 21))
    bare = replace(V1, version=2, columns=(ID,), indexes=())
    written.publish(bare)  # 4
    written.removed()
    assert written.seen(3) == {1: 10, 2: 21}
    assert written.seen(2) == {1: 10, 2: 20}
    written.put((2, 0))  # 5, without the column
    assert written.seen(3) == {1: 10, 2: 21}
    assert written.seen(4) == {1: None, 2: None}, "the version of then has no such column"
    written.collect(3)
    written.removed()
    assert written.seen(3) == {1: 10, 2: 21}
    written.collect(4)
    written.removed()
    if isinstance(written.store, SqliteStore):
        one = written.store._connection.execute
        assert one("SELECT count(c2) FROM t1").get == 0, "nobody can ask for it any more"
        assert one("SELECT count(*) FROM sqlite_schema WHERE name = 'x1_3'").get == 0


def test_a_dropped_table_is_read_as_of_a_time_at_which_it_was_there(written: Written) -> None:
    written.put((1, 10))
    written.publish(replace(V1, version=2, state=State.ABSENT))
    written.removed()
    assert written.seen(2) == {1: 10}
    written.put()
    written.collect(3)
    written.removed()
    if isinstance(written.store, SqliteStore):
        assert tables_of_rows(written.store._connection) == ()
        assert tables_of_rows(written.store._connection, "h") == ()


def test_before_a_truncate_nothing_can_be_read(written: Written) -> None:
    written.put((1, 10))
    written.put((1, 11))
    written.commit(lambda: written.store.truncate(1, written.lsn))  # 4
    written.put((1, 12))
    assert written.seen(4) == {}
    with pytest.raises(SnapshotTooOld, match="before LSN 4"):
        written.seen(3)
    written.removed()
    written.commit(lambda: written.store.truncate(1, written.lsn))
    written.removed()
    assert written.seen(6) == {}
    if isinstance(written.store, SqliteStore):
        assert tables_aside(written.store._connection) == ()


def test_switched_off_nothing_is_written_and_nothing_can_be_read(
    written: Written, tmp_path: Path
) -> None:
    written.put((1, 10))
    written.store.keep_rows(False)
    written.put((1, 11))
    written.put((1, 12))
    assert written.seen(4) == {1: 12}, "what is there now"
    with pytest.raises(SnapshotTooOld, match="LEASEHOLD_ROW_HISTORY_MS"):
        written.seen(3)
    if isinstance(written.store, SqliteStore):
        written.removed()
        one = written.store._connection.execute
        assert tables_of_rows(written.store._connection, "h") == ()
        assert one("SELECT count(*) FROM commit_times").get == 0
    written.store.keep_rows(True)
    written.put((1, 13))
    assert written.seen(4) == {1: 12}
    with pytest.raises(SnapshotTooOld, match="before LSN 4"):
        written.seen(3)


def test_the_past_is_there_after_a_restart_and_in_a_copy(tmp_path: Path) -> None:
    written = Written(SqliteStore(tmp_path / "store.db"))
    written.put((1, 10))
    written.put((1, 11))
    assert isinstance(written.store, SqliteStore)
    written.store._connection.execute("VACUUM INTO ?", (str(tmp_path / "copy.db"),))
    written.store.close()
    for name in ("store.db", "copy.db"):
        written.store = SqliteStore(tmp_path / name)
        written.store.keep_rows(True)
        assert written.seen(2) == {1: 10}
        written.store.close()


def test_what_an_earlier_program_wrote_in_between_is_a_hole_that_is_noticed(
    tmp_path: Path,
) -> None:
    written = Written(SqliteStore(tmp_path / "store.db"))
    written.put((1, 10))
    written.put((1, 11))
    assert isinstance(written.store, SqliteStore)
    written.store.close()
    shutil.copy(tmp_path / "store.db", tmp_path / "earlier.db")
    written.store = SqliteStore(tmp_path / "earlier.db")
    written.store._connection.execute(
        "UPDATE position SET lsn = 4; UPDATE t1 SET c2 = 7, lsn = 4; UPDATE x1_3 SET k0 = 7"
    )
    written.store.close()
    written.store = SqliteStore(tmp_path / "earlier.db")
    written.store.keep_rows(True)
    assert written.seen(4) == {1: 7}
    for lsn in (2, 3):
        with pytest.raises(SnapshotTooOld, match="before LSN 4"):
            written.seen(lsn)
    written.store.close()
