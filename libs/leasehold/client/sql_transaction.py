"""One transaction of a SQL session: what it has pinned, which moment it sees, what it reads and
writes, and what of that was answered, in case it has to run again (T2)."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, Final, NamedTuple

from leasehold.adapters.sqlite_query import Limits, Rows, run
from leasehold.adapters.sqlite_snapshot import SqliteSnapshot
from leasehold.adapters.sqlite_write import Writing, Written, own_rows
from leasehold.client.replica_reads import Reads
from leasehold.client.sql_running import SessionPlans
from leasehold.client.sql_writes import apply
from leasehold.client.write_set import OPERATIONS_MAX, Mark, WriteSet
from leasehold.model.errors import RequestTooLarge, StaleVersion
from leasehold.model.records import ChangeRequest, Image, Key, OnConflict
from leasehold.pgwire.wire_types import WireType
from leasehold.schema.descriptor import Descriptor
from leasehold.schema.elements import Moment
from leasehold.schema.types import KNOWN, Type, element_of
from leasehold.sql.functions_session import with_system
from leasehold.sql.query_plan import Prepared
from leasehold.transaction.isolation import Isolation
from leasehold.transaction.pinned import check_pinned

STEPS_MAX: Final = 10_000
Types = tuple[Type | None, ...]
CoherentWait = Callable[[], None]
OwnTables = Mapping[int, tuple[Descriptor, Mapping[Key, Image | None]]]


class Asked(NamedTuple):
    """A statement as it was run."""

    text: str
    types: Types
    values: tuple[Any, ...]


class Step(NamedTuple):
    """What a replay does again, and what was answered: `rowcount` and `rows` of a write, or the
    SQLSTATE it failed with. `back`: a ROLLBACK TO the state before step number `back`."""

    asked: Asked | None
    rowcount: int = 0
    rows: tuple[Any, ...] = ()
    sqlstate: str = ""
    back: int = -1

    @classmethod
    def wrote(cls, asked: Asked, written: Written) -> Step:
        return cls(asked, written.count, tuple(written.rows))


class Savepoint(NamedTuple):
    """How far a transaction was: its writes, and its steps."""

    writes: Mark
    step: int


class SqlTransaction:
    """Between two commits. `block`: it lasts over several statements, so what it uses is leased
    and keeps its version to its end (D8); a single statement needs neither (D3)."""

    def __init__(
        self,
        reads: Reads,
        plans: SessionPlans,
        isolation: Isolation,
        moment: Moment,
        wait_coherent: CoherentWait,
        *,
        block: bool,
    ) -> None:
        self.isolation = isolation
        self.moment = moment
        self.steps: list[Step] = []
        self._plans = plans
        self._block = block
        self._reads = reads
        self._writes = WriteSet(reads)
        self._wait_coherent = wait_coherent
        self._kept: SqliteSnapshot | None = None

    def says(self, text: str) -> None:
        """What it does now, for those who wait for it."""
        self._reads.says(text)

    # ------------------------------------------------------------ preparing

    def plan(self, text: str, types: Types) -> Prepared:
        """Raises what `prepare` of the query plan raises, NotCoherent."""
        with self.prepared(text, types) as (_, plan):
            return plan

    @contextmanager
    def prepared(self, text: str, types: Types) -> Iterator[tuple[SqliteSnapshot, Prepared]]:
        """For a statement that runs to its end in here; `planned` for one that goes on."""
        snapshot, plan = self.planned(text, types)
        try:
            yield snapshot, plan
        finally:
            self.let_go(snapshot)

    def descriptor(self, table: str) -> Descriptor:
        """As this transaction sees it. Raises UnknownTable."""
        snapshot = self.snapshot()
        try:
            return snapshot.newest(table) if self._kept or not self._block else self._pin(table)
        finally:
            self.let_go(snapshot)

    def planned(self, text: str, types: Types) -> tuple[SqliteSnapshot, Prepared]:
        """Of a block the versions first, which are pinned, then the snapshot: it then holds them,
        or is too new for them, which `read` finds out."""
        shadowed = frozenset(self._own_tables())
        if self._block and not self.isolation.one_moment:
            plan = self._plans.get(text, self._pin, types, shadowed)
            return self.snapshot(), plan
        snapshot = self.snapshot()
        try:
            return snapshot, self._plans.get(text, snapshot.newest, types, shadowed)
        except BaseException:
            self.let_go(snapshot)
            raise

    def _pin(self, table: str) -> Descriptor:
        self._wait_coherent()
        return self._reads.pin(table)

    # ------------------------------------------------------------ reading

    def snapshot(self) -> SqliteSnapshot:
        """Of this statement, or of the transaction, as its level says; `let_go` of it."""
        if self._kept is not None:
            return self._kept
        self._wait_coherent()
        snapshot = self._reads.snapshot()
        assert isinstance(snapshot, SqliteSnapshot), "of now, on a store of this process"
        if self._block and self.isolation.one_moment:
            self._kept = snapshot
        return snapshot

    def let_go(self, snapshot: SqliteSnapshot) -> None:
        if snapshot is not self._kept:
            snapshot.close()

    def read(
        self, plan: Prepared, snapshot: SqliteSnapshot, values: Sequence[Any], limits: Limits
    ) -> Rows:
        """Rows of a query as they are wanted; where own rows are among them, all at once."""
        self._check(plan, snapshot)
        connection = snapshot.connection
        moment = self._moment_of(plan, snapshot)
        own = self._own_of(plan)
        if not own:
            return run(connection, plan, values, moment=moment, limits=limits)
        with own_rows(connection, own):
            found = run(connection, plan, values, moment=moment, limits=limits).all()
        return Rows(connection, "", (), ready=found)

    def _moment_of(self, plan: Prepared, snapshot: SqliteSnapshot) -> Moment:
        return with_system(self.moment, snapshot.tables) if plan.asks_system else self.moment

    def _check(self, plan: Prepared, snapshot: SqliteSnapshot) -> None:
        for descriptor in plan.tables.values() if self._block else ():
            check_pinned(descriptor, snapshot.min_version(descriptor.table_id))

    def _own_tables(self) -> OwnTables:
        if not self.isolation.own_writes or not self._writes.operations:
            return {}
        return self._writes.own_images()

    def _own_of(self, plan: Prepared) -> OwnTables:
        used = {descriptor.table_id for descriptor in plan.tables.values()}
        return {table: own for table, own in self._own_tables().items() if table in used}

    # ------------------------------------------------------------ writing

    def write(
        self, plan: Prepared, snapshot: SqliteSnapshot, values: Sequence[Any], limits: Limits
    ) -> Written:
        """What the statement writes is in the write set then. Raises RequestTooLarge (54000),
        StaleVersion, what the statement raises."""
        assert plan.write is not None
        self._check(plan, snapshot)
        descriptor = plan.write.bound.descriptor
        pinned = self._pin(descriptor.name)
        if pinned.version != descriptor.version:
            raise StaleVersion(
                f"table {descriptor.name!r} was changed since this transaction has begun; run it"
                " again",
                table=descriptor.name,
            )
        moment = self._moment_of(plan, snapshot)
        with own_rows(snapshot.connection, self._own_of(plan)):
            keys = self._writes.hidden_keys
            writing = Writing(snapshot.connection, plan, values, moment, limits, keys)
            written = writing.run()
        if len(self._writes.operations) + len(written.writes) > OPERATIONS_MAX:
            raise RequestTooLarge(
                f"a transaction writes at most {OPERATIONS_MAX} rows: COMMIT more often"
            )
        mark = self._writes.mark() if len(written.writes) > 1 else None
        try:
            for each in written.writes:
                apply(self._writes, descriptor, each)
        except BaseException:
            if mark is not None:
                self._writes.back_to(mark)
            raise
        return written

    @property
    def has_written(self) -> bool:
        return bool(self._writes.operations)

    def savepoint(self) -> Savepoint:
        return Savepoint(self._writes.mark(), len(self.steps))

    def roll_back_to(self, savepoint: Savepoint) -> None:
        self._writes.back_to(savepoint.writes)
        self.did(Step(None, back=savepoint.step))

    def request(self, request_id: bytes, attempt: int, on_conflict: OnConflict) -> ChangeRequest:
        return ChangeRequest(
            request_id,
            tuple(self._writes.operations),
            on_conflict=on_conflict,
            attempt=attempt,
            used=self._reads.used(),
        )

    # ------------------------------------------------------------ running again

    def did(self, step: Step) -> None:
        """Raises RequestTooLarge."""
        if len(self.steps) >= STEPS_MAX:
            raise RequestTooLarge(
                f"a transaction has at most {STEPS_MAX} statements that write: COMMIT more often"
            )
        self.steps.append(step)

    def close(self) -> None:
        if self._kept is not None:
            self._kept.close()
            self._kept = None
        self._reads.close()


def plan_types(types: Sequence[WireType | None]) -> Types:
    """As the query plan knows them; what it does not know the statement has to tell."""
    return tuple(t if t and (element_of(t) or t).name in KNOWN else None for t in types)
