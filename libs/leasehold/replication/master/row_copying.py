"""The ranges in which rows are copied under another key: the master cuts them, from its own store,
and every node copies the same rows when it applies the record. Pure.

Nobody sends them: the job says in the log how far its ranges go (`Job.through`), so that whoever is
master goes on there. ⚠ One range a record: where the next one begins is known when this one is read
back. A row whose key changes meanwhile is written in both tables by whoever changes it, whether its
old or its new key lies in a range that is copied or in none; what a range brings is only what is
not there yet.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from leasehold.catalog.catalog import Catalog
from leasehold.catalog.job import Job
from leasehold.model.errors import RequestTooLarge
from leasehold.model.ports import Codec, CopyRange, Now
from leasehold.model.records.log import Backfill, ChunkDecided, Commit
from leasehold.model.time_units import NS_PER_MS, NS_PER_S
from leasehold.replication.master.batch import Batch
from leasehold.replication.master.batch_limits import HEADER_BYTES, CommitLimits
from leasehold.replication.master.record_draft import Full
from leasehold.replication.master.schema_changes import SchemaChanges
from leasehold.replication.master.write_behind import WriteBehind

ROWS_PER_ENTRY: Final = 2
"""Rows that are copied in the place of an index entry of the pace (`backfill_pacing.py`), of which
each is named and looked up: by statements for all of them a row takes a node 2.9 µs. Beside users
that are 30,000 rows/s at least."""
TURN_MS: Final = 50
"""Of one range, about: what may lie between two heartbeats in any case."""
ROWS_FIRST: Final = 2_000
ROWS_LEAST: Final = 100
"""What a row costs is known after the first range; fewer cost hardly less than their record."""
ROW_BYTES_FIRST: Final = 400
"""Of a row in a record, until some are known."""


class RowCopying:
    """Copies rows for one term. What it remembers is about its pace alone."""

    def __init__(
        self,
        catalog: Catalog,
        store: WriteBehind,
        codec: Codec,
        limits: CommitLimits,
        changes: SchemaChanges,
        bytes_max: int,
        clock_ns: Callable[[], int],
    ) -> None:
        """Begin without a pace. `bytes_max`: of a record that travels in a moment; `clock_ns`: see
        `Node`."""
        self._catalog = catalog
        self._store = store
        self._codec = codec
        self._limits = limits
        self._changes = changes
        self._bytes_max = bytes_max - HEADER_BYTES
        self._clock_ns = clock_ns
        self._row_bytes = ROW_BYTES_FIRST
        self._rows_in_time = ROWS_FIRST
        self._due_ns = 0  # of a job with a rate

    def waits(self, now: Now) -> bool:
        """Say whether there are rows to copy now."""
        return self._find_job(now) is not None

    @property
    def is_under_way(self) -> bool:
        """Whether there are rows to copy, now or in a while."""
        return self._catalog.find_copying() is not None

    @property
    def due_ns(self) -> int:
        """The time at which the next range of a job with a rate may come, or might have come."""
        return self._due_ns

    def _find_job(self, now: Now) -> Job | None:
        return self._catalog.find_copying() if now.mono_ns >= self._due_ns else None

    def take(self, batch: Batch, rows_max: int, now: Now) -> None:
        """Decide the next range of a job, of about so many index entries at most, and close the
        record with it. A row that fits no record ends the job. Raises Full."""
        job = self._find_job(now)
        if job is None or rows_max <= 0:
            return
        rate = job.settings.get("rows_per_second", 0)
        fit = min(self._rows_in_time, self._bytes_max // self._row_bytes)
        rows = max(1, min(rows_max * ROWS_PER_ENTRY, fit))
        if rate:
            rows = min(rows, rate)
        begun_ns = self._clock_ns()
        while True:
            read = self._read(job, rows)
            try:
                self._put(batch, job, read)
            except Full:
                if rows == 1:
                    raise
            except RequestTooLarge as error:
                if rows == 1:
                    batch.write_catalog(self._changes.failing(job.job_id, error, now))
                    return
            else:
                break
            rows //= 2
        took_ns = max(1, self._clock_ns() - begun_ns)
        in_time = min(2 * self._rows_in_time, rows * TURN_MS * NS_PER_MS // took_ns)
        self._rows_in_time = max(ROWS_LEAST, in_time)
        if rate:
            self._due_ns = now.mono_ns + rows * NS_PER_S // rate

    def _read(self, job: Job, rows: int) -> CopyRange:
        version = job.versions[job.table_id]
        source = self._catalog.version(job.table_id, version)
        target = self._catalog.version(source.mirror, version)
        return self._store.read_copy(source, target, job.through, rows)

    def _put(self, batch: Batch, job: Job, read: CopyRange) -> None:
        """Raises Full, or RequestTooLarge for what no record has room for; nothing is done
        then."""
        draft, version = batch.draft, job.versions[job.table_id]
        span, copied = read
        target_id = self._catalog.version(job.table_id, version).mirror
        backfill = Backfill(target_id, version, job.element_id, (), span=span, copied=copied)
        put = len(copied.rows)
        end = not span.through
        decided = ChunkDecided(job.job_id, job.run, put, put, end, span.through)
        commit = Commit(
            request_id=b"",
            attempt=1,
            commit_us=draft.next_commit_us(),
            versions={job.table_id: version, target_id: version},
            changes=(),
            rows_affected=put,
            backfills=(backfill,),
            catalog=(decided,),
        )
        packed = self._codec.pack_commit(commit)
        alone = put <= 1 and draft.has_room_alone and not draft.fits(packed)
        if put == 1:
            lsn = draft.next_lsn
            excess = self._limits.find_excess(commit, packed, lsn, self._catalog, alone=alone)
            if excess is not None:
                raise excess
        if not (alone or draft.fits(packed)):
            raise Full
        if put:
            self._row_bytes = max(1, len(packed) // put)
        self._store.apply(commit, (), draft.next_lsn, self._catalog)
        draft.add_commit(commit, packed)
        draft.rows_filled += max(1, put // ROWS_PER_ENTRY)
        draft.closed = True
