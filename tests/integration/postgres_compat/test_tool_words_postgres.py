"""Goal: what tools write in words of their own (names behind schema and database, precision of the
present moment, storage parameters) means what it means in PostgreSQL.

Method: the same statements in both, one by one, each with the same rows, tag or SQLSTATE.
"""

from __future__ import annotations

from typing import Any, Final

import pytest

from tests.support.postgres.both_servers import told
from tests.support.postgres.client_server import Server

pytestmark = pytest.mark.integration

# ruff: noqa: E501 - a statement stands in one line
STORIES: Final = {
    "columns behind their schema": """
        create schema app
        create table app.item (id int primary key, n int)
        create table public.item (id int primary key, n int)
        insert into app.item values (1, 10), (2, 20)
        insert into item values (1, 5)
        select app.item.id, item.n, app.item.* from app.item order by app.item.id desc
        select public.item.n from item
        select app.item.n from item
        select app.i.n from app.item i
        select i.n from app.item i where app.item.id = 1
        select a.n from app.item a join app.item on app.item.id = a.id where app.item.n > 10
        update app.item set n = app.item.n + 1 where app.item.id = 1 returning app.item.n
        insert into app.item values (1, 3) on conflict (id) do update set n = app.item.n + 1 returning app.item.n
        delete from app.item where app.item.n = 20 returning app.item.*
        create view v as select app.item.n from app.item
        select * from v
        select (select max(item.n) from item where item.id = app.item.id) from app.item
        select count(app.item.nobody) from app.item
        drop schema app cascade
        drop table item
    """,
    "names behind the database": """
        create table DB.public.item (id int primary key, n int)
        insert into DB.public.item (id, n) values (1, 10)
        select DB.public.item.n, item.id from DB.public.item
        create table DB.public.more as (select DB.public.item.* from DB.public.item)
        alter table DB.public.more rename to least
        create index on DB.public.least (n)
        comment on column DB.public.least.n is 'x'
        comment on table DB.public.least is 'y'
        update DB.public.least set n = 1 where DB.public.least.id = 1
        delete from DB.public.least using DB.public.item where least.id = item.id
        truncate DB.public.item
        select * from nobody.public.item
        drop table if exists DB.public.least, DB.public.item cascade
    """,
    "the present moment with a precision": """
        begin
        select current_timestamp(3) = now()::timestamptz(3), localtimestamp(0) = localtimestamp::timestamp(0), pg_typeof(current_time(2)), pg_typeof(localtime(9))
        select current_timestamp(1) - current_timestamp between '-1s' and '1s'
        rollback
        create table item (id int primary key, at timestamptz default current_timestamp(0), day timestamp default localtimestamp(2))
        insert into item (id) values (1)
        select extract(microseconds from at)::int % 1000000, extract(microseconds from day)::int % 10000 from item
        alter table item add column made timestamptz default current_timestamp(3)
        insert into item (id) values (2) returning extract(microseconds from made)::int % 1000
        drop table item
    """,
    "counts of NULLs": """
        select num_nonnulls(1, null, 'a'), num_nulls(1, null, null::text), num_nulls(now())
        create table item (id int primary key, a int, b text, c date, check (num_nonnulls(a, b) = 1), constraint one check (num_nulls(a, b, c) < 3))
        insert into item values (1, 1, null)
        insert into item values (2, 1, 'b')
        insert into item values (3, null, null)
        alter table item add constraint two check (num_nonnulls(b, c) <= 1)
        insert into item values (4, null, 'b', '2020-01-01')
        select id, num_nonnulls(a, b, c) from item where num_nulls(a, c) = 1
        select num_nulls()
        drop table item
    """,
    "random defaults": """
        create table item (id serial primary key, token text default md5(random()::text), share double precision not null default random())
        insert into item (token) values ('mine'), (default), (default)
        insert into item default values
        insert into item (id) select 10 + i from generate_series(1, 20) i
        select count(*), count(distinct token), count(distinct share), max(length(token)), min(share) >= 0, max(share) < 1 from item
        alter table item add column more text default md5(random()::text)
        select count(distinct more) > 20 from item
        alter table item alter share set default 1 - random()
        insert into item (id) values (99) returning share > 0
        drop table item
    """,
    "how rows lie in files": """
        create table item (id int primary key, a text)
        create index item_a on item (a)
        alter table item set (fillfactor = 70, autovacuum_enabled = false)
        alter table item set (toast.autovacuum_enabled = false)
        alter table item reset (fillfactor)
        alter table item set (nobody = 1)
        alter table item cluster on item_a
        alter table item cluster on item_pkey
        alter table item cluster on nobody
        alter table item set without cluster
        alter table item alter a set statistics 100
        alter table item alter nobody set statistics 100
        alter table item alter column a set storage external
        alter table item alter a set (n_distinct = 5)
        alter table item alter a reset (n_distinct)
        alter table item alter a set (nobody = 5)
        alter table item replica identity full
        alter table item replica identity default, alter a set default 'x'
        alter table item set without oids
        insert into item values (1) returning a
        drop table item
    """,
    "owners of views": """
        create table item (id int primary key)
        create view v as select id from item
        alter view v owner to current_user
        alter view if exists nobody owner to current_user
        alter view nobody owner to current_user
        alter view item owner to current_user
        alter view v rename to shown
        select * from shown
        select * from v
        alter view v rename to x
        alter view if exists v rename to x
        alter view shown rename to item
        alter view item rename to x
        alter view shown rename to shown
        begin
        alter view shown rename to again
        select * from again
        rollback
        create schema app
        create view app.v as select 1 as one
        alter view app.v rename to x
        select * from app.x
        drop schema app cascade
        drop view shown
        drop table item
    """,
}


def answers_of(server: Server, story: str) -> list[tuple[str, Any]]:
    texts = [line.strip() for line in story.strip().splitlines()]
    with server.psycopg(autocommit=True) as one:
        return [(text, told(one, text.replace("DB.", f'"{server.database}".'))) for text in texts]


@pytest.mark.parametrize("name", STORIES)
def test_words_of_tools(servers: tuple[Server, Server], name: str) -> None:
    ours, theirs = (answers_of(server, STORIES[name]) for server in servers)
    for mine, other in zip(ours, theirs, strict=True):
        assert mine == other
