"""Goal: a writer's promises at the edges: crash, second writer, foreign file, contradiction.

Method: each test brings about one situation on a real file and looks at what is said or left.
"""

from __future__ import annotations

import subprocess
import sys
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Final

import apsw
import pytest

from leasehold.adapters.sqlite import layout
from leasehold.adapters.sqlite.layout import (
    LAYOUT_VERSION,
    LEVEL,
    LEVEL_LAYOUT,
    TIMES,
    history_name,
    sqlite_errors,
    stored_layout,
)
from leasehold.adapters.sqlite.store import CACHE_MB, SqliteStore
from leasehold.catalog.descriptor import Descriptor
from leasehold.catalog.elements import Column, Index, Missing
from leasehold.catalog.states import State
from leasehold.model.errors import ConfigurationError, StoreCorrupted, StoreUnwritable
from leasehold.model.ids import genid, request_id
from leasehold.model.keys import Key
from leasehold.model.ports import Row
from leasehold.model.records.log import Attempt, Backfill, ChangeKind, LogPosition, RowChange
from leasehold.model.records.requests import Outcome
from leasehold.node.bootstrap import stored_position
from leasehold.values.types import Type
from tests.support.sqlite.flights_table import (
    CARRIER,
    GATE,
    NUMBER,
    PRICE,
    SEATS,
    TABLE,
    first_version,
    history,
)

FLIGHTS = replace(first_version(wide_key=False), since_lsn=1)

WAL_HEADER_BYTES: Final = 32
WAL_FRAME_BYTES: Final = 24 + 4096


def insert(number: int, seats: int | None = None) -> RowChange:
    image = {NUMBER: number} if seats is None else {NUMBER: number, SEATS: seats}
    return RowChange(ChangeKind.INSERT, TABLE, 1, (number,), image, {}, (0,))


@pytest.fixture
def store(tmp_path: Path) -> SqliteStore:
    made = SqliteStore(tmp_path / "node.db", cache_mb=1)
    made.begin()
    made.prepare(FLIGHTS)
    made.put_descriptor(TABLE, 1, FLIGHTS.to_wire())
    made.change(FLIGHTS, insert(1, 10), 5, 2, None)
    made.commit(LogPosition(1, lsn=5))
    return made


CHILD = """
import os, sys
from leasehold.adapters.sqlite.layout import sqlite_errors
from leasehold.adapters.sqlite.store import SqliteStore
from leasehold.model.records.log import LogPosition
from leasehold.model.records.requests import Outcome
from tests.unit.adapters.sqlite.test_writer import FLIGHTS, insert
store = SqliteStore(sys.argv[1], synchronous="full", cache_mb=1)
store.begin(); store.prepare(FLIGHTS); store.change(FLIGHTS, insert(1), 1, 0, None)
store.put_outcome(b"1", Outcome(1, 1, 1, 1, True)); store.commit(LogPosition(7, lsn=1))
store.begin(); store.change(FLIGHTS, insert(2), 2, 0, None)
store.put_outcome(b"2", Outcome(1, 2, 1, 2, True))
os.kill(os.getpid(), 9)
"""


def test_l6_after_a_kill_rows_outcomes_and_position_are_of_one_commit(tmp_path: Path) -> None:
    path = tmp_path / "node.db"
    root = Path(__file__).parents[4]
    done = subprocess.run(
        [sys.executable, "-c", CHILD, str(path)],
        cwd=root,
        env={"PYTHONPATH": f"{root}:{root / 'libs'}"},
        check=False,
        timeout=60,
        capture_output=True,
    )
    assert done.returncode == -9, done.stderr
    store = SqliteStore(path, cache_mb=1)  # the dead writer's lock is gone with it
    assert store.position() == LogPosition(7, lsn=1)
    assert store.row(FLIGHTS, (1,)) is not None
    assert store.row(FLIGHTS, (2,)) is None
    assert store.outcome(b"1") == Outcome(1, 1, 1, 1, True)
    assert store.outcome(b"2") is None
    store.close()


def test_l6_position_and_changes_are_one_commit_of_sqlite(store: SqliteStore) -> None:
    commits = []

    def count() -> bool:
        commits.append(1)
        return False

    store._connection.set_commit_hook(count)
    store.begin()
    store.change(FLIGHTS, insert(2), 6, 0, None)
    store.commit(LogPosition(2, lsn=6))
    assert len(commits) == 1
    assert store.position() == LogPosition(2, lsn=6)
    store.close()


