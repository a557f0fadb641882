"""Goal: NaN is a value of double precision as it is in PostgreSQL, in all that SQL does with one
and in every form in which a client gives or gets it.

Method: the same statements, one after the other, in both; rows, tags and SQLSTATEs are compared.
"""

from __future__ import annotations

import asyncio
import io
import math
from collections.abc import Iterator
from typing import Any, Final

import asyncpg
import pytest

from tests.support.postgres.both_servers import Connection, told
from tests.support.postgres.client_server import Server

pytestmark = pytest.mark.integration

MADE: Final = """
create table t (id int primary key, d double precision, n numeric, g int default 0)
insert into t values (1, 'NaN', 'NaN'), (2, 'Infinity', 1), (3, '-Infinity', 2), (4, 1.5, 3)
insert into t values (5, 'nan'::float8, null, 1), (6, null, 4, 1), (7, -0.0, 5, 1), (8, 0, 6, 1)
create table u (k double precision primary key, v text, c double precision default 'NaN')
insert into u values ('NaN', 'n'), ('Infinity', 'i'), (1.5, 'x'), (-2, 'y')
"""

STATEMENTS: Final = f"""
{MADE}
select * from t order by id
select d, id from t order by d, id
select d, id from t order by d desc, id
select d, id from t order by d nulls first, id
select id from t where d = 'NaN' order by id
select id from t where d > 'Infinity' order by id
select id from t where d >= 'Infinity' and d < 'NaN' order by id
select id from t where d <> 'NaN' order by id
select id from t where d between 0 and 'NaN' order by id
select id from t where d in ('NaN', 1.5) order by id
select id from t where d = any('{{NaN,1.5}}'::float8[]) order by id
select id from t where d = all('{{NaN,NaN}}'::float8[]) order by id
select id from t where d is not distinct from 'NaN' order by id
select id from t where d + 1 = 'NaN' order by id
select id, d = n::float8, d < n::float8, d = n from t order by id
select count(*), count(d), count(distinct d) from t
select distinct d from t order by d
select d, count(*) from t group by d order by d
select min(d), max(d), sum(d), avg(d) from t
select min(d), max(d), sum(d), avg(d) from t where id > 1 and id < 5
select sum(d), sum(distinct d), avg(d), max(d) from t where d > 1
select stddev(d), variance(d), stddev_pop(d), var_pop(d), var_samp(d) from t where id = 1
select stddev(d), variance(d), stddev_pop(d), var_pop(d) from t where id = 2
select stddev(d), variance(d), stddev_pop(d), var_pop(d) from t where id in (4, 5)
select stddev(d), variance(d), stddev_pop(d), var_pop(d) from t where id in (2, 4)
select g, array_agg(d order by d desc, id), max(d), min(d) from t group by g order by g
select array_agg(distinct d) from t
select string_agg(distinct d::text, ',' order by d::text) from t
select a.id, b.id from t a join t b on a.d = b.d order by 1, 2
select t.id, u.v from t join u on t.d = u.k order by 1
select t.id, u.v from t left join u on t.d = u.k order by 1
select d from t union select k from u order by 1
select d from t intersect select k from u order by 1
select d from t except select k from u order by 1
select id, rank() over (order by d), dense_rank() over (order by d desc) from t order by id
select id, sum(d) over (order by d range between 1 preceding and 1 following) from t order by id
select id, count(*) over (order by d range between 1 preceding and 1 following) from t order by id
select id, max(d) over (order by id rows 1 preceding), lag(d) over (order by id) from t order by id
select sum(d) over (order by d range 'NaN' preceding) from t
select greatest(d, 1), least(d, 1), coalesce(d, 'NaN'), nullif(d, 'NaN') from t order by id
select case d when 'NaN' then 'n' when 1.5 then 'x' else '-' end from t order by id
select d::text, d::numeric, d::varchar(2), n::float8 from t order by id
select -d, +d, @d, abs(d), sign(d), ceil(d), floor(d), round(d), trunc(d) from t order by id
select d + 1, d - 1, d * 2, d / 2, 1 / (d + 7), d * 0, d - d, d / nullif(d, 0) from t order by id
select 'Infinity'::float8 - 'Infinity'::float8, 'Infinity'::float8 * 0
select 'Infinity'::float8 / 'Infinity'::float8, 'NaN'::float8 / 0
select 1::float8 / 0
select 'NaN'::float8 ^ 0, 1 ^ 'NaN'::float8, 'NaN'::float8 ^ 2, 2 ^ 'NaN'::float8, power('NaN', 0.5)
select power(0, 'NaN'::float8), power('NaN'::float8, -1), power('NaN'::float8, 'NaN'::float8)
select sqrt('NaN'::float8), cbrt('NaN'::float8), exp('NaN'::float8), ln('NaN'::float8)
select log('NaN'::float8), |/ 'NaN'::float8, ||/ 'NaN'::float8, degrees('NaN'), radians('NaN')
select sin('NaN'), cos('NaN'), tan('NaN'), asin('NaN'), acos('NaN'), atan('NaN'), atan2('NaN', 1)
select sinh('NaN'), cosh('NaN'), tanh('NaN'), atan2(1, 'NaN'), pi() < 'NaN'
select sqrt(-1::float8)
select sin('Infinity'::float8)
select asin(2)
select 'NaN'::float8::int
select 'NaN'::float8::bigint
select 'NaN'::float8::smallint
select 'NaN'::float8::boolean
select 'NaN'::float8::numeric(5, 2), 'NaN'::numeric::float8, 'NaN'::float8::numeric
select ' nAn '::float8, '-nan'::float8, '+NaN'::float8
select 'nanx'::float8
select interval '1 day' * 'NaN'::float8
select interval '1 day' / 'NaN'::float8
select to_timestamp('NaN'::float8)
select make_interval(0, 0, 0, 0, 0, 0, 'NaN')
select make_timestamp(2020, 1, 1, 1, 2, 'NaN')
select to_jsonb(d), to_jsonb(array[d]) from t order by id
select jsonb_build_object('d', d), jsonb_agg(d) over (order by id) from t where id < 3 order by id
select jsonb_object_agg(id, d), jsonb_agg(d order by id) from t
select concat(d, '|', d), format('%s %L', d, d), 'x' || d from t where id in (1, 2) order by id
select '{{NaN,1,Infinity}}'::float8[] || 'NaN'::float8, array['NaN'::float8, null]
select array['NaN'::float8] = array['NaN'::float8], array['NaN'::float8] > array['Infinity'::float8]
select array['NaN'::float8, 1] < array['NaN'::float8, 2], array[1::float8] < array['NaN'::float8]
select array_position('{{1,NaN}}'::float8[], 'NaN'), array_remove('{{1,NaN}}'::float8[], 'NaN')
select array_replace('{{1,NaN}}'::float8[], 'NaN', 2), '{{1,NaN}}'::float8[] @> '{{NaN}}'
select '{{NaN}}'::float8[]::numeric[], '{{NaN}}'::float8[]::text[], '{{NaN}}'::numeric[]::float8[]
select x, x = 'NaN' from unnest('{{2,NaN,NULL}}'::float8[]) as x order by x
select max(x) from unnest('{{2,NaN,NULL}}'::float8[]) as x
insert into u values ('NaN', 'again')
insert into u values ('NaN', 'again') on conflict (k) do update set v = 'more' returning *
select * from u order by k
select * from u where k = 'NaN'
select k from u where k > 1.5 order by k
select k from u where k >= 'NaN'
update u set k = 3 where k = 'NaN' returning k, c
update u set k = 'Infinity'::float8 - 'Infinity' where v = 'y' returning *
update u set k = 'NaN' where v = 'x'
delete from u where k = 'NaN' returning v
select k, c from u order by k desc
create unique index by_d on t (d)
delete from t where id = 5
create unique index by_d on t (d)
delete from t where id = 8
create unique index by_d on t (d)
insert into t values (9, 'NaN')
select id from t where d = 'NaN'
select id from t where d > 1 order by d
select id from t where d > 'Infinity' order by d
update t set d = d - d where id = 2
create table c (id int primary key, d float8 check (d < 'NaN'))
alter table c add e double precision generated always as (d - d) stored
insert into c values (1, 'NaN')
insert into c values (2, 'Infinity'), (3, 1), (4, null)
select * from c order by id
create index on c ((d + e))
select id from c where d + e = 'NaN'
alter table c add f double precision not null default 'NaN'
select id, f, f = 'NaN' from c order by id
alter table c alter f type numeric
alter table c add constraint all_nan check (f = 'NaN')
insert into c (id, f) values (5, 1)
alter table c drop constraint all_nan
alter table c alter f type text, alter f drop default
select f from c order by id
alter table c alter f type double precision using f::float8
select f from c order by id
insert into c (id, f) values (5, 2)
alter table c add unique (f)
delete from c where id < 4
alter table c add unique (f)
select id, f from c order by f
create table f (id int primary key, r double precision references u)
insert into f values (1, 'NaN')
insert into u values ('NaN', 'back')
insert into f values (1, 'NaN')
delete from u where k = 'NaN'
select f.id, u.v from f join u on r = k
alter table f add check (r <> 'Infinity')
select id from f where r = 'NaN'
"""


