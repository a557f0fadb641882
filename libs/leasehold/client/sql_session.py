"""One client's SQL session on a node: the port `pgwire.session.Session`, for the wire and for
programs that embed a replica alike.

What a statement says is read by `sql/session_grammar.py`; where the client stands between BEGIN and
COMMIT is decided by `transaction/block.py`; rows are read by a `SqlTransaction`. Here they meet.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final, TypeVar

from leasehold.adapters.clock import random_bytes, unix_us
from leasehold.adapters.sqlite_query import Limits
from leasehold.adapters.sqlite_write import Written
from leasehold.client.serving_node import SqlNode
from leasehold.client.sql_commit import commit
from leasehold.client.sql_copy import CopyPortal, Target, copied, format_of
from leasehold.client.sql_portals import (
    Answer,
    CommandPortal,
    PreparedStatement,
    QueryPortal,
    check_same,
    columns_of,
)
from leasehold.client.sql_schema import (
    follow_jobs,
    notices_of,
    plan_lines,
    submit_change,
    tag_of,
)
from leasehold.client.sql_transaction import Asked, SqlTransaction, Step, plan_types
from leasehold.model.errors import (
    FeatureNotSupported,
    LeaseholdError,
    NotCoherent,
    QueryCanceled,
    Refused,
    VerifyError,
)
from leasehold.pgwire.session import (
    Column,
    Deallocated,
    Notice,
    Portal,
    PortalsClosed,
    Report,
    SettingChanged,
    Status,
    TimeLimits,
)
from leasehold.pgwire.wire_errors import Canceled, InFailedTransaction
from leasehold.pgwire.wire_types import WireType
from leasehold.schema.elements import Moment
from leasehold.schema.types import Type
from leasehold.sql.functions_session import Caller, CallersMoment
from leasehold.sql.moment_text import zone_of
from leasehold.sql.query_plan import Plans
from leasehold.sql.session_grammar import read_text, shifted
from leasehold.sql.session_settings import SETTINGS, SessionSettings
from leasehold.sql.session_statements import (
    Begin,
    CloseCursor,
    Commit,
    CopyIn,
    Deallocate,
    Discard,
    Modes,
    NothingToDo,
    Release,
    Reset,
    Rollback,
    RollbackTo,
    RowStatement,
    Savepoint,
    SchemaStatement,
    SessionStatement,
    Set,
    SetModes,
    Show,
)
from leasehold.transaction.block import (
    Block,
    ReadOnlyTransaction,
    Standing,
    TransactionActive,
)
from leasehold.transaction.isolation import Isolation, Level, isolation_of

T = TypeVar("T")
MS: Final = 1_000
SEED_BYTES: Final = 16
STATEMENT_TRIES_MAX: Final = 20
_TEXT: Final = Type("text")
_STATUS: Final = {
    Standing.IDLE: Status.IDLE,
    Standing.OPEN: Status.BLOCK,
    Standing.FAILED: Status.FAILED,
}


class SqlSession:
    """Called by one thread at a time; `cancel`, `time_limits` from any. `plans` are shared by the
    sessions of a node."""

    zone = zone_of("UTC")

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
        self._plans = plans
        self._settings = SessionSettings({**(settings or {}), "session_authorization": user})
        self._label = f"SQL session {process} of {user}"
        self._user, self._process = user, process
        self._block = Block()
        self._transaction: SqlTransaction | None = None
        self._reports: list[Report] = []
        self._lock = threading.Lock()
        self._running = False
        self._cancelled: Exception | None = None
        self._deadline_s: float | None = None
        self._caller = self._as_caller()
        self._commands: dict[type, Callable[[Any], Answer]] = {
            Begin: self._begin,
            Commit: self._commit,
            Rollback: self._rollback,
            Savepoint: self._savepoint,
            RollbackTo: self._roll_back_to,
            Release: self._release,
            SetModes: self._set_modes,
            Set: self._set,
            Reset: self._reset,
            Show: self._show,
            Discard: self._discard,
            Deallocate: self._deallocate,
            CloseCursor: self._close_cursor,
            NothingToDo: lambda said: Answer(said.tag),
        }

    # ------------------------------------------------------------ the port

    @property
    def status(self) -> Status:
        return _STATUS[self._block.standing]

    @property
    def settings(self) -> Mapping[str, str]:
        return self._settings.told

    @property
    def time_limits(self) -> TimeLimits:
        given = self._settings
        return TimeLimits(
            given.ms("statement_timeout") / MS,
            given.ms("idle_session_timeout") / MS,
            given.ms("idle_in_transaction_session_timeout") / MS,
        )

    def statements(self, text: str) -> Sequence[SessionStatement]:
        return read_text(text)

    def prepare(
        self, statement: SessionStatement, types: Sequence[WireType | None]
    ) -> PreparedStatement:
        if self._block.standing is Standing.FAILED and not statement.leaves_failed_block:
            raise InFailedTransaction
        meaning = statement.meaning
        known = plan_types(types)
        if isinstance(meaning, RowStatement):
            asked = Asked(statement.text, known, ())
            return self.run(statement, lambda: self._prepare_rows(statement, known), asked)
        if isinstance(meaning, CopyIn):
            return self.run(statement, lambda: self._prepare_copy(statement, meaning))
        if isinstance(meaning, SchemaStatement):
            columns = (Column("QUERY PLAN", _TEXT),) if meaning.explains else None
            return PreparedStatement(statement, known, (), columns, self._open_change)
        return PreparedStatement(statement, known, (), self._shown(meaning), self._open_command)

    def bind(self, prepared: PreparedStatement, values: Sequence[Any]) -> Portal:
        if self._block.standing is Standing.FAILED and not prepared.leaves_failed_block:
            raise InFailedTransaction
        portal: Portal = prepared.open(prepared, values)
        return portal

    def recheck(self, prepared: PreparedStatement) -> None:
        if isinstance(prepared.statement.meaning, RowStatement):
            text, types = prepared.statement.text, prepared.types
            self.run(
                prepared.statement,
                lambda: check_same(prepared, self.transaction().plan(text, types)),
            )

    def end_batch(self) -> None:
        if self._block.standing is Standing.IDLE:
            self._end(committed=True)

    def fail(self) -> None:
        if self._block.standing is Standing.IDLE:
            self._end(committed=False)
        else:
            self._block.fail()

    def take_reports(self) -> Sequence[Report]:
        reports, self._reports = self._reports, []
        return reports

    def cancel(self, reason: Exception) -> None:
        with self._lock:
            if self._running and self._cancelled is None:
                self._cancelled = reason
        self._node.turned()

    def close(self) -> None:
        self._end(committed=False)
        self._block.end()

    # ------------------------------------------------------------ one statement

    def run(
        self, statement: SessionStatement, work: Callable[[], T], asked: Asked | None = None
    ) -> T:
        """As the one thing that runs now: it can be cancelled, its errors are placed, and what was
        `asked` is remembered as failed."""
        limit_s = self.time_limits.statement_s
        self._deadline_s = time.monotonic() + limit_s if limit_s else None
        with self._lock:
            self._running, self._cancelled = True, None
        try:
            return work()
        except QueryCanceled as error:
            self._remember_failure(asked, error)
            raise self._why_stopped() or error from None
        except LeaseholdError as error:
            self._remember_failure(asked, error)
            if not isinstance(error, Refused):
                raise
            raise shifted(error, statement.offset) from error
        finally:
            with self._lock:
                self._running = False

    def _remember_failure(self, asked: Asked | None, error: LeaseholdError) -> None:
        """A client may take another path after it: a replay has to fail likewise (T2)."""
        in_block = self._block.standing is Standing.OPEN
        if asked is not None and in_block and self._transaction is not None:
            self._transaction.did(Step(asked, sqlstate=error.sqlstate))

    def _stopped(self) -> bool:
        return self._cancelled is not None or (
            self._deadline_s is not None and time.monotonic() > self._deadline_s
        )

    def _why_stopped(self) -> Exception | None:
        if self._cancelled is not None:
            return self._cancelled
        if self._stopped():
            return Canceled("canceling statement due to statement timeout")
        return None

    def limits(self) -> Limits:
        return Limits(stop=self._stopped)

    def transaction(self) -> SqlTransaction:
        if self._transaction is None:
            in_block = self._block.standing is not Standing.IDLE
            isolation = (in_block and self._block.isolation) or self._default_isolation()
            self._settings.begin()
            moment = CallersMoment.of(unix_us(), random_bytes(SEED_BYTES), self._caller)
            self._transaction = self._fresh(isolation, moment, block=in_block)
            self._block.used = in_block
        return self._transaction

    def _fresh(self, isolation: Isolation, moment: Moment, *, block: bool) -> SqlTransaction:
        """A block is known by name to those who wait for it."""
        node = self._node
        reads = node.reads(self._label) if block else node.single_read()
        return SqlTransaction(
            reads, self._plans, isolation, moment, self._wait_coherent, block=block
        )

    def _wait_coherent(self) -> None:
        """As long as the session asks for. Raises NotCoherent, or why it was stopped."""
        if self._node.coherent:
            return
        wait_s = self._settings.ms("leasehold.coherent_timeout") / MS
        self._node.wait(lambda: self._stopped() or self._node.coherent, wait_s)
        why = self._why_stopped()
        if why is not None:
            raise why
        if not self._node.coherent:
            raise NotCoherent(
                f"this replicant is not coherent: it has had no valid lease from the master for"
                f" {wait_s:g} s; read on another one, or SET leasehold.coherent_timeout"
            )

    def _end(self, *, committed: bool) -> None:
        transaction, self._transaction = self._transaction, None
        if transaction is not None:
            try:
                if committed:
                    self._commit_writes(transaction)
            except BaseException:
                self._settings_end(committed=False)
                raise
            finally:
                transaction.close()
        self._settings_end(committed=committed)

    def _commit_writes(self, transaction: SqlTransaction) -> None:
        """Raises what COMMIT can fail with."""
        in_block = self._block.standing is not Standing.IDLE
        settings = self._settings
        replays_max = 0
        if settings.on("leasehold.verifyretry"):
            replays_max = int(settings["leasehold.replays_max"])
        commit(
            transaction,
            self._node,
            lambda: self._fresh(transaction.isolation, transaction.moment, block=in_block),
            replays_max=replays_max,
            limits=self.limits(),
        )

    def _settings_end(self, *, committed: bool) -> None:
        changed = self._settings.end(committed=committed)
        self._reports += [SettingChanged(name, value) for name, value in changed.items()]
        if changed:
            self._caller = self._as_caller()

    def _as_caller(self) -> Caller:
        settings = {name.lower(): value for name, value in self._settings.all()}
        return Caller(self._user, self._node.database, self._process, settings)

    # ------------------------------------------------------------ rows

    def _prepare_rows(
        self, statement: SessionStatement, types: tuple[Type | None, ...]
    ) -> PreparedStatement:
        plan = self.transaction().plan(statement.text, types)
        writes = plan.write is not None and not plan.explain
        opened = self._open_write if writes else self._open_query
        return PreparedStatement(statement, types, plan.parameters, columns_of(plan), opened)

    def _open_query(self, prepared: PreparedStatement, values: Sequence[Any]) -> Portal:
        return QueryPortal(self, prepared, values)

    def _open_write(self, prepared: PreparedStatement, values: Sequence[Any]) -> Portal:
        asked = Asked(prepared.statement.text, prepared.types, tuple(values))

        def work() -> Answer:
            return self.run(prepared.statement, lambda: self._write(prepared, asked), asked)

        return CommandPortal(work)

    def _write(self, prepared: PreparedStatement, asked: Asked) -> Answer:
        self._check_may_write()
        transaction = self.transaction()
        transaction.says(asked.text)
        for left in range(STATEMENT_TRIES_MAX, 0, -1):
            try:
                tag, written = self._written(transaction, asked, prepared)
                zero = "0 " if tag == "INSERT" else ""
                return Answer(f"{tag} {zero}{written.count}", written.rows)
            except VerifyError:
                if left == 1 or not transaction.isolation.replays:
                    raise
        raise AssertionError("the last try returns or raises")

    def _written(
        self, transaction: SqlTransaction, asked: Asked, prepared: PreparedStatement | None = None
    ) -> tuple[str, Written]:
        """With the plan's tag. `prepared`: what the client was told of it has to hold still."""
        with transaction.prepared(asked.text, asked.types) as (snapshot, plan):
            if prepared is not None:
                check_same(prepared, plan)
            written = transaction.write(plan, snapshot, asked.values, self.limits())
        transaction.did(Step.wrote(asked, written))
        return plan.tag, written

    def _prepare_copy(self, statement: SessionStatement, said: CopyIn) -> PreparedStatement:
        """COPY is an INSERT for each of its rows."""
        text, columns = copied(said, self.transaction().descriptor(said.table))
        form = format_of(said)
        types = plan_types([column.type for column in columns])

        def opened(prepared: PreparedStatement, values: Sequence[Any]) -> Portal:
            self._check_may_write()
            return CopyPortal(Target(said.table, columns, form, take))

        def take(row: Sequence[Any]) -> None:
            asked = Asked(text, types, tuple(row))
            self.run(statement, lambda: self._written(self.transaction(), asked), asked)

        return PreparedStatement(statement, types, (), None, opened)

    def _check_may_write(self) -> None:
        read_only = self._settings.on("transaction_read_only")
        if self._block.standing is Standing.IDLE:
            read_only = self._settings.on("default_transaction_read_only")
        if read_only:
            raise ReadOnlyTransaction("cannot write in a read-only transaction")
        isolation = self.transaction().isolation
        if isolation.verifies_reads:
            self._check_level(isolation, read_only=False)

    # ------------------------------------------------------------ schema changes

    def _open_change(self, prepared: PreparedStatement, values: Sequence[Any]) -> Portal:
        statement = prepared.statement
        return CommandPortal(lambda: self.run(statement, lambda: self._change(statement)))

    def _change(self, statement: SessionStatement) -> Answer:
        meaning = statement.meaning
        assert isinstance(meaning, SchemaStatement)
        if meaning.explains:
            return Answer("EXPLAIN", plan_lines(submit_change(self._node, statement)))
        if self._block.standing is not Standing.IDLE:
            raise FeatureNotSupported(
                "schema changes inside a transaction block are not supported: each is a commit of"
                " its own, which other sessions see step by step; send it outside of BEGIN"
            )
        outcome = submit_change(self._node, statement)
        self._reports += notices_of(outcome)
        if self._settings.on("leasehold.wait_for_jobs") and not follow_jobs(
            self._node, outcome, meaning, self._stopped
        ):
            raise Canceled(
                "no longer waiting for the schema change, which goes on: `leasehold jobs` shows it"
            )
        return Answer(tag_of(meaning))

    # ------------------------------------------------------------ transaction control

    def _open_command(self, prepared: PreparedStatement, values: Sequence[Any]) -> Portal:
        statement = prepared.statement
        meaning = statement.meaning
        command = self._commands[type(meaning)]
        return CommandPortal(lambda: self.run(statement, lambda: command(meaning)))

    def _default_isolation(self) -> Isolation:
        return isolation_of(self._settings["leasehold.isolation"])

    def _begin(self, said: Begin) -> Answer:
        isolation = self._isolation(said.modes) or self._default_isolation()
        read_only = said.modes.read_only
        if read_only is None:
            read_only = self._settings.on("default_transaction_read_only")
        self._check_level(isolation, read_only=read_only)
        if self._transaction is not None and self._block.standing is Standing.IDLE:
            self._end(committed=True)
        if not self._block.begin(isolation, read_only=read_only):
            self._warn("25001", "there is already a transaction in progress")
        self._settings.begin()
        self._show_modes()
        return Answer(said.tag)

    def _isolation(self, modes: Modes) -> Isolation | None:
        return None if modes.isolation is None else isolation_of(modes.isolation)

    def _check_level(self, isolation: Isolation, *, read_only: bool) -> None:
        """Raises FeatureNotSupported for what a level promises and sessions do not keep yet."""
        if isolation.level is Level.LINEARIZABLE:
            raise FeatureNotSupported(
                "transactions at isolation level linearizable are not supported in SQL sessions yet"
            )
        if isolation.level is Level.SERIALIZABLE and not read_only:
            raise FeatureNotSupported(
                "SERIALIZABLE transactions that may write are not supported in SQL sessions yet:"
                " use REPEATABLE READ, or add READ ONLY"
            )

    def _show_modes(self) -> None:
        """The transaction's, as SHOW tells them while it lasts."""
        isolation = self._block.isolation
        assert isolation is not None
        self._settings.set("transaction_isolation", isolation.spoken, local=True)
        only = "on" if self._block.read_only else "off"
        self._settings.set("transaction_read_only", only, local=True)

    def _commit(self, said: Commit) -> Answer:
        if self._block.standing is Standing.IDLE:
            self._warn("25P01", "there is no transaction in progress")
            self._end(committed=True)
            return Answer("COMMIT")
        failed = self._block.standing is Standing.FAILED
        self._leave(said.chain, committed=not failed)
        return Answer("ROLLBACK" if failed else "COMMIT")

    def _rollback(self, said: Rollback) -> Answer:
        if self._block.standing is Standing.IDLE:
            self._warn("25P01", "there is no transaction in progress")
        self._leave(said.chain, committed=False)
        return Answer("ROLLBACK")

    def _leave(self, chain: bool, *, committed: bool) -> None:
        isolation, read_only = self._block.isolation, self._block.read_only
        try:
            self._end(committed=committed)
        finally:
            self._block.end()
        if chain and isolation is not None:
            self._block.begin(isolation, read_only=read_only)
            self._settings.begin()
            self._show_modes()

    def _savepoint(self, said: Savepoint) -> Answer:
        self._block.savepoint(said.name, self.transaction().savepoint())
        return Answer("SAVEPOINT")

    def _release(self, said: Release) -> Answer:
        self._block.release(said.name)
        return Answer("RELEASE")

    def _roll_back_to(self, said: RollbackTo) -> Answer:
        self.transaction().roll_back_to(self._block.roll_back_to(said.name))
        return Answer("ROLLBACK")

    def _set_modes(self, said: SetModes) -> Answer:
        isolation, read_only = self._isolation(said.modes), said.modes.read_only
        if said.ever:
            if isolation is not None:
                self._set_default(isolation)
            if read_only is not None:
                self._apply("default_transaction_read_only", "on" if read_only else "off")
            return Answer("SET")
        if self._block.standing is Standing.IDLE:
            self._warn("25P01", "SET TRANSACTION can only be used in transaction blocks")
            return Answer("SET")
        only = self._block.read_only if read_only is None else read_only
        self._check_level(isolation or self._default_isolation(), read_only=only)
        self._block.set_modes(isolation, read_only)
        self._show_modes()
        return Answer("SET")

    # ------------------------------------------------------------ settings

    def _set(self, said: Set) -> Answer:
        if said.name in ("transaction_isolation", "transaction_read_only"):
            return self._set_modes(SetModes(_modes_of(said), ever=False))
        if said.local and self._block.standing is Standing.IDLE:
            self._warn("25P01", "SET LOCAL can only be used in transaction blocks")
            return Answer("SET")
        self._settings.begin()
        self._apply(said.name, said.value, local=said.local)
        if said.name == "default_transaction_isolation" and said.value is not None:
            self._set_default(isolation_of(self._settings[said.name]), local=said.local)
        return Answer("SET")

    def _set_default(self, isolation: Isolation, *, local: bool = False) -> None:
        self._settings.begin()
        self._apply("default_transaction_isolation", isolation.spoken, local=local)
        self._apply("leasehold.isolation", isolation.level.value, local=local)

    def _apply(self, name: str, value: str | None, *, local: bool = False) -> None:
        name = self._settings.set(name, value, local=local)
        if SETTINGS[name.lower()].told:
            self._reports.append(SettingChanged(name, self._settings[name]))
        self._caller = self._as_caller()

    def _reset(self, said: Reset) -> Answer:
        self._settings.begin()
        if said.name is not None:
            self._apply(said.name, None)
            return Answer("RESET")
        before = self._settings.told
        self._settings.reset_all()
        self._reports += [
            SettingChanged(name, value)
            for name, value in self._settings.told.items()
            if before[name] != value
        ]
        self._caller = self._as_caller()
        return Answer("RESET")

    def _shown(self, meaning: Any) -> Sequence[Column] | None:
        """The columns of SHOW; None of what gives no rows."""
        if not isinstance(meaning, Show):
            return None
        if meaning.name is None:
            return (Column("name", _TEXT), Column("setting", _TEXT))
        return (Column(self._settings.show(meaning.name)[0], _TEXT),)

    def _show(self, said: Show) -> Answer:
        if said.name is None:
            return Answer("SHOW", list(self._settings.all()))
        if said.name == "transaction_isolation" and self._block.standing is Standing.IDLE:
            return Answer("SHOW", [(self._settings["default_transaction_isolation"],)])
        return Answer("SHOW", [(self._settings.show(said.name)[1],)])

    # ------------------------------------------------------------ what a session keeps

    def _discard(self, said: Discard) -> Answer:
        if said.what != "all":
            return Answer(f"DISCARD {said.what.upper()}")
        if self._block.standing is not Standing.IDLE:
            raise TransactionActive("DISCARD ALL cannot run inside a transaction block")
        self._reports += [Deallocated(None), PortalsClosed(None)]
        self._reset(Reset(None))
        return Answer("DISCARD ALL")

    def _deallocate(self, said: Deallocate) -> Answer:
        self._reports.append(Deallocated(said.name))
        return Answer("DEALLOCATE ALL" if said.name is None else "DEALLOCATE")

    def _close_cursor(self, said: CloseCursor) -> Answer:
        self._reports.append(PortalsClosed(said.name))
        return Answer("CLOSE CURSOR ALL" if said.name is None else "CLOSE CURSOR")

    def _warn(self, sqlstate: str, words: str) -> None:
        self._reports.append(Notice("WARNING", sqlstate, words))


def _modes_of(said: Set) -> Modes:
    value = (said.value or "").strip().lower()
    if said.name == "transaction_isolation":
        return Modes(isolation=value)
    return Modes(read_only=value in ("on", "true", "1", "yes"))
