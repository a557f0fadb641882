"""Changes of tables that were there, between BEGIN and COMMIT: all of it, with the rows, or
nothing."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from leasehold.adapters.sqlite.snapshot import SqliteSnapshot
from leasehold.catalog.catalog import Catalog
from leasehold.catalog.job import Hold, Status
from leasehold.dev.database import DevDatabase
from leasehold.model.errors import FeatureNotSupported, LeaseholdError, QueryCanceled
from tests.support.sql_session.sql_client import SqlClient, client_of_tables, database_with

COLUMNS = (
    "select column_name from information_schema.columns where table_name = 'old'"
    " order by ordinal_position"
)


@pytest.fixture(scope="module")
def database(tmp_path_factory: pytest.TempPathFactory) -> Iterator[DevDatabase]:
    with database_with(tmp_path_factory, "create table mark (a int)") as made:
        yield made


@pytest.fixture
def one(database: DevDatabase) -> Iterator[SqlClient]:
    with client_of_tables(
        database,
        "create table old (id int primary key, a int, b text);"
        " insert into old values (1, 10, 'x'), (2, 10, 'y')",
        "create table other_one (id int primary key, v int); insert into other_one values (7, 70)",
        dropped_by="drop table if exists old, fresh, n, other_one cascade",
    ) as made:
        yield made


@pytest.fixture
def other(database: DevDatabase) -> Iterator[SqlClient]:
    made = SqlClient(database, "r2")
    yield made
    made.session.close()


def jobs(client: SqlClient) -> list[Any]:
    return [job for job in client.node.jobs().values() if not job.status.ended]


def test_the_order_of_a_migration_tool(one: SqlClient, other: SqlClient) -> None:
    """As Alembic, Django, Flyway and goose have it."""
    one.ask("begin; create table n (id serial primary key, t text)")
    one.ask("alter table old add column n_id int; create index old_n_id on old (n_id)")
    one.ask("alter table old add constraint old_n foreign key (n_id) references n (id)")
    one.ask("alter table other_one add constraint v_unique unique (v)")
    one.ask("alter table other_one add constraint v_check check (v > 0)")
    one.ask("insert into n (t) values ('first'); update old set n_id = 1 where id = 2")
    one.ask("insert into mark values (1)")
    assert one.ask("select o.id, n.t from old o left join n on n.id = o.n_id order by 1") == [
        (1, None),
        (2, "first"),
    ]
    assert other.code("select n_id from old") == "42703"
    assert other.code("select * from n") == "42P01"
    one.ask("commit")
    assert one.tags == ["COMMIT"]
    assert jobs(one) == []
    assert other.ask("select id, n_id from old order by id") == [(1, None), (2, 1)]
    assert other.ask("select * from n") == [(1, "first")]
    assert other.code("update old set n_id = 9") == "23503"
    assert other.code("insert into other_one values (8, 70)") == "23505"
    assert other.code("insert into other_one values (8, 0)") == "23514"
    assert any(
        "old_n_id" in line for (line,) in other.ask("explain select * from old where n_id = 1")
    )


@pytest.mark.parametrize(
    ("said", "asked", "rows"),
    [
        (
            "alter table old add column c int",
            "select * from old where id = 1",
            [(1, 10, "x", None)],
        ),
        ("alter table old add c int default 5", "select c from old where c = 5", [(5,), (5,)]),
        (
            "alter table old add c text not null default 'q'; alter table old alter c drop default",
            "select id from old where c = 'q' order by id",
            [(1,), (2,)],
        ),
        ("alter table old rename a to z", "select z from old where id = 1", [(10,)]),
        ("alter table old rename to fresh", "select a from fresh where id = 1", [(10,)]),
        ("alter table old drop column b", "select * from old where id = 2", [(2, 10)]),
        (
            "alter table old add c int; update old set c = a + id",
            "select c from old order by c desc",
            [(12,), (11,)],
        ),
        (
            "alter table old alter a set default 3; insert into old (id) values (3)",
            "select a, b from old where id = 3",
            [(3, None)],
        ),
        (
            "update old set a = 11 where id = 1; alter table old add c int default 4",
            "select a, c from old order by id",
            [(11, 4), (10, 4)],
        ),
        (
            (
                "delete from old where id = 1; alter table old add c int;"
                " insert into old values (1, 2)"
            ),
            "select a, c from old where id = 1",
            [(2, None)],
        ),
        (
            "alter table old add c int; alter table old rename c to d; update old set d = 8",
            "select distinct d from old",
            [(8,)],
        ),
        (
            "alter table old drop column b; create index old_a on old (a); drop index old_a",
            "select * from old where a = 10 order by id",
            [(1, 10), (2, 10)],
        ),
    ],
)
def test_the_block_sees_what_it_has_changed(
    one: SqlClient, other: SqlClient, said: str, asked: str, rows: list[Any]
) -> None:
    """And others do when it is committed."""
    before = other.ask("select * from old order by id")
    one.ask(f"begin; {said}")
    assert one.ask(asked) == rows
    assert other.ask("select * from old order by id") == before
    one.ask("commit")
    assert other.ask(asked) == rows
    assert one.ask(asked) == rows


@pytest.mark.parametrize(
    ("said", "asked", "code"),
    [
        ("alter table old drop column b", "select b from old", "42703"),
        ("alter table old drop column b", "alter table old drop column b", "42703"),
        ("alter table old rename a to z", "select a from old", "42703"),
        ("alter table old rename to fresh", "select * from old", "42P01"),
        ("alter table old add c int", "alter table old add c int", "42701"),
        (
            "alter table old add c int not null default 1",
            "insert into old (id, c) values (9, null)",
            "23502",
        ),
        ("create index i on old (a)", "create index i on old (b)", "42P07"),
        (
            "alter table old add constraint k check (a > 0)",
            "alter table old add constraint k check (a > 1)",
            "42710",
        ),
        ("alter table old rename to fresh", "create table old (id int)", "0A000"),
        ("alter table old add c int, add d int; drop table old", "select * from old", "42P01"),
        ("alter table old alter a type bigint using a * 2", "select * from old", "0A000"),
        ("update old set a = 1", "alter table old drop column a", "0A000"),
        ("alter table old add c int", "truncate old", "0A000"),
        ("alter table old add c int", "alter table old drop constraint old_pkey", "0A000"),
    ],
)
def test_refused_at_the_statement(one: SqlClient, said: str, asked: str, code: str) -> None:
    one.ask(f"begin; {said}")
    with pytest.raises(LeaseholdError) as refused:
        one.ask(asked)
    error = refused.value
    assert error.sqlstate == code, error.message
    told = error.detail.get("hint") or "table" in error.message
    assert told or not isinstance(error, FeatureNotSupported), "what to do instead"
    one.ask("rollback")
    assert one.ask("select * from old order by id") == [(1, 10, "x"), (2, 10, "y")]
    assert jobs(one) == []


@pytest.mark.parametrize(
    ("said", "code"),
    [
        ("create unique index u on old (a)", "23505"),
        ("alter table old add constraint k unique (a)", "23505"),
        ("alter table old add constraint k check (a > 10)", "23514"),
        ("alter table old add constraint k foreign key (a) references other_one", "23503"),
        ("alter table old alter a type smallint using a * 10000", "22003"),
    ],
)
def test_what_fails_at_the_end_takes_all_of_it_back(
    one: SqlClient, other: SqlClient, said: str, code: str
) -> None:
    """The first change, a table that was made, and the rows."""
    one.ask("begin; alter table other_one add column c int default 1; create table n (id int)")
    one.ask(f"create index v_i on other_one (v); {said}; insert into mark values (77)")
    one.ask("insert into n values (1); update other_one set v = 71")
    with pytest.raises(LeaseholdError) as failed:
        one.ask("commit")
    assert failed.value.sqlstate == code
    assert failed.value.detail["detail"] == f"Statement: {said}"
    assert one.status().name == "IDLE"
    assert jobs(one) == []
    for each in (one, other):
        assert each.ask("select * from other_one") == [(7, 70)]
        assert each.ask("select * from mark where a = 77") == []
        assert each.code("select * from n") == "42P01"
        assert each.ask(COLUMNS) == [("id",), ("a",), ("b",)]
    one.ask("create table n (id int); create index v_i on other_one (v)")


FILL = "alter table old add column c text; update old set c = b || a"


def test_a_column_is_added_and_filled_and_not_null(one: SqlClient, other: SqlClient) -> None:
    """The shape of nearly every migration of data."""
    one.ask(f"begin; {FILL}; alter table old alter column c set not null")
    assert one.code("insert into old values (3, 3, 'z')") == "23502"
    one.ask(f"rollback; begin; {FILL}; alter table old alter column c set not null")
    one.ask("insert into old values (3, 3, 'z', 'c'); commit")
    assert other.ask("select c from old order by id") == [("x10",), ("y10",), ("c",)]
    assert other.code("insert into old values (4, 4, 'z')") == "23502"
    assert other.code("update old set c = null") == "23502"


def test_not_null_of_what_is_not_filled_is_told_at_the_statement(one: SqlClient) -> None:
    one.ask(f"begin; {FILL} where id = 1")
    assert one.code("alter table old alter column c set not null") == "23502"
    one.ask("rollback")


def test_a_row_that_comes_meanwhile_is_in_the_way(one: SqlClient, other: SqlClient) -> None:
    one.ask(f"begin; {FILL}; alter table old alter column c set not null")
    other.ask("insert into old values (9, 9, 'late')")
    assert one.code("commit") == "23502"
    assert jobs(one) == []
    assert other.ask("select * from old where id = 9") == [(9, 9, "late")]
    assert other.ask(COLUMNS) == [("id",), ("a",), ("b",)]
    one.ask(f"begin; {FILL}; alter table old alter column c set not null; commit")


def test_rows_that_are_refused_take_the_changes_back(one: SqlClient, other: SqlClient) -> None:
    one.ask("begin; update old set b = 'mine' where id = 1; alter table old add column c int")
    other.ask("update old set b = 'theirs' where id = 1")
    assert one.code("commit") == "40001"
    assert jobs(one) == []
    assert other.ask("select * from old order by id") == [(1, 10, "theirs"), (2, 10, "y")]


def test_a_savepoint_brings_back_what_was_there(one: SqlClient, other: SqlClient) -> None:
    one.ask("begin; alter table old add column c int default 1; update old set c = 2 where id = 1")
    one.ask("savepoint s; alter table old add column d int; update old set d = 4, c = 3")
    one.ask("alter table other_one rename v to w; rollback to s")
    assert one.ask("select * from old order by id") == [(1, 10, "x", 2), (2, 10, "y", 1)]
    assert one.ask("select v from other_one") == [(70,)]
    one.ask("rollback to s; update old set c = 9 where id = 2; commit")
    assert other.ask("select * from old order by id") == [(1, 10, "x", 2), (2, 10, "y", 9)]
    one.ask("begin; savepoint s; alter table old drop column c; rollback to s")
    assert one.ask("select c from old where id = 1") == [(2,)]
    one.ask("rollback")


def test_tables_are_dropped_beside(one: SqlClient, other: SqlClient) -> None:
    one.ask("begin; alter table old add column c int; alter table other_one add column d int")
    one.ask("drop table other_one; create table other_one (k text primary key)")
    one.ask("insert into other_one values ('new'); commit")
    assert other.ask("select k from other_one") == [("new",)]
    assert other.ask("select c from old") == [(None,), (None,)]
    assert jobs(one) == []


def test_a_session_may_refuse_such_changes(one: SqlClient) -> None:
    one.ask("set leasehold.ddl_in_block = 'refuse'; begin; create table n (id int)")
    assert one.code("alter table old add column c int") == "0A000"
    one.ask("rollback; begin; create table n (id int); alter table n add column c int; commit")
    assert one.code("set leasehold.ddl_in_block = 'sometimes'") == "22023"
    one.ask("reset leasehold.ddl_in_block")


def test_a_commit_that_waits_can_be_ended(one: SqlClient, other: SqlClient) -> None:
    """For a reader who has pinned the table in a block."""
    other.ask("begin; select * from old")
    one.ask("begin; alter table old add column c int; insert into mark values (99)")
    one.ask("set local statement_timeout = 300")
    assert one.code("commit") == "57014"
    assert one.code("alter table old add column d int") == "55006"
    assert other.ask("select * from old where id = 1") == [(1, 10, "x")]
    other.ask("rollback")
    assert one.node.wait(lambda: jobs(one) == [], 30)
    assert other.ask("select * from mark where a = 99") == []
    assert other.ask(COLUMNS) == [("id",), ("a",), ("b",)]


def test_what_others_have_changed_meanwhile_is_told_at_commit(
    one: SqlClient, other: SqlClient
) -> None:
    one.ask("begin; create table n (id int); alter table old add column c int")
    one.ask("insert into mark values (98)")
    other.ask("alter table old add column c text")
    assert one.code("commit") == "42701"
    assert one.code("select * from n") == "42P01"
    assert one.ask("select * from mark where a = 98") == []
    assert jobs(one) == []


class Lost:
    """A session's node that is gone when the rows are to be sent."""

    def __init__(self, node: Any) -> None:
        self._node = node

    def __getattr__(self, name: str) -> Any:
        return getattr(self._node, name)

    def submit(self, request: Any, *more: Any) -> Any:
        if request.releases or request.control is not None:
            raise QueryCanceled("its process has ended")
        return self._node.submit(request, *more)


