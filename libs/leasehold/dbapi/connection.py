"""PEP 249's connection: a SQL session, with Python's values and errors."""

from __future__ import annotations

import warnings
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from types import TracebackType
from typing import Any, Final, NamedTuple

from leasehold.dbapi import errors as dbapi_errors
from leasehold.dbapi.cursor import Cursor, Result, Shape
from leasehold.dbapi.errors import (
    Error,
    InterfaceError,
    InternalError,
    NotSupportedError,
    ProgrammingError,
    error_of,
)
from leasehold.model.errors import LeaseholdError
from leasehold.pgwire.session import Notice, Recounted, Status, WouldBlock
from leasehold.pgwire.wire_errors import CachedResultChanged, Canceled, InFailedTransaction
from leasehold.replica.notifications import Told
from leasehold.sql.syntax.session_statements import (
    CopyIn,
    CopyOut,
    DeclareCursor,
    RowStatement,
    SessionStatement,
)
from leasehold.sql_session.prepared import PreparedStatement
from leasehold.sql_session.session import SqlSession
from leasehold.transaction.isolation import isolation_of
from leasehold.values.storage import to_storage

PORTION: Final = 1_000
NOTICES_MAX: Final = 100
QUERIES_KEPT_MAX: Final = 200
NOTIFIED_BYTES: Final = 1 << 20
"""Of notifications that are taken at a time."""
Input = Callable[[Any], Any]


class Known(NamedTuple):
    """A query that was run. `parameters`: Python values → storage values."""

    prepared: PreparedStatement
    parameters: list[Input]
    shape: Shape


