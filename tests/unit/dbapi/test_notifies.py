"""What a connection of an embedded replica is told (LISTEN, NOTIFY)."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Iterator
from itertools import islice

import pytest

from leasehold.dbapi.async_connection import AsyncConnection
from leasehold.dbapi.connection import Connection
from leasehold.dbapi.errors import InterfaceError, OperationalError, ProgrammingError
from leasehold.dbapi.own_thread import OwnThread
from leasehold.dev.database import DevDatabase
from leasehold.replica.notifications import Told
from leasehold.sql.planning.plan import Plans
from leasehold.sql_session.session import SqlSession

WAIT_S = 60.0


def opened(database: DevDatabase, node: str) -> Connection:
    session = SqlSession(database.sql_node(node), Plans(), user="me")
    return Connection(session, lambda: None, autocommit=True)


@pytest.fixture
def listener(database: DevDatabase) -> Iterator[Connection]:
    with opened(database, "r1") as made:
        made.execute("listen a")
        yield made


@pytest.fixture
def sender(database: DevDatabase) -> Iterator[Connection]:
    with opened(database, "r2") as made:
        yield made


def test_it_yields_what_comes_and_ends_when_nothing_does(
    listener: Connection, sender: Connection
) -> None:
    assert list(listener.notifies(timeout_s=0.0)) == []
    sender.execute("select pg_notify('a', i::text) from generate_series(1, 3) i")
    assert [told.payload for told in islice(listener.notifies(WAIT_S), 3)] == ["1", "2", "3"]
    with sender.transaction():
        sender.execute("notify a, 'x'")
        sender.execute("notify b, 'x'")
    assert list(islice(listener.notifies(WAIT_S), 1)) == [("a", "x", 0)]
    assert list(listener.notifies(timeout_s=0.01)) == []


def test_a_wait_is_cancelled_as_a_statement_is(listener: Connection) -> None:
    begun = threading.Event()
    found: list[OperationalError] = []

    def wait() -> None:
        begun.set()
        try:
            next(listener.notifies())
        except OperationalError as error:
            found.append(error)

    thread = threading.Thread(target=wait)
    thread.start()
    assert begun.wait(WAIT_S)
    while thread.is_alive():  # it may not wait yet
        listener.cancel()
        thread.join(0.01)
    assert [error.sqlstate for error in found] == ["57014"]
    assert listener.execute("select 1").fetchone() == (1,)


def test_a_transaction_is_told_nothing(listener: Connection, sender: Connection) -> None:
    with listener.transaction():
        sender.execute("notify a, 'x'")
        with pytest.raises(ProgrammingError, match="COMMIT first"):
            next(listener.notifies())
        assert listener.execute("select 1").fetchone() == (1,), "it goes on"
    assert [told.payload for told in islice(listener.notifies(WAIT_S), 1)] == ["x"]


def test_a_closed_connection_is_told_nothing(database: DevDatabase) -> None:
    made = opened(database, "r1")
    made.close()
    with pytest.raises(InterfaceError):
        next(made.notifies())


def test_an_async_connection_awaits_them(listener: Connection, sender: Connection) -> None:
    thread = OwnThread("listener")
    waiting = AsyncConnection(listener, thread)

    async def one() -> Told:
        return await anext(aiter(waiting.notifies()))

    async def run() -> list[str]:
        found = []
        sender.execute("notify a, '1'")
        sender.execute("notify a, '2'")
        async for told in waiting.notifies(WAIT_S):
            found.append(told.payload)
            if told.payload == "2":
                break
        async with asyncio.timeout(WAIT_S):
            task = asyncio.create_task(one())
            await asyncio.sleep(0)
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task
        async for _ in waiting.notifies(0.0):
            raise AssertionError
        await waiting.close()
        return found

    assert asyncio.run(run()) == ["1", "2"]
