"""Validation on real Kafka and Spark: what breaks a constraint is found, whatever happens."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from leasehold.adapters.codec.records import row_key
from leasehold.catalog.job import Status
from leasehold.model.records.events import RowsTruncated
from leasehold.model.records.jobs import Findings, JobProgress
from tests.support.cluster.spark_pipeline import CODEC, Pipeline
from tests.support.cluster.spark_validation import (
    CHECK,
    PARENT,
    REFERENCE,
    REQUIRED,
    UNIQUE,
    found,
    key,
    publish_row,
    publish_table,
    validation_job,
)


def test_every_kind_of_violation_is_found_and_no_stale_one(pipeline: Pipeline) -> None:
    """Goal: of 10,000 rows the duplicates, the row that makes the CHECK false, the one without a
    parent and the NULL are named; images that newer ones have replaced, and rows that are gone,
    are not: of 1 → 100, 100 → 1 (`sc_redo_false_conflict`) nothing is."""
    pipeline.publish_images(101, range(10_000))
    pipeline.publish_images(PARENT, range(999))
    publish_table(pipeline, 101)
    same = {3: "same@example.com"}
    for number in (11, 12, 13):
        publish_row(pipeline, 101, number, {**same, 4: 1})
    publish_row(pipeline, 101, 13, None)  # gone, so that two have the value
    publish_row(pipeline, 101, 21, {3: "user22@example.com", 4: 1})
    publish_row(pipeline, 101, 22, {3: "user21@example.com", 4: 1})  # swapped: never both
    publish_row(pipeline, 101, 31, {3: "a", 4: 5_000})  # false, and nobody's child
    publish_row(pipeline, 101, 32, {3: "b", 4: 5_000})
    publish_row(pipeline, 101, 32, {3: "b", 4: 7})  # mended
    publish_row(pipeline, 101, 41, {})  # NULLs are no duplicates, and no reference
    publish_row(pipeline, 101, 42, {4: 1})
    pipeline.flush()
    pipeline.publish_job(validation_job(101))

    record = found(pipeline, 101)

    orphans = {number for number in range(10_000) if number % 1000 == 999} | {31}
    wanted = {(UNIQUE, key(11)), (UNIQUE, key(12)), (CHECK, key(31)), (REQUIRED, key(41))}
    wanted |= {(REFERENCE, key(number)) for number in orphans}
    assert set(record.found) == wanted
    assert record.total == len(wanted)
    assert record[:4] == (101, 1, 101, 3)
    assert record.rows == 10_000 + 999 + 11


def test_findings_are_bounded(pipeline: Pipeline) -> None:
    """Goal: a table that is all wrong names 1,000 rows and says how many there are."""
    pipeline.publish_images(102, range(3_000))
    publish_table(pipeline, 102)
    for number in range(3_000):
        publish_row(pipeline, 102, number, {3: "same"})
    pipeline.flush()
    pipeline.publish_job(validation_job(102, (UNIQUE,)))
    record = found(pipeline, 102)
    assert (record.total, len(record.found), record.rows) == (3_000, 1_000, 6_000)


def test_a_table_without_images_has_no_findings(pipeline: Pipeline) -> None:
    publish_table(pipeline, 103)
    pipeline.publish_job(validation_job(103))
    assert found(pipeline, 103) == Findings(103, 1, 103, 3, 0, 0, ())


@pytest.mark.parametrize(("table_id", "images"), [(105, 100), (106, 1_500)])
def test_rows_from_before_a_truncation_are_gone(
    pipeline: Pipeline, table_id: int, images: int
) -> None:
    """Of few images, which the driver reads itself, and of more: the same is found."""
    pipeline.publish_images(table_id, range(images))
    publish_table(pipeline, table_id)
    topic = pipeline.topics.rows(table_id)
    for number in range(40):
        publish_row(pipeline, table_id, number, {3: "same"})
    for partition in range(topic.partitions):
        gone = CODEC.encode(RowsTruncated(table_id, 3, 1))
        pipeline.produce(topic.name, row_key(()), gone, partition)
    for number in range(38, 41):
        publish_row(pipeline, table_id, number, {3: "same"})
    pipeline.flush()
    pipeline.publish_job(validation_job(table_id, (UNIQUE,)))
    record = found(pipeline, table_id)
    assert set(record.found) == {(UNIQUE, key(number)) for number in range(38, 41)}
    assert record.rows == images + 43 + topic.partitions
    by_query = bool(list(pipeline.data.rglob(f"{table_id}-1/checkpoint")))
    assert by_query == (images > 1_000)


@pytest.mark.long("half a minute; runs of a backfill are killed and started again by the same code")
def test_paused_killed_and_started_again(pipeline: Pipeline) -> None:
    """Goal: a pause ends the query; SIGKILL in the middle: it goes on from its checkpoint, finds
    the same, and the run that has ended is not done again."""
    pipeline.publish_images(104, range(9_000))
    publish_table(pipeline, 104)
    publish_row(pipeline, 104, 8_999, {3: "user7@example.com", 4: 1})
    pipeline.flush()
    job = validation_job(104, (UNIQUE,), rows_per_second=2_000)
    pipeline.publish_job(job)

    def progress(reached: Callable[[JobProgress], bool]) -> Callable[[list[Any]], bool]:
        def until(messages: list[Any]) -> bool:
            told = (CODEC.decode(m.value()) for m in messages if m.key() == b"progress/104/1")
            return any(isinstance(p, JobProgress) and reached(p) for p in told)

        return until

    jobs = pipeline.topics.jobs.name
    pipeline.records(jobs, progress(lambda p: p.phase == "validating" and p.rows > 1_000))
    pipeline.publish_job(replace(job, status=Status.PAUSED))
    pipeline.records(jobs, progress(lambda p: p.phase == "stopped"))
    faster = replace(job, settings={"rows_per_second": 3_000})
    pipeline.publish_job(faster)
    pipeline.records(jobs, progress(lambda p: p.phase == "validating" and p.rows > 4_000))
    pipeline.kill()
    pipeline.start()
    pipeline.publish_job(replace(job, settings={}))
    record = found(pipeline, 104)
    assert set(record.found) == {(UNIQUE, key(7)), (UNIQUE, key(8_999))}
    assert (record.rows, record.total) == (9_001, 2)
    assert "validation 101-1 ended" not in pipeline.log()


def test_terminated_with_exit_code_0(pipeline: Pipeline) -> None:
    """Goal: SIGTERM is a clean end. Last in the package: its driver is gone after it."""
    assert pipeline.stop() == 0
