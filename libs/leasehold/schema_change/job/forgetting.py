"""What leaves the catalog: tables that were dropped long ago, and jobs that ended long ago.

The master decides it, by the log's own time, and says so in the log (`TableForgotten`,
`JobForgotten`): every node forgets at the same position, and the changefeed knows from the log
alone which keys and which rows topic are nobody's any more.

Ids are never given twice. They are counted from the highest that the catalog knows, so of each kind
the highest is kept, whatever became of it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import chain, islice
from typing import Final

from leasehold.catalog.catalog import Catalog
from leasehold.catalog.descriptor import Descriptor
from leasehold.catalog.job import Job
from leasehold.catalog.states import State
from leasehold.model.ids import is_sequence_id
from leasehold.model.records.log import JobForgotten, TableForgotten

FORGOTTEN_PER_COMMIT_MAX: Final = 100
"""Each is a few bytes of the log and a row of the stores; more wait for the next look."""


def find_forgettable(
    catalog: Catalog, before_us: int, number_max: int = FORGOTTEN_PER_COMMIT_MAX
) -> tuple[JobForgotten | TableForgotten, ...]:
    """Return jobs that ended, and tables that nobody may name any more since they were dropped,
    before that time: jobs first, since a table is kept for as long as one that names it."""
    jobs = tuple(islice(_jobs(catalog, before_us), number_max))
    gone = {job.job_id for job in jobs}
    kept = [job for job in catalog.jobs.values() if job.job_id not in gone]
    tables = _tables(catalog, kept, before_us)
    return (
        *(JobForgotten(job.job_id) for job in jobs),
        *(TableForgotten(table_id) for table_id in islice(tables, number_max - len(jobs))),
    )


def ended_us(job: Job) -> int:
    """Return when a job that has ended did so, in unix µs."""
    return job.marks[-1][2] if job.marks else job.created_us


def _jobs(catalog: Catalog, before_us: int) -> Iterator[Job]:
    newest = max(catalog.jobs, default=0)
    highest = _highest(catalog)
    for job_id, job in sorted(catalog.jobs.items()):
        # One whose table was never made keeps its number from being given again.
        counts = any(table > highest[is_sequence_id(table)] for table in job.tables)
        if job.status.ended and ended_us(job) < before_us and job_id != newest and not counts:
            yield job


def _tables(catalog: Catalog, jobs: Iterable[Job], before_us: int) -> Iterator[int]:
    highest = _highest(catalog)
    named = set(chain.from_iterable((*job.tables, *job.needs) for job in jobs))
    for table_id in catalog.table_ids():
        kept = catalog.versions(table_id)
        named.update(chain.from_iterable(map(_referred_to, kept)))
    for table_id in catalog.table_ids():
        table = catalog.newest(table_id)
        if (
            table.state is State.ABSENT
            # D5: nobody uses an older version, and none of the past can be read.
            and catalog.min_version(table_id) == table.version
            and len(catalog.versions(table_id)) == 1
            and table.modified_us < before_us
            and table_id not in named
            and table_id != highest[is_sequence_id(table_id)]
        ):
            yield table_id


def _referred_to(table: Descriptor) -> Iterator[int]:
    if table.state is not State.ABSENT:
        yield table.mirror
        for key in table.foreign_keys:
            yield key.parent


def _highest(catalog: Catalog) -> dict[bool, int]:
    """Return the highest ids of tables and of sequences (True)."""
    highest = {False: 0, True: 0}
    for table_id in catalog.table_ids():
        kind = is_sequence_id(table_id)
        highest[kind] = max(highest[kind], table_id)
    return highest
