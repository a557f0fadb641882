"""PEP 249 over a session of a whole database in this process."""

from __future__ import annotations

import gc
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime
from decimal import Decimal
from pathlib import Path
from typing import cast

import pytest

import leasehold
from leasehold.dbapi import errors as dbapi_errors
from leasehold.dbapi import module
from leasehold.dbapi.module import Connection
from leasehold.dbapi.placeholders import numbered
from leasehold.dev.database import DevDatabase
from leasehold.model.errors import NotCoherent
from leasehold.replica.serving_node import SqlNode
from leasehold.replica.shared import SharedReplica
from leasehold.sql.planning.plan import Plans
from leasehold.sql_session.session import SqlSession
from leasehold.values.types import KNOWN


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
        ("copy t to stdout", (), dbapi_errors.NotSupportedError, ""),
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
    kind: type[module.Error],
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


def test_the_package_is_a_module_of_pep_249() -> None:
    """Its globals, its tree of exceptions, its constructors and its types."""
    assert (leasehold.apilevel, leasehold.threadsafety, leasehold.paramstyle) == (
        "2.0",
        1,
        "format",
    )
    for name in leasehold.__all__:
        assert getattr(leasehold, name) is not None
    assert issubclass(leasehold.Warning, Exception)
    assert issubclass(leasehold.InterfaceError, leasehold.Error)
    for kind in ("Data", "Operational", "Integrity", "Internal", "Programming", "NotSupported"):
        found = getattr(leasehold, f"{kind}Error")
        assert issubclass(found, leasehold.DatabaseError)
        assert getattr(Connection, f"{kind}Error") is found
    assert leasehold.TimestampFromTicks(0) == datetime(1970, 1, 1, tzinfo=UTC)
    assert leasehold.DateFromTicks(86_400) == leasehold.Date(1970, 1, 2)
    assert leasehold.TimeFromTicks(61) == leasehold.Time(0, 1, 1)
    assert leasehold.Binary(b"x") == b"x"
    groups = (leasehold.STRING, leasehold.BINARY, leasehold.NUMBER, leasehold.DATETIME)
    for kind in KNOWN:
        assert sum(kind == group for group in groups) + (kind == "boolean") == 1, kind
    assert leasehold.NUMBER == "numeric(8,2)"
    assert leasehold.NUMBER != leasehold.STRING


def test_type_codes_are_equal_to_their_types(connection: Connection) -> None:
    described = connection.execute("select id, n, at, note from t").description
    assert described is not None
    groups = [leasehold.NUMBER, leasehold.NUMBER, leasehold.DATETIME, leasehold.STRING]
    assert [column.type_code for column in described] == groups
    assert [len(column) for column in described] == [7] * 4


def test_fetching(connection: Connection) -> None:
    cursor = connection.cursor()
    assert (cursor.arraysize, cursor.rowcount, cursor.lastrowid, cursor.rownumber) == (
        1,
        -1,
        None,
        None,
    )
    assert cursor.description is None
    for fetch in (cursor.fetchone, cursor.fetchmany, cursor.fetchall):
        with pytest.raises(leasehold.ProgrammingError):
            fetch()  # nothing was run yet
    assert cursor.execute("select * from generate_series(1, 7)") is cursor
    assert cursor.rowcount == 7
    assert cursor.fetchmany() == [(1,)]
    cursor.arraysize = 2
    assert cursor.fetchmany() == [(2,), (3,)]
    assert (cursor.fetchmany(0), cursor.rownumber) == ([], 3)
    assert (next(cursor), cursor.fetchone()) == ((4,), (5,))
    assert (cursor.fetchmany(9), cursor.fetchmany(9), cursor.fetchall()) == ([(6,), (7,)], [], [])
    with pytest.raises(leasehold.ProgrammingError):
        cursor.fetchmany(-1)
    assert list(cursor) == []
    cursor.setinputsizes([1])
    cursor.setoutputsize(1)
    assert connection.execute("insert into t (id) values (1), (2)").rowcount == 2
    assert connection.execute("update t set note = 'x' where id = 3").rowcount == 0
    connection.rollback()
    assert connection.execute("drop table if exists u").rowcount == -1


