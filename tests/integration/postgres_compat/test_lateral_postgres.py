# ruff: noqa: E501 - a statement stands in one line
"""Goal: LATERAL means what it means in PostgreSQL, in queries and in statements that write, and
what it has read is verified.

Method: stories, said to both.
"""

from __future__ import annotations

from typing import Final

import psycopg
import pytest

from tests.support.postgres.client_server import Server
from tests.support.postgres.stories import check_story

pytestmark = pytest.mark.integration

TABLES: Final = """
        create table owner (id int primary key, name text, tags text[], doc jsonb)
        create table pet (id int primary key, owner int, name text, weight numeric, born date,
            chip bytea, speed double precision)
        create index on pet (owner)
        insert into owner values (1, 'Ada', '{a,b}', '{"k": [1, 2]}'), (2, 'Bo', '{}', '{}'),
            (3, null, null, null), (4, 'Di', '{c,null}', '{"k": [{"z": 0.10}]}')
        insert into pet values (1, 1, 'Rex', 4.50, '2020-01-02', '\\x00ff', 0.1),
            (2, 1, 'Kit', 12, null, null, 'Infinity'), (3, 2, null, null, '2021-05-06', '', '-Infinity'),
            (4, 4, 'Ox', 700.125, '2019-12-31', '\\x41', 1e300), (5, null, 'Stray', 3, null, null, null)
"""

STORIES: Final = {
    "queries for each row": """
        select o.id, p.* from owner o, lateral (select * from pet where pet.owner = o.id) p
            order by 1, 2
        select o.id, p.* from owner o left join lateral (select * from pet where pet.owner = o.id
            order by weight desc limit 1) p on true order by 1
        select o.id, p.name from owner o left join lateral (select name, weight from pet where
            pet.owner = o.id) p on p.weight > 5 order by 1, 2
        select o.id, p.n, p.w, p.names from owner o cross join lateral (select count(*) n,
            sum(weight) w, array_agg(name order by id) names from pet where pet.owner = o.id) p
            order by 1
        select o.id, p.n from owner o join lateral (select owner, count(*) n from pet where pet.owner
            = o.id group by owner having count(*) > 1) p on true
        select o.id, v.* from owner o cross join lateral (values (o.id, o.name), (-o.id, 'x')) v(a, b)
            order by 1, 2
        select o.id, x.a, y.b from owner o, lateral (select o.id * 10 as a) x, lateral (select x.a +
            count(*) as b from pet where pet.owner <= o.id) y order by 1
        select o.id, p.id, x.s from owner o, pet p join lateral (select o.name || p.name as s) x on
            x.s is not null where p.owner = o.id order by 2
        select o.id, p.id, x.s from owner o, pet p left join lateral (select p.name as s where p.owner
            = o.id) x on true order by 1, 2
        select o.id, x.* from owner o, lateral (select p.id from pet p where p.owner = o.id union
            select o.id order by 1) x order by 1, 2
        select o.id, x.c from owner o, lateral (with w as (select id from pet where owner = o.id)
            select count(*) as c from w a, w b) x order by 1
        select o.id, x.n from owner o, lateral (with recursive r(n) as (select 1 union all select n + 1
            from r where n < o.id) select n from r) x order by 1, 2
        select o.id, (select string_agg(l.s, ',' order by l.s) from pet p, lateral (select p.name ||
            o.id as s) l where p.owner = o.id) from owner o order by 1
        select o.id from owner o where exists (select from pet p, lateral (select p.owner + 0 as n) l
            where l.n = o.id) order by 1
        select o.id, p.row from owner o, lateral (select row_number() over (order by id) as row from
            pet where pet.owner = o.id) p order by 1, 2
        select l.n, count(*) from owner o, lateral (select o.id % 2 as n) l group by l.n order by 1
        select distinct on (o.id) o.id, p.name from owner o left join lateral (select * from pet where
            owner = o.id) p on true order by o.id, p.weight desc nulls last
        select o.id, json_agg(d.data) from owner o left join lateral (select json_build_array(p.id,
            p.name) as data from (select * from pet where pet.owner = o.id order by id limit 2) p) d
            on true group by o.id order by 1
        select * from owner o join lateral (select owner as id, weight from pet) p using (id) order by
            1, weight
        select a.id, b.id, c.id from owner a left join lateral (select id from owner b where b.id =
            a.id + 1) b on true left join lateral (select id from pet c where c.owner = b.id order by
            id limit 1) c on true order by 1
    """,
    "functions over columns": """
        select o.id, u from owner o, unnest(o.tags) u order by 1, 2
        select o.id, u, n from owner o left join unnest(o.tags) with ordinality as t(u, n) on true
            order by 1, 3
        select o.id, e from owner o, jsonb_array_elements(o.doc -> 'k') e order by 1, e::text
        select o.id, e.key, e.value from owner o, jsonb_each(o.doc) e order by 1
        select o.id, g from owner o, generate_series(1, o.id) g order by 1, 2
        select o.id, g from owner o left join generate_series(o.id, 2) g on true order by 1, 2
        select o.id, x from owner o, lower(o.name) x order by 1
        select o.id, x, ordinality from owner o, length(o.name) with ordinality x order by 1
        select p.id, u, w from pet p, owner o cross join lateral unnest(o.tags || p.name) u, upper(u) w
            where o.id = p.owner order by 1, 2, 3
    """,
    "what is refused": """
        select * from owner o right join lateral (select o.id) x on true
        select * from owner o full join lateral (select o.id) x on true
        select * from owner o right join unnest(o.tags) x on true
        select * from owner o, lateral (select count(o.id)) x
        select * from owner o, (select o.id) x
        select * from lateral (select o.id) x, owner o
        select * from owner o, lateral (select nothing) x
        select * from owner o, lateral (select id from pet where pet.owner = o.id) x, lateral (select
            count(*), id from pet) y
        select o.id, x.a from owner o, lateral (select 1 / (o.id - 2) as a) x
    """,
    "statements that write": """
        update owner set name = x.n from pet p, lateral (select p.name || '!' as n) x where p.owner =
            owner.id and p.id = 1 returning owner.id, owner.name
        delete from pet using owner o, lateral (select max(id) as last from pet where pet.owner = o.id)
            m where pet.id = m.last and o.id = 1 returning pet.id
        insert into owner (id, name) select o.id + 100, l.name from owner o, lateral (select name from
            pet where owner = o.id order by id limit 1) l order by 1 returning id, name
        begin
        insert into pet (id, owner, name) values (50, 3, 'New')
        select o.id, l.name from owner o join lateral (select name from pet where owner = o.id) l on
            true order by 1, 2
        rollback
        create view firsts as select o.id, l.name from owner o left join lateral (select name from pet
            where pet.owner = o.id order by id limit 1) l on true
        select * from firsts order by 1
        drop view firsts
        with w as (select o.id, l.n from owner o, lateral (select count(*) n from pet where owner =
            o.id) l) select * from w order by 1
        select o.id, l.name from owner o, lateral (select name from pet where owner = o.id) l where
            o.id = 2 for update of o
    """,
}


