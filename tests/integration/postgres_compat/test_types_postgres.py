"""Goal: columns of real, time, timetz, interval, json and of arrays are those of PostgreSQL, in all
that SQL does with them and in every form in which a client gives or gets their values.

Method: the same statements, one after the other, in both; rows, tags and SQLSTATEs are compared.
"""

from __future__ import annotations

import asyncio
import datetime as dt
import io
from collections.abc import Iterator
from typing import Any, Final

import asyncpg
import pytest
from psycopg.types.string import TextLoader

from tests.support.postgres.both_servers import Connection, told
from tests.support.postgres.client_server import Server

pytestmark = pytest.mark.integration

STATEMENTS: Final = """
create table t (id int primary key, r real, t time, z timetz, i interval, j json, a int[], g int)
insert into t values (1, 0.1, '10:20', '10:20+02', '1 mon', '{"b" :1,"a":[1, 2]}', '{1,2}', 0)
insert into t values (2, 1e10, '23:59:59.5', '08:20+00', '30 days', ' null', '{}', 0)
insert into t values (3, -0.0, '24:00', '24:00-01', '29 days 24:00:00', '"x"', '{1,NULL}', 0)
insert into t values (4, 'NaN', '00:00', '00:00+15:59', '-1 year', '[1, 1]', null, 1)
insert into t values (5, null, null, null, null, null, '{3}', 1)
insert into t values (6, 0, '10:20:30.123456', '10:20-03:30', '1 day -00:00:01', '1.0', '{1}', 1)
insert into t (id, r) values (7, 1e39)
insert into t (id, r) values (7, '1e-50')
insert into t (id, t) values (7, '25:00')
insert into t (id, j) values (7, '{"a"}')
insert into t (id, a) values (7, '{1,x}')
select * from t order by id
select r, id from t order by r, id
select t, id from t order by t desc, id
select z, id from t order by z, id
select i, id from t order by i, id
select a, id from t order by a, id
select j from t order by j
select distinct j from t
select count(distinct j) from t
select id from t where j = '1'
select id from t where r = 0.1
select id from t where r = '0.1'
select id from t where r = 0.1::real
select id from t where r > 0 order by id
select id from t where r in (0.1, 0) order by id
select id from t where i = '1 mon' order by id
select id from t where i > '29 days' order by i, id
select id from t where i in ('1 mon', '1 day') order by id
select id from t where i = any('{1 mon,-1 year}'::interval[]) order by id
select id from t where i is distinct from '30 days' order by id
select id from t where i between '1 day' and '30 days' order by id
select id from t where t > '10:20' order by id
select id from t where z = '10:20+02' order by id
select id from t where z = '08:20+00' order by id
select id from t where a = '{1,2}'
select id from t where 1 = any(a) order by id
select id from t where a @> '{1}' order by id
select a[1], cardinality(a), a || 9, array_length(a, 1) from t order by id
select i, count(*) from t group by i order by i
select r, count(*) from t group by r order by r
select z, count(*) from t group by z order by z
select a, count(*) from t group by a order by a
select distinct i from t where i > '0' order by i
select count(distinct i), count(distinct r), count(distinct t), count(distinct z) from t
select sum(r), avg(r), min(r), max(r) from t where id <> 4
select sum(i), avg(i), min(i), max(i) from t
select g, sum(i), max(i), min(t), max(z), sum(r) from t where id <> 4 group by g order by g
select sum(distinct i) from t
select min(a), max(a) from t
select array_agg(r order by id), array_agg(t order by id), array_agg(i order by id) from t
select stddev(r), variance(r) from t where id in (1, 2, 6)
select x.id, y.id from t x join t y on x.i = y.i order by 1, 2
select i from t union select interval '1 mon' order by 1
select i from t intersect select interval '1 day -1 second' order by 1
select r + 1, r * 2::smallint, r - 1.5, r / 3::float8, r + r, -r, @r, abs(r) from t order by id
select r::text, r::numeric, r::float8, r::numeric(6, 2) from t order by id
select r::int from t where id in (1, 3, 6) order by id
select r::int from t where id = 2
select t + interval '2 hours', t - interval '11 hours', t - time '10:00' from t order by id
select z + interval '2 hours', z - interval '11 hours', z::time from t order by id
select date '2024-02-29' + t, date '2024-02-29' + z from t order by id
select i + interval '1 day', i * 1.5, i / 2, -i, date '2024-01-31' + i from t order by id
select timestamp '2024-01-31 10:00' - i, timestamptz '2024-01-31 10:00+00' + i from t order by id
select extract(hour from t), extract(epoch from t), extract(second from t) from t order by id
select extract(timezone from z), extract(epoch from z), extract(minute from z) from t order by id
select extract(epoch from i), extract(month from i), date_trunc('day', i) from t order by id
select extract(day from t) from t
select justify_interval(i), justify_days(i), justify_hours(i) from t order by id
select t::interval, i::time from t order by id
select timestamp '2024-02-29 10:20:30'::time, timestamptz '2024-02-29 10:20:30+00'::timetz
select time(2) '10:20:30.456', timetz(0) '10:20:30.5+00', interval(1) '1.25 s', '1.26'::interval(1)
select make_time(1, 2, 3.5), time '10:20' at time zone 'UTC', timetz '10:20+02' at time zone 'UTC'
select j -> 'b', j ->> 'b', j -> 'a' -> 0, j #> '{a,1}', j #>> '{a,1}' from t order by id
select j::text, j::jsonb, j::jsonb::json from t order by id
select json_typeof(j) from t order by id
select json_array_length(j) from t where id = 4
select json_array_length(j) from t where id = 3
select json_build_object('r', r, 'i', i, 'j', j, 'a', a) from t order by id
select json_agg(r order by id), json_agg(j order by id) from t
select json_object_agg(id, t order by id) from t
select to_json(r), to_json(t), to_json(a), to_json(j), to_jsonb(r), to_jsonb(t) from t order by id
select * from json_array_elements('[1, {"a" : 2}]')
select * from json_each('{"b": 1, "a": [2 ], "b":3}')
select * from json_each_text('{"b": "x", "a": null}')
select json_object_keys('{"b": 1, "a": 2}')
select coalesce(r, 1), greatest(r, 1), nullif(r, 0) from t order by id
select case when id > 1 then r else 1 end, case when id > 1 then i end from t order by id
select id, rank() over (order by i), lag(t) over (order by id) from t order by id
select id, sum(r) over (order by id rows 1 preceding) from t order by id
create index on t (i)
create index on t (r, t)
create index on t (z) where t > '10:00'
select id from t where i = '1 mon' order by id
select id from t where i >= '1 mon' order by i, id
select id from t where r = '0.1' and t = '10:20'
create unique index on t (i)
update t set i = '31 days' where id = 2
update t set i = '32 days' where id = 3
create unique index by_i on t (i)
insert into t (id, i) values (8, '1 year 6 days')
insert into t (id, i) values (9, '30 days')
update t set i = i + '1 day' where id = 1 returning i
update t set a = array_append(a, 4), j = '{}' where id in (1, 4) returning a, j
delete from t where t = '24:00' returning id, z
select id, i from t order by id
create table k (t time primary key, r real unique, v text)
insert into k values ('10:20', 1.5, 'a'), ('24:00', 'NaN', 'b')
insert into k values ('10:20:00', 2, 'c')
insert into k values ('10:21', 1.5, 'c')
insert into k values ('10:20', 2, 'c') on conflict (t) do update set v = 'd' returning *
select * from k where t = '10:20'
select * from k where t > '10:20' order by t
create table f (id int primary key, t time references k, r real references k (r))
insert into f values (1, '10:20', 1.5), (2, null, 'NaN')
insert into f values (3, '10:22', 1.5)
insert into f values (3, '10:20', 1)
delete from k where t = '10:20'
update k set r = 7 where r = 1.5
create table z (z timetz primary key, r real)
insert into z values ('10:20+02', 1), ('08:20+00', 2)
select * from z order by z
insert into z values ('10:20+02', 3)
create table d (id int primary key, r real default 1.5, t time default '10:20', i interval)
alter table d alter i set default '1 d'
alter table d add j json default '{"a": 1}', add a text[] default '{x,"y z"}', add b bytea[]
insert into d (id) values (1)
insert into d values (2, default, default, default, default, default, array['\\xff'::bytea, null])
select * from d order by id
alter table d add n4 inet default '10.0.0.1', add c4 cidr[]
update d set c4 = '{10.1.0.0/16,10/8}' where id = 1 returning *
select n4, n4::text, host(n4), n4 << '10/8', n4 + 5, c4[1], masklen(c4[1]) from d order by id
alter table d drop n4, drop c4
create table i (n inet primary key, c cidr unique)
insert into i values ('10.0.0.1', '10.0.0.0/8'), ('10.0.0.1/8', '10/16'), ('::1', '::/0')
insert into i values ('10.0.0.1/32', '1.2.3.4')
insert into i values ('10.0.0.2', '10.1.2.3/8')
select * from i order by n
select * from i where n <<= '10.0.0.0/8' order by c desc
select n from i where n > '10.0.0.1/8' and n <> '::1'
select min(n), max(n), count(distinct c), max(c) from i
alter table d add constraint positive check (i > '0' and r > 0)
insert into d (id, i) values (3, '-1 day')
insert into d (id, r) values (3, -1)
alter table d add s interval generated always as (i * 2) stored
alter table d add n int generated always as (cardinality(a)) stored
select id, s, n from d order by id
alter table d drop constraint positive
alter table d alter r type float8
alter table d alter i type text
alter table d alter t type interval
select id, r, i, t from d order by id
alter table d alter a type varchar(3)[]
create table p (id int primary key, t time(2), z timetz(0), i interval(3), a numeric(5,2)[])
alter table p add c char(3)[]
insert into p values (1, '10:20:30.456', '10:20:30.5+00', '1.23456 s', '{1.5,2.345}', '{a,bc}')
insert into p values (2, '23:59:59.999', null, null, '{1000}', '{a}')
insert into p values (3, '23:59:59.999', null, null, null, '{abcd}')
insert into p values (3, '23:59:59.999', null, null, null, null)
select * from p order by id
COLUMNS
ATTRIBUTES
TYPES
select pg_typeof(r), pg_typeof(t), pg_typeof(z), pg_typeof(a), pg_typeof(j) from t where id = 1
"""
FROM_THE_CATALOG: Final = {
    "COLUMNS": (
        "select table_name, column_name, data_type, udt_name, numeric_precision,"
        " datetime_precision from information_schema.columns where table_name in ('p', 't')"
        " order by 1, ordinal_position"
    ),
    "ATTRIBUTES": (
        "select attname, format_type(atttypid, atttypmod), attndims from pg_attribute"
        " where attrelid = 'p'::regclass and attnum > 0 order by attnum"
    ),
    "TYPES": (
        "select typname, typlen, typcategory, typalign, typinput::regproc from pg_type where"
        " typname in ('float4', 'time', 'timetz', '_timetz', 'json', '_interval') order by 1"
    ),
}
TABLES: Final = ("f", "k", "t", "z", "d", "p", "i")