def test_l10_what_masters_said_of_a_message_is_kept_with_the_position(store: SqliteStore) -> None:
    """By the writer, also in a file that a release made which knew nothing of it."""
    said = (Attempt("backfill", 3, 7, 1), Attempt("requests", 12, 0, 2))
    store._connection.execute("DROP TABLE attempts")
    store.close()
    store = SqliteStore(store.path)
    for attempts in (said, said[:1], said[:1], ()):
        position = LogPosition(2, lsn=6, attempts=attempts)
        store.begin()
        store.commit(position)
        assert store.position() == position
        store.close()
        store = SqliteStore(store.path)
        assert store.position() == position
    store.close()


def test_a_second_writer_is_refused_until_the_first_is_closed(store: SqliteStore) -> None:
    with pytest.raises(ConfigurationError, match="another writer has the store"):
        SqliteStore(store.path)
    store.close()
    SqliteStore(store.path).close()


@pytest.mark.parametrize("commits", [False, True])
def test_a_file_says_that_its_database_has_a_feature_level(tmp_path: Path, commits: bool) -> None:
    """A program that knows of none is not to go on in its log; one that is rolled back says
    nothing, and each later position says it again."""
    path = tmp_path / "node.db"
    store = SqliteStore(path, cache_mb=1)
    for offset in (1, 2):
        store.begin()
        store.commit(LogPosition(offset))
        assert stored_layout(path) < LEVEL_LAYOUT
    store.begin()
    store._tables.put_position(LogPosition(3, feature_level=9))
    if not commits:
        store.rollback()
        assert stored_layout(path) < LEVEL_LAYOUT
        store.begin()
    store.commit(LogPosition(4, feature_level=9))
    assert stored_layout(path) == LEVEL_LAYOUT
    store.close()
    store = SqliteStore(path, cache_mb=1)
    assert store.position().feature_level == 9
    store.close()


