"""The transaction that a session is in, and what its client says of it: BEGIN, COMMIT and the like.

Where the client stands is decided by `transaction/block.py`.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import partial
from typing import Any, Final

from leasehold.adapters.os.clock import fresh_seed, unix_us
from leasehold.catalog.descriptor import PROVISIONAL_FROM
from leasehold.catalog.elements import Moment
from leasehold.model.errors import LeaseholdError, NotCoherent, UnknownTable
from leasehold.model.records import Outcome
from leasehold.pgwire.session import Recounted, WouldBlock
from leasehold.replica.replay_log import Asked, Step
from leasehold.replica.sequences.session_values import DrawnNumbers, SessionNumbers
from leasehold.replica.serving_node import SqlNode
from leasehold.sql.functions.session import CallersMoment
from leasehold.sql.planning.plan import Plans
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
    SetModes,
)
from leasehold.sql_session.commit import Sent, answer_of, commit, send_ahead, send_single
from leasehold.sql_session.cursors import SqlCursors
from leasehold.sql_session.fast_update import SingleUpdate, SingleUpdates
from leasehold.sql_session.portals import Answer, PreparedStatement
from leasehold.sql_session.running import Running
from leasehold.sql_session.schema_changes import ends_unlike
from leasehold.sql_session.settings_commands import SettingCommands
from leasehold.sql_session.transaction import SqlTransaction
from leasehold.transaction.block import Block, NoTransaction, ReadOnlyTransaction, Standing
from leasehold.transaction.isolation import Isolation, Sees, chosen
from leasehold.values.dates import AsOf

MS: Final = 1_000
_IDLE: Final = Standing.IDLE  # a member of an enum costs more than a call


class SessionBlock:
    """`label` names the session to those who wait for a version that it has pinned."""

    def __init__(
        self,
        node: SqlNode,
        plans: Plans,
        settings: SettingCommands,
        running: Running,
        label: str,
        cursors: SqlCursors,
    ) -> None:
        self._node = node
        # In a hurry only plans that are made are made use of.
        self.plan_of = partial(plans.get, before_making=running.may_wait)
        self._settings = settings
        self._running = running
        self._label = label
        self._cursors = cursors
        self.numbers = SessionNumbers()
        self._block = Block()
        self._transaction: SqlTransaction | None = None
        self.answer_held = False
        self._single: SingleUpdate | None = None  # that will be the transaction, until one is there
        self._sent: Sent | None = None
        self._lsn: int | None = None  # that a block reads as of, from its BEGIN on
        self.commands: Mapping[type, Callable[[Any], Answer]] = {
            Begin: self._begin,
            Commit: self._commit,
            Rollback: self._rollback,
            Savepoint: self._savepoint,
            RollbackTo: self._roll_back_to,
            Release: self._release,
            SetModes: self.set_modes,
        }

    @property
    def standing(self) -> Standing:
        return self._block.standing

    @property
    def _idle(self) -> bool:
        return self._block.standing is _IDLE

    @property
    def isolation(self) -> Isolation | None:
        """Of the block; None outside of one."""
        return self._block.isolation

    @property
    def began_us(self) -> int | None:
        """When the transaction that runs has begun; may be asked by any thread."""
        runs = self._transaction or self._single
        return None if runs is None else runs.moment.now_us

    # ------------------------------------------------------------ the transaction

    @property
    def reads_alone(self) -> bool:
        """Is a statement that comes now a transaction by itself, of what is newest?"""
        return (
            self._transaction is None
            and self._single is None
            and self._idle
            and self._settings.reads_newest
        )

    def transaction(self) -> SqlTransaction:
        """The one that runs, or a new one."""
        if self._single is not None:
            self._go_on_from_single()
        if self._transaction is None:
            in_block = not self._idle
            settings = self._settings
            isolation, as_of = self._block.isolation, self._block.as_of
            if isolation is None:
                isolation, as_of = self._chosen(None, None)
            lsn = self._lsn if in_block else None
            if lsn is None:
                lsn = self._moment(isolation, as_of)
            settings.begin()
            moment = self._new_moment()
            self._transaction = self._made(isolation, moment, lsn, block=in_block)
            self._block.used = in_block
        self._transaction.called_by(self._settings.caller)
        return self._transaction

    def lasting_transaction(self) -> SqlTransaction:
        """The one that runs, or a new one, with versions of its own also where it is of several
        statements of one text and no block: it may make tables, which those behind it read."""
        transaction = self.transaction()
        if not transaction.is_block:
            transaction.becomes_block(self._node.reads(self._label, transaction.lsn))
        return transaction

    def _new_moment(self) -> CallersMoment:
        return CallersMoment.of(unix_us(), fresh_seed(), self._settings.caller)

    def single_update(
        self, updates: SingleUpdates, prepared: PreparedStatement, values: Sequence[Any]
    ) -> bool:
        """Is it done, as a transaction by itself? Where `reads_alone`. Raises what
        `SingleUpdates.found` raises."""
        if not self._replays_max or self._settings.values.on("default_transaction_read_only"):
            return False
        isolation, zone = self._settings.default_isolation, self._settings.caller.zone
        self._single = updates.found(prepared, values, isolation, zone, self._new_moment())
        return self._single is not None

    def _go_on_from_single(self) -> None:
        single, self._single = self._single, None
        assert single is not None
        assert self._transaction is None
        self._settings.begin()
        made = self._made(single.isolation, single.moment, None, block=False)
        made.goes_on_from(single)
        self._transaction = made

    def _made(
        self, isolation: Isolation, moment: Moment, lsn: int | None, *, block: bool
    ) -> SqlTransaction:
        """A block is known by name to those who wait for it."""
        node = self._node
        reads = node.reads(self._label, lsn) if block else node.single_read(moment=lsn)
        return SqlTransaction(
            reads,
            self.plan_of,
            isolation,
            moment,
            self._wait_coherent,
            block=block,
            numbers=DrawnNumbers(
                node.numbers, self.numbers, self.check_may_write, self._running.stopped
            ),
            may_wait=self._running.may_wait,
        )

    def _chosen(self, level: str | None, as_of: AsOf | None) -> tuple[Isolation, AsOf | None]:
        """What a transaction runs at that asks for this, or for nothing: as the settings say.
        Raises FeatureNotSupported for AS OF at a level that can't."""
        if as_of is None:
            as_of = self._settings.as_of
        if level is None and as_of is None:
            return self._settings.default_isolation, None
        return chosen(level, past=as_of is not None), as_of

    def _moment(self, isolation: Isolation, as_of: AsOf | None) -> int | None:
        """The LSN that is read as of, if it is one. Raises what `moment_of` raises."""
        if not isolation.one_moment:
            return None
        if as_of is None and isolation.sees is not Sees.BARRIER:
            self._wait_coherent()
        elif not isinstance(as_of, int):
            self._running.may_wait()
        return self._node.moment(isolation, as_of, self._wait_s)

    @property
    def _wait_s(self) -> float:
        return self._settings.values.ms("leasehold.coherent_timeout") / MS

    def _wait_coherent(self) -> None:
        """As long as the session asks for. Raises NotCoherent, or why it was stopped."""
        if self._node.coherent:
            return
        self._running.may_wait()
        wait_s = self._wait_s
        met = self._node.wait(lambda: self._running.stopped() or self._node.coherent, wait_s)
        why = self._running.why_stopped()
        if why is not None:
            raise why
        if not met:
            raise NotCoherent(
                "this node is not coherent: it has had no lease from the master for"
                f" {wait_s:g} s; read on another one, or SET leasehold.coherent_timeout"
            )

    def failed_with(self, asked: Asked, error: LeaseholdError) -> None:
        """A client may take another path after it: a replay has to fail likewise (T2)."""
        if self._block.standing is Standing.OPEN and self._transaction is not None:
            self._transaction.did(Step(asked, sqlstate=error.sqlstate))

    def check_may_write(self) -> None:
        read_only = self._settings.values.on("transaction_read_only")
        if self._idle:
            read_only = self._settings.values.on("default_transaction_read_only")
        if read_only:
            raise ReadOnlyTransaction("cannot write in a read-only transaction")

    # ------------------------------------------------------------ its end

    def end_batch(self) -> WouldBlock | None:
        runs = self._transaction or self._single
        if self._idle and (runs is not None or self._settings.have_begun):
            waits = self._ends_ahead()
            if waits is not None:
                return waits
            self._end(committed=True)
        return None

    def fail(self) -> None:
        if self._idle:
            self.end(committed=False)
        else:
            self._block.fail()

    def close(self) -> None:
        self.end(committed=False)
        self._block.end()

    def end(self, *, committed: bool) -> None:
        """Raises what COMMIT can fail with."""
        waits = self._ends_ahead() if committed else None
        if waits is not None:
            raise waits
        self._end(committed=committed)

    def _end(self, *, committed: bool) -> None:
        self._single = None
        transaction, self._transaction = self._transaction, None
        outcome: Outcome | None = None
        if transaction is not None:
            try:
                if committed:
                    outcome = self._commit_writes(transaction)
            except BaseException:
                self._settings.end(committed=False)
                self._cursors.end(committed=False)
                self._forget_made()
                raise
            finally:
                self._sent = None
                self.answer_held = False
                transaction.close()
        self._sent = None
        self._settings.end(committed=committed)
        self._cursors.end(committed=committed)
        if outcome is not None and transaction is not None:
            self._know_made(transaction)
        self._forget_made()
        if outcome is not None and self._settings.values.on("leasehold.wait_for_jobs"):
            for words in ends_unlike(self._node, outcome, self._running.stopped):
                self._settings.warn("01000", f"the transaction is committed; {words}")

    def _know_made(self, transaction: SqlTransaction) -> None:
        """currval goes on telling of sequences that the transaction has made; not of those that it
        can't find, be it that this node has stopped meanwhile: what is committed is no error (T5).
        """
        made = transaction.made_sequences.items()
        drawn = {name: number for name, number in made if self.numbers.known(number)}
        if not drawn:
            return
        with suppress(LeaseholdError), self._node.single_read().snapshot() as snapshot:
            for name, provisional in drawn.items():
                with suppress(UnknownTable):  # somebody has dropped it since
                    self.numbers.becomes(provisional, snapshot.newest(name).table_id)

    def _forget_made(self, kept: Collection[int] = ()) -> None:
        """Sequences that this transaction alone had; their ids are given to others again."""
        self.numbers.forget(lambda number: number >= PROVISIONAL_FROM and number not in kept)

    def _check_cursors(self) -> None:
        """Those that are to outlive the transaction have to be whole, or it fails."""
        try:
            self._cursors.check_held()
        except BaseException:
            self.end(committed=False)
            raise

    def _ends_ahead(self) -> WouldBlock | None:
        """Before a COMMIT: what it would wait for."""
        self._check_cursors()
        return self._send_ahead()

    def _send_ahead(self) -> WouldBlock | None:
        """In a hurry an answer is not waited for: nothing has ended until it is there."""
        if self._single is not None:
            waits = self._send_single(self._single)
            if waits is not None:
                return waits
        transaction = self._transaction
        if transaction is None or not transaction.has_written or not self._running.hurried:
            return None
        if transaction.begins_jobs:
            return WouldBlock()
        self._sent = send_ahead(transaction, self._node, self._sent, replays_max=self._replays_max)
        return self._answer()

    def _send_single(self, single: SingleUpdate) -> WouldBlock | None:
        """None: it is committed, or a transaction has to see to that."""
        if not (self._running.hurried and self._replays_max):
            self._go_on_from_single()
            return None
        self._sent = send_single(single, self._node, self._sent)
        waits = self._answer()
        if waits is None and self._sent is not None and not self._sent.is_committed:
            self._go_on_from_single()  # its refusal is raised by its transaction's COMMIT
        return waits

    def _answer(self) -> WouldBlock | None:
        """In a hurry."""
        return WouldBlock() if self._sent is None else answer_of(self._sent)

    @property
    def _replays_max(self) -> int:
        settings = self._settings.values
        return int(settings["leasehold.replays_max"]) if settings.on("leasehold.verifyretry") else 0

    def _commit_writes(self, transaction: SqlTransaction) -> Outcome | None:
        in_block = transaction.is_block
        isolation = transaction.isolation

        def fresh() -> SqlTransaction:
            lsn = self._moment(isolation, None)
            return self._made(isolation, transaction.moment, lsn, block=in_block)

        alone = None if in_block or not self.answer_held else transaction.lone_write
        told = "" if alone is None else alone.counted
        outcome = commit(
            transaction,
            self._node,
            fresh,
            replays_max=self._replays_max,
            limits=self._running.limits,
            sent=self._sent,
            alone=alone,
        )
        if alone is not None and alone.counted != told:
            self._settings.reports.append(Recounted(alone.counted))
        return outcome

    # ------------------------------------------------------------ what clients say

    def _begin(self, said: Begin) -> Answer:
        if not self._idle:
            self._settings.warn("25001", "there is already a transaction in progress")
            return Answer(said.tag)
        if self._single is not None:
            self._go_on_from_single()
        if self._transaction is not None:
            self._begin_behind(self._transaction, said.modes)
            return Answer(said.tag)
        isolation, as_of = self._chosen(said.modes.isolation, said.modes.as_of)
        read_only = said.modes.read_only
        if read_only is None:
            read_only = self._settings.values.on("default_transaction_read_only")
        self._begun(isolation, as_of, read_only=read_only)
        return Answer(said.tag)

    def _begin_behind(self, transaction: SqlTransaction, modes: Modes) -> None:
        """Statements of the same batch came before it: what they began is the block's. Raises
        TransactionActive where the modes can't be theirs; nothing has begun then."""
        read_only = self._settings.values.on("default_transaction_read_only")
        block = Block()
        block.begin(transaction.isolation, self._settings.as_of, read_only=read_only)
        block.used = True
        isolation = None
        if modes.isolation is not None or modes.as_of is not None:
            isolation = chosen(modes.isolation, past=modes.as_of is not None)
        block.set_modes(isolation, modes.as_of, modes.read_only)
        self._lsn = transaction.lsn
        transaction.becomes_block(self._node.reads(self._label, self._lsn))
        self._open(transaction.isolation, block.as_of, read_only=block.read_only)
        self._block.used = True

    def _begun(self, isolation: Isolation, as_of: AsOf | None, *, read_only: bool) -> None:
        self._lsn = self._moment(isolation, as_of)
        self._open(isolation, as_of, read_only=read_only)

    def _open(self, isolation: Isolation, as_of: AsOf | None, *, read_only: bool) -> None:
        self._block.begin(isolation, as_of, read_only=read_only)
        self._settings.begin()
        self._show_modes()

    def _show_modes(self) -> None:
        """The transaction's, as SHOW tells them while it lasts."""
        isolation = self._block.isolation
        assert isolation is not None
        settings = self._settings.values
        settings.set("transaction_isolation", isolation.spoken, local=True)
        only = "on" if self._block.read_only else "off"
        settings.set("transaction_read_only", only, local=True)

    def _commit(self, said: Commit) -> Answer:
        if self._idle:
            _refuse_chain("COMMIT", said.chain)
            self.end(committed=True)
            self._settings.warn("25P01", "there is no transaction in progress")
            return Answer("COMMIT")
        failed = self._block.standing is Standing.FAILED
        self._leave(said.chain, committed=not failed)
        return Answer("ROLLBACK" if failed else "COMMIT")

    def _rollback(self, said: Rollback) -> Answer:
        if self._idle:
            _refuse_chain("ROLLBACK", said.chain)
            self._settings.warn("25P01", "there is no transaction in progress")
        self._leave(said.chain, committed=False)
        return Answer("ROLLBACK")

    def _leave(self, chain: bool, *, committed: bool) -> None:
        before = replace(self._block)
        try:
            if committed:
                self._check_cursors()
        except BaseException:
            self._block.end()
            raise
        waits = self._send_ahead() if committed else None
        if waits is not None:
            raise waits
        try:
            self.end(committed=committed)
        finally:
            self._block.end()
        if chain and before.isolation is not None:
            # Its moment is its first statement's: what ended here has ended, whatever that raises.
            self._lsn = None
            self._open(before.isolation, before.as_of, read_only=before.read_only)

    def _savepoint(self, said: Savepoint) -> Answer:
        mark = self.transaction().savepoint(), self._cursors.mark()
        self._block.savepoint(said.name, mark)
        return Answer("SAVEPOINT")

    def _release(self, said: Release) -> Answer:
        self._block.release(said.name)
        return Answer("RELEASE")

    def _roll_back_to(self, said: RollbackTo) -> Answer:
        savepoint, cursors = self._block.roll_back_to(said.name)
        transaction = self.transaction()
        transaction.roll_back_to(savepoint)
        self._forget_made(transaction.made_sequences.values())
        self._cursors.back_to(cursors)
        return Answer("ROLLBACK")

    def set_modes(self, said: SetModes) -> Answer:
        modes, settings = said.modes, self._settings
        if said.ever:
            settings.set_defaults(modes)
            return Answer("SET")
        if self._idle:
            settings.warn("25P01", "SET TRANSACTION can only be used in transaction blocks")
            return Answer("SET")
        block, isolation = self._block, None
        if modes.isolation is not None or modes.as_of is not None:
            as_of = block.as_of if modes.as_of is None else modes.as_of
            isolation = chosen(modes.isolation, past=as_of is not None)
        block.set_modes(isolation, modes.as_of, modes.read_only)
        if isolation is not None and not block.used:
            self._lsn = self._moment(isolation, block.as_of)
        self._show_modes()
        return Answer("SET")

    def as_of_set(self, said: Set) -> Answer:
        """SET leasehold.as_of inside a block is SET TRANSACTION AS OF as well."""
        as_of = None if said.value is None else as_of_text(said.value)
        if as_of is not None:
            self.set_modes(SetModes(Modes(as_of=as_of), ever=False))
        return self._settings.set(said, in_block=True)


def _refuse_chain(verb: str, chain: bool) -> None:
    """Outside of a block. Raises NoTransaction."""
    if chain:
        raise NoTransaction(f"{verb} AND CHAIN can only be used in transaction blocks")


def modes_of(said: Set) -> Modes:
    """SET of one of `MODES`, which is SET TRANSACTION."""
    value = (said.value or "").strip().lower()
    if said.name == "transaction_isolation":
        return Modes(isolation=value)
    return Modes(read_only=value in ("on", "true", "1", "yes"))
