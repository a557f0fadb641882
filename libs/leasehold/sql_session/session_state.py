"""What a session has beside the transaction that it runs."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial

from leasehold.adapters.os.clock import unix_us
from leasehold.replica.advisory_locks import Waits
from leasehold.replica.sequences.session_values import SessionSequenceValues
from leasehold.replica.serving_node import SqlNode
from leasehold.replica.temporary_tables import TemporaryTables
from leasehold.sql.planning.plan import Plans
from leasehold.sql_session.advisory_locks import SessionLocks
from leasehold.sql_session.cursors import SqlCursors
from leasehold.sql_session.listening import SessionListening
from leasehold.sql_session.privilege_check import PrivilegeCheck
from leasehold.sql_session.running import Running
from leasehold.sql_session.session_role import SessionRole
from leasehold.sql_session.session_trace import SessionTrace
from leasehold.sql_session.settings_commands import MS, SettingCommands
from leasehold.sql_session.system_views import NodeTelling
from leasehold.transaction.block import Block, BlockStatus, ReadOnlyTransaction

_IDLE = BlockStatus.IDLE  # a member of an enum costs more than a call


class SessionState:
    """The settings, cursors and transaction block of one session, and the node that it is on.

    Only the parts change, each in its own class. `label` names the session to those who wait for a
    version that it has pinned.
    """

    def __init__(
        self,
        node: SqlNode,
        plans: Plans,
        user: str,
        process: int,
        settings: Mapping[str, str],
        role_id: int | None = None,
    ) -> None:
        """See `SqlSession`."""
        self.node = node
        self.user = user
        self.process = node.sessions.number(process)
        self.opened_us = unix_us()
        self.label = f"SQL session {self.process} of {user}"
        self.cursors = SqlCursors(node.temp)
        self.role = SessionRole(user, lambda: node.access, role_id)
        self.running = Running(node.sessions.computing)
        self.locks = SessionLocks(
            node.advisory_locks,
            self.process,
            self._lock_waits,
            lambda: not self.running.non_blocking,
        )
        self.listening = SessionListening(node.notifications, self.process)
        self.settings = SettingCommands(
            settings,
            role=self.role,
            database=node.database,
            process=self.process,
            node=NodeTelling(
                node,
                self.role,
                self.cursors.told,
                self.locks,
                self._warn,
                self.listening,
                lambda: self.check_may_write(),
            ),
        )
        self.block = Block()
        self.privileges = PrivilegeCheck()
        self.trace = SessionTrace(node.spans, self.process, node.database, node.name)
        self.sequence_values = SessionSequenceValues()
        self.temporary = TemporaryTables(self.process)
        self.has_several = False
        """The statements of one text run now, which are one transaction."""
        self.plan_of = partial(plans.get, making=self.running.planning)

    def _lock_waits(self) -> Waits:
        """Return how long the statement that runs waits for a lock. Raises WouldBlock where it must
        not wait."""
        self.running.check_may_block()
        return Waits(self.running.stopped, self.settings.values.ms("lock_timeout") / MS)

    def _warn(self, sqlstate: str, words: str) -> None:
        self.settings.warn(sqlstate, words)

    def check_may_write(self) -> None:
        """Raise ReadOnlyTransaction where the transaction is read only."""
        name = "default_transaction_read_only" if self.is_idle else "transaction_read_only"
        if self.settings.values.on(name):
            raise ReadOnlyTransaction("cannot write in a read-only transaction")

    @property
    def is_idle(self) -> bool:
        """Whether the client is outside a transaction block."""
        return self.block.status is _IDLE
