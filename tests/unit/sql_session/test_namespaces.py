"""Schemas beside public in SQL sessions: what lies in them, and how it is named and shown."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

import pytest

from leasehold.catalog.access import Access
from leasehold.catalog.job import NO_WAY_BACK
from leasehold.dev.database import DevDatabase
from leasehold.model.errors import LeaseholdError
from leasehold.model.features import Feature, FeatureGate
from leasehold.pgwire.session import Notice
from leasehold.pgwire.wire_errors import CachedResultChanged
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
    made.ask("rollback; reset role; reset search_path")
    named = "select tablename from pg_tables where schemaname = 'app'"
    for (name,) in made.ask(named):
        made.ask(f'drop table app."{name}" cascade')
    for (name,) in made.ask("select sequencename from pg_sequences where schemaname = 'app'"):
        made.ask(f'drop sequence app."{name}"')
    made.ask("drop schema if exists app cascade")
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
        ("create view nothing.v as select 1", "3F000"),
        ("create type nothing.e as enum ('a')", "3F000"),
        ("set search_path = app, nothing", "00000"),
        ("select set_config('search_path', 'a b', false)", "22023"),
        ("grant usage on schema nothing to public", "3F000"),
        ("grant create on schema public to public", "0A000"),
        ("grant select on schema app to public", "0LP01"),
        ("alter schema public owner to leasehold", "0A000"),
        ("alter table t set schema nothing", "3F000"),
        ("alter schema public rename to other", "0A000"),
        ("alter schema nothing rename to other", "3F000"),
        ("alter schema app rename to app", "42P06"),
        ("alter schema app rename to public", "42P06"),
        ("alter schema app rename to pg_app", "42939"),
        ('alter schema app rename to "a.b"', "0A000"),
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
    client.ask("set role r; create table more.t (id int primary key)")
    assert client.code("create table app.t (id int primary key)") == "42501"
    client.ask("set role other")
    assert client.code("create table more.u (id int primary key)") == "42501"
    assert client.code("drop schema more") == "42501"
    assert client.code("select * from more.t") == "42501"
    client.ask("reset role; grant select on all tables in schema more to other; set role other")
    assert client.code("select * from more.t") == "42501"  # the schema itself
    client.ask("reset role; grant usage on schema more to other; set role other")
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
    ((name,),) = client.ask("select current_database()")
    assert client.code(f"alter database {name} set search_path = app") == "0A000"
    client.ask("create table app.t (id int)")
    assert client.code("alter schema app rename to more") == "0A000"
    monkeypatch.undo()
    client.ask("create schema more; drop schema more")


def test_a_store_keeps_them(database: DevDatabase, client: SqlClient) -> None:
    for node in ("r1", "r2"):
        with database._stores[node].open_snapshot() as snapshot:
            stored = snapshot.stored_catalog()
        loaded = Access.load(stored.access, stored.next_role_id)
        assert [each.name for each in loaded.namespaces.values()] == ["app"]
        assert loaded.namespaces == client.node.access.namespaces


def test_a_path_is_followed_by_prepared_statements(client: SqlClient) -> None:
    client.ask("create schema more; create table app.p (id int); create table more.p (id int)")
    client.ask("insert into app.p values (1); insert into more.p values (2)")
    client.ask("set search_path = app")
    prepared = client.session.prepare(client.session.statements("select id from p")[0], ())
    assert client.run(prepared) == [(1,)]
    client.ask("set search_path = more")
    assert client.run(prepared) == [(2,)]
    client.ask("create table app.q (id int); set search_path = app, more")
    insert = client.session.statements("insert into p values (3) returning id")[0]
    written = client.session.prepare(insert, ())
    assert client.run(written) == [(3,)]
    client.session.end_batch()
    client.ask("drop table app.p")
    assert client.run(prepared) == [(2,)]
    client.ask("create table app.p (id text)")
    with pytest.raises(CachedResultChanged):
        client.run(prepared)
    client.session.fail()
    client.ask("drop schema more cascade")


def test_places_and_names_of_errors_are_those_that_were_said(client: SqlClient) -> None:
    client.ask("create table app.p (id int primary key, b int); set search_path = app")
    cases = {
        "select ü.id, nothing from p as ü": ("42703", 14, ""),
        "select * from p, nothing": ("42P01", 18, 'table "nothing" does not exist'),
        "select 1; select id, nothing from p": ("42703", 22, ""),
        "insert into p (id, nothing) values (1, 2)": ("42703", 20, ""),
        "declare c cursor with hold for select nothing from p": ("42703", 39, ""),
        "create table q as select nothing from p": ("42703", 26, ""),
        "copy (select nothing from p) to stdout": ("42703", 14, ""),
    }
    for text, (code, position, words) in cases.items():
        with pytest.raises(LeaseholdError) as refused:
            client.ask(text)
        error = refused.value
        assert (error.sqlstate, error.detail.get("position")) == (code, position), text
        assert "app." not in error.message.replace('"', "").replace("'", ""), text
        assert words.replace('"', "'") in error.message.replace('"', "'")


def test_what_is_kept_means_the_same_under_every_path(client: SqlClient) -> None:
    client.ask("create sequence app.s; create table app.p (id int); set search_path = app")
    client.ask("create table q (id int default nextval('s'), p int)")
    client.ask("create view public.v as select id from p")
    client.ask("insert into p values (7)")
    client.ask("begin; insert into q (p) values (1); set search_path = public; commit")
    assert client.ask("select * from app.q") == [(1, 1)]
    assert client.ask("select * from v") == [(7,)]
    client.ask("insert into app.q (p) values (2); drop view v")
    assert client.ask("select id from app.q order by id") == [(1,), (2,)]


def test_a_schema_goes_with_all_that_lies_in_it_at_once(client: SqlClient) -> None:
    client.ask("create schema more; create type more.m as enum ('a')")
    client.ask("create table more.t (id serial primary key, m more.m)")
    client.ask("create table app.c (id int primary key, t int references more.t)")
    client.ask("create view more.w as select id from more.t; create view app.v as table more.w")
    assert client.code("begin; drop schema more cascade") == "0A000"
    client.ask("rollback; drop schema more cascade")
    told = [each for each in client.reports if isinstance(each, Notice)]
    words = "; ".join(each.message for each in told)
    for each in (
        "view more.w",
        "table more.t",
        "type more.m",
        "constraint app.c_t_fkey",
        "view app.v",
    ):
        assert f"drop cascades to {each}" in words, each
    assert client.code("select * from more.t") == "42P01"
    assert client.code("select * from app.v") == "42P01"
    assert client.ask("select relname from pg_class where relname in ('t', 'w')") == [("t",)]
    client.ask("insert into app.c values (1, 9); create schema more; drop schema more")


def test_a_schema_that_goes_with_its_tables_does_not_come_back(
    database: DevDatabase, client: SqlClient
) -> None:
    """Its job can't be turned back: the schema has gone with the request."""
    client.ask("create schema more; create table more.t (id int primary key)")
    client.ask("set leasehold.wait_for_jobs = off; drop schema more cascade")
    jobs = client.node.jobs()
    job = jobs[max(jobs)]
    assert job.point == NO_WAY_BACK
    client.node.wait(lambda: client.node.jobs()[job.job_id].status.ended, 30.0)
    client.ask("create schema more; drop schema more")


