"""Goal: what the catalog says of owners and privileges is what the log has said, and no more.

Method: an Access by hand, asked as sessions and the master ask; random changes as catalog writes.
"""

from __future__ import annotations

from random import Random

import msgpack
import pytest

from leasehold.catalog.access import (
    DATABASE,
    NOTHING_RECORDED,
    Access,
    ObjectAccess,
    check_group,
    check_owner,
    check_privilege,
)
from leasehold.catalog.privileges import ALL, Item, Privilege, default_acl
from leasehold.catalog.roles import (
    BOOTSTRAP_ROLE,
    MONITOR,
    PUBLIC,
    READ_ALL_DATA,
    READ_ALL_STATS,
    ROLES_FROM,
    STEER_JOBS,
    WRITE_ALL_DATA,
    Role,
)
from leasehold.model.errors import InsufficientPrivilege, LogStopped
from leasehold.model.records.log import AccessWrite, MembershipWrite, RoleWrite
from tests.support.roles.random_access import SEQUENCE, TABLE, changed_at_random, told

ANN, BOB, STAFF = ROLES_FROM, ROLES_FROM + 1, ROLES_FROM + 2
NOTHING, SELECT = Privilege.NONE, Privilege.SELECT


def with_people() -> Access:
    roles = Access().roles
    for role in (Role(ANN, "ann", may_log_in=True), Role(BOB, "bob"), Role(STAFF, "staff")):
        roles = roles.with_role(role)
    return Access().with_roles(roles)


def given(access: Access, object_id: int, element_id: int, *items: Item) -> Access:
    acl = access.recorded_acl(object_id, element_id) or ()
    return access.with_acl(object_id, element_id, (*acl, *items))


def test_at_first_one_superuser_owns_all_and_others_may_only_connect() -> None:
    access = with_people()
    assert access.roles.by_id[BOOTSTRAP_ROLE].name == "leasehold"
    assert access.privileges(BOOTSTRAP_ROLE, "table", TABLE) == ALL["table"]
    assert access.privileges(ANN, "table", TABLE) == NOTHING
    expected = Privilege.CONNECT | Privilege.TEMPORARY
    assert access.privileges(ANN, "database", DATABASE) == expected
    assert access.owner_of(TABLE) == BOOTSTRAP_ROLE
    assert access.acl_of("table", TABLE) == default_acl("table", BOOTSTRAP_ROLE)
    assert access.roles.has_privileges_of(MONITOR, READ_ALL_STATS)


def test_an_owner_may_all_until_a_list_says_otherwise() -> None:
    access = with_people().with_owner(TABLE, ANN)
    assert access.privileges(ANN, "table", TABLE) == ALL["table"]
    check_owner(access, ANN, TABLE, "t")
    access = access.with_acl(TABLE, 0, (Item(ANN, ANN, SELECT, NOTHING),))
    assert access.privileges(ANN, "table", TABLE) == SELECT
    with pytest.raises(InsufficientPrivilege, match=r"^must be owner of table t$"):
        check_owner(access, BOB, TABLE, "t")
    assert access.with_owner(TABLE, BOOTSTRAP_ROLE).with_acl(TABLE, 0, None).objects == {}


@pytest.mark.parametrize(
    ("group", "table", "sequence"),
    [
        (READ_ALL_DATA, SELECT, SELECT),
        (
            WRITE_ALL_DATA,
            Privilege.INSERT | Privilege.UPDATE | Privilege.DELETE,
            Privilege.UPDATE,
        ),
    ],
)
def test_predefined_groups_read_and_write_all(
    group: int, table: Privilege, sequence: Privilege
) -> None:
    access = with_people()
    member = access.with_roles(access.roles.grant(BOOTSTRAP_ROLE, group, ANN))
    assert member.privileges(ANN, "table", TABLE) == table
    assert member.privileges(ANN, "sequence", SEQUENCE) == sequence
    assert member.privileges(ANN, "column", TABLE, 3) == table & ALL["column"]
    assert member.privileges(BOB, "table", TABLE) == NOTHING


