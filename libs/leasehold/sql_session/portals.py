"""Statements of a session that are prepared, and their portals, which run them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple, Protocol, TypeVar
from zoneinfo import ZoneInfo

from leasehold.adapters.os.row_spool import SpoolRoom
from leasehold.adapters.sqlite.query import Limits, Rows
from leasehold.catalog.descriptor import Descriptor
from leasehold.model.errors import QueryCanceled, RequestTooLarge
from leasehold.pgwire.session import Column, CopySource, CopyTarget, Fetched, WouldBlock
from leasehold.pgwire.wire_errors import CachedResultChanged
from leasehold.replica.replay_log import Asked, Shown, Types
from leasehold.replica.sql_reads import Seen
from leasehold.sql.planning.plan import Prepared as Plan
from leasehold.sql.syntax.session_statements import SessionStatement
from leasehold.sql.system_catalog.oids import table_oid
from leasehold.sql_session.running import Running
from leasehold.sql_session.spooled_rows import SpooledRows, SpooledRowsInTurn
from leasehold.sql_session.transaction import SqlTransaction
from leasehold.values.oids import WireType

T = TypeVar("T")
Part = tuple[list[tuple[Any, ...]], Exception | None]
"""Rows, and what comes in the place of the one behind them."""


class Answer(NamedTuple):
    """What a command comes to."""

    tag: str
    rows: Sequence[Sequence[Any]] = ()


class RunsOne(Protocol):
    """What portals ask of their session."""

    def transaction(self) -> SqlTransaction:
        """The one that runs, or a new one."""
        ...

    def at_once(
        self, prepared: PreparedStatement, values: Sequence[Any]
    ) -> list[tuple[Any, ...]] | None:
        """In a hurry, all rows of a query that needs no transaction; None: it needs one, or time.
        Raises WouldBlock, what the statement raises."""
        ...

    def limits(self) -> Limits: ...

    @property
    def room(self) -> SpoolRoom:
        """For rows that are put aside."""
        ...

    @property
    def running(self) -> Running: ...

    def run(
        self, statement: SessionStatement, work: Callable[[], T], asked: Asked | None = None
    ) -> T:
        """As the one statement that runs now: it can be cancelled, its errors are placed, and what
        was `asked` is remembered as failed."""
        ...


@dataclass
class PreparedStatement:
    """`types`: as the client gave them. `open`: values → a portal. `plan`: by which the client was
    told of it. `takes_long`: it was found to."""

    statement: SessionStatement
    types: Types
    parameters: Sequence[WireType]
    columns: Sequence[Column] | None
    open: Callable[[PreparedStatement, Sequence[Any]], Any]
    plan: Plan | None = None
    takes_long: bool = False
    copies: CopySource | None = None
    binary: bool = False
    ends_transaction: bool = field(init=False)
    leaves_failed_block: bool = field(init=False)
    _here: tuple[object, tuple[Plan, bool]] | None = None

    def __post_init__(self) -> None:
        self.ends_transaction = self.statement.ends_transaction
        self.leaves_failed_block = self.statement.leaves_failed_block

    def plan_in(self, catalog: object, zone: ZoneInfo) -> tuple[Plan, bool] | None:
        """What `is_planned` said last, if it was of that very catalog, and serves the zone."""
        here = self._here
        if here is None or here[0] is not catalog or not here[1][0].serves_in(zone):
            return None
        return here[1]

    def is_planned(self, catalog: object, plan: Plan, *, simple: bool) -> None:
        """`simple`: it can be done at once, without a transaction. Raises CachedResultChanged."""
        check_same(self, plan)
        self._here = catalog, (plan, simple)

    @property
    def answers_whole(self) -> bool:
        plan = self.plan
        return plan is None or plan.explain or plan.write is not None


def columns_of(plan: Plan) -> tuple[Column, ...] | None:
    """As clients are told of them; None: no rows come."""
    if plan.columns is None:
        return None
    places = {d.table_id: _places(d) for d in plan.tables.values()}
    found = []
    for column in plan.columns:
        table = position = 0
        origin = column.origin
        if origin is not None:
            table = table_oid(origin.table_id)
            position = places.get(origin.table_id, {}).get(origin.element_id, 0)
        found.append(Column(column.name, column.kind, table, position))
    return tuple(found)


def _places(descriptor: Descriptor) -> dict[int, int]:
    public = descriptor.by_name.values()
    return {column.element_id: place for place, column in enumerate(public, start=1)}


def check_same(prepared: PreparedStatement, plan: Plan) -> None:
    """Raises CachedResultChanged: what the client was told of no longer holds."""
    if plan is prepared.plan:
        return
    if tuple(plan.parameters) != tuple(prepared.parameters) or [
        (c.name, c.type) for c in prepared.columns or ()
    ] != [(c.name, c.type) for c in columns_of(plan) or ()]:
        raise CachedResultChanged("cached plan must not change result type")


class CommandPortal:
    """Of what is done at once, and answers with few rows or none."""

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
        """It holds nothing."""

    def rest(self, *, wholly: bool) -> None:
        """What it came to is there."""


class QueryPortal:
    """Rows as they are wanted, all of one snapshot, which it holds until its end, or until its
    client takes its time: the rest of them is put aside then, as far as there is room."""

    copy: CopyTarget | None = None

    def __init__(
        self, session: RunsOne, prepared: PreparedStatement, values: Sequence[Any]
    ) -> None:
        self._session = session
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
        """Queries that are done at once have none."""
        if self._asks is None:
            self._asks = Asked(self._prepared.statement.text, self._prepared.types, self._values)
        return self._asks

    def fetch(self, rows_max: int) -> Fetched:
        if self._rows is None and self._error is None:
            found = self._session.at_once(self._prepared, self._values)
            if found is not None:
                if len(found) >= rows_max:  # there may be more fetches, of the same snapshot
                    raise WouldBlock
                return Fetched(found, "SELECT")
        statement = self._prepared.statement
        return self._session.run(statement, lambda: self._fetch(rows_max), self._asked)

    def _fetch(self, rows_max: int) -> Fetched:
        running = self._session.running
        error, self._error = self._error, None
        if error is not None:
            raise error
        if self._rows is not None or self._prepared.takes_long:
            running.may_wait()
        if self._rows is None:
            rows, error = self._first(rows_max)
        else:
            given = self._rows
            rows, error = given.fetch_part(rows_max)
            if isinstance(given, SpooledRowsInTurn):
                self._rows = given.what_follows()
        ended = len(rows) < rows_max and error is None
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
        """In a hurry all of them, or none: nothing was given yet that could not be given again."""
        try:
            part, plan = self._begin(rows_max)
            rows, error = part
            if len(rows) == rows_max or (rows and error is not None):
                self._session.running.may_wait()
        except WouldBlock:
            self._prepared.takes_long = self._snapshot is not None
            self.close()
            raise
        except BaseException:
            self.close()  # a block that has failed may stay open for long
            raise
        if rows or error is None:
            self._shown = self._session.transaction().answers_with(self._asked, plan)
        return part

    def _begin(self, rows_max: int) -> tuple[Part, Plan]:
        transaction, asked = self._session.transaction(), self._asked
        transaction.says(asked.text)
        snapshot, plan = transaction.planned(asked.text, asked.types)
        self._snapshot = snapshot
        check_same(self._prepared, plan)
        self._tag = plan.tag
        session = self._session

        def found() -> Part:
            rows = transaction.read(plan, snapshot, asked.values, session.limits())
            self._rows = rows
            part = rows.fetch_part(rows_max)
            if isinstance(part[1], QueryCanceled | RequestTooLarge):
                raise part[1]  # in a hurry it is not what the client is told
            return part

        return session.running.in_time(snapshot, plan, found), plan

    def rest(self, *, wholly: bool) -> None:
        rows = self._rows
        if rows is None:
            return
        if isinstance(rows, Rows):
            self._session.running.may_wait()
        elif not (wholly and rows.reads_on):
            return
        try:
            # What was asked is remembered as failed by the `fetch` that meets the error.
            self._session.run(self._prepared.statement, lambda: self._rest(rows, wholly))
        except BaseException:
            self.close()
            raise

    def _rest(self, rows: Rows | SpooledRowsInTurn, wholly: bool) -> None:
        if isinstance(rows, Rows):
            aside = SpooledRows(self._session.room)
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
        self, session: RunsOne, prepared: PreparedStatement, values: Sequence[Any]
    ) -> None:
        """`prepared`: the query."""
        super().__init__(session, prepared, values)
        self._count = 0

    def fetch(self, rows_max: int) -> Fetched:
        rows, tag = super().fetch(rows_max)
        self._count += len(rows)
        return Fetched(rows, tag and f"COPY {self._count}")
