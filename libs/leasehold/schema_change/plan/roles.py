"""What statements about roles do to `Access`: PostgreSQL 15's rules, words and errors
(`commands/user.c`).

Nothing here is a job: no reader rests on an old version of who may do what, so a change is one
commit, and in force at each node when that has applied it.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Final, NamedTuple

from leasehold.catalog.access import DATABASE, Access
from leasehold.catalog.catalog import Catalog
from leasehold.catalog.descriptor import Descriptor
from leasehold.catalog.privileges import mentioned_roles
from leasehold.catalog.roles import (
    BOOTSTRAP_ROLE,
    MEMBERSHIPS_MAX,
    PUBLIC,
    RESERVED_PREFIXES,
    ROLES_FROM,
    ROLES_MAX,
    UNLIMITED,
    Role,
)
from leasehold.catalog.view import is_view_id
from leasehold.model.errors import (
    DependentObjects,
    DuplicateRole,
    FeatureNotSupported,
    InsufficientPrivilege,
    InvalidArgument,
    OutOfRange,
    ReservedName,
    RoleInUse,
    UnknownRole,
)
from leasehold.model.ids import is_sequence_id
from leasehold.sql.syntax.roles.role_statements import (
    AlterRole,
    CreateRole,
    DropRole,
    GrantRole,
    RenameRole,
    RoleNamed,
    RoleOptions,
)

DATABASE_NAME: Final = "leasehold"
"""How errors call the database: whoever decides does not know by what name clients do."""
LISTED_MAX: Final = 100
"""Objects that an error names, as in PostgreSQL."""


class Remark(NamedTuple):
    """A notice or a warning that the session tells."""

    severity: str
    code: str
    words: str


NOTICE: Final = ("NOTICE", "00000")
WARNING: Final = ("WARNING", "01000")


def remark_not_kept(setting: str) -> Remark:
    """Return the remark that a setting which sessions were to begin with is not kept."""
    words = "is not kept for sessions to begin with: each says it by SET, or in its options"
    return Remark(*WARNING, f'setting "{setting:.80}" {words}')


class AccessChanged(NamedTuple):
    access: Access
    remarks: tuple[Remark, ...] = ()


def role_id_of(access: Access, named: RoleNamed, actor: int) -> int:
    """Return the role that a statement of `actor` names, PUBLIC included. Raises UnknownRole."""
    if named.is_public:
        return PUBLIC
    if named.is_actor:
        return actor
    found = access.roles.find(named.name)
    if found is None:
        raise UnknownRole(f'role "{named.name}" does not exist', position=named.position)
    return found.role_id


def role_of(access: Access, named: RoleNamed, actor: int) -> Role:
    """Return the role, which PUBLIC is none. Raises UnknownRole."""
    role_id = role_id_of(access, named, actor)
    if role_id == PUBLIC:
        raise UnknownRole('role "public" does not exist', position=named.position)
    return access.roles.by_id[role_id]


class RoleChanges:
    """The changes of one statement by `actor`; `access` is as they leave it."""

    def __init__(self, catalog: Catalog, actor: int) -> None:
        self._catalog = catalog
        self._actor = actor
        self.access = catalog.access
        self.remarks: list[Remark] = []

    @property
    def _me(self) -> Role:
        return self.access.roles.by_id[self._actor]

    @property
    def _is_superuser(self) -> bool:
        return self.access.roles.is_superuser(self._actor)

    @property
    def _may_create_roles(self) -> bool:
        return self._is_superuser or self._me.may_create_roles

    def remark(self, kind: tuple[str, str], words: str) -> None:
        self.remarks.append(Remark(*kind, words))

    # ------------------------------------------------------------ CREATE, ALTER, RENAME

    def create(self, said: CreateRole) -> None:
        options, roles = said.options, self.access.roles
        self._remark_options(options)
        if options.superuser and not self._is_superuser:
            raise InsufficientPrivilege("must be superuser to create superusers")
        if not self._may_create_roles:
            raise InsufficientPrivilege("permission denied to create role")
        self._check_free(said.name, said.position)
        if len(roles.by_id) >= ROLES_MAX:
            raise OutOfRange(f"a database has at most {ROLES_MAX} roles")
        made = _with_options(Role(self.access.next_role_id, said.name), options)
        self.access = self.access.with_roles(roles.with_role(made))
        for group in options.groups:
            self._grant(role_of(self.access, group, self._actor), (made,), admin=False)
        self._grant(made, self._roles(options.members), admin=False, own=True)
        self._grant(made, self._roles(options.admins), admin=True, own=True)

    def alter(self, said: AlterRole) -> None:
        options = said.options
        self._remark_options(options)
        if options.groups or options.admins or options.members or options.numbered:
            raise FeatureNotSupported("ALTER ROLE changes no memberships: GRANT and REVOKE do")
        role = role_of(self.access, said.role, self._actor)
        self._check_not_reserved(role.name, "Cannot alter reserved roles.")
        if role.superuser or options.superuser is not None:
            if not self._is_superuser:
                raise InsufficientPrivilege(
                    "must be superuser to alter superuser roles or change superuser attribute"
                )
        elif not self._may_create_roles:
            own_password = RoleOptions(
                password=options.password, empty_password=options.empty_password
            )
            own = options == own_password and options.password is not None
            own |= options in (
                RoleOptions(revokes_key=True),
                RoleOptions(search_path=options.search_path, not_kept=options.not_kept),
            )
            if role != self._me or not own:
                raise InsufficientPrivilege("permission denied")
        if role.role_id == BOOTSTRAP_ROLE and options.superuser is False:
            raise FeatureNotSupported(
                "permission denied to alter role",
                detail="The bootstrap user must have the SUPERUSER attribute.",
            )
        self._put(_with_options(role, options))

    def rename(self, said: RenameRole) -> None:
        named = RoleNamed(said.name, position=said.position)
        role = role_of(self.access, named, self._actor)
        if role.role_id == self._actor:
            raise FeatureNotSupported("session user cannot be renamed", position=said.position)
        self._check_not_reserved(role.name)
        self._check_free(said.to, said.position)
        if role.superuser and not self._is_superuser:
            raise InsufficientPrivilege("must be superuser to rename superusers")
        if not self._may_create_roles:
            raise InsufficientPrivilege("permission denied to rename role")
        self._put(role._replace(name=said.to))

    def _put(self, role: Role) -> None:
        self.access = self.access.with_roles(self.access.roles.with_role(role))

    def _check_free(self, name: str, position: int) -> None:
        """Raise ReservedName (42939), DuplicateRole (42710)."""
        self._check_not_reserved(name)
        if self.access.roles.find(name) is not None:
            raise DuplicateRole(f'role "{name}" already exists', position=position)

    def _check_not_reserved(self, name: str, detail: str = "") -> None:
        for prefix in RESERVED_PREFIXES:
            if name.startswith(prefix):
                words = detail or f'Role names starting with "{prefix}" are reserved.'
                raise ReservedName(f'role name "{name}" is reserved', detail=words)

    def _remark_options(self, options: RoleOptions) -> None:
        if options.numbered:
            self.remark(NOTICE, "SYSID can no longer be specified")
        if options.empty_password:
            self.remark(NOTICE, "empty string is not a valid password, clearing password")
        if options.not_kept:
            self.remarks.append(remark_not_kept(options.not_kept))

    # ------------------------------------------------------------ DROP

    def drop(self, said: DropRole) -> None:
        if not self._may_create_roles:
            raise InsufficientPrivilege("permission denied to drop role")
        for named in said.roles:
            if named.is_actor or named.is_public:
                raise InvalidArgument(
                    "cannot use special role specifier in DROP ROLE", position=named.position
                )
            role = self.access.roles.find(named.name)
            if role is None:
                words = f'role "{named.name}" does not exist'
                if not said.if_exists:
                    raise UnknownRole(words, position=named.position)
                self.remark(NOTICE, f"{words}, skipping")
                continue
            self._check_droppable(role)
            self.access = self.access.with_roles(self.access.roles.without_role(role.role_id))

    def _check_droppable(self, role: Role) -> None:
        if role.role_id == self._actor:
            raise RoleInUse("current user cannot be dropped")
        if role.superuser and not self._is_superuser:
            raise InsufficientPrivilege("must be superuser to drop superusers")
        if role.role_id < ROLES_FROM:
            raise DependentObjects(
                f"cannot drop role {role.name} because it is required by the database system"
            )
        found = describe_dependents(self._catalog, self.access, role.role_id)
        if found:
            shown = found[:LISTED_MAX]
            if len(found) > LISTED_MAX:
                shown.append(f"and {len(found) - LISTED_MAX} other objects")
            raise DependentObjects(
                f'role "{role.name}" cannot be dropped because some objects depend on it',
                detail="\n".join(shown),
            )

    # ------------------------------------------------------------ memberships

    def grant(self, said: GrantRole) -> None:
        """GRANT and REVOKE of roles."""
        if said.alters:
            for named in said.roles:
                self._check_may_alter(role_of(self.access, named, self._actor))
        members = self._roles(said.members)
        if said.grantor is not None:
            grantor = role_of(self.access, said.grantor, self._actor)
            if grantor.role_id != self._actor:
                raise FeatureNotSupported(
                    "GRANTED BY another role than the current one is not supported",
                    position=said.grantor.position,
                )
        for named in said.roles:
            role = role_of(self.access, named, self._actor)
            if said.is_grant:
                self._grant(role, members, admin=said.admin)
            else:
                self._revoke(role, members, admin_only=said.admin)

    def _check_may_alter(self, group: Role) -> None:
        """Check that members of a role may be said by ALTER GROUP."""
        self._check_not_reserved(group.name, "Cannot alter reserved roles.")
        if group.superuser and not self._is_superuser:
            raise InsufficientPrivilege(
                "must be superuser to alter superuser roles or change superuser attribute"
            )
        if not self._may_create_roles:
            raise InsufficientPrivilege("permission denied")

    def _roles(self, named: Iterable[RoleNamed]) -> tuple[Role, ...]:
        return tuple(role_of(self.access, each, self._actor) for each in named)

    def _grant(
        self, role: Role, members: tuple[Role, ...], *, admin: bool, own: bool = False
    ) -> None:
        """Make members of a role. `own`: whoever makes a role may say so of it."""
        actor = BOOTSTRAP_ROLE if own and self._may_create_roles else self._actor
        for member in members:
            before = self.access.roles.memberships.get((role.role_id, member.role_id))
            roles = self.access.roles.grant(actor, role.role_id, member.role_id, admin=admin)
            if before is not None and (before.admin or not admin):
                words = f'role "{member.name}" is already a member of role "{role.name}"'
                self.remark(NOTICE, words)
                continue
            made = roles.memberships[role.role_id, member.role_id]
            roles = roles.with_membership(made._replace(grantor=self._actor))
            if len(roles.memberships) > MEMBERSHIPS_MAX:
                raise OutOfRange(f"a database has at most {MEMBERSHIPS_MAX} memberships")
            self.access = self.access.with_roles(roles)

    def _revoke(self, role: Role, members: tuple[Role, ...], *, admin_only: bool) -> None:
        for member in members:
            there = (role.role_id, member.role_id) in self.access.roles.memberships
            roles = self.access.roles.revoke(
                self._actor, role.role_id, member.role_id, admin_only=admin_only
            )
            if not there:
                words = f'role "{member.name}" is not a member of role "{role.name}"'
                self.remark(WARNING, words)
            self.access = self.access.with_roles(roles)


def _with_options(role: Role, options: RoleOptions) -> Role:
    changed: dict[str, Any] = {
        name: value
        for name in (
            *("superuser", "inherits", "may_create_roles", "may_create_databases"),
            *("may_log_in", "connections_max", "valid_until_us", "search_path"),
        )
        if (value := getattr(options, name)) is not None
    }
    if options.password is not None:
        changed["verifier"] = options.password
    if options.revokes_key:
        changed["keys_revoked"] = role.keys_revoked + 1
    made = role._replace(**changed)
    return made if made.connections_max >= 0 else made._replace(connections_max=UNLIMITED)


# ------------------------------------------------------------------ what depends on a role


def describe_dependents(catalog: Catalog, access: Access, role_id: int) -> list[str]:
    """Return what keeps a role from being dropped, in PostgreSQL's words, by name of object."""
    tables = {table.table_id: table for table in catalog.tables()}
    tables |= {view.table_id: view.relation for view in access.views.values()}
    found: dict[str, None] = {}
    for object_id, element_id in sorted(access.depending_on(role_id)):
        words = _object_words(tables, object_id, element_id)
        if object_id in access.enums:
            words = f"type {access.enums[object_id].name}"
        elif object_id in access.namespaces:
            words = f"schema {access.namespaces[object_id].name}"
        if not words:
            continue  # it is gone
        if not element_id and access.owner_of(object_id) == role_id:
            found[f"owner of {words}"] = None
        acl = access.recorded_acl(object_id, element_id) or ()
        owns = access.owner_of(object_id) == role_id
        if not owns and role_id in mentioned_roles(acl):
            found[f"privileges for {words}"] = None
    return list(found)


def _object_words(tables: dict[int, Descriptor], object_id: int, element_id: int) -> str:
    if object_id == DATABASE:
        return f"database {DATABASE_NAME}"
    table = tables.get(object_id)
    if table is None:
        return ""
    kind = "sequence" if is_sequence_id(object_id) else "table"
    name = f"{'view' if is_view_id(object_id) else kind} {table.name}"
    if not element_id:
        return name
    column = table.by_id.get(element_id)
    return "" if column is None else f"column {column.name} of {name}"
