"""The portals of a session's statements, which run them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from leasehold.adapters.sqlite.query import Part, Rows
from leasehold.model.errors import QueryCanceled, RequestTooLarge
from leasehold.pgwire.session import CopyTarget, Fetched, WouldBlock
from leasehold.replica.replay_log import Asked, Shown
from leasehold.replica.sql_reads import Seen
from leasehold.sql.planning.plan import Prepared as Plan
from leasehold.sql_session.prepared import Answer, PreparedStatement, check_same
from leasehold.sql_session.spooled_rows import SpooledRows, SpooledRowsInTurn
from leasehold.sql_session.statement_runner import StatementRunner


class CommandPortal:
    """A portal of what is done at once, and answers with few rows or none."""

    copy: CopyTarget | None = None

    def __init__(self, run: Callable[[], Answer]) -> None:
        self._run = run
        self._answer: Answer | None = None
        self._given = 0

    def fetch(self, rows_max: int) -> Fetched:
        if self._answer is None:
            self._answer = self._run()
        rows = self._answer.rows[self._given : self._given + rows_max]
        self._given += len(rows)
        ended = self._given == len(self._answer.rows) and len(rows) < rows_max
        return Fetched(rows, self._answer.tag if ended else None)

    def close(self) -> None:
        """Do nothing: it holds nothing."""

    def rest(self, *, wholly: bool) -> None:
        """What it came to is there."""


class QueryPortal:
    """Rows as they are wanted, all of one snapshot, which it holds until its end, or until its
    client takes its time: the rest of them is put aside then, as far as there is room."""

    copy: CopyTarget | None = None

    def __init__(
        self, runner: StatementRunner, prepared: PreparedStatement, values: Sequence[Any]
    ) -> None:
        self._runner = runner
        self._prepared = prepared
        self._values = tuple(values)
        self._asks: Asked | None = None
        self._snapshot: Seen | None = None
        self._shown: Shown | None = None
        self._rows: Rows | SpooledRowsInTurn | None = None
        self._error: Exception | None = None  # that comes behind the rows that were given
        self._tag = "SELECT"

    @property
    def _asked(self) -> Asked:
        """What a replay does again; made once it is asked for, since short statements have none."""
        if self._asks is None:
            self._asks = Asked(self._prepared.statement.text, self._prepared.types, self._values)
        return self._asks

    def fetch(self, rows_max: int) -> Fetched:
        if self._rows is None and self._error is None:
            found = self._runner.short.rows(self._prepared, self._values)
            if found is not None:
                if len(found) >= rows_max:  # there may be more fetches, of the same snapshot
                    raise WouldBlock
                return Fetched(found, "SELECT")
        statement = self._prepared.statement
        return self._runner.run(statement, lambda: self._fetch(rows_max), self._asked)

    def _fetch(self, rows_max: int) -> Fetched:
        running = self._runner.running
        error, self._error = self._error, None
        if error is not None:
            raise error
        if self._rows is not None or self._prepared.takes_long:
            running.check_may_block()
        if self._rows is None:
            rows, error, more = self._first(rows_max)
        else:
            given = self._rows
            rows, error, more = given.fetch_part(rows_max)
            if isinstance(given, SpooledRowsInTurn):
                self._rows = given.what_follows()
        ended = not more and error is None
        if self._shown is not None:
            self._shown.add(rows)
            self._shown.ended = ended
        if error is not None:
            self.close()
            if not rows:
                raise error
            self._error = error
        if not ended:
            return Fetched(rows, None)
        self.close()
        return Fetched(rows, self._tag)

    def _first(self, rows_max: int) -> Part:
        """Return the first rows; all of them, or none, where it must not block: nothing was given
        yet that could not be given again."""
        try:
            part, plan = self._begin(rows_max)
            rows, error, more = part
            if more or (rows and error is not None):
                self._runner.running.check_may_block()
        except WouldBlock:
            self._prepared.takes_long = self._snapshot is not None
            self.close()
            raise
        except BaseException:
            self.close()  # a block that has failed may stay open for long
            raise
        if rows or error is None:
            self._shown = self._runner.transaction().log.add_query(self._asked, plan)
        return part

    def _begin(self, rows_max: int) -> tuple[Part, Plan]:
        transaction, asked = self._runner.transaction(), self._asked
        transaction.show_activity(asked.text)
        snapshot, plan = transaction.planned(asked.text, asked.types)
        self._snapshot = snapshot
        check_same(self._prepared, plan)
        self._tag = plan.tag
        running = self._runner.running

        def found() -> Part:
            rows = transaction.read(plan, snapshot, asked.values, running.limits)
            self._rows = rows
            part = rows.fetch_part(rows_max)
            if isinstance(part.error, QueryCanceled | RequestTooLarge):
                raise part.error  # where it must not block the client is told otherwise
            return part

        return running.run_in_time(snapshot, plan, found), plan

    def rest(self, *, wholly: bool) -> None:
        rows = self._rows
        if rows is None:
            return
        if isinstance(rows, Rows):
            self._runner.running.check_may_block()
        elif not (wholly and rows.reads_on):
            return
        try:
            # What was asked is remembered as failed by the `fetch` that meets the error.
            self._runner.run(self._prepared.statement, lambda: self._rest(rows, wholly))
        except BaseException:
            self.close()
            raise

    def _rest(self, rows: Rows | SpooledRowsInTurn, wholly: bool) -> None:
        if isinstance(rows, Rows):
            aside = SpooledRows(self._runner.cursors.room)
            self._rows = rest = SpooledRowsInTurn(aside, rows)
            aside.take(rows, wholly=wholly)
        else:
            rest = rows
        if wholly or not rest.reads_on:
            rest.ends_reading()
            self._close_snapshot()

    def close(self) -> None:
        rows, self._rows = self._rows, None
        if rows is not None:
            rows.close()
        self._close_snapshot()

    def _close_snapshot(self) -> None:
        snapshot, self._snapshot = self._snapshot, None
        if snapshot is not None:
            snapshot.close()


class CopyOutPortal(QueryPortal):
    """COPY … TO STDOUT: a query's rows, with a tag of its own."""

    def __init__(
        self, runner: StatementRunner, prepared: PreparedStatement, values: Sequence[Any]
    ) -> None:
        """Take over the query `prepared`."""
        super().__init__(runner, prepared, values)
        self._count = 0

    def fetch(self, rows_max: int) -> Fetched:
        rows, tag = super().fetch(rows_max)
        self._count += len(rows)
        return Fetched(rows, tag and f"COPY {self._count}")
