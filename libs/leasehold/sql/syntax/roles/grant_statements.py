"""Statements about privileges and owners, and about the database itself, names not yet resolved;
made by `ddl/grants.py` and `ddl/role_settings.py`, carried out by `schema_change/plan/grants.py`.

`position` counts characters from 1; `tag` is what a client is told of the statement at its end.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Literal, TypeAlias

from leasehold.sql.syntax.roles.role_statements import RoleDefinition, RoleNamed


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

    @property
    def tag(self) -> str:
        return "GRANT" if self.is_grant else "REVOKE"


@dataclass(frozen=True, slots=True)
class ChangeOwner:
    """ALTER TABLE, VIEW, SEQUENCE, TYPE or SCHEMA … OWNER TO role."""

    kind: Literal["table", "view", "sequence", "type", "schema"]
    object: ObjectNamed
    owner: RoleNamed
    if_exists: bool = False

    @property
    def tag(self) -> str:
        return f"ALTER {self.kind.upper()}"


@dataclass(frozen=True, slots=True)
class ReassignOwned:
    tag: ClassVar[str] = "REASSIGN OWNED"
    roles: tuple[RoleNamed, ...]
    to: RoleNamed


@dataclass(frozen=True, slots=True)
class DropOwned:
    tag: ClassVar[str] = "DROP OWNED"
    roles: tuple[RoleNamed, ...]
    cascade: bool = False


@dataclass(frozen=True, slots=True)
class SetDatabase:
    """ALTER DATABASE … SET. `search_path`: what sessions begin with whose role has none of its own,
    "" = the default, None for `not_kept`, another setting of sessions."""

    tag: ClassVar[str] = "ALTER DATABASE"
    database: ObjectNamed
    search_path: str | None
    not_kept: str = ""


PrivilegeStatement: TypeAlias = (
    GrantPrivileges | ChangeOwner | ReassignOwned | DropOwned | SetDatabase
)
RoleStatement: TypeAlias = RoleDefinition | PrivilegeStatement
"""All that changes who may do what."""
