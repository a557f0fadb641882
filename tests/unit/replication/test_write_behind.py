"""Goal: a store whose changes wait shows, at any moment, what a store shows that was told at once.

Method: random writes under both versions in use, reads of every row under both, of entries and of
outcomes, and settling and giving up in between, on two equal stores, one of them behind
WriteBehind."""

from __future__ import annotations

import tempfile
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import event, given, settings
from hypothesis import strategies as st

from leasehold.adapters.sqlite.store import SqliteStore
from leasehold.catalog.elements import Lock
from leasehold.catalog.states import WRITTEN
from leasehold.model.errors import StoreCorrupted
from leasehold.model.keys import Key
from leasehold.model.ports import StoreWriter
from leasehold.model.records.log import ChangeKind, LogPosition, RowChange
from leasehold.model.records.requests import Outcome
from leasehold.replication.master.write_behind import WriteBehind
from leasehold.rows.key_values import compose
from tests.support.memory_store.store import MemoryStore
from tests.support.sqlite.flights_table import BY_GATE, GATE, NUMBER, PRICE, SEATS, TABLE, history

HISTORY = history(wide_key=False)
LOCKED = replace(HISTORY[-1], version=len(HISTORY) + 1, row_locks=(Lock(20, "l"),))
VERSIONS = (*HISTORY, LOCKED)
KEYS = [(n,) for n in range(3)]
VALUES = st.fixed_dictionaries(
    {GATE: st.integers(0, 2)},
    optional={
        SEATS: st.one_of(st.none(), st.integers(0, 2), st.just(2**62)),
        PRICE: st.sampled_from([None, 0.5, 1.0, 1e300]),
    },
)
STEP = st.one_of(
    st.tuples(
        st.just("write"),
        st.sampled_from([ChangeKind.UPDATE, ChangeKind.DELETE, ChangeKind.BACKFILL]),
        st.integers(0, 1),
        st.sampled_from(KEYS),
        VALUES,
    ),
    st.tuples(st.just("row"), st.integers(0, 1), st.sampled_from(KEYS)),
    st.tuples(st.just("lacks"), st.lists(st.sampled_from(KEYS), min_size=1)),
    st.tuples(st.just("holders"), st.integers(0, 2)),
    st.tuples(st.just("remember"), st.integers(0, 2)),
    *(st.tuples(st.just(name)) for name in ("settle", "commit", "rollback", "last_write")),
)


class Twice:
    """`told` at once, and `late`; `lower` and the version after it are in use."""

    def __init__(self, told: StoreWriter, behind: StoreWriter, lower: int) -> None:
        self.told, self.behind, self.late = told, behind, WriteBehind(behind)
        self.versions = VERSIONS[lower : lower + 2]
        self.lsn, self.commits = 0, 0
        for store in (told, behind):
            store.keep_rows(True)
        self.begin()
        for store in (told, behind):
            for version in VERSIONS[: lower + 2]:
                store.prepare(version)
        self.commit()

    def begin(self) -> None:
        self.told.begin()
        self.late.begin()

    def commit(self) -> None:
        self.commits += 1
        position = LogPosition(self.commits, 1, b"i", self.commits, b"d", self.lsn, 5, {})
        self.told.commit(position)
        self.late.settle().commit(position)
        self.begin()

    def write(self, kind: ChangeKind, which: int, key: Key, values: Mapping[int, Any]) -> None:
        """A row that is not there is inserted, whatever was wanted."""
        descriptor = self.versions[which]
        row = self.told.row(descriptor, key)
        kind = ChangeKind.INSERT if row is None else kind
        image = None
        if kind is not ChangeKind.DELETE:
            visible = {c.element_id for c in descriptor.by_name.values()}
            pairs = {e: v for e, v in values.items() if e in visible}
            if row is None:
                pairs[NUMBER] = key[0]
            image = compose(descriptor, kind, None if row is None else row.values, pairs)
        self.lsn += 1
        locks = () if kind is ChangeKind.BACKFILL else descriptor.locks
        genids = {} if row is None else row.genids
        change = RowChange(kind, TABLE, descriptor.version, key, image, genids, locks)
        for store in (self.told, self.late):
            store.change(descriptor, change, self.lsn, 0, row)

    def perform(self, step: tuple[Any, ...]) -> None:
        event(step[0])
        match step:
            case ("write", kind, which, key, values):
                self.write(kind, which, key, values)
            case ("row", which, key):
                shown = self.told.row(self.versions[which], key)
                assert self.late.row(self.versions[which], key) == shown
            case ("lacks", keys):
                reader = self.versions[0]
                if self.late.lacks(reader, keys):  # else it says nothing
                    assert not any(self.told.row(reader, key) for key in keys)
            case ("holders", gate):
                reader = self.versions[0]
                if any(i.element_id == BY_GATE and i.state in WRITTEN for i in reader.indexes):
                    told = list(self.told.holders(reader, BY_GATE, (gate,), 9))
                    assert list(self.late.holders(reader, BY_GATE, (gate,), 9)) == told
            case ("remember", number):
                made = Outcome(1, self.lsn, 1, self.lsn, True)
                for store in (self.told, self.late):
                    if store.outcome(bytes([number])) is None:
                        store.put_outcome(bytes([number]), made)
                assert self.late.outcome(bytes([number])) == self.told.outcome(bytes([number]))
            case ("last_write",):
                assert self.late.last_write(TABLE) == self.told.last_write(TABLE)
            case ("settle",):
                self.late.settle()
                assert not self.late.waits
            case ("commit",):
                self.commit()
            case ("rollback",):
                self.told.rollback()
                self.late.rollback()
                self.begin()

    def compare(self) -> None:
        """The stores themselves, once nothing waits."""
        self.late.settle()
        for version in self.versions:
            for key in KEYS:
                assert self.behind.row(version, key) == self.told.row(version, key)


