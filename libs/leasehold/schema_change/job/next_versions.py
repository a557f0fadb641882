"""The descriptors that a job's current step publishes, and the tables that move with it."""

from __future__ import annotations

from leasehold.catalog.catalog import Catalog
from leasehold.catalog.descriptor import Descriptor
from leasehold.catalog.edits import apply_edits, create_from_edits
from leasehold.catalog.job import Job
from leasehold.catalog.states import State


def next_descriptors(job: Job, catalog: Catalog) -> tuple[Descriptor, ...]:
    """Return the versions that the job's current step publishes in one commit (D9), of all its
    tables. A table that the job makes is there from the step on that has it."""
    made = []
    for table_id in filter(job.publishes, job.tables):
        edits = job.edits_of(table_id)
        if is_moving(catalog, table_id):
            made.append(apply_edits(catalog.newest(table_id), edits, job.fence_lsn))
        elif edits:
            made.append(create_from_edits(edits, job.versions[table_id]))
    return tuple(made)


def find_moving(job: Job, catalog: Catalog) -> tuple[int, ...]:
    """Return those of a job's tables whose leases its current step waits for."""
    return tuple(t for t in filter(job.publishes, job.tables) if is_moving(catalog, t))


def is_moving(catalog: Catalog, table_id: int) -> bool:
    """Say whether a job's table is in the log, and not absent for all. One that the job makes comes
    later, and goes earlier where the job is turned back."""
    if not catalog.has(table_id):
        return False
    newest = catalog.newest(table_id)
    return newest.state is not State.ABSENT or catalog.min_version(table_id) < newest.version
