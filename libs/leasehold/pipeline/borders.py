"""Record keys of a rows topic → borders of ranges of about as many rows. PURE of Spark and Kafka.

Where a table is to be cut can be told by a part of its keys. Which key is in that part follows from
its bytes alone: one that is written again, or read again after a failure, is in it once. So parts
of a topic may be read in any order, any number of times.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final, NamedTuple
from zlib import crc32

from leasehold.adapters.codec.records import restore_row_key, row_key
from leasehold.catalog.job import Job
from leasehold.model.keys import Key, order_of
from leasehold.model.records.jobs import BackfillBorder

RANGE_ROWS: Final = 250_000
"""What each node sorts at once, of a table that is not large. The more, the less often the index is
gone through from its first page to its last, and the longer nothing of it is merged."""
RANGES_MAX: Final = 8
"""⚠ Each run is merged into the whole index. With ranges of one size there would be more of them
the more rows there are, each into more pages: what a row costs would grow with the table, until it
is a page of its own. With so many ranges at most it is the same for a table of any size."""
ONE_RANGE_ROWS_MAX: Final = RANGE_ROWS * 3 // 2
"""So many need not be cut: the last range may have half as many more."""
SAMPLED_OF: Final = 1_024
"""One key of so many is in the sample of a whole topic: a range is then right to a tenth."""
_TRUNCATION: Final = row_key(())


class Sample(NamedTuple):
    """Rows that were read, and the record keys of some of them."""

    rows: int
    keys: tuple[bytes, ...]


def take_sample(
    keys: Sequence[bytes], images: Sequence[bytes | None], of: int = SAMPLED_OF
) -> Sample:
    """Return the sample of records of the topic. What was deleted meanwhile may be in it: a border
    need not be a row."""
    rows = sum(image is not None for image in images)
    return Sample(rows, tuple([k for k in keys if not crc32(k) % of and k != _TRUNCATION]))


def cut_ranges(
    job: Job, samples: Iterable[bytes], rows: int, range_rows_min: int = RANGE_ROWS
) -> list[BackfillBorder]:
    """Return the borders of the job's run over `rows` rows, in their order; none where one range
    has all. Raises MalformedRequest for what is no key."""
    range_rows = max(range_rows_min, -(-rows // RANGES_MAX))
    places: list[Key] = sorted(map(restore_row_key, set(samples)), key=order_of)
    of = max(1, rows // max(1, len(places)))
    step = max(1, range_rows // of)
    version = job.versions[job.table_id]
    # The last range has from one to one and a half times as many.
    last = len(places) - step // 2
    return [
        BackfillBorder(
            *(job.job_id, job.run, job.table_id, version, job.element_id),
            through=places[number],
            rows=step * of,
        )
        for number in range(step - 1, last, step)
    ]
