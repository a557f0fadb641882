"""What one request takes away from tables that were there: one job for all its statements.

Jobs that only take away (tables, indexes, checks, foreign keys) have no work on rows, so they can't
fail, and walk side by side: what moves in one step has moved when the step is drained. So a parent
goes with its child, tables that refer to each other go together, and all of it goes at once.

A table that the request makes under a name that goes waits for it, write-only, with its rows; it
is public in the very version in which the old one is hidden (DESIGN.md, "A name that is given
anew").
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Final

from leasehold.catalog.descriptor import Descriptor
from leasehold.catalog.edits import Edit, Kind, make_body
from leasehold.catalog.job import NO_WAY_BACK, Job, Step
from leasehold.catalog.names import named_indexes
from leasehold.catalog.states import State

_TAKEN: Final = frozenset({Kind.TABLE, Kind.INDEX, Kind.CHECK, Kind.FOREIGN_KEY})
_ElementPlace = tuple[int, int]


def find_drops(job: Job) -> frozenset[_ElementPlace]:
    """Return (table id, element id) of all that a job drops, the table itself as element 0; nothing
    for a job that does anything else."""
    last: dict[_ElementPlace, Edit] = {}
    for step in job.steps:
        if step.backfills or step.verifies:
            return frozenset()
        for edit in step.edits:
            last[edit.table_id or job.table_id, edit.element_id] = edit
    return frozenset(last) if all(map(_is_gone, last.values())) else frozenset()


def _is_gone(edit: Edit) -> bool:
    hidden = edit.kind is Kind.INDEX and edit.after is not None and edit.after.get("implied", False)
    return edit.kind in _TAKEN and (hidden or edit.state == State.ABSENT.label)


def join_drops(jobs: Sequence[Job], job_id: int) -> Job:
    """Return one job for all of them. What is said of a table is left out where the table itself
    goes."""
    tables = {table_id for job in jobs for table_id, element in find_drops(job) if not element}
    first = next((job for job in jobs if job.table_id in tables), jobs[0])
    steps: list[tuple[Edit, ...]] = []
    versions: dict[int, int] = {}
    for job in jobs:
        versions |= job.versions
        for number, step in enumerate(job.steps):
            steps += [()] * (number + 1 - len(steps))
            steps[number] += tuple(
                edit._replace(table_id=0 if table_id == first.table_id else table_id)
                for edit in step.edits
                if (table_id := edit.table_id or job.table_id) not in tables
                or edit.kind is Kind.TABLE
            )
    kinds = {job.kind for job in jobs}
    return replace(
        first,
        job_id=job_id,
        sql="; ".join(dict.fromkeys(job.sql for job in jobs)),
        kind=first.kind if len(kinds) == 1 else "drop",
        subject=", ".join(dict.fromkeys(job.subject for job in jobs)),
        steps=tuple(Step(edits) for edits in steps if edits),
        point=min(job.point for job in jobs),
        versions=versions,
        # Of one statement those that join in; laid beside others each moves in every step.
        joins=first.joins if len(jobs) == 1 else (),
    )


def without_dropped_tables(job: Job) -> Job:
    """Return the job without the tables that go: what is still busy for later statements of the
    request."""
    kept = (tuple(e for e in step.edits if e.kind is not Kind.TABLE) for step in job.steps)
    return replace(job, steps=tuple(Step(edits) for edits in kept))


def without_elements(table: Descriptor, gone: frozenset[_ElementPlace]) -> Descriptor:
    """Return the table without those of its elements that are `gone`."""
    ids = {element for table_id, element in gone if table_id == table.table_id}
    if not ids:
        return table
    return replace(
        table,
        indexes=tuple(e for e in table.indexes if e.element_id not in ids),
        checks=tuple(e for e in table.checks if e.element_id not in ids),
        foreign_keys=tuple(e for e in table.foreign_keys if e.element_id not in ids),
    )


def collect_names(tables: Iterable[Descriptor]) -> set[str]:
    """Return what the tables and their indexes are called: relations share their names."""
    found: set[str] = set()
    for table in tables:
        found |= {table.name, table.alias}
        for index in named_indexes(table):
            found |= {index.name, index.alias}
    return found - {""}


def as_write_only(table: Descriptor) -> Descriptor:
    return replace(table, state=State.WRITE_ONLY)


def with_new_tables(job: Job, made: Mapping[int, Descriptor]) -> Job:
    """Return the job with tables that are public in its first step. Their rows are committed with
    the request, so there is no way back any more."""
    shown = tuple(
        Edit(Kind.TABLE, 0, make_body(as_write_only(table)), make_body(table), table_id)
        for table_id, table in made.items()
    )
    first, *rest = job.steps
    versions = {table_id: table.version + 1 for table_id, table in made.items()}
    return replace(
        job,
        steps=(Step((*first.edits, *shown)), *rest),
        point=NO_WAY_BACK,
        versions={**job.versions, **versions},
    )