def test_a_session_that_ends_between_leaves_nothing(one: SqlClient, other: SqlClient) -> None:
    """The job waits for rows that never come, and then it is turned back."""
    one.ask("begin; alter table old add column c int; create table n (id int)")
    one.ask("insert into mark values (55)")
    one.session._state.node = Lost(one.node)
    with pytest.raises(QueryCanceled):
        one.ask("commit")
    one.session._state.node = one.node
    (job,) = jobs(one)
    assert job.hold is Hold.READY
    assert other.code("select * from n") == "42P01"
    assert other.code("select c from old") == "42703"
    other.ask("insert into old values (3, 3, 'z')")
    assert other.code("create table n (id int)") == "42P07"
    assert one.code(f"select leasehold.cancel_job({job.job_id})") == "00000"
    assert one.node.wait(lambda: jobs(one) == [], 30)
    assert one.node.jobs()[job.job_id].status is Status.CANCELLED
    assert other.ask(COLUMNS) == [("id",), ("a",), ("b",)]
    assert other.ask("select * from mark where a = 55") == []
    other.ask("create table n (id int)")


def test_rows_are_looked_up_as_the_store_has_them(one: SqlClient) -> None:
    """Behind a column that the block adds: by a duplicate key, and by SET CONSTRAINTS."""
    one.ask("alter table other_one add unique (v)")
    one.ask("begin; alter table other_one add c int default 3")
    with pytest.raises(LeaseholdError) as refused:
        one.ask("insert into other_one (id, v) values (8, 70)")
    assert refused.value.sqlstate == "23505"
    one.ask("rollback")
    one.ask("alter table old add o int references other_one deferrable initially deferred")
    one.ask("begin; alter table old add c int default 3; update old set o = 9 where id = 1")
    with pytest.raises(LeaseholdError) as refused:
        one.ask("set constraints all immediate")
    assert refused.value.sqlstate == "23503"
    one.ask("rollback")
    one.ask("begin; alter table old add c int default 3; update old set o = 7 where id = 1")
    one.ask("set constraints all immediate; commit")
    assert one.ask("select o, c from old where id = 1") == [(7, 3)]


