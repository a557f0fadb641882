"""Goal: what ALTER TABLE makes of columns is what a program goes on with: their places, the code of
what does not fit, NOT NULL of a table without rows.

Method: sessions on a whole database in this process; jobs as its log has them. The same statements
are held to PostgreSQL in tests/integration/postgres_compat/test_column_changes_postgres.py.
"""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from leasehold.catalog.job import Job, Phase, Status
from leasehold.dev.database import DevDatabase
from leasehold.model.errors import LeaseholdError
from leasehold.model.features import Feature, FeatureGate
from leasehold.replication.master import batch
from tests.support.sql_session.sql_client import SqlClient, client_of_tables


@pytest.fixture
def client(database: DevDatabase) -> Iterator[SqlClient]:
    with client_of_tables(database, dropped_by="drop table if exists t") as made:
        yield made


def failed(client: SqlClient, text: str) -> tuple[str, str]:
    """The SQLSTATE and the words that it fails with."""
    with pytest.raises(LeaseholdError) as caught:
        client.ask(text)
    return caught.value.sqlstate, caught.value.message


def last_job(database: DevDatabase) -> Job:
    jobs = database.sql_node("r1").jobs()
    return jobs[max(jobs)]


# ------------------------------------------------------------------ places


def test_a_column_of_another_type_stays_in_its_place(
    database: DevDatabase, client: SqlClient
) -> None:
    client.ask("create table t (a varchar(9), b int, id int primary key)")
    client.ask("insert into t values ('x', 5, 1)")
    client.ask("alter table t alter a type varchar(5)")
    assert client.ask("select * from t") == [("x", 5, 1)]
    client.ask("insert into t values ('9', 6, 2)")
    assert client.ask("select a, b, id from t where id = 2") == [("9", 6, 2)]
    numbered = "select attname from pg_attribute where attrelid = 't'::regclass and attnum > 0"
    assert client.ask(f"{numbered} order by attnum") == [("a",), ("b",), ("id",)]
    row = database.get("t", (1,))
    assert row is not None
    assert [*row] == ["a", "b", "id"]


# ------------------------------------------------------------------ what does not fit


def test_a_value_that_does_not_fit_ends_the_job_where_it_is_met(
    database: DevDatabase, client: SqlClient
) -> None:
    client.ask("create table t (id int primary key, a varchar(9), d text)")
    client.ask("insert into t values (1, 'fits', '2026-02-28'), (2, '1234567', '2026-02-30')")
    for said, code, why in (
        ("a type varchar(5) using a || ''", "22001", "too long"),
        ("d type date using d::date", "22008", "2026-02-30"),
        ("d type int using d::int", "22P02", "2026-02-28"),
    ):
        told, words = failed(client, f"alter table t alter {said}")
        assert told == code, words
        assert why in words
        assert "row (" in words, "it says which one"
        job = last_job(database)
        assert (job.status, job.code) == (Status.FAILED, code)
        phases = {phase for _, phase, _ in job.marks}
        assert Phase.BACKFILLING in phases
        assert Phase.VERIFYING not in phases, "nothing is compared any more"
    assert client.ask("select * from t where id = 2") == [(2, "1234567", "2026-02-30")]


def test_the_first_broken_constraint_of_several_tells_the_code(client: SqlClient) -> None:
    client.ask("create table t (id int primary key, a int, n int)")
    client.ask("insert into t values (1, 1, 0), (2, null, -1)")
    assert client.code("alter table t add check (n > 0), alter a set not null") in (
        "23514",
        "23502",
    )
    assert client.code("alter table t add check (1 / n > 0)") == "22012"
    assert client.code("create index on t ((1 / n))") == "22012"
    assert client.code("alter table t add unique (a), add check (n >= 0)") == "23514"


def test_using_reads_other_columns_and_makes_values_of_null(client: SqlClient) -> None:
    client.ask("create table t (id int primary key, a int, b int)")
    client.ask("insert into t values (1, 2, 3), (2, null, 5), (3, null, null)")
    client.ask("alter table t alter a type bigint using coalesce(a, b * 1000)")
    assert client.ask("select a from t order by id") == [(2,), (5000,), (None,)]


