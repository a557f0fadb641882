"""UNIQUE constraints that are looked at when a transaction commits."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from leasehold.dev.database import DevDatabase
from leasehold.model.features import Feature, FeatureGate
from tests.support.sql_session.sql_client import SqlClient, client_of_tables

MADE = "create table t (id int primary key, n int unique deferrable initially deferred)"


@pytest.fixture
def client(database: DevDatabase) -> Iterator[SqlClient]:
    filled = "insert into t values (1, 1), (2, 2)"
    with client_of_tables(database, MADE, filled, dropped_by="drop table t") as made:
        yield made


def test_values_are_exchanged_by_two_statements(client: SqlClient) -> None:
    client.ask("begin; update t set n = 2 where id = 1")
    assert client.ask("select id from t where n = 2 order by id") == [(1,), (2,)]
    client.ask("update t set n = 1 where id = 2; commit")
    assert client.ask("select id, n from t order by id") == [(1, 2), (2, 1)]


def test_what_is_broken_at_the_end_is_told_by_commit(client: SqlClient) -> None:
    client.ask("begin; update t set n = 2 where id = 1")
    assert client.code("commit") == "23505"
    assert client.ask("select n from t where id = 1") == [(1,)]


def test_it_is_looked_at_when_that_is_said(client: SqlClient) -> None:
    client.ask("begin; update t set n = 2 where id = 1; savepoint s")
    assert client.code("set constraints t_n_key immediate") == "23505"
    client.ask("rollback to s; update t set n = 5 where id = 2")
    client.ask("set constraints t_n_key immediate")
    assert client.code("update t set n = 5 where id = 1") == "23505"
    client.ask("rollback")


def test_rows_that_went_are_not_in_the_way(client: SqlClient) -> None:
    client.ask("begin; insert into t values (3, 2); delete from t where id = 2")
    client.ask("set constraints all immediate; commit")
    assert client.ask("select id from t where n = 2") == [(3,)]


def test_an_earlier_release_keeps_them_away(
    database: DevDatabase, monkeypatch: pytest.MonkeyPatch
) -> None:
    master = database.cluster.master()
    assert master is not None
    assert master.node is not None
    changes = master.node.master.changes  # type: ignore[union-attr]
    earlier = FeatureGate(lambda number, now_ns: number < Feature.DEFERRABLE_UNIQUES)
    monkeypatch.setattr(changes, "features", earlier)
    assert database.ask({"sql": MADE}).outcome.code == "0A000"
    assert database.ask({"sql": "create table t (id int primary key, n int)"}).committed
    added = "alter table t add unique (n) deferrable"
    assert database.ask({"sql": added}).outcome.code == "0A000"
    monkeypatch.undo()
    assert database.ask({"sql": added}).committed
    for job in database.jobs():
        database.wait_job(job.job_id)
    assert database.ask({"sql": "drop table t"}).committed
