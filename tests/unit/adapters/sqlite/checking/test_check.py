"""Goal: `CHECK TABLE` finds each way in which a store can differ from its schema, and nothing else.

Method: a sound table is damaged behind the store's back, one harm at a time; the findings must name
condition, element and key, and agree with the definition (`consistency.py`) on the same pairs.
Harms that pairs cannot show (a wrong type, a genid from the future) are looked for by themselves.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import replace
from hashlib import blake2b
from pathlib import Path
from typing import Any

import apsw
import pytest

from leasehold.adapters.sqlite.checking import checker, table_check
from leasehold.adapters.sqlite.checking import checksum as sqlite_checksum
from leasehold.adapters.sqlite.checking.yielding import GivesWay
from leasehold.adapters.sqlite.store import SqliteStore
from leasehold.catalog.descriptor import Descriptor
from leasehold.catalog.elements import Column, Index
from leasehold.catalog.states import State
from leasehold.model.keys import Key
from leasehold.model.records.acks import CheckReport
from leasehold.model.records.log import ChangeKind, LogPosition, RowChange
from leasehold.values.types import Type
from tests.support.memory_store.consistency import KeyValueData, violations
from tests.support.sqlite.lockstep import reports_of

TABLE, PLACE, NUMBER, NAME, SIZE, MAYBE = 4, 1, 2, 3, 4, 5
BY_NAME, BY_SIZE, WRITTEN = 6, 7, 8
SHOPS = Descriptor(
    TABLE,
    "shops",
    1,
    (
        Column(PLACE, "place", Type("text"), False),
        Column(NUMBER, "number", Type("integer"), False),
        Column(NAME, "name", Type("varchar", 9), False),
        Column(SIZE, "size", Type("double precision")),
        Column(MAYBE, "open", Type("boolean"), state=State.DELETE_ONLY),
    ),
    (PLACE, NUMBER),
    (
        Index(BY_NAME, "by_name", (NAME,), unique=True),
        Index(BY_SIZE, "by_size", (SIZE, NAME)),
        Index(WRITTEN, "written", (SIZE,), unique=True, state=State.WRITE_ONLY),
    ),
    30,
)
Harm = tuple[str, str, set[tuple[int, int, Key]]]

# name, SQL that does the harm, findings (condition, element, key) that must come of it
HARMS: list[Harm] = [
    (
        "1 pair of an unknown column",
        ("ALTER TABLE t4 ADD COLUMN c20; UPDATE t4 SET c20 = 1 WHERE c2 = 1"),
        {(1, 20, ("a", 1)), (7, 20, ())},
    ),
    (
        "2 required pair missing",
        (
            "UPDATE t4 SET c3 = NULL WHERE c2 = 1; UPDATE x4_6 SET k0 = x''"
            " WHERE p1 = 1; UPDATE x4_7 SET k1 = x'' WHERE p1 = 1"
        ),
        {(2, NAME, ("a", 1))},
    ),
    (
        "3 entry of an unknown index",
        (
            "CREATE TABLE x4_21 (k0, p0, p1, PRIMARY KEY (k0, p0, p1))"
            " WITHOUT ROWID; INSERT INTO x4_21 VALUES (1, 'a', 1)"
        ),
        {(3, 21, ("a", 1)), (7, 21, ())},
    ),
    ("4 entry missing", "DELETE FROM x4_7 WHERE p1 = 2", {(4, BY_SIZE, ("a", 2))}),
    ("4 entry of a NULL missing", "DELETE FROM x4_7 WHERE p1 = 3", {(4, BY_SIZE, ("b", 3))}),
    ("5 entry of no row", "INSERT INTO x4_8 VALUES (1.5, 'a', 9)", {(5, WRITTEN, ("a", 9))}),
    (
        "5 entry of a prefix of a key",
        "INSERT INTO x4_7 VALUES (1.5, 'n', 'a', 3)",
        {(5, BY_SIZE, ("a", 3))},
    ),
    (
        "5 second entry of a row",
        "INSERT INTO x4_7 VALUES (9.5, 'one', 'a', 1)",
        {(5, BY_SIZE, ("a", 1))},
    ),
    (
        "4 and 5 entry differs",
        "UPDATE x4_6 SET k0 = 'other' WHERE p1 = 1",
        {(4, BY_NAME, ("a", 1)), (5, BY_NAME, ("a", 1))},
    ),
    (
        "4 and 5 as many entries as rows",
        ("DELETE FROM x4_7 WHERE p1 = 2; INSERT INTO x4_7 VALUES (7.5, 'q', 'z', 1)"),
        {(4, BY_SIZE, ("a", 2)), (5, BY_SIZE, ("z", 1))},
    ),
    (
        "5 row deleted, entries left",
        "DELETE FROM t4 WHERE c2 = 3",
        {(5, BY_NAME, ("b", 3)), (5, BY_SIZE, ("b", 3)), (5, WRITTEN, ("b", 3))},
    ),
    (
        "7 empty entries table",
        ("CREATE TABLE x4_22 (k0, p0, p1, PRIMARY KEY (k0, p0, p1)) WITHOUT ROWID"),
        {(7, 22, ())},
    ),
]


def build(path: Path) -> SqliteStore:
    store = SqliteStore(path, cache_mb=1)
    store.begin()
    store.prepare(SHOPS)
    store.put_descriptor(TABLE, 1, SHOPS.to_wire())
    rows = [("a", 1, "one", 1.5), ("a", 2, "two", 0.25), ("b", 3, "three", None)]
    for lsn, row in enumerate(rows, 1):
        image = {e: v for e, v in enumerate(row, 1) if v is not None}
        change = RowChange(ChangeKind.INSERT, TABLE, 1, row[:2], image, {}, (0,))
        store.change(SHOPS, change, lsn, 0, None)
    store.commit(LogPosition(9, lsn=3))
    return store


@pytest.fixture
def store(tmp_path: Path) -> Iterator[SqliteStore]:
    made = build(tmp_path / "node.db")
    yield made
    made.close()


def damage(store: SqliteStore, text: str) -> None:
    for statement in text.split(";"):
        store._connection.execute(statement)


def check(store: SqliteStore, *elements: int) -> CheckReport:
    (report,) = reports_of(store, (TABLE,), *elements)
    return report


def found(report: CheckReport) -> set[tuple[int, int, Key]]:
    assert report.findings_total == len(report.findings), report
    return {finding[:3] for finding in report.findings}


def by_definition(store: SqliteStore) -> set[tuple[int, int, Key]]:
    """What the definition says of the same pairs, read row by row."""
    execute = store._connection.execute
    names = [name for (name,) in execute("SELECT name FROM pragma_table_info('t4')")]
    rows = [dict(zip(names, row, strict=True)) for row in execute("SELECT * FROM t4")]
    tables = [n for (n,) in execute("SELECT name FROM sqlite_schema WHERE name GLOB 'x4_*'")]
    entries = set()
    for name in tables:
        for entry in execute(f"SELECT * FROM {name}"):
            values = tuple(None if v == b"" else v for v in entry[:-2])
            entries.add((int(name[3:]), values, entry[-2:]))
    data = KeyValueData(
        exists={(row["c1"], row["c2"]) for row in rows},
        columns={
            ((row["c1"], row["c2"]), int(name[1:])): value
            for row in rows
            for name, value in row.items()
            if name[0] == "c" and name not in ("c1", "c2") and value is not None
        },
        entries=entries,
        physical={int(n[1:]) for n in names if n[0] == "c"} | {int(n[3:]) for n in tables},
    )
    return {violation[:3] for violation in violations(data, SHOPS)}


def test_a_sound_table_has_no_findings(store: SqliteStore) -> None:
    report = check(store)
    assert (report.findings, report.findings_total) == ((), 0)
    assert (report.rows, report.entries) == (3, {BY_NAME: 3, BY_SIZE: 3, WRITTEN: 3})
    assert (report.offset, report.lsn, report.version, report.error) == (9, 3, 1, "")
    assert by_definition(store) == set()


@pytest.mark.parametrize(("text", "expected"), [h[1:] for h in HARMS], ids=[h[0] for h in HARMS])
def test_each_harm_is_found_as_the_definition_says(
    store: SqliteStore, text: str, expected: set[tuple[int, int, Key]]
) -> None:
    sound = check(store).checksum
    damage(store, text)
    report = check(store)
    assert found(report) == expected == by_definition(store)
    known = {e for _, e, _ in expected} <= {1, 2, 3, 4, 5, 6, 7, 8}
    assert (report.checksum != sound) == known, "unknown elements alone are not in the checksum"


@pytest.mark.parametrize("index", [BY_NAME, BY_SIZE, WRITTEN])
def test_two_sums_prove_a_sound_index(
    store: SqliteStore, index: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """No entry's row is looked up."""
    monkeypatch.delattr(table_check.TableCheck, "_compare")
    report = check(store, index)
    assert (report.error, report.findings_total, report.entries) == ("", 0, {index: 3})


