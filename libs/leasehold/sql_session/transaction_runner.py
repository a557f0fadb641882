"""The transaction that a session runs: which strategy carries it out, and its end."""

from __future__ import annotations

from collections.abc import Collection
from contextlib import suppress

from leasehold.adapters.sqlite.write import Found
from leasehold.catalog.access import Access
from leasehold.catalog.descriptor import PROVISIONAL_FROM, TEMPORARY_FROM
from leasehold.model.errors import LeaseholdError, UnknownTable
from leasehold.model.records.requests import Outcome
from leasehold.pgwire.session import Recounted, WouldBlock
from leasehold.replica.replay_log import Asked, Step
from leasehold.replica.temporary_tables import TemporarySchema
from leasehold.sql.planning.plan import Write
from leasehold.sql_session.commit import (
    Sent,
    Strategy,
    check_told,
    commit,
    first_request,
    send,
)
from leasehold.sql_session.commit_time_update import CommitTimeUpdate
from leasehold.sql_session.schema_changes import job_warnings
from leasehold.sql_session.session_state import SessionState
from leasehold.sql_session.transaction import ReplayableTransaction
from leasehold.sql_session.transaction_job import commit_with_job
from leasehold.sql_session.transaction_maker import TransactionMaker
from leasehold.transaction.block import BlockStatus

_OPEN = BlockStatus.OPEN  # a member of an enum costs more than a call


