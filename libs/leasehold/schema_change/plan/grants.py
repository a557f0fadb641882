"""What GRANT, REVOKE and changes of owners do to `Access`: PostgreSQL 15's rules, words and errors
(`catalog/aclchk.c`)."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from leasehold.catalog.access import DATABASE, ITEMS_MAX, Access, check_owner, check_privilege
from leasehold.catalog.catalog import Catalog
from leasehold.catalog.descriptor import Descriptor
from leasehold.catalog.privileges import (
    ALL,
    Acl,
    Change,
    Changed,
    ObjectKind,
    Privilege,
    change_acl,
    with_owner,
    without_role,
)
from leasehold.catalog.roles import ROLES_FROM, Role
from leasehold.catalog.schema_names import PUBLIC as PUBLIC_SCHEMA
from leasehold.catalog.sequence_ownership import find_sequence, list_own_sequences
from leasehold.catalog.view import is_view_id
from leasehold.model.errors import (
    DependentObjects,
    FeatureNotSupported,
    InsufficientPrivilege,
    InvalidGrant,
    OutOfRange,
    SyntaxInvalid,
    UnknownColumn,
    UnknownObject,
    UnknownSchema,
    UnknownTable,
    WrongObject,
)
from leasehold.schema_change.plan.roles import (
    DATABASE_NAME,
    NOTICE,
    Remark,
    remark_not_kept,
    role_id_of,
    role_of,
)
from leasehold.sql.syntax.roles.grant_statements import (
    ChangeOwner,
    DropOwned,
    GrantPrivileges,
    ObjectNamed,
    PrivilegeNamed,
    ReassignOwned,
    SetDatabase,
)
from leasehold.sql.syntax.roles.role_statements import (
    RoleNamed,
)

_WORDS: Final = {
    **{p.name.lower(): p for p in Privilege if p.name is not None and p is not Privilege.NONE},
    "temp": Privilege.TEMPORARY,
}
_COLUMN: Final = ALL["column"]


class AccessChanges:
    """The changes of one statement by `actor`; `access` is as they leave it."""

    def __init__(self, catalog: Catalog, actor: int) -> None:
        self._catalog = catalog
        self._actor = actor
        self._before = catalog.access
        self.access = catalog.access
        self.remarks: list[Remark] = []

    # ------------------------------------------------------------ GRANT, REVOKE

    def grant(self, said: GrantPrivileges) -> None:
        """GRANT and REVOKE of privileges."""
        tables = self._relations(said)
        self._check_grantor(said.grantor)
        named = (role_id_of(self.access, each, self._actor) for each in said.grantees)
        grantees = tuple(dict.fromkeys(named))
        if said.kind == "schema":
            self._grant_schema(said, grantees)
        elif said.kind == "database":
            self._grant_database(said, grantees)
        for table in tables:
            if table.sequence is not None:
                self._grant_sequence(said, table, grantees)
            else:
                self._grant_table(said, table, grantees)

    def _check_grantor(self, named: RoleNamed | None) -> None:
        if named is not None and role_of(self.access, named, self._actor).role_id != self._actor:
            raise InvalidGrant("grantor must be current user", position=named.position)

    def _grant_schema(self, said: GrantPrivileges, grantees: tuple[int, ...]) -> None:
        """USAGE on public is everybody's, for ever, and CREATE there that of the database."""
        change, columns = _read_change(said, "schema", grantees)
        if columns:
            raise InvalidGrant("column privileges are only valid for relations")
        for named in said.objects:
            name = self._find_schema(named)
            if not name:
                self._grant_public(change)
                continue
            number = self.access.namespaces_by_name[name].namespace_id
            acl = self._change((number, 0), "schema", change, name)
            self.access = self.access.with_acl(number, 0, _checked(acl))

    def _grant_public(self, change: Change) -> None:
        if change.is_grant and change.privileges == Privilege.USAGE:
            return
        raise FeatureNotSupported(
            "privileges of schema public can't be changed: USAGE is everybody's, and who may make"
            " tables there is said by CREATE ON DATABASE"
        )

    def _find_schema(self, named: ObjectNamed) -> str:
        """Return the name with which those in a schema begin, "" = public. Raises UnknownSchema."""
        if named.name == PUBLIC_SCHEMA:
            return ""
        if named.name not in self.access.namespaces_by_name:
            words = f'schema "{named.name}" does not exist'
            raise UnknownSchema(words, position=named.position)
        return named.name

    def _relations(self, said: GrantPrivileges) -> list[Descriptor]:
        """Return the tables or sequences that are named, or all of them. Raises UnknownTable."""
        if said.kind not in ("table", "sequence"):
            return []
        if said.all_in_schema:
            is_sequence = said.kind == "sequence"
            schemas = set(map(self._find_schema, said.objects))
            tables = [t for t in self._catalog.tables() if t.names and t.schema in schemas]
            views = () if is_sequence else (v for v in self._views() if v.schema in schemas)
            return [*(t for t in tables if (t.sequence is not None) is is_sequence), *views]
        if said.kind == "sequence":
            return [find_sequence(self._catalog, o.name, o.position) for o in said.objects]
        return [_resolve(self._catalog, each) for each in said.objects]

    def _views(self) -> list[Descriptor]:
        return [view.relation for view in self.access.views.values()]

    def _grant_database(self, said: GrantPrivileges, grantees: tuple[int, ...]) -> None:
        change, columns = _read_change(said, "database", grantees)
        if columns:
            raise InvalidGrant("column privileges are only valid for relations")
        for named in said.objects:
            acl = self._change((DATABASE, 0), "database", change, named.name)
            self.access = self.access.with_acl(DATABASE, 0, _checked(acl))

    def _grant_sequence(
        self, said: GrantPrivileges, sequence: Descriptor, grantees: tuple[int, ...]
    ) -> None:
        kind: ObjectKind = "sequence" if said.kind == "sequence" else "table"
        change, columns = _read_change(said, kind, grantees)
        if columns:
            raise InvalidGrant("column privileges are only valid for relations")
        if kind == "table":
            # PostgreSQL takes a sequence for a table there, and says what it does not have.
            allowed = change.privileges & ALL["sequence"]
            if change.all_privileges:
                allowed = ALL["sequence"]
            elif allowed != change.privileges:
                self.remarks.append(
                    Remark(
                        "WARNING",
                        "0LP01",
                        f'sequence "{sequence.name}" only supports USAGE, SELECT, and UPDATE'
                        " privileges",
                    )
                )
            change = change._replace(privileges=allowed)
        if not change.privileges:
            return
        acl = self._change((sequence.table_id, 0), "sequence", change, sequence.name)
        self.access = self.access.with_acl(sequence.table_id, 0, _checked(acl))

    def _grant_table(
        self, said: GrantPrivileges, table: Descriptor, grantees: tuple[int, ...]
    ) -> None:
        """Change the list of a table, and those of columns: the ones that are named, and of what is
        taken from the table all that have it."""
        change, columns = _read_change(said, "table", grantees)
        if change.privileges & ~ALL["table"]:
            raise InvalidGrant("invalid privilege type USAGE for table")
        if columns and is_view_id(table.table_id):
            raise FeatureNotSupported(
                f"privileges of columns of view {table.name!r} are not supported: grant them on"
                " all of it, or make a view of those columns"
            )
        by_column: dict[int, Privilege] = {}
        if not change.is_grant and change.privileges & _COLUMN:
            for column in table.by_name.values():
                by_column[column.element_id] = change.privileges & _COLUMN
        for privilege, names in columns:
            for name in names:
                named = _column(table, name)
                by_column[named] = by_column.get(named, Privilege.NONE) | privilege
        found: dict[tuple[int, int], Acl] = {}
        if change.privileges:
            ids = table.table_id, 0
            found[ids] = self._change(ids, "table", change, table.name)
        for element_id, privileges in sorted(by_column.items()):
            ids = table.table_id, element_id
            part = change._replace(privileges=privileges, all_privileges=privileges == _COLUMN)
            name = table.by_id[element_id].name
            found[ids] = self._change(ids, "column", part, table.name, name)
        for each in with_mirrors(self._catalog, table):
            for (_, element_id), acl in found.items():
                kept = None if element_id and not acl else _checked(acl)
                self.access = self.access.with_acl(each, element_id, kept)

    def _change(
        self, ids: tuple[int, int], kind: ObjectKind, change: Change, name: str, column: str = ""
    ) -> Acl:
        """Return the list of an object or column after a change, and note its warning."""
        before = self._before
        changed: Changed = change_acl(
            before.roles,
            before.acl_of(kind, *ids),
            change,
            self._actor,
            before.owner_of(ids[0]),
            kind,
            name,
            column=column,
            beside=before.acl_of("table", ids[0]) if column else (),
            given=before.given_by_groups,
        )
        if changed.warning:
            named = f'column "{column}" of relation "{name}"' if column else f'"{name}"'
            words = changed.warning.format(named)
            self.remarks.append(Remark("WARNING", changed.sqlstate, words))
        return changed.acl

    # ------------------------------------------------------------ owners

    def change_owner(self, said: ChangeOwner) -> None:
        """ALTER TABLE, VIEW or SEQUENCE … OWNER TO; a table's own sequences go along."""
        if said.kind == "type":
            self._change_owner_of_type(said)
            return
        if said.kind == "schema":
            self._change_owner_of_schema(said)
            return
        try:
            if said.kind == "sequence":
                table = find_sequence(self._catalog, said.object.name, said.object.position)
            else:
                table = _resolve(self._catalog, said.object)
        except UnknownTable:
            if not said.if_exists:
                raise
            words = f'relation "{said.object.name}" does not exist, skipping'
            self.remarks.append(Remark(*NOTICE, words))
            return
        if said.kind == "view" and said.object.name not in self.access.views_by_name:
            raise WrongObject(f'"{said.object.name}" is not a view', position=said.object.position)
        check_owner(self.access, self._actor, table.table_id, table.name)
        owner = role_of(self.access, said.owner, self._actor).role_id
        if owner == self.access.owner_of(table.table_id):
            return
        _refuse_owned_sequence(self._catalog, table)
        self._check_gives(owner)
        self._give(table, owner)

    def _check_gives(self, owner: int) -> None:
        roles = self.access.roles
        if not roles.is_superuser(self._actor):
            if not roles.is_member_of(self._actor, owner):
                raise InsufficientPrivilege(f'must be member of role "{roles.name_of(owner)}"')
            check_privilege(
                self.access, owner, "database", DATABASE, (), Privilege.CREATE, DATABASE_NAME
            )

    def _change_owner_of_type(self, said: ChangeOwner) -> None:
        """ALTER TYPE … OWNER TO"""
        name = said.object.name
        enum = self.access.enums_by_name.get(name)
        if enum is None:
            raise UnknownObject(f'type "{name}" does not exist', position=said.object.position)
        check_owner(self.access, self._actor, enum.type_id, name, "type")
        owner = role_of(self.access, said.owner, self._actor).role_id
        if owner != self.access.owner_of(enum.type_id):
            self._check_gives(owner)
            self.access = self.access.with_owner(enum.type_id, owner)

    def _change_owner_of_schema(self, said: ChangeOwner) -> None:
        """ALTER SCHEMA … OWNER TO"""
        name = self._find_schema(said.object)
        if not name:
            raise FeatureNotSupported("schema 'public' is built in, and stays the first role's")
        number = self.access.namespaces_by_name[name].namespace_id
        check_owner(self.access, self._actor, number, name)
        owner = role_of(self.access, said.owner, self._actor).role_id
        if owner != self.access.owner_of(number):
            self._check_gives(owner)
            self.access = given_to(self.access, number, owner)

    def set_database(self, said: SetDatabase) -> None:
        """ALTER DATABASE … SET search_path."""
        check_owner(self.access, self._actor, DATABASE, said.database.name)
        if said.search_path is None:
            self.remarks.append(remark_not_kept(said.not_kept))
        else:
            self.access = self.access.with_search_path(said.search_path)

    def _give(self, table: Descriptor, owner: int) -> None:
        for each in with_mirrors(self._catalog, table):
            self.access = given_to(self.access, each, owner)
        if table.sequence is None:
            for sequence_id in list_own_sequences(table):
                self.access = given_to(self.access, sequence_id, owner)

    def reassign(self, said: ReassignOwned) -> None:
        """REASSIGN OWNED BY roles TO role."""
        old = [role_of(self.access, each, self._actor) for each in said.roles]
        for role in old:
            self._check_may_reassign(role)
        new = role_of(self.access, said.to, self._actor)
        self._check_may_reassign(new)
        for role in old:
            if role.role_id < ROLES_FROM:
                raise DependentObjects(
                    f"cannot reassign ownership of objects owned by role {role.name} because they"
                    " are required by the database system"
                )
            for table in self._owned_by(role.role_id):
                self._give(table, new.role_id)
            for object_id in self._others_owned_by(role.role_id):
                self.access = given_to(self.access, object_id, new.role_id)

    def _check_may_reassign(self, role: Role) -> None:
        if not self.access.roles.has_privileges_of(self._actor, role.role_id):
            raise InsufficientPrivilege("permission denied to reassign objects")

    def _owned_by(self, role_id: int) -> Iterator[Descriptor]:
        relations = (*self._catalog.tables(), *self._views())
        return (t for t in relations if self.access.owner_of(t.table_id) == role_id)

    def _others_owned_by(self, role_id: int) -> dict[int, str]:
        """Return the names of a role's enum types and schemas by id."""
        access = self.access
        named = {number: enum.name for number, enum in access.enums.items()}
        named |= {number: each.name for number, each in access.namespaces.items()}
        return {
            number: name for number, name in named.items() if access.owner_of(number) == role_id
        }

    def drop_owned(self, said: DropOwned) -> None:
        """DROP OWNED BY roles that own nothing: take all privileges that they have or gave."""
        for role in [role_of(self.access, each, self._actor) for each in said.roles]:
            if not self.access.roles.has_privileges_of(self._actor, role.role_id):
                raise InsufficientPrivilege("permission denied to drop objects")
            if role.role_id < ROLES_FROM:
                raise DependentObjects(
                    f"cannot drop objects owned by role {role.name} because they are required by"
                    " the database system"
                )
            owned = [table.name for table in self._owned_by(role.role_id)]
            owned += self._others_owned_by(role.role_id).values()
            if owned:
                raise FeatureNotSupported(
                    "DROP OWNED takes privileges away, and drops no tables: role"
                    f" {role.name!r} owns {', '.join(map(repr, owned[:10]))}; drop them first,"
                    " or REASSIGN OWNED"
                )
            for ids in list(self.access.depending_on(role.role_id)):
                acl = self.access.recorded_acl(*ids)
                owner = self.access.owner_of(ids[0])
                if acl is not None:
                    left = without_role(self.access.roles, acl, role.role_id, owner)
                    kept = None if ids[1] and not left else left
                    self.access = self.access.with_acl(*ids, kept)


