"""One batch of decisions in the making: the body of the master's next Decisions record.

Requests are verified one after the other, each against what those before it changed (the store is
told of that while the record travels, see `write_behind.py`). Nothing is applied before its packed
size is known to fit (L8), so no savepoint is needed: a request either is in the record and in the
store, or in neither.
"""

from __future__ import annotations

from collections.abc import Generator, Mapping
from dataclasses import dataclass
from typing import Any, Final, NamedTuple

from leasehold.catalog.catalog import Catalog
from leasehold.catalog.descriptor import Descriptor
from leasehold.catalog.elements import Moment
from leasehold.catalog.overlay import CatalogAhead
from leasehold.model.errors import GaveUp, InternalFailure, LeaseholdError, Refused, RequestTooLarge
from leasehold.model.ids import is_sequence_id
from leasehold.model.ports import Codec, Row
from leasehold.model.records import (
    Attempt,
    CatalogWrite,
    ChangeRequest,
    Chunk,
    Commit,
    DescriptorWrite,
    Disposition,
    FindingsDecided,
    Grant,
    Lane,
    LogPosition,
    OnConflict,
    Outcome,
    Refusal,
    RowImage,
    TableTruncated,
)
from leasehold.model.topics import MESSAGE_BYTES_MAX, PUBLISHED_BYTES_MAX
from leasehold.replication.changefeed import row_images
from leasehold.replication.effects import NOWHERE, LaneRead
from leasehold.replication.log.clock import Reading
from leasehold.replication.master.backfill import (
    BackfillSlice,
    row_cost,
    row_too_large,
    slice_chunk,
)
from leasehold.replication.master.write_behind import WriteBehind
from leasehold.replication.outcomes import (
    Asked,
    OutcomeSettings,
    check_age,
    is_untimely,
    judge_repeat,
    outcome_of_commit,
    outcome_of_refusal,
)
from leasehold.transaction.retry import is_recomputed
from leasehold.transaction.sequence_operations import rows_with_versions
from leasehold.transaction.uniqueness import HolderReader
from leasehold.transaction.verify import RULES as VERIFY_RULES
from leasehold.transaction.verify import (
    Decided,
    RowReader,
    RowRefused,
    VerifyRules,
    verify,
    verify_in_slices,
)

RECORD_BYTES_MAX: Final = 900_000  # below Kafka's default message limit of 1 MiB, with its headers
HEADER_BYTES: Final = 2_048
LARGE_OPERATIONS: Final = 2_000
SLICE_OPERATIONS: Final = 1_000
LOOK_OPERATIONS: Final = 50
"""Verified between two looks at the clock."""
OPERATIONS_MAX: Final = 4_000
LARGE_BYTES_MAX: Final = 32 * 1024 * 1024
LARGE_ZIPPED_BYTES_MAX: Final = MESSAGE_BYTES_MAX - 64 * 1024
CATALOG_BYTES_MAX: Final = PUBLISHED_BYTES_MAX // 2
"""What a schema change may write at first: its job is published whole at each step, with what it
finds on the way."""
RETRIES_MAX: Final = 10


@dataclass(frozen=True, slots=True)
class BatchSettings:
    """`requests_max`: decided in well below a lease's renewal, since grants ride in the record, and
    in about the time that nodes and clients take for the record before, so that all have work.
    A commit that is larger than a record has one of its own, of at most `large_bytes_max`, and of
    at most `large_zipped_bytes_max` as it travels; one of more than `large_operations` is verified
    `slice_operations` at a time, or fewer where they take long, with heartbeats and grants between
    them. No further request is taken behind `operations_max`: what is refused takes time, too, and
    no bytes.
    """

    record_bytes_max: int = RECORD_BYTES_MAX
    large_operations: int = LARGE_OPERATIONS
    slice_operations: int = SLICE_OPERATIONS
    large_bytes_max: int = LARGE_BYTES_MAX
    large_zipped_bytes_max: int = LARGE_ZIPPED_BYTES_MAX
    operations_max: int = OPERATIONS_MAX
    requests_max: int = 150
    attempts_max: int = RETRIES_MAX


