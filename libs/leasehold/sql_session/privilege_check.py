"""Whether the role of a session may run a plan: looked at before each time that it runs."""

from __future__ import annotations

from typing import Final

from leasehold.catalog.access import Access, check_privilege
from leasehold.catalog.descriptor import TEMPORARY_FROM
from leasehold.catalog.roles import BOOTSTRAP_ROLE
from leasehold.sql.planning.plan import Prepared

PLANS_KEPT_MAX: Final = 1_000


class PrivilegeCheck:
    """The check of one session. What it has allowed is kept for as long as nobody's privileges
    change and the session acts as the same role."""

    def __init__(self) -> None:
        self._role_id = BOOTSTRAP_ROLE
        self._access: Access | None = None
        self._allowed: dict[int, Prepared] = {}

    def check(self, plan: Prepared, access: Access, role_id: int) -> None:
        """Check that the role may run the plan. Raises InsufficientPrivilege (42501) in
        PostgreSQL's words."""
        if access is not self._access or role_id != self._role_id:
            self._access, self._role_id = access, role_id
            self._allowed.clear()
        if self._allowed.get(id(plan)) is plan:
            return
        for table_id, name, privilege, columns, of_view in plan.needs:
            if table_id >= TEMPORARY_FROM:  # the session's own
                continue
            who = access.owner_of(of_view) if of_view else role_id
            if not of_view:
                access.check_may_use(role_id, name)
            check_privilege(access, who, "table", table_id, columns, privilege, name)
        if len(self._allowed) >= PLANS_KEPT_MAX:
            self._allowed.clear()
        self._allowed[id(plan)] = plan
