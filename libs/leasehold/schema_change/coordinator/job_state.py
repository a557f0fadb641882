"""What a coordinator remembers of one job. All of it may be lost at any time."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias

from leasehold.catalog.job import Job
from leasehold.lease.replies import Holding
from leasehold.model.records.log import CheckSlice

JobStage: TypeAlias = tuple[int, str, str, int, int, CheckSlice | None]


def find_place(job: Job) -> JobStage:
    """Return the place of a job; what is remembered of another place counts no more."""
    return (job.step, job.phase, job.status, job.run, len(job.steps), job.look)


@dataclass(slots=True)
class Verification:
    """A VERIFYING record of this coordinator's own, at `lsn`, read back at `at_ns`; `nodes` were
    coherent then."""

    lsn: int
    at_ns: int
    deadline_ns: int
    nodes: frozenset[str]


@dataclass(slots=True)
class JobMemory:
    """What is remembered of one job at its place. `expects`: the job as it was when a Write was
    given, None = no Write is on its way. `wrote`: the job as that Write leaves it. `token`: the
    ledger call under way, 0 = none. `publish_again`: the ledger may not know the version that is
    being drained. `ahead`: tables whose version the ledger had before this job asked for it.
    `drained`: of so many of its tables nobody was seen below the version, and then of so many it
    was confirmed. `blocked_ns`: since when leases are in the way here, 0 = none was. `walked`: who
    was clean in each slice before the one that `wrote` asks for, None = it is the first."""

    stage: JobStage
    expects: Job | None = None
    wrote: Job | None = None
    token: int = 0
    retry_ns: int = 0
    polls: int = 0
    drained: int = 0
    publish_again: bool = False
    ahead: frozenset[int] = frozenset()
    blockers: tuple[Holding, ...] = ()
    blocked_ns: int = 0
    waiting: str = ""
    verification: Verification | None = None
    walked: frozenset[str] | None = None
