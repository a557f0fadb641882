"""Goal: partial, expression and covering indexes hold, on every store, the entries that their rows
imply: a row that enters the predicate comes, one that leaves it goes, an included value follows.

Method: rows are decided by `verify` and applied, as a master does; then readers, uniqueness and
checks are asked. Damage is done behind the SQLite store's back, and must be found.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

import pytest

from leasehold.adapters.sqlite.store import SqliteStore
from leasehold.catalog.descriptor import Descriptor
from leasehold.catalog.elements import EXPRESSION, Column, Index
from leasehold.catalog.states import State
from leasehold.model.errors import DivisionByZero, DuplicateKey
from leasehold.model.keys import Key
from leasehold.model.records.log import Backfill
from leasehold.model.records.requests import Operation
from leasehold.values.types import Type
from tests.support.sqlite.lockstep import reports_of
from tests.support.transaction.written_table import (
    STORES,
    WrittenTable,
    delete,
    insert,
    opened,
    update,
    upsert,
)
from tests.unit.adapters.sqlite.checking.test_check_slices import findings, sliced

ID, A, B, C, INDEX = 1, 2, 3, 4, 5
FULL: Final = Index(
    INDEX,
    "u",
    (EXPRESSION,),
    unique=True,
    expressions=("lower(b)",),
    predicate="a > 0",
    included=(C,),
    mentioned=(A, B),
)
RATIO: Final = Index(INDEX, "r", (EXPRESSION,), expressions=("10 / a",), mentioned=(A,))


def version(index: Index, number: int = 1, **fields: Any) -> Descriptor:
    columns = (
        Column(ID, "id", Type("bigint"), False),
        Column(A, "a", Type("integer")),
        Column(B, "b", Type("text")),
        Column(C, "c", Type("bytea")),
    )
    indexes = (replace(index, **fields),)
    return Descriptor(1, "t", number, columns, (ID,), indexes, next_element_id=6)


def in_state(index: Index, state: State, number: int = 1) -> Descriptor:
    """Before the index is public it is not unique."""
    public = state is State.PUBLIC
    return version(index, number, state=state, unique=index.unique and public)


NONE: Final = replace(version(FULL), indexes=())


@pytest.fixture(params=STORES)
def empty(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[WrittenTable]:
    with opened(request.param, tmp_path) as store:
        yield WrittenTable(store)


@pytest.fixture
def table(empty: WrittenTable) -> WrittenTable:
    empty.publish(version(FULL))
    empty.send(
        insert("t", 1, a=1, b="Ab", c=b"one"),
        insert("t", 2, a=0, b="aB"),
        insert("t", 3, b="ab"),
        insert("t", 4, a=2, c=b""),
        insert("t", 5, a=3, b="Ä", c=b"five"),
    )
    return empty


def found(table: WrittenTable, *values: Any) -> list[int]:
    """Keys in the order of the index, and the check that every state must pass."""
    (report,) = reports_of(table.store)
    assert report.findings_total == 0, report
    snapshot = table.store.open_snapshot()
    rows = snapshot.get_by(table.catalog.newest(1), INDEX, values, rows_max=99)
    keys = [key[0] for key, _ in rows]
    snapshot.close()
    return keys


# ------------------------------------------------------------------ what is found


def test_rows_of_the_predicate_are_found_by_what_the_expression_gives(table: WrittenTable) -> None:
    assert found(table) == [1, 5, 4]
    assert found(table, "ab") == [1]
    assert found(table, "ä") == [5]
    assert found(table, None) == [4]
    assert found(table, "Ab") == []


@pytest.mark.parametrize(
    ("operations", "expected"),
    [
        ((update("t", 5, a=0),), [1, 4]),
        ((update("t", 5, a=None),), [1, 4]),
        ((update("t", 3, a=1, b="x"),), [1, 3, 5, 4]),
        ((update("t", 1, b="z"),), [1, 5, 4]),
        ((update("t", 1, c=b"other"),), [1, 5, 4]),
        ((update("t", 1, c=None),), [1, 5, 4]),
        ((update("t", 2, b="other", c=b"x"),), [1, 5, 4]),
        ((delete("t", 1), delete("t", 2)), [5, 4]),
        ((upsert("t", 2, a=7, b="B"), delete("t", 4)), [1, 2, 5]),
        ((update("t", 1, a=0), update("t", 2, a=1)), [2, 5, 4]),
        ((update("t", 1, a=0), update("t", 1, a=1)), [1, 5, 4]),
    ],
)
def test_entries_follow_their_rows(
    table: WrittenTable, operations: tuple[Operation, ...], expected: list[int]
) -> None:
    table.send(*operations)
    assert found(table) == expected


def test_a_backfill_puts_the_entries_of_the_predicates_rows(empty: WrittenTable) -> None:
    """Under delete-only a row may enter the predicate without an entry, and leave it with one."""
    empty.publish(NONE)
    empty.send(*(insert("t", key, a=key % 2, b=f"B{key}", c=b"c") for key in range(6)))
    empty.publish(in_state(FULL, State.DELETE_ONLY, 2))
    empty.send(update("t", 0, a=1), update("t", 1, a=0))
    empty.publish(in_state(FULL, State.WRITE_ONLY, 3))
    empty.send(update("t", 2, a=1), update("t", 3, a=0), update("t", 5, c=b"d"))
    assert _backfill(empty, 0, 1, 2) == 1, "row 2 has had its entry from its writer, row 1 has none"
    assert _backfill(empty, 0, 1, 2, 3, 4, 5, 99) == 0, "so has row 5; all others are outside"
    (report,) = reports_of(empty.store, (1,), INDEX)
    assert (report.findings_total, report.entries) == (0, {INDEX: 3})
    empty.publish(in_state(FULL, State.PUBLIC, 4))
    assert found(empty) == [0, 2, 5]


def _backfill(table: WrittenTable, *keys: int) -> int:
    newest = table.catalog.newest(1)
    rows = tuple((key,) for key in keys)
    table.store.begin()
    put = table.store.backfill(newest, Backfill(1, newest.version, INDEX, rows))
    table._commit()
    return put


# ------------------------------------------------------------------ unique


@pytest.mark.parametrize(
    "operations",
    [
        (insert("t", 9, a=5, b="AB"),),
        (update("t", 2, a=1),),
        (upsert("t", 3, a=1),),
        (update("t", 5, b="aB"),),
        (insert("t", 8, a=1, b="n"), insert("t", 9, a=1, b="N")),
        (update("t", 1, a=0), update("t", 2, a=1), update("t", 3, a=1)),
    ],
)
def test_two_rows_of_the_predicate_with_one_key_are_refused(
    table: WrittenTable, operations: tuple[Operation, ...]
) -> None:
    with pytest.raises(DuplicateKey, match='unique constraint "u"') as caught:
        table.send(*operations)
    assert caught.value.detail["constraint"] == "u"
    assert str(caught.value.detail["detail"]).startswith("Key (lower(b))=(")
    assert found(table) == [1, 5, 4]


@pytest.mark.parametrize(
    "operations",
    [
        (insert("t", 9, a=0, b="AB"), insert("t", 8, b="ab")),
        (update("t", 1, a=0), update("t", 2, a=1)),
        (update("t", 2, a=1), update("t", 1, a=0)),
        (delete("t", 1), insert("t", 9, a=4, b="AB")),
        (insert("t", 9, a=1, c=b"one"), update("t", 5, c=b"one")),
        (update("t", 1, a=2, b="aB", c=b"two"),),
    ],
)
def test_rows_outside_and_included_values_are_no_duplicates(
    table: WrittenTable, operations: tuple[Operation, ...]
) -> None:
    table.send(*operations)
    found(table)


# ------------------------------------------------------------------ what can't be computed


@pytest.mark.parametrize(
    ("state", "refused"),
    [(State.DELETE_ONLY, False), (State.WRITE_ONLY, True), (State.PUBLIC, True)],
)
def test_a_row_without_a_value_for_the_index_is_refused_where_the_index_is_written(
    empty: WrittenTable, state: State, refused: bool
) -> None:
    empty.publish(in_state(RATIO, state))
    empty.send(insert("t", 1, a=5), insert("t", 2))
    for operation in (insert("t", 3, a=0), update("t", 1, a=0), upsert("t", 2, a=0)):
        if not refused:
            empty.send(operation)
            continue
        with pytest.raises(DivisionByZero, match="can't be in index 'r'") as caught:
            empty.send(operation)
        assert caught.value.detail == {"table": "t", "index": "r"}
    if state is State.PUBLIC:
        assert found(empty, 2) == [1]


def test_a_row_from_before_is_found_and_may_be_mended(empty: WrittenTable) -> None:
    """Its other columns can be written: that makes nothing worse."""
    empty.publish(NONE)
    empty.send(insert("t", 1, a=0), insert("t", 2, a=5), insert("t", 3, a=0))
    empty.publish(in_state(RATIO, State.WRITE_ONLY, 2))
    assert _backfill(empty, 1, 2, 3) == 1
    empty.send(update("t", 1, b="x"), update("t", 1, a=0, c=b"y"))
    assert _blamed(empty) == {(6, (1,)), (6, (3,))}
    empty.send(update("t", 1, a=1), delete("t", 3))
    assert _blamed(empty) == set()


def test_a_row_outside_the_predicate_needs_no_value(empty: WrittenTable) -> None:
    guarded = replace(RATIO, predicate="a <> 0")
    empty.publish(version(guarded))
    empty.send(insert("t", 1, a=0), insert("t", 2, a=5))
    assert found(empty) == [2]
    empty.publish(version(replace(RATIO, predicate="10 / a > 1"), 2))
    with pytest.raises(DivisionByZero):
        empty.send(insert("t", 3, a=0))


def _blamed(table: WrittenTable) -> set[tuple[int, Key]]:
    (report,) = reports_of(table.store, (1,), INDEX)
    assert all("division by zero" in words for _, _, _, words in report.findings)
    return {(condition, key) for condition, _, key, _ in report.findings}


# ------------------------------------------------------------------ damage

DAMAGE: Final[list[tuple[str, set[tuple[int, Key]]]]] = [
    ("UPDATE x1_5 SET i0 = x'ff' WHERE p0 = 1", {(5, (1,))}),
    ("UPDATE x1_5 SET i0 = NULL WHERE p0 = 4", {(5, (4,))}),
    ("UPDATE x1_5 SET k0 = 'Ab' WHERE p0 = 1", {(5, (1,))}),
    ("INSERT INTO x1_5 VALUES ('ab', 2, NULL)", {(5, (2,)), (6, (1,)), (6, (2,))}),
    ("INSERT INTO x1_5 VALUES ('zz', 77, NULL)", {(5, (77,))}),
    ("DELETE FROM x1_5 WHERE p0 = 5", {(4, (5,))}),
    ("UPDATE t1 SET c2 = 0 WHERE c1 = 1", {(5, (1,))}),
    ("UPDATE t1 SET c2 = 1 WHERE c1 = 3", {(4, (3,))}),
    ("UPDATE t1 SET c4 = x'00' WHERE c1 = 2", set()),
    ("DROP TABLE x1_5", {(4, (1,)), (4, (4,)), (4, (5,))}),
]


@pytest.mark.parametrize(("damage", "expected"), DAMAGE)
def test_damage_is_found(tmp_path: Path, damage: str, expected: set[tuple[int, Key]]) -> None:
    with opened("sqlite", tmp_path) as store:
        assert isinstance(store, SqliteStore)
        table = WrittenTable(store, version(FULL))
        table.send(
            insert("t", 1, a=1, b="Ab", c=b"one"),
            insert("t", 2, a=0, b="aB"),
            insert("t", 3, b="ab"),
            insert("t", 4, a=2, c=b""),
            insert("t", 5, a=3, b="Ä", c=b"five"),
        )
        (sound,) = reports_of(store)
        store._connection.execute(damage)
        (report,) = reports_of(store)
        wrong = {(condition, key) for condition, _, key, _ in report.findings}
        # Who has no right entry lacks one, too.
        assert {w for w in wrong if w[0] != 4 or (5, w[1]) not in wrong} == expected
        assert report.checksum != sound.checksum


@pytest.mark.parametrize(
    "damage", [sql for sql, _ in DAMAGE if "x1_5" in sql and "DROP" not in sql]
)
def test_a_repair_puts_entries_right_by_their_rows(tmp_path: Path, damage: str) -> None:
    with opened("sqlite", tmp_path) as store:
        assert isinstance(store, SqliteStore)
        table = WrittenTable(store, version(FULL))
        table.send(*(insert("t", key, a=key, b=f"B{key}", c=b"c") for key in (1, 2, 4, 5)))
        (sound,) = reports_of(store)
        store._connection.execute(damage)
        store.check(b"repair", (1,), (), repairs_max=9)
        while not store.checked():
            pass
        store.begin()
        changed, _ = store.repair(table.catalog.newest(1), b"repair", 9)
        table._commit()
        (report,) = reports_of(store)
        assert changed > 0
        assert (report.findings_total, report.checksum) == (0, sound.checksum)


@pytest.mark.parametrize(
    "damage",
    [
        "",
        f"DELETE FROM x1_{INDEX} WHERE p0 = 1",
        f"UPDATE x1_{INDEX} SET k0 = 'z' WHERE p0 = 5",
        f"UPDATE x1_{INDEX} SET i0 = x'00' WHERE p0 = 1",
        f"INSERT INTO x1_{INDEX} VALUES ('ab', 2, NULL)",
        f"UPDATE t1 SET c{A} = 1 WHERE c{ID} = 2",
    ],
)
def test_slices_find_what_a_whole_check_finds(tmp_path: Path, damage: str) -> None:
    with opened("sqlite", tmp_path) as store:
        table = WrittenTable(store)
        table.publish(version(FULL))
        table.send(insert("t", 1, a=1, b="Ab", c=b"one"), insert("t", 2, a=0, b="aB"))
        table.send(insert("t", 4, a=2, c=b""), insert("t", 5, a=3, b="Ä", c=b"five"))
        assert isinstance(store, SqliteStore)
        if damage:
            store._connection.execute(damage)
        (whole,) = reports_of(store, (1,))
        assert bool(whole.findings_total) == bool(damage)
        for rows_max in (1, 2, 100):
            _, reports = sliced(table.catalog.newest(1), rows_max, store)
            assert findings(reports) == findings([whole])
