# ruff: noqa: E501 - a statement stands in one line
"""Goal: MERGE does what PostgreSQL 15's does.

Method: the same stories said to both, and the same rows, tags and SQLSTATEs.
"""

from __future__ import annotations

from typing import Final

import psycopg
import pytest

from tests.support.postgres.client_server import Server
from tests.support.postgres.stories import check_story

pytestmark = pytest.mark.integration

TABLES: Final = """
        create table stock (id int primary key, n int not null default 5, note varchar(9) unique,
          twice int generated always as (n * 2) stored)
        create table come (id int, n int, note text)
        insert into stock (id, n, note) values (1, 10, 'a'), (2, 20, 'b'), (3, 30, 'c')
        insert into come values (2, 5, 'x'), (3, -30, 'y'), (4, 40, 'z'), (null, 7, 'w')
"""

STORIES: Final = {
    "rows are changed, deleted and inserted": """
        merge into stock s using come c on s.id = c.id when matched and s.n + c.n = 0 then delete
          when matched then update set n = s.n + c.n, note = s.note || c.note when not matched and
          c.id is not null then insert (id, n, note) values (c.id, c.n, c.note)
        select * from stock order by id
        merge into stock s using come c on s.id = c.id when matched then do nothing when not matched
          then do nothing
        merge into stock using (values (1, 99)) v (id, n) on stock.id = v.id when matched then update
          set n = v.n
        merge into only stock as t using (select id, count(*) as k from come group by id) c on t.id =
          c.id when matched then update set (n, note) = (c.k, default)
        select * from stock order by id
    """,
    "the first WHEN that holds is the one": """
        merge into stock s using come c on s.id = c.id when matched and c.n > 0 then update set n = 1
          when matched and c.n < 0 then update set n = 2 when matched then delete when not matched
          and c.id = 4 then insert values (4, 44, 'new') when not matched then insert (id) values (9)
        select * from stock order by id
        merge into stock s using come c on s.id = c.id and c.n > 0 when matched and c.n <> 0 then
          update set n = 100 / c.n when not matched and c.n = 7 then insert (id, n) values (70, 7)
        select * from stock order by id
        merge into stock s using (values (1), (2)) v (id) on s.id = v.id when matched and v.id = 2
          then update set n = 1 / (v.id - 1)
        select * from stock order by id
    """,
    "defaults, identities and what is generated": """
        create table made (id int generated always as identity primary key, a int default 3, b int)
        merge into made m using come c on m.a = c.n when not matched then insert default values
        merge into made m using (values (8)) v (n) on false when not matched then insert (a, b) values
          (default, v.n)
        merge into made m using (values (50)) v (n) on false when not matched then insert (id, b)
          values (v.n, 1)
        merge into made m using (values (50)) v (n) on false when not matched then insert (id, b)
          overriding system value values (v.n, 1)
        merge into made m using (values (50)) v (n) on m.id = v.n when matched then update set a =
          default, b = 9
        merge into stock s using (values (1)) v (n) on s.id = v.n when matched then update set twice = 9
        merge into stock s using (values (9)) v (n) on s.id = v.n when not matched then insert (id,
          twice) values (9, 1)
        select * from made order by id
    """,
    "no row is changed twice": """
        merge into stock s using (values (1, 1), (1, 2)) v (id, n) on s.id = v.id when matched then
          update set n = v.n
        merge into stock s using (values (1, 1), (1, 2)) v (id, n) on s.id = v.id when matched then
          delete
        merge into stock s using (values (1, 1), (1, 2)) v (id, n) on s.id = v.id when matched and v.n
          = 1 then update set n = 77 when matched then do nothing
        merge into stock s using (values (9, 1), (9, 2)) v (id, n) on s.id = v.id when not matched then
          insert (id, n) values (v.id, v.n)
        select * from stock order by id
    """,
    "what fails fails whole": """
        merge into stock s using come c on s.id = c.id when matched then update set n = null
        merge into stock s using come c on s.id = c.id when not matched then insert (id) values (c.id)
        merge into stock s using come c on s.id = c.id when matched then update set note = 'far too long'
        merge into stock s using come c on s.id = c.id when matched then update set id = 1
        merge into stock s using come c on s.id = c.id when matched then delete when matched then do
          nothing
        merge into stock s using come c on s.id = c.id when not matched then insert (id) values (s.id)
        merge into stock s using come c on s.id = c.id when not matched and s.n > 1 then do nothing
        merge into stock s using come c on s.id = c.id when matched then update set nope = 1
        merge into stock s using come c on s.id = c.id when matched then update set n = 1, n = 2
        merge into stock s using come c on s.id = c.id when not matched then insert (id, n) values (1)
        merge into stock s using come c on s.id = c.id when not matched then insert (id) values (1, 2)
        merge into stock s using come c on s.id = c.id when matched and count(*) > 1 then delete
        merge into stock using stock on true when matched then delete
        merge into stock s using nowhere c on s.id = c.id when matched then delete
        merge into nowhere s using come c on s.id = c.id when matched then delete
        merge into stock s using come c on s.id = c.id when matched then insert values (1)
        merge into stock s using come c on s.id = c.id
        with m as (merge into stock s using come c on s.id = c.id when matched then delete) select 1
        with recursive r as (select 1 as id) merge into stock s using r on s.id = r.id when matched
          then delete
        select * from stock order by id
    """,
    "subqueries, WITH and joins": """
        merge into stock s using come c left join stock o on o.id = c.id + 1 on s.id = c.id when matched
          then update set n = coalesce(o.n, -1) + (select count(*) from come where come.n > s.n)
        select id, n from stock order by id
        with big as (select id, n from come where n > 4), top as (select max(n) as m from big)
          merge into stock s using big on s.id = big.id when matched then update set n = (select m from
          top) when not matched and big.id is not null then insert (id, n) values (big.id, big.n +
          (select m from top))
        select id, n from stock order by id
        with gone as (delete from come where id = 4 returning id, n) merge into stock s using gone g
          on s.id = g.id when matched then update set n = g.n * 2 when not matched then insert (id, n)
          values (g.id, g.n)
        select id, n from stock order by id
        select count(*) from come
    """,
    "in a block, with its own rows": """
        begin
        insert into stock (id, n) values (4, 4)
        delete from stock where id = 2
        merge into stock s using come c on s.id = c.id when matched then update set n = 1000 when not
          matched and c.id is not null then insert (id, n) values (c.id, 2000)
        select id, n from stock order by id
        savepoint p
        merge into stock s using (values (1), (77)) v (id) on s.id = v.id when matched then delete when
          not matched then insert (id, note) values (v.id, 'c')
        rollback to p
        merge into stock s using (values (1), (77)) v (id) on s.id = v.id when matched then delete when
          not matched then insert (id, note) values (v.id, 'cc')
        commit
        select id, n, note from stock order by id
        begin read only
        merge into stock s using come c on s.id = c.id when matched then delete
        rollback
    """,
}


