# ruff: noqa: E501 - a statement stands in one line
"""Goal: statements that write inside WITH do what PostgreSQL's do: each once and to its end, all on
one snapshot, with RETURNING alone between them.

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
        create table item (id int primary key, n int not null, note text unique)
        create table gone (id int primary key, n int, at int default 7)
        insert into item values (1, 10, 'a'), (2, 20, 'b'), (3, 30, 'c'), (4, 40, null)
"""

STORIES: Final = {
    "rows are moved from one table to the other": """
        with d as (delete from item where n > 15 returning *) insert into gone select id, n from d
        select * from item order by id
        select * from gone order by id
        with d as (delete from gone where id < 3 returning id, n) select n, id from d order by id
        with d as (delete from gone) select count(*) from gone
        select count(*) from gone
        with d as (delete from item where false returning id) select count(*), max(id) from d
    """,
    "what is not read is done too, all on one snapshot": """
        with u as (update item set n = n + 1) select n from item order by id
        with u as (update item set n = n + 1 returning n), i as (insert into item values (9, 90)
          returning id) select (select sum(n) from u), (select count(*) from item)
        select id, n from item order by id
        with i as (insert into gone values (1, 1), (2, 2)) update item set n = 0 where id in
          (select id from gone)
        with a as (insert into gone values (5, 5) returning id), b as (insert into gone select
          id + 1, 6 from a returning id), c as (insert into gone select id + 1, 7 from b returning id)
          select a.id, b.id, c.id from a, b, c
        select * from gone order by id
    """,
    "tags count the statement itself": """
        with u as (update item set n = 0) insert into gone values (1, 1), (2, 2)
        with u as (update item set n = 1 returning id) update gone set n = u.id from u
          where gone.id = u.id
        with u as (update item set n = 1) delete from gone where id = 1
        with i as (insert into gone values (8, 8) returning *) update item set n = i.n from i
          where item.id = 1 returning item.id, item.n, i.id
        with i as (insert into gone values (9, 9)) insert into item values (9, 9, 'z')
          on conflict (id) do nothing returning *
        select * from item order by id
        select * from gone order by id
    """,
    "queries beside them are computed once": """
        with q as (select id, n from item where id < 3), i as (insert into gone select id, n from q
          returning id), u as (update item set note = note || '!' where id in (select id from q)
          returning id, note) select * from q join u using (id) join i using (id) order by id
        with recursive s as (select 100 as v union all select v + 1 from s where v < 103),
          i as (insert into gone select v, v from s returning id) select sum(v), (select
          sum(id) from i) from s
        with recursive s as (select 200 as v union all select v + 1 from s where v < 203)
          insert into gone select v, v from s returning id
        with r as (select random() as v), a as (insert into gone select 300, (v * 1000)::int from r
          returning n), b as (insert into gone select 301, (v * 1000)::int from r returning n)
          select a.n = b.n from a, b
        with never as (select 1 / 0 as v), i as (insert into gone values (400, 1)) select 1
        with m as (select max(n) as top from item) insert into gone values (500, 1)
          returning id, (select top from m)
        with m as (select 70 as top) insert into gone values (500, 2) on conflict (id) do update
          set n = excluded.n + (select top from m) returning n
        select id, case when id in (300, 301) then 0 else n end from gone order by id
    """,
    "a row is deleted by one part, and its key taken by another": """
        with d as (delete from item where id = 1 returning *) insert into item select id, n + 1,
          note || '+' from d
        select * from item order by id
        with u as (update item set id = 50 where id = 2 returning note) insert into item select 51, 1,
          note || '?' from u
        with d as (delete from item where id = 3 returning *) insert into item select id, 1, note
          from d on conflict (id) do nothing
        select * from item order by id
        with i as (insert into item values (60, 1, 'sixty') returning id) insert into item select id,
          2, 'other' from i on conflict do nothing
        with i as (insert into item values (61, 1, 's') returning id) insert into item select id, 2,
          'o' from i
        with i as (insert into item values (61, 1, 's') returning id) insert into item select id, 2,
          'o' from i on conflict (id) do update set n = 5
        select * from item order by id
    """,
    "in a block, with savepoints": """
        begin
        insert into item values (7, 70, 'g')
        savepoint s
        with d as (delete from item where id > 2 returning *), i as (insert into gone select id, n
          from d returning id) select count(*) from i
        select count(*) from item
        with i as (insert into item values (30, 1, 'a') returning id) select id from i
        rollback to s
        select count(*) from item
        with d as (delete from item where id > 2 returning *) insert into gone select id, n from d
        with u as (update gone set n = n + 1 returning id, n) select * from u order by id
        commit
        select * from item order by id
        select * from gone order by id
    """,
    "what fails fails whole": """
        with i as (insert into gone values (1, 1)) select 1 / 0
        with i as (insert into gone values (1, 1), (1, 2)) select 1
        with i as (insert into item values (1, 1)) select 1
        with i as (insert into item values (77, null)) select 1
        select count(*) from gone
        with i as (insert into gone values (1, 1)) select * from i
        with i as (insert into gone values (1, 1) returning id), i as (select 1) select * from i
        with i as (insert into nowhere values (1, 1) returning id) select * from i
        with i as (insert into gone values (1, 1) returning nothing) select * from i
        with i (a, b) as (insert into gone values (1, 1) returning id) select * from i
        select * from (with i as (insert into gone values (1, 1) returning id) select * from i) s
        insert into gone with i as (insert into gone values (1, 1) returning id) select id from i
        with i as (with j as (insert into gone values (1, 1) returning id) insert into gone select
          id from j returning id) select * from i
        with recursive i as (insert into gone select id from i returning id) select * from i
        create view v as with i as (insert into gone values (1, 1) returning id) select * from i
        declare c cursor for with i as (insert into gone values (1, 1) returning id) select 1
        begin
        declare c cursor for with i as (insert into gone values (1, 1) returning id) select 1
        rollback
        begin read only
        with i as (insert into gone values (1, 1) returning id) select * from i
        rollback
        select count(*) from gone
    """,
    "keys and foreign keys are looked at when all parts are done": """
        create table parent (id int primary key)
        create table child (id int primary key, p int references parent)
        with p as (insert into parent values (1), (2) returning id) insert into child select id * 10,
          id from p
        with c as (delete from child where p = 2 returning p) delete from parent where id in (select
          p from c)
        with c as (insert into child values (90, 9)) select 1
        select * from child order by id
        with d as (delete from parent where id = 1) delete from child where p = 1
        select (select count(*) from parent), (select count(*) from child)
    """,
    "values come from sequences and defaults": """
        create table log (id serial primary key, word text, at int default 3)
        with a as (insert into log (word) values ('x'), ('y') returning id, at) insert into log
          (word, at) select 'z', at + 1 from a returning id < 5, word, at
        with a as (insert into log (word) values ('q') returning id) select id, currval('log_id_seq')
          from a
        select at, count(*) from log group by at order by at
    """,
    "names of columns": """
        with d (key, value) as (delete from item where id = 1 returning id, n) select key, value,
          d.* from d
        with u as (update item set n = 5 where id = 2 returning item.*, n + 1 as more) select u.note,
          more from u
        with u as (update item i set n = g.n from gone g where i.id = g.id returning i.id, g.n)
          select * from u
    """,
}


