"""How a transaction of a session begins: its level, the LSN that it reads as of, its moment."""

from __future__ import annotations

from collections.abc import Callable

from leasehold.adapters.os.clock import fresh_seed, unix_us
from leasehold.adapters.sqlite.statement_memory import MIB
from leasehold.catalog.elements import CommitContext
from leasehold.model.errors import NotCoherent
from leasehold.replica.deferred_keys import ALL_DEFERRED, AS_DEFINED
from leasehold.replica.sequences.session_values import DrawnSequenceValues
from leasehold.sql.functions.system.session import CallerContext
from leasehold.sql.session_settings import AT_COMMIT
from leasehold.sql_session.row_claims import RowClaims
from leasehold.sql_session.session_state import SessionState
from leasehold.sql_session.settings_commands import MS
from leasehold.sql_session.transaction import ReplayableTransaction
from leasehold.transaction.isolation import Isolation, Sees, chosen
from leasehold.values.dates import AsOf


class TransactionMaker:
    """Makes the transactions of one session; it has no state of its own."""

    def __init__(self, state: SessionState) -> None:
        self._state = state

    def new_context(self) -> CallerContext:
        return CallerContext.of(unix_us(), fresh_seed(), self._state.settings.caller)

    def choose_level(self, level: str | None, as_of: AsOf | None) -> tuple[Isolation, AsOf | None]:
        """Return the isolation and the AS OF of a transaction that asks for these; for None, as
        the settings say. Raises FeatureNotSupported for AS OF at a level that can't."""
        settings = self._state.settings
        if as_of is None:
            as_of = settings.as_of
        if level is None and as_of is None:
            return settings.default_isolation, None
        return chosen(level, past=as_of is not None), as_of

    def choose_lsn(self, isolation: Isolation, as_of: AsOf | None) -> int | None:
        """Return the LSN that a transaction which begins now reads as of; None: what is newest.

        Waits for coherence or a barrier, where the level needs one. Raises what `snapshot_lsn_of`
        raises.
        """
        if not isolation.one_snapshot:
            return None
        if as_of is None and isolation.sees is not Sees.BARRIER:
            self.wait_coherent()
        elif not isinstance(as_of, int):
            self._state.running.check_may_block()
        return self._state.node.snapshot_lsn(isolation, as_of, self._wait_s)

    def make(
        self, isolation: Isolation, context: CommitContext, lsn: int | None, *, block: bool
    ) -> ReplayableTransaction:
        """Return a new transaction. One of a block leases what it uses, under the session's label,
        which those see who wait for it."""
        state = self._state
        node, running = state.node, state.running
        looks = state.settings.values["leasehold.foreign_keys"]
        return ReplayableTransaction(
            node.reads(state.label, lsn) if block else node.single_read(snapshot_lsn=lsn),
            state.plan_of,
            isolation,
            context,
            self.wait_coherent,
            block=block,
            sequence_values=DrawnSequenceValues(
                node.sequence_values, state.sequence_values, self.check_may_write, running.stopped
            ),
            check_may_block=running.check_may_block,
            privileges=state.privileges,
            notifier=(node.name, state.process),
            claims=RowClaims(state.locks),
            temporary=state.temporary,
            temporary_bytes_max=int(state.settings.values["leasehold.temp_tables_mb"]) * MIB,
            deferred=ALL_DEFERRED if looks == AT_COMMIT else AS_DEFINED,
        )

    @property
    def _wait_s(self) -> float:
        return self._state.settings.values.ms("leasehold.coherent_timeout") / MS

    def wait_coherent(self) -> None:
        """Return once the node is coherent. Raises NotCoherent after as long as the session waits
        for it, or why the statement was stopped."""
        node = self._state.node
        if not self._waited(lambda: node.coherent):
            raise NotCoherent(
                "this node is not coherent: it has had no lease from the master for"
                f" {self._wait_s:g} s; read on another one, or SET leasehold.coherent_timeout"
            )

    def wait_for_lsn(self, lsn: int) -> None:
        """Return once reads see the commit `lsn`. Raises as `wait_coherent`."""
        node = self._state.node
        if not self._waited(lambda: node.sees_below(lsn + 1)):
            raise NotCoherent(
                f"this node has not applied LSN {lsn} in {self._wait_s:g} s; is it one of this"
                " database? ask again, on another node, or SET leasehold.coherent_timeout"
            )

    def _waited(self, met: Callable[[], bool]) -> bool:
        """Return whether it came true while the session waits for its node. Raises why the
        statement was stopped."""
        node, running = self._state.node, self._state.running
        if met():
            return True
        running.check_may_block()
        came_true = node.wait(lambda: running.stopped() or met(), self._wait_s)
        why = running.why_stopped()
        if why is not None:
            raise why
        return came_true

    def check_may_write(self) -> None:
        """Raise ReadOnlyTransaction where the transaction is read only."""
        self._state.check_may_write()
