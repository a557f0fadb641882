"""Statements as tests of plans and jobs need them, short enough to stand in a table."""

from __future__ import annotations

from typing import Any

import msgpack

from leasehold.catalog.catalog import Catalog
from leasehold.catalog.descriptor import Descriptor
from leasehold.catalog.elements import CommitContext
from leasehold.catalog.job import Job, Phase
from leasehold.model.records.log import DescriptorWrite, JobWrite, MinVersion
from leasehold.schema_change.job.transitions import (
    record_fenced,
    record_filled,
    record_published,
    record_validated,
    record_verified,
)
from leasehold.schema_change.plan.plan import plan
from leasehold.schema_change.plan.results import CreateTablePlan, JobPlan
from leasehold.sql.syntax.statements import (
    Action,
    AddCheck,
    AddColumn,
    AddUnique,
    AlterTable,
    Change,
    CheckDefinition,
    ColumnDefinition,
    CreateIndex,
    CreateTable,
    UniqueDefinition,
)
from leasehold.values.types import parse_type
from tests.support.schema_change.next_descriptor import next_descriptor


def column(name: str, kind: str = "integer", **more: Any) -> ColumnDefinition:
    return ColumnDefinition(name, parse_type(kind), **more)


def create_table(name: str, *columns: ColumnDefinition, **more: Any) -> CreateTable:
    """With `id bigint` as primary key before the columns."""
    return CreateTable(name, (column("id", "bigint", nullable=False), *columns), ("id",), **more)


def create_index(name: str, table: str, *columns: str, **more: Any) -> CreateIndex:
    return CreateIndex(name, table, columns, **more)


def alter(table: str, *actions: Action) -> AlterTable:
    return AlterTable(table, actions)


def add_column(name: str, kind: str = "integer", **more: Any) -> AddColumn:
    return AddColumn(column(name, kind, **more))


def add_check(expression: str, name: str | None = None, **more: Any) -> AddCheck:
    return AddCheck(CheckDefinition(expression, name, **more))


def add_unique(*columns: str, name: str | None = None) -> AddUnique:
    return AddUnique(UniqueDefinition(columns, name))


# ------------------------------------------------------------------ catalogs


def put(catalog: Catalog, descriptor: Descriptor) -> None:
    """The next version of a table, with everybody on it."""
    number = descriptor.version
    catalog.apply(DescriptorWrite(descriptor.table_id, number, descriptor.to_wire()), 5, 1)
    if number > 1:
        catalog.apply(MinVersion(descriptor.table_id, number), 5, 1)


def catalog_with(*tables: CreateTable) -> Catalog:
    catalog = Catalog()
    for statement in tables:
        made = plan(statement, catalog)
        assert isinstance(made, CreateTablePlan), made
        put(catalog, made.descriptor)
    return catalog


def job_plan(statement: Change, catalog: Catalog, *, in_place: bool = True) -> JobPlan:
    context = CommitContext(9, b"s")
    made = plan(statement, catalog, sql="…", request_id=b"r", context=context, in_place=in_place)
    assert isinstance(made, JobPlan), made
    return made


def put_job(catalog: Catalog, job: Job) -> Job:
    """The job as the log keeps it: what has travelled has tuples for lists."""
    body = msgpack.unpackb(msgpack.packb(job.to_wire()), use_list=False, strict_map_key=False)
    catalog.apply(JobWrite(job.job_id, body), 5, 1)
    return catalog.jobs[job.job_id]


def advance(catalog: Catalog, job: Job) -> Job:
    """One move of a job as the coordinator makes it, with what it writes beside the job."""
    match job.phase:
        case Phase.PUBLISHING:
            descriptor = next_descriptor(job, catalog)
            body = descriptor.to_wire()
            catalog.apply(DescriptorWrite(job.table_id, descriptor.version, body), 5, 1)
            job = record_published(job, 9)
        case Phase.DRAINING:
            catalog.apply(MinVersion(job.table_id, job.versions[job.table_id]), 5, 1)
            job = record_fenced(job, 9)
        case Phase.BACKFILLING:
            job = record_filled(job, 9)
        case Phase.VALIDATING:
            job = record_validated(job, 9)
        case Phase.VERIFYING:
            job = record_verified(job, 9)
        case Phase.DONE:
            raise AssertionError("the job is over")
    return put_job(catalog, job)


def run_to_end(statement: Change, catalog: Catalog) -> Job:
    job = put_job(catalog, job_plan(statement, catalog).job)
    while not job.status.ended:
        job = advance(catalog, job)
    return job
