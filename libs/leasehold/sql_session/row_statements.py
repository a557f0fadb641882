"""Statements of a session that read and write rows."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from typing import Any, Final

from leasehold.adapters.sqlite.write import Written
from leasehold.catalog.namespaces import bare
from leasehold.model.errors import DuplicateKey, FeatureNotSupported, ForeignKeyViolation
from leasehold.pgwire.session import CopySource, Portal
from leasehold.pgwire.wire_errors import UnknownParameter
from leasehold.replica.replay_log import Asked, Step
from leasehold.sql.syntax.session_statements import CopyIn, CopyOut, RowStatement, SessionStatement
from leasehold.sql_session.copy import CopyPortal, copied, copied_out, format_of
from leasehold.sql_session.portals import CommandPortal, CopyOutPortal, QueryPortal
from leasehold.sql_session.prepared import (
    Answer,
    PreparedStatement,
    check_same,
    columns_of,
    plan_types,
)
from leasehold.sql_session.statement_runner import StatementRunner
from leasehold.sql_session.transaction import ReplayableTransaction
from leasehold.values.types import Type

PREPARED_KEPT_MAX: Final = 200
PREPARED_CHARACTERS_MAX: Final = 16 * 1024
"""Of a text that is kept, though its client may not come back to it."""
ONE_UPDATED: Final = Answer("UPDATE 1")


class RowStatements:
    def __init__(self, runner: StatementRunner) -> None:
        self._runner = runner
        self._kept: dict[tuple[str, tuple[Type | None, ...]], PreparedStatement] = {}

    def prepare(
        self, statement: SessionStatement, types: tuple[Type | None, ...]
    ) -> PreparedStatement:
        plan = self._runner.plan(statement.text, types)
        opened = self._open_write if plan.runs_whole else self._open_query
        name = (statement.text, types)
        kept = self._kept.get(name)
        if kept is None or kept.plan is not plan or kept.statement is not statement:
            kept = PreparedStatement(
                statement, types, plan.parameters, columns_of(plan), opened, plan
            )
            if len(statement.text) <= PREPARED_CHARACTERS_MAX:
                while len(self._kept) >= PREPARED_KEPT_MAX:
                    del self._kept[next(iter(self._kept))]
                self._kept[name] = kept
        return kept

    def _open_query(self, prepared: PreparedStatement, values: Sequence[Any]) -> Portal:
        return QueryPortal(self._runner, prepared, values)

    def _open_write(self, prepared: PreparedStatement, values: Sequence[Any]) -> Portal:
        def work() -> Answer:
            if self._runner.short.update(prepared, values):
                return ONE_UPDATED
            statement = prepared.statement
            asked = Asked(statement.text, prepared.types, tuple(values))
            return self._runner.run(statement, lambda: self._write(prepared, asked), asked)

        return CommandPortal(work)

    def _write(self, prepared: PreparedStatement, asked: Asked) -> Answer:
        plan = prepared.plan
        targets = () if plan is None else plan.targets.values()
        if not targets or not all(table.temporary for table in targets):
            self._runner.transactions.maker.check_may_write()
        transaction = self._runner.transaction()
        transaction.show_activity(asked.text)
        step, written = self._written(transaction, asked, prepared)
        return Answer(step.counted, written.rows)

    def write(self, transaction: ReplayableTransaction, asked: Asked) -> tuple[Step, Written]:
        """Write rows in a transaction, and return the step and them. Raises what that raises."""
        return self._written(transaction, asked)

    def _written(
        self,
        transaction: ReplayableTransaction,
        asked: Asked,
        prepared: PreparedStatement | None = None,
    ) -> tuple[Step, Written]:
        """Write rows, and return the step and them. What the client was told of `prepared` has to
        hold still."""
        with transaction.prepared(asked.text, asked.types) as (snapshot, plan):
            if prepared is not None:
                check_same(prepared, plan)
            running = self._runner.running
            try:
                written = running.run_in_time(
                    snapshot,
                    plan,
                    lambda: transaction.write(plan, snapshot, asked, running.limits),
                )
            except (DuplicateKey, ForeignKeyViolation):
                self._runner.transactions.check_told()
                raise
        step = Step.wrote(asked, written, plan.tag, returns=plan.columns is not None)
        transaction.log.add(step)
        return step, written

    def prepare_copy_out(self, statement: SessionStatement, said: CopyOut) -> PreparedStatement:
        """Prepare COPY … TO STDOUT, which is a query. Raises what that raises, and
        UnknownParameter."""
        runner = self._runner

        def of_table() -> str:
            return copied_out(said, runner.transaction().descriptor(said.table))

        if said.span is None:
            text, offset = runner.run(statement, of_table), statement.offset + said.at - 1
        else:
            begin, end = said.span
            text, offset = statement.text[begin:end], statement.offset + begin
        asked = replace(statement, text=text, offset=offset, meaning=RowStatement("select"))
        query = runner.run(asked, lambda: self.prepare(asked, ()), Asked(text, (), ()))
        if query.plan is not None and query.plan.runs_whole:
            raise FeatureNotSupported("COPY of a query that writes is not supported: run it alone")
        if query.parameters:
            raise UnknownParameter("there is no parameter $1")
        columns = query.columns or ()
        source = CopySource(columns, format_of(said.options, columns))

        def opened(prepared: PreparedStatement, values: Sequence[Any]) -> Portal:
            return CopyOutPortal(runner, query, ())

        return PreparedStatement(statement, (), (), None, opened, query.plan, copies=source)

    def prepare_copy(self, statement: SessionStatement, said: CopyIn) -> PreparedStatement:
        """Prepare COPY … FROM STDIN, which is an INSERT for each of its rows."""
        runner = self._runner
        descriptor = runner.transaction().descriptor(said.table)
        text, columns = copied(said, descriptor)
        form = format_of(said.options, columns, descriptor)
        types = plan_types([column.type for column in columns])
        shown = bare(descriptor.schema, descriptor.name)

        def opened(prepared: PreparedStatement, values: Sequence[Any]) -> Portal:
            work = partial(runner.transaction().check_may_run, text, types)
            runner.run(statement, work, Asked(text, types, ()))
            runner.transactions.maker.check_may_write()
            return CopyPortal(shown, columns, form, take)

        def take(rows: Sequence[Sequence[Any]]) -> None:
            asked = Asked(text, types, (), tuple(map(tuple, rows)))
            runner.run(statement, lambda: self._written(runner.transaction(), asked), asked)

        return PreparedStatement(statement, types, (), None, opened)
