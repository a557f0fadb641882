"""A query that is a transaction by itself, done in a hurry: nothing of it is pinned (D3), written
or verified, so a snapshot is all that it takes. Also what it shares with an update of that kind
(`fast_update.py`)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any
from zoneinfo import ZoneInfo

from leasehold.adapters.sqlite.short_statements import brief_rows, is_brief, needs_nothing
from leasehold.adapters.sqlite.snapshot import SqliteSnapshot
from leasehold.model.errors import NotCoherent
from leasehold.pgwire.session import WouldBlock
from leasehold.replica.reads import Reads
from leasehold.replica.replay_log import Types
from leasehold.replica.sql_reads import Preparing
from leasehold.sql.planning.plan import Prepared, Write
from leasehold.sql_session.portals import PreparedStatement
from leasehold.sql_session.running import HURRIED_ROWS_MAX


def follows_its_row(write: Write) -> bool:
    """Does it change one row, and to nothing but what is computed of that row at commit?"""
    columns = write.bound.descriptor.columns
    return write.computed is not None and all(column.derived is None for column in columns)


class SingleReads:
    """Of one session. All methods raise Waits, and what preparing raises."""

    def __init__(self, reads: Reads, plan_of: Preparing) -> None:
        """`plan_of` raises WouldBlock instead of making a plan."""
        self._reads = reads
        self._plan_of = plan_of

    def plan(self, text: str, types: Types, zone: ZoneInfo) -> Prepared:
        with self.snapshot() as snapshot:
            return self._plan_of(text, snapshot.newest, types, zone=zone)

    def rows(
        self, prepared: PreparedStatement, values: Sequence[Any], zone: ZoneInfo
    ) -> list[tuple[Any, ...]] | None:
        """All of them; None: it is to run in a transaction. Raises CachedResultChanged."""
        with self.snapshot() as snapshot:
            plan, simple = self.planned(prepared, snapshot, zone)
            if not simple:
                return None
            found = brief_rows(snapshot, plan, values, HURRIED_ROWS_MAX)
        if found is None:
            prepared.takes_long = True
            raise WouldBlock
        return found

    def planned(
        self, prepared: PreparedStatement, snapshot: SqliteSnapshot, zone: ZoneInfo
    ) -> tuple[Prepared, bool]:
        """Its plan, and whether it can be done without a transaction."""
        here = prepared.plan_in(snapshot.catalog, zone)
        if here is not None:
            return here
        plan = self._plan_of(prepared.statement.text, snapshot.newest, prepared.types, zone=zone)
        alone = needs_nothing(plan) and (plan.write is None or follows_its_row(plan.write))
        simple = alone and is_brief(snapshot.connection, plan)
        prepared.is_planned(snapshot.catalog, plan, simple=simple)
        return plan, simple

    def snapshot(self) -> SqliteSnapshot:
        """C2: a node that is not coherent may become so, which is waited for elsewhere."""
        try:
            return self._reads.brief_snapshot()
        except NotCoherent:
            raise WouldBlock from None
