"""A check in slices finds what a whole one finds, holds nothing back, and its slices are equal on
equal stores."""

from __future__ import annotations

import random
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from leasehold.adapters.sqlite.store import SqliteStore
from leasehold.admin.sliced_check import SlicedCheck
from leasehold.catalog.descriptor import Descriptor
from leasehold.catalog.elements import Check, Column, Derived, ForeignKey, Index
from leasehold.catalog.states import State
from leasehold.model.records.acks import CheckReport
from leasehold.model.records.log import ChangeKind, CheckSlice, LogPosition, RowChange
from leasehold.schema_change.coordinator.verification import next_slice
from leasehold.values.types import Type
from tests.support.descriptors import with_state
from tests.support.sqlite.lockstep import reports_of

PLACE, NUMBER, A, B, CODE, BY_A, BY_NEW, ABOVE, PARENT, SUM, NEW = range(1, 12)
ROWS = 23


def table(*, wide: bool) -> Descriptor:
    twice = Derived((A, B), "a + b", generated=True)
    columns = (
        Column(PLACE, "place", Type("text"), nullable=False),
        Column(NUMBER, "number", Type("integer"), nullable=False),
        Column(A, "a", Type("integer")),
        Column(B, "b", Type("integer"), nullable=False),
        Column(SUM, "sum", Type("integer"), derived=twice),
        Column(NEW, "new", Type("integer"), False, 7, State.WRITE_ONLY),
    )
    key = (PLACE, NUMBER) if wide else (NUMBER,)
    indexes = (
        Index(CODE, "code", (B,), unique=True),
        Index(BY_A, "by_a", (A,)),
        Index(BY_NEW, "by_new", (A, B), state=State.WRITE_ONLY),
    )
    own = ForeignKey(PARENT, "own", (B,), 1, (B,), CODE)  # each row refers to itself
    return Descriptor(
        1, "t", 1, columns, key, indexes, 20, checks=(Check(ABOVE, "above", "b >= 0", (B,)),),
        foreign_keys=(own,), since_lsn=1,
    )  # fmt: skip


def filled(path: Path, descriptor: Descriptor) -> SqliteStore:
    store = SqliteStore(path, cache_mb=1)
    store.begin()
    store.prepare(descriptor)
    store.put_descriptor(1, 1, descriptor.to_wire())
    for number in range(ROWS):
        insert(store, descriptor, number)
    store.commit(LogPosition(1, lsn=5))
    return store


def insert(store: SqliteStore, descriptor: Descriptor, number: int) -> None:
    image = {PLACE: "abc"[number % 3], NUMBER: number, A: number % 4 or None, B: number, NEW: 7}
    if number % 4:
        image[SUM] = number % 4 + number
    key = tuple(image[e] for e in descriptor.primary_key)
    store.change(descriptor, RowChange(ChangeKind.INSERT, 1, 1, key, image, {}, (0,)), 5, 0, None)


@pytest.fixture(params=[False, True], ids=["rowid", "composite"])
def descriptor(request: pytest.FixtureRequest) -> Descriptor:
    return table(wide=request.param)


@pytest.fixture
def store(tmp_path: Path, descriptor: Descriptor) -> Iterator[SqliteStore]:
    made = filled(tmp_path / "store.db", descriptor)
    yield made
    made.close()


def sliced(
    descriptor: Descriptor,
    rows_max: int,
    *stores: SqliteStore,
    between: object = None,
    elements: tuple[int, ...] = (),
) -> tuple[SlicedCheck, list[CheckReport]]:
    nodes = [f"n{number}" for number in range(len(stores))]
    check, told = SlicedCheck(descriptor, nodes, rows_max), []
    while (part := check.wanted) is not None:
        reports = []
        for node, store in zip(nodes, stores, strict=True):
            store.check(b"slice", (1,), elements, part=part)
            while not (found := store.checked()):
                time.sleep(0.0002)
            reports.append(found[0]._replace(node=node))
        told += reports
        check.take(reports)
        if callable(between):
            between(check)
        assert check.slices < 1_000, "it does not end"
    return check, told