@pytest.fixture
def both(servers: tuple[Server, Server]) -> Iterator[tuple[Connection, Connection]]:
    ours, theirs = servers
    with ours.psycopg(autocommit=True) as one, theirs.psycopg(autocommit=True) as other:
        for each in (one, other):
            each.execute("set timezone = 'UTC'")
            for name in ("time", "timetz", "interval", "json"):  # Python has no 24:00, no months
                each.adapters.register_loader(name, TextLoader)
        yield one, other
        for each in (one, other):
            each.execute(f"drop table if exists {', '.join(TABLES)}")


def said(connection: Connection, text: str) -> str:
    return repr(told(connection, FROM_THE_CATALOG.get(text, text)))


def test_statements_have_the_answers_of_postgresql(both: tuple[Connection, Connection]) -> None:
    ours, theirs = both
    unlike = []
    for text in STATEMENTS.strip().splitlines():
        mine, wanted = said(ours, text), said(theirs, text)
        if mine != wanted:
            unlike.append(f"{text}\n  ours    {mine}\n  theirs  {wanted}")
    assert not unlike, "\n".join(unlike)


ZONE: Final = dt.timezone(dt.timedelta(hours=-3, minutes=-30))
VALUES: Final = (
    (0.5, dt.time(10, 20, 30, 5), dt.time(1, 2, 3, tzinfo=ZONE), dt.timedelta(3, 7, 9), '{"a" :1}'),
    (-3e38, dt.time(0), dt.time(23, 59, 59, 999_999, dt.UTC), dt.timedelta(-400), " [1]"),
    (float("nan"), dt.time(23, 59, 59, 999_999), dt.time(0, tzinfo=ZONE), dt.timedelta(0), "null"),
    (None, None, None, None, None),
)
ARRAYS: Final = "r real[], t time[], z timetz[], i interval[], j text[]"
DDL: Final = f"""
create table t (id int primary key, r real, t time, z timetz, i interval, j json);
create table a (id int primary key, {ARRAYS})
"""