class Connection:
    """A SQL session; for one thread at a time, except `cancel`. Without `autocommit` the first
    statement on rows begins a transaction; a schema change is a commit of its own, outside of one.
    PEP 249's exceptions are attributes of it, too.
    """

    Warning = dbapi_errors.Warning
    Error = dbapi_errors.Error
    InterfaceError = dbapi_errors.InterfaceError
    DatabaseError = dbapi_errors.DatabaseError
    DataError = dbapi_errors.DataError
    OperationalError = dbapi_errors.OperationalError
    IntegrityError = dbapi_errors.IntegrityError
    InternalError = dbapi_errors.InternalError
    ProgrammingError = dbapi_errors.ProgrammingError
    NotSupportedError = dbapi_errors.NotSupportedError

    _closed = True  # as long as it is not made

    def __init__(
        self,
        session: SqlSession,
        left: Callable[[], None],
        *,
        autocommit: bool = False,
        isolation: str | None = None,
    ) -> None:
        """Take over a session. `left` is called once it is closed."""
        self._session = session
        self._left = left
        self._blocks = 0
        self._queries: dict[str, Known] = {}
        self.autocommit = autocommit
        self.notices: deque[Notice] = deque(maxlen=NOTICES_MAX)
        if isolation is not None:
            level = self.guarded(lambda: isolation_of(isolation).level.value)
            self._command(f"SET leasehold.isolation = '{level}'")
        self._closed = False

    # ------------------------------------------------------------ PEP 249

    def cursor(self) -> Cursor:
        self.check_open()
        return Cursor(self)

    def execute(self, operation: str, parameters: Sequence[Any] | None = None) -> Cursor:
        """Return a new cursor, which has run a statement."""
        return self.cursor().execute(operation, parameters)

    def commit(self) -> None:
        """Commit; returns when it is on every coherent node. Raises IntegrityError,
        OperationalError (40001: run it again; 08007: what became of it is not known), and
        InternalError (25P02) for a transaction that has failed before: it is rolled back then."""
        self.check_open()
        failed = self._session.status is Status.FAILED
        if self._session.status is not Status.IDLE:
            self._command("COMMIT")
        if failed:
            error = InternalError("the transaction had failed: it was rolled back, not committed")
            error.sqlstate = InFailedTransaction.sqlstate
            raise error

    def rollback(self) -> None:
        self.check_open()
        if self._session.status is not Status.IDLE:
            self._command("ROLLBACK")

    def close(self) -> None:
        """Roll back what is not committed, and close. May be called twice."""
        if not self._closed:
            self._closed = True
            self._session.close()
            self._left()

    def notifies(self, timeout_s: float | None = None) -> Iterator[Told]:
        """Yield what is told to the channels that this connection listens to (LISTEN): channel,
        payload, and the process that has told it, 0 for one of another node. It ends when nothing
        has come for `timeout_s`; without one it goes on until `cancel`.

        Raises ProgrammingError inside of a transaction, where PostgreSQL tells nothing, either;
        OperationalError (57P01) where so much was not taken that the session had to end."""
        while told := self.wait_told(timeout_s):
            yield from told

    def wait_told(self, timeout_s: float | None) -> Sequence[Told]:
        """Return the next of what `notifies` yields, () at its end. Raises as it does."""
        told: Sequence[Told] = self.guarded(self._wait_told, timeout_s)
        return told

    def _wait_told(self, timeout_s: float | None) -> Sequence[Told]:
        self.check_open()
        if self._session.status is not Status.IDLE:
            raise ProgrammingError("notifications come between transactions: COMMIT first")
        self._session.wait_notifications(timeout_s)
        return self._session.take_notifications(NOTIFIED_BYTES)

    def cancel(self) -> None:
        """End what runs now with OperationalError (57014); any thread may call this."""
        self._session.cancel(Canceled("canceling statement due to user request"))

    @contextmanager
    def transaction(self) -> Iterator[Connection]:
        """Commit at its end, or roll back when the block raises; inside of a transaction it is a
        savepoint, and what the block did goes back alone."""
        savepoint = self.begin_block()
        try:
            yield self
        except BaseException:
            self.end_block(savepoint, committed=False)
            raise
        self.end_block(savepoint, committed=True)

    def begin_block(self) -> str | None:
        """Begin a transaction, or a savepoint in one, and return the savepoint's name."""
        self.check_open()
        if self._session.status is Status.IDLE:
            self._command("BEGIN")
            return None
        self._blocks += 1
        savepoint = f"leasehold_{self._blocks}"
        self._command(f"SAVEPOINT {savepoint}")
        return savepoint

    def end_block(self, savepoint: str | None, *, committed: bool) -> None:
        if savepoint is None:
            self.commit() if committed else self.rollback()
            return
        if committed:
            self._command(f"RELEASE {savepoint}")
        elif self._session.status is not Status.IDLE:
            self._command(f"ROLLBACK TO {savepoint}")
            self._command(f"RELEASE {savepoint}")

    def __del__(self) -> None:
        if not self._closed:
            warnings.warn("a connection was not closed", ResourceWarning, 2, self)

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

    def check_open(self) -> None:
        """Raises InterfaceError."""
        if self._closed:
            raise InterfaceError("the connection is closed")

    def guarded(self, work: Callable[..., Any], *arguments: Any) -> Any:
        """Return what `work` does. Errors are those of PEP 249; the transaction has failed then."""
        try:
            return work(*arguments)
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
            self._told()

    def _told(self) -> str:
        """Keep notices, and return the tag of a statement that has run again, if one came."""
        tag = ""
        for report in self._session.take_reports():
            if isinstance(report, Notice):
                self.notices.append(report)
            elif isinstance(report, Recounted):
                tag = report.tag
        return tag

    def _command(self, text: str) -> None:
        self.guarded(self._run, text, ())

    def run(self, text: str, parameters: Sequence[Any]) -> Result:
        self.check_open()
        known = self._queries.get(text)
        if known is not None and self.autocommit:
            result: Result | None = self.guarded(self._at_once, text, known, parameters)
            if result is not None:
                return result
        made: Result = self.guarded(self._run, text, parameters)
        return made

    def _at_once(self, text: str, known: Known, parameters: Sequence[Any]) -> Result | None:
        """Return the result of a query that was run before, outside of a transaction; None: it
        needs one, or time."""
        session = self._session
        values = _stored(known.parameters, parameters) if parameters or known.parameters else ()
        session.hurried = True
        try:
            rows = session.short_rows(known.prepared, values)
        except WouldBlock:
            return None
        except CachedResultChanged:  # nobody relies on the columns of the last time
            del self._queries[text]
            return None
        finally:
            session.hurried = False
        return None if rows is None else known.shape.result(rows)

    def _run(self, text: str, parameters: Sequence[Any]) -> Result:
        session = self._session
        statements = session.statements(text)
        if len(statements) != 1:
            raise ProgrammingError(f"one statement at a time: the text holds {len(statements)}")
        statement = statements[0]
        if isinstance(statement.meaning, CopyIn | CopyOut):
            raise NotSupportedError("COPY is for the wire: use executemany, or SELECT")
        if self._begins(statement):
            self._run("BEGIN", ())
        prepared = session.prepare(statement, ())
        portal = session.bind(prepared, _stored(inputs_of(prepared.parameters), parameters))
        try:
            rows: list[Sequence[Any]] = []
            tag = None
            while tag is None:
                fetched = portal.fetch(PORTION)
                rows += fetched.rows
                tag = fetched.tag
        finally:
            portal.close()
        session.answer_held = True  # it is returned at the end
        session.end_batch()
        tag = self._told() or tag
        shape = Shape(prepared.columns)
        if tag == "SELECT":
            if len(self._queries) >= QUERIES_KEPT_MAX:
                self._queries.clear()
            self._queries[text] = Known(prepared, inputs_of(prepared.parameters), shape)
        return shape.result(rows, tag)

    def _begins(self, statement: SessionStatement) -> bool:
        idle = not self.autocommit and self._session.status is Status.IDLE
        return idle and isinstance(statement.meaning, RowStatement | DeclareCursor)


def _stored(inputs: Sequence[Input], given: Sequence[Any]) -> list[Any]:
    """Return values in storage form. Raises ProgrammingError for a wrong number."""
    if len(inputs) != len(given):
        raise ProgrammingError(
            f"the statement has {len(inputs)} parameters; {len(given)} were given"
        )
    return [stored(value) for stored, value in zip(inputs, given, strict=True)]


def inputs_of(kinds: Sequence[Any]) -> list[Input]:
    return [to_storage(kind) for kind in kinds]
