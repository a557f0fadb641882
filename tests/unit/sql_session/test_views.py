"""Views: queries under a name, as the sessions of several nodes have them."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from leasehold.catalog.access import Access
from leasehold.dev.database import DevDatabase
from leasehold.model.errors import LeaseholdError
from leasehold.model.features import Feature, FeatureGate
from tests.support.sql_session.sql_client import SqlClient, client_of_tables


@pytest.fixture
def client(database: DevDatabase) -> Iterator[SqlClient]:
    tables = (
        "create table t (id int primary key, a int, b text)",
        "create table u (id int primary key, t int)",
        "insert into t values (1, 10, 'x'), (2, 20, 'y')",
        "insert into u values (7, 1), (8, 2)",
    )
    drop = "drop view if exists w, v cascade; drop table if exists t, r, u cascade"
    with client_of_tables(database, *tables, dropped_by=drop) as made:
        yield made


def error(client: SqlClient, text: str) -> LeaseholdError:
    with pytest.raises(LeaseholdError) as caught:
        client.ask(text)
    return caught.value


def views(client: SqlClient) -> list[str]:
    return [name for (name,) in client.ask("select viewname from pg_views order by 1")]


def test_a_view_is_its_query(client: SqlClient, database: DevDatabase) -> None:
    client.ask("create view v as select id, a + 1 as more from t where b = 'x'")
    assert client.tags == ["CREATE VIEW"]
    assert client.ask("select * from v") == [(1, 11)]
    client.ask("create view w (n) as select v.more from v join u on u.t = v.id")
    other = SqlClient(database, "r2")
    assert other.ask("select w.n, t.id from w, t order by t.id") == [(11, 1), (11, 2)]
    other.session.close()
    client.ask("update t set a = 0 where id = 1")
    assert client.ask("select n from public.w as x") == [(1,)]
    client.ask("drop view w; drop view v")
    assert client.code("select * from v") == "42P01"


def test_writes_and_serializable_reads_go_through_it(
    client: SqlClient, database: DevDatabase
) -> None:
    client.ask("create view v as select id, a from t where a < 100")
    client.ask("insert into u select id, a from v; update u set t = v.a from v where u.t = v.id")
    assert client.ask("select id, t from u order by id") == [(1, 10), (2, 20), (7, 10), (8, 20)]
    client.ask("begin isolation level serializable; select sum(a) from v")
    other = SqlClient(database, "r2")
    other.ask("insert into t values (3, 30)")
    other.session.close()
    client.ask("insert into u values (9, 1)")
    assert client.code("commit") == "40001"


def test_a_star_means_the_columns_of_then(client: SqlClient) -> None:
    client.ask("create view v as select * from t")
    client.ask("alter table t add column c int default 3")
    assert client.ask("select * from v where id = 1") == [(1, 10, "x")]


def test_names_mean_what_they_meant(client: SqlClient) -> None:
    client.ask("create view v as select a, t.b from t where id = 2")
    client.ask("alter table t rename column a to z")
    client.ask("alter table t rename to r")
    client.ask("create table t (id int primary key, a int)")
    assert client.ask("select a, b from v") == [(20, "y")]
    (text,) = client.ask("select pg_get_viewdef('v'::regclass)")[0]
    assert client.ask(text.rstrip("; ")) == [(20, "y")]
    assert "z AS a" in text
    client.ask("drop table r cascade")
    assert views(client) == []


@pytest.mark.parametrize(
    "query",
    [
        "select a, b from public.t where id = 2",
        'select public.t.a, x.b from only public.t join only (t) x on x."id" = t.id where t.id = 2',
        "with t as (select 2 as id) select x.a, x.b from t join public.t * as x using (id)",
        "select (select a from t where id = u.t), b from public.t, u where t.id = 2 and u.t = t.id",
        "select t.* from (select a, b from public.t where t.id = 2) as t",
    ],
)
def test_the_text_that_is_shown_gives_the_same_under_other_names(
    client: SqlClient, query: str
) -> None:
    client.ask(f"create view v as {query}")
    (said,) = client.ask("select pg_get_viewdef('v'::regclass)")[0]
    assert client.ask(said) == [(20, "y")]
    client.ask("alter table t rename column a to z; alter table t rename column id to number")
    client.ask("alter table t rename to r; create table t (id int primary key, a int)")
    assert client.ask("select * from v") == [(20, "y")]
    (text,) = client.ask("select pg_get_viewdef('v'::regclass)")[0]
    assert client.ask(text) == [(20, "y")]
    client.ask("drop view v; drop table t; alter table r rename to t")


def test_a_view_follows_the_names_of_a_table_under_another_key(client: SqlClient) -> None:
    client.ask("create view v as select a, b from t where id = 2")
    client.ask("alter table t drop constraint t_pkey, add primary key (a)")
    client.ask("alter table t rename column a to z; alter table t rename to r")
    assert client.ask("select * from v") == [(20, "y")]
    (text,) = client.ask("select pg_get_viewdef('v'::regclass)")[0]
    assert client.ask(text) == [(20, "y")]


def test_views_over_a_view_that_is_called_otherwise_go_on(client: SqlClient) -> None:
    client.ask("create view v as select id, a as first from t; create view w as select * from v")
    client.ask("alter view v rename to x; alter view x rename column first to one")
    assert client.ask("select id, first from w where id = 1") == [(1, 10)]
    assert client.ask("select one from x where id = 1") == [(10,)]
    (text,) = client.ask("select pg_get_viewdef('w'::regclass)")[0]
    assert text == " SELECT x.id,\n    x.one AS first\n   FROM x;"
    client.ask("create view v as select 3 as id, 4 as first")
    assert client.ask("select first from w where id = 1") == [(10,)], "it is another one"
    client.ask("drop view w, x, v")


def test_a_view_with_more_columns_shows_those_over_it_what_it_showed(client: SqlClient) -> None:
    client.ask("create view v as select id from t; create view w as select *, 5 as five from v")
    client.ask("create or replace view v as select id, b, a from t")
    assert client.ask("select * from w where id = 2") == [(2, 5)]


def test_who_asks_reads_a_view_that_says_so(client: SqlClient) -> None:
    client.ask("create role reader; create view v with (security_invoker) as select id from t")
    client.ask("grant select on v to reader; set role reader")
    assert client.code("select id from v") == "42501"
    client.ask("reset role; alter view v set (security_invoker = false); set role reader")
    assert client.ask("select count(*) from v") == [(2,)]
    client.ask("reset role; drop view v; drop role reader")


def test_a_barrier_computes_conditions_of_what_it_shows_alone(client: SqlClient) -> None:
    text = "select id, a from t where exists (select from u where u.t = t.id and u.id = 7)"
    client.ask(f"create view v with (security_barrier) as {text}; create view w as {text}")
    assert client.ask("select id from v where 1 / (a - 20) < 1") == [(1,)]
    assert client.code("select id from w where 1 / (a - 20) < 1") == "22012"


def test_an_earlier_release_keeps_later_forms_of_views_away(
    client: SqlClient, database: DevDatabase, monkeypatch: pytest.MonkeyPatch
) -> None:
    master = database.cluster.master()
    assert master is not None
    assert master.node is not None
    changes = master.node.master.changes  # type: ignore[union-attr]
    earlier = FeatureGate(lambda number, now_ns: number < Feature.VIEW_FORMS)
    monkeypatch.setattr(changes, "features", earlier)
    client.ask("create view v as select id from t")
    client.ask("alter view v rename to x; alter view x rename to v")
    client.ask("create view w as select id from v")
    for text in (
        "create view x with (security_invoker) as select 1 as a",
        "alter view v rename to x",
        "alter view v rename column id to number",
        "alter view v set (security_barrier)",
        "create or replace view v as select id, a from t",
    ):
        assert client.code(text) == "0A000", text
    monkeypatch.undo()
    assert client.code("alter view v rename to x") == "00000"
    client.ask("drop view w, x")


def test_what_a_view_rests_on_stays(client: SqlClient) -> None:
    client.ask("create view v as select id, a from t; create view w as select a from v")
    failed = error(client, "alter table t drop column a")
    assert failed.sqlstate == "2BP01"
    assert failed.detail["detail"] == "view v depends on column a of table t"
    assert client.code("alter table t drop column b") == "00000"
    assert client.code("drop table t") == "2BP01"
    assert client.code("drop view v") == "2BP01"
    assert client.code("alter table t alter column a type text") == "0A000"
    assert client.code("drop view v, w") == "00000"
    client.ask("create view v as select id, a from t; create view w as select a from v")
    client.reports.clear()
    client.ask("alter table t drop column a cascade")
    assert views(client) == []
    told = [str(report) for report in client.reports]
    assert any("drop cascades to view v" in words for words in told), told
    assert any("drop cascades to view w" in words for words in told), told


def test_or_replace_keeps_the_columns(client: SqlClient) -> None:
    client.ask("create view v as select id, a from t")
    client.ask("create view w as select id from v")
    assert client.code("create view v as select 1 as x") == "42P07"
    assert client.code("create or replace view v as select id from t") == "42P16"
    assert client.code("create or replace view v as select id, a as n from t") == "42P16"
    assert client.code("create or replace view v as select id, b as a from t") == "42P16"
    assert client.code("create or replace view v as select id, id as a from w") == "42P17"
    prepared = client.session.prepare(client.session.statements("select * from w")[0], ())
    assert client.run(prepared) == [(1,), (2,)]
    client.ask("create or replace view v as select id + 100 as id, a, b from t")
    assert client.run(prepared) == [(101,), (102,)]
    assert client.code("create or replace view t as select 1") == "42809"


def test_in_a_block(client: SqlClient) -> None:
    client.ask("begin; create table r (id int primary key); create view v as select id from r")
    client.ask("insert into r values (5)")
    assert client.ask("select * from v") == [(5,)]
    client.ask("rollback")
    assert views(client) == []
    client.ask("begin; create table r (id int primary key); create view v as select id from r")
    client.ask("insert into r values (5); commit")
    assert client.ask("select * from v") == [(5,)]
    client.ask("begin; drop view v; alter table r add column n int; insert into r values (6, 1)")
    assert client.code("select * from v") == "42P01"
    client.ask("rollback")
    client.ask("begin; create or replace view v as select id, 1 as one from r")
    client.ask("alter table r add column n int; commit")
    assert client.ask("select * from v") == [(5, 1)]


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ("insert into v values (1)", "0A000"),
        ("delete from v", "0A000"),
        ("truncate v", "42809"),
        ("drop table v", "42809"),
        ("alter table v add column x int", "42809"),
        ("create index on v (a)", "42809"),
        ("create table v (id int primary key)", "42P07"),
        ("create sequence v", "42P07"),
        ("alter table u rename to v", "42P07"),
        ("drop view t", "42809"),
        ("comment on view v is 'x'", "00000"),
        ("comment on view t is 'x'", "42809"),
        ("drop view nothing", "42P01"),
        ("drop view if exists nothing", "00000"),
        ("create view x as select nothing from t", "42703"),
        ("create view x as select * from nothing", "42P01"),
        ("create view x (a, b) as select 1", "42601"),
        ("create view x as select 1 as a, 2 as a", "42701"),
        ("create view x as select $1", "42P02"),
        ("create view x as select * from t for update", "0A000"),
        ("create view x as select 1 with check option", "0A000"),
        ("create temporary view x as select 1", "0A000"),
        ("create materialized view x as select 1", "0A000"),
    ],
)
def test_what_a_view_is_not(client: SqlClient, text: str, code: str) -> None:
    client.ask("create view v as select id, a from t")
    assert client.code(text) == code


def test_the_catalog_shows_it(client: SqlClient) -> None:
    client.ask("create view v as select id, b as text from t")
    asked = "select relkind, relname from pg_class where oid = 'v'::regclass"
    assert client.ask(asked) == [("v", "v")]
    asked = "select table_type from information_schema.tables where table_name = 'v'"
    assert client.ask(asked) == [("VIEW",)]
    asked = "select attname from pg_attribute where attrelid = 'v'::regclass and attnum > 0"
    assert client.ask(asked + " order by attnum") == [("id",), ("text",)]
    asked = "select column_name, data_type from information_schema.columns where table_name = 'v'"
    assert client.ask(asked + " order by 1") == [("id", "integer"), ("text", "text")]
    asked = "select view_definition from information_schema.views"
    assert client.ask(asked) == [(" SELECT t.id,\n    t.b AS text\n   FROM t;",)]
    assert client.ask("select definition from pg_views") == client.ask(asked)
    assert client.ask("select count(*) from pg_tables where tablename = 'v'") == [(0,)]


def test_who_may_read_a_view_reads_as_its_owner(client: SqlClient) -> None:
    client.ask("create role reader")
    client.ask("create view v as select id, a from t")
    client.ask("set role reader")
    assert client.code("select a from v") == "42501"
    client.ask("reset role; grant select on v to reader; set role reader")
    assert client.ask("select a from v where id = 1") == [(10,)]
    assert client.code("select a from t") == "42501"
    assert client.code("create or replace view v as select id, a from t") == "42501"
    assert client.code("drop view v") == "42501"
    client.ask("reset role; create role owner; alter table v owner to owner")
    assert client.code("set role reader; select a from v") == "42501", "the owner may not read t"
    client.ask("reset role; grant select on t to owner; set role reader")
    assert client.ask("select a from v where id = 1") == [(10,)]
    client.ask("reset role")
    assert client.code("drop role owner") == "2BP01"
    client.ask("drop view v; revoke all on t from owner; drop role owner; drop role reader")


def test_errors_within_a_view_stand_where_it_is_named(client: SqlClient) -> None:
    client.ask("create view v as select 10 / a as n from t")
    client.ask("update t set a = 0")
    assert client.code("select n from v") == "22012"
    failed = error(client, "create view w as\n select nothing from v")
    assert failed.detail["position"] == len("create view w as\n select ") + 1


def test_views_outlast_a_start(database: DevDatabase, client: SqlClient) -> None:
    client.ask("create view v as select id, a from t")
    before = client.node.access.views
    store = database._stores["r1"]
    with store.open_snapshot() as snapshot:
        stored = snapshot.stored_catalog()
    assert Access.load(stored.access, stored.next_role_id).views == before


def test_none_is_made_beside_an_earlier_release(
    database: DevDatabase, client: SqlClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It would stop at the record of one."""
    master = database.cluster.master()
    assert master is not None
    assert master.node is not None
    changes = master.node.master.changes  # type: ignore[union-attr]
    earlier = FeatureGate(lambda number, now_ns: number < Feature.VIEWS)
    monkeypatch.setattr(changes, "features", earlier)
    assert client.code("create view v as select id from t") == "0A000"
    monkeypatch.undo()
    assert client.code("create view v as select id from t") == "00000"


