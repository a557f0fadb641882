"""Goal: rows on the disk are for the user of the process, whatever the umask says."""

from __future__ import annotations

import logging
import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from leasehold.adapters.http import snapshot_server
from leasehold.adapters.http.snapshot_fetch import fetch_snapshot
from leasehold.adapters.http.snapshot_server import SnapshotServer
from leasehold.adapters.sqlite.store import SqliteStore
from leasehold.dev.database import DevDatabase
from leasehold.model.errors import ConfigurationError
from leasehold.settings.private_files import make_private_folder
from tests.unit.adapters.sqlite.test_snapshot import backfill

TOKEN = "known-to-all-nodes"


@pytest.fixture(autouse=True)
def umask() -> Iterator[None]:
    """The usual one, by which everybody may read what is made."""
    before = os.umask(0o022)
    yield
    os.umask(before)


def modes(folder: Path) -> set[int]:
    return {path.stat().st_mode & 0o777 for path in (folder, *folder.rglob("*"))}


def test_a_store_is_closed_to_others(tmp_path: Path) -> None:
    store = SqliteStore(tmp_path / "r1" / "store.db", cache_mb=1)
    backfill(store)
    names = {path.name for path in (tmp_path / "r1").iterdir()}
    assert names == {"store.db", "store.db-wal", "store.db-shm", "store.db.lock", "temp"}
    assert modes(tmp_path / "r1") == {0o700, 0o600}
    store.close()


def test_so_is_one_that_was_copied(tmp_path: Path) -> None:
    store = SqliteStore(tmp_path / "theirs" / "store.db", cache_mb=1)
    backfill(store)
    server = SnapshotServer(store.path, token=TOKEN)
    try:
        fetch_snapshot(server.url, tmp_path / "mine" / "store.db", token=TOKEN)
    finally:
        server.close()
        store.close()
    assert modes(tmp_path / "mine") == {0o700, 0o600}


def test_every_file_of_a_running_node_is(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """A node that has rows, hands out a snapshot, and takes one; a file that somebody has left open
    in its folder is closed at its start, with a line."""
    left = tmp_path / "r1" / "notes" / "rows.csv"
    left.parent.mkdir(parents=True)
    left.touch(0o644)
    copied: list[set[int]] = []
    copy_store = snapshot_server.copy_store

    def watched(source: Path, target: Path) -> snapshot_server.StoreCopy:
        made = copy_store(source, target)
        copied.append(modes(source.parent))
        return made

    monkeypatch.setattr(snapshot_server, "copy_store", watched)
    database = DevDatabase(tmp_path)
    try:
        database.wait_ready()
        database.ask({"sql": "create table t (id bigint primary key, a text)"})
        for key in range(50):
            row = {"id": key, "a": "x" * 10_000}
            database.ask({"table": "t", "op": "insert", "values": row})
        server = SnapshotServer(tmp_path / "r1" / "store.db", token=TOKEN)
        try:
            fetch_snapshot(server.url, tmp_path / "r9" / "store.db", token=TOKEN)
        finally:
            server.close()
        for name in ("m1", "r1", "r9"):
            assert modes(tmp_path / name) == {0o700, 0o600}, name
        assert copied == [{0o700, 0o600}]
    finally:
        database.close()
    assert f"{left} was open to other users of this machine (mode 644)" in caplog.text


def test_an_open_store_of_an_older_release_is_closed_and_it_is_said(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    folder = tmp_path / "r1"
    store = SqliteStore(folder / "store.db", cache_mb=1)
    backfill(store)
    for name in ("store.db", "store.db-wal", "store.db-shm"):
        (folder / name).chmod(0o644)
    folder.chmod(0o755)
    store.close()
    with caplog.at_level(logging.WARNING):
        make_private_folder(folder)
        SqliteStore(folder / "store.db", cache_mb=1).close()
    assert modes(folder) == {0o700, 0o600}
    assert f"{folder} was open to other users of this machine (mode 755)" in caplog.text
    assert f"{folder / 'store.db'} was open" in caplog.text


def test_what_belongs_to_somebody_else_is_not_used(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "store.db").touch(0o644)
    monkeypatch.setattr(os, "geteuid", lambda: os.getuid() + 1)
    with pytest.raises(ConfigurationError, match=r"store\.db \(mode 644\) is open to other users"):
        SqliteStore(tmp_path / "store.db", cache_mb=1)
