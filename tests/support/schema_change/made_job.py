"""A job without its statement: an index being built on some table; a report on a job's element."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from leasehold.catalog.elements import Index
from leasehold.catalog.job import Job
from leasehold.model.records.acks import CheckReport
from leasehold.schema_change.coordinator.verification import make_subject
from leasehold.schema_change.steps.element_paths import add_index
from leasehold.schema_change.steps.steps import steps_of

INDEX_ID = 9


def index_job(job_id: int, table_id: int, index: Index | None = None, **fields: Any) -> Job:
    """At its first step, PUBLISHING; `fields` say otherwise."""
    index = index or Index(INDEX_ID, f"i{job_id}", (3,))
    steps, point = steps_of([add_index(index, unique=False)])
    plain = Job(
        job_id=job_id,
        sql=f"CREATE INDEX {index.name} ON t{table_id} (a)",
        table_id=table_id,
        table=f"t{table_id}",
        request_id=b"",
        kind="create index",
        subject=f"index {index.name}",
        steps=steps,
        point=point,
        versions={table_id: 2},
    )
    return replace(plain, **fields)


def report_of(job: Job, node: str, lsn: int, version: int, findings: int = 0) -> CheckReport:
    """What a node says at a job's VERIFYING record `lsn`: three rows, so many of them wrong."""
    element_id = job.current.verifies[0]
    return CheckReport(
        subject=make_subject(job),
        node=node,
        incarnation=b"i",
        offset=lsn * 10,
        lsn=lsn,
        table_id=job.table_id,
        version=version,
        rows=3,
        entries={element_id: 3},
        checksum=b"same",
        findings_total=findings,
        findings=((4, element_id, (7,), "entry missing"),) * min(findings, 2),
        took_ms=1,
        error="",
    )
