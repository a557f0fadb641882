"""Schema changes and TRUNCATE as statements of a session: by themselves, or within a block."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import partial
from typing import Any

from leasehold.model.errors import FeatureNotSupported
from leasehold.pgwire.session import Column, Notice, Portal
from leasehold.pgwire.wire_errors import Canceled, UnknownDatabase
from leasehold.replica.replay_log import Asked, Step, Types
from leasehold.schema_change.plan.answers import Told
from leasehold.sql.ddl.schema_statements import Said
from leasehold.sql.session_settings import REFUSE
from leasehold.sql.syntax.roles.grant_statements import SetDatabase
from leasehold.sql.syntax.session_statements import SchemaStatement, SessionStatement
from leasehold.sql.syntax.statements import (
    Explain,
    Truncate,
)
from leasehold.sql_session.portals import CommandPortal
from leasehold.sql_session.prepared import Answer, PreparedStatement
from leasehold.sql_session.schema_changes import (
    follow_jobs,
    notices_of,
    plan_lines,
    return_sequence_values,
    submit_change,
    tag_of,
)
from leasehold.sql_session.settings_commands import TEXT
from leasehold.sql_session.statement_batch import NOT_ONE, WHY, SeveralStatements
from leasehold.sql_session.statement_runner import StatementRunner


class SchemaStatements:
    """The schema changes of one session. `several`: those of the text that is run now, where it
    has more statements than one."""

    def __init__(self, runner: StatementRunner) -> None:
        self._runner = runner
        self._running = runner.running
        self._node = runner.state.node
        self._trace = runner.state.trace
        self._settings = runner.state.settings
        self.several: SeveralStatements | None = None

    def prepare(self, statement: SessionStatement, types: Types) -> PreparedStatement:
        meaning = statement.meaning
        assert isinstance(meaning, SchemaStatement)
        columns = (Column("QUERY PLAN", TEXT),) if meaning.explains else None
        return PreparedStatement(statement, types, (), columns, self._open)

    def _open(self, prepared: PreparedStatement, values: Sequence[Any]) -> Portal:
        statement = prepared.statement
        meaning = statement.meaning
        assert isinstance(meaning, SchemaStatement)
        asked: Asked | None = None
        work: Callable[[], Answer]
        if meaning.explains:
            work = partial(self._explain, statement)
        elif not self._runner.state.is_idle or self._is_temporary(meaning):
            asked = _asked(statement, meaning)
            work = partial(self._change_in_block, asked, meaning)
        elif self.several is not None:
            work = partial(self._change_of_several, statement, meaning, self.several)
        else:
            work = partial(self._change, statement, meaning)
        return CommandPortal(lambda: self._runner.run(statement, work, asked))

    def _is_temporary(self, meaning: SchemaStatement) -> bool:
        """Return whether it is about temporary tables, which are the session's alone."""
        change = meaning.change
        return not isinstance(change, Explain) and (
            self._runner.transactions.temporary.concerns(change)
        )

    def _check_named(self, meaning: SchemaStatement) -> None:
        """Check that no shared table comes to refer to a temporary one, and that no other database
        is meant. Raises InvalidDefinition, UnknownDatabase (3D000)."""
        change = meaning.change
        if isinstance(change, SetDatabase) and change.database.name != (
            self._settings.caller.database
        ):
            raise UnknownDatabase(f'database "{change.database.name:.80}" does not exist')
        if not isinstance(change, Explain):
            self._runner.transactions.temporary.refuse_reference(change)

    def _explain(self, statement: SessionStatement) -> Answer:
        self._running.check_may_block()
        caller, stopped = self._settings.caller, self._running.stopped
        outcome = submit_change(self._node, statement, caller, stopped, self._trace.mark)
        return Answer("EXPLAIN", plan_lines(outcome))

    # ------------------------------------------------------------ by themselves

    def _change_of_several(
        self, statement: SessionStatement, meaning: SchemaStatement, text: SeveralStatements
    ) -> Answer:
        """Run one of several statements of a text: all of them one transaction, as far as they can
        be. Where that is not so the client is told."""
        self._running.check_may_block()
        if text.is_done:
            return Answer(tag_of(meaning))
        if not text.is_told_apart and text.fits_one_request(self._node):
            whole = SessionStatement(text.text, statement.offset, meaning)
            answer = self._change(whole, meaning, text.changes)
            text.is_done = True
            return answer
        assert not isinstance(meaning.change, Explain), "it makes nothing"
        if not text.changes and not text.is_told_apart and text.fits_block(meaning.change):
            with suppress(FeatureNotSupported):  # by itself it may be possible
                return self._change_in_block(_asked(statement, meaning), meaning)
        if not text.is_told_apart:
            text.is_told_apart = True
            notice = Notice("WARNING", "01000", NOT_ONE, {"detail": WHY})
            self._settings.reports.append(notice)
        return self._change(statement, meaning)

    def _change(
        self, statement: SessionStatement, meaning: SchemaStatement, changes: Sequence[Said] = ()
    ) -> Answer:
        """Submit a change, and wait for its jobs if the session is set to. `changes`:
        all that its text holds, where that is more than its own. Raises ReadOnlyTransaction."""
        self._runner.transactions.maker.check_may_write()
        self._running.check_may_block()
        self._check_named(meaning)
        node, stopped = self._node, self._running.stopped
        # ⚠ What stands before it in the same text comes before it: it is a request of its own.
        self._runner.transactions.end_batch()
        for change in [each.statement for each in changes] or [meaning.change]:
            return_sequence_values(node, change, stopped)
        outcome = submit_change(node, statement, self._settings.caller, stopped, self._trace.mark)
        self._settings.reports += notices_of(outcome)
        waits = self._settings.values.on("leasehold.wait_for_jobs")
        if waits and not follow_jobs(node, outcome, meaning, stopped):
            raise Canceled(
                "no longer waiting for the schema change, which goes on: `leasehold jobs` shows it"
            )
        return Answer(tag_of(meaning))

    # ------------------------------------------------------------ within a block

    def _change_in_block(self, asked: Asked, meaning: SchemaStatement) -> Answer:
        """Note a change that is committed with the block, in one request, or forgotten with it.

        Raises ReadOnlyTransaction; FeatureNotSupported at levels that read one moment, of which a
        table that is made or emptied is none, or none of their own writes.
        """
        what, instead = "a schema change", ""
        if asked.emptied:
            what, instead = "TRUNCATE", ", or DELETE"
        else:
            self._running.check_may_block()
        transactions = self._runner.transactions
        temporary = self._is_temporary(meaning)
        if not temporary:
            self._check_named(meaning)
        transactions.maker.check_may_write()
        transaction = transactions.lasting_transaction()
        levels_differ = not temporary and (
            transaction.isolation.one_snapshot or not transaction.isolation.own_writes
        )
        if levels_differ:
            raise FeatureNotSupported(
                f"{what} inside a transaction block at isolation level"
                f" {transaction.isolation.spoken} is not supported: use READ COMMITTED{instead}"
            )
        transaction.show_activity(asked.text)
        if asked.emptied:
            told = [Told("NOTICE", "00000", words) for words in transaction.empty(asked)]
        else:
            refuses = self._settings.values["leasehold.ddl_in_block"] == REFUSE
            told = transaction.change(asked.text, of_new_alone=refuses)
        transaction.log.add(Step(asked))
        self._settings.reports += [Notice(*each) for each in told]
        return Answer(tag_of(meaning))


def _asked(statement: SessionStatement, meaning: SchemaStatement) -> Asked:
    """Return what a replay of the block has to do again."""
    said = meaning.change
    if not isinstance(said, Truncate):
        return Asked(statement.text, (), (), changes=True)
    names = tuple(table.name for table in said.tables)
    asked = Asked(statement.text, (), (), emptied=names, restarts=said.restart)
    return asked._replace(cascades=said.cascade)
