"""Schema-change jobs outside of the log: what the topic of jobs and the backfill queue carry."""

from __future__ import annotations

from typing import Any, Final, NamedTuple

from leasehold.model.keys import Key, Keys


class JobEvent(NamedTuple):
    """Job state from the log, under key `job/<id>`. `body` is `Job.to_wire()`."""

    job_id: int
    lsn: int
    commit_us: int
    body: Any


FAILING: Final = "failing: "
"""How a run's phase begins that has failed and is tried again; why stands behind it."""


class JobProgress(NamedTuple):
    """Spark's progress of one run, under key `progress/<id>/<run>`: rows read and chunks sent."""

    job_id: int
    run: int
    rows: int
    chunks: int
    rows_per_second: float
    phase: str
    sent_us: int


class SparkReport(NamedTuple):
    """Spark's driver is at work: on `jobs`, under key `spark`, every few seconds. `trouble`: why
    the stream that retries requests does not run; empty when it does, or has nothing to do."""

    sent_us: int
    trouble: str


class ChangefeedReport(NamedTuple):
    """The changefeed is at work: on `jobs`, under key `changefeed`, every few seconds, in the
    transaction that publishes the log up to `offset`, whether there was anything new or not.
    `feeds`: name, status and words of each feed of a table."""

    sent_us: int
    offset: int
    lsn: int
    feeds: tuple[tuple[str, str, str], ...] = ()


class Chunk(NamedTuple):
    """Rows of one backfill micro-batch, bounded in bytes. Taken only while that job's run is in
    that step and the element is write-only (the ⚠ rule on late chunks).

    It names keys alone: the pair itself is derived by each node from its own row at the chunk's
    position in the log, so that no image, however old, can write anything wrong.
    """

    job_id: int
    run: int
    table_id: int
    version: int
    element_id: int
    keys: Keys


class BackfillBorder(NamedTuple):
    """The end of a range of a backfill by range, whose rows, `rows` or so, lie behind the border
    before: that is the next range. It says where to cut and nothing else: ranges cover every key
    whatever borders there are, since the last one ends nowhere. Taken as a chunk is."""

    job_id: int
    run: int
    table_id: int
    version: int
    element_id: int
    through: Key
    rows: int


class ChunksEnd(NamedTuple):
    """Every chunk of this run stands before this marker in the queue."""

    job_id: int
    run: int
    rows: int
    chunks: int


FOUND_MAX: Final = 1_000
"""Rows that findings name: the first of all that a run has found."""


class Findings(NamedTuple):
    """Ends the run of a validation: rows that seemed to break a constraint when `rows` images had
    been looked through. Taken only while that job's run is validating (⚠ late findings).

    `found`: (element id of the constraint, primary key), the first of `total`. Whether it is so,
    and what the row holds, the master sees in its own row.
    """

    job_id: int
    run: int
    table_id: int
    version: int
    rows: int
    total: int
    found: tuple[tuple[int, Key], ...]
