"""Goal: a store keeps who may do what, as the log says it; one without roles is read as before.

Method: random changes as catalog writes to a file and to the store in memory, read back.
"""

from __future__ import annotations

from pathlib import Path
from random import Random

import apsw
import pytest

from leasehold.adapters.sqlite.access import sum_access
from leasehold.adapters.sqlite.layout import ACCESS_LAYOUT, FIRST_LAYOUT
from leasehold.adapters.sqlite.store import SqliteStore
from leasehold.catalog.access import Access
from leasehold.model.ports import StoredCatalog
from leasehold.model.records.log import AccessWrite, LogPosition
from tests.support.memory_store.store import MemoryStore
from tests.support.roles.random_access import TABLE, changed_at_random, told


def loaded(stored: StoredCatalog) -> object:
    return told(Access.load(stored.access, stored.next_role_id))


def layout(path: Path) -> int:
    return int(apsw.Connection(str(path)).pragma("user_version"))


def test_what_was_written_is_read_and_what_was_rolled_back_is_not(tmp_path: Path) -> None:
    path = tmp_path / "node.db"
    store, memory = SqliteStore(path, cache_mb=1), MemoryStore()
    chance, access = Random(5), Access()
    sums: dict[tuple[int, bytes], object] = {}
    for number in range(200):
        changed = changed_at_random(access, chance)
        stays = chance.random() < 0.8
        for each in (store, memory):
            each.begin()
            for write in changed.writes_since(access):
                each.put_access(write, changed.next_role_id)
            if stays:
                each.commit(LogPosition(number, lsn=number))
            else:
                each.rollback()
        access = changed if stays else access
        with store.open_snapshot() as snapshot:
            assert told(snapshot.catalog.access) == told(access)
            summed = sum_access(snapshot.connection)
            assert sums.setdefault(summed, told(access)) == told(access)
        for each in (store, memory):
            assert loaded(each.catalog()) == told(access)
    assert len(sums) > 100, "each says something else"
    store.close()
    store = SqliteStore(path, cache_mb=1)
    assert loaded(store.catalog()) == told(access)
    store.begin()
    store.forget_table(TABLE)
    store.commit(LogPosition(999, lsn=999))
    assert loaded(store.catalog()) == told(access.without_object(TABLE))
    store.close()


@pytest.mark.parametrize("commits", [False, True])
def test_a_file_says_that_it_has_roles_once_it_has(tmp_path: Path, commits: bool) -> None:
    """A program that knows of none is not to serve it: it would let everybody do all."""
    path = tmp_path / "node.db"
    store = SqliteStore(path, cache_mb=1)
    assert layout(path) == FIRST_LAYOUT
    store.begin()
    store.put_access(AccessWrite(TABLE, 0, {"owner": 11, "acl": None}), 20_000)
    store.commit(LogPosition(1, lsn=1)) if commits else store.rollback()
    store.close()
    assert layout(path) == (ACCESS_LAYOUT if commits else FIRST_LAYOUT)


def test_a_file_of_an_earlier_release_has_the_first_role(tmp_path: Path) -> None:
    path = tmp_path / "node.db"
    store = SqliteStore(path, cache_mb=1)
    store.begin()
    store._connection.execute("DROP TABLE access")
    store.commit(LogPosition(1, lsn=1))
    with store.open_snapshot() as snapshot:
        assert told(snapshot.catalog.access) == told(Access())
    store.close()
    store = SqliteStore(path, cache_mb=1)
    assert loaded(store.catalog()) == told(Access())
    store.close()
