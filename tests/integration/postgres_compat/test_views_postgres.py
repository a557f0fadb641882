# ruff: noqa: E501 - a statement stands in one line
"""Goal: views over tables, columns and views that get other names go on as in PostgreSQL, options
of a view mean what they mean there, and its query is shown as there.

Method: stories, said to both; and queries whose text both show.
"""

from __future__ import annotations

from typing import Final

import pytest

from tests.support.postgres.client_server import Server
from tests.support.postgres.stories import check_story, drop_tables

pytestmark = pytest.mark.integration

TABLES: Final = """
        create table t (id int primary key, name text, v varchar(9), n numeric(8, 2), a int, b bigint, d date, tags text[], j jsonb)
        create table u (id int primary key, t int, note text)
        insert into t values (1, 'one', 'x', 1.50, 1, 2, '2020-01-02', '{a}', '{"k": 1}'), (2, 'two', null, null, null, 3, null, null, null)
        insert into u values (1, 1, 'first'), (2, 1, 'second')
"""

STORIES: Final = {
    "other names": """
        create view v as select id, name as called, a from t where id > 0
        create view w as select v.called, v.id from v
        create view x (one, two) as select w.*, 1 from w
        alter view v rename to v2
        select * from w order by id
        select * from x order by two
        alter table t rename to t2
        alter table t2 rename column name to label
        select * from v2 order by id
        select * from w order by id
        alter view v2 rename column called to named
        select * from v2 order by id
        select * from w order by id
        select * from x order by two
        alter view v2 rename id to number
        select * from w order by id
        create view y as select number, named from v2
        select * from y order by number
        alter view if exists nothing rename column a to b
        alter view nothing rename column a to b
        alter view v2 rename column nothing to b
        alter view v2 rename column named to number
        create or replace view v2 as select id as number, label as named, a, b as more from t2
        select * from w order by id
        select * from x order by two
        select * from y order by number
        alter view w rename to v
        select * from x order by two
        select * from v order by id
        drop view v2
        drop view v2 cascade
        select * from x
        alter table t2 rename to t
    """,
    "a star over a view that gets more columns": """
        create view v as select id from t
        create view w as select *, 7 as seven from v
        create or replace view v as select id, name from t
        select * from w order by id
        select * from v order by id
        create or replace view v as select id, name, a from t
        select * from w order by id
        drop view v cascade
    """,
    "options": """
        create view v with (security_invoker = true) as select id from t
        create view w with (security_barrier, security_invoker = off) as select id from t where id > 1
        select relname, reloptions from pg_class where relname in ('v', 'w') order by 1
        select * from w where 10 / (id - 1) > 0
        select * from v order by id
        alter view v set (security_barrier = true)
        select relname, reloptions from pg_class where relname in ('v', 'w') order by 1
        alter view v reset (security_invoker)
        alter view w set (security_barrier = false, security_invoker)
        select relname, reloptions from pg_class where relname in ('v', 'w') order by 1
        create or replace view v as select id from t
        select relname, reloptions from pg_class where relname in ('v', 'w') order by 1
        create view x with (nothing) as select 1 as a
        create view x with (security_barrier = 2) as select 1 as a
        create view x with (security_barrier, security_barrier) as select 1 as a
        alter view nothing set (security_barrier)
        drop view v, w
    """,
    "privileges": """
        create role reader
        create view mine as select id from t
        create view theirs with (security_invoker) as select id from t
        create view outer_mine as select id from theirs
        grant select on mine, theirs, outer_mine to reader
        set role reader
        select count(*) from mine
        select count(*) from theirs
        select count(*) from outer_mine
        reset role
        grant select on t to reader
        set role reader
        select count(*) from theirs
        reset role
        drop view mine, theirs, outer_mine cascade
        revoke all on t from reader
        drop role reader
    """,
}


@pytest.mark.parametrize("name", STORIES)
def test_both_say_the_same(servers: tuple[Server, Server], name: str) -> None:
    check_story(servers, TABLES + STORIES[name])


QUERIES: Final = (
    "select id from t",
    "select * from t",
    "select t.* from t where id > 1",
    "select id, name as called, a + 1 as more, lower(v) as low, 'x' as c, 1 as one, true as yes from t",
    "select x.id, x.v from t x where x.v = 'a' and x.n > 1.5 or not x.id in (1, 2)",
    "select id, count(*), sum(a) as s, max(name) as m, count(distinct v) as dv from t group by id",
    "select lower(name) as l, count(*) as c from t group by lower(name) having count(*) > 1 order by count(*) desc, 1",
    "select name, avg(n) as a from t group by 1 order by name nulls first, 2 desc nulls last",
    "select distinct name, v from t order by v desc, name limit 5 offset 2",
    "select t.id, u.note from t join u on t.id = u.t",
    "select t.id as tid, x.id, x.note from t left join u x on x.t = t.id and x.note <> 'a' where t.a is not null",
    "select a.id, b.id as b, c.id as c from t a join t b on a.id = b.a join u c on c.t = b.id",
    "select t.id, u.note from t, u where t.id = u.t",
    "select t.id, u.note from t cross join u",
    "select t.name, u.note from t full join u using (id)",
    "select t.*, u.note from t right join u on true",
    "select id from t union all select t from u",
    "select id as one, name from t except select t, note from u",
    "select case when a > 0 then name else 'none' end as c, coalesce(v, name) as d from t",
    "select j ->> 'k' as k, tags[1] as first, 'a' = any (tags) as has from t",
    "select id::text as i, n::int as n, d + 1 as d, a between 1 and 2 as between from t",
    'select id as "A b", name as select from t',
    "select id from public.t order by id",
    "select t.id, u.note from t t join u as u on u.t = t.id",
    "select a, b, a * b / 2 as c, -a as neg, a % 2 = 0 as even from t where a is distinct from 3",
    "select string_agg(name, ',') as names, array_agg(id) as ids, bool_or(a > 1) as any1 from t",
    "select a as name, lower(name) as a, count(*) from t group by name, a order by name, 2",
    "select count(*) from t where name like 'a%' and v ilike 'b_' and name ~ '^x'",
)


def test_queries_are_shown_in_its_form(servers: tuple[Server, Server]) -> None:
    shown: list[list[object]] = []
    for server in servers:
        with server.psycopg(autocommit=True) as connection:
            try:
                for line in TABLES.strip().splitlines()[:2]:
                    connection.execute(line.encode())
                found: list[object] = []
                for number, text in enumerate(QUERIES):
                    connection.execute(f"create view v{number} as {text}".encode())
                for number in range(len(QUERIES)):
                    asked = (
                        "select pg_get_viewdef(v), pg_get_viewdef(v, true), pg_get_viewdef(v, 0)"
                        f" from (select 'v{number}'::regclass as v) x"
                    )
                    found.append(connection.execute(asked.encode()).fetchone())
                shown.append(found)
            finally:
                drop_tables(connection)
    unlike = [
        f"{text}\n  ours   {one}\n  theirs {other}"
        for text, one, other in zip(QUERIES, *shown, strict=True)
        if one != other
    ]
    assert not unlike, "\n".join(unlike)
