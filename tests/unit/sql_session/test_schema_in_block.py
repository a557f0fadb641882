"""Schema changes between BEGIN and COMMIT: one request with the rows, or nothing."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest

from leasehold.catalog.job import Phase
from leasehold.dev.database import DevDatabase
from leasehold.model.errors import OutcomeUnknown, StoreUnwritable
from leasehold.pgwire.session import Notice
from leasehold.sql.ddl.schema_statements import STATEMENTS_MAX
from tests.support.sql_session.sql_client import SqlClient, client_of_tables, database_with


@pytest.fixture(scope="module")
def database(tmp_path_factory: pytest.TempPathFactory) -> Iterator[DevDatabase]:
    with database_with(
        tmp_path_factory,
        "create table mark (a int)",
    ) as made:
        yield made


class Other(SqlClient):
    """On another node, whose agent may not have leased yet what was made a moment ago: then a drop
    does not wait for it."""

    def follow(self, leader: SqlClient) -> None:
        """Who was answered has been heard here, too, and all that stood in the log before."""
        leader.ask("insert into mark values (1)")


@pytest.fixture
def one(database: DevDatabase) -> Iterator[SqlClient]:
    with client_of_tables(
        database,
        "create table old (id int primary key, a int); insert into old values (1, 10)",
        dropped_by="drop table if exists child, n; drop table if exists m, old",
    ) as made:
        yield made


@pytest.fixture
def other(database: DevDatabase) -> Iterator[Other]:
    made = Other(database, "r2")
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
        ("begin; create table n (a int); drop table n", "select * from n", "42P01"),
        (
            "begin; create table n (a int); insert into n values (1)",
            "alter table n alter a type text",
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


def test_a_parent_goes_with_its_child(one: SqlClient, other: Other) -> None:
    one.ask("create table child (o int references old); insert into child values (1)")
    one.ask("begin")
    assert one.code("drop table old") == "2BP01"
    one.ask("rollback; begin; drop table child; drop table old; savepoint s")
    assert one.code("select * from child") == "42P01"
    one.ask("rollback to s")
    assert other.ask("select * from child") == [(1,)]
    one.ask("commit")
    other.follow(one)
    assert other.code("select * from old") == other.code("select * from child") == "42P01"


def test_tables_that_refer_to_each_other_go_in_one_block(one: SqlClient, other: Other) -> None:
    """As SQLAlchemy's drop_all has it: first the foreign keys of a circle, then its tables."""
    one.ask("create table n (id int primary key, o int references old)")
    one.ask("alter table old add constraint f foreign key (a) references n not valid")
    one.ask("begin; alter table old drop constraint f; drop table n; drop table old; commit")
    other.follow(one)
    assert other.code("select * from old") == other.code("select * from n") == "42P01"
    assert one.ask("select count(*) from pg_constraint where conname = 'f'") == [(0,)]


def test_a_foreign_key_goes_in_a_block(one: SqlClient, other: Other) -> None:
    one.ask("create table n (id int primary key, o int constraint f references old)")
    shown = "select count(*) from pg_constraint where conname = 'f'"
    one.ask("begin; alter table n drop constraint f")
    assert (one.ask(shown), other.ask(shown)) == ([(0,)], [(1,)])
    assert one.code("alter table n drop constraint f") == "42704"
    one.ask("rollback")
    assert one.ask(shown) == [(1,)]
    one.ask("begin; alter table n drop constraint f; commit")
    other.follow(one)
    assert other.ask(shown) == [(0,)]
    other.ask("insert into n values (1, 77)")


def test_cascade_takes_foreign_keys_of_others(one: SqlClient, other: Other) -> None:
    one.ask("create table child (o int references old); insert into child values (1)")
    one.ask("begin; drop table old cascade; commit")
    words = [getattr(report, "message", "") for report in one.reports]
    assert any("cascades to constraint child_o_fkey on table child" in each for each in words)
    other.follow(one)
    other.ask("insert into child values (77)")
    assert other.ask("select * from child order by o") == [(1,), (77,)]
    one.ask("create table old (id int primary key); create table n (o int references old)")
    one.ask("drop table old cascade; insert into n values (5)")


