"""DO in sessions: statements run one by one, undone as far as a handler's block has begun."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from leasehold.dev.database import DevDatabase
from leasehold.pgwire.session import Notice
from tests.support.sql_session.sql_client import SqlClient, client_of_tables

MOOD = "create type mood as enum ('sad', 'ok')"
GUARDED = f"do $$ begin {MOOD}; exception when duplicate_object then null; end $$"


@pytest.fixture
def client(database: DevDatabase) -> Iterator[SqlClient]:
    made = "create table t (id int primary key, n int); insert into t values (1, 1)"
    drop = "drop table if exists t, u; drop type if exists mood; drop role if exists r"
    with client_of_tables(database, made, dropped_by=drop) as one:
        yield one


def notices(client: SqlClient) -> list[tuple[str, str, str]]:
    found = [(r.severity, r.sqlstate, r.message) for r in client.reports if isinstance(r, Notice)]
    client.reports.clear()
    return found


def test_a_type_is_made_once(client: SqlClient) -> None:
    for _ in range(2):
        client.ask(GUARDED)
        assert client.tags == ["DO"]
    client.ask("begin")
    client.ask(GUARDED)
    client.ask("create table u (m mood default 'ok')")
    client.ask("commit; insert into u default values")
    assert client.ask("select m::text from u") == [("ok",)]


def test_what_is_not_caught_is_the_answer(client: SqlClient) -> None:
    assert client.code(GUARDED.replace("duplicate_object", "undefined_table")) == "00000"
    assert client.code(GUARDED.replace("duplicate_object", "undefined_table")) == "42710"
    assert client.code("do $$ begin raise exception 'no %%'; end $$") == "P0001"
    assert client.code("do $$ begin raise; end $$") == "0Z002"
    again = "do $$ begin insert into t values (1); exception when others then raise; end $$"
    assert client.code(again) == "23505"
    assert client.code("do $$ begin insert into t values (5) returning id; end $$") == "42601"
    assert client.ask("select * from t") == [(1, 1)]


def test_several_statements_are_one_transaction(client: SqlClient) -> None:
    two = "insert into t values (2, 2); insert into t values (1, 0)"
    assert client.code(f"do $$ begin {two}; end $$") == "23505"
    assert client.ask("select id from t") == [(1,)]
    client.ask(f"do $$ begin {two}; exception when others then raise notice 'none'; end $$")
    assert client.ask("select id from t") == [(1,)]
    assert ("NOTICE", "00000", "none") in notices(client)
    client.ask(
        f"begin; insert into t values (3, 3); do $$ begin begin {two}; exception when"
        " unique_violation then insert into t values (4, 4); end; end $$; commit"
    )
    assert client.ask("select id from t order by 1") == [(1,), (3,), (4,)]


def test_it_asks_first(client: SqlClient) -> None:
    asks = (
        "do $$ begin if not exists (select from t where id = 9) then insert into t values (9, 9);"
        " elsif null then perform 1 / 0; else update t set n = n + 1 where id = 9; end if; end $$"
    )
    for _ in range(3):
        client.ask(asks)
    assert client.ask("select n from t where id = 9") == [(11,)]


def test_what_no_block_can_hold_is_done_apart(client: SqlClient) -> None:
    """A lone one is a transaction anyway; with others the client is warned."""
    lone = "do $$ begin create role r; exception when duplicate_object then null; end $$"
    for _ in range(2):
        client.ask(lone)
    assert not [each for each in notices(client) if each[0] == "WARNING"]
    client.ask(
        "do $$ begin insert into t values (7, 7); drop role r; insert into t values (1, 0);"
        " exception when unique_violation then null; end $$"
    )
    assert [each for each in notices(client) if each[0] == "WARNING"]
    assert client.ask("select id from t order by 1") == [(1,), (7,)]
    assert client.ask("select count(*) from pg_roles where rolname = 'r'") == [(0,)]
