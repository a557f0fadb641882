"""Decides messages one after the other into the draft of the master's next record.

Requests are verified each against what those before it changed (the store is told of that while the
record travels, see `write_behind.py`). Nothing is applied before its packed size is known to fit
(L8), so no savepoint is needed: a request either is in the record and in the store, or in neither.
"""

from __future__ import annotations

from collections.abc import Generator, Mapping
from typing import Any, Final, NamedTuple

from leasehold.catalog.catalog import Catalog
from leasehold.catalog.descriptor import Descriptor
from leasehold.catalog.elements import CommitContext
from leasehold.catalog.overlay import CatalogAhead
from leasehold.model import byte_limits
from leasehold.model.errors import (
    GaveUp,
    LeaseholdError,
    NotAuthentic,
    NotNullViolation,
    Refused,
    RequestTooLarge,
)
from leasehold.model.features import FeatureGate
from leasehold.model.ports import Codec
from leasehold.model.records.log import (
    Backfill,
    Barrier,
    CatalogWrite,
    Commit,
    DescriptorWrite,
    Disposition,
    Refusal,
)
from leasehold.model.records.requests import ChangeRequest, Outcome
from leasehold.replication.effects import QueueRead
from leasehold.replication.log.clock import Reading
from leasehold.replication.master.batch_limits import LARGE_OPERATIONS, BatchSettings, CommitLimits
from leasehold.replication.master.infinite_times import refuse_infinite
from leasehold.replication.master.principals import check_principal, may_say_password
from leasehold.replication.master.record_draft import Full, RecordDraft, Repeat
from leasehold.replication.master.refusals import (
    WORDS_BYTES_MAX,
    cut_body,
    cut_conflict,
    cut_words,
    disposition_for_good,
    disposition_of,
    give_up_conflict,
    internal_failure,
    refusal_of,
    reply_partition,
)
from leasehold.replication.master.request_budget import WorkExceeded
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
from leasehold.transaction.alike_inserts import AbsenceReader
from leasehold.transaction.demanded_columns import count_filled
from leasehold.transaction.overlay import RowReader
from leasehold.transaction.rights import Rights
from leasehold.transaction.sequence_operations import rows_with_versions
from leasehold.transaction.uniqueness import HolderReader
from leasehold.transaction.verify import Decided, verify, verify_in_slices

DEMANDED_ROWS_MAX: Final = 1_000_000
"""Rows of a table that are looked through in one go at the commit of a transaction: as many as of a
range that it has read."""


class Made(NamedTuple):
    """What the DDL of a request writes beside its rows; the tables `empty` have none yet. So many
    operations before the first of the requester's are `opening`, the master's own. In the columns
    `demanded`, (table id, element id), no row may be without a value when it is committed."""

    writes: tuple[CatalogWrite, ...] = ()
    answer: Any = None
    empty: frozenset[int] = frozenset()
    opening: int = 0
    demanded: tuple[tuple[int, int], ...] = ()


class Measured(NamedTuple):
    """An accepted request of many rows whose commit is known to have room in the log."""

    decided: Decided
    commit: Commit
    packed: bytes


NOTHING_MADE: Final = Made()
NOBODYS: Final = ChangeRequest(b"")
"""Stands for a message that nobody waits for, or that does not say who."""
KEPT_UNPROVEN_BYTES_MAX: Final = 4 * 1024
"""Kept of a message that anybody may have sent."""
_REPEAT: Final = Asked.REPEAT  # a member of an enum costs as much as a call


