"""ALTER TABLE of a view, where a transaction or a text of several statements says it; and what a
default that draws from a sequence with a quoted name is shown as."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from leasehold.dev.database import DevDatabase
from tests.support.sql_session.sql_client import SqlClient, client_of_tables


@pytest.fixture
def client(database: DevDatabase) -> Iterator[SqlClient]:
    drop = (
        "drop view if exists v, w, x; drop table if exists t, d;"
        ' drop sequence if exists "S"."q"; drop schema if exists "S"'
    )
    made = ("create table t (id int primary key, a int)", "insert into t values (1, 10)")
    with client_of_tables(database, *made, dropped_by=drop) as client:
        yield client


def test_in_a_block_with_rows(client: SqlClient) -> None:
    client.ask("create view v as select a from t")
    client.ask("begin; update t set a = 11; alter table v rename to w")
    assert client.ask("select * from w") == [(11,)]
    assert client.ask("select viewname from pg_views") == [("w",)]
    client.ask("commit")
    assert client.ask("select * from w") == [(11,)]
    assert client.code("select * from v") == "42P01"
    client.ask("begin; alter table w rename to v")
    client.ask("rollback")
    assert client.ask("select * from w") == [(11,)]


def test_in_one_text_with_other_statements(client: SqlClient) -> None:
    client.ask(
        "create view v as select a from t; alter table v rename to w;"
        " create view v as select a + 1 as b from w; alter table if exists v rename to x"
    )
    assert client.ask("select * from x") == [(11,)]
    assert client.code("alter table x add column c int") == "42809"
    assert client.code("alter table if exists nothing rename to y") == "00000"


def test_a_default_that_draws_from_a_sequence_with_a_quoted_name(client: SqlClient) -> None:
    client.ask('create schema "S"; create sequence "S"."q" start 7')
    client.ask('create table d (id int primary key, n int default nextval(\'"S"."q"\'))')
    client.ask("insert into d (id) values (1)")
    assert client.ask("select n from d") == [(7,)]
    shown = "select pg_get_expr(adbin, adrelid) from pg_attrdef where adrelid = 'd'::regclass"
    assert client.ask(shown) == [("nextval('\"S\".q'::regclass)",)]
    client.ask('set search_path = "S", public')
    assert client.ask(shown) == [("nextval('q'::regclass)",)]
    client.ask("reset search_path")
