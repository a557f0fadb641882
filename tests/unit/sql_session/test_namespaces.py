"""Schemas beside public in SQL sessions: what lies in them, and how it is named and shown."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from leasehold.catalog.access import Access
from leasehold.dev.database import DevDatabase
from leasehold.model.errors import LeaseholdError
from leasehold.model.features import Feature, FeatureGate
from tests.support.sql_session.sql_client import SqlClient, database_with


@pytest.fixture(scope="module")
def database(tmp_path_factory: pytest.TempPathFactory) -> Iterator[DevDatabase]:
    with database_with(tmp_path_factory, "create table t (id int primary key)") as made:
        yield made


@pytest.fixture
def client(database: DevDatabase) -> Iterator[SqlClient]:
    made = SqlClient(database)
    made.ask("create schema app")
    yield made
    made.session.fail()
    made.ask("rollback")
    named = "select tablename from pg_tables where schemaname = 'app'"
    for (name,) in made.ask(named):
        made.ask(f'drop table app."{name}" cascade')
    for (name,) in made.ask("select sequencename from pg_sequences where schemaname = 'app'"):
        made.ask(f'drop sequence app."{name}"')
    made.ask("drop schema if exists app")
    assert not database.check().differences
    made.session.close()


def test_a_table_of_a_schema_is_another_one(client: SqlClient) -> None:
    client.ask("create table app.t (id serial primary key, a int)")
    client.ask("insert into app.t (a) values (1), (2); insert into t values (7)")
    assert client.ask("select id, a from app.t order by id") == [(1, 1), (2, 2)]
    assert client.ask("select id from t") == client.ask("select id from public.t") == [(7,)]
    client.ask("update app.t set a = a + 1 where t.id = 1; delete from app.t where a = 9")
    joined = "select t.id, x.a from t join app.t x on x.id < t.id order by 2"
    assert client.ask(joined) == [(7, 2), (7, 2)]
    assert client.ask("select t.a from app.t where t.id = 1") == [(2,)]
    client.ask("delete from t")


def test_what_lies_beside_a_table_is_of_its_schema(client: SqlClient) -> None:
    client.ask("create table app.t (id int primary key, a int constraint u unique, b int)")
    client.ask("create index i on app.t (b); create index on app.t (a, b)")
    client.ask("create table u (id int primary key); create index i on u (id)")
    shown = "select schemaname, tablename, indexname from pg_indexes where indexname <> 't_pkey'"
    assert client.ask(f"{shown} and tablename in ('t', 'u') order by 1, 3") == [
        ("app", "t", "i"),
        ("app", "t", "t_a_b_idx"),
        ("app", "t", "u"),
        ("public", "u", "i"),
        ("public", "u", "u_pkey"),
    ]
    client.ask("drop index app.i; alter index app.t_a_b_idx rename to i")
    assert client.code("drop index app.nothing") in ("42704", "42P01")
    client.ask("alter table app.t rename constraint u to w; alter table app.t drop constraint w")
    client.ask("drop table u")


def test_errors_name_the_schema_in_a_field_of_its_own(client: SqlClient) -> None:
    client.ask("create table app.t (id int primary key, a int check (a > 0))")
    client.ask("create table app.c (id int primary key, t int references app.t)")
    client.ask("insert into app.t values (1, 1)")
    cases = {
        "insert into app.t values (1, 1)": ("23505", "t", "t_pkey"),
        "insert into app.t values (2, -1)": ("23514", "t", "t_a_check"),
        "insert into app.c values (1, 9)": ("23503", "c", "c_t_fkey"),
    }
    for text, (code, table, constraint) in cases.items():
        with pytest.raises(LeaseholdError) as refused:
            client.ask(text)
        detail = refused.value.detail
        assert refused.value.sqlstate == code
        assert (detail["schema"], detail["table"], detail["constraint"]) == (
            *("app", table),
            constraint,
        )
        assert "app." not in refused.value.message
    client.ask("insert into app.t values (1, 5) on conflict on constraint t_pkey do nothing")


def test_a_schema_is_dropped_when_nothing_lies_in_it(client: SqlClient) -> None:
    client.ask("create table app.t (id int primary key)")
    assert client.code("drop schema app") == "2BP01"
    assert client.code("drop schema app cascade") == "0A000"
    client.ask("drop table app.t; drop schema app")
    assert client.code("create table app.t (id int primary key)") == "3F000"
    assert client.code("select * from app.t") == "42P01"
    client.ask("create schema app; create table app.t (id int primary key); drop table app.t")
    client.ask("drop schema app cascade")


def test_in_a_block(client: SqlClient) -> None:
    client.ask("begin; create schema more; create table more.t (id serial primary key, a int)")
    client.ask("insert into more.t (a) values (5)")
    assert client.ask("select * from more.t") == [(1, 5)]
    client.ask("rollback")
    assert client.code("select * from more.t") == "42P01"
    assert client.code("drop schema more") == "3F000"
    client.ask("begin; create schema more; create table more.t (id int primary key)")
    client.ask("insert into more.t values (5); truncate more.t; insert into more.t values (6)")
    client.ask("alter table more.t add column b int default 7; commit")
    assert client.ask("select * from more.t") == [(6, 7)]
    client.ask("begin; drop table more.t; drop schema more; commit")
    assert client.code("select * from more.t") == "42P01"


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ("create schema app", "42P06"),
        ("create schema if not exists app", "00000"),
        ("create schema public", "42P06"),
        ("create schema pg_more", "42939"),
        ('create schema "a.b"', "0A000"),
        ("drop schema public", "0A000"),
        ("drop schema nothing", "3F000"),
        ("drop schema if exists nothing", "00000"),
        ("create table nothing.t (id int primary key)", "3F000"),
        ("create sequence nothing.s", "3F000"),
        ('create table "app.t" (id int primary key)', "0A000"),
        ('alter table t rename to "app.t"', "0A000"),
        ("create view app.v as select 1", "0A000"),
        ("create type app.e as enum ('a')", "0A000"),
        ("set search_path = app", "0A000"),
        ("alter table t set schema app", "0A000"),
        ("alter schema app rename to other", "0A000"),
        ("create table pg_catalog.t (id int primary key)", "0A000"),
        ("create table other.app.t (id int primary key)", "0A000"),
    ],
)
def test_what_is_refused(client: SqlClient, text: str, code: str) -> None:
    assert client.code(text) == code


def test_a_sequence_of_a_schema(client: SqlClient) -> None:
    client.ask("create sequence app.s start 5")
    client.ask("create table app.t (id int default nextval('app.s'))")
    client.ask("insert into app.t default values")
    assert client.ask("select id from app.t") == [(5,)]
    assert client.ask("select nextval('app.s'), currval('app.s'::regclass)") == [(6, 6)]
    shown = "select pg_get_expr(adbin, adrelid) from pg_attrdef where adrelid = 'app.t'::regclass"
    assert client.ask(shown) == [("nextval('app.s'::regclass)",)]
    client.ask("create table app.u (id serial primary key)")
    assert client.ask("select pg_get_serial_sequence('app.u', 'id')") == [("app.u_id_seq",)]
    client.ask("drop table app.t; alter sequence app.s rename to r")
    assert client.ask("select nextval('app.r') > 5") == [(1,)]


def test_a_role_that_owns_a_schema(client: SqlClient) -> None:
    client.ask("create role r; create role other; create schema more authorization r")
    assert client.code("drop role r") == "2BP01"
    assert client.code("drop owned by r") == "0A000"
    assert client.code("create role more") == "0A000"
    assert client.code("alter role other rename to more") == "0A000"
    assert client.code("create schema other") == "0A000"
    client.ask("set role r; create table more.t (id int primary key)")
    assert client.code("create table app.t (id int primary key)") == "42501"
    client.ask("set role other")
    assert client.code("create table more.u (id int primary key)") == "42501"
    assert client.code("drop schema more") == "42501"
    assert client.code("select * from more.t") == "42501"
    client.ask("reset role; grant select on all tables in schema more to other; set role other")
    assert client.ask("select * from more.t") == []
    client.ask("reset role; drop table more.t; reassign owned by r to other; drop role r")
    client.ask("set role other; drop schema more; reset role; drop role other")


def test_none_is_made_beside_an_earlier_release(
    database: DevDatabase, client: SqlClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It would stop at the record of one."""
    master = database.cluster.master()
    assert master is not None
    assert master.node is not None
    changes = master.node.master.changes  # type: ignore[union-attr]
    earlier = FeatureGate(lambda number, now_ns: number < Feature.NAMESPACES)
    monkeypatch.setattr(changes, "features", earlier)
    assert client.code("create schema more") == "0A000"
    client.ask("create schema if not exists public")
    monkeypatch.undo()
    client.ask("create schema more; drop schema more")


def test_a_store_keeps_them(database: DevDatabase, client: SqlClient) -> None:
    for node in ("r1", "r2"):
        with database._stores[node].open_snapshot() as snapshot:
            stored = snapshot.stored_catalog()
        loaded = Access.load(stored.access, stored.next_role_id)
        assert [each.name for each in loaded.namespaces.values()] == ["app"]
        assert loaded.namespaces == client.node.access.namespaces
