"""BEGIN, COMMIT and the like. Where the client stands is decided by `transaction/block.py`."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

from leasehold.model.errors import QueryCanceled
from leasehold.sql.session_settings import WAIT_FOR_LSN, setting_named
from leasehold.sql.syntax.as_of import as_of_text
from leasehold.sql.syntax.session_statements import (
    Begin,
    Commit,
    Modes,
    Release,
    Rollback,
    RollbackTo,
    Savepoint,
    Set,
    SetConstraints,
    SetModes,
)
from leasehold.sql_session.prepared import Answer
from leasehold.sql_session.session_mark import go_back_to, mark_session
from leasehold.sql_session.session_state import SessionState
from leasehold.sql_session.transaction import ReplayableTransaction
from leasehold.sql_session.transaction_runner import TransactionRunner
from leasehold.transaction.block import Block, BlockStatus, NoTransaction, TransactionActive
from leasehold.transaction.isolation import Isolation, chosen
from leasehold.values.dates import AsOf


class BlockCommands:
    """What a client says of its transaction block. `commands` are by kind of statement."""

    def __init__(self, state: SessionState, transactions: TransactionRunner) -> None:
        self._state = state
        self._block = state.block
        self._settings = state.settings
        self._transactions = transactions
        self.commands: Mapping[type, Callable[[Any], Answer]] = {
            Begin: self._begin,
            Commit: self._commit,
            Rollback: self._rollback,
            Savepoint: self._savepoint,
            RollbackTo: self._roll_back_to,
            Release: self._release,
            SetModes: self.set_modes,
            SetConstraints: self._set_constraints,
        }

    # ------------------------------------------------------------ its begin

    def _begin(self, said: Begin) -> Answer:
        if not self._state.is_idle:
            self._settings.warn("25001", "there is already a transaction in progress")
            return Answer(said.tag)
        transaction = self._transactions.replayable()
        if transaction is not None:
            self._begin_behind(transaction, said.modes)
            return Answer(said.tag)
        maker = self._transactions.maker
        isolation, as_of = maker.choose_level(said.modes.isolation, said.modes.as_of)
        read_only = said.modes.read_only
        if read_only is None:
            read_only = self._settings.values.on("default_transaction_read_only")
        self._transactions.block_lsn = maker.choose_lsn(isolation, as_of)
        self._open(isolation, as_of, read_only=read_only)
        return Answer(said.tag)

    def _begin_behind(self, transaction: ReplayableTransaction, modes: Modes) -> None:
        """Begin a block to which statements of the same batch belong that came before it.

        Raises TransactionActive where the modes can't be theirs; nothing has begun then.
        """
        read_only = self._settings.values.on("default_transaction_read_only")
        block = Block()
        block.begin(transaction.isolation, self._settings.as_of, read_only=read_only)
        block.used = True
        isolation = None
        if modes.isolation is not None or modes.as_of is not None:
            isolation = chosen(modes.isolation, past=modes.as_of is not None)
        block.set_modes(isolation, modes.as_of, modes.read_only)
        self._transactions.block_lsn = transaction.lsn
        self._transactions.make_lasting(transaction)
        self._open(transaction.isolation, block.as_of, read_only=block.read_only)
        self._block.used = True

    def _open(self, isolation: Isolation, as_of: AsOf | None, *, read_only: bool) -> None:
        self._block.begin(isolation, as_of, read_only=read_only)
        self._settings.begin()
        self._show_modes()

    def _show_modes(self) -> None:
        """Set what SHOW tells of the transaction while it lasts."""
        isolation = self._block.isolation
        assert isolation is not None
        settings = self._settings.values
        settings.set("transaction_isolation", isolation.spoken, local=True)
        only = "on" if self._block.read_only else "off"
        settings.set("transaction_read_only", only, local=True)

    # ------------------------------------------------------------ its end

    def _commit(self, said: Commit) -> Answer:
        if self._state.is_idle:
            _refuse_chain("COMMIT", said.chain)
            waits = self._transactions.end_batch()
            if waits is not None:
                raise waits
            self._settings.warn("25P01", "there is no transaction in progress")
            return Answer("COMMIT")
        failed = self._block.status is BlockStatus.FAILED
        self._leave(said.chain, committed=not failed)
        return Answer("ROLLBACK" if failed else "COMMIT")

    def _rollback(self, said: Rollback) -> Answer:
        if self._state.is_idle:
            _refuse_chain("ROLLBACK", said.chain)
            self._settings.warn("25P01", "there is no transaction in progress")
        self._leave(said.chain, committed=False)
        return Answer("ROLLBACK")

    def _leave(self, chain: bool, *, committed: bool) -> None:
        before = replace(self._block)
        if committed:
            try:
                self._transactions.check_cursors()
            except BaseException:
                self._block.end()
                raise
            waits = self._transactions.send()
            if waits is not None:
                raise waits
        try:
            self._transactions.end(committed=committed)
        finally:
            self._block.end()
        if chain and before.isolation is not None:
            # Its moment is its first statement's: what ended here has ended, whatever that raises.
            self._transactions.block_lsn = None
            self._open(before.isolation, before.as_of, read_only=before.read_only)

    # ------------------------------------------------------------ within

    def _savepoint(self, said: Savepoint) -> Answer:
        self._block.savepoint(said.name, mark_session(self._state, self._transactions))
        return Answer("SAVEPOINT")

    def _release(self, said: Release) -> Answer:
        self._block.release(said.name)
        return Answer("RELEASE")

    def _roll_back_to(self, said: RollbackTo) -> Answer:
        mark = self._block.roll_back_to(said.name)
        go_back_to(mark, self._state, self._transactions)
        return Answer("ROLLBACK")

    def set_modes(self, said: SetModes) -> Answer:
        modes, settings = said.modes, self._settings
        if said.ever:
            settings.set_defaults(modes)
            return Answer("SET")
        if self._state.is_idle:
            settings.warn("25P01", "SET TRANSACTION can only be used in transaction blocks")
            return Answer("SET")
        block, isolation = self._block, None
        if modes.isolation is not None or modes.as_of is not None:
            as_of = block.as_of if modes.as_of is None else modes.as_of
            isolation = chosen(modes.isolation, past=as_of is not None)
        block.set_modes(isolation, modes.as_of, modes.read_only)
        if isolation is not None and not block.used:
            maker = self._transactions.maker
            self._transactions.block_lsn = maker.choose_lsn(isolation, block.as_of)
        self._show_modes()
        return Answer("SET")

    def _set_constraints(self, said: SetConstraints) -> Answer:
        if self._state.is_idle:
            words = "SET CONSTRAINTS can only be used in transaction blocks"
            self._settings.warn("25P01", words)
        self._state.running.check_may_block()
        transaction = self._transactions.transaction()
        transaction.check_deferred(said.names, self._look, immediate=not said.deferred)
        return Answer("SET CONSTRAINTS")

    def _look(self) -> None:
        if self._state.running.stopped():
            raise QueryCanceled("SET CONSTRAINTS was ended")

    def set_as_of(self, said: Set) -> Answer:
        """Run SET leasehold.as_of inside a block, which is SET TRANSACTION AS OF as well."""
        as_of = None if said.value is None else as_of_text(said.value)
        if as_of is not None:
            self.set_modes(SetModes(Modes(as_of=as_of), ever=False))
        return self._settings.set(said, in_block=True)

    def wait_for_lsn(self, value: str) -> None:
        """Return once reads of this session see the commit of that LSN.

        Raises TransactionActive in a block that reads as of an earlier moment, InvalidArgument, and
        NotCoherent when it takes longer than a session waits for its node."""
        lsn = int(setting_named(WAIT_FOR_LSN).check(WAIT_FOR_LSN, value))
        of_block = None if self._state.is_idle else self._transactions.block_lsn
        if of_block is not None and of_block < lsn:
            raise TransactionActive(
                f"this transaction reads as of LSN {of_block}: SET {WAIT_FOR_LSN} before it begins"
            )
        self._transactions.maker.wait_for_lsn(lsn)


def _refuse_chain(verb: str, chain: bool) -> None:
    """Raise NoTransaction for AND CHAIN outside of a block."""
    if chain:
        raise NoTransaction(f"{verb} AND CHAIN can only be used in transaction blocks")


def modes_of(said: Set) -> Modes:
    """Return the modes of a SET of one of `MODES`, which is SET TRANSACTION."""
    value = (said.value or "").strip().lower()
    if said.name == "transaction_isolation":
        return Modes(isolation=value)
    return Modes(read_only=value in ("on", "true", "1", "yes"))
