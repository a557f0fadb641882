"""The statements that a session has prepared by SQL's PREPARE, and LOCK TABLE.

What is kept is the text and the types: EXECUTE prepares it as the protocol's clients do, and its
arguments are a query's row.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, Final, NamedTuple, TypeVar

from leasehold.catalog.definitions import quoted
from leasehold.model.errors import Refused, RequestTooLarge, SyntaxInvalid
from leasehold.pgwire.session import Portal
from leasehold.pgwire.wire_errors import DuplicatePreparedStatement, UnknownPreparedStatement
from leasehold.replica.replay_log import Types
from leasehold.sql.session.text import read_text, shifted
from leasehold.sql.syntax.session_statements import (
    ExecuteStatement,
    LockTables,
    PrepareStatement,
    RowStatement,
    SessionStatement,
)
from leasehold.sql_session.portals import CommandPortal
from leasehold.sql_session.prepared import Answer, PreparedStatement
from leasehold.sql_session.statement_runner import StatementRunner
from leasehold.transaction.block import NoTransaction
from leasehold.values.types import plain_type

KEPT_BYTES_MAX: Final = 4 * 1024 * 1024
"""Of the names and texts that one session keeps."""
KEPT_MAX: Final = 1_000
Prepare = Callable[[SessionStatement, Types], PreparedStatement]
Bind = Callable[[PreparedStatement, Sequence[Any]], Portal]
T = TypeVar("T")


class _Kept(NamedTuple):
    """A statement's text, and the types that PREPARE has named, as it said them."""

    text: str
    types: tuple[str, ...]

    def size_with(self, name: str) -> int:
        return sum(len(each.encode()) for each in (name, self.text, *self.types))


