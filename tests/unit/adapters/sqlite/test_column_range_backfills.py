"""Goal: whatever is written while a range of a column is filled, each pair is at every moment what
the row's own columns tell, and once the range has ended no row lacks its own.

Method: as of ranges of an index. On both stores rows are written at random between the steps, by
writers of the version that fills it, deleted, truncated and made anew; what the expression gives is
asked after each step. Then the ends one by one.
"""

from __future__ import annotations

import itertools
import random
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

import apsw
import pytest

from leasehold.adapters.sqlite import range_backfills
from leasehold.adapters.sqlite.store import SqliteStore
from leasehold.catalog.descriptor import Descriptor
from leasehold.catalog.elements import Column, Derived, Index
from leasehold.catalog.states import State
from leasehold.model.records.log import Backfill, KeySpan
from leasehold.model.records.requests import Operation
from leasehold.rows.computed_missing import compile_computed, make_computed
from leasehold.values.types import Type, parse_type
from tests.support.memory_store.store import MemoryStore
from tests.support.sqlite.lockstep import reports_of
from tests.support.transaction.written_table import (
    STORES,
    Store,
    WrittenTable,
    delete,
    insert,
    update,
)

ID, A, B, G, INDEX = 1, 2, 3, 4, 5
ROWS: Final = 40
DEADLINE_S: Final = 30.0
ALL: Final = KeySpan((), ())
CUT: Final = (KeySpan((), (9,)), KeySpan((9,), (25,)), KeySpan((25,), ()))
EXPRESSIONS: Final = {
    "by SQLite": ("a", "text", (A,)),
    "as a double": ("a", "double precision", (A,)),
    "by a function": ("12 / a", "integer", (A,)),
    "over two columns": ("b || a", "text", (A, B)),
}


def make_column(what: str, table: Descriptor) -> Column:
    text, kind, sources = EXPRESSIONS[what]
    column = Column(G, "g", parse_type(kind), derived=Derived(sources, text))
    missing = make_computed(table, column, text, sources, "")
    assert missing is not None, "it is left to readers"
    return replace(column, missing=missing._replace(below=3))


def version(number: int, what: str = "", state: State | None = None, *more: Index) -> Descriptor:
    columns = (
        Column(ID, "id", Type("bigint"), False),
        Column(A, "a", Type("integer")),
        Column(B, "b", Type("text")),
    )
    table = Descriptor(1, "t", number, columns, (ID,), more, next_element_id=6)
    if state is None:
        return table
    column = make_column(what, table)
    column = replace(column, state=state, missing=column.missing if number > 2 else None)
    return replace(table, columns=(*columns, column))


@pytest.fixture(params=STORES)
def store(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Store]:
    if request.param == "memory":
        yield MemoryStore()
        return
    made = SqliteStore(tmp_path / "node.db", cache_mb=1, direct_rows_max=0)
    try:
        yield made
    finally:
        made.close()


@pytest.fixture(autouse=True)
def small_pieces(monkeypatch: pytest.MonkeyPatch) -> None:
    """A range has several pieces, however fast the machine is."""
    for name in ("PIECE_ROWS_FIRST", "PIECE_ROWS_MIN", "PIECE_ROWS_MAX"):
        monkeypatch.setattr(range_backfills, name, 4)


def filled(store: Store, what: str = "by a function") -> WrittenTable:
    """A table of before the column, which is write-only now."""
    table = WrittenTable(store, version(1))
    table.send(*(insert("t", key, a=key % 7, b=f"b{key}") for key in range(ROWS)))
    table.publish(version(2, what, State.DELETE_ONLY))
    table.publish(version(3, what, State.WRITE_ONLY))
    return table


def note(table: WrittenTable, *spans: KeySpan) -> None:
    table.store.begin()
    for span in spans:
        table.store.backfill(table.catalog.newest(1), Backfill(1, 3, G, (), span=span))
    table._commit()


def put_all(table: WrittenTable) -> Iterator[None]:
    """Go on until nothing waits, and yield between two steps."""
    deadline = time.monotonic() + DEADLINE_S
    while table.store.next_range() is not None:
        assert time.monotonic() < deadline, "the range did not end"
        table.store.merge_entries(table.catalog.newest(1))
        yield


def pairs(table: WrittenTable) -> dict[int, tuple[Any, Any]]:
    """Of each row the pair, and what it should be."""
    column = table.catalog.newest(1).by_id[G]
    assert column.missing is not None
    assert column.missing.computed is not None
    compute = compile_computed(column.missing.computed)
    found = {key: table.row(1, key) for key in range(ROWS + 10)}
    return {key: (row.get(G), compute(row)) for key, row in found.items() if row is not None}


def wrong(table: WrittenTable) -> list[tuple[Any, Any]]:
    return [pair for pair in pairs(table).values() if pair[0] is not None and pair[0] != pair[1]]


def lacking(table: WrittenTable) -> set[int]:
    return {key for key, (pair, value) in pairs(table).items() if pair is None is not value}


