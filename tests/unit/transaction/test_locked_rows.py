"""A row is locked by an update of nothing: values stay, and each of its locks has a new genid."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from leasehold.catalog.descriptor import Descriptor
from leasehold.catalog.elements import Column, Lock
from leasehold.model.ids import genid
from leasehold.transaction.row_conflict import RowRefused
from leasehold.values.types import Type
from tests.support.transaction.written_table import WrittenTable, insert, update

INTEGER = Type("integer")
COLUMNS = (Column(1, "id", INTEGER, False), Column(2, "a", INTEGER), Column(3, "b", INTEGER))
TABLE = Descriptor(1, "t", 1, COLUMNS, (1,), next_element_id=10)
OF_LOCKS = replace(
    TABLE,
    columns=(*COLUMNS[:2], replace(COLUMNS[2], locks=(5,))),
    row_locks=(Lock(5, "l"),),
)
LOCK = update("t", 1)


@pytest.mark.parametrize("table", [TABLE, OF_LOCKS], ids=["one lock", "two locks"])
def test_it_changes_genids_alone(store: Any, table: Descriptor) -> None:
    made = WrittenTable(store, table)
    made.send(insert("t", 1, a=1, b=2))
    before = made.store.row(table, (1,))
    (change,) = made.send(LOCK).changes
    assert change.locks == table.locks
    after = made.store.row(table, (1,))
    assert before is not None
    assert after is not None
    assert after.values == before.values
    assert after.genids == dict.fromkeys(table.locks, genid(2, 0))


def test_who_has_seen_one_lock_of_it_alone_is_refused(store: Any) -> None:
    """He has read columns under that one, in which nothing has changed."""
    made = WrittenTable(store, OF_LOCKS)
    made.send(insert("t", 1, a=1, b=2))
    writes = update("t", 1, b=3)._replace(expect={"l": genid(1, 0)})
    made.send(LOCK)
    with pytest.raises(RowRefused):
        made.send(writes)
    made.send(writes._replace(expect={"l": genid(2, 0)}))


def test_behind_its_own_write_it_locks_what_that_has_left(store: Any) -> None:
    made = WrittenTable(store, OF_LOCKS)
    made.send(insert("t", 1, a=1, b=2))
    made.send(update("t", 1, a=5)._replace(expect=genid(1, 0)), LOCK)
    row = made.store.row(OF_LOCKS, (1,))
    assert row is not None
    assert row.values == {1: 1, 2: 5, 3: 2}
    assert row.genids == dict.fromkeys((0, 5), genid(2, 1))


def test_a_row_that_is_gone_is_not_locked(store: Any) -> None:
    made = WrittenTable(store, TABLE)
    assert made.send(LOCK).changes == ()
