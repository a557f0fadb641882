"""Requests of schema statements carried out on a catalog alone, to their jobs' ends: what a schema
will be, without a row and without anybody to wait for."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, NamedTuple

from leasehold.catalog.catalog import Catalog
from leasehold.catalog.descriptor import Descriptor, read_descriptor
from leasehold.catalog.job import Job, Phase
from leasehold.catalog.states import State
from leasehold.model.errors import FeatureNotSupported, LeaseholdError
from leasehold.model.records.log import (
    CommentWrite,
    DescriptorWrite,
    EnumWrite,
    MinVersion,
    TableForgotten,
    ViewWrite,
)
from leasehold.schema_change.job.next_versions import find_moving, next_descriptors
from leasehold.schema_change.job.transitions import (
    record_fenced,
    record_filled,
    record_published,
    record_validated,
    record_verified,
)
from leasehold.schema_change.plan.enums import enum_names
from leasehold.schema_change.plan.joined_alterations import is_all_or_nothing, join_alterations
from leasehold.schema_change.plan.plan import NO_CONTEXT
from leasehold.schema_change.plan.statement_batch import StatementBatch
from leasehold.sql.ddl.schema_statements import parse_statements
from leasehold.sql.syntax.statements import (
    Explain,
)

_LSN = 1
"""Of every commit here: nothing is asked for by it."""


class Done(NamedTuple):
    """A request that was carried out: the catalog then, and the jobs as they began."""

    catalog: Catalog
    jobs: tuple[Job, ...]


def load_catalog(
    tables: Mapping[int, Any],
    views: Mapping[int, Any],
    comments: Mapping[tuple[int, int], str],
    enums: Mapping[int, Any] = MappingProxyType({}),
) -> Catalog:
    """Return a catalog of the newest versions of tables and sequences, of views and of enum types,
    all in wire form by id, and of comments. Raises MalformedRequest for what is no such form,
    LogStopped for what a newer release wrote, FeatureNotSupported where a column is of an enum type
    that is not among them."""
    catalog = Catalog()
    for type_id, body in enums.items():
        catalog.apply(EnumWrite(type_id, body), 0, _LSN)
    for body in tables.values():
        table = read_descriptor(body)
        _demand_enums(table, enums)
        catalog.put([table])
        # Who is at an older version can be at no name of it here.
        catalog.apply(MinVersion(table.table_id, table.version), 0, _LSN)
    for view_id, body in views.items():
        catalog.apply(ViewWrite(view_id, body), 0, _LSN)
    for (object_id, element_id), text in comments.items():
        catalog.apply(CommentWrite(object_id, element_id, text), 0, _LSN)
    return catalog


def _demand_enums(table: Descriptor, enums: Mapping[int, Any]) -> None:
    for column in table.columns:
        enum = column.type.enum
        if enum is not None and enum.type_id not in enums:
            raise FeatureNotSupported(
                f"column {table.name}.{column.name} is of an enum type that the node does not tell:"
                " it is of an earlier release",
                hint="Ask a node of this release, or upgrade this one.",
            )


class GrowingRequest:
    """A request to which statements are added one after the other, as long as all of it is done at
    once, or is one job."""

    def __init__(self, batch: StatementBatch, zone: str, *, at_once: bool = False) -> None:
        self._batch, self._zone, self._at_once = batch, zone, at_once

    @classmethod
    def on(cls, catalog: Catalog, zone: str) -> GrowingRequest:
        """Return one without a statement."""
        return cls(StatementBatch.on(catalog), zone)

    def with_statement(self, text: str) -> GrowingRequest | None:
        """Return it with one more statement; None: that would be another job, or be done before the
        job of the others."""
        batch, at_once = self._batch.copy(), self._at_once
        try:
            zones = (self._zone,) if self._zone else ()
            for each in parse_statements(text, zones, enum_names(batch.catalog)):
                assert not isinstance(each.statement, Explain), "it makes nothing"
                answer = batch.take(each.statement, text, b"", NO_CONTEXT, lambda _: -1)
                at_once |= "job" not in answer
        except LeaseholdError:
            return None
        jobs = len(batch.jobs) + batch.drops_something
        if jobs > 1 or (jobs and at_once) or not is_all_or_nothing(batch):
            return None
        return GrowingRequest(batch, self._zone, at_once=at_once)


def run_request(catalog: Catalog, text: str, zone: str = "") -> Done:
    """Return what a request of these statements comes to; `catalog` stays as it is. `zone`: the
    time zone of the session that says them. Raises what planning raises."""
    batch = StatementBatch.on(catalog)
    zones = (zone,) if zone else ()
    for each, _ in join_alterations(parse_statements(text, zones, enum_names(catalog))):
        assert not isinstance(each.statement, Explain), "it makes nothing"
        batch.take(each.statement, text, b"", NO_CONTEXT, lambda _: -1)
    after = catalog.copy()
    before = set(after.jobs)
    for write in batch.writes:
        after.apply(write, 0, _LSN)
    jobs = tuple(job for number, job in after.jobs.items() if number not in before)
    for job in jobs:
        _run_to_end(job, after)
        after.jobs.pop(job.job_id)
    for table in [after.newest(table_id) for table_id in after.table_ids()]:
        if table.state is State.ABSENT:
            after.apply(TableForgotten(table.table_id), 0, _LSN)
    return Done(after, jobs)


def _run_to_end(job: Job, catalog: Catalog) -> None:
    while not job.status.ended:
        match job.phase:
            case Phase.PUBLISHING:
                # Who takes another's place is told of first: the name is a table's all the time.
                for made in next_descriptors(job, catalog)[::-1]:
                    _write(made, catalog)
                job = record_published(job, 0)
            case Phase.DRAINING:
                for table_id in find_moving(job, catalog):
                    catalog.apply(MinVersion(table_id, job.versions[table_id]), 0, _LSN)
                job = record_fenced(job, 0)
            case Phase.BACKFILLING:
                job = record_filled(job, 0)
            case Phase.VALIDATING:
                job = record_validated(job, 0)
            case Phase.VERIFYING:
                job = record_verified(job, 0)
            case Phase.DONE:
                raise AssertionError("it has ended")
        catalog.put_job(job)


def _write(made: Descriptor, catalog: Catalog) -> None:
    if not made.former:
        catalog.put([made])
        return
    # Who may do what with it is copied from the table whose place it takes.
    catalog.apply(DescriptorWrite(made.table_id, made.version, made.to_wire()), 0, _LSN)