def given_to(access: Access, object_id: int, owner: int) -> Access:
    """Return `access` with another owner of an object, in the lists of it and its columns, too."""
    before = access.owner_of(object_id)
    for element_id in (0, *access.columns_with_acl(object_id)):
        acl = access.recorded_acl(object_id, element_id)
        if acl is not None:
            access = access.with_acl(object_id, element_id, with_owner(acl, before, owner))
    return access.with_owner(object_id, owner)


def with_mirrors(catalog: Catalog, table: Descriptor) -> tuple[int, ...]:
    """Return the table, and those that have its rows under another key while a job goes over from
    one to the other: who may do what with one, may with the other."""
    if table.sequence is not None or is_view_id(table.table_id):
        return (table.table_id,)
    found = {table.table_id}
    known = [catalog.newest(table_id) for table_id in catalog.table_ids()]
    pairs = [{each.table_id, each.former} for each in known if each.former]
    for pair in (*pairs, *reversed(pairs)):  # a chain of several is in order of its ids
        if pair & found:
            found |= pair
    return tuple(sorted(each for each in found if catalog.has(each)))


def _resolve(catalog: Catalog, named: ObjectNamed) -> Descriptor:
    try:
        return catalog.resolve(named.name)
    except UnknownTable:
        view = catalog.access.views_by_name.get(named.name)
        if view is not None:
            return view.relation
        raise UnknownTable(
            f'relation "{named.name}" does not exist', table=named.name, position=named.position
        ) from None