def columns_of_values() -> list[list[Any]]:
    return [list(column) for column in zip(*VALUES, strict=True)]


@pytest.mark.parametrize("binary", [False, True], ids=["text", "binary"])
def test_psycopg_gives_and_gets_them(servers: tuple[Server, Server], binary: bool) -> None:
    answers = []
    for server in servers:
        with server.psycopg(autocommit=True) as connection:
            connection.execute(DDL)
            place = "%b" if binary else "%t"
            with connection.cursor(binary=binary) as cursor:
                for number, (*values, json) in enumerate(VALUES):
                    row = (number, *values, json)
                    places = ", ".join([place] * 4)
                    cursor.execute(f"insert into t values (%s, {places}, %s)", row)
                places = ", ".join([place] * 5)
                cursor.execute(f"insert into a values (1, {places})", columns_of_values())
                found = [
                    cursor.execute("select * from t order by id").fetchall(),
                    cursor.execute("select * from a").fetchall(),
                    cursor.execute(
                        f"select id from t where i > {place} and t < {place} order by id",
                        (dt.timedelta(-1), dt.time(23)),
                    ).fetchall(),
                ]
            connection.execute("drop table t, a")
            answers.append(repr(found))
    assert answers[0] == answers[1]
    assert "datetime.time(10, 20, 30, 5)" in answers[0]


