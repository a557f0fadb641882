"""CHECKs over elements of a row's arrays: not before every process can compute them."""

from __future__ import annotations

import pytest

from leasehold.dev.database import DevDatabase
from leasehold.model.features import Feature, FeatureGate

MADE = "create table t (id int primary key, tags text[], check ('a' = any (tags)))"


def test_an_earlier_release_keeps_them_away(
    database: DevDatabase, monkeypatch: pytest.MonkeyPatch
) -> None:
    master = database.cluster.master()
    assert master is not None
    assert master.node is not None
    changes = master.node.master.changes  # type: ignore[union-attr]
    earlier = FeatureGate(lambda number, now_ns: number < Feature.ROW_ARRAYS)
    monkeypatch.setattr(changes, "features", earlier)
    answer = database.ask({"sql": MADE})
    assert (answer.outcome.code, "hint" in answer.outcome.detail) == ("0A000", True)
    assert database.ask({"sql": "create table t (id int primary key, tags text[])"}).committed
    changed = (
        "alter table t add check ('a' = any (tags))",
        "create index on t ((tags[1]))",
        "alter table t add column first text generated always as (tags[1]) stored",
    )
    for text in changed:
        assert database.ask({"sql": text}).outcome.code == "0A000", text
    monkeypatch.undo()
    for text in changed:
        assert database.ask({"sql": text}).committed, text
        for job in database.jobs():
            database.wait_job(job.job_id)
    assert database.ask({"sql": "drop table t"}).committed
