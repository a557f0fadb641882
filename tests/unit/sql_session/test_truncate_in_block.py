"""TRUNCATE between BEGIN and COMMIT: a write like others, of all rows."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from leasehold.dev.database import DevDatabase
from tests.support.sql_session.sql_client import SqlClient, client_of_tables


@pytest.fixture
def one(database: DevDatabase) -> Iterator[SqlClient]:
    with client_of_tables(
        database,
        "create table t (id int primary key, a int); create table h (a int)",
        "insert into t values (1, 10), (2, 20), (3, 30)",
        "insert into h values (1), (1)",
        dropped_by="drop table if exists c, t, h",
    ) as made:
        yield made


ALL = "select id, a from t order by id"


def test_it_is_one_with_what_comes_after(one: SqlClient, other: SqlClient) -> None:
    one.ask("begin; truncate t, h")
    assert one.tags[-1] == "TRUNCATE TABLE"
    assert one.ask(ALL) == []
    one.ask("insert into t values (1, 11), (9, 90); update t set a = a + 1 where id < 5")
    one.ask("insert into h values (7)")
    assert one.ask(ALL) == [(1, 12), (9, 90)]
    assert one.ask("select count(*) from t, h where t.id in (1, 2, 3)") == [(1,)]
    assert other.ask(ALL) == [(1, 10), (2, 20), (3, 30)]
    one.ask("commit")
    assert other.ask(ALL) == [(1, 12), (9, 90)]
    assert other.ask("select * from h") == [(7,)]


@pytest.mark.parametrize("first", ["truncate t", "create table u (id int primary key)"])
def test_begin_may_come_behind_it(one: SqlClient, first: str) -> None:
    """Goal: a transaction that holds leases already holds each of them once; the session went on
    with those of before lost, which no step of a schema change got by."""
    one.ask(f"{first}; begin; savepoint a; update h set a = 2; rollback to a; release a; commit")
    assert one.tags == [*one.tags[:1], "BEGIN", "SAVEPOINT", *one.tags[3:6], "COMMIT"]
    assert one.ask("select a from h") == [(1,), (1,)]
    one.ask(
        "alter table t add column b int; alter table h add column b int; drop table if exists u"
    )
    assert len(one.ask("select b from h")) == 2


def test_it_is_rolled_back_with_the_rest(one: SqlClient) -> None:
    one.ask("begin; insert into t values (4, 40); truncate table t; rollback")
    assert len(one.ask(ALL)) == 3


def test_what_was_written_before_is_gone_too(one: SqlClient) -> None:
    one.ask("begin; insert into t values (4, 40); update t set a = 0; insert into h values (3)")
    one.ask("truncate t; insert into t values (2, 21); commit")
    assert one.ask(ALL) == [(2, 21)]
    assert one.ask("select count(*) from h") == [(3,)]


def test_a_savepoint_brings_the_rows_back(one: SqlClient) -> None:
    one.ask("begin; insert into t values (4, 40); savepoint s; truncate t")
    one.ask("insert into t values (5, 50)")
    assert one.ask(ALL) == [(5, 50)]
    one.ask("rollback to s")
    assert [key for key, _ in one.ask(ALL)] == [1, 2, 3, 4]
    one.ask("insert into t values (6, 60); commit")
    assert [key for key, _ in one.ask(ALL)] == [1, 2, 3, 4, 6]


def test_alone_it_is_committed(one: SqlClient, other: SqlClient) -> None:
    one.ask("begin; truncate t restart identity; commit")
    assert other.ask(ALL) == []
    assert any("nothing to restart" in getattr(r, "message", "") for r in one.reports)


def test_copy_fills_what_was_emptied(one: SqlClient) -> None:
    one.ask("begin; truncate t, h")
    for text, rows in (("t", [(1, 7), (2, 7)]), ("h", [(5,), (5,)])):
        (statement,) = one.session.statements(f"copy {text} from stdin with (freeze on)")
        portal = one.session.bind(one.session.prepare(statement, ()), ())
        assert portal.copy is not None
        portal.copy.take(rows)
        assert portal.fetch(1).tag == "COPY 2"
    one.ask("commit")
    assert one.ask(ALL) == [(1, 7), (2, 7)]
    assert one.ask("select * from h") == [(5,), (5,)]


def test_it_runs_again_after_a_verify_error(one: SqlClient, other: SqlClient) -> None:
    one.ask("begin; truncate h; insert into h values (9); update t set a = a + 1 where id = 1")
    other.ask("update t set a = 100 where id = 1; insert into h values (8)")
    one.ask("commit")
    assert one.ask("select a from t where id = 1") == [(101,)]
    assert one.ask("select * from h") == [(9,)]


def test_copied_rows_run_again_after_a_verify_error(one: SqlClient, other: SqlClient) -> None:
    one.ask("begin; update t set a = a + 1 where id = 1")
    (statement,) = one.session.statements("copy h from stdin")
    portal = one.session.bind(one.session.prepare(statement, ()), ())
    assert portal.copy is not None
    portal.copy.take([(5,), (6,)])
    other.ask("update t set a = 100 where id = 1")
    one.ask("commit")
    assert one.ask("select a from h order by a") == [(1,), (1,), (5,), (6,)]


@pytest.mark.parametrize(
    ("before", "text", "code"),
    [
        ("begin", "truncate nothing", "42P01"),
        ("begin isolation level repeatable read", "truncate t", "0A000"),
        ("begin read only", "truncate t", "25006"),
    ],
)
def test_refused(one: SqlClient, before: str, text: str, code: str) -> None:
    one.ask(before)
    assert one.code(text) == code
    one.ask("rollback")
    assert len(one.ask(ALL)) == 3


def test_refused_while_a_foreign_key_refers_to_it(one: SqlClient) -> None:
    one.ask("create table c (t int references t)")
    one.ask("begin")
    assert one.code("truncate t") == "0A000"
    one.ask("rollback; begin; truncate c, t; insert into t values (1, 1)")
    one.ask("insert into c values (1); commit")
    assert one.ask("select * from c") == [(1,)]
    one.ask("drop table c")
