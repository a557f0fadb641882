"""Goal: a node gets a whole copy of another's store, or a clear error and its own store untouched.

Method: real sockets on loopback; for broken transfers a server that plays a recorded good answer
with one harm in it.
"""

from __future__ import annotations

import socket
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path
from threading import Event, Thread
from typing import NamedTuple

import pytest

from leasehold.adapters.http import snapshot_server
from leasehold.adapters.http.snapshot_fetch import fetch_snapshot
from leasehold.adapters.http.snapshot_proof import NONCE_HEADER, PROOF_HEADER, Exchange
from leasehold.adapters.http.snapshot_server import (
    SAID_HEADERS,
    CopiesUnderWay,
    SnapshotServer,
)
from leasehold.adapters.sqlite.store import SqliteStore
from leasehold.model.errors import ConfigurationError, SnapshotUnavailable
from leasehold.model.records.log import ChangeKind, LogPosition
from leasehold.settings.environment import from_environment
from leasehold.settings.snapshot import (
    TOKEN_FILE,
    SnapshotSettings,
    token_kept_here,
    token_made_here,
)
from tests.support.sqlite.lockstep import reports_of
from tests.unit.adapters.sqlite.test_snapshot import CARS, backfill, put

DEADLINE_S = 30
TOKEN = "known to all nodes, to nobody else".replace(" ", "-")


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


NONCE = "a5" * 32


def heard(sock: socket.socket, words: bytes) -> bytes:
    """What comes, up to these words."""
    found = b""
    while words not in found:
        part = sock.recv(1_000)
        assert part, found
        found += part
    return found


def ask(sock: socket.socket, headers: str, token: str = TOKEN) -> None:
    """Ask for a snapshot with a proof, byte for byte; the answer is for the caller to read."""
    host = next(line[6:] for line in headers.split("\r\n") if line.startswith("Host: "))
    begin = f"GET /snapshot HTTP/1.1\r\n{NONCE_HEADER}: {NONCE}\r\n{headers}"
    sock.sendall(f"{begin}\r\n".encode())
    refusal = heard(sock, b"nonce in")
    answered = refusal.partition(f"{NONCE_HEADER}: ".encode())[2].partition(b"\r")[0].decode()
    proof = Exchange(NONCE, answered, host).to_ask(token)
    sock.sendall(f"{begin}{PROOF_HEADER}: {proof}\r\n\r\n".encode())


def left_in(folder: Path) -> set[str]:
    """Return the names in a node's folder, but that of the folder for temporary files."""
    return {path.name for path in folder.iterdir()} - {"temp"}


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
    seen: list[int | None] = []
    real = snapshot_server.copy_store

    def watched(source: Path, target: Path) -> snapshot_server.StoreCopy:
        seen.append(copies.oldest())
        return real(source, target)

    monkeypatch.setattr(snapshot_server, "copy_store", watched)
    server = SnapshotServer(store.path, token=TOKEN, copies=copies)
    try:
        taken = fetch_snapshot(server.url, tmp_path / "mine.db", token=TOKEN)
    finally:
        server.close()
    assert seen == [taken.offset]
    with copies.of(7), copies.of(9):
        assert copies.oldest() == 7
    assert copies.oldest() is None


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
    assert copies.oldest() is None


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


class Authority(NamedTuple):
    """Files of two servers that sign for themselves: the one we trust, and a stranger."""

    trusted: SnapshotSettings
    stranger: SnapshotSettings


@pytest.fixture(scope="module")
def authority(tmp_path_factory: pytest.TempPathFactory) -> Authority:
    folder = tmp_path_factory.mktemp("tls")
    made = []
    for name in ("trusted", "stranger"):
        cert, key = folder / f"{name}.pem", folder / f"{name}.key"
        subprocess.run(
            [
                *("openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2"),
                *("-subj", f"/CN={name}", "-addext", "subjectAltName=IP:127.0.0.1"),
                *("-keyout", str(key), "-out", str(cert)),
            ],
            check=True,
            capture_output=True,
        )
        made.append(SnapshotSettings(tls_cert=cert, tls_key=key, tls_ca=cert))
    return Authority(*made)


@pytest.fixture
def encrypted(store: SqliteStore, authority: Authority) -> Iterator[SnapshotServer]:
    files = authority.trusted.served
    started = SnapshotServer(
        store.path, token=TOKEN, tls=files.context(), certificate=files.certificate()
    )
    yield started
    started.close()


def test_over_tls_it_is_the_same_store(
    store: SqliteStore, encrypted: SnapshotServer, authority: Authority, tmp_path: Path
) -> None:
    assert encrypted.url.startswith("https://")
    mine, tls = tmp_path / "mine.db", authority.trusted.to_fetch()
    assert fetch_snapshot(encrypted.url, mine, token=TOKEN, tls=tls) == store.position()
    with pytest.raises(SnapshotUnavailable, match="401"):
        fetch_snapshot(encrypted.url, mine, token=TOKEN[:-1], tls=tls)


def test_the_token_is_not_shown_to_a_stranger(
    store: SqliteStore, authority: Authority, tmp_path: Path
) -> None:
    """Neither to a server of another certificate, nor to one of another name."""
    stranger = SnapshotServer(store.path, token=TOKEN, tls=authority.stranger.served.context())
    try:
        other_name = stranger.url.replace("127.0.0.1", "localhost")
        for url, ours in ((stranger.url, authority.trusted), (other_name, authority.stranger)):
            with pytest.raises(SnapshotUnavailable, match=r"not trusted.*SNAPSHOT_TLS_CA"):
                fetch_snapshot(url, tmp_path / "a.db", token=TOKEN, tls=ours.to_fetch())
    finally:
        stranger.close()


