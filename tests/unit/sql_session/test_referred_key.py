"""Another primary key for a table that foreign keys refer to, its own and another table's, under
writers of both, on a whole database in this process."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

import pytest

from leasehold.dev.database import DevDatabase
from tests.support.sql_session.sql_client import SqlClient, client_of_tables
from tests.support.sql_session.writers import writing

ROWS = 20
CHANGE = "alter table t drop constraint t_pkey, add primary key (k), add unique (id)"


@pytest.fixture
def one(database: DevDatabase) -> Iterator[SqlClient]:
    acts = "on delete cascade on update cascade"
    with client_of_tables(
        database,
        "create table t (id int primary key, k int not null, up int references t)",
        f"create table c (id int primary key, t int references t {acts})",
        f"insert into t select g, 100 + g, 1 from generate_series(1, {ROWS}) g",
        f"insert into c select g, g from generate_series(1, {ROWS}) g",
        dropped_by="drop table c, t",
    ) as made:
        yield made


def refers(one: SqlClient, table: str) -> list[tuple[object, ...]]:
    return one.ask(
        "select conname, confrelid::regclass::text, confkey from pg_constraint"
        f" where conrelid = '{table}'::regclass and contype = 'f'"
    )


@pytest.mark.parametrize(
    "change", [CHANGE, "alter table t drop constraint t_pkey, add unique (id)"]
)
def test_foreign_keys_act_as_before(one: SqlClient, change: str) -> None:
    own, child = refers(one, "t"), refers(one, "c")
    one.ask(change)
    assert (refers(one, "t"), refers(one, "c")) == (own, child)
    assert one.code("insert into c values (99, 99)") == "23503"
    assert one.code("insert into t values (50, 150, 99)") == "23503"
    assert one.code("delete from t where id = 1") == "23503"  # others refer to it
    one.ask("delete from t where id = 7; update t set id = 88 where id = 8")
    assert one.ask("select id, t from c where id in (7, 8)") == [(8, 88)]
    assert one.code("alter table t drop constraint t_id_key") == "2BP01"
    assert one.code("truncate t") == "0A000"
    one.ask("truncate t, c")


def test_what_is_referred_to_stays_unique(one: SqlClient) -> None:
    assert one.code("alter table t drop constraint t_pkey, add primary key (k)") == "2BP01"
    assert one.code("alter table t drop constraint t_pkey") == "2BP01"
    one.ask("alter table t add constraint ids unique (id)")
    one.ask("alter table t drop constraint t_pkey, add primary key (k)")
    assert one.code("alter table t drop constraint ids") == "2BP01"
    one.ask("alter table t drop constraint t_pkey, add primary key (id)")
    assert one.code("insert into c values (99, 99)") == "23503"


def test_a_key_that_fails_leaves_all_as_it_was(one: SqlClient) -> None:
    own, child = refers(one, "t"), refers(one, "c")
    one.ask("update t set k = 105 where id = 6")
    assert one.code(CHANGE) == "23505"
    assert (refers(one, "t"), refers(one, "c")) == (own, child)
    one.ask("delete from t where id = 7")
    assert one.ask("select count(*) from c") == [(ROWS - 1,)]
    one.ask("alter table c add column x int")


def test_writers_of_both_go_on(one: SqlClient, database: DevDatabase) -> None:
    made = [0, 0, 0, 0]

    def number(place: int) -> int:
        return 1_000 * (place + 1) + made[place]

    def family(place: int, client: SqlClient) -> None:
        """A parent with its child; then both go, by the parent alone."""
        key = number(place)
        client.ask(f"begin; insert into t values ({key}, {key}, 1)")
        client.ask(f"insert into c values ({key}, {key}); commit")
        client.ask(f"update t set id = -id where id = {key}")
        client.ask(f"delete from t where id = {-key}")
        made[place] += 1

    def orphan(client: SqlClient) -> None:
        key = number(2)
        assert client.code(f"insert into c values ({key}, 99)") == "23503"
        client.ask(f"insert into c values ({key}, {key % ROWS + 1})")
        made[2] += 1

    def referred(client: SqlClient) -> None:
        assert client.code("delete from t where id = 1") == "23503"
        made[3] += 1

    def none_left(place: int, client: SqlClient) -> None:
        client.ask(f"delete from t where id in ({number(place)}, {-number(place)})")

    with writing(database, [partial(family, 0), partial(family, 1), orphan, referred], none_left):
        one.ask(CHANGE)
    assert all(made), "writers went on"
    assert one.ask("select count(*) from t") == [(ROWS,)]
    assert one.ask("select count(*) from c") == [(ROWS + made[2],)]
