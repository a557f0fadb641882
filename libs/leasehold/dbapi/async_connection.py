"""The same connection for programs on an event loop.

async with leasehold.connect_async() as connection:
    cursor = await connection.execute("SELECT free FROM seats WHERE flight = %s", (4711,))
    async with connection.transaction():
        await connection.execute("UPDATE seats SET free = free - 1 WHERE flight = %s", (4711,))

Statements run on a thread that is the connection's own, so the loop goes on meanwhile.
"""

from __future__ import annotations

import asyncio
import contextlib
import threading
import warnings
from collections import deque
from collections.abc import AsyncIterator, Callable, Generator, Iterable, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from types import TracebackType
from typing import Any, TypeVar

from leasehold.dbapi import module
from leasehold.dbapi.connection import Connection
from leasehold.dbapi.cursor import ColumnDescription, Cursor
from leasehold.dbapi.errors import InterfaceError
from leasehold.dbapi.own_thread import STOP_AGAIN_S, OwnThread
from leasehold.pgwire.session import Notice
from leasehold.replica.notifications import Told
from leasehold.replica.serving_node import COHERENT_TIMEOUT_S
from leasehold.settings.client import ClientSettings

T = TypeVar("T")


def connect_async(
    settings: ClientSettings | None = None,
    *,
    path: Path | str | None = None,
    autocommit: bool = False,
    isolation: str | None = None,
    wait_s: float = COHERENT_TIMEOUT_S,
) -> Connecting:
    """Return a connection on its way, to be awaited, or entered by `async with`; arguments and
    errors are those of `connect`."""

    def opened(stopped: Callable[[], bool]) -> Connection:
        return module.connect(
            settings,
            path=path,
            autocommit=autocommit,
            isolation=isolation,
            wait_s=wait_s,
            stopped=stopped,
        )

    return Connecting(opened)


class Connecting:
    """A connection on its way."""

    def __init__(self, opened: Callable[[Callable[[], bool]], Connection]) -> None:
        """Begin nothing yet. `opened` opens it, on the connection's thread; what it is given tells
        whether to give up."""
        self._opened = opened
        self._connection: AsyncConnection | None = None

    def __await__(self) -> Generator[Any, None, AsyncConnection]:
        return self._open().__await__()

    async def _open(self) -> AsyncConnection:
        stopped = threading.Event()
        made: list[Connection] = []
        thread = OwnThread("leasehold-connection")
        try:
            await thread.run(lambda: made.append(self._opened(stopped.is_set)), stopped.set)
        except BaseException:
            if made:
                thread.abandon(made[0].close)
            else:
                thread.end()
            raise
        return AsyncConnection(made[0], thread)

    async def __aenter__(self) -> AsyncConnection:
        self._connection = await self._open()
        return self._connection

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        assert self._connection is not None
        await self._connection.__aexit__(kind, error, trace)


