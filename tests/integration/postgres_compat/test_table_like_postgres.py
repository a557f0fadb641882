# ruff: noqa: E501 - a statement stands in one line
"""Goal: a table that is made LIKE others is what it is in PostgreSQL, and a value is compared with
elements of a row's arrays as there.

Method: stories, said to both.
"""

from __future__ import annotations

from typing import Final

import pytest

from tests.support.postgres.client_server import Server
from tests.support.postgres.stories import check_story

pytestmark = pytest.mark.integration


def columns_of(name: str) -> str:
    return (
        "select column_name, ordinal_position, data_type, character_maximum_length, is_nullable,"
        " column_default, is_identity, identity_generation, is_generated, generation_expression from"
        f" information_schema.columns where table_name = '{name}' order by 2"
    )


def elements_of(name: str) -> str:
    return f"""
        {columns_of(name)}
        select conname, contype, pg_get_constraintdef(oid) from pg_constraint where conrelid =
            '{name}'::regclass order by 1
        select indexname, indexdef from pg_indexes where tablename = '{name}' order by 1
        select a.attname, d.description from pg_description d join pg_attribute a on a.attrelid =
            d.objoid and a.attnum = d.objsubid where d.objoid = '{name}'::regclass order by 1
        select c.conname, d.description from pg_description d join pg_constraint c on c.oid = d.objoid
            where c.conrelid = '{name}'::regclass order by 1
        select c.relname, d.description from pg_description d join pg_class c on c.oid = d.objoid where
            c.relname like '{name}%idx' order by 1"""


SOURCE: Final = """
        create table y (id int primary key, name varchar(20) not null default 'x' check (name <> ''),
            at timestamptz default now(), n bigint generated always as identity (start 5 increment 2),
            twice int generated always as (id * 2) stored, price numeric(10, 2) default 1.50, tags text[],
            u int, v text, constraint uv unique (u, v), constraint small check (price < 1000))
        create index on y (v, u)
        create index on y (lower(v) desc) include (u) where id > 0
        create unique index on y (price)
        comment on column y.name is 'what it is called'
        comment on constraint small on y is 'not much'
        comment on index y_v_u_idx is 'by both'
"""

LIKES: Final = (
    "",
    "including all",
    "including defaults",
    "including constraints",
    "including indexes",
    "including identity",
    "including generated",
    "including comments",
    "including all excluding indexes",
    "including all excluding comments excluding constraints",
    "including defaults including storage including statistics including compression",
    "including comments including indexes including constraints",
)


@pytest.mark.parametrize("options", LIKES)
def test_a_table_like_another(servers: tuple[Server, Server], options: str) -> None:
    check_story(servers, f"{SOURCE}        create table z (like y {options}){elements_of('z')}")


STORIES: Final = {
    "beside other columns": f"""
        create table x (a int, like y, b text default 'b')
        create table x2 (a int primary key, like y including indexes)
        create table x3 (like y including defaults, primary key (id, a), a int)
        create table x4 (like y, id int)
        create table x5 (like y including indexes, like nothing)
        create table x6 (like y including indexes, extra int, unique (extra))
        create table x7 (like y, like y)
        create table x8 (like y, unique (nobody))
        create table x9 (like y including constraints, check (extra > u), extra int)
        {columns_of("x")}
        {elements_of("x3")}
        {elements_of("x6")}
        {elements_of("x9")}
        insert into x6 (id, name, n, price, u, v, extra) values (1, 'a', 1, 2, 1, 'v', 1) returning *
        insert into x6 (id, name, n, price, u, v, extra) values (1, 'b', 1, 3, 2, 'v', 2)
        insert into x6 (id, name, n, price, u, v, extra) values (2, 'b', 1, 2, 2, 'v', 2)
        insert into x6 (id, name, n, price, u, v, extra) values (2, 'b', 1, 3, 1, 'v', 2)
        create table if not exists x (like nothing)
        create table x (like y)
    """,
    "sequences": f"""
        create table s (id serial primary key, n int)
        create table t (like s including all)
        {columns_of("t")}
        insert into s (n) values (1) returning id
        insert into t (n) values (1) returning id
        insert into s (n) values (1) returning id
        drop table s
        drop table t
        create table i (like y including all)
        insert into i (id, u) values (1, 1), (2, 2) returning id, n, twice, name, price
        insert into y (id, u) values (1, 1), (2, 2) returning id, n, twice, name, price
        create table w (like i_n_seq)
    """,
    "privileges": """
        create role maker
        create schema made
        grant usage, create on schema made to maker
        set role maker
        create table made.m (like y)
        create temporary table m (like y)
        reset role
        grant select on y to maker
        set role maker
        create table made.m (like y)
        create temporary table n (like y)
        drop table made.m
        drop table n
        reset role
        revoke all on y from maker
        drop schema made cascade
        drop role maker
    """,
    "views, schemas and blocks": f"""
        create view seen as select id, name as called, price from y
        create table v (like seen)
        {columns_of("v")}
        create schema other
        create table other.y (like y including all)
        select conname from pg_constraint where conrelid = 'other.y'::regclass order by 1
        select indexname from pg_indexes where schemaname = 'other' order by 1
        create table z (like other.y including indexes)
        {elements_of("z")}
        begin
        create table a (like y including all)
        insert into a (id, u) values (7, 7) returning id, name, twice
        rollback
        create temporary table b (like y including defaults including constraints including indexes)
        insert into b (id, n, u) values (7, 1, 7) returning id, name, price
        insert into b (id, n, u) values (7, 1, 7)
        insert into b (id, n, u, price) values (8, 1, 7, 2000)
        create temp table c (like b including all)
        insert into c (id, n, u) values (7, 1, 7) returning id, name, price
        drop table c, b
        drop schema other cascade
        drop view seen cascade
    """,
}


