"""ADD PRIMARY KEY on a table without one, under writers, on a whole database in this process."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

import pytest

from leasehold.dev.database import DevDatabase
from leasehold.model.errors import Refused
from tests.support.sql_session.sql_client import SqlClient, client_of_tables
from tests.support.sql_session.writers import writing


@pytest.fixture
def one(database: DevDatabase) -> Iterator[SqlClient]:
    with client_of_tables(
        database,
        "create table h (a int, b text); create index h_b on h (b)",
        "insert into h select g, 'x' from generate_series(1, 40) g",
        dropped_by="drop table if exists h",
    ) as made:
        yield made


def keyed(database: DevDatabase) -> tuple[str, ...]:
    table = next(t for t in database.tables() if t.name == "h")
    assert not any(c.hidden for c in table.columns) or table.hidden_key
    return tuple(c.name for c in table.key_columns if not c.hidden)


@pytest.mark.parametrize("said", ["add primary key (a)", "add constraint h_pkey primary key (a)"])
def test_the_rows_get_the_key(one: SqlClient, database: DevDatabase, said: str) -> None:
    assert keyed(database) == ()
    one.ask(f"alter table h {said}")
    assert keyed(database) == ("a",)
    assert one.ask("select count(*), min(a), max(a) from h") == [(40, 1, 40)]
    assert one.code("insert into h values (7, 'y')") == "23505"
    assert one.code("insert into h (b) values ('y')") == "23502"
    assert one.ask("insert into h values (41, 'y') returning *") == [(41, "y")]
    row = {"table": "h", "op": "update", "key": {"a": 41}, "values": {"b": "z"}}
    assert database.ask(row).committed
    assert one.ask("select * from h where b = 'z'") == [(41, "z")]


def test_writers_go_on_and_nothing_is_lost(one: SqlClient, database: DevDatabase) -> None:
    made: dict[int, list[int]] = {1: [], 2: []}

    def turn(place: int, client: SqlClient) -> None:
        number = 1_000 * place + len(made[place]) + 1
        client.ask(f"begin; insert into h values ({number}, 'w')")
        client.ask(f"update h set b = b || 'w' where a = {number % 40 + 1}")
        client.ask(f"delete from h where a = {number - 1} and b = 'w'; commit")
        made[place].append(number)

    with writing(database, [partial(turn, place) for place in made]):
        one.ask("alter table h add primary key (a)")
    assert keyed(database) == ("a",)
    assert all(made.values()), "writers went on"
    wanted = sorted((*range(1, 41), *(numbers[-1] for numbers in made.values())))
    assert [key for (key,) in one.ask("select a from h order by a")] == wanted
    ((total,),) = one.ask("select sum(length(b) - 1) from h where a <= 40")
    assert total == sum(map(len, made.values()))


@pytest.mark.parametrize(("row", "code"), [("(3, 'twice')", "23505"), ("(null, 'none')", "23502")])
def test_rows_that_have_no_key_fail_it(
    one: SqlClient, database: DevDatabase, row: str, code: str
) -> None:
    one.ask(f"insert into h values {row}")
    assert one.code("alter table h add primary key (a)") == code
    assert keyed(database) == ()
    assert one.ask("select count(*) from h") == [(41,)]
    one.ask("insert into h values (3, 'thrice')")


def test_the_key_that_two_rows_have_is_named(one: SqlClient) -> None:
    one.ask("insert into h values (3, 'twice')")
    for sql in ("alter table h add primary key (a)", "create unique index h_a on h (a)"):
        with pytest.raises(Refused) as refused:
            one.ask(sql)
        assert refused.value.detail["detail"] == "Key (a)=(3) is duplicated."


def test_an_empty_table_and_refusals(one: SqlClient, database: DevDatabase) -> None:
    one.ask("truncate h")
    assert one.code("alter table h add primary key (a), add primary key (b)") == "42P16"
    assert one.code("alter table h add primary key (a), add column c int") == "0A000"
    assert one.code("alter table h add primary key (c)") == "42703"
    assert one.code("alter table h add constraint h primary key (a)") == "42P07"
    one.ask("alter table h add constraint k primary key (a, b)")
    assert one.ask("select conname from pg_constraint where conrelid = 'h'::regclass") == [("k",)]
    assert keyed(database) == ("a", "b")
    assert one.code("alter table h add primary key (a)") == "42P16"
    one.ask("insert into h values (1, 'x'), (1, 'y')")
