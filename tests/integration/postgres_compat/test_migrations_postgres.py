"""Goal: the statements of migration tools, and of dumps, are taken as in PostgreSQL, or refused
with its SQLSTATE: by kinds of statements, of which each tool has its own shape.

Method: the same statements in both, and the same rows, tags, SQLSTATEs and constraint names asked
of both; what is taken and has no effect here, in ours alone.
"""

from __future__ import annotations

from typing import Any, Final

import psycopg
import pytest

from tests.support.postgres.client_server import Server
from tests.support.postgres.migration_families import FAMILIES, REFUSED, TABLES
from tests.support.postgres.stories import check_story, drop_tables, statements_of, told

pytestmark = pytest.mark.integration

CONSTRAINTS: Final = (
    "select conname, contype::text, pg_get_constraintdef(oid) from pg_constraint"
    " where connamespace = 'public'::regnamespace order by 1"
)
TYPES: Final = (
    "select column_name, data_type, character_maximum_length from information_schema.columns"
    " where table_schema = 'public' order by table_name, ordinal_position"
)
INDEXES: Final = "select indexname, indexdef from pg_indexes where schemaname = 'public' order by 1"

STORIES: Final = {
    "a primary key with a name": f"""
        create table version (num varchar(32) not null, constraint version_pkc primary key (num))
        create table counted (id serial constraint pk_counted primary key,
            b int constraint b_there not null constraint b_three default 3)
        create table pair (a int, b int, constraint "Pair Key" primary key (b, a))
        {CONSTRAINTS}
        {INDEXES}
        insert into version values ('x')
        insert into version values ('x')
        insert into version values ('x') on conflict on constraint version_pkc do nothing
        insert into pair values (1, 1), (1, 1)
        create table other (id int constraint pk_counted primary key)
        create table other (id int constraint other primary key)
        create table other (id int constraint a primary key constraint a check (id > 0))
        create table other (id int constraint a check (id > 0), constraint a primary key (id))
        create table counted_pkey (a int)
        alter table counted rename to numbered
        alter index pk_counted rename to pk_numbered
        alter table version drop constraint version_pkc
        {CONSTRAINTS}
    """,
    "keys of char(n) become texts": f"""
        create table u (id char(4) not null primary key, n int)
        create table v (id char(4) not null primary key, u_id char(4) not null references u (id))
        insert into u values ('abcd', 1), ('efgh', 2)
        insert into v values ('aaaa', 'abcd')
        alter table u alter column id type varchar(40)
        alter table v alter column id type text
        alter table v alter column u_id type varchar(40)
        {TYPES}
        {CONSTRAINTS}
        insert into u values ('ij ', 3), ('ij', 4)
        insert into v values ('b ', 'ij '), ('b', 'ij')
        insert into v values ('c', 'abcd ')
        select v.id, u_id, n, length(v.id) from v join u on u.id = v.u_id order by v.id
        update u set id = 'abcde' where id = 'efgh'
        delete from u where id = 'abcd'
        drop table v
        drop table u
    """,
    "a key that goes, beside what may not be there": f"""
        create table t (id serial constraint t_pkey primary key, b int unique)
        insert into t values (1, 1), (2, 2)
        alter table t drop constraint if exists t_pkey, drop constraint if exists t_pkey1
        {CONSTRAINTS}
        insert into t values (1, 3)
        select id, b from t order by b
        alter table t drop constraint if exists t_pkey, drop constraint if exists t_pkey1
        alter table t drop constraint if exists none, add primary key (b)
        {CONSTRAINTS}
        insert into t values (4, null)
        alter table t drop constraint if exists none, drop constraint t_pkey, drop constraint gone
        alter table t drop constraint if exists none, drop constraint t_pkey, add primary key (b,id)
        {CONSTRAINTS}
        drop table t
    """,
    "one that comes later, and another one": f"""
        create table t (id int not null, b int not null, c int check (c > 0) unique)
        insert into t values (1, 2, 1), (3, 4, 5)
        alter table only t add constraint t_b_key primary key (b)
        alter table t add constraint again primary key (id)
        {CONSTRAINTS}
        alter table t drop constraint t_b_key, add constraint k primary key (id)
        insert into t values (1, 2, 3)
        alter table t drop constraint k, add primary key (id)
        {CONSTRAINTS}
        alter table t drop constraint t_pkey
        alter table t add constraint t_c_check primary key (id)
        alter table t add constraint t_c_key primary key (id)
        alter table t add constraint t primary key (id)
        alter table t add constraint late primary key (id)
        {CONSTRAINTS}
        {INDEXES}
    """,
    "ALTER TABLE of a sequence and of an index": f"""
        create table squid (id bigserial primary key, a int)
        create index squid_a on squid (a)
        alter table squid_id_seq rename to calamari_seq
        select pg_get_serial_sequence('squid', 'id')
        insert into squid (a) values (1) returning id
        alter table squid_a rename to by_a
        alter table squid_pkey rename to squid_key
        alter table if exists nothing rename to something
        alter table nothing rename to something
        alter table by_a rename to squid
        alter sequence calamari_seq rename to squid
        alter table calamari_seq add column a int
        alter table calamari_seq owner to current_user
        {INDEXES}
        select sequencename from pg_sequences
    """,
    "the order and the operator classes of an index": f"""
        create table message (id int primary key, nid int, at timestamptz, name varchar(20), t text,
            c char(3))
        create index message_at on message (nid, at desc)
        create index on message (nid asc nulls last, at desc nulls first, t desc nulls last)
        create index on message (name nulls first)
        create unique index message_like on message (name varchar_pattern_ops)
        create index on message (t text_pattern_ops, lower(t) text_pattern_ops desc, c)
        create index on message (t text_ops, nid int4_ops, name varchar_ops, id pg_catalog.int4_ops)
        create index on message (c bpchar_pattern_ops)
        create index on message (t int4_ops)
        create index on message (t no_such_ops)
        create index on message (t public.text_ops)
        create table host (a cidr unique, b inet, d date)
        create index on host (a, b desc, lower(a::text) text_pattern_ops) include (d)
        create index on host (a cidr_ops, b pg_catalog.cidr_ops desc nulls last)
        create index on host (b text_ops)
        {INDEXES}
        select indexrelid::regclass::text, indoption, indclass, indcollation from pg_index
            where indrelid in ('message'::regclass, 'host'::regclass) order by 1
        insert into message values (1, 1, '2026-01-01', 'a', null), (2, 1, '2026-01-02', 'b', null)
        insert into message values (3, 1, '2026-01-01', 'a', null)
        select id from message where nid = 1 order by at desc limit 1
        select id from message where name like 'a%'
        select id from message order by name nulls first, id
    """,
    "bytea that is empty beside NULLs": """
        create table cell (id int primary key, raw bytea)
        insert into cell values (1, '\\x'), (2, null), (3, '\\x00'), (4, '\\xff'), (5, null)
        create unique index on cell (raw)
        select id from cell where raw > '\\x' order by id
        select id from cell where raw >= '\\x' order by id
        select id from cell where raw < '\\xff' order by id
        select raw from cell where raw <= '\\xff' order by raw
        select id from cell where raw = '\\x'
        select id from cell where raw is null order by id
        select id from cell order by raw, id
        select id, raw from cell order by raw limit 3
        select raw from cell order by raw desc limit 3
        insert into cell values (6, null)
        insert into cell values (7, '\\x')
        delete from cell where id = 1
        insert into cell values (8, '\\x')
        insert into cell values (9, '\\x') on conflict (raw) do update set id = 10 returning id
        create unique index on cell (raw) nulls not distinct
    """,
    "bytea in keys, indexes and foreign keys": f"""
        create table shard (id int, space bytea, name text, digest bytea, primary key (id, space))
        insert into shard values (1, '\\x01', 'a', '\\xff00'), (1, '\\x', 'b', '\\xff'),
            (1, '\\x00ff', 'c', null), (2, '\\x7f', 'd', null)
        create unique index by_digest on shard (digest, id)
        create index by_space on shard (space desc nulls last, name)
        create unique index on shard (sha256(space))
        alter table shard add constraint once unique (digest)
        insert into shard values (3, '\\x01', 'e', '\\xff')
        insert into shard values (1, '\\x01', 'e', '\\xfe')
        insert into shard values (4, '\\x05', 'e', '\\xff') on conflict (digest)
            do update set name = 'f' returning id, name
        select id, name from shard where digest = '\\xff00'
        select name from shard where space > '\\x00' and space <= '\\x01ff' order by space
        select name from shard order by digest desc nulls last, space
        select name from shard where space = any (array['\\x'::bytea, '\\x7f']) order by 1
        create table held (id int primary key, of bytea references shard (digest) on update cascade)
        insert into held values (1, '\\xff'), (2, null)
        insert into held values (3, '\\xaa')
        update shard set digest = '\\xaa' where name = 'f'
        select * from held order by id
        delete from shard where digest = '\\xaa'
        alter table shard drop constraint shard_pkey, add primary key (space, id)
        select name from shard where space = '\\x00ff' and id = 1
        {CONSTRAINTS}
        select indexname, indexdef from pg_indexes where tablename = 'shard' order by 1
    """,
    "digits of a second": """
        create table visit (id int primary key, at timestamp(3) not null default current_timestamp,
            z timestamptz(0), y timestamp(6) with time zone, x timestamp (2) without time zone)
        insert into visit values (1, '2026-01-01 00:00:00.123456', '2026-01-01 00:00:00.5+00',
            '2026-01-01 00:00:00.123456+00', '1970-01-01 00:00:00.005')
        insert into visit select 2, timestamp '1999-12-31 23:59:59.9995',
            timestamptz '1999-12-31 23:59:59.5+00', null, '1999-12-31 23:59:59.9949'
        select * from visit order by id
        insert into visit (id) values (3) returning date_trunc('milliseconds', at) = at
        update visit set at = at + interval '0.0006 seconds', x = z where id = 1 returning at, x
        begin
        update visit set at = '2026-01-01 00:00:00.1234567' where id = 1
        select at from visit where at = '2026-01-01 00:00:00.123'
        commit
        select '2026-01-01 00:00:00.123456'::timestamp(2), '2026-01-01 00:00:00.5'::timestamp(0)
        select timestamptz '2026-01-01 00:00:00.45+00'::timestamp(1) at time zone 'UTC'
        select date '2026-01-01'::timestamp(1)
        select format_type(atttypid, atttypmod), atttypmod from pg_attribute
            where attrelid = 'visit'::regclass and attnum > 0 order by attnum
        select column_name, data_type, datetime_precision from information_schema.columns
            where table_name = 'visit' order by ordinal_position
        alter table visit alter at type timestamp
        alter table visit alter y type timestamptz(1), add column w timestamp(0)
            default '2026-01-01 00:00:00.6'
        alter table visit alter x type timestamp(6)
        create index on visit (x, y)
        insert into visit values (4, '2026-01-01 00:00:00.123456', null,
            '2026-01-01 00:00:00.36+00', '2026-01-01 00:00:00.123456')
        select * from visit where id <> 3 order by id
        select id from visit where x >= timestamp '1999-12-31 23:59:59.99' order by x
        create table bad (a timestamp(-1))
    """,
    "DROP of several at once": f"""
        create table t (id int primary key, a int, b int)
        create index t_a on t (a)
        create index t_b on t (b)
        create index t_ab on t (a, b)
        create table u (id int)
        create index u_id on u (id)
        create sequence s
        create sequence r
        drop index t_a, no_such
        drop index t_a, public.t_b, u_id
        {INDEXES}
        drop index if exists t_ab, t_pkey
        drop index if exists t_ab, t_a cascade
        drop sequence s, no_such
        drop sequence if exists s, r, no_such
        select sequencename from pg_sequences
        {INDEXES}
    """,
    "DROP of what there is not": """
        create table t (id int primary key)
        create sequence s
        drop view if exists nothing
        drop view nothing
        drop view if exists a, public.b, no_schema.c cascade
        drop view t
        drop view if exists t
        drop materialized view if exists nothing
        drop foreign table if exists nothing
        drop type if exists nothing
        drop type nothing
        drop type if exists t
        drop type if exists int4
        drop domain if exists nothing
        drop function if exists nothing()
        drop function if exists nothing(int, text), nothing
        drop function nothing(int)
        drop procedure if exists nothing
        drop aggregate if exists nothing(int)
        drop routine if exists nothing
        drop trigger if exists nothing on t
        drop trigger if exists nothing on nothing
        drop trigger nothing on t
        drop rule if exists nothing on t
        drop policy if exists nothing on t
        drop extension if exists nothing
        drop extension nothing
        drop schema if exists nothing
        drop schema nothing
        drop collation if exists nothing
        drop statistics if exists nothing
        begin
        drop view if exists nothing
        drop table t
        rollback
        drop table if exists t
    """,
    "constraints that are not valid yet": f"""
        create table p (id int primary key)
        create table t (id int primary key, a int, p int)
        insert into t values (1, -1, 7)
        alter table t add constraint positive check (a > 0) not valid
        alter table t add constraint t_p_fkey foreign key (p) references p not valid
        alter table t add check (a < 100)
        select conname, contype, convalidated from pg_constraint
            where conrelid = 't'::regclass order by 1
        {CONSTRAINTS}
        select relchecks from pg_class where oid = 't'::regclass
        select conname, pg_get_constraintdef(oid, true) from pg_constraint
            where conrelid = 't'::regclass order by 1
        select check_clause from information_schema.check_constraints
            where constraint_name = 'positive'
        insert into t values (2, -2, null)
        insert into t values (2, 2, 8)
        alter table t validate constraint positive
        select conname, convalidated from pg_constraint where conrelid = 't'::regclass order by 1
        update t set a = 5, p = null
        alter table t validate constraint positive
        alter table t validate constraint t_p_fkey
        select conname, convalidated from pg_constraint where conrelid = 't'::regclass order by 1
        {CONSTRAINTS}
        alter table t add constraint more check (a > 1) not valid
        alter table t drop constraint more
        select count(*) from pg_constraint where conname = 'more'
    """,
    "constraints that can't be deferred, as many tools say": f"""
        create table p (id int not null, code text, primary key (id) not deferrable,
            constraint once unique (code) not deferrable initially immediate)
        create table t (id int primary key not deferrable initially immediate, p int constraint
            in_column references p on delete cascade not deferrable, code text unique
            initially immediate not null, a int not null check (a > 0))
        alter table t add constraint fk_5f foreign key (p) references p (id)
            not deferrable initially immediate
        alter table t add constraint small check (a < 9) not deferrable
        alter table t add constraint fk_6f foreign key (code) references p (code)
            initially immediate not valid
        {CONSTRAINTS}
        select conname, condeferrable, condeferred, convalidated from pg_constraint
            where contype = 'f' order by 1
    """,
    "what dumps and mappers say of lists, arrays, collations and storage": f"""
        create table t (id int primary key, a text[] default array[]::text[], b int[] not null
            default array[1, 2], c text[] default array['x'::text, 'y"z'], s varchar(5) collate "C"
            check (s = any (array['a'::text, 'b'::text])), u text collate pg_catalog."default")
        insert into t (id, s) values (1, 'a') returning *
        insert into t (id, s) values (2, 'c')
        create index by_u on t using hash (u)
        create index by_s on t using btree (s collate "C") with (fillfactor = 70)
        create unique index one_a on t (u) where ((s)::text = any ((array['a'::character varying,
            'b'::character varying])::text[]))
        insert into t (id, s, u) values (3, 'a', 'x'), (4, null, 'x')
        insert into t (id, s, u) values (5, 'b', 'x')
        alter table t alter u type varchar(9) collate "C"
        select * from t where u = 'x' order by id
        create index on t (u) with (nothing = 1)
        {CONSTRAINTS}
    """,
    "comments": """
        create table said (id int primary key, a int constraint low check (a > 0))
        create sequence counted
        create index said_a on said (a)
        comment on table said is 'what was said'
        comment on table public.said is null
        comment on column said.id is 'its number'
        comment on column public.said.nothing is 'x'
        comment on constraint low on said is 'x'
        comment on constraint said_pkey on said is 'x'
        comment on constraint nothing on said is 'x'
        comment on index said_a is 'x'
        comment on index said_pkey is 'x'
        comment on index nothing is 'x'
        comment on sequence counted is 'x'
        comment on table nothing is 'x'
        comment on column nothing.a is 'x'
        comment on table counted is 'x'
        comment on schema public is 'standard public schema'
        comment on view nothing is 'x'
        comment on function nothing(int) is 'x'
        comment on type nothing is 'x'
        comment on extension nothing is 'x'
        begin
        comment on table said is 'x'
        insert into said values (1, 1)
        commit
        select * from said
    """,
    "the preamble of a dump, and its forms": f"""
        set statement_timeout = 0
        set lock_timeout = 0
        set idle_in_transaction_session_timeout = 0
        set client_encoding = 'UTF8'
        set standard_conforming_strings = on
        select pg_catalog.set_config('search_path', '', false)
        set check_function_bodies = false
        set xmloption = content
        set xmloption = nothing
        set client_min_messages = warning
        set row_security = off
        show row_security
        set default_tablespace = ''
        set default_table_access_method = heap
        create table public.ship (id integer not null, name character varying(20)
            default 'x'::character varying, nick text, since timestamp with time zone default now(),
            constraint ship_nick_check check ((nick <> ''::text)))
        alter table public.ship owner to current_user
        comment on table public.ship is 'ships'
        create sequence public.ship_id_seq as integer start with 1 increment by 1 no minvalue
            no maxvalue cache 1
        alter table public.ship_id_seq owner to current_user
        alter sequence public.ship_id_seq owned by public.ship.id
        alter table only public.ship alter column id
            set default nextval('public.ship_id_seq'::regclass)
        insert into public.ship (name) values ('a'), ('b')
        select pg_catalog.setval('public.ship_id_seq', 7, true)
        alter table only public.ship add constraint ship_pkey primary key (id)
        alter table only public.ship add constraint ship_name_key unique (name)
        create index ship_since on public.ship using btree (since desc)
        create table public.crew (id integer not null, ship integer)
        alter table only public.crew add constraint crew_pkey primary key (id)
        alter table only public.crew add constraint crew_ship_fkey foreign key (ship)
            references public.ship(id) on delete cascade
        reset search_path
        {CONSTRAINTS}
        {INDEXES}
        insert into ship (name) values ('c') returning id
        insert into ship (nick) values ('')
    """,
}

