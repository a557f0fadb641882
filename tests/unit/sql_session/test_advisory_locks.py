"""Advisory locks of SQL sessions on several nodes of one database."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from leasehold.dev.database import DevDatabase
from leasehold.model.errors import LeaseholdError
from leasehold.pgwire.session import WouldBlock
from leasehold.replica.advisory_locks import owner_of, process_of
from leasehold.sql.planning.plan import Plans
from leasehold.sql_session.session import SqlSession
from tests.support.sql_session.sql_client import SqlClient, database_with

DEADLINE_S = 30.0


@pytest.fixture(scope="module")
def database(tmp_path_factory: pytest.TempPathFactory) -> Iterator[DevDatabase]:
    with database_with(tmp_path_factory, "create table t (id int primary key, n int)") as made:
        yield made


class Client(SqlClient):
    """A client with a number of its own."""

    def __init__(self, database: DevDatabase, node: str, process: int) -> None:
        super().__init__(database, node)
        self.session.close()
        self.session = SqlSession(self.node, Plans(), user="me", process=process)


@pytest.fixture
def one(database: DevDatabase) -> Iterator[Client]:
    made = Client(database, "r1", 11)
    yield made
    made.session.close()


@pytest.fixture
def other(database: DevDatabase) -> Iterator[Client]:
    made = Client(database, "r2", 12)
    yield made
    made.session.close()


def until(met: Callable[[], bool]) -> None:
    """Wait until it is met: what a session gives back when it ends is free a moment later."""
    done = threading.Event()
    tries = 0
    while not met():
        tries += 1
        assert tries < DEADLINE_S / 0.01, "it has never become free"
        done.wait(0.01)


class InThread:
    """A statement that may wait; `result` is its rows, or its SQLSTATE."""

    def __init__(self, client: SqlClient, text: str) -> None:
        self.result: Any = None
        self._client, self._text = client, text
        self._thread = threading.Thread(target=self._run)
        self._thread.start()

    def _run(self) -> None:
        try:
            self.result = self._client.ask(self._text)
        except LeaseholdError as error:
            self.result = error.sqlstate

    def end(self) -> Any:
        self._thread.join(DEADLINE_S)
        assert not self._thread.is_alive()
        return self.result


def is_waiting(client: SqlClient, key: int) -> Callable[[], bool]:
    asked = f"select 1 from pg_locks where locktype = 'advisory' and objid = {key} and not granted"
    return lambda: client.ask(asked) == [(1,)]


def test_a_lock_is_one_in_the_whole_database(one: Client, other: Client) -> None:
    one.ask("select pg_advisory_lock(1)")
    assert other.ask("select pg_try_advisory_lock(1)") == [(0,)]
    assert other.ask("select pg_try_advisory_lock(0, 1)") == [(1,)], "two integers are another key"
    assert one.ask("select pg_advisory_unlock(1)") == [(1,)]
    assert other.ask("select pg_try_advisory_lock(1)") == [(1,)]


def test_a_lock_is_given_back_as_often_as_it_was_taken(one: Client, other: Client) -> None:
    one.ask("select pg_advisory_lock(2), pg_advisory_lock(2)")
    assert one.ask("select pg_advisory_unlock(2)") == [(1,)]
    assert other.ask("select pg_try_advisory_lock(2)") == [(0,)]
    assert one.ask("select pg_advisory_unlock(2)") == [(1,)]
    assert other.ask("select pg_try_advisory_lock(2)") == [(1,)]
    assert one.ask("select pg_advisory_unlock(2)") == [(0,)]
    warned = [report for report in one.reports if "don't own" in str(report)]
    assert len(warned) == 1
    assert "ExclusiveLock" in str(warned[0])


def test_shared_locks_share_and_exclude(one: Client, other: Client) -> None:
    assert one.ask("select pg_try_advisory_lock_shared(3)") == [(1,)]
    assert other.ask("select pg_try_advisory_lock_shared(3)") == [(1,)]
    assert other.ask("select pg_try_advisory_lock(3)") == [(0,)]
    assert one.ask("select pg_advisory_unlock(3)") == [(0,)], "it has the other mode"
    assert one.ask("select pg_advisory_unlock_shared(3)") == [(1,)]
    assert other.ask("select pg_try_advisory_lock(3)") == [(1,)]
    assert one.ask("select pg_try_advisory_lock_shared(3)") == [(0,)]


def test_a_transactions_lock_ends_with_it(one: Client, other: Client) -> None:
    for end in ("commit", "rollback"):
        one.ask("begin; select pg_advisory_xact_lock(4)")
        assert other.ask("select pg_try_advisory_xact_lock(4)") == [(0,)]
        assert one.ask("select pg_advisory_unlock(4)") == [(0,)], "it is the transaction's"
        one.ask(end)
        assert other.ask("select pg_try_advisory_xact_lock(4)") == [(1,)]
    one.ask("select pg_advisory_xact_lock(4)")
    assert other.ask("select pg_try_advisory_xact_lock(4)") == [(1,)], "each statement is one"


def test_rollback_to_gives_back_what_was_taken_since(one: Client, other: Client) -> None:
    one.ask("begin; select pg_advisory_xact_lock(5)")
    one.ask("savepoint s; select pg_advisory_xact_lock(6), pg_advisory_lock(7)")
    one.ask("rollback to s")
    tries = [other.ask(f"select pg_try_advisory_lock({key})")[0][0] for key in (5, 6, 7)]
    assert tries == [0, 1, 0]
    one.ask("rollback; select pg_advisory_unlock_all()")


@pytest.mark.parametrize(
    ("locks", "ends"),
    [
        ("begin; select pg_advisory_xact_lock(5)", "commit"),
        ("begin; select pg_advisory_xact_lock(5)", "rollback"),
        ("begin; savepoint s; select pg_advisory_xact_lock(5)", "rollback to s"),
        ("select pg_advisory_lock(5)", "select pg_advisory_unlock(5)"),
        ("select pg_advisory_lock(5)", "select pg_advisory_unlock_all()"),
        ("select pg_advisory_lock(5)", "discard all"),
    ],
)
def test_what_gives_a_lock_back_is_answered_when_it_is_free(
    one: Client, other: Client, locks: str, ends: str
) -> None:
    """On the thread that all clients share nobody waits for the ledger, so it is not done there."""
    one.ask(locks)
    one.session.hurried = True
    try:
        with pytest.raises(WouldBlock):
            one.ask(ends)
    finally:
        one.session.hurried = False
    one.ask(ends)
    assert other.ask("select pg_try_advisory_lock(5)") == [(True,)]
    other.ask("select pg_advisory_unlock_all()")
    one.ask("rollback; select pg_advisory_unlock_all()")


def test_a_session_that_ends_gives_its_locks_back(one: Client, other: Client) -> None:
    third = Client.__new__(Client)
    third.__dict__.update(one.__dict__)
    third.session = SqlSession(one.node, Plans(), user="me", process=13)
    third.ask("select pg_advisory_lock(8)")
    third.ask("begin; select pg_advisory_xact_lock(9)")
    assert other.ask("select pg_try_advisory_lock(8)") == [(0,)]
    third.session.close()
    until(lambda: other.ask("select pg_try_advisory_lock(8)") == [(1,)])
    until(lambda: other.ask("select pg_try_advisory_lock(9)") == [(1,)])


def test_discard_all_gives_locks_back(one: Client, other: Client) -> None:
    one.ask("select pg_advisory_lock(10)")
    one.ask("discard all")
    assert other.ask("select pg_try_advisory_lock(10)") == [(1,)]


def test_who_waits_gets_it_in_the_order_of_asking(one: Client, other: Client) -> None:
    one.ask("select pg_advisory_lock(20)")
    waits = InThread(other, "select pg_advisory_lock(20)")
    until(is_waiting(one, 20))
    assert one.ask("select pg_advisory_unlock(20)") == [(1,)]
    assert one.ask("select pg_try_advisory_lock(20)") == [(0,)], "the other was first"
    assert waits.end() == [("",)]


def test_a_lock_is_waited_for_as_long_as_lock_timeout(one: Client, other: Client) -> None:
    one.ask("select pg_advisory_lock(21)")
    other.ask("set lock_timeout = '20ms'")
    assert other.code("select pg_advisory_lock(21)") == "55P03"
    other.ask("set lock_timeout = 0; set statement_timeout = '20ms'")
    assert other.code("select pg_advisory_lock(21)") == "57014"
    other.ask("set statement_timeout = 0")
    assert one.ask("select count(*) from pg_locks where objid = 21") == [(1,)], "none waits"


def test_a_cycle_of_waits_is_a_deadlock(one: Client, other: Client) -> None:
    one.ask("select pg_advisory_lock(22)")
    other.ask("select pg_advisory_lock(23)")
    waits = InThread(other, "select pg_advisory_lock(22)")
    until(is_waiting(one, 22))
    one.ask("set lock_timeout = '10s'")
    assert one.code("select pg_advisory_lock(23)") == "40P01"
    one.ask("select pg_advisory_unlock_all()")
    assert waits.end() == [("",)]


def test_pg_locks_shows_who_has_which(one: Client, other: Client) -> None:
    key = 5 * 2**32 + 24
    one.ask(f"select pg_advisory_lock({key}), pg_advisory_lock_shared(-1, 24)")
    asked = (
        "select classid, objid, objsubid, pid, mode, granted from pg_locks"
        " where locktype = 'advisory' and objid = 24 order by classid"
    )
    rows = [(5, 24, 1, "ExclusiveLock", 1), (2**32 - 1, 24, 2, "ShareLock", 1)]
    assert one.ask(asked) == [(*row[:3], 11, *row[3:]) for row in rows]
    assert other.ask(asked) == [(*row[:3], None, *row[3:]) for row in rows]


def test_two_clients_that_lock_write_one_after_the_other(one: Client, other: Client) -> None:
    """What one has committed under a lock the next one sees, on another node too."""
    one.ask("insert into t values (1, 0)")

    def count_up(client: Client) -> None:
        for _ in range(10):
            client.ask("select pg_advisory_lock(30)")
            (number,) = client.ask("select n from t where id = 1")[0]
            client.ask(f"update t set n = {number + 1} where id = 1")
            client.ask("select pg_advisory_unlock(30)")

    threads = [threading.Thread(target=count_up, args=(client,)) for client in (one, other)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(DEADLINE_S)
    assert one.ask("select n from t where id = 1") == [(20,)]


def test_numbers_of_sessions() -> None:
    for process in (1, 7, -1, -7, 2**31 - 1):
        assert owner_of(process) > 0
        assert process_of(owner_of(process)) == process


def test_a_lost_lock_commits_nothing(
    database: DevDatabase, one: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The master refuses it: its node may not know yet that another has the lock."""
    one.ask("insert into t values (40, 0)")
    one.ask("begin; select pg_advisory_xact_lock(40); update t set n = 1 where id = 40")
    fence = one.session._state.locks.fence()
    assert fence is not None
    lost = fence._replace(ledger_run="of another ledger")
    monkeypatch.setattr(one.session._state.locks, "fence", lambda: lost)
    assert one.code("commit") == "57P01"
    assert one.code("insert into t values (41, 0)") == "57P01"
    assert one.code("alter table t add column x int") == "57P01"
    monkeypatch.undo()
    assert one.ask("select n from t where id >= 40") == [(0,)]
    one.ask("begin; select pg_advisory_xact_lock(40); update t set n = 2 where id = 40; commit")
    assert one.ask("select n from t where id >= 40") == [(2,)]
