"""How many rows a table has is kept with its rows, through every way a transaction can end."""

from __future__ import annotations

from pathlib import Path

import apsw
import pytest

from leasehold.adapters.sqlite.store import SqliteStore
from leasehold.model.records.log import ChangeKind, LogPosition, RowChange
from tests.unit.adapters.sqlite.test_removal import ROWS, Filled


@pytest.fixture
def filled(tmp_path: Path) -> Filled:
    return Filled(tmp_path, composite=False)


def insert(filled: Filled, number: int) -> None:
    change = RowChange(ChangeKind.INSERT, 1, 1, (number,), {1: number, 3: 0}, {}, (0,))
    filled.store.change(filled.newest, change, filled.lsn + 1, 0, None)


def test_what_was_rolled_back_does_not_count(filled: Filled) -> None:
    store = filled.store
    store.begin()
    insert(filled, 100)
    store.savepoint()
    insert(filled, 101)
    assert store.rows_about(1) == ROWS + 2
    store.rollback_to()
    assert store.rows_about(1) == ROWS + 1
    store.rollback()
    assert store.rows_about(1) == ROWS
    store.begin()
    store.savepoint()
    insert(filled, 102)
    store.release()
    store.commit(LogPosition(offset=99, lsn=99))
    assert store.rows_about(1) == ROWS + 1


def test_it_is_there_when_the_store_is_opened_again(filled: Filled) -> None:
    path = filled.store.path
    filled.store.close()
    reopened = SqliteStore(path)
    assert reopened.rows_about(1) == ROWS
    assert reopened.rows_about(2) == 0
    reopened.close()


def test_a_store_of_an_earlier_program_is_counted_once_when_opened(filled: Filled) -> None:
    path = filled.store.path
    filled.store.close()
    with apsw.Connection(str(path)) as connection:
        connection.execute("DROP TABLE row_counts")
    connection.close()
    reopened = SqliteStore(path)
    assert reopened.rows_about(1) == ROWS
    reopened.close()


def test_a_table_that_is_gone_is_not_counted(filled: Filled) -> None:
    filled.drop_table()
    filled.remove()
    assert filled.store.rows_about(1) == 0
