"""The transaction of a SQL session that can run again (T2): what it has pinned, which moment it
sees, what it reads and writes, and what of that was answered."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from functools import partial
from typing import Any, Final, NamedTuple, TypeVar

from leasehold.adapters.sqlite.as_of import SqlitePast
from leasehold.adapters.sqlite.query import Limits, Rows
from leasehold.adapters.sqlite.snapshot import SqliteSnapshot
from leasehold.adapters.sqlite.statement_run import StatementRun
from leasehold.adapters.sqlite.write import RowWrite, Written, own_rows
from leasehold.catalog.access import Access, check_owner, check_privilege
from leasehold.catalog.definitions import quoted
from leasehold.catalog.descriptor import Descriptor
from leasehold.catalog.elements import CommitContext
from leasehold.catalog.job import Job
from leasehold.catalog.privileges import Privilege
from leasehold.catalog.roles import BOOTSTRAP_ROLE
from leasehold.catalog.search_path import RelationNames, list_relation_names
from leasehold.catalog.sequence_ownership import list_own_sequences, refuse_sequence
from leasehold.model.errors import (
    FeatureNotSupported,
    InsufficientPrivilege,
    NotCoherent,
    NotNullViolation,
    RequestTooLarge,
    StaleVersion,
)
from leasehold.model.keys import Key
from leasehold.model.ports import StoreSnapshot
from leasehold.model.records.events import Image
from leasehold.model.records.requests import ChangeRequest, OnConflict
from leasehold.pgwire.session import WouldBlock
from leasehold.replica.deferred_keys import AS_DEFINED, DeferredKeys
from leasehold.replica.pending_changes import OPERATIONS_MAX, Mark
from leasehold.replica.pending_notifications import checked_notification
from leasehold.replica.reads import Reads
from leasehold.replica.replay_log import Asked, Step, Types
from leasehold.replica.sequences.node_blocks import last_value
from leasehold.replica.sequences.session_values import DrawnSequenceValues
from leasehold.replica.sql_execute import apply, find_rows, gather_places, tables_read
from leasehold.replica.sql_reads import Preparing, Seen, gather_sought, planned
from leasehold.replica.temporary_tables import TemporarySchema, TemporaryTables
from leasehold.replica.write_set import WriteSet
from leasehold.schema_change.plan.answers import Told
from leasehold.schema_change.plan.truncate import (
    NOTHING_TO_RESTART,
    refuse_referred,
    truncate_notice,
    with_referring,
)
from leasehold.sql.binding.select_for_verify import ShownRow
from leasehold.sql.ddl.schema_statements import may_be_temporary
from leasehold.sql.functions.system.sequence import DRAWS
from leasehold.sql.functions.system.session import AsksAs, caller_of, drawing, reseed
from leasehold.sql.planning.plan import Prepared, RowClaim
from leasehold.sql.system_catalog.system_relations import with_system
from leasehold.sql_session.commit_time_update import CommitTimeUpdate
from leasehold.sql_session.constraint_check import Claim, ConstraintCheck
from leasehold.sql_session.deferred_check import DeferredCheck, check_deferrable
from leasehold.sql_session.lost_values import LostValues
from leasehold.sql_session.privilege_check import PrivilegeCheck
from leasehold.sql_session.reference_check import ReferenceCheck
from leasehold.sql_session.row_claims import RowClaims
from leasehold.sql_session.statement_log import StatementLog
from leasehold.sql_session.temporary_changes import TemporaryChanges
from leasehold.transaction.isolation import Isolation
from leasehold.transaction.pinned_version import check_pinned
from leasehold.values.time_zone import zone_at

T = TypeVar("T")
_NONE: Final[frozenset[int]] = frozenset()
_PLACE_BYTES: Final = 4
CoherentWait = Callable[[], None]
OwnTables = Mapping[int, tuple[Descriptor, Mapping[Key, Image | None]]]


class Savepoint(NamedTuple):
    """How far a transaction was: its writes, and its steps."""

    writes: Mark
    step: int
    deferred: DeferredKeys


class ReplayableTransaction:
    """The `Strategy` of all transactions but those that are one `CommitTimeUpdate`.

    `reads` says which LSN it sees, if it is one. `block`: it lasts over several statements, so what
    it uses is leased and keeps its version to its end (D8); a single statement needs neither (D3).
    """

    def __init__(
        self,
        reads: Reads,
        plan_of: Preparing,
        isolation: Isolation,
        context: CommitContext,
        wait_coherent: CoherentWait,
        *,
        block: bool,
        sequence_values: DrawnSequenceValues,
        check_may_block: Callable[[], None] = lambda: None,
        privileges: PrivilegeCheck | None = None,
        claims: RowClaims,
        temporary: TemporaryTables | None = None,
        temporary_bytes_max: int = 0,
        notifier: tuple[str, int] = ("", 0),
        deferred: DeferredKeys = AS_DEFINED,
    ) -> None:
        """Begin. `sequence_values` is what it draws from sequences; `check_may_block` is called
        before it waits for some, and may raise WouldBlock; `privileges` checks those of the role
        that each statement is run as, a new one if None; `claims` claims rows for it.
        `temporary` are the session's temporary tables, whose rows come to `temporary_bytes_max` at
        most. `notifier`: its node and session, as those see them who are told something.
        `deferred`: the foreign keys that it leaves to COMMIT at first."""
        self.isolation = isolation
        self._plan_of = plan_of
        self._block = block
        self._reads = reads
        temporary = temporary or TemporaryTables(0)
        self._writes = WriteSet(
            reads, isolation, sequence_values, reads.budget, notifier, temporary
        )
        self._temporary_bytes_max = temporary_bytes_max
        self.final: ReplayableTransaction = self
        """The run of it that was committed."""
        self._pending = self._writes.pending
        held = self._writes.seen.held
        self.log = StatementLog(isolation, context, self._pending, reads.budget, deferred, held)
        self.sequence_values = sequence_values
        verified = self._writes.seen.reads if isolation.verifies_reads else None
        self._lost = LostValues(self._pending)
        self._constraints = ConstraintCheck(
            self._pending, reads.budget, verified, temporary.claims, lost=self._lost
        )
        self._references = ReferenceCheck(self._pending, self._lost, verified)
        self._temporary = TemporaryChanges(self._pending, self._constraints)
        self._check_may_block = check_may_block
        self._privileges = privileges or PrivilegeCheck()
        self._claims = claims
        self._asks_as: AsksAs | None = None
        """As whom all that it writes is written, once it has written."""
        self._wait_coherent = wait_coherent
        self._lsn = reads.snapshot_lsn

    def become_block(self, reads: Reads) -> None:
        """Let it last, since BEGIN came behind its first statements. `reads` are of a block that
        begins."""
        self._block = True
        self._reads.become_block(reads)

    @property
    def context(self) -> CommitContext:
        return self.log.context

    @property
    def is_block(self) -> bool:
        return self._block

    @property
    def lsn(self) -> int | None:
        """The LSN that it reads as of, if it is one."""
        return self._lsn

    def show_activity(self, text: str) -> None:
        """Keep what it does now, for those who wait for it."""
        self._reads.show_activity(text)

    # ------------------------------------------------------------ preparing

    def plan(self, text: str, types: Types) -> Prepared:
        """Return the plan of a statement. Raises what `prepare` of the query plan raises,
        NotCoherent, SnapshotTooOld."""
        with self.prepared(text, types) as (_, plan):
            return plan

    @contextmanager
    def prepared(self, text: str, types: Types) -> Iterator[tuple[Seen, Prepared]]:
        """Open a snapshot, with the plan, for a statement that runs to its end in here; `planned`
        is for one that goes on."""
        snapshot, plan = self.planned(text, types)
        try:
            yield snapshot, plan
        finally:
            snapshot.close()

    def descriptor(self, table: str) -> Descriptor:
        """Return a table as this transaction sees it. Raises UnknownTable."""

        def newest() -> Descriptor:
            if self._block:
                return self._reads.pin(table)
            with self._reads.snapshot() as snapshot:
                found: Descriptor = snapshot.newest(table)
                return found

        return self._coherently(newest)

    def planned(self, text: str, types: Types) -> tuple[Seen, Prepared]:
        """Return a snapshot, which is the caller's to close, and the plan on it. Of a block
        versions are pinned; whether what is newest is too new for them `read` finds out."""
        own = self._own_tables()
        pin = self._reads.pin if self._block else None
        zone = zone_at(self.context)
        return self._coherently(
            lambda: planned(
                self._plan_of,
                text,
                types,
                own,
                self._reads,
                pin,
                zone,
                lambda: self.changed_access,
            )
        )

    def _coherently(self, take: Callable[[], T]) -> T:
        """Return what `take` does. Coherence may end between the wait for it and a snapshot: it is
        waited for again."""
        while True:
            self._wait()
            try:
                return take()
            except NotCoherent:
                if self._lsn is not None:
                    raise

    def _wait(self) -> None:
        """Wait for coherence, where what is newest is read: what was there at an LSN does not
        change."""
        if self._lsn is None:
            self._wait_coherent()

    # ------------------------------------------------------------ reading

    def read(self, plan: Prepared, snapshot: Seen, values: Sequence[Any], limits: Limits) -> Rows:
        """Return rows of a query as they are wanted; where own rows are among them, all at once."""
        if plan.visits is None and not plan.explain:
            self.log.add_shown(plan, values, self._own_tables())
        with self._found(plan, snapshot, values, limits, later=False) as (rows, own):
            return rows.compute_all() if own else rows

    def read_into(
        self,
        plan: Prepared,
        snapshot: Seen,
        values: Sequence[Any],
        limits: Limits,
        take: Callable[[Rows], None],
    ) -> None:
        """Hand the rows of a query to `take`, which goes over them, to their end or not, and meets
        what they end with. What its client does with them may rest on the very rows, so they are to
        be so at COMMIT where the transaction writes them (`AtCommit`)."""
        if plan.visits is None:
            self.log.rest_on(plan, (values,))
        with self._found(plan, snapshot, values, limits, later=True) as (rows, _), closing(rows):
            take(rows)

    @contextmanager
    def _found(
        self, plan: Prepared, snapshot: Seen, values: Sequence[Any], limits: Limits, *, later: bool
    ) -> Iterator[tuple[Rows, bool]]:
        """Yield the rows, and whether own ones may be among them, which are there in here only."""
        self._check(plan, snapshot)
        self.log.show(plan, values)
        context = self._next_context(plan, snapshot)
        own = self._own_of(plan)

        def rows() -> Rows:
            return find_rows(self._writes, snapshot, plan, values, context, limits, later=later)

        with own_rows(snapshot.connection, own, self._pending.emptied):
            if plan.counts and not plan.explain:
                yield self._drawing(lambda: rows().compute_all(whole=True)), False
            else:
                yield rows(), bool(own)

    def _next_context(self, plan: Prepared, snapshot: Seen) -> CommitContext:
        """Return the transaction's moment as the statement that begins sees it; in a replay it
        draws what it has drawn before (T2)."""
        self.log.position += 1
        self._pending.notifications.begin_statement(self.log.position)
        context = self.context
        if plan.draws:
            context = reseed(context, context.seed + self.log.position.to_bytes(_PLACE_BYTES))
        if plan.counts:
            self.sequence_values.may_draw = partial(self._check_may_draw, snapshot)
            context = drawing(context, self.sequence_values)
        if not plan.asks_system:
            return context
        return with_system(
            context,
            lambda: self._tables(snapshot),
            lambda sequence: last_value(snapshot, sequence),
            self.access(snapshot),
            self._tell,
            snapshot.now.running_jobs,
        )

    def notify(self, channel: str, payload: str) -> None:
        """Run NOTIFY: what is told is committed with the rows. Raises InvalidArgument,
        RequestTooLarge, OutOfMemory."""
        self.log.position += 1
        self._tell(channel, payload)

    def _tell(self, channel: str, payload: str) -> None:
        """Tell something, of the statement that runs."""
        notification = checked_notification(channel, payload)
        self._writes_as_role()
        self._pending.notifications.add(self.log.position, notification)

    def take_over_notifications(self, other: ReplayableTransaction) -> None:
        """Begin with what was told in another run of this transaction, whose statements that wrote
        run again, and tell anew."""
        self._pending.notifications.take_over(other._pending.notifications)

    def _drawing(self, work: Callable[[], T]) -> T:
        """Run a statement that draws from sequences, again where it had to wait for numbers."""
        local = self._pending.local_sequences
        wait = self._wait_coherent
        gone = {table.table_id for table in self._pending.schema.dropped.values()}
        try:
            return self.sequence_values.running(
                self.log.position, local, work, self._check_may_block, wait, gone
            )
        except WouldBlock:
            self.log.position -= 1  # it comes again, and draws what it has drawn
            raise

    def _tables(self, snapshot: StoreSnapshot) -> list[Descriptor]:
        """Return the tables that this transaction sees: without what it drops, with what it
        makes."""
        schema = self._pending.schema
        gone = {table.table_id for table in schema.dropped.values()}
        there = (t for t in snapshot.tables() if t.table_id not in gone)
        temporary = self._pending.temporary.made.values()
        return [*map(schema.without_drops, there), *schema.made.values(), *temporary]

    def relation_names(self, known: RelationNames | None) -> RelationNames:
        """Return the names of all relations that it sees now: `known`, if that is so still."""
        pending = self._pending
        with self._coherently(self._reads.snapshot) as snapshot:
            assert isinstance(snapshot, Seen), "on a store of this process"
            then = snapshot if isinstance(snapshot, SqlitePast) else snapshot.catalog
            seen = then, pending.schema, pending.temporary
            if known is not None and known.is_of(seen):
                return known
            return list_relation_names(seen, self._tables(snapshot), self.access(snapshot))

    @property
    def changed_access(self) -> Access | None:
        """Return who may do what as it will be at its commit, None: as it was before."""
        return self._pending.schema.access

    def _check(self, plan: Prepared, snapshot: Seen) -> None:
        role_id = caller_of(self.context).role_id
        if role_id != BOOTSTRAP_ROLE:
            self._privileges.check(plan, self.access(snapshot), role_id)
        if self._block and self._lsn is None:
            for descriptor in plan.tables.values():
                check_pinned(descriptor, snapshot.min_version(descriptor.table_id))

    def _check_may_draw(self, snapshot: Seen, sequence_id: int) -> None:
        """Check that the role may draw from a sequence. Raises InsufficientPrivilege (42501)."""
        role_id = caller_of(self.context).role_id
        if role_id == BOOTSTRAP_ROLE:
            return
        if self.access(snapshot).privileges(role_id, "sequence", sequence_id) & DRAWS:
            return
        names = (t.name for t in self._tables(snapshot) if t.table_id == sequence_id)
        raise InsufficientPrivilege(f"permission denied for sequence {next(names, sequence_id)}")

    def access(self, snapshot: Seen) -> Access:
        """Return who may do what now, whatever moment is read."""
        return self._pending.schema.access or snapshot.access

    def _own_of(self, plan: Prepared) -> OwnTables:
        own = self._own_tables()
        return self._pending.images(tables_read(plan) & own) if own else {}

    def _own_tables(self) -> frozenset[int]:
        if self.has_written and self.isolation.own_writes:
            return self._pending.tables
        return self._pending.temporary_ids if self._pending.temporary.script else _NONE

    # ------------------------------------------------------------ writing

    def _writes_as_role(self) -> None:
        """Note as which role it writes. Raises FeatureNotSupported for a second one: it is one
        request to the master, which asks whether one role may do all of it."""
        asks_as = caller_of(self.context).asks_as
        if self._asks_as is None:
            self._asks_as = asks_as
        elif self._asks_as != asks_as:
            raise FeatureNotSupported(
                "a transaction that writes as two roles is not supported: COMMIT before SET ROLE"
            )

    def write(self, plan: Prepared, snapshot: Seen, asked: Asked, limits: Limits) -> Written:
        """Run a statement that writes, or of which a part does; what it writes is in the write set
        then. Raises RequestTooLarge (54000), StaleVersion, what the statement raises."""
        self._check(plan, snapshot)
        targets = plan.targets
        if not all(table.temporary for table in targets.values()):
            self._writes_as_role()
        self._wait()
        self._pin_targets(targets, snapshot)
        computed = None if plan.write is None else plan.write.computed
        if any(table.temporary for table in targets.values()):
            computed = None
        if computed is None:
            self.log.rest_on(plan, asked.many or (asked.values,))
        written = self._find_written(plan, snapshot, asked, limits)
        self.log.hold_back(plan, asked.many or (asked.values,), written)
        groups = _by_table(plan, written)
        count = sum(map(len, groups.values()))
        if len(self._pending.operations) + count > OPERATIONS_MAX:
            raise RequestTooLarge(
                f"a transaction writes at most {OPERATIONS_MAX} rows: COMMIT more often"
            )
        claims = {
            table_id: self._check_constraints(targets[table_id], writes, snapshot)
            for table_id, writes in groups.items()
        }
        if self._tells_at_once:
            self._references.check(targets, groups, snapshot.now, self.log.deferred)
        mark = self._pending.mark() if count > 1 else None
        try:
            with self._reads.within(snapshot):
                for each, part in zip(plan.plans, written.parts, strict=True):
                    if each.write is not None:
                        apply(self._writes, each.write.bound.descriptor, part.writes)
            self._check_temporary_bytes()
        except BaseException:
            if mark is not None:
                self._pending.back_to(mark)
            raise
        for table_id, claimed in claims.items():
            self._constraints.remember(targets[table_id], claimed)
        if computed is not None and written.writes:
            assert plan.write is not None
            descriptor = plan.write.bound.descriptor
            self.log.compute_at_commit(descriptor, written, computed.values(asked.values))
        return written

    def _check_temporary_bytes(self) -> None:
        """Raise RequestTooLarge where temporary tables have become too large."""
        held, bytes_max = self._pending.temporary_bytes, self._temporary_bytes_max
        if bytes_max and held > bytes_max:
            raise RequestTooLarge(
                f"the session's temporary tables come to {held} bytes, more than {bytes_max}",
                hint="SET leasehold.temp_tables_mb, up to 256; or DELETE rows that are done with.",
            )

    def _pin_targets(self, targets: Mapping[int, Descriptor], snapshot: Seen) -> None:
        """Pin the tables that a statement writes. Raises StaleVersion."""
        for descriptor in targets.values():
            with self._reads.within(snapshot):
                pinned = self._reads.pin(self._reads.name_of(descriptor))
            if pinned.version != descriptor.version:
                raise StaleVersion(
                    f"table {descriptor.name!r} was changed since this transaction has begun; run"
                    " it again",
                    table=descriptor.name,
                )

    def _find_written(
        self, plan: Prepared, snapshot: Seen, asked: Asked, limits: Limits
    ) -> Written:
        """Return what a statement would write. What it reads is in the read set then, where the
        level verifies that."""
        context = self._next_context(plan, snapshot)
        verifies = self.isolation.verifies_reads

        def look(part: Prepared, values: Sequence[Any], context: CommitContext) -> None:
            if verifies:
                gather_places(self._writes, snapshot, part, values, context, limits)

        run = StatementRun(
            snapshot.connection,
            plan,
            asked.values,
            context,
            limits,
            self._writes.hidden_keys,
            self._lsn or 0,
            self._writes.seen.visit,
            look,
            self._claim,
        )
        with own_rows(snapshot.connection, self._own_of(plan), self._pending.emptied):

            def found() -> Written:
                return run.run(asked.many)

            written = self._drawing(found) if plan.counts else found()
        for each, part in zip(plan.plans, written.parts, strict=True) if verifies else ():
            if each.write is not None:
                target = each.write.bound.descriptor
                gather_sought(self._writes.seen.reads, target, part.sought)
        return written

    def _claim(
        self, claim: RowClaim, rows: Sequence[Sequence[ShownRow]], wanted: int
    ) -> Sequence[bool]:
        """Claim rows that a statement has found."""
        return self._claims.claim(claim, rows, wanted, self._is_newest)

    def _is_newest(self, rows: Sequence[ShownRow]) -> bool:
        """Return whether rows are committed as they were shown, now that they are claimed."""
        with self._coherently(self._reads.snapshot) as snapshot:
            assert isinstance(snapshot, Seen), "on a store of this process"
            for shown in rows:
                if not shown.genids:
                    continue
                row = snapshot.now.get(shown.table, shown.key)
                if row is None or any(row.genids.get(g) != v for g, v in shown.genids.items()):
                    return False
        return True

    def _check_constraints(
        self, descriptor: Descriptor, writes: Sequence[RowWrite], snapshot: Seen
    ) -> Sequence[Claim]:
        """Check what others than this statement alone have to be told before COMMIT (T3): in a
        block, and behind another statement. At a level of one moment, too, by what is newest; not
        where own writes are not seen, which is Comdb2's way, to the end."""
        if not self._tells_at_once and not descriptor.temporary:
            self._lost.note(descriptor, writes)  # for the statements that come behind it
            return ()
        return self._constraints.check(descriptor, writes, snapshot.now, self.log.deferred)

    @property
    def _tells_at_once(self) -> bool:
        return (self._block or self.has_written) and self.isolation.own_writes

    def check_may_run(self, text: str, types: Types) -> None:
        """Check that a statement may run, of which the rows come later. Raises
        InsufficientPrivilege, and what `plan` raises."""
        with self.prepared(text, types) as (snapshot, plan):
            self._check(plan, snapshot)

    def continue_from(self, update: CommitTimeUpdate) -> None:
        """Take over its first statement, which was run before it was known to need a
        transaction."""
        assert not self._block, "nothing was pinned"
        assert not self.log.steps, "nothing came before"
        self.log.position += 1
        self._writes_as_role()
        computed, written = update.write.computed, update.written
        assert computed is not None
        self._lost.note(update.descriptor, written.writes)
        with self._reads.within(update):
            apply(self._writes, update.descriptor, written.writes)
        values = computed.values(update.asked.values)
        self.log.compute_at_commit(update.descriptor, written, values)
        self.log.add(Step.wrote(update.asked, written, "UPDATE"))

    def empty(self, asked: Asked) -> list[str]:
        """Run TRUNCATE, and return its notices. Raises UnknownTable, FeatureNotSupported where that
        can't be."""
        self._writes_as_role()
        tables = self._coherently(lambda: [self._reads.pin(name) for name in asked.emptied])
        with self._coherently(self._reads.snapshot) as snapshot:
            assert isinstance(snapshot, SqliteSnapshot), "what is newest, in this process"
            access = self.access(snapshot)
            own = (*self._pending.schema.made.values(), *self._pending.temporary.made.values())
            known = [*snapshot.tables(), *own]
        for table in tables:
            refuse_sequence(table)
        notices = []
        if asked.cascades:
            along = with_referring(tables, known)[len({t.table_id for t in tables}) :]
            notices = [truncate_notice(table) for table in along]
            names = [table.name for table in along]
            tables += self._coherently(lambda: [self._reads.pin(name) for name in names])
        refuse_referred([table for table in tables if not table.temporary], known)
        role_id = caller_of(self.context).role_id
        for table in tables:
            if table.temporary:
                continue
            number, name = table.table_id, table.name
            check_privilege(access, role_id, "table", number, (), Privilege.TRUNCATE, name)
        self._pending.empty(tables)
        self.log.position += 1
        owned = {s for table in tables for s in list_own_sequences(table) if asked.restarts}
        # One that has gone by itself is its column's still.
        restarted = [table for table in known if table.table_id in owned and table.names]
        for sequence in restarted:
            if not sequence.temporary:
                check_owner(access, role_id, sequence.table_id, sequence.name)
        self._pending.restart(restarted)
        if asked.restarts and not restarted:
            notices.append(NOTHING_TO_RESTART)
        return notices

    def check_deferred(
        self, names: Sequence[str], look: Callable[[], None], *, immediate: bool
    ) -> None:
        """Leave the foreign keys `names` (() = all), which have to be there, to COMMIT;
        `immediate`: look at them with each statement, and at what was written so far. `look` is
        called for each row, and may end it. Raises UnknownObject, WrongObject,
        ForeignKeyViolation."""
        with self._coherently(self._reads.snapshot) as snapshot:
            assert isinstance(snapshot, Seen), "on a store of this process"
            now = snapshot.now
            tables = self._tables(now)
            check_deferrable(names, tables, self.log.deferred, immediate=immediate)
            if immediate and self._pending.rows:
                shown = self._pending.schema.shown
                # ⚠ As its rows are read: an index that the block makes has no entries yet.
                read = [shown[t.table_id].table if t.table_id in shown else t for t in tables]
                DeferredCheck(self._pending, now, read, names).run(look)
                self._constraints.check_deferred(names, read, now)
        self.log.deferred = self.log.deferred.with_said(names, deferred=not immediate)

    def change(self, text: str, *, of_new_alone: bool = False) -> list[Told]:
        """Run a schema change, which is committed with the rows; return what is told.
        `of_new_alone`: of tables that were there it changes nothing. Raises what
        `BlockSchema.with_change` and `PendingChanges.change` raise."""
        if self._pending.temporary.script is not None or may_be_temporary(text):
            told = self._change_temporary(text)
            if told is not None:
                return told
        self._writes_as_role()
        with self._coherently(self._reads.snapshot) as snapshot:
            assert isinstance(snapshot, SqliteSnapshot), "what is newest, in this process"
            schema = self._pending.schema
            written = {table_id for table_id, _ in self._pending.rows}
            schema, notices = schema.with_change(
                text, snapshot.planning_catalog, self.context, written
            )
        if schema.holds and of_new_alone:
            raise FeatureNotSupported(
                "a table that was there before this transaction is not changed in it"
                " (leasehold.ddl_in_block = 'refuse'): send it outside of BEGIN",
                hint="Drivers have a mode for it: autocommit, isolation level AUTOCOMMIT.",
            )
        for table_id, element_id in sorted(schema.demanded - self._pending.schema.demanded):
            self._check_filled(table_id, element_id)
        for lacking in schema.find_lacking():
            self._check_empty(lacking)
        self._pending.change(schema)
        return notices

    def _change_temporary(self, text: str) -> list[Told] | None:
        """Run a change of temporary tables, and return what is told; None: it is of others. Raises
        what `TemporaryChanges.change` raises."""
        with self._coherently(self._reads.snapshot) as snapshot:
            assert isinstance(snapshot, Seen), "on a store of this process"
            access = self.access(snapshot)
            return self._temporary.change(text, snapshot.now, access, self.context)

    @property
    def temporary(self) -> TemporarySchema:
        """The session's temporary tables, as it has them now."""
        return self._pending.temporary

    def drop_temporary(self) -> str:
        """Drop all temporary tables, and return the statement that does so, "" for none."""
        text = self._temporary.drop_text()
        if text:
            self._change_temporary(text)
        return text

    def keep_temporary(self, temporary: TemporaryTables) -> None:
        """Let the session have its temporary tables as this transaction leaves them."""
        pending = self._pending
        starts = self.sequence_values.next_of(pending.temporary.local_sequences)
        if pending.temporary_changed or starts:
            held = pending.temporary_bytes
            temporary.keep(pending.temporary, pending.rows, held, starts, self.context)

    def _check_filled(self, table_id: int, element_id: int) -> None:
        """Check that each row, as this transaction sees it now, has a column that it sets NOT
        NULL. Raises NotNullViolation."""
        table = self._pending.find_table(table_id)
        column = table.by_id[element_id].name
        if self._finds(f"{quoted(table.name)} WHERE {quoted(column)} IS NULL"):
            raise NotNullViolation(
                f'column "{column}" of relation "{table.name}" contains null values',
                table=table.name,
                column=column,
            )

    def _check_empty(self, lacking: NotNullViolation) -> None:
        """Raise that error if its table has a row, as this transaction sees it now."""
        names = {each.after.name: each.table.name for each in self._pending.schema.shown.values()}
        table = str(lacking.detail["table"])
        if self._finds(quoted(names.get(table, table))):
            raise lacking

    def _finds(self, source: str) -> bool:
        text = f"SELECT 1 FROM {source} LIMIT 1"  # noqa: S608 - names, quoted
        with self.prepared(text, ()) as (snapshot, plan):
            found = self._found(plan, snapshot, (), Limits(), later=False)
            with found as (rows, _), closing(rows):
                return bool(rows.fetch(1))

    @property
    def begins_jobs(self) -> bool:
        """Whether something goes on after its commit."""
        return self._pending.schema.begins_jobs

    @property
    def made_sequences(self) -> Mapping[str, int]:
        """The names and provisional ids of sequences that it has made."""
        made = self._pending.schema.made.values()
        return {table.name: table.table_id for table in made if table.sequence is not None}

    @property
    def has_written(self) -> bool:
        return bool(self._pending)

    @property
    def rests_on_locks(self) -> bool:
        """Whether it ends here, and what it was shown is of one moment only if its locks stand."""
        newest = not self.isolation.one_snapshot
        return newest and self.log.rests_on_locks and not self.has_written

    def locks_stand(self) -> bool:
        """Return whether its locked rows are as they were. Raises NotCoherent, StaleVersion."""
        return self._coherently(self._writes.locks_stand)

    def held_rows_stand(self) -> bool:
        """Return whether the rows that it has locked or changed are as it has found them."""
        return self._is_newest([*self._writes.held_rows()])

    def savepoint(self) -> Savepoint:
        return Savepoint(self._pending.mark(), len(self.log.steps), self.log.deferred)

    def roll_back_to(self, savepoint: Savepoint) -> None:
        """Take back what was written since. What was read stays verified: the client knows it."""
        self._pending.back_to(savepoint.writes)
        self.log.deferred = savepoint.deferred
        self.log.add(Step(None, back=savepoint.step))

    def request(self, request_id: bytes, attempt: int, on_conflict: OnConflict) -> ChangeRequest:
        request = self._writes.request(request_id, attempt, on_conflict)
        assert request is not None, "it has written"
        request = self._in_role(request)
        if on_conflict is not OnConflict.REPLAY:
            return request
        return request._replace(operations=self.log.operations(request.operations))

    # ------------------------------------------------------------ its job

    @property
    def holds_job(self) -> bool:
        """Whether it changes tables that were there, by a job that waits for its rows."""
        return self._pending.schema.holds

    def find_statement(self, table_id: int, element_id: int) -> str:
        """Return the statement that changes an element, "": none does."""
        return self._pending.schema.origins.get((table_id, element_id), "")

    def has_written_rows_of(self, table_id: int) -> bool:
        """Say whether it has rows of a table to be committed."""
        return any(written == table_id for written, _ in self._pending.rows)

    def give_back_changed(self) -> None:
        """Give back what it has pinned of the tables that it changes. Nothing is read any more."""
        self._reads.give_back(self._pending.schema.shown)

    def job_request(self, request_id: bytes) -> ChangeRequest:
        """Return the request of that job."""
        return self._in_role(self._writes.job_request(request_id))

    def request_of_rows(self, request_id: bytes, releases: bytes, job: Job) -> ChangeRequest:
        """Return the request of the rows that the job waits for."""
        return self._in_role(self._writes.request_of_rows(request_id, releases, job))

    def _in_role(self, request: ChangeRequest) -> ChangeRequest:
        """Return a request as of the role that has written, and under the session's advisory locks.
        Raises AdvisoryLockLost."""
        fence = caller_of(self.context).fence()
        if fence is not None:
            request = request._replace(fence=fence)
        if self._asks_as is None:
            return request
        principal, as_role = self._asks_as
        return request._replace(principal=principal, as_role=as_role)

    def close(self) -> None:
        self._reads.close()


def _by_table(plan: Prepared, written: Written) -> dict[int, Sequence[RowWrite]]:
    """Return what a statement writes to each table, in the order of its parts."""
    found: dict[int, Sequence[RowWrite]] = {}
    for each, part in zip(plan.plans, written.parts, strict=True):
        if each.write is not None:
            table_id = each.write.bound.descriptor.table_id
            before = found.get(table_id)
            found[table_id] = part.writes if before is None else [*before, *part.writes]
    return found
