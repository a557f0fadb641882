"""Goal: schemas beside public, and what lies in them, are those of PostgreSQL.

Method: the same stories said to both, and the same rows, tags, SQLSTATEs and constraint names; then
what catalogs and errors tell of them.
"""

from __future__ import annotations

from typing import Any, Final

import psycopg
import pytest

from tests.support.postgres.both_servers import Connection
from tests.support.postgres.client_server import Server
from tests.support.postgres.stories import statements_of, told

pytestmark = pytest.mark.integration

STORIES: Final = {
    "tables of one name": """
        create schema app
        create schema if not exists app
        create schema app
        create table t (id int primary key, a text)
        create table app.t (id serial primary key, a text not null, unique (a))
        insert into t values (1, 'public')
        insert into app.t (a) values ('x'), ('y')
        select * from t
        select * from public.t
        select * from app.t order by id
        select t.id, x.id from t join app.t as x using (id)
        select t.a from app.t where t.id = 2
        update app.t set a = 'z' where t.id = 2 returning t.a
        delete from app.t where id = 1 returning *
        insert into app.t (a) values ('z')
        insert into app.t (a) values (null)
        insert into app.t (a) values ('z') on conflict (a) do update set a = 'w' returning a
        insert into app.t (a) values ('w') on conflict on constraint t_a_key do nothing
        truncate app.t
        select count(*) from app.t
        drop table t
        select * from t
        drop table app.t
    """,
    "two tables of one name in a query": """
        create schema app
        create schema other
        create table app.t (id int primary key, a text)
        create table other.t (id int primary key, b text)
        create table t (id int primary key, c text)
        insert into app.t values (1, 'x'), (2, 'y')
        insert into other.t values (1, 'u')
        insert into t values (2, 'v')
        select app.t.a, other.t.b from app.t, other.t where app.t.id = other.t.id
        select app.t.*, other.t.b from app.t join other.t on app.t.id = other.t.id
        select other.t.* from app.t left join other.t using (id) order by id
        select * from app.t left join other.t using (id) order by id
        select app.t.a, public.t.c from t, app.t where public.t.id = app.t.id
        select app.t.a, other.t.b, public.t.c from t, app.t, other.t order by 1, 2, 3
        select t.id from app.t, other.t
        select t.* from app.t, other.t
        select id from app.t, other.t
        select a, b from app.t cross join other.t order by a
        select * from app.t, app.t
        select * from app.t, other.t as t
        select * from app.t as t, other.t as t
        select * from app.t, (select 1) as t
        select app.t.a from app.t as t
        select app.t.a from app.t as x
        select app.t.tableoid = other.t.tableoid from app.t, other.t
        select other.t.tableoid = 'other.t'::regclass from app.t, other.t
        select count(*) from app.t where exists (select from other.t where other.t.id = app.t.id)
        update app.t set a = other.t.b from other.t where other.t.id = app.t.id
        update app.t as t set a = 'q' where app.t.id = 1
        delete from app.t using other.t where app.t.id = other.t.id returning app.t.id, other.t.id
        insert into app.t values (1, 'z') on conflict (id) do update set a = app.t.a
        create view app.v as select app.t.a, b from app.t left join other.t using (id)
        select * from app.v order by a
        set search_path = app
        select app.t.a, other.t.b from t, other.t where app.t.id = other.t.id
        select t.a from t, other.t
        reset search_path
        drop schema app, other cascade
        drop table t
    """,
    "what is named behind a schema that is not there": """
        create schema app
        select * from gone.t
        select nextval('gone.s')
        select currval('gone.s'), setval('gone.s', 1)
        select 'gone.t'::regclass
        select to_regclass('gone.t')
        select 'gone.mood'::regtype
        select to_regtype('gone.mood')
        select 'app.mood'::regtype
        select 'x'::gone.mood
        select cast('x' as gone.mood[])
        select 'x'::app.mood
        select 'numeric(8, 2)'::regtype
        create table t (a gone.mood)
        create table t (a app.mood)
        create table t (a text)
        alter table t add column b gone.mood
        alter table t alter column a type gone.mood using a::gone.mood
        insert into t values ('x'::gone.mood)
        alter type gone.mood add value 'x'
        alter type gone.mood rename to mind
        alter type app.mood rename to mind
        drop type gone.mood
        drop type if exists gone.mood
        drop type app.mood
        select has_table_privilege('gone.t', 'select')
        select pg_get_serial_sequence('gone.t', 'a')
        create view v as select 'x'::gone.mood
        drop table t
    """,
    "names of what lies beside a table": """
        create schema app
        create table app.t (id int primary key, a int, b int constraint pos check (b > 0))
        create table t (id int primary key, a int)
        create index i on app.t (a)
        create index i on t (a)
        create index i on app.t (b)
        create index on app.t (a, b)
        create table app.i (id int)
        alter table app.t add constraint u unique (a)
        alter table t add constraint u unique (a)
        alter table app.t add constraint u unique (b)
        insert into app.t values (1, 1, 1)
        insert into app.t values (2, 1, 1)
        insert into app.t values (2, 2, -1)
        create table app.c (id int primary key, t int references app.t on delete cascade)
        insert into app.c values (1, 1), (2, 9)
        insert into app.c values (1, 1)
        delete from app.t
        select count(*) from app.c
        alter index app.i rename to j
        drop index i
        drop index i
        drop index app.j
        alter table app.t rename constraint u to v
        alter table app.t drop constraint v
        alter table app.t rename to s
        alter table app.s rename column a to z
        alter table app.s add column c int default 5
        select * from app.s
        select * from app.t
        drop table app.s
        drop table app.s cascade
        drop table app.c
    """,
    "sequences": """
        create schema app
        create sequence app.s start 10
        select nextval('app.s'), currval('app.s'), lastval()
        create table app.t (id int default nextval('app.s') primary key, b bigserial)
        insert into app.t default values returning *
        select pg_get_serial_sequence('app.t', 'b')
        select setval('app.t_b_seq', 100), nextval('app.t_b_seq')
        alter sequence app.s restart with 3
        insert into app.t default values returning *
        alter sequence app.s owned by app.t.id
        drop sequence app.s
        drop table app.t
        select nextval('app.s')
    """,
    "schemas come and go": """
        create schema app
        create table app.t (id int primary key)
        drop schema app
        drop schema app restrict
        drop table app.t
        drop schema app
        drop schema app
        drop schema if exists app
        create table app.t (id int primary key)
        create sequence app.s
        select * from app.t
        insert into app.t values (1)
        create schema pg_app
        create schema public
        create schema app
        begin
        create table app.t (id int primary key)
        insert into app.t values (1)
        select * from app.t
        rollback
        drop schema app
    """,
    "what is told of them": """
        create schema app
        create table app.t (id serial primary key, a int, b int references app.t, check (a > 0))
        create unique index i on app.t (a) where a > 5
        select nspname from pg_namespace where nspname in ('public', 'app') order by 1
        select schema_name from information_schema.schemata where schema_name = 'app'
        select relname, nspname, relkind from pg_class c join pg_namespace n
            on n.oid = relnamespace where nspname = 'app' order by 1
        select 'app.t'::regclass, 'app.t'::regclass::oid::regclass, to_regclass('t')
        select pg_table_is_visible('app.t'::regclass), to_regclass('app.nothing')
        select 'app.nothing'::regclass
        select 'app'::regnamespace
        select table_schema, table_name from information_schema.tables
            where table_schema = 'app' order by 2
        select table_schema, column_name, column_default from information_schema.columns
            where table_schema = 'app' order by 2
        select constraint_schema, constraint_name, table_schema, table_name, constraint_type
            from information_schema.table_constraints where table_schema = 'app'
            and constraint_type <> 'CHECK' order by 2
        select conname, pg_get_constraintdef(oid) from pg_constraint
            where conrelid = 'app.t'::regclass order by 1
        select schemaname, tablename, indexname, indexdef from pg_indexes
            where schemaname = 'app' order by 3
        select schemaname, sequencename from pg_sequences where schemaname = 'app'
        select pg_get_expr(adbin, adrelid) from pg_attrdef where adrelid = 'app.t'::regclass
        select has_schema_privilege('app', 'usage'), has_schema_privilege('app', 'create')
        select has_table_privilege('app.t', 'select')
        select obj_description('app.t'::regclass), col_description('app.t'::regclass, 1)
        comment on table app.t is 'a table'
        comment on column app.t.id is 'a column'
        select obj_description('app.t'::regclass), col_description('app.t'::regclass, 1)
        drop table app.t
    """,
    "looked up along the search path": """
        create schema app
        create schema more
        create table t (id int primary key, a text)
        create table app.t (id int primary key, a text)
        create table app.u (id serial primary key, t int references app.t)
        insert into t values (1, 'public')
        insert into app.t values (1, 'app')
        select a from t
        set search_path = app, public
        show search_path
        select current_schema(), current_schemas(false), current_schemas(true)
        select a from t
        select a from public.t
        select t.a, u.id from t left join u on u.t = t.id
        insert into u (t) values (1) returning id, t
        insert into u (t) values (9)
        update t set a = 'new' where id = 1 returning t.a
        delete from u using t where t.id = u.t returning u.id
        with t as (select 7 as id) select id from t
        with x as (select * from t), t as (select 8 as id, 'cte' as a) select * from x, t
        with recursive u as (select 1 as n union all select n + 1 from u where n < 3)
            select n from u order by n
        select (select a from t) as a where exists (select 1 from t where a = 'new')
        select nextval('u_id_seq'), currval('u_id_seq')
        select 't'::regclass::oid = 'app.t'::regclass::oid, 'public.t'::regclass, 'u'::regclass
        select pg_table_is_visible('app.t'::regclass), pg_table_is_visible('public.t'::regclass)
        select relname from pg_class where relname = 't' and pg_table_is_visible(oid)
        select pg_get_serial_sequence('u', 'id')
        select conname, pg_get_constraintdef(oid) from pg_constraint
            where conrelid = 'u'::regclass order by 1
        select pg_get_expr(adbin, adrelid) from pg_attrdef where adrelid = 'u'::regclass
        set search_path to more
        select * from t
        select current_schema()
        select 't'::regclass
        select to_regclass('t'), to_regclass('app.t')
        drop table t
        drop table if exists t
        create table t (id int primary key, a int)
        select * from t
        create index i on t (a)
        alter table t add column b int default 5
        alter table t add constraint c check (a > 0)
        insert into t values (1, -1)
        insert into t values (1, 1)
        alter index i rename to j
        drop index i
        drop index j
        truncate t
        comment on table t is 'mine'
        comment on column t.b is 'b'
        select obj_description('more.t'::regclass), col_description('t'::regclass, 3)
        select schemaname from pg_tables where tablename = 't' order by 1
        alter table t rename to s
        select * from s
        drop table s
        set search_path = nowhere
        select current_schema()
        create table t (id int primary key)
        select * from t
        drop table if exists t
        select count(*) from pg_class where relname = 'no such'
        set search_path = "$user", app
        select a from t
        set search_path = 'app, public'
        show search_path
        select a from t
        set search_path = ''
        select a from t
        select a from app.t
        select set_config('search_path', 'more, app', false)
        show search_path
        select a from t
        reset search_path
        select a from t
        set search_path = information_schema, public
        select count(*) > 0 from tables
        select current_schema()
        set search_path = "un closed
        select set_config('search_path', 'a b', false)
        show search_path
        set search_path to default
        show search_path
    """,
    "search path of a transaction": """
        create schema app
        create table t (id int primary key)
        create table app.t (id int primary key, a int)
        begin
        set local search_path = app
        insert into t values (1, 2)
        create table u (id serial primary key, t int references t)
        insert into u (t) values (1)
        select * from u
        alter table u add column b int default 3
        select * from u
        create index i on u (t)
        savepoint s
        drop table u
        select * from u
        rollback to s
        select nextval('u_id_seq')
        select * from public.t
        commit
        select * from t
        select * from app.u
        select schemaname, indexname from pg_indexes where indexname = 'i'
        begin
        set search_path = app
        rollback
        select * from t
        begin
        set search_path = app
        select * from t
        commit
        select * from t
        set search_path = public
        drop table app.u
    """,
    "temporary tables come first": """
        create schema app
        create table app.t (id int primary key)
        set search_path = app
        create temporary table t (id int primary key, a text)
        insert into t values (1, 'own')
        insert into app.t values (2)
        select * from t
        select * from app.t
        select * from pg_temp.t
        drop table t
        select * from t
        create temporary table x as select * from t
        select * from x
        create table y as select * from x
        select * from app.y
        drop table x
        drop table y
        reset search_path
    """,
    "a schema of a role's name": """
        create schema app
        create table app.t (id int)
        insert into app.t values (1)
        create role r
        create schema r authorization r
        create table r.t (id int, a int)
        grant usage on schema app to r
        grant select on app.t to r
        grant select on r.t to r
        set role r
        select current_schema()
        select * from t
        select id from app.t
        create table t2 (id int)
        select schemaname from pg_tables where tablename = 't2'
        drop table t2
        set search_path = app
        select * from t
        create table t3 (id int)
        reset role
        revoke usage on schema app from r
        set role r
        select * from t
        select * from app.t
        select current_schema()
        reset role
        grant create on schema app to r
        set role r
        create table app.t3 (id int)
        reset role
        grant usage on schema app to r with grant option
        set role r
        create table t3 (id int)
        select * from t3
        select has_schema_privilege('app', 'create'), has_schema_privilege('app', 'usage')
        reset role
        select nspacl is null from pg_namespace where nspname = 'app'
        alter schema app owner to r
        select pg_get_userbyid(nspowner) from pg_namespace where nspname = 'app'
        grant select on schema app to r
        revoke all on schema app from r cascade
        drop table app.t3
        drop table r.t, app.t
        drop schema r
        drop schema app
        reset search_path
        drop role r
    """,
    "views over what gets other names": """
        create schema app
        create schema more
        create table app.t (id int primary key, a text)
        insert into app.t values (1, 'x')
        create view v as select t.a, t.id from app.t
        alter table app.t rename column a to z
        select * from v
        alter table app.t rename to s
        select * from v
        alter table app.s set schema more
        select * from v
        alter table more.s set schema public
        select * from v
        select a from v join s on s.z = v.a
        drop table s
        drop view v
        drop table s
    """,
    "views in schemas": """
        create schema app
        create table app.t (id int primary key, a text)
        insert into app.t values (1, 'x'), (2, 'y')
        create view app.v as select id, upper(a) as a from app.t where id > 1
        select * from app.v
        select v.a from app.v
        select * from v
        set search_path = app
        create view w as select t.id, v.a from t join v on v.id = t.id
        select * from w
        create or replace view w as select t.id, v.a, 1 as one from t join v on v.id = t.id
        select * from w
        create view w as select 1
        create table w (id int)
        create view t as select 1
        reset search_path
        select * from app.w
        select table_schema, table_name from information_schema.views where table_schema = 'app'
            order by 2
        select relname, relkind, relnamespace::regnamespace from pg_class
            where relname in ('v', 'w') order by 1
        select 'app.v'::regclass, pg_table_is_visible('app.v'::regclass)
        comment on view app.v is 'seen'
        select obj_description('app.v'::regclass)
        drop table app.t
        drop view app.v
        drop view v
        drop view if exists v, nowhere.v
        drop view app.w, app.v
        drop view app.w
        drop table app.t
        create view nowhere.v as select 1
    """,
    "types in schemas": """
        create schema app
        create type app.mood as enum ('sad', 'ok')
        create type mood as enum ('other')
        create type app.mood as enum ('again')
        create table app.t (id int primary key, m app.mood default 'ok', ms app.mood[])
        create table t (id int primary key, m mood)
        insert into app.t (id) values (1)
        insert into app.t values (2, 'sad', '{sad,ok}')
        insert into app.t values (3, 'other')
        insert into t values (1, 'other')
        select * from app.t order by m
        select 'sad'::app.mood < 'ok'::app.mood
        select 'sad'::mood
        alter type app.mood add value 'fine'
        insert into app.t values (4, 'fine', null)
        alter table app.t add constraint c check (m <> 'sad'::app.mood or id = 2)
        insert into app.t values (5, 'sad')
        select conname from pg_constraint where conrelid = 'app.t'::regclass and contype = 'c'
        select pg_get_expr(adbin, adrelid) from pg_attrdef where adrelid = 'app.t'::regclass
        select attname, format_type(atttypid, atttypmod) from pg_attribute
            where attrelid = 'app.t'::regclass and attnum > 0 order by attnum
        select column_name, udt_schema, udt_name from information_schema.columns
            where table_name = 't' order by table_schema, ordinal_position
        select typname, typnamespace::regnamespace::text from pg_type where typname like '%mood'
            order by 2, 1
        select 'app.mood'::regtype, 'mood'::regtype, to_regtype('app.nothing')
        select pg_type_is_visible('app.mood'::regtype), pg_type_is_visible('mood'::regtype)
        set search_path = app
        select 'fine'::mood, 'mood'::regtype, 'public.mood'::regtype
        select m::mood from t order by id
        create table u (m mood, o public.mood)
        insert into u values ('ok', 'other')
        select * from u
        create type face as enum ('x')
        alter type face rename to mien
        alter type mien rename value 'x' to 'y'
        select 'y'::mien, 'y'::app.mien
        create type pair as enum ('a'); create table v (a pair)
        select column_name, udt_schema from information_schema.columns where table_name = 'v'
        comment on type mien is 'a type'
        select obj_description('app.mien'::regtype)
        drop type mien
        drop type if exists mien, nowhere.mien
        drop type mien
        drop type app.mood
        set search_path = public
        select 'y'::mien
        select 'ok'::app.mood
        drop table app.u, app.v
        create view v as select 'ok'::app.mood as m
        select * from v
        drop view v
        drop schema app cascade
        select to_regtype('app.mood')
        select m from t
        drop table t
        drop type mood
        create type nowhere.mood as enum ('a')
    """,
    "put into another schema": """
        create schema app
        create schema more
        create table t (id serial primary key, a int unique, b int constraint pos check (b > 0))
        create table c (id int primary key, t int references t)
        create index i on t (b)
        insert into t (a, b) values (1, 1)
        insert into c values (1, 1)
        alter table t set schema app
        select * from t
        select * from app.t
        insert into app.t (a, b) values (2, 2) returning id
        insert into app.t (a, b) values (2, 2)
        insert into app.t (a, b) values (3, -1)
        insert into c values (2, 9)
        select schemaname, tablename, indexname from pg_indexes
            where tablename in ('t', 'c') order by 1, 2, 3
        select schemaname, sequencename from pg_sequences
        select pg_get_serial_sequence('app.t', 'id'), nextval('app.t_id_seq')
        select conname, pg_get_constraintdef(oid) from pg_constraint
            where conrelid in ('app.t'::regclass, 'c'::regclass) order by 1
        select pg_get_expr(adbin, adrelid) from pg_attrdef where adrelid = 'app.t'::regclass
        drop index app.i
        alter table app.t set schema app
        alter table app.t set schema nowhere
        alter table nothing set schema app
        alter table if exists nothing set schema app
        create table more.t_pkey (id int)
        alter table app.t set schema more
        drop table more.t_pkey
        alter table app.t set schema more
        set search_path = more
        insert into t (a, b) values (3, 3) returning id
        alter table t set schema public
        select id from public.t order by id
        alter sequence public.t_id_seq set schema app
        create sequence s
        select nextval('s')
        alter sequence s set schema app
        select nextval('app.s')
        alter table app.s set schema more
        select nextval('s')
        reset search_path
        create type mood as enum ('a')
        create table m (m mood)
        insert into m values ('a')
        alter type mood set schema app
        select 'a'::mood
        select m, m::app.mood from m
        select pg_typeof(m)::text from m
        alter type app.mood set schema public
        select 'a'::mood
        drop table m, c, t
        drop type mood
    """,
    "dropped with all that lies in it": """
        create schema app
        create table app.t (id serial primary key, a int)
        create table app.u (id int primary key, t int references app.t)
        create index i on app.t (a)
        create sequence app.s
        create view app.v as select * from app.t
        create table out (id int primary key, t int references app.t)
        create view v as select t.id from app.t
        create table keeps (id int)
        insert into out values (1, null)
        drop schema app
        drop schema app cascade
        select nspname from pg_namespace where nspname = 'app'
        select * from app.t
        select * from v
        insert into out values (2, 77)
        select * from out order by id
        select count(*) from pg_class where relname in ('t', 'u', 's', 'i', 'v')
        create schema app
        create table app.t (id int primary key, b text)
        insert into app.t values (1, 'again')
        select * from app.t
        drop schema app cascade
        drop schema app cascade
        drop schema if exists app cascade
        drop table out, keeps
    """,
    "renamed with all that lies in it": """
        create schema app
        create table t (id int primary key)
        create table app.t (id serial primary key, a int unique, b int constraint pos check (b > 0))
        create table app.c (id int primary key, t int references app.t on delete cascade)
        create table out (id int primary key, t int references app.t,
            n int default nextval('app.t_id_seq'))
        create index i on app.t (b)
        create sequence app.s start 10
        create type app.mood as enum ('sad', 'ok')
        alter table app.c add column m app.mood default 'ok'
        create view app.v as select t.id, c.m from app.t join app.c on c.t = t.id
        create view v as select x.id, x.m, 'ok'::app.mood as ok from app.v as x, app.t
            where t.id = x.id
        insert into app.t (a, b) values (1, 1), (2, 2)
        insert into app.c values (1, 1)
        create role r
        grant usage on schema app to r
        grant select on app.t to r
        alter role r set search_path = app
        alter schema app rename to more
        select * from app.t
        select * from more.t order by id
        select * from v
        select * from more.v
        insert into more.t (a, b) values (2, 5)
        insert into more.t (a, b) values (3, -1)
        insert into more.c values (2, 9)
        insert into more.t (a, b) values (3, 3) returning id
        insert into out (id) values (1) returning *
        delete from more.t where id = 1
        select * from more.c
        select schemaname, tablename, indexname from pg_indexes
            where tablename in ('t', 'c', 'out') order by 1, 2, 3
        select schemaname, sequencename from pg_sequences order by 2
        select pg_get_serial_sequence('more.t', 'id'), nextval('more.s'), to_regclass('app.s')
        select conname, pg_get_constraintdef(oid) from pg_constraint
            where conrelid in ('more.t'::regclass, 'more.c'::regclass, 'out'::regclass) order by 1
        select pg_get_expr(adbin, adrelid) from pg_attrdef
            where adrelid in ('more.t'::regclass, 'out'::regclass, 'more.c'::regclass) order by 1
        select 'ok'::more.mood
        select typnamespace::regnamespace::text from pg_type where typname = 'mood'
        select nspname from pg_namespace where nspname in ('app', 'more')
        select has_schema_privilege('r', 'more', 'usage')
        select has_table_privilege('r', 'more.t', 'select')
        select rolconfig[1] from pg_roles where rolname = 'r'
        set search_path = app
        select * from c
        select current_schema()
        set search_path = more
        select count(*) from c
        select count(*) from t join v on true
        select current_schema()
        reset search_path
        create schema app
        create table app.t (id int, z text)
        select * from app.t
        alter schema app rename to more
        alter schema app rename to app
        alter schema nothing rename to app
        alter schema nothing rename to other
        alter schema app rename to pg_app
        alter schema app rename to public
        set role r
        alter schema more rename to other
        select * from more.t order by id
        reset role
        alter schema more owner to r
        set role r
        alter schema more rename to other
        reset role
        drop table app.t
        drop schema app
        alter schema more rename to app
        select pg_get_userbyid(nspowner) from pg_namespace where nspname = 'app'
        select count(*) from v
        alter table app.t add column z int default 5
        select * from app.t order by id
        alter table out alter n drop default
        drop schema app cascade
        drop table out, t
        create schema app
        alter schema app rename to more
        create table more.t (id int primary key)
        create table app.t (id int primary key)
        drop schema more cascade
        drop role r
    """,
    "several statements of one text": """
        create schema app
        set search_path = app
        create table t (id serial primary key, a int); create index i on t (a);
            alter table t add b int
        select schemaname, tablename, indexname from pg_indexes where tablename = 't' order by 3
        set search_path = public; create table app.p (id int); create table p (id int, a int)
        select schemaname from pg_tables where tablename = 'p' order by 1
        set search_path = app; insert into p values (3); create table q as select * from p
        select * from q
        drop table p, q, t
        reset search_path
        drop table p
    """,
    "comments, and who may say them": """
        create role r
        create schema app authorization r
        create table t (id int primary key, a int)
        create index by_a on t (a)
        create type mood as enum ('glad')
        set role r
        comment on table t is 'x'
        comment on column t.a is 'x'
        comment on index by_a is 'x'
        comment on constraint t_pkey on t is 'x'
        comment on type mood is 'x'
        comment on schema public is 'x'
        comment on schema app is 'of r'
        comment on schema no_such is 'x'
        create table app.t (id int primary key)
        comment on table app.t is 'in it'
        comment on column app.t.id is 'number'
        reset role
        select count(*) from pg_description where objoid in ('t'::regclass, 'by_a'::regclass)
        select obj_description('app'::regnamespace), obj_description('app'::regnamespace,
            'pg_namespace'), obj_description('app'::regnamespace, 'pg_class'),
            obj_description('app.t'::regclass), obj_description('public'::regnamespace)
        select objoid::regnamespace, classoid::regclass, objsubid, description from pg_description
            where classoid = 'pg_namespace'::regclass and
            objoid in ('app'::regnamespace, 'public'::regnamespace) order by description
        comment on schema public is null
        select obj_description('public'::regnamespace)
        comment on schema public is 'z'
        select obj_description('public'::regnamespace)
        comment on schema public is ''
        select obj_description('public'::regnamespace)
        comment on schema public is 'standard public schema'
        select obj_description('public'::regnamespace)
        alter schema app rename to other
        select obj_description('other'::regnamespace)
        begin
        comment on schema other is 'q'
        select obj_description('other'::regnamespace)
        rollback
        select obj_description('other'::regnamespace)
        drop schema other cascade
        create schema other
        select obj_description('other'::regnamespace)
        comment on schema other is 'anew'
        comment on schema other is null
        select obj_description('other'::regnamespace)
    """,
    "copied and viewed": """
        create schema app
        create table app.t (id int primary key, a text)
        insert into app.t values (1, 'x'), (2, 'y')
        create view v as select t.id, upper(a) as a from app.t where t.id > 1
        select * from v
        drop table app.t
        drop view v
        create table copy as select * from app.t
        select * from copy order by id
        create table app.copy as select id from app.t
        select * from app.copy order by id
        drop table copy
        drop table app.copy, app.t
    """,
}


