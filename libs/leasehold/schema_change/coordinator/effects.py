"""What goes into the coordinator and what comes out of it: its whole boundary."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple, TypeAlias

from leasehold.catalog.access import Access
from leasehold.catalog.catalog import Catalog
from leasehold.catalog.job import Job
from leasehold.lease.commands import Command
from leasehold.lease.replies import Reply
from leasehold.model.errors import LedgerUnavailable
from leasehold.model.records.acks import CheckReport
from leasehold.model.records.log import CatalogWrite, JobWrite
from leasehold.model.records.requests import JobControl
from leasehold.schema_change.job.renamed_schema import SchemaNamed, follow_naming
from leasehold.schema_change.job.transitions import FENCE_HERE

# ---------------------------------------------------------------- events


class Tick(NamedTuple):
    """Time has passed; also given when a Wake is due."""


class CatalogChanged(NamedTuple):
    """A record with catalog writes was read back and applied; `lsn` is that of its last commit."""

    lsn: int


class LedgerReplied(NamedTuple):
    """The answer to a Call: each has one, if only LedgerUnavailable."""

    token: int
    reply: Reply | LedgerUnavailable


class Confirmed(NamedTuple):
    """The word that this node was master by the log at `since_ns`: a record that it appended then
    was read back."""

    since_ns: int


class LeaseAcked(NamedTuple):
    """An agent says it has moved off versions below; only wakes who waits (D4)."""

    table_id: int
    version: int


class Reported(NamedTuple):
    report: CheckReport


class CoherentNodes(NamedTuple):
    """The nodes that answer reads now, hence must verify."""

    nodes: frozenset[str]


class Controlled(NamedTuple):
    """A job control request; its Write belongs into the very commit that answers it."""

    control: JobControl


Event: TypeAlias = (
    Tick
    | CatalogChanged
    | LedgerReplied
    | Confirmed
    | LeaseAcked
    | Reported
    | CoherentNodes
    | Controlled
)

# ---------------------------------------------------------------- effects


class Write(NamedTuple):
    """Append these catalog writes in one commit, if `holds` when the record is made; else drop it:
    whatever changed the job is followed by a CatalogChanged, and the coordinator thinks again.

    `job_id` 0: not about a job (the ledger's run id). `named`: what becomes of a schema, beside
    them.
    """

    job_id: int
    writes: tuple[CatalogWrite, ...]
    expects: Job | None
    named: SchemaNamed | None = None

    def holds(self, catalog: Catalog) -> bool:
        return self.job_id == 0 or catalog.jobs.get(self.job_id) == self.expects

    def at(self, lsn: int, access: Access) -> tuple[CatalogWrite, ...]:
        """Return the writes as they stand in the log: the fence is the commit they are in (D5), and
        views and types are those of `access`, which is what the catalog has before it."""
        fenced = (_fence_at(write, lsn) for write in self.writes)
        if self.named is None:
            return tuple(fenced)
        return (*fenced, *follow_naming(access, self.named).writes_since(access))


def _fence_at(write: CatalogWrite, lsn: int) -> CatalogWrite:
    if isinstance(write, JobWrite) and write.body["fence_lsn"] == FENCE_HERE:
        body: Mapping[str, object] = {**write.body, "fence_lsn": lsn}
        return write._replace(body=body)
    return write


class Call(NamedTuple):
    token: int
    command: Command


class Wake(NamedTuple):
    """Give a Tick at this CLOCK_BOOTTIME or soon after."""

    at_ns: int


Effect: TypeAlias = Write | Call | Wake
