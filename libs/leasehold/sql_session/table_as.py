"""CREATE TABLE … AS as a statement of a session: a table is made, and filled by an INSERT, in one
transaction."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from leasehold.catalog.definitions import quoted
from leasehold.catalog.namespaces import bare
from leasehold.catalog.schema_names import PG_TEMP, PUBLIC
from leasehold.model.errors import FeatureNotSupported, SyntaxInvalid
from leasehold.pgwire.session import Notice, Portal
from leasehold.pgwire.wire_errors import UnknownParameter
from leasehold.replica.replay_log import Asked, Step, Types
from leasehold.sql.planning.plan import Prepared as Plan
from leasehold.sql.syntax.session_statements import CreateTableAs, RowStatement, SessionStatement
from leasehold.sql_session.portals import CommandPortal
from leasehold.sql_session.prepared import Answer, PreparedStatement
from leasehold.sql_session.row_statements import RowStatements
from leasehold.sql_session.statement_runner import StatementRunner

TAG = "CREATE TABLE AS"


class TablesAs:
    """The statements of one session that make tables of queries."""

    def __init__(self, runner: StatementRunner, rows: RowStatements) -> None:
        self._runner, self._rows = runner, rows

    def prepare(self, statement: SessionStatement, types: Types) -> PreparedStatement:
        """Prepare one. What is wrong with its query is said when it runs."""
        return PreparedStatement(statement, types, (), None, self._open)

    def _open(self, prepared: PreparedStatement, values: Sequence[Any]) -> Portal:
        return CommandPortal(lambda: self._make(prepared.statement))

    def _make(self, statement: SessionStatement) -> Answer:
        said = statement.meaning
        assert isinstance(said, CreateTableAs)
        runner = self._runner
        asked = Asked(statement.text, (), ())
        offset = statement.offset + said.begin
        select = RowStatement("select")
        query = replace(statement, text=said.query, offset=offset, meaning=select)
        plan = runner.run(query, lambda: self._plan(query, temporary=said.temporary), asked)
        return runner.run(statement, lambda: self._make_table(said, plan), asked)

    def _plan(self, query: SessionStatement, *, temporary: bool) -> Plan:
        runner = self._runner
        runner.running.check_may_block()
        runner.transactions.maker.check_may_write()
        transaction = runner.transactions.lasting_transaction()
        isolation = transaction.isolation
        if not temporary and (isolation.one_snapshot or not isolation.own_writes):
            raise FeatureNotSupported(
                "CREATE TABLE … AS at isolation level"
                f" {isolation.spoken} is not supported: use READ COMMITTED"
            )
        plan = transaction.plan(query.text, ())
        if plan.parts:
            raise FeatureNotSupported(
                "CREATE TABLE … AS must not contain data-modifying statements in WITH: INSERT into"
                " the table by a statement of its own"
            )
        if plan.parameters:
            raise UnknownParameter("there is no parameter $1")
        return plan

    def _make_table(self, said: CreateTableAs, plan: Plan) -> Answer:
        state = self._runner.state
        transaction = self._runner.transaction()
        made = _table_text(said, plan)
        told = transaction.change(made, of_new_alone=False)
        state.settings.reports += [Notice(*each) for each in told]
        if said.if_not_exists and told:  # it is there
            return Answer(TAG)
        transaction.log.add(Step(Asked(made, (), (), changes=True)))
        if not said.with_rows:
            return Answer(TAG)
        asked = Asked(f"INSERT INTO {_named(said)} {said.query}", (), ())
        step, _ = self._rows.write(transaction, asked)
        return Answer(f"SELECT {step.rowcount}")


def _table_text(said: CreateTableAs, plan: Plan) -> str:
    """Return the CREATE TABLE of the columns of a query. Raises SyntaxInvalid."""
    columns = plan.columns or ()
    if len(said.columns) > len(columns):
        raise SyntaxInvalid("too many column names were specified")
    names = [*said.columns, *(column.name for column in columns[len(said.columns) :])]
    listed = ", ".join(
        f"{quoted(name)} {column.kind}" for name, column in zip(names, columns, strict=True)
    )
    exists = "IF NOT EXISTS " if said.if_not_exists else ""
    on_commit = f" ON COMMIT {said.on_commit}" if said.on_commit else ""
    temporary = "TEMPORARY " if said.temporary else ""
    return f"CREATE {temporary}TABLE {exists}{_named(said)} ({listed}){on_commit}"


def _named(said: CreateTableAs) -> str:
    """Return the table's name as a text says it."""
    schema = PG_TEMP if said.temporary else said.schema or PUBLIC
    return f"{quoted(schema)}.{quoted(bare(said.schema, said.name))}"