def test_a_name_is_given_anew(one: SqlClient, other: Other) -> None:
    """As pandas' if_exists="replace" has it. Others see the old one or the new one."""
    one.ask("create index old_a on old (a)")
    one.ask("begin; insert into old values (2, 20); drop table old")
    one.ask("create table old (k text primary key, o int); create index old_a on old (o)")
    assert one.ask("select * from old") == []
    one.ask("insert into old values ('x', 1), ('y', 2)")
    assert one.ask("select * from old where k > 'x'") == [("y", 2)]
    assert other.ask("select id, a from old") == [(1, 10)]
    one.ask("commit")
    other.follow(one)
    for each in (one, other):
        assert each.ask("select k, o from old order by k") == [("x", 1), ("y", 2)]
        assert any("old_a" in line for (line,) in each.ask("explain select k from old where o = 1"))
    other.ask("update old set o = o + 1 where k = 'y'; insert into old values ('z', 3)")
    assert one.ask("select o from old order by k") == [(1,), (3,), (3,)]
    one.ask("begin; drop table old; create table old (id int primary key); commit")
    other.follow(one)
    assert other.ask("select id from old") == []


def test_a_name_is_given_anew_more_than_once(one: SqlClient, other: Other) -> None:
    one.ask("begin; drop table old; create table old (k int); insert into old values (1)")
    one.ask("savepoint s; drop table old; create table old (k text); insert into old values ('x')")
    assert one.ask("select * from old") == [("x",)]
    one.ask("rollback to s")
    assert one.ask("select * from old") == [(1,)]
    one.ask("drop table old; create table old (z text); insert into old values ('z'); commit")
    other.follow(one)
    assert other.ask("select z from old") == [("z",)]


def test_a_table_takes_the_name_of_one_that_goes(one: SqlClient, other: Other) -> None:
    one.ask("begin; create table n (b text); drop table old; alter table n rename to old")
    one.ask("insert into old values ('b'); commit")
    other.follow(one)
    assert other.ask("select b from old") == [("b",)]
    assert other.code("select * from n") == "42P01"


def test_readers_of_the_old_one_go_on_with_it(
    database: DevDatabase, one: SqlClient, other: Other
) -> None:
    other.ask("begin; select * from old")
    one.ask("begin; drop table old; create table old (id int primary key, z text)")
    one.ask("insert into old values (5, 'z'); set local statement_timeout = 300; commit")
    assert any("goes on" in getattr(report, "message", "") for report in one.reports)
    node = database.sql_node("r1")
    (job,) = (job for job in node.jobs().values() if not job.status.ended)
    assert node.wait(lambda: node.jobs()[job.job_id].phase is Phase.DRAINING, 30)
    assert node.wait(node.is_settled, 30)
    assert one.ask("select * from old") == [(5, "z")]
    assert other.ask("select * from old") == [(1, 10)]
    assert one.code("alter table old add column y int") == "55006"
    assert one.code(f"select leasehold.cancel_job({job.job_id})") == "55000"
    other.ask("rollback")
    assert node.wait(lambda: all(job.status.ended for job in node.jobs().values()), 30)
    other.follow(one)
    assert other.ask("select * from old") == [(5, "z")]


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
    database: DevDatabase, one: SqlClient, other: Other
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


class Stops:
    """The session's node, which has stopped by itself once a request of its own was answered."""

    def __init__(self, node: Any) -> None:
        self._node = node
        self.stopped = False

    def __getattr__(self, name: str) -> Any:
        return getattr(self._node, name)

    def _runs(self) -> None:
        if self.stopped:
            raise StoreUnwritable("its disk is full")

    def submit(self, *asked: Any) -> Any:
        outcome = self._node.submit(*asked)
        self.stopped = bool(outcome.lsn)
        return outcome

    def wait(self, met: Callable[[], bool], timeout_s: float) -> bool:
        self._runs()
        return bool(self._node.wait(met, timeout_s))

    def single_read(self, **said: Any) -> Any:
        self._runs()
        return self._node.single_read(**said)

    def goes_on(self) -> None:
        """Its jobs came to their ends all the same."""
        jobs = self._node.jobs
        assert self._node.wait(lambda: all(job.status.ended for job in jobs().values()), 10.0)