EXTENSIONS: Final = """
    create extension if not exists "pgcrypto"
    create extension if not exists "uuid-ossp" with schema public
    create table t (id uuid primary key default uuid_generate_v4(),
              b uuid default public.uuid_generate_v4(), c uuid default gen_random_uuid(),
              d uuid default extensions.gen_random_uuid())
    alter table t alter c set default uuid_generate_v4()
    insert into t default values
    insert into t default values
    create schema if not exists public
"""
"""What is built in: contrib need not be installed beside the PostgreSQL that is compared with."""


@pytest.mark.parametrize("story", STORIES.values(), ids=STORIES.keys())
def test_migrations_are_taken_as_in_postgresql(servers: tuple[Server, Server], story: str) -> None:
    check_story(servers, story)


def _notices(connection: psycopg.Connection[Any]) -> list[str]:
    said: list[str] = []
    connection.add_notice_handler(lambda notice: said.append(notice.message_primary or ""))
    return said


def test_what_is_not_there_is_told_in_postgresqls_words(servers: tuple[Server, Server]) -> None:
    told_by = []
    for server in servers:
        with server.psycopg(autocommit=True) as connection:
            connection.execute("create table t (id int)")
            connection.execute("create schema s")
            said = _notices(connection)
            for text in (
                "drop view if exists a, public.b, no_schema.c, s.d",
                "drop type if exists a",
                "drop domain if exists a",
                "drop trigger if exists a on t",
                "drop trigger if exists a on nothing",
                "drop policy if exists a on t",
                "drop extension if exists a",
                "drop schema if exists a",
                "drop function if exists a()",
            ):
                connection.execute(text.encode())
            said += [str(told(connection, f"drop view {name}")) for name in ("no_schema.c", "s.d")]
            connection.execute("drop schema s")
            told_by.append(said)
            drop_tables(connection)
    assert told_by[0] == told_by[1]


