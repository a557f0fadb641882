"""NOTIFY by PostgreSQL's protocol: clients that wait, that are busy, and that do not read."""

from __future__ import annotations

import socket
import threading
import time
from collections.abc import Iterator
from typing import Any, Final

import psycopg
import pytest

from tests.support.pgwire.wire_words import messages, query, startup
from tests.support.postgres.dev_server import DevServer, dev_server

WAIT_S: Final = 60.0
ROUNDS_MAX: Final = 100
"""Of 0.8 MB each: more than the buffers of a connection take."""


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[DevServer]:
    with dev_server(tmp_path_factory.mktemp("notify")) as made:
        yield made


def connect(served: DevServer) -> psycopg.Connection[Any]:
    dsn = f"host=127.0.0.1 port={served.port} user=leasehold dbname={served.database}"
    return psycopg.connect(dsn, autocommit=True)


def raw(served: DevServer) -> socket.socket:
    """A client that takes little at a time, and was let in."""
    made = socket.socket()
    made.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4_096)
    made.settimeout(WAIT_S)
    made.connect(("127.0.0.1", served.port))
    made.sendall(startup(user="leasehold", database=served.database))
    read_until_ready(made)
    return made


def read_until_ready(client: socket.socket) -> bytes:
    data = b""
    while not data.endswith(b"Z\0\0\0\5I"):
        part = client.recv(65_536)
        assert part, data
        data += part
    return data


def heard(client: socket.socket, count: int) -> list[bytes]:
    """The channels and payloads of the next so many notifications, which come by themselves."""
    data = b""
    while data.count(b"A\0") < count:
        part = client.recv(65_536)
        assert part, data
        data += part
    return [body[4:] for kind, body in messages(data) if kind == "A"]


def test_a_client_that_waits_is_told_at_once(served: DevServer) -> None:
    with raw(served) as client, connect(served) as sender:
        client.sendall(query("listen a"))
        read_until_ready(client)
        for payload in ("one", "two"):
            sender.execute(f"notify a, '{payload}'")
            assert heard(client, 1) == [f"a\0{payload}\0".encode()]


def test_many_that_listen_are_told_by_one_that_tells(served: DevServer) -> None:
    clients = [connect(served) for _ in range(20)]
    try:
        for client in clients:
            client.execute("listen a")
        with connect(served) as sender:
            sender.execute("select pg_notify('a', i::text) from generate_series(1, 200) i")
        wanted = [str(number) for number in range(1, 201)]
        for client in clients:
            told = client.notifies(timeout=WAIT_S, stop_after=200)
            assert [notify.payload for notify in told] == wanted
    finally:
        for client in clients:
            client.close()


def test_a_client_that_does_not_read_ends_and_holds_up_nobody(
    served: DevServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What it is told is bounded by what the node keeps for all, wherever it lies."""
    node = served.dev.sql_node()
    monkeypatch.setattr(node.notifications, "_bytes_max", 2 << 20)
    with raw(served) as client, connect(served) as sender, connect(served) as other:
        client.sendall(query("listen a"))
        read_until_ready(client)
        other.execute("listen b")
        before = len(node.sessions.activities())
        give_up, rounds = time.monotonic() + WAIT_S, 0
        while len(node.sessions.activities()) == before:
            rounds += 1
            assert rounds < ROUNDS_MAX or time.monotonic() < give_up, "it is still there"
            if rounds > ROUNDS_MAX:  # it has been ended: its connection is told that by its loop
                sender.execute("select 1")
                continue
            sender.execute(
                "select pg_notify('a', %s || i || repeat('x', 7900))"
                " from generate_series(1, 100) i",
                (f"{rounds} ",),
            )
        assert node.notifications.usage == 0
        sender.execute("notify b, 'x'")
        (notify,) = other.notifies(timeout=WAIT_S, stop_after=1)
        assert notify.payload == "x"


def test_a_client_that_reads_late_is_told_all(served: DevServer) -> None:
    """More than the buffers of its connection take: it goes on being told as it reads."""
    count, payload = 3_000, "x" * 7_000
    with raw(served) as client, connect(served) as sender:
        client.sendall(query("listen a"))
        read_until_ready(client)
        for number in range(count // 100):
            sender.execute(
                "select pg_notify('a', %s * 100 + i || %s) from generate_series(0, 99) i",
                (number, payload),
            )
        size = sum(1 + 4 + 4 + 2 + len(str(n)) + len(payload) + 1 for n in range(count))
        data = bytearray()
        while len(data) < size:
            part = client.recv(1 << 20)
            assert part, len(data)
            data += part
        found = [body[6:-1] for kind, body in messages(bytes(data)) if kind == "A"]
        assert found == [f"{n}{payload}".encode() for n in range(count)]


def test_a_client_that_is_busy_is_told_behind_its_statement(served: DevServer) -> None:
    with connect(served) as client, connect(served) as sender:
        client.execute("listen a")
        found: list[str] = []
        client.add_notify_handler(lambda notify: found.append(notify.payload))
        slow = "select count(*) from generate_series(1, 300000) a, generate_series(1, 3) b"
        thread = threading.Thread(target=client.execute, args=(slow,))
        thread.start()
        sender.execute("notify a, 'x'")
        thread.join(WAIT_S)
        client.execute("select 1")
        assert found == ["x"]
