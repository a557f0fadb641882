"""Statements that surely end soon and are transactions by themselves, run on the event loop.

A query needs nothing but a snapshot: nothing of it is pinned (D3), written or verified. An UPDATE
of one row by its key whose values may be computed at commit
(`transaction/commit_time_updates.py`) needs a snapshot that shows that the row is there, and that
nothing of it fails.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from leasehold.adapters.sqlite.read_catalog import ReadCatalog
from leasehold.adapters.sqlite.short_statements import brief_rows, is_brief, needs_nothing
from leasehold.adapters.sqlite.snapshot import SqliteSnapshot
from leasehold.adapters.sqlite.write import found_in
from leasehold.catalog.roles import BOOTSTRAP_ROLE
from leasehold.model.errors import InsufficientPrivilege, NotCoherent, Refused
from leasehold.pgwire.session import WouldBlock
from leasehold.replica.replay_log import Asked, Types
from leasehold.sql.planning.plan import Prepared, Write
from leasehold.sql.session.text import as_said
from leasehold.sql_session.prepared import PreparedStatement
from leasehold.sql_session.running import BOUNDED_ROWS_MAX
from leasehold.sql_session.session_state import SessionState
from leasehold.sql_session.transaction_runner import TransactionRunner

UPDATED_ROWS_MAX: Final = 1  # that have one key


class ShortStatements:
    """The short statements of one session.

    `may_run` is the one place that decides whether a statement is tried here first. What turns out
    to need a transaction is run in one, as if nobody had looked; what turns out to take long raises
    WouldBlock, and is called again where it may block.
    """

    def __init__(self, state: SessionState, transactions: TransactionRunner) -> None:
        self._state = state
        self._running = state.running
        self._transactions = transactions
        self._reads = state.node.single_read()

    @property
    def may_run(self) -> bool:
        """Whether the statement that comes now must not block, is a transaction by itself, and
        reads what is newest."""
        return self._running.non_blocking and self._transactions.would_begin_newest

    def plan(self, text: str, types: Types) -> Prepared:
        """Return the plan of a statement, if one is made. Raises WouldBlock."""
        with self._snapshot() as snapshot:
            zone = self._state.settings.caller.zone
            find = snapshot.access.find_named
            return self._state.plan_of(text, snapshot.newest, types, zone=zone, find_named=find)

    def rows(
        self, prepared: PreparedStatement, values: Sequence[Any]
    ) -> list[tuple[Any, ...]] | None:
        """Return all rows of a query; None: it is to run in a transaction.

        Raises WouldBlock, CachedResultChanged and what the query raises.
        """
        if prepared.takes_long or not self.may_run:
            return None
        found = self._run(prepared, values, BOUNDED_ROWS_MAX)
        if found is None:
            return None
        rows = found[1]
        if rows is None:
            prepared.takes_long = True
            raise WouldBlock
        return rows

    def update(self, prepared: PreparedStatement, values: Sequence[Any]) -> bool:
        """Change one row as a transaction by itself; False: it is to run in a transaction.

        Raises WouldBlock, CachedResultChanged and what comes of its values.
        """
        transactions = self._transactions
        if prepared.takes_long or not (self.may_run and transactions.may_update_at_commit):
            return False
        found = self._run(prepared, values, UPDATED_ROWS_MAX)
        if found is None:
            return False
        plan, rows = found
        if not rows:
            return False  # it is not there, or took long
        assert plan.write is not None
        bound = plan.write.bound
        update = found_in(bound, rows[0])
        if any(update.new.get(e, update.before.get(e)) is None for e in bound.required):
            return False  # with an error, and all that follows from one
        asked = Asked(prepared.statement.text, prepared.types, tuple(values))
        transactions.begin_update(asked, plan.write, update)
        return True

    def _run(
        self, prepared: PreparedStatement, values: Sequence[Any], rows_max: int
    ) -> tuple[Prepared, list[tuple[Any, ...]] | None] | None:
        """Return the plan and its rows, None of more than `rows_max` or where they took long; None
        where it is no short statement."""
        self._running.show_activity(prepared.statement.text)
        try:
            with self._snapshot() as snapshot:
                catalog = snapshot.catalog
                plan, is_short = self._planned(prepared, snapshot, catalog)
                role_id = self._state.settings.caller.role_id
                if role_id != BOOTSTRAP_ROLE and not prepared.is_allowed(catalog, role_id):
                    self._state.settings.see_new_names()
                    try:
                        self._state.privileges.check(plan, catalog.access, role_id)
                    except InsufficientPrivilege:
                        return None  # it is refused, and audited, where all statements are
                    prepared.keep_allowed(catalog, role_id)
                return (plan, brief_rows(snapshot, plan, values, rows_max)) if is_short else None
        except Refused as error:
            raise as_said(error, prepared.statement) from error

    def _planned(
        self, prepared: PreparedStatement, snapshot: SqliteSnapshot, catalog: ReadCatalog
    ) -> tuple[Prepared, bool]:
        """Return the plan on a snapshot, and whether it is short."""
        zone = self._state.settings.caller.zone
        known = prepared.newest_plan(catalog, zone)
        if known is not None:
            return known
        text, types = prepared.statement.text, prepared.types
        find = catalog.access.find_named
        plan = self._state.plan_of(text, snapshot.newest, types, zone=zone, find_named=find)
        is_short = (
            needs_nothing(plan)
            and (plan.write is None or _follows_its_row(plan.write))
            and is_brief(snapshot.connection, plan)
        )
        prepared.keep_newest_plan(catalog, plan, is_short=is_short)
        return plan, is_short

    def _snapshot(self) -> SqliteSnapshot:
        """Open a snapshot of what is newest (C2). Raises WouldBlock where the node is not coherent:
        it may become so, which is waited for elsewhere."""
        try:
            return self._reads.brief_snapshot()
        except NotCoherent:
            raise WouldBlock from None


def _follows_its_row(write: Write) -> bool:
    """Return whether a write changes one row to nothing but what is computed of that row at its
    commit."""
    columns = write.bound.descriptor.columns
    return write.computed is not None and all(column.derived is None for column in columns)
