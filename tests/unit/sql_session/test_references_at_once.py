"""Foreign keys that are told at the statement: what is left to COMMIT, and why; on a whole database
in this process. How it compares with a PostgreSQL: tests/integration/postgres_compat."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from leasehold.dev.database import DevDatabase
from leasehold.sql_session.reference_check import OWN_ROWS_MAX
from tests.support.sql_session.sql_client import SqlClient

BROKEN = "23503"
FINE = "00000"
FAILED = "25P02"


@pytest.fixture(scope="module")
def database(tmp_path_factory: pytest.TempPathFactory) -> Iterator[DevDatabase]:
    dev = DevDatabase(Path(tmp_path_factory.mktemp("references")))
    dev.wait_ready()
    SqlClient(dev).ask(
        "create table p (id int primary key, u int unique, n int);"
        " create table c (id int primary key, p int references p deferrable, u int references"
        " p (u),"
        " late int references p deferrable initially deferred, n int)"
    )
    yield dev
    dev.close()


@pytest.fixture
def one(database: DevDatabase) -> Iterator[SqlClient]:
    client = SqlClient(database, "r1")
    client.ask("truncate c, p; insert into p values (1, 10, 0), (2, 20, 0)")
    yield client
    client.session.fail()
    client.ask("rollback")
    client.session.close()
    assert not database.check().differences


@pytest.fixture
def other(database: DevDatabase, one: SqlClient) -> Iterator[SqlClient]:
    client = SqlClient(database, "r2")
    yield client
    client.session.close()


def test_a_setting_leaves_all_of_them_to_commit(one: SqlClient) -> None:
    one.ask("set leasehold.foreign_keys = 'at_commit'")
    assert one.code("begin; insert into c values (1, 3); insert into p values (3)") == FINE
    assert one.code("commit") == FINE
    assert one.code("begin; insert into c values (2, 4)") == FINE
    assert one.code("commit") == BROKEN
    one.ask("begin; set constraints c_u_fkey deferred; rollback")
    assert one.code("begin; set constraints all immediate; insert into c values (2, 4)") == BROKEN
    assert one.code("rollback; set leasehold.foreign_keys = 'sometimes'") == "22023"


def test_what_was_made_to_be_deferred_is(one: SqlClient) -> None:
    assert one.code("begin; insert into c (id, late) values (1, 3)") == FINE
    assert one.code("insert into c (id, p) values (2, 3)") == BROKEN
    one.ask("rollback; begin; set constraints all deferred; insert into c (id, p) values (2, 3)")
    assert one.code("insert into c (id, u) values (3, 3)") == BROKEN
    one.ask("rollback")
    assert one.code("begin; set constraints c_u_fkey deferred") == "42809"
    one.ask("rollback; begin; set constraints c_u_fkey immediate; rollback")
    assert one.code("begin; set constraints c_p_fkey deferred; insert into c values (1, 3)") == FINE
    assert one.code("insert into c (id, u) values (2, 3)") == BROKEN


def test_rollback_to_takes_set_constraints_back(one: SqlClient) -> None:
    one.ask("begin; savepoint s; set constraints c_p_fkey deferred; rollback to s")
    assert one.code("insert into c values (1, 3)") == BROKEN
    one.ask("rollback; begin; set constraints c_p_fkey deferred; savepoint s")
    one.ask("set constraints all immediate; rollback to s")
    assert one.code("insert into c values (1, 3)") == FINE


def test_t2_a_replay_leaves_to_commit_what_was_left_to_it(one: SqlClient, other: SqlClient) -> None:
    one.ask("begin; update p set n = 7 where id = 1; set constraints c_p_fkey deferred")
    one.ask("insert into c values (1, 3); insert into p values (3)")
    other.ask("update p set n = n + 5 where id = 1")
    one.ask("commit")
    assert one.ask("select n from p where id = 1") == [(7,)]
    assert one.ask("select p from c") == [(3,)]


def test_t2_a_replay_fails_where_it_failed(one: SqlClient, other: SqlClient) -> None:
    one.ask("begin; update p set n = 7 where id = 1; savepoint s")
    assert one.code("insert into c values (1, 3)") == BROKEN
    one.ask("rollback to s")
    other.ask("update p set n = n + 5 where id = 1")
    one.ask("insert into c values (1, 2); commit")
    assert one.ask("select p from c") == [(2,)]


def test_t3_what_came_since_is_told_otherwise_by_nobody(one: SqlClient, other: SqlClient) -> None:
    """What was refused rests on what was not there: from serializable up that is verified."""
    one.ask("begin isolation level serializable; savepoint s")
    assert one.code("insert into c values (1, 3)") == BROKEN
    one.ask("rollback to s")
    other.ask("insert into p values (3)")
    one.ask("insert into c values (1, 1)")
    assert one.code("commit") == "40001"


def test_t3_so_is_the_row_that_was_in_the_way(one: SqlClient, other: SqlClient) -> None:
    one.ask("insert into c (id, u) values (1, 20)")
    one.ask("begin isolation level serializable; savepoint s")
    assert one.code("delete from p where id = 2") == BROKEN
    one.ask("rollback to s")
    other.ask("delete from c")
    one.ask("insert into c values (2, 1)")
    assert one.code("commit") == "40001"


def test_an_earlier_moment_refers_to_what_is_newest(one: SqlClient, other: SqlClient) -> None:
    one.ask("begin isolation level snapshot; select * from p")
    other.ask("insert into p values (3)")
    assert one.code("insert into c values (1, 3)") == FINE
    assert one.code("commit") == FINE


def test_more_rows_than_are_looked_through_are_left_to_commit(one: SqlClient) -> None:
    """By a primary key a row of the block is found at once; by other columns up to a bound."""
    one.ask(f"begin; insert into p select g, g from generate_series(100, {100 + OWN_ROWS_MAX}) g")
    one.ask("savepoint s")
    assert one.code("insert into c (id, p) values (1, 3)") == BROKEN
    one.ask("rollback to s")
    assert one.code("insert into c (id, u) values (1, 101), (2, 20)") == FINE
    assert one.code("delete from p where id = 2") == FINE
    assert one.code("insert into c (id, u) values (3, 3)") == FINE
    assert one.code("commit") == BROKEN


def test_the_level_without_own_writes_leaves_all_to_commit(one: SqlClient) -> None:
    assert one.code("begin isolation level default; insert into c values (1, 3)") == FINE
    assert one.code("insert into p values (3); commit") == FINE


def test_after_an_error_the_block_has_failed(one: SqlClient) -> None:
    assert one.code("begin; insert into c values (1, 3)") == BROKEN
    assert one.code("insert into p values (3)") == FAILED
    one.ask("rollback")
    assert one.ask("select count(*) from c") == [(0,)]


@pytest.mark.parametrize(
    "first",
    [
        "delete from hull where id = 1",
        "update hull set id = id + 10 where id = 1",
    ],
)
def test_what_the_first_statement_of_a_text_takes_along_is_free_behind_it(
    one: SqlClient, first: str
) -> None:
    """Nothing is told of the first one alone before COMMIT, but what it takes away counts."""
    one.ask(
        "create table hull (id int primary key);"
        " create table plank (hull int primary key references hull on delete cascade"
        " on update cascade, code text unique);"
        " create table nail (id int primary key, plank int references plank)"
    )
    try:
        one.ask("insert into hull values (1), (2); insert into plank values (1, 'p')")
        if first.startswith("delete"):
            assert one.code(f"{first}; insert into plank values (2, 'p')") == FINE
            assert one.ask("select * from plank") == [(2, "p")]
        else:
            assert one.code(f"{first}; insert into nail values (1, 11)") == FINE
            assert one.ask("select * from nail") == [(1, 11)]
    finally:
        one.session.fail()
        one.ask("rollback; drop table nail, plank, hull")
