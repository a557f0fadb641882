"""Access: the roles of a database, who owns each object, and who may do what with it; and the
views, by which a role gives others a part of what it may read itself, the enum types and schemas.

Part of the catalog, and like all of it changed by catalog writes of the log alone. What nobody has
said anything about has PostgreSQL's defaults: the first role owns it, and may do all with it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from functools import partial
from typing import Any, Final, NamedTuple, TypeVar

from leasehold.catalog.namespaces import (
    NAMESPACES_FROM,
    SEPARATOR,
    Namespace,
    bare,
    check_schema_of,
    is_namespace_id,
    qualified,
)
from leasehold.catalog.newer_release import as_written
from leasehold.catalog.privileges import (
    ALL,
    Acl,
    Item,
    ObjectKind,
    Privilege,
    default_acl,
    mentioned_roles,
    options_of,
    privileges_of,
)
from leasehold.catalog.roles import (
    BOOTSTRAP_ROLE,
    READ_ALL_DATA,
    ROLES_FROM,
    WRITE_ALL_DATA,
    Membership,
    Role,
    Roles,
)
from leasehold.catalog.view import KEPT as VIEW_KEPT
from leasehold.catalog.view import VIEWS_FROM, View
from leasehold.model.errors import InsufficientPrivilege, NotAuthentic
from leasehold.model.ids import is_sequence_id
from leasehold.model.records.log import (
    AccessWrite,
    CommentWrite,
    EnumWrite,
    MembershipWrite,
    NamespaceWrite,
    RoleOrAccessWrite,
    RoleWrite,
    ViewWrite,
)
from leasehold.values.enums import KEPT, Enumeration

DATABASE: Final = 0
"""The object id of the database."""
ITEMS_MAX: Final = 2_000
"""The most items of one list."""
ANSWERS_KEPT_MAX: Final = 10_000


class ObjectAccess(NamedTuple):
    """What is recorded of one object or column. `acl` None: that of default_acl. `search_path`: of
    the database, what its sessions begin with, "" = the default."""

    owner: int = BOOTSTRAP_ROLE
    acl: Acl | None = None
    search_path: str = ""

    def to_wire(self) -> dict[str, Any]:
        acl = None if self.acl is None else [list(map(int, item)) for item in self.acl]
        path = {"search_path": self.search_path} if self.search_path else {}
        return {"owner": self.owner, "acl": acl, **path}

    @classmethod
    def from_wire(cls, body: Mapping[str, Any]) -> ObjectAccess:
        said = body["acl"]
        items = (Item(i[0], i[1], Privilege(i[2]), Privilege(i[3])) for i in said or ())
        acl = None if said is None else tuple(items)
        return cls(body["owner"], acl, str(body.get("search_path", "")))


NOTHING_RECORDED: Final = ObjectAccess()


def kind_of(object_id: int, element_id: int = 0) -> ObjectKind:
    """Return what kind of object has those ids."""
    if element_id:
        return "column"
    if object_id == DATABASE:
        return "database"
    if is_namespace_id(object_id):
        return "schema"
    return "sequence" if is_sequence_id(object_id) else "table"


class Access:
    """Roles, owners and lists of a database. Unchangeable; `with_…` give another one.

    `objects`: what is recorded, by object and element id; `views`, `enums`, `namespaces`: by id;
    `views_by_name` and the like: by each name that they are found under; `comments`: as in
    CommentWrite. `next_role_id`: above those of all roles that there ever were.
    """

    def __init__(
        self,
        roles: Roles | None = None,
        objects: Mapping[tuple[int, int], ObjectAccess] | None = None,
        next_role_id: int = 0,
        views: Mapping[int, View] | None = None,
        comments: Mapping[tuple[int, int], str] | None = None,
        enums: Mapping[int, Enumeration] | None = None,
        namespaces: Mapping[int, Namespace] | None = None,
    ) -> None:
        self.namespaces: Mapping[int, Namespace] = {} if namespaces is None else namespaces
        self.namespaces_by_name = {each.name: each for each in self.namespaces.values()}
        aliases = {each.name: each.alias for each in self.namespaces.values() if each.alias}
        for name, alias in aliases.items():
            self.namespaces_by_name[alias] = self.namespaces_by_name[name]
        self.enums: Mapping[int, Enumeration] = {} if enums is None else enums
        self.enums_by_name = _by_name(self.enums.values(), aliases)
        self.comments: Mapping[tuple[int, int], str] = {} if comments is None else comments
        self.views: Mapping[int, View] = {} if views is None else views
        self.views_by_name = _by_name(self.views.values(), aliases)
        self.roles = Roles.at_first() if roles is None else roles
        self.objects: Mapping[tuple[int, int], ObjectAccess] = {} if objects is None else objects
        self.next_role_id = max(ROLES_FROM, next_role_id, max(self.roles.by_id, default=0) + 1)
        self._answers: dict[tuple[int, int, int], Privilege] = {}
        self._columns: dict[int, list[int]] = {}
        for object_id, element_id in self.objects:
            if element_id:
                self._columns.setdefault(object_id, []).append(element_id)

    # ------------------------------------------------------------ questions

    def find_named(self, name: str) -> View | Enumeration | Namespace | None:
        """Return the view or the enum type of a name; that of a type is also what kept texts call
        it, that of a view what stands for its id. A name that ends in a dot is a schema's."""
        if name.startswith(KEPT) and name[len(KEPT) :].isdecimal():
            return self.enums.get(int(name[len(KEPT) :]))
        if name.startswith(VIEW_KEPT) and name[len(VIEW_KEPT) :].isdecimal():
            return self.views.get(int(name[len(VIEW_KEPT) :]))
        found = self.views_by_name.get(name) or self.enums_by_name.get(name)
        if found is None and name.endswith(SEPARATOR):
            return self.namespaces_by_name.get(name[: -len(SEPARATOR)])
        return found

    def find_enum(self, name: str) -> Enumeration | None:
        """Return the enum type of a name, None for none. Raises UnknownSchema (3F000)."""
        found = self.enums_by_name.get(name)
        if found is None:
            check_schema_of(name, self.find_named)
        return found

    def owner_of(self, object_id: int) -> int:
        """Return the role that owns a table, a sequence or the database."""
        return self.objects.get((object_id, 0), NOTHING_RECORDED).owner

    @property
    def search_path(self) -> str:
        """Return what sessions begin with whose role says nothing else, "" = the default."""
        return self.objects.get((DATABASE, 0), NOTHING_RECORDED).search_path

    def is_owner(self, role_id: int, object_id: int) -> bool:
        """Return whether the role may do what only an owner of the object may."""
        return role_id == BOOTSTRAP_ROLE or self.roles.has_privileges_of(
            role_id, self.owner_of(object_id)
        )

    def recorded_acl(self, object_id: int, element_id: int = 0) -> Acl | None:
        """Return the list that is recorded; None: nobody has granted or revoked anything."""
        return self.objects.get((object_id, element_id), NOTHING_RECORDED).acl

    def acl_of(self, kind: ObjectKind, object_id: int, element_id: int = 0) -> Acl:
        """Return the list of an object or a column, the default where none is recorded."""
        found = self.recorded_acl(object_id, element_id)
        return default_acl(kind, self.owner_of(object_id)) if found is None else found

    def privileges(
        self, role_id: int, kind: ObjectKind, object_id: int, element_id: int = 0
    ) -> Privilege:
        """Return all that the role may do: with a column, also by what it may with its table."""
        if role_id == BOOTSTRAP_ROLE:
            return ALL[kind]
        asked = role_id, object_id, element_id
        found = self._answers.get(asked)
        if found is None:
            found = self._find_privileges(role_id, kind, object_id, element_id)
            if len(self._answers) >= ANSWERS_KEPT_MAX:
                self._answers.clear()
            self._answers[asked] = found
        return found

    def _find_privileges(
        self, role_id: int, kind: ObjectKind, object_id: int, element_id: int
    ) -> Privilege:
        acl = self.acl_of(kind, object_id, element_id)
        found = privileges_of(self.roles, acl, role_id, kind)
        if kind == "column":
            return found | self.privileges(role_id, "table", object_id) & ALL["column"]
        if kind == "schema":
            if self.given_by_groups(role_id):
                found |= Privilege.USAGE
        elif kind != "database":
            found |= self.given_by_groups(role_id) & ALL[kind]
        return found

    def may_use_schema(self, role_id: int, namespace_id: int) -> bool:
        """Return whether the role may name what lies in a schema."""
        held = self.privileges(role_id, "schema", namespace_id)
        return bool(held & Privilege.USAGE)

    def check_may_use(self, role_id: int, relation: str) -> None:
        """Check that the role may name a relation, whose name begins with that of its schema if it
        lies in another one than public. Raises InsufficientPrivilege (42501)."""
        schema, dot, _ = relation.partition(SEPARATOR)
        namespace = self.namespaces_by_name.get(schema) if dot else None
        if namespace is not None and not self.may_use_schema(role_id, namespace.namespace_id):
            raise InsufficientPrivilege(f"permission denied for schema {schema}")

    def given_by_groups(self, role_id: int) -> Privilege:
        """Return what the role may do with every table and sequence by predefined roles."""
        found = Privilege.NONE
        for group, given in _GIVEN_BY_GROUPS:
            if self.roles.has_privileges_of(role_id, group):
                found |= given
        return found

    def grant_options(
        self, role_id: int, kind: ObjectKind, object_id: int, element_id: int = 0
    ) -> Privilege:
        """Return what the role may give on, of a column also by what it may of its table."""
        acl, owner = self.acl_of(kind, object_id, element_id), self.owner_of(object_id)
        found = options_of(self.roles, acl, role_id, owner)
        if kind == "column":
            found |= options_of(self.roles, self.acl_of("table", object_id), role_id, owner)
        return found & ALL[kind]

    def columns_with_acl(self, object_id: int) -> tuple[int, ...]:
        """Return the element ids of the table's columns that have a list of their own."""
        return tuple(self._columns.get(object_id, ()))

    def depending_on(self, role_id: int) -> Iterator[tuple[int, int]]:
        """Return object and element ids of what the role owns or is named in the list of."""
        for ids, found in self.objects.items():
            if (not ids[1] and found.owner == role_id) or (
                found.acl is not None and role_id in mentioned_roles(found.acl)
            ):
                yield ids

    def actor_of(self, principal: str, as_role: str = "") -> int:
        """Return the role whose rights a request has: of its principal ("" = the first role), or of
        the one that this has put on by SET ROLE. Raises NotAuthentic (28000),
        InsufficientPrivilege (42501)."""
        if not principal and not as_role:
            return BOOTSTRAP_ROLE
        said = self.roles.by_id[BOOTSTRAP_ROLE] if not principal else self.roles.find(principal)
        if said is None:
            raise NotAuthentic(f'role "{principal}" does not exist')
        if not said.may_log_in:
            raise NotAuthentic(f'role "{said.name}" is not permitted to log in')
        if not as_role:
            return said.role_id
        wanted = self.roles.find(as_role)
        if wanted is None or not self.roles.is_member_of(said.role_id, wanted.role_id):
            raise InsufficientPrivilege(f'permission denied to set role "{as_role}"')
        return wanted.role_id

    # ------------------------------------------------------------ changes

    def _with(
        self,
        roles: Roles | None = None,
        objects: Mapping[tuple[int, int], ObjectAccess] | None = None,
        views: Mapping[int, View] | None = None,
        comments: Mapping[tuple[int, int], str] | None = None,
        enums: Mapping[int, Enumeration] | None = None,
        namespaces: Mapping[int, Namespace] | None = None,
    ) -> Access:
        """Return this with what is given in the place of its own."""
        return Access(
            self.roles if roles is None else roles,
            self.objects if objects is None else objects,
            self.next_role_id,
            self.views if views is None else views,
            self.comments if comments is None else comments,
            self.enums if enums is None else enums,
            self.namespaces if namespaces is None else namespaces,
        )

    def with_roles(self, roles: Roles) -> Access:
        return self._with(roles=roles)

    def with_owner(self, object_id: int, owner: int) -> Access:
        """Return this with another owner; a recorded list stays (see `privileges.with_owner`)."""
        before = self.objects.get((object_id, 0), NOTHING_RECORDED)
        return self.with_object(object_id, 0, before._replace(owner=owner))

    def with_acl(self, object_id: int, element_id: int, acl: Acl | None) -> Access:
        """Return this with another list of an object or a column; None: the default."""
        before = self.objects.get((object_id, element_id), NOTHING_RECORDED)
        return self.with_object(object_id, element_id, before._replace(acl=acl))

    def with_search_path(self, path: str) -> Access:
        """Return this with another search path of the database."""
        before = self.objects.get((DATABASE, 0), NOTHING_RECORDED)
        return self.with_object(DATABASE, 0, before._replace(search_path=path))

    def with_object(self, object_id: int, element_id: int, found: ObjectAccess) -> Access:
        objects = {**self.objects, (object_id, element_id): found}
        if found == NOTHING_RECORDED:
            del objects[object_id, element_id]
        return self._with(objects=objects)

    def with_copy(self, object_id: int, copy_id: int) -> Access:
        """Return this with all that is recorded of a table said of another one, too."""
        copied = {
            (copy_id, ids[1]): found for ids, found in self.objects.items() if ids[0] == object_id
        }
        comments = {
            (copy_id, ids[1]): text for ids, text in self.comments.items() if ids[0] == object_id
        }
        if not copied and not comments:
            return self
        return self._with(
            objects={**self.objects, **copied}, comments={**self.comments, **comments}
        )

    def writes_of(self, object_id: int) -> tuple[RoleOrAccessWrite, ...]:
        """Return the writes that record what is recorded of a table."""
        said = (CommentWrite(*i, text) for i, text in self.comments.items() if i[0] == object_id)
        ids = ((object_id, each) for each in (0, *self._columns.get(object_id, ())))
        return (
            *(AccessWrite(*i, self.objects[i].to_wire()) for i in ids if i in self.objects),
            *said,
        )

    def without_object(self, object_id: int) -> Access:
        """Return this without all that is recorded of a table or sequence, which is gone."""
        comments = {ids: text for ids, text in self.comments.items() if ids[0] != object_id}
        said = len(comments) < len(self.comments)
        if (object_id, 0) not in self.objects and object_id not in self._columns and not said:
            return self
        kept = {ids: found for ids, found in self.objects.items() if ids[0] != object_id}
        return self._with(objects=kept, comments=comments)

    def with_view(self, view: View) -> Access:
        """Return this with a view, at first or anew."""
        views = {**self.views, view.table_id: view}
        return self._with(views=views)

    def without_view(self, view_id: int) -> Access:
        """Return this without a view, and all that is recorded of it."""
        views = {number: view for number, view in self.views.items() if number != view_id}
        return self._with(views=views).without_object(view_id)

    def with_enum(self, enum: Enumeration) -> Access:
        """Return this with an enum type, at first or anew."""
        return self._with(enums={**self.enums, enum.type_id: enum})

    def without_enum(self, type_id: int) -> Access:
        """Return this without an enum type, and all that is recorded of it."""
        enums = {number: enum for number, enum in self.enums.items() if number != type_id}
        return self._with(enums=enums).without_object(type_id)

    def with_namespace(self, namespace: Namespace) -> Access:
        """Return this with a schema, at first or anew."""
        return self._with(namespaces={**self.namespaces, namespace.namespace_id: namespace})

    def without_namespace(self, namespace_id: int) -> Access:
        """Return this without a schema, and all that is recorded of it."""
        kept = {number: one for number, one in self.namespaces.items() if number != namespace_id}
        return self._with(namespaces=kept).without_object(namespace_id)

    def next_namespace_id(self) -> int:
        return max(self.namespaces, default=NAMESPACES_FROM) + 1

    def with_comment(self, object_id: int, element_id: int, text: str | None) -> Access:
        """Return this with another comment on an object, or none."""
        comments = {**self.comments, (object_id, element_id): text}
        if text is None:
            del comments[object_id, element_id]
        return self._with(comments=comments)  # type: ignore[arg-type]

    def next_view_id(self) -> int:
        return max(self.views, default=VIEWS_FROM) + 1

    # ------------------------------------------------------------ the log

    @classmethod
    def load(cls, writes: Iterable[RoleOrAccessWrite], next_role_id: int = 0) -> Access:
        """Return what the last writes of each role, membership and object come to. Raises
        LogStopped for what a newer release wrote."""
        first = Roles.at_first()
        roles, memberships = dict(first.by_id), dict(first.memberships)
        objects: dict[tuple[int, int], ObjectAccess] = {}
        views: dict[int, View] = {}
        comments: dict[tuple[int, int], str] = {}
        enums: dict[int, Enumeration] = {}
        namespaces: dict[int, Namespace] = {}
        for write in writes:
            if isinstance(write, RoleWrite):
                roles[write.role_id] = _role(write)
            elif isinstance(write, AccessWrite):
                found = _object(write)
                if found != NOTHING_RECORDED:
                    objects[write.object_id, write.element_id] = found
            elif isinstance(write, ViewWrite):
                views[write.view_id] = _view(write)
            elif isinstance(write, EnumWrite):
                enums[write.type_id] = _enum(write)
            elif isinstance(write, NamespaceWrite):
                namespaces[write.namespace_id] = _namespace(write)
            elif isinstance(write, CommentWrite):
                assert write.text is not None, "only what is said is stored"
                comments[write.object_id, write.element_id] = write.text
            elif write.body is None:
                del memberships[write.role_id, write.member_id]
            else:
                memberships[write.role_id, write.member_id] = _membership(write)
        known = Roles(roles.values(), memberships.values())
        return cls(known, objects, next_role_id, views, comments, enums, namespaces)

    def applied(self, write: RoleOrAccessWrite) -> Access:
        """Return this after a catalog write. Raises LogStopped for what a newer release wrote."""
        match write:
            case RoleWrite(role_id, None):
                return self.with_roles(self.roles.without_role(role_id))
            case RoleWrite():
                return self.with_roles(self.roles.with_role(_role(write)))
            case MembershipWrite(role_id, member_id, None):
                return self.with_roles(self.roles.without_membership(role_id, member_id))
            case MembershipWrite():
                return self.with_roles(self.roles.with_membership(_membership(write)))
            case AccessWrite():
                return self.with_object(write.object_id, write.element_id, _object(write))
            case ViewWrite(view_id, None):
                return self.without_view(view_id)
            case ViewWrite():
                return self.with_view(_view(write))
            case EnumWrite(type_id, None):
                return self.without_enum(type_id)
            case EnumWrite():
                return self.with_enum(_enum(write))
            case NamespaceWrite(namespace_id, None):
                return self.without_namespace(namespace_id)
            case NamespaceWrite():
                return self.with_namespace(_namespace(write))
            case CommentWrite():
                return self.with_comment(*write)

    def writes_since(self, before: Access) -> tuple[RoleOrAccessWrite, ...]:
        """Return the catalog writes that make this of `before`."""
        gone_views = before.views.keys() - self.views.keys()
        gone_enums = before.enums.keys() - self.enums.keys()
        gone_namespaces = before.namespaces.keys() - self.namespaces.keys()
        gone = gone_views | gone_enums | gone_namespaces
        return (
            *_role_writes(before.roles.by_id, self.roles.by_id),
            *_membership_writes(before, self),
            *(ViewWrite(view_id, None) for view_id in sorted(gone_views)),
            *(EnumWrite(type_id, None) for type_id in sorted(gone_enums)),
            *(NamespaceWrite(each, None) for each in sorted(gone_namespaces)),
            *(
                NamespaceWrite(namespace_id, each.to_wire())
                for namespace_id, each in sorted(self.namespaces.items())
                if before.namespaces.get(namespace_id) != each
            ),
            *(
                EnumWrite(type_id, enum.to_wire())
                for type_id, enum in sorted(self.enums.items())
                if before.enums.get(type_id) != enum
            ),
            *(
                ViewWrite(view_id, view.to_wire())
                for view_id, view in sorted(self.views.items())
                if before.views.get(view_id) != view
            ),
            *(
                AccessWrite(*ids, self.objects.get(ids, NOTHING_RECORDED).to_wire())
                for ids in sorted({**before.objects, **self.objects})
                if self.objects.get(ids) != before.objects.get(ids) and ids[0] not in gone
            ),
            *(
                CommentWrite(*ids, self.comments.get(ids))
                for ids in sorted({**before.comments, **self.comments})
                if self.comments.get(ids) != before.comments.get(ids) and ids[0] not in gone
            ),
        )


