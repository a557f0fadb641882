"""The one place that is told who came, who was refused, who left.

Lines are limited, so that nobody fills a disk by guessing or by connecting again and again; what is
left out is counted, and said with the next line. The audit log gets every log-in, and failures as
the lines are.
"""

from __future__ import annotations

import logging
from time import monotonic
from typing import Final

from leasehold.model.audit import Audited, AuditEvent, AuditLog
from leasehold.model.errors import LeaseholdError

LOG: Final = logging.getLogger("leasehold.login")
LINES_PER_S: Final = 5.0
LINES_AT_ONCE_MAX: Final = 100.0
NAME_CHARACTERS_MAX: Final = 63


class _Allowance:
    """How many lines of one kind may be written now."""

    def __init__(self) -> None:
        self._left = LINES_AT_ONCE_MAX
        self._counted_s = monotonic()
        self._left_out = 0

    def take(self) -> int:
        """Return how many this one is told for: those left out before, and itself; 0: it is left
        out."""
        now_s = monotonic()
        more = (now_s - self._counted_s) * LINES_PER_S
        self._left = min(self._left + more, LINES_AT_ONCE_MAX)
        self._counted_s = now_s
        self._left_out += 1
        if self._left < 1.0:
            return 0
        self._left -= 1.0
        times, self._left_out = self._left_out, 0
        return times


class LoginLog:
    """Called on the listener's loop. Names are those that clients give: quoted and cut."""

    def __init__(self, audit: AuditLog) -> None:
        self._audit = audit
        self._admitted = _Allowance()
        self._refused = _Allowance()

    def admitted(self, process: int, user: str, database: str, address: str, how: str) -> None:
        """Note that somebody was let in. `how`: by what he has shown who he is. Raises
        AuditUnavailable: then he is not."""
        self._audit.record(
            AuditEvent(Audited.LOG_IN, user=user, address=address, subject=database, words=how)
        )
        if times := self._admitted.take():
            LOG.info(
                "connection %d: user %s from %s was let in to %s (%s)%s",
                process,
                _quoted(user),
                address,
                _quoted(database),
                how,
                _left_out(times),
            )

    def refused(self, user: str, address: str, why: str) -> None:
        """Note that somebody was refused. `why`: the SQLSTATE that he was told, or other words of
        ours."""
        if times := self._refused.take():
            who = f"user {_quoted(user)}" if user else "a client"
            LOG.warning("refused %s from %s: %s%s", who, address, why, _left_out(times))
            self._record(AuditEvent(Audited.FAILED_LOG_IN, why, user, "", address, times=times))

    def ended(self, process: int, user: str, address: str) -> None:
        """Note that somebody who was let in is gone."""
        self._record(AuditEvent(Audited.LOG_OUT, user=user, address=address))
        if times := self._admitted.take():
            who = _quoted(user)
            LOG.info(
                "connection %d: user %s from %s has left%s", process, who, address, _left_out(times)
            )

    def _record(self, event: AuditEvent) -> None:
        """Tell the audit log of what has happened and can't be undone."""
        try:
            self._audit.record(event)
        except LeaseholdError as error:
            LOG.error("the audit log misses a %s of %s: %s", event.kind, event.address, error)


def _quoted(name: str) -> str:
    return repr(name[:NAME_CHARACTERS_MAX])


def _left_out(times: int) -> str:
    return f" ({times - 1} more were not logged)" if times > 1 else ""
