"""Goal: a store tells how large it is and what its WAL and cache come to.

Method: a store on a file, written to as a node writes.
"""

from __future__ import annotations

from pathlib import Path

from leasehold.adapters.sqlite.store import SqliteStore
from leasehold.model import metrics
from leasehold.model.measures import Metric
from leasehold.model.records.log import LogPosition


def test_a_store_tells_of_its_files_cache_and_disk(tmp_path: Path) -> None:
    store = SqliteStore(tmp_path / "store.db")
    try:
        store.begin()
        store.commit(LogPosition(offset=1))
        store.tidy()
        found: dict[Metric, object] = {s.metric: s.value for s in store.measures.samples()}
        assert found[metrics.WAL_BYTES] == (tmp_path / "store.db-wal").stat().st_size
        assert found[metrics.STORE_BYTES] == (tmp_path / "store.db").stat().st_size
        pages = found[metrics.WAL_PAGES]
        assert isinstance(pages, int)
        assert pages >= 1
        assert found[metrics.WAL_PAGES_LEFT] == pages, "nothing is copied yet"
        cache = found[metrics.CACHE_BYTES]
        assert isinstance(cache, int)
        assert cache > 1_000
        free, whole = found[metrics.DISK_FREE], found[metrics.DISK_BYTES]
        assert isinstance(free, int)
        assert isinstance(whole, int)
        assert 0 < free <= whole
    finally:
        store.close()
