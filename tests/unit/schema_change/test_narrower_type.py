"""Goal: a column gets a narrower type where it stands: writes are held to it, every node looks
through its rows, then readers have it. Where its values would become others, it is made anew.

Method: the plan of ALTER TYPE on tables with what rests on the column, and sessions on a whole
database in this process. The order of the steps is proved by tests/schema_change.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from leasehold.catalog.job import Job, Phase, Status
from leasehold.dev.database import DevDatabase
from leasehold.model.errors import FeatureNotSupported, LeaseholdError, OutOfRange
from leasehold.schema_change.plan.plan import plan
from leasehold.schema_change.plan.results import JobPlan
from leasehold.sql.ddl.schema_statements import parse_ddl
from tests.schema_change.changes import catalog_of, standing
from tests.support.sql_session.sql_client import SqlClient, client_of_tables

COLUMNS = (
    "b bigint, s text, v varchar(9) default 'x', n numeric(9,2), p numeric, t timestamp,"
    " d bigint default 5000000000, u integer default 7"
)


def job(action: str, *constraints: str, narrows: bool = True) -> Job:
    made = [f"ALTER TABLE t ADD CONSTRAINT k{n} {c}" for n, c in enumerate(constraints)]
    table = f"CREATE TABLE t (id bigint PRIMARY KEY, {COLUMNS})"
    statement: Any = parse_ddl(f"ALTER TABLE t {action}")
    planned = plan(statement, catalog_of(standing(table, *made)), narrows=narrows)
    assert isinstance(planned, JobPlan), planned
    return planned.job


def stands(made: Job) -> bool:
    """Whether it is changed in two steps: held and looked through, then told to readers."""
    return [(s.backfills, bool(s.verifies)) for s in made.steps] == [((), True), ((), False)]


@pytest.mark.parametrize(
    "action",
    [
        "ALTER b TYPE integer",
        "ALTER b TYPE smallint USING b::smallint",
        "ALTER id TYPE integer",
        "ALTER s TYPE varchar(3)",
        "ALTER v TYPE varchar(3)",
        "ALTER n TYPE numeric(5,2)",
        "ALTER u TYPE smallint, ALTER u SET NOT NULL",
    ],
)
def test_it_is_narrowed_where_it_stands(action: str) -> None:
    assert stands(job(action))


@pytest.mark.parametrize(
    "action",
    [
        "ALTER s TYPE varchar(3) USING s::varchar(3)",
        "ALTER b TYPE integer USING b + 1",
        "ALTER n TYPE numeric(9,1)",
        "ALTER p TYPE numeric(5,2)",
        "ALTER t TYPE timestamp(3)",
        "ALTER d DROP DEFAULT, ALTER d TYPE integer",
    ],
)
def test_values_that_become_others_are_made_anew(action: str) -> None:
    made = job(action)
    assert not stands(made)
    assert any(step.backfills for step in made.steps)


def test_so_is_one_beside_processes_that_look_through_nothing() -> None:
    assert not stands(job("ALTER b TYPE integer", narrows=False))


def test_a_default_that_the_type_lacks_is_refused() -> None:
    with pytest.raises(OutOfRange, match="DROP DEFAULT first"):
        job("ALTER d TYPE integer")


@pytest.mark.parametrize(
    "constraint",
    ["CHECK (b > 5)", "UNIQUE (b)", "FOREIGN KEY (b) REFERENCES t ON UPDATE CASCADE"],
)
def test_what_takes_values_as_they_are_stays(constraint: str) -> None:
    assert stands(job("ALTER b TYPE integer", constraint))


def test_what_would_compute_something_else_is_in_the_way() -> None:
    given = "CREATE TABLE t (id int PRIMARY KEY, a int, g int GENERATED ALWAYS AS (a) STORED)"
    statement: Any = parse_ddl("ALTER TABLE t ALTER a TYPE smallint")
    with pytest.raises(FeatureNotSupported, match="generated column g rests on it"):
        plan(statement, catalog_of(standing(given)))


# ------------------------------------------------------------------ whole


@pytest.fixture
def client(database: DevDatabase) -> Iterator[SqlClient]:
    with client_of_tables(database, dropped_by="drop table if exists t") as made:
        yield made


def test_no_row_is_touched_and_writes_are_held_to_it(
    database: DevDatabase, client: SqlClient
) -> None:
    client.ask("create table t (id bigint primary key, a bigint unique, s text)")
    client.ask("insert into t values (1, 2147483647, 'abc'), (2, -5, null)")
    client.ask("alter table t alter a type integer, alter s type varchar(3), alter id type int")
    jobs = database.sql_node("r1").jobs()
    phases = {phase for _, phase, _ in jobs[max(jobs)].marks}
    assert Phase.BACKFILLING not in phases
    assert Phase.VERIFYING in phases
    assert client.ask("select * from t order by id") == [(1, 2147483647, "abc"), (2, -5, None)]
    assert client.ask("select pg_typeof(a)::text from t where id = 1") == [("integer",)]
    assert client.code("insert into t values (3, 2147483648)") == "22003"
    assert client.code("insert into t values (3, 3, 'abcd')") == "22001"
    assert client.code("insert into t values (5000000000, 3)") == "22003"
    assert client.code("insert into t values (3, -5)") == "23505"
    client.ask("insert into t values (3, 3, 'abc  ')")
    assert client.ask("select s from t where a = 3") == [("abc",)]


@pytest.mark.parametrize(
    ("action", "code", "value"),
    [
        ("a type smallint", "22003", "70000"),
        ("s type varchar(3)", "22001", "'abcd'"),
        ("n type numeric(3,1)", "22003", "123.4"),
    ],
)
def test_a_value_that_does_not_fit_is_named_and_nothing_is_changed(
    database: DevDatabase, client: SqlClient, action: str, code: str, value: str
) -> None:
    client.ask("create table t (id int primary key, a int, s text, n numeric(5,1))")
    client.ask("insert into t values (1, 5, 'x', 1), (2, 70000, 'abcd', 123.4)")
    with pytest.raises(LeaseholdError) as caught:
        client.ask(f"alter table t alter {action}")
    assert caught.value.sqlstate == code
    assert f"row (2,): column {action[0]!r}: {value} is no" in caught.value.message
    jobs = database.sql_node("r1").jobs()
    assert jobs[max(jobs)].status is Status.FAILED
    client.ask("insert into t values (3, 80000, 'longer', 9999)")
    client.ask("delete from t where id > 1")
    client.ask(f"alter table t alter {action}")


def test_in_a_block_rows_of_the_block_have_to_fit(client: SqlClient) -> None:
    client.ask("create table t (id int primary key, a int)")
    client.ask("insert into t values (1, 5)")
    client.ask("begin")
    client.ask("alter table t alter a type smallint")
    client.ask("insert into t values (3, 7)")
    assert client.code("insert into t values (2, 70000)") == "22003"
    client.ask("rollback")
    client.ask("begin")
    client.ask("alter table t alter a type smallint")
    client.ask("insert into t values (3, 7)")
    client.ask("commit")
    assert client.ask("select * from t order by id") == [(1, 5), (3, 7)]
    assert client.ask("select pg_typeof(a)::text from t where id = 1") == [("smallint",)]
    client.ask("alter table t alter a type int")
    client.ask("insert into t values (4, 70000)")
    client.ask("begin")
    client.ask("alter table t alter a type smallint")
    assert client.code("commit") == "22003"
    assert client.ask("select a from t where id = 4") == [(70000,)]


# ------------------------------------------------------------------ made anew


def test_what_rests_on_a_column_is_made_anew_with_it(
    database: DevDatabase, client: SqlClient
) -> None:
    client.ask("create table t (id int primary key, a int unique, b text, check (b <> 'no'))")
    client.ask("create index by_b on t (lower(b), a) include (id)")
    client.ask("insert into t values (1, 10, '5'), (2, 20, '6'), (3, null, null)")
    client.ask("alter table t alter a type numeric(6, 2)")
    assert client.code("insert into t values (4, 10.001, 'x')") == "23505"
    client.ask("insert into t values (4, 10.5, 'x')")
    assert client.ask("select id from t where a = 10.5") == [(4,)]
    assert client.ask("select id from t where lower(b) = '6' and a > 1") == [(2,)]
    client.ask("delete from t where id > 2")
    client.ask("alter table t alter b type varchar(3) using b || '!'")
    assert client.code("insert into t values (4, 1, 'no')") == "23514"
    assert client.ask("select b from t order by id") == [("5!",), ("6!",)]
    assert client.ask("select id from t where lower(b) = '6!'") == [(2,)]
    names = "select indexname from pg_indexes where tablename = 't' order by 1"
    assert client.ask(names) == [("by_b",), ("t_a_key",), ("t_pkey",)]
    client.ask("insert into t values (5, 10.4, 'y')")
    assert client.code("alter table t alter a type int using 7") == "23505"
    assert client.ask("select a::text from t order by id") == [("10.00",), ("20.00",), ("10.40",)]
    assert not database.check().differences


def test_what_rests_on_two_columns_gets_both_of_them(
    database: DevDatabase, client: SqlClient
) -> None:
    """A CHECK of both means what it says when both have their types, whatever the order."""
    client.ask("create table t (id int primary key, a int, b int, c text, check (a < b))")
    client.ask("create unique index ab on t (a, b) include (c)")
    client.ask("insert into t values (1, 9, 10, '5'), (2, 3, 4, '6')")
    assert client.code("alter table t alter a type text") == "42883"
    assert client.code("alter table t alter a type text, alter b type int using b") == "42883"
    assert client.code("alter table t alter a type text, alter b type text") == "23514", "as texts"
    client.ask("delete from t where id = 1")
    client.ask("alter table t alter b type text, alter c type int using c::int, alter a type text")
    assert client.code("insert into t values (3, '9', '10', 7)") == "23514"
    assert client.code("insert into t values (3, '3', '4', 7)") == "23505"
    client.ask("insert into t values (3, '33', '4', 7)")
    assert client.ask("select a, c from t where a > '3'") == [("33", 7)]
    assert not database.check().differences
