"""Sessions that compute for long: all others of their node go on, and each can be ended.

Method: a whole database in this process, whose sessions, applying thread and master share one
interpreter.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from leasehold.adapters.os.computing_turns import ComputingTurns
from leasehold.dev.database import DevDatabase
from leasehold.model.errors import LeaseholdError
from leasehold.pgwire.session import WouldBlock
from leasehold.pgwire.wire_errors import Canceled
from tests.support.sql_session.sql_client import SqlClient

COMPUTING = 64
DEADLINE_S = 60.0
ENDLESS = "SELECT count(*) FROM generate_series(1, 100000000000) AS g WHERE md5(g::text) = 'x'"


@pytest.fixture(scope="module")
def database(tmp_path_factory: pytest.TempPathFactory) -> Iterator[DevDatabase]:
    made = DevDatabase(Path(tmp_path_factory.mktemp("computing")))
    made.wait_ready()
    SqlClient(made).ask("CREATE TABLE t (id int PRIMARY KEY, n int NOT NULL)")
    SqlClient(made).ask("INSERT INTO t VALUES (1, 0)")
    yield made
    made.close()


def wait_until(met: Callable[[], bool]) -> None:
    end_s = time.monotonic() + DEADLINE_S
    while not met():
        assert time.monotonic() < end_s, "the deadline is over"
        time.sleep(0.01)


class Computing:
    """Sessions that compute until they are cancelled, each on a thread of its own."""

    def __init__(self, database: DevDatabase) -> None:
        self.clients = [SqlClient(database) for _ in range(COMPUTING)]
        self.codes: list[str] = []
        self._threads = [
            threading.Thread(target=self._compute, args=(client,), daemon=True)
            for client in self.clients
        ]
        for thread in self._threads:
            thread.start()

    def _compute(self, client: SqlClient) -> None:
        try:
            client.ask(ENDLESS)
        except LeaseholdError as error:
            self.codes.append(error.sqlstate)

    def cancel(self) -> None:
        """Cancel all, again where a session was between two of a statement's steps."""

        def have_ended() -> bool:
            for client in self.clients:
                client.session.cancel(Canceled("canceling statement due to user request"))
            return not any(thread.is_alive() for thread in self._threads)

        wait_until(have_ended)


def test_all_but_a_few_wait_while_others_read_and_write(database: DevDatabase) -> None:
    turns: ComputingTurns = database.sql_node().sessions.computing
    computing = Computing(database)
    try:
        # At any time some may be between two turns.
        wait_until(lambda: turns.waiting >= COMPUTING - turns.at_once - 1)
        other = SqlClient(database)
        for number in range(1, 21):
            other.ask("UPDATE t SET n = n + 1 WHERE id = 1")
            assert other.ask("SELECT n FROM t WHERE id = 1") == [(number,)]
        assert database.sql_node().coherent
        assert computing.codes == []
    finally:
        computing.cancel()
    assert computing.codes == ["57014"] * COMPUTING
    assert turns.waiting == 0


def test_a_session_that_computes_is_not_read_where_others_wait(database: DevDatabase) -> None:
    client = SqlClient(database)
    client.ask("SELECT count(*) FROM generate_series(1, 300000) AS g WHERE md5(g::text) = 'x'")
    session = client.session
    session.hurried = True
    try:
        with pytest.raises(WouldBlock):
            session.statements("SELECT n FROM t WHERE id = 1")
    finally:
        session.hurried = False
    turns = database.sql_node().sessions.computing
    wait_until(lambda: _is_read(client))
    assert turns.waiting == 0


def _is_read(client: SqlClient) -> bool:
    client.session.hurried = True
    try:
        return len(client.session.statements("SELECT n FROM t WHERE id = 1")) == 1
    except WouldBlock:
        return False
    finally:
        client.session.hurried = False
