"""Who waits for a request's outcome, and is told to end while it does."""

from __future__ import annotations

from threading import Event, Lock

import pytest

from leasehold.client.pending import Pending, RequestStatus
from leasehold.model.errors import OutcomeUnknown, QueryCanceled
from leasehold.model.records.requests import OnConflict, Outcome

DONE = Outcome(1, 7, 0, 0, True)


@pytest.fixture
def lock() -> Lock:
    return Lock()


@pytest.fixture
def pending(lock: Lock) -> Pending:
    return Pending(b"\1" * 16, "", b"", OnConflict.FAIL, 1, lock, lambda _: None)


def test_an_outcome_that_is_there_is_given_though_he_was_told_to_end(
    pending: Pending, lock: Lock
) -> None:
    with lock:
        pending.settle(RequestStatus.COMMITTED, DONE)
    assert pending.result_unless(lambda: True, 5.0) is DONE


def test_who_is_told_to_end_hears_nothing_and_the_outcome_stays(
    pending: Pending, lock: Lock
) -> None:
    with pytest.raises(QueryCanceled):
        pending.result_unless(lambda: True, 5.0)
    with lock:
        pending.settle(RequestStatus.COMMITTED, DONE)
    assert pending.result(0.0) is DONE


def test_no_answer_in_time_is_an_unknown_outcome(pending: Pending) -> None:
    with pytest.raises(OutcomeUnknown, match=r"no answer in 0\.01 s"):
        pending.result_unless(lambda: False, 0.01)


def test_an_outcome_that_comes_meanwhile(pending: Pending, lock: Lock) -> None:
    looked = Event()

    def stopped() -> bool:
        if not looked.is_set():
            looked.set()
            with lock:
                pending.settle(RequestStatus.COMMITTED, DONE)
        return False

    assert pending.result_unless(stopped, 5.0) is DONE
