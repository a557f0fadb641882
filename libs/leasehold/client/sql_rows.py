"""Statements of a session that read and write rows."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final, Protocol, TypeVar

from leasehold.adapters.sqlite_query import Limits
from leasehold.adapters.sqlite_write import Written
from leasehold.client.sql_copy import CopyPortal, Target, copied, format_of
from leasehold.client.sql_portals import (
    Answer,
    CommandPortal,
    PreparedStatement,
    QueryPortal,
    check_same,
    columns_of,
)
from leasehold.client.sql_running import Running
from leasehold.client.sql_steps import Asked, Step
from leasehold.client.sql_transaction import SqlTransaction, plan_types
from leasehold.pgwire.session import Portal
from leasehold.schema.types import Type
from leasehold.sql.session_statements import CopyIn, SessionStatement

T = TypeVar("T")
PREPARED_KEPT_MAX: Final = 200


class RunsRows(Protocol):
    """What is asked of the session."""

    def transaction(self) -> SqlTransaction:
        """The one that runs, or a new one."""
        ...

    def check_may_write(self) -> None:
        """Raises ReadOnlyTransaction (25006), FeatureNotSupported."""
        ...

    def limits(self) -> Limits: ...

    @property
    def running(self) -> Running: ...

    def run(
        self, statement: SessionStatement, work: Callable[[], T], asked: Asked | None = None
    ) -> T:
        """As of `sql_portals.RunsOne`."""
        ...


class RowStatements:
    def __init__(self, session: RunsRows) -> None:
        self._session = session
        self._kept: dict[tuple[str, tuple[Type | None, ...]], PreparedStatement] = {}

    def prepare(
        self, statement: SessionStatement, types: tuple[Type | None, ...]
    ) -> PreparedStatement:
        plan = self._session.transaction().plan(statement.text, types)
        writes = plan.write is not None and not plan.explain
        opened = self._open_write if writes else self._open_query
        name = (statement.text, types)
        kept = self._kept.get(name)
        if kept is None or kept.plan is not plan or kept.statement is not statement:
            kept = PreparedStatement(
                statement, types, plan.parameters, columns_of(plan), opened, plan
            )
            while len(self._kept) >= PREPARED_KEPT_MAX:
                del self._kept[next(iter(self._kept))]
            self._kept[name] = kept
        return kept

    def _open_query(self, prepared: PreparedStatement, values: Sequence[Any]) -> Portal:
        return QueryPortal(self._session, prepared, values)

    def _open_write(self, prepared: PreparedStatement, values: Sequence[Any]) -> Portal:
        asked = Asked(prepared.statement.text, prepared.types, tuple(values))

        def work() -> Answer:
            return self._session.run(
                prepared.statement, lambda: self._write(prepared, asked), asked
            )

        return CommandPortal(work)

    def _write(self, prepared: PreparedStatement, asked: Asked) -> Answer:
        self._session.check_may_write()
        transaction = self._session.transaction()
        transaction.says(asked.text)
        tag, written = self._written(transaction, asked, prepared)
        zero = "0 " if tag == "INSERT" else ""
        return Answer(f"{tag} {zero}{written.count}", written.rows)

    def _written(
        self, transaction: SqlTransaction, asked: Asked, prepared: PreparedStatement | None = None
    ) -> tuple[str, Written]:
        """With the plan's tag. `prepared`: what the client was told of it has to hold still."""
        with transaction.prepared(asked.text, asked.types) as (snapshot, plan):
            if prepared is not None:
                check_same(prepared, plan)
            session = self._session
            written = session.running.in_time(
                snapshot,
                plan,
                lambda: transaction.write(plan, snapshot, asked, session.limits()),
            )
        transaction.did(Step.wrote(asked, written))
        return plan.tag, written

    def prepare_copy(self, statement: SessionStatement, said: CopyIn) -> PreparedStatement:
        """COPY is an INSERT for each of its rows."""
        session = self._session
        text, columns = copied(said, session.transaction().descriptor(said.table))
        form = format_of(said)
        types = plan_types([column.type for column in columns])

        def opened(prepared: PreparedStatement, values: Sequence[Any]) -> Portal:
            session.check_may_write()
            return CopyPortal(Target(said.table, columns, form, take))

        def take(rows: Sequence[Sequence[Any]]) -> None:
            asked = Asked(text, types, (), tuple(map(tuple, rows)))
            session.run(statement, lambda: self._written(session.transaction(), asked), asked)

        return PreparedStatement(statement, types, (), None, opened)
