"""Goal: a broken transfer leaves a node's own store untouched, with a clear error.

Method: a server that plays a recorded good answer with one harm in it.
"""

from __future__ import annotations

import socket
from collections.abc import Callable
from pathlib import Path

import pytest

from leasehold.adapters.http.snapshot_fetch import fetch_snapshot
from leasehold.adapters.http.snapshot_server import (
    SnapshotServer,
)
from leasehold.adapters.sqlite.store import SqliteStore
from leasehold.model.errors import ConfigurationError, SnapshotUnavailable
from tests.support.http.snapshot_talk import (
    TOKEN,
    Player,
    header,
    left_in,
    recorded,
)


def flip(answer: bytes) -> bytes:
    """One byte of the compressed body is another."""
    place = len(answer) * 3 // 4
    return answer[:place] + bytes([answer[place] ^ 0x40]) + answer[place + 1 :]


HARMS = {
    "nothing is wrong": (lambda answer: answer, ""),
    "cut in the body": (lambda answer: answer[: len(answer) // 2], "broke off"),
    "cut in the headers": (lambda answer: answer[:60], "broke off|no node of this"),
    "end marker missing": (lambda answer: answer.removesuffix(b"0\r\n\r\n"), "broke off"),
    "a byte differs": (flip, "broke off|damaged"),
    "another checksum": (header("X-Snapshot-Blake2b", "00" * 32), "damaged"),
    "fewer bytes announced": (header("X-Snapshot-Bytes", "4096"), "damaged"),
    "more bytes announced": (header("X-Snapshot-Bytes", "99999999"), "damaged"),
    "length is no number": (header("X-Snapshot-Bytes", "many"), "announces"),
    "another layout": (header("X-Snapshot-Layout", "99"), "layout '99'"),
}


@pytest.mark.parametrize(("harm", "words"), HARMS.values(), ids=HARMS)
def test_a_broken_transfer_leaves_the_store_as_it_was(
    server: SnapshotServer, tmp_path: Path, harm: Callable[[bytes], bytes], words: str
) -> None:
    mine = tmp_path / "mine" / "node.db"
    SqliteStore(mine, cache_mb=1).close()
    before = mine.read_bytes()
    player = Player(harm(recorded(server)))
    try:
        if not words:
            assert fetch_snapshot(player.url, mine, token=TOKEN).lsn == 5
            return
        with pytest.raises(SnapshotUnavailable, match=words):
            fetch_snapshot(player.url, mine, token=TOKEN)
    finally:
        player.close()
    assert mine.read_bytes() == before
    assert left_in(mine.parent) == {"node.db", "node.db.lock"}


def test_nobody_there_and_no_address_are_told_apart(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    with pytest.raises(SnapshotUnavailable, match="another node"):
        fetch_snapshot(f"http://127.0.0.1:{port}/snapshot", tmp_path / "a.db", token=TOKEN)
    with pytest.raises(ConfigurationError, match="not the http"):
        fetch_snapshot("file:///etc/passwd", tmp_path / "a.db", token=TOKEN)


def test_a_silent_server_ends_in_an_error(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:
        url = f"http://127.0.0.1:{silent.getsockname()[1]}/snapshot"
        with pytest.raises(SnapshotUnavailable, match="broke off"):
            fetch_snapshot(url, tmp_path / "a.db", token=TOKEN, timeout_s=0.05)
