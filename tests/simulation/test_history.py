"""The past of a running database: readable while it is kept, and collected alike on every node."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial

import pytest

from leasehold.catalog.job import Job
from leasehold.model.errors import SnapshotTooOld
from leasehold.replication.log.apply import COLLECT_EVERY_RECORDS
from leasehold.replication.log.retention import HistorySettings
from leasehold.replication.master.settings import MasterSettings
from tests.simulation.stage import Stage

DDL = ("alter table t add column b bigint", "alter table t drop column b", "drop table t")


def changed(keep_ms: int, rows_ms: int) -> Stage:
    """A table that was made, changed and dropped; then time for a collection or two."""
    stage = Stage(master=MasterSettings(history=HistorySettings(keep_ms, rows_ms)))
    for sql in DDL:
        job = stage.settle({"sql": sql}).answer["job"]
        jobs = stage.reference.catalog.jobs
        stage.until(partial(_ended, jobs, job), "the job to end")
    assert stage.master is not None
    heartbeats = 2 * COLLECT_EVERY_RECORDS * stage.plan.shape.master.heartbeat_ms
    stage.passing(heartbeats)
    return stage


def _ended(jobs: Mapping[int, Job], job: int) -> bool:
    return jobs[job].status.ended


def test_what_is_kept_can_be_asked_for_on_every_node() -> None:
    stage = changed(24 * 3_600_000, 60_000)
    versions = stage.reference.catalog.versions(1)
    assert len(versions) > 4
    assert [d.version for d in versions] == list(range(1, len(versions) + 1))
    for name in stage.cluster.nodes:
        snapshot = stage.stores.get(name).open_snapshot()
        for then in versions:
            if then.names:
                found = snapshot.descriptor_at("t", then.since_lsn)
                assert (found.version, found.columns) == (then.version, then.columns)


def test_what_is_past_is_collected_alike_and_nodes_start_again_without_it() -> None:
    stage = changed(0, 0)
    assert len(stage.reference.catalog.versions(1)) == 1, "the newest stays: the table is absent"
    stage.node("r1").crash()
    stage.node("r1").start()
    stage.settle({"sql": "create table t (id bigint primary key)"})
    stage.passing(300)
    floors = set()
    for name in stage.cluster.nodes:
        snapshot = stage.stores.get(name).open_snapshot()
        assert snapshot.descriptor_at("t", snapshot.position().lsn).table_id == 2
        with pytest.raises(SnapshotTooOld) as raised:
            snapshot.descriptor_at("t", 2)
        floors.add(raised.value.detail["floor_lsn"])
    assert len(floors) == 1, "collected at the same position"