def send_and_undo(table: WrittenTable, *operations: Operation) -> None:
    """Write rows as a master does whose record is lost."""
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(table, "_commit", table.store.rollback)
        table.send(*operations)
    table.lsn -= 1


@pytest.mark.parametrize("what", EXPRESSIONS)
@pytest.mark.parametrize("seed", range(4))
def test_each_pair_is_what_its_row_tells_and_no_row_lacks_one_at_the_end(
    store: Store, seed: int, what: str
) -> None:
    rng = random.Random(seed)
    table = filled(store, what)
    note(table, *((ALL,) if seed % 2 == 0 else CUT))
    assert lacking(table)
    steps = 0
    for _ in put_all(table):
        steps += 1
        there = set(pairs(table))
        if there and rng.random() < 0.3:
            send_and_undo(table, update("t", min(there), a=5), delete("t", max(there)))
        for _ in range(rng.randrange(3)):
            key = rng.randrange(ROWS + 10)
            if key not in there:
                table.send(insert("t", key, a=rng.randrange(7), b="new"))
            elif rng.random() < 0.5:
                table.send(update("t", key, a=rng.choice([None, *range(7)])))
            else:
                table.send(delete("t", key))
            there = set(pairs(table))
        if seed == 3 and steps == 5:
            table.store.begin()
            table.store.truncate(1, table.lsn + 1)
            table.lsn += 1
            table._commit()
            table.send(*(insert("t", key, a=1, b="anew") for key in range(0, ROWS, 3)))
        assert not wrong(table)
    assert steps > 3
    assert not wrong(table)
    assert not lacking(table)


def test_a_row_keeps_its_genids_and_its_lsn(store: Store) -> None:
    """No writer, nor who has read the row, is refused for it."""
    table = filled(store)
    descriptor = table.catalog.newest(1)
    before = {key: store.row(descriptor, (key,)) for key in range(ROWS)}
    note(table, ALL)
    for _ in put_all(table):
        pass
    for key, row in before.items():
        now = store.row(descriptor, (key,))
        assert row is not None
        assert now is not None
        assert (now.genids, now.lsn) == (row.genids, row.lsn)


def test_a_record_behind_which_nothing_may_wait_ends_what_does(store: Store) -> None:
    table = filled(store)
    note(table, *CUT)
    for _ in itertools.islice(put_all(table), 4):
        pass
    table.send(update("t", 3, a=None), delete("t", 4), insert("t", ROWS, a=2, b="n"))
    newest = table.catalog.newest(1)
    store.begin()
    store.end_ranges(newest, G, 99, complete=True)
    assert not store.ranges_waiting()
    store.rollback()
    assert store.ranges_waiting(), "what is rolled back was never"
    assert lacking(table)
    store.begin()
    store.end_ranges(newest, G, 99, complete=True)
    table._commit()
    assert store.next_range() is None
    assert not lacking(table)
    assert not wrong(table)


def test_a_job_that_turns_back_leaves_rows_that_other_nodes_have_otherwise(tmp_path: Path) -> None:
    """Nobody can read the column; what is compared of two nodes is all but its pairs."""
    reports = []
    for number, steps in enumerate((0, 3)):
        store = SqliteStore(tmp_path / f"{number}.db", cache_mb=1, direct_rows_max=0)
        try:
            table = filled(store)
            note(table, ALL)
            for _ in itertools.islice(put_all(table), steps):
                pass
            store.begin()
            store.end_ranges(table.catalog.newest(1), G, 99, complete=False)
            table._commit()
            assert store.next_range() is None
            assert lacking(table)
            reports.append(reports_of(store, (1,))[0])
        finally:
            store.close()
    assert [report.findings for report in reports] == [(), ()]
    assert reports[0].checksum == reports[1].checksum


def test_of_nodes_that_have_filled_it_the_pairs_are_compared(tmp_path: Path) -> None:
    """As if it were public: of one that has put something else, the sum is another one."""
    sums = []
    for number in range(2):
        store = SqliteStore(tmp_path / f"{number}.db", cache_mb=1, direct_rows_max=0)
        try:
            table = filled(store)
            note(table, ALL)
            for _ in put_all(table):
                pass
            if number:
                store._connection.execute("UPDATE t1 SET c4 = 77 WHERE c1 = 3")
            sums.append(reports_of(store, (1,), G)[0].checksum)
        finally:
            store.close()
    assert sums[0] != sums[1]


def test_a_row_that_has_no_value_is_named_until_the_range_has_ended(store: Store) -> None:
    """Of a job that turns back none is."""
    table = filled(store)
    table.send(*(update("t", key, a=3) for key in range(ROWS) if key % 7 == 0))
    note(table, *CUT)
    assert store.range_failure(1, G) is None
    table.send(update("t", 3, a=0, b="null"))
    # A writer of the version has put what there is; the backfill comes to the row all the same.
    for _ in itertools.islice(put_all(table), 3):
        pass
    failed = store.range_failure(1, G)
    assert failed is not None
    assert (failed[0], failed[1].sqlstate) == ((3,), "22012")
    assert store.range_failure(1, G + 1) is None
    store.begin()
    store.end_ranges(table.catalog.newest(1), G, 99, complete=False)
    table._commit()
    assert store.range_failure(1, G) is None


