"""What has_table_privilege and its like answer: what a role may do, in PostgreSQL's words.

A role is given by its name, its number, or not at all: the one that asks. What is nobody's gives
None, as in PostgreSQL.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Final

from leasehold.catalog.access import DATABASE
from leasehold.catalog.definitions import columns_of
from leasehold.catalog.descriptor import Descriptor
from leasehold.catalog.elements import Column
from leasehold.catalog.privileges import ALL, ObjectKind, Privilege
from leasehold.catalog.roles import BOOTSTRAP_ROLE
from leasehold.catalog.roles import PUBLIC as EVERYBODY
from leasehold.catalog.schema_names import PUBLIC
from leasehold.model.errors import InvalidArgument, UnknownColumn, UnknownRole, WrongObject
from leasehold.pgwire.wire_errors import UnknownDatabase
from leasehold.sql.system_catalog import oids
from leasehold.sql.system_catalog.names import NAMESPACES, SYSTEM_NAMES
from leasehold.sql.system_catalog.roles import may_read
from leasehold.values.letters import BLANKS, ascii_lower

if TYPE_CHECKING:
    from leasehold.sql.system_catalog.rows import SystemCatalog

_P = Privilege
_OPTION: Final = " with grant option"
_ADMIN: Final = " with admin option"
_WORDS: Final[Mapping[str, Mapping[str, Privilege]]] = {
    "table": {str(p.name).lower(): p for p in ALL["table"]},
    "column": {str(p.name).lower(): p for p in ALL["column"]},
    "sequence": {str(p.name).lower(): p for p in ALL["sequence"]},
    "database": {**{str(p.name).lower(): p for p in ALL["database"]}, "temp": _P.TEMPORARY},
    "schema": {"create": _P.CREATE, "usage": _P.USAGE},
    "tablespace": {"create": _P.CREATE},
    "type": {"usage": _P.USAGE},
    "language": {"usage": _P.USAGE},
    "function": {"execute": _P.USAGE},
}
Asked = str | int | None


class Asking:
    """The privileges that a text asks for; one of them suffices. `options`: with grant option."""

    def __init__(self, kind: str, text: str) -> None:
        """Raises InvalidArgument (22023)."""
        self.plain = self.options = _P.NONE
        for word in text.split(","):
            said = ascii_lower(word.strip(BLANKS))
            name = said.removesuffix(_OPTION).rstrip(BLANKS)
            found = _WORDS[kind].get(name)
            if found is None:
                raise InvalidArgument(f'unrecognized privilege type: "{word.strip(BLANKS):.80}"')
            if said.endswith(_OPTION):
                self.options |= found
            else:
                self.plain |= found

    def met(self, held: Privilege, options: Privilege) -> int:
        return int(bool(held & self.plain or options & self.options))


class Rights:
    """What roles may do with what there is in a database."""

    def __init__(self, catalog: SystemCatalog) -> None:
        self._catalog = catalog
        self._access = catalog.access

    def role(self, asked: Asked) -> int:
        """Return the id of a role. Raises UnknownRole (42704)."""
        if asked is None:
            return self._catalog.role_id
        if isinstance(asked, int):
            return asked
        if asked == "public":
            return EVERYBODY
        return self.named_role(asked)

    def named_role(self, name: str) -> int:
        """Return the id of a role of that name. Raises UnknownRole (42704)."""
        found = self._catalog.find_role(name)
        if found is None:
            raise UnknownRole(f'role "{name:.80}" does not exist')
        return found

    # ------------------------------------------------------------ relations

    def _relation(self, named: str | int) -> int:
        return named if isinstance(named, int) else self._catalog.names.oid("regclass", named)

    def _held(self, role: int, oid: int) -> tuple[Privilege, Privilege] | None:
        """Return what a role may do with a relation, and give on; None: there is no such one."""
        table = self._catalog.relation(oid)
        if table is not None:
            kind = self._kind(table)
            return (
                self._access.privileges(role, kind, table.table_id),
                self._access.grant_options(role, kind, table.table_id),
            )
        if not self._catalog.has_relation(oid):
            return None
        if self._access.roles.is_superuser(role):
            return ALL["table"], ALL["table"]
        name = SYSTEM_NAMES.get(oid, ("", ""))[1]
        reads = bool(name) and may_read(self._access.roles, role, name)
        return (_P.SELECT if reads else _P.NONE), _P.NONE

    @staticmethod
    def _kind(table: Descriptor) -> ObjectKind:
        return "table" if table.sequence is None else "sequence"

    def table(self, asked: Asked, named: str | int, text: str) -> int | None:
        role, oid = self.role(asked), self._relation(named)
        asking = Asking("table", text)
        held = self._held(role, oid)
        return None if held is None else asking.met(*held)

    def sequence(self, asked: Asked, named: str | int, text: str) -> int | None:
        role, oid = self.role(asked), self._relation(named)
        asking = Asking("sequence", text)
        table = self._catalog.relation(oid)
        if self._catalog.has_relation(oid) and (table is None or table.sequence is None):
            name = self._catalog.relation_name(oid)
            raise WrongObject(f'"{name}" is not a sequence', table=name)
        held = self._held(role, oid)
        return None if held is None else asking.met(*held)

    def column(self, asked: Asked, named: str | int, column: str | int, text: str) -> int | None:
        role, oid = self.role(asked), self._relation(named)
        table = self._catalog.relation(oid)
        found = None if table is None else _column(table, column)
        asking = Asking("column", text)
        held = self._held(role, oid)
        if held is None or (table is not None and found is None):
            return None
        if table is None or found is None or asking.met(*held):
            return asking.met(*held)
        ids = role, "column", table.table_id, found.element_id
        return asking.met(self._access.privileges(*ids), self._access.grant_options(*ids))  # type: ignore[arg-type]

    def any_column(self, asked: Asked, named: str | int, text: str) -> int | None:
        role, oid = self.role(asked), self._relation(named)
        asking = Asking("column", text)
        held = self._held(role, oid)
        table = self._catalog.relation(oid)
        if held is None or table is None or asking.met(*held):
            return None if held is None else asking.met(*held)
        for element in self._access.columns_with_acl(table.table_id):
            own = self._access.privileges(role, "column", table.table_id, element)
            options = self._access.grant_options(role, "column", table.table_id, element)
            if asking.met(own, options):
                return 1
        return 0

    # ------------------------------------------------------------ what is around them

    def database(self, asked: Asked, named: str | int, text: str) -> int | None:
        role = self.role(asked)
        if isinstance(named, str) and named != self._catalog.database:
            raise UnknownDatabase(f'database "{named:.80}" does not exist')
        asking = Asking("database", text)
        if isinstance(named, int) and named != oids.DATABASE:
            return None
        held = self._access.privileges(role, "database", DATABASE)
        return asking.met(held, self._access.grant_options(role, "database", DATABASE))

    def schema(self, asked: Asked, named: str | int, text: str) -> int | None:
        """All may use those that are built in. Tables are made in `public` by whom the database
        lets."""
        role = self.role(asked)
        oid = self._catalog.names.oid("regnamespace", named) if isinstance(named, str) else named
        asking = Asking("schema", text)
        made = {oids.namespace_oid(number): number for number in self._access.namespaces}
        if oid not in NAMESPACES.values() and oid not in made:
            return None
        held, options = _P.USAGE, _P.NONE
        if self._access.roles.is_superuser(role):
            held = options = _P.USAGE | _P.CREATE
        elif oid == NAMESPACES[PUBLIC]:
            held |= self._access.privileges(role, "database", DATABASE) & _P.CREATE
        elif oid in made:
            held = self._access.privileges(role, "schema", made[oid])
            options = self._access.grant_options(role, "schema", made[oid])
        return asking.met(held, options)

    def everybodys(self, kind: str, asked: Asked, named: str | int, text: str) -> int:
        """Answer of what all may use, such as a type; of a tablespace no one but superusers."""
        role = self.role(asked)
        if kind == "type" and isinstance(named, str):
            self._catalog.names.oid("regtype", named)
        asking = Asking(kind, text)
        if self._access.roles.is_superuser(role):
            return 1
        return asking.met(_P.NONE if kind == "tablespace" else _P.USAGE, _P.NONE)

    def has_role(self, asked: Asked, role: str | int, text: str) -> int:
        """pg_has_role."""
        member = self.role(asked) if asked != "public" else self.named_role("public")
        group = role if isinstance(role, int) else self.named_role(role)
        roles = self._access.roles
        answer = False
        for word in text.split(","):
            said = ascii_lower(word.strip(BLANKS))
            plain = said.removesuffix(_OPTION).removesuffix(_ADMIN)
            if plain not in ("member", "usage"):
                raise InvalidArgument(f'unrecognized privilege type: "{word.strip(BLANKS):.80}"')
            if plain != said:
                answer |= roles.may_administer(member, group)
            elif plain == "usage":
                answer |= roles.has_privileges_of(member, group)
            else:
                answer |= roles.is_member_of(member, group)
        return int(answer)

    # ------------------------------------------------------------ what information_schema shows

    def has_role_of(self, owner: int) -> bool:
        """Return whether who asks may do what the owner may."""
        role = self._catalog.role_id
        return role == BOOTSTRAP_ROLE or self._access.roles.has_privileges_of(role, owner)

    def sees(self, table: Descriptor, privileges: Privilege, *, columns: bool = True) -> bool:
        """Return whether who asks owns a table, or has one of the privileges on it, or, if
        `columns`, on a column of it."""
        role, number = self._catalog.role_id, table.table_id
        if self.has_role_of(self._access.owner_of(number)):
            return True
        if self._access.privileges(role, self._kind(table), number) & privileges:
            return True
        own = self._access.columns_with_acl(number) if columns else ()
        return any(self._access.privileges(role, "column", number, e) & privileges for e in own)

    def sees_column(self, table: Descriptor, element_id: int) -> bool:
        """Return whether who asks owns the table, or has any privilege on that column."""
        role, number = self._catalog.role_id, table.table_id
        return self.has_role_of(self._access.owner_of(number)) or bool(
            self._access.privileges(role, "column", number, element_id)
        )


def _column(table: Descriptor, named: str | int) -> Column | None:
    """Return a column by its name or number, None for a number that none has. Raises
    UnknownColumn."""
    if isinstance(named, str):
        found = table.by_name.get(named)
        if found is None:
            raise UnknownColumn(
                f'column "{named:.80}" of relation "{table.name}" does not exist', column=named
            )
        return found
    columns = columns_of(table)
    return columns[named - 1] if 0 < named <= len(columns) else None
