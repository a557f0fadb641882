"""COMMIT of a SQL session's transaction: its write set goes to the master, and after a verify error
its statements run again, as far as that contradicts no answer (T2)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from leasehold.adapters.clock import new_request_id
from leasehold.adapters.sqlite_query import Limits
from leasehold.client.serving_node import SqlNode
from leasehold.client.sql_transaction import Asked, Savepoint, SqlTransaction, Step
from leasehold.model.errors import GaveUp, LeaseholdError, NotCoherent, StaleVersion, refused
from leasehold.model.records import ChangeRequest, OnConflict
from leasehold.transaction.replayed import Answer, Told, contradiction

COMMIT_TIMEOUT_S: Final = 30.0


class Contradicted(GaveUp):
    """Run again the transaction would have answered otherwise than it did (T2)."""


def commit(
    transaction: SqlTransaction,
    node: SqlNode,
    fresh: Callable[[], SqlTransaction],
    *,
    replays_max: int,
    limits: Limits,
) -> None:
    """Returns when it is committed on every coherent node. `fresh` gives a transaction of the same
    level and moment that has done nothing yet; `replays_max` 0: a verify error is the answer.

    Raises what the master refused with, GaveUp (40001), OutcomeUnknown (08007), BusUnavailable.
    """
    if not transaction.has_written:
        return
    if not transaction.isolation.replays:
        replays_max = 0
    request_id = new_request_id()
    on_conflict = OnConflict.REPLAY if replays_max else OnConflict.FAIL
    running, submitted = transaction, 0
    try:
        for _ in range(replays_max + 1):
            request = running.request(request_id, submitted + 1, on_conflict)
            outcome = node.submit(request, COMMIT_TIMEOUT_S)
            if outcome.lsn:
                return
            if outcome.final:
                raise refused(outcome.code, outcome.message, outcome.detail)
            submitted = outcome.attempt
            running = _again(transaction, running, fresh, limits)
    except Contradicted:
        _give_up(node, request)
        raise
    finally:
        if running is not transaction:
            running.close()
    _give_up(node, request)
    raise GaveUp(
        f"could not serialize access: refused {submitted} times by a verify error; others change"
        " the same rows faster than it runs"
    )


def _again(
    first: SqlTransaction,
    last: SqlTransaction,
    fresh: Callable[[], SqlTransaction],
    limits: Limits,
) -> SqlTransaction:
    """All statements once more on what is committed now. Raises Contradicted."""
    if last is not first:
        last.close()
    running = fresh()
    try:
        run_again(first.steps, running, limits)
    except BaseException:
        running.close()
        raise
    return running


def run_again(steps: list[Step], running: SqlTransaction, limits: Limits) -> None:
    """Raises Contradicted, NotCoherent."""
    wanted = {step.back for step in steps}
    marks: dict[int, Savepoint] = {}
    sent: list[Answer] = []
    again: list[Answer] = []
    for number, step in enumerate(steps):
        if number in wanted:
            marks[number] = running.savepoint()
        if step.asked is None:
            running.roll_back_to(marks[step.back])
            continue
        sent.append(_answer(step))
        again.append(_answer(done(running, step.asked, limits)))
    why = contradiction(running.isolation, sent, again)
    if why:
        raise Contradicted(f"could not serialize access: of those that write or failed, {why}")


def done(running: SqlTransaction, asked: Asked, limits: Limits) -> Step:
    """Runs a statement; what came of it, an error too."""
    try:
        with running.prepared(asked.text, asked.types) as (snapshot, plan):
            if plan.write is None:
                for _ in running.read(plan, snapshot, asked.values, limits):
                    pass
                return Step(asked)
            return Step.wrote(asked, running.write(plan, snapshot, asked.values, limits))
    except (NotCoherent, StaleVersion):
        raise
    except LeaseholdError as error:
        return Step(asked, sqlstate=error.sqlstate)


def _answer(step: Step) -> Answer:
    """Rows that came back tell their number, too."""
    if step.sqlstate:
        return Answer(Told.ERROR, step.sqlstate)
    if step.rows:
        return Answer(Told.RETURNED, step.rows)
    return Answer(Told.COUNT, step.rowcount)


def _give_up(node: SqlNode, last: ChangeRequest) -> None:
    """L5: giving up is a decided attempt too, so that asking later gets a final answer."""
    node.submit(last.giving_up(), COMMIT_TIMEOUT_S)
