"""What a node tells in SQL of itself and of its database, and what it does when it is asked to.

Method: sessions on a whole database in this process; for what cannot be reached, a view that says
so.
"""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from leasehold.admin.shared_watch import SharedWatch
from leasehold.admin.view import ClusterView
from leasehold.dbapi.connection import Connection
from leasehold.dev.database import DevDatabase
from leasehold.dev.node import DevNode
from leasehold.model.errors import BusUnavailable, FeatureNotSupported
from leasehold.replica.queries import query
from leasehold.sql.planning.plan import Plans
from leasehold.sql.system_catalog.leasehold_schema import NODE_RELATIONS
from leasehold.sql_session.session import SqlSession
from tests.support.sql_session.sql_client import SqlClient

LONG = "select count(*) from generate_series(1, 3000000) a, generate_series(1, 3000000) b"


@pytest.fixture(scope="module")
def database(tmp_path_factory: pytest.TempPathFactory) -> Iterator[DevDatabase]:
    dev = DevDatabase(Path(tmp_path_factory.mktemp("views")))
    dev.wait_ready()
    SqlClient(dev).ask("create table t (id int primary key, n int)")
    yield dev
    dev.close()


def dicts(client: SqlClient, relation: str) -> list[dict[str, Any]]:
    schema, _, name = relation.rpartition(".")
    names = [column.name for column in NODE_RELATIONS[schema, name].columns]
    return [dict(zip(names, row, strict=True)) for row in client.ask(f"select * from {relation}")]


@pytest.mark.parametrize(("schema", "name"), NODE_RELATIONS)
def test_every_relation_can_be_read(client: SqlClient, schema: str, name: str) -> None:
    client.ask(f"select * from {schema}.{name}")
    assert client.code(f"delete from {schema}.{name}") == "42501"
    assert client.code(f"select nope from {schema}.{name}") == "42703"


def test_nodes(client: SqlClient, database: DevDatabase) -> None:
    def seen() -> dict[str, dict[str, Any]]:
        return {row["node"]: row for row in dicts(client, "leasehold.nodes")}

    def both_coherent() -> bool:
        rows = seen()
        return {rows[node]["coherency"] for node in ("r1", "r2")} == {"coherent"}

    rows = seen()
    assert sorted(rows) == ["m1", "r1", "r2"]
    assert rows["m1"]["role"] == "master"
    # Leases here are of real time: one that ran out while this process had no turn comes back.
    assert database.until(both_coherent, 30.0)
    asked = "select node from leasehold.nodes where role = 'replica' order by 1 desc limit 1"
    assert client.ask(asked.replace("'replica'", f"'{rows['r2']['role']}'")) == [("r2",)]


def test_jobs_versions_and_their_steering(client: SqlClient, database: DevDatabase) -> None:
    client.ask("create index t_n on t (n)")
    job = dicts(client, "leasehold.jobs")[-1]
    assert (job["table_name"], job["status"], job["waits_for"]) == ("t", "succeeded", "")
    assert job["sql"] == "create index t_n on t (n)"
    newest, *earlier = [
        row for row in dicts(client, "leasehold.versions") if row["table_name"] == "t"
    ]
    assert (newest["is_newest"], newest["job"]) == (1, job["job"])
    assert "t_n" in newest["changes"]
    assert {row["is_newest"] for row in earlier} == {0}
    number = job["job"]
    for action in ("cancel", "pause", "resume", "postpone", "complete"):
        assert client.code(f"select leasehold.{action}_job({number})") == "55000"  # it has ended
    assert client.code("select leasehold.cancel_job(4711)") == "42704"
    assert client.code("select leasehold.nope_job(1)") == "42883"
    assert client.code("select cancel_job(1)") == "42883"