class Repeat(NamedTuple):
    """A remembered answer to give again, no earlier than a fresh one would be (C1 ⚠)."""

    request_id: bytes
    reply_to: int
    outcome: Outcome
    requester: bytes = b""


class Made(NamedTuple):
    """What the DDL of a request writes beside its rows; the tables `empty` have none yet."""

    writes: tuple[CatalogWrite, ...] = ()
    answer: Any = None
    empty: frozenset[int] = frozenset()


NOTHING_MADE: Final = Made()
NOBODYS: Final = ChangeRequest(b"")
"""Stands for a message that nobody waits for, or that does not say who."""
_REPEAT: Final = Asked.REPEAT  # a member of an enum costs as much as a call


class Full(Exception):
    """The next part would not fit the record; it waits for the next one (L8)."""


class Batch:
    """Decisions of one record; `closed` once catalog writes are in it, or what has it alone."""

    def __init__(
        self,
        position: LogPosition,
        catalog: Catalog,
        store: WriteBehind,
        codec: Codec,
        clock: Reading,
        settings: BatchSettings,
        outcomes: OutcomeSettings,
        rules: VerifyRules = VERIFY_RULES,
        secret: bytes = b"",
    ) -> None:
        self._catalog = catalog
        self._store = store
        self._codec = codec
        self._settings = settings
        self._outcomes = outcomes
        self._rules = rules
        self._secret = secret
        # L5 ⚠: by the id horizon ids are judged, and with this record forgotten.
        self._wall_us, self._latest_us, self.id_horizon_us = clock
        self._commit_us = position.time_us
        self._lsn = position.lsn
        self._bytes = HEADER_BYTES
        self.first_lsn = position.lsn + 1
        self.commits: list[Commit] = []
        self.refusals: list[Refusal] = []
        self.packed_commits: list[bytes] = []
        self.packed_refusals: list[bytes] = []
        self.repeats: list[Repeat] = []
        self.requesters: dict[bytes, bytes] = {}
        """Who is to be told what becomes of a request id: of those that were told. Not in the log:
        whoever hears nothing asks through Kafka."""
        self.decided_through: dict[str, int] = {}
        self.attempts: list[Attempt] = []
        self.requests_taken = 0
        self.grants: tuple[Grant, ...] = ()
        self.rows_filled = 0
        self.reset_us = 0
        self.closed = False

    @property
    def next_lsn(self) -> int:
        return self._lsn + 1

    @property
    def empty(self) -> bool:
        decided = self.decided_through or self.commits or self.refusals or self.repeats
        return not (decided or self.attempts)

    @property
    def time_us(self) -> int:
        """L9: no commit of this record is later, and every one of the next records may be."""
        return max(self._commit_us, self._wall_us)

    def _next_commit_us(self) -> int:
        """L9: strictly rising over masters, and past all that was closed."""
        after = self._commit_us + 1
        return max(after, self._wall_us)

    def _moment(self) -> Moment:
        """The next commit's: its time, and what nobody can foretell and no other commit has."""
        return Moment(self._next_commit_us(), self._secret + (self._lsn + 1).to_bytes(8, "big"))

    # ------------------------------------------------------------ requests

    def open(self, message: LaneRead, said: ChangeRequest | Refused) -> ChangeRequest | None:
        """The request of a message, or None when that settled it: unreadable, too old, or decided
        before (then the remembered answer is given again). `said`: what its bytes say, or why they
        say nothing. Raises Full."""
        if isinstance(said, Refused):
            self._refuse_unreadable(message, said)
            return None
        request = said
        # Before its age: what is still remembered is repeated, never decided a second time.
        remembered = self._store.outcome(request.id)
        if judge_repeat(remembered, request.attempt) is _REPEAT:
            assert remembered is not None
            reply_to = _reply_to(message, request)
            self.repeats.append(Repeat(request.id, reply_to, remembered, message.requester))
            self._settled(message)
            return None
        try:
            if not request.reset_clock:  # once more changes nothing, and it is for when others fail
                check_age(request.id, self.id_horizon_us, self._latest_us, self._outcomes)
        except Refused as error:
            self._refuse(message, request, error, self._final(request))
            return None
        if request.give_up:
            why = f": {remembered.message}" if remembered else ""
            detail = dict(remembered.detail) if remembered else {}
            gave_up = GaveUp(f"given up after attempt {request.attempt - 1}{why}")
            gave_up.detail = detail
            self._refuse(message, request, gave_up, self._final(request))
            return None
        return request

    def decide(self, message: LaneRead, request: ChangeRequest) -> None:
        """Decide the row operations of one request. Raises Full (then it is not decided)."""
        self._decide(message, request, NOTHING_MADE, self._catalog)

    def decide_with(
        self, message: LaneRead, request: ChangeRequest, made: Made, catalog: Catalog
    ) -> None:
        """Decide a request that has DDL and rows, which see what it makes; `catalog` as it will be
        with that. All of it or nothing; closes the batch when it is accepted. Raises Full."""
        self._decide(message, request, made, catalog)

    def _decide(
        self, message: LaneRead, request: ChangeRequest, made: Made, catalog: Catalog
    ) -> None:
        found: Decided | LeaseholdError
        try:
            found = verify(request, catalog, *self._against(made))
        except Refused as error:
            found = error
        except LeaseholdError:
            raise  # the store contradicts the log: no request's fault
        except Exception as error:  # noqa: BLE001 - see `failed`
            found = failed(error)
        self.settle(message, request, made, catalog, found)

    def verifying(
        self, request: ChangeRequest, made: Made, catalog: Catalog
    ) -> Generator[None, None, Decided | LeaseholdError]:
        """What is to become of a large request, in slices, between which nothing may be decided."""
        operations = min(LOOK_OPERATIONS, self._settings.slice_operations)
        try:
            return (yield from verify_in_slices(operations, request, catalog, *self._against(made)))
        except Refused as error:
            return error
        except LeaseholdError:
            raise
        except Exception as error:  # noqa: BLE001 - see `failed`
            return failed(error)

    def _against(
        self, made: Made
    ) -> tuple[RowReader, int, VerifyRules, HolderReader, Moment, WriteBehind]:
        return (
            self._rows_but(made.empty),
            self._lsn + 1,
            self._rules,
            self._holders_but(made.empty),
            self._moment(),
            self._store,
        )

    def settle(
        self,
        message: LaneRead,
        request: ChangeRequest,
        made: Made,
        catalog: Catalog,
        found: Decided | LeaseholdError,
    ) -> None:
        """Accept or refuse it, as was found. Raises Full."""
        if isinstance(found, Decided):
            self._accept(message, request, found, made, catalog)
        elif isinstance(found, Refused):
            self._refuse(message, request, found, self._disposition(request, found))
        else:
            self._refuse(message, request, found, self._final(request))

    def _rows_but(self, empty: frozenset[int]) -> RowReader:
        """The store's rows, but those of tables that the request makes or truncates itself."""
        row = self._store.row
        if not empty:
            return row
        return lambda table, key: None if table.table_id in empty else row(table, key)

    def _holders_but(self, empty: frozenset[int]) -> HolderReader:
        holders = self._store.holders
        if not empty:
            return holders
        return lambda table, index, values, most: (
            () if table.table_id in empty else holders(table, index, values, most)
        )

    def _accept(
        self,
        message: LaneRead,
        request: ChangeRequest,
        decided: Decided,
        made: Made,
        catalog: Catalog,
    ) -> None:
        lsn = self._lsn + 1
        commit = Commit(
            request.id,
            request.attempt,
            self._next_commit_us(),
            decided.versions,
            decided.changes,
            decided.rows_affected,
            _reply_to(message, request),
            (),
            made.writes,
            decided.answer if made.answer is None else made.answer,
        )
        packed = self._codec.pack_commit(commit)
        alone = len(packed) + HEADER_BYTES > self._settings.record_bytes_max
        too_large: RequestTooLarge | None = None
        if alone:
            too_large = self._too_large(packed) or self._unpublishable(commit, packed, catalog)
        if too_large is not None:
            self._refuse(message, request, too_large, self._final(request))
            return
        if not self._fits(packed) and not (alone and self._bytes == HEADER_BYTES):
            raise Full
        for write in made.writes:
            if isinstance(write, DescriptorWrite):
                self._store.prepare(catalog.version(write.table_id, write.version))
        self._apply(commit, decided.before, lsn, catalog)
        self._store.put_outcome(request.id, outcome_of_commit(commit, lsn))
        self._add_commit(commit, packed)
        self._settled(message, request.id)
        self.closed = alone or bool(made.writes)

    def _too_large(self, packed: bytes) -> RequestTooLarge | None:
        """L8: of a commit that is alone in its record."""
        settings = self._settings
        words = f"the change composes to {len(packed)} bytes"
        if len(packed) > settings.large_bytes_max:
            return RequestTooLarge(
                f"{words}; at most {settings.large_bytes_max} are taken: split the request"
            )
        zipped = len(packed)
        if zipped > settings.large_zipped_bytes_max:
            zipped = self._codec.zipped_bytes(packed)
        if zipped > settings.large_zipped_bytes_max:
            return RequestTooLarge(
                f"{words}, {zipped} when packed; at most {settings.large_zipped_bytes_max} fit a"
                " record of the log: split the request"
            )
        return None

    def _unpublishable(
        self, commit: Commit, packed: bytes, catalog: Catalog
    ) -> RequestTooLarge | None:
        """Of a commit that has a row or a schema change which no message of the changefeed has room
        for: those are published one by one, and as they are before zlib."""
        most = PUBLISHED_BYTES_MAX
        if 2 * len(packed) <= CATALOG_BYTES_MAX:  # a row's key is told twice
            return None
        written = sum(len(self._codec.encode(write)) for write in commit.catalog)
        if written > CATALOG_BYTES_MAX:
            return RequestTooLarge(
                f"the schema change is described in {written} bytes; at most {CATALOG_BYTES_MAX}"
                " are taken: make it in several, or with shorter defaults and expressions"
            )
        told: list[Any] = []
        row_images(commit, self._lsn + 1, told)
        for table_id, key, image in told:
            if image is None:
                continue
            head = self._codec.encode(image._replace(values={}, genids={}))
            size = len(self._codec.encode(image)) + len(head)
            if size > most:
                name = catalog.version(table_id, image.version).name
                return RequestTooLarge(
                    f"row {key!r:.200} of table {name!r} would have {size} bytes; at most {most}"
                    " are taken, since it is published as one message",
                    table=name,
                )
        return None

    def _add_commit(self, commit: Commit, packed: bytes) -> None:
        assert not self.closed, "a commit with catalog writes stands last in its record"
        self._lsn += 1
        self._commit_us = commit.commit_us
        self._bytes += len(packed)
        self.commits.append(commit)
        self.packed_commits.append(packed)

    def _fits(self, packed: bytes) -> bool:
        return self._bytes + len(packed) <= self._settings.record_bytes_max

    # ------------------------------------------------------------ refusals

    def _final(self, request: ChangeRequest) -> Disposition:
        """A producer's request that can't be applied is kept for people; one whose requester
        waits for the answer and handles it is not."""
        if request.on_conflict is OnConflict.RETRY:
            return Disposition.DEAD_LETTER
        return Disposition.FINAL

    def _disposition(self, request: ChangeRequest, error: Refused) -> Disposition:
        if not error.replayable:
            return self._final(request)
        if request.on_conflict is OnConflict.REPLAY:
            return Disposition.REPLAY
        if request.on_conflict is OnConflict.RETRY:
            if request.attempt > self._settings.attempts_max:
                return Disposition.DEAD_LETTER
            # ⚠ T1: what rests on the row as it was seen would be written over the newer one.
            if isinstance(error, RowRefused) and not is_recomputed(request):
                return Disposition.DEAD_LETTER
            return Disposition.CONFLICT
        return Disposition.FINAL

    def refuse(self, message: LaneRead, request: ChangeRequest, error: Refused) -> None:
        """Refuse DDL or job control for good. Raises Full."""
        self._refuse(message, request, error, self._final(request))

    def dead_letter(
        self,
        message: LaneRead,
        error: Refused,
        request: ChangeRequest = NOBODYS,
        detail: Mapping[str, object] | None = None,
    ) -> None:
        """Refuse a message of any lane for good and keep it for people; with `request` its sender
        is told. Raises Full."""
        self._refuse(message, request, error, Disposition.DEAD_LETTER, detail)

    def _refuse_unreadable(self, message: LaneRead, error: Refused) -> None:
        """Answered where its bytes show who asked; a dead letter in any case. Raises Full."""
        detail = dict(error.detail)
        request_id, reply_to = detail.pop("request_id", b""), detail.pop("reply_to", -1)
        assert isinstance(request_id, bytes), request_id
        assert isinstance(reply_to, int), reply_to
        requester = ChangeRequest(request_id, reply_to=reply_to)
        try:
            if request_id:
                check_age(request_id, self.id_horizon_us, self._latest_us, self._outcomes)
        except Refused:
            requester = ChangeRequest(b"")  # an id that no outcome may be remembered for
        remembered = self._store.outcome(request_id) if request_id else None
        if remembered is not None:
            # L5: an id has one outcome; these bytes are another request under a used id.
            requester = ChangeRequest(b"")
        self._refuse(message, requester, error, Disposition.DEAD_LETTER, detail)
        if remembered is not None:
            reply_to = _reply_to(message, ChangeRequest(b"", reply_to=reply_to))
            self.repeats.append(Repeat(request_id, reply_to, remembered, message.requester))

    def _refuse(
        self,
        message: LaneRead,
        request: ChangeRequest,
        error: LeaseholdError,
        disposition: Disposition,
        detail: Mapping[str, object] | None = None,
    ) -> None:
        """`detail`: instead of the error's. Raises Full."""
        image: RowImage | None = error.image if isinstance(error, RowRefused) else None
        kept = disposition in (Disposition.CONFLICT, Disposition.DEAD_LETTER)
        refusal = Refusal(
            request_id=request.id,
            attempt=request.attempt,
            disposition=disposition,
            code=error.sqlstate,
            message=error.message,
            detail=_plain(error.detail if detail is None else detail),
            decided_us=self.time_us,
            reply_to=_reply_to(message, request),
            lane=message.lane,
            offset=message.offset,
            content_type=message.content_type,
            body=message.body if kept else None,
            image=image if disposition is Disposition.CONFLICT else None,
        )
        packed = self._codec.pack_refusal(refusal)
        if not self._fits(packed) and self._bytes > HEADER_BYTES:
            raise Full
        settings = self._settings
        if len(packed) > min(settings.large_bytes_max, settings.large_zipped_bytes_max):
            # Alone in its record and still too large: keep the reason, cut the body (L8).
            cut = (message.body or b"")[: settings.record_bytes_max // 2]
            refusal = refusal._replace(
                body=cut if kept else None,
                image=None,
                detail={**refusal.detail, "body_bytes": len(message.body), "body_cut": True},
            )
            packed = self._codec.pack_refusal(refusal)
        if refusal.request_id:
            # L5, L6: as every node does when it applies this record.
            untimely = is_untimely(refusal)
            put = self._store.put_untimely if untimely else self._store.put_outcome
            put(refusal.request_id, outcome_of_refusal(refusal))
        self._bytes += len(packed)
        self.refusals.append(refusal)
        self.packed_refusals.append(packed)
        self._settled(message, refusal.request_id)

    # ------------------------------------------------------------ the log's time

    def reset_clock(self, message: LaneRead, request: ChangeRequest, clock: Reading) -> None:
        """The log's time becomes that of `clock` if it is ahead of it: with the first commit of a
        record, which says what it was and closes it."""
        assert self.empty, "nothing of this record may be stamped by the time of before"
        before_us, horizon_us = self._commit_us, self.id_horizon_us
        self._wall_us, self._latest_us, self.id_horizon_us = clock
        if before_us > clock.wall_us or horizon_us > clock.id_horizon_us:
            self.reset_us = self._commit_us = clock.wall_us
        commit_us = self._next_commit_us()
        answer = {"reset": self.reset_us > 0, "log_us": before_us, "clock_us": clock.wall_us}
        reply_to = _reply_to(message, request)
        commit = Commit(request.id, 1, commit_us, {}, (), 0, reply_to, answer=answer)
        self._store.put_outcome(request.id, outcome_of_commit(commit, self.next_lsn))
        self._add_commit(commit, self._codec.pack_commit(commit))
        self._settled(message, request.id)
        self.closed = True

    # ------------------------------------------------------------ catalog and backfill

    def write_catalog(
        self,
        writes: tuple[CatalogWrite, ...],
        message: LaneRead | None = None,
        request: ChangeRequest | None = None,
        answer: Any = None,
    ) -> int:
        """Commit catalog writes; → the LSN. Closes the batch: what follows must see them.

        With `message` and `request` they answer a request (DDL, job control), which is refused if
        they are too large. A sequence that a
        job makes begins with them, and one that it alters goes on."""
        lsn = self.next_lsn
        moves = [*rows_with_versions(self._catalog, writes, self._store.row, lsn, self._rules)]
        made = [move.descriptor for move in moves if move.row is None]
        commit = Commit(
            request_id=request.id if request else b"",
            attempt=request.attempt if request else 1,
            commit_us=self._next_commit_us(),
            versions={m.descriptor.table_id: m.descriptor.version for m in moves},
            changes=tuple(move.change for move in moves),
            rows_affected=0,
            reply_to=_reply_to(message, request) if request and message else -1,
            catalog=writes,
            answer=answer,
        )
        packed = self._codec.pack_commit(commit)
        # ⚠ Who wants an end to a job that is too large already, is heard.
        if request is not None and message is not None and request.sql is not None:
            too_large = self._too_large(packed) or self._unpublishable(
                commit, packed, self._catalog
            )
            if too_large is not None:
                self._refuse(message, request, too_large, self._final(request))
                return lsn
        if not self._fits(packed) and self._bytes > HEADER_BYTES:
            raise Full
        for table in made:
            self._store.prepare(table)
        self._apply(commit, tuple(move.row for move in moves), lsn, self._with(made))
        if request is not None and message is not None:
            self._store.put_outcome(request.id, outcome_of_commit(commit, lsn))
            self._settled(message, request.id)
        self._add_commit(commit, packed)
        self.closed = True
        return lsn

    def _with(self, made: list[Descriptor]) -> Catalog:
        if not made:
            return self._catalog
        ahead = CatalogAhead.of(self._catalog)
        for table in made:
            ahead.make(table)
        return ahead

    def fill(self, chunk: Chunk, done: int, rows_max: int) -> int:
        """Decide rows `done`… of an accepted chunk, as many as fit, and at least one, if need be
        alone in its record; → rows done then. `rows_max` in index entries. Raises Full, or Refused
        when it can't be decided; nothing of it was applied then.

        Applied here and logged; taking a row twice changes nothing."""
        cost = row_cost(chunk, self._catalog)
        rows = min(max(1, rows_max // cost), len(chunk.keys) - done)
        while rows > 0:
            part = self._sliced(chunk, done, rows)
            commit = Commit(
                request_id=b"",
                attempt=1,
                commit_us=self._next_commit_us(),
                versions={
                    chunk.table_id: chunk.version,
                    **{c.table_id: c.version for c in part.changes if is_sequence_id(c.table_id)},
                },
                changes=part.changes,
                rows_affected=part.applied,
                fills=part.fills,
                catalog=(part.decided,),
            )
            packed = self._codec.pack_commit(commit)
            alone = rows == 1 and self._bytes == HEADER_BYTES and not self._fits(packed)
            if rows == 1 and (too_large := self._unfit(commit, packed, alone=alone)):
                raise row_too_large(chunk, done, self._catalog, too_large)
            if alone or self._fits(packed):
                self._apply_fill(commit, part.before)
                self._add_commit(commit, packed)
                self.rows_filled += rows * cost
                self.closed = alone
                # A row that has no value has ended the run: what is left of the chunk is of none.
                ended = isinstance(part.decided, FindingsDecided)
                return len(chunk.keys) if ended else done + rows
            if rows == 1:
                raise Full
            rows //= 2
        return done

    def _unfit(self, commit: Commit, packed: bytes, *, alone: bool) -> RequestTooLarge | None:
        """Why one filled row can't be in the log, or never be published."""
        too_large = self._too_large(packed) if alone else None
        return too_large or self._unpublishable(commit, packed, self._catalog)

    def _sliced(self, chunk: Chunk, done: int, rows: int) -> BackfillSlice:
        """Raises Refused: anybody may write chunks, and every master would come to this one."""
        try:
            return slice_chunk(
                chunk,
                done,
                rows,
                self._catalog,
                self._store,
                self._rules,
                self._moment(),
                self.next_lsn,
            )
        except LeaseholdError:
            raise
        except Exception as error:
            raise failed(error) from error

    def _apply_fill(self, commit: Commit, before: tuple[Row | None, ...]) -> None:
        """Raises Refused for what computing raises, with nothing applied. ⚠ A store that can't be
        written raises errors of other kinds: that is no chunk's fault."""
        lsn = self.next_lsn
        if not commit.fills:
            self._apply(commit, before, lsn, self._catalog)
            return
        self._store.savepoint()
        try:
            self._apply(commit, before, lsn, self._catalog)
        except (ArithmeticError, AttributeError, LookupError, TypeError, ValueError) as error:
            self._store.rollback_to()
            raise failed(error) from error
        self._store.release()

    def _apply(
        self, commit: Commit, before: tuple[Row | None, ...], lsn: int, catalog: Catalog
    ) -> None:
        for write in commit.catalog:
            if isinstance(write, TableTruncated):
                self._store.truncate(write.table_id, lsn)
        for position, (change, row) in enumerate(zip(commit.changes, before, strict=True)):
            descriptor = catalog.version(change.table_id, change.version)
            self._store.change(descriptor, change, lsn, position, row)
        for fill in commit.fills:
            self._store.fill(catalog.version(fill.table_id, fill.version), fill)

    def _settled(self, message: LaneRead, request_id: bytes = b"") -> None:
        """`request_id`: decided now, and not before."""
        if message.offset != NOWHERE:
            self.passed(message.lane, message.offset)
        elif request_id:
            self.requesters[request_id] = message.requester

    def passed(self, lane: Lane, offset: int) -> None:
        """A message of a lane that needs no decision of its own, or is wholly decided."""
        self.decided_through[lane] = offset + 1


def _reply_to(message: LaneRead, request: ChangeRequest) -> int:
    """What was told is answered by telling."""
    return -1 if message.requester else request.reply_to


def failed(error: Exception) -> InternalFailure:
    """A defect met while one request was looked at, before anything was changed.

    Every master after this one would meet it too, and nothing behind the request would ever be
    decided; so the one request is refused and kept for people, and the rest goes on."""
    kind = type(error).__name__
    return InternalFailure(
        f"deciding this request failed inside ({kind}: {str(error)[:200]}); nothing of it was"
        " applied; please report it with the request",
    )


def _plain(detail: Mapping[str, object]) -> dict[str, Any]:
    """Detail as it comes back from the log, so that the first answer and a repeat are equal."""
    plain = (str, int, float, bool, bytes, tuple, type(None))
    return {
        name: tuple(value)
        if isinstance(value, list)
        else _plain(value)
        if isinstance(value, dict)
        else value
        if isinstance(value, plain)
        else str(value)
        for name, value in detail.items()
    }
