"""The statements of a transaction as they were answered: its steps, and what they rest on."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from leasehold.adapters.sqlite.query import ROW_BYTES
from leasehold.adapters.sqlite.write import Written
from leasehold.catalog.descriptor import Descriptor
from leasehold.catalog.elements import CommitContext
from leasehold.model.budget import Budget, size_of
from leasehold.model.errors import RequestTooLarge
from leasehold.model.records.requests import Expression, Operation
from leasehold.replica.deferred_keys import AS_DEFINED, DeferredKeys
from leasehold.replica.pending_changes import PendingChanges
from leasehold.replica.replay_log import Asked, KeysRead, ReadAgain, Shown, Step
from leasehold.replica.rows_seen import HeldRows
from leasehold.sql.functions.system.session import Caller, CallerContext
from leasehold.sql.planning.plan import Prepared
from leasehold.transaction.commit_time_updates import AtCommit
from leasehold.transaction.isolation import Isolation
from leasehold.transaction.read_set import PRIMARY
from leasehold.transaction.replay_comparison import Told

STEPS_MAX: Final = 10_000
SHOWN_MAX: Final = 10_000
"""Queries of a transaction that are steps only since rows were locked or changed before them."""
STEP_BYTES: Final = 500
"""Of a step, beside its text and its rows: about what holds it."""


class StatementLog:
    """What a replay of a transaction runs again, and is compared with (T2).

    `steps` only grow. `place` is that of the last statement, one that is no step as well: what a
    statement draws follows from it. `context` is as the session is now, `deferred` are the foreign
    keys that are left to COMMIT. An update stays one that
    the master may compute as long as no other step rests on its row (`AtCommit`).
    `held` are the rows that it has locked or changed by now; `rests_on_locks`: rows were shown
    behind one. `shows_too_much`: more of them than can be compared, so that it can't run again.
    """

    def __init__(
        self,
        isolation: Isolation,
        context: CommitContext,
        pending: PendingChanges,
        budget: Budget,
        deferred: DeferredKeys = AS_DEFINED,
        held: HeldRows | None = None,
    ) -> None:
        """Begin. `budget` holds the steps."""
        self._budget = budget
        self.held = HeldRows() if held is None else held
        self.rests_on_locks = False
        self.shows_too_much = False
        self._shown = 0
        self._texts: set[int] = set()  # by identity: a step holds its own
        self._isolation = isolation
        self._pending = pending
        self._at_commit = AtCommit(isolation)
        self.context = context
        self.position = 0
        self.deferred = deferred
        self.steps: list[Step] = []

    def set_caller(self, caller: Caller) -> None:
        """Let what the session has set since count for what comes."""
        context = self.context
        if isinstance(context, CallerContext) and context.caller is not caller:
            self.context = CallerContext.of(context.now_us, context.seed, caller)

    def rewind_to(self, step: Step) -> None:
        """Let the next statement be that step's, run again."""
        self.position, self.context = step.position - 1, step.context
        self.deferred = step.deferred

    # ------------------------------------------------------------ steps

    def add(self, step: Step) -> None:
        """Append a statement to the log. Raises RequestTooLarge, OutOfMemory."""
        if len(self.steps) - self._shown >= STEPS_MAX:
            raise RequestTooLarge(
                f"a transaction has at most {STEPS_MAX} statements that would have to run again"
                " after a verify error: COMMIT more often"
            )
        self._hold(step)
        if step.sqlstate:
            self.add_error()
        step.position, step.context = self.position, self.context
        step.deferred = self.deferred
        self.steps.append(step)

    def _hold(self, step: Step) -> None:
        size, asked = STEP_BYTES, step.asked
        if asked is not None:
            if id(asked.text) not in self._texts:
                size += len(asked.text)
            size += size_of(asked.values)
            for values in asked.many:
                size += ROW_BYTES + size_of(values)
        for row in step.rows:
            size += ROW_BYTES + size_of(row)
        self._budget.hold(size)
        if asked is not None:
            self._texts.add(id(asked.text))

    @property
    def lone_write(self) -> Step | None:
        """The only step, if all that it tells is a count of the rows that it has written."""
        if len(self.steps) != 1:
            return None
        (step,) = self.steps
        told_more = step.returns or step.seen or step.sqlstate
        return None if told_more or not step.tag or step.asked is None or step.asked.many else step

    def add_query(
        self, asked: Asked, plan: Prepared, cursor: ReadAgain | None = None, *, hold: bool = False
    ) -> Shown | None:
        """Log a query, and return what is to be told which rows its client was given; None: a
        replay may show others.

        Rows fetched of a `cursor` are answers at every level. One that outlives the transaction
        (`hold`) goes on behind them, so they have one order.
        """
        told = Told.SELECTED if cursor is None else Told.FETCHED
        if plan.visits is not None:
            told = Told.VISITED
        elif self.held and _shows_shared(plan):
            # ⚠ What a client reads under a lock, and writes for it, nobody else may change.
            self.rests_on_locks = True
            told = Told.LOCKED if cursor is None else told
        compared = self._isolation.verifies_reads or told is not Told.SELECTED
        if plan.explain or not self._isolation.replays or not compared:
            return None
        shown = Shown(told, plan.ordered or hold, behind=self.held.mark)
        if told is Told.LOCKED and not self._isolation.verifies_reads:
            if self._shown >= SHOWN_MAX:
                self.shows_too_much = True
                return None
            self._shown += 1
        self.add(Step(asked, shown=shown, cursor=cursor))
        return shown

    # ------------------------------------------------------------ what they rest on

    def compute_at_commit(
        self, descriptor: Descriptor, written: Written, values: Mapping[str, Expression]
    ) -> None:
        """Let the master compute the update that was just written, if nothing rests on its row."""
        (write,) = written.writes
        operation = self._pending.operations[-1]
        self._at_commit.updated(descriptor.table_id, write.key, operation, values)

    def rest_on(self, plan: Prepared, many: Sequence[Sequence[Any]]) -> None:
        """Keep that what comes of the statement depends on the rows that it reads with each of
        these values: they are to be at COMMIT as it has seen them."""
        for part in plan.plans:
            if part.visits is not None and part.visits.locks and self.held:
                self.rests_on_locks = True  # it shows more rows behind a lock
            for values in many if part.reads.places else many[:1]:
                for read in _keys_read(part, values):
                    self._at_commit.read(read.table_id, read.prefix if read.whole else None)
            if part.write is not None and part.write.there:
                self._at_commit.read(part.write.bound.descriptor.table_id, None)

    def show(self, plan: Prepared, values: Sequence[Any]) -> None:
        """Keep what the transaction rests on once a query has shown its rows."""
        if plan.visits is not None:
            self.rest_on(plan, (values,))
        if _shows_shared(plan):
            self._at_commit.shown()

    def hold_back(self, plan: Prepared, many: Sequence[Sequence[Any]], written: Written) -> None:
        """Keep that a statement that writes was run behind the updates so far. ⚠ Where it rests on
        rows that COMMIT does not verify, those updates are what keeps others from them."""
        if not self._at_commit:
            return
        for part, found in zip(plan.plans, written.parts, strict=True):
            if not _is_verified(part, many, found):
                self._at_commit.shown()

    def add_shown(self, plan: Prepared, values: Sequence[Any], own: frozenset[int]) -> None:
        """Keep what a plain query shows of rows that this transaction has written: it is what is
        committed, or nothing is. They are verified, and compared in a replay. Others may be shown
        otherwise by a later statement anyway. From serializable up all rows are compared. `own`:
        ids of its tables, where it sees what it has written."""
        isolation = self._isolation
        if not isolation.replays or isolation.verifies_reads or not self.steps:
            return
        if not own or own.isdisjoint(table.table_id for table in plan.tables.values()):
            return
        step = self.steps[-1]
        for read in _keys_read(plan, values):
            if read.table_id not in own or (step.seen is not None and read in step.seen):
                continue
            digest = self.digest_own(read)
            if digest:
                step.seen = step.seen or {}
                step.seen[read] = digest

    def digest_own(self, read: KeysRead) -> bytes:
        """Return a digest of what it has written there, which a query shows now; b"": nothing."""
        return self._pending.digest(read.table_id, read.prefix, whole=read.whole)

    def add_error(self) -> None:
        """Keep that a statement has failed and it goes on: it has to fail again (T2)."""
        self._at_commit.nothing()

    def operations(self, made: Sequence[Operation]) -> tuple[Operation, ...]:
        """Return the operations of the write set, as the master may be asked for them."""
        return self._at_commit.operations(made)


