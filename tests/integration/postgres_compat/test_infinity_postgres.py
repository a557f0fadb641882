"""Goal: infinity and -infinity are dates and timestamps as they are in PostgreSQL, in all that SQL
does with one and in every form in which a client gives or gets it.

Method: the same statements, one after the other, in both; rows, tags and SQLSTATEs are compared.
What clients give and get is text where Python has no value for it.
"""

from __future__ import annotations

import asyncio
import io
from collections.abc import Iterator
from datetime import UTC, date, datetime
from typing import Any, Final

import asyncpg
import psycopg
import pytest

from tests.support.postgres.both_servers import Connection, told
from tests.support.postgres.client_server import Server

pytestmark = pytest.mark.integration

MADE: Final = """
set time zone 'Europe/Berlin'
create table t (id int primary key, d date, p timestamp(3), z timestamptz, g int default 0)
insert into t values (1, 'infinity', 'infinity', 'infinity'), (2, '-infinity', '-infinity',
    '-infinity')
insert into t values (3, '2026-02-28', '2026-02-28 10:20:30.5', '2026-02-28 10:20:30+00', 1)
insert into t values (4, null, null, null), (5, '0001-01-01', '0001-01-02', '0001-01-02
    12:00+00')
insert into t values (6, '9999-12-31', '9998-12-31 00:00:00', '9998-12-30 12:00+00')
create table u (d date primary key, z timestamptz default 'infinity', v text)
insert into u values ('infinity', 'infinity', 'n'), ('-infinity', default, 'i')
insert into u values ('2020-01-01')
"""
STATEMENTS: Final = """
select id, d::text, p::text, z::text from t order by d, id
select id from t order by p desc nulls last, id
select id from t order by z, id
select id from t where d > '2026-02-28' order by id
select id from t where d = 'infinity'
select id from t where z < 'infinity' order by id
select id from t where p >= '-infinity' and p <= now() order by id
select id from t where z between '-infinity' and 'infinity' order by id
select id from t where d > p order by id
select id from t where d::timestamptz = z and id < 3 order by id
select id from t where p = z order by id
select count(*), min(d)::text, max(d)::text, min(z)::text, max(z)::text from t
select g, max(p)::text from t group by g order by g
select distinct d::text from t order by 1
select d::text, count(*) from t group by d order by 1
select 'infinity'::timestamptz > now(), '-infinity'::date < current_date
select ' Infinity '::date::text, 'INFINITY'::timestamp::text, '-Infinity'::timestamptz::text
select '+infinity'::date
select 'infinit'::date
select 'inf'::timestamp
select 'infinity'::time
select 'infinity'::timetz
select 'infinity'::interval
select ('infinity'::date)::timestamp::text, ('-infinity'::date)::timestamptz::text
select ('infinity'::timestamp)::date::text, ('infinity'::timestamptz)::date::text
select ('infinity'::timestamp)::timestamptz::text, ('-infinity'::timestamptz)::timestamp::text
select ('infinity'::timestamp)::time, ('infinity'::timestamptz)::time,
    ('infinity'::timestamptz)::timetz
select ('infinity'::timestamp)::timestamp(0)::text, 'infinity'::timestamptz(3)::text
select ('infinity'::date + 1)::text, (5 + '-infinity'::date)::text, ('infinity'::date - 1)::text
select 'infinity'::date - 'infinity'::date
select 'infinity'::date - current_date
select current_date - '-infinity'::date
select ('infinity'::date + interval '1 mon')::text, ('-infinity'::date - interval '1 s')::text
select ('infinity'::timestamp + interval '1 mon')::text, ('-infinity'::timestamp - interval '1
    s')::text
select ('infinity'::timestamptz - interval '1 mon')::text, (interval '1 d' +
    '-infinity'::timestamptz)::text
select 'infinity'::timestamp - 'infinity'::timestamp
select now() - 'infinity'
select 'infinity'::timestamp - '2020-01-01'
select ('infinity'::date + '10:20'::time)::text, ('-infinity'::date + '10:20+01'::timetz)::text
select isfinite('infinity'::date), isfinite('-infinity'::timestamp),
    isfinite('infinity'::timestamptz)
select isfinite('2020-01-01'::date), isfinite(interval '1 s')
select date_trunc('year', 'infinity'::timestamp)::text, date_trunc('day',
    '-infinity'::timestamptz)::text
select date_trunc('hour', 'infinity'::timestamptz)::text, date_trunc('month',
    'infinity'::date)::text
select date_trunc('day', 'infinity'::timestamptz, 'Asia/Tokyo')::text
select date_trunc('nothing', 'infinity'::timestamp)
select extract(year from 'infinity'::timestamp), extract(epoch from '-infinity'::timestamptz)
select extract(century from 'infinity'::date), extract(epoch from '-infinity'::date)
select extract(decade from 'infinity'::timestamp), extract(millennium from
    'infinity'::timestamptz)
select extract(isoyear from '-infinity'::date), extract(julian from '-infinity'::timestamp)
select extract(month from 'infinity'::timestamp), extract(day from 'infinity'::date)
select extract(hour from 'infinity'::timestamptz), extract(dow from '-infinity'::date)
select extract(timezone from 'infinity'::timestamptz), extract(week from 'infinity'::timestamp)
select extract(microseconds from 'infinity'::timestamp), extract(quarter from 'infinity'::date)
select extract(timezone from 'infinity'::timestamp)
select extract(hour from 'infinity'::date)
select extract(nothing from 'infinity'::timestamp)
select date_part('year', 'infinity'::timestamp), date_part('hour', 'infinity'::timestamp)
select date_part('epoch', '-infinity'::date), date_part('month', 'infinity'::date)
select to_char('infinity'::timestamp, 'YYYY-MM-DD'), to_char('-infinity'::timestamptz, 'HH')
select to_timestamp('Infinity'::float8)::text, to_timestamp('-Infinity'::float8)::text
select to_timestamp('NaN'::float8)
select ('infinity'::timestamp at time zone 'Asia/Tokyo')::text
select ('-infinity'::timestamptz at time zone 'Asia/Tokyo')::text
select ('infinity'::timestamptz at time zone interval '2 hours')::text
select date_bin('1 hour', 'infinity'::timestamp, '2020-01-01')::text
select date_bin('1 hour', timestamp '2020-01-01', 'infinity')
select to_json('infinity'::date), to_jsonb('-infinity'::timestamp),
    to_json('infinity'::timestamptz)
select jsonb_build_object('a', d, 'b', z) from t where id < 3 order by id
select to_jsonb(d), to_jsonb(p), to_json(z) from t where id < 3 order by id
select array['infinity'::date, '2020-01-01', null]::text,
    '{infinity,-infinity}'::timestamp[]::text
select '{infinity}'::timestamptz[] = array['infinity'::timestamptz], 'infinity' = any
    ('{infinity}'::date[])
select v::text from unnest('{infinity,-infinity,2020-01-01}'::date[]) v order by 1
select greatest('infinity'::date, current_date)::text, least(now(), '-infinity')::text
select coalesce(null, 'infinity'::date)::text, nullif('infinity'::date, 'infinity')
select case when d = 'infinity' then 'for ever' else 'not' end from t where d is not null order
    by id
select concat('infinity'::date, '|', '-infinity'::timestamptz), format('%s',
    'infinity'::timestamp)
select 'infinity'::date || '', 'infinity'::timestamptz::text || '!'
select ('2020-01-01'::date, 'infinity'::date) overlaps ('2021-01-01'::date, '2022-01-01'::date)
select count(*) from generate_series('infinity'::timestamp, '2020-01-01', '1 day')
select count(*) from generate_series('2020-01-02'::timestamp, '-infinity', '1 day')
select id, count(*) over (order by d range between '1 day' preceding and '1 day' following) from
    t where d is not null order by id
select id, count(*) over (order by z range between '1 hour' preceding and '1 s' following) from
    t where z is not null order by id
select id, rank() over (order by p), lag(d) over (order by d, id) is null from t order by id
select d::text, z::text, v from u order by d
select v from u where d = 'infinity'::timestamptz::date
insert into u values ('infinity', now(), 'again')
insert into u values ('infinity', now(), 'again') on conflict (d) do update set v = 'updated'
    returning v, d::text
update u set d = 'infinity' where d = '2020-01-01'
update u set z = '-infinity' where v = 'i' returning z::text
update u set z = d + interval '1 day' where v = 'updated' returning z::text
delete from u where d = '-infinity' returning d::text
create index on t (d)
create index on t (z desc, p)
create unique index on t (p) where d = 'infinity'
select id from t where d = 'infinity'
select id from t where d >= '9999-12-31' order by d
select id from t where z = 'infinity' and p > now()
insert into t values (7, 'infinity', 'infinity', null)
alter table t add column e date not null default 'infinity', add column f timestamptz default
    '-infinity'
select id, e::text, f::text from t order by id
insert into t (id) values (8) returning e::text, f::text
alter table t add check (e > '2020-01-01'), add constraint open_ check (d < 'infinity' or d is
    null or id < 3)
insert into t (id, d) values (9, 'infinity')
insert into t (id, e) values (9, '-infinity')
alter table t add column later timestamp generated always as (p + interval '1 day') stored
select id, later::text from t order by id
select column_name, column_default from information_schema.columns where table_name in ('t',
    'u') order by 1, 2
alter table t alter e type timestamptz, alter f type date
select id, e::text, f::text from t order by id
alter table t alter f type text using f::text
select f from t order by id
alter table t alter f drop default
alter table t alter f type timestamp using f::timestamp
select f::text, f is null, isfinite(f) from t order by id
create table c (d date references u, at timestamptz[])
insert into c values ('infinity', '{infinity,2020-01-01 00:00+00}'), (null, null)
insert into c values ('-infinity')
select d::text, at::text from c order by d
delete from u where d = 'infinity'
drop table c
create role ever valid until 'infinity'
drop role ever
begin
savepoint s
insert into u values ('-infinity', '-infinity', 'b')
select d::text, z::text from u where v = 'b'
rollback to s
insert into u values ('-infinity', 'infinity', 'b') returning z::text
commit
select d::text, z::text from u where v = 'b'
"""


