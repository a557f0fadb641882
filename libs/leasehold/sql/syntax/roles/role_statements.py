"""Statements that make, change and grant roles, names not yet resolved; made by `ddl/roles.py`,
carried out by `schema_change/plan/roles.py`.

`position` counts characters from 1; `tag` is what a client is told of the statement at its end.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, TypeAlias


@dataclass(frozen=True, slots=True)
class RoleNamed:
    """A role as a statement names it: by its name, PUBLIC (`is_public`), or as the one who says the
    statement (`is_actor`: CURRENT_USER)."""

    name: str = ""
    is_public: bool = False
    is_actor: bool = False
    position: int = 1


@dataclass(frozen=True, slots=True)
class RoleOptions:
    """The options of CREATE and ALTER ROLE; None: not said. `password`: a SCRAM verifier, "" =
    NULL. `valid_until_us` 0: for ever. `groups`: IN ROLE. `empty_password`, `numbered`: what
    PostgreSQL only remarks upon. `revokes_key`: of its change requests. `search_path`: what its
    sessions begin with, "" = the default. `not_kept`: another setting of its sessions."""

    superuser: bool | None = None
    inherits: bool | None = None
    may_create_roles: bool | None = None
    may_create_databases: bool | None = None
    may_log_in: bool | None = None
    connections_max: int | None = None
    password: str | None = None
    valid_until_us: int | None = None
    groups: tuple[RoleNamed, ...] = ()
    members: tuple[RoleNamed, ...] = ()
    admins: tuple[RoleNamed, ...] = ()
    empty_password: bool = False
    numbered: bool = False
    revokes_key: bool = False
    search_path: str | None = None
    not_kept: str = ""


@dataclass(frozen=True, slots=True)
class CreateRole:
    tag: ClassVar[str] = "CREATE ROLE"
    name: str
    options: RoleOptions
    position: int = 1


@dataclass(frozen=True, slots=True)
class AlterRole:
    tag: ClassVar[str] = "ALTER ROLE"
    role: RoleNamed
    options: RoleOptions


@dataclass(frozen=True, slots=True)
class RenameRole:
    tag: ClassVar[str] = "ALTER ROLE"
    name: str
    to: str
    position: int = 1


@dataclass(frozen=True, slots=True)
class DropRole:
    tag: ClassVar[str] = "DROP ROLE"
    roles: tuple[RoleNamed, ...]
    if_exists: bool = False


@dataclass(frozen=True, slots=True)
class GrantRole:
    """GRANT role, … TO member, … [WITH ADMIN OPTION], and REVOKE [ADMIN OPTION FOR]. `alters`: said
    as ALTER GROUP … ADD or DROP USER."""

    roles: tuple[RoleNamed, ...]
    members: tuple[RoleNamed, ...]
    is_grant: bool
    admin: bool = False
    grantor: RoleNamed | None = None
    alters: bool = False

    @property
    def tag(self) -> str:
        if self.alters:
            return "ALTER ROLE"
        return "GRANT ROLE" if self.is_grant else "REVOKE ROLE"


RoleDefinition: TypeAlias = CreateRole | AlterRole | RenameRole | DropRole | GrantRole