def test_sessions_of_a_role_begin_with_its_path(database: DevDatabase, client: SqlClient) -> None:
    client.ask("create role r login; grant usage on schema app to r; create table app.p (id int)")
    client.ask("grant select on app.p to r; alter role r set search_path = app, 'no such'")
    shown = "select rolconfig[1] from pg_roles where rolname = 'r'"
    assert client.ask(shown) == [('search_path=app, "no such"',)]
    theirs = SqlClient(database, user="r")
    assert theirs.ask("select * from p") == []
    theirs.ask("set search_path = public; reset search_path")
    assert theirs.ask("show search_path") == [('app, "no such"',)]
    theirs.ask("alter role r set search_path = public")  # its own
    assert theirs.code("alter role r set work_mem = '1MB'") == "00000"
    assert theirs.ask("select current_schema()") == [("app",)]
    theirs.session.close()
    told = SqlClient(database, user="r", search_path="app")
    assert told.ask("select current_schema()") == [("app",)]
    told.session.close()
    client.ask("alter role r reset search_path")
    theirs = SqlClient(database, user="r")
    assert theirs.ask("show search_path") == [('"$user", public',)]
    theirs.session.close()
    client.ask("drop owned by r; drop role r")


def test_sessions_of_a_database_begin_with_its_path(
    database: DevDatabase, client: SqlClient
) -> None:
    client.ask("create role r login; alter role r set search_path = public")
    ((name,),) = client.ask("select current_database()")
    client.ask(f"alter database {name} set search_path = app, public")
    begun = SqlClient(database)
    assert begun.ask("show search_path") == [("app, public",)]
    begun.session.close()
    theirs = SqlClient(database, user="r")
    assert theirs.ask("show search_path") == [("public",)]  # its own comes first
    assert theirs.code(f"alter database {name} reset search_path") == "42501"
    theirs.session.close()
    assert client.ask("select setrole, setconfig[1] from pg_db_role_setting order by setrole")[
        0
    ] == (*(0, "search_path=app, public"),)
    for text in (
        "alter role all set search_path = app",
        f"alter role r in database {name} set search_path = app",
    ):
        assert client.code(text) == "0A000"
    before = client.ask("select * from pg_db_role_setting order by setrole")
    for text in (
        f"alter database {name} set timezone = 'UTC'",
        "alter role r set statement_timeout = '8s'",
        "alter role r set app.tenant to 'x', 'y'",
        "alter role r reset statement_timeout",
    ):
        client.reports.clear()
        client.ask(text)
        (told,) = [each for each in client.reports if isinstance(each, Notice)]
        assert told.severity == "WARNING"
        assert "is not kept" in told.message
    assert client.ask("select * from pg_db_role_setting order by setrole") == before
    theirs = SqlClient(database, user="r")
    assert theirs.code("alter role r set work_mem = '4MB'") == "00000"
    assert theirs.code(f"alter database {name} set work_mem = '4MB'") == "42501"
    theirs.session.close()
    assert client.code(f"alter database {name} set search_path = 'a b', c") == "00000"
    assert client.code("alter database nothing set search_path = app") == "3D000"
    client.ask(f"alter database {name} reset all; drop role r")
    begun = SqlClient(database)
    assert begun.ask("show search_path") == [('"$user", public',)]
    begun.session.close()