@pytest.fixture
def both(servers: tuple[Server, Server]) -> Iterator[tuple[Connection, Connection]]:
    ours, theirs = servers
    with ours.psycopg(autocommit=True) as one, theirs.psycopg(autocommit=True) as other:
        yield one, other
        for each in (one, other):
            each.execute(b"rollback")
            each.execute(b"drop table if exists c, t, u cascade")


def lines(text: str) -> list[str]:
    """The statements, of which the later lines begin with blanks."""
    return text.strip().replace("\n    ", " ").splitlines()


def said(connection: Connection, text: str) -> str:
    """As `told`; psycopg has no value for an infinite date, and says so."""
    try:
        return repr(told(connection, text))
    except psycopg.DataError as error:
        return str(error)


def test_statements_have_the_answers_of_postgresql(both: tuple[Connection, Connection]) -> None:
    unlike = []
    for text in lines(MADE) + lines(STATEMENTS):
        mine, wanted = (said(each, text) for each in both)
        if mine != wanted:
            unlike.append(f"{text}\n  ours    {mine}\n  theirs  {wanted}")
    assert not unlike, f"{len(unlike)} of them\n" + "\n".join(unlike)


def moments(at: datetime) -> tuple[date, datetime, datetime]:
    """A date, a timestamp and a timestamptz."""
    return at.date(), at, at.replace(tzinfo=UTC)


