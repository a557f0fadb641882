"""The catalog as readers have it: after any change what a reader has that knew nothing before, and
nothing decoded of tables that have not changed."""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import apsw
import pytest

from leasehold.adapters.sqlite import read_catalog
from leasehold.adapters.sqlite.layout import CHANGES_KEPT
from leasehold.adapters.sqlite.store import SqliteStore
from leasehold.catalog.access import ObjectAccess
from leasehold.catalog.descriptor import Descriptor, from_wire
from leasehold.catalog.elements import Column
from leasehold.catalog.states import State
from leasehold.model.records.log import AccessWrite, LogPosition
from leasehold.values.types import Type

COLUMNS = (Column(1, "id", Type("bigint"), nullable=False),)
TABLES = 8


def table(table_id: int, version: int = 1, **other: Any) -> Descriptor:
    other = {"name": f"t{table_id}", **other}
    return Descriptor(
        table_id=table_id, version=version, columns=COLUMNS, primary_key=(1,), **other
    )


class Changed:
    """A store that is changed step by step; `newest` is what it ought to have."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.store = SqliteStore(path)
        self.newest: dict[int, Descriptor] = {}
        self._lsn = 0

    def commit(self, *puts: Descriptor, owner: int = 0, forget: int = 0, fence: int = 0) -> None:
        self._lsn += 1
        store = self.store
        store.begin()
        for descriptor in puts:
            store.prepare(descriptor)
            store.put_descriptor(descriptor.table_id, descriptor.version, descriptor.to_wire())
            self.newest[descriptor.table_id] = descriptor
        if fence:
            store.put_min_version(fence, self.newest[fence].version)
        if owner:
            store.put_access(AccessWrite(1, 0, ObjectAccess(owner).to_wire()), 0)
        if forget:
            store.forget_table(forget)
            del self.newest[forget]
        store.commit(LogPosition(offset=self._lsn, lsn=self._lsn))

    def read(self) -> read_catalog.ReadCatalog:
        with self.store.open_snapshot() as snapshot:
            return snapshot.catalog


@pytest.fixture
def changed(tmp_path: Path) -> Iterator[Changed]:
    made = Changed(tmp_path / "store.db")
    made.commit(*map(table, range(1, TABLES + 1)))
    yield made
    made.store.close()


@pytest.fixture
def decoded(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    names: list[str] = []

    def decode(body: Any) -> Descriptor:
        names.append(body["name"])
        return from_wire(body)

    monkeypatch.setattr(read_catalog, "from_wire", decode)
    return names


def assert_as_anew(changed: Changed) -> None:
    """Compare with what a reader finds who begins now."""
    found = changed.read()
    with changed.store.open_snapshot() as snapshot:
        anew = read_catalog.CatalogReader().at(found.changes, snapshot.connection)
    assert found._replace(access=anew.access) == anew
    assert found.access.objects == anew.access.objects
    assert {t: kept[-1] for t, kept in found.versions.items()} == changed.newest


def test_of_one_change_one_table_is_decoded(changed: Changed, decoded: list[str]) -> None:
    before = changed.read()
    decoded.clear()
    changed.commit(table(3, 2), fence=3)
    after = changed.read()
    assert decoded == ["t3"], "its version before stands there as it was"
    assert after.newest["t3"].version == 2
    assert after.newest["t4"] is before.newest["t4"], "plans for it stay good"
    assert after.versions[3][0] is before.versions[3][0]


def test_after_any_changes_it_is_what_one_finds_who_begins(changed: Changed) -> None:
    rng = random.Random(7)
    for _ in range(150):
        table_id = rng.randint(1, TABLES)
        there = changed.newest.get(table_id)
        version = 1 if there is None else there.version + 1
        kind = rng.choice(["plain", "renamed", "renaming", "absent", "owner", "forget", "two"])
        if kind == "owner":
            changed.commit(owner=rng.randint(20_000, 20_003))
        elif kind == "forget" and there is not None:
            changed.commit(forget=table_id)
        else:
            made = table(table_id, version)
            if kind == "renamed":
                made = replace(made, name=f"u{table_id}")
            elif kind == "renaming":
                made = replace(made, alias=f"v{table_id}")
            elif kind == "absent":
                made = replace(made, state=State.ABSENT)
            elif kind == "two":  # it takes the place of another, and has its name beside it
                made = replace(made, name=f"t{rng.randint(1, TABLES)}")
            changed.commit(made, fence=table_id)
        if rng.random() < 0.7:
            assert_as_anew(changed)


def test_a_reader_that_has_slept_reads_all(changed: Changed) -> None:
    changed.read()
    for number in range(CHANGES_KEPT + 10):
        changed.commit(owner=20_000 + number % 3)
    changed.commit(table(2, 2))
    assert_as_anew(changed)


def test_changes_of_an_earlier_program_are_read(changed: Changed) -> None:
    """It counts them, and says nothing of which table they were of."""
    changed.read()
    other = apsw.Connection(str(changed.path))
    body = other.execute("SELECT body FROM descriptors WHERE table_id = 5").get
    other.execute("INSERT INTO descriptors VALUES (99, 1, ?)", (body,))
    other.execute("UPDATE position SET catalog = catalog + 1")
    other.close()
    changed.commit(table(2, 2))
    assert changed.read().versions.keys() == {*range(1, TABLES + 1), 99}


def test_two_snapshots_have_each_its_own(changed: Changed, decoded: list[str]) -> None:
    with changed.store.open_snapshot() as before:
        changed.commit(table(1, 2))
        with changed.store.open_snapshot() as after:
            for _ in range(2):
                assert before.catalog.newest["t1"].version == 1
                assert after.catalog.newest["t1"].version == 2
            decoded.clear()
            assert before.catalog is before.catalog
            assert decoded == []