def test_the_text_of_a_view_gives_the_same_whatever_tables_are_called(client: SqlClient) -> None:
    client.ask("create table app.q (id int primary key, a text); insert into app.q values (1, 'x')")
    client.ask("create view v as select q.a, q.id from app.q")
    for change in (
        *("alter table app.q rename column a to z", "alter table app.q rename to s"),
        *("alter table app.s set schema public", "alter table s set schema app"),
    ):
        client.ask(change)
        (text,) = client.ask("select pg_get_viewdef('v'::regclass)")[0]
        assert client.ask(text) == client.ask("select * from v") == [("x", 1)], text
    client.ask("drop view v")


def test_a_schema_is_renamed_with_all_that_lies_in_it(client: SqlClient) -> None:
    client.ask("create table app.t (id serial primary key, a int unique)")
    client.ask("create table app.c (id int primary key, t int references app.t)")
    client.ask("create type app.mood as enum ('ok'); alter table app.c add column m app.mood")
    client.ask("create table d (id int default nextval('app.t_id_seq'))")
    client.ask("create view app.w as select t.id, 'ok'::app.mood as m from app.t")
    client.ask("create view v as select w.id from app.w join app.c as x on x.t = w.id")
    client.ask("insert into app.t (a) values (5); insert into app.c values (1, 1, 'ok')")
    assert client.code("begin; alter schema app rename to more") == "0A000"
    client.ask("rollback; alter schema app rename to more")
    assert client.tags == ["ROLLBACK", "ALTER SCHEMA"]
    for text in ("select * from app.t", "select * from app.w", "select 'ok'::app.mood"):
        assert client.code(text) in ("42P01", "3F000"), text
    assert client.ask("select * from more.w") == [(1, 1 << 24)]
    assert client.ask("select id from v") == [(1,)]
    assert client.ask("select pg_get_viewdef('v'::regclass)") == [
        (" SELECT w.id\n   FROM (more.w\n     JOIN more.c x ON ((x.t = w.id)));",)
    ]
    assert client.ask("insert into d default values returning id") == [(2,)]
    client.ask(
        "create schema app; alter schema app rename to other; alter schema other rename to app"
    )
    assert client.code("alter schema app rename to more") == "42P06"
    client.ask("drop view v; drop table d; drop schema app; alter schema more rename to app")
    assert client.ask("select a from app.t") == [(5,)]
    client.ask("drop view app.w; drop table app.c; drop type app.mood")