@pytest.fixture
def both(servers: tuple[Server, Server]) -> Iterator[tuple[Connection, Connection]]:
    ours, theirs = servers
    with ours.psycopg(autocommit=True) as one, theirs.psycopg(autocommit=True) as other:
        yield one, other
        for each in (one, other):
            each.execute("drop table if exists f, c, t, u")


def said(connection: Connection, text: str) -> str:
    """As `told`, NaN equal to itself."""
    return repr(told(connection, text))


def test_statements_have_the_answers_of_postgresql(both: tuple[Connection, Connection]) -> None:
    ours, theirs = both
    unlike = []
    for text in STATEMENTS.strip().splitlines():
        mine, wanted = said(ours, text), said(theirs, text)
        if mine != wanted:
            unlike.append(f"{text}\n  ours    {mine}\n  theirs  {wanted}")
    assert not unlike, "\n".join(unlike)


VALUES: Final = (math.nan, math.inf, -math.inf, 1.5, None)


@pytest.mark.parametrize("binary", [False, True], ids=["text", "binary"])
def test_psycopg_gives_and_gets_it(both: tuple[Connection, Connection], binary: bool) -> None:
    answers = []
    for connection in both:
        connection.execute("create table t (id int primary key, d double precision)")
        with connection.cursor(binary=binary) as cursor:
            place = "%b" if binary else "%t"
            for number, value in enumerate(VALUES):
                cursor.execute(f"insert into t values (%s, {place})", (number, value))
            found = [
                cursor.execute("select * from t order by d, id").fetchall(),
                cursor.execute(f"select id from t where d = {place}", (math.nan,)).fetchall(),
                cursor.execute(f"select {place}::float8[]", (list(VALUES),)).fetchall(),
            ]
        answers.append(repr(found))
    assert answers[0] == answers[1]
    assert "(0, nan)" in answers[0]