class Batch:
    """Decides into one draft. Each method that raises Full has then decided nothing."""

    def __init__(
        self,
        draft: RecordDraft,
        catalog: Catalog,
        store: WriteBehind,
        codec: Codec,
        limits: CommitLimits,
        settings: BatchSettings,
        outcomes: OutcomeSettings,
        features: FeatureGate,
    ) -> None:
        """Begin with nothing decided. `features`: what may be written by now."""
        self.draft = draft
        self._catalog = catalog
        self._store = store
        self._codec = codec
        self._limits = limits
        self._settings = settings
        self._outcomes = outcomes
        self._features = features

    # ------------------------------------------------------------ requests

    def open(self, message: QueueRead, decoded: ChangeRequest | Refused) -> ChangeRequest | None:
        """Return the request of a message, or None when that settled it: unreadable, too old, or
        decided before (then the remembered answer is given again). `decoded`: what its bytes say,
        or why they say nothing. Raises Full."""
        if isinstance(decoded, Refused):
            if isinstance(decoded, NotAuthentic):
                self.refuse_unproven(message, decoded)
            else:
                self._refuse_unreadable(message, decoded)
            return None
        request = decoded
        # Before its age: what is still remembered is repeated, never decided a second time.
        remembered = self._store.outcome(request.id)
        if judge_repeat(remembered, request.attempt) is _REPEAT:
            assert remembered is not None
            partition = reply_partition(message, request)
            self.draft.repeat(Repeat(request.id, partition, remembered, message.requester))
            self.draft.settle(message)
            return None
        try:
            check_principal(request, self._catalog.access.roles)
        except NotAuthentic as error:
            detail = {"request_id": request.id, "reply_to": request.reply_to}
            error.detail = {**detail, "attempt": request.attempt}
            self.refuse_unproven(message, error)
            return None
        try:
            if not request.reset_clock:  # once more changes nothing, and it is for when others fail
                self._check_age(request.id)
        except Refused as error:
            self.refuse(message, request, error)
            return None
        if request.give_up:
            why = f": {remembered.message}" if remembered else ""
            detail = dict(remembered.detail) if remembered else {}
            gave_up = GaveUp(f"given up after attempt {request.attempt - 1}{why}")
            gave_up.detail = detail
            self.refuse(message, request, gave_up)
            return None
        return request

    def _check_age(self, request_id: bytes) -> None:
        """Raise Refused for an id that is too old, or too far ahead of the clock (L5)."""
        draft = self.draft
        check_age(request_id, draft.id_horizon_us, draft.latest_us, self._outcomes)

    def decide(
        self,
        message: QueueRead,
        request: ChangeRequest,
        made: Made = NOTHING_MADE,
        catalog: Catalog | None = None,
    ) -> None:
        """Decide the row operations of one request, and the DDL that it has beside them, which they
        see: `catalog` as it will be with that. All of it or nothing; accepted DDL closes the draft.
        Raises Full."""
        catalog = self._catalog if catalog is None else catalog
        found: Decided | LeaseholdError
        try:
            rights = (
                rights_of(request, catalog, made.opening)
                if request.principal or request.as_role
                else None
            )
            found = verify(request, catalog, *self._against(made), rights, self._absent(made))
            self._check_demanded(found, made, catalog)
        except Refused as error:
            found = error
        except LeaseholdError:
            raise  # the store contradicts the log: no request's fault
        except WorkExceeded as exceeded:
            found = exceeded.as_refusal()
        except Exception as error:  # noqa: BLE001 - see `internal_failure`
            found = internal_failure(error)
        self.settle(message, request, made, catalog, found)

    def verify_slices(
        self, message: QueueRead, request: ChangeRequest, made: Made, catalog: Catalog
    ) -> Generator[int | None, None, Decided | Measured | LeaseholdError]:
        """Return at the end what is to become of a request, and yield as `verify_in_slices`;
        between two slices nothing may be decided."""
        try:
            rights = rights_of(request, catalog, made.opening)
            decided = yield from verify_in_slices(
                request, catalog, *self._against(made), rights, self._absent(made)
            )
            self._check_demanded(decided, made, catalog)
            if len(decided.changes) <= LARGE_OPERATIONS:
                return decided
            found = yield from self._measure(message, request, decided, made, catalog)
        except Refused as error:
            return error
        except LeaseholdError:
            raise
        except WorkExceeded as exceeded:
            return exceeded.as_refusal()
        except Exception as error:  # noqa: BLE001 - see `internal_failure`
            return internal_failure(error)
        return found

    def _check_demanded(self, decided: Decided, made: Made, catalog: Catalog) -> None:
        """Raise NotNullViolation where a row is without a value in a column of `made.demanded`:
        each that is there without has to be among those that are decided. And RequestTooLarge,
        where to look for one would hold everybody up."""
        for table_id, element_id in made.demanded:
            descriptor = catalog.newest(table_id)
            rows = self._store.rows_about(table_id)
            if rows > DEMANDED_ROWS_MAX:
                raise RequestTooLarge(
                    f"a transaction that fills columns of {descriptor.name!r} can't set them NOT"
                    f" NULL: the table has about {rows:,} rows, and the master looks through"
                    f" {DEMANDED_ROWS_MAX:,} at most while everybody waits; commit what fills"
                    " them, then send ALTER TABLE … SET NOT NULL by itself, which is checked beside"
                    " all else",
                    table=descriptor.name,
                )
            filled = count_filled(decided, table_id, element_id)
            if self._store.count_lacking(descriptor, element_id) > filled:
                name = descriptor.by_id[element_id].name
                raise NotNullViolation(
                    f'column "{name}" of relation "{descriptor.name}" contains null values',
                    table=descriptor.name,
                    column=name,
                )

    def _measure(
        self,
        message: QueueRead,
        request: ChangeRequest,
        decided: Decided,
        made: Made,
        catalog: Catalog,
    ) -> Generator[None, None, Measured | LeaseholdError]:
        """Return the commit of a request as it will be in the log, or why it can't be, and yield
        now and then."""
        yield
        commit = self._commit_of(message, request, decided, made)
        packed = self._codec.pack_commit(commit)
        yield
        if self._limits.needs_own_record(packed):
            lsn = self.draft.next_lsn
            looked = self._limits.find_excess_in_slices(commit, packed, lsn, catalog, alone=True)
            excess = yield from looked
            if excess is not None:
                return excess
        return Measured(decided, commit, packed)

    def _against(
        self, made: Made
    ) -> tuple[RowReader, int, HolderReader, CommitContext, WriteBehind]:
        """Return what a request is verified against: the store's rows, but those of tables that it
        makes or truncates itself."""
        store, draft, empty = self._store, self.draft, made.empty
        row, holders = store.row, store.holders
        if not empty:
            return row, draft.next_lsn, holders, draft.next_context(), store
        return (
            lambda table, key: None if table.table_id in empty else row(table, key),
            draft.next_lsn,
            lambda table, index, values, most: (
                () if table.table_id in empty else holders(table, index, values, most)
            ),
            draft.next_context(),
            store,
        )

    def _absent(self, made: Made) -> AbsenceReader:
        """Return what tells of many rows at once whether they are missing, as `_against` does of
        each."""
        lacks, empty = self._store.lacks, made.empty
        if not empty:
            return lacks
        return lambda table, keys: table.table_id in empty or lacks(table, keys)

    def settle(
        self,
        message: QueueRead,
        request: ChangeRequest,
        made: Made,
        catalog: Catalog,
        found: Decided | Measured | LeaseholdError,
    ) -> None:
        """Accept or refuse the request, as was found. Raises Full."""
        if isinstance(found, Measured):
            self._accept(message, request, found.decided, made, catalog, found)
        elif isinstance(found, Decided):
            self._accept(message, request, found, made, catalog)
        else:
            disposition = disposition_of(request, found, self._settings.attempts_max)
            self._refuse(message, request, found, disposition)

    def _accept(
        self,
        message: QueueRead,
        request: ChangeRequest,
        decided: Decided,
        made: Made,
        catalog: Catalog,
        measured: Measured | None = None,
    ) -> None:
        """Put the request into the draft. `measured`: what is known of its commit. Raises Full."""
        draft, store = self.draft, self._store
        lsn = draft.next_lsn
        excess: LeaseholdError | None = refuse_infinite(decided.changes, catalog, self._features)
        if excess is not None:
            self.refuse(message, request, excess)
            return
        try:
            commit = self._commit_of(message, request, decided, made)
            if measured is not None and measured.commit == commit:
                packed = measured.packed
            else:
                packed = self._codec.pack_commit(commit)
            alone = self._limits.needs_own_record(packed)
            if alone and measured is None:
                excess = self._limits.find_excess(commit, packed, lsn, catalog, alone=True)
        except LeaseholdError:
            raise
        except Exception as error:  # noqa: BLE001 - nothing is applied yet
            excess = internal_failure(error)
        if excess is not None:
            self.refuse(message, request, excess)
            return
        if not draft.fits(packed) and not (alone and draft.has_room_alone):
            raise Full
        for write in made.writes:
            if isinstance(write, DescriptorWrite):
                store.prepare(catalog.version(write.table_id, write.version))
        store.apply(commit, decided.before, lsn, catalog)
        store.put_outcome(request.id, outcome_of_commit(commit, lsn))
        draft.add_commit(commit, packed)
        draft.settle(message, request.id)
        draft.closed = alone or bool(made.writes)

    def _commit_of(
        self, message: QueueRead, request: ChangeRequest, decided: Decided, made: Made
    ) -> Commit:
        return Commit(
            request.id,
            request.attempt,
            self.draft.next_commit_us(),
            decided.versions,
            decided.changes,
            decided.rows_affected,
            reply_partition(message, request),
            (),
            made.writes,
            decided.answer if made.answer is None else made.answer,
            request.principal if made.writes else "",
            request.notifications,
        )

    # ------------------------------------------------------------ refusals

    def refuse(self, message: QueueRead, request: ChangeRequest, error: LeaseholdError) -> None:
        """Refuse a request for good. Raises Full."""
        self._refuse(message, request, error, disposition_for_good(request))

    def dead_letter(
        self,
        message: QueueRead,
        error: Refused,
        request: ChangeRequest = NOBODYS,
        detail: Mapping[str, object] | None = None,
    ) -> None:
        """Refuse a message of any queue for good and keep it for people; with `request` its sender
        is told. Raises Full."""
        self._refuse(message, request, error, Disposition.DEAD_LETTER, detail)

    def _refuse_unreadable(self, message: QueueRead, error: Refused) -> None:
        """Keep the message as a dead letter, and answer it where its bytes show who asked. Raises
        Full."""
        detail = dict(error.detail)
        request_id, reply_to = detail.pop("request_id", b""), detail.pop("reply_to", -1)
        assert isinstance(request_id, bytes), request_id
        assert isinstance(reply_to, int), reply_to
        requester = ChangeRequest(request_id, reply_to=reply_to)
        try:
            if request_id:
                self._check_age(request_id)
        except Refused:
            requester = NOBODYS  # an id that no outcome may be remembered for
        remembered = self._store.outcome(request_id) if request_id else None
        if remembered is not None:
            # L5: an id has one outcome; these bytes are another request under a used id.
            requester = NOBODYS
        self._refuse(message, requester, error, Disposition.DEAD_LETTER, detail)
        if remembered is not None:
            reply_to = reply_partition(message, ChangeRequest(b"", reply_to=reply_to))
            # ⚠ Behind its refusal, which can't be taken out again: there is always room for one.
            self.draft.repeat_last(Repeat(request_id, reply_to, remembered, message.requester))

    def refuse_unproven(self, message: QueueRead, error: NotAuthentic) -> None:
        """Keep a message as a dead letter, and a part of its body, of which it isn't proven who has
        sent it. ⚠ It settles no id (L5): anybody may have written another one's into it. Who is
        named in it is told, where it stands in the topic: a true request of that id stands before
        it there, and was decided. Raises Full."""
        detail = dict(error.detail)
        request_id, reply_to = detail.pop("request_id", b""), detail.pop("reply_to", -1)
        attempt = detail.pop("attempt", 1)
        assert isinstance(request_id, bytes), request_id
        assert isinstance(reply_to, int), reply_to
        assert isinstance(attempt, int), attempt
        # Nobody has looked whether it says a password, which would be kept for ever.
        kept = 0 if may_say_password(message.body) else KEPT_UNPROVEN_BYTES_MAX
        self._refuse(message, NOBODYS, error, Disposition.DEAD_LETTER, detail, kept)
        if not request_id or message.requester:
            return
        outcome = self._store.outcome(request_id)
        if outcome is None:
            words, at_us = error.message, self.draft.time_us
            outcome = Outcome(attempt, 0, 0, at_us, True, error.sqlstate, words, {}, True)
        self.draft.repeats.append(Repeat(request_id, reply_to, outcome, b""))

    def _refuse(
        self,
        message: QueueRead,
        request: ChangeRequest,
        error: LeaseholdError,
        disposition: Disposition,
        detail: Mapping[str, object] | None = None,
        body_bytes_max: int | None = None,
    ) -> None:
        """Add the refusal to the draft. `detail`: instead of the error's. Raises Full."""
        draft = self.draft
        refusal = refusal_of(message, request, error, disposition, detail, draft.time_us)
        if body_bytes_max is not None and len(message.body) > body_bytes_max:
            refusal = cut_body(refusal, message.body, body_bytes_max)
        refusal, packed = self._pack_refusal(refusal, message, request)
        if not draft.fits(packed) and not draft.has_room_alone:
            raise Full
        if refusal.request_id:
            # L5, L6: as every node does when it applies this record.
            untimely = is_untimely(refusal)
            put = self._store.put_untimely if untimely else self._store.put_outcome
            put(refusal.request_id, outcome_of_refusal(refusal))
        draft.add_refusal(refusal, packed)
        draft.settle(message, refusal.request_id)

    def _pack_refusal(
        self, refusal: Refusal, message: QueueRead, request: ChangeRequest
    ) -> tuple[Refusal, bytes]:
        """Return a refusal that a record has room for, and an answer for its words, and its bytes:
        what is too large in it is cut."""
        pack, settings = self._codec.pack_refusal, self._settings
        packed = pack(refusal)
        if len(packed) > WORDS_BYTES_MAX:
            # Looked at by itself only where so much is there at all.
            if len(pack(refusal._replace(body=None, image=None))) > WORDS_BYTES_MAX:
                refusal = cut_words(refusal)
                packed = pack(refusal)
            bytes_max = min(
                settings.large_bytes_max, settings.large_zipped_bytes_max, byte_limits.REFUSAL
            )
            if len(packed) > bytes_max and refusal.disposition is Disposition.CONFLICT:
                refusal = cut_conflict(refusal)
                packed = pack(refusal)
                if len(packed) > bytes_max:
                    refusal = give_up_conflict(refusal, request)
                    packed = pack(refusal)
            if len(packed) > bytes_max:  # alone in its record and still too large
                refusal = cut_body(refusal, message.body, settings.record_bytes_max // 2)
                packed = pack(refusal)
        return refusal, packed

    # ------------------------------------------------------------ the log's time

    def reset_clock(self, message: QueueRead, request: ChangeRequest, clock: Reading) -> None:
        """Set the log's time to that of `clock` if it is ahead of it: with the first commit of a
        record, which says what it was and closes it."""
        draft = self.draft
        before_us = draft.reset_clock(clock)
        commit_us = draft.next_commit_us()
        answer = {"reset": draft.reset_us > 0, "log_us": before_us, "clock_us": clock.wall_us}
        partition = reply_partition(message, request)
        commit = Commit(request.id, 1, commit_us, {}, (), 0, partition, answer=answer)
        self._store.put_outcome(request.id, outcome_of_commit(commit, draft.next_lsn))
        draft.add_commit(commit, self._codec.pack_commit(commit))
        draft.settle(message, request.id)
        draft.closed = True

    # ------------------------------------------------------------ the feature level

    def finalize(self, message: QueueRead, request: ChangeRequest, level: int) -> None:
        """Finalize the database up to what the request asks for, where that is more than `level`,
        which it has: with the last commit of a record, which says what it was. ⚠ What the level
        permits stands in later records: whoever can't read it stops at this one."""
        draft = self.draft
        wanted = max(level, request.feature_level)
        answer = {"level": wanted, "was": level, "finalized": wanted > level}
        partition = reply_partition(message, request)
        at_us, who = draft.next_commit_us(), request.principal
        commit = Commit(request.id, 1, at_us, {}, (), 0, partition, answer=answer, principal=who)
        packed = self._codec.pack_commit(commit)
        if not draft.fits(packed):
            raise Full
        self._store.put_outcome(request.id, outcome_of_commit(commit, draft.next_lsn))
        draft.add_commit(commit, packed)
        draft.settle(message, request.id)
        if wanted > level:
            draft.raise_level(wanted)
        draft.closed = True

    # ------------------------------------------------------------ barriers

    def pass_barrier(self, message: QueueRead, request: ChangeRequest) -> None:
        """Answer the request with a place in the log, once this record was read back and the nodes
        have it. ⚠ T6: what was answered before it was asked stands in records before this one,
        whoever was master: had this one lost its epoch, the record would not count. Raises Full."""
        draft, asked = self.draft, request.barrier
        assert asked is not None
        partition = reply_partition(message, request)
        if asked.check is None:
            passed = Outcome(request.attempt, draft.next_lsn, 0, draft.time_us, True)
            draft.repeats.append(Repeat(request.id, partition, passed, message.requester))
            draft.settle(message)
            return
        commit_us = draft.next_commit_us()
        commit = Commit(request.id, request.attempt, commit_us, {}, (), 0, partition)
        barrier = Barrier(request.id, *asked)
        packed, more = self._codec.pack_commit(commit), self._codec.encode(barrier)
        bytes_max = min(self._settings.large_bytes_max, self._settings.large_zipped_bytes_max) // 2
        if len(more) > bytes_max:
            words = f"the slice begins behind a key of {len(more)} bytes; {bytes_max} are taken"
            self.refuse(message, request, RequestTooLarge(words))
            return
        if not draft.fits(packed + more) and not draft.has_room_alone:
            raise Full
        self._store.put_outcome(request.id, outcome_of_commit(commit, draft.next_lsn))
        draft.add_commit(commit, packed)
        draft.add_barrier(barrier, more)
        draft.settle(message, request.id)

    # ------------------------------------------------------------ catalog

    def write_catalog(
        self,
        writes: tuple[CatalogWrite, ...],
        message: QueueRead | None = None,
        request: ChangeRequest | None = None,
        answer: Any = None,
        backfills: tuple[Backfill, ...] = (),
    ) -> None:
        """Commit catalog writes, and close the draft: what follows must see them. Raises Full.

        With `message` and `request` they answer a request (DDL, job control), which is refused if
        they are too large. A sequence that a job makes begins with them, and one that it alters
        goes on. `backfills`: ranges that are filled from here on."""
        draft, store = self.draft, self._store
        lsn = draft.next_lsn
        moves = [*rows_with_versions(self._catalog, writes, store.row, lsn)]
        made = [move.descriptor for move in moves if move.row is None]
        commit = Commit(
            request_id=request.id if request else b"",
            attempt=request.attempt if request else 1,
            commit_us=draft.next_commit_us(),
            versions={m.descriptor.table_id: m.descriptor.version for m in moves}
            | {each.table_id: each.version for each in backfills},
            changes=tuple(move.change for move in moves),
            rows_affected=0,
            reply_to=reply_partition(message, request) if request and message else -1,
            backfills=backfills,
            catalog=writes,
            answer=answer,
            principal=request.principal if request else "",
            notifications=request.notifications if request else None,
        )
        packed = self._codec.pack_commit(commit)
        # ⚠ Who wants an end to a job that is too large already, is heard.
        if request is not None and message is not None and request.sql is not None:
            excess = self._limits.find_excess(commit, packed, lsn, self._catalog, alone=True)
            if excess is not None:
                self.refuse(message, request, excess)
                return
        if not draft.fits(packed) and not draft.has_room_alone:
            raise Full
        for table in made:
            store.prepare(table)
        store.apply(commit, tuple(move.row for move in moves), lsn, self._catalog_with(made))
        if request is not None and message is not None:
            store.put_outcome(request.id, outcome_of_commit(commit, lsn))
            draft.settle(message, request.id)
        draft.add_commit(commit, packed)
        draft.closed = True

    def _catalog_with(self, made: list[Descriptor]) -> Catalog:
        if not made:
            return self._catalog
        ahead = CatalogAhead.of(self._catalog)
        for table in made:
            ahead.make(table)
        return ahead


def rights_of(request: ChangeRequest, catalog: Catalog, own: int) -> Rights | None:
    """Return what the requester may do, None: everything. `own`: see `Rights`. Raises
    NotAuthentic (28000), InsufficientPrivilege (42501)."""
    if not request.principal and not request.as_role:
        return None
    actor = catalog.access.actor_of(request.principal, request.as_role)
    if catalog.access.roles.is_superuser(actor):
        return None
    return Rights(catalog, actor, own, of_node=not request.key_number)
