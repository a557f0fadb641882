"""The DDL statements of one request, one after the other: each sees what those before it will have
done, and the request's rows are decided under what all of them leave.

A table that is made here is nobody's yet: further statements on it take all their steps at once,
and are part of its version 1. A table that was there keeps its version: its job begins with the
commit, and rows are decided under the version before the job's first step.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from leasehold.model.errors import FeatureNotSupported, TableBusy, UnknownTable
from leasehold.model.records import (
    CatalogWrite,
    DescriptorWrite,
    JobWrite,
    Operation,
    TableTruncated,
)
from leasehold.schema.catalog import Catalog
from leasehold.schema.descriptor import Descriptor
from leasehold.schema.edits import edited
from leasehold.schema.elements import Moment
from leasehold.schema.job import Job
from leasehold.schema.plan import CreateTablePlan, JobPlan, NothingToDo, TruncatePlan, plan
from leasehold.schema.states import State
from leasehold.sql.statements import Change, DropTable

Answer = dict[str, Any]


@dataclass
class Script:
    """`catalog`: as it will be with what was taken so far. `made`: tables of this request, at their
    version 1; `truncated`, `jobs`, `dropped`: what becomes of tables that were there."""

    catalog: Catalog
    made: dict[int, Descriptor] = field(default_factory=dict)
    truncated: dict[int, None] = field(default_factory=dict)
    jobs: dict[int, Job] = field(default_factory=dict)  # by table id
    dropped: set[int] = field(default_factory=set)

    @classmethod
    def on(cls, catalog: Catalog) -> Script:
        return cls(catalog.copy())

    def copy(self) -> Script:
        """To go on from here without this one."""
        kept = dict(self.made), dict(self.truncated), dict(self.jobs), set(self.dropped)
        return Script(self.catalog.copy(), *kept)

    @property
    def writes(self) -> tuple[CatalogWrite, ...]:
        made = (DescriptorWrite(t, 1, table.to_wire()) for t, table in self.made.items())
        jobs = (JobWrite(job.job_id, job.to_wire()) for job in self.jobs.values())
        return (*made, *map(TableTruncated, self.truncated), *jobs)

    @property
    def empty(self) -> frozenset[int]:
        """Tables that have no row before the first of the request's own."""
        return frozenset((*self.made, *self.truncated))

    def take(
        self,
        change: Change,
        sql: str,
        request_id: bytes,
        moment: Moment,
        rows_about: Callable[[int], int],
    ) -> Answer:
        """Add what a statement asks for; → what is answered of it. Raises what `plan` raises."""
        try:
            planned = plan(change, self.catalog, sql=sql, request_id=request_id, moment=moment)
        except TableBusy as error:
            raise self._own_job(error) from error
        match planned:
            case NothingToDo(notice):
                return {"notice": notice}
            case CreateTablePlan(table):
                self._make(table)
                answer: Answer = {"table": table.table_id}
            case TruncatePlan(tables):
                self.truncated |= dict.fromkeys(
                    t.table_id for t in tables if t.table_id not in self.made
                )
                answer = {"truncated": tuple(table.name for table in tables)}
            case JobPlan(job) if job.table_id in self.made and len(job.tables) > 1:
                raise FeatureNotSupported(
                    f"table {job.table!r} is made by the same request: make it with that primary"
                    " key",
                    table=job.table,
                )
            case JobPlan(job) if job.table_id in self.made:
                self._make(_at_once(self.made[job.table_id], job))
                answer = {"table": job.table_id}
            case JobPlan(job):
                rows = 0 if job.table_id in self.truncated else rows_about(job.table_id)
                self.jobs[job.table_id] = job = replace(job, rows=rows)
                self.catalog.apply(JobWrite(job.job_id, job.to_wire()), 0, 0)
                if isinstance(change, DropTable):
                    self.dropped.add(job.table_id)
                answer = {"job": job.job_id}
        if planned.notices:
            answer["notice"] = "; ".join(planned.notices)
        return answer

    def _make(self, table: Descriptor) -> None:
        self.made[table.table_id] = table
        self.catalog.make(table)

    def _own_job(self, busy: TableBusy) -> TableBusy | FeatureNotSupported:
        job = next((j for j in self.jobs.values() if j.job_id == busy.detail.get("job")), None)
        if job is None:
            return busy
        return FeatureNotSupported(
            f"an earlier statement of this request changes table {job.table!r} already, or needs it"
            " as it is: a request has one change per table that is there (several actions may"
            " stand in one ALTER TABLE)",
            table=job.table,
        )

    def refuse_dropped(self, operations: tuple[Operation, ...]) -> None:
        """Raises UnknownTable for a row of a table that the same request drops."""
        for operation in operations if self.dropped else ():
            table = self.catalog.resolve(operation.table)
            if table.table_id in self.dropped:
                raise UnknownTable(
                    f"table {operation.table!r} is dropped by this very request",
                    table=operation.table,
                )


def _at_once(table: Descriptor, job: Job) -> Descriptor:
    """All steps of a job on a table that nobody can have used and that has no rows."""
    for step in job.steps:
        table = edited(table, step.edits)
    if table.state is not State.PUBLIC:
        raise FeatureNotSupported(
            f"table {table.name!r} is made and dropped by the same request: leave both out",
            table=table.name,
        )
    # No row is older than its locks, so they have nothing to take over, nor than its columns.
    columns = tuple(replace(column, missing=None, moment=None) for column in table.columns)
    return replace(table, version=1, modified_us=0, lock_moves=(), columns=columns)


def answer_of(answers: tuple[Answer, ...]) -> Mapping[str, Any]:
    """Of one statement its own answer, of several each one's."""
    return answers[0] if len(answers) == 1 else {"statements": answers}


def answers_in(answer: Any) -> tuple[Mapping[str, Any], ...]:
    """The statements' answers in a request's; none in one that had no DDL."""
    if not isinstance(answer, Mapping):
        return ()
    return tuple(answer["statements"]) if "statements" in answer else (answer,)


def jobs_in(answer: Any) -> tuple[int, ...]:
    """The jobs that a request's DDL has begun."""
    return tuple(each["job"] for each in answers_in(answer) if "job" in each)
