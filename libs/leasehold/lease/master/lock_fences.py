"""Judges whether an advisory lock under which a transaction was sent is surely still its own (D10).

A request may arrive late, when its node has lost the lock and another has it. What is known of a
lock: the run id of the ledger that has granted it, the session that holds it, and the epoch that
was registered then. Sessions die by a master's KillSession alone, or with the state of the ledger.
So of locks of this epoch those are lost whose session this master has killed, or missed in a look;
of earlier epochs those whose session it has never seen.
"""

from collections.abc import Iterable
from enum import Enum
from typing import Final

from leasehold.lease.commands import SESSIONS_MAX
from leasehold.lease.replies import LivenessReport
from leasehold.model.records.requests import LockFence

GONE_MAX: Final = 4 * SESSIONS_MAX
"""Sessions that are remembered as gone, the newest; a request of an older one has expired long
since."""


class FenceStatus(Enum):
    HELD = "held"
    LOST = "lost"
    UNKNOWN = "not known yet"


class LockFences:
    """What one mastership knows of the sessions that may hold advisory locks."""

    __slots__ = ("_epoch", "_gone", "_looked", "_present")

    def __init__(self, epoch: int) -> None:
        self._epoch = epoch
        self._looked = False  # since the epoch is registered: none dies by another master then
        self._present: frozenset[int] = frozenset()
        self._gone: dict[int, None] = {}

    def look(self, report: LivenessReport) -> None:
        """Take a look at the sessions. One before this epoch was registered says nothing."""
        if report.epoch != self._epoch:
            return
        present = frozenset(status.session for status in report.sessions)
        self.forget(self._present - present)
        for session in self._gone.keys() & present:  # it was not killed after all
            del self._gone[session]
        self._looked, self._present = True, present

    def forget(self, sessions: Iterable[int]) -> None:
        """Take sessions for gone, before the ledger is asked to kill them: until a look shows that
        they live."""
        for session in sessions:
            self._gone[session] = None
        while len(self._gone) > GONE_MAX:
            del self._gone[next(iter(self._gone))]

    def judge(self, fence: LockFence, ledger_run: str) -> FenceStatus:
        """Return where a lock stands, by the run id that the log has on record."""
        if fence.ledger_run != ledger_run or fence.session in self._gone:
            return FenceStatus.LOST
        if fence.epoch >= self._epoch or fence.session in self._present:
            return FenceStatus.HELD
        return FenceStatus.LOST if self._looked else FenceStatus.UNKNOWN