def test_a_program_that_knows_no_level_reads_the_files_that_have_none(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As release 0.1.0 does: it goes back to a file without a level, and refuses one that has
    one."""
    paths = tmp_path / "without.db", tmp_path / "with.db"
    for path, level in zip(paths, (0, 9), strict=True):
        store = SqliteStore(path, cache_mb=1)
        store.begin()
        store.commit(LogPosition(1, feature_level=level))
        store.close()
    monkeypatch.setattr(layout, "LAYOUT_VERSION", LEVEL_LAYOUT - 1)
    SqliteStore(paths[0], cache_mb=1).close()
    with pytest.raises(ConfigurationError, match=r"has layout 3, .* start a newer program"):
        SqliteStore(paths[1], cache_mb=1)


def test_a_newer_layout_and_a_foreign_file_are_refused(tmp_path: Path) -> None:
    newer, foreign, noise = (tmp_path / name for name in ("newer.db", "foreign.db", "noise.db"))
    SqliteStore(newer).close()
    connection = apsw.Connection(str(newer))
    connection.execute(f"PRAGMA user_version = {LAYOUT_VERSION + 1}")
    connection.close()
    connection = apsw.Connection(str(foreign))
    connection.execute("CREATE TABLE theirs (a)")
    connection.close()
    noise.write_bytes(b"no database at all, only text" * 100)
    with pytest.raises(ConfigurationError, match=f"layout {LAYOUT_VERSION + 1}"):
        SqliteStore(newer)
    with pytest.raises(ConfigurationError, match="not a store"):
        SqliteStore(foreign)
    with pytest.raises(StoreCorrupted, match="not a readable store"):
        SqliteStore(noise)
    with pytest.raises(ConfigurationError, match="normal or full"):
        SqliteStore(tmp_path / "x.db", synchronous="off")


@pytest.mark.parametrize("indexed", [False, True])
@pytest.mark.parametrize("kind", [ChangeKind.UPDATE, ChangeKind.DELETE, ChangeKind.BACKFILL])
def test_a_change_decided_on_other_genids_is_a_contradiction(
    store: SqliteStore, kind: ChangeKind, indexed: bool
) -> None:
    version = history(wide_key=False)[1] if indexed else FLIGHTS
    image = None if kind is ChangeKind.DELETE else {NUMBER: 1, SEATS: 3}
    locks = () if kind is ChangeKind.BACKFILL else (0,)
    store.begin()
    store.prepare(version)
    for key, seen in (((1,), {0: genid(5, 3)}), ((2,), {0: genid(5, 2)})):
        change = RowChange(kind, TABLE, version.version, key, image, seen, locks)
        with pytest.raises(StoreCorrupted, match="was decided on genids"):
            store.change(version, change, 6, 0, None)
    right = RowChange(kind, TABLE, version.version, (1,), image, {0: genid(5, 2)}, locks)
    store.change(version, right, 6, 0, None)
    store.rollback()
    store.close()


def test_an_insert_over_a_row_is_a_contradiction(store: SqliteStore) -> None:
    store.begin()
    with pytest.raises(StoreCorrupted, match="INSERT of"):
        store.change(FLIGHTS, insert(1), 6, 0, None)
    store.close()


def test_a_pair_without_a_place_is_a_contradiction(store: SqliteStore) -> None:
    change = RowChange(ChangeKind.INSERT, TABLE, 1, (2,), {NUMBER: 2, 99: 1}, {}, (0,))
    store.begin()
    with pytest.raises(StoreCorrupted, match=r"elements \[99\]"):
        store.change(FLIGHTS, change, 6, 0, None)
    store.close()


def test_genids_change_but_for_a_fill_and_the_lsn_always(store: SqliteStore) -> None:
    seen = {0: genid(5, 2)}
    backfill = RowChange(
        ChangeKind.BACKFILL, TABLE, 1, (1,), {NUMBER: 1, SEATS: 10, PRICE: 1.0}, seen, ()
    )
    store.begin()
    store.change(FLIGHTS, backfill, 6, 4, None)
    assert store.row(FLIGHTS, (1,)) == Row({NUMBER: 1, SEATS: 10, PRICE: 1.0}, seen, 6)
    update = RowChange(ChangeKind.UPDATE, TABLE, 1, (1,), {NUMBER: 1, PRICE: 2.0}, seen, (0,))
    store.change(FLIGHTS, update, 7, 4, None)
    assert store.row(FLIGHTS, (1,)) == Row({NUMBER: 1, PRICE: 2.0}, {0: genid(7, 4)}, 7)
    store.close()


def test_pairs_that_an_older_version_cannot_see_are_carried_along(store: SqliteStore) -> None:
    """T0: the image has every pair; a writer at version 1 must not take GATE away."""
    two = history(wide_key=False)[2]
    seen = {0: genid(5, 2)}
    store.begin()
    store.prepare(two)
    image = {NUMBER: 1, SEATS: 10, GATE: 4}
    store.change(two, RowChange(ChangeKind.UPDATE, TABLE, 3, (1,), image, seen, (0,)), 6, 0, None)
    assert store.row(FLIGHTS, (1,)) == Row(image, {0: genid(6, 0)}, 6)
    store.close()


def test_a_savepoint_undone_leaves_nothing_and_one_released_stays(store: SqliteStore) -> None:
    store.begin()
    store.savepoint()
    store.change(FLIGHTS, insert(2), 6, 0, None)
    store.savepoint()
    store.change(FLIGHTS, insert(3), 7, 0, None)
    store.put_outcome(b"3", Outcome(1, 7, 1, 7, True))
    store.rollback_to()
    assert store.row(FLIGHTS, (3,)) is None
    assert store.outcome(b"3") is None
    with pytest.raises(AssertionError, match="a savepoint is open"):
        store.commit(LogPosition(2))
    store.release()
    store.commit(LogPosition(2, lsn=6))
    with store.open_snapshot() as snapshot:
        assert snapshot.get(FLIGHTS, (2,)) is not None
        assert snapshot.get(FLIGHTS, (3,)) is None
    store.close()


@pytest.mark.parametrize("inner", [False, True])
def test_a_roll_back_takes_new_columns_and_versions_with_it(
    store: SqliteStore, inner: bool
) -> None:
    """The next column under the same version number may be another one."""
    text = Column(20, "first", Type("text"))
    number = Column(20, "other", Type("bigint"))
    first = replace(FLIGHTS, version=2, columns=(*FLIGHTS.columns, text))
    other = replace(FLIGHTS, version=2, columns=(*FLIGHTS.columns, number))
    store.begin()
    if inner:
        store.savepoint()
    store.prepare(first)
    store.put_descriptor(TABLE, 2, first.to_wire())
    image = {NUMBER: 2, 20: "x"}
    change = RowChange(ChangeKind.INSERT, TABLE, 2, (2,), image, {}, (0,))
    store.change(first, change, 6, 0, None)
    if inner:
        store.rollback_to()
        store.commit(store.position())
    else:
        store.rollback()
    assert len(store.catalog().descriptors) == 1
    store.begin()
    with pytest.raises(StoreCorrupted, match=r"elements \[20\]"):
        store.change(first, change, 6, 0, None)
    store.prepare(other)
    image_now = {NUMBER: 2, 20: 5}
    store.change(
        other, RowChange(ChangeKind.INSERT, TABLE, 2, (2,), image_now, {}, (0,)), 6, 0, None
    )
    assert store.row(other, (2,)) == Row(image_now, {0: genid(6, 0)}, 6)
    store.close()


def test_entries_fill_ignores_rows_that_are_gone_and_entries_that_are_there(
    store: SqliteStore,
) -> None:
    index = Index(30, "by_seats", (SEATS,), state=State.WRITE_ONLY)
    version = replace(FLIGHTS, version=2, indexes=(index,))
    store.begin()
    store.prepare(version)
    for number in range(2, 6):
        store.change(FLIGHTS, insert(number, number % 2 or None), 5 + number, 0, None)
    keys = ((1,), (2,), (77,), (2,), (3,))
    assert store.backfill(version, Backfill(TABLE, 2, 30, keys)) == 3
    assert store.backfill(version, Backfill(TABLE, 2, 30, keys)) == 0
    assert store.backfill(version, Backfill(TABLE, 2, 30, ())) == 0
    found = store._connection.execute(f"SELECT * FROM x{TABLE}_30").fetchall()
    assert found == [(1, 3), (10, 1), (b"", 2)]  # NULL sorts last
    store.close()


def test_entries_are_put_for_the_named_rows_alone(tmp_path: Path) -> None:
    """Keys of an earlier chunk are forgotten; a row that came since has no entry by them."""
    index = Index(30, "by_seats", (SEATS,), state=State.WRITE_ONLY)
    one = first_version(wide_key=True)
    two = replace(one, version=2, indexes=(index,))
    store = SqliteStore(tmp_path / "wide.db", cache_mb=1)
    store.begin()
    store.prepare(two)
    keys = [("AA", 1), ("AA", 2)]
    assert store.backfill(two, Backfill(TABLE, 2, 30, (keys[0],))) == 0
    for lsn, key in enumerate(keys, 1):
        image = {CARRIER: key[0], NUMBER: key[1], SEATS: 5}
        change = RowChange(ChangeKind.INSERT, TABLE, 1, key, image, {}, (0,))
        store.change(one, change, lsn, 0, None)
    assert store.backfill(two, Backfill(TABLE, 2, 30, (keys[1],))) == 1
    assert store._connection.execute(f"SELECT * FROM x{TABLE}_30").fetchall() == [(5, "AA", 2)]
    store.close()


@pytest.mark.parametrize("indexed", [False, True])
@pytest.mark.parametrize("wide", [False, True])
def test_a_column_is_filled_where_it_is_missing_and_nothing_else_is_touched(
    tmp_path: Path, *, wide: bool, indexed: bool
) -> None:
    """Rows that are gone, named twice or have the pair; genids and image LSN stay as they are."""
    one = first_version(wide_key=wide)
    gate = Column(GATE, "gate", Type("integer"), False, 9, State.WRITE_ONLY)
    gate = replace(gate, missing=Missing(2, 9))
    index = Index(30, "by_gate", (GATE, SEATS), state=State.WRITE_ONLY)
    two = replace(one, version=2, columns=(*one.columns, gate))
    two = replace(two, indexes=(index,)) if indexed else two
    store = SqliteStore(tmp_path / "store.db", cache_mb=1)
    store.begin()
    store.prepare(two)
    keys = [("AA", n) if wide else (n,) for n in range(1, 5)]
    for lsn, key in enumerate(keys, 1):
        image = {CARRIER: "AA", NUMBER: lsn, SEATS: 5} | ({GATE: 0} if lsn == 2 else {})
        version = two if lsn == 2 else one
        change = RowChange(ChangeKind.INSERT, TABLE, version.version, key, image, {}, (0,))
        store.change(version, change, lsn, 0, None)
    before = {key: store.row(two, key) for key in keys}
    gone = ("ZZ", 1) if wide else (77,)
    backfill = Backfill(TABLE, 2, GATE, (keys[2], gone, keys[0], keys[1], keys[0]))
    assert store.backfill(two, backfill) == 2
    assert store.backfill(two, backfill) == 0
    assert store.backfill(two, Backfill(TABLE, 2, GATE, ())) == 0
    for key, expected in zip(keys, (9, 0, 9, None), strict=True):
        row, was = store.row(two, key), before[key]
        assert row is not None
        assert was is not None
        assert row.values.get(GATE) == expected
        assert row == was._replace(values={**was.values, **({GATE: 9} if expected == 9 else {})})
    if indexed:
        found = store._connection.execute(f"SELECT k0, k1 FROM x{TABLE}_30").fetchall()
        assert sorted(found) == [(0, 5), (9, 5), (9, 5)]
    store.close()


def filled_by_image(wide: bool, indexed: bool) -> tuple[Descriptor, Backfill, list[Key]]:
    """Rows 1 to 3 get a pair under version 2, in which an index over it may be written."""
    gate = Column(GATE, "gate", Type("integer"), False, 9, State.WRITE_ONLY)
    index = Index(30, "by_gate", (GATE, SEATS), state=State.WRITE_ONLY)
    other = Index(31, "by_seats", (SEATS,))
    one = first_version(wide_key=wide)
    two = replace(one, version=2, columns=(*one.columns, gate))
    two = replace(two, indexes=(index, other) if indexed else (other,))
    keys: list[Key] = [("AA", n) if wide else (n,) for n in range(1, 5)]
    images = tuple({CARRIER: "AA", NUMBER: n, SEATS: 5, GATE: 10 * n} for n in (1, 2, 3))
    genids = tuple({0: genid(n, 0)} for n in (1, 2, 3))
    return two, Backfill(TABLE, 2, GATE, tuple(keys[:3]), images, genids), keys


@pytest.mark.parametrize("indexed", [False, True])
@pytest.mark.parametrize("wide", [False, True])
def test_a_fill_by_image_puts_pairs_and_entries_and_is_no_write_of_the_row(
    tmp_path: Path, *, wide: bool, indexed: bool
) -> None:
    two, backfill, keys = filled_by_image(wide, indexed)
    store = SqliteStore(tmp_path / "store.db", cache_mb=1)
    store.keep_rows(True)
    store.begin()
    store.prepare(two)
    for lsn, key in enumerate(keys, 1):
        image = {CARRIER: "AA", NUMBER: lsn, SEATS: 5}
        store.change(
            two, RowChange(ChangeKind.INSERT, TABLE, 2, key, image, {}, (0,)), lsn, 0, None
        )
    before = {key: store.row(two, key) for key in keys}
    assert store.backfill(two, backfill) == 3
    for number, key in enumerate(keys, 1):
        row, was = store.row(two, key), before[key]
        assert was is not None
        assert row == (was._replace(values=backfill.images[number - 1]) if number < 4 else was)
    assert store._connection.execute(f"SELECT count(*) FROM {history_name(TABLE)}").get == 0, (
        "nothing is past"
    )
    assert store._connection.execute(f"SELECT count(*) FROM x{TABLE}_31").get == 4
    if indexed:
        found = store._connection.execute(f"SELECT k0, k1 FROM x{TABLE}_30").fetchall()
        assert sorted(found, key=str) == [(10, 5), (20, 5), (30, 5), (b"", 5)]
    store.close()


@pytest.mark.parametrize("indexed", [False, True])
def test_a_fill_by_image_decided_on_other_genids_is_a_contradiction(
    tmp_path: Path, indexed: bool
) -> None:
    two, backfill, keys = filled_by_image(False, indexed)
    store = SqliteStore(tmp_path / "store.db", cache_mb=1)
    store.begin()
    store.prepare(two)
    for lsn, key in enumerate(keys, 1):
        image = {CARRIER: "AA", NUMBER: lsn, SEATS: 5}
        store.change(
            two, RowChange(ChangeKind.INSERT, TABLE, 2, key, image, {}, (0,)), lsn, 0, None
        )
    for wrong in (
        backfill._replace(genids=({0: genid(1, 0)}, {0: genid(7, 7)}, {0: genid(3, 0)})),
        backfill._replace(keys=(keys[0], (99,), keys[2])),
    ):
        store.savepoint()
        with pytest.raises(StoreCorrupted, match=rf"FILL of \({wrong.keys[1][0]},\)"):
            store.backfill(two, wrong)
        store.rollback_to()
    with pytest.raises(StoreCorrupted, match=r"elements \[98, 99\]"):
        store.backfill(
            two,
            backfill._replace(images=({**backfill.images[0], 99: 1, 98: 2}, *backfill.images[1:])),
        )
    store.close()


def test_outcomes_are_replaced_and_forgotten_oldest_first(store: SqliteStore) -> None:
    refused = Outcome(1, 0, 0, 50, False, "40001", "seen is not there", {"key": [1]})
    store.begin()
    ids = {ms: request_id(ms, bytes(10)) for ms in (30, 20, 10)}
    for ms, made in ids.items():  # decided in another order than that of their own times
        store.put_outcome(made, Outcome(1, 1, 1, 100 - ms, True, answer={"job": ms}))
    store.put_outcome(b"again", refused)
    store.put_outcome(b"again", refused._replace(attempt=2))
    assert store.outcome(b"again") == refused._replace(attempt=2)
    assert [each.decided_us for each in store.oldest_outcomes(3)] == [50, 70, 80]
    assert store.oldest_id() == ids[10]
    assert store.collect_outcomes(30_000, 1) == 1
    assert [store.outcome(ids[ms]) is None for ms in (10, 20, 30)] == [True, False, False]
    assert store.collect_outcomes(30_000, 10) == 1, "before, not at"
    assert store.outcome(ids[30]) is not None
    assert store.outcome(b"again") is not None
    assert store.collect_decided_outcomes(70, 10) == 1, "as records of earlier programs have it"
    assert store.outcome(b"again") is None
    store.close()


def test_the_index_by_decision_goes_when_it_is_no_longer_needed(tmp_path: Path) -> None:
    """At the first collection by the id horizon, or, if there is much in it, at the next start."""

    def has_index(store: SqliteStore) -> bool:
        found = "SELECT 1 FROM sqlite_schema WHERE name = 'outcomes_by_age'"
        return bool(store._connection.execute(found).fetchall())

    for count in (10, 10_001):
        store = SqliteStore(tmp_path / f"{count}.db", cache_mb=1)
        assert has_index(store)
        store.begin()
        for number in range(count):
            store.put_outcome(number.to_bytes(16, "big"), Outcome(1, 1, 1, number, True))
        store.collect_outcomes(1, 1)
        store.commit(LogPosition(lsn=1, id_horizon_us=1))
        assert has_index(store) == (count > 10_000)
        store.close()
        store = SqliteStore(tmp_path / f"{count}.db", cache_mb=1)
        assert not has_index(store)
        store.close()


def test_a_store_of_an_earlier_program_says_nothing_of_the_logs_time(tmp_path: Path) -> None:
    """Its position lacks four columns; a reader comes along with it, the writer adds them."""
    path = tmp_path / "node.db"
    store = SqliteStore(path, cache_mb=1)
    store.begin()
    store.commit(LogPosition(7, lsn=5, commit_us=9, decided_through={"requests": 3}))
    for column in (*TIMES, LEVEL):
        store._connection.execute(f"ALTER TABLE position DROP COLUMN {column}")
    expected = LogPosition(7, lsn=5, commit_us=9, decided_through={"requests": 3})
    with store.open_snapshot() as snapshot:
        assert snapshot.position() == expected
    store.close()
    store = SqliteStore(path, cache_mb=1)
    assert store.position() == expected
    after = expected._replace(closed_us=11, id_horizon_us=12, reset_us=13)
    store.begin()
    store.commit(after)
    store.close()
    store = SqliteStore(path, cache_mb=1)
    assert store.position() == after
    store.close()


def test_the_catalog_comes_back_as_it_was_put(store: SqliteStore) -> None:
    store.begin()
    store.put_job(4, {"id": 4, "state": "running", 7: [1, None]})
    store.put_min_version(TABLE, 1)
    store.put_ledger_run("run-9")
    position = LogPosition(9, 2, b"i", 3, b"d", 8, 77, {"requests": 5, "backfill": 2}, 6, 500)
    store.commit(position)
    store.close()
    again = SqliteStore(store.path)
    assert again.position() == position
    assert again.catalog() == (
        [FLIGHTS.to_wire()],
        {TABLE: 1},
        [{"id": 4, "state": "running", 7: [1, None]}],
        "run-9",
        [],
        0,
    )
    again.close()


def test_a_disk_that_is_full_is_said_and_what_was_applied_is_kept(store: SqliteStore) -> None:
    connection = store._connection
    connection.pragma("max_page_count", connection.pragma("page_count"))

    def backfill() -> None:
        store.begin()
        try:
            for number in range(2, 1_000):
                store.change(FLIGHTS, insert(number), number + 4, 0, None)
        except BaseException:  # as a master does
            store.rollback()
            raise

    with pytest.raises(StoreUnwritable, match="make room on its disk"), sqlite_errors(store.path):
        backfill()
    store.close()
    again = SqliteStore(store.path)
    assert again.position().lsn == 5
    with again.open_snapshot() as snapshot:
        assert [key for key, _ in snapshot.scan(FLIGHTS, (), None, rows_max=9)] == [(1,)]
    again.close()


def test_l6_nothing_is_committed_once_a_copying_has_failed(store: SqliteStore) -> None:
    store._checkpoints._failure = apsw.IOError("disk I/O error")
    store.begin()
    store.change(FLIGHTS, insert(2), 6, 0, None)
    with pytest.raises(StoreUnwritable, match="disk I/O error"), sqlite_errors(store.path):
        store.commit(LogPosition(2, lsn=6))
    store.rollback()
    assert store.position().lsn == 5
    store.close()


def test_the_writer_has_the_memory_that_was_set_and_a_reader_its_own(tmp_path: Path) -> None:
    for megabytes, of_a_reader in ((1, 1), (256, CACHE_MB)):
        with closing(SqliteStore(tmp_path / f"{megabytes}.db", cache_mb=megabytes)) as store:
            assert store._connection.pragma("cache_size") == -megabytes * 1024
            with closing(store.open_snapshot()) as snapshot:
                assert snapshot.connection.pragma("cache_size") == -of_a_reader * 1024


def test_a_store_of_an_earlier_release_knows_no_topics_of_the_queues(tmp_path: Path) -> None:
    """It is read as it is (by who looks whether it is far behind), and takes them from then on."""
    path = tmp_path / "node.db"
    store = SqliteStore(path, cache_mb=1)
    put_position(store, LogPosition(9, lsn=4, decided_through={"requests": 7}))
    store.close()
    connection = apsw.Connection(str(path))
    for column in ("lane_topics", *TIMES, LEVEL):
        connection.execute(f"ALTER TABLE position DROP COLUMN {column}")
    connection.close()
    before = LogPosition(9, lsn=4, decided_through={"requests": 7})
    assert stored_position(path) == before
    store = SqliteStore(path, cache_mb=1)
    assert store.position() == before
    after = before._replace(offset=10, queue_topics={"requests": "id"})
    put_position(store, after)
    store.close()
    assert stored_position(path) == after


def test_l6_a_store_whose_making_broke_off_begins_at_the_beginning(tmp_path: Path) -> None:
    """By a kill or a full disk, at each page that is written: whoever looks how far it is, and the
    writer that makes it, find a store that has applied nothing."""
    whole = tmp_path / "whole.db"
    store = SqliteStore(whole, cache_mb=1)
    wal = whole.with_name("whole.db-wal").read_bytes()
    made = whole.read_bytes()
    store.close()
    lengths = [0, *range(WAL_HEADER_BYTES, len(wal) + 1, WAL_FRAME_BYTES)]
    assert len(lengths) > 10
    for length in lengths:
        path = tmp_path / f"{length}.db"
        path.write_bytes(made)
        path.with_name(f"{path.name}-wal").write_bytes(wal[:length])
        assert stored_position(path) == LogPosition(), length
        SqliteStore(path, cache_mb=1).close()
        assert stored_position(path) == LogPosition(), length
    empty = tmp_path / "empty.db"
    empty.touch()
    assert stored_position(empty) == LogPosition()
    SqliteStore(empty, cache_mb=1).close()
    assert stored_position(empty) == LogPosition()


def put_position(store: SqliteStore, position: LogPosition) -> None:
    store.begin()
    store.commit(position)
