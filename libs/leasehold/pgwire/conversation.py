"""One client's conversation once it is let in: bytes in, calls of its session, bytes out.

`receive` runs every message that is whole; phases.py says what is run, skipped or refused. What is
said gathers and is handed to `say` at Sync, Flush and ReadyForQuery, and whenever enough is
together: `say` may wait, which is how a slow reader slows its own statement and nobody else's.

In a hurry a message that would wait is held as it is, with what its statements have done so far:
the next `receive` goes on with it, on whichever thread.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from typing import Any, Final

from leasehold.model.errors import FeatureNotSupported, LeaseholdError, SyntaxInvalid
from leasehold.pgwire.copy.input import CopyRows
from leasehold.pgwire.limits import Limits
from leasehold.pgwire.messages import backend
from leasehold.pgwire.messages.error_fields import error_fields, notice_fields
from leasehold.pgwire.messages.framing import Framing
from leasehold.pgwire.messages.frontend import (
    READERS,
    Bind,
    Close,
    CopyData,
    CopyFail,
    Describe,
    Execute,
    Flush,
    Parse,
    Query,
)
from leasehold.pgwire.named_objects import (
    EmptyStatement,
    NamedObjects,
    NamedPortal,
    NamedStatement,
    empty_portal,
    is_empty,
)
from leasehold.pgwire.phases import AFTER, TABLE, Action, Behind, Outcome, Phase
from leasehold.pgwire.session import (
    Deallocated,
    Notice,
    PortalsClosed,
    Recounted,
    Report,
    Session,
    SettingChanged,
    Status,
    WouldBlock,
)
from leasehold.pgwire.values.formats import (
    ALL_BINARY,
    ALL_TEXT,
    decoded,
    described_columns,
    described_parameters,
    given_types,
)
from leasehold.pgwire.wire_errors import (
    AdminShutdown,
    Canceled,
    DuplicatePortal,
    IdleInTransactionTooLong,
    IdleTooLong,
    InFailedTransaction,
    PortalUsedUp,
    ProtocolViolation,
    UnknownParameter,
)

Say = Callable[[bytes], Behind | None]
"""Takes what is said, and says how far behind the client is, where it does not read."""
HURRIED_MESSAGES_MAX: Final = 64
"""Then others have their turn; so they have once `output_bytes_max` was said."""
# Asked for with every message, and a member of an enum costs more than a call.
_CLOSED: Final = Phase.CLOSED
_COPYING: Final = Phase.COPYING
_RUN: Final = Action.RUN
_COPY: Final = Action.COPY
_REFUSE: Final = Action.REFUSE
_DONE: Final = Outcome.DONE
_IDLE: Final = Status.IDLE
_FAILED: Final = Status.FAILED
ENDS_ALL: Final = (AdminShutdown, IdleInTransactionTooLong, IdleTooLong)
"""Why a statement may be cancelled that ends the connection, too."""


class ClientGone(Exception):
    """Raised by `say`: there is nobody to answer to any more."""


class Conversation:
    """`defect` is told of every exception that is not of the tree of errors."""

    def __init__(
        self, session: Session, say: Say, limits: Limits, defect: Callable[[Exception], None]
    ) -> None:
        self._session = session
        self._hand_over = say
        self._limits = limits
        self._defect = defect
        self._framing = Framing(limits)
        self._objects = NamedObjects(limits)
        session.portals = self._objects
        self._out: list[bytes] = []
        self._out_bytes = 0
        self._said_bytes = 0  # in this turn
        self._settings: dict[str, str] = {}
        self._known_settings: dict[str, str] = {}
        self._held: tuple[int, bytes] | None = None
        self._unfinished = False
        self._begun = False
        self._resumed = False
        self._queue: deque[Any] = deque()
        self._running: NamedPortal | None = None  # of a simple Query, from bind to its last row,
        self._ended: tuple[NamedPortal, str] | None = None  # and from there until its tag is said
        self._simple = False
        self._copy: tuple[NamedPortal, CopyRows] | None = None
        self._extended: dict[int, Callable[[Any], Outcome]] = {
            ord("P"): self._parse,
            ord("B"): self._bind,
            ord("D"): self._describe,
            ord("E"): self._execute,
            ord("C"): self._close,
            ord("H"): self._flush_asked,
        }
        self._in_batch = False
        self.suspends = False
        """Was a portal suspended in this batch, which may hold what others wait for?"""
        self._statements = 0  # of this batch
        self._tag_at = -1  # where the tag of the last one stands in what was not handed over yet
        self._recounted = ""
        self._cancelled: Exception | None = None
        self.phase = Phase.READY
        self.steps = 0
        """Counts up with every message and statement that begins: while it rests, one runs."""

    # --- what the adapter calls --------------------------------------------------------------

    def begin(self, process: int, key: bytes) -> None:
        """Tells the client what it may rely on, and how to cancel."""
        self._known_settings = dict(self._session.settings)
        for name, value in self._known_settings.items():
            self._say(backend.parameter_status(name, value))
        self._say(backend.key_data(process, key))
        self._ready()

    def receive(self, data: bytes, *, hurried: bool = False) -> WouldBlock | None:
        """None: every message that is whole was run. `hurried`: this thread is others', too; what
        comes back says when to call again, with no data, and on what thread. Raises ClientGone."""
        waits = self._run_messages(data, hurried)
        self._unfinished = waits is not None
        return waits

    def _run_messages(self, data: bytes, hurried: bool) -> WouldBlock | None:
        if data:
            self._framing.feed(data)
        self._session.hurried = hurried
        left = HURRIED_MESSAGES_MAX
        self._said_bytes = 0
        while self.phase is not _CLOSED:
            if self.interrupted:
                if hurried:
                    return WouldBlock()
                self._break_copy()
            message, self._held = self._held, None
            self._resumed = message is not None
            self._begun = self._begun and self._resumed
            try:
                message = message or self._framing.next_message()
                if message is None:
                    return None
                outcome = self._take(*message, hurried)
            except WouldBlock as waits:
                # Its frames hold it, by their callers' ones, until the cycle collector finds them.
                outcome = waits.with_traceback(None)
            except ProtocolViolation as error:
                self.end(error)
                return None
            if isinstance(outcome, WouldBlock):
                self._held, self._begun = message, outcome.begun
                return outcome
            if outcome is not None:
                self.phase = AFTER[outcome]
            left -= 1
            if hurried and (left <= 0 or self._said_bytes > self._limits.output_bytes_max):
                return WouldBlock(_at_once)
        return None

    def cancel(self, reason: Exception) -> None:
        """From any thread: what runs now ends, be it in the session or between two portions of its
        rows; nothing of the next batch is touched."""
        self._cancelled = reason
        self._session.cancel(reason)

    def rest(self, behind: Behind) -> None:
        """What the client does not take, be it that it does not read or does not go on, is put
        aside; it may hold a snapshot. On a thread where that holds up nobody."""
        wholly = behind is Behind.STANDING
        self._session.hurried = False
        if self._running is not None:
            self._running.rest(wholly=wholly)
        self._objects.rest(wholly=wholly)
        self.suspends = False

    def end(self, error: LeaseholdError | None = None) -> None:
        """The last words, if any: nothing is taken or said after them."""
        if self.phase is Phase.CLOSED:
            return
        self.phase = Phase.CLOSED
        if error is not None:
            self._say(backend.error(error_fields(error, "FATAL")))
            self._flush()

    def close(self) -> None:
        """Gives back everything; also after ClientGone."""
        self.phase = Phase.CLOSED
        self._close_copy()
        self._close_running()
        self._objects.drop_portals()
        self._session.close()

    @property
    def idle(self) -> bool:
        """Does nothing but wait for the client's next batch?"""
        return (
            self.phase is Phase.READY
            and self._held is None
            and not self._framing.left
            and not self._out
        )

    @property
    def has_work(self) -> bool:
        """Has `receive` to be called again, though no bytes come? It was said so (`WouldBlock`),
        be it that a message is held or that whole ones were left; or there is a COPY to end."""
        return self._unfinished or self.interrupted

    @property
    def copies(self) -> bool:
        """Is it in the middle of a COPY … FROM STDIN, be it that its client says nothing?"""
        return self.phase is _COPYING

    @property
    def interrupted(self) -> bool:
        """Is there a COPY to end before its client says more?"""
        return self.copies and self._cancelled is not None

    @property
    def has_begun(self) -> bool:
        """Does that have to be gone on with, whoever is there to hear of it?"""
        return self._held is not None and self._begun

    @property
    def status(self) -> Status:
        return self._session.status

    # --- messages ----------------------------------------------------------------------------

    def _take(self, kind: int, body: bytes, hurried: bool) -> Outcome | WouldBlock | None:
        """None: the phase stays. Raises ProtocolViolation for what ends the connection."""
        action = TABLE[self.phase].get(kind, _REFUSE)
        if action is _REFUSE:
            raise ProtocolViolation(f"message type {chr(kind)!r} is not expected here")
        if not self._resumed:
            if action is not _COPY:  # which is a statement with all its data
                self.steps += 1
            if not self._in_batch:
                self._in_batch, self._cancelled = True, None
        if action is _RUN:
            return self._run(kind, body)
        if action is _COPY:
            if hurried:
                raise WouldBlock
            return self._copy_taken(kind, body)
        return self._taken_otherwise(action, kind)

    def _taken_otherwise(self, action: Action, kind: int) -> Outcome | WouldBlock | None:
        match action:
            case Action.BREAK_COPY:
                self._failed(
                    ProtocolViolation(
                        f"unexpected message type 0x{kind:02X} during COPY from stdin"
                    )
                )
                self.end(
                    ProtocolViolation(
                        "terminating connection because protocol synchronization was lost"
                    )
                )
                return Outcome.ENDED
            case Action.RESUME:
                return self._sync()
            case Action.END:
                return Outcome.ENDED
        return None

    def _run(self, kind: int, body: bytes) -> Outcome | WouldBlock:
        self._simple = kind in _SIMPLE
        try:
            if kind == _SYNC:
                return self._sync()
            if self._simple:
                return self._query(kind, body)
            return self._extended[kind](READERS[kind](body, self._limits))
        except (ClientGone, WouldBlock):
            raise
        except Exception as error:  # noqa: BLE001 - whatever it is, the client gets an answer
            return self._answered(error)

    def _copy_taken(self, kind: int, body: bytes) -> Outcome:
        try:
            return self._copy_part(kind, body)
        except (ClientGone, WouldBlock):
            raise
        except Exception as error:  # noqa: BLE001 - whatever it is, the client gets an answer
            return self._answered(error)

    def _answered(self, error: Exception) -> Outcome:
        """Its transaction fails, and the rest of its batch is dropped."""
        self._failed(error)
        if isinstance(error, ENDS_ALL):
            self.end(error)
            return Outcome.ENDED
        if not self._simple:
            return Outcome.FAILED
        self._ready()
        return Outcome.FAILED_SIMPLE

    def _failed(self, error: Exception) -> None:
        if not isinstance(error, LeaseholdError):
            self._defect(error)
        self._close_copy()
        self._close_running()
        self._ended = None
        self._queue.clear()
        self._session.fail()
        self._transaction_may_be_over()
        for report in self._session.take_reports():
            self._told(report)
        if not isinstance(error, ENDS_ALL):
            self._say(backend.error(error_fields(error)))
        if not self._simple:
            self._flush()

    # --- simple protocol ---------------------------------------------------------------------

    def _query(self, kind: int, body: bytes) -> Outcome:
        if kind == _FUNCTION_CALL:
            raise FeatureNotSupported("function calls by message are not supported: use SELECT")
        if self._resumed and (self._queue or self._running or self._ended):
            return self._run_queue()
        query = READERS[kind](body, self._limits)
        assert isinstance(query, Query)
        self._objects.drop_statement("")
        self._objects.drop_portal("")
        self._queue.extend(self._session.statements(query.text))
        self._reports()
        if not self._queue:
            self._end_simple_batch()
            self._say(backend.EMPTY_QUERY)
            self._ready()
            return _DONE
        return self._run_queue()

    def _run_queue(self) -> Outcome:
        """Every step of it may wait, and is then gone on with."""
        while self._queue or self._running or self._ended:
            if self._ended is None:
                portal = self._running
                if portal is None:
                    portal = self._run_next()
                    if portal.portal.copy is not None:
                        return self._begin_copy(portal)
                    self._running = portal
                    if not (portal.copies or portal.statement.prepared.answers_whole):
                        self._begin_rows(portal)
                tag = self._rows(portal, 0)
                assert tag is not None
                self._close_running()
                self._ended = portal, tag
            self._completed(*self._ended)
            self._ended = None
        self._ready()
        return _DONE

    def _run_next(self) -> NamedPortal:
        self.steps += 1
        prepared = self._session.prepare(self._queue[0], ())
        if prepared.parameters:
            raise UnknownParameter("there is no parameter $1")
        statement = self._objects.with_codecs(prepared)
        formats = ALL_BINARY if prepared.binary else ALL_TEXT
        result = statement.result(formats, self._session.zone)
        portal = NamedPortal(statement, self._session.bind(prepared, ()), result)
        self._queue.popleft()
        self._statements += 1
        return portal

    def _close_copy(self) -> None:
        copy, self._copy = self._copy, None
        if copy is not None:
            copy[0].portal.close()

    def _close_running(self) -> None:
        portal, self._running = self._running, None
        if portal is not None:
            portal.portal.close()

    def _completed(self, portal: NamedPortal, tag: str) -> None:
        """The last statement's transaction ends before its tag is said: the end may be an error."""
        if self._simple and not self._queue:
            self._session.answer_held = self._statements == 1
            self._end_simple_batch()
        if portal.statement.prepared.ends_transaction:  # AND CHAIN begins another one
            self._objects.drop_portals()
        self._reports()
        at = len(self._out)
        self._say(backend.complete(self._recounted or tag))
        self._tag_at = at if self._out else -1

    # --- extended protocol -------------------------------------------------------------------

    def _parse(self, message: Parse) -> Outcome:
        if not message.name:
            self._objects.drop_statement("")
        statements = self._session.statements(message.text)
        self._reports()
        if len(statements) > 1:
            raise SyntaxInvalid("cannot insert multiple commands into a prepared statement")
        types = given_types(message.types)
        prepared = self._session.prepare(statements[0], types) if statements else EmptyStatement()
        self._objects.keep_statement(message.name, prepared)
        self._say(backend.PARSE_COMPLETE)
        return _DONE

    def _bind(self, message: Bind) -> Outcome:
        statement = self._objects.statement(message.statement)
        prepared = statement.prepared
        if len(message.values) != len(prepared.parameters):
            raise ProtocolViolation(
                f"bind message supplies {len(message.values)} parameters, but prepared statement "
                f'"{message.statement}" requires {len(prepared.parameters)}'
            )
        self._not_in_failed_block(is_empty(statement) or not prepared.leaves_failed_block)
        if message.portal and self._session.declared(message.portal) is not None:
            raise DuplicatePortal(f'cursor "{message.portal}" already exists')
        self._objects.make_room(message.portal)
        zone = self._session.zone
        if not is_empty(statement):
            prepared = self._session.at_bind(prepared)
            if prepared is not statement.prepared:
                statement = NamedStatement(prepared)
        values = decoded(statement.decoders(message.formats, zone), message.values)
        if is_empty(statement):
            made = empty_portal(statement)
        else:
            portal = self._session.bind(prepared, values)
            try:
                result = statement.result(message.result_formats, zone)
            except BaseException:
                portal.close()
                raise
            made = NamedPortal(statement, portal, result)
        self._objects.keep_portal(message.portal, made)
        self._say(backend.BIND_COMPLETE)
        return _DONE

    def _describe(self, message: Describe) -> Outcome:
        if message.portal:
            declared = self._session.declared(message.name)
            if declared is not None:
                self._not_in_failed_block(True)
                self._say(described_columns(declared, ALL_TEXT))
                return _DONE
            portal = self._objects.portal(message.name)
            self._not_in_failed_block(portal.statement.prepared.columns is not None)
            result = None if portal.copies else portal.result
            self._say(backend.NO_DATA if result is None else result.description)
            return _DONE
        statement = self._objects.statement(message.name)
        prepared = statement.prepared
        self._not_in_failed_block(prepared.columns is not None)
        if not is_empty(statement):
            self._session.recheck(prepared)
        self._say(described_parameters(prepared.parameters))
        columns = prepared.columns
        self._say(backend.NO_DATA if columns is None else described_columns(columns, ALL_TEXT))
        return _DONE

    def _execute(self, message: Execute) -> Outcome:
        if not self._resumed:
            self._statements += 1
        if message.portal and self._session.declared(message.portal) is not None:
            return self._execute_declared(message)
        portal = self._objects.portal(message.portal)
        if is_empty(portal.statement):
            self._say(backend.EMPTY_QUERY)
            return _DONE
        self._not_in_failed_block(not portal.statement.prepared.leaves_failed_block)
        used_up = portal.tag is not None and (portal.result is None or portal.copies)
        if used_up or portal.failed:
            raise PortalUsedUp(f'portal "{message.portal}" cannot be run')
        if portal.portal.copy is not None:
            return self._begin_copy(portal)
        tag = self._rows(portal, 0 if portal.copies else message.rows_max)
        if tag is None:
            self._say(backend.PORTAL_SUSPENDED)
            self.suspends = True
        else:
            self._completed(portal, tag)
        return _DONE

    def _execute_declared(self, message: Execute) -> Outcome:
        """As FETCH FORWARD, with the tag of the query; called again it goes on."""
        self._not_in_failed_block(True)
        portal = self._running
        if portal is None:
            rows_max = message.rows_max
            statement = NamedStatement(self._session.prepare_next(message.portal, rows_max))
            result = statement.result(ALL_TEXT, self._session.zone)
            bound = self._session.bind(statement.prepared, ())
            self._running = portal = NamedPortal(statement, bound, result)
        count = str(self._rows(portal, 0)).removeprefix("FETCH ")
        self._close_running()
        if message.rows_max and count == str(message.rows_max):
            self._say(backend.PORTAL_SUSPENDED)
        else:
            self._completed(portal, f"SELECT {count}")
        return _DONE

    def _close(self, message: Close) -> Outcome:
        if message.portal:
            self._objects.drop_portal(message.name)
            self._session.close_declared(message.name)
        else:
            self._objects.drop_statement(message.name)
        self._say(backend.CLOSE_COMPLETE)
        return _DONE

    def _flush_asked(self, message: Flush) -> Outcome:
        self._flush()
        return _DONE

    def _sync(self) -> Outcome | WouldBlock:
        try:
            if self._session.status is not _IDLE:  # a failed one may be gone back in
                self._objects.rest(wholly=True)
            self._session.answer_held = self._statements == 1 and self._tag_at >= 0
            waits = self._end_batch()
            if waits is not None:
                return waits
        except (ClientGone, WouldBlock):
            raise
        except Exception as error:  # noqa: BLE001 - whatever it is, the client gets an answer
            self._simple = True  # nothing is skipped after it: this is the Sync
            self._failed(error)
        self._ready()
        return _DONE

    def _not_in_failed_block(self, concerned: bool) -> None:
        if concerned and self._session.status is _FAILED:
            raise InFailedTransaction

    # --- rows and COPY -----------------------------------------------------------------------

    def _rows(self, portal: NamedPortal, rows_max: int) -> str | None:
        """Says rows, `rows_max` at most (0: all). The tag, or None: as many as were asked for.

        A portal that gave exactly `rows_max` rows counts as suspended, as in PostgreSQL.
        """
        tag = portal.tag
        portion = self._limits.rows_a_fetch_max
        while tag is None and not (rows_max and portal.sent == rows_max):
            self._stop_if_cancelled()  # before the session is asked for more
            wanted = min(portion, rows_max - portal.sent) if rows_max else portion
            rows, tag = portal.fetch(wanted)
            self._begun = False
            assert len(rows) <= wanted, "more rows than were asked for"
            if self._simple or portal.copies:
                self._begin_rows(portal)
            if rows:
                assert portal.result is not None, "rows of a statement without columns"
                self._say(b"".join(map(portal.result.row, rows)))
                portal.sent += len(rows)
            portal.tag = tag
        if portal.copies and portal.result is not None:
            self._say(portal.result.last())
        sent, portal.sent = portal.sent, 0
        if rows_max and sent == rows_max:
            return None
        if tag is None or portal.result is None or portal.copies:
            return tag
        return _counted(tag, sent)

    def _stop_if_cancelled(self) -> None:
        """Raises why. ⚠ Not while the session waits for what it has begun: a commit that is on its
        way is one, or none, whoever wants it or not (T5)."""
        if self._cancelled is not None and not self._begun:
            reason, self._cancelled = self._cancelled, None
            raise reason

    def _begin_rows(self, portal: NamedPortal) -> None:
        """Where its rows are what a call gives: once that can't have to be made again."""
        if portal.result is not None and not portal.begun:
            portal.begun = True
            self._say(portal.result.description)

    def _begin_copy(self, portal: NamedPortal) -> Outcome:
        target = portal.portal.copy
        assert target is not None
        self._copy = (portal, CopyRows(target, self._session.zone, self._limits))
        self._say(backend.copy_in(len(target.columns), binary=target.format.binary))
        self._flush()
        return Outcome.COPY_BEGINS

    def _break_copy(self) -> None:
        try:
            self._stop_if_cancelled()
        except Exception as error:  # noqa: BLE001 - the reason, which is the answer
            self.phase = AFTER[self._answered(error)]

    def _copy_part(self, kind: int, body: bytes) -> Outcome:
        message = READERS[kind](body, self._limits)
        assert self._copy is not None
        portal, rows = self._copy
        if isinstance(message, CopyData):
            rows.feed(message.data)
            return Outcome.COPY_BEGINS
        if isinstance(message, CopyFail):
            raise Canceled(f"COPY from stdin failed: {message.reason}")
        rows.finish()
        tag = portal.portal.fetch(1).tag
        assert tag is not None, "COPY ends with one fetch"
        self._copy = None
        portal.tag = tag
        portal.portal.close()
        self._completed(portal, tag)
        return self._run_queue() if self._simple else _DONE

    # --- ends of transactions, and what is said ----------------------------------------------

    def _end_batch(self) -> WouldBlock | None:
        waits = self._session.end_batch()
        if waits is None:
            self._transaction_may_be_over()
        return waits

    def _end_simple_batch(self) -> None:
        """Raises WouldBlock: what is said behind it, and the statement's own place, wait with
        it."""
        waits = self._end_batch()
        if waits is not None:
            raise waits

    def _transaction_may_be_over(self) -> None:
        if self._session.status is _IDLE:
            self._objects.drop_portals()

    def _reports(self) -> None:
        """Raises UnknownPreparedStatement, UnknownPortal."""
        for report in self._session.take_reports():
            if isinstance(report, Deallocated):
                self._objects.deallocate(report.name)
            elif isinstance(report, PortalsClosed):
                self._objects.close_portals(report.name)
            else:
                self._told(report)

    def _told(self, report: Report) -> None:
        """What a client is told of. Settings wait for ReadyForQuery, as in PostgreSQL."""
        if isinstance(report, Notice):
            self._say(backend.notice(notice_fields(*report)))
        elif isinstance(report, SettingChanged):
            self._settings[report.name] = report.value
        elif isinstance(report, Recounted):
            self._recounted = report.tag

    def _ready(self) -> None:
        self._in_batch = self.suspends = False
        self._reports()
        if self._recounted and self._tag_at >= 0:
            self._out[self._tag_at] = backend.complete(self._recounted)
        self._statements, self._tag_at, self._recounted = 0, -1, ""
        self._session.answer_held = False
        if self._settings:
            for name, value in self._settings.items():
                if self._known_settings.get(name) != value:
                    self._say(backend.parameter_status(name, value))
            self._known_settings |= self._settings
            self._settings.clear()
        self._say(READY[self._session.status])
        self._flush()

    def _say(self, data: bytes) -> None:
        self._out.append(data)
        self._out_bytes += len(data)
        if self._out_bytes >= self._limits.output_bytes_max:
            self._flush()

    def _flush(self) -> None:
        if self._out:
            data = b"".join(self._out)
            self._out.clear()
            self._tag_at = -1
            self._out_bytes = 0
            self._said_bytes += len(data)
            behind = self._hand_over(data)
            if behind is not None:
                self.rest(behind)


def _counted(tag: str, sent: int) -> str:
    """A tag that counts rows counts those of one Execute, as in PostgreSQL."""
    head, _, count = tag.rpartition(" ")
    verb = head if count.isdecimal() else tag
    return f"{verb} {sent}" if verb in _COUNTED else tag


def _at_once(soon: Callable[[], None]) -> None:
    soon()


READY: Final = {status: backend.ready(status.value) for status in Status}
_COUNTED: Final = frozenset(("SELECT", "FETCH", "INSERT 0", "UPDATE", "DELETE"))
_SYNC: Final = ord("S")
_FUNCTION_CALL: Final = ord("F")
_SIMPLE: Final = frozenset((ord("Q"), _FUNCTION_CALL))
