"""Goal: who makes a table owns it, and no other may change it; what a job makes belongs to the
table's owner; who may do what with a table stays when its key changes.

Method: statements of roles on a catalog, as the master decides them. What GRANT and its kin do in
general is compared with PostgreSQL (`test_role_statements_postgres.py`).
"""

from __future__ import annotations

import pytest

from leasehold.catalog.access import Access
from leasehold.catalog.descriptor import from_wire
from leasehold.catalog.privileges import Privilege
from leasehold.model.errors import (
    DependentObjects,
    FeatureNotSupported,
    InsufficientPrivilege,
    NotAuthentic,
    Refused,
)
from leasehold.model.records.log import DescriptorWrite
from tests.support.roles.role_world import RoleWorld


@pytest.fixture
def world() -> RoleWorld:
    made = RoleWorld()
    made.say("create role ann login; create role bob login; create role staff")
    made.say("grant create on database leasehold to ann")
    made.say(
        "create table t (id serial primary key, a int, b int);"
        "create index by_a on t (a); create sequence s",
        "ann",
    )
    return made


def owner(world: RoleWorld, name: str) -> str:
    access = world.access
    return access.roles.name_of(access.owner_of(world.catalog.resolve(name).table_id))


def test_who_makes_a_table_owns_it_and_its_sequences(world: RoleWorld) -> None:
    assert [owner(world, name) for name in ("t", "t_id_seq", "s")] == ["ann"] * 3
    world.say("create table u (id int primary key)")
    assert owner(world, "u") == "leasehold"
    world.say("alter table t owner to bob; alter table u owner to bob")
    assert [owner(world, name) for name in ("t", "t_id_seq", "u")] == ["bob"] * 3


@pytest.mark.parametrize(
    ("said", "words"),
    [
        ("create table n (id int primary key)", "permission denied for database leasehold"),
        ("create sequence n", "permission denied for database leasehold"),
        ("drop table t", "must be owner of table t"),
        ("alter table t add column c int", "must be owner of table t"),
        ("alter table t rename to n", "must be owner of table t"),
        ("create index n on t (b)", "must be owner of table t"),
        ("drop index by_a", "must be owner of index by_a"),
        ("alter index by_a rename to n", "must be owner of index by_a"),
        ("alter index t_pkey rename to n", "must be owner of index t_pkey"),
        ("truncate t", "permission denied for table t"),
        ("drop sequence s", "must be owner of sequence s"),
        ("alter sequence s increment 2", "must be owner of sequence s"),
        ("alter sequence s restart", "must be owner of sequence s"),
        ("alter sequence s rename to n", "must be owner of sequence s"),
        ("alter sequence s owned by t.id", "must be owner of sequence s"),
        ("alter table t owner to bob", "must be owner of table t"),
    ],
)
def test_others_may_not_change_it(world: RoleWorld, said: str, words: str) -> None:
    before = world.access
    with pytest.raises(InsufficientPrivilege) as caught:
        world.say(said, "bob")
    assert caught.value.message == words
    assert world.access is before
    if words.startswith("permission denied for database"):
        world.say("grant create on database leasehold to bob")
    else:
        world.say("grant ann to bob")
    world.say(said, "bob")


def test_whoever_refers_to_a_table_needs_references_on_its_columns(world: RoleWorld) -> None:
    world.say("grant create on database leasehold to bob")
    made = "create table c (id int primary key, t int references t)"
    added = "alter table d add foreign key (t) references t (id)"
    world.say("create table d (id int primary key, t int)", "bob")
    for said in (made, added):
        with pytest.raises(InsufficientPrivilege, match=r"^permission denied for table t$"):
            world.say(said, "bob")
    world.say("grant references (a) on t to bob", "ann")
    with pytest.raises(InsufficientPrivilege):
        world.say(made, "bob")
    world.say("grant references (id) on t to bob", "ann")
    world.say(f"{made}; {added}", "bob")


