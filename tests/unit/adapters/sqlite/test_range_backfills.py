"""Goal: whatever is written while a range is merged, each entry of the index is at every moment one
of a row as it is, and once the range has ended no row lacks its own.

Method: on both stores, rows are written at random between the steps of merges, deleted, truncated
and made anew; the definition is asked after each step and at the end. Then the ends one by one: by
the last piece, by the record behind which nothing may wait, by a roll-back, a restart, a copy.
"""

from __future__ import annotations

import itertools
import random
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any, Final

import apsw
import pytest

from leasehold.adapters.sqlite import range_backfills
from leasehold.adapters.sqlite.checking.yielding import BACKFILL_REST
from leasehold.adapters.sqlite.range_backfills import DIRECT_ROWS_MAX
from leasehold.adapters.sqlite.store import SqliteStore
from leasehold.catalog.descriptor import Descriptor
from leasehold.catalog.elements import Column, Index
from leasehold.catalog.states import State
from leasehold.model.keys import Key
from leasehold.model.ports import Merged
from leasehold.model.records.log import Backfill, KeySpan, LogPosition
from leasehold.model.records.requests import Operation, OperationKind
from leasehold.values.types import Type
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

ID, A, B, INDEX = 1, 2, 3, 5
ROWS: Final = 40
DEADLINE_S: Final = 30.0
ALL: Final = KeySpan((), ())
CUT: Final = (KeySpan((), (9,)), KeySpan((9,), (25,)), KeySpan((25,), ()))


def version(number: int, *indexes: Index) -> Descriptor:
    columns = (
        Column(ID, "id", Type("bigint"), False),
        Column(A, "a", Type("integer")),
        Column(B, "b", Type("text")),
    )
    return Descriptor(1, "t", number, columns, (ID,), indexes, next_element_id=6)


PLAIN: Final = Index(INDEX, "i", (A,), state=State.WRITE_ONLY, included=(B,))


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
    """A merge has several pieces, however fast the machine is."""
    for name in ("PIECE_ROWS_FIRST", "PIECE_ROWS_MIN", "PIECE_ROWS_MAX"):
        monkeypatch.setattr(range_backfills, name, 4)


def filled(store: Store) -> WrittenTable:
    """A table of before the index."""
    table = WrittenTable(store, version(1))
    table.send(*(insert("t", key, a=key % 7, b=f"b{key}") for key in range(ROWS)))
    table.publish(version(2, replace(PLAIN, state=State.DELETE_ONLY)))
    table.publish(version(3, PLAIN))
    return table


def note(table: WrittenTable, *spans: KeySpan) -> None:
    table.store.begin()
    for span in spans:
        table.store.backfill(table.catalog.newest(1), Backfill(1, 3, INDEX, (), span=span))
    table._commit()


def first_piece(table: WrittenTable, rows_max: int | None = None) -> Merged:
    """Wait until a run is sorted, and merge its first piece."""
    deadline = time.monotonic() + DEADLINE_S
    while not (merged := table.store.merge_entries(table.catalog.newest(1), rows_max)).rows:
        assert time.monotonic() < deadline, "no run was sorted"
        time.sleep(0.001)
    return merged


def merge_all(table: WrittenTable) -> Iterator[None]:
    """Merge until nothing waits, and yield between two steps."""
    deadline = time.monotonic() + DEADLINE_S
    while table.store.next_range() is not None:
        assert time.monotonic() < deadline, "the merge did not end"
        if not table.store.merge_entries(table.catalog.newest(1)).rows:
            time.sleep(0.001)
        yield


def entries(store: Store) -> set[tuple[Key, int]]:
    """(a, b) and id of each entry."""
    if isinstance(store, MemoryStore):
        return {(entry, key[0]) for _, _, entry, key in store.contents.entries}
    found: list[Any] = store._connection.execute("SELECT k0, i0, p0 FROM x1_5").fetchall()
    return {((None if a == b"" else a, b), key) for a, b, key in found}


def rows(table: WrittenTable, keys: int = ROWS + 10) -> set[tuple[Key, int]]:
    found = ((key, table.row(1, key)) for key in range(keys))
    return {((row.get(A), row.get(B)), key) for key, row in found if row is not None}


