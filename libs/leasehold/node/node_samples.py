"""What a node tells of itself when somebody scrapes its process.

Called from a thread of its own, beside the node's: so only what can be read in one piece is read
(an attribute, a copy of a dictionary), and nothing waits for the node, nor the node for this.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import suppress
from typing import Final

from leasehold.catalog.catalog import Catalog
from leasehold.catalog.job import Job
from leasehold.lease.agent.held_leases import HeldLeases
from leasehold.model import metrics
from leasehold.model.errors import LeaseholdError
from leasehold.model.measures import Sample
from leasehold.model.metrics import NO_LABELS
from leasehold.model.ports import Now
from leasehold.model.time_units import NS_PER_S
from leasehold.node.tables_shown import TablesShown
from leasehold.replication.fast_path.path_samples import path_samples
from leasehold.replication.master.master import Master
from leasehold.replication.node import Node
from leasehold.replication.queue_limits import ANSWERS_BYTES_MAX, WAITING_BYTES_MAX

ROLES: Final = ("master", "standby", "replicant")
JOBS_MAX: Final = 20
"""Jobs that have series of their own: the oldest that have not ended."""
US_PER_S: Final = 1_000_000


class NodeLook:
    """The figures of one node; its tables keep their series from one look to the next."""

    def __init__(self, node: Node) -> None:
        """Begin to look."""
        self._node = node
        self._tables = TablesShown()

    def samples(self, now: Now) -> Iterator[Sample]:
        """Yield what is known now, of the node and of its term if it is master."""
        node = self._node
        position = node.position
        for role in ROLES:
            yield Sample(metrics.ROLE, (role,), float(node.role == role))
        yield Sample(metrics.STOPPED, NO_LABELS, float(node.stopped is not None))
        yield Sample(metrics.EPOCH, NO_LABELS, position.epoch)
        yield Sample(metrics.LSN, NO_LABELS, position.lsn)
        yield Sample(metrics.OFFSET, NO_LABELS, position.offset)
        if position.commit_us:
            yield Sample(metrics.COMMIT_TIME, NO_LABELS, position.commit_us / US_PER_S)
        yield Sample(metrics.SNAPSHOTS, NO_LABELS, len(node.acknowledger.copies()))
        yield from node.measures.samples()
        yield from self._changes()
        if node.agent is not None:
            yield Sample(metrics.COHERENT, NO_LABELS, float(node.lease.holds(now.mono_ns)))
            yield from lease_samples(node.agent.leases, now.mono_ns)
            yield from path_samples("acknowledgements", node.acknowledger.path, now.mono_ns)
        master = node.master
        yield Sample(metrics.MASTER, NO_LABELS, float(master is not None))
        if master is not None:
            yield from master_samples(master, now)
            yield from job_samples(node.catalog.running, now)

    def _changes(self) -> Iterator[Sample]:
        counts = dict(self._node.counts.changes)
        names = table_names(self._node.catalog, counts)
        for table, count in self._tables.series(counts, names):
            yield Sample(metrics.TABLE_CHANGES, (table,), count)


def table_names(catalog: Catalog, counts: Mapping[int, int]) -> dict[int, str]:
    """Return the names of those tables that there are."""
    names: dict[int, str] = {}
    for table_id in counts:
        with suppress(LeaseholdError, LookupError, AssertionError):  # it is dropped meanwhile
            if catalog.has(table_id):
                names[table_id] = catalog.newest(table_id).name
    return names


def lease_samples(leases: HeldLeases, now_ns: int) -> Iterator[Sample]:
    """Yield how many leases an agent holds, and how old the oldest one of an old version is."""
    old = list(leases.old.values())
    yield Sample(metrics.LEASES, ("newest",), len(leases.newest))
    yield Sample(metrics.LEASES, ("before",), len(old))
    ages_ns = [now_ns - lease.retired_ns for lease in old if lease.retired_ns]
    yield Sample(metrics.OLD_LEASE_AGE, NO_LABELS, max(ages_ns, default=0) / NS_PER_S)


def master_samples(master: Master, now: Now) -> Iterator[Sample]:
    """Yield what waits on a master, and for whom it waits."""
    for queue, messages, size in master.intake.waiting():
        yield Sample(metrics.QUEUE_MESSAGES, (queue.value,), messages)
        yield Sample(metrics.QUEUE_BYTES, (queue.value,), size)
        yield Sample(metrics.QUEUE_BYTES_LIMIT, (queue.value,), WAITING_BYTES_MAX)
        yield Sample(metrics.QUEUE_PAUSED, (queue.value,), float(queue in master.intake.paused))
    yield Sample(metrics.ANSWERS_BYTES, NO_LABELS, master.answers_bytes)
    yield Sample(metrics.ANSWERS_BYTES_LIMIT, NO_LABELS, ANSWERS_BYTES_MAX)
    known = master.known_coherent(now)
    if known is not None:  # else nobody knows yet who serves reads
        yield Sample(metrics.COHERENT_NODES, NO_LABELS, len(known))
    yield Sample(metrics.BEHIND_RECORDS, NO_LABELS, master.records_behind(now.mono_ns))
    yield Sample(metrics.BACKFILL_BESIDE, NO_LABELS, master.rows_beside)
    trouble = master.changes.coordinator.ledger.trouble(now)
    yield Sample(metrics.LEDGER_TROUBLE, NO_LABELS, float(bool(trouble)))


def job_samples(running: Mapping[int, Job], now: Now) -> Iterator[Sample]:
    """Yield how far the schema changes are that have not ended."""
    jobs = [job for _, job in sorted(dict(running).items())]
    numbers: dict[tuple[str, str], int] = {}
    for job in jobs:
        key = (job.phase.value, job.status.value)
        numbers[key] = numbers.get(key, 0) + 1
    for key, number in numbers.items():
        yield Sample(metrics.JOBS, key, number)
    for job in jobs[:JOBS_MAX]:
        labels = (str(job.job_id), job.table)
        yield Sample(metrics.JOB_AGE, labels, max(0, now.wall_us - job.created_us) / US_PER_S)
        since_us = job.marks[-1][2] if job.marks else job.created_us
        in_phase_s = max(0, now.wall_us - since_us) / US_PER_S
        yield Sample(metrics.JOB_PHASE_AGE, (*labels, job.phase.value), in_phase_s)
        if job.rows >= 0:
            yield Sample(metrics.JOB_ROWS, labels, job.rows)
        done = job.looked if job.look is not None else max(job.rows_read, job.rows_applied)
        yield Sample(metrics.JOB_ROWS_DONE, labels, done)