def test_f1_both_names_of_a_schema_are_known_while_a_version_of_before_is_in_use(
    database: DevDatabase, client: SqlClient
) -> None:
    client.ask("create table app.t (id int primary key); create table app.u (id int primary key)")
    client.ask("create type app.mood as enum ('ok'); create view app.v as select id from app.t")
    client.ask("create role r; grant select on app.t to r; insert into app.t values (1)")
    other = SqlClient(database)
    other.ask("begin; select * from app.t; set leasehold.wait_for_jobs = off")
    client.ask("set leasehold.wait_for_jobs = off; alter schema app rename to more")
    node = client.node

    def has_both() -> bool:
        return "more" in node.access.namespaces_by_name

    node.wait(has_both, 30.0)
    for schema in ("app", "more"):
        for text in (f"select id from {schema}.t", f"select id from {schema}.v"):
            assert client.ask(text) == [(1,)]
        client.ask(f"select 'ok'::{schema}.mood; set search_path = {schema}")
        assert client.ask("select t.id from t join v using (id)") == [(1,)]
        client.ask("reset search_path; set role r")
        assert client.code(f"select * from {schema}.t") == "42501"  # the schema's, by either name
        client.ask("reset role")
    other.ask("insert into app.t values (2)")
    assert other.ask("select count(*) from app.t") == [(2,)]
    for text, code in {
        "create table app.x (id int)": "3F000",
        "create table more.x (id int)": "55006",
        "create view more.x as select 1": "55006",
        "alter table t set schema more": "55006",
        "create schema app": "42P06",
        "drop schema app": "3F000",
        "alter schema app rename to x": "3F000",
        "alter schema more rename to x": "55006",
        'create table "more.x" (id int)': "0A000",
        "select relnamespace::regnamespace::text from pg_class where relname in ('t', 'v')": (
            "00000"
        ),
    }.items():
        assert client.code(text) == code, text
    for name in ("r1", "r2"):
        with database._stores[name].open_snapshot() as snapshot:
            stored = snapshot.stored_catalog()
        loaded = Access.load(stored.access, stored.next_role_id)
        assert loaded.namespaces_by_name.keys() == {"app", "more"}
    other.ask("commit")
    node.wait(lambda: "app" not in node.access.namespaces_by_name, 30.0)
    assert client.code("select * from app.t") == "42P01"
    assert client.ask("select count(*) from more.v") == [(2,)]
    other.session.close()
    client.ask("set leasehold.wait_for_jobs = on; alter schema more rename to app")
    client.ask("drop view app.v; drop type app.mood; drop owned by r; drop role r")


TWO: Final[dict[str, Any]] = {
    "select app.q.a, other.q.a from app.q, other.q": [("x", "u")],
    "select other.q.* from app.q left join other.q using (id)": [(1, "u")],
    "select public.q.a, app.q.a from q, app.q": [("p", "x")],
    "select app.q.a from app.q where exists (select from other.q where other.q.id = app.q.id)": [
        ("x",)
    ],
    "select q.a from app.q, other.q": "42P09",
    "select q.* from q, app.q": "42P09",
    "select a from app.q, other.q": "42702",
    "select 1 from app.q, app.q": "42712",
    "select 1 from app.q, other.q as q": "42712",
    "select 1 from app.q, (select 1) q": "42712",
    "select app.q.a from app.q as q": "42P01",
}


@pytest.mark.parametrize("text", TWO)
def test_two_tables_of_one_name_in_a_query(client: SqlClient, text: str) -> None:
    client.ask("create schema if not exists other")
    for name, value in (("app.q", "x"), ("other.q", "u"), ("q", "p")):
        client.ask(f"drop table if exists {name}; create table {name} (id int primary key, a text)")
        client.ask(f"insert into {name} values (1, '{value}')")
    found = TWO[text]
    if isinstance(found, str):
        assert client.code(text) == found
    else:
        assert client.ask(text) == found
    client.session.fail()
    client.ask("rollback; drop table app.q, other.q, q")
