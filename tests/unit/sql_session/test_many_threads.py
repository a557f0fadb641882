"""Scenario 39, `many_rows_many_threads`: all rows of many threads are counted, and a client that
goes away takes what it had begun with it."""

from __future__ import annotations

import os
import socket
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import psycopg
import pytest

from leasehold.dev.database import DevDatabase
from leasehold.settings.sql_port import PgwireSettings
from leasehold.sql_session.listener import SqlListener
from leasehold.sql_session.running import Running
from tests.support.sql_session.sql_client import SqlClient, database_with

THREADS = 12
INSERTS = 15
ROWS = 4
WAIT_S = 20.0


@pytest.fixture(scope="module")
def database(tmp_path_factory: pytest.TempPathFactory) -> Iterator[DevDatabase]:
    table = "create table t (id int primary key, a int); create table counted (id int, n int)"
    with database_with(tmp_path_factory, table, "insert into counted values (1, 0)") as made:
        yield made


def test_39_all_rows_of_many_threads_are_counted(database: DevDatabase) -> None:
    """Some take theirs back; a row that all of them count up is right in the end."""

    def work(number: int) -> int:
        client, kept = SqlClient(database, f"r{1 + number % 2}"), 0
        for turn in range(INSERTS):
            first = (number * INSERTS + turn) * ROWS
            rows = ", ".join(f"({first + n}, {number})" for n in range(ROWS))
            ends = "rollback" if turn % 5 == 4 else "commit"
            client.ask(f"begin; insert into t values {rows}")
            client.ask(f"update counted set n = n + {ROWS}; {ends}")
            kept += ROWS * (ends == "commit")
        client.session.close()
        return kept

    with ThreadPoolExecutor(THREADS) as threads:
        kept = sum(threads.map(work, range(THREADS)))
    assert kept == THREADS * INSERTS * ROWS * 4 // 5
    for node in ("r1", "r2"):
        client = SqlClient(database, node)
        assert client.ask("select count(*), count(distinct id) from t") == [(kept, kept)]
        assert client.ask("select n from counted") == [(kept,)]
        client.session.close()
    assert not database.check().differences


def test_39_a_client_that_goes_away_cancels_its_work(
    database: DevDatabase, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In the middle of a statement without end, in a block that has written: both are gone."""
    runs = threading.Event()
    stopped = Running._stopped_in_turn

    def watched(running: Running) -> bool:
        runs.set()
        return stopped(running)

    monkeypatch.setattr(Running, "_stopped_in_turn", watched)
    node = database.sql_node("r1")
    listener = SqlListener(node, PgwireSettings())
    try:
        leaver = psycopg.connect(
            host="127.0.0.1", port=listener.port, user="me", dbname=node.database
        )
        leaver.execute("insert into t values (-1, 0)")
        runs.clear()

        def endless() -> None:
            with pytest.raises(psycopg.OperationalError):
                leaver.execute(
                    "select count(*) from t a, t b, t c, t d where a.a < b.a + c.a + d.a"
                )

        asks = threading.Thread(target=endless)
        asks.start()
        assert runs.wait(WAIT_S)
        (mine,) = node.sessions.activities()
        assert mine
        with socket.socket(fileno=os.dup(leaver.pgconn.socket)) as connection:
            connection.shutdown(socket.SHUT_RDWR)
        asks.join(WAIT_S)
        assert not asks.is_alive()
        assert node.wait(lambda: not node.sessions.activities(), WAIT_S), "it goes on for nobody"
        leaver.close()
        client = SqlClient(database)
        assert client.ask("select * from t where id = -1") == []
        client.session.close()
    finally:
        listener.close()