def _column(table: Descriptor, name: str) -> int:
    found = next((c for c in table.columns if c.name == name and not c.hidden), None)
    if found is None:
        raise UnknownColumn(f'column "{name}" of relation "{table.name}" does not exist')
    return found.element_id


def _refuse_owned_sequence(catalog: Catalog, table: Descriptor) -> None:
    if table.sequence is None:
        return
    for each in catalog.tables():
        if each.sequence is None and table.table_id in list_own_sequences(each):
            raise FeatureNotSupported(
                f'cannot change owner of sequence "{table.name}"',
                detail=f'Sequence "{table.name}" is linked to table "{each.name}".',
            )


def _read_change(
    said: GrantPrivileges, kind: ObjectKind, grantees: tuple[int, ...]
) -> tuple[Change, list[tuple[Privilege, tuple[str, ...]]]]:
    """Return the change of the object's list, and which privileges are of which columns. Raises
    InvalidGrant (0LP01), SyntaxInvalid for a word that is no privilege."""
    every = False
    privileges = Privilege.NONE
    columns: list[tuple[Privilege, tuple[str, ...]]] = []
    for named in said.privileges:
        if named.columns:
            columns.append((_privilege(named, "column"), named.columns))
        elif named.word:
            privileges |= _privilege(named, kind)
        else:
            every, privileges = True, ALL[kind]
    change = Change(said.is_grant, privileges, grantees, said.option, said.cascade, every)
    return change, columns


def _privilege(named: PrivilegeNamed, kind: ObjectKind) -> Privilege:
    if not named.word:
        return ALL[kind]
    found = _WORDS.get(named.word)
    if found is None:
        raise SyntaxInvalid(f'unrecognized privilege type "{named.word}"', position=named.position)
    # PostgreSQL lets sequences be granted on as tables.
    allowed = ALL["table"] | ALL["sequence"] if kind == "table" else ALL[kind]
    if not found & allowed:
        what = "relation" if kind == "table" else kind
        raise InvalidGrant(
            f"invalid privilege type {named.word.upper()} for {what}", position=named.position
        )
    return found


def _checked(acl: Acl) -> Acl:
    if len(acl) > ITEMS_MAX:
        raise OutOfRange(
            f"at most {ITEMS_MAX} entries are in a list of privileges: grant to a group"
        )
    return acl