def findings(reports: list[CheckReport]) -> set[tuple[int, int, tuple[object, ...]]]:
    assert not any(report.error for report in reports), [r.error for r in reports]
    return {(c, e, tuple(key)) for report in reports for c, e, key, _ in report.findings}


DAMAGE = (
    "DELETE FROM x1_{CODE} WHERE k0 = {n}",
    "DELETE FROM x1_{BY_A} WHERE k0 = {n} % 4",
    "UPDATE x1_{CODE} SET k0 = k0 + 1000 WHERE k0 = {n}",
    "UPDATE OR REPLACE x1_{BY_NEW} SET k1 = 77 WHERE k1 = {n}",
    "UPDATE t1 SET c{B} = -1 WHERE c{NUMBER} = {n}",
    "UPDATE t1 SET c{A} = 'text' WHERE c{NUMBER} = {n}",
    "UPDATE t1 SET c{B} = NULL WHERE c{NUMBER} = {n}",
    "DELETE FROM t1 WHERE c{NUMBER} = {n}",
    "UPDATE OR REPLACE x1_{CODE} SET k0 = k0 - 1 WHERE k0 = {n}",
    "UPDATE x1_{CODE} SET k0 = CAST(k0 AS REAL) WHERE k0 = {n}",
    "UPDATE t1 SET c{SUM} = 9 WHERE c{NUMBER} = {n}",
    "UPDATE t1 SET c{NEW} = NULL WHERE c{NUMBER} = {n}",
    "UPDATE t1 SET c{NEW} = 'text' WHERE c{NUMBER} = {n}",
)
NAMES = ("CODE", "BY_A", "BY_NEW", "A", "B", "NUMBER", "SUM", "NEW")
ELEMENTS = ((CODE,), (BY_NEW,), (NEW,), (SUM,), (ABOVE, PARENT), (NEW, BY_NEW))


def damaged(store: SqliteStore, rng: random.Random) -> list[str]:
    done = []
    for _ in range(rng.randint(1, 4)):
        names = {name: globals()[name] for name in NAMES}
        done.append(rng.choice(DAMAGE).format(n=rng.randrange(ROWS), **names))
        store._connection.execute(done[-1])
    return done


def sliced_reports(store: SqliteStore, part: CheckSlice, *elements: int) -> list[CheckReport]:
    store.check(b"job:1:1", (1,), elements, part=part)
    while not (found := store.checked()):
        time.sleep(0.0002)
    return list(found)


@pytest.mark.parametrize("seed", range(6))
def test_all_slices_together_find_what_a_whole_check_finds(
    store: SqliteStore, descriptor: Descriptor, seed: int
) -> None:
    rng = random.Random(seed)
    done = damaged(store, rng)
    (whole,) = reports_of(store, (1,))
    for rows_max in (1, 4, 1_000):
        check, reports = sliced(descriptor, rows_max, store)
        assert findings(reports) == findings([whole]), (seed, rows_max, done)
        assert not check.troubles
        assert check.rows == {"n0": whole.rows}, (seed, rows_max)
        assert check.entries == {"n0": sum(whole.entries.values())}


@pytest.mark.parametrize("seed", range(6))
def test_slices_of_what_a_job_verifies_find_what_its_one_pass_finds(
    store: SqliteStore, descriptor: Descriptor, seed: int
) -> None:
    done = damaged(store, random.Random(seed))
    for elements in ELEMENTS:
        (whole,) = reports_of(store, (1,), *elements)
        parts = (0, *(e for e in elements if e in (CODE, BY_A, BY_NEW)))
        reports: list[CheckReport] = []
        at: CheckSlice | None = CheckSlice(0, (), 4)
        while at is not None:
            reports += sliced_reports(store, at, *elements)
            at = next_slice(parts, at, reports[-1].until, 4)
        assert findings(reports) == findings([whole]), (seed, elements, done)
        assert sum(report.rows for report in reports) == whole.rows
        assert sum(sum(r.entries.values()) for r in reports) == sum(whole.entries.values())


