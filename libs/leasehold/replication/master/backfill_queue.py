"""The backfill queue of a master: chunks, their ends and findings that it has read, and how they
are decided. Nobody's request is here, and anybody may write to it: what can't be decided is passed
over and kept for people, and its job is told where nothing else would tell it.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from typing import Final, NamedTuple

from leasehold.model.budget import spending
from leasehold.model.errors import (
    LeaseholdError,
    MalformedRequest,
    NotAuthentic,
    Refused,
    RequestTooLarge,
    TooComplex,
)
from leasehold.model.ports import Codec, Now
from leasehold.model.records.jobs import BackfillBorder, Chunk, ChunksEnd, Findings
from leasehold.model.records.requests import Queue
from leasehold.model.signatures import OPEN, Verifier
from leasehold.model.time_units import NS_PER_MS
from leasehold.replication.effects import QueueRead
from leasehold.replication.master.attempts import Attempts, no_master_survives
from leasehold.replication.master.batch import Batch
from leasehold.replication.master.chunk_decider import ChunkDecider
from leasehold.replication.master.record_draft import Full
from leasehold.replication.master.refusals import internal_failure
from leasehold.replication.master.request_budget import (
    FINDINGS_WORK_MAX,
    RequestBudget,
    WorkExceeded,
)
from leasehold.replication.master.schema_changes import SchemaChanges
from leasehold.replication.master.write_behind import WriteBehind

BACKFILL_MS_MAX: Final = 200
"""Of one turn, for rows of a backfill: what may lie between two heartbeats in any case."""
BACKFILL_ROWS_FIRST: Final = 64
_BACKFILL: Final = Queue.BACKFILL.value
"""What a row costs is known after the first few; a function over it may be a dear one."""


class OpenChunk(NamedTuple):
    """A chunk that is decided in parts, from that message of the queue; `done`: rows so far."""

    message: QueueRead
    chunk: Chunk
    done: int


class BackfillQueue:
    """The backfill queue of one term. A message leaves it only when it is opened or decided."""

    def __init__(
        self,
        codec: Codec,
        store: WriteBehind,
        changes: SchemaChanges,
        attempts: Attempts,
        chunks: ChunkDecider,
        clock_ns: Callable[[], int],
        verifier: Verifier = OPEN,
    ) -> None:
        """Begin without messages. `clock_ns`: see `Node`."""
        self._codec = codec
        self._store = store
        self._changes = changes
        self._attempts = attempts
        self._chunks = chunks
        self._clock_ns = clock_ns
        self._verifier = verifier
        self._messages: deque[QueueRead] = deque()
        self._bytes = 0
        self._open: OpenChunk | None = None
        self._backfill_rows = BACKFILL_ROWS_FIRST  # index entries that take a moment

    def __len__(self) -> int:
        """Return how many messages are not begun."""
        return len(self._messages)

    @property
    def waiting_bytes(self) -> int:
        """How many bytes the messages hold that are not begun."""
        return self._bytes

    @property
    def waits(self) -> bool:
        """Whether there is anything to decide."""
        return bool(self._messages) or self._open is not None

    def append(self, message: QueueRead) -> None:
        self._messages.append(message)
        self._bytes += len(message.body)

    def _pop(self) -> None:
        self._bytes -= len(self._messages.popleft().body)

    def take(self, batch: Batch, rows_max: int, now: Now) -> None:
        """Decide rows, in index entries at most `rows_max`; of the first message of this term say
        that it is decided next (L10). Raises Full."""
        draft, position = batch.draft, self._to_say()
        if position is not None:
            if rows_max > 0:
                draft.attempts += self._attempts.say(Queue.BACKFILL, *position)
            return
        begun_ns = self._clock_ns()
        while draft.rows_filled < rows_max and not draft.closed:
            if self._open is None and not self._open_next(batch, now):
                return
            if self._open is not None:
                self._backfill(batch, rows_max - draft.rows_filled, now)
            if self._clock_ns() - begun_ns >= BACKFILL_MS_MAX * NS_PER_MS:
                return

    def is_said(self) -> bool:
        """Whether the log says that the first message of this term is decided now (L10)."""
        position = self._to_say()
        return position is not None and self._attempts.is_said(Queue.BACKFILL, *position)

    def _to_say(self) -> tuple[int, int] | None:
        """Return offset and rows decided of the first message of the queue in this term; None once
        one is decided, or while there is none."""
        if not self._attempts.is_alone(Queue.BACKFILL):
            return None
        if self._open is not None:
            return self._open.message.offset, self._open.done
        if not self._messages:
            return None
        offset = self._messages[0].offset
        return offset, self._attempts.rows_before(Queue.BACKFILL, offset)

    def take_alone(self, batch: Batch, rows_max: int, now: Now) -> None:
        """Decide in a record of its own what the log says is decided now (L10). What is said of the
        rows that come next stands in the record of those before; whoever is master next goes on
        there. Raises Full."""
        position = self._to_say()
        assert position is not None, "L10"
        attempts, (offset, done) = self._attempts, position
        if attempts.is_refused(Queue.BACKFILL, offset, done):
            self._refuse(batch, offset, done, now)
        else:
            if self._open is None:
                self._open_next(batch, now, done)
            if self._open is not None:
                self._backfill(batch, rows_max, now)
            if self._open is not None:
                batch.draft.attempts += attempts.say(Queue.BACKFILL, offset, self._open.done)
        batch.draft.closed = True

    def _refuse(self, batch: Batch, offset: int, rows: int, now: Now) -> None:
        """Refuse the message, read only to know which job waits for it, and unread if that has
        ended a master, too. Raises Full."""
        message = self._messages[0]
        error = no_master_survives(self._attempts.lost_over(Queue.BACKFILL, offset, rows))
        job_id = None
        if not self._attempts.is_refused_unread(Queue.BACKFILL, offset, rows):
            job_id = self._changes.job_of(self._decoded(message))
        detail = {} if job_id is None else {"job": job_id}
        batch.dead_letter(message, error, detail=detail)
        self._pop()
        if job_id is not None:
            self._fail_job(batch, job_id, error, now)

    def _fail_job(self, batch: Batch, job_id: int, error: Refused, now: Now) -> None:
        """Fail the job in the same record, if it has room: a master may not come further than
        this."""
        writes = self._changes.failing(job_id, error, now)
        try:
            if writes:
                batch.write_catalog(writes)
        except Full:
            self._changes.fail_soon(job_id, error, now)

    def _decoded(self, message: QueueRead) -> object:
        """Return what a message says, or why nobody is known to say it; None where its bytes are no
        record."""
        try:
            self._verifier.prove_machinery(_BACKFILL, message.content_type, message.body)
            return self._codec.decode(message.body)
        except NotAuthentic as error:
            return error
        except MalformedRequest:
            return None

    def _backfill(self, batch: Batch, rows_max: int, now: Now) -> None:
        """Decide rows of the open chunk, as many as are computed in a moment. Raises Full."""
        chunk = self._open
        assert chunk is not None, "one is open"
        if not self._changes.accepts(chunk.chunk):
            # ⚠ a late chunk: decided, and not taken
            batch.draft.pass_over(Queue.BACKFILL, chunk.message.offset)
            self._open = None
            return
        rows = min(rows_max, self._backfill_rows)
        begun_ns = self._clock_ns()
        try:
            done = self._chunks.decide(batch.draft, chunk.chunk, chunk.done, rows)
        except Refused as error:
            self._give_up(batch, chunk, error, now)
            return
        took_ns = self._clock_ns() - begun_ns
        self._backfill_rows = max(1, rows * BACKFILL_MS_MAX * NS_PER_MS // max(1, 2 * took_ns))
        if done < len(chunk.chunk.keys):
            self._open = chunk._replace(done=done)
            return
        batch.draft.pass_over(Queue.BACKFILL, chunk.message.offset)
        self._open = None

    def _give_up(self, batch: Batch, chunk: OpenChunk, error: Refused, now: Now) -> None:
        """Pass the chunk over, as every master would have to. Its rows are not filled: the job ends
        with that, or is told so by its verification. Raises Full."""
        batch.dead_letter(chunk.message, error, detail={"job": chunk.chunk.job_id})
        self._open = None
        if isinstance(error, RequestTooLarge | TooComplex):
            self._fail_job(batch, chunk.chunk.job_id, error, now)

    def _open_next(self, batch: Batch, now: Now, done: int = 0) -> bool:
        """Take the next message of the backfill queue, of which `done` rows are decided; False when
        there is none, or the batch is closed by it. Raises Full."""
        if not self._messages:
            return False
        message = self._messages[0]
        record = self._decoded(message)
        if isinstance(record, Chunk):
            self._open = OpenChunk(message, record, min(done, len(record.keys)))
        elif isinstance(record, NotAuthentic):
            # ⚠ Its job is told nothing: whoever may write here would end any job by that.
            batch.refuse_unproven(message, record)
        elif isinstance(record, Findings):
            self._take_findings(batch, message, record, now)
        else:
            # Anything but a chunk or the end of a run is nobody's request: it is passed over.
            self._take_range(batch, record)
            batch.draft.pass_over(Queue.BACKFILL, message.offset)
        self._pop()
        return not batch.draft.closed

    def _take_range(self, batch: Batch, record: object) -> None:
        """Decide the range that a border ends, or a run's end marker. No row is looked at. Raises
        Full."""
        if isinstance(record, BackfillBorder) and self._changes.accepts_border(record):
            decided, backfill = self._changes.next_range(record)
            batch.write_catalog((decided,), backfills=(backfill,))
        elif isinstance(record, ChunksEnd) and self._changes.accepts_end(record):
            ended, backfills = self._changes.last_range(record)
            batch.write_catalog((ended,), backfills=backfills)

    def _take_findings(
        self, batch: Batch, message: QueueRead, findings: Findings, now: Now
    ) -> None:
        """Decide findings. Nothing else ends the run that they end: its job is told if they can't
        be looked into. Raises Full."""
        budget = RequestBudget(FINDINGS_WORK_MAX, FINDINGS_WORK_MAX, "these findings")
        budget.begin_request()
        try:
            store = self._store.settle()
            with spending(budget):
                decided = self._changes.confirmed(findings, store)
        except (Exception, WorkExceeded) as error:
            if isinstance(error, LeaseholdError) and not isinstance(error, Refused):
                raise  # the store contradicts the log: no message's fault
            words: Refused
            if isinstance(error, WorkExceeded):
                words = error.as_refusal()
            else:
                words = error if isinstance(error, Refused) else internal_failure(error)
            batch.dead_letter(message, words, detail={"job": findings.job_id})
            self._fail_job(batch, findings.job_id, words, now)
            return
        if decided is not None:
            batch.write_catalog((decided,))
        batch.draft.pass_over(Queue.BACKFILL, message.offset)