def test_demanded_rows_are_looked_for_where_others_write_meanwhile(
    one: SqlClient, other: SqlClient
) -> None:
    one.ask("begin; update old set a = 1; alter table old alter a set not null")
    other.ask("insert into old (id, a) values (9, null)")
    with pytest.raises(LeaseholdError) as refused:
        one.ask("commit")
    assert refused.value.sqlstate == "23502"
    assert other.ask("select id, a from old order by id") == [(1, 10), (2, 10), (9, None)]
    assert not jobs(one)


def test_it_is_planned_on_what_the_store_has(one: SqlClient) -> None:
    """Of the descriptors that readers have already: versions, names and jobs, as it keeps them."""
    one.ask("alter table old add column c text; create view seen as select id from old")
    one.ask("alter table old rename to oldest; drop table other_one")
    one.ask("comment on table oldest is 'x'; create sequence drawn")
    with one.node.single_read().snapshot() as snapshot:
        assert isinstance(snapshot, SqliteSnapshot)
        stored = Catalog.of_store(snapshot.stored_catalog())
        planned = snapshot.planning_catalog()
    kept = (planned._versions, planned._names, planned._index_names, planned._min_versions)
    assert kept == (stored._versions, stored._names, stored._index_names, stored._min_versions)
    assert vars(planned._references) == vars(stored._references)
    assert planned.access.views == stored.access.views
    assert planned.access.comments == stored.access.comments
    assert planned.jobs == {n: job for n, job in stored.jobs.items() if not job.status.ended}
    one.ask("drop view seen; drop sequence drawn; drop table oldest")
