"""Goal: a column that is changed is afterwards what it is in PostgreSQL: in its place, with the
values that its old ones become in the session's time zone, or refused with PostgreSQL's SQLSTATE.

Method: the same statements in both, and the same rows, tags and SQLSTATEs asked of both.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

import pytest

from tests.support.postgres.both_servers import Connection, told
from tests.support.postgres.client_server import Server

pytestmark = pytest.mark.integration


@pytest.fixture
def both(servers: tuple[Server, Server]) -> Iterator[tuple[Connection, Connection]]:
    ours, theirs = servers
    with ours.psycopg(autocommit=True) as one, theirs.psycopg(autocommit=True) as other:
        yield one, other
        for each in (one, other):
            each.execute("rollback")
            each.execute("drop table if exists t")


COLUMNS: Final = (
    "select column_name, ordinal_position from information_schema.columns"
    " where table_name = 't' order by 2"
)
NUMBERS: Final = (
    "select attname, attnum from pg_attribute where attrelid = 't'::regclass and attnum > 0"
    " order by 2"
)
IN_UTC: Final = "select id, at at time zone 'UTC' from t order by id"

TODAY: Final = "day = current_date, at = localtimestamp"

STORIES: Final = {
    "a changed type leaves the column in its place": f"""
        create table t (a varchar(9), b int, id int primary key)
        insert into t values ('x', 5, 1)
        alter table t alter a type varchar(5)
        select * from t
        insert into t values ('9', 6, 2)
        select a, b, id from t order by id
        alter table t alter b type text
        alter table t alter a type text using a || '!', add column c int default 7
        insert into t values ('z', 'y', 3, 4) returning *
        select * from t order by id
        {COLUMNS}
        {NUMBERS}
        alter table t drop column a, add column d date
        alter table t alter b type varchar(30), alter c type bigint
        select * from t order by id
    """,
    "and through a change of the key": f"""
        create table t (a int, b text, id int primary key)
        insert into t values (1, '2', 3)
        alter table t alter b type int using b::int
        alter table t drop constraint t_pkey
        alter table t alter b set not null
        alter table t add primary key (b)
        insert into t values (4, 5, 6)
        select * from t order by b
        {COLUMNS}
    """,
    "USING what it likes": """
        create table t (id int primary key, a int, b int, c text)
        insert into t values (1, 2, 3, 'x'), (2, null, 5, null), (3, 7, null, 'y')
        alter table t alter a type bigint using coalesce(a, b * 1000)
        select * from t order by id
        alter table t alter c type int using length(c) + b, alter b type text using a || '-' || b
        select * from t order by id
        alter table t alter a type int using null, alter c type text using 'c'
        select * from t order by id
    """,
    "a timestamp becomes what clocks showed": f"""
        set timezone = 'America/New_York'
        create table t (id int primary key, at timestamp)
        insert into t values (1, '2023-02-01 10:10:10'), (2, '2023-07-01 10:10:10'), (3, null)
        alter table t alter at type timestamptz
        {IN_UTC}
        set timezone = 'Asia/Tokyo'
        alter table t alter at type timestamp
        select * from t order by id
        set timezone = -7
        alter table t alter at type timestamptz using at - interval '1 hour'
        {IN_UTC}
        set timezone = 'Europe/Berlin'
        alter table t alter at type date using at::date
        select * from t order by id
        alter table t alter at type timestamptz
        {IN_UTC}
        set timezone = '<+02>-2'
        alter table t alter at type text
        select * from t order by id
        alter table t alter at type timestamptz using at::timestamptz
        {IN_UTC}
        set time zone 'EST5EDT,M3.2.0,M11.1.0'
        alter table t alter at type text using to_char(at, 'HH24:MI')
        select * from t order by id
    """,
    "a default is read in the session's zone": f"""
        set timezone = 'Europe/Berlin'
        create table t (id int primary key, at timestamptz default '2026-07-01 12:00')
        insert into t (id) values (1)
        {IN_UTC}
        set timezone = 'Asia/Tokyo'
        insert into t (id) values (2)
        {IN_UTC}
        alter table t alter at set default '2026-07-01 12:00'
        insert into t (id) values (3)
        {IN_UTC}
        alter table t add column d timestamptz default '2026-07-01 12:00',
            add column e timestamptz default timestamp '2026-07-01 12:00',
            add column f timestamp default timestamptz '2026-07-01 12:00+00'
        select id, d at time zone 'UTC', e at time zone 'UTC', f from t order by id
        alter table t alter d type timestamp, alter f type date
        insert into t (id) values (4)
        select id, d, f from t order by id
    """,
    "and of a table that a block makes": f"""
        set timezone = 'Europe/Berlin'
        begin
        create table t (id int primary key, at timestamptz default '2026-07-01 12:00')
        insert into t (id) values (1)
        {IN_UTC}
        set timezone = 'Asia/Tokyo'
        create table u (id int primary key, at timestamptz default '2026-07-01 12:00',
            check (extract(hour from at) = 12))
        insert into u (id) values (1)
        select at at time zone 'UTC' from u
        commit
        {IN_UTC}
        select at at time zone 'UTC' from u
        set timezone = 'UTC'
        insert into t (id) values (2)
        {IN_UTC}
        drop table u
    """,
    "a check in the zone in which it is said": """
        set timezone = 'Asia/Tokyo'
        create table t (id int primary key, at timestamptz check (at::date = '2026-07-01'))
        insert into t values (1, '2026-07-01 01:00+09')
        insert into t values (2, '2026-06-30 23:00+09')
        alter table t add constraint late check (extract(hour from at) < 12)
        insert into t values (3, '2026-07-01 12:00+09')
        insert into t values (3, '2026-07-01 11:00+09')
    """,
    "a default of today in the zone of who inserts": f"""
        set timezone = 'Etc/GMT-14'
        create table t (id int primary key, day date default current_date,
            at timestamp default now(), clock text default to_char(now(), 'OF'))
        insert into t (id) values (1) returning {TODAY}
        alter table t add column later date default current_date
        select later > (now() at time zone 'Etc/GMT+12')::date from t
        set timezone = 'Etc/GMT+12'
        insert into t (id) values (2) returning {TODAY}, later = current_date
        update t set day = default, later = default where id = 1 returning {TODAY}
        insert into t (id) values (1) on conflict (id) do update set day = default
            returning day = current_date
        begin
        set local timezone = 'Etc/GMT-14'
        insert into t (id) values (3) returning {TODAY}
        commit
        select id from t where day = (now() at time zone 'Etc/GMT-14')::date
    """,
    "what is kept must depend on the row alone": """
        set timezone = 'Asia/Tokyo'
        create table t (id int primary key, at timestamptz, day date)
        create index on t ((at::date))
        create index on t (id) where at > '2026-07-01'::timestamp
        alter table t add column d date generated always as (at::date) stored
        alter table t add column d date generated always as ((at at time zone 'Asia/Tokyo')::date)
            stored
    """,
    "a value that does not fit": """
        create table t (id int primary key, a varchar(9), d text, n int)
        insert into t values (1, '1234567', '2026-02-30', 100000), (2, 'a', 'b', -1)
        alter table t alter a type varchar(5)
        alter table t alter d type date using d::date
        alter table t alter d type int using d::int
        alter table t alter d type uuid using d::uuid
        alter table t alter d type boolean using d::boolean
        alter table t alter n type smallint
        alter table t alter n type numeric(3, 1)
        alter table t alter n type int using n / (n - n)
        alter table t alter d type timestamptz using to_timestamp(n::double precision * 1e12)
        alter table t alter d type timestamptz using d::timestamptz
        alter table t add column g smallint generated always as (n * 2) stored
        alter table t add column g int generated always as (10 / (n + 1)) stored
        alter table t alter a set not null, add check (n > 0)
        alter table t add check (n > 0)
        alter table t add unique (id), alter n type smallint
        select * from t order by id
    """,
    "a default that is not cast by itself": """
        create table t (id int primary key, s text default 'true', n int default 1,
            v varchar(9) default '12', d timestamp default now(), b boolean default true)
        alter table t alter s type boolean using s::boolean
        alter table t alter s type int using 1
        alter table t alter n type boolean using n = 1
        alter table t alter n type text
        alter table t alter n type date using null
        alter table t alter v type int using 3
        alter table t alter v type text
        alter table t alter b type int using 1
        alter table t alter d type date
        alter table t alter d type int using 1
        alter table t alter s drop default, alter s type boolean using s::boolean
        alter table t alter s drop default
        alter table t alter s type boolean using s::boolean
        insert into t (id) values (1) returning id, s, n, v, b
    """,
    "a column that comes with a value for the rows there are": """
        create table t (id int primary key, a text)
        insert into t values (1, 'x'), (2, 'y'), (3, null)
        alter table t add column c int default 7
        select * from t order by id
        insert into t (id) values (4)
        insert into t values (5, 'z', null)
        update t set c = null where id = 1
        update t set a = 'touched' where id in (1, 2)
        alter table t alter c set default 9
        insert into t (id) values (6)
        select id, c, c is null from t order by id
        alter table t alter c drop default
        insert into t (id) values (7)
        select id, c from t where c = 7 order by id
        select c, count(*) from t group by c order by c
        create index on t (c)
        select id from t where c = 7 order by id
        alter table t add column d text not null default 'it''s', add column e float default 0.1,
            add column f bytea default '\\x0061', add column g numeric(5, 2) default 1.50,
            add column h date default '2026-02-28', add column i boolean default true,
            add column j jsonb default '{"a": [1, null]}', add column k float default '-0',
            add column m varchar(3) default ''
        select * from t order by id
        select id from t where d = 'it''s' and e = 0.1 and g = 1.5 and i order by id
        insert into t (id, d) values (8, null)
        insert into t (id) values (8) returning *
        update t set d = default, e = default, c = default where id = 2 returning *
        alter table t add column n int default 3 unique
        alter table t add column n int default 3 check (n > 3)
        delete from t where id > 1
        alter table t add column n int not null default 3 unique check (n > 2)
        insert into t (id) values (9)
        insert into t (id, n) values (9, 4) returning id, n
        alter table t drop column c
        alter table t add column c text default 'again'
        select id, c from t order by id
        truncate t
        insert into t (id, n) values (1, 5) returning c, n, d, g
    """,
    "a wider type": """
        create table t (id smallint primary key, a int unique, b varchar(3), n numeric(4, 2),
            s smallint not null default 5)
        create index on t (b) include (a)
        insert into t values (1, 2147483647, 'abc', 99.99), (2, null, null, null, -7)
        insert into t values (3, 2147483648)
        insert into t values (3, 3, 'abcd')
        alter table t alter a type bigint, alter b type varchar(5), alter n type numeric(8, 2),
            alter s type int
        insert into t values (3, 2147483648, 'abcde', 123456.78, 70000) returning *
        insert into t values (4, 9223372036854775807, 'x', 1.005, 2147483648)
        select * from t order by id
        select id from t where a = 2147483648
        select a from t where a > 5 order by a
        select b, a from t where b > 'abc' order by b
        select pg_typeof(a), pg_typeof(b), pg_typeof(n), pg_typeof(s) from t where id = 1
        insert into t values (5, 2147483648)
        update t set a = a + 1, s = default where id = 3 returning a, s
        alter table t alter id type bigint
        insert into t values (5000000000, 1)
        insert into t values (5000000000, 2) on conflict (id) do update set a = excluded.a
            returning *
        update t set id = id + 1 where id = 5000000000
        select id from t order by id
        alter table t alter b type text, alter b set default 'longer than it was'
        insert into t (id) values (6) returning b
        alter table t alter b type varchar
        drop index t_b_a_idx
        alter table t alter b type varchar(3)
        delete from t where id = 6
        alter table t alter s type smallint
        select * from t order by id
        select attname, format_type(atttypid, atttypmod) from pg_attribute
            where attrelid = 't'::regclass and attnum > 0 order by attnum
    """,
    "a wider type under constraints": """
        create table p (id int primary key, u varchar(3) unique)
        create table t (id int primary key, a smallint check (a > 0 and a < 40000), b int
            check (b between -5 and 3000000000), r int references p on update cascade,
            s varchar(3) check (length(s) < 6 and s <> 'no') references p (u) on delete cascade)
        insert into p values (1, 'abc'), (2147483647, 'no'), (3, 'd')
        insert into t values (1, 32767, 2147483647, 1, 'abc'), (2, null, -5, 2147483647, null)
        alter table t alter a type int, alter b type bigint
        insert into t (id, a) values (3, 39999) returning a
        insert into t (id, a) values (4, 40000)
        update t set b = 3000000000 where id = 1 returning b
        update t set b = 3000000001 where id = 2
        alter table p alter id type bigint
        insert into p values (5000000000, 'x')
        insert into t (id, r) values (5, 3)
        update p set id = 4 where id = 3
        update p set id = id + 6000000000 where id = 4
        alter table t alter r type bigint
        update p set id = id + 6000000000 where id = 4
        insert into t (id, r) values (6, 5000000000), (7, 5000000001)
        insert into t (id, r) values (6, 5000000000) returning r
        delete from p where id = 5000000000
        alter table p alter u type text
        insert into p values (8, 'longer')
        insert into t (id, s) values (8, 'longer')
        alter table t alter s type text
        insert into t (id, s) values (8, 'longer')
        insert into p values (9, 'five5')
        insert into t (id, s) values (8, 'five5') returning s
        insert into t (id, s) values (9, 'no')
        update t set r = null where id = 1
        delete from p where u = 'abc'
        select * from t order by id
        select * from p order by id
        select conname, contype from pg_constraint where conrelid = 't'::regclass order by 1
    """,
    "a narrower type": """
        create table t (id bigint primary key, a bigint unique, b text, n numeric(8, 2),
            s int not null default 5, v varchar)
        create index on t (b) include (a)
        insert into t values (1, 2147483648, 'abcd', 100, 70000, 'xyz'), (2, null, null, null, -7)
        alter table t alter a type int
        alter table t alter b type varchar(3)
        alter table t alter n type numeric(4, 2)
        alter table t alter s type smallint
        alter table t alter a type int, alter s type smallint
        select * from t order by id
        select attname, format_type(atttypid, atttypmod) from pg_attribute
            where attrelid = 't'::regclass and attnum > 0 order by attnum
        update t set a = 2147483647, b = 'abc', n = 99.99, s = 32767 where id = 1
        alter table t alter a type int, alter b type varchar(3), alter n type numeric(4, 2),
            alter s type smallint, alter v type varchar(3), alter id type smallint
        select * from t order by id
        select attname, format_type(atttypid, atttypmod) from pg_attribute
            where attrelid = 't'::regclass and attnum > 0 order by attnum
        insert into t (id, a) values (3, 2147483648)
        insert into t (id, b) values (3, 'abcd')
        insert into t (id, n) values (3, 100)
        insert into t (id, s) values (3, 32768)
        insert into t (id) values (32768)
        insert into t values (3, -2147483648, 'a    ', -99.99, default, 'v') returning *, length(b)
        update t set a = a - 1 where id = 3
        select id from t where a = 2147483647
        select id from t where a > 5000000000
        select id from t where id = 70000
        select b, a from t where b > 'ab' order by b
        alter table t alter a type smallint using a::smallint
    """,
    "a narrower type under constraints": """
        create table p (id bigint primary key, u text unique)
        create table t (id int primary key, a int check (a > 0 and a < 40000), b bigint
            check (b between -5 and 3000000000), r bigint references p on update cascade,
            s text check (length(s) < 6 and s <> 'no') references p (u) on delete cascade)
        insert into p values (1, 'abc'), (2147483648, 'd'), (3, 'longer')
        insert into t values (1, 32767, 2147483647, 1, 'abc'), (2, null, -5, 2147483648, null)
        alter table t alter r type int
        alter table p alter id type int
        alter table p alter u type varchar(3)
        alter table t alter a type smallint, alter b type int, alter s type varchar(3)
        insert into t (id, a) values (3, 0)
        insert into t (id, a) values (3, 39999)
        update t set b = -6 where id = 1
        update p set id = 5 where id = 2147483648
        alter table t alter r type int
        alter table p alter id type int
        update p set id = id + 1 where id = 1
        update p set id = 2147483648 where id = 2
        insert into t (id, r) values (5, 77)
        delete from p where u = 'longer'
        alter table p alter u type varchar(3)
        select * from t order by id
        select * from p order by id
        select conname, contype from pg_constraint where conrelid = 't'::regclass order by 1
    """,
    "another type under what rests on it": """
        create table t (id int primary key, a int unique, b text, c text not null default '7',
            check (c <> 'x'), constraint both_ check (a > 0 or b is not null))
        create index by_b on t (b, a) include (c)
        create unique index lowered on t (lower(b)) where a > 1
        insert into t values (1, 1, '10', '5'), (2, 2, '20', '6'), (3, null, '30', '7')
        alter table t alter a type text
        alter table t alter a type numeric(10, 2)
        select * from t order by id
        insert into t values (4, 1.004, 'z', '9')
        insert into t values (4, -1, null, '9')
        insert into t values (4, 1.5, '20', '9')
        insert into t values (4, 1.5, '40', '9') returning *
        select id from t where a > 1.2 order by a
        select b, a, c from t where b > '15' order by b
        alter table t alter c type int using c::int
        alter table t drop constraint t_c_check
        alter table t alter c drop default, alter c type bigint using c::bigint * 1000
        alter table t alter a type int using 7
        alter table t alter a type int
        alter table t alter a type int using (a * 10)::int
        select * from t order by id
        insert into t values (5, 15, '50', 1)
        alter table t alter b type int using b::int
        drop index lowered
        alter table t alter b type int using b::int
        insert into t values (5, 16, 50, 1), (6, -1, 60, 2) returning *
        select b, a from t where b between 20 and 55 order by b
        insert into t values (7, -1, null, 1)
        select indexname, indexdef from pg_indexes where tablename = 't' order by 1
        select conname, contype from pg_constraint where conrelid = 't'::regclass order by 1
        alter table t drop constraint t_a_key
        alter table t drop constraint both_
        alter table t alter a type text
        insert into t values (8, '16', null, 1) returning *
        alter table t alter a type varchar(2) using left(a, 2), alter c type text
        insert into t values (9, 'abc', 1, 'x')
        alter table t add constraint short check (length(a) < 3) not valid
        alter table t alter a type char(5)
        select id, a, c from t order by id
    """,
    "a new column is the primary key": """
        create table t (a text, b int)
        insert into t values ('x', 1), ('y', 2), ('x', 1), (null, null)
        alter table t add column id bigserial primary key
        select count(*), count(distinct id), min(id), max(id) from t
        insert into t (a) values ('z') returning id
        insert into t (a, id) values ('again', 1)
        insert into t (a, id) values ('null', null)
        select conname, contype from pg_constraint where conrelid = 't'::regclass order by 1
        select attname, attnotnull, atthasdef from pg_attribute where attrelid = 't'::regclass
            and attnum > 0 and not attisdropped order by attnum
        select pg_get_serial_sequence('t', 'id')
        alter table t add column other int primary key
        alter table t add column if not exists id int primary key
        alter table t drop constraint t_pkey, add column k uuid default gen_random_uuid()
            constraint keyed primary key
        select count(distinct k), count(distinct id) from t
        select conname from pg_constraint where conrelid = 't'::regclass and contype = 'p'
        insert into t (a) values ('w')
        insert into t (a, k) values ('v', (select min(k::text) from t)::uuid)
        alter table t drop constraint keyed
        alter table t add column fixed int default 1 primary key
        alter table t add column missing int primary key
        alter table t add column g int generated always as identity primary key
        select count(distinct g) from t
        insert into t (a) values ('u') returning g > 0
        update t set a = 'changed' where g = 3 returning a
        delete from t where g = 3
        drop table t
        create table t (a text)
        alter table t add column id int primary key
        insert into t values ('a', 1)
        insert into t values ('b', 1)
        insert into t values ('c')
        alter table t drop constraint t_pkey, add column part int default 7, add primary key
            (id, part)
        insert into t values ('d', 1, 8), ('e', 1, 7)
        insert into t values ('d', 1, 8) returning *
        select * from t order by part
    """,
    "foreign keys over numeric": """
        create table p (id numeric(10, 0) primary key, u numeric(6, 2) unique, name text)
        create table t (id int primary key, p numeric(10, 0) references p on delete cascade
            on update cascade, u numeric(8, 2) references p (u) on delete set null)
        insert into p values (1, 1.5, 'a'), (2.0, 'NaN', 'b'), (3.4, 20, 'c'), (-7, 0, 'd')
        insert into t values (1, 1, 1.50), (2, 2, 'NaN'), (3, null, 20.00), (4, 3.2, 0.00)
        insert into t values (5, 4, null)
        insert into t values (5, null, 1.51)
        insert into t values (5, -7.2, -0.001)
        select * from t order by id
        update p set id = 10 where id = 1
        update p set u = 1.25 where id = 10
        delete from p where u = 'NaN'
        select * from t order by id
        delete from p where id = 3
        select * from t order by id
        alter table t alter p type numeric(12, 0)
        alter table p alter u type numeric(9, 2)
        insert into p values (11, 1234567.89, 'wide')
        insert into t values (6, 11, 999999.99)
        insert into t values (6, 11, null)
        create table e (a numeric(10, 0), b numeric(9, 2))
        insert into e values (77, 1234567.89)
        alter table e add foreign key (a) references p
        alter table e add foreign key (b) references p (u)
        update p set u = 5 where id = 11
        update e set a = 11
        alter table e add foreign key (a) references p
        delete from p where id = 11
        select conname, pg_get_constraintdef(oid) from pg_constraint
            where conrelid = 't'::regclass order by 1
        drop table e
        drop table t
        drop table p
    """,
    "several actions on one column": """
        create table t (id int primary key, a text default 'x', b int, c varchar(5), d int default 1
            not null, e int not null, f int unique)
        insert into t values (1, '7', 3, 'c', 5, 6, 7)
        alter table t alter a drop default, alter a type int using a::int, alter a set default 1
        alter table t alter b type bigint, alter b set not null
        alter table t alter c set not null, alter c type varchar(9), alter c set default 'abcdefg'
        alter table t alter d set default 'z', alter d type text, alter d drop not null
        insert into t values (2, default, 5, default, default, 2, 2) returning *
        insert into t values (3, default, null, 'c', default, 2, 3)
        insert into t values (3, default, 5, null, default, 2, 3)
        alter table t drop column d, add column d int not null default 47
        alter table t add column e int default 9, drop column e
        alter table t drop column f, add column f text
        insert into t (id, b, f) values (3, 5, 'f') returning *
        select * from t order by id
        alter table t alter f set default 'z', alter f type varchar(9)
        select * from t order by id
        select column_name, column_default, is_nullable from information_schema.columns
            where table_name = 't' order by ordinal_position
        alter table t add column g int, alter g set default 5, alter g set not null
        alter table t add column g int default 5, alter g set not null, add check (g > 0)
        alter table t drop column nothing, add column nothing int
        alter table t drop column if exists nothing, add column nothing int
        select * from t order by id
    """,
    "a required column of a table without rows": """
        create table t (id int primary key)
        alter table t add column owner uuid not null
        insert into t values (1)
        insert into t values (1, '00000000-0000-0000-0000-000000000001')
        alter table t add column more int not null
        alter table t add column if not exists owner int not null
        delete from t
        alter table t add column more int not null, add column less text not null unique
        insert into t values (1, '00000000-0000-0000-0000-000000000001', 1)
        insert into t values (1, '00000000-0000-0000-0000-000000000001', 1, 'a') returning *
    """,
}


@pytest.mark.parametrize("name", STORIES)
def test_both_say_the_same(both: tuple[Connection, Connection], name: str) -> None:
    lines: list[str] = []
    for line in STORIES[name].strip().splitlines():
        if lines and line.startswith("            "):
            lines[-1] += " " + line.strip()
        else:
            lines.append(line.strip())
    answers = [(line, *(told(each, line) for each in both)) for line in lines]
    unlike = [answer for answer in answers if answer[1] != answer[2]]
    assert not unlike, "\n".join(f"{text}\n  ours   {a}\n  theirs {b}" for text, a, b in unlike)
