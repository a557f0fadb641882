"""Jobs that validate, their tables and rows, and what is found, for tests of Spark's driver."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from leasehold.adapters.codec.records import row_key
from leasehold.catalog.descriptor import Descriptor
from leasehold.catalog.elements import Check, Column, ForeignKey, Index
from leasehold.catalog.job import Job, Phase, Step
from leasehold.catalog.states import State
from leasehold.events.public_schema import encode_event
from leasehold.model.records.events import RowImage, VersionEvent
from leasehold.model.records.jobs import Findings
from leasehold.replication.changefeed import version_key
from leasehold.values.types import Type
from tests.support.cluster.spark_pipeline import CODEC, Pipeline
from tests.support.schema_change.made_job import index_job

PARENT, UNIQUE, CHECK, REFERENCE, REQUIRED = 50, 9, 10, 11, 4
ELEMENTS = (UNIQUE, CHECK, REFERENCE, REQUIRED)


def table(table_id: int) -> Descriptor:
    """As its step has published it: every constraint is enforced, none public."""
    return Descriptor(
        table_id,
        f"t{table_id}",
        3,
        (
            Column(1, "number", Type("bigint"), nullable=False),
            Column(2, "city", Type("text"), nullable=False),
            Column(3, "email", Type("text")),
            Column(REQUIRED, "n", Type("integer"), not_null_enforced=True),
        ),
        (1, 2),
        (Index(UNIQUE, "u", (3,), state=State.WRITE_ONLY, unique_enforced=True),),
        checks=(Check(CHECK, "c", "n < 1000", (REQUIRED,), State.WRITE_ONLY),),
        foreign_keys=(
            ForeignKey(REFERENCE, "f", (REQUIRED,), PARENT, (1,), state=State.WRITE_ONLY),
        ),
        next_element_id=12,
    )


def validation_job(job_id: int, elements: tuple[int, ...] = ELEMENTS, **settings: int) -> Job:
    return replace(
        index_job(job_id, job_id),
        steps=(Step((), (), elements, elements), Step(())),
        phase=Phase.VALIDATING,
        versions={job_id: 3},
        run=1,
        settings=settings,
    )


def publish_table(pipeline: Pipeline, table_id: int) -> None:
    body = table(table_id).to_wire()
    event = VersionEvent(table_id, f"t{table_id}", 3, 1, 1, body, 0, "")
    pipeline.produce(pipeline.topics.versions.name, version_key(table_id), encode_event(event))


def publish_row(
    pipeline: Pipeline, table_id: int, number: int, values: dict[int, Any] | None, lsn: int = 2
) -> None:
    """One more image of a row that `publish_images` has made; None: its tombstone."""
    topic = pipeline.topics.rows(table_id)
    key = (number, f"city {number % 97}")
    image = None
    if values is not None:
        given = {1: number, 2: key[1], **values}
        image = CODEC.encode(RowImage(table_id, key, {0: lsn << 20}, lsn, 3, 1, given))
    pipeline.produce(topic.name, row_key(key), image, number % topic.partitions)


def findings(job_id: int) -> Callable[[list[Any]], bool]:
    def until(messages: list[Any]) -> bool:
        return bool(messages) and CODEC.decode(messages[-1].value()).job_id == job_id

    return until


def found(pipeline: Pipeline, job_id: int) -> Findings:
    (*_, last) = pipeline.records(pipeline.topics.backfill.name, findings(job_id))
    record = CODEC.decode(last.value())
    assert isinstance(record, Findings)
    return record


def key(number: int) -> tuple[int, str]:
    return number, f"city {number % 97}"
