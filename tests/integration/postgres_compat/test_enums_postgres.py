"""Goal: enum types are those of PostgreSQL.

Method: the same stories said to both, and the same rows, tags, SQLSTATEs and constraint names.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

import psycopg
import pytest
from psycopg.types.enum import EnumInfo, register_enum

from tests.support.postgres.client_server import Server
from tests.support.postgres.stories import check_story

pytestmark = pytest.mark.integration

STORIES: Final = {
    "values are in the order of the labels": """
        create type mood as enum ('sad', 'ok', 'happy')
        create table person (id int primary key, m mood not null default 'ok', n mood)
        insert into person values (1, 'happy', null), (2, 'sad', 'ok')
        insert into person (id) values (3)
        select * from person order by m
        select id from person where m > 'sad' order by m desc, id
        select id from person where m between 'ok' and 'happy' order by id
        select id from person where m in ('sad', 'happy') order by id
        select id from person where m = any ('{sad,ok}') order by id
        select id from person where n is distinct from m order by id
        select min(m), max(m), count(distinct m), array_agg(m order by m desc)::text from person
        select m, count(*) from person group by m order by m
        select m from person union select 'sad' order by 1
        select greatest(m, 'ok'), least(m, 'ok'), coalesce(n, m), nullif(m, 'ok') from person
            order by id
        select case when m = 'ok' then n else m end from person order by id
        select m::text, m || '!', concat(m, 1), to_jsonb(m), length(m::text) from person order by id
        select m::varchar(2), 'ok'::text::mood, cast('sad' as mood), mood 'happy' from person
            where id = 1
        select enum_first(null::mood), enum_last('sad'::mood), enum_range(null::mood)::text,
            enum_range('ok', 'happy'::mood)::text, enum_range(null, 'ok'::mood)::text
        select pg_typeof(m), pg_typeof(array[m])::text from person where id = 1
        select rank() over (order by m), lag(m) over (order by m) from person order by 1
        update person set m = 'happy' where m < 'happy' and n is null
        update person set n = m where id = 1
        select * from person order by id
        delete from person where m = 'happy'
        select * from person
    """,
    "what is wrong with a value": """
        create type mood as enum ('sad', 'ok')
        create type other as enum ('sad', 'ok')
        create table person (id int primary key, m mood, o other, t text)
        insert into person values (1, 'glad')
        insert into person values (1, 'sad', 'sad', 'sad')
        select 'glad'::mood
        select ''::mood
        select 'SAD'::mood
        select m = 'glad' from person
        select m = o from person
        select m = t from person
        select m = 'sad'::text from person
        select m = t::mood from person
        select m::other from person
        select m::text::other from person
        select 1::mood
        select m::int from person
        select m + 1 from person
        select length(m) from person
        select lower(m) from person
        update person set m = t
        update person set m = o
        update person set t = m
        insert into person (id, m) select 2, t from person
        insert into person (id, t) select 2, m from person
        select coalesce(m, o) from person
        select m from person union select o from person
        select coalesce(m, t) from person
        create table person2 (m nothing)
        create table person2 (m mood(3))
        create table person2 (m mood default 'glad')
        create table person2 (m mood default 'ok'::other)
        create table person2 (m mood default 'ok'::mood, n mood default null)
        insert into person2 default values
        select * from person2
        select 'x'::nothing
        select enum_first('sad')
    """,
    "types are made, changed and dropped": """
        create type mood as enum ('sad', 'ok', 'happy')
        create type mood as enum ('sad')
        create type public.empty as enum ()
        create type long as enum
            ('0123456789012345678901234567890123456789012345678901234567890123')
        create type "Big Mood" as enum ('A b', '''q', 'x,y', '')
        create table person (id int primary key, m mood, b "Big Mood" default 'x,y')
        create table mood (a int)
        create type person as enum ('a')
        insert into person values (1, 'happy'), (2, 'sad', '')
        alter type mood add value 'ok'
        alter type mood add value if not exists 'ok'
        alter type mood add value 'meh' before 'ok'
        alter type mood add value 'so so' after 'meh'
        alter type mood add value 'first' before 'sad'
        alter type mood add value if not exists 'last'
        alter type mood add value 'x' after 'nothing'
        alter type nothing add value 'x'
        insert into person values (3, 'meh'), (4, 'so so'), (5, 'first'), (6, 'last')
        select m, b from person order by m
        select enum_range(null::mood)::text
        alter type mood rename value 'so so' to 'middling'
        alter type mood rename value 'nothing' to 'x'
        alter type mood rename value 'ok' to 'meh'
        select m from person where m >= 'middling' order by m
        alter type mood rename to feeling
        alter type feeling rename to "Big Mood"
        alter type mood rename to x
        select 'meh'::mood
        select 'meh'::feeling, pg_typeof(m) from person where id = 1
        insert into person values (7, 'glad')
        drop type feeling
        drop type feeling restrict
        drop type mood
        drop type if exists mood, nothing
        alter table person drop column m
        drop type feeling, "Big Mood" cascade
        select * from person order by id limit 1
        drop type empty
        create type feeling as enum ('again')
        alter table person add column m feeling default 'again'
        select * from person order by id limit 2
    """,
    "the catalog shows them": """
        create type mood as enum ('sad', 'ok')
        create type "Big Mood" as enum ('A b')
        alter type mood add value 'meh' before 'ok'
        comment on type mood is 'how it is'
        create table person (id int primary key, m mood not null default 'ok', ms mood[],
            b "Big Mood" default 'A b', check (m <> 'sad'), constraint c check (m > 'sad'::mood))
        select typname, typlen, typbyval, typtype, typcategory, typispreferred, typisdefined,
            typdelim, typalign, typstorage, typnotnull, typinput, typoutput, typreceive, typsend
            from pg_type where typname in ('mood', '_mood', 'Big Mood') order by 1
        select e.typname, a.typname from pg_type e join pg_type a on a.oid = e.typarray
            where e.typtype = 'e' and a.typelem = e.oid order by 1
        select t.typname, e.enumsortorder, e.enumlabel from pg_enum e
            join pg_type t on t.oid = e.enumtypid order by 1, 2
        select obj_description('mood'::regtype, 'pg_type'), pg_type_is_visible('mood'::regtype)
        select 'mood'::regtype, 'public.mood[]'::regtype, '"Big Mood"'::regtype, to_regtype('x')
        select attname, format_type(atttypid, atttypmod), attlen, attbyval, attstorage, attalign
            from pg_attribute where attrelid = 'person'::regclass and attnum > 0 order by attnum
        select column_name, data_type, udt_schema, udt_name, column_default, is_nullable
            from information_schema.columns where table_name = 'person' order by ordinal_position
        alter type mood rename to feeling
        select column_name, data_type, udt_schema, udt_name, column_default
            from information_schema.columns where table_name = 'person' order by ordinal_position
        select format_type(atttypid, atttypmod) from pg_attribute
            where attrelid = 'person'::regclass and attnum > 0 order by attnum
        select pg_get_expr(adbin, adrelid) from pg_attrdef where adrelid = 'person'::regclass
            order by adnum
        SELECT n.nspname, pg_catalog.format_type(t.oid, NULL), t.typname,
            pg_catalog.array_to_string(ARRAY(SELECT e.enumlabel FROM pg_catalog.pg_enum e
            WHERE e.enumtypid = t.oid ORDER BY e.enumsortorder), E'\\n'),
            pg_catalog.obj_description(t.oid, 'pg_type')
            FROM pg_catalog.pg_type t LEFT JOIN pg_catalog.pg_namespace n ON n.oid = t.typnamespace
            WHERE t.typtype = 'e' AND pg_catalog.pg_type_is_visible(t.oid) ORDER BY 1, 2
    """,
    "in keys, indexes and constraints": """
        create type mood as enum ('sad', 'ok', 'happy')
        create table parent (m mood primary key, n int, unique (n, m))
        create table child (id int primary key, m mood references parent on update cascade
            on delete set null, check (m <> 'happy'), k mood unique)
        create index by_text on child ((m::text))
        create table other (m mood, t text generated always as (m::text) stored)
        create table other (m mood,
            t text generated always as (case m when 'ok' then 'y' end) stored)
        create index by_mood on child (m desc, k) where m > 'sad'::mood
        create unique index by_case on child ((case when m = 'ok' then 1 else id end))
        insert into other values ('ok'), ('sad')
        select * from other order by m
        insert into parent values ('ok', 1), ('sad', 1)
        insert into parent values ('ok', 2)
        insert into child values (1, 'ok', 'happy'), (2, null, 'sad')
        insert into child values (3, 'happy')
        insert into child values (3, null, 'sad')
        alter type mood add value 'meh' before 'ok'
        insert into child values (3, 'meh')
        insert into parent values ('meh', 2)
        insert into child values (3, 'meh')
        select m from parent order by m
        select id from child where m = 'meh'
        select id from child where m::text = 'meh' and m > 'sad'::mood
        select p.n, c.id from parent p join child c using (m) order by 2
        update parent set m = 'happy' where m = 'ok'
        update parent set m = 'sad' where m = 'meh'
        delete from parent where m = 'meh'
        select * from child order by id
        alter table child add constraint f foreign key (k) references parent
        create type feeling as enum ('sad')
        create table third (m feeling references parent)
    """,
    "arrays": """
        create type mood as enum ('sad', 'ok', 'happy')
        create table person (id int primary key, ms mood[] default '{ok}')
        insert into person values (1, '{sad,null,happy}'), (2, array['ok']::mood[])
        insert into person (id) values (3)
        insert into person values (4, '{sad,glad}')
        insert into person values (4, array['ok'])
        select id, ms::text, ms[1], cardinality(ms) from person order by id
        select id from person where 'sad' = any (ms)
        select id from person where ms @> '{ok}' order by id
        select id, m from person, unnest(ms) as m order by m, id
        alter type mood rename value 'sad' to 'bad'
        select ms::text from person order by ms
        select array_position(ms, 'happy'), array_append(ms, 'ok')::text from person where id = 1
    """,
    "columns become of a type and are so no more": """
        create type mood as enum ('sad', 'ok')
        create table person (id int primary key, m text default 'ok')
        insert into person values (1, 'sad'), (2, 'ok')
        alter table person alter column m type mood
        alter table person alter column m drop default
        alter table person alter column m type mood using m::mood
        alter table person alter column m set default 'ok'
        select * from person order by m
        create type feeling as enum ('ok', 'sad', 'fine')
        alter table person alter column m type feeling
        alter table person alter column m drop default, alter column m type feeling
            using m::text::feeling, alter column m set default 'fine'
        insert into person (id) values (3)
        select * from person order by m
        drop type mood
        alter table person alter column m drop default
        alter table person alter column m type varchar(10) using m::text
        select * from person order by m
        drop type feeling
    """,
    "in a block": """
        begin
        create type mood as enum ('sad', 'ok')
        create table person (id int primary key, m mood)
        insert into person values (1, 'ok')
        select * from person
        rollback
        select 'sad'::mood
        begin
        create type mood as enum ('sad', 'ok')
        create table person (id int primary key, m mood)
        insert into person values (1, 'ok')
        savepoint s
        alter type mood rename to feeling
        select 'ok'::feeling
        rollback to s
        select 'ok'::mood
        commit
        select * from person
        begin
        create type other as enum ('x', 'y')
        alter table person add column o other not null default 'y'
        insert into person values (2, 'sad', 'x')
        select * from person order by id
        commit
        select * from person order by o
        begin
        drop type other
        rollback
        begin
        alter table person drop column o
        drop type other
        commit
        select 'x'::other
        select * from person order by id
    """,
    "as a migration tool swaps a type": """
        create type "Role" as enum ('USER', 'ADMIN', 'OLD')
        create table "User" (id int primary key, role "Role" not null default 'USER')
        insert into "User" values (1), (2, 'ADMIN')
        begin
        create type "Role_new" as enum ('USER', 'ADMIN', 'MODERATOR')
        alter table "User" alter column role drop default
        alter table "User" alter column role type "Role_new" using (role::text::"Role_new")
        alter type "Role" rename to "Role_old"
        alter type "Role_new" rename to "Role"
        drop type "Role_old"
        alter table "User" alter column role set default 'USER'
        commit
        select * from "User" order by role desc
        insert into "User" values (3, 'MODERATOR')
        insert into "User" values (4, 'OLD')
        select enum_range(null::"Role")::text
        alter type "Role" rename to "Role_old"
        create type "Role" as enum ('USER', 'ADMIN')
        alter table "User" alter column role drop default
        update "User" set role = 'USER' where role = 'MODERATOR'
        alter table "User" alter column role type "Role" using role::text::"Role"
        alter table "User" alter column role set default 'USER'
        drop type "Role_old"
        select * from "User" order by role, id
    """,
}
"""Each leaves nothing behind but what is dropped below."""


@pytest.fixture
def clean(servers: tuple[Server, Server]) -> Iterator[tuple[Server, Server]]:
    yield servers
    for server in servers:
        with server.psycopg(autocommit=True) as connection:
            named = "select typname from pg_type where typtype = 'e' order by 1"
            for (name,) in connection.execute(named).fetchall():
                connection.execute(f'drop type "{name}" cascade'.encode())


@pytest.mark.parametrize("name", STORIES)
def test_a_story_is_told_as_postgresql_tells_it(clean: tuple[Server, Server], name: str) -> None:
    check_story(clean, STORIES[name])


def test_drivers_send_and_get_labels(clean: tuple[Server, Server]) -> None:
    """Goal: parameters of an open type, of the type and of arrays, as text and in binary; COPY."""
    answers: list[list[Any]] = []
    for server in clean:
        said: list[Any] = []
        with server.psycopg(autocommit=True) as connection:
            connection.execute("create type mood as enum ('sad', 'o\"k', 'happy, too')")
            connection.execute("create table person (id int primary key, m mood, ms mood[])")
            for binary in (False, True):
                with connection.cursor(binary=binary) as cursor:
                    many = ["sad", 'o"k', "happy, too"]
                    row = (1 + binary, many[binary], many)
                    cursor.execute("insert into person values (%s, %s, %s)", row)
                    cursor.execute("select m, ms::text from person where m = %s", (many[binary],))
                    said += cursor.fetchall()
                    cursor.execute("select id from person where m = any(%s::mood[])", (many,))
                    said += sorted(cursor.fetchall())
            info = EnumInfo.fetch(connection, "mood")
            assert info is not None
            said.append(info.labels)
            register_enum(info, connection)
            with connection.cursor() as cursor:
                cursor.execute("select m from person where m = %s", (info.enum["sad"],))  # type: ignore[index]
                said += [value.name for (value,) in cursor.fetchall()]
                with cursor.copy("copy person from stdin") as copy:
                    copy.write_row((7, "happy, too", None))
                with cursor.copy("copy (select * from person order by id) to stdout") as copy:
                    said += [bytes(data) for data in copy]
            try:
                with connection.cursor() as cursor, cursor.copy("copy person from stdin") as copy:
                    copy.write_row((8, "glad", None))
            except psycopg.Error as error:
                said.append(error.sqlstate)
            connection.execute("drop table person; drop type mood")
        answers.append(said)
    assert answers[0] == answers[1]
