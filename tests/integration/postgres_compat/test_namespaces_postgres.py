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
    connection.execute("drop view if exists v")
    named = "select schemaname, tablename from pg_tables where schemaname in ('public', 'app')"
    for schema, table in connection.execute(named).fetchall():
        connection.execute(f'drop table "{schema}"."{table}" cascade'.encode())
    named = "select schemaname, sequencename from pg_sequences"
    for schema, name in connection.execute(named).fetchall():
        connection.execute(f'drop sequence "{schema}"."{name}"'.encode())
    connection.execute("drop schema if exists app")


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