def test_parts_of_values_that_change_places_are_found(store: SqliteStore) -> None:
    """Line by line the text of both sides is the same."""
    damage(store, "UPDATE t4 SET c3 = 'a' || char(10) || 'b' WHERE c2 = 1")
    damage(store, "UPDATE t4 SET c3 = 'c' || char(10) || 'd' WHERE c2 = 2")
    damage(store, "UPDATE x4_7 SET k1 = t4.c3 FROM t4 WHERE c1 = p0 AND c2 = p1")
    damage(store, "UPDATE x4_6 SET k0 = 'c' || char(10) || 'b' WHERE p1 = 1")
    damage(store, "UPDATE x4_6 SET k0 = 'a' || char(10) || 'd' WHERE p1 = 2")
    expected = {(condition, BY_NAME, ("a", n)) for condition in (4, 5) for n in (1, 2)}
    assert found(check(store, BY_NAME)) == expected <= by_definition(store)


def test_a_broken_unique_index_names_every_row_concerned(store: SqliteStore) -> None:
    damage(
        store, "UPDATE t4 SET c3 = 'one'; UPDATE x4_6 SET k0 = 'one'; UPDATE x4_7 SET k1 = 'one'"
    )
    keys = {("a", 1), ("a", 2), ("b", 3)}
    report = check(store)
    assert found(report) == {(6, BY_NAME, key) for key in keys}
    words = "unique index 'by_name': (name) = (one) is in another row, too"
    assert {said for _, _, _, said in report.findings} == {words}
    assert {(c, e) for c, e, _ in by_definition(store)} == {(6, BY_NAME)}


