"""The next version of a job's own table, for tests of jobs that change one table."""

from __future__ import annotations

from leasehold.catalog.catalog import Catalog
from leasehold.catalog.descriptor import Descriptor
from leasehold.catalog.edits import apply_edits
from leasehold.catalog.job import Job


def next_descriptor(job: Job, catalog: Catalog) -> Descriptor:
    """Return the version that the job's current step publishes; a roll-back takes made elements
    out again and leaves everything but `version` and `next_element_id` as it was."""
    return apply_edits(catalog.newest(job.table_id), job.edits_of(job.table_id), job.fence_lsn)
