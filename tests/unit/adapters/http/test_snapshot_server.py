"""Goal: a node gets a whole copy of another's store, of one commit.

Method: real sockets on loopback.
"""

from __future__ import annotations

import socket
from collections.abc import Mapping
from pathlib import Path
from threading import Event, Thread

import pytest

from leasehold.adapters.http import snapshot_server
from leasehold.adapters.http.copies import CopiesUnderWay
from leasehold.adapters.http.snapshot_fetch import fetch_snapshot
from leasehold.adapters.http.snapshot_server import (
    SnapshotServer,
    copy_store,
)
from leasehold.adapters.sqlite.store import SqliteStore
from leasehold.model.errors import ConfigurationError, SnapshotUnavailable
from leasehold.model.records.log import ChangeKind, LogPosition
from tests.support.http.snapshot_talk import (
    DEADLINE_S,
    TOKEN,
    ask,
    left_in,
)
from tests.support.sqlite.lockstep import reports_of
from tests.unit.adapters.sqlite.test_snapshot import CARS, backfill, put


def test_a_fetched_store_is_the_same_store(
    store: SqliteStore, server: SnapshotServer, tmp_path: Path
) -> None:
    mine = tmp_path / "mine" / "node.db"
    assert server.url.startswith("http://127.0.0.1:")
    assert fetch_snapshot(server.url, mine, token=TOKEN) == store.position()
    copy = SqliteStore(mine, cache_mb=1)
    (theirs,), (ours,) = reports_of(store), reports_of(copy)
    assert theirs._replace(took_ms=0) == ours._replace(took_ms=0)
    assert copy.catalog() == store.catalog()
    copy.begin()
    put(copy, ("n", 1, None, None), 6, ChangeKind.INSERT)
    copy.commit(LogPosition(4, lsn=6))
    copy.close()
    assert left_in(mine.parent) == {"node.db", "node.db.lock"}
    assert left_in(store.path.parent) == {"node.db", "node.db-wal", "node.db-shm", "node.db.lock"}


def test_a_copy_says_the_layout_that_it_needs(store: SqliteStore, tmp_path: Path) -> None:
    """Not the newest of this program: a node of release 0.1.0 takes what it can read, layout 2 at
    most, and compares the numbers."""
    assert copy_store(store.path, tmp_path / "without").layout == 2
    store.begin()
    store.commit(store.position()._replace(feature_level=9))
    assert copy_store(store.path, tmp_path / "with").layout == 3


def test_a_copy_is_of_one_commit_while_the_writer_goes_on(
    store: SqliteStore, server: SnapshotServer, tmp_path: Path
) -> None:
    """Every commit puts one row and moves the LSN by one, so LSN and rows must agree."""
    stop = Event()

    def write() -> None:
        lsn = 5
        while not stop.is_set():
            lsn += 1
            store.begin()
            put(store, ("w", lsn, "red", lsn), lsn, ChangeKind.INSERT)
            store.commit(LogPosition(lsn, lsn=lsn))

    writer = Thread(target=write)
    writer.start()
    try:
        for number in range(5):
            mine = tmp_path / f"mine-{number}.db"
            position = fetch_snapshot(server.url, mine, token=TOKEN)
            copy = SqliteStore(mine, cache_mb=1)
            (report,) = reports_of(copy)
            assert report.rows == report.lsn == position.lsn
            assert report.findings_total == 0
            copy.close()
    finally:
        stop.set()
        writer.join(timeout=DEADLINE_S)
    assert not writer.is_alive()


def test_what_was_there_is_replaced_with_its_write_ahead_log(
    server: SnapshotServer, tmp_path: Path
) -> None:
    """A left-over WAL of the old file, taken for the new one's, would corrupt it."""
    mine = tmp_path / "node.db"
    old = SqliteStore(mine, cache_mb=1)
    backfill(old)
    wal = (tmp_path / "node.db-wal").read_bytes()
    old.close()
    (tmp_path / "node.db-wal").write_bytes(wal)
    fetch_snapshot(server.url, mine, token=TOKEN)
    assert left_in(tmp_path) == {"node.db", "node.db.lock", "theirs"}


def test_a_store_in_use_is_not_replaced(store: SqliteStore, server: SnapshotServer) -> None:
    with pytest.raises(ConfigurationError, match="another writer"):
        fetch_snapshot(server.url, store.path, token=TOKEN)