FIRST: Final = moments(datetime.fromisoformat("0001-01-01"))
LAST: Final = moments(datetime.fromisoformat("9999-12-31 23:59:59.999999"))
NOW: Final = moments(datetime.fromisoformat("2026-02-28 01:00"))
ROWS: Final = ((1, *FIRST), (2, *LAST), (3, *NOW), (4, None, None, None))
"""asyncpg, which speaks the binary form, has the first and the last moment of Python's for it."""


def test_asyncpg_gives_and_gets_it(servers: tuple[Server, Server]) -> None:
    async def asked(server: Server) -> list[Any]:
        connection = await asyncpg.connect(**server.asyncpg())
        try:
            await connection.execute(
                "create table t (id int primary key, d date, p timestamp, z timestamptz)"
            )
            await connection.executemany("insert into t values ($1, $2, $3, $4)", ROWS[:2])
            await connection.copy_records_to_table("t", records=ROWS[2:])
            found = [
                await connection.fetch("select * from t order by d, id"),
                await connection.fetch("select id, d::text, p::text from t order by id"),
                await connection.fetch("select id from t where z = $1", LAST[2]),
                await connection.fetchval("select $1::date[]", [date.max, date.min, None]),
            ]
            await connection.execute("drop table t")
            return found
        finally:
            await connection.close()

    mine, wanted = (repr(asyncio.run(asked(server))) for server in servers)
    assert mine == wanted
    assert "'infinity'" in mine


@pytest.mark.parametrize("how", ["format text", "format csv, header", "format binary"])
def test_copy_reads_and_writes_it(both: tuple[Connection, Connection], how: str) -> None:
    answers = []
    for connection in both:
        for line in lines(MADE):
            connection.execute(line.encode())
        written = io.BytesIO()
        with connection.cursor() as cursor:
            with cursor.copy(f"copy (select * from t order by d, id) to stdout ({how})") as copy:
                for block in copy:
                    written.write(block)
            connection.execute(b"truncate t")
            with cursor.copy(f"copy t from stdin ({how})") as copy:
                copy.write(written.getvalue())
        rows = connection.execute(b"select id, d::text, z::text from t order by z, id").fetchall()
        answers.append((written.getvalue(), repr(rows)))
    assert answers[0] == answers[1]
    assert "'-infinity'" in answers[0][1]