class AsyncConnection:
    """The same as `Connection`, awaited. Several tasks may share it: each call waits for those
    before it, and all are in one transaction. A task that is cancelled cancels its statement;
    COMMIT is waited for even then, and what became of it is not told."""

    def __init__(self, connection: Connection, thread: OwnThread) -> None:
        """Take over a connection and its thread."""
        self._connection = connection
        self._thread = thread
        self._turn = asyncio.Lock()
        self._closed = False

    @property
    def autocommit(self) -> bool:
        return self._connection.autocommit

    @autocommit.setter
    def autocommit(self, wanted: bool) -> None:
        self._connection.autocommit = wanted

    @property
    def notices(self) -> deque[Notice]:
        return self._connection.notices

    def cursor(self) -> AsyncCursor:
        self.check_open()
        return AsyncCursor(self, self._connection.cursor())

    async def execute(self, operation: str, parameters: Sequence[Any] | None = None) -> AsyncCursor:
        return await self.cursor().execute(operation, parameters)

    async def commit(self) -> None:
        await self.run(self._connection.commit)

    async def rollback(self) -> None:
        await self.run(self._connection.rollback)

    @asynccontextmanager
    async def transaction(self) -> AsyncIterator[AsyncConnection]:
        """Commit at its end, or roll back when the block raises or is cancelled; inside of a
        transaction it is a savepoint."""
        connection = self._connection
        # What has begun, until it ends: ⚠ a task may be cancelled just when its BEGIN is done, or
        # before its COMMIT has had its turn, and nobody else would end it.
        open_blocks: list[str | None] = []

        def end(*, committed: bool) -> None:
            if open_blocks:
                connection.end_block(open_blocks.pop(), committed=committed)

        try:
            await self.run(lambda: open_blocks.append(connection.begin_block()))
            yield self
            await self.run(lambda: end(committed=True))
        except BaseException:
            if open_blocks:
                await self._to_its_end(lambda: end(committed=False))
            raise

    async def notifies(self, timeout_s: float | None = None) -> AsyncIterator[Told]:
        """Yield what `Connection.notifies` does. Meanwhile other tasks' statements wait: who
        listens has a connection of his own."""
        while True:
            told = await self.run(lambda: self._connection.wait_told(timeout_s))
            if not told:
                return
            for each in told:
                yield each

    def cancel(self) -> None:
        """End what runs now with OperationalError (57014)."""
        self._connection.cancel()

    async def close(self) -> None:
        """Cancel what runs, roll back what is not committed, and end the thread. May be called
        twice."""
        if self._closed:
            return
        self._closed = True
        try:
            await self._stop_running()
            await self._thread.run(self._connection.close, lambda: None)
        except BaseException:
            self._thread.abandon(self._connection.close)
            raise
        self._thread.end()

    async def _stop_running(self) -> None:
        """End what runs. Those who wait for their turn find the connection closed."""
        while self._turn.locked():
            self.cancel()
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(STOP_AGAIN_S), self._turn:
                    return

    async def run(self, work: Callable[[], T]) -> T:
        """Return what `work` does on the connection's thread, in its turn."""
        self.check_open()
        async with self._turn:
            self.check_open()
            return await self._thread.run(work, self._connection.cancel)

    async def _to_its_end(self, work: Callable[[], None]) -> None:
        """Run `work`, whoever cancels the task meanwhile: its caller is about to raise as it is. A
        connection that is closed has ended it by that."""
        ends = asyncio.ensure_future(self.run(work))
        while not ends.done():
            with contextlib.suppress(asyncio.CancelledError):
                await asyncio.wait({ends})
        error = ends.exception()
        if error is not None and not self._closed:
            raise error

    def check_open(self) -> None:
        if self._closed:
            raise InterfaceError("the connection is closed")

    def __del__(self) -> None:
        if not self._closed:
            warnings.warn("an async connection was not closed", ResourceWarning, 2, self)
            self._thread.abandon(self._connection.close)

    async def __aenter__(self) -> AsyncConnection:
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Commits, unless the block has raised, and closes."""
        try:
            if not self._closed and kind is None:
                await self.commit()
        finally:
            await self.close()


class AsyncCursor:
    """The same as `Cursor`: all rows are there once `execute` returns, so fetching them waits for
    nobody."""

    def __init__(self, connection: AsyncConnection, cursor: Cursor) -> None:
        self.connection = connection
        self._cursor = cursor

    @property
    def description(self) -> list[ColumnDescription] | None:
        return self._cursor.description

    @property
    def rowcount(self) -> int:
        return self._cursor.rowcount

    @property
    def rownumber(self) -> int | None:
        return self._cursor.rownumber

    @property
    def arraysize(self) -> int:
        return self._cursor.arraysize

    @arraysize.setter
    def arraysize(self, rows: int) -> None:
        self._cursor.arraysize = rows

    lastrowid: None = None

    async def execute(self, operation: str, parameters: Sequence[Any] | None = None) -> AsyncCursor:
        await self.connection.run(lambda: self._cursor.execute(operation, parameters))
        return self

    async def executemany(self, operation: str, rows: Iterable[Sequence[Any]]) -> AsyncCursor:
        """Run a statement for each of `rows`, which is gone over on the connection's thread."""
        await self.connection.run(lambda: self._cursor.executemany(operation, rows))
        return self

    async def fetchone(self) -> tuple[Any, ...] | None:
        return self._cursor.fetchone()

    async def fetchmany(self, size: int | None = None) -> list[tuple[Any, ...]]:
        return self._cursor.fetchmany(size)

    async def fetchall(self) -> list[tuple[Any, ...]]:
        return self._cursor.fetchall()

    def __aiter__(self) -> AsyncCursor:
        return self

    async def __anext__(self) -> tuple[Any, ...]:
        row = self._cursor.fetchone()
        if row is None:
            raise StopAsyncIteration
        return row

    async def close(self) -> None:
        self._cursor.close()

    async def __aenter__(self) -> AsyncCursor:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()
