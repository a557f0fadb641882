"""The harm that each rule of jobs prevents, looked for at every step of a world."""

from __future__ import annotations

from collections.abc import Iterable

from leasehold.catalog.catalog import Catalog
from leasehold.catalog.job import Job, Phase
from leasehold.lease.commands import Command, Publish
from leasehold.lease.ledger.state import LedgerState
from leasehold.model.records.log import CatalogWrite, DescriptorWrite, MinVersion


class Harm(AssertionError):
    """What a rule prevents has happened."""


def _running(catalog: Catalog) -> Iterable[Job]:
    return [job for job in catalog.jobs.values() if not job.status.ended]


def judge_write(write: CatalogWrite, catalog: Catalog, ledger: LedgerState) -> None:
    held = [lease for leases in ledger.leases.values() for lease in leases]
    match write:
        case DescriptorWrite(table_id=table, version=version) if catalog.has(table):
            if catalog.min_version(table) != version - 1:
                raise Harm(f"D5: {version} is published and {version - 1} is not fenced")
            if any(h.table == table and h.version < version - 1 for h in held):
                raise Harm(f"D2: three versions live at the publication of {version}")
            if not any(j.versions.get(table) == version for j in _running(catalog)):
                raise Harm(f"D2: {version} is published without an intent in the log")
        case MinVersion(table_id=table, version=version):
            if any(h.table == table and h.version < version for h in held):
                raise Harm(f"D4: fenced at {version} while leases below are held")


def judge_call(command: Command, catalog: Catalog) -> bool:
    """Whether the command publishes a step of a job."""
    if not isinstance(command, Publish):
        return False
    steps = [change for change in command.changes if change.from_version]
    for change in steps:
        jobs = _running(catalog)
        named = any(job.versions.get(change.table) == change.to_version for job in jobs)
        if not named or all(job.phase is Phase.DONE for job in jobs):
            raise Harm(f"D2: the ledger is asked for {change} before the intent is in the log")
    return bool(steps)
