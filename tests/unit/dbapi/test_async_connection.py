"""The async connection over a session of a whole database in this process.

Every test counts the threads of this process before and after itself: none may stay behind.
"""

from __future__ import annotations

import asyncio
import gc
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from leasehold.dbapi import errors
from leasehold.dbapi.async_connection import AsyncConnection, Connecting
from leasehold.dbapi.connection import Connection
from leasehold.dbapi.own_thread import OwnThread
from leasehold.dev.database import DevDatabase
from leasehold.sql.planning.plan import Plans
from leasehold.sql_session.session import SqlSession

WAIT_S = 60
LONG = "select count(*) from generate_series(1, 3000000) a, generate_series(1, 3000000) b"


@pytest.fixture(scope="module")
def database(tmp_path_factory: pytest.TempPathFactory) -> Iterator[DevDatabase]:
    dev = DevDatabase(Path(tmp_path_factory.mktemp("async")))
    dev.wait_ready()
    with Connection(SqlSession(dev.sql_node(), Plans(), user="me"), lambda: None) as made:
        made.execute("create table t (id int primary key, note text)")
    yield dev
    dev.close()


@pytest.fixture
def left(database: DevDatabase) -> Iterator[list[str]]:
    """Who has left the replica; no thread may have stayed."""
    before = set(threading.enumerate())
    told: list[str] = []
    yield told
    gc.collect()
    for thread in set(threading.enumerate()) - before:
        thread.join(10.0)  # one that was left alone is on its way out
    assert set(threading.enumerate()) - before == set()
    with opened(database, []) as other:
        other.execute("delete from t")


def opened(database: DevDatabase, left: list[str], *, autocommit: bool = False) -> Connection:
    session = SqlSession(database.sql_node(), Plans(), user="me")
    return Connection(session, lambda: left.append("left"), autocommit=autocommit)


def connecting(database: DevDatabase, left: list[str], *, autocommit: bool = False) -> Connecting:
    return Connecting(lambda _: opened(database, left, autocommit=autocommit))


async def insert_and_raise(connection: AsyncConnection) -> None:
    async with connection.transaction():
        await connection.execute("insert into t values (4, 'd')")
        raise ZeroDivisionError


def test_statements_rows_and_transactions(database: DevDatabase, left: list[str]) -> None:
    async def main() -> None:
        async with connecting(database, left) as connection:
            cursor = connection.cursor()
            await cursor.executemany("insert into t values (%s, %s)", [(1, "a"), (2, "b")])
            assert cursor.rowcount == 2
            await connection.rollback()
            async with connection.transaction():
                await connection.execute("insert into t values (3, 'c')")
                with pytest.raises(ZeroDivisionError):
                    await insert_and_raise(connection)
            cursor = await connection.execute("select id, note from t order by id")
            assert [name for name, *_ in cursor.description or ()] == ["id", "note"]
            assert [row async for row in cursor] == [(3, "c")]
            assert await cursor.fetchone() is None
        assert left == ["left"]
        with pytest.raises(errors.InterfaceError):
            await connection.execute("select 1")
        with pytest.raises(errors.InterfaceError):
            await cursor.fetchall()

    asyncio.run(main())


def test_what_is_awaited_is_closed_by_hand_and_twice(
    database: DevDatabase, left: list[str]
) -> None:
    async def main() -> None:
        connection = await connecting(database, left, autocommit=True)
        assert connection.autocommit
        await connection.execute("insert into t values (1, 'a')")
        await connection.close()
        await connection.close()

    asyncio.run(main())
    assert left == ["left"]


def test_the_loop_goes_on_while_a_statement_runs(database: DevDatabase, left: list[str]) -> None:
    async def main() -> None:
        async with connecting(database, left, autocommit=True) as connection:
            long = asyncio.ensure_future(connection.execute(LONG))
            turns = 0
            while turns < 100:
                await asyncio.sleep(0)
                turns += 1
            assert not long.done()
            while not (await asyncio.wait({long}, timeout=0.01))[0]:
                connection.cancel()  # again, as it may not have begun yet
            with pytest.raises(errors.OperationalError) as caught:
                await long
            assert caught.value.sqlstate == "57014"

    asyncio.run(main())


def test_a_cancelled_task_takes_its_statement_with_it(
    database: DevDatabase, left: list[str]
) -> None:
    async def main() -> None:
        async with connecting(database, left) as connection:
            with pytest.raises(TimeoutError):
                async with asyncio.timeout(0.05):
                    await connection.execute(LONG)
            # Its transaction has failed, and the connection is free: nothing goes on behind it.
            await connection.rollback()
            cursor = await connection.execute("select 1")
            assert await cursor.fetchall() == [(1,)]

    asyncio.run(main())


class Cancels:
    """Lets a task be cancelled at a given moment of its transaction, by the connection's thread."""

    def __init__(self, connection: AsyncConnection, name: str) -> None:
        self._loop = asyncio.get_running_loop()
        self._inner = connection._connection
        self._work = getattr(self._inner, name)
        self.task: asyncio.Task[None] | None = None
        setattr(self._inner, name, self._called)

    def _called(self, *arguments: object, **options: object) -> object:
        found = self._work(*arguments, **options)
        done = threading.Event()
        self._loop.call_soon_threadsafe(self._cancel, done)
        assert done.wait(WAIT_S)
        return found

    def _cancel(self, done: threading.Event) -> None:
        assert self.task is not None
        self.task.cancel()
        self._loop.call_soon(done.set)


