"""Goal: nothing of an async connection holds its event loop up.

Method: whatever is called on the loop's thread while everything a connection can do is done is
written down: no function of this project that opens, reads, writes or waits is among it, no
function of SQLite, of files and of sleep; and no lock is waited for but those that are held for a
moment by their nature.
"""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from types import FrameType
from typing import Any, Final

import pytest

import leasehold
from leasehold.dbapi.async_connection import Connecting
from leasehold.dbapi.connection import Connection
from leasehold.dbapi.errors import Error
from leasehold.dev.database import DevDatabase
from leasehold.sql.planning.plan import Plans
from leasehold.sql_session.session import SqlSession

PACKAGE: Final = str(Path(leasehold.__file__).parent)
"""A checkout may lie in a folder of any name."""
LONG: Final = "select count(*) from generate_series(1, 3000000) a, generate_series(1, 3000000) b"
ON_THE_LOOP: Final = {
    *("async_connection.py", "own_thread.py", "cursor.py", "connection.py"),
    *("session.py", "running.py", "node.py", "database.py", "wire_errors.py", "errors.py"),
    "notifications.py",
}
"""Files of this project whose functions may be called there: cancelling goes down to the node."""
MAY_LOCK: Final = {
    "start": "a thread that begins",
    "join": "a thread that has done all its work",
    "cancel": "a flag",
    "look_again": "whoever waits is told to look",
    "wake_waiters": "the same of whoever waits for notifications",
    "_acquireLock": "logging's, of asyncio itself",
}
_LOCKS_OWN: Final = frozenset(
    {"wait", "__enter__", "acquire", "_wait_for_tstate_lock", "_acquire_restore", "_is_owned"}
)


class Calls:
    def __init__(self) -> None:
        self.functions: set[tuple[str, str]] = set()
        self.built_in: set[str] = set()
        self.waits: set[str] = set()

    def seen(self, frame: FrameType, event: str, called: Any) -> None:
        if event == "call":
            path = frame.f_code.co_filename
            if path.startswith(PACKAGE):
                self.functions.add((Path(path).name, frame.f_code.co_name))
        elif event == "c_call":
            module = (
                getattr(called, "__module__", None)
                or type(getattr(called, "__self__", None)).__module__
            )
            self.built_in.add(f"{module}.{called.__qualname__}")
            if called.__qualname__ in ("lock.acquire", "lock.__enter__", "RLock.acquire"):
                self.waits.add(_who(frame))


def _who(frame: FrameType | None) -> str:
    """The first function that is no lock's."""
    while frame is not None and frame.f_code.co_name in _LOCKS_OWN:
        frame = frame.f_back
    return "" if frame is None else frame.f_code.co_name


@contextmanager
def written_down() -> Iterator[Calls]:
    calls, before = Calls(), sys.getprofile()
    sys.setprofile(calls.seen)
    try:
        yield calls
    finally:
        sys.setprofile(before)


async def everything(opened: Callable[[], Connection]) -> None:
    async with Connecting(lambda _: opened()) as connection:
        await connection.execute("create table t (id int primary key, note text)")
        cursor = connection.cursor()
        await cursor.executemany("insert into t values (%s, %s)", [(n, "x") for n in range(300)])
        await connection.commit()
        await cursor.execute("select * from t order by id")
        assert await cursor.fetchone() == (0, "x")
        assert len(await cursor.fetchmany(10)) == 10
        assert len([row async for row in cursor]) == 289
        async with connection.transaction():
            await connection.execute("update t set note = 'y' where id = 1")
        with pytest.raises(Error):
            await connection.execute("select no from t")
        await connection.rollback()
        runs = asyncio.ensure_future(connection.execute(LONG))
        await asyncio.sleep(0)
        runs.cancel()
        with pytest.raises(asyncio.CancelledError):
            await runs
        await connection.execute("rollback")
        await connection.execute("drop table t")
        await cursor.close()


def test_nothing_on_the_loop_blocks(database: DevDatabase) -> None:
    def opened() -> Connection:
        return Connection(SqlSession(database.sql_node(), Plans(), user="me"), lambda: None)

    with written_down() as calls:
        asyncio.run(everything(opened))
    assert ("own_thread.py", "run") in calls.functions, "it was written down"
    assert {name for name, _ in calls.functions} <= ON_THE_LOOP
    assert calls.waits <= MAY_LOCK.keys(), calls.waits
    of_modules = {name.split(".")[0] for name in calls.built_in}
    assert not of_modules & {"apsw", "sqlite3", "_io", "mmap", "fcntl", "subprocess"}
    assert "time.sleep" not in calls.built_in
