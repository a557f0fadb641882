"""One transaction of a SQL session: what it has pinned, which moment it sees, what it reads."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final

from leasehold.adapters.clock import random_bytes, unix_us
from leasehold.adapters.sqlite_query import Limits, Rows, run
from leasehold.adapters.sqlite_snapshot import SqliteSnapshot
from leasehold.client.replica_reads import Reads
from leasehold.client.serving_node import SqlNode
from leasehold.pgwire.wire_types import WireType
from leasehold.schema.descriptor import Descriptor
from leasehold.schema.types import KNOWN, Type
from leasehold.sql.functions_session import Caller, CallersMoment
from leasehold.sql.query_plan import Plans, Prepared
from leasehold.transaction.isolation import Isolation
from leasehold.transaction.pinned import check_pinned

SEED_BYTES: Final = 16
Types = tuple[Type | None, ...]
CoherentWait = Callable[[], None]


class SqlTransaction:
    """Between two commits. `block`: it lasts over several statements, so what it uses is leased
    and keeps its version to its end (D8); a single statement needs neither (D3)."""

    def __init__(
        self,
        node: SqlNode,
        plans: Plans,
        isolation: Isolation,
        caller: Caller,
        label: str | None,
        wait_coherent: CoherentWait,
    ) -> None:
        """`label` names a block to those who wait for it; None: no block."""
        self.isolation = isolation
        self.moment = CallersMoment.of(unix_us(), random_bytes(SEED_BYTES), caller)
        self._plans = plans
        self._block = label is not None
        self._reads: Reads = node.single_read() if label is None else node.reads(label)
        self._wait_coherent = wait_coherent
        self._kept: SqliteSnapshot | None = None

    def says(self, text: str) -> None:
        """What it does now, for those who wait for it."""
        self._reads.says(text)

    # ------------------------------------------------------------ preparing

    def plan(self, text: str, types: Types) -> Prepared:
        """Raises what `prepare` of the query plan raises, NotCoherent."""
        snapshot, plan = self.planned(text, types)
        self.let_go(snapshot)
        return plan

    def planned(self, text: str, types: Types) -> tuple[SqliteSnapshot, Prepared]:
        """Of a block the versions first, which are pinned, then the snapshot: it then holds them,
        or is too new for them, which `read` finds out."""
        if self._block and not self.isolation.one_moment:
            plan = self._plans.get(text, self._pin, types)
            return self.snapshot(), plan
        snapshot = self.snapshot()
        try:
            return snapshot, self._plans.get(text, snapshot.newest, types)
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
        if self._block:
            for descriptor in plan.tables.values():
                check_pinned(descriptor, snapshot.min_version(descriptor.table_id))
        return run(snapshot.connection, plan, values, moment=self.moment, limits=limits)

    def close(self) -> None:
        if self._kept is not None:
            self._kept.close()
            self._kept = None
        self._reads.close()


def plan_types(types: Sequence[WireType | None]) -> Types:
    """As the query plan knows them; what it does not know the statement has to tell."""
    return tuple(t if isinstance(t, Type) and t.name in KNOWN else None for t in types)