class TransactionRunner:
    """The transaction of one session, from its first statement to its end.

    Two strategies carry one out (`Strategy`). A `CommitTimeUpdate` is a single UPDATE that was
    found to need no more; it is made a `ReplayableTransaction`, which keeps a write set and a log
    of statements, as soon as another statement joins it, or its COMMIT may not be sent ahead.

    A COMMIT that must not block is begun by `send`, and ended by `end` once its answer is there.
    """

    def __init__(self, state: SessionState) -> None:
        self._state = state
        self.maker = TransactionMaker(state)
        self._current: Strategy | None = None
        self._sent: Sent | None = None
        self.answer_held = False
        self.block_lsn: int | None = None
        """What a block reads as of, from its BEGIN on."""

    @property
    def began_us(self) -> int | None:
        """The time at which the transaction has begun, in unix µs; may be asked by any thread."""
        current = self._current
        return None if current is None else current.context.now_us

    # ------------------------------------------------------------ the strategies

    @property
    def would_begin_newest(self) -> bool:
        """Whether a statement that comes now would be a transaction by itself, that reads what is
        newest: behind it in its text a BEGIN may come, to whose block it belongs."""
        state = self._state
        alone = self._current is None and state.is_idle and not state.has_several
        alone = alone and state.temporary.is_empty
        return alone and state.settings.reads_newest

    @property
    def may_update_at_commit(self) -> bool:
        """Whether an update may be computed at commit on a row that nobody has seen: it may then
        have to run again."""
        read_only = self._state.settings.values.on("default_transaction_read_only")
        return bool(self._replays_max) and not read_only

    def begin_update(self, asked: Asked, write: Write, found: Found) -> None:
        """Begin the transaction that is this update alone."""
        assert self._current is None
        isolation = self._state.settings.default_isolation
        context = self.maker.new_context()
        self._current = CommitTimeUpdate(asked, write, found, isolation, context)

    def replayable(self) -> ReplayableTransaction | None:
        """Return the transaction that runs, as one that more statements can join."""
        current = self._current
        if isinstance(current, CommitTimeUpdate):
            self._state.settings.begin()
            made = self.maker.make(current.isolation, current.context, None, block=False)
            made.continue_from(current)
            self._current = current = made
        assert current is None or isinstance(current, ReplayableTransaction)
        return current

    def transaction(self) -> ReplayableTransaction:
        """Return the transaction that runs, or begin one."""
        current = self.replayable()
        if current is None:
            current = self._begin()
        self._state.settings.see_new_names()
        current.log.set_caller(self._state.settings.caller)
        return current

    def _begin(self) -> ReplayableTransaction:
        block, maker = self._state.block, self.maker
        in_block = not self._state.is_idle
        isolation, as_of = block.isolation, block.as_of
        if isolation is None:
            isolation, as_of = maker.choose_level(None, None)
        lsn = self.block_lsn if in_block else None
        if lsn is None:
            lsn = maker.choose_lsn(isolation, as_of)
        self._state.settings.begin()
        lasts = in_block or not self._state.temporary.is_empty
        made = maker.make(isolation, maker.new_context(), lsn, block=lasts)
        self._current = made
        block.used = in_block
        return made

    def lasting_transaction(self) -> ReplayableTransaction:
        """Return the transaction that runs, or begin one, with leased versions also where it is of
        several statements of one text and no block: it may make tables, which those behind it
        read."""
        transaction = self.transaction()
        self.make_lasting(transaction)
        return transaction

    @property
    def access(self) -> Access:
        """Return who may do what, and which schemas there are, as its next statement sees it."""
        current = self._current
        changed = current.changed_access if isinstance(current, ReplayableTransaction) else None
        return changed or self._state.node.access

    @property
    def temporary(self) -> TemporarySchema:
        """The session's temporary tables, as its next statement sees them."""
        current = self._current
        if isinstance(current, ReplayableTransaction):
            return current.temporary
        return self._state.temporary.schema

    def discard_temporary(self) -> None:
        """Drop the session's temporary tables; within a block, unless that is rolled back."""
        if self._state.is_idle and self._current is None:
            self._state.temporary.drop_all()
            return
        transaction = self.lasting_transaction()
        text = transaction.drop_temporary()
        if text:
            transaction.log.add(Step(Asked(text, (), (), changes=True)))

    def make_lasting(self, transaction: ReplayableTransaction) -> None:
        """Let a transaction hold leases on its versions, unless it does already."""
        if not transaction.is_block:
            state = self._state
            transaction.become_block(state.node.reads(state.label, transaction.lsn))

    def log_failure(self, asked: Asked, error: LeaseholdError) -> None:
        """Remember that a statement of a block has failed. A client may take another path after it,
        so a replay has to fail likewise (T2)."""
        current = self._current
        if self._state.block.status is _OPEN and isinstance(current, ReplayableTransaction):
            current.log.add(Step(asked, sqlstate=error.sqlstate))

    def check_told(self) -> None:
        """Check what the transaction was told, now that a statement has failed by a row that others
        have committed, or deleted: ⚠ a client that was told before that there was none, behind a
        row that it has changed, would take the error for its own. Raises GaveUp (40001),
        WouldBlock."""
        state, current = self._state, self._current
        if not isinstance(current, ReplayableTransaction) or current.holds_job:
            return
        if not (self._replays_max and current.log.held):
            return
        state.running.check_may_block()
        state.locks.runs_again = True  # if it does
        try:
            check_told(current, lambda: self._begin_again(current), state.running.limits)
        finally:
            state.locks.runs_again = False

    # ------------------------------------------------------------ its end

    def end_batch(self) -> WouldBlock | None:
        """Commit, outside a block. Returns what has to be waited for first; else it has ended."""
        state = self._state
        has_begun = self._current is not None or state.settings.have_begun
        if state.is_idle and (has_begun or state.listening.is_asked):
            self.check_cursors()
            waits = self.send()
            if waits is not None:
                return waits
            self.end(committed=True)
        return None

    def check_cursors(self) -> None:
        """Roll back, and raise, where a cursor that is to outlive the transaction is not whole."""
        try:
            self._state.cursors.check_held()
        except BaseException:
            self.end(committed=False)
            raise

    def send(self) -> WouldBlock | None:
        """Send what is to be committed, before an `end` that must not block; do nothing else.

        Returns what has to be waited for; nothing has ended until then. None: `end` can be called.
        """
        current = self._current
        if not self._state.running.non_blocking:
            self.replayable()  # it may block, so it can wait for the answer, and run again
            return None
        if self._state.locks.is_used:  # they are given back before it is answered
            return WouldBlock()
        if current is None or not current.has_written:
            checks = isinstance(current, ReplayableTransaction) and current.rests_on_locks
            return WouldBlock() if checks else None
        self._state.listening.prepare()
        if self._sent is None:
            replays_max = self._replays_max
            if not replays_max:
                current = self.replayable()
            assert current is not None
            if current.begins_jobs:
                return WouldBlock()
            request = self._state.trace.mark(first_request(current, replays_max))
            self._sent = send(self._state.node, request)
        if self._sent is None:
            return WouldBlock()
        waits = self._sent.waits
        if waits is None and not self._sent.is_committed:
            self.replayable()  # whose COMMIT raises the refusal
        return waits

    def end(self, *, committed: bool) -> None:
        """Commit, or roll back. Raises what COMMIT can fail with."""
        state, current = self._state, self._current
        self._current = None
        outcome: Outcome | None = None
        try:
            # An update that was not made replayable is committed by now.
            if committed and isinstance(current, ReplayableTransaction):
                state.listening.prepare()
                outcome = self._commit(current)
                current.final.keep_temporary(state.temporary)
        except BaseException:
            committed = False
            raise
        finally:
            self._sent = None
            self.answer_held = False
            state.settings.end(committed=committed)
            state.cursors.end(committed=committed)
            if current is not None:
                current.close()
            state.locks.end_transaction()
            state.listening.end_transaction(committed=committed)
            if outcome is not None and isinstance(current, ReplayableTransaction):
                self._keep_current_values(current)
            self.forget_made()
        if outcome is not None and state.settings.values.on("leasehold.wait_for_jobs"):
            for words in job_warnings(state.node, outcome, state.running.stopped):
                state.settings.warn("01000", f"the transaction is committed; {words}")

    @property
    def _replays_max(self) -> int:
        settings = self._state.settings.values
        return int(settings["leasehold.replays_max"]) if settings.on("leasehold.verifyretry") else 0

    def _begin_again(self, transaction: ReplayableTransaction) -> ReplayableTransaction:
        """Return a transaction of the same level and moment that has done nothing yet."""
        lsn = self.maker.choose_lsn(transaction.isolation, None)
        block = transaction.is_block
        return self.maker.make(transaction.isolation, transaction.context, lsn, block=block)

    def _commit(self, transaction: ReplayableTransaction) -> Outcome | None:
        in_block, state = transaction.is_block, self._state
        if transaction.holds_job:
            return commit_with_job(transaction, state.node, state.running.stopped, state.trace.mark)
        alone = None if in_block or not self.answer_held else transaction.log.lone_write
        told = "" if alone is None else alone.counted
        state.locks.runs_again = True  # if it does
        try:
            outcome = commit(
                transaction,
                state.node,
                lambda: self._begin_again(transaction),
                replays_max=self._replays_max,
                limits=state.running.limits,
                sent=self._sent,
                alone=alone,
                mark=state.trace.mark,
            )
        finally:
            state.locks.runs_again = False
        if alone is not None and alone.counted != told:
            state.settings.reports.append(Recounted(alone.counted))
        return outcome

    def _keep_current_values(self, transaction: ReplayableTransaction) -> None:
        """Let currval go on telling of sequences that the transaction has made; not of those that
        can't be found, even because this node has stopped: what is committed is no error (T5)."""
        sequence_values = self._state.sequence_values
        made = transaction.made_sequences.items()
        drawn = {name: number for name, number in made if sequence_values.known(number)}
        if not drawn:
            return
        with suppress(LeaseholdError), self._state.node.single_read().snapshot() as snapshot:
            for name, provisional in drawn.items():
                with suppress(UnknownTable):  # somebody has dropped it since
                    sequence_values.rename(provisional, snapshot.newest(name).table_id)

    def forget_made(self, kept: Collection[int] = ()) -> None:
        """Forget sequences that this transaction alone had, but for those `kept`: their ids are
        given to others again."""
        self._state.sequence_values.forget(
            lambda number: PROVISIONAL_FROM <= number < TEMPORARY_FROM and number not in kept
        )
