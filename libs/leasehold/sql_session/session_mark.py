"""How far a session is within its transaction, and the way back there: of a savepoint, and of a
block of code that catches errors."""

from __future__ import annotations

from typing import Any, NamedTuple

from leasehold.sql_session.session_state import SessionState
from leasehold.sql_session.transaction import ReplayableTransaction, Savepoint
from leasehold.sql_session.transaction_runner import TransactionRunner


class SessionMark(NamedTuple):
    """What a session had done at a moment of `transaction`."""

    transaction: ReplayableTransaction
    writes: Savepoint
    cursors: Any
    locks: Any
    listening: Any


def mark_session(state: SessionState, transactions: TransactionRunner) -> SessionMark:
    """Return how far a session is; its transaction begins with that, if none runs. Raises what
    beginning one raises."""
    transaction = transactions.transaction()
    return SessionMark(
        transaction,
        transaction.savepoint(),
        state.cursors.mark(),
        state.locks.mark(),
        state.listening.mark(),
    )


def go_back_to(mark: SessionMark, state: SessionState, transactions: TransactionRunner) -> None:
    """Undo what the session has done in its transaction since the mark."""
    transaction = transactions.transaction()
    transaction.roll_back_to(mark.writes)
    transactions.forget_made(transaction.made_sequences.values())
    state.cursors.back_to(mark.cursors)
    state.locks.back_to(mark.locks)
    state.listening.back_to(mark.listening)