def test_what_is_closed_raises(database: DevDatabase, left: list[str]) -> None:
    connection = opened(database, left)
    cursor = connection.execute("select 1")
    with cursor:
        assert cursor.fetchone() == (1,)
    closed: list[Callable[[], object]] = [cursor.fetchone, lambda: cursor.execute("select 1")]
    for call in closed:
        with pytest.raises(leasehold.InterfaceError):
            call()
    cursor = connection.execute("select 1")
    connection.close()
    connection.close()
    closed = [
        connection.commit,
        connection.rollback,
        connection.cursor,
        cursor.fetchall,
        lambda: cursor.executemany("select 1", []),
    ]
    for call in closed:
        with pytest.raises(leasehold.InterfaceError):
            call()
    assert left == ["left"]


def test_committing_what_has_failed_is_said(connection: Connection) -> None:
    connection.execute("insert into t (id) values (1)")
    with pytest.raises(leasehold.DataError):
        connection.execute("select 1/0")
    with pytest.raises(leasehold.InternalError) as caught:
        connection.commit()
    assert caught.value.sqlstate == "25P02"
    assert connection.execute("select count(*) from t").fetchone() == (0,)


def test_a_block_is_a_transaction_or_a_savepoint(connection: Connection) -> None:
    def inner_fails() -> None:
        with connection.transaction():
            connection.execute("insert into t (id) values (2)")
            raise ZeroDivisionError

    with connection.transaction():
        connection.execute("insert into t (id) values (1)")
        with pytest.raises(ZeroDivisionError):
            inner_fails()
        with connection.transaction():
            connection.execute("insert into t (id) values (3)")
    connection.rollback()  # it is committed
    assert connection.execute("select id from t order by id").fetchall() == [(1,), (3,)]
    connection.rollback()
    with pytest.raises(ZeroDivisionError):
        inner_fails()
    assert connection.execute("select count(*) from t").fetchone() == (2,)


def test_one_that_is_forgotten_is_said(database: DevDatabase) -> None:
    def forget() -> None:
        opened(database, [])
        gc.collect()

    with pytest.warns(ResourceWarning, match="not closed"):
        forget()


class FakeReplica:
    def __init__(self, node: SqlNode) -> None:
        self.serving = node
        self.closed = False

    def close(self) -> None:
        self.closed = True


def test_a_store_is_opened_once_and_closed_with_its_last_user(
    database: DevDatabase, tmp_path: Path
) -> None:
    made: list[FakeReplica] = []
    here, there = tmp_path / "a.db", tmp_path / "b.db"

    def opened_replica() -> FakeReplica:
        made.append(FakeReplica(database.sql_node()))
        return made[-1]

    def fails() -> FakeReplica:
        raise NotCoherent("no master")

    first, second = (SharedReplica.of(here, opened_replica) for _ in range(2))
    other = SharedReplica.of(there, opened_replica)
    assert first is second
    assert len(made) == 2
    first.leave()
    assert [replica.closed for replica in made] == [False, False]
    second.leave()
    assert [replica.closed for replica in made] == [True, False]
    with pytest.raises(NotCoherent):
        SharedReplica.of(here, fails)
    again = SharedReplica.of(here, opened_replica)
    assert len(made) == 3
    again.leave()
    other.leave()
    assert all(replica.closed for replica in made)


def test_threads_that_come_at_once_share_one_replica(database: DevDatabase, tmp_path: Path) -> None:
    made: list[FakeReplica] = []
    line = threading.Barrier(8)

    def opened_replica() -> FakeReplica:
        made.append(FakeReplica(database.sql_node()))
        return made[-1]

    def come() -> None:
        line.wait()
        for _ in range(50):
            shared = SharedReplica.of(tmp_path / "a.db", opened_replica)
            assert shared.node is not None
            shared.leave()

    with ThreadPoolExecutor(8) as pool:
        for done in [pool.submit(come) for _ in range(8)]:
            done.result()
    assert all(replica.closed for replica in made)


def test_a_wait_for_coherence_ends_when_it_is_told_to(tmp_path: Path) -> None:
    node = Incoherent()
    shared = SharedReplica.of(tmp_path / "a.db", lambda: FakeReplica(cast(SqlNode, node)))
    with pytest.raises(NotCoherent):
        shared.wait_coherent(1.0, lambda: True)
    assert node.asked == [(1.0, True)]
    shared.wait_coherent(0.0, lambda: False)  # as it is asked: no wait
    shared.leave()


class Incoherent:
    coherent = False

    def __init__(self) -> None:
        self.asked: list[tuple[float, bool]] = []

    def wait(self, met: Callable[[], bool], timeout_s: float) -> bool:
        self.asked.append((timeout_s, met()))
        return met()
