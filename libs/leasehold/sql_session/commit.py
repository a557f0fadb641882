"""COMMIT of a SQL session's transaction: its write set goes to the master, and after a verify error
its statements run again, as far as that contradicts no answer (T2)."""

from __future__ import annotations

import time
from collections.abc import Callable
from contextlib import suppress
from typing import Final, Protocol

from leasehold.adapters.os.clock import new_request_id
from leasehold.adapters.sqlite.query import Limits, Rows
from leasehold.catalog.elements import CommitContext
from leasehold.client.pending import Pending, RequestStatus
from leasehold.model.errors import (
    GaveUp,
    LeaseholdError,
    NotCoherent,
    QueryCanceled,
    StaleVersion,
)
from leasehold.model.records.requests import ChangeRequest, OnConflict, Outcome
from leasehold.pgwire.session import WouldBlock
from leasehold.replica.replay_log import Contradicted, FailedAgain, Shown, Step
from leasehold.replica.serving_node import SqlNode
from leasehold.replica.sql_reads import Seen
from leasehold.sql.planning.plan import Prepared
from leasehold.sql_session.statement_log import SHOWN_MAX
from leasehold.sql_session.transaction import ReplayableTransaction, Savepoint
from leasehold.transaction.isolation import Isolation
from leasehold.transaction.replay_comparison import Answer, Told, contradiction

COMMIT_TIMEOUT_S: Final = 30.0
ENDED: Final = frozenset({"57014", "57P01"})
"""Somebody has asked for the end of what runs, or its time is over."""


class Strategy(Protocol):
    """The interface of the two ways to carry out a transaction: what its COMMIT asks of it.

    `CommitTimeUpdate` sends a statement that the master computes; `ReplayableTransaction` sends
    what its statements have come to here, and can run them again.
    """

    @property
    def isolation(self) -> Isolation: ...

    @property
    def context(self) -> CommitContext: ...

    @property
    def has_written(self) -> bool:
        """Whether there is something to be committed."""
        ...

    @property
    def begins_jobs(self) -> bool:
        """Whether something goes on after its commit."""
        ...

    def request(self, request_id: bytes, attempt: int, on_conflict: OnConflict) -> ChangeRequest:
        """Return what is to be committed. It has written."""
        ...

    def close(self) -> None:
        """Give back what it has pinned."""
        ...


class Sent:
    """A transaction's first request, which is on its way. No dataclass: one is made for every
    commit, and what those are made by runs interpreted."""

    def __init__(self, request: ChangeRequest, pending: Pending, since_s: float) -> None:
        self.request = request
        self.pending = pending
        self.since_s = since_s

    @property
    def is_committed(self) -> bool:
        outcome = self.pending.outcome
        return outcome is not None and bool(outcome.lsn)

    @property
    def waits(self) -> WouldBlock | None:
        """The wait after which, and where, `commit` would go on; None: it ends without waiting."""
        if self.pending.status is RequestStatus.WAITING:
            return WouldBlock(self.pending.when_settled, COMMIT_TIMEOUT_S, begun=True)
        outcome = self.pending.outcome
        if outcome is None or not (outcome.lsn or outcome.final):
            return WouldBlock(begun=True)
        return None

    def result(self) -> Outcome:
        """Return its outcome. Raises OutcomeUnknown when that takes COMMIT_TIMEOUT_S from its
        sending."""
        passed_s = time.monotonic() - self.since_s
        return self.pending.result(max(COMMIT_TIMEOUT_S - passed_s, 0.0), passed_s)


def first_request(transaction: Strategy, replays_max: int) -> ChangeRequest:
    """Return the first attempt of a transaction that has written."""
    replays = replays_max and transaction.isolation.replays
    on_conflict = OnConflict.REPLAY if replays else OnConflict.FAIL
    return transaction.request(new_request_id(), 1, on_conflict)


def send(node: SqlNode, request: ChangeRequest) -> Sent | None:
    """Send what is not waited for here; None: one would have to wait already for that."""
    pending = node.send(request)
    return None if pending is None else Sent(request, pending, time.monotonic())