def test_null_keys_of_a_unique_index_equal_nothing(store: SqliteStore) -> None:
    damage(store, "UPDATE t4 SET c4 = NULL; UPDATE x4_7 SET k0 = x''; UPDATE x4_8 SET k0 = x''")
    assert found(check(store)) == set()
    assert found(check(store, WRITTEN)) == set()


@pytest.mark.parametrize(
    ("text", "element"),
    [
        ("UPDATE t4 SET c3 = 'ten letters' WHERE c2 = 1", NAME),
        ("UPDATE t4 SET c3 = 12 WHERE c2 = 1", NAME),
        ("UPDATE t4 SET c4 = 1 WHERE c2 = 1", SIZE),
        ("UPDATE t4 SET c5 = 2 WHERE c2 = 1", MAYBE),
        ("UPDATE t4 SET g0 = NULL WHERE c2 = 1", 0),
        ("UPDATE t4 SET g0 = 2 << 20 WHERE c2 = 1", 0),
        ("UPDATE t4 SET lsn = 4 WHERE c2 = 1", 0),
    ],
)
def test_a_value_that_cannot_be_there_is_found(store: SqliteStore, text: str, element: int) -> None:
    damage(store, text)
    assert (1, element, ("a", 1)) in found(check(store))


def test_an_entry_of_another_type_differs_though_sqlite_calls_it_equal(store: SqliteStore) -> None:
    damage(store, "UPDATE t4 SET c4 = 2.0 WHERE c2 = 1; UPDATE x4_7 SET k0 = 2.0 WHERE p1 = 1")
    damage(store, "UPDATE x4_8 SET k0 = 2 WHERE p1 = 1")
    assert found(check(store)) == {(5, WRITTEN, ("a", 1))}


