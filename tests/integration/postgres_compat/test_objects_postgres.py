"""Goal: advisory locks and views are those of PostgreSQL.

Method: the same stories said to both, and the same rows, tags, SQLSTATEs and constraint names.
"""

from __future__ import annotations

from concurrent.futures import FIRST_COMPLETED, ThreadPoolExecutor, wait
from typing import Final

import pytest

from tests.support.postgres.client_server import Server
from tests.support.postgres.stories import check_story, told

pytestmark = pytest.mark.integration

DEADLINE_S: Final = 30.0
WAITING: Final = "select 1 from pg_locks where locktype = 'advisory' and not granted"
STORIES: Final = {
    "advisory locks are counted, and end with what they are of": """
        select pg_advisory_lock(1), pg_advisory_lock(1)
        select pg_try_advisory_lock(1, 2), pg_try_advisory_lock_shared(1)
        select pg_try_advisory_lock(null::int)
        select mode, granted, classid, objid, objsubid from pg_locks where locktype = 'advisory'
            order by classid, objid, objsubid, mode
        select pg_advisory_unlock(1), pg_advisory_unlock(1), pg_advisory_unlock(1)
        select pg_advisory_unlock_shared(1, 2), pg_advisory_unlock(1, 2)
        begin
        select pg_advisory_xact_lock(-3), pg_try_advisory_xact_lock_shared(-1, -3)
        select pg_advisory_unlock(-3)
        savepoint s
        select pg_advisory_xact_lock(4), pg_advisory_lock(5)
        rollback to s
        select mode, classid, objid, objsubid from pg_locks where locktype = 'advisory'
            order by classid, objid, objsubid, mode
        commit
        select mode, objid from pg_locks where locktype = 'advisory' order by objid
        select pg_advisory_unlock_all()
        select count(*) from pg_locks where locktype = 'advisory'
        select pg_advisory_lock()
        select pg_advisory_lock(1, 2, 3)
    """,
    "a view is its query": """
        create table member (id int primary key, a int, b text)
        insert into member values (1, 10, 'x'), (2, 20, 'y'), (3, null, 'z')
        create view v as select id, a + 1 as more, upper(b) from member where id > 1
        select * from v order by id
        select v.more, m.a from v join member m using (id) order by id
        create or replace view w (n, total) as select count(*), sum(more) from v
        select * from w
        select total from w where n = (select count(*) from v x where x.more is null) + 1
        create view v as select 1
        create or replace view v as select id from member
        create or replace view v as select id, a as more, upper(b), b from member
        select * from v order by id
        drop view v
        drop view v cascade
        select * from w
        drop view if exists v, w
    """,
    "names mean what they meant": """
        create table member (id int primary key, a int, b text)
        insert into member values (1, 10, 'x')
        create view v as select * from member
        create view w as select x.a from v as x where x.b = 'x'
        alter table member add column c int default 7
        alter table member rename column a to z
        alter table member rename to person
        create table member (id int primary key)
        select * from v
        select * from w
        alter table person drop column b
        alter table person drop column c
        alter table person alter column z type text
        drop table person
        drop table person cascade
        select * from w
    """,
    "what is wrong": """
        create table member (id int primary key, a int, b text)
        create view v as select id, a from member
        create view w as select nothing from member
        create view w as select * from nothing
        create view w (x, y, z) as select 1, 2
        create view w as select 1 as x, 2 as x
        create view member as select 1
        create or replace view member as select 1
        create table v (id int primary key)
        create or replace view v as select id, b as a from member
        create or replace view v as select id, a as n from member
        create view w as select id from v
        drop view member
        drop table v
        drop view nothing
        truncate v
        create index on v (a)
        select nothing from v
    """,
    "in a block": """
        begin
        create table member (id int primary key, a int)
        create view v as select a from member
        insert into member values (1, 5)
        select * from v
        savepoint s
        drop view v
        select * from v
        rollback to s
        select * from v
        commit
        select * from v
        begin
        drop view v
        rollback
        select * from v
    """,
    "a table of a query": """
        create table member (id int primary key, a numeric(8, 2), b varchar(20), c timestamptz)
        insert into member values (1, 10.5, 'x', '2024-01-01'), (2, 20, 'y', null)
        create table other as select id, a, upper(b) as b, a * 2, c from member where id < 9
        select * from other order by id
        select attname, format_type(atttypid, atttypmod), attnotnull from pg_attribute
            where attrelid = 'other'::regclass and attnum > 0 order by 1
        create table other as select 1
        create table if not exists other as select 1 as x
        create table empty (n, word) as select id, b from member with no data
        select * from empty
        insert into empty values (1, 'x')
        create table wide (x, y) as select 1 as a
        create table twice as select 1 as a, 2 as a
        create table broken as select 1 / (id - 1) from member
        select * from broken
        begin
        create table inner as values (1, 'a'), (2, 'b')
        create table third (k) as table member
        savepoint s
        create table fourth as select 1 / 0
        rollback to s
        select k, b from third order by k
        insert into third (k) values (3)
        commit
        select count(*), max(k) from third
        create table fifth as with recursive n as (select 1 as i union all select i + 1 from n
            where i < 5) select i from n
        select sum(i) from fifth
        create table sixth as select $1
        create table seventh as select nothing from member
    """,
    "comments are kept": """
        create table member (id int primary key, a int unique, b text, check (a > 0))
        create view v as select id, a from member
        create index by_b on member (b)
        create sequence s
        comment on table member is 'who is in'
        comment on column member.b is 'it''s a text'
        comment on view v is 'seen'
        comment on column v.a is 'of v'
        comment on index by_b is 'found by b'
        comment on index member_a_key is 'the index'
        comment on constraint member_a_key on member is 'the constraint'
        comment on constraint member_a_check on member is 'is positive'
        comment on constraint member_pkey on member is 'the key'
        comment on sequence s is 'numbers'
        select obj_description('member'::regclass), obj_description('member'::regclass, 'pg_class')
        select obj_description('member'::regclass, 'pg_constraint')
        select obj_description('v'::regclass, 'pg_class'), obj_description('s'::regclass)
        select col_description('member'::regclass, n) from generate_series(0, 4) n
        select col_description('v'::regclass, 2)
        select c.relname, d.objsubid, d.description from pg_description d
            join pg_class c on c.oid = d.objoid and d.classoid = 'pg_class'::regclass
            where c.relname in ('member', 'v', 's', 'by_b', 'member_a_key') order by 1, 2
        select c.conname, d.description from pg_description d
            join pg_constraint c on c.oid = d.objoid and d.classoid = 'pg_constraint'::regclass
            order by 1
        alter table member rename column b to z
        alter table member add column c int
        alter table member drop column a cascade
        select col_description('member'::regclass, attnum), attname from pg_attribute
            where attrelid = 'member'::regclass and attnum > 0 and not attisdropped order by attname
        comment on table member is null
        comment on column member.z is ''
        select count(*) from pg_description where objoid = 'member'::regclass
        comment on column member.nothing is 'x'
        comment on table v is 'x'
        comment on view member is 'x'
        begin
        create table other (id int primary key)
        comment on table other is 'new'
        select obj_description('other'::regclass)
        commit
        select obj_description('other'::regclass)
        drop sequence s
        drop table other
        create table other (id int primary key)
        select obj_description('other'::regclass)
    """,
    "the catalog shows views": """
        create table member (id int primary key, name varchar(20), n numeric(8, 2))
        create view v as select id, name, n, n * 2 as twice, 'x' as word from member
        select relname, relkind, relnatts, relhasindex from pg_class where relname = 'v'
        select attname, format_type(atttypid, atttypmod), attnotnull from pg_attribute
            where attrelid = 'v'::regclass and attnum > 0 order by attnum
        select table_name, table_type from information_schema.tables
            where table_schema = 'public' order by 1
        select column_name, ordinal_position, data_type, is_nullable from information_schema.columns
            where table_name = 'v' order by 2
        select table_name, check_option from information_schema.views where table_schema = 'public'
        select schemaname, viewname from pg_views where schemaname = 'public'
        select tablename from pg_tables where schemaname = 'public'
    """,
}


