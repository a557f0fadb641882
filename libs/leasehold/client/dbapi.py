"""SQL on an embedded replica by Python's own interface (PEP 249): reads without a network.

with leasehold.connect() as connection:
    row = connection.execute("SELECT free FROM seats WHERE flight = %s", (4711,)).fetchone()
    connection.execute("UPDATE seats SET free = free - 1 WHERE flight = %s", (4711,))
    connection.commit()
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from types import TracebackType
from typing import Any, Final, NamedTuple

from leasehold.client.client_settings import ClientSettings
from leasehold.client.dbapi_errors import (
    Error,
    InterfaceError,
    NotSupportedError,
    ProgrammingError,
    error_of,
)
from leasehold.client.placeholders import numbered
from leasehold.client.replica import Replica, open_replica
from leasehold.client.serving_node import COHERENT_TIMEOUT_S
from leasehold.client.sql_session import SqlSession
from leasehold.model.errors import LeaseholdError
from leasehold.pgwire.session import Notice, Status
from leasehold.pgwire.wire_errors import Canceled
from leasehold.schema.types import Type, from_storage, to_storage
from leasehold.sql.query_plan import Plans
from leasehold.sql.session_statements import (
    CopyIn,
    RowStatement,
    SessionStatement,
)
from leasehold.transaction.isolation import isolation_of

apilevel: Final = "2.0"
threadsafety: Final = 1
paramstyle: Final = "format"
PORTION: Final = 1_000
NOTICES_MAX: Final = 100
USER: Final = "leasehold"


class ColumnDescription(NamedTuple):
    """PEP 249's seven items; `type_code` is the SQL type's name."""

    name: str
    type_code: str
    display_size: None = None
    internal_size: None = None
    precision: int | None = None
    scale: int | None = None
    null_ok: None = None


def connect(
    settings: ClientSettings | None = None,
    *,
    path: Path | str | None = None,
    autocommit: bool = False,
    isolation: str | None = None,
    wait_s: float = COHERENT_TIMEOUT_S,
) -> Connection:
    """A connection to the replica that this process embeds: opened by the first, closed with the
    last of its connections.

    `path`, `wait_s`: as of `open_replica`. Raises OperationalError and what it is made of."""
    settings = settings or ClientSettings.read()
    file = Path(path) if path else settings.cluster.folder / "store.db"
    try:
        shared = _Shared.of(
            file.absolute(), lambda: open_replica(settings, path=path, wait_s=wait_s)
        )
    except LeaseholdError as error:
        raise error_of(error) from error
    session = SqlSession(shared.replica.serving, shared.plans, user=USER)
    try:
        return Connection(session, shared.leave, autocommit=autocommit, isolation=isolation)
    except BaseException:
        session.close()
        shared.leave()
        raise


class _Shared:
    """One replica for all connections of this process to one store."""

    _all: dict[Path, _Shared] = {}  # noqa: RUF012 - of the process, on purpose
    _lock: Final = threading.Lock()

    def __init__(self, file: Path, replica: Replica) -> None:
        self._file = file
        self._users = 0
        self.replica = replica
        self.plans = Plans()

    @classmethod
    def of(cls, file: Path, opened: Callable[[], Replica]) -> _Shared:
        with cls._lock:
            found = cls._all.get(file)
            if found is None:
                found = cls._all[file] = cls(file, opened())
            found._users += 1
            return found

    def leave(self) -> None:
        with self._lock:
            self._users -= 1
            if self._users:
                return
            del self._all[self._file]
            self.replica.close()


class Connection:
    """One session; for one thread at a time, except `cancel`. Without `autocommit` the first
    statement on rows begins a transaction; a schema change is a commit of its own, outside of one.
    """

    def __init__(
        self,
        session: SqlSession,
        left: Callable[[], None],
        *,
        autocommit: bool = False,
        isolation: str | None = None,
    ) -> None:
        """`left` is called once it is closed."""
        self._session = session
        self._left = left
        self._closed = False
        self.autocommit = autocommit
        self.notices: deque[Notice] = deque(maxlen=NOTICES_MAX)
        if isolation is not None:
            level = self.guarded(lambda: isolation_of(isolation).level.value)
            self._command(f"SET leasehold.isolation = '{level}'")

    # ------------------------------------------------------------ PEP 249

    def cursor(self) -> Cursor:
        self._check_open()
        return Cursor(self)

    def execute(self, operation: str, parameters: Sequence[Any] | None = None) -> Cursor:
        """A new cursor, which has run it."""
        return self.cursor().execute(operation, parameters)

    def commit(self) -> None:
        """Returns when it is on every coherent node. Raises IntegrityError, OperationalError
        (40001: run it again; 08007: what became of it is not known)."""
        self._check_open()
        if self._session.status is not Status.IDLE:
            self._command("COMMIT")

    def rollback(self) -> None:
        self._check_open()
        if self._session.status is not Status.IDLE:
            self._command("ROLLBACK")

    def close(self) -> None:
        """What is not committed is rolled back. May be called twice."""
        if not self._closed:
            self._closed = True
            self._session.close()
            self._left()

    def cancel(self) -> None:
        """From any thread: what runs now ends with OperationalError (57014)."""
        self._session.cancel(Canceled("canceling statement due to user request"))

    def __enter__(self) -> Connection:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Commits, unless the block has raised, and closes."""
        try:
            if not self._closed and kind is None:
                self.commit()
        finally:
            self.close()

    # ------------------------------------------------------------ inside

    def _check_open(self) -> None:
        if self._closed:
            raise InterfaceError("the connection is closed")

    def guarded(self, work: Callable[[], Any]) -> Any:
        """Errors as PEP 249 has them; the transaction has failed then."""
        try:
            return work()
        except LeaseholdError as error:
            self._session.fail()
            raise error_of(error) from error
        except Error:  # a mistake in the call: a transaction goes on
            if self._session.status is Status.IDLE:
                self._session.fail()
            raise
        except BaseException:
            self._session.fail()
            raise
        finally:
            reports = self._session.take_reports()
            self.notices.extend(report for report in reports if isinstance(report, Notice))

    def _command(self, text: str) -> None:
        self.guarded(lambda: self._run(text, ()))

    def run(self, text: str, parameters: Sequence[Any]) -> Result:
        self._check_open()
        result: Result = self.guarded(lambda: self._run(text, parameters))
        return result

    def _run(self, text: str, parameters: Sequence[Any]) -> Result:
        session = self._session
        statements = session.statements(text)
        if len(statements) != 1:
            raise ProgrammingError(f"one statement at a time: the text holds {len(statements)}")
        statement = statements[0]
        if isinstance(statement.meaning, CopyIn):
            raise NotSupportedError("COPY is for the wire: use executemany")
        if self._begins(statement):
            self._run("BEGIN", ())
        prepared = session.prepare(statement, ())
        portal = session.bind(prepared, _stored(prepared.parameters, parameters))
        try:
            rows: list[Sequence[Any]] = []
            tag = None
            while tag is None:
                fetched = portal.fetch(PORTION)
                rows += fetched.rows
                tag = fetched.tag
        finally:
            portal.close()
        session.end_batch()
        return Result.of(prepared.columns, rows, tag)

    def _begins(self, statement: SessionStatement) -> bool:
        idle = not self.autocommit and self._session.status is Status.IDLE
        return idle and isinstance(statement.meaning, RowStatement)