@pytest.mark.parametrize("number", [-(2**31) - 1, 2**31])
def test_an_integer_out_of_range_is_found(store: SqliteStore, number: int) -> None:
    damage(store, f"INSERT INTO t4 (c1, c2, c3, g0, lsn) VALUES ('a', {number}, 'n', 0, 0)")
    assert (1, NUMBER, ("a", number)) in found(check(store))


def test_left_overs_of_an_older_version_are_known_and_not_in_the_checksum(
    store: SqliteStore,
) -> None:
    """Elements that no usable version names wait for the history horizon, by their ids."""
    newer = replace(SHOPS, version=2, columns=SHOPS.columns[:4], indexes=SHOPS.indexes[:2])
    store.begin()
    store.put_descriptor(TABLE, 2, newer.to_wire())
    store.put_min_version(TABLE, 2)
    store.commit(LogPosition(10, lsn=3))
    before = check(store)
    damage(store, "UPDATE t4 SET c5 = 1; DROP TABLE x4_8")
    after = check(store)
    assert found(before) == found(after) == set()
    assert before.checksum == after.checksum
    assert check(store, BY_NAME).entries == {BY_NAME: 3}


def test_checking_one_element_takes_it_as_public(store: SqliteStore) -> None:
    """A job's verification: the element is still write-only, and must be complete."""
    sound = check(store, WRITTEN)
    assert (found(sound), sound.entries) == (set(), {WRITTEN: 3})
    damage(store, "DELETE FROM x4_8 WHERE p1 = 2; UPDATE t4 SET c4 = 1.5; UPDATE x4_8 SET k0 = 1.5")
    broken = check(store, WRITTEN)
    assert found(broken) == {
        (4, WRITTEN, ("a", 2)),
        (6, WRITTEN, ("a", 1)),
        (6, WRITTEN, ("b", 3)),
    }
    assert broken.checksum != sound.checksum
    damage(store, "DROP TABLE x4_8")
    assert {f[:2] for f in found(check(store, WRITTEN))} == {(4, WRITTEN)}


def test_checking_one_column_finds_rows_that_lack_it(store: SqliteStore) -> None:
    column = Column(20, "floor", Type("integer"), False, 0, State.WRITE_ONLY)
    newer = replace(SHOPS, version=2, columns=(*SHOPS.columns, column))
    store.begin()
    store.prepare(newer)
    store.put_descriptor(TABLE, 2, newer.to_wire())
    store.commit(LogPosition(10, lsn=3))
    assert found(check(store)) == set(), "it is not public yet"
    assert found(check(store, 20)) == {(2, 20, k) for k in (("a", 1), ("a", 2), ("b", 3))}
    damage(store, "UPDATE t4 SET c20 = 0")
    assert found(check(store, 20)) == set()


