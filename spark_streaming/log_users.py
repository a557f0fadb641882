"""Whether others commit beside the jobs, told from the jobs' events alone. PURE.

LSNs are dense (L2), and every commit that moves a job, each part of a backfill too, has an event
with its LSN. So what lies between two events that follow each other was committed by users. Events
that compaction took away look like that as well: who starts in the middle of a job takes it for a
while to run beside users.
"""

from __future__ import annotations

from typing import Final, NamedTuple

from leasehold.replication.master.backfill_pacing import USERS_RECENT_MS

RECENT_US: Final = USERS_RECENT_MS * 1_000
"""By the commit times of the log (L9)."""


class LogUsers(NamedTuple):
    """The newest event (`lsn`, `commit_us`; 0: none was met), and `users_us`, the commit time of
    the newest one that had others' commits before it."""

    lsn: int = 0
    commit_us: int = 0
    users_us: int = 0

    def after(self, lsn: int, commit_us: int) -> LogUsers:
        """Return it with another event; several may be of one commit."""
        if lsn <= self.lsn:
            return self
        others = self.lsn > 0 and lsn > self.lsn + 1
        return LogUsers(lsn, commit_us, commit_us if others else self.users_us)

    @property
    def beside(self) -> bool:
        # Below 0 where the log's time was set back between the two.
        return self.users_us > 0 and 0 <= self.commit_us - self.users_us < RECENT_US
