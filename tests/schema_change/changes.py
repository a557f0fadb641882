"""The schema changes that the model runs: statements, planned by the real plan."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Final

from leasehold.model.records import DescriptorWrite, MinVersion
from leasehold.schema.catalog import Catalog
from leasehold.schema.descriptor import Descriptor
from leasehold.schema.job import Job
from leasehold.schema.plan import CreateTablePlan, JobPlan, next_descriptor, plan
from leasehold.schema.tracks import Track, steps_of
from leasehold.schema.types import Type
from leasehold.sql import statements as sql

INTEGER: Final = Type("integer")
A, B, C = 2, 3, 4  # element ids of the columns a, b and, where it is there, c
Domain = Mapping[str, tuple[Any, ...]]


@dataclass(frozen=True)
class Change:
    """One schema change of table t: `job` as planned on `base`. `domain`: column name → values that
    writers put there, others hold 0. `origin`: the version that the rows may be from."""

    name: str
    base: Descriptor
    job: Job
    domain: Domain = field(default_factory=dict)
    origin: Descriptor | None = None

    def with_tracks(self, *tracks: Track) -> Change:
        """The same change by other ways: an order that the plan does not make."""
        steps, point = steps_of(tracks)
        return replace(self, job=replace(self.job, steps=steps, point=point))


def column(
    name: str, *, nullable: bool = True, default: int | None = None, unique: bool = False
) -> sql.ColumnDefinition:
    made = sql.UniqueDefinition((name,)) if unique else None
    return sql.ColumnDefinition(name, INTEGER, nullable, default, unique=made)


def alter(*actions: sql.Action) -> sql.AlterTable:
    return sql.AlterTable("t", actions)


def table_with(*columns: sql.ColumnDefinition) -> sql.CreateTable:
    first = column("id", nullable=False)
    return sql.CreateTable("t", (first, *columns), ("id",))


TABLE: Final = table_with(column("a"), column("b"))


def standing(*statements: sql.Change) -> Descriptor:
    """Table t once `statements` are done, as its version 1."""
    catalog = Catalog()
    for statement in statements:
        made = plan(statement, catalog)
        if isinstance(made, CreateTablePlan):
            body = made.descriptor.to_wire()
            catalog.apply(DescriptorWrite(1, 1, body), 0, 0)
            continue
        assert isinstance(made, JobPlan), statement
        for number in range(len(made.job.steps)):
            after = next_descriptor(replace(made.job, step=number), catalog)
            catalog.apply(DescriptorWrite(1, after.version, after.to_wire()), 0, 0)
            catalog.apply(MinVersion(1, after.version), 0, 0)
    return replace(catalog.newest(1), version=1, modified_us=0)


def changed(
    name: str,
    statement: sql.Change,
    *given: sql.Change,
    domain: Domain | None = None,
    origin: tuple[sql.Change, ...] = (),
) -> Change:
    """The change that `statement` plans on the table made by `given` (TABLE without any)."""
    base = standing(*(given or (TABLE,)))
    catalog = Catalog()
    catalog.apply(DescriptorWrite(1, 1, base.to_wire()), 0, 0)
    made = plan(statement, catalog)
    assert isinstance(made, JobPlan), made
    return Change(name, base, made.job, domain or {}, standing(*origin) if origin else None)
