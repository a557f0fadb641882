"""Goal: a reader sees one commit and nothing else, from any thread, whatever the writer does.

Method: snapshots opened before, between and after commits; threads that read while one writes.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from threading import Event, Thread
from typing import Any

import apsw
import pytest

from leasehold.adapters.sqlite.store import SqliteStore
from leasehold.catalog.descriptor import Descriptor
from leasehold.catalog.elements import Column, Index
from leasehold.catalog.states import State
from leasehold.model.errors import OutOfRange, UnknownTable
from leasehold.model.ids import genid
from leasehold.model.ports import StoreSnapshot
from leasehold.model.records.log import ChangeKind, LogPosition, RowChange
from leasehold.values.types import Type
from tests.support.descriptors import with_state
from tests.support.memory_store.store import MemoryStore

PLACE, NUMBER, COLOUR, SIZE, BY_COLOUR = 1, 2, 3, 4, 5
CARS = Descriptor(
    3,
    "cars",
    1,
    (
        Column(PLACE, "place", Type("text"), False),
        Column(NUMBER, "number", Type("bigint"), False),
        Column(COLOUR, "colour", Type("text")),
        Column(SIZE, "size", Type("bigint")),
    ),
    (PLACE, NUMBER),
    (Index(BY_COLOUR, "by_colour", (COLOUR, SIZE)),),
    6,
    since_lsn=1,
)
ROWS = [
    ("a", 1, "red", 5),
    ("a", 2, None, 4),
    ("a", 10, "blue", None),
    ("b", 1, "red", 3),
    ("c", 3, "red", 5),
]


def put(store: SqliteStore | MemoryStore, row: tuple[Any, ...], lsn: int, kind: ChangeKind) -> None:
    image = {e: v for e, v in zip((PLACE, NUMBER, COLOUR, SIZE), row, strict=True) if v is not None}
    before = {} if kind is ChangeKind.INSERT else {0: genid(lsn - 1, 0)}
    change = RowChange(kind, CARS.table_id, 1, row[:2], image, before, (0,))
    store.change(CARS, change, lsn, 0, None)


def backfill(store: SqliteStore | MemoryStore) -> None:
    store.begin()
    store.prepare(CARS)
    store.put_descriptor(CARS.table_id, 1, CARS.to_wire())
    for lsn, row in enumerate(ROWS, 1):
        put(store, row, lsn, ChangeKind.INSERT)
    store.commit(LogPosition(3, lsn=len(ROWS)))


@pytest.fixture
def store(tmp_path: Path) -> Iterator[SqliteStore]:
    made = SqliteStore(tmp_path / "node.db", cache_mb=1)
    backfill(made)
    yield made
    made.close()


@pytest.fixture(params=["sqlite", "memory"])
def snapshot(request: pytest.FixtureRequest, store: SqliteStore) -> Iterator[StoreSnapshot]:
    memory = MemoryStore()
    backfill(memory)
    opened: StoreSnapshot = (store if request.param == "sqlite" else memory).open_snapshot()
    yield opened
    opened.close()


def keys(found: Iterator[tuple[Any, Any]]) -> list[Any]:
    return [key for key, _ in found]


def test_scan_takes_half_open_ranges_of_prefixes(snapshot: StoreSnapshot) -> None:
    every = [row[:2] for row in ROWS]
    assert keys(snapshot.scan(CARS, None, None, rows_max=99)) == every
    assert keys(snapshot.scan(CARS, None, None, rows_max=2)) == every[:2]
    assert keys(snapshot.scan(CARS, ("a",), ("b",), rows_max=99)) == every[:3]
    assert keys(snapshot.scan(CARS, ("a", 2), ("c",), rows_max=99)) == every[1:4]
    assert keys(snapshot.scan(CARS, ("a", 3), ("b", 1), rows_max=99)) == [("a", 10)]
    assert keys(snapshot.scan(CARS, ("b",), None, rows_max=99)) == every[3:]
    ((_, row),) = snapshot.scan(CARS, ("a", 2), ("a", 3), rows_max=99)
    assert row == ({PLACE: "a", NUMBER: 2, SIZE: 4}, {0: genid(2, 0)}, 2)


def test_get_by_finds_prefixes_and_nulls_in_index_order(snapshot: StoreSnapshot) -> None:
    def found(*values: Any, rows_max: int = 99) -> list[Any]:
        return keys(snapshot.get_by(CARS, BY_COLOUR, values, rows_max=rows_max))

    assert found("red") == [("b", 1), ("a", 1), ("c", 3)]
    assert found("red", 5) == [("a", 1), ("c", 3)]
    assert found("red", rows_max=1) == [("b", 1)]
    assert found("blue", None) == [("a", 10)]
    assert found(None) == [("a", 2)]
    assert found("green") == []
    assert found() == [("a", 10), ("b", 1), ("a", 1), ("c", 3), ("a", 2)]


def test_an_index_that_is_not_public_is_not_read(store: SqliteStore) -> None:
    hidden = with_state(CARS, BY_COLOUR, State.WRITE_ONLY)
    with store.open_snapshot() as snapshot, pytest.raises(AssertionError, match="not public"):
        list(snapshot.get_by(hidden, BY_COLOUR, ("red",), rows_max=1))


def test_a_snapshot_stays_at_its_commit(store: SqliteStore) -> None:
    before = store.open_snapshot()
    store.begin()
    wider = replace(CARS, version=2, columns=(*CARS.columns, Column(9, "x", Type("text"))))
    store.prepare(wider)
    store.put_descriptor(3, 2, wider.to_wire())
    put(store, ("z", 1, "red", 1), 6, ChangeKind.INSERT)
    during = store.open_snapshot()
    store.put_min_version(3, 2)
    store.commit(LogPosition(4, lsn=6))
    after = store.open_snapshot()
    for old in (before, during):
        assert old.position() == LogPosition(3, lsn=5)
        assert (old.lsn, old.min_version(3), old.newest("cars")) == (5, 1, CARS)
        assert old.get(CARS, ("z", 1)) is None
    assert (after.position().lsn, after.min_version(3), after.newest("cars")) == (6, 2, wider)
    assert after.get(wider, ("z", 1)) is not None
    assert before.newest("cars") == CARS  # not the newer catalog that was read in between
    with pytest.raises(UnknownTable):
        after.newest("bikes")
    for opened in (before, during, after):
        opened.close()


def test_a_step_of_one_table_is_read_alone(store: SqliteStore) -> None:
    """The others' descriptors stay the same objects; one that is put anew is another."""
    bikes = replace(CARS, table_id=4, name="bikes")
    wider = replace(CARS, version=2, columns=(*CARS.columns, Column(9, "x", Type("text"))))
    for lsn, changed in ((6, bikes), (7, wider), (8, replace(wider, columns=CARS.columns))):
        store.begin()
        store.prepare(changed)
        store.put_descriptor(changed.table_id, changed.version, changed.to_wire())
        store.commit(LogPosition(lsn - 2, lsn=lsn))
        with store.open_snapshot() as snapshot:
            assert snapshot.newest(changed.name) == changed
            if lsn == 6:
                kept = snapshot.newest("cars"), snapshot.newest("bikes")
            else:
                assert snapshot.versions(3)[0] is kept[0]
                assert snapshot.newest("bikes") is kept[1]


