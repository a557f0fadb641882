"""A store's past: what is kept can be asked for, what is collected is refused, and its left-overs
stay known."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import apsw
import msgpack
import pytest

from leasehold.adapters.sqlite.store import SqliteStore
from leasehold.catalog.descriptor import Descriptor
from leasehold.catalog.elements import Column, Index
from leasehold.model.budget import RangeLooks, RangeTooLong
from leasehold.model.errors import SnapshotTooOld
from leasehold.model.ports import StoreWriter
from leasehold.model.records.log import ChangeKind, LogPosition, RowChange
from leasehold.model.records.requests import ReadRange
from leasehold.values.types import Type
from tests.support.memory_store.store import MemoryStore
from tests.support.sqlite.lockstep import reports_of

ID = Column(1, "id", Type("bigint"), nullable=False)
A = Column(2, "a", Type("integer"))
V1 = Descriptor(1, "t", 1, (ID, A), (1,), next_element_id=3, since_lsn=1)
V2 = replace(V1, version=2, columns=(ID,), since_lsn=3)
V3 = replace(V2, version=3, name="u", since_lsn=5)


def put(store: StoreWriter, descriptor: Descriptor) -> None:
    store.begin()
    store.prepare(descriptor)
    store.put_descriptor(1, descriptor.version, descriptor.to_wire())
    store.put_min_version(1, descriptor.version)
    lsn = descriptor.since_lsn
    store.commit(LogPosition(offset=lsn, lsn=lsn))


def collect(store: StoreWriter, *ended: tuple[int, int]) -> None:
    store.begin()
    for version, until_lsn in ended:
        store.collect_descriptor(1, version, until_lsn)
    store.commit(LogPosition(offset=6, lsn=6))


def backfill(store: StoreWriter) -> None:
    """A row of version 1; then its column is dropped, and the table gets another name."""
    put(store, V1)
    store.begin()
    change = RowChange(ChangeKind.INSERT, 1, 1, (7,), {1: 7, 2: 70}, {}, (0,))
    store.change(V1, change, 2, 0, None)
    store.commit(LogPosition(offset=2, lsn=2))
    put(store, V2)
    put(store, V3)


@pytest.fixture(params=["sqlite", "memory"])
def store(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[SqliteStore | MemoryStore]:
    made = SqliteStore(tmp_path / "store.db") if request.param == "sqlite" else MemoryStore()
    backfill(made)
    yield made
    if isinstance(made, SqliteStore):
        made.close()


def test_every_kept_version_can_be_asked_for(store: SqliteStore | MemoryStore) -> None:
    snapshot = store.open_snapshot()
    found = [snapshot.descriptor_at("t", lsn) for lsn in (1, 2, 3, 4)]
    assert [d.version for d in found] == [1, 1, 2, 2]
    assert found[0].columns == (ID, A), "as it was, with what is dropped since"
    assert snapshot.descriptor_at("u", 5).version == 3
    snapshot.close()


def test_what_is_collected_is_refused_and_its_left_overs_are_known(
    store: SqliteStore | MemoryStore,
) -> None:
    before = store.open_snapshot()
    collect(store, (1, 3))
    with pytest.raises(SnapshotTooOld):
        store.open_snapshot().descriptor_at("t", 2)
    assert store.open_snapshot().descriptor_at("t", 3).version == 2
    assert before.descriptor_at("t", 2).version == 1, "a snapshot is of its own moment"
    before.close()
    (report,) = reports_of(store, (1,))
    assert report.findings_total == 0, "the dropped column's value is a known left-over"
    collect(store, (2, 5))
    assert store.open_snapshot().descriptor_at("u", 5).version == 3
    assert [body["version"] for body in store.catalog().descriptors] == [3]
    row = store.row(V3, (7,))
    assert row is not None
    assert 2 not in row.values, "and no part of a row"


def test_a_column_that_no_version_ever_named_is_still_found(tmp_path: Path) -> None:
    store = SqliteStore(tmp_path / "store.db")
    backfill(store)
    collect(store, (1, 3), (2, 5))
    store._connection.execute("ALTER TABLE t1 ADD COLUMN c99")
    (report,) = reports_of(store, (1,))
    assert [(condition, element) for condition, element, _, _ in report.findings] == [(7, 99)]
    store.close()


def test_collection_is_rolled_back_with_its_record(store: SqliteStore | MemoryStore) -> None:
    store.begin()
    store.collect_descriptor(1, 1, 3)
    store.rollback()
    assert store.open_snapshot().descriptor_at("t", 1).version == 1


def test_the_past_is_there_after_a_restart_and_in_a_copy(tmp_path: Path) -> None:
    store = SqliteStore(tmp_path / "store.db")
    backfill(store)
    collect(store, (1, 3))
    store._connection.execute("VACUUM INTO ?", (str(tmp_path / "copy.db"),))
    store.close()
    for path in (tmp_path / "store.db", tmp_path / "copy.db"):
        again = SqliteStore(path)
        with again.open_snapshot() as snapshot:
            assert snapshot.descriptor_at("t", 4).version == 2
            with pytest.raises(SnapshotTooOld):
                snapshot.descriptor_at("t", 2)
        (report,) = reports_of(again, (1,))
        assert report.findings_total == 0
        again.close()


def test_the_history_of_an_earlier_programs_store_begins_when_it_is_opened(
    tmp_path: Path,
) -> None:
    store = SqliteStore(tmp_path / "store.db")
    backfill(store)
    store.close()
    with apsw.Connection(str(tmp_path / "store.db")) as connection:
        connection.execute("DROP TABLE history; DROP TABLE collected")
        for version in (V1, V2, V3):
            body = msgpack.packb(replace(version, since_lsn=0).to_wire())
            connection.execute(
                "UPDATE descriptors SET body = ? WHERE version = ?", (body, version.version)
            )
    connection.close()
    again = SqliteStore(tmp_path / "store.db")
    with again.open_snapshot() as snapshot:
        assert snapshot.descriptor_at("u", 5).version == 3
        with pytest.raises(SnapshotTooOld, match="before LSN 5"):
            snapshot.descriptor_at("t", 4)
    again.close()


def test_a_version_that_an_earlier_program_wrote_in_between_hides_what_was_before_it(
    tmp_path: Path,
) -> None:
    store = SqliteStore(tmp_path / "store.db")
    put(store, V1)
    put(store, V2)
    put(store, replace(V3, since_lsn=0))
    store.begin()
    store.commit(LogPosition(offset=5, lsn=5))
    store.close()
    for _ in range(2):
        again = SqliteStore(tmp_path / "store.db")
        again.begin()
        again.commit(LogPosition(offset=6, lsn=6))
        with again.open_snapshot() as snapshot:
            assert snapshot.descriptor_at("u", 5).version == 3
            assert snapshot.descriptor_at("u", 6).version == 3, "opened again, it begins no later"
            with pytest.raises(SnapshotTooOld, match="before LSN 5"):
                snapshot.descriptor_at("t", 4)
        again.close()


@pytest.mark.parametrize("by", ["", "by_a"])
def test_t1_a_range_is_looked_through_no_further_than_it_may(tmp_path: Path, by: str) -> None:
    """It is a statement of the master's own transaction, which goes on."""
    table = replace(V1, indexes=(Index(3, "by_a", (2,)),), next_element_id=4)
    index_id = 3 if by else 0
    store = SqliteStore(tmp_path / "store.db")
    store.keep_rows(True)
    put(store, table)

    def write(keys: range, lsn: int, kind: ChangeKind = ChangeKind.INSERT) -> None:
        for position, key in enumerate(keys):
            change = RowChange(kind, 1, 1, (key,), {1: key, 2: key}, {}, (0,))
            store.change(table, change, lsn, position, None)

    store.begin()
    write(range(4_000), 2)
    store.commit(LogPosition(offset=2, lsn=2))
    store.begin()
    write(range(4_000, 4_001), 3)
    part = ReadRange(by, low=(0,), high=(4_000,))
    enough = RangeLooks(10**9)
    assert store.written_in(table, index_id, part, 2, enough) is None
    assert store.gone_from(table, index_id, part, 2, enough) is None
    used = 10**9 - enough.steps_left
    assert used > 4_000
    short = RangeLooks(used // 2)
    with pytest.raises(RangeTooLong):
        store.written_in(table, index_id, part, 2, short)
    with pytest.raises(RangeTooLong):
        store.written_in(table, index_id, part, 2, short)  # and no more of the next one
    assert store.written_in(table, index_id, ReadRange(by, low=(0,)), 2, enough) == (4_000,)
    write(range(4_001, 4_002), 3)
    store.commit(LogPosition(offset=3, lsn=3))
    assert store.row(table, (4_000,)) is not None, "what was open then is committed"
    assert store.row(table, (4_001,)) is not None
    store.close()