def test_slices_of_a_jobs_elements_tell_copies_apart(
    store: SqliteStore, descriptor: Descriptor, tmp_path: Path
) -> None:
    """What is verified is summed, so that two copies that are right each by itself differ."""
    part = CheckSlice(0, (), 100)
    (before,) = sliced_reports(store, part, NEW)
    store._connection.execute(f"UPDATE t1 SET c{NEW} = 8 WHERE c{NUMBER} = 3")
    (after,) = sliced_reports(store, part, NEW)
    assert before.checksum != after.checksum
    assert (before.findings_total, after.findings_total) == (0, 0)
    (unknown,) = sliced_reports(store, part, 99)
    assert "has no element 99" in unknown.error


def test_a_clean_table_is_clean_and_equal_in_slices(
    store: SqliteStore, descriptor: Descriptor, tmp_path: Path
) -> None:
    other = filled(tmp_path / "other.db", descriptor)
    check, _ = sliced(descriptor, 5, store, other)
    assert check.verdict() == []
    assert check.rows == {"n0": ROWS, "n1": ROWS}
    assert check.slices == 4 * -(-ROWS // 5), "rows and three indexes"
    other._connection.execute(f"UPDATE t1 SET c{A} = 9 WHERE c{NUMBER} = 11")
    check, _ = sliced(descriptor, 5, store, other)
    assert "differ: n0 against n1" in check.verdict()[0]
    other.close()


def test_between_two_slices_nothing_is_held_back_and_writes_go_on(
    store: SqliteStore, descriptor: Descriptor
) -> None:
    numbers = iter(range(100, 200))

    def between(check: SlicedCheck) -> None:
        store.begin()
        insert(store, descriptor, next(numbers))
        store.commit(LogPosition(1, lsn=5))
        (told,) = store._connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()
        assert told == (0, 0, 0), "no reader is in the way: the WAL is empty again"
        with store.open_snapshot() as snapshot:
            kept = snapshot.scan(descriptor, None, None, rows_max=1_000)
            assert len(list(kept)) == ROWS + check.slices, "readers see the whole table"

    check, reports = sliced(descriptor, 4, store, between=between)
    assert findings(reports) == set()
    assert check.verdict() == []


def test_a_table_that_is_changed_meanwhile_is_checked_anew(
    store: SqliteStore, descriptor: Descriptor
) -> None:
    check = SlicedCheck(descriptor, ["n0"], 5)
    later = with_state(descriptor, BY_A, State.WRITE_ONLY)
    _, (report, *_) = sliced(descriptor, 5, store)
    check.take([report._replace(node="n0", version=later.version)])
    assert check.wanted is None
    assert "came to version 2 while version 1 was checked" in check.verdict()[0]


def test_who_is_silent_or_fails_ends_the_check(descriptor: Descriptor, store: SqliteStore) -> None:
    _, (report, *_) = sliced(descriptor, 5, store)
    check = SlicedCheck(descriptor, ["n0", "n1"], 5)
    check.take([report._replace(node="n0")])
    assert check.wanted is None
    assert "n1 did not report on rows of table 't' above key ()" in check.verdict()[0]
    check = SlicedCheck(descriptor, ["n0"], 5)
    check.take([report._replace(node="n0", error="it broke")])
    assert "could not be checked: node n0: it broke" in check.verdict()[0]
    assert SlicedCheck(descriptor, [], 5).verdict() == ["no live node: nobody can check"]


@pytest.mark.parametrize("rows_max", [1, 2, 3])
def test_a_key_that_is_there_twice_is_found_wherever_a_slice_ends(
    store: SqliteStore, descriptor: Descriptor, rows_max: int
) -> None:
    for number in (4, 5, 11):
        twice = f"c{B} = {number - 1} WHERE c{NUMBER} = {number}"
        store._connection.execute(f"UPDATE t1 SET {twice}")
        store._connection.execute(f"UPDATE x1_{CODE} SET k0 = k0 - 1 WHERE k0 = {number}")
    (whole,) = reports_of(store, (1,))
    assert {c for c, *_ in whole.findings} >= {6}
    _, reports = sliced(descriptor, rows_max, store)
    assert findings(reports) == findings([whole])
