"""Sessions of two PostgreSQL drivers behind one interface, as the clients of a round use them."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final, Protocol

import asyncpg
import psycopg

from infra.ports import LOOPBACK
from tests.faults.workload.history import Told

CONNECT_S: Final = 3
INDEFINITE: Final = ("08", "57P01", "57P02", "57014")
"""SQLSTATEs, or their classes, after which a client knows nothing: T5's own, and those of a
connection or a server that went away. 57014: a statement that was ended may have been sent."""

BROKEN: Final = (
    *(OSError, TimeoutError),
    *(asyncpg.InterfaceError, asyncpg.InternalClientError),
)
"""What asyncpg raises of a connection that broke; the last one where the server has said, while it
was idle, why it ends it."""


class SqlFailure(Exception):
    """A statement was not answered with rows. `sqlstate` "": the connection broke. `lost`: the
    session can't be used any more."""

    def __init__(self, sqlstate: str, words: str, *, lost: bool) -> None:
        super().__init__(words)
        self.sqlstate = sqlstate
        self.lost = lost

    @property
    def told(self) -> Told:
        """Return what may be concluded of a statement that would have committed something."""
        if not self.sqlstate or self.sqlstate.startswith(INDEFINITE):
            return Told.UNKNOWN
        return Told.NO


class Session(Protocol):
    def run(self, text: str) -> Sequence[Sequence[Any]]:
        """Return the rows of a statement. Raises SqlFailure."""
        ...

    def close(self) -> None: ...


class PsycopgSession:
    """By psycopg, in the simple protocol where it has no parameters. Raises SqlFailure."""

    def __init__(self, port: int) -> None:
        try:
            self._connection = psycopg.connect(
                host=LOOPBACK,
                port=port,
                user="leasehold",
                dbname="demo",
                connect_timeout=CONNECT_S,
                autocommit=True,
                application_name="faults",
            )
        except psycopg.Error as error:
            raise SqlFailure(error.sqlstate or "", str(error), lost=True) from error

    def run(self, text: str) -> Sequence[Sequence[Any]]:
        try:
            cursor = self._connection.execute(text.encode())
            return cursor.fetchall() if cursor.description else []
        except psycopg.Error as error:
            lost = self._connection.closed
            raise SqlFailure(error.sqlstate or "", str(error), lost=lost) from error

    def close(self) -> None:
        self._connection.close()


class AsyncpgSession:
    """By asyncpg, in the extended protocol, on a loop of its own. Raises SqlFailure."""

    def __init__(self, port: int) -> None:
        self._runner = asyncio.Runner()
        self._connection: Any = None
        self._connection = self._do(
            asyncpg.connect(
                host=LOOPBACK, port=port, user="leasehold", database="demo", timeout=CONNECT_S
            )
        )

    def run(self, text: str) -> Sequence[Sequence[Any]]:
        rows: Sequence[Sequence[Any]] = self._do(self._connection.fetch(text))
        return [tuple(row) for row in rows]

    def close(self) -> None:
        if self._connection is not None:
            self._connection.terminate()
        self._runner.close()

    def _do(self, work: Any) -> Any:
        try:
            return self._runner.run(work)
        except asyncpg.PostgresError as error:
            raise SqlFailure(error.sqlstate or "", str(error), lost=self._is_lost()) from error
        except BROKEN as error:
            if self._connection is None:
                self._runner.close()
            raise SqlFailure("", f"{type(error).__name__}: {error}", lost=True) from error

    def _is_lost(self) -> bool:
        return self._connection is None or self._connection.is_closed()


Connect = Callable[[int], Session]
DRIVERS: Final[Mapping[str, Connect]] = {"psycopg": PsycopgSession, "asyncpg": AsyncpgSession}
