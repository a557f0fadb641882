"""DROP CONSTRAINT t_pkey alone: rows go on under a key that nobody sees. Under writers, on a whole
database in this process."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

import pytest

from leasehold.catalog.descriptor import Descriptor
from leasehold.dev.database import DevDatabase
from tests.support.sql_session.sql_client import SqlClient, client_of_tables
from tests.support.sql_session.writers import writing

ROWS = 40


@pytest.fixture
def one(database: DevDatabase) -> Iterator[SqlClient]:
    with client_of_tables(
        database,
        "create table t (id int primary key, b text); create index t_b on t (b)",
        f"insert into t select g, 'x' from generate_series(1, {ROWS}) g",
        dropped_by="drop table if exists c; drop table if exists t",
    ) as made:
        yield made


def table_t(database: DevDatabase) -> Descriptor:
    return next(t for t in database.tables() if t.name == "t")


def test_rows_are_found_and_changed_as_before(one: SqlClient, database: DevDatabase) -> None:
    one.ask("alter table t drop constraint t_pkey")
    table = table_t(database)
    assert table.hidden_key
    assert not table.by_name["id"].nullable
    assert one.ask("select count(*), min(id), max(id) from t") == [(ROWS, 1, ROWS)]
    assert one.ask("insert into t values (7, 'twice') returning *") == [(7, "twice")]
    changed = one.ask("update t set b = b || '!' where id = 7 returning b")
    assert sorted(changed) == [("twice!",), ("x!",)]
    assert one.ask("delete from t where b = 'twice!' returning id") == [(7,)]
    assert one.code("insert into t (b) values ('none')") == "23502"
    assert one.code("alter table t drop constraint t_pkey") == "42704"


def test_and_back_again(one: SqlClient, database: DevDatabase) -> None:
    one.ask("alter table t drop constraint t_pkey")
    one.ask("insert into t values (7, 'twice')")
    assert one.code("alter table t add primary key (id)") == "23505"
    one.ask("delete from t where b = 'twice'")
    one.ask("alter table t add primary key (id)")
    assert [c.name for c in table_t(database).key_columns] == ["id"]
    assert one.ask("select count(*), sum(id) from t") == [(ROWS, ROWS * (ROWS + 1) // 2)]
    one.ask("update t set b = 'y' where id = 3")
    assert one.ask("select id from t where b = 'y'") == [(3,)]


def test_the_columns_may_stay_unique(one: SqlClient, database: DevDatabase) -> None:
    one.ask("alter table t drop constraint t_pkey, add unique (id)")
    assert table_t(database).hidden_key
    assert [i.name for i in table_t(database).indexes] == ["t_b", "t_id_key"]
    assert one.code("insert into t values (7, 'twice')") == "23505"
    assert one.ask("select b from t where id = 7") == [("x",)]
    one.ask("create table c (t int references t (id))")
    assert one.code("insert into c values (99)") == "23503"


def test_not_while_foreign_keys_refer_to_it(one: SqlClient) -> None:
    one.ask("create table c (t int references t)")
    assert one.code("alter table t drop constraint t_pkey") == "2BP01"
    one.ask("drop table c")
    one.ask("alter table t drop constraint t_pkey")


def test_writers_go_on_and_nothing_is_lost(one: SqlClient, database: DevDatabase) -> None:
    made: dict[int, list[int]] = {1: [], 2: []}

    def turn(place: int, client: SqlClient) -> None:
        number = 1_000 * place + len(made[place]) + 1
        client.ask(f"begin; insert into t values ({number}, 'w')")
        client.ask(f"update t set b = b || 'w' where id = {number % ROWS + 1}")
        client.ask(f"update t set id = {-number} where id = {-number + 1}")
        if not made[place]:
            client.ask(f"insert into t values ({-number}, 'moves')")
        client.ask(f"delete from t where id = {number - 1}; commit")
        made[place].append(number)

    with writing(database, [partial(turn, place) for place in made]):
        one.ask("alter table t drop constraint t_pkey")
    assert table_t(database).hidden_key
    assert all(made.values()), "writers went on"
    last = [numbers[-1] for numbers in made.values()]
    wanted = sorted((*range(1, ROWS + 1), *last, *(-number for number in last)))
    assert [key for (key,) in one.ask("select id from t order by id")] == wanted
    ((total,),) = one.ask(f"select sum(length(b) - 1) from t where id between 1 and {ROWS}")
    assert total == sum(map(len, made.values()))
