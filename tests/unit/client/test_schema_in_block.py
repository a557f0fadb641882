"""Schema changes between BEGIN and COMMIT: one request with the rows, or nothing."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from leasehold.client.dev import DevDatabase
from leasehold.sql.ddl import STATEMENTS_MAX
from tests.unit.client.sql_client import SqlClient


@pytest.fixture(scope="module")
def database(tmp_path_factory: pytest.TempPathFactory) -> Iterator[DevDatabase]:
    dev = DevDatabase(Path(tmp_path_factory.mktemp("blocks")))
    dev.wait_ready()
    yield dev
    dev.close()


@pytest.fixture
def one(database: DevDatabase) -> Iterator[SqlClient]:
    made = SqlClient(database)
    made.ask("create table old (id int primary key, a int); insert into old values (1, 10)")
    yield made
    assert not database.check().differences
    made.session.fail()
    made.ask("rollback; drop table if exists child, n; drop table if exists m, old")
    made.session.close()


@pytest.fixture
def other(database: DevDatabase) -> Iterator[SqlClient]:
    made = SqlClient(database, "r2")
    yield made
    made.session.close()


def test_tables_and_rows_are_one_commit(one: SqlClient, other: SqlClient) -> None:
    one.ask("begin; create table n (id int primary key, t text default 'x', o int references old)")
    assert one.tags[-1] == "CREATE TABLE"
    one.ask("create index n_t on n (t); create unique index on n (o)")
    assert one.ask("select * from n") == []
    one.ask("insert into n values (1, 'a', 1), (2, 'b', null); insert into n (id) values (3)")
    one.ask("update n set t = t || '!' where id = 2; delete from n where t = 'a'")
    one.ask("update old set a = 11")
    assert one.ask("select id, t from n where t > 'a' order by t") == [(2, "b!"), (3, "x")]
    assert one.ask("selectv id from n where t = 'x'") == [(3,)]
    assert "n" in str(one.ask("explain select id from n where t = 'x'"))
    assert one.ask("insert into n values (3) on conflict do nothing returning id") == []
    assert one.ask("select n.id, old.a from n left join old on old.id = n.o where n.id = 3") == [
        (3, None)
    ]
    assert other.code("select * from n") == "42P01"
    assert other.ask("select a from old") == [(10,)]
    one.ask("commit")
    assert other.ask("select id, t from n order by t") == [(2, "b!"), (3, "x")]
    assert other.ask("select a from old") == [(11,)]
    assert any("n_t" in line for (line,) in other.ask("explain select id from n where t = 'x'"))
    assert one.code("insert into n values (9, 'x', 77)") == "23503"


def test_rollback_forgets_it(one: SqlClient, other: SqlClient) -> None:
    one.ask("begin; create table n (id int primary key); insert into n values (1); rollback")
    assert one.code("select * from n") == "42P01"
    one.ask("create table n (a text)")
    assert other.ask("select a from n") == []


def test_a_savepoint_brings_back_what_was_there(one: SqlClient) -> None:
    one.ask("begin; create table n (id int primary key); insert into n values (1); savepoint s")
    one.ask("create table m (a text); insert into m values ('x'); insert into n values (2)")
    one.ask("drop table old")
    assert one.code("select * from old") == "42P01"
    one.ask("rollback to s")
    assert one.code("select * from m") == "42P01"
    one.ask("rollback to s; create table m (b int, c int); insert into m values (4, 5)")
    assert one.ask("select * from m") == [(4, 5)]
    assert one.ask("select * from old") == [(1, 10)]
    one.ask("commit")
    assert one.ask("select * from n") == [(1,)]
    assert one.ask("select * from m") == [(4, 5)]
    assert one.ask("select * from old") == [(1, 10)]


def test_the_catalog_tables_show_it(one: SqlClient, other: SqlClient) -> None:
    seen = "select count(*) from pg_class where relname in ('n', 'old') and relkind = 'r'"
    one.ask("begin; create table n (id int primary key, a text)")
    assert one.ask(seen) == [(2,)]
    assert other.ask(seen) == [(1,)]
    columns = "select column_name from information_schema.columns where table_name = 'n'"
    assert sorted(one.ask(columns)) == [("a",), ("id",)]
    one.ask("drop table old")
    assert one.ask(seen) == [(1,)]
    one.ask("commit")
    assert other.ask(seen) == [(1,)]


def test_a_table_goes_with_the_rest(one: SqlClient, other: SqlClient) -> None:
    """What was written to it goes, too, and its name is free when COMMIT is answered."""
    one.ask("begin; insert into old values (2, 20); create table n (id int)")
    one.ask("insert into n select id from old; drop table old")
    assert one.code("commit") == "00000"
    assert other.ask("select id from n order by id") == [(1,), (2,)]
    one.ask("create table old (b text)")
    assert other.ask("select b from old") == []


def test_copy_fills_what_was_made(one: SqlClient) -> None:
    one.ask("begin; create table n (a int, b text)")
    (statement,) = one.session.statements("copy n from stdin")
    portal = one.session.bind(one.session.prepare(statement, ()), ())
    assert portal.copy is not None
    portal.copy.take([(5, "x"), (5, "x")])
    assert portal.fetch(1).tag == "COPY 2"
    one.ask("commit")
    assert one.ask("select * from n") == [(5, "x"), (5, "x")]


def test_it_runs_again_after_a_verify_error(one: SqlClient, other: SqlClient) -> None:
    one.ask("begin; create table n (a int); update old set a = a + 1 where id = 1; savepoint s")
    one.ask("create table m (a int); rollback to s; insert into n values (7)")
    other.ask("update old set a = 100 where id = 1")
    one.ask("commit")
    assert other.ask("select a from old") == [(101,)]
    assert other.ask("select a from n") == [(7,)]
    assert other.code("select * from m") == "42P01"


def test_who_is_late_is_refused_whole(one: SqlClient, other: SqlClient) -> None:
    one.ask("begin; create table n (id int); insert into n values (1); update old set a = 0")
    other.ask("create table n (t text)")
    assert one.code("commit") == "42P07"
    assert other.ask("select a from old") == [(10,)]
    assert other.ask("select t from n") == []


def test_a_table_that_others_make_meanwhile_is_another_one(
    one: SqlClient, other: SqlClient
) -> None:
    one.ask("begin; create table n (id int primary key); insert into n values (1)")
    other.ask("create table m (id int primary key); insert into m values (1), (2)")
    assert one.ask("select (select count(*) from n), (select count(*) from m)") == [(1, 2)]
    one.ask("insert into m values (3); commit")
    assert other.ask("select (select count(*) from n), (select count(*) from m)") == [(1, 3)]


def test_what_is_there_and_what_is_not_is_noticed(one: SqlClient) -> None:
    one.ask("begin; create table if not exists old (x int); drop table if exists nothing")
    words = [getattr(report, "message", "") for report in one.reports]
    assert sum("nothing was done" in each for each in words) == 2
    assert one.ask("select a from old") == [(10,)]
    one.ask("drop table old; drop table if exists old; commit")
    assert one.code("select * from old") == "42P01"
    one.ask("create table old (other text)")


def test_truncating_and_altering_what_was_made(one: SqlClient) -> None:
    one.ask("begin; create table n (a int); alter table n add column b int default 5")
    one.ask("insert into n values (1), (2); truncate n, old; insert into n values (3)")
    assert one.ask("select * from n") == [(3, 5)]
    assert one.ask("select * from old") == []
    one.ask("commit")
    assert one.ask("select * from n") == [(3, 5)]
    assert one.ask("select * from old") == []


@pytest.mark.parametrize(
    ("before", "text", "code"),
    [
        ("begin", "create table old (a int)", "42P07"),
        ("begin; create table n (a int)", "create table n (a int)", "42P07"),
        ("begin", "create index on nothing (a)", "42P01"),
        ("begin; create table n (a int)", "create index on n (b)", "42703"),
        ("begin", "create table n (a int, a int)", "42701"),
        ("begin", "drop table nothing", "42P01"),
        ("begin; drop table old", "drop table old", "42P01"),
        ("begin; drop table old", "insert into old values (5, 5)", "42P01"),
        ("begin; drop table old", "create table old (a int)", "0A000"),
        ("begin", "alter table old add column b int", "0A000"),
        ("begin", "create index on old (a)", "0A000"),
        ("begin; create table n (a int)", "drop table n", "0A000"),
        (
            "begin; create table n (a int); insert into n values (1)",
            "alter table n add b int",
            "0A000",
        ),
        ("begin isolation level repeatable read", "create table n (a int)", "0A000"),
        ("begin isolation level serializable", "create table n (a int)", "0A000"),
        ("begin read only", "create table n (a int)", "25006"),
        (
            "begin; create table n (a int primary key); insert into n values (1)",
            "insert into n values (1)",
            "23505",
        ),
    ],
)
def test_refused_at_the_statement(one: SqlClient, before: str, text: str, code: str) -> None:
    one.ask(before)
    assert one.code(text) == code
    one.ask("rollback")
    assert one.ask("select * from old") == [(1, 10)]
    assert one.code("select * from n") == "42P01"


def test_a_parent_goes_after_its_child(one: SqlClient) -> None:
    one.ask("create table child (o int references old)")
    one.ask("begin")
    assert one.code("drop table old") == "2BP01"
    one.ask("rollback; begin; drop table child")
    assert one.code("drop table old") == "0A000"
    one.ask("rollback; begin; drop table child; commit; begin; drop table old; commit")
    assert one.code("select * from old") == "42P01"


def test_more_than_a_request_takes(one: SqlClient) -> None:
    one.ask("begin; create table n (a int)")
    for number in range(2, STATEMENTS_MAX):
        one.ask(f"alter table n alter column a set default {number}")
    assert one.code("alter table n alter column a set default 0") == "54000"
    one.ask("rollback")


def test_a_result_names_its_table_as_the_catalog_does(one: SqlClient) -> None:
    one.ask("begin; create table n (id int primary key)")
    for table in ("n", "old"):
        (statement,) = one.session.statements(f"select id from {table}")
        columns = one.session.prepare(statement, ()).columns
        assert columns is not None
        assert one.ask(f"select oid from pg_class where relname = '{table}'") == [
            (columns[0].table,)
        ]


def test_what_still_goes_on_after_the_commit_is_told(
    database: DevDatabase, one: SqlClient, other: SqlClient
) -> None:
    """A reader elsewhere has the table in its block; COMMIT has committed all the same."""
    other.ask("begin; select * from old")
    one.ask("begin; create table n (a int); drop table old; set local statement_timeout = 300")
    one.ask("commit")
    assert one.tags == ["COMMIT"]
    assert any("goes on" in getattr(report, "message", "") for report in one.reports)
    assert one.ask("select * from n") == []
    assert one.code("create table old (a int)") == "42P07"
    other.ask("rollback")
    node = database.sql_node("r1")
    assert node.wait(lambda: all(job.status.ended for job in node.jobs().values()), 30)
