"""Goal: what begins a sequence anew in a transaction counts in the order in which it was said, and
is gone when it is taken back; who may not write draws nothing.

Method: a session of a database in this process. The answers are those of PostgreSQL's manual.
"""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from leasehold.dev.database import DevDatabase
from tests.support.sql_session.sql_client import SqlClient, client_of_tables

ROW = "insert into t (v) values ('x') returning id"


@pytest.fixture
def one(database: DevDatabase) -> Iterator[SqlClient]:
    with client_of_tables(
        database,
        "create table t (id serial primary key, v text); create sequence s",
        "insert into t (v) values ('a'), ('b')",
        dropped_by="drop table if exists t; drop sequence if exists s",
    ) as made:
        yield made


def test_the_last_restart_counts(one: SqlClient) -> None:
    anew, at = "truncate t restart identity", "alter sequence t_id_seq restart with 77"
    assert one.ask(f"begin; {anew}; {at}; {ROW}") == [(77,)]
    assert one.ask(f"{anew}; {ROW}") == [(1,)]
    assert one.ask(f"{at}; {ROW}; commit; {ROW}") == [(78,)]
    one.ask(f"begin; truncate t; alter sequence t_id_seq restart; {ROW}")
    assert one.ask(f"{anew}; {ROW}; commit; {ROW}") == [(2,)]


@pytest.mark.parametrize(
    "anew", ["truncate t restart identity", "truncate t; alter sequence t_id_seq restart"]
)
def test_a_restart_after_one_that_was_taken_back(one: SqlClient, anew: str) -> None:
    assert one.ask(f"begin; savepoint a; {anew}; {ROW}; {ROW}") == [(2,)]
    assert one.ask(f"rollback to a; {anew}; {ROW}") == [(1,)]
    assert one.ask(f"commit; {ROW}") == [(2,)]


def test_a_sequence_that_is_made_anew_after_it_was_taken_back(one: SqlClient) -> None:
    made = "create sequence q; select nextval('q')"
    assert one.ask(f"begin; savepoint a; {made}; rollback to a; {made}") == [(1,)]
    assert one.ask("savepoint b; select nextval('q'); rollback to b; select nextval('q')") == [(3,)]
    assert one.ask("commit; select nextval('q')") == [(4,)]
    one.ask("drop sequence q")


def test_a_long_position_of_order_by(one: SqlClient) -> None:
    assert one.code(f"select 1 order by {'9' * 5_000}") == "42P10"


@pytest.mark.parametrize("draws", ["select nextval('s')", "select setval('s', 5)"])
def test_who_may_not_write_draws_nothing(one: SqlClient, draws: str) -> None:
    one.ask("select nextval('s')")
    assert one.code(f"begin read only; {draws}") == "25006"
    one.ask("rollback; begin read only; select currval('s'), lastval(), * from s; rollback")
    assert one.ask("select nextval('s')") == [(2,)]
    one.ask("set default_transaction_read_only = on")
    assert one.code(draws) == "25006"
    one.ask("set default_transaction_read_only = off")
    one.ask(f"begin; {draws}; set transaction read only; commit")


def test_what_begins_anew_and_goes_again(one: SqlClient) -> None:
    one.ask("begin; truncate t restart identity; drop table t; commit")
    assert one.code("select nextval('t_id_seq')") == "42P01"
    one.ask("begin; create sequence q; alter sequence q restart with 7; drop sequence q; commit")
    one.ask("create sequence q; alter sequence q restart with 7; drop sequence q")
    one.ask("begin; create table u (id serial); alter sequence u_id_seq restart; drop table u")
    one.ask("commit")