def test_a_job_is_paused_set_and_cancelled(client: SqlClient, database: DevDatabase) -> None:
    """It waits for a transaction that has pinned the version before the last."""
    other = SqlClient(database)
    other.ask("begin")
    other.ask("select * from t")
    client.ask("set leasehold.wait_for_jobs = off")
    client.ask("alter table t add column m int")
    job = dicts(client, "leasehold.jobs")[-1]["job"]
    assert client.ask(f"select leasehold.postpone_job({job})") == [(1,)]
    assert client.ask(f"select leasehold.set_job({job}, 'rows_per_second', 100)") == [(1,)]
    # Of none of these a request is made: 'id' would be its own.
    for name in ("nope", "id", "job", "action", "sql", "dismissed", ""):
        assert client.code(f"select leasehold.set_job({job}, '{name}', 1)") == "22023"
    for value in (-1, 2**31, 2**62):
        set_rate = f"select leasehold.set_job({job}, 'rows_per_second', {value})"
        assert client.code(set_rate) == "22003"
    for number in (-1, 0, 2**31, 2**62):
        assert client.code(f"select leasehold.pause_job({number})") == "42704"
    told = dicts(client, "leasehold.jobs")[-1]
    assert json.loads(told["settings"])["rows_per_second"] == 100
    assert (told["dismissed"], told["ended"]) == (0, None)
    (blocker,) = json.loads(told["blockers"])
    assert (blocker["agent"], blocker["table"]) == ("r1", "t")
    assert blocker["version"] < dicts(client, "leasehold.versions")[0]["version"]
    assert client.ask(f"select leasehold.pause_job({job})") == [(1,)]
    assert dicts(client, "leasehold.jobs")[-1]["status"] == "paused"
    assert client.ask(f"select leasehold.resume_job({job}), 1 as one") == [(1, 1)]
    assert client.ask(f"select leasehold.cancel_job({job})") == [(1,)]
    (lease,) = [row for row in dicts(client, "leasehold.leases") if row["is_old"]]
    assert (lease["table_name"], lease["agent"]) == ("t", "r1")
    other.ask("rollback")
    other.session.close()
    database.wait_job(job)
    assert dicts(client, "leasehold.jobs")[-1]["status"] in ("cancelled", "failed")


def test_a_failed_job_is_dismissed_by_number(client: SqlClient) -> None:
    client.ask("set leasehold.wait_for_jobs = on; create table d (id int primary key, a int)")
    client.ask("insert into d values (1, 1), (2, 1)")
    assert client.code("create unique index twice on d (a)") == "23505"
    job = dicts(client, "leasehold.jobs")[-1]
    assert job["status"] == "failed"
    dismiss = f"select leasehold.dismiss_job({job['job']})"
    assert client.ask(dismiss) == client.ask(dismiss) == [(1,)]
    assert dicts(client, "leasehold.jobs")[-1]["status"] == "failed"
    client.ask("drop table d")
    job = dicts(client, "leasehold.jobs")[-1]
    assert client.code(f"select leasehold.dismiss_job({job['job']})") == "55000"


def test_transactions_sessions_and_locks(client: SqlClient, database: DevDatabase) -> None:
    embedded = SqlSession(database.sql_node(), Plans(), user="anna")
    connection = Connection(embedded, lambda: None)
    connection.execute("select n from t where id = 1")
    rows = {row["user_name"]: row for row in dicts(client, "leasehold.transactions")}
    mine, theirs = rows["me"], rows["anna"]
    assert mine["state"] == "active"
    assert mine["sql"] == "select * from leasehold.transactions"
    assert (theirs["state"], theirs["sql"]) == (
        "idle in transaction",
        "select n from t where id = 1",
    )
    assert theirs["node"] == "r1"
    assert theirs["isolation"] is not None
    version = dicts(client, "leasehold.versions")[0]["version"]
    assert json.loads(theirs["pinned"]) == {"t": version}
    assert theirs["statement_ms"] >= 0
    pid = theirs["pid"]
    assert pid < 0
    locked = f"select relation::regclass::text, mode, granted from pg_locks where pid = {pid}"
    assert client.ask(locked) == [("t", "AccessShareLock", 1)]
    asked = f"select usename, state, query from pg_stat_activity where pid = {pid}"
    assert client.ask(asked) == [("anna", theirs["state"], theirs["sql"])]
    assert client.code(f"select pg_terminate_backend({pid})") == "0A000"  # a program's own
    assert client.ask("select pg_terminate_backend(4711)") == [(0,)]
    connection.close()
    assert client.ask(f"select pg_cancel_backend({pid})") == [(0,)]
    assert "anna" not in {row["user_name"] for row in dicts(client, "leasehold.transactions")}