def commit(
    transaction: ReplayableTransaction,
    node: SqlNode,
    fresh: Callable[[], ReplayableTransaction],
    *,
    replays_max: int,
    limits: Limits,
    sent: Sent | None = None,
    alone: Step | None = None,
    mark: Callable[[ChangeRequest], ChangeRequest] = lambda request: request,
) -> Outcome | None:
    """Returns when it is committed on every coherent node, with its outcome if it has written
    something. `fresh` gives a transaction of the same
    level and moment that has done nothing yet; `replays_max` 0: a verify error is the answer;
    `sent`: its first request, if that is on its way. `alone`: its only statement, a write of which
    its client was not told yet: it may come to another count, which is its `rowcount` then. `mark`
    gives a request what it is to have of the session.

    Raises what the master refused with, what that statement is refused with when it runs again,
    GaveUp (40001), OutcomeUnknown (08007), BusUnavailable.
    """
    if not transaction.isolation.replays:
        replays_max = 0
    if not transaction.has_written:
        if transaction.rests_on_locks:
            _check_locks(transaction, node, fresh, replays_max, limits)
        return None
    request = sent.request if sent else mark(first_request(transaction, replays_max))
    running, submitted = transaction, 0
    try:
        for left in range(replays_max, -1, -1):
            outcome = sent.result() if sent else node.submit(request, COMMIT_TIMEOUT_S)
            sent = None
            if outcome.lsn:
                transaction.final = running
                return outcome
            if outcome.final:
                raise outcome.make_error()
            submitted = outcome.attempt
            if left:
                node.sessions.count_replay()
                running = _rerun(transaction, running, fresh, limits, alone)
                transaction.final = running
                if not running.has_written:  # there is nothing to be done by now
                    _give_up(node, request)
                    return None
                request = mark(running.request(request.id, submitted + 1, request.on_conflict))
    except Contradicted:
        _give_up(node, request)
        raise
    except FailedAgain as failed:
        _give_up(node, request)
        raise failed.error from failed
    except LeaseholdError as error:
        if error.sqlstate in ENDED:
            # It was refused so far, and what has come of giving it up makes no difference to that.
            with suppress(LeaseholdError):
                _give_up(node, request, limits.stop)
        raise
    finally:
        if running is not transaction:
            running.close()
    _give_up(node, request)
    raise GaveUp(
        f"could not serialize access: refused {submitted} times by a verify error; others change"
        " the same rows faster than it runs"
    )


def _check_locks(
    transaction: ReplayableTransaction,
    node: SqlNode,
    fresh: Callable[[], ReplayableTransaction],
    replays_max: int,
    limits: Limits,
) -> None:
    """Check that what a transaction that has written nothing was shown behind its row locks is of
    one moment: that is so while they stand, and if it comes out the same when it runs again.

    The master is not asked: of what this node lacks nothing was shown. Raises Contradicted, GaveUp
    (40001)."""
    running = transaction
    try:
        for left in range(replays_max, -1, -1):
            if running.locks_stand():
                return
            if left:
                node.sessions.count_replay()
                running = _rerun(transaction, running, fresh, limits, None)
    finally:
        if running is not transaction:
            running.close()
    raise GaveUp(
        "could not serialize access: a row that this transaction has locked was changed since, or"
        " locked by another one that has committed"
    )


def check_told(
    transaction: ReplayableTransaction,
    fresh: Callable[[], ReplayableTransaction],
    limits: Limits,
) -> None:
    """Check that what a transaction was told so far is what it would be told now, where others have
    changed a row since that it has locked or changed. In PostgreSQL it would have waited for them,
    and then been told what is so behind them. Raises Contradicted, GaveUp (40001)."""
    if transaction.held_rows_stand():
        return
    if not transaction.isolation.replays:
        raise GaveUp(
            "could not serialize access: a row that this transaction has locked or changed was"
            " changed since"
        )
    if not transaction.log.steps:
        return
    running = fresh()
    running.sequence_values.take_over(transaction.sequence_values)
    try:
        rerun_steps(transaction.log.steps, running, limits)
    finally:
        running.close()