def test_a_row_that_was_never_there_is_not_named(tmp_path: Path) -> None:
    """The master's record is lost, and with it what was put at its position."""
    store = SqliteStore(tmp_path / "node.db", cache_mb=1)
    try:
        table = filled(store)
        for undone in (True, False):
            store.begin()
            if undone:
                store.savepoint()
            store.backfill(table.catalog.newest(1), Backfill(1, 3, G, (), span=ALL))
            assert store.range_failure(1, G) is not None
            if undone:
                store.rollback_to()
                assert store.range_failure(1, G) is None
            store.rollback()
            assert store.range_failure(1, G) is None
    finally:
        store.close()


def test_a_row_that_a_piece_has_met_is_named_behind_a_transaction_that_was_undone(
    store: Store,
) -> None:
    """The range goes on behind it, and the row is met no more."""
    table = filled(store)
    table.send(*(update("t", key, a=3) for key in range(ROWS) if key % 7 == 0))
    table.send(update("t", 3, a=0, b="null"))
    note(table, *CUT)
    for _ in itertools.islice(put_all(table), 3):
        pass
    assert store.range_failure(1, G) is not None
    store.begin()
    store.end_ranges(table.catalog.newest(1), G, 99, complete=True)
    store.rollback()
    assert store.range_failure(1, G) is not None


@pytest.mark.parametrize("what", EXPRESSIONS)
def test_a_pair_that_is_not_what_its_row_tells_is_found(tmp_path: Path, what: str) -> None:
    """By SQLite itself where it computes the value, and by its type, too."""
    store = SqliteStore(tmp_path / "node.db", cache_mb=1, direct_rows_max=0)
    try:
        table = filled(store, what)
        table.send(*(update("t", key, a=3) for key in range(ROWS) if key % 7 == 0))
        note(table, ALL)
        for _ in put_all(table):
            pass
        assert reports_of(store, (1,), G)[0].findings == ()
        store._connection.execute(
            "UPDATE t1 SET c4 = c4 || '' WHERE c1 = 3 AND typeof(c4) <> 'text'"
        )
        store._connection.execute("UPDATE t1 SET c4 = NULL WHERE c1 = 4")
        store._connection.execute("UPDATE t1 SET c4 = '7' WHERE c1 = 5")
        found = {finding[2] for finding in reports_of(store, (1,), G)[0].findings}
        assert found >= {(4,), (5,)}
        assert ((3,) in found) == (what not in ("by SQLite", "over two columns"))
    finally:
        store.close()


def test_a_restart_and_a_copy_go_on_behind_what_was_put(tmp_path: Path) -> None:
    first = SqliteStore(tmp_path / "node.db", cache_mb=1, direct_rows_max=0)
    table = filled(first)
    note(table, *CUT)
    for _ in itertools.islice(put_all(table), 4):
        pass
    done = ROWS - len(lacking(table))
    copied = apsw.Connection(str(tmp_path / "copy.db"))
    with copied.backup("main", first._connection, "main") as backup:
        backup.step()
    copied.close()
    first.close()
    for name in ("node.db", "copy.db"):
        store = SqliteStore(tmp_path / name, cache_mb=1, direct_rows_max=0)
        try:
            table.store = store
            table.send(update("t", 39, a=6, b=name), delete("t", 0 if name == "node.db" else 1))
            assert done - 1 <= len(pairs(table)) - len(lacking(table)) <= done + 1
            steps = sum(1 for _ in put_all(table))
            assert steps < ROWS // 4, "the first range is not begun anew"
            assert not lacking(table)
            assert not wrong(table)
        finally:
            store.close()


def test_under_an_index_rows_are_named_and_have_their_entries(store: Store) -> None:
    """An index that is still delete-only, or filled later, has none of theirs; one that is written
    gets what the row has now."""
    index = Index(INDEX, "i", (G,), state=State.WRITE_ONLY)
    table = WrittenTable(store, version(1))
    table.send(*(insert("t", key, a=key % 7, b=f"b{key}") for key in range(ROWS)))
    table.publish(version(2, "by a function", State.DELETE_ONLY))
    table.publish(version(3, "by a function", State.WRITE_ONLY, index))
    keys = tuple((key,) for key in range(ROWS))
    store.begin()
    done = store.backfill(table.catalog.newest(1), Backfill(1, 3, G, keys))
    again = store.backfill(table.catalog.newest(1), Backfill(1, 3, G, keys))
    table._commit()
    assert not lacking(table)
    assert (done, again) == (sum(1 for pair, _ in pairs(table).values() if pair is not None), 0)
    of_rows = {(pair, key) for key, (pair, _) in pairs(table).items() if pair is not None}
    if isinstance(store, MemoryStore):
        found = {(entry[0], key[0]) for _, _, entry, key in store.contents.entries}
    else:
        rows: list[Any] = store._connection.execute("SELECT k0, p0 FROM x1_5").fetchall()
        found = {(None if value == b"" else value, key) for value, key in rows}
    assert of_rows <= found
