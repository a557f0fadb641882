"""PEP 249 over a session of a whole database in this process."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime
from decimal import Decimal
from pathlib import Path

import pytest

from leasehold.client import dbapi, dbapi_errors
from leasehold.client.dbapi import Connection
from leasehold.client.dev import DevDatabase
from leasehold.client.placeholders import numbered
from leasehold.client.sql_session import SqlSession
from leasehold.sql.query_plan import Plans


@pytest.fixture(scope="module")
def database(tmp_path_factory: pytest.TempPathFactory) -> Iterator[DevDatabase]:
    dev = DevDatabase(Path(tmp_path_factory.mktemp("dbapi")))
    dev.wait_ready()
    yield dev
    dev.close()


@pytest.fixture
def left() -> list[str]:
    return []


def opened(database: DevDatabase, left: list[str], *, autocommit: bool = False) -> Connection:
    session = SqlSession(database.sql_node(), Plans(), user="me")
    return Connection(session, lambda: left.append("left"), autocommit=autocommit)


@pytest.fixture
def connection(database: DevDatabase, left: list[str]) -> Iterator[Connection]:
    made = opened(database, left)
    made.execute("create table t (id int primary key, n numeric(8,2), at timestamptz, note text)")
    yield made
    made.close()
    with opened(database, left, autocommit=True) as other:
        other.execute("drop table t")


def test_values_are_pythons_both_ways(connection: Connection) -> None:
    at = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)
    row = (1, Decimal("12.50"), at, "100%")
    connection.execute("insert into t values (%s, %s, %s, %s)", row)
    cursor = connection.execute("select * from t where note like '%%\\%%' and id = %s", (1,))
    assert cursor.fetchall() == [row]
    assert cursor.description is not None
    assert [c[:2] for c in cursor.description] == [
        ("id", "integer"),
        ("n", "numeric(8,2)"),
        ("at", "timestamptz"),
        ("note", "text"),
    ]
    assert (cursor.rowcount, cursor.fetchone()) == (1, None)


def test_a_transaction_begins_by_itself_and_ends_when_told(
    database: DevDatabase, connection: Connection, left: list[str]
) -> None:
    other = opened(database, left, autocommit=True)
    cursor = connection.cursor().executemany("insert into t (id) values (%s)", [(1,), (2,), (3,)])
    assert cursor.rowcount == 3
    assert other.execute("select count(*) from t").fetchone() == (0,)
    connection.rollback()
    connection.execute("insert into t (id) values ($1)", (4,))
    connection.commit()
    assert other.execute("select id from t").fetchall() == [(4,)]
    other.execute("delete from t")
    assert list(connection.execute("select id from t")) == []
    other.close()


@pytest.mark.parametrize(
    ("text", "parameters", "kind", "sqlstate"),
    [
        ("select nope from t", (), dbapi_errors.ProgrammingError, "42703"),
        ("select 1/0", (), dbapi_errors.DataError, "22012"),
        ("insert into t (id) values (7), (7)", (), dbapi_errors.IntegrityError, "23505"),
        ("lock table t", (), dbapi_errors.NotSupportedError, "0A000"),
        ("copy t from stdin", (), dbapi_errors.NotSupportedError, ""),
        ("select 1; select 2", (), dbapi_errors.ProgrammingError, ""),
        ("select %s", (), dbapi_errors.ProgrammingError, ""),
        ("select %(a)s", (1,), dbapi_errors.ProgrammingError, ""),
        ("select $1::int", (1, 2), dbapi_errors.ProgrammingError, ""),
    ],
)
def test_errors_are_pythons_with_their_sqlstate(
    connection: Connection,
    text: str,
    parameters: tuple[object, ...],
    kind: type[dbapi.Error],
    sqlstate: str,
) -> None:
    with pytest.raises(kind) as caught:
        connection.execute(text, parameters)
    assert caught.value.sqlstate == sqlstate
    connection.rollback()
    assert connection.execute("select 1").fetchone() == (1,)


def test_a_failed_transaction_waits_for_its_rollback(connection: Connection) -> None:
    connection.execute("insert into t (id) values (1)")
    with pytest.raises(dbapi_errors.DataError):
        connection.execute("select 1/0")
    with pytest.raises(dbapi_errors.InternalError) as caught:
        connection.execute("select 1")
    assert caught.value.sqlstate == "25P02"
    connection.rollback()
    assert connection.execute("select count(*) from t").fetchone() == (0,)


def test_leaving_the_block_commits_unless_it_raises(
    database: DevDatabase, connection: Connection, left: list[str]
) -> None:
    with opened(database, left) as made:
        made.execute("insert into t (id) values (1)")
    made = opened(database, left)
    made.execute("insert into t (id) values (2)")
    made.__exit__(ZeroDivisionError, ZeroDivisionError(), None)
    assert connection.execute("select id from t").fetchall() == [(1,)]
    assert left == ["left", "left"]
    with pytest.raises(dbapi_errors.InterfaceError):
        made.execute("select 1")


def test_placeholders() -> None:
    assert numbered("a = %s and b like '%%x' and c = %s", 2) == "a = $1 and b like '%x' and c = $2"
    assert numbered("a = $1", 1) == "a = $1"
    with pytest.raises(dbapi_errors.ProgrammingError):
        numbered("%s", 2)
