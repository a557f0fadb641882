"""What a statement writes, and what a transaction keeps of its statements, is bounded in bytes."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from leasehold.dev.database import DevDatabase
from tests.support.sql_session.sql_client import SqlClient, database_with

MB = 1 << 20
SERIES = "generate_series(1, 1000000000000) n"


@pytest.fixture(scope="module")
def database(tmp_path_factory: pytest.TempPathFactory) -> Iterator[DevDatabase]:
    table = "create table t (id bigint primary key, note text)"
    with database_with(tmp_path_factory, table) as made:
        yield made


@pytest.fixture
def client(database: DevDatabase) -> Iterator[SqlClient]:
    made = SqlClient(database)
    yield made
    made.session.close()
    assert database.memory("r1").pool.held == 0, "each budget was closed"


@pytest.fixture
def small(database: DevDatabase, client: SqlClient, monkeypatch: pytest.MonkeyPatch) -> SqlClient:
    """A session whose statements and transactions hold a MB each."""
    monkeypatch.setattr(database.memory("r1"), "statement_bytes_max", MB)
    return client


@pytest.mark.parametrize(
    "text",
    [
        f"insert into t select n, 'x' from {SERIES}",
        f"insert into t select n, 'x' from {SERIES} on conflict do nothing",
        f"insert into t select n, 'x' from {SERIES} returning note",
        f"with s as (select n from {SERIES}) insert into t select n, 'y' from s",
    ],
)
def test_an_insert_ends_once_it_has_found_too_much(small: SqlClient, text: str) -> None:
    """Goal: it would be found for hours, and was counted behind that."""
    assert small.code(text) == "53200"
    assert small.ask("select count(*) from t") == [(0,)]


def test_an_insert_ends_once_it_has_found_too_many_rows(
    client: SqlClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("leasehold.adapters.sqlite.write.WRITES_MAX", 1_000)
    assert client.code(f"insert into t select n, 'x' from {SERIES}") == "54000"


def test_rows_beside_own_ones_are_bounded(small: SqlClient) -> None:
    """Goal: they are computed at once, since own rows are shown while a statement runs alone."""
    small.ask("begin isolation level repeatable read; insert into t values (1, 'x'); savepoint s")
    asked = f"select t.id, n from t, {SERIES}"
    assert small.code(asked) == "53200"
    small.ask("rollback to s")
    assert small.ask("select id from t") == [(1,)]
    small.ask("rollback")


STEPS = {
    "writes rows": "insert into t select n, repeat('x', 100) from generate_series({0}, {0} + 99) n",
    "shows what it writes": (
        "insert into t select {0}, 'x' from generate_series(1, 1) returning repeat('x', 9000)"
    ),
    "has long texts": "update t set note = 'a' where id = {0} and note <> '" + "y" * 9_000 + "'",
}


@pytest.mark.parametrize("text", STEPS.values(), ids=STEPS)
def test_a_transaction_keeps_no_more_than_a_statement(small: SqlClient, text: str) -> None:
    """Goal: what it has written, and the statements that would run again."""
    small.ask("begin")
    codes = (small.code(text.format(1_000 * number)) for number in range(1, 10_000))
    assert next(code for code in codes if code != "00000") == "53200"
    small.ask("rollback")
    small.ask("begin; insert into t values (0, 'x'); rollback")


def test_what_is_taken_back_is_free(small: SqlClient) -> None:
    small.ask("begin; savepoint s")
    for _ in range(100):
        small.ask("insert into t select n, repeat('x', 100) from generate_series(1, 500) n")
        small.ask("rollback to s")
    small.ask("rollback")


def test_savepoints_have_no_copies_of_the_rows(client: SqlClient) -> None:
    """Goal: each took as much as all rows that were written before it. Method: rows go back and
    forth between states, as a model has them."""
    client.ask("begin isolation level repeatable read")
    known: list[dict[int, str]] = [{}]
    for depth in range(40):
        now = dict(known[-1])
        for key in range(depth % 7, depth % 7 + 3):
            if key in now and depth % 3 == 0:
                client.ask(f"delete from t where id = {key}")
                del now[key]
            elif key in now:
                client.ask(f"update t set note = 'd{depth}' where id = {key}")
                now[key] = f"d{depth}"
            else:
                client.ask(f"insert into t values ({key}, 'd{depth}')")
                now[key] = f"d{depth}"
        client.ask(f"savepoint s{depth}")
        known.append(now)
    for depth in (37, 36, 20, 19, 3, 0):
        client.ask(f"rollback to s{depth}")
        found = client.ask("select id, note from t order by id")
        assert dict(found) == known[depth + 1]
    client.ask("rollback")


def test_savepoints_have_a_number(client: SqlClient, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("leasehold.transaction.block.SAVEPOINTS_MAX", 3)
    client.ask("begin; savepoint a; savepoint b; savepoint c")
    assert client.code("savepoint d") == "54000"
    client.ask("rollback to b; savepoint c; rollback")
