"""How a statement of a session is run: alone, so that it can be cancelled."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from leasehold.model.audit import Audited, AuditEvent
from leasehold.model.errors import (
    CanceledUnderWay,
    InsufficientPrivilege,
    LeaseholdError,
    QueryCanceled,
    Refused,
)
from leasehold.pgwire.wire_errors import Canceled
from leasehold.replica.replay_log import Asked, Types
from leasehold.sql.planning.plan import Prepared as Plan
from leasehold.sql.session.text import as_said
from leasehold.sql.syntax.session_statements import SessionStatement
from leasehold.sql_session.session_state import SessionState
from leasehold.sql_session.settings_commands import MS
from leasehold.sql_session.short_statements import ShortStatements
from leasehold.sql_session.shown_errors import show_names
from leasehold.sql_session.transaction import ReplayableTransaction
from leasehold.sql_session.transaction_runner import TransactionRunner

T = TypeVar("T")


class StatementRunner:
    """Runs the statements of one session, one at a time.

    Portals and those who prepare statements stand on it: `short` tries a statement without a
    transaction, `transaction` is where it runs otherwise.
    """

    def __init__(self, state: SessionState, transactions: TransactionRunner) -> None:
        self.state = state
        self.running = state.running
        self.cursors = state.cursors
        self.transactions = transactions
        self.short = ShortStatements(state, transactions)

    @property
    def in_block(self) -> bool:
        """Whether statements that follow belong to the same transaction."""
        return self.state.has_several or not self.state.is_idle

    def transaction(self) -> ReplayableTransaction:
        """Return the transaction that runs, or begin one."""
        return self.transactions.transaction()

    def plan(self, text: str, types: Types) -> Plan:
        """Return the plan of a statement, on what it would see now."""
        if self.short.may_run:
            return self.short.plan(text, types)
        return self.transaction().plan(text, types)

    def run(
        self, statement: SessionStatement, work: Callable[[], T], asked: Asked | None = None
    ) -> T:
        """Return what `work` does for a statement, as the one thing that runs now.

        It can be cancelled, has the session's time limit, and positions in its errors count in the
        client's text. What was `asked` is remembered as failed.
        """
        self.check_locks()
        limit_s = self.state.settings.values.ms("statement_timeout") / MS
        self.running.begin(limit_s, statement.text)
        try:
            self.state.locks.check()
            self.state.listening.check()
            return work()
        except LeaseholdError as error:
            self.state.trace.failed(error.sqlstate)
            show_names(error, self.state.node.access)
            if asked is not None:
                self.transactions.log_failure(asked, error)
            if isinstance(error, QueryCanceled):
                raise _reworded(error, self.running.why_stopped()) from None
            if isinstance(error, InsufficientPrivilege):
                self._audit(error)
            if not isinstance(error, Refused):
                raise
            raise as_said(error, statement) from error
        finally:
            self.running.end()

    def check_locks(self) -> None:
        """Raise WouldBlock, where it must not block, for a session that has advisory locks: what
        it gives back has to be free when its client is answered, and the ledger is waited for."""
        if self.state.locks.is_used:
            self.running.check_may_block()

    def _audit(self, error: InsufficientPrivilege) -> None:
        """Raises AuditUnavailable: that is then the answer, and nothing was done either way."""
        state = self.state
        event = AuditEvent(
            Audited.REFUSED, error.sqlstate, state.user, state.role.name, words=error.message
        )
        state.node.audit.record(event)


def _reworded(error: QueryCanceled, why: Exception | None) -> Exception:
    """Return a cancellation in the words of whoever has ended the statement, with what else is to
    be said of it."""
    if isinstance(error, CanceledUnderWay) and isinstance(why, Canceled):
        return CanceledUnderWay(why.message, **error.detail)
    return why or error
