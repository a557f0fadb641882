"""Tables that a job changes, or needs as they are: no other job may have them (D9)."""

from __future__ import annotations

from typing import Final, NamedTuple

from leasehold.catalog.catalog import Catalog
from leasehold.catalog.descriptor import Descriptor
from leasehold.catalog.job import Job, Status
from leasehold.model.errors import TableBusy, UnknownTable
from leasehold.schema_change.job.transitions import can_turn_back
from leasehold.sql.syntax.statements import (
    AlterTable,
    DropConstraint,
)


class EarlierDrops(NamedTuple):
    """What earlier statements of the same request drop, all in one job: `elements` are (table id,
    element id). More may go with it."""

    job_id: int = 0
    elements: frozenset[tuple[int, int]] = frozenset()

    def for_actions(self, statement: AlterTable) -> EarlierDrops:
        """Return them for an ALTER TABLE: one that drops constraints alone joins their job, and any
        other has one of its own."""
        drops = all(isinstance(action, DropConstraint) for action in statement.actions)
        return self if drops else NO_EARLIER_DROPS


NO_EARLIER_DROPS: Final = EarlierDrops()


def busy_job(catalog: Catalog, table_id: int) -> Job | None:
    """Return the job that is changing a table now, or needs it as it is (D9: at most one)."""
    return next(iter(catalog.running_at(table_id)), None)


def _busy_words(job: Job, table_id: int) -> str:
    """Say what keeps a table, and what one can do about it, as the job stands now."""
    busy = "is being changed by" if table_id in job.tables else "has to stay as it is for"
    stands = "postponed" if job.postponed else job.status.value
    wishes = ["wait for it to end"]
    if job.status is Status.PAUSED:
        wishes = ["resume it"]
    elif job.postponed:
        wishes = ["complete it"]
    if can_turn_back(job):
        wishes.append("cancel it")
    return f"{busy} job {job.job_id} ({job.kind}, {stands}): {', or '.join(wishes)}"


def free_table(
    catalog: Catalog, table: Descriptor, earlier: EarlierDrops = NO_EARLIER_DROPS
) -> None:
    """Refuse a table that a job has, but for the job of `earlier` drops. Raises TableBusy."""
    job = busy_job(catalog, table.table_id)
    if job is not None and job.job_id != earlier.job_id:
        raise TableBusy(
            f"table {table.name!r} {_busy_words(job, table.table_id)}",
            table=table.name,
            job=job.job_id,
        )


def is_table(catalog: Catalog, name: str) -> bool:
    """Say whether there is a table of that name. One that is being dropped is not there any more,
    though its name is still taken."""
    try:
        catalog.resolve(name)
    except UnknownTable:
        return False
    return True
