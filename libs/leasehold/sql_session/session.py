"""The SQL session of one client on a node: the port `pgwire.session.Session`, for the wire and for
programs that embed a replica alike.

What a statement says is read by `sql/session/text.py`; who does it is decided here.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final
from zoneinfo import ZoneInfo

from leasehold.adapters.os.clock import random_bytes
from leasehold.adapters.os.memory_pool import MemoryPool
from leasehold.catalog.definitions import quoted
from leasehold.model.errors import LeaseholdError
from leasehold.pgwire.auth.scram_server import SALT_BYTES
from leasehold.pgwire.session import (
    Column,
    Deallocated,
    Notice,
    OpenPortals,
    Portal,
    PortalsClosed,
    Report,
    Status,
    TimeLimits,
    WouldBlock,
)
from leasehold.pgwire.wire_errors import InFailedTransaction, UnknownPortal
from leasehold.replica.notifications import Told
from leasehold.replica.replay_log import Asked, Types
from leasehold.replica.serving_node import SqlNode
from leasehold.replica.sessions import Activity
from leasehold.sql.ddl.passwords import has_passwords, with_verifiers
from leasehold.sql.planning.plan import Plans
from leasehold.sql.planning.plan import Prepared as Plan
from leasehold.sql.session.database_name import without_database
from leasehold.sql.session.text import read_text
from leasehold.sql.session_settings import WAIT_FOR_LSN
from leasehold.sql.syntax.cursor_movement import ALL, Direction, Movement
from leasehold.sql.syntax.long_names import CODE, with_short_names
from leasehold.sql.syntax.session_statements import (
    CloseCursor,
    CopyIn,
    CopyOut,
    CreateTableAs,
    Deallocate,
    DeclareCursor,
    Discard,
    Do,
    ExecuteStatement,
    Fetch,
    Listen,
    LockTables,
    NothingToDo,
    Notify,
    PrepareStatement,
    Reset,
    RowStatement,
    SchemaStatement,
    SessionStatement,
    Set,
    SetModes,
    Show,
    Unlisten,
)
from leasehold.sql_session.block_commands import BlockCommands, modes_of
from leasehold.sql_session.code_blocks import CodeBlocks
from leasehold.sql_session.fetch import CursorStatements
from leasehold.sql_session.named_statements import NamedStatements
from leasehold.sql_session.portals import CommandPortal
from leasehold.sql_session.prepared import Answer, PreparedStatement, check_same, plan_types
from leasehold.sql_session.row_statements import RowStatements
from leasehold.sql_session.running import NON_BLOCKING_CHARACTERS_MAX
from leasehold.sql_session.schema_statements import SchemaStatements
from leasehold.sql_session.search_path import SearchPath
from leasehold.sql_session.session_role import AUTHORIZATION
from leasehold.sql_session.session_state import SessionState
from leasehold.sql_session.settings_commands import AS_OF, MODES, MS
from leasehold.sql_session.shown_errors import show_names
from leasehold.sql_session.statement_batch import SeveralStatements, is_several
from leasehold.sql_session.statement_runner import StatementRunner
from leasehold.sql_session.table_as import TablesAs
from leasehold.sql_session.transaction_runner import TransactionRunner
from leasehold.transaction.block import BlockStatus, TransactionActive
from leasehold.values.oids import WireType

LOOK_S: Final = 1.0
"""How often a session that waits for notifications looks whether its node still runs."""
_FAILED: Final = BlockStatus.FAILED  # a member of an enum costs more than a call
_STATUS: Final = {
    BlockStatus.IDLE: Status.IDLE,
    BlockStatus.OPEN: Status.BLOCK,
    BlockStatus.FAILED: Status.FAILED,
}
_STATES: Final = {
    BlockStatus.IDLE: "idle",
    BlockStatus.OPEN: "idle in transaction",
    BlockStatus.FAILED: "idle in transaction (aborted)",
}


class SqlSession:
    """Called by one thread at a time; `cancel`, `time_limits` and `activity` from any."""

    def __init__(
        self,
        node: SqlNode,
        plans: Plans,
        *,
        user: str,
        process: int = 0,
        settings: Mapping[str, str] | None = None,
        role_id: int | None = None,
    ) -> None:
        """Open a session. `plans` are shared by those of a node; `settings` is what the client asks
        for at its start; `role_id` whom it has shown to be, else the role named `user`. Raises what
        they raise."""
        state = SessionState(node, plans, user, process, settings or {}, role_id)
        self._state = state
        self._running = state.running
        self._settings = state.settings
        self._cursors = state.cursors
        self._transactions = TransactionRunner(state)
        self._runner = StatementRunner(state, self._transactions)
        self._rows = RowStatements(self._runner)
        self._fetching = CursorStatements(self._runner, self._rows.prepare)
        self._changes = SchemaStatements(self._runner)
        self._tables_as = TablesAs(self._runner, self._rows)
        self._code = CodeBlocks(self._runner, self._changes, self._prepare)
        self._named = NamedStatements(self._runner, self._prepare, self.bind)
        self._block = BlockCommands(state, self._transactions)
        self._path = SearchPath(state, self._transactions)
        self._commands: dict[type, Callable[[Any], Answer]] = {
            **self._block.commands,
            Set: self._set,
            Reset: self._settings.reset,
            Show: lambda said: self._settings.show(said, in_block=not state.is_idle),
            Discard: self._discard,
            Deallocate: self._deallocate,
            CloseCursor: self._close_cursor,
            Listen: self._listen,
            Unlisten: self._unlisten,
            Notify: self._notify,
            NothingToDo: self._do_nothing,
        }
        node.sessions.enter(state.process, self)

    # ------------------------------------------------------------ the port

    @property
    def status(self) -> Status:
        return _STATUS[self._state.block.status]

    @property
    def hurried(self) -> bool:
        return self._running.non_blocking

    @hurried.setter
    def hurried(self, on: bool) -> None:
        self._running.non_blocking = on

    @property
    def answer_held(self) -> bool:
        return self._transactions.answer_held

    @answer_held.setter
    def answer_held(self, on: bool) -> None:
        self._transactions.answer_held = on

    @property
    def pool(self) -> MemoryPool:
        return self._state.node.pool

    @property
    def portals(self) -> OpenPortals:
        return self._cursors.portals

    @portals.setter
    def portals(self, those: OpenPortals) -> None:
        self._cursors.portals = those

    @property
    def settings(self) -> Mapping[str, str]:
        return self._settings.values.told

    @property
    def zone(self) -> ZoneInfo:
        return self._settings.caller.zone

    @property
    def time_limits(self) -> TimeLimits:
        given = self._settings.values
        return TimeLimits(
            given.ms("statement_timeout") / MS,
            given.ms("idle_session_timeout") / MS,
            given.ms("idle_in_transaction_session_timeout") / MS,
        )

    def statements(self, text: str) -> Sequence[SessionStatement]:
        if len(text) > NON_BLOCKING_CHARACTERS_MAX or self._running.has_computed:
            self._running.check_may_block()
        if has_passwords(text):
            self._running.check_may_block()
            text = with_verifiers(text, lambda: random_bytes(SALT_BYTES))
        text, cuts = with_short_names(self._state.trace.read(text))
        if cuts:
            self._running.check_may_block()  # called again it would tell them again
            self._settings.reports += [Notice("NOTICE", CODE, cut.notice) for cut in cuts]
        text = without_database(text, self._settings.caller.database)
        found = read_text(text)
        self._state.has_several = len(found) > 1
        self._changes.several = SeveralStatements(text, found) if is_several(found) else None
        if self._changes.several is not None and self._changes.several.changes:
            text, found = self._look_up_several(text, found)
        return found

    def _look_up_several(
        self, text: str, found: tuple[SessionStatement, ...]
    ) -> tuple[str, tuple[SessionStatement, ...]]:
        """Return a text of several schema changes, which may be one request, with the schemas of
        what they name."""
        if self._state.block.status is _FAILED or self._path.is_public_alone:
            return text, found
        text, found = self._path.look_up_text(text, found)
        self._changes.several = SeveralStatements(text, found)
        return text, found

    def prepare(
        self, statement: SessionStatement, types: Sequence[WireType | None]
    ) -> PreparedStatement:
        if self._state.block.status is BlockStatus.FAILED and not statement.leaves_failed_block:
            raise InFailedTransaction
        return self._prepare(statement, plan_types(types))

    def _prepare(self, statement: SessionStatement, known: Types) -> PreparedStatement:
        statement = self._look_up(statement)
        meaning = statement.meaning
        if isinstance(meaning, RowStatement) and meaning.cursor is not None:
            return self._fetching.prepare_explain(statement, known)
        if isinstance(meaning, RowStatement):
            asked = Asked(statement.text, known, ())
            return self._runner.run(statement, lambda: self._rows.prepare(statement, known), asked)
        if isinstance(meaning, CopyIn):
            self._running.check_may_block()
            return self._runner.run(statement, lambda: self._rows.prepare_copy(statement, meaning))
        if isinstance(meaning, CopyOut):
            return self._rows.prepare_copy_out(statement, meaning)
        if isinstance(meaning, DeclareCursor):
            return self._fetching.prepare_declare(statement, known)
        if isinstance(meaning, Fetch):
            return self._fetching.prepare_fetch(statement)
        if isinstance(meaning, SchemaStatement):
            return self._changes.prepare(statement, known)
        if isinstance(meaning, CreateTableAs):
            return self._tables_as.prepare(statement, known)
        if isinstance(meaning, Do):
            return self._code.prepare(statement, known)
        if isinstance(meaning, PrepareStatement):
            return self._named.prepare(statement, known)
        if isinstance(meaning, ExecuteStatement):
            return self._named.execute(statement, known)
        if isinstance(meaning, LockTables):
            return PreparedStatement(statement, known, (), None, self._open_lock)
        shown = self._settings.shown(meaning)
        return PreparedStatement(statement, known, (), shown, self._open_command)

    def at_bind(self, prepared: PreparedStatement) -> PreparedStatement:
        said = prepared.statement.meaning
        if not isinstance(said, Fetch) or said.moves:
            return prepared
        return self._fetching.prepare_fetch(prepared.statement)

    def bind(self, prepared: PreparedStatement, values: Sequence[Any]) -> Portal:
        if self._state.block.status is _FAILED and not prepared.leaves_failed_block:
            raise InFailedTransaction
        prepared = self._look_up_again(prepared)
        plan = prepared.plan
        if plan is not None and (
            any(map(self._state.node.has_newer, plan.tables.values()))
            or (plan.named and self._has_other_names(plan))
        ):
            self.recheck(prepared)
        portal: Portal = prepared.open(prepared, values)
        return portal

    def _look_up(self, statement: SessionStatement) -> SessionStatement:
        if not self._path.is_asked(statement):
            return statement
        return self._runner.run(statement, lambda: self._path.look_up(statement))

    def _look_up_again(self, prepared: PreparedStatement) -> PreparedStatement:
        """Return a statement as its names are found now. Raises CachedResultChanged."""
        statement, several = prepared.statement, self._changes.several
        said = statement.said or statement
        if said is statement and not self._path.is_asked(statement):
            return prepared
        if said is not statement and several is not None and several.changes:
            return prepared  # looked up with those beside it
        if self._look_up(said).text == statement.text:
            return prepared
        fresh = self._prepare(said, prepared.types)
        if fresh.plan is not None:
            check_same(prepared, fresh.plan)
        return fresh

    def _has_other_names(self, plan: Plan) -> bool:
        find = self._state.node.access.find_named
        return any(find(name) != each for name, each in plan.named)

    def recheck(self, prepared: PreparedStatement) -> None:
        if isinstance(prepared.statement.meaning, RowStatement):
            text, types = prepared.statement.text, prepared.types

            def work() -> None:
                plan = self._runner.plan(text, types)
                check_same(prepared, plan)
                prepared.plan = plan

            self._runner.run(prepared.statement, work)

    def declared(self, name: str) -> Sequence[Column] | None:
        return self._cursors.columns(name)

    def prepare_next(self, name: str, rows_max: int) -> PreparedStatement:
        movement = Movement(Direction.FORWARD, rows_max or ALL)
        text = f"fetch {rows_max or 'all'} from {quoted(name)}"
        said = Fetch(name, movement, moves=False)
        return self._fetching.prepare_fetch(SessionStatement(text, 0, said))

    def close_declared(self, name: str) -> None:
        self._cursors.close(name)

    def end_batch(self) -> WouldBlock | None:
        try:
            waits = self._transactions.end_batch()
        except LeaseholdError as error:
            self._state.trace.failed(error.sqlstate)
            show_names(error, self._state.node.access)
            raise
        if waits is None:
            self._state.has_several = False
            self._state.trace.end(in_block=not self._state.is_idle)
        return waits

    def fail(self) -> None:
        self._state.has_several = False
        if self._state.is_idle:
            self._transactions.end(committed=False)
        else:
            self._state.block.fail()
        self._state.trace.end(in_block=not self._state.is_idle)

    def take_reports(self) -> Sequence[Report]:
        return self._settings.take_reports()

    @property
    def has_notifications(self) -> bool:
        """Whether something waits that was told to a channel it listens to; for any thread."""
        return self._state.listening.waits

    def take_notifications(self, bytes_max: int) -> Sequence[Told]:
        if not self._state.is_idle:
            return ()
        return self._state.listening.take(bytes_max)

    def wait_notifications(self, timeout_s: float | None) -> bool:
        """Return whether something waits to be taken, after that time at the latest, None: once it
        does. It can be cancelled as a statement can. Raises NotificationsLost, and what has stopped
        the node."""
        state, running = self._state, self._running
        end_s = None if timeout_s is None else time.monotonic() + timeout_s
        running.begin(0.0, "waiting for notifications")
        try:
            while True:
                left_s = LOOK_S if end_s is None else min(end_s - time.monotonic(), LOOK_S)
                found = state.listening.wait(max(left_s, 0.0), running.stopped)
                why = running.why_stopped()
                if why is not None:
                    raise why
                if found or left_s < LOOK_S:
                    return found
                state.node.check_running()
        finally:
            running.end()

    def cancel(self, reason: Exception) -> None:
        self._running.cancel(reason)
        self._state.node.wake_waiters()
        self._state.node.notifications.wake_waiters()

    def close(self) -> None:
        self._state.node.sessions.leave(self._state.process, self)
        try:
            self._transactions.end(committed=False)
            self._state.block.end()
            self._cursors.close(None)
        finally:
            self._state.locks.close()
            self._state.listening.close()

    def activity(self) -> Activity:
        """Return what it does now."""
        state, running = self._state, self._running
        isolation = state.block.isolation
        return Activity(
            state.process,
            state.user,
            self._settings.values["application_name"],
            state.label,
            "active" if running.runs else _STATES[state.block.status],
            None if isolation is None else isolation.spoken,
            running.text,
            state.opened_us,
            self._transactions.began_us,
            running.began_us,
            state.role.login_id,
        )

    def short_rows(
        self, prepared: PreparedStatement, values: Sequence[Any]
    ) -> list[tuple[Any, ...]] | None:
        """Return all rows of a query, as `ShortStatements.rows`, for programs without portals."""
        prepared = self._look_up_again(prepared)
        return self._runner.short.rows(prepared, values)

    # ------------------------------------------------------------ commands

    def _open_command(self, prepared: PreparedStatement, values: Sequence[Any]) -> Portal:
        statement = prepared.statement
        meaning = statement.meaning
        command = self._commands[type(meaning)]
        return CommandPortal(lambda: self._runner.run(statement, lambda: command(meaning)))

    def _open_lock(self, prepared: PreparedStatement, _: Sequence[Any]) -> Portal:
        said = prepared.statement.meaning
        assert isinstance(said, LockTables)
        return CommandPortal(lambda: self._named.lock(said))

    def _set(self, said: Set) -> Answer:
        if said.name in MODES:
            return self._block.set_modes(SetModes(modes_of(said), ever=False))
        if said.name == AS_OF and not self._state.is_idle:
            return self._block.set_as_of(said)
        if said.name == WAIT_FOR_LSN and said.value is not None:
            self._block.wait_for_lsn(said.value)
        return self._settings.set(said, in_block=not self._state.is_idle)

    def _discard(self, said: Discard) -> Answer:
        if said.what == "sequences":
            self._state.sequence_values.discard()
        if said.what == "temp":
            self._transactions.discard_temporary()
        if said.what != "all":
            return Answer(f"DISCARD {said.what.upper()}")
        if not self._state.is_idle:
            raise TransactionActive("DISCARD ALL cannot run inside a transaction block")
        self._cursors.close(None)
        self._named.drop(None)
        self._settings.reports += [Deallocated(None), PortalsClosed(None)]
        self._settings.reset(Reset(None))
        self._settings.reset(Reset(AUTHORIZATION))
        self._state.sequence_values.discard()
        self._transactions.discard_temporary()
        self._state.locks.give_all()
        self._state.listening.unlisten(None)
        return Answer("DISCARD ALL")

    def _listen(self, said: Listen) -> Answer:
        self._state.listening.listen(said.channel)
        return Answer("LISTEN")

    def _unlisten(self, said: Unlisten) -> Answer:
        self._state.listening.unlisten(said.channel)
        return Answer("UNLISTEN")

    def _notify(self, said: Notify) -> Answer:
        self._transactions.transaction().notify(said.channel, said.payload)
        return Answer("NOTIFY")

    def _do_nothing(self, said: NothingToDo) -> Answer:
        if said.tag == "VACUUM" and not self._state.is_idle:
            raise TransactionActive("VACUUM cannot run inside a transaction block")
        return Answer(said.tag)

    def _deallocate(self, said: Deallocate) -> Answer:
        if not self._named.drop(said.name) or said.name is None:
            self._settings.reports.append(Deallocated(said.name))
        return Answer("DEALLOCATE ALL" if said.name is None else "DEALLOCATE")

    def _close_cursor(self, said: CloseCursor) -> Answer:
        """What the protocol has made is closed by whoever speaks it."""
        found = self._cursors.close(said.name)
        if said.name is None or (not found and self._cursors.portals.find(said.name) is not None):
            self._settings.reports.append(PortalsClosed(said.name))
        elif not found:
            raise UnknownPortal(f'cursor "{said.name}" does not exist')
        return Answer("CLOSE CURSOR ALL" if said.name is None else "CLOSE CURSOR")