def test_findings_are_bounded_and_counted(
    store: SqliteStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    damage(store, "DELETE FROM x4_6; DELETE FROM x4_7")
    bounded = table_check.TableCheck(
        store._connection, (SHOPS,), 1, frozenset(), 3, findings_max=4
    ).run()
    assert (bounded.findings_total, len(bounded.findings)) == (6, 4)


def test_the_checksum_is_of_rows_in_key_order_whatever_the_chunks(
    store: SqliteStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Recomputed here row by row; equal for every chunk size, so no chunk is lost or repeated."""

    def expected() -> bytes:
        total = blake2b(digest_size=16)
        for head, keys in (
            ("t4(c1,c2,c3,c4,c5,g0,lsn)", "c1, c2"),
            ("x4_6(k0,p0,p1)", "k0, p0, p1"),
            ("x4_7(k0,k1,p0,p1)", "k0, k1, p0, p1"),
            ("x4_8(k0,p0,p1)", "k0, p0, p1"),
        ):
            total.update(f"{head}\n".encode())
            name, columns = head.rstrip(")").split("(")
            for row in store._connection.execute(f"SELECT {columns} FROM {name} ORDER BY {keys}"):
                total.update(",".join(map(apsw.format_sql_value, row)).encode() + b"\n")
        return total.digest()

    for rows in (1, 2, 3, 4, 5_000):
        monkeypatch.setattr(sqlite_checksum, "CHUNK_ROWS", rows)
        assert check(store).checksum == expected(), rows


def test_stores_filled_in_another_order_have_the_same_checksum(tmp_path: Path) -> None:
    sums = []
    for name, order in (("one", 1), ("two", -1)):
        store = build(tmp_path / f"{name}.db")
        rows = store._connection.execute("SELECT * FROM t4").fetchall()
        damage(store, "DELETE FROM t4; VACUUM")
        for row in rows[::order]:
            store._connection.execute(f"INSERT INTO t4 VALUES ({','.join('?' * len(row))})", row)
        sums.append(check(store).checksum)
        damage(store, "UPDATE t4 SET lsn = lsn + 1 WHERE c2 = 3")
        assert check(store).checksum != sums[-1]
        store.close()
    assert sums[0] == sums[1]


def test_a_check_is_of_what_was_committed_when_it_was_asked_for(store: SqliteStore) -> None:
    store.begin()
    store._connection.execute("DELETE FROM x4_6")
    store.check(b"job:1:1", (TABLE,), ())
    store.commit(LogPosition(11, lsn=3))
    (first,) = wait(store)
    assert (first.subject, first.offset, first.findings_total) == (b"job:1:1", 9, 0)
    (second,) = reports_of(store)
    assert (second.offset, second.findings_total) == (11, 3)


def wait(store: SqliteStore) -> list[CheckReport]:
    thread = store._checker._thread
    assert thread is not None
    store._checker._waiting.put(None)  # the worker ends when it has done what waits before
    thread.join(timeout=30)
    assert not thread.is_alive()
    store._checker._thread = None
    return list(store.checked())


def test_errors_of_a_check_become_reports(
    store: SqliteStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    store.check(b"x", (99,), ())
    store.check(b"y", (TABLE,), (77,))
    unknown, element = wait(store)
    assert unknown.error == "there is no table 99"
    assert "has no element 77" in element.error

    def broken(*_: Any) -> None:
        raise apsw.CorruptError("page 3 is torn")

    monkeypatch.setattr(table_check.TableCheck, "run", broken)
    store.check(b"z", (TABLE,), ())
    (torn,) = wait(store)
    assert (torn.subject, torn.offset, torn.error) == (b"z", 9, "CorruptError: page 3 is torn")


def test_a_check_gives_way_and_its_snapshot_goes_back_to_readers_without_that(
    store: SqliteStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    looks: list[bool] = []

    class Looks(GivesWay):
        def __call__(self) -> bool:
            looks.append(self._users.beside)
            return super().__call__()

    monkeypatch.setattr(checker, "GivesWay", Looks)
    monkeypatch.setattr(checker, "STEPS_BETWEEN_LOOKS", 10)
    store.give_way(beside_users=True, gentle=False)
    store.check(b"x", (TABLE,), ())
    assert [report.error for report in wait(store)] == [""]
    assert looks
    assert all(looks)
    looks.clear()
    store.give_way(beside_users=False, gentle=False)
    store.check(b"y", (TABLE,), ())
    wait(store)
    assert looks
    assert not any(looks)
    looks.clear()
    with store.open_snapshot() as snapshot:
        assert len(list(snapshot.tables())) > 0
    assert not looks, "a reader's statements are its own"


def test_too_many_waiting_checks_are_refused_with_words(
    store: SqliteStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(checker, "CHECKS_PENDING_MAX", 0)
    store.check(b"x", (TABLE,), ())
    (report,) = store.checked()
    assert "ask again later" in report.error


def test_descriptors_of_the_store_are_plain_data(store: SqliteStore) -> None:
    """What is stored must not depend on Python's own types."""
    assert json.loads(json.dumps(store.catalog().descriptors)) == [SHOPS.to_wire()]
