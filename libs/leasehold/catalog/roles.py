"""Roles, and who is a member of whom.

A role is a user (`login`) or a group. Members of a role may do what it may: at once where the
member inherits, else after SET ROLE. The rules are PostgreSQL 15's (`utils/adt/acl.c`).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Final, NamedTuple

from leasehold.model.errors import (
    InsufficientPrivilege,
    InvalidGrant,
    UnknownRole,
)

PUBLIC: Final = 0
"""The role id that stands for everybody; no role has it."""
BOOTSTRAP_ROLE: Final = 10
"""The id of the first role: a superuser, and the owner of what was made before there were roles."""
ROLES_FROM: Final = 16_384
"""From here on are the ids of the roles that somebody makes."""
ROLES_MAX: Final = 10_000
MEMBERSHIPS_MAX: Final = 50_000
UNLIMITED: Final = -1
READ_ALL_DATA: Final = 6_181
WRITE_ALL_DATA: Final = 6_182
MONITOR: Final = 3_373
READ_ALL_STATS: Final = 3_375
SIGNAL_BACKEND: Final = 4_200
STEER_JOBS: Final = 15_001
READ_DEAD_LETTERS: Final = 15_002
RESERVED_PREFIXES: Final = ("pg_", "leasehold_")
"""So begin the names of predefined roles alone."""


class Role(NamedTuple):
    """A user or a group. `verifier` is the SCRAM verifier of the password, "" = none.
    `connections_max`: of each node, UNLIMITED = no limit. `valid_until_us`: when the password ends,
    0 = never. `keys_revoked`: how often the key that its change requests are signed with was.
    `search_path`: what its sessions begin with, "" = the default."""

    role_id: int
    name: str
    superuser: bool = False
    inherits: bool = True
    may_create_roles: bool = False
    may_create_databases: bool = False
    may_log_in: bool = False
    connections_max: int = UNLIMITED
    verifier: str = ""
    valid_until_us: int = 0
    keys_revoked: int = 0
    search_path: str = ""

    @property
    def key_number(self) -> str:
        """The number that its key is derived with (`model/signatures.py`): that of no other role
        which has or had its name, nor of a key that was revoked."""
        return f"{self.role_id}.{self.keys_revoked}"

    def to_wire(self) -> dict[str, Any]:
        """Return its body: the name, and what is not as by default."""
        body: dict[str, Any] = {"name": self.name}
        for name in _ATTRIBUTES:
            value = getattr(self, name)
            if value != self._field_defaults[name]:
                body[name] = value
        return body

    @classmethod
    def from_wire(cls, role_id: int, body: Mapping[str, Any]) -> Role:
        """Return the role of a body; names that it does not know are passed over."""
        return cls(role_id, body["name"], **{n: body[n] for n in _ATTRIBUTES if n in body})


_ATTRIBUTES: Final = Role._fields[2:]


class Membership(NamedTuple):
    """A membership: `member` may do what `role` may; with `admin` it may let others in, too."""

    role: int
    member: int
    grantor: int
    admin: bool = False

    def to_wire(self) -> dict[str, Any]:
        return {"grantor": self.grantor, "admin": self.admin}

    @classmethod
    def from_wire(cls, role: int, member: int, body: Mapping[str, Any]) -> Membership:
        return cls(role, member, body["grantor"], body["admin"])


PREDEFINED_ROLES: Final = (
    Role(MONITOR, "pg_monitor"),
    Role(READ_ALL_STATS, "pg_read_all_stats"),
    Role(SIGNAL_BACKEND, "pg_signal_backend"),
    Role(READ_ALL_DATA, "pg_read_all_data"),
    Role(WRITE_ALL_DATA, "pg_write_all_data"),
    Role(STEER_JOBS, "leasehold_steer_jobs"),
    Role(READ_DEAD_LETTERS, "leasehold_read_dead_letters"),
)
"""The roles whose members may do what no privilege on an object says. PostgreSQL's have its ids."""
FIRST_ROLE: Final = Role(
    BOOTSTRAP_ROLE,
    "leasehold",
    superuser=True,
    may_create_roles=True,
    may_create_databases=True,
    may_log_in=True,
)