# ------------------------------------------------------------------ defaults


def test_a_default_is_cast_only_as_an_assignment_is(client: SqlClient) -> None:
    client.ask(
        "create table t (id int primary key, s text default 'true', v varchar(9) default '12345',"
        " n bigint default 5000000000)"
    )
    code, words = failed(client, "alter table t alter s type boolean using s::boolean")
    assert code == "42804"
    assert words == 'default for column "s" cannot be cast automatically to type boolean'
    assert client.code("alter table t alter v type varchar(3)") == "22001"
    assert client.code("alter table t alter n type int using 1") == "22003"
    client.ask("alter table t alter v type text")
    client.ask(
        "alter table t alter s drop default, alter s type boolean using s::boolean,"
        " alter s set default true"
    )
    client.ask("insert into t (id) values (1)")
    assert client.ask("select s, v from t") == [(True, "12345")]


# ------------------------------------------------------------------ NOT NULL


def test_a_required_column_is_for_a_table_without_rows(
    database: DevDatabase, client: SqlClient
) -> None:
    client.ask("create table t (id int primary key)")
    client.ask("alter table t add column owner text not null")
    assert client.code("insert into t values (1)") == "23502"
    client.ask("insert into t values (1, 'me')")
    before = last_job(database)
    code, words = failed(client, "alter table t add column more int not null")
    assert code == "23502"
    assert words == 'column "more" of relation "t" contains null values'
    assert last_job(database) == before, "it is seen at once, and nobody is held up"
    assert client.code("begin; alter table t add column more int not null") == "23502"
    client.ask("rollback")


def test_a_block_that_sets_not_null_behind_its_rows_has_a_limit_of_rows(
    client: SqlClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The master looks through the table while everybody waits; by itself it is a job's work."""
    client.ask("create table t (id int primary key, a int)")
    client.ask("insert into t values (1, null), (2, null), (3, 3)")
    fill = "begin; update t set a = 0 where a is null; alter table t alter a set not null"
    for most in (2, 3):
        monkeypatch.setattr(batch, "DEMANDED_ROWS_MAX", most)
        client.ask(fill)
        if most == 2:
            code, words = failed(client, "commit")
            assert code == "54000"
            assert "about 3 rows, and the master looks through 2 at most" in words
            assert client.ask("select a from t order by id") == [(None,), (None,), (3,)]
        else:
            client.ask("commit")
    assert client.code("insert into t values (4, null)") == "23502"


def test_a_block_has_no_rows_that_lack_a_column(client: SqlClient) -> None:
    client.ask("begin; create table t (id int primary key)")
    client.ask("alter table t add column owner text not null")
    client.ask("insert into t values (1, 'me'); commit")
    assert client.ask("select * from t") == [(1, "me")]


def test_an_earlier_release_keeps_equal_nulls_away(
    database: DevDatabase, client: SqlClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It would take NULLs for different ones, and let duplicates in."""
    client.ask("create table t (id int primary key, a int)")
    master = database.cluster.master()
    assert master is not None
    assert master.node is not None
    changes = master.node.master.changes  # type: ignore[union-attr]
    earlier = FeatureGate(lambda number, now_ns: number < Feature.EQUAL_NULLS)
    monkeypatch.setattr(changes, "features", earlier)
    for text in (
        "create unique index i on t (a) nulls not distinct",
        "alter table t add unique nulls not distinct (a)",
        "alter table t add column b int unique nulls not distinct",
        "create table u (a int unique nulls not distinct)",
    ):
        code, words = failed(client, text)
        assert (code, "earlier release" in words) == ("0A000", True), text
    client.ask("create unique index i on t (a)")
    monkeypatch.undo()
    client.ask("alter table t add unique nulls not distinct (a)")
    client.ask("insert into t values (1, null)")
    assert client.code("insert into t values (2, null)") == "23505"
