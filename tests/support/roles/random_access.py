"""Random changes of who may do what, for tests of what keeps them."""

from __future__ import annotations

from random import Random

from leasehold.catalog.access import DATABASE, Access
from leasehold.catalog.privileges import Item, Privilege
from leasehold.catalog.roles import (
    BOOTSTRAP_ROLE,
    MONITOR,
    READ_ALL_STATS,
    ROLES_FROM,
    Membership,
    Role,
)
from leasehold.model.ids import SEQUENCES_FROM

TABLE, SEQUENCE = 7, SEQUENCES_FROM | 7


def changed_at_random(access: Access, chance: Random) -> Access:
    """Return `access` with a role, a membership, an owner or a list changed."""
    roles, made = access.roles, sorted(i for i in access.roles.by_id if i >= ROLES_FROM)
    kind = chance.randrange(6)
    if kind == 0 or len(made) < 2:
        new = Role(access.next_role_id, f"r{access.next_role_id}", verifier="v", superuser=True)
        return access.with_roles(roles.with_role(new))
    one, other = chance.sample(made, 2)
    if kind == 1:
        return access.with_roles(roles.without_role(one))
    if kind == 2:
        grant = Membership(one, other, BOOTSTRAP_ROLE, chance.random() < 0.5)
        return access.with_roles(roles.with_membership(grant))
    if kind == 3:
        return access.with_roles(roles.without_membership(READ_ALL_STATS, MONITOR))
    table = chance.choice((DATABASE, TABLE, SEQUENCE))
    if kind == 4:
        return access.with_owner(table, chance.choice((one, BOOTSTRAP_ROLE)))
    acl = (Item(one, other, Privilege.SELECT, Privilege.NONE),) if chance.random() < 0.7 else None
    return access.with_acl(table, 3 if table == TABLE else 0, acl)


def told(access: Access) -> object:
    """Return all that is recorded, to be compared."""
    return access.roles.by_id, access.roles.memberships, access.objects, access.next_role_id
