"""Statements about roles and privileges, names not yet resolved; made by `ddl/roles.py` and
`ddl/grants.py`, carried out by `schema_change/plan/roles.py`.

`position` counts characters from 1.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, TypeAlias


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
    PostgreSQL only remarks upon. `revokes_key`: of its change requests."""

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


@dataclass(frozen=True, slots=True)
class CreateRole:
    name: str
    options: RoleOptions
    position: int = 1


@dataclass(frozen=True, slots=True)
class AlterRole:
    role: RoleNamed
    options: RoleOptions


@dataclass(frozen=True, slots=True)
class RenameRole:
    name: str
    to: str
    position: int = 1


@dataclass(frozen=True, slots=True)
class DropRole:
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


@dataclass(frozen=True, slots=True)
class PrivilegeNamed:
    """A privilege by its word, in lower case, "" = ALL; `columns`: of those alone, () = of all of
    the object."""

    word: str
    columns: tuple[str, ...] = ()
    position: int = 1


@dataclass(frozen=True, slots=True)
class ObjectNamed:
    name: str
    position: int = 1


@dataclass(frozen=True, slots=True)
class GrantPrivileges:
    """GRANT and REVOKE of privileges. `objects`: names of the kind, or with `all_in_schema` none:
    all tables or sequences."""

    is_grant: bool
    kind: Literal["table", "sequence", "database", "schema"]
    objects: tuple[ObjectNamed, ...]
    privileges: tuple[PrivilegeNamed, ...]
    grantees: tuple[RoleNamed, ...]
    option: bool = False
    cascade: bool = False
    all_in_schema: bool = False
    grantor: RoleNamed | None = None


@dataclass(frozen=True, slots=True)
class ChangeOwner:
    """ALTER TABLE or SEQUENCE … OWNER TO role."""

    kind: Literal["table", "sequence"]
    object: ObjectNamed
    owner: RoleNamed
    if_exists: bool = False


@dataclass(frozen=True, slots=True)
class ReassignOwned:
    roles: tuple[RoleNamed, ...]
    to: RoleNamed


@dataclass(frozen=True, slots=True)
class DropOwned:
    roles: tuple[RoleNamed, ...]
    cascade: bool = False


RoleStatement: TypeAlias = (
    CreateRole
    | AlterRole
    | RenameRole
    | DropRole
    | GrantRole
    | GrantPrivileges
    | ChangeOwner
    | ReassignOwned
    | DropOwned
)