class NamedStatements:
    """PREPARE, EXECUTE, DEALLOCATE and LOCK TABLE of one session."""

    def __init__(self, runner: StatementRunner, prepare: Prepare, bind: Bind) -> None:
        """Prepare what a name stands for, and its arguments, by `prepare`, and open it by `bind`,
        as if the session's client had said it."""
        self._runner, self._prepare, self._bind = runner, prepare, bind
        self._kept: dict[str, _Kept] = {}
        self._bytes = 0

    def drop(self, name: str | None) -> bool:
        """Drop one, None: all; return whether one of that name was there."""
        if name is None:
            self._kept.clear()
            self._bytes = 0
            return True
        gone = self._kept.pop(name, None)
        if gone is not None:
            self._bytes -= gone.size_with(name)
        return gone is not None

    # ------------------------------------------------------------ PREPARE

    def prepare(self, statement: SessionStatement, types: Types) -> PreparedStatement:
        """Prepare a PREPARE, which is looked at when it runs."""
        return PreparedStatement(statement, types, (), None, self._open_prepare)

    def _open_prepare(self, prepared: PreparedStatement, _: Sequence[Any]) -> Portal:
        return CommandPortal(lambda: self._keep(prepared.statement))

    def _keep(self, statement: SessionStatement) -> Answer:
        said = statement.meaning
        assert isinstance(said, PrepareStatement)
        self._runner.running.check_may_block()
        if said.name in self._kept:
            raise DuplicatePreparedStatement(f'prepared statement "{said.name}" already exists')
        kept = _Kept(said.text, said.types)
        size = kept.size_with(said.name)
        if len(self._kept) >= KEPT_MAX or self._bytes + size > KEPT_BYTES_MAX:
            raise RequestTooLarge(
                f"a session keeps {KEPT_MAX} prepared statements of {KEPT_BYTES_MAX} bytes at most",
                hint="DEALLOCATE those that are not used any more.",
            )
        try:
            self._statement(kept)
        except Refused as error:
            raise shifted(error, statement.offset + said.begin) from None
        self._kept[said.name] = kept
        self._bytes += size
        return Answer("PREPARE")

    def _statement(self, kept: _Kept) -> PreparedStatement:
        """Return what a name stands for, prepared."""
        (inner,) = read_text(kept.text)
        if not isinstance(inner.meaning, RowStatement):
            raise SyntaxInvalid("PREPARE takes SELECT, INSERT, UPDATE, DELETE, MERGE and VALUES")
        return self._prepare(inner, self._types(kept.types))

    def _types(self, said: Sequence[str]) -> Types:
        """Return the types that a PREPARE has named, whose lengths say nothing, as in PostgreSQL;
        None is `unknown`, which the statement has to tell."""
        named = [each for each in said if each != "unknown"]
        if not named:
            return (None,) * len(said)
        (query,) = read_text(f"SELECT {', '.join(f'CAST(NULL AS {each})' for each in named)}")
        plan = self._prepare(query, ()).plan
        assert plan is not None
        found = iter(plan.columns or ())
        return tuple(None if each == "unknown" else plain_type(next(found).kind) for each in said)

    # ------------------------------------------------------------ EXECUTE

    def execute(self, statement: SessionStatement, types: Types) -> PreparedStatement:
        """Prepare an EXECUTE: its columns are those of what its name stands for, its parameters
        those of its arguments. Raises UnknownPreparedStatement, SyntaxInvalid."""
        said = statement.meaning
        assert isinstance(said, ExecuteStatement)
        self._runner.running.check_may_block()
        kept = self._kept.get(said.name)
        if kept is None:
            raise UnknownPreparedStatement(f'prepared statement "{said.name}" does not exist')
        inner = _unplaced(lambda: self._statement(kept))
        if len(said.arguments) != len(inner.parameters):
            raise SyntaxInvalid(
                f'wrong number of parameters for prepared statement "{said.name}"',
                detail=f"Expected {len(inner.parameters)} parameters but got"
                f" {len(said.arguments)}.",
            )
        if not said.arguments:
            return PreparedStatement(
                statement, types, (), inner.columns, lambda *_: self._open_inner(inner, ())
            )
        casts = zip(said.arguments, inner.parameters, strict=True)
        listed = ", ".join(f"CAST(({argument}) AS {kind})" for argument, kind in casts)
        (query,) = read_text(f"SELECT {listed}")
        arguments = _unplaced(lambda: self._prepare(query, types))

        def open_with(_: PreparedStatement, values: Sequence[Any]) -> Portal:
            return self._open_inner(inner, self._row(arguments, values))

        return PreparedStatement(statement, types, arguments.parameters, inner.columns, open_with)

    def _open_inner(self, inner: PreparedStatement, values: Sequence[Any]) -> Portal:
        # What computes the arguments is of the same transaction.
        self._runner.state.has_several = True
        return _unplaced(lambda: self._bind(inner, values))

    def _row(self, arguments: PreparedStatement, values: Sequence[Any]) -> Sequence[Any]:
        self._runner.state.has_several = True
        portal = _unplaced(lambda: arguments.open(arguments, values))
        try:
            row: Sequence[Any] = _unplaced(lambda: portal.fetch(2)).rows[0]
            return row
        finally:
            portal.close()

    # ------------------------------------------------------------ LOCK TABLE

    def lock(self, said: LockTables) -> Answer:
        """Hold what a SELECT of these tables holds, as PostgreSQL's ACCESS SHARE does: their
        version, until the transaction ends. Raises NoTransaction outside a block."""
        if self._runner.state.is_idle and not self._runner.state.has_several:
            raise NoTransaction("LOCK TABLE can only be used in transaction blocks")
        self._runner.running.check_may_block()
        for schema, name in said.tables:
            named = f"{quoted(schema)}.{quoted(name)}" if schema else quoted(name)
            (query,) = read_text(f"SELECT FROM {named} WHERE false")
            _unplaced(partial(self._look, query))
        return Answer("LOCK TABLE")

    def _look(self, query: SessionStatement) -> None:
        portal = self._bind(self._prepare(query, ()), ())
        try:
            portal.fetch(1)
        finally:
            portal.close()


def _unplaced(work: Callable[[], T]) -> T:
    """Return what `work` does; a refusal has no place, since its text is not the client's."""
    try:
        return work()
    except Refused as error:
        error.detail = {k: v for k, v in error.detail.items() if k != "position"}
        raise
