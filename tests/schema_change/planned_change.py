"""The schema changes that the models run: planned from DDL by the real plan, and their reverse."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Final

from leasehold.model.records import DescriptorWrite
from leasehold.schema.catalog import Catalog
from leasehold.schema.descriptor import Column, Descriptor, Index
from leasehold.schema.job import Job, Step
from leasehold.schema.plan import CreateTablePlan, JobPlan, next_descriptor, plan
from leasehold.schema.states import State
from leasehold.sql.ddl import parse_ddl

ID, A, B, E = 1, 2, 3, 4  # element ids; E is the one that the job changes
TABLE: Final = "CREATE TABLE t (id integer, a integer, b integer, PRIMARY KEY (id))"
NAMES: Final = {A: "a", B: "b", E: "c"}


@dataclass(frozen=True)
class Change:
    """One schema change: `job` as planned from the DDL, `steps` the states E goes through (a test
    may put an unsafe order there), from `begin`."""

    name: str
    job: Job
    element: Column | Index
    steps: tuple[State, ...]
    begin: State = State.ABSENT

    @property
    def adds(self) -> bool:
        return self.begin is State.ABSENT

    def back(self, state: State) -> tuple[State, ...]:
        """The steps of the roll-back from `state`: the way it came, and absent."""
        path = (self.begin, *self.steps)
        return tuple(reversed(path[: path.index(state)]))

    def fills(self, state: State) -> bool:
        """Are rows filled after the fence of this step? As the plan says."""
        return self.adds and any(s.backfill for s in self.job.steps if s.state is state)

    def descriptor(self, newest: Descriptor, state: State) -> Descriptor:
        """The version after `newest`, as the job publishes it."""
        catalog = Catalog()
        catalog.apply(DescriptorWrite(1, newest.version, newest.to_wire()), 0, 0)
        return next_descriptor(replace(self.job, steps=(Step(E, state),), step=0), catalog)


def table() -> Descriptor:
    made = plan(parse_ddl(TABLE), Catalog())
    assert isinstance(made, CreateTablePlan)
    return made.descriptor


def added(name: str, sql: str) -> Change:
    """The change that a DDL statement plans."""
    catalog = Catalog()
    catalog.apply(DescriptorWrite(1, 1, table().to_wire()), 0, 0)
    made = plan(parse_ddl(sql), catalog)
    assert isinstance(made, JobPlan)
    job = made.job
    first = next_descriptor(job, catalog)
    element = first.with_state(E, State.PUBLIC).element(E)
    assert element is not None
    return Change(name, job, element, tuple(step.state for step in job.steps))


def dropped(change: Change) -> Change:
    """The way back from public, once DROP is planned too."""
    way = (change.begin, *change.steps)
    return replace(change, steps=tuple(reversed(way[:-1])), begin=State.PUBLIC)


CREATE_INDEX: Final = added("index", "CREATE INDEX i ON t (a)")
ADD_NULLABLE: Final = added("nullable column", "ALTER TABLE t ADD COLUMN c integer")
ADD_REQUIRED: Final = added(
    "required column", "ALTER TABLE t ADD COLUMN c integer NOT NULL DEFAULT 7"
)
DROP_INDEX: Final = dropped(CREATE_INDEX)
DROP_NULLABLE: Final = dropped(ADD_NULLABLE)
DROP_REQUIRED: Final = dropped(ADD_REQUIRED)