_Found = TypeVar("_Found", View, Enumeration)


def _by_name(found: Iterable[_Found], aliases: Mapping[str, str]) -> dict[str, _Found]:
    """Return views or types by their names, also those under the alias of their schema."""
    known = list(found)
    lying = [each for each in known if each.schema in aliases]
    also = {qualified(aliases[e.schema], bare(e.schema, e.name)): e for e in lying}
    return {each.name: each for each in known} | also


_GIVEN_BY_GROUPS: Final = (
    (READ_ALL_DATA, Privilege.SELECT),
    (WRITE_ALL_DATA, Privilege.INSERT | Privilege.UPDATE | Privilege.DELETE),
)
_OF_ANY_COLUMN: Final = ALL["column"]


def _role(write: RoleWrite) -> Role:
    return as_written(write.body, partial(Role.from_wire, write.role_id), "role")


def _membership(write: MembershipWrite) -> Membership:
    read = partial(Membership.from_wire, write.role_id, write.member_id)
    return as_written(write.body, read, "membership in a role")


def _view(write: ViewWrite) -> View:
    return as_written(write.body, partial(View.from_wire, write.view_id), "view")


def _enum(write: EnumWrite) -> Enumeration:
    return as_written(write.body, Enumeration.from_wire, "enum type")


def _namespace(write: NamespaceWrite) -> Namespace:
    return as_written(write.body, partial(Namespace.from_wire, write.namespace_id), "schema")


