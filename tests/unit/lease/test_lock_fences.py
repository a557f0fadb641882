"""What a master knows of the advisory locks under which requests were sent (D10)."""

from __future__ import annotations

from leasehold.lease.master.lock_fences import GONE_MAX, FenceStatus, LockFences
from leasehold.lease.replies import LivenessReport, SessionStatus
from leasehold.model.records.requests import LockFence

RUN = "run-1"


def report(*sessions: int, epoch: int = 5) -> LivenessReport:
    rows = tuple(SessionStatus(session, "a", 1, 0, False) for session in sessions)
    return LivenessReport(RUN, epoch, True, True, rows)


def test_a_lock_of_this_epoch_is_held_until_its_session_is_killed() -> None:
    fences = LockFences(5)
    fence = LockFence(RUN, 7, 5)
    assert fences.judge(fence, RUN) is FenceStatus.HELD, "opened since the last look"
    fences.look(report(7))
    fences.forget([7])
    assert fences.judge(fence, RUN) is FenceStatus.LOST
    fences.look(report(7))
    assert fences.judge(fence, RUN) is FenceStatus.HELD, "it had renewed: it was not killed"


def test_a_lock_is_lost_whose_session_is_missed_in_a_look() -> None:
    """FLUSHALL takes the sessions away, and the run id stays."""
    fences = LockFences(5)
    fences.look(report(7, 8))
    fences.look(report(8))
    assert fences.judge(LockFence(RUN, 7, 5), RUN) is FenceStatus.LOST
    assert fences.judge(LockFence(RUN, 8, 5), RUN) is FenceStatus.HELD


def test_a_lock_of_another_run_is_lost() -> None:
    assert LockFences(5).judge(LockFence("run-0", 7, 5), RUN) is FenceStatus.LOST


def test_a_new_master_knows_nothing_of_earlier_locks_before_its_first_look() -> None:
    fences = LockFences(5)
    old = LockFence(RUN, 7, 4)
    fences.look(report(7, epoch=4))
    assert fences.judge(old, RUN) is FenceStatus.UNKNOWN, "another master may kill it yet"
    fences.look(report(7))
    assert fences.judge(old, RUN) is FenceStatus.HELD
    assert fences.judge(old._replace(session=9), RUN) is FenceStatus.LOST


def test_what_is_remembered_is_bounded() -> None:
    fences = LockFences(5)
    fences.forget(range(1, GONE_MAX + 2))
    assert fences.judge(LockFence(RUN, 2, 5), RUN) is FenceStatus.LOST
    assert fences.judge(LockFence(RUN, 1, 5), RUN) is FenceStatus.HELD
