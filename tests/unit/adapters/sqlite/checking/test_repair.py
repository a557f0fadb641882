"""Entries are put right by their rows, as both are then; nothing else is touched."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from leasehold.adapters.sqlite.store import SqliteStore
from leasehold.catalog.descriptor import Descriptor
from leasehold.catalog.elements import Column, Index
from leasehold.catalog.states import State
from leasehold.model.records.acks import CheckReport
from leasehold.model.records.log import ChangeKind, LogPosition, RowChange
from leasehold.values.types import Type
from tests.support.descriptors import with_state
from tests.support.memory_store.store import MemoryStore
from tests.support.sqlite.lockstep import reports_of

Store = SqliteStore | MemoryStore
KEY, A, BY_A, BY_NEW = 1, 2, 3, 4
TABLE = Descriptor(
    1,
    "t",
    1,
    (Column(KEY, "id", Type("integer"), nullable=False), Column(A, "a", Type("integer"))),
    (KEY,),
    (Index(BY_A, "by_a", (A,)), Index(BY_NEW, "by_new", (A, KEY), state=State.WRITE_ONLY)),
    next_element_id=5,
)
ROWS = {1: 10, 2: 20, 3: None, 4: 10}


@pytest.fixture(params=["sqlite", "memory"])
def store(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Store]:
    made: Store = SqliteStore(tmp_path / "s.db") if request.param == "sqlite" else MemoryStore()

    def backfill() -> None:
        made.prepare(TABLE)
        made.put_descriptor(1, 1, TABLE.to_wire())
        for key, value in ROWS.items():
            write(made, ChangeKind.INSERT, key, value)

    commit(made, backfill)
    yield made
    if isinstance(made, SqliteStore):
        made.close()


def commit(store: Store, work: Callable[[], None]) -> None:
    store.begin()
    work()
    store.commit(LogPosition(1, lsn=9))


def write(store: Store, kind: ChangeKind, key: int, value: int | None) -> None:
    row = store.row(TABLE, (key,))
    before = {} if row is None else row.genids
    store.change(
        TABLE, RowChange(kind, 1, 1, (key,), {KEY: key, A: value}, before, (0,)), 9, 0, None
    )


def remove(store: Store, index: int, value: int | None, key: int) -> None:
    """The entry is lost, as by a fault of the disk."""
    tail = () if index == BY_A else (key,)
    if isinstance(store, MemoryStore):
        store._committed.entries.discard((1, index, (value, *tail), (key,)))
    else:
        text = f"DELETE FROM x1_{index} WHERE k0 IS ? AND p0 = ?"
        store._connection.execute(text, (b"" if value is None else value, key))


def put(store: Store, index: int, value: int | None, key: int) -> None:
    """An entry that no row has."""
    tail = () if index == BY_A else (key,)
    if isinstance(store, MemoryStore):
        store._committed.entries.add((1, index, (value, *tail), (key,)))
    else:
        holes = ", ".join("?" * (2 + len(tail)))
        entry = (b"" if value is None else value, *tail, key)
        store._connection.execute(f"INSERT INTO x1_{index} VALUES ({holes})", entry)


def checked(store: Store, subject: bytes = b"repair") -> CheckReport:
    store.check(subject, (1,), (), repairs_max=100)
    while not (found := store.checked()):
        pass
    (report,) = found
    assert not report.error, report.error
    return report


def repair(store: Store, at_once: int = 100, descriptor: Descriptor = TABLE) -> int:
    total, more = 0, True
    while more:
        store.begin()
        changed, more = store.repair(descriptor, b"repair", at_once)
        store.commit(LogPosition(1, lsn=9))
        total += changed
    return total


@pytest.mark.parametrize("at_once", [1, 2, 100])
def test_lost_stray_and_different_entries_become_what_the_rows_say(
    store: Store, at_once: int
) -> None:
    clean = checked(store)
    remove(store, BY_A, 10, 1)
    remove(store, BY_A, None, 3)
    put(store, BY_A, 99, 2)
    put(store, BY_A, 5, 77)
    remove(store, BY_NEW, 20, 2)
    put(store, BY_NEW, 21, 2)
    found = checked(store)
    assert sorted((c, e, k) for c, e, k, _ in found.findings if e == BY_A) == [
        (4, BY_A, (1,)),
        (4, BY_A, (3,)),
        (5, BY_A, (2,)),
        (5, BY_A, (77,)),
    ]
    assert found.rows_checksum == clean.rows_checksum, "no row is touched by a lost entry"
    assert found.checksum != clean.checksum
    assert repair(store, at_once) == 4 + 2
    again = checked(store)
    assert (again.findings_total, again.checksum) == (0, clean.checksum)


def test_what_a_write_has_put_right_meanwhile_stays(store: Store) -> None:
    put(store, BY_A, 30, 2)
    remove(store, BY_A, 10, 1)
    assert checked(store).findings_total == 2
    commit(store, lambda: write(store, ChangeKind.UPDATE, 2, 30))
    commit(store, lambda: write(store, ChangeKind.UPDATE, 1, 11))
    assert repair(store) == 0
    assert reports_of(store, (1,))[0].findings_total == 0


def test_an_index_that_is_gone_by_then_is_left_alone(store: Store) -> None:
    remove(store, BY_A, 10, 1)
    checked(store)
    assert repair(store, descriptor=with_state(TABLE, BY_A, State.ABSENT)) == 0


def test_another_check_comes_between_and_an_unasked_one_remembers_nothing(store: Store) -> None:
    remove(store, BY_A, 10, 1)
    reports_of(store, (1,))
    assert repair(store) == 0, "nobody asked for a repair"
    checked(store)
    checked(store, b"another")
    assert repair(store) == 0
    assert reports_of(store, (1,))[0].findings_total == 1


def test_a_value_of_another_type_is_another_entry(tmp_path: Path) -> None:
    """1 and 1.0 are equal to Python; the index would not find the row by it."""
    made = SqliteStore(tmp_path / "s.db")
    commit(made, lambda: made.prepare(TABLE))
    commit(made, lambda: made.put_descriptor(1, 1, TABLE.to_wire()))
    commit(made, lambda: write(made, ChangeKind.INSERT, 1, 10))
    made._connection.execute(f"UPDATE x1_{BY_A} SET k0 = 10.0")
    assert checked(made).findings_total > 0
    assert repair(made) == 2
    assert checked(made).findings_total == 0
    made.close()
