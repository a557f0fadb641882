"""DECLARE, FETCH, MOVE and CLOSE of a session."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

from leasehold.adapters.sqlite.query import Rows
from leasehold.model.errors import FeatureNotSupported, LeaseholdError
from leasehold.pgwire.session import Column, CopyTarget, Fetched, OpenPortal, Portal
from leasehold.pgwire.wire_errors import (
    CachedResultChanged,
    DuplicatePortal,
    PortalUsedUp,
    UnknownPortal,
)
from leasehold.replica.replay_log import Asked, Types
from leasehold.sql.planning.plan import Prepared as Plan
from leasehold.sql.session.cursors import refuse_both, refuse_locking
from leasehold.sql.syntax.cursor_movement import CursorSensitivity, Direction
from leasehold.sql.syntax.session_statements import (
    DeclareCursor,
    Fetch,
    RowStatement,
    SessionStatement,
)
from leasehold.sql_session.cursors import SqlCursor
from leasehold.sql_session.portals import CommandPortal
from leasehold.sql_session.prepared import Answer, PreparedStatement, check_same
from leasehold.sql_session.running import BOUNDED_ROWS_MAX
from leasehold.sql_session.statement_runner import StatementRunner
from leasehold.transaction.block import NoTransaction

Prepares = Callable[[SessionStatement, Types], PreparedStatement]


class CursorStatements:
    """The statements on cursors of one session. `prepare_query` prepares a query by itself."""

    def __init__(self, runner: StatementRunner, prepare_query: Prepares) -> None:
        self._runner = runner
        self._cursors = runner.cursors
        self._prepare_query = prepare_query

    def prepare_declare(self, statement: SessionStatement, types: Types) -> PreparedStatement:
        said = statement.meaning
        assert isinstance(said, DeclareCursor)
        refuse_both(said)
        text = statement.text[said.begin :]
        offset, meaning = statement.offset + said.begin, RowStatement(said.verb)
        of_query = replace(statement, text=text, offset=offset, meaning=meaning)
        query = self._runner.run(
            of_query, lambda: self._prepare_query(of_query, types), Asked(text, types, ())
        )
        plan = _of_cursor(query, said)

        def opened(prepared: PreparedStatement, values: Sequence[Any]) -> Portal:
            def work() -> Answer:
                # What the statement fails with a replay would fail with likewise by its query.
                return self._runner.run(
                    statement, lambda: self._declare(statement, said, query, tuple(values))
                )

            return CommandPortal(work)

        return PreparedStatement(statement, types, query.parameters, None, opened, plan)

    def prepare_explain(self, statement: SessionStatement, types: Types) -> PreparedStatement:
        """Prepare EXPLAIN DECLARE, which is of the query, and refused as that is."""
        said = statement.meaning
        assert isinstance(said, RowStatement)
        assert said.cursor is not None
        refuse_both(said.cursor)
        asked = Asked(statement.text, types, ())
        made = self._runner.run(statement, lambda: self._prepare_query(statement, types), asked)
        _of_cursor(made, said.cursor)
        return made

    def _declare(
        self,
        statement: SessionStatement,
        said: DeclareCursor,
        query: PreparedStatement,
        values: tuple[Any, ...],
    ) -> Answer:
        runner = self._runner
        if not said.hold and not runner.in_block:
            raise NoTransaction("DECLARE CURSOR can only be used in transaction blocks")
        runner.running.check_may_block()
        self._cursors.check_room(said.name)
        if runner.cursors.portals.find(said.name) is not None:
            raise DuplicatePortal(f'cursor "{said.name}" already exists')
        text = query.statement.text
        asked = Asked(text, query.types, values)
        cursor = SqlCursor(said, statement.text, query.columns or (), asked, self._cursors.room)
        try:
            transaction = runner.transaction()
            transaction.show_activity(statement.text)
            with transaction.prepared(text, query.types) as (snapshot, plan):
                check_same(query, plan)
                if plan.visits is not None and said.scrolls is None:
                    cursor.walk.scrolls = False

                def take(rows: Rows) -> None:
                    cursor.rows.take(rows)

                transaction.read_into(plan, snapshot, values, runner.running.limits, take)
            cursor.shown = transaction.log.add_query(asked, plan, cursor, hold=said.hold)
        except LeaseholdError as error:
            runner.transactions.log_failure(asked, error)
            cursor.close()
            raise
        except BaseException:
            cursor.close()
            raise
        self._cursors.keep(cursor)
        return Answer("DECLARE CURSOR")

    def prepare_fetch(self, statement: SessionStatement) -> PreparedStatement:
        said = statement.meaning
        assert isinstance(said, Fetch)
        columns = None if said.moves else self._columns(said.name)
        cursor = self._cursors.columns(said.name) is not None

        def opened(prepared: PreparedStatement, values: Sequence[Any]) -> Portal:
            portals = self._cursors.portals
            declared = self._cursors.columns(said.name) is not None
            bound = None if declared else portals.find(said.name)
            if bound is not None:
                return BoundPortal(lambda: portals.find(said.name), bound, said)
            portal = FetchPortal(self._runner, statement, prepared)
            if not said.moves:
                return portal
            return CommandPortal(lambda: Answer(portal.moved()))

        binary = cursor and self._cursors.find(said.name).said.binary
        return PreparedStatement(statement, (), (), columns, opened, binary=binary)

    def _columns(self, name: str) -> Sequence[Column] | None:
        columns = self._cursors.columns(name)
        if columns is None:
            bound = self._cursors.portals.find(name)
            columns = None if bound is None else bound.columns
        return columns


def _of_cursor(query: PreparedStatement, said: DeclareCursor) -> Plan:
    """Return the plan of a cursor's query. Raises FeatureNotSupported for what PostgreSQL refuses
    of one."""
    plan = query.plan
    assert plan is not None
    if plan.write is not None or plan.parts:
        raise FeatureNotSupported(
            "DECLARE CURSOR must not contain data-modifying statements in WITH"
        )
    if plan.visits is not None:
        refuse_locking(said)
    return plan


class BoundPortal:
    """FETCH from a portal that the protocol has bound, or MOVE in one (asyncpg's `forward`): it
    goes forward only, as one of PostgreSQL does."""

    copy: CopyTarget | None = None

    def __init__(
        self, find: Callable[[], OpenPortal | None], bound: OpenPortal, said: Fetch
    ) -> None:
        """Take over a portal. `find` returns the one that has the name now."""
        self._find, self._bound, self._said = find, bound, said
        self._left = said.movement.number
        self._count = 0

    def fetch(self, rows_max: int) -> Fetched:
        if self._find() is not self._bound:  # run again it would hold a snapshot for nobody
            raise UnknownPortal(f'portal "{self._said.name}" does not exist')
        if self._bound.failed:
            raise PortalUsedUp(f'portal "{self._said.name}" cannot be run')
        direction, number = self._said.movement.plain
        if direction is Direction.BACKWARD:
            raise CursorSensitivity("cursor can only scan forward")
        if direction is not Direction.FORWARD or number == 0 or self._bound.columns is None:
            raise FeatureNotSupported(
                "of a portal that was not made by DECLARE the next rows can be fetched, no others"
            )
        moves = self._said.moves
        while True:
            wanted = rows_max if self._left is None else min(rows_max, self._left)
            rows = self._bound.take(wanted)
            self._count += len(rows)
            if self._left is not None:
                self._left -= len(rows)
            if self._left == 0 or len(rows) < wanted:
                verb = "MOVE" if moves else "FETCH"
                return Fetched(() if moves else rows, f"{verb} {self._count}")
            if not moves:
                return Fetched(rows, None)

    def close(self) -> None:
        """Do nothing: the portal stays."""

    def rest(self, *, wholly: bool) -> None:
        """Do nothing: the portal sees to that."""


class FetchPortal:
    """Rows of a cursor, which is moved by the first portion of them."""

    copy: CopyTarget | None = None

    def __init__(
        self,
        runner: StatementRunner,
        statement: SessionStatement,
        prepared: PreparedStatement,
    ) -> None:
        self._runner, self._cursors = runner, runner.cursors
        self._statement, self._prepared = statement, prepared
        said = statement.meaning
        assert isinstance(said, Fetch)
        self._said = said
        self._cursor: SqlCursor | None = None
        self._left = range(0)
        self._count = 0

    def fetch(self, rows_max: int) -> Fetched:
        return self._runner.run(self._statement, lambda: self._fetch(rows_max))

    def _fetch(self, rows_max: int) -> Fetched:
        cursor = self._cursor
        if cursor is None:
            cursor = self._found()
            if cursor.columns != self._prepared.columns:
                raise CachedResultChanged("cached plan must not change result type")
            self._left = self._walked(
                cursor, lambda: cursor.walk.fetch(self._said.movement, cursor)
            )
            self._cursor, self._count = cursor, len(self._left)
        elif self._cursors.find(self._said.name) is not cursor:
            raise PortalUsedUp(f'cursor "{self._said.name}" is not the one that FETCH has begun')
        rows = _rows(cursor, self._left[:rows_max])
        self._left = self._left[len(rows) :]
        return Fetched(rows, None if self._left else f"FETCH {self._count}")

    def moved(self) -> str:
        """Move the cursor, and return the tag of MOVE."""

        def work() -> str:
            cursor = self._found()
            count = self._walked(cursor, lambda: cursor.walk.move(self._said.movement, cursor))
            return f"MOVE {count}"

        return self._runner.run(self._statement, work)

    def _found(self) -> SqlCursor:
        cursor = self._cursors.find(self._said.name)
        count = self._said.movement.number
        if count is None or abs(count) > BOUNDED_ROWS_MAX or cursor.shown is not None:
            self._runner.running.check_may_block()
        if cursor.failed:
            raise PortalUsedUp(f'portal "{self._said.name}" cannot be run')
        return cursor

    def _walked(self, cursor: SqlCursor, walk: Callable[[], Any]) -> Any:
        """Return what `walk` does. A cursor on which it fails can't be used any more, as in
        PostgreSQL."""
        try:
            return walk()
        except LeaseholdError as error:
            cursor.failed = True
            if error is cursor.rows.error:
                self._runner.transactions.log_failure(cursor.asked, error)
            raise

    def close(self) -> None:
        """Do nothing: it holds nothing."""

    def rest(self, *, wholly: bool) -> None:
        """Do nothing: its rows are put aside already."""


def _rows(cursor: SqlCursor, numbers: range) -> list[tuple[Any, ...]]:
    """Return the rows of the first of these numbers; of all, unless they are too large together."""
    if not numbers:
        return []
    if numbers.step > 0:
        return cursor.fetch(numbers[0] - 1, len(numbers))
    count = len(numbers)
    while len(found := cursor.fetch(numbers[count - 1] - 1, count)) < count:
        count = len(found)  # those that come last were found: ask for fewer
    found.reverse()
    return found
