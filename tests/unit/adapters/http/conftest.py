"""A node's store, and a server that hands it out."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from leasehold.adapters.http.snapshot_server import (
    SnapshotServer,
)
from leasehold.adapters.sqlite.store import SqliteStore
from tests.support.http.snapshot_talk import (
    TOKEN,
)
from tests.unit.adapters.sqlite.test_snapshot import backfill


@pytest.fixture
def store(tmp_path: Path) -> Iterator[SqliteStore]:
    (tmp_path / "theirs").mkdir()
    made = SqliteStore(tmp_path / "theirs" / "node.db", cache_mb=1)
    backfill(made)
    yield made
    made.close()


@pytest.fixture
def server(store: SqliteStore) -> Iterator[SnapshotServer]:
    started = SnapshotServer(store.path, token=TOKEN)
    yield started
    started.close()