@pytest.mark.parametrize("story", STORIES.values(), ids=STORIES)
def test_a_story_is_answered_alike(servers: tuple[Server, Server], story: str) -> None:
    check_story(servers, story)


def test_two_sessions_wait_and_find_a_deadlock_alike(servers: tuple[Server, Server]) -> None:
    for server in servers:
        with server.psycopg(autocommit=True) as one, server.psycopg(autocommit=True) as other:
            one.execute("select pg_advisory_lock(1)")
            found = [told(other, "select pg_try_advisory_lock(1)")]
            other.execute("set lock_timeout = '50ms'")
            found.append(told(other, "select pg_advisory_lock(1)"))
            other.execute("set lock_timeout = 0; select pg_advisory_lock(2)")
            with ThreadPoolExecutor(2) as threads:
                waits = {threads.submit(told, other, "select pg_advisory_lock(1)"): other}
                while not one.execute(WAITING).fetchall():
                    pass
                waits[threads.submit(told, one, "select pg_advisory_lock(2)")] = one
                # Which of the two it ends differs: here who has closed the circle.
                ended, _ = wait(waits, DEADLINE_S, FIRST_COMPLETED)
                for each in ended:
                    found.append(each.result())
                    told(waits[each], "select pg_advisory_unlock_all()")
                found += [each.result(DEADLINE_S) for each in waits.keys() - ended]
            one.close()
            found.append(told(other, "select pg_try_advisory_lock(3)"))
        assert found == [
            [(False,)],
            ("55P03", None),
            ("40P01", None),
            [("",)],
            [(True,)],
        ], server
