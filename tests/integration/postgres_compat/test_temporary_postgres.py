# ruff: noqa: E501 - a statement stands in one line
"""Goal: temporary tables are a session's own, and otherwise what they are in PostgreSQL.

Method: the same stories said to both, and the same rows, tags, SQLSTATEs and constraint names.
"""

from __future__ import annotations

from typing import Final

import psycopg
import pytest

from tests.support.postgres.client_server import Server
from tests.support.postgres.stories import check_story

pytestmark = pytest.mark.integration

SHARED: Final = """
        create table item (id int primary key, n int, note text)
        insert into item values (1, 10, 'a'), (2, 20, 'b'), (3, 30, 'c')
"""

STORIES: Final = {
    "made, filled, changed, read and dropped": """
        create temp table t (id int primary key, n int not null default 5, note text)
        insert into t select id, n, note from item
        insert into t (id) values (9)
        select * from t order by id
        update t set n = n + 1 where id > 1 returning id, n
        delete from t where id = 1
        select t.id, item.n, t.n from t join item using (id) order by 1
        insert into item select id + 100, n, note from t where note is not null
        select * from item order by id
        update item set n = t.n from t where t.id = item.id
        with d as (delete from t where id = 9 returning *) select * from d
        merge into t using item on t.id = item.id when matched then update set note = item.note || '!' when not matched then insert values (item.id, item.n, 'new')
        select * from t order by id
        select count(*) from t
        truncate t
        select count(*) from t
        drop table t
        select count(*) from t
        drop table if exists t
    """,
    "with constraints and indexes": """
        create temporary table t (id int primary key, a int unique, b int check (b > 0), c text not null)
        create index on t (b)
        create unique index on t (lower(c))
        insert into t values (1, 1, 1, 'x'), (2, 2, 2, 'y')
        insert into t values (1, 3, 3, 'z')
        insert into t values (3, 1, 3, 'z')
        insert into t values (3, 3, 0, 'z')
        insert into t values (3, 3, 3, null)
        insert into t values (3, 3, 3, 'X')
        insert into t values (3, 3, 3, 'z'), (4, 3, 3, 'w')
        insert into t values (2, 9, 9, 'q') on conflict (id) do update set b = excluded.b returning *
        insert into t values (7, 1, 9, 'q') on conflict (a) do nothing
        update t set a = 1 where id = 2
        update t set a = a + 10
        update t set id = id + 10
        select * from t order by id
        delete from t where id = 11
        insert into t values (1, 11, 1, 'x')
        select * from t order by id
    """,
    "changed when it has rows": """
        create temp table t (id int primary key, a int, b text)
        insert into t values (1, 5, 'x'), (2, 5, null)
        alter table t add column k int default 7
        alter table t rename column b to word
        select * from t order by id
        create unique index on t (a)
        alter table t alter column word set not null
        alter table t add constraint big check (a > 5)
        update t set a = id + 10, word = 'w'
        create unique index t_a on t (a)
        alter table t alter column word set not null
        alter table t add constraint big check (a > 5)
        insert into t values (3, 11, 'y', 1)
        insert into t values (3, 3, 'y', 1)
        insert into t values (3, 33, null, 1)
        alter table t drop column k
        drop index t_a
        insert into t values (3, 11, 'y')
        alter table t rename to other
        select * from other order by id
        select * from t
        drop table other
    """,
    "in blocks, with savepoints": """
        begin
        create temp table t (id int primary key, n int)
        insert into t values (1, 1)
        savepoint s
        insert into t values (2, 2)
        create temp table u (id int)
        rollback to s
        select * from t
        select * from u
        rollback to s
        insert into t select id + 10, n from item
        commit
        select * from t order by id
        begin
        delete from t where id = 1
        update t set n = 0
        drop table item
        rollback
        select * from t order by id
        begin
        drop table t
        select * from t
        rollback
        select * from t order by id
        begin
        insert into t values (1, 9)
        select * from t
        rollback
        select count(*) from t
    """,
    "what becomes of it at COMMIT": """
        create temp table kept (id int) on commit preserve rows
        create temp table emptied (id int) on commit delete rows
        create temp table gone (id int) on commit drop
        insert into kept values (1)
        insert into emptied values (1)
        select * from kept
        select * from emptied
        select * from gone
        begin
        create temp table gone on commit drop as select * from item
        insert into emptied values (1), (2)
        select count(*) from gone
        select count(*) from emptied
        savepoint s
        rollback to s
        commit
        select count(*) from emptied
        select count(*) from gone
        begin
        create temp table gone (id int) on commit drop
        rollback
        select count(*) from gone
        create table plain (id int) on commit drop
    """,
    "of a query": """
        create temp table t as select id, n * 2 as twice, note from item where id > 1
        select * from t order by id
        create temp table u (a, b) as select id, note from item with no data
        select * from u
        create temp table if not exists t as select 1 as x
        select * from t order by id
        create temp table t as select 1 as x
        create temporary table v on commit delete rows as select 1 as x
        select * from v
        create table pg_temp.w (id int)
        insert into pg_temp.w values (4)
        select * from w
        drop table t, u, v, w
    """,
    "it hides a table of the same name": """
        create temp table item (id int primary key, own text)
        insert into item values (1, 'mine')
        select * from item
        select * from public.item order by id
        select * from pg_temp.item
        insert into public.item values (4, 40, 'd')
        update public.item set n = 0 where id = 1
        delete from public.item where id = 2
        select i.id, p.n, i.own from item i join public.item p using (id)
        select * from pg_temp.nothing
        create table pg_temp.item (id int)
        drop table item
        select * from item order by id
        select * from pg_temp.item
    """,
    "numbers of its own": """
        create temp table t (id serial primary key, k int generated by default as identity, w text)
        insert into t (w) values ('a'), ('b') returning id, k
        insert into t (w) values ('c') returning id, k
        begin
        insert into t (w) values ('d') returning id
        rollback
        insert into t (w) values ('e') returning id > 3
        select currval(pg_get_serial_sequence('t', 'id')) > 3
        truncate t restart identity
        insert into t (w) values ('f') returning id, k
        drop table t
    """,
    "at every level, and where nothing may be written": """
        begin isolation level repeatable read
        create temp table t (id int primary key, n int)
        insert into t values (1, 1)
        select t.n, item.n from t join item using (id)
        commit
        begin isolation level serializable
        update t set n = n + 1 returning *
        insert into t select id, n from item where id > 1
        select * from t order by id
        commit
        begin read only
        insert into t values (9, 9)
        update t set n = 0 where id = 9 returning *
        insert into item select 9, 9
        rollback
        begin read only
        create temp table u (id int)
        rollback
        begin read only
        create temp table u as select 1 as x
        rollback
        begin read only
        truncate t
        rollback
        begin read only
        drop table t
        rollback
        select count(*) from t
    """,
    "DISCARD drops all": """
        create temp table t (id int)
        create temp table u (id int)
        discard temp
        select * from t
        create temp table t (id int)
        discard all
        select * from t
        create temp table t (id int)
        begin
        discard temp
        select * from t
        rollback
        select * from t
        discard temporary
        select * from u
    """,
    "the catalog tells": """
        create temp table t (id int primary key, n int)
        create index t_n on t (n)
        select relname, relpersistence, relkind from pg_class where relname in ('t', 't_n', 't_pkey', 'item') order by 1
        select tablename, schemaname like 'pg_temp_%' from pg_tables where tablename in ('t', 'item') order by 1
        select table_name, table_type, table_schema like 'pg_temp_%' from information_schema.tables where table_name in ('t', 'item') order by 1
        select column_name from information_schema.columns where table_name = 't' order by ordinal_position
        select 't'::regclass::text, to_regclass('pg_temp.t') is not null, to_regclass('public.t') is null
        select nspname like 'pg_temp_%' from pg_namespace n join pg_class c on c.relnamespace = n.oid where relname = 't'
        select indexname from pg_indexes where tablename = 't' order by 1
    """,
    "what fails": """
        create temp table t (id int)
        create temp table t (id int)
        create temp table if not exists t (id int)
        create temp table public.u (id int)
        select * from public.t
        create temp table u (id int, id int)
        create temp table u (id nothing)
        insert into t values ('x')
        alter table t add column id int
        create table c (id int references t)
        select * from c
    """,
}