def test_asyncpg_gives_and_gets_it(servers: tuple[Server, Server]) -> None:
    async def asked(server: Server) -> list[Any]:
        connection = await asyncpg.connect(**server.asyncpg())
        try:
            await connection.execute("create table t (id int primary key, d double precision)")
            await connection.executemany("insert into t values ($1, $2)", [*enumerate(VALUES)])
            await connection.copy_records_to_table("t", records=[(7, math.nan), (8, 2.5)])
            found = [
                await connection.fetch("select * from t order by d, id"),
                await connection.fetch("select id from t where d = $1 order by id", math.nan),
                await connection.fetchval("select $1::float8[]", list(VALUES)),
                await connection.fetchval("select sum(d) from t"),
            ]
            await connection.execute("drop table t")
            return found
        finally:
            await connection.close()

    mine, wanted = (repr(asyncio.run(asked(server))) for server in servers)
    assert mine == wanted
    assert "nan" in mine


@pytest.mark.parametrize("how", ["format text", "format csv, header", "format binary"])
def test_copy_reads_and_writes_it(both: tuple[Connection, Connection], how: str) -> None:
    answers = []
    for connection in both:
        connection.execute("create table t (id int primary key, d double precision)")
        connection.execute("insert into t values (1, 'NaN'), (2, 'Infinity'), (3, null), (4, 0.5)")
        written = io.BytesIO()
        with connection.cursor() as cursor:
            with cursor.copy(f"copy (select * from t order by d) to stdout ({how})") as copy:
                for block in copy:
                    written.write(block)
            connection.execute("truncate t")
            with cursor.copy(f"copy t from stdin ({how})") as copy:
                copy.write(written.getvalue())
        rows = connection.execute("select * from t order by d").fetchall()
        answers.append((written.getvalue(), repr(rows)))
    assert answers[0] == answers[1]
    assert "(1, nan)" in answers[0][1]
