"""Beginnings of stories about one job: a table that is ready, changes to it, places to go to."""

from __future__ import annotations

from leasehold.catalog.descriptor import Descriptor
from leasehold.catalog.edits import apply_edits
from leasehold.catalog.job import Job, Phase
from leasehold.lease.commands import NEVER_LATE, Acquire, OpenSession
from leasehold.lease.ledger import ledger
from leasehold.sql.syntax.statements import (
    Change,
    DropColumn,
    DropTable,
    RenameColumn,
    RenameTable,
    SetNotNull,
)
from tests.support.schema_change.job_world import RUN, World
from tests.support.schema_change.made_statements import (
    add_check,
    add_column,
    add_unique,
    alter,
    column,
    create_index,
    create_table,
)

TABLE = create_table("t", column("a"))
INDEX = create_index("i", "t", "a")
OPTIONAL = alter("t", add_column("b", "text"))
REQUIRED = alter("t", add_column("b", nullable=False, default=5))
UNIQUE = alter("t", add_unique("a"))
EVERY_CHANGE: tuple[Change, ...] = (
    INDEX,
    OPTIONAL,
    REQUIRED,
    UNIQUE,
    alter("t", add_column("b", default=5), add_check("a < 9"), SetNotNull("a")),
    alter("t", RenameColumn("a", "z")),
    alter("t", RenameTable("other")),
    alter("t", DropColumn("a")),
    DropTable("t"),
)


def ready_world(seed: int = 0, agents: int = 0) -> World:
    world = World(seed, agents=agents)
    world.ddl(TABLE)
    world.until_ready()
    return world


def made_of(before: Descriptor, job: Job) -> Descriptor:
    """The table as the steps of a job leave it."""
    for step in job.steps:
        before = apply_edits(before, step.edits)
    return before


def same_but_for_ids(before: Descriptor, after: Descriptor) -> bool:
    """Everything as before but version, next_element_id and the time of publication."""
    keys = ("version", "next_element_id", "modified_us", "since_lsn")
    plain = [{k: v for k, v in d.to_wire().items() if k not in keys} for d in (before, after)]
    return plain[0] == plain[1]


def hold(world: World, version: int, session: int = 77, agent: str = "slow") -> None:
    ledger.apply(world.ledger, OpenSession(agent, session), RUN)
    granted = ledger.apply(world.ledger, Acquire(session, NEVER_LATE, 1, version), RUN)
    assert type(granted).__name__ == "Granted", granted


def reach(world: World, step: int, phase: Phase) -> None:
    """Calm work up to a place of job 1; chunks are decided when nothing else is due."""
    for _ in range(1_000):
        if (world.job().step, world.job().phase) == (step, phase):
            return
        if not world.calm() and not world.perform_backfill():
            world.pass_time(5)
    raise AssertionError((world.job().step, world.job().phase))