@settings(max_examples=150)
@given(lower=st.integers(0, len(VERSIONS) - 2), steps=st.lists(STEP, max_size=30))
def test_what_waits_is_seen(lower: int, steps: list[tuple[Any, ...]]) -> None:
    run = Twice(MemoryStore(), MemoryStore(), lower)
    for step in steps:
        run.perform(step)
    run.compare()


@settings(max_examples=60)
@given(lower=st.integers(0, len(VERSIONS) - 2), steps=st.lists(STEP, max_size=30))
def test_what_waits_is_seen_on_sqlite(lower: int, steps: list[tuple[Any, ...]]) -> None:
    with tempfile.TemporaryDirectory() as folder:
        told, behind = (SqliteStore(Path(folder) / name, cache_mb=1) for name in ("a", "b"))
        run = Twice(told, behind, lower)
        for step in steps:
            run.perform(step)
        run.compare()
        told.close()
        behind.close()


def test_rows_that_wait_are_not_missing() -> None:
    run = Twice(MemoryStore(), MemoryStore(), 0)
    assert run.late.lacks(VERSIONS[0], KEYS)
    run.write(ChangeKind.INSERT, 0, (1,), {SEATS: 2})
    assert run.late.waits
    assert not run.late.lacks(VERSIONS[0], KEYS)
    assert run.late.lacks(VERSIONS[0], [(0,), (2,)])


def test_entries_are_those_of_what_waits() -> None:
    run = Twice(MemoryStore(), MemoryStore(), 3)
    run.write(ChangeKind.INSERT, 0, (1,), {GATE: 2})
    assert run.late.waits
    assert list(run.late.holders(run.versions[0], BY_GATE, (2,), 9)) == [(1,)]


def test_under_a_version_with_another_lock_a_row_has_that_ones_genid() -> None:
    """⚠ What waits knows the genids that its writer's version has."""
    run = Twice(MemoryStore(), MemoryStore(), len(HISTORY) - 1)
    run.write(ChangeKind.INSERT, 1, (1,), {GATE: 2})
    run.commit()
    run.write(ChangeKind.UPDATE, 0, (1,), {GATE: 1})
    row = run.late.row(LOCKED, (1,))
    assert row == run.told.row(LOCKED, (1,))
    assert row is not None
    assert set(row.genids) == {0, 20}


def test_nothing_is_put_before_it_is_settled() -> None:
    run = Twice(MemoryStore(), MemoryStore(), 0)
    run.write(ChangeKind.INSERT, 0, (1,), {SEATS: 2})
    run.late.put_outcome(b"1", Outcome(1, 1, 1, 1, True))
    assert run.behind.row(VERSIONS[0], (1,)) is None
    assert run.behind.outcome(b"1") is None
    run.late.settle()
    assert run.behind.row(VERSIONS[0], (1,)) == run.told.row(VERSIONS[0], (1,))
    assert run.behind.outcome(b"1") is not None


def test_what_contradicts_the_store_is_found_when_it_is_put() -> None:
    run = Twice(MemoryStore(), MemoryStore(), 0)
    run.write(ChangeKind.INSERT, 0, (1,), {SEATS: 2})
    row = run.late.row(VERSIONS[0], (1,))
    assert row is not None
    wrong = RowChange(ChangeKind.DELETE, TABLE, 1, (1,), None, {0: 99}, VERSIONS[0].locks)
    run.late.change(VERSIONS[0], wrong, 9, 0, row)
    assert run.late.row(VERSIONS[0], (1,)) is None
    with pytest.raises(StoreCorrupted):
        run.late.settle()
