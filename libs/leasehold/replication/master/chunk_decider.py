"""Decides the rows of backfill chunks into the draft of the master's next record."""

from __future__ import annotations

from typing import Final

from leasehold.catalog.catalog import Catalog
from leasehold.model.budget import spending
from leasehold.model.errors import LeaseholdError
from leasehold.model.ids import is_sequence_id
from leasehold.model.ports import Codec, Row
from leasehold.model.records.jobs import Chunk
from leasehold.model.records.log import Commit, FindingsDecided
from leasehold.replication.master.backfill import (
    BackfillSlice,
    row_cost,
    row_too_large,
    slice_chunk,
)
from leasehold.replication.master.batch_limits import CommitLimits
from leasehold.replication.master.record_draft import Full, RecordDraft
from leasehold.replication.master.refusals import internal_failure
from leasehold.replication.master.request_budget import ROW_WORK_MAX, RequestBudget, WorkExceeded
from leasehold.replication.master.write_behind import WriteBehind

FEWER: Final = 8
"""So many times fewer rows are tried where they compute for longer than one row may."""


class ChunkDecider:
    """Applies what it decides at once; taking a row twice changes nothing."""

    def __init__(
        self, catalog: Catalog, store: WriteBehind, codec: Codec, limits: CommitLimits
    ) -> None:
        self._catalog = catalog
        self._store = store
        self._codec = codec
        self._limits = limits
        self._budget = RequestBudget(ROW_WORK_MAX, ROW_WORK_MAX, "one row")

    def decide(self, draft: RecordDraft, chunk: Chunk, done: int, rows_max: int) -> int:
        """Decide rows `done`… of an accepted chunk, as many as fit, and at least one, if need be
        alone in its record; return how many rows are done then. `rows_max` in index entries. They
        are so few that they compute no longer than one row may.

        Raises Full, or Refused when it can't be decided; nothing of it was applied then."""
        cost = row_cost(chunk, self._catalog)
        rows = min(max(1, rows_max // cost), len(chunk.keys) - done)
        while rows > 0:
            self._budget.begin_request()
            try:
                with spending(self._budget):
                    decided = self._decide_part(draft, chunk, done, rows, cost)
            except WorkExceeded as exceeded:
                if rows == 1:
                    raise exceeded.as_refusal() from exceeded
                rows = max(1, rows // FEWER)
                continue
            finally:
                self._budget.pause()
            if decided is not None:
                return decided
            if rows == 1:
                raise Full
            rows //= 2
        return done

    def _decide_part(
        self, draft: RecordDraft, chunk: Chunk, done: int, rows: int, cost: int
    ) -> int | None:
        """Decide so many rows; return how many are done then, None where they don't fit. Raises
        Refused, WorkExceeded."""
        part = self._slice(draft, chunk, done, rows)
        commit = _commit_of(part, chunk, draft.next_commit_us())
        packed = self._codec.pack_commit(commit)
        alone = rows == 1 and draft.has_room_alone and not draft.fits(packed)
        if rows == 1:
            excess = self._limits.find_excess(
                commit, packed, draft.next_lsn, self._catalog, alone=alone
            )
            if excess is not None:
                raise row_too_large(chunk, done, self._catalog, excess)
        if alone or draft.fits(packed):
            self._apply(commit, part.before, draft.next_lsn)
            draft.add_commit(commit, packed)
            draft.rows_filled += rows * cost
            draft.closed = alone
            # A row that has no value has ended the run: what is left of the chunk is of none.
            ended = isinstance(part.decided, FindingsDecided)
            return len(chunk.keys) if ended else done + rows
        return None

    def _slice(self, draft: RecordDraft, chunk: Chunk, done: int, rows: int) -> BackfillSlice:
        """Raises Refused: anybody may write chunks, and every master would come to this one."""
        context, lsn = draft.next_context(), draft.next_lsn
        try:
            return slice_chunk(chunk, done, rows, self._catalog, self._store, context, lsn)
        except LeaseholdError:
            raise
        except Exception as error:
            raise internal_failure(error) from error

    def _apply(self, commit: Commit, before: tuple[Row | None, ...], lsn: int) -> None:
        """Raises Refused for what computing raises, and WorkExceeded, with nothing applied. ⚠ A
        store that can't be written raises errors of other kinds: that is no chunk's fault."""
        if not commit.backfills:
            self._store.apply(commit, before, lsn, self._catalog)
            self._store.settle()  # entries may be dear, and what is decided at once goes by time
            return
        self._store.savepoint()
        try:
            self._store.apply(commit, before, lsn, self._catalog)
        except WorkExceeded:
            self._store.rollback_to()
            raise
        except _COMPUTING as error:
            self._store.rollback_to()
            raise internal_failure(error) from error
        self._store.release()


_COMPUTING: Final = (
    *(ArithmeticError, AttributeError, LookupError, TypeError, ValueError),
    *(MemoryError, RecursionError),
)


def _commit_of(part: BackfillSlice, chunk: Chunk, commit_us: int) -> Commit:
    sequences = {c.table_id: c.version for c in part.changes if is_sequence_id(c.table_id)}
    return Commit(
        request_id=b"",
        attempt=1,
        commit_us=commit_us,
        versions={chunk.table_id: chunk.version, **sequences},
        changes=part.changes,
        rows_affected=part.applied,
        backfills=part.backfills,
        catalog=(part.decided,),
    )
