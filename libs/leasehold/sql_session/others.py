"""What a session may see and do of others: their statements, their end, jobs, dead letters, in
PostgreSQL's rules where it has such things (`storage/ipc/signalfuncs.c`, `pgstatfuncs.c`)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from leasehold.catalog.access import Access, check_group
from leasehold.catalog.roles import (
    BOOTSTRAP_ROLE,
    READ_ALL_STATS,
    READ_DEAD_LETTERS,
    SIGNAL_BACKEND,
    STEER_JOBS,
)
from leasehold.model.errors import InsufficientPrivilege
from leasehold.sql_session.session_role import SessionRole

HIDDEN: Final = "<insufficient privilege>"
_OF_OTHERS: Final[Mapping[str, Any]] = {
    "sql": HIDDEN,
    "error": HIDDEN,
    "findings": "[]",
    "blockers": "[]",
    "work": None,
}
"""Columns of jobs and leases that tell of statements and rows, and what stands there instead."""
_OF_SIGNALS: Final[Mapping[str, tuple[str, str, str]]] = {
    "cancel_session": ("cancel", "query", "whose query is being canceled"),
    "end_session": ("terminate", "process", "whose process is being terminated"),
}


class Others:
    """The rights of one session's role over what others do."""

    def __init__(self, role: SessionRole) -> None:
        self._role = role

    @property
    def _access(self) -> Access:
        return self._role.access

    @property
    def sees_all(self) -> bool:
        """Whether it sees what all sessions do."""
        return self._has(READ_ALL_STATS)

    def sees(self, role_id: int) -> bool:
        """Return whether it sees what a session of that role does."""
        return self.sees_all or self._has(role_id)

    def _has(self, other: int) -> bool:
        mine = self._role.role_id
        return mine == BOOTSTRAP_ROLE or self._access.roles.has_privileges_of(mine, other)

    def check_signals(self, action: str, role_id: int) -> None:
        """Check that it may cancel or end a session of that role. Raises InsufficientPrivilege
        (42501)."""
        verb, what, whose = _OF_SIGNALS[action]
        roles = self._access.roles
        if roles.is_superuser(role_id) and not roles.is_superuser(self._role.role_id):
            raise InsufficientPrivilege(f"must be a superuser to {verb} superuser {what}")
        if not (self._has(role_id) or self._has(SIGNAL_BACKEND)):
            raise InsufficientPrivilege(
                f"must be a member of the role {whose} or member of pg_signal_backend"
            )

    def check_steers(self, table_id: int) -> None:
        """Check that it may steer a job on a table: its owner may. Raises InsufficientPrivilege
        (42501)."""
        if not self._access.is_owner(self._role.role_id, table_id):
            check_group(self._access, self._role.role_id, STEER_JOBS, "steer jobs")

    def shown(self, row: Mapping[str, Any]) -> Mapping[str, Any]:
        """Return a row of the schema `leasehold` without what others have said, and which of their
        rows a job has found: of a table's jobs its owner sees all."""
        if not row.keys() & _OF_OTHERS.keys() or self.sees_all or self._has(STEER_JOBS):
            return row
        table_id = row.get("table_id")
        if table_id is not None and self._access.is_owner(self._role.role_id, table_id):
            return row
        return {**row, **{name: hides for name, hides in _OF_OTHERS.items() if row.get(name)}}

    def check_settings(self) -> None:
        """Check that it may read a node's settings. Raises InsufficientPrivilege (42501)."""
        check_group(self._access, self._role.role_id, READ_ALL_STATS, "read settings of a node")

    def reads_letter(self, principal: str) -> bool:
        """Return whether it may read a dead letter of `principal`: others' only with a role for
        it."""
        if self._has(READ_DEAD_LETTERS):
            return True
        return bool(principal) and principal == self._role.asks_as.principal