@pytest.mark.parametrize("name", STORIES)
def test_both_say_the_same(servers: tuple[Server, Server], name: str) -> None:
    check_story(servers, SOURCE + STORIES[name])


ARRAYS: Final = {
    "in a CHECK": """
        create table t (id int primary key, tags text[] check ('a' = any (tags)), low int, high int,
            nums int[] default '{1}', check (low < all (nums)), check (5 <> all (array[low, high])),
            check (nums[1] is distinct from 9))
        insert into t values (1, '{a,b}', 0, 1, '{1,2}') returning *
        insert into t values (2, '{b}', 0, 1, '{1,2}')
        insert into t values (2, '{}', 0, 1, '{1,2}')
        insert into t values (2, null, 0, 1, '{1,2}') returning *
        insert into t values (3, '{b,null}', 0, 1, '{1,2}') returning *
        insert into t values (4, '{a}', 1, 1, '{1,2}')
        insert into t values (4, '{a}', 1, 1, '{}') returning *
        insert into t values (5, '{a}', 0, 5, '{3}')
        insert into t values (5, '{a}', 0, null, '{3}') returning *
        insert into t values (6, '{a}', 0, 3, '{9}')
        insert into t values (7, '{a}', null, 3, null) returning *
        update t set tags = '{c}' where id = 1
        alter table t add check (id >= any (nums || 1))
        alter table t add constraint u_later check (id >= any (nums)) not valid
        insert into t values (0, '{a}', 0, 3, '{3}')
        alter table t add check (id = any (tags))
        alter table t add check (id = any (low))
        select id from t where 'a' = any (tags) and low < all (nums) order by id
    """,
    "in generated columns and indexes": """
        create table t (id int primary key, tags text[], a int, b int, has boolean generated always as
            ('x' = any (tags)) stored, first text generated always as (tags[1]) stored, both_of int[]
            generated always as (array[a, b]) stored)
        insert into t (id, tags, a, b) values (1, '{x,y}', 1, 2), (2, '{y}', null, 3), (3, null, 4, 5)
        select * from t order by id
        create index on t ((tags[1]))
        create index on t (id) where 'y' = any (tags)
        select id from t where tags[1] = 'y'
        select id from t where 'y' = any (tags) order by id
        update t set tags = array['x'] || tags where id = 2 returning has, first
        create unique index u on t ((tags[2]))
        insert into t (id, tags) values (4, '{q,y}')
        select id from t where a = any (array[b - 1, 4]) order by id
        select id, a = any (array[b, a]) from t order by id
        alter table t alter tags type text[] using array['z'] || tags
    """,
}


@pytest.mark.parametrize("name", ARRAYS)
def test_elements_of_a_rows_arrays(servers: tuple[Server, Server], name: str) -> None:
    check_story(servers, ARRAYS[name])
