"""The joining of statements of one text that alter the same table to one ALTER TABLE: one job, all
of it or nothing, as statements of one query string are one transaction in PostgreSQL."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import Final

from leasehold.catalog.job import Job
from leasehold.schema_change.plan.statement_batch import StatementBatch
from leasehold.sql.ddl.schema_statements import Said
from leasehold.sql.syntax.statements import (
    Action,
    AddCheck,
    AddColumn,
    AddForeignKey,
    AddPrimaryKey,
    AddUnique,
    AddUniqueByIndex,
    AlterConstraint,
    AlterTable,
    DropColumn,
    DropConstraint,
    RenameColumn,
    RenameConstraint,
    RenameTable,
)

_ADDS: Final = (AddCheck, AddColumn, AddForeignKey, AddUnique, AddUniqueByIndex)
_DROPS: Final = (DropColumn, DropConstraint)
_ALONE: Final = (AlterConstraint, RenameColumn, RenameConstraint, RenameTable, AddPrimaryKey)


def join_alterations(said: Iterable[Said]) -> list[tuple[Said, int]]:
    """Return the statements with those joined that follow each other and alter one table, each with
    how many it was made of.

    In one ALTER TABLE what is dropped goes before what is added, whatever the order. So what comes
    after an addition, and drops, stays a statement of its own; so do a RENAME, ALTER CONSTRAINT and
    a primary key.
    """
    found: list[tuple[Said, int]] = []
    for each in said:
        if found and _continues(found[-1][0].statement, each.statement):
            (before, count) = found.pop()
            assert isinstance(before.statement, AlterTable)
            assert isinstance(each.statement, AlterTable)
            actions = (*before.statement.actions, *each.statement.actions)
            whole = replace(before.statement, actions=actions)
            found.append((Said(whole, f"{before.sql}; {each.sql}"), count + 1))
        else:
            found.append((each, 1))
    return found


def _continues(before: object, after: object) -> bool:
    if not isinstance(before, AlterTable) or not isinstance(after, AlterTable):
        return False
    if (before.table, before.if_exists) != (after.table, after.if_exists):
        return False
    if any(map(_stands_alone, (*before.actions, *after.actions))):
        return False
    adds = any(isinstance(action, _ADDS) for action in before.actions)
    return not (adds and any(isinstance(action, _DROPS) for action in after.actions))


def _stands_alone(action: Action) -> bool:
    return isinstance(action, _ALONE) or (isinstance(action, AddColumn) and action.key is not None)


def is_all_or_nothing(script: StatementBatch) -> bool:
    """Say whether all of it is done or nothing, whatever the rows are: what a request does at once
    is its commit, and a job that may fail is alone."""
    jobs = tuple(script.jobs.values())
    if not any(map(may_fail, jobs)):
        return True
    beside = script.made or script.truncated or script.begun or script.drops_something
    return len(jobs) == 1 and not beside


def may_fail(job: Job) -> bool:
    """Say whether rows that are there can keep a job from its end: what is filled in or looked
    through."""
    return any(step.backfills or step.verifies for step in job.steps)