def test_extensions_that_are_built_in(servers: tuple[Server, Server]) -> None:
    ours, _ = servers
    with ours.psycopg(autocommit=True) as connection:
        said = _notices(connection)
        try:
            for text in statements_of(EXTENSIONS):
                assert isinstance(told(connection, text), str), text
            found = connection.execute("select id, b, c from t").fetchall()
            assert len({value for row in found for value in row}) == 6, "each one another"
        finally:
            drop_tables(connection)
        assert told(connection, "create extension postgis") == ("0A000", None)
        assert told(connection, "drop extension pgcrypto") == ("0A000", None)
    assert "of extension pgcrypto there is gen_random_uuid(), which is built in" in said
    assert 'schema "public" already exists, skipping' in said


def test_a_comment_on_what_is_no_relation_is_said_to_be_forgotten(
    servers: tuple[Server, Server],
) -> None:
    ours, _ = servers
    with ours.psycopg(autocommit=True) as connection:
        said = _notices(connection)
        connection.execute("comment on extension pgcrypto is 'x'")
    assert said == ["comments are not kept: this one is read and forgotten"]


@pytest.mark.parametrize("family", [*FAMILIES, *REFUSED])
def test_a_family_of_statements_runs_in_postgresql(
    servers: tuple[Server, Server], family: str
) -> None:
    """What unit tests have of it is what it comes to there; what is refused here runs there."""
    _, theirs = servers
    said = (FAMILIES if family in FAMILIES else REFUSED)[family][0]
    with theirs.psycopg(autocommit=True) as connection:
        try:
            for text in (*TABLES, "begin", *said, "commit"):
                connection.execute(text.encode())
            if family in FAMILIES:
                _, asked, expected = FAMILIES[family]
                found = connection.execute(asked.encode()).fetchall()
                assert [_bare(row) for row in found] == [_bare(row) for row in expected]
        finally:
            connection.execute("rollback")
            drop_tables(connection)


def _bare(row: tuple[Any, ...]) -> tuple[Any, ...]:
    """A row without what its kind of server writes into definitions of its own."""
    return tuple(value.replace("public.", "") if isinstance(value, str) else value for value in row)