def drop_all(connection: Connection) -> None:
    connection.execute("rollback")
    connection.execute("reset role")
    connection.execute("reset search_path")
    connection.execute("drop view if exists v")
    named = "select tablename from pg_tables where schemaname = 'public'"
    for (table,) in connection.execute(named).fetchall():
        connection.execute(f'drop table public."{table}" cascade'.encode())
    for schema in ("app", "more", "other", "r"):
        connection.execute(f"drop schema if exists {schema} cascade".encode())
    named = "select schemaname, sequencename from pg_sequences"
    for schema, name in connection.execute(named).fetchall():
        connection.execute(f'drop sequence "{schema}"."{name}"'.encode())
    connection.execute("drop type if exists mood")
    connection.execute("drop role if exists r")


@pytest.mark.parametrize("name", STORIES)
def test_both_say_the_same(servers: tuple[Server, Server], name: str) -> None:
    ours, theirs = servers
    with ours.psycopg(autocommit=True) as one, theirs.psycopg(autocommit=True) as other:
        try:
            for text in statements_of(STORIES[name]):
                mine, theirs_said = told(one, text), told(other, text)
                assert mine == theirs_said, f"{text}: {mine!r}, and not {theirs_said!r}"
        finally:
            for each in (one, other):
                drop_all(each)


