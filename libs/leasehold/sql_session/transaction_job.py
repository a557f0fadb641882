"""COMMIT of a transaction that changes tables which were there: its job first, as far as that can
be undone, then its rows, with which the job passes its point of no return.

The master keeps both together. If this session ends between, the job is turned back after a while.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from typing import Final

from leasehold.adapters.os.clock import new_request_id
from leasehold.catalog.job import Hold, Job
from leasehold.model.errors import LeaseholdError, OutcomeUnknown, QueryCanceled
from leasehold.model.records.requests import ChangeRequest, JobControl, Outcome
from leasehold.replica.serving_node import SqlNode
from leasehold.schema_change.plan.answers import read_jobs
from leasehold.sql_session.commit import COMMIT_TIMEOUT_S
from leasehold.sql_session.schema_changes import LOOK_S, explain_failure
from leasehold.sql_session.transaction import ReplayableTransaction

ENDS_S: Final = 2.0
"""How long a job that is turned back is waited for: it may have to wait for readers itself."""


def commit_with_job(
    transaction: ReplayableTransaction,
    node: SqlNode,
    stopped: Callable[[], bool],
    mark: Callable[[ChangeRequest], ChangeRequest],
) -> Outcome:
    """Return the outcome of the rows, with which all that the transaction says of tables is public.
    `mark` gives a request what it is to have of the session.

    Raises what the master refused with, the Refused of the job, QueryCanceled before its rows are
    sent, OutcomeUnknown. Nothing is left of a transaction that has failed.
    """
    begins = mark(transaction.job_request(new_request_id()))
    # ⚠ The job would wait for the versions that this very transaction has pinned.
    transaction.give_back_changed()
    outcome = _submit(node, begins)
    (job_id,) = read_jobs(outcome.answer)
    try:
        job = _await_ready(node, job_id, stopped)
        if job.hold is not Hold.READY:
            raise _name_statement(transaction, job, explain_failure(node, job))
        rows = mark(transaction.request_of_rows(new_request_id(), begins.id, job))
        return _submit(node, rows)
    except OutcomeUnknown:
        raise  # T5: it may be committed
    except LeaseholdError:
        _turn_back(node, begins, job_id)
        raise


def _name_statement(
    transaction: ReplayableTransaction, job: Job, error: LeaseholdError
) -> LeaseholdError:
    """Return the error with the statement of the transaction that it is of, where that is known,
    and what to do where rows of the transaction might have kept it from failing."""
    elements = [found[1] for found in job.findings]
    texts = (transaction.find_statement(job.failed_table, element) for element in elements)
    text = next(filter(None, texts), "")
    if text:
        error.detail = {**error.detail, "detail": f"Statement: {text:.500}"}
    if elements and transaction.has_written_rows_of(job.failed_table):
        hint = (
            "The rows that were there are looked through before those of this transaction are"
            " committed: where these mend them, COMMIT these first, then change the table."
        )
        error.detail = {**error.detail, "hint": hint}
    return error


def _submit(node: SqlNode, request: ChangeRequest) -> Outcome:
    outcome = node.submit(request, COMMIT_TIMEOUT_S)
    if not outcome.lsn:
        raise outcome.make_error()
    return outcome


def _await_ready(node: SqlNode, job_id: int, stopped: Callable[[], bool]) -> Job:
    """Return the job when it waits for its rows, or has ended."""

    def is_there() -> bool:
        job = node.jobs().get(job_id)
        return job is not None and (job.status.ended or (job.held and job.hold is Hold.READY))

    while not node.wait(lambda: stopped() or is_there(), LOOK_S):
        pass
    if not is_there():
        raise QueryCanceled("canceling statement due to user request")
    return node.jobs()[job_id]


def _turn_back(node: SqlNode, begins: ChangeRequest, job_id: int) -> None:
    """Ask for the job to be turned back, and wait until that is done. What can't be asked for here
    the master does by itself."""
    request = ChangeRequest(
        new_request_id(),
        control=JobControl(job_id, "cancel"),
        principal=begins.principal,
        as_role=begins.as_role,
    )

    def has_ended() -> bool:
        job = node.jobs().get(job_id)
        return job is None or job.status.ended

    with suppress(LeaseholdError):
        if not has_ended():
            node.submit(request, COMMIT_TIMEOUT_S)
            node.wait(has_ended, ENDS_S)
