"""CREATE TABLE … AS: a table and its rows, in one transaction."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from leasehold.dev.database import DevDatabase
from tests.support.sql_session.sql_client import SqlClient, client_of_tables


@pytest.fixture
def client(database: DevDatabase) -> Iterator[SqlClient]:
    tables = ("create table t (id int primary key, a int)", "insert into t values (1, 5), (2, 6)")
    with client_of_tables(database, *tables, dropped_by="drop table if exists t, u, v") as made:
        yield made


def test_it_is_there_with_its_rows_or_not_at_all(client: SqlClient, database: DevDatabase) -> None:
    client.ask("create table u as select a, a + 1 as more from t")
    assert client.tags == ["SELECT 2"]
    other = SqlClient(database, "r2")
    assert other.ask("select * from u order by a") == [(5, 6), (6, 7)]
    other.session.close()
    assert client.code("create table v as select 1 / (id - 2) from t") == "22012"
    assert client.code("select * from v") == "42P01"
    assert client.code("create table v as select 1; select 1 / 0") == "22012"
    assert client.code("select * from v") == "42P01"


def test_it_stands_among_others_in_a_text(client: SqlClient) -> None:
    client.ask(
        "create table u as select a from t; insert into u values (9); create table v as"
        " table u; update v set a = a * 10"
    )
    assert client.tags == ["SELECT 2", "INSERT 0 1", "SELECT 3", "UPDATE 3"]
    assert client.ask("select sum(a) from v") == [(200,)]


def test_what_runs_again_has_the_same_rows(client: SqlClient, database: DevDatabase) -> None:
    """A verify error of the block runs it anew, table and all."""
    client.ask("begin; create table u as select a from t; update t set a = a + 1 where id = 1")
    other = SqlClient(database, "r2")
    other.ask("update t set a = a + 10 where id = 1")
    other.session.close()
    client.ask("commit")
    assert client.ask("select a from u order by a") in ([(5,), (6,)], [(6,), (15,)])
    assert client.ask("select a from t where id = 1") == [(16,)]


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ("create table u as select 1 as a, 2 as a", "42701"),
        ("create table u (a, b) as select 1", "42601"),
        ("create table t as select 1", "42P07"),
        ("create table if not exists t as select 1", "00000"),
        ("create table u as select nothing from t", "42703"),
        ("create unlogged table u as select 1", "0A000"),
        ("create table u with (fillfactor = 10) as select 1", "0A000"),
        ("create table u as execute p", "0A000"),
        ("create materialized view u as select 1", "0A000"),
        ("begin isolation level serializable; create table u as select 1", "0A000"),
    ],
)
def test_what_is_refused(client: SqlClient, text: str, code: str) -> None:
    assert client.code(text) == code
    client.ask("rollback")


def test_a_place_in_its_query_is_one_of_the_text(client: SqlClient) -> None:
    text = "select 1; create table u as select nothing from t"
    with pytest.raises(Exception, match="nothing") as caught:
        client.ask(text)
    assert caught.value.detail["position"] == text.index("nothing") + 1  # type: ignore[attr-defined]