def test_columns_are_asked_where_the_table_is_not_enough() -> None:
    access = given(with_people(), TABLE, 3, Item(ANN, BOOTSTRAP_ROLE, SELECT, NOTHING))
    access = given(access, TABLE, 4, Item(PUBLIC, BOOTSTRAP_ROLE, SELECT, NOTHING))
    readable: tuple[tuple[int, ...], ...] = ((3,), (4,), (3, 4), ())
    for columns in readable:  # () as in count(*): any column will do
        check_privilege(access, ANN, "table", TABLE, columns, SELECT, "t")
    check_privilege(access, BOB, "table", TABLE, (), SELECT, "t")
    for role, columns, wanted in [
        (ANN, (3, 5), SELECT),
        (BOB, (3,), SELECT),
        (ANN, (3,), SELECT | Privilege.UPDATE),
        (ANN, (), Privilege.DELETE),
    ]:
        with pytest.raises(InsufficientPrivilege, match=r"^permission denied for table t$"):
            check_privilege(access, role, "table", TABLE, columns, wanted, "t")
    with pytest.raises(InsufficientPrivilege, match=r"^permission denied for sequence s$"):
        check_privilege(access, ANN, "sequence", SEQUENCE, (), Privilege.USAGE, "s")


def test_a_group_is_needed_for_what_no_object_says() -> None:
    access = with_people()
    check_group(access, BOOTSTRAP_ROLE, STEER_JOBS, "cancel job 3")
    with pytest.raises(InsufficientPrivilege, match=r"cancel job 3.*leasehold_steer_jobs"):
        check_group(access, ANN, STEER_JOBS, "cancel job 3")
    member = access.with_roles(access.roles.grant(BOOTSTRAP_ROLE, STEER_JOBS, ANN))
    check_group(member, ANN, STEER_JOBS, "cancel job 3")


def test_writes_of_the_log_and_of_a_store_come_to_the_same() -> None:
    chance, access, followed = Random(3), Access(), Access()
    for _ in range(400):
        changed = changed_at_random(access, chance)
        for write in changed.writes_since(access):
            kept = type(write)(*msgpack.unpackb(msgpack.packb(tuple(write))))
            followed = followed.applied(kept)
        access = changed
        assert told(followed) == told(access)
    loaded = Access.load(access.writes_since(Access()), access.next_role_id)
    assert told(loaded) == told(access)


def test_the_id_of_a_dropped_role_is_not_given_again() -> None:
    access = with_people()
    after = access.with_roles(access.roles.without_role(STAFF))
    assert after.next_role_id == access.next_role_id == STAFF + 1


def test_a_forgotten_table_leaves_nothing_behind() -> None:
    access = given(with_people().with_owner(TABLE, ANN), TABLE, 3, Item(BOB, ANN, SELECT, NOTHING))
    assert list(access.depending_on(ANN)) == [(TABLE, 0), (TABLE, 3)]
    assert list(access.depending_on(BOB)) == [(TABLE, 3)]
    assert access.without_object(TABLE).objects == {}
    assert access.without_object(SEQUENCE) is access


@pytest.mark.parametrize(
    "write",
    [
        RoleWrite(ANN, {"name": "ann", "may_fly": True}),
        MembershipWrite(ANN, BOB, {"grantor": 10, "admin": False, "inherit": True}),
        AccessWrite(TABLE, 0, {**NOTHING_RECORDED.to_wire(), "policies": []}),
        RoleWrite(ANN, {}),
    ],
)
def test_what_a_newer_release_says_stops_a_node(
    write: RoleWrite | MembershipWrite | AccessWrite,
) -> None:
    for read in (Access().applied, lambda each: Access.load([each])):
        with pytest.raises(LogStopped, match="newer release"):
            read(write)


def test_a_list_is_kept_as_it_was() -> None:
    acl = (Item(PUBLIC, ANN, SELECT, NOTHING), Item(BOB, ANN, SELECT, SELECT))
    found = ObjectAccess(ANN, acl)
    assert ObjectAccess.from_wire(found.to_wire()) == found