def test_a_session_is_cancelled_by_another(client: SqlClient, database: DevDatabase) -> None:
    begun = threading.Event()
    made = SqlSession(database.sql_node(), Plans(), user="anna")
    connection = Connection(made, lambda: None, autocommit=True)
    caught: list[Exception] = []

    def work() -> None:
        begun.set()
        try:
            connection.execute(LONG)
        except connection.Error as error:
            caught.append(error)

    thread = threading.Thread(target=work)
    thread.start()
    begun.wait()
    cancel = "select leasehold.cancel_session(pid) from pg_stat_activity where usename = 'anna'"
    while thread.is_alive():  # again, as it may not have begun yet
        assert client.ask(cancel) == [(1,)]
        thread.join(0.01)
    assert getattr(caught[0], "sqlstate", "") == "57014"
    connection.close()


def test_dead_letters_and_settings(client: SqlClient, database: DevDatabase) -> None:
    request = {"table": "nope", "op": "insert", "key": {"id": 1}, "values": {"x": None}}
    answer = database.ask(request)
    asked = "select sqlstate, request ->> 'table', request_id from leasehold.dead_letter"
    assert database.until(lambda: bool(client.ask(asked)), 30.0)
    assert client.ask(asked)[-1] == ("42P01", "nope", answer.request_id)
    name = "select value from leasehold.settings where name = 'LEASEHOLD_NODE'"
    assert client.ask(name) == [("r1",)]


def test_what_could_not_be_applied_is_submitted_again(
    client: SqlClient, database: DevDatabase
) -> None:
    """Under a new id, in the session's name, and never in a transaction that only reads."""
    database.ask({"table": "later", "op": "insert", "values": {"id": 7}})
    asked = "select letter from leasehold.dead_letter where request ->> 'table' = 'later'"
    assert database.until(lambda: bool(client.ask(asked)), 30.0)
    ((letter,),) = client.ask(asked)
    again = f"select leasehold.resubmit_letter({letter})"
    assert client.code(again) == "42P01"
    client.ask("create table later (id int primary key)")
    assert client.code(f"begin read only; {again}") == "25006"
    client.ask("rollback")
    assert client.ask(again) == [(1,)]
    assert client.ask("select id from later") == [(7,)]
    assert client.code(again) == "23505", "a new request, and no memory of the one before"
    assert client.ask("select leasehold.resubmit_letter(4711)") == [(0,)]
    changed = (
        """'{"table": "later", "op": "insert", "values": {"id": 8}, "id": "none", "attempt": 9}'"""
    )
    assert client.ask(f"select leasehold.submit_request({changed})") == [(1,)]
    for nothing in ("", "[]", "7", '{"job": 1, "action": "pause"}', '{"table": "later"}', "{"):
        assert client.code(f"select leasehold.submit_request('{nothing}')") == "08P01"
    client.ask("drop table later")


def test_joined_with_tables_and_not_in_the_way_of_names(client: SqlClient) -> None:
    asked = "select v.version > 0 from leasehold.versions v join pg_class c on c.relname ="
    assert client.ask(f"{asked} v.table_name where v.is_newest and relname = 't'") == [(1,)]
    assert client.code("select * from jobs") == "42P01"  # not by the search path
    assert client.code("select * from leasehold.nope") == "42P01"
    client.ask("create table jobs (id int primary key)")
    assert client.ask("select * from jobs") == []
    client.ask("drop table jobs")