def test_comments_outlast_a_start_and_a_new_key(database: DevDatabase, client: SqlClient) -> None:
    client.ask("comment on table t is 'all'; comment on column t.b is 'words'")
    client.ask("alter table t alter column a set not null")
    client.ask("alter table t drop constraint t_pkey, add primary key (a)")
    told = "select obj_description('t'::regclass), col_description('t'::regclass, 3)"
    assert client.ask(told) == [("all", "words")]
    for node in ("r1", "r2"):
        with database._stores[node].open_snapshot() as snapshot:
            stored = snapshot.stored_catalog()
        loaded = Access.load(stored.access, stored.next_role_id)
        assert loaded.comments == client.node.access.comments
    client.ask("comment on column t.b is null")
    assert client.ask(told) == [("all", None)]


def test_comments_are_read_and_forgotten_beside_an_earlier_release(
    database: DevDatabase, client: SqlClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    master = database.cluster.master()
    assert master is not None
    assert master.node is not None
    changes = master.node.master.changes  # type: ignore[union-attr]
    earlier = FeatureGate(lambda number, now_ns: number < Feature.VIEWS)
    monkeypatch.setattr(changes, "features", earlier)
    client.ask("comment on table t is 'all'")
    assert "not kept" in str(client.reports)
    assert client.ask("select obj_description('t'::regclass)") == [(None,)]


def test_it_rests_on_a_table_whose_key_has_changed_twice(client: SqlClient) -> None:
    """Each time it has become another table with the same columns."""
    client.ask("create view v as select id, b from t")
    client.ask("alter table t drop constraint t_pkey, add primary key (a)")
    client.ask("alter table t drop constraint t_pkey, add primary key (id)")
    client.ask("alter table t drop constraint t_pkey, add primary key (a, id)")
    assert client.ask("select * from v order by id") == [(1, "x"), (2, "y")]
    assert client.code("alter table t drop column b") == "2BP01"
    client.ask("alter table t rename to r")
    assert client.ask("select b from v where id = 1") == [("x",)]
    client.ask("alter table r drop column b cascade")
    assert views(client) == []