@pytest.mark.parametrize("name", STORIES)
def test_temporary_tables(servers: tuple[Server, Server], name: str) -> None:
    check_story(servers, SHARED + STORIES[name])


def test_they_are_of_one_session(servers: tuple[Server, Server]) -> None:
    """Each has its own under one name; they go with it, and no node ever hears of them."""
    answers = []
    for server in servers:
        with server.psycopg(autocommit=True) as one, server.psycopg(autocommit=True) as other:
            told = []
            for number, each in enumerate((one, other)):
                each.execute("create temp table mine (id int primary key, who text)")
                each.execute("insert into mine values (1, %s)", (f"session {number}",))
            told += [each.execute("select * from mine").fetchall() for each in (one, other)]
            one.close()
            with server.psycopg(autocommit=True) as third:
                with pytest.raises(psycopg.Error) as caught:
                    third.execute("select * from mine")
                told.append([(caught.value.sqlstate,)])
        answers.append(told)
    assert answers[0] == answers[1]


def test_a_prepared_statement_follows(servers: tuple[Server, Server]) -> None:
    """A table that comes and goes, of the same columns."""
    for server in servers:
        with server.psycopg(autocommit=True) as one:
            found = []
            for number in range(4):
                one.execute("create temp table p (id int, n int)")
                one.execute("insert into p values (%s, %s)", (number, number))
                found += one.execute(
                    "select n from p where id = %s", (number,), prepare=True
                ).fetchall()
                one.execute("drop table p")
            assert found == [(0,), (1,), (2,), (3,)]


