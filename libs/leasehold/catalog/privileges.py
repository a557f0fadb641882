"""Access control lists: what a role may do with a table, a column, a sequence, a schema, the
database.

The rules are PostgreSQL's (`utils/adt/acl.c`, `catalog/aclchk.c`), so that GRANT, REVOKE, their
errors and what psql shows are the same: each item says who gave what to whom; the owner can give
everything; who has a privilege with grant option can give it on, and when he loses it, so do those
that he gave it to.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from enum import IntFlag
from typing import Final, Literal, NamedTuple, TypeAlias

from leasehold.catalog.roles import PUBLIC, Roles
from leasehold.model.errors import (
    DependentObjects,
    InsufficientPrivilege,
    InvalidGrant,
)

ObjectKind: TypeAlias = Literal["table", "column", "sequence", "database", "schema"]


class Privilege(IntFlag):
    """What may be done; the numbers are PostgreSQL's."""

    NONE = 0
    INSERT = 1 << 0
    SELECT = 1 << 1
    UPDATE = 1 << 2
    DELETE = 1 << 3
    TRUNCATE = 1 << 4
    REFERENCES = 1 << 5
    TRIGGER = 1 << 6
    USAGE = 1 << 8
    CREATE = 1 << 9
    TEMPORARY = 1 << 10
    CONNECT = 1 << 11


_P: TypeAlias = Privilege
ALL: Final[dict[ObjectKind, Privilege]] = {
    "table": (
        _P.INSERT | _P.SELECT | _P.UPDATE | _P.DELETE | _P.TRUNCATE | _P.REFERENCES | _P.TRIGGER
    ),
    "column": _P.INSERT | _P.SELECT | _P.UPDATE | _P.REFERENCES,
    "sequence": _P.SELECT | _P.UPDATE | _P.USAGE,
    "database": _P.CREATE | _P.TEMPORARY | _P.CONNECT,
    "schema": _P.USAGE | _P.CREATE,
}
"""What ALL PRIVILEGES means for each kind of object."""

_LETTERS: Final = "arwdDxtXUCTc"
"""Of privileges by their bits, in the text form of an item."""


class Item(NamedTuple):
    """An entry of a list: `grantor` gave `privileges` to `grantee`, who may give on `options`."""

    grantee: int
    grantor: int
    privileges: Privilege
    options: Privilege


Acl: TypeAlias = tuple[Item, ...]


class Change(NamedTuple):
    """A GRANT or REVOKE of privileges.

    `option`: WITH GRANT OPTION of a GRANT, GRANT OPTION FOR of a REVOKE. `cascade`: of a REVOKE;
    else it is refused where others have what depends on it.
    """

    is_grant: bool
    privileges: Privilege
    grantees: tuple[int, ...]
    option: bool = False
    cascade: bool = False
    all_privileges: bool = False


class Changed(NamedTuple):
    """A list after a change. `warning` is PostgreSQL's sentence, in which `{}` stands for the
    object's name; "" = none."""

    acl: Acl
    warning: str = ""

    @property
    def sqlstate(self) -> str:
        """Return the SQLSTATE of the warning."""
        return "01007" if "granted" in self.warning else "01006"


def default_acl(kind: ObjectKind, owner: int) -> Acl:
    """Return what holds for an object that nobody has granted anything on."""
    if kind == "column":
        return ()
    made = [Item(owner, owner, ALL[kind], Privilege.NONE)]
    if kind == "database":
        public = Privilege.TEMPORARY | Privilege.CONNECT
        made.insert(0, Item(PUBLIC, owner, public, Privilege.NONE))
    return tuple(made)


def privileges_of(roles: Roles, acl: Acl, role: int, kind: ObjectKind) -> Privilege:
    """Return all that `role` may do with an object: by itself, as one of all, by membership."""
    if roles.is_superuser(role):
        return ALL[kind]
    known = {PUBLIC, *roles.whose_privileges(role)}
    found = Privilege.NONE
    for item in acl:
        if item.grantee in known:
            found |= item.privileges
    return found


def options_of(roles: Roles, acl: Acl, role: int, owner: int) -> Privilege:
    """Return the privileges that `role` may give on, by itself or by membership."""
    if roles.has_privileges_of(role, owner):
        return ~Privilege.NONE
    known = roles.whose_privileges(role)
    found = Privilege.NONE
    for item in acl:
        if item.grantee in known:
            found |= item.options
    return found


def change_acl(
    roles: Roles,
    acl: Acl,
    change: Change,
    actor: int,
    owner: int,
    kind: ObjectKind,
    name: str,
    *,
    column: str = "",
    beside: Acl = (),
    given: Callable[[int], Privilege] = lambda role: Privilege.NONE,
) -> Changed:
    """Return the list after a GRANT or REVOKE that `actor` has said, and its warning.

    `acl` is the object's, or its default. Of a `column` that of its table is `beside` it: what
    somebody may give on there he may give on here. `given`: what a role may do beside any list.

    Raises InsufficientPrivilege (42501) where `actor` may do nothing at all with the object,
    InvalidGrant (0LP01), DependentObjects (2BP01).
    """
    known = (*beside, *acl)
    grantor, options = best_grantor(roles, known, change.privileges, actor, owner)
    warning = ""
    held = privileges_of(roles, known, grantor, kind) | options_of(roles, known, grantor, owner)
    if kind != "database":
        held |= given(grantor)
    if not options and not held & ALL[kind]:
        named = f'column "{column}" of relation "{name}"' if column else f"{kind} {name}"
        raise InsufficientPrivilege(f"permission denied for {named}")
    possible = change.privileges & options
    done = "granted" if change.is_grant else "could be revoked"
    if not possible:
        warning = f"no privileges {'were ' if change.is_grant else ''}{done} for {{}}"
    elif possible != change.privileges and not change.all_privileges:
        warning = f"not all privileges {'were ' if change.is_grant else ''}{done} for {{}}"
    for grantee in change.grantees:
        if change.is_grant and change.option and grantee == PUBLIC:
            raise InvalidGrant("grant options can only be granted to roles")
        # SQL's rule: with `option` a GRANT gives both, and a REVOKE takes the option alone.
        item = Item(
            grantee,
            grantor,
            possible if change.is_grant or not change.option else Privilege.NONE,
            possible if not change.is_grant or change.option else Privilege.NONE,
        )
        if change.is_grant:
            acl = _added(roles, acl, item, owner)
        else:
            acl = _removed(roles, acl, item, owner, cascade=change.cascade)
    return Changed(acl, warning)


