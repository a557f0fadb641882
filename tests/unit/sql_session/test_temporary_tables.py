"""Temporary tables of SQL sessions: what a replay, a failed COMMIT and other sessions make of
them."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from leasehold.adapters.os.clock import new_request_id
from leasehold.dev.database import DevDatabase
from leasehold.model.records.requests import ChangeRequest
from leasehold.replica.temporary_tables import TemporaryTables
from leasehold.transaction.isolation import Level
from tests.support.sql_session.sql_client import SqlClient, database_with


@pytest.fixture(scope="module")
def database(tmp_path_factory: pytest.TempPathFactory) -> Iterator[DevDatabase]:
    texts = ("create table item (id int primary key, n int check (n < 100))",)
    with database_with(tmp_path_factory, *texts) as made:
        yield made


@pytest.fixture
def one(database: DevDatabase) -> Iterator[SqlClient]:
    made = SqlClient(database, "r1")
    made.ask("insert into item values (1, 1), (2, 2)")
    yield made
    made.session.fail()
    made.ask("rollback")
    made.ask("delete from item")
    made.session.close()


@pytest.fixture
def other(database: DevDatabase) -> Iterator[SqlClient]:
    made = SqlClient(database, "r2")
    yield made
    made.session.close()


def test_a_replay_does_to_them_what_it_did(one: SqlClient, other: SqlClient) -> None:
    """A verify error at COMMIT: the block runs again from where the session's tables were."""
    one.ask("create temp table seen (id int primary key, n int); insert into seen values (9, 0)")
    one.ask("begin")
    one.ask("create temp table more (id int)")
    one.ask("update seen set n = n + 1")
    one.ask("insert into seen values (1, 5)")
    one.ask("update item set n = n + 1 where id = 1")
    one.ask("insert into more values (7)")
    other.ask("update item set n = n + 10 where id = 1")
    one.ask("commit")
    assert one.ask("select * from seen order by id") == [(1, 5), (9, 1)]
    assert one.ask("select * from more") == [(7,)]
    assert one.ask("select n from item where id = 1") == [(12,)]
    one.ask("drop table seen, more")


def test_what_is_refused_at_commit_leaves_them_as_they_were(
    one: SqlClient, other: SqlClient
) -> None:
    one.ask("create temp table seen (id int primary key)")
    one.ask("begin")
    one.ask("insert into seen values (1)")
    one.ask("create temp table more (id int)")
    one.ask("insert into item values (5, 5)")
    other.ask("insert into item values (5, 6)")
    assert one.code("commit") == "23505"
    assert one.ask("select * from seen") == []
    assert one.code("select * from more") == "42P01"
    one.ask("drop table seen")


def test_nobody_else_hears_of_them(one: SqlClient, other: SqlClient, database: DevDatabase) -> None:
    before = database.check()
    one.ask("create temp table mine (id int primary key)")
    one.ask("insert into mine values (1)")
    other.ask("create temp table mine (id int primary key, n int)")
    other.ask("insert into mine values (2, 2)")
    assert one.ask("select * from mine") == [(1,)]
    assert other.ask("select * from mine") == [(2, 2)]
    assert not before.differences
    assert one.ask(
        "select count(*) from pg_tables where schemaname = 'public' and tablename = 'mine'"
    ) == [(0,)]
    one.ask("discard temp")
    other.ask("drop table mine")


@pytest.mark.parametrize("level", [level.value for level in Level])
def test_they_are_read_and_written_at_every_level(one: SqlClient, level: str) -> None:
    """Also where a transaction does not see its own writes of shared tables."""
    one.ask(f"set leasehold.isolation = '{level}'")
    one.ask("create temp table t (id int primary key, n int unique)")
    one.ask("begin")
    one.ask("insert into t values (1, 1), (2, 2)")
    one.ask("update t set n = n + 10 where id = 1")
    one.ask("insert into t select id + 10, n + 100 from item")
    assert one.ask("select id, n from t order by id") == [(1, 11), (2, 2), (11, 101), (12, 102)]
    one.ask("delete from t where id > 10")
    one.ask("update item set n = (select n from t where t.id = 2) where id = 1")
    one.ask("commit")
    assert one.ask("select id, n from t order by id") == [(1, 11), (2, 2)]
    assert one.ask("select n from item where id = 1") == [(2,)]
    one.ask("drop table t")
    one.ask("reset leasehold.isolation")


def test_the_bytes_are_counted(one: SqlClient) -> None:
    """They come to nothing again when the rows are gone, by whatever way."""
    held = one.session._state.temporary
    one.ask("create temp table t (id int primary key, w text)")
    assert held.bytes == 0
    one.ask("insert into t select i, repeat('x', 50) from generate_series(1, 100) i")
    full = held.bytes
    assert full >= 100 * 50
    one.ask("begin; savepoint s; insert into t values (1000, 'x'); rollback to s; commit")
    one.ask("begin; delete from t; rollback")
    assert held.bytes == full
    one.ask("update t set w = '' where id <= 50")
    assert 0 < held.bytes < full
    one.ask("delete from t where id > 50")
    one.ask("truncate t")
    assert (held.bytes, held.rows) == (0, {})
    one.ask("insert into t values (1, 'x')")
    one.ask("drop table t")
    assert (held.bytes, held.rows, held.claims) == (0, {}, {})


def test_keys_are_unique_over_transactions(one: SqlClient) -> None:
    """What was taken back, deleted or changed frees its key."""
    one.ask("create temp table t (id int primary key, a int unique)")
    one.ask("insert into t values (1, 1)")
    assert one.code("insert into t values (2, 1)") == "23505"
    one.ask("begin; insert into t values (2, 2); rollback")
    one.ask("insert into t values (3, 2)")
    one.ask("delete from t where id = 1")
    one.ask("insert into t values (4, 1)")
    one.ask("update t set a = 9 where id = 3")
    one.ask("insert into t values (5, 2)")
    assert one.code("insert into t values (6, 9)") == "23505"
    assert one.ask("select * from t order by id") == [(3, 9), (4, 1), (5, 2)]
    one.ask("drop table t")


def test_two_sessions_of_a_node_have_ids_of_their_own() -> None:
    tables = TemporaryTables(7), TemporaryTables(-7), TemporaryTables(8)
    assert len({each.schema.session for each in tables}) == 3


def test_the_master_makes_none(one: SqlClient) -> None:
    text = "create temp table t (id int primary key)"
    outcome = one.node.submit(ChangeRequest(new_request_id(), sql=text), 10)
    assert outcome.final
    assert outcome.make_error().sqlstate == "0A000"