class Roles:
    """All roles and memberships of a database. Unchangeable; changes give another one."""

    def __init__(self, roles: Iterable[Role] = (), memberships: Iterable[Membership] = ()) -> None:
        self.by_id: Mapping[int, Role] = {role.role_id: role for role in roles}
        self.memberships: Mapping[tuple[int, int], Membership] = {
            (each.role, each.member): each for each in memberships
        }
        self._by_name = {role.name: role for role in self.by_id.values()}
        self._parents: dict[int, list[int]] = {}
        for role, member in sorted(self.memberships):
            self._parents.setdefault(member, []).append(role)

    @classmethod
    def at_first(cls) -> Roles:
        """Return the roles of a database in which nobody has made any."""
        monitors = Membership(READ_ALL_STATS, MONITOR, BOOTSTRAP_ROLE)
        return cls((FIRST_ROLE, *PREDEFINED_ROLES), (monitors,))

    def named(self, name: str) -> Role:
        """Return the role of that name. Raises UnknownRole (42704)."""
        found = self._by_name.get(name)
        if found is None:
            raise UnknownRole(f'role "{name}" does not exist')
        return found

    def find(self, name: str) -> Role | None:
        """Return the role of that name, None for none."""
        return self._by_name.get(name)

    def name_of(self, role: int) -> str:
        """Return a role's name; of one that is gone, which an old list may name, its number."""
        found = self.by_id.get(role)
        return str(role) if found is None else found.name

    def is_superuser(self, role: int) -> bool:
        """Return whether nothing is forbidden to the role."""
        if role == BOOTSTRAP_ROLE:
            return True
        found = self.by_id.get(role)
        return found is not None and found.superuser

    def whose_privileges(self, role: int) -> tuple[int, ...]:
        """Return the roles whose privileges `role` has without SET ROLE, itself first."""
        return self._above(role, inherited=True)

    def memberships_of(self, role: int) -> tuple[int, ...]:
        """Return the roles that `role` is a member of in any number of steps, itself first."""
        return self._above(role, inherited=False)

    def has_privileges_of(self, role: int, other: int) -> bool:
        """Return whether `role` may do what `other` may, without SET ROLE."""
        return role == other or self.is_superuser(role) or other in self.whose_privileges(role)

    def is_member_of(self, role: int, other: int) -> bool:
        """Return whether `role` may SET ROLE to `other`."""
        return role == other or self.is_superuser(role) or other in self.memberships_of(role)

    def may_administer(self, role: int, other: int) -> bool:
        """Return whether `role` may make members of `other`, or take them away."""
        if self.is_superuser(role):
            return True
        admins = (m.member for m in self.memberships.values() if m.role == other and m.admin)
        above = self.memberships_of(role)
        return any(admin in above for admin in admins)

    def _above(self, role: int, *, inherited: bool) -> tuple[int, ...]:
        found = [role]
        for each in found:  # grows meanwhile
            known = self.by_id.get(each)
            if inherited and known is not None and not known.inherits:
                continue
            found += [parent for parent in self._parents.get(each, ()) if parent not in found]
        return tuple(found)

    def with_role(self, role: Role) -> Roles:
        """Return these with `role` made, or in the place of the one of its id."""
        changed = {**self.by_id, role.role_id: role}
        return Roles(changed.values(), self.memberships.values())

    def without_role(self, role_id: int) -> Roles:
        """Return these without the role and its memberships. Whether anything still belongs to it
        is for the caller to see."""
        kept = (m for m in self.memberships.values() if role_id not in (m.role, m.member))
        return Roles((r for r in self.by_id.values() if r.role_id != role_id), kept)

    def with_membership(self, membership: Membership) -> Roles:
        """Return these with a membership made, or in the place of the one of the same two."""
        ids = membership.role, membership.member
        return Roles(self.by_id.values(), {**self.memberships, ids: membership}.values())

    def without_membership(self, role: int, member: int) -> Roles:
        kept = (m for ids, m in self.memberships.items() if ids != (role, member))
        return Roles(self.by_id.values(), kept)

    def grant(self, actor: int, role: int, member: int, *, admin: bool = False) -> Roles:
        """Return these with `member` in `role`, as `actor` says.

        Raises InsufficientPrivilege (42501), InvalidGrant (0LP01) where `role` is a member of
        `member` already.
        """
        self._check_administers(actor, role)
        if self.has_membership_in(role, member):
            names = self.by_id[role].name, self.by_id[member].name
            raise InvalidGrant(f'role "{names[0]}" is a member of role "{names[1]}"')
        before = self.memberships.get((role, member))
        if before is not None and (before.admin or not admin):
            return self
        return self.with_membership(Membership(role, member, actor, admin))

    def has_membership_in(self, role: int, other: int) -> bool:
        """Return whether memberships lead from `role` to `other`; that a superuser may do all the
        same does not count."""
        return other in self.memberships_of(role)

    def revoke(self, actor: int, role: int, member: int, *, admin_only: bool = False) -> Roles:
        """Return these without `member` in `role`, or with it as no administrator any more.

        Raises InsufficientPrivilege (42501).
        """
        self._check_administers(actor, role)
        before = self.memberships.get((role, member))
        if before is None:
            return self
        if admin_only:
            return self.with_membership(before._replace(admin=False))
        return self.without_membership(role, member)

    def _check_administers(self, actor: int, role: int) -> None:
        """PostgreSQL 15: who may create roles administers all of them that are no superusers."""
        target = self.by_id[role]
        if target.superuser:
            if not self.is_superuser(actor):
                raise InsufficientPrivilege("must be superuser to alter superusers")
            return
        by_right = self.is_superuser(actor) or self.by_id[actor].may_create_roles
        if not by_right and not self.may_administer(actor, role):
            raise InsufficientPrivilege(f'must have admin option on role "{target.name}"')