@pytest.mark.parametrize(
    "work",
    [
        "drop table old",
        "create table n (id serial primary key, a int); insert into n (a) values (1)",
    ],
)
def test_t5_a_commit_that_is_answered_is_no_error_when_its_node_stops_then(
    one: SqlClient, work: str
) -> None:
    """58030 is definite: who is told so commits it once more."""
    one.ask(f"begin; {work}")
    node = Stops(one.session._state.node)
    one.session._state.node = node
    one.reports.clear()
    one.ask("commit")
    assert node.stopped
    if "drop" in work:
        (notice,) = (r for r in one.reports if isinstance(r, Notice))
        assert notice.sqlstate == "01000"
        assert "the transaction is committed" in notice.message
        assert "its disk is full" in notice.message
    one.session._state.node = node._node
    node.goes_on()


def test_t5_a_schema_change_that_was_begun_is_no_failure_when_its_node_stops(
    one: SqlClient,
) -> None:
    node = Stops(one.session._changes._node)
    one.session._changes._node = node
    with pytest.raises(OutcomeUnknown, match=r"was begun and goes on.*its disk is full"):
        one.ask("alter table old add column b int default 7 not null")
    one.session._changes._node = node._node
    one.session.fail()
    node.goes_on()


def test_rows_follow_the_key_that_their_table_gets(one: SqlClient, other: SqlClient) -> None:
    """They are found by it, written by it, and are inserts of it for the master."""
    one.ask("begin; create table n (id int, t text default 'x', at timestamptz default now())")
    one.ask("insert into n values (2, 'b'), (1, 'a'), (3, 'c'), (7, 'g')")
    one.ask("update n set t = t || '!' where id = 2; delete from n where id = 3")
    one.ask("alter table n add constraint n_key primary key (id); create index n_t on n (t)")
    assert one.ask("select id, t from n order by id") == [(1, "a"), (2, "b!"), (7, "g")]
    assert one.ask("select t from n where id = 7") == [("g",)]
    one.ask("update n set t = 'h' where id = 7; update n set id = 8 where id = 1")
    one.ask("insert into n values (9) on conflict (id) do nothing; delete from n where id = 2")
    assert one.code("savepoint s; insert into n values (8)") == "23505"
    one.ask("rollback to s; commit")
    assert other.ask("select id, t, at is null from n order by id") == [
        (7, "h", False),
        (8, "a", False),
        (9, "x", False),
    ]
    assert other.code("insert into n values (9)") == "23505"
    one.ask("drop table n")


def test_a_savepoint_takes_the_key_back(one: SqlClient, other: SqlClient) -> None:
    one.ask("begin; create table n (id int, t text); insert into n values (1, 'a')")
    one.ask("savepoint s; alter table n add primary key (id); insert into n values (2, 'b')")
    one.ask("update n set t = 'c' where id = 1; rollback to s; insert into n values (1, 'd')")
    assert one.ask("select * from n order by t") == [(1, "a"), (1, "d")]
    one.ask("alter table n add primary key (t); commit")
    assert other.ask("select * from n order by t") == [(1, "a"), (1, "d")]
    one.ask("drop table n")


@pytest.mark.parametrize(
    ("rows", "code"),
    [
        ("(1, 'a'), (1, 'b')", "23505"),
        ("(null, 'a')", "23502"),
        ("(1, 'a'); update n set at = default", "00000"),
    ],
)
def test_rows_in_the_way_of_the_key_are_told_at_once(one: SqlClient, rows: str, code: str) -> None:
    one.ask("begin; create table n (id int, t text, at timestamptz default now())")
    one.ask(f"insert into n values {rows}; savepoint s")
    assert one.code("alter table n add primary key (id)") == code
    if code == "00000":
        one.ask("commit; drop table n")
        return
    one.ask("rollback to s; delete from n where t = 'a'; insert into n values (2, 'c')")
    assert one.code("alter table n add primary key (id)") == "00000"
    one.ask("commit; drop table n")


def test_a_new_table_gets_a_new_column_for_its_key(one: SqlClient) -> None:
    one.ask("begin; create table n (t text)")
    one.ask("alter table n add column id serial constraint n_pk primary key")
    one.ask("insert into n values ('a'), ('b'); commit")
    assert one.ask("select * from n order by id") == [("a", 1), ("b", 2)]
    one.ask("drop table n")