def _object(write: AccessWrite) -> ObjectAccess:
    return as_written(write.body, ObjectAccess.from_wire, "privileges of a table")


def _role_writes(before: Mapping[int, Role], after: Mapping[int, Role]) -> Iterator[RoleWrite]:
    for role_id in sorted({**before, **after}):
        made = after.get(role_id)
        if made != before.get(role_id):
            yield RoleWrite(role_id, None if made is None else made.to_wire())


def _membership_writes(before: Access, after: Access) -> Iterator[MembershipWrite]:
    old, new = before.roles.memberships, after.roles.memberships
    for ids in sorted({**old, **new}):
        made = new.get(ids)
        gone = not after.roles.by_id.keys() >= set(ids)  # with its role, which says it
        if made != old.get(ids) and not gone:
            yield MembershipWrite(*ids, None if made is None else made.to_wire())


# ------------------------------------------------------------------ checks


def check_privilege(
    access: Access,
    role_id: int,
    kind: ObjectKind,
    object_id: int,
    element_ids: Iterable[int],
    privilege: Privilege,
    name: str,
) -> None:
    """Check that the role may do all of `privilege` with an object, or, where a privilege can be
    one of columns, with each of the columns `element_ids`; with none of them named: with any.

    Raises InsufficientPrivilege (42501) in PostgreSQL's words.
    """
    if role_id == BOOTSTRAP_ROLE:
        return
    lacks = privilege & ~access.privileges(role_id, kind, object_id)
    if not lacks:
        return
    if kind == "table" and not lacks & ~_OF_ANY_COLUMN:
        named = tuple(element_ids)
        columns = named or access.columns_with_acl(object_id)
        held = [access.privileges(role_id, "column", object_id, column) for column in columns]
        if named and all(not lacks & ~each for each in held):
            return
        if not named and any(not lacks & ~each for each in held):
            return
    raise InsufficientPrivilege(f"permission denied for {kind} {name}")


def check_owner(access: Access, role_id: int, object_id: int, name: str, kind: str = "") -> None:
    """Check that the role owns an object. `kind`: what its words call it, if that is an index of a
    table. Raises InsufficientPrivilege (42501) in PostgreSQL's words."""
    if role_id != BOOTSTRAP_ROLE and not access.is_owner(role_id, object_id):
        raise InsufficientPrivilege(f"must be owner of {kind or kind_of(object_id)} {name}")


def check_group(access: Access, role_id: int, group: int, what: str) -> None:
    """Check that the role has the privileges of a predefined one, to do `what`. Raises
    InsufficientPrivilege (42501)."""
    if role_id != BOOTSTRAP_ROLE and not access.roles.has_privileges_of(role_id, group):
        name = access.roles.name_of(group)
        raise InsufficientPrivilege(
            f"permission denied to {what}: only roles with privileges of {name!r} may do that"
        )
