"""What tests of snapshots say to a server byte for byte, and a server that plays an answer."""

from __future__ import annotations

import socket
from collections.abc import Callable
from pathlib import Path
from threading import Thread

from leasehold.adapters.http.snapshot_proof import NONCE_HEADER, PROOF_HEADER, Exchange
from leasehold.adapters.http.snapshot_server import (
    SAID_HEADERS,
    SnapshotServer,
)

DEADLINE_S = 30
TOKEN = "known to all nodes, to nobody else".replace(" ", "-")


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
