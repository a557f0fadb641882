"""Goal: two tables that follow each other hold the same rows in every store, and a verification
says which do not.

Method: requests are decided by `verify` and applied as a master does; then rows of one table are
changed behind its back.
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from leasehold.catalog.descriptor import Descriptor
from leasehold.catalog.elements import ALL_ROWS, Column, ForeignKey
from leasehold.catalog.states import State
from leasehold.model.errors import ForeignKeyViolation, Refused, StaleVersion
from leasehold.model.records.jobs import Chunk
from leasehold.model.records.requests import Operation, OperationKind
from leasehold.replication.master.backfill import slice_chunk
from leasehold.values.types import Type
from tests.support.transaction.mirrored_table import (
    BY_V,
    FOLLOWED,
    FOLLOWER,
    ID,
    NEW,
    OLD,
    ONE,
    K,
    V,
    by_id,
    by_k,
    found,
    same_row,
    swap,
)
from tests.support.transaction.written_table import STORES, WrittenTable, opened


@pytest.fixture(params=STORES)
def tables(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[WrittenTable]:
    """Rows 1 and 2 are from before; both tables are written from then on."""
    with opened(request.param, tmp_path) as store:
        made = WrittenTable(store, ONE)
        made.send(by_id("insert", 1, k="a", v=1), by_id("insert", 2, k="b", w="x"))
        made.publish(FOLLOWED)
        made.publish(FOLLOWER)
        yield made


def backfill(tables: WrittenTable, *keys: int, version: int = 2) -> int:
    chunk = Chunk(1, 1, OLD, version, ALL_ROWS, tuple((key,) for key in keys))
    tables.store.begin()
    part = slice_chunk(chunk, 0, len(keys), tables.catalog, tables.store)
    tables.lsn += 1
    for place, change in enumerate(part.changes):
        tables.store.change(tables.catalog.version(NEW, version), change, tables.lsn, place, None)
    tables._commit()
    return part.applied


def test_what_is_written_is_in_both_with_the_same_genids(tables: WrittenTable) -> None:
    tables.send(by_id("insert", 3, k="c", v=7))
    tables.send(by_id("update", 2, w="y"))
    assert same_row(tables, 3)
    assert same_row(tables, 2)
    assert found(tables) == {(4, ALL_ROWS, (1,))}


def test_rows_of_before_are_filled_once(tables: WrittenTable) -> None:
    tables.send(by_id("update", 2, w="y"))
    assert backfill(tables, 1, 2, 9) == 1
    assert backfill(tables, 1, 1) == 0
    assert same_row(tables, 1)
    assert found(tables) == set()


def test_rows_exchange_their_new_keys_and_move(tables: WrittenTable) -> None:
    backfill(tables, 1, 2)
    tables.send(by_id("update", 1, k="b"), by_id("update", 2, k="a"))
    tables.send(by_id("update", 1, k="z"))
    tables.send(by_id("delete", 2), by_id("insert", 5, k="b"))
    assert same_row(tables, 1)
    assert same_row(tables, 5)
    assert found(tables) == set()


def test_after_the_swap_the_old_table_follows(tables: WrittenTable) -> None:
    backfill(tables, 1, 2)
    swap(tables)
    tables.send(by_k("insert", "n", id=7, v=1))
    tables.send(by_k("update", "a", id=2), by_k("update", "b", id=1))
    tables.send(by_id("update", 7, 2, k="m"))
    tables.send(by_k("delete", "b"))
    assert found(tables) == set()
    with pytest.raises(StaleVersion, match=r"\(id\) = \(7\) is another row's"):
        tables.send(by_k("insert", "o", id=7))


def test_a_row_that_differs_is_named(tables: WrittenTable) -> None:
    backfill(tables, 1, 2)
    follower = tables.catalog.version(NEW, 2)
    row = tables.store.row(follower, ("a",))
    assert row is not None
    decided = tables.send(by_id("update", 2, v=5))
    behind = decided.changes[1]
    wrong = behind._replace(key=("a",), image={**row.values, V: 9}, before=row.genids)
    extra = behind._replace(kind=type(behind.kind).INSERT, key=("q",), before={})
    tables.store.begin()
    tables.store.change(follower, wrong._replace(carried=row.genids), tables.lsn, 0, None)
    tables.store.change(follower, extra._replace(image={ID: 9, K: "q"}), tables.lsn, 1, None)
    tables._commit()
    assert found(tables) == {(5, ALL_ROWS, (1,)), (7, ALL_ROWS, ())}


@pytest.mark.parametrize("seed", range(6))
def test_any_requests_at_either_version(tables: WrittenTable, seed: int) -> None:
    print(f"seed {seed}")
    chance = random.Random(seed)
    backfill(tables, 1, 2)
    accepted = 0
    for number in range(150):
        if number == 60:
            swap(tables)
        old = number < 60 or chance.random() < 0.5
        operations = [_any(chance, old, 2 if old else 3) for _ in range(chance.randint(1, 3))]
        with suppress(Refused):
            accepted += bool(tables.send(*operations).changes)
        if number % 30 == 0:
            assert found(tables) == set()
    assert accepted > 30
    assert found(tables) == set()


def _any(chance: random.Random, old: bool, version: int) -> Operation:
    kind = chance.choice(("insert", "update", "update", "upsert", "delete"))
    key, k = chance.randint(1, 4), chance.choice("abcd")
    values: dict[str, Any] = {} if kind == "delete" else {"v": chance.randint(0, 3)}
    if kind in ("insert", "upsert") or (kind == "update" and chance.random() < 0.5):
        values |= {"k": k} if old else {"id": key}
    if values and chance.random() < 0.3:
        values["w"] = chance.choice("xyz")
    return by_id(kind, key, version, **values) if old else by_k(kind, k, version, **values)


PARENT = Descriptor(3, "p", 1, (Column(ID, "id", Type("integer"), False),), (ID,))
REFERS = ForeignKey(9, "f", (V,), 3, (ID,), 0, BY_V)


@pytest.mark.parametrize("swapped", [False, True])
def test_a_parent_may_go_with_its_child_whichever_key_names_it(
    tables: WrittenTable, swapped: bool
) -> None:
    """Both tables refer to it for as long as both may be read."""
    tables.publish(PARENT)
    tables.send(by_id("update", 1, v=None))
    refers: dict[str, Any] = {"version": 3, "foreign_keys": (REFERS,)}
    tables.publish(replace(FOLLOWED, **refers))
    tables.publish(replace(FOLLOWER, **refers))
    if swapped:
        backfill(tables, 1, 2, version=3)
        refers["version"] = 4
        tables.publish(replace(FOLLOWED, **refers, state=State.WRITE_ONLY))
        tables.publish(replace(FOLLOWER, **refers, state=State.PUBLIC))
    parent = Operation(OperationKind.INSERT, "p", {"id": 5}, {})
    gone = parent._replace(kind=OperationKind.DELETE)
    child = by_k("insert", "c", id=7, v=5) if swapped else by_id("insert", 7, k="c", v=5)
    tables.send(parent, child)
    with pytest.raises(ForeignKeyViolation):
        tables.send(gone)
    with pytest.raises(ForeignKeyViolation):
        tables.send(by_k("update", "c", v=6) if swapped else by_id("update", 7, v=6))
    tables.send(gone, by_id("delete", 7, 3) if swapped else by_id("delete", 7))
    tables.send(parent, child)
    tables.send(by_k("delete", "c") if swapped else by_id("delete", 7), gone)
    newest = (tables.catalog.newest(table) for table in (OLD, NEW))
    assert [tables.store.row(t, k) for t, k in zip(newest, ((7,), ("c",)), strict=True)] == [
        None,
        None,
    ]
