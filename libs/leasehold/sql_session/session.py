"""One client's SQL session on a node: the port `pgwire.session.Session`, for the wire and for
programs that embed a replica alike.

What a statement says is read by `sql/session/text.py`; who does it is decided here.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from typing import Any, Final, TypeVar
from zoneinfo import ZoneInfo

from leasehold.adapters.os.clock import unix_us
from leasehold.adapters.os.row_spool import SpoolRoom
from leasehold.adapters.sqlite.query import Limits
from leasehold.catalog.definitions import quoted
from leasehold.model.errors import (
    CanceledUnderWay,
    FeatureNotSupported,
    LeaseholdError,
    QueryCanceled,
    Refused,
)
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
from leasehold.pgwire.wire_errors import Canceled, InFailedTransaction, UnknownPortal
from leasehold.replica.replay_log import Asked, Step, Types
from leasehold.replica.serving_node import SqlNode
from leasehold.replica.sessions import Activity
from leasehold.sql.ddl.schema_statements import Said
from leasehold.sql.planning.plan import Plans
from leasehold.sql.planning.plan import Prepared as Plan
from leasehold.sql.session.text import read_text, shifted
from leasehold.sql.syntax.cursor_movement import ALL, Direction, Movement
from leasehold.sql.syntax.long_names import CODE, with_short_names
from leasehold.sql.syntax.session_statements import (
    CloseCursor,
    CopyIn,
    CopyOut,
    Deallocate,
    DeclareCursor,
    Discard,
    Fetch,
    NothingToDo,
    Reset,
    RowStatement,
    SchemaStatement,
    SessionStatement,
    Set,
    SetModes,
    Show,
)
from leasehold.sql.syntax.statements import Explain, Truncate
from leasehold.sql_session.block import MS, SessionBlock, modes_of
from leasehold.sql_session.cursors import SqlCursors
from leasehold.sql_session.fast_read import SingleReads
from leasehold.sql_session.fast_update import SingleUpdates
from leasehold.sql_session.fetch import CursorStatements
from leasehold.sql_session.portals import Answer, CommandPortal, PreparedStatement, check_same
from leasehold.sql_session.row_statements import RowStatements
from leasehold.sql_session.running import Running
from leasehold.sql_session.schema_changes import (
    follow_jobs,
    give_back_numbers,
    notices_of,
    plan_lines,
    submit_change,
    tag_of,
)
from leasehold.sql_session.settings_commands import AS_OF, MODES, TEXT, SettingCommands
from leasehold.sql_session.statement_batch import NOT_ONE, WHY, SeveralStatements, is_several
from leasehold.sql_session.system_views import NodeTelling
from leasehold.sql_session.transaction import SqlTransaction, plan_types
from leasehold.transaction.block import Standing, TransactionActive
from leasehold.values.oids import WireType

T = TypeVar("T")
HURRIED_CHARS_MAX: Final = 512
"""Longer texts take their time to be read."""
_FAILED: Final = Standing.FAILED  # a member of an enum costs more than a call
_STATUS: Final = {
    Standing.IDLE: Status.IDLE,
    Standing.OPEN: Status.BLOCK,
    Standing.FAILED: Status.FAILED,
}
_STATES: Final = {
    Standing.IDLE: "idle",
    Standing.OPEN: "idle in transaction",
    Standing.FAILED: "idle in transaction (aborted)",
}


class SqlSession:
    """Called by one thread at a time; `cancel`, `time_limits` from any. `plans` are shared by the
    sessions of a node."""

    def __init__(
        self,
        node: SqlNode,
        plans: Plans,
        *,
        user: str,
        process: int = 0,
        settings: Mapping[str, str] | None = None,
    ) -> None:
        """`settings`: what the client asks for at its start. Raises what they raise."""
        self._node = node
        self._cursors = SqlCursors()
        self._several = False
        self._changes: SeveralStatements | None = None  # of the text that is run now
        self._process, self._user, self._opened_us = node.sessions.number(process), user, unix_us()
        self._settings = SettingCommands(
            settings or {},
            user=user,
            database=node.database,
            process=self._process,
            node=NodeTelling(node, self._cursors.told),
        )
        self._running = Running()
        self._label = f"SQL session {self._process} of {user}"
        self._block = SessionBlock(
            node, plans, self._settings, self._running, self._label, self._cursors
        )
        self._rows = RowStatements(self)
        self._fetching = CursorStatements(self, self._cursors, self._rows.prepare)
        self._single = SingleReads(node.single_read(), self._block.plan_of)
        self._updates = SingleUpdates(self._single)
        self._commands: dict[type, Callable[[Any], Answer]] = {
            **self._block.commands,
            Set: self._set,
            Reset: self._settings.reset,
            Show: lambda said: self._settings.show(said, in_block=not self._idle),
            Discard: self._discard,
            Deallocate: self._deallocate,
            CloseCursor: self._close_cursor,
            NothingToDo: self._do_nothing,
        }
        node.sessions.enter(self._process, self)

    # ------------------------------------------------------------ the port

    @property
    def status(self) -> Status:
        return _STATUS[self._block.standing]

    @property
    def hurried(self) -> bool:
        return self._running.hurried

    @hurried.setter
    def hurried(self, on: bool) -> None:
        self._running.hurried = on

    @property
    def answer_held(self) -> bool:
        return self._block.answer_held

    @answer_held.setter
    def answer_held(self, on: bool) -> None:
        self._block.answer_held = on

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
        if len(text) > HURRIED_CHARS_MAX:
            self._running.may_wait()
        text, cuts = with_short_names(text)
        if cuts:
            self._running.may_wait()  # called again it would tell them again
            self._settings.reports += [Notice("NOTICE", CODE, cut.notice) for cut in cuts]
        found = read_text(text)
        self._several = len(found) > 1
        self._changes = SeveralStatements(text, found) if is_several(found) else None
        return found

    def prepare(
        self, statement: SessionStatement, types: Sequence[WireType | None]
    ) -> PreparedStatement:
        if self._block.standing is Standing.FAILED and not statement.leaves_failed_block:
            raise InFailedTransaction
        meaning = statement.meaning
        known = plan_types(types)
        if isinstance(meaning, RowStatement) and meaning.cursor is not None:
            return self._fetching.prepare_explain(statement, known)
        if isinstance(meaning, RowStatement):
            asked = Asked(statement.text, known, ())
            return self.run(statement, lambda: self._rows.prepare(statement, known), asked)
        if isinstance(meaning, CopyIn):
            self._running.may_wait()
            return self.run(statement, lambda: self._rows.prepare_copy(statement, meaning))
        if isinstance(meaning, CopyOut):
            return self._rows.prepare_copy_out(statement, meaning)
        if isinstance(meaning, DeclareCursor):
            return self._fetching.prepare_declare(statement, known)
        if isinstance(meaning, Fetch):
            return self._fetching.prepare_fetch(statement)
        if isinstance(meaning, SchemaStatement):
            columns = (Column("QUERY PLAN", TEXT),) if meaning.explains else None
            return PreparedStatement(statement, known, (), columns, self._open_change)
        shown = self._settings.shown(meaning)
        return PreparedStatement(statement, known, (), shown, self._open_command)

    def at_bind(self, prepared: PreparedStatement) -> PreparedStatement:
        said = prepared.statement.meaning
        if not isinstance(said, Fetch) or said.moves:
            return prepared
        return self._fetching.prepare_fetch(prepared.statement)

    def bind(self, prepared: PreparedStatement, values: Sequence[Any]) -> Portal:
        if self._block.standing is _FAILED and not prepared.leaves_failed_block:
            raise InFailedTransaction
        plan = prepared.plan
        if plan is not None and any(map(self._node.has_newer, plan.tables.values())):
            self.recheck(prepared)
        portal: Portal = prepared.open(prepared, values)
        return portal

    def recheck(self, prepared: PreparedStatement) -> None:
        if isinstance(prepared.statement.meaning, RowStatement):
            text, types = prepared.statement.text, prepared.types

            def work() -> None:
                plan = self.plan(text, types)
                check_same(prepared, plan)
                prepared.plan = plan

            self.run(prepared.statement, work)

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
        waits = self._block.end_batch()
        if waits is None:
            self._several = False
        return waits

    def fail(self) -> None:
        self._several = False
        self._block.fail()

    def take_reports(self) -> Sequence[Report]:
        return self._settings.take_reports()

    def cancel(self, reason: Exception) -> None:
        self._running.cancel(reason)
        self._node.turned()

    def close(self) -> None:
        self._node.sessions.leave(self._process, self)
        self._block.close()
        self._cursors.close(None)

    def activity(self) -> Activity:
        """What it does now; from any thread."""
        running, isolation = self._running, self._block.isolation
        return Activity(
            self._process,
            self._user,
            self._settings.values["application_name"],
            self._label,
            "active" if running.runs else _STATES[self._block.standing],
            None if isolation is None else isolation.spoken,
            running.text,
            self._opened_us,
            self._block.began_us,
            running.began_us,
        )

    # ------------------------------------------------------------ one statement

    def run(
        self, statement: SessionStatement, work: Callable[[], T], asked: Asked | None = None
    ) -> T:
        """As the one thing that runs now: it can be cancelled, its errors are placed, and what was
        `asked` is remembered as failed."""
        limit_s = self._settings.values.ms("statement_timeout") / MS
        self._running.begin(limit_s, statement.text)
        try:
            return work()
        except QueryCanceled as error:
            self._remember_failure(asked, error)
            raise _as_told(error, self._running.why_stopped()) from None
        except LeaseholdError as error:
            self._remember_failure(asked, error)
            if not isinstance(error, Refused):
                raise
            raise shifted(error, statement.offset) from error
        finally:
            self._running.end()

    def _remember_failure(self, asked: Asked | None, error: LeaseholdError) -> None:
        if asked is not None:
            self.failed_with(asked, error)

    def failed_with(self, asked: Asked, error: LeaseholdError) -> None:
        self._block.failed_with(asked, error)

    @property
    def _idle(self) -> bool:
        return self._block.standing is Standing.IDLE

    @property
    def in_block(self) -> bool:
        """Statements of one text are of one transaction, too."""
        return self._several or not self._idle

    def limits(self) -> Limits:
        return self._running.limits

    @property
    def room(self) -> SpoolRoom:
        return self._cursors.room

    @property
    def running(self) -> Running:
        return self._running

    def transaction(self) -> SqlTransaction:
        return self._block.transaction()

    def plan(self, text: str, types: Types) -> Plan:
        if self._running.hurried and self._block.reads_alone:
            return self._single.plan(text, types, self.zone)
        return self.transaction().plan(text, types)

    def at_once(
        self, prepared: PreparedStatement, values: Sequence[Any]
    ) -> list[tuple[Any, ...]] | None:
        running = self._running
        if prepared.takes_long or not (running.hurried and self._block.reads_alone):
            return None
        running.says(prepared.statement.text)
        try:
            return self._single.rows(prepared, values, self.zone)
        except Refused as error:
            raise shifted(error, prepared.statement.offset) from error

    def updates_at_once(self, prepared: PreparedStatement, values: Sequence[Any]) -> bool:
        running = self._running
        if prepared.takes_long or not (running.hurried and self._block.reads_alone):
            return False
        running.says(prepared.statement.text)
        try:
            return self._block.single_update(self._updates, prepared, values)
        except Refused as error:
            raise shifted(error, prepared.statement.offset) from error

    def check_may_write(self) -> None:
        self._block.check_may_write()

    # ------------------------------------------------------------ schema changes

    def _open_change(self, prepared: PreparedStatement, values: Sequence[Any]) -> Portal:
        statement = prepared.statement
        meaning = statement.meaning
        assert isinstance(meaning, SchemaStatement)
        if not self._idle and isinstance(meaning.change, Truncate):
            said = meaning.change
            asked = self._emptying(statement, said)
            return CommandPortal(
                lambda: self.run(statement, lambda: self._empty(asked, said), asked)
            )
        if not self._idle and not meaning.explains:
            asked = Asked(statement.text, (), (), changes=True)
            return CommandPortal(
                lambda: self.run(statement, lambda: self._change_in_block(asked, meaning), asked)
            )
        changes = self._changes
        if changes is not None and not meaning.explains:
            return CommandPortal(
                lambda: self.run(statement, lambda: self._change_of_several(statement, changes))
            )
        return CommandPortal(lambda: self.run(statement, lambda: self._change(statement)))

    def _change_of_several(self, statement: SessionStatement, text: SeveralStatements) -> Answer:
        """One of several statements of a text: all of them one transaction, as far as they can be.
        Where that is not so the client is told."""
        self._running.may_wait()
        meaning = statement.meaning
        assert isinstance(meaning, SchemaStatement)
        if text.is_done:
            return Answer(tag_of(meaning))
        if not text.is_told_apart and text.fits_one_request(self._node):
            self._change(SessionStatement(text.text, statement.offset, meaning), text.changes)
            text.is_done = True
            return Answer(tag_of(meaning))
        assert not isinstance(meaning.change, Explain), "it makes nothing"
        if not text.changes and text.fits_block(meaning.change):
            with suppress(FeatureNotSupported):  # by itself it may be possible
                return self._change_with_rows(statement, meaning)
        if not text.is_told_apart:
            text.is_told_apart = True
            notice = Notice("WARNING", "01000", NOT_ONE, {"detail": WHY})
            self._settings.reports.append(notice)
        return self._change(statement)

    def _change_with_rows(self, statement: SessionStatement, meaning: SchemaStatement) -> Answer:
        if isinstance(meaning.change, Truncate):
            said = meaning.change
            return self._empty(self._emptying(statement, said), said)
        return self._change_in_block(Asked(statement.text, (), (), changes=True), meaning)

    def _change(self, statement: SessionStatement, changes: Sequence[Said] = ()) -> Answer:
        """`changes`: all that its text holds, where that is more than its own."""
        self._running.may_wait()
        meaning = statement.meaning
        assert isinstance(meaning, SchemaStatement)
        if meaning.explains:
            outcome = submit_change(self._node, statement, self.zone, self._running.stopped)
            return Answer("EXPLAIN", plan_lines(outcome))
        # ⚠ What stands before it in the same text comes before it: it is a request of its own.
        self._block.end_batch()
        for change in [each.statement for each in changes] or [meaning.change]:
            give_back_numbers(self._node, change, self._running.stopped)
        outcome = submit_change(self._node, statement, self.zone, self._running.stopped)
        self._settings.reports += notices_of(outcome)
        if self._settings.values.on("leasehold.wait_for_jobs") and not follow_jobs(
            self._node, outcome, meaning, self._running.stopped
        ):
            raise Canceled(
                "no longer waiting for the schema change, which goes on: `leasehold jobs` shows it"
            )
        return Answer(tag_of(meaning))

    def _change_in_block(self, asked: Asked, said: SchemaStatement) -> Answer:
        """Committed with the rest, in one request, or forgotten with it."""
        self._running.may_wait()
        transaction = self._transaction_for(asked, "a schema change", "")
        notices = transaction.change(asked.text)
        transaction.did(Step(asked))
        self._settings.reports += [Notice("NOTICE", "00000", words) for words in notices]
        return Answer(tag_of(said))

    def _transaction_for(self, asked: Asked, what: str, instead: str) -> SqlTransaction:
        """Raises ReadOnlyTransaction; FeatureNotSupported at levels that read one moment, of which
        a table that is made or emptied is none, or none of their own writes."""
        self.check_may_write()
        transaction = self._block.lasting_transaction()
        if transaction.isolation.one_moment or not transaction.isolation.own_writes:
            raise FeatureNotSupported(
                f"{what} inside a transaction block at isolation level"
                f" {transaction.isolation.spoken} is not supported: use READ COMMITTED{instead}"
            )
        transaction.says(asked.text)
        return transaction

    @staticmethod
    def _emptying(statement: SessionStatement, said: Truncate) -> Asked:
        names = tuple(table.name for table in said.tables)
        asked = Asked(statement.text, (), (), emptied=names, restarts=said.restart)
        return asked._replace(cascades=said.cascade)

    def _empty(self, asked: Asked, said: Truncate) -> Answer:
        """TRUNCATE in a block is a write like others: committed and rolled back with them."""
        transaction = self._transaction_for(asked, "TRUNCATE", ", or DELETE")
        notices = transaction.empty(asked)
        transaction.did(Step(asked))
        self._settings.reports += [Notice("NOTICE", "00000", words) for words in notices]
        return Answer("TRUNCATE TABLE")

    # ------------------------------------------------------------ commands

    def _open_command(self, prepared: PreparedStatement, values: Sequence[Any]) -> Portal:
        statement = prepared.statement
        meaning = statement.meaning
        command = self._commands[type(meaning)]
        return CommandPortal(lambda: self.run(statement, lambda: command(meaning)))

    def _set(self, said: Set) -> Answer:
        if said.name in MODES:
            return self._block.set_modes(SetModes(modes_of(said), ever=False))
        if said.name == AS_OF and not self._idle:
            return self._block.as_of_set(said)
        return self._settings.set(said, in_block=not self._idle)

    def _discard(self, said: Discard) -> Answer:
        if said.what == "sequences":
            self._block.numbers.discard()
        if said.what != "all":
            return Answer(f"DISCARD {said.what.upper()}")
        if not self._idle:
            raise TransactionActive("DISCARD ALL cannot run inside a transaction block")
        self._cursors.close(None)
        self._settings.reports += [Deallocated(None), PortalsClosed(None)]
        self._settings.reset(Reset(None))
        self._block.numbers.discard()
        return Answer("DISCARD ALL")

    def _do_nothing(self, said: NothingToDo) -> Answer:
        if said.tag == "VACUUM" and not self._idle:
            raise TransactionActive("VACUUM cannot run inside a transaction block")
        return Answer(said.tag)

    def _deallocate(self, said: Deallocate) -> Answer:
        self._settings.reports.append(Deallocated(said.name))
        return Answer("DEALLOCATE ALL" if said.name is None else "DEALLOCATE")

    def _close_cursor(self, said: CloseCursor) -> Answer:
        """What the protocol has made is closed by whoever speaks it."""
        found = self._cursors.close(said.name)
        if said.name is None or (not found and self.portals.find(said.name) is not None):
            self._settings.reports.append(PortalsClosed(said.name))
        elif not found:
            raise UnknownPortal(f'cursor "{said.name}" does not exist')
        return Answer("CLOSE CURSOR ALL" if said.name is None else "CLOSE CURSOR")


def _as_told(error: QueryCanceled, why: Exception | None) -> Exception:
    """In the words of whoever has ended the statement, and what else is to be said of it."""
    if isinstance(error, CanceledUnderWay) and isinstance(why, Canceled):
        return CanceledUnderWay(why.message, **error.detail)
    return why or error
