"""Goal: a link that is cut holds what is sent and delivers it when it is mended, one way or both;
one that refuses, or is reset, loses its connections; one that is late is late in order; bursts
reorder what several connections bring.

Method: a server that sends back what it gets, behind a link.
"""

from __future__ import annotations

import socket
import threading
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest

from infra.local_cluster import LocalCluster
from infra.ports import LOOPBACK, Ports
from tests.faults.links import Links
from tests.support.cluster.system_cluster import until

LINK = "r1-kafka"
SHORT_S = 0.3
LONG_S = 20.0
LEFT = 300


class Echo:
    """A server that sends back what it gets, and counts it."""

    def __init__(self) -> None:
        self._listener = socket.create_server((LOOPBACK, 0))
        self.port: int = self._listener.getsockname()[1]
        self.got = b""
        threading.Thread(target=self._accept, daemon=True).start()

    def _accept(self) -> None:
        with suppress(OSError):
            while True:
                connection, _ = self._listener.accept()
                threading.Thread(target=self._serve, args=(connection,), daemon=True).start()

    def _serve(self, connection: socket.socket) -> None:
        with suppress(OSError), connection:
            while data := connection.recv(1_000):
                self.got += data
                connection.sendall(data)

    def close(self) -> None:
        self._listener.close()


@pytest.fixture
def echo() -> Iterator[Echo]:
    made = Echo()
    yield made
    made.close()


@pytest.fixture
def links(tmp_path: Path, echo: Echo) -> Iterator[Links]:
    made = Links()
    with LocalCluster(tmp_path / "data", Ports.free(), services=()) as cluster:
        made.start(cluster, {LINK: (LOOPBACK, echo.port)})
        yield made
        made.close()


@pytest.fixture
def client(links: Links) -> Iterator[socket.socket]:
    with socket.create_connection((LOOPBACK, links.reserve(LINK)), LONG_S) as made:
        made.sendall(b"0")
        assert made.recv(1) == b"0"
        yield made


def nothing_comes(client: socket.socket) -> bool:
    client.settimeout(SHORT_S)
    try:
        client.recv(1)
    except TimeoutError:
        return True
    finally:
        client.settimeout(LONG_S)
    return False


@pytest.mark.parametrize(("way", "arrives"), [("up", False), ("down", True), ("both", False)])
def test_a_cut_holds_what_is_sent_and_delivers_it_in_order(
    links: Links, echo: Echo, client: socket.socket, way: str, arrives: bool
) -> None:
    links.cut(LINK, way)
    for piece in (b"1", b"2", b"3"):
        client.sendall(piece)
    if arrives:
        until(lambda: echo.got == b"0123", "what was sent, at the server")
    assert nothing_comes(client)
    assert (echo.got == b"0123") is arrives
    links.mend(LINK)
    assert b"".join(client.recv(1) for _ in range(3)) == b"123"
    client.sendall(b"4")
    assert client.recv(1) == b"4", "the connection has lived through it"


def test_a_link_that_refuses_takes_nobody_until_it_is_mended(
    links: Links, client: socket.socket
) -> None:
    links.refuse(LINK)
    with suppress(ConnectionError):
        assert client.recv(1) == b"", "its connections are closed"
    with pytest.raises(ConnectionError):
        socket.create_connection((LOOPBACK, links.reserve(LINK)), LONG_S)
    links.mend_all()
    with socket.create_connection((LOOPBACK, links.reserve(LINK)), LONG_S) as again:
        again.sendall(b"5")
        assert again.recv(1) == b"5"


def test_a_reset_takes_the_connection_away(links: Links, client: socket.socket) -> None:
    links.reset(LINK)
    with suppress(ConnectionError):
        client.sendall(b"6")
        assert client.recv(1) == b""
    links.mend(LINK)


def test_what_is_late_comes_in_order(links: Links, client: socket.socket) -> None:
    links.delay(LINK, "both", 50, 50)
    client.sendall(b"7")
    client.sendall(b"89")
    assert b"".join(client.recv(1) for _ in range(3)) == b"789"
    links.mend(LINK)
    links.throttle(LINK, "up", 1)
    client.sendall(b"a" * 100)
    assert sum(len(client.recv(100)) for _ in range(1)) > 0


def test_bursts_of_two_connections_change_places_and_each_is_in_order(
    links: Links, echo: Echo, client: socket.socket
) -> None:
    """What was sent first may arrive last, as over two paths; within a connection it can't."""
    links.reorder(LINK, "up", 200)
    with socket.create_connection((LOOPBACK, links.reserve(LINK)), LONG_S) as other:
        overtaken = False
        for number in range(LEFT):
            first, second = b"<%03da>" % number, b"<%03db>" % number
            client.sendall(first)
            other.sendall(second)
            until(lambda second=second: second in echo.got, "the second one's piece")  # type: ignore[misc]
            overtaken = overtaken or first not in echo.got
            if overtaken and number > 5:
                break
        assert overtaken, "the first one's came first each time"
    links.mend(LINK)
    until(lambda: b"<%03da>" % number in echo.got, "the first one's pieces")
    places = [echo.got.index(b"<%03da>" % sent) for sent in range(number + 1)]
    assert places == sorted(places)


def test_what_is_held_for_a_client_that_has_left_holds_nobody_up(links: Links, echo: Echo) -> None:
    """Toxiproxy waits there for somebody to take it. Many of them, since what is read of a client
    before the server behind the link has been reached was lost now and then."""
    for number in range(LEFT):
        sent = b"%06d" % number
        links.cut(LINK, "both")
        with socket.create_connection((LOOPBACK, links.reserve(LINK)), LONG_S) as gone:
            gone.sendall(sent)
        links.mend(LINK)
        until(lambda sent=sent: sent in echo.got, "what was sent before it left, at the server")  # type: ignore[misc]
    with socket.create_connection((LOOPBACK, links.reserve(LINK)), LONG_S) as again:
        again.sendall(b"y")
        assert again.recv(1) == b"y"