def test_copy_goes_in_and_out(servers: tuple[Server, Server]) -> None:
    answers = []
    for server in servers:
        with server.psycopg() as one:
            one.execute("create temp table c (id int primary key, word text)")
            with one.cursor().copy("copy c from stdin") as copy:
                for n in range(500):
                    copy.write_row((n, f"w{n}"))
            with one.cursor().copy(
                "copy (select * from c where id < 3 order by id) to stdout"
            ) as copy:
                told = [bytes(part) for part in copy]
            answers.append([told, one.execute("select count(*) from c").fetchall()])
            one.rollback()
    assert answers[0] == answers[1]


def test_they_are_bounded(servers: tuple[Server, Server]) -> None:
    """By a setting of the session, with a hint; what went beyond is taken back."""
    ours, _ = servers
    with ours.psycopg(autocommit=True) as one:
        one.execute("set leasehold.temp_tables_mb = 1")
        one.execute("create temp table big (id int, word text)")
        one.execute("insert into big select i, repeat('x', 1000) from generate_series(1, 600) i")
        with pytest.raises(psycopg.Error) as caught:
            one.execute(
                "insert into big select i, repeat('x', 1000) from generate_series(1, 600) i"
            )
        assert caught.value.sqlstate == "54000"
        assert "leasehold.temp_tables_mb" in str(caught.value.diag.message_hint)
        assert one.execute("select count(*) from big").fetchall() == [(600,)]
        one.execute("delete from big where id > 10")
        one.execute("insert into big select i, repeat('x', 1000) from generate_series(1, 500) i")


def test_what_is_not_there_is_refused(servers: tuple[Server, Server]) -> None:
    ours, _ = servers
    with ours.psycopg(autocommit=True) as one:
        one.execute("create temp table t (id int primary key)")
        for text in (
            "create temp table u (id int references t)",
            "create temp view v as select 1",
            "create temp sequence s",
            "create unlogged table u (id int)",
        ):
            with pytest.raises(psycopg.Error) as caught:
                one.execute(text.encode())
            assert caught.value.sqlstate == "0A000", text