async def one_more(connection: AsyncConnection, key: int) -> None:
    async with connection.transaction():
        await connection.execute("insert into t values (%s, 'x')", (key,))


def test_a_task_that_is_cancelled_when_its_transaction_has_begun_leaves_none(
    database: DevDatabase, left: list[str]
) -> None:
    """It stayed open: all that came was inside of it, and was never committed."""

    async def main() -> None:
        async with connecting(database, left, autocommit=True) as connection:
            cancels = Cancels(connection, "begin_block")
            cancels.task = asyncio.ensure_future(one_more(connection, 1))
            with pytest.raises(asyncio.CancelledError):
                await cancels.task
            await connection.execute("insert into t values (2, 'kept')")
            await connection.close()
            async with connecting(database, left) as other:
                assert await ids(other) == [2]

    asyncio.run(main())


def test_a_task_that_is_cancelled_before_its_commit_has_its_turn_leaves_none(
    database: DevDatabase, left: list[str]
) -> None:
    async def main() -> None:
        async with connecting(database, left, autocommit=True) as connection:
            inside, ends = asyncio.Event(), asyncio.Event()

            async def work() -> None:
                async with connection.transaction():
                    await connection.execute("insert into t values (1, 'x')")
                    inside.set()
                    await ends.wait()

            released = threading.Event()
            task = asyncio.ensure_future(work())
            await inside.wait()
            held = asyncio.ensure_future(connection.run(lambda: released.wait(WAIT_S)))
            await turns(5)
            ends.set()
            await turns(5)
            assert connection._turn._waiters
            task.cancel()
            await turns(5)
            task.cancel()  # again, while it is being rolled back
            await turns(5)
            released.set()
            assert await held
            with pytest.raises(asyncio.CancelledError):
                await task
            await connection.execute("insert into t values (2, 'kept')")
            await connection.close()
            async with connecting(database, left) as other:
                assert await ids(other) == [2]

    asyncio.run(main())


async def turns(count: int) -> None:
    """Of the loop."""
    for _ in range(count):
        await asyncio.sleep(0)


async def ids(connection: AsyncConnection) -> list[int]:
    cursor = await connection.execute("select id from t order by id")
    return [key for (key,) in await cursor.fetchall()]


def test_tasks_take_turns(database: DevDatabase, left: list[str]) -> None:
    async def main() -> None:
        async with connecting(database, left, autocommit=True) as connection:
            texts = [f"insert into t values ({number}, 'x')" for number in range(20)]
            await asyncio.gather(*(connection.execute(text) for text in texts))
            cursor = await connection.execute("select count(*) from t")
            assert await cursor.fetchone() == (20,)

    asyncio.run(main())


def test_closing_ends_what_runs(database: DevDatabase, left: list[str]) -> None:
    async def main() -> None:
        connection = await connecting(database, left, autocommit=True)
        running = asyncio.ensure_future(connection.execute(LONG))
        await asyncio.sleep(0)  # it has its turn, and may be anywhere in it
        await connection.close()
        with pytest.raises(errors.OperationalError):
            await running

    asyncio.run(main())
    assert left == ["left"]


def test_one_that_is_forgotten_is_closed_and_said(database: DevDatabase, left: list[str]) -> None:
    async def main() -> None:
        connection = await connecting(database, left)
        await connection.execute("insert into t values (1, 'a')")

    def run() -> None:
        asyncio.run(main())
        gc.collect()

    with pytest.warns(ResourceWarning, match="was not closed"):
        run()


def test_an_opening_that_is_given_up_leaves_nothing(database: DevDatabase, left: list[str]) -> None:
    """The thread of the opening is told, and what it has opened all the same is closed."""

    def opened_late(stopped: Callable[[], bool]) -> Connection:
        while not stopped():
            pass
        return opened(database, left)

    async def main() -> None:
        opening = asyncio.ensure_future(Connecting(opened_late)._open())
        await asyncio.sleep(0)
        opening.cancel()
        with pytest.raises(asyncio.CancelledError):
            await opening

    asyncio.run(main())
    for thread in threading.enumerate():
        if thread.name == "leasehold-connection":
            thread.join(10.0)
    assert left == ["left"]


def test_an_opening_that_fails_leaves_nothing(left: list[str]) -> None:
    def fails(_: Callable[[], bool]) -> Connection:
        raise errors.OperationalError("no master")

    async def main() -> None:
        with pytest.raises(errors.OperationalError, match="no master"):
            async with Connecting(fails):
                raise AssertionError("it did not open")

    asyncio.run(main())


def test_a_loop_that_is_gone_does_not_stop_the_thread(left: list[str]) -> None:
    """Work that ends after its loop was closed is let go; the thread goes on and ends as told."""
    thread = OwnThread("test")
    wait = threading.Event()

    async def main() -> None:
        task = asyncio.ensure_future(thread.run(lambda: wait.wait(10.0), lambda: None))
        await asyncio.sleep(0)
        del task

    loop = asyncio.new_event_loop()
    loop.run_until_complete(main())
    for task in asyncio.all_tasks(loop):
        task._log_destroy_pending = False  # type: ignore[attr-defined]
    loop.close()
    wait.set()
    thread.end()


def test_an_async_connection_is_what_the_package_gives() -> None:
    import leasehold

    assert leasehold.AsyncConnection is AsyncConnection
    assert isinstance(leasehold.connect_async(), Connecting)
