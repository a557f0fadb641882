"""Goal: the statements of one query string are one transaction, as in PostgreSQL, where some of
them change the schema.

Method: the same query strings in both; then the same SQLSTATE, rows and tables. What can't be one
here is done one by one, and the client is told.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

import pytest

from tests.support.postgres.both_servers import Connection, told
from tests.support.postgres.client_server import Server

pytestmark = pytest.mark.integration

MADE: Final = (
    "create table pier (id int primary key, deep int not null, wide int);"
    "insert into pier values (1, 1, 1), (2, 2, null);"
    "create table quay (id int primary key, pier int references pier)"
)
STORIES: Final = {
    "a second change that rows break undoes the first": (
        "alter table pier drop column deep; alter table pier alter column wide set not null"
    ),
    "so does one that can't be planned": (
        "alter table pier drop column deep; alter table nowhere add column a int"
    ),
    "and one of a constraint that was there": (
        "alter table pier add constraint deeper check (deep > 0);"
        "alter table pier add constraint deeper check (wide > 5)"
    ),
    "changes of one table are all made": (
        "alter table pier drop column deep; alter table pier add column name text default 'x';"
        "alter table pier add check (wide > 0), alter column wide set default 3;"
    ),
    "changes of several tables that can't fail are all made": (
        "alter table pier add column a int; alter table quay add column b text;"
        "create table ship (id int primary key); create index on ship (id)"
    ),
    "what is added and dropped again is not there": (
        "alter table pier add column a int; alter table pier drop column a"
    ),
    "a duplicate undoes the table that was made for it": (
        "create table ship (id int primary key); insert into ship values (1);"
        "insert into ship values (1)"
    ),
    "a table that is made is filled and read": (
        "create table ship (id serial primary key, name text unique);"
        "insert into ship (name) values ('a'), ('b'); update ship set name = 'c' where id = 1;"
        "select id, name from ship order by id"
    ),
    "rows that are refused undo TRUNCATE": (
        "truncate pier cascade; insert into pier values (1, 1, 1), (1, 1, 1)"
    ),
    "TRUNCATE and rows": "truncate pier, quay; insert into pier values (7, 7, 7)",
    "an unknown table undoes DROP TABLE": "drop table quay; drop table nowhere",
    "a table is replaced with its rows": (
        "drop table quay; create table quay (id text primary key);"
        "insert into quay values ('a'); select * from quay"
    ),
    "a table that is there is changed, and filled": (
        "alter table pier add column a int; update pier set a = deep;"
        "alter table pier alter column a set not null; select a from pier order by id"
    ),
    "rows before a refused change are undone": (
        "insert into pier values (3, 3, 3); create table pier (id int)"
    ),
}
STATE: Final = (
    (
        "select table_name, column_name, column_default from information_schema.columns"
        " where table_schema = 'public' order by table_name, ordinal_position"
    ),
    "select * from pier order by id",
    (
        "select conname from pg_constraint where connamespace = 'public'::regnamespace"
        " and contype <> 'n' order by 1"
    ),
)
RESTS_ON_WHAT_GOES: Final = (
    "drop table pier cascade; insert into quay values (5, 5); select * from quay"
)
NOT_ONE: Final = (
    "alter table quay drop constraint quay_pkey, add primary key (pier);"
    "insert into quay values (1, 1); select pier from quay"
)


@pytest.fixture
def both(servers: tuple[Server, Server]) -> Iterator[tuple[Connection, Connection]]:
    ours, theirs = servers
    with ours.psycopg(autocommit=True) as one, theirs.psycopg(autocommit=True) as other:
        for each in (one, other):
            each.execute(MADE.encode())
        yield one, other
        for each in (one, other):
            each.execute(b"drop table if exists ship, quay, pier cascade")


def state_of(connection: Connection) -> list[Any]:
    return [told(connection, text) for text in STATE]


@pytest.mark.parametrize("text", STORIES.values(), ids=STORIES.keys())
def test_a_query_string_is_one_transaction(both: tuple[Connection, Connection], text: str) -> None:
    ours, theirs = both
    said: list[str] = []
    ours.add_notice_handler(lambda notice: said.append(notice.severity_nonlocalized or ""))
    assert told(ours, text) == told(theirs, text)
    assert state_of(ours) == state_of(theirs)
    if not text.startswith("alter table pier add column a int; alter table pier drop"):
        assert "WARNING" not in said, "it is one transaction"


def test_rows_that_rest_on_what_is_dropped_before_them(both: tuple[Connection, Connection]) -> None:
    ours, theirs = both
    assert told(ours, RESTS_ON_WHAT_GOES) == told(theirs, RESTS_ON_WHAT_GOES) == [(5, 5)]


def test_what_is_not_one_transaction_is_told(both: tuple[Connection, Connection]) -> None:
    """Another key of a table that is there, with rows that need it: done, and the client knows
    how."""
    ours, theirs = both
    said: list[Any] = []
    ours.add_notice_handler(
        lambda notice: said.append(
            (notice.severity_nonlocalized, notice.sqlstate, notice.message_primary)
        )
    )
    assert told(ours, NOT_ONE) == told(theirs, NOT_ONE) == [(1,)]
    ((severity, code, words),) = said
    assert (severity, code) == ("WARNING", "01000")
    assert "not one transaction" in words
    assert told(ours, "select 1; select 2") == [(2,)]
    assert len(said) == 1, "of its text alone"