def reads_catalog(store: SqliteStore) -> None:
    with store.open_snapshot() as snapshot:
        assert snapshot.tables()


def test_a_row_at_once_is_of_the_catalog_that_was_read_before(store: SqliteStore) -> None:
    def at_once(*key: Any) -> Any:
        return store.row_at_once("cars", lambda _: key)

    assert at_once("a", 1) is None, "nobody has read the catalog"
    reads_catalog(store)
    descriptor, values = at_once("a", 2)
    assert descriptor == CARS
    assert values[:4] == ("a", 2, None, 4)
    assert at_once("z", 1) == (CARS, None)
    assert store.row_at_once("bikes", lambda _: ("a", 1)) is None
    store.begin()
    put(store, ("z", 1, None, 8), 6, ChangeKind.INSERT)
    assert at_once("z", 1) == (CARS, None)
    store.commit(LogPosition(4, lsn=6))
    assert at_once("z", 1)[1][:4] == ("z", 1, None, 8)


def test_a_row_at_once_is_never_one_of_a_newer_catalog(store: SqliteStore) -> None:
    reads_catalog(store)
    store.begin()
    narrower = replace(CARS, version=2, columns=CARS.columns[:3])
    store.put_descriptor(3, 2, narrower.to_wire())
    assert store.row_at_once("cars", lambda _: ("a", 1)) is not None, "not yet"
    store.commit(LogPosition(4, lsn=6))
    assert store.row_at_once("cars", lambda _: ("a", 1)) is None
    with store.open_snapshot() as snapshot:
        assert snapshot.newest("cars") == narrower
    found = store.row_at_once("cars", lambda _: ("a", 1))
    assert found is not None
    assert found[0] == narrower
    connection = apsw.Connection(str(store.path))
    connection.execute("DROP TABLE t3")
    connection.close()
    assert store.row_at_once("cars", lambda _: ("a", 1)) is None


