"""Checks of a node's store, each at exactly one log position: CHECK TABLE, and the verification
that always comes before an element goes public."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from typing import Final

from leasehold.catalog.catalog import Catalog
from leasehold.catalog.descriptor import Descriptor
from leasehold.catalog.job import Job, Phase, Status, job_from_wire
from leasehold.catalog.part import Part
from leasehold.model.ports import StoreWriter
from leasehold.model.records.acks import ROLES_CHECKED, CheckReport
from leasehold.model.records.log import Barrier, Decisions, JobWrite, LogPosition
from leasehold.schema_change.coordinator.verification import make_subject

EVERY_TABLE = -1
REPAIRS_MAX: Final = 10_000
"""Entries that one command puts right; with more the command is given again."""
REPAIRED_AT_ONCE_MAX: Final = 200


def _verified_jobs(record: Decisions) -> Iterator[Job]:
    # What a job writes stands in the last commit of its record, so that a record of a thousand
    # rows is not looked through for it.
    for commit in record.commits[-1:]:
        for write in commit.catalog:
            if isinstance(write, JobWrite):
                job = job_from_wire(write.body)
                if job.phase is Phase.VERIFYING and job.status is Status.RUNNING:
                    yield job


def _can_check(part: Part, table: Descriptor) -> bool:
    """Return whether a store with that part has all that the table's rows are compared with."""
    parents = (key.parent for key in table.foreign_keys)
    return all(map(part.holds_whole, (table.table_id, *filter(None, (table.mirror, *parents)))))


class Checks:
    """Starts checks on the store and hands out their reports."""

    def __init__(self, store: StoreWriter, node: str, *, serving: bool) -> None:
        self._store = store
        self._node = node
        self._serving = serving
        self._repairs_asked: set[bytes] = set()
        self._repairing: deque[CheckReport] = deque()  # `repaired`: so many by now

    def starts_with(self, record: Decisions) -> bool:
        """Return whether a check starts at this very record."""
        return any(True for _ in _verified_jobs(record))

    def record_applied(self, record: Decisions, *, master: bool) -> None:
        """Start the checks that a record asks for, once it was committed. Replicants answer for
        what they serve; the master's own report is what counts when no replicant is coherent."""
        if not (self._serving or master):
            return
        for job in _verified_jobs(record):
            part: Part = self._store.part
            if not all(map(part.holds_whole, (*job.tables, *job.needs))):
                continue  # nobody asks it, and what it has can't be compared
            self._store.check(
                make_subject(job), (job.worked_table,), job.current.verifies, part=job.look
            )

    def take_barriers(self, record: Decisions, catalog: Catalog) -> None:
        """Start the checks that requests of a record ask for, once it was committed."""
        for barrier in record.barriers:
            if barrier.check is not None:
                self.take_barrier(barrier, catalog)

    def take_barrier(self, barrier: Barrier, catalog: Catalog) -> None:
        """Every node, standby and master too, answers a CHECK TABLE; one may be told to repair."""
        assert barrier.check is not None
        tables = tuple(descriptor.table_id for descriptor in catalog.tables())
        if barrier.check == EVERY_TABLE:
            tables = (ROLES_CHECKED, *tables)  # first: who has reported on tables has on these
        else:
            tables = tuple(t for t in tables if t == barrier.check)
        part: Part = self._store.part
        tables = tuple(
            t for t in tables if t == ROLES_CHECKED or _can_check(part, catalog.newest(t))
        )
        if not tables:
            return
        repairs = barrier.repair == self._node and len(tables) == 1
        if repairs:
            self._repairs_asked.add(barrier.id)
        repairs_max = REPAIRS_MAX if repairs else 0
        self._store.check(barrier.id, tables, (), repairs_max=repairs_max, part=barrier.part)

    def take_reports(self, incarnation: bytes) -> Iterator[CheckReport]:
        """Reports to be sent; one of a check with a repair waits until that is done."""
        for found in self._store.checked():
            report = found._replace(node=self._node, incarnation=incarnation)
            if report.subject not in self._repairs_asked:
                yield report
                continue
            self._repairs_asked.discard(report.subject)
            if report.error:
                yield report
            else:
                self._repairing.append(report._replace(repaired=0))

    @property
    def repairing(self) -> bool:
        return bool(self._repairing)

    def repair(self, catalog: Catalog, position: LogPosition) -> CheckReport | None:
        """A slice of the repair under way, in a transaction of its own at the store's `position`;
        the report once it is done. Entries are nobody's but this store's: the log has none."""
        report = self._repairing.popleft()
        self._store.begin()
        newest = catalog.newest(report.table_id)
        changed, more = self._store.repair(newest, report.subject, REPAIRED_AT_ONCE_MAX)
        self._store.commit(position)
        report = report._replace(repaired=report.repaired + changed)
        if not more:
            return report
        self._repairing.appendleft(report)
        return None