def test_errors_name_the_same_fields(servers: tuple[Server, Server]) -> None:
    found: list[Any] = []
    for server in servers:
        with server.psycopg(autocommit=True) as connection:
            try:
                connection.execute("create schema app")
                connection.execute("create table app.t (id int primary key, a int check (a > 0))")
                connection.execute("create table app.c (t int references app.t)")
                connection.execute("insert into app.t values (1, 1)")
                for text in (
                    *("insert into app.t values (1, 1)", "insert into app.t values (2, 0)"),
                    *("insert into app.t values (null, 1)", "insert into app.c values (7)"),
                ):
                    with pytest.raises(psycopg.Error) as refused:
                        connection.execute(text)
                    diag = refused.value.diag
                    found.append(
                        (
                            *(diag.sqlstate, diag.schema_name),
                            *(diag.table_name, diag.column_name, diag.constraint_name),
                        )
                    )
            finally:
                drop_all(connection)
    ours, theirs = found[: len(found) // 2], found[len(found) // 2 :]
    assert ours == theirs


PATHS: Final = """
    alter database {database} set search_path = app, public
    = select current_setting('search_path'), current_schema()
    select count(*) from t
    alter role r set search_path = more
    = select current_setting('search_path'), current_schema()
    @r select current_setting('search_path')
    @r set search_path = public; reset search_path; show search_path
    @r alter database {database} set search_path = more
    @r alter role r set search_path = 'A b'
    @r select current_setting('search_path')
    select setrole::regrole::text, setconfig[1] from pg_db_role_setting order by 1
    alter role r reset search_path
    @r select current_setting('search_path')
    alter role r set search_path to default
    alter role r reset all
    alter database {database} set search_path = ''
    = select current_setting('search_path'), current_schema()
    alter database {database} reset search_path
    = select current_setting('search_path')
    alter database {database} set search_path to app
    = select count(*) from t
    alter schema app rename to other
    = select current_setting('search_path'), current_schema()
    = select count(*) from other.t
    alter schema other rename to app
    = select count(*) from t
    alter database {database} reset all
    select count(*) from pg_db_role_setting
    alter role nobody set search_path = app
    alter database nothing set search_path = app
"""
"""What one says; with = or @r a session that is begun for it, by the same role or by r."""


def test_sessions_begin_with_the_path_of_their_database_or_role(
    servers: tuple[Server, Server],
) -> None:
    found: list[list[Any]] = []
    for server in servers:
        answers: list[Any] = []
        with server.psycopg(autocommit=True) as first:
            try:
                for text in ("create schema app", "create table app.t (id int)"):
                    first.execute(text.encode())
                first.execute("create role r login")
                for line in PATHS.strip().splitlines():
                    text = line.strip().format(database=server.database)
                    begun, said = text[:2].strip(), text.removeprefix("= ").removeprefix("@r ")
                    if begun not in ("=", "@r"):
                        answers.append((line, told(first, text)))
                        continue
                    named = server._replace(user="r") if begun == "@r" else server
                    with named.psycopg(autocommit=True) as other:
                        answers.append((line, told(other, said)))
            finally:
                first.execute(f"alter database {server.database} reset search_path".encode())
                drop_all(first)
        found.append(answers)
    assert found[0] == found[1]