@pytest.mark.parametrize("name", STORIES)
def test_a_statement_of_several_parts(servers: tuple[Server, Server], name: str) -> None:
    check_story(servers, TABLES + STORIES[name])


def test_parts_take_the_same_parameters(servers: tuple[Server, Server]) -> None:
    """Prepared once and run with other values, in both forms."""
    text = (
        "with i as (insert into p values (%s, %s) returning id, note),"
        " u as (update p set note = note || %s where id = %s returning id, note)"
        " select i.note, u.note, %s::int from i left join u on true"
    )
    answers = []
    for server in servers:
        with server.psycopg(autocommit=True) as one:
            one.execute("create table p (id int primary key, note text)")
            told = [
                one.execute(text, (n, f"v{n}", "!", n - 1, n), prepare=True).fetchall()
                for n in range(1, 4)
            ]
            told += [one.execute("select * from p order by id").fetchall()]
            for binary in (False, True):
                told += [one.execute(text, (8 + binary, "b", "", 1, 5), binary=binary).fetchall()]
            one.execute("drop table p")
            answers.append(told)
    assert answers[0] == answers[1]


def test_a_row_that_two_parts_change_is_changed_by_the_first(
    servers: tuple[Server, Server],
) -> None:
    """PostgreSQL leaves open which of them does; neither keeps both, or half of one."""
    ours, _ = servers
    with ours.psycopg(autocommit=True) as one:
        one.execute("create table r (id int primary key, a int, b int)")
        one.execute("insert into r values (1, 0, 0), (2, 0, 0)")
        told = one.execute(
            "with x as (update r set a = 1 where id = 1 returning id),"
            " y as (delete from r returning id) select (select count(*) from x), id from y"
        ).fetchall()
        left = one.execute("select * from r").fetchall()
        one.execute("drop table r")
    assert (told, left) == ([(1, 2)], [(1, 1, 0)])


@pytest.mark.parametrize("level", ["read committed", "repeatable read", "serializable"])
def test_what_a_part_reads_is_verified_where_reads_are(
    servers: tuple[Server, Server], level: str
) -> None:
    """A row that a part has read is changed by another session before COMMIT."""
    codes = []
    for server in servers:
        with server.psycopg(autocommit=True) as one, server.psycopg(autocommit=True) as other:
            one.execute("create table seen (id int primary key, n int)")
            one.execute("create table made (id int primary key, n int)")
            one.execute("insert into seen values (1, 1), (2, 2)")
            code = ""
            try:
                one.execute(f"begin isolation level {level}")
                one.execute(
                    "with q as (select n from seen where id = 1),"
                    " i as (insert into made select 1, n from q returning n)"
                    " select i.n from i, q"
                )
                other.execute(f"begin isolation level {level}")
                other.execute("select * from made where id = 1")
                other.execute("update seen set n = 5 where id = 1")
                other.execute("commit")
                one.execute("commit")
            except psycopg.Error as error:
                code = str(error.sqlstate)
            codes.append(code)
            one.execute("rollback")
            one.execute("drop table seen, made")
    assert codes[0] == codes[1]
