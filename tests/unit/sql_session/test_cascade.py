"""CASCADE and RESTRICT: foreign keys of other tables go along, under writers of all tables, on a
whole database in this process."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

import pytest

from leasehold.dev.database import DevDatabase
from tests.support.sql_session.sql_client import SqlClient, client_of_tables
from tests.support.sql_session.writers import writing

ROWS = 20
DEPENDENT = "drop cascades to constraint c_u_fkey on table c"


@pytest.fixture
def one(database: DevDatabase) -> Iterator[SqlClient]:
    with client_of_tables(
        database,
        "create table p (id int primary key, u int unique, v text)",
        "create table c (id int primary key, u int references p (u) on delete cascade)",
        "create table d (id int primary key, c int references c)",
        f"insert into p select g, g, 'x' from generate_series(1, {ROWS}) g",
        f"insert into c select g, g from generate_series(1, {ROWS}) g",
        "insert into d values (1, 1)",
        dropped_by="drop table if exists d, c, p cascade",
    ) as made:
        made.reports.clear()
        yield made


def told(one: SqlClient) -> list[str]:
    return [str(getattr(report, "message", "")) for report in one.reports]


def keys(one: SqlClient) -> list[tuple[object, ...]]:
    return one.ask("select conname from pg_constraint where contype = 'f' order by conname")


@pytest.mark.parametrize(
    "drop", ["alter table p drop constraint p_u_key", "alter table p drop column u"]
)
def test_writers_of_both_go_on(one: SqlClient, database: DevDatabase, drop: str) -> None:
    """⚠ A child is taken as long as its parent is there, whoever has written that."""
    assert one.code(drop) == one.code(f"{drop} restrict") == "2BP01"
    made = [0, 0, 0]

    def family(place: int, client: SqlClient) -> None:
        key = 1_000 * (place + 1) + made[place]
        client.ask(f"insert into p (id, v) values ({key}, 'new')")
        if "constraint" in drop:
            client.ask(f"update p set u = {key} where id = {key}")
            client.ask(f"insert into c values ({key}, {key})")
            client.ask(f"delete from c where id = {key}")
        client.ask(f"delete from p where id = {key}")
        made[place] += 1

    def child(client: SqlClient) -> None:
        client.ask(f"insert into c values ({5_000 + made[2]}, {made[2] % ROWS + 1})")
        made[2] += 1

    def none_left(place: int, client: SqlClient) -> None:
        if place < 2:
            key = 1_000 * (place + 1) + made[place]
            client.ask(f"delete from c where id = {key}; delete from p where id = {key}")

    with writing(database, [partial(family, 0), partial(family, 1), child], none_left):
        one.ask(f"{drop} cascade")
    assert all(made), "writers went on"
    assert DEPENDENT in told(one)
    assert keys(one) == [("d_c_fkey",)]
    one.ask("insert into c values (99, 99)")
    assert one.ask("select count(*) from p") == [(ROWS,)]
    assert one.ask("select count(*) from c") == [(ROWS + made[2] + 1,)]


def test_a_primary_key_under_writers_of_who_refers_to_it(
    one: SqlClient, database: DevDatabase
) -> None:
    """Each of them finds its parent, up to the version that asks for none."""
    drop = "alter table c drop constraint c_pkey"
    assert one.code(drop) == "2BP01"
    made = [0]

    def family(client: SqlClient) -> None:
        key = 1_000 + made[0]
        client.ask(f"insert into c values ({key}, 1)")
        client.ask(f"insert into d values ({key}, {key})")
        client.ask(f"delete from d where id = {key}")
        client.ask(f"delete from c where id = {key}")
        made[0] += 1

    def none_left(_place: int, client: SqlClient) -> None:
        key = 1_000 + made[0]
        client.ask(f"delete from d where id = {key}; delete from c where id = {key}")

    with writing(database, [family], none_left):
        one.ask(f"{drop} cascade")
    assert made[0], "the writer went on"
    assert "drop cascades to constraint d_c_fkey on table d" in told(one)
    assert keys(one) == [("c_u_fkey",)]
    one.ask("insert into d values (99, 99); insert into c values (1, 1)")
    assert one.ask("select count(*) from c") == [(ROWS + 1,)]


def test_an_index(one: SqlClient) -> None:
    one.ask("create unique index ui on p (v, u)")
    one.ask("create unique index vi on p (id, v)")
    one.ask("alter table d add p int, add v text")
    one.ask("alter table d add constraint dv foreign key (p, v) references p (id, v)")
    assert one.code("drop index vi") == "2BP01"
    one.ask("drop index ui cascade")
    one.ask("drop index vi cascade")
    assert told(one) == ["drop cascades to constraint dv on table d"]
    assert keys(one) == [("c_u_fkey",), ("d_c_fkey",)]


def test_what_is_unique_no_more_still_finds_rows(one: SqlClient) -> None:
    one.ask("alter table c add constraint cu unique (u); alter table c drop constraint c_u_fkey")
    one.ask("alter table c add constraint again foreign key (u) references p (u)")
    one.ask("alter table c drop constraint cu")
    one.ask("insert into c values (50, 1)")
    assert one.code("delete from p where id = 1") == "23503"
    assert one.code("insert into c values (51, 99)") == "23503"


def test_truncate(one: SqlClient, other: SqlClient) -> None:
    assert one.code("truncate p") == "0A000"
    one.ask("truncate p cascade")
    assert told(one) == [f'truncate cascades to table "{name}"' for name in "cd"]
    assert other.ask("select (select count(*) from p) + (select count(*) from d)") == [(0,)]


def test_truncate_in_a_block(one: SqlClient, other: SqlClient) -> None:
    one.ask("begin; insert into d values (2, 2); truncate c cascade")
    assert told(one) == ['truncate cascades to table "d"']
    assert one.ask("select * from c, d") == []
    one.ask("insert into c values (7, 7); insert into d values (7, 7)")
    assert other.ask("select count(*) from c") == [(ROWS,)]
    one.ask("commit")
    assert other.ask("select * from c, d") == [(7, 7, 7, 7)]
    one.ask("begin; truncate c cascade; rollback")
    assert other.ask("select count(*) from d") == [(1,)]


def test_in_one_request_with_what_else_goes(one: SqlClient) -> None:
    """In a block, too: nothing of it can fail."""
    one.ask("begin; drop table d; alter table p drop constraint p_u_key cascade; commit")
    assert keys(one) == []
    one.ask("insert into c values (99, 99)")