def test_the_token_is_asked_for(store: SqliteStore, tmp_path: Path) -> None:
    server = SnapshotServer(store.path, token="s3cret")
    mine = tmp_path / "mine.db"
    try:
        for token in ("other", "s3cre", ""):
            with pytest.raises(SnapshotUnavailable, match="401"):
                fetch_snapshot(server.url, mine, token=token)
        fetch_snapshot(server.url, mine, token="s3cret")
        with pytest.raises(SnapshotUnavailable, match="404"):
            fetch_snapshot(server.url + "/../etc", mine, token="s3cret")
    finally:
        server.close()


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ("Host: 127.0.0.1:PORT", 401),
        ("Host: R1:PORT", 401),
        ("Host: rebound.evil.example", 403),
        ("Host: rebound.evil.example:PORT", 403),
        ("Host: 127.0.0.1:PORT\r\nOrigin: http://evil.example", 403),
        ("X-None: 1", 403),
    ],
)
def test_it_is_asked_by_its_own_names(store: SqliteStore, headers: str, status: int) -> None:
    """A page whose name was made to resolve to this machine is refused, whatever it knows."""
    server = SnapshotServer(store.path, token=TOKEN, names=("r1",))
    host, port = server.address.split(":")
    try:
        with socket.create_connection((host, int(port)), timeout=DEADLINE_S) as sock:
            lines = headers.replace("PORT", port)
            sock.sendall(f"GET /snapshot HTTP/1.1\r\n{lines}\r\n\r\n".encode())
            assert sock.recv(100).startswith(f"HTTP/1.1 {status} ".encode())
    finally:
        server.close()


def test_a_copy_under_way_is_known_by_its_position(
    store: SqliteStore, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """From before its snapshot is opened until the caller has all of it: the log is kept for it."""
    copies = CopiesUnderWay()
    seen: list[Mapping[str, int]] = []
    real = snapshot_server.copy_store

    def watched(source: Path, target: Path) -> snapshot_server.StoreCopy:
        seen.append(copies.by_taker())
        return real(source, target)

    monkeypatch.setattr(snapshot_server, "copy_store", watched)
    server = SnapshotServer(store.path, token=TOKEN, copies=copies)
    try:
        for said in ("r9", "", "no/name"):
            taken = fetch_snapshot(server.url, tmp_path / "mine.db", token=TOKEN, node=said)
    finally:
        server.close()
    assert seen == [{"r9": taken.offset}, {"": taken.offset}, {"": taken.offset}]
    with copies.of(7, "r9"), copies.of(8, "r8"), copies.of(9, "r9"):
        assert copies.by_taker() == {"r9": 7, "r8": 8}
    assert not copies.by_taker()


def test_a_caller_who_takes_nothing_is_cut_off(
    store: SqliteStore, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """The whole answer has a bound, beside that of each of its parts: no place and no record of the
    log is kept for ever."""
    cut_off = Event()
    real = snapshot_server.LOG.warning

    def said(*words: object) -> None:
        real(*words)
        cut_off.set()

    monkeypatch.setattr(snapshot_server, "ANSWER_S_LEAST", 0.0)
    monkeypatch.setattr(snapshot_server, "ANSWER_BYTES_PER_S_LEAST", 1 << 60)
    monkeypatch.setattr(snapshot_server.LOG, "warning", said)
    copies = CopiesUnderWay()
    server = SnapshotServer(store.path, token=TOKEN, copies=copies)
    host, port = server.address.split(":")
    try:
        with socket.create_connection((host, int(port)), timeout=DEADLINE_S) as sock:
            ask(sock, f"Host: {server.address}\r\n")
            assert cut_off.wait(DEADLINE_S)
            while sock.recv(1 << 16):
                pass  # it ends, and is no whole answer
    finally:
        server.close()
    assert "no longer kept for it" in caplog.text
    assert not copies.by_taker()


def test_more_callers_than_copies_are_told_to_come_again(
    store: SqliteStore, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    copying, go_on = Event(), Event()
    real = snapshot_server.copy_store

    def slow(source: Path, target: Path) -> snapshot_server.StoreCopy:
        copying.set()
        assert go_on.wait(DEADLINE_S)
        return real(source, target)

    monkeypatch.setattr(snapshot_server, "copy_store", slow)
    server = SnapshotServer(store.path, token=TOKEN, copies_max=1)
    first = Thread(
        target=fetch_snapshot, args=(server.url, tmp_path / "first.db"), kwargs={"token": TOKEN}
    )
    first.start()
    try:
        assert copying.wait(DEADLINE_S)
        with pytest.raises(SnapshotUnavailable, match="503: copies are being made"):
            fetch_snapshot(server.url, tmp_path / "second.db", token=TOKEN)
    finally:
        go_on.set()
        first.join(timeout=DEADLINE_S)
        server.close()
    assert (tmp_path / "first.db").exists()
    assert not (tmp_path / "second.db").exists()


def test_copies_left_by_a_killed_server_are_removed(store: SqliteStore) -> None:
    left = store.path.parent / ".node.db-copy-abc"
    left.mkdir()
    (left / "copy").write_bytes(b"x")
    SnapshotServer(store.path, token=TOKEN).close()
    assert not left.exists()


def test_the_copy_holds_the_rows(
    store: SqliteStore, server: SnapshotServer, tmp_path: Path
) -> None:
    fetch_snapshot(server.url, tmp_path / "mine.db", token=TOKEN)
    copy = SqliteStore(tmp_path / "mine.db", cache_mb=1)
    assert copy.row(CARS, ("a", 1)) == store.row(CARS, ("a", 1))
    copy.close()