def send_and_undo(table: WrittenTable, *operations: Operation) -> None:
    """Write rows as a master does whose record is lost."""
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(table, "_commit", table.store.rollback)
        table.send(*operations)
    table.lsn -= 1


@pytest.mark.parametrize("seed", range(12))
def test_every_entry_is_of_a_row_as_it_is_and_no_row_lacks_one_at_the_end(
    store: Store, seed: int
) -> None:
    rng = random.Random(seed)
    table = filled(store)
    spans = (ALL,) if seed % 3 == 0 else CUT
    note(table, *spans)
    steps = 0
    for _ in merge_all(table):
        steps += 1
        there = {key for _, key in rows(table)}
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
            there = {key for _, key in rows(table)}
        if seed % 4 == 1 and steps == 5:
            table.store.begin()
            table.store.truncate(1, table.lsn + 1)
            table.lsn += 1
            table._commit()
            table.send(*(insert("t", key, a=1, b="anew") for key in range(0, ROWS, 3)))
        assert entries(store) <= rows(table)
    assert steps > len(spans)
    assert entries(store) == rows(table)
    assert not reports_of(store, (1,), INDEX)[0].findings


def test_a_record_behind_which_nothing_may_wait_ends_what_does(store: Store) -> None:
    table = filled(store)
    note(table, *CUT)
    merging = merge_all(table)
    for _ in range(6):
        next(merging)
    table.send(update("t", 3, a=None), delete("t", 4), insert("t", ROWS, a=2, b="n"))
    newest = table.catalog.newest(1)
    store.begin()
    store.end_ranges(newest, INDEX + 1, 99, complete=True)
    assert store.ranges_waiting(), "that one goes on"
    store.end_ranges(newest, INDEX, 99, complete=True)
    assert not store.ranges_waiting()
    store.rollback()
    assert store.ranges_waiting(), "what is rolled back was never"
    assert entries(store) < rows(table)
    store.begin()
    store.end_ranges(newest, INDEX, 99, complete=True)
    table._commit()
    assert store.next_range() is None
    assert entries(store) == rows(table)


def test_who_wrote_a_row_is_known_when_the_end_of_its_range_was_undone(store: Store) -> None:
    """As where the record by which a job leaves the run is lost with its master's term."""
    table = filled(store)
    note(table, ALL)
    merging = merge_all(table)
    while not entries(store):
        next(merging)
    table.send(*(update("t", key, a=6 - key % 7) for key in range(ROWS)), delete("t", 0))
    store.begin()
    store.end_ranges(table.catalog.newest(1), INDEX, 99, complete=True)
    store.rollback()
    for _ in merging:
        assert entries(store) <= rows(table)
    assert entries(store) == rows(table)