def _shows_shared(plan: Prepared) -> bool:
    """Return whether rows are shown that other sessions might change."""
    if plan.explain:
        return False
    return any(not table.temporary and table.sequence is None for table in plan.tables.values())


def _is_verified(part: Prepared, many: Sequence[Sequence[Any]], found: Written) -> bool:
    """Return whether COMMIT verifies all that a part of a statement rests on: the rows that it
    writes, if it has looked for those by their keys and for no others."""
    write = part.write
    if write is None:
        return not part.reads.table_ids
    table_id = write.bound.descriptor.table_id
    keys = {each.key for each in found.writes}
    for values in many if part.reads.places else many[:1]:
        for read in _keys_read(part, values):
            if read.table_id != table_id or not read.whole or read.prefix not in keys:
                return False
    return len(found.sought) <= len(found.writes)  # ON CONFLICT has left none alone


def _keys_read(plan: Prepared, values: Sequence[Any]) -> Iterator[KeysRead]:
    widths = {table.table_id: len(table.primary_key) for table in plan.tables.values()}
    for read in plan.reads.of(values) if plan.reads.places else ():
        prefix = read.prefix if read.index_id == PRIMARY else ()
        yield KeysRead(read.table_id, prefix, len(prefix) == widths[read.table_id])
    for lookup in plan.reads.lookups:
        yield KeysRead(lookup.table_id, (), whole=False)