def best_grantor(
    roles: Roles, acl: Acl, privileges: Privilege, actor: int, owner: int
) -> tuple[int, Privilege]:
    """Return in whose name `actor` gives or takes `privileges`, and which of them that role may
    give: the owner if he can be him, else the role of his that may give most."""
    if actor == owner or roles.is_superuser(actor):
        return owner, privileges
    best, found = actor, Privilege.NONE
    for role in roles.whose_privileges(actor):
        if role == owner:
            return owner, privileges
        own = Privilege.NONE
        for item in acl:
            if item.grantee == role:
                own |= item.options & privileges
        if own == privileges:
            return role, own
        if own.bit_count() > found.bit_count():
            best, found = role, own
    return best, found


def _added(roles: Roles, acl: Acl, more: Item, owner: int) -> Acl:
    if more.options:
        _check_no_circle(roles, acl, more, owner)
    return _merged(acl, more)


def _merged(acl: Iterable[Item], more: Item) -> Acl:
    found: dict[tuple[int, int], Item] = {(i.grantee, i.grantor): i for i in acl}
    key = more.grantee, more.grantor
    before = found.get(key)
    if before is not None:
        more = Item(*key, before.privileges | more.privileges, before.options | more.options)
    if more.privileges or more.options:
        found[key] = more
    return tuple(found.values())


def _check_no_circle(roles: Roles, acl: Acl, more: Item, owner: int) -> None:
    """Nobody may give a grant option to whom he has it from: both would keep it for ever."""
    if more.grantor == owner:
        return
    while True:
        held = next((i for i in acl if i.grantee == more.grantee and i.options), None)
        if held is None:
            break
        acl = _removed(roles, acl, held, owner, cascade=True)
    if more.options & ~options_of(roles, acl, more.grantor, owner):
        raise InvalidGrant("grant options cannot be granted back to your own grantor")


def _removed(roles: Roles, acl: Acl, less: Item, owner: int, *, cascade: bool) -> Acl:
    """Return the list without `less`, and without what rests on the options that are lost."""
    lost = Privilege.NONE
    kept: list[Item] = []
    for item in acl:
        left = item
        if item[:2] == less[:2]:
            left = Item(*item[:2], item.privileges & ~less.privileges, item.options & ~less.options)
            lost = item.options & ~left.options
        if left.privileges or left.options:
            kept.append(left)
    acl = tuple(kept)
    if not lost or less.grantee == owner:
        return acl
    lost &= ~options_of(roles, acl, less.grantee, owner)
    while True:
        resting = next((i for i in acl if i.grantor == less.grantee and i.privileges & lost), None)
        if resting is None:
            return acl
        if not cascade:
            raise DependentObjects("dependent privileges exist")
        gone = Item(resting.grantee, resting.grantor, lost, lost)
        acl = _removed(roles, acl, gone, owner, cascade=True)


def with_owner(acl: Acl, before: int, owner: int) -> Acl:
    """Return the list after the object was given to another owner: what the old one had and gave,
    the new one has and gave."""
    made: Acl = ()
    for item in acl:
        grantee, grantor = (owner if role == before else role for role in item[:2])
        made = _merged(made, Item(grantee, grantor, item.privileges, item.options))
    return made


def without_role(roles: Roles, acl: Acl, role: int, owner: int) -> Acl:
    """Return the list without all that the role has or gave, and what rests on that."""
    for item in acl:
        if item.grantee == role:
            gone = Item(role, item.grantor, item.privileges, item.privileges | item.options)
            acl = _removed(roles, acl, gone, owner, cascade=True)
    return tuple(item for item in acl if role not in item[:2])


def mentioned_roles(acl: Acl) -> frozenset[int]:
    """Return the roles that the list names: they can't be dropped."""
    return frozenset(role for item in acl for role in item[:2] if role != PUBLIC)


def item_text(item: Item, names: Sequence[str]) -> str:
    """Return PostgreSQL's text of an item, such as `ann=r*w/bob`; `names`: grantee ("" = PUBLIC),
    grantor."""
    letters = []
    for bit, letter in enumerate(_LETTERS):
        if item.privileges & (1 << bit):
            letters.append(letter)
            if item.options & (1 << bit):
                letters.append("*")
    return f"{quote_role(names[0])}={''.join(letters)}/{quote_role(names[1])}"


def quote_role(name: str) -> str:
    """Return a role's name as a list of privileges has it."""
    plain = all(c == "_" or (c.isascii() and c.isalnum()) for c in name)
    return name if plain else '"' + name.replace('"', '""') + '"'