def _rerun(
    first: ReplayableTransaction,
    last: ReplayableTransaction,
    fresh: Callable[[], ReplayableTransaction],
    limits: Limits,
    alone: Step | None,
) -> ReplayableTransaction:
    """Return a transaction that has run all statements once more, on what is committed now.

    Raises Contradicted; or FailedAgain, where the only one was not answered yet.
    """
    # ⚠ The first one, too, before: what it had pinned nobody reads any more, and a schema change
    # would wait for it as long as conflicts go on.
    last.close()
    if first.log.shows_too_much:
        raise Contradicted(
            f"could not serialize access: more than {SHOWN_MAX} queries were answered behind rows"
            " that this transaction has locked or changed, too many to run again"
        )
    running = fresh()
    running.sequence_values.take_over(first.sequence_values)
    try:
        if alone is None:
            running.take_over_notifications(first)
            rerun_steps(first.log.steps, running, limits)
        else:
            alone.rowcount = rerun_step(running, alone, limits, answered=False).rowcount
    except BaseException:
        running.close()
        raise
    return running


def rerun_steps(steps: list[Step], running: ReplayableTransaction, limits: Limits) -> None:
    """Run the steps of a transaction in another one. Raises Contradicted where that answers
    otherwise, NotCoherent, and why it was ended."""
    wanted = {step.back for step in steps}
    marks: dict[int, Savepoint] = {}
    sent: list[Answer] = []
    again: list[Answer] = []
    for number, step in enumerate(steps):
        if limits.stop is not None and limits.stop():
            raise QueryCanceled("a transaction that runs again was ended")
        if number in wanted:
            marks[number] = running.savepoint()
        if step.asked is None:
            running.roll_back_to(marks[step.back])
        else:
            sent.append(step.answer)
            again.append(rerun_step(running, step, limits).answer)
        for read, digest in (step.seen or {}).items():
            sent.append(Answer(Told.OWN, digest))
            again.append(Answer(Told.OWN, running.log.digest_own(read)))
    why = contradiction(running.isolation, sent, again)
    if why:
        raise Contradicted(f"could not serialize access: {why}")


def rerun_step(
    running: ReplayableTransaction, step: Step, limits: Limits, *, answered: bool = True
) -> Step:
    """Run the statement of a step, and return what came of it, an error too.

    What was not answered yet runs again freely (T2): its error is raised, as FailedAgain. Raises
    NotCoherent, StaleVersion, and why it was ended.
    """
    asked = step.asked
    assert asked is not None, "a statement, and no way back"
    running.log.rewind_to(step)
    try:
        if asked.emptied:
            running.empty(asked)
            return Step(asked)
        if asked.changes:
            running.change(asked.text)
            return Step(asked)
        with running.prepared(asked.text, asked.types) as (snapshot, plan):
            if step.cursor is not None:
                return Step(asked, shown=_redeclare(running, snapshot, plan, step, limits))
            if plan.runs_whole:
                written = running.write(plan, snapshot, asked, limits)
                return Step.wrote(asked, written, plan.tag)
            rows = running.read(plan, snapshot, asked.values, limits)
            try:
                if step.shown is not None:
                    return Step(asked, shown=step.shown.again(rows.fetch, running.log.held.mark))
                for _ in rows:  # it failed, and does so where a row is computed
                    pass
                return Step(asked)
            finally:
                rows.close()
    except (NotCoherent, StaleVersion):
        raise
    except LeaseholdError as error:
        if error.sqlstate in ENDED:
            raise  # no answer of the statement's
        if not answered:
            raise FailedAgain(error) from error
        running.log.add_error()
        return Step(asked, sqlstate=error.sqlstate)


def _redeclare(
    running: ReplayableTransaction, snapshot: Seen, plan: Prepared, step: Step, limits: Limits
) -> Shown:
    found: list[Shown] = []

    def take(rows: Rows) -> None:
        assert step.cursor is not None
        found.append(step.cursor.read_again(rows))

    assert step.asked is not None
    running.read_into(plan, snapshot, step.asked.values, limits, take)
    return found[0]


def _give_up(node: SqlNode, last: ChangeRequest, stopped: Callable[[], bool] | None = None) -> None:
    """Let the master decide that it is given up (L5): asking later gets a final answer then."""
    node.submit(last.giving_up(), COMMIT_TIMEOUT_S, stopped)