def _stored(kinds: Sequence[Any], given: Sequence[Any]) -> list[Any]:
    """Python values as storage values. Raises ProgrammingError for a wrong number."""
    if len(kinds) != len(given):
        raise ProgrammingError(
            f"the statement has {len(kinds)} parameters; {len(given)} were given"
        )
    return [to_storage(kind)(value) for kind, value in zip(kinds, given, strict=True)]


class Result(NamedTuple):
    description: list[ColumnDescription] | None
    rows: list[tuple[Any, ...]]
    rowcount: int

    @classmethod
    def of(cls, columns: Sequence[Any] | None, rows: list[Sequence[Any]], tag: str) -> Result:
        number = tag.rpartition(" ")[2]
        count = int(number) if number.isdecimal() else -1
        if columns is None:
            return cls(None, [], count)
        kinds = [column.type for column in columns]
        described = [
            ColumnDescription(c.name, str(c.type), precision=c.type.precision, scale=c.type.scale)
            for c in columns
        ]
        return cls(described, [_python(kinds, row) for row in rows], len(rows))


def _python(kinds: Sequence[Type], row: Sequence[Any]) -> tuple[Any, ...]:
    return tuple(from_storage(kind, value) for kind, value in zip(kinds, row, strict=True))


class Cursor:
    """The rows of one statement, all fetched when it is run."""

    def __init__(self, connection: Connection) -> None:
        self.connection = connection
        self.arraysize = 1
        self._result = Result(None, [], -1)
        self._next = 0
        self._closed = False

    @property
    def description(self) -> list[ColumnDescription] | None:
        return self._result.description

    @property
    def rowcount(self) -> int:
        return self._result.rowcount

    def execute(self, operation: str, parameters: Sequence[Any] | None = None) -> Cursor:
        """`%s` stands for a parameter and `%%` for a percent sign where parameters are given;
        `$1` may be written instead. Raises the errors of PEP 249, each with its `sqlstate`."""
        self._check_open()
        self._result, self._next = Result(None, [], -1), 0
        text = operation if parameters is None else numbered(operation, len(parameters))
        self._result = self.connection.run(text, parameters or ())
        return self

    def executemany(self, operation: str, rows: Iterable[Sequence[Any]]) -> Cursor:
        """Once for each; `rowcount` is the sum."""
        count = 0
        for parameters in rows:
            self.execute(operation, parameters)
            count += max(self.rowcount, 0)
        self._result = Result(None, [], count)
        return self

    def fetchone(self) -> tuple[Any, ...] | None:
        found = self.fetchmany(1)
        return found[0] if found else None

    def fetchmany(self, size: int | None = None) -> list[tuple[Any, ...]]:
        self._check_rows()
        first, self._next = self._next, self._next + (size or self.arraysize)
        return self._result.rows[first : self._next]

    def fetchall(self) -> list[tuple[Any, ...]]:
        self._check_rows()
        first, self._next = self._next, len(self._result.rows)
        return self._result.rows[first:]

    def __iter__(self) -> Iterator[tuple[Any, ...]]:
        while (row := self.fetchone()) is not None:
            yield row

    def close(self) -> None:
        self._closed = True
        self._result = Result(None, [], -1)

    def __enter__(self) -> Cursor:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def setinputsizes(self, sizes: Sequence[Any]) -> None:
        """Does nothing: types are the statement's."""

    def setoutputsize(self, size: int, column: int | None = None) -> None:
        """Does nothing: values are of any size."""

    def _check_open(self) -> None:
        if self._closed:
            raise InterfaceError("the cursor is closed")

    def _check_rows(self) -> None:
        self._check_open()
        if self._result.description is None:
            raise ProgrammingError("there are no rows: the last statement gave none")


__all__ = [
    "Connection",
    "Cursor",
    "Error",
    "apilevel",
    "connect",
    "paramstyle",
    "threadsafety",
]
