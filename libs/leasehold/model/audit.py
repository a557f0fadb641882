"""What the audit log is told: who came, was refused, or changed what others may do.

An event never holds a password, a key, or a value of a row: `subject` names an object, and `words`
say what became of it. Time and node are added by whoever writes it down.
"""

from __future__ import annotations

from enum import StrEnum
from typing import Final, NamedTuple, Protocol

WORDS_CHARACTERS_MAX: Final = 300
"""Of each text of an event: what a stranger sends is no longer in the audit log, whatever its
length."""


class Audited(StrEnum):
    """What an event is about."""

    LOG_IN = "log-in"
    FAILED_LOG_IN = "failed-log-in"
    LOG_OUT = "log-out"
    REFUSED = "refused"  # for lack of a privilege, or of a proof who asks
    SCHEMA = "schema"
    GRANT = "grant"
    ROLE = "role"
    JOB = "job"  # paused, resumed, cancelled, dismissed, set
    UPGRADE = "upgrade"  # finalized
    LOST = "lost"  # events of the audit log itself
    ENDED = "ended"  # a session or its statement, by another one


OK: Final = "ok"


class AuditEvent(NamedTuple):
    """An event. `user` has logged in, `role` is whose privileges counted, "" where there is none or
    it isn't known. `outcome`: OK, or the SQLSTATE of the refusal. `times`: so many of them are
    told as one."""

    kind: Audited
    outcome: str = OK
    user: str = ""
    role: str = ""
    address: str = ""
    subject: str = ""
    words: str = ""
    times: int = 1


class AuditLog(Protocol):
    """A place where events go: `adapters/audit` in practice."""

    def record(self, event: AuditEvent) -> None:
        """Take an event, from any thread; waits for no file and no broker. What finds no room is
        counted and said. Raises AuditUnavailable where no event may be lost
        (LEASEHOLD_AUDIT_REQUIRED), and then nothing may happen of which there is no trace."""
        ...


class NotAudited:
    """An `AuditLog` that keeps nothing: nobody has asked for one."""

    def record(self, event: AuditEvent) -> None:
        pass