def test_what_is_away_is_a_sentence(
    client: SqlClient, database: DevDatabase, monkeypatch: pytest.MonkeyPatch
) -> None:
    def away(_: DevNode) -> ClusterView:
        raise BusUnavailable("Kafka at 127.0.0.1:1 can't be reached")

    monkeypatch.setattr(DevNode, "cluster", away)
    with pytest.raises(BusUnavailable, match="Kafka at"):
        client.ask("select * from leasehold.nodes")
    seen = ClusterView(unreachable={"ledger": "Redis at x can't be reached"})
    monkeypatch.setattr(DevNode, "cluster", lambda _: seen)
    assert client.code("select * from leasehold.leases") == "58030"
    assert client.ask("select * from leasehold.nodes") == []
    monkeypatch.undo()
    with database.held():
        database.cluster.ledger.reachable = False
        try:
            assert client.code("select * from leasehold.leases") == "58030"
        finally:
            database.cluster.ledger.reachable = True
    assert client.ask("select 1") == [(1,)]


def test_a_query_without_a_session_is_refused(database: DevDatabase) -> None:
    store = database._stores["r1"]
    with store.open_snapshot() as snapshot, pytest.raises(FeatureNotSupported, match="SQL session"):
        query(Plans(), snapshot, "select * from leasehold.nodes", (), _limits())[1].all()


def _limits() -> Any:
    from leasehold.adapters.sqlite.query import NO_LIMITS

    return NO_LIMITS


# ---------------------------------------------------------------- one watch for many looks


class FakeWatch:
    def __init__(self, view: ClusterView) -> None:
        self.view = view
        self.closed = threading.Event()

    def first_look(self, timeout_s: float) -> ClusterView:
        assert not self.closed.is_set(), "closed while it is asked"
        return self.view

    def wait_for(self, wanted: Callable[[ClusterView], bool], timeout_s: float) -> bool:
        """What comes on the topics meanwhile."""
        self.view = replace(self.view, committed=self.view.committed + 1)
        return wanted(self.view)

    def close(self) -> None:
        self.closed.set()


def test_a_watch_is_kept_while_it_is_asked_and_closed_after() -> None:
    made: list[FakeWatch] = []

    def opened() -> FakeWatch:
        made.append(FakeWatch(ClusterView()))
        return made[-1]

    before = set(threading.enumerate())
    looks = SharedWatch(opened, kept_s=0.05)
    assert looks.view() is made[0].view
    assert made[0].closed.wait(10.0)
    looks.view()
    assert len(made) == 2
    looks.close()
    assert made[1].closed.is_set()
    with pytest.raises(BusUnavailable):
        looks.view()
    looks.close()
    for thread in set(threading.enumerate()) - before:
        thread.join(10.0)
    assert set(threading.enumerate()) == before
    unused = SharedWatch(opened)
    unused.close()
    assert len(made) == 2


def test_many_ask_one_watch() -> None:
    made: list[FakeWatch] = []

    def opened() -> FakeWatch:
        made.append(FakeWatch(ClusterView()))
        return made[-1]

    looks = SharedWatch(opened, kept_s=60.0)
    wait = threading.Barrier(8)

    def ask() -> None:
        wait.wait()
        for _ in range(50):
            looks.view()

    threads = [threading.Thread(target=ask) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    looks.close()
    assert len(made) == 1


def test_a_look_waits_for_what_this_node_has_applied() -> None:
    looks = SharedWatch(lambda: FakeWatch(ClusterView()))
    assert looks.view().committed == 0
    assert looks.view(lambda view: view.committed > 0).committed == 1
    assert looks.view(lambda view: view.committed > 0).committed == 1  # there at once
    assert looks.view(lambda view: False).committed == 2  # too late: what there is
    looks.close()


def test_a_broker_that_is_away_is_raised() -> None:
    away = ClusterView(unreachable={"kafka": "Kafka at x can't be reached"})
    looks = SharedWatch(lambda: FakeWatch(away))
    with pytest.raises(BusUnavailable, match="Kafka at x"):
        looks.view()
    looks.close()
