"""What stands on the backfill queue and can't be decided ends no master: it is passed over, kept
for people, and what comes behind it is decided. On SQLite, which binds no value of another type."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from leasehold.adapters.codec.records import MessagePackCodec
from leasehold.catalog.job import Job, Phase, Status
from leasehold.model.records.jobs import Chunk, Findings
from leasehold.model.records.requests import DeadLetter
from leasehold.replication.master.batch_limits import BatchSettings
from leasehold.replication.master.settings import MasterSettings
from tests.isolation.sql_stage import SqlStage
from tests.support.schema_change.looked_through import planned_by_an_earlier_release

CODEC = MessagePackCodec()
SMALL = replace(
    MasterSettings(), batch=BatchSettings(record_bytes_max=9_000, large_bytes_max=20_000)
)


@pytest.fixture
def stage(tmp_path: Path) -> Iterator[SqlStage]:
    made = SqlStage(tmp_path)
    yield made
    made.close()


def only_job(stage: SqlStage) -> Job:
    assert stage.master is not None
    assert stage.master.node is not None
    (job,) = stage.master.node.catalog.jobs.values()
    return job


def reach(stage: SqlStage, phase: Phase) -> Job:
    def reached() -> bool:
        master = stage.master
        if master is None or master.node is None or not master.node.catalog.jobs:
            return False
        return only_job(stage).phase is phase

    stage.until(reached, phase.value)
    return only_job(stage)


def put(stage: SqlStage, record: Any) -> None:
    stage.cluster.bus.append(stage.cluster.topics.backfill.name, 0, b"", CODEC.encode(record))


def end_of_job(stage: SqlStage) -> Job:
    stage.until(lambda: only_job(stage).status.ended, "the end of the job", virtual_ms=60_000)
    return only_job(stage)


def letters(stage: SqlStage) -> list[DeadLetter]:
    stage.passing(500)
    messages = stage.cluster.bus.read(stage.cluster.topics.dead_letter.name)
    return [CODEC.decode_as(DeadLetter, m.value) for m in messages if m.value is not None]


@pytest.mark.parametrize(
    "keys", [(({"a": 1},),), ((),), ((2**63,),), ((1, 2),), ((1,), ([1],))], ids=repr
)
def test_keys_that_no_row_can_have_are_passed_over(stage: SqlStage, keys: tuple[Any, ...]) -> None:
    """Of the running job, so that they are looked at."""
    stage.ask({"sql": "alter table t add column c uuid default gen_random_uuid()"})
    job = reach(stage, Phase.BACKFILLING)
    table = job.table_id
    put(stage, Chunk(job.job_id, job.run, table, job.versions[table], job.element_id, keys))
    assert end_of_job(stage).status is Status.SUCCEEDED
    (letter,) = letters(stage)
    assert (letter.queue, letter.code, letter.detail["job"]) == ("backfill", "08P01", job.job_id)
    assert stage.settle(stage.update(1, 11)).lsn


def test_findings_with_keys_that_no_row_can_have_end_their_job_alone(stage: SqlStage) -> None:
    """Nothing else ends the validation, of a job that an earlier release has planned."""
    with planned_by_an_earlier_release():
        stage.settle({"sql": "alter table t add constraint c check (a > 0)"})
    job = reach(stage, Phase.VALIDATING)
    table, found = job.table_id, tuple((e, ({"a": 1},)) for e in job.current.validates)
    put(stage, Findings(job.job_id, job.run, table, job.versions[table], 2, 1, found))
    ended = end_of_job(stage)
    assert (ended.status, "failed inside" in ended.error) == (Status.FAILED, True)
    (letter,) = letters(stage)
    assert letter.queue == "backfill"
    assert stage.settle(stage.update(1, 11)).lsn


@pytest.mark.parametrize(
    "sql",
    [
        "add column u uuid default gen_random_uuid()",
        "alter column n type text",
        "drop constraint w_pkey, add primary key (k)",
    ],
)
def test_a_row_that_is_larger_than_a_record_of_many_is_filled(stage: SqlStage, sql: str) -> None:
    """As its insert was: alone in a record."""
    columns = ", ".join(f"t{n} text" for n in range(4))
    made = f"create table w (id bigint primary key, k bigint not null, n bigint, {columns})"
    stage.settle({"sql": made})
    for key in (1, 2, 3):
        wide = {f"t{n}": "x" * 250_000 for n in range(4 if key == 2 else 0)}
        values = {"n": key, "k": key, **wide}
        stage.settle({"table": "w", "op": "insert", "key": {"id": key}, "values": values})
    stage.settle({"sql": f"alter table w {sql}"})
    assert end_of_job(stage).status is Status.SUCCEEDED, only_job(stage).error


def test_a_row_that_fits_no_record_ends_its_job_with_its_key(tmp_path: Path) -> None:
    """Each master would come to it, so it is not tried again."""
    stage = SqlStage(tmp_path, master=SMALL)
    try:
        stage.settle({"sql": "create table w (id bigint primary key, v text)"})
        for key, size in ((1, 10), (77, 19_000), (78, 10)):
            row = {"table": "w", "op": "insert", "key": {"id": key}, "values": {"v": "x" * size}}
            assert stage.settle(row).lsn
        words = "repeat(gen_random_uuid()::text, 50)"
        stage.settle({"sql": f"alter table w add column u text default {words}"})
        ended = end_of_job(stage)
        assert ended.status is Status.FAILED
        assert "row (77,) of table 'w'" in ended.error
        (letter,) = letters(stage)
        assert (letter.queue, letter.code) == ("backfill", "54000")
        assert stage.settle(stage.update(1, 11)).lsn
    finally:
        stage.close()
