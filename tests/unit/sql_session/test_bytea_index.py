"""Goal: an index over bytea changes no answer: empty bytes are no NULL, and NULLs stand last.

Method: the same questions with and without the index, at levels that verify what was read, and what
a unique one lets in. tests/integration/postgres_compat/test_migrations_postgres.py has them beside
PostgreSQL.
"""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from leasehold.dev.database import DevDatabase
from leasehold.model.errors import DuplicateKey
from tests.support.sql_session.sql_client import SqlClient, client_of_tables

ROWS = r"(1, '\x'), (2, null), (3, '\x00'), (4, '\xff'), (5, null)"
QUESTIONS = [
    r"select id from t where raw > '\x' order by id",
    r"select id from t where raw >= '\x' order by id",
    r"select id from t where raw < '\xff' order by id",
    r"select id from t where raw = '\x'",
    r"select id from t where raw in ('\x', '\xff') order by id",
    r"select raw from t where raw >= '\x' and raw <= '\x00' order by raw",
    "select raw from t where raw > '' order by raw",
    "select id from t where raw is null order by id",
    "select id, raw from t order by raw, id",
    "select raw from t order by raw limit 4",
    "select raw from t order by raw desc limit 3",
    "select raw from t order by raw nulls first limit 3",
]


@pytest.fixture
def client(database: DevDatabase) -> Iterator[SqlClient]:
    with client_of_tables(database, dropped_by="drop table if exists t") as made:
        made.ask("create table t (id int primary key, raw bytea)")
        made.ask(f"insert into t values {ROWS}")
        yield made


def test_an_index_changes_no_answer(client: SqlClient) -> None:
    before = [client.ask(question) for question in QUESTIONS]
    client.ask("create unique index i on t (raw)")
    assert "using i" in str(client.ask(f"explain {QUESTIONS[0]}"))
    assert [client.ask(question) for question in QUESTIONS] == before
    client.ask("begin isolation level serializable")
    assert [client.ask(question) for question in QUESTIONS] == before
    client.ask("update t set raw = raw where id = 4")
    client.ask("commit")


def test_a_unique_index_tells_empty_bytes_from_nulls(client: SqlClient) -> None:
    client.ask("create unique index i on t (raw)")
    client.ask("insert into t values (6, null)")
    with pytest.raises(DuplicateKey):
        client.ask(r"insert into t values (7, '\x')")
    client.ask("delete from t where id = 1")
    client.ask(r"insert into t values (8, '\x')")
    assert client.ask(r"select id from t where raw = '\x'") == [(8,)]


def test_of_nulls_that_are_equal_one_stands_beside_empty_bytes(client: SqlClient) -> None:
    client.ask("delete from t where id = 5")
    client.ask("create unique index i on t (raw) nulls not distinct")
    with pytest.raises(DuplicateKey):
        client.ask("insert into t values (5, null)")
    client.ask("delete from t where id = 2")
    client.ask("insert into t values (5, null)")
    assert client.ask("select id from t where raw is null") == [(5,)]