@pytest.mark.parametrize("key_width", [1, 2, 3])
def test_what_a_piece_costs_does_not_grow_with_the_rows_that_were_written(
    tmp_path: Path, key_width: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """By the steps of SQLite's machine for the same entries behind a few writes and behind many. A
    key of several columns is a row value, which not all conditions look up."""
    monkeypatch.setattr(range_backfills, "PIECE_ROWS_FIRST", 20)
    monkeypatch.setattr(range_backfills, "PIECE_ROWS_MIN", 20)
    monkeypatch.setattr(range_backfills, "PIECE_ROWS_MAX", 20)
    store = SqliteStore(tmp_path / "node.db", cache_mb=1, direct_rows_max=0)
    names = ("id", "k2", "k3")[:key_width]
    keys = tuple(Column(9 + n, name, Type("bigint"), False) for n, name in enumerate(names))
    ids = tuple(column.element_id for column in keys)

    def version(number: int, *indexes: Index) -> Descriptor:
        columns = (*keys, Column(A, "a", Type("integer")), Column(B, "b", Type("text")))
        return Descriptor(1, "t", number, columns, ids, indexes, next_element_id=20)

    def fill(numbers: range) -> None:
        named = (dict.fromkeys(names, number) for number in numbers)
        table.send(*(Operation(OperationKind.INSERT, "t", key, {"a": 1}) for key in named))

    try:
        table = WrittenTable(store, version(1))
        fill(range(120))
        table.publish(version(2, replace(PLAIN, state=State.DELETE_ONLY)))
        table.publish(version(3, PLAIN))
        note(table, ALL)
        first_piece(table)
        steps = []
        for written in (range(1_000, 1_010), range(2_000, 4_000)):
            fill(written)
            store.merge_entries(table.catalog.newest(1))  # keeps what was written
            looked = count_looks(store)
            assert store.merge_entries(table.catalog.newest(1)).rows == 20
            steps.append(next(looked))
        assert steps[1] < 2 * steps[0] + 50, f"{steps} times ten steps for the same 20 entries"
    finally:
        store.close()


def count_looks(store: SqliteStore) -> Iterator[int]:
    """Count tens of steps of SQLite's machine from here on."""
    looks = itertools.count()
    store._connection.set_progress_handler(lambda: next(looks) < 0, 10)
    return looks


@pytest.mark.parametrize("steps", [0, 6, 1_000])
def test_of_a_job_that_turns_back_no_entry_is_left(store: Store, steps: int) -> None:
    """However many were merged; who writes behind it puts his own."""
    table = filled(store)
    note(table, *CUT)
    for _ in itertools.islice(merge_all(table), steps):
        pass
    store.begin()
    store.end_ranges(table.catalog.newest(1), INDEX, 99, complete=False)
    table._commit()
    assert store.next_range() is None
    assert entries(store) == set()
    table.send(update("t", 3, a=5), delete("t", 4), insert("t", ROWS, a=2, b="n"))
    assert {key for _, key in entries(store)} == {3, ROWS}


def test_after_a_rollback_the_same_range_may_be_noted_again(store: Store) -> None:
    table = filled(store)
    store.begin()
    store.backfill(table.catalog.newest(1), Backfill(1, 3, INDEX, (), span=ALL))
    store.rollback()
    assert store.next_range() is None
    note(table, ALL)
    for _ in merge_all(table):
        pass
    assert entries(store) == rows(table)


def test_a_restart_and_a_copy_in_the_middle_of_a_merge_begin_the_range_anew(
    tmp_path: Path,
) -> None:
    first = SqliteStore(tmp_path / "node.db", cache_mb=1, direct_rows_max=0)
    table = filled(first)
    note(table, *CUT)
    merging = merge_all(table)
    while not entries(first):
        next(merging)
    copied = apsw.Connection(str(tmp_path / "copy.db"))
    with copied.backup("main", first._connection, "main") as backup:
        backup.step()
    copied.close()
    first.close()
    assert [path.name for path in tmp_path.glob("*.run*")] == []
    (tmp_path / "node.db.run1").write_bytes(b"of a process that was killed")
    for name in ("node.db", "copy.db"):
        store = SqliteStore(tmp_path / name, cache_mb=1, direct_rows_max=0)
        try:
            table.store = store
            table.send(update("t", 39, a=6, b=name), delete("t", 0 if name == "node.db" else 1))
            for _ in merge_all(table):
                assert entries(store) <= rows(table)
            assert entries(store) == rows(table)
        finally:
            store.close()
        assert [path.name for path in tmp_path.glob(f"{name}.run*")] == []


@pytest.mark.parametrize(
    ("gentle", "took_ms", "rows"),
    [(False, 4, 4), (True, 4, 2), (False, 16, 4), (False, 64, 1)],
)
def test_beside_users_each_piece_is_short_and_has_a_rest_behind_it(
    tmp_path: Path, gentle: bool, took_ms: int, rows: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of a gentle job half as long, and at most half of the time, with processors to spare, too.
    It is processor time that is short: a piece that waited for one is no longer, to a limit. Its
    commit takes as long as its statements here, and counts for the rest alone."""
    monkeypatch.setattr(range_backfills, "PAGE_NS", 0)
    for name, each_ms in (("monotonic_ns", took_ms), ("thread_time_ns", 4)):
        clock = itertools.count(0, each_ms * 1_000_000)
        monkeypatch.setattr(range_backfills, name, clock.__next__)
    waits = SimpleNamespace(take_ns=lambda: 2 * (took_ms - 4) * 1_000_000)
    monkeypatch.setattr(range_backfills, "ProcessorWaits", lambda thread_id: waits)
    monkeypatch.setattr(range_backfills, "PIECE_ROWS_FIRST", 8)
    monkeypatch.setattr(range_backfills, "PIECE_ROWS_MIN", 1)
    monkeypatch.setattr(range_backfills, "PIECE_ROWS_MAX", 8)
    store = SqliteStore(tmp_path / "node.db", cache_mb=1, direct_rows_max=0)
    table = filled(store)
    store.give_way(beside_users=True, gentle=gentle)
    note(table, ALL)
    newest = table.catalog.newest(1)
    first = first_piece(table)
    second = store.merge_entries(newest)
    store.close()
    assert (first.rows, second.rows) == (8, rows), "a piece took twice 2 ms"
    if took_ms == 4:
        assert first.pause_ns == 8_000_000 * (2 * BACKFILL_REST + 1 if gentle else BACKFILL_REST)
    else:
        assert first.pause_ns == 72_000_000, "nine times what it has worked"


def test_a_piece_is_short_as_soon_as_users_are_beside_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("monotonic_ns", "thread_time_ns"):
        clock = itertools.count(0, 15_000_000)
        monkeypatch.setattr(range_backfills, name, clock.__next__)
    monkeypatch.setattr(range_backfills, "PIECE_ROWS_FIRST", 15)
    monkeypatch.setattr(range_backfills, "PIECE_ROWS_MIN", 1)
    monkeypatch.setattr(range_backfills, "PAGE_NS", 0)
    store = SqliteStore(tmp_path / "node.db", cache_mb=1, direct_rows_max=0)
    table = filled(store)
    note(table, ALL)
    newest = table.catalog.newest(1)
    alone = first_piece(table)
    store.give_way(beside_users=True, gentle=False)
    beside = store.merge_entries(newest)
    store.close()
    assert (alone.rows, beside.rows) == (15, 2), "15 ms took 15 rows"


@pytest.mark.parametrize(("page_ns", "rows"), [(0, 16), (1_000_000, 3)])
def test_a_long_commit_makes_no_small_pieces_but_many_pages_do(
    tmp_path: Path, page_ns: int, rows: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A commit takes 100 ms whatever it writes, the statements of 8 rows 1 ms."""
    for name in ("monotonic_ns", "thread_time_ns"):
        steps = itertools.cycle((0, 1_000_000, 100_000_000))  # begun, stated, committed
        monkeypatch.setattr(range_backfills, name, itertools.accumulate(steps).__next__)
    written = itertools.count(0, 4)
    monkeypatch.setattr(
        range_backfills.RangeBackfills, "_pages_written", lambda self: next(written)
    )
    monkeypatch.setattr(range_backfills, "PAGE_NS", page_ns)
    for name, size in (("FIRST", 8), ("MIN", 1), ("MAX", 16)):
        monkeypatch.setattr(range_backfills, f"PIECE_ROWS_{name}", size)
    store = SqliteStore(tmp_path / "node.db", cache_mb=1, direct_rows_max=0)
    table = filled(store)
    store.give_way(beside_users=True, gentle=False)
    note(table, ALL)
    newest = table.catalog.newest(1)
    first = first_piece(table)
    second = store.merge_entries(newest)
    store.close()
    assert (first.rows, second.rows) == (8, rows)


def test_a_piece_has_no_more_rows_than_it_may(store: Store) -> None:
    table = filled(store)
    note(table, ALL)
    merged = first_piece(table, 2)
    assert merged.rows == len(entries(store)) == 2


def test_few_rows_are_put_at_the_very_position(tmp_path: Path) -> None:
    store = SqliteStore(tmp_path / "node.db", cache_mb=1)
    try:
        table = filled(store)
        assert ROWS <= DIRECT_ROWS_MAX
        note(table, CUT[1])
        assert store.next_range() is None
        assert {key for _, key in entries(store)} == set(range(10, 26))
        assert store.position() == LogPosition(store.position().offset, lsn=table.lsn)
    finally:
        store.close()


def test_a_run_that_can_not_be_sorted_says_so(tmp_path: Path) -> None:
    store = SqliteStore(tmp_path / "node.db", cache_mb=1, direct_rows_max=0)
    try:
        table = filled(store)
        note(table, ALL)
        (tmp_path / "node.db.run1").mkdir()
        with pytest.raises(IsADirectoryError, match="run1"):
            list(merge_all(table))
        (tmp_path / "node.db.run1").rmdir()
        for _ in merge_all(table):
            pass
        assert entries(store) == rows(table)
    finally:
        store.close()
