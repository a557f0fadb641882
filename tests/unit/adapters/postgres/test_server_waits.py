"""Goal: a client whose answer is waited for holds up nobody, hears it as soon as it is there, and
what does not come is found out by a worker.

Method: real sockets; sessions whose batches end when the test says so.
"""

from __future__ import annotations

import os
import queue
import socket
from collections.abc import Callable
from functools import partial
from typing import Any

import psycopg
import pytest

from leasehold.adapters.postgres.server import PgwireServer
from leasehold.pgwire.session import WouldBlock
from leasehold.settings.sql_port import PgwireSettings
from tests.support.pgwire.small_session import Shared, SmallSession
from tests.unit.adapters.postgres.test_server import WAIT_S, connect, in_thread, until_true

CLIENTS = 3
COMES_NEVER_S = 0.1


class Held(SmallSession):
    """`shared.held` gets what to call when its answer is there; `timeout_s`: how long that may
    take. `ends`: how its batches have ended, at last: in a hurry or not."""

    timeout_s = 60.0

    def __init__(self, shared: Any, *arguments: str) -> None:
        super().__init__(shared, *arguments)
        self.held, self.ends = shared.held, shared.ends
        self.answered = False

    def end_batch(self) -> WouldBlock | None:
        if self.hurried and not self.answered:
            return WouldBlock(self._until, self.timeout_s, begun=True)
        self.answered = False
        self.ends.put(self.hurried)
        return super().end_batch()

    def _until(self, soon: Callable[[], None]) -> None:
        def come() -> None:
            self.answered = True
            soon()

        self.held.put(come)


def asked(connection: psycopg.Connection[Any]) -> list[Any]:
    return connection.execute("select 1").fetchall()


def asked_or_gone(connection: psycopg.Connection[Any]) -> list[Any]:
    try:
        return asked(connection)
    except psycopg.OperationalError:
        return []


@pytest.fixture
def shared() -> Any:
    made: Any = Shared()
    made.held, made.ends = queue.Queue(), queue.Queue()
    return made


@pytest.fixture
def server(shared: Any) -> Any:
    made = PgwireServer(lambda admission: Held(shared, admission.user), PgwireSettings())
    made.start()
    yield made
    made.stop()


def test_the_loop_is_woken_once_for_answers_that_come_at_once(
    server: PgwireServer, shared: Any
) -> None:
    connections = [connect(server) for _ in range(CLIENTS)]
    asking = [in_thread(partial(asked, each)) for each in connections]
    come = [shared.held.get(timeout=WAIT_S) for _ in range(CLIENTS)]
    woken: list[Any] = []
    soon = server.call_soon

    def counted(call: Callable[..., Any], *arguments: Any) -> None:
        woken.append((call, arguments))

    server.call_soon = counted  # type: ignore[method-assign]
    for answer in come:
        answer()
    server.call_soon = soon  # type: ignore[method-assign]
    assert len(woken) == 1
    soon(woken[0][0], *woken[0][1])
    for thread, found in asking:
        thread.join(WAIT_S)
        assert found == [[(1,)]]
    assert [shared.ends.get(timeout=WAIT_S) for _ in connections] == [True] * CLIENTS
    for connection in connections:
        connection.close()


def test_an_answer_that_does_not_come_is_a_workers(
    server: PgwireServer, shared: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Held, "timeout_s", COMES_NEVER_S)
    connection: psycopg.Connection[Any] = connect(server)
    thread, found = in_thread(partial(asked, connection))
    come = shared.held.get(timeout=WAIT_S)
    assert shared.ends.get(timeout=WAIT_S) is False, "not in a hurry"
    thread.join(WAIT_S)
    assert found == [[(1,)]]
    come()  # too late: nobody waits for it
    assert connection.execute("select 2").fetchall() == [(2,)]
    assert shared.ends.get(timeout=WAIT_S) is True, "the next one, which finds that answer"
    connection.close()


@pytest.mark.parametrize("hurried", [True, False])
def test_a_session_that_can_not_be_closed_is_in_nobodys_way(
    server: PgwireServer, shared: Any, monkeypatch: pytest.MonkeyPatch, hurried: bool
) -> None:
    """Its client is gone when its answer comes; that of another one comes at the same time."""

    def breaks(session: Held) -> None:
        close(session)
        if session.settings["session_authorization"] == "gone":
            raise OSError("what it has spooled can't be removed")

    close = Held.close
    monkeypatch.setattr(Held, "close", breaks)
    if not hurried:
        monkeypatch.setattr(Held, "timeout_s", COMES_NEVER_S)
    gone: psycopg.Connection[Any] = connect(server, user="gone")
    stays: psycopg.Connection[Any] = connect(server)
    (client,) = (c for c in server._clients.values() if c._admission.user == "gone")  # type: ignore[union-attr]
    come = []
    for connection in (gone, stays):
        thread, found = in_thread(partial(asked_or_gone, connection))
        come.append(shared.held.get(timeout=WAIT_S))
        if connection is gone:
            with socket.socket(fileno=os.dup(connection.fileno())) as made:
                made.shutdown(socket.SHUT_RDWR)
            until_true(lambda: client._outlet.is_gone, "a client that is gone")
    if hurried:
        woken: list[Any] = []
        with monkeypatch.context() as patch:
            patch.setattr(server, "call_soon", lambda *call: woken.append(call))
            for answer in come:
                answer()
        server.call_soon(*woken[0])
    thread.join(WAIT_S)
    assert found == [[(1,)]]
    stays.close()
    until_true(lambda: not server._clients, "an empty server")