@pytest.mark.parametrize("name", STORIES)
def test_merge(servers: tuple[Server, Server], name: str) -> None:
    check_story(servers, TABLES + STORIES[name])


def test_merge_takes_parameters(servers: tuple[Server, Server]) -> None:
    """Prepared once and run with other values."""
    text = (
        "merge into m using (values (%s::int, %s::text)) v (id, note) on m.id = v.id"
        " when matched and %s then update set note = v.note || %s"
        " when not matched then insert values (v.id, v.note)"
    )
    answers = []
    for server in servers:
        with server.psycopg(autocommit=True) as one:
            one.execute("create table m (id int primary key, note text)")
            told = [
                one.execute(text, (n % 3, f"v{n}", n > 3, "!"), prepare=True).statusmessage
                for n in range(6)
            ]
            answers.append([told, one.execute("select * from m order by id").fetchall()])
            one.execute("drop table m")
    assert answers[0] == answers[1]


def test_what_postgresql_15_has_not(servers: tuple[Server, Server]) -> None:
    """RETURNING and NOT MATCHED BY SOURCE come in PostgreSQL 17: refused with a sentence."""
    ours, _ = servers
    with ours.psycopg(autocommit=True) as one:
        one.execute("create table m (id int primary key)")
        found = []
        for text in (
            "merge into m using m o on m.id = o.id when matched then delete returning *",
            "merge into m using m o on m.id = o.id when not matched by source then delete",
        ):
            try:
                one.execute(text)
            except psycopg.Error as error:
                found.append((error.sqlstate, str(error).split(" is ")[0]))
        one.execute("drop table m")
    assert found == [
        ("0A000", "RETURNING of MERGE"),
        ("0A000", "WHEN NOT MATCHED BY SOURCE"),
    ]
