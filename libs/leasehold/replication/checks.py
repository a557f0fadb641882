"""Which checks of its store a node starts, and when: at exactly one log position (CHECK TABLE and
the verification that always comes before an element goes public)."""

from __future__ import annotations

from collections.abc import Iterator

from leasehold.model.ports import StoreWriter
from leasehold.model.records import Barrier, CheckReport, Decisions, JobWrite, LogPosition
from leasehold.schema.catalog import Catalog
from leasehold.schema.job import Job, Phase, Status, job_from_wire
from leasehold.schema.verification import subject_of

EVERY_TABLE = -1


def _verified_jobs(record: Decisions) -> Iterator[Job]:
    # What a job writes stands in the last commit of its record, so that a record of a thousand
    # rows is not looked through for it.
    for commit in record.commits[-1:]:
        for write in commit.catalog:
            if isinstance(write, JobWrite):
                job = job_from_wire(write.body)
                if job.phase is Phase.VERIFYING and job.status is Status.RUNNING:
                    yield job


class Checks:
    """Starts checks on the store and hands out their reports."""

    def __init__(self, store: StoreWriter, *, serving: bool) -> None:
        self._store = store
        self._serving = serving

    def wanted(self, record: Decisions) -> bool:
        return any(True for _ in _verified_jobs(record))

    def record_applied(self, record: Decisions, *, master: bool) -> None:
        """After the record was committed. Replicants answer for what they serve; the master's
        own report is what counts when no replicant is coherent."""
        if not (self._serving or master):
            return
        for job in _verified_jobs(record):
            self._store.check(subject_of(job), (job.table_id,), job.current.verifies)

    def barrier(self, barrier: Barrier, catalog: Catalog, position: LogPosition) -> None:
        """Every node, standby and master too, answers a CHECK TABLE."""
        assert barrier.check is not None
        tables = tuple(descriptor.table_id for descriptor in catalog.tables())
        if barrier.check != EVERY_TABLE:
            tables = tuple(t for t in tables if t == barrier.check)
        self._store.check(barrier.id, tables, ())

    def finished(self, node: str, incarnation: bytes) -> Iterator[CheckReport]:
        for report in self._store.checked():
            yield report._replace(node=node, incarnation=incarnation)
