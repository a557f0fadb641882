"""The results of planning a statement: a table at once, a job, or nothing to do."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import TypeAlias

from leasehold.catalog.catalog import Catalog
from leasehold.catalog.descriptor import Descriptor
from leasehold.catalog.edits import Kind
from leasehold.catalog.element_forms import COLUMN_FORM
from leasehold.catalog.elements import Column
from leasehold.catalog.job import Job
from leasehold.catalog.sequence_ownership import User, refuse_sequence
from leasehold.model.errors import NotNullViolation, UnknownTable
from leasehold.schema_change.plan.busy_tables import EarlierDrops, free_table
from leasehold.schema_change.plan.dependents import drop_along
from leasehold.schema_change.plan.foreign_keys import Referring
from leasehold.schema_change.steps.element_paths import ElementPath, drop_numbering
from leasehold.sql.syntax.statements import (
    AlterTable,
    DropTable,
)


@dataclass(frozen=True, slots=True)
class CreateTablePlan:
    """Version 1, public at once: nobody can have used a table that was not there. `sequences`: its
    own, made before it."""

    descriptor: Descriptor
    notices: tuple[str, ...] = ()
    sequences: tuple[Descriptor, ...] = ()


@dataclass(frozen=True, slots=True)
class RestartPlan:
    """A sequence goes on from `start`."""

    sequence: Descriptor
    start: int
    notices: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class JobPlan:
    """The plan of a job. `job` is the first record of the job and the intent of its first step in
    one (D2). `made`: sequences that it makes for new columns; `within`: as they will be, sequences
    that may not stand beyond their new bounds when it begins. `paths`: what its steps were made
    of."""

    job: Job
    notices: tuple[str, ...] = ()
    made: tuple[Descriptor, ...] = ()
    within: tuple[Descriptor, ...] = ()
    paths: tuple[ElementPath, ...] = ()


@dataclass(frozen=True, slots=True)
class NothingToDo:
    """The result of IF NOT EXISTS of something that is there, and the like; `notice` says so."""

    notice: str


@dataclass(frozen=True, slots=True)
class TruncatePlan:
    """The plan of a TRUNCATE: rows of `tables` go at one LSN, and the versions stay. `restarted`:
    sequences that start over."""

    tables: tuple[Descriptor, ...]
    notices: tuple[str, ...] = ()
    restarted: tuple[Descriptor, ...] = ()


Plan: TypeAlias = CreateTablePlan | RestartPlan | TruncatePlan | JobPlan | NothingToDo


class Changes:
    """The changes that a statement on one table comes to: paths of elements, and words for
    people."""

    def __init__(
        self, table: Descriptor, kind: str, subject: str, paths: Iterable[ElementPath]
    ) -> None:
        self.table = table
        self.kind = kind
        self.subject = subject
        self.paths = tuple(paths)
        self.notices: tuple[str, ...] = ()
        self.needs: tuple[int, ...] = ()
        self.joins: tuple[int, ...] = ()
        self.made: tuple[Descriptor, ...] = ()
        self.within: tuple[Descriptor, ...] = ()
        self.renames: tuple[int, str] | tuple[()] = ()
        self.versions = {table.table_id: table.version + 1}  # with those that move together

    def take_along(
        self, found: Sequence[Referring], catalog: Catalog, earlier: EarlierDrops
    ) -> None:
        """Drop foreign keys of other tables, too. Raises TableBusy."""
        children = [child for child, _ in found]
        for child in children:
            free_table(catalog, child, earlier)
        own = self.table.table_id
        self.paths += tuple(
            replace(path, table_id=0) if path.table_id == own else path
            for path in drop_along(found)
        )
        self.join(child for child in children if child.table_id != own)

    def join(self, tables: Iterable[Descriptor]) -> None:
        """Let other tables join in: each step makes a version of those that it edits."""
        joining = {table.table_id: table.version + 1 for table in tables}
        self.versions |= joining
        self.joins = tuple(sorted({*self.joins, *joining}))


def drop_default_of(user: User, table: Descriptor) -> ElementPath:
    """Return the path of a default that draws from a sequence which goes, in a job of `table`."""
    table_id = 0 if user.table.table_id == table.table_id else user.table.table_id
    return replace(drop_numbering(user.column), table_id=table_id)


def find_table(
    catalog: Catalog, name: str, statement: AlterTable | DropTable
) -> Descriptor | NothingToDo:
    """Return the table that a statement is about, or that there is none and IF EXISTS was said.

    Raises UnknownTable, and WrongObject for a sequence."""
    try:
        return refuse_sequence(catalog.resolve(name), statement.position)
    except UnknownTable:
        if not statement.if_exists:
            raise
        return NothingToDo(f"table {name!r} does not exist, nothing was done")


def refuse_lacking(job: Job) -> None:
    """Refuse a job that no row of before can outlast (NotNullViolation, 23502): one that adds a
    column which must have a value, and gives it none. It would find that out itself, when writers
    have been refused for a column that goes again."""
    added: dict[int, Column] = {}
    for step in job.steps:
        for edit in step.edits:
            if edit.kind is Kind.COLUMN and edit.before is None and edit.after is not None:
                column = COLUMN_FORM.from_wire(edit.after)
                if not column.required and column.derived is None:
                    added[edit.element_id] = column
        for element_id in added.keys() & {*step.verifies}:
            name = added[element_id].name
            raise NotNullViolation(
                f'column "{name}" of relation "{job.table}" contains null values',
                table=job.table,
                column=name,
                hint="Add it with a DEFAULT, or without NOT NULL and give the rows a value first.",
            )