def test_what_a_key_is_refused_with_is_told_of_the_newest_version(store: SqliteStore) -> None:
    reads_catalog(store)

    def refused_then(_: Descriptor) -> Any:
        raise OutOfRange("for the type it had")

    assert store.row_at_once("cars", refused_then) is None


def test_a_brief_snapshot_stays_at_its_commit_and_leaves_the_connection_clean(
    store: SqliteStore,
) -> None:
    store.open_snapshot().close()
    with store.open_snapshot(brief=True) as brief:
        first = brief.reader
        with store.open_snapshot(brief=True) as other:
            assert other.reader is not first
            store.begin()
            put(store, ("z", 1, "red", 1), 6, ChangeKind.INSERT)
            put(store, ("c", 3, "blue", 1), 6, ChangeKind.UPDATE)
            store.commit(LogPosition(4, lsn=6))
            with pytest.raises(apsw.SQLError):
                brief.connection.execute("SELECT * FROM nothing")
            with pytest.raises(apsw.SQLError):
                brief.connection.execute("SELECT abs(-9223372036854775807 - 1)").fetchall()
            for old in (brief, other):
                assert (old.lsn, old.position().lsn) == (5, 5)
                assert old.get(CARS, ("z", 1)) is None
                assert keys(old.get_by(CARS, BY_COLOUR, ("blue",), rows_max=9)) == [("a", 10)]
    brief.close()
    with store.open_snapshot(brief=True) as again:
        assert again.reader is first
        assert again.lsn == 6
        assert again.get(CARS, ("z", 1)) is not None
    store.begin()
    store.commit(LogPosition(5, lsn=7))
    with store.open_snapshot() as whole:
        assert whole.reader is first
        assert whole.lsn == 7, "nothing of it has held the one before"


def test_closing_ends_open_scans_and_gives_the_connection_back_clean(store: SqliteStore) -> None:
    first = store.open_snapshot()
    scan = first.scan(CARS, None, None, rows_max=99)
    next(scan)
    first.close()
    first.close()
    store.begin()
    put(store, ("z", 1, "red", 1), 6, ChangeKind.INSERT)
    store.commit(LogPosition(4, lsn=6))
    with store.open_snapshot() as again:
        assert again.lsn == 6
        assert again.get(CARS, ("z", 1)) is not None
    with pytest.raises(AssertionError, match="closed"):
        first.get(CARS, ("z", 1))


@pytest.mark.parametrize("brief", [False, True])
def test_threads_read_whole_commits_while_one_writes(store: SqliteStore, brief: bool) -> None:
    """Each commit sets the size of two rows to its LSN; no reader may see them differ."""
    stop, has_read = Event(), Event()
    wrong: list[str] = []
    seen: set[int] = set()

    def read() -> None:
        try:
            while not stop.is_set():
                with store.open_snapshot(brief=brief) as snapshot:
                    rows = [snapshot.get(CARS, ("t", number)) for number in (1, 2)]
                    by_index = list(snapshot.get_by(CARS, BY_COLOUR, ("tint",), rows_max=9))
                    sizes = {row.values[SIZE] for row in rows if row is not None}
                    sizes |= {row.values[SIZE] for _, row in by_index}
                    if sizes not in (set(), {snapshot.lsn}) or len(by_index) not in (0, 2):
                        wrong.append(f"{sizes} at {snapshot.lsn}, {len(by_index)} entries")
                    seen.add(snapshot.lsn)
                    has_read.set()
        except Exception as error:  # noqa: BLE001 - told by the assertion below
            wrong.append(repr(error))

    threads = [Thread(target=read) for _ in range(3)]
    for thread in threads:
        thread.start()
    for lsn in range(10, 310):
        if lsn % 100 == 10:  # however busy the machine is, some are read beside the others
            has_read.clear()
            assert has_read.wait(timeout=30), wrong
        store.begin()
        for number in (1, 2):
            kind = ChangeKind.INSERT if lsn == 10 else ChangeKind.UPDATE
            put(store, ("t", number, "tint", lsn), lsn, kind)
        store.commit(LogPosition(lsn, lsn=lsn))
    while 309 not in seen and not wrong:
        has_read.clear()
        assert has_read.wait(timeout=30), wrong
    stop.set()
    for thread in threads:
        thread.join(timeout=30)
        assert not thread.is_alive()
    assert wrong == []
