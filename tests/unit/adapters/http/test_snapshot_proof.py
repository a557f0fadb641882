"""Goal: who asks and who serves know the same secret; neither shows it."""

from __future__ import annotations

import socket
from pathlib import Path

import pytest

from leasehold.adapters.http.snapshot_fetch import fetch_snapshot
from leasehold.adapters.http.snapshot_proof import NONCE_HEADER, PROOF_HEADER, Exchange
from leasehold.adapters.http.snapshot_server import (
    SAID_HEADERS,
    SnapshotServer,
)
from leasehold.adapters.sqlite.store import SqliteStore
from leasehold.model.errors import ConfigurationError, SnapshotUnavailable
from leasehold.settings.environment import from_environment
from leasehold.settings.snapshot import (
    TOKEN_FILE,
    SnapshotSettings,
    token_kept_here,
    token_made_here,
)
from tests.support.http.snapshot_talk import (
    DEADLINE_S,
    NONCE,
    TOKEN,
    Player,
    ask,
    heard,
    left_in,
    recorded,
)


def test_nodes_of_one_machine_share_a_token_that_one_of_them_makes(tmp_path: Path) -> None:
    data = tmp_path / "data"
    assert token_kept_here(data) is None
    made = [token_made_here(data) for _ in range(2)]
    assert made == [token_kept_here(data)] * 2
    assert left_in(data) == {TOKEN_FILE}
    assert (data / TOKEN_FILE).stat().st_mode & 0o777 == 0o600


def test_a_token_of_this_machine_that_can_t_be_used_is_named(tmp_path: Path) -> None:
    (tmp_path / TOKEN_FILE).write_text("short")
    with pytest.raises(ConfigurationError, match="remove the file"):
        token_made_here(tmp_path)


@pytest.mark.parametrize("token", ["short", "with a blank in between", "line\nbreak" * 4])
def test_a_token_that_could_be_guessed_or_not_be_sent(token: str) -> None:
    with pytest.raises(ConfigurationError, match="LEASEHOLD_SNAPSHOT_TOKEN") as caught:
        from_environment(SnapshotSettings, {"LEASEHOLD_SNAPSHOT_TOKEN": token})
    assert token not in caught.value.message


def test_an_empty_secret_is_no_token(tmp_path: Path) -> None:
    secret = tmp_path / "secret"
    secret.write_text("\n")
    with pytest.raises(ConfigurationError, match="LEASEHOLD_SNAPSHOT_TOKEN"):
        from_environment(SnapshotSettings, {"LEASEHOLD_SNAPSHOT_TOKEN_FILE": str(secret)})


def test_s7_a_stranger_gets_no_token_and_gives_no_rows(
    server: SnapshotServer, tmp_path: Path
) -> None:
    """Whoever may write to `acks` sends a node to a server of his own."""
    good, mine = recorded(server), tmp_path / "mine.db"
    for token in (None, "guessed-by-somebody"):
        stranger = Player(good, token)
        with pytest.raises(SnapshotUnavailable, match=r"is no node of this database"):
            fetch_snapshot(stranger.url, mine, token=TOKEN)
        stranger.close()
        assert len(stranger.heard) == 2
        assert not any(TOKEN.encode() in heard for heard in stranger.heard)
    assert not mine.exists()


@pytest.mark.parametrize("name", SAID_HEADERS)
def test_s7_what_the_server_says_of_its_copy_is_part_of_its_proof(
    server: SnapshotServer, tmp_path: Path, name: str
) -> None:
    """Somebody between the two who changes it has no proof, nor of rows of his own."""
    exchange = Exchange(NONCE, NONCE[::-1], "r1:5")
    said = dict.fromkeys(SAID_HEADERS, "1")
    assert exchange.to_serve(TOKEN, *said.values()) != exchange.to_serve(
        TOKEN, *{**said, name: "2"}.values()
    )
    assert exchange.to_serve(TOKEN, "11", "1", "1") != exchange.to_serve(TOKEN, "1", "11", "1")
    for other in (
        exchange._replace(nonce="b" * 64),
        exchange._replace(answered="b" * 64),
        exchange._replace(address="r1:6"),
        exchange._replace(certificate=b"x"),
    ):
        assert other.to_ask(TOKEN) != exchange.to_ask(TOKEN)
        assert other.to_serve(TOKEN, *said.values()) != exchange.to_serve(TOKEN, *said.values())
    assert exchange.to_ask(TOKEN) != exchange.to_ask(TOKEN + "x")


def test_s7_a_proof_that_is_passed_on_is_refused(store: SqliteStore, tmp_path: Path) -> None:
    """A stranger hands on what a node says, to a node that knows the token: the address that the
    proof names is his own."""
    server = SnapshotServer(store.path, token=TOKEN, names=("r1",))
    host, port = server.address.split(":")
    try:
        for asked in (f"{host}:1", f"127.0.0.9:{port}", "r1:1", "r1"):
            with socket.create_connection((host, int(port)), timeout=DEADLINE_S) as sock:
                ask(sock, f"Host: {asked}\r\n")
                heard(sock, b"is not the address of this node")
    finally:
        server.close()


def test_s7_a_nonce_is_used_once(server: SnapshotServer) -> None:
    host, port = server.address.split(":")
    lines = f"Host: {server.address}\r\n"
    with socket.create_connection((host, int(port)), timeout=DEADLINE_S) as sock:
        ask(sock, lines, token="another one of sixteen")
        heard(sock, b"the proof is wrong")
        proof = Exchange(NONCE, "", server.address).to_ask(TOKEN)
        again = f"{NONCE_HEADER}: {NONCE}\r\n{PROOF_HEADER}: {proof}\r\n"
    with socket.create_connection((host, int(port)), timeout=DEADLINE_S) as sock:
        sock.sendall(f"GET /snapshot HTTP/1.1\r\n{lines}{again}\r\n".encode())
        assert sock.recv(2_000).startswith(b"HTTP/1.1 401 ")


def test_an_older_node_is_told_to_be_upgraded_and_an_older_server_is_shown_nothing(
    server: SnapshotServer, tmp_path: Path
) -> None:
    host, port = server.address.split(":")
    with socket.create_connection((host, int(port)), timeout=DEADLINE_S) as sock:
        shown = f"Host: {server.address}\r\nAuthorization: Bearer {TOKEN}\r\n"
        sock.sendall(f"GET /snapshot HTTP/1.1\r\n{shown}\r\n".encode())
        assert heard(sock, b"upgrade that node").startswith(b"HTTP/1.1 401 ")
    older = Player(b"", first=b"HTTP/1.1 401 No\r\nContent-Length: 2\r\n\r\nno")
    with pytest.raises(SnapshotUnavailable, match=r"earlier release.*upgrade that node"):
        fetch_snapshot(older.url, tmp_path / "mine.db", token=TOKEN)
    older.close()
    assert TOKEN.encode() not in older.heard[0]
