"""Defaults with random(): each row has its own, the same on every node."""

from __future__ import annotations

import pytest

from leasehold.dev.database import DevDatabase
from leasehold.model.features import Feature, FeatureGate
from tests.support.sql_session.sql_client import client_of_tables

MADE = "create table t (id int primary key, token text default md5(random()::text))"


def test_each_row_has_its_own(database: DevDatabase) -> None:
    with client_of_tables(database, MADE, dropped_by="drop table t") as client:
        client.ask("insert into t (id) select i from generate_series(1, 40) i")
        client.ask("alter table t add column share double precision default random()")
        client.ask("insert into t (id) values (41)")
        counted = "select count(distinct token), count(distinct share), max(length(token)) from t"
        assert client.ask(counted) == [(41, 41, 32)]
        request = {"table": "t", "op": "insert", "key": {"id": 42}, "values": {}}
        assert database.ask(request).committed
        assert client.ask("select length(token), share >= 0 from t where id = 42") == [(32, 1)]


def test_an_earlier_release_keeps_them_away(
    database: DevDatabase, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its nodes and master could not compute them."""
    master = database.cluster.master()
    assert master is not None
    assert master.node is not None
    changes = master.node.master.changes  # type: ignore[union-attr]
    earlier = FeatureGate(lambda number, now_ns: number < Feature.RANDOM_DEFAULTS)
    monkeypatch.setattr(changes, "features", earlier)
    answer = database.ask({"sql": MADE})
    assert (answer.outcome.code, "hint" in answer.outcome.detail) == ("0A000", True)
    assert database.ask({"sql": "create table t (id int primary key)"}).committed
    added = "alter table t add column n double precision default random()"
    assert database.ask({"sql": added}).outcome.code == "0A000"
    monkeypatch.undo()
    assert database.ask({"sql": added}).committed
    for job in database.jobs():
        database.wait_job(job.job_id)
    assert database.ask({"sql": "drop table t"}).committed