def test_a_caller_without_tls_gets_nothing_and_holds_up_nobody(
    encrypted: SnapshotServer, authority: Authority, tmp_path: Path
) -> None:
    place = encrypted.address.split(":")
    with socket.create_connection((place[0], int(place[1]))):  # never begins its handshake
        with pytest.raises(SnapshotUnavailable):
            fetch_snapshot(f"http://{encrypted.address}/snapshot", tmp_path / "a.db", token=TOKEN)
        tls = authority.trusted.to_fetch()
        fetch_snapshot(encrypted.url, tmp_path / "a.db", token=TOKEN, tls=tls)


def test_tls_files_that_can_t_be_used_are_named(authority: Authority, tmp_path: Path) -> None:
    gone = tmp_path / "gone.pem"
    cert = authority.trusted.tls_cert
    with pytest.raises(ConfigurationError, match=r"LEASEHOLD_SNAPSHOT_TLS_CERT and .*_TLS_KEY"):
        SnapshotSettings(tls_cert=cert, tls_key=gone).served.context()
    with pytest.raises(ConfigurationError, match="LEASEHOLD_SNAPSHOT_TLS_CA"):
        SnapshotSettings(tls_ca=gone).to_fetch()
    with pytest.raises(ConfigurationError, match="only work together"):
        SnapshotSettings(tls_cert=cert)
    assert SnapshotSettings().served.context() is None
    assert SnapshotSettings().to_fetch() is None


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


# ------------------------------------------------------------ broken transfers


def recorded(server: SnapshotServer) -> bytes:
    """A good answer, byte for byte."""
    host, port = server.address.split(":")
    with socket.create_connection((host, int(port)), timeout=DEADLINE_S) as sock:
        ask(sock, f"Host: {server.address}\r\n")
        whole = b""
        while not whole.endswith(b"\r\n0\r\n\r\n"):
            part = sock.recv(65536)
            assert part, whole[:500]
            whole += part
    return whole


ASKS_FOR_PROOF = f"HTTP/1.1 401 No\r\n{NONCE_HEADER}: {NONCE}\r\nContent-Length: 0\r\n\r\n".encode()


class Player:
    """Answers one request with given bytes and hangs up; it knows `token` and proves so, or not."""

    def __init__(
        self, answer: bytes, token: str | None = TOKEN, first: bytes = ASKS_FOR_PROOF
    ) -> None:
        self._token = token
        self._first = first
        self.heard: list[bytes] = []
        self._socket = socket.create_server(("127.0.0.1", 0))
        self._socket.settimeout(DEADLINE_S)
        self._answer = answer
        self._thread = Thread(target=self._play)
        self._thread.start()
        self.url = f"http://127.0.0.1:{self._socket.getsockname()[1]}/snapshot"

    def _play(self) -> None:
        sock, _ = self._socket.accept()
        with sock:
            asked = self._read(sock)
            sock.sendall(self._first)
            self._read(sock)
            answer = self._answer
            if self._token is not None and PROOF_HEADER.encode() in answer:
                exchange = Exchange(field(asked, NONCE_HEADER), NONCE, field(asked, "Host"))
                proof = exchange.to_serve(self._token, *(field(answer, n) for n in SAID_HEADERS))
                answer = header(PROOF_HEADER, proof)(answer)
            sock.sendall(answer)

    def _read(self, sock: socket.socket) -> bytes:
        self.heard.append(sock.recv(65536))
        return self.heard[-1]

    def close(self) -> None:
        self._thread.join(timeout=DEADLINE_S)
        self._socket.close()


def field(data: bytes, name: str) -> str:
    return data.partition(f"{name}: ".encode())[2].partition(b"\r\n")[0].decode()


def header(name: str, value: str) -> Callable[[bytes], bytes]:
    def changed(answer: bytes) -> bytes:
        lines = answer.split(b"\r\n")
        place = next(n for n, line in enumerate(lines) if line.startswith(name.encode()))
        lines[place] = f"{name}: {value}".encode()
        return b"\r\n".join(lines)

    return changed


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


def test_the_copy_holds_the_rows(
    store: SqliteStore, server: SnapshotServer, tmp_path: Path
) -> None:
    fetch_snapshot(server.url, tmp_path / "mine.db", token=TOKEN)
    copy = SqliteStore(tmp_path / "mine.db", cache_mb=1)
    assert copy.row(CARS, ("a", 1)) == store.row(CARS, ("a", 1))
    copy.close()


# ------------------------------------------------------------ who asks, and who serves


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


def test_over_tls_the_certificate_is_part_of_the_proof(
    store: SqliteStore, authority: Authority, tmp_path: Path
) -> None:
    """Whoever is between the two with another certificate that is trusted, has no proof."""
    trusted = authority.trusted
    other = authority.stranger.served.certificate()
    assert trusted.served.certificate() != other
    server = SnapshotServer(
        store.path, token=TOKEN, tls=trusted.served.context(), certificate=other
    )
    try:
        with pytest.raises(SnapshotUnavailable, match="the proof is wrong"):
            fetch_snapshot(server.url, tmp_path / "a.db", token=TOKEN, tls=trusted.to_fetch())
    finally:
        server.close()