@pytest.mark.parametrize("name", STORIES)
def test_both_say_the_same(servers: tuple[Server, Server], name: str) -> None:
    check_story(servers, TABLES + STORIES[name])


@pytest.mark.parametrize(
    "join", [", lateral ({}) p", "left join lateral ({}) p on true", "join lateral ({}) p on true"]
)
@pytest.mark.parametrize("level", ["serializable", "repeatable read"])
def test_what_a_lateral_query_has_read_is_verified(
    servers: tuple[Server, Server], join: str, level: str
) -> None:
    """A serializable transaction that wrote by what it has read fails when that was changed; one
    that reads elsewhere does not."""
    found = join.format("select count(*) as n from pet where pet.owner = o.id")
    ours, _ = servers
    with ours.psycopg() as one, ours.psycopg(autocommit=True) as other:
        other.execute("create table owner (id int primary key, pets int)")
        other.execute("create table pet (id int primary key, owner int)")
        other.execute("create index on pet (owner)")
        other.execute("insert into owner values (1, 0), (2, 0)")
        try:
            for changed, code in ((1, "40001"), (2, None)):
                one.execute("set verifyretry off")
                one.commit()
                one.execute(f"set transaction isolation level {level}".encode())
                one.execute(f"select o.id, p.n from owner o {found} where o.id = 1".encode())
                one.execute("insert into owner values (10, 0)")
                other.execute("insert into pet values (%s, %s)", (changed, changed))
                if level == "serializable" and code is not None:
                    with pytest.raises(psycopg.Error) as caught:
                        one.commit()
                    assert caught.value.sqlstate == code
                else:
                    one.commit()
                    other.execute("delete from owner where id = 10")
        finally:
            one.rollback()
            other.execute("drop table owner, pet")