def test_truncate_is_a_privilege_and_restart_identity_its_owners(world: RoleWorld) -> None:
    world.say("grant truncate on t to bob", "ann")
    world.say("truncate t", "bob")
    with pytest.raises(InsufficientPrivilege, match="must be owner of sequence t_id_seq"):
        world.say("truncate t restart identity", "bob")


def test_a_sequence_that_a_job_makes_is_its_tables_owners(world: RoleWorld) -> None:
    world.say("alter table t add column n bigint generated always as identity")
    (made,) = (i for job in world.catalog.jobs.values() for i in job.tables if i > 1 << 30)
    assert world.access.owner_of(made) == world.id_of("ann")


def test_a_table_under_another_key_keeps_its_owner_and_lists(world: RoleWorld) -> None:
    world.say("grant select, update (a) on t to bob", "ann")
    table = world.catalog.resolve("t")
    job_before = set(world.catalog.jobs)
    world.say("alter table t drop constraint t_pkey, add primary key (a)", "ann")
    (job,) = (world.catalog.jobs[each] for each in world.catalog.jobs if each not in job_before)
    (body,) = (e.after for step in job.steps for e in step.edits if (e.after or {}).get("former"))
    assert body is not None
    made = from_wire(body)
    world.catalog.apply(DescriptorWrite(made.table_id, made.version, body), 9, 9)
    bob, other = world.id_of("bob"), made.table_id
    for table_id in (table.table_id, other):
        assert world.access.owner_of(table_id) == world.id_of("ann")
        assert world.access.privileges(bob, "table", table_id) == Privilege.SELECT
        assert world.access.privileges(bob, "column", table_id, 2) & Privilege.UPDATE
    world.say("revoke select on t from bob", "ann")
    for table_id in (table.table_id, other):
        assert world.access.privileges(bob, "table", table_id) == Privilege.NONE


def test_drop_owned_takes_what_a_role_has_and_gave(world: RoleWorld) -> None:
    world.say("grant select on t to bob with grant option", "ann")
    world.say("grant select on t to staff", "bob")
    with pytest.raises(DependentObjects) as caught:
        world.say("drop role bob")
    assert caught.value.detail["detail"] == "privileges for table t"
    with pytest.raises(FeatureNotSupported, match="REASSIGN OWNED"):
        world.say("drop owned by ann")
    world.say("drop owned by bob; drop role bob")
    table = world.catalog.resolve("t").table_id
    assert world.access.privileges(world.id_of("staff"), "table", table) == Privilege.NONE


def test_what_depends_on_a_role_keeps_it(world: RoleWorld) -> None:
    with pytest.raises(DependentObjects) as caught:
        world.say("drop role ann")
    assert set(str(caught.value.detail["detail"]).split("\n")) == {
        "owner of table t",
        "owner of sequence s",
        "owner of sequence t_id_seq",
        "privileges for database leasehold",
    }
    world.say("reassign owned by ann to bob; drop owned by ann; drop role ann")
    assert owner(world, "t") == "bob"


def test_the_first_role_stays_a_superuser_and_predefined_ones_as_they_are(
    world: RoleWorld,
) -> None:
    for said in (
        "alter role leasehold nosuperuser",
        "drop role pg_monitor",
        "alter role leasehold_steer_jobs login",
        "create role leasehold_other",
        "alter role pg_read_all_data rename to x",
    ):
        with pytest.raises(Refused):
            world.say(said)
    world.say("grant leasehold_steer_jobs, pg_read_all_stats to ann")


def test_a_request_has_the_rights_of_its_principal() -> None:
    world = RoleWorld()
    world.say("create role ann login; create role staff; create role other; grant staff to ann")
    access: Access = world.access
    assert access.actor_of("") == world.id_of("leasehold")
    assert access.actor_of("ann") == world.id_of("ann")
    assert access.actor_of("ann", "staff") == world.id_of("staff")
    for principal, words in (("staff", "not permitted to log in"), ("nobody", "does not exist")):
        with pytest.raises(NotAuthentic, match=words):
            access.actor_of(principal)
    for role in ("other", "leasehold", "nobody"):
        with pytest.raises(InsufficientPrivilege, match="permission denied to set role"):
            access.actor_of("ann", role)