def test_asyncpg_gives_and_gets_them(servers: tuple[Server, Server]) -> None:
    """asyncpg has the binary forms of all of them."""

    async def asked(server: Server) -> list[Any]:
        connection = await asyncpg.connect(**server.asyncpg())
        try:
            await connection.execute(DDL)
            rows = [(number, *values) for number, values in enumerate(VALUES)]
            await connection.executemany("insert into t values ($1, $2, $3, $4, $5, $6)", rows)
            more = [(number + 10, *values) for number, values in enumerate(VALUES)]
            await connection.copy_records_to_table("t", records=more)
            lists = columns_of_values()
            await connection.execute("insert into a values (1, $1, $2, $3, $4, $5)", *lists)
            found = [
                await connection.fetch("select * from t order by id"),
                await connection.fetch("select * from a"),
                await connection.fetchval("select count(*) from t where i = $1", dt.timedelta(0)),
                await connection.fetchval("select $1::timetz", dt.time(1, tzinfo=ZONE)),
            ]
            await connection.execute("drop table t, a")
            return found
        finally:
            await connection.close()

    mine, wanted = (repr(asyncio.run(asked(server))) for server in servers)
    assert mine == wanted
    assert "datetime.timedelta(days=3, seconds=7, microseconds=9)" in mine


@pytest.mark.parametrize("how", ["format text", "format csv, header", "format binary"])
def test_copy_reads_and_writes_them(both: tuple[Connection, Connection], how: str) -> None:
    answers = []
    for connection in both:
        connection.execute(STATEMENTS.strip().splitlines()[0])
        for text in STATEMENTS.strip().splitlines()[1:7]:
            connection.execute(text.encode())
        written = io.BytesIO()
        with connection.cursor() as cursor:
            with cursor.copy(f"copy (select * from t order by id) to stdout ({how})") as copy:
                for block in copy:
                    written.write(block)
            connection.execute("truncate t")
            with cursor.copy(f"copy t from stdin ({how})") as copy:
                copy.write(written.getvalue())
        rows = connection.execute("select * from t order by id").fetchall()
        answers.append((written.getvalue(), repr(rows)))
    assert answers[0] == answers[1]
    assert "24:00:00-01" in answers[0][1]
