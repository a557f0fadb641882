"""The conversation with one client once it is let in: bytes in, calls of its session, bytes out.

`receive` runs every message that is whole; phases.py says what is run, skipped or refused. Behind
it are the two protocols (simple_query.py, extended_query.py), COPY (copy_in.py), and what these
share (batch.py). What is said gathers in replies.py.

In a hurry a message that would wait is held as it is, with what its statements have done so far:
`receive` returns what it waits for, and its next call goes on with it, on whichever thread. Only
the session's calls raise WouldBlock, and only `_take` catches it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from leasehold.model import metrics
from leasehold.model.errors import InternalFailure, LeaseholdError
from leasehold.model.measures import Measures
from leasehold.pgwire.batch import Batch
from leasehold.pgwire.copy_in import CopyIn
from leasehold.pgwire.extended_query import ExtendedQuery
from leasehold.pgwire.limits import Limits
from leasehold.pgwire.messages import backend
from leasehold.pgwire.messages.error_fields import error_fields
from leasehold.pgwire.messages.framing import Framing
from leasehold.pgwire.phases import AFTER, AFTER_ERROR, TABLE, Action, Behind, Outcome, Phase
from leasehold.pgwire.replies import ClientGone, HandOver
from leasehold.pgwire.session import Session, Status, WouldBlock
from leasehold.pgwire.simple_query import SimpleQuery
from leasehold.pgwire.wire_errors import (
    AdminShutdown,
    IdleInTransactionTooLong,
    IdleTooLong,
    ProtocolViolation,
)

HURRIED_MESSAGES_MAX: Final = 64
"""Then others have their turn; so they have once `output_bytes_max` was said."""
# Asked for with every message, and a member of an enum costs more than a call.
_CLOSED: Final = Phase.CLOSED
_READY: Final = Phase.READY
_COPYING: Final = (Phase.COPYING_SIMPLE, Phase.COPYING_EXTENDED)
_SIMPLE: Final = Action.SIMPLE
_EXTENDED: Final = Action.EXTENDED
_SYNC: Final = Action.SYNC
_COPY_SIMPLE: Final = Action.COPY_SIMPLE
_COPY_EXTENDED: Final = Action.COPY_EXTENDED
_REFUSE: Final = Action.REFUSE
_IDLE: Final = Status.IDLE
_COPY_DATA: Final = ord("d")
ENDS_ALL: Final = (AdminShutdown, IdleInTransactionTooLong, IdleTooLong)
"""Why a statement may be cancelled that ends the connection, too."""


class Conversation:
    """What a connection is once its session is open. `log_defect` is given every exception that is
    not of the tree of errors."""

    def __init__(
        self,
        session: Session,
        hand_over: HandOver,
        limits: Limits,
        log_defect: Callable[[Exception], None],
        measures: Measures | None = None,
        clock_ns: Callable[[], int] = lambda: 0,
    ) -> None:
        """Begin. `measures`: where its statements are counted, and timed by `clock_ns`."""
        self._measures = measures or Measures()
        self._session = session
        self._limits = limits
        self._log_defect = log_defect
        self._framing = Framing(limits)
        self._batch = Batch(session, hand_over, limits, self._measures, clock_ns)
        self._copy_in = CopyIn(self._batch)
        self._simple = SimpleQuery(self._batch, self._copy_in)
        self._extended = ExtendedQuery(self._batch, self._copy_in)
        self._held: tuple[int, bytes] | None = None
        self._unfinished = False
        self.phase = Phase.READY

    # --- what the adapter calls --------------------------------------------------------------

    def begin(self, process: int, key: bytes) -> None:
        """Tell the client what it may rely on, and how to cancel."""
        self._batch.welcome(process, key)

    def receive(self, data: bytes, *, hurried: bool = False) -> WouldBlock | None:
        """Run every message that is whole, and return None. `hurried`: this thread is others', too;
        then a WouldBlock may come back, which says when to call again, with no data, and on what
        thread. Raises ClientGone."""
        waits = self._run_messages(data, hurried)
        self._unfinished = waits is not None
        return waits

    def cancel(self, reason: Exception) -> None:
        """End what runs now, from any thread, be it in the session or between two portions of its
        rows; nothing of the next batch is touched."""
        self._batch.cancelled = reason
        self._session.cancel(reason)

    def rest(self, behind: Behind) -> None:
        """Put aside what the client does not take, as `Batch.rest` does."""
        self._batch.rest(behind)

    @property
    def tells(self) -> bool:
        """Whether there is something to `tell`."""
        ready = self.phase is _READY and not self._batch.is_open
        return ready and self._session.has_notifications and self._session.status is _IDLE

    def tell(self) -> None:
        """Tell a client that waits for nothing what was told to the channels that it listens to, as
        far as it is one portion. Raises ClientGone."""
        if self.tells:
            self._batch.tell_notifications()
            self._batch.replies.flush()

    def end(self, error: LeaseholdError | None = None) -> None:
        """Say the last words, if any: nothing is taken or said after them."""
        if self.phase is _CLOSED:
            return
        self.phase = _CLOSED
        if error is not None:
            self._batch.replies.say(backend.error(error_fields(error, "FATAL")))
            self._batch.replies.flush()

    def close(self) -> None:
        """Give back everything; also after ClientGone."""
        self.phase = _CLOSED
        self._copy_in.drop()
        self._batch.close_running()
        self._batch.objects.drop_portals()
        self._session.close()

    @property
    def has_work(self) -> bool:
        """Whether `receive` has to be called again, though no bytes come: it has said so, be it
        that a message is held or that whole ones were left, or there is a COPY to end."""
        return self._unfinished or self.interrupted

    @property
    def copies(self) -> bool:
        """Whether it is in the middle of a COPY … FROM STDIN, even if its client says nothing."""
        return self.phase in _COPYING

    @property
    def interrupted(self) -> bool:
        """Whether there is a COPY to end before its client says more."""
        return self._batch.cancelled is not None and self.copies

    @property
    def has_begun(self) -> bool:
        """Whether what is held has to be gone on with, even if nobody is there to hear of it."""
        return self._held is not None and self._batch.has_begun

    @property
    def suspends(self) -> bool:
        """Whether a portal of this batch was suspended, which may hold what others wait for."""
        return self._batch.suspends

    @property
    def steps(self) -> int:
        """A count of the messages and statements that have begun."""
        return self._batch.steps

    @property
    def status(self) -> Status:
        return self._session.status

    # --- messages ----------------------------------------------------------------------------

    def _run_messages(self, data: bytes, hurried: bool) -> WouldBlock | None:
        if data:
            self._framing.feed(data)
        self._session.hurried = hurried
        batch, left = self._batch, HURRIED_MESSAGES_MAX
        batch.replies.turn_bytes = 0
        while self.phase is not _CLOSED:
            if self.interrupted:
                if hurried:
                    return WouldBlock()
                self._break_copy()
            message, self._held = self._held, None
            batch.resumes = message is not None
            batch.has_begun = batch.has_begun and batch.resumes
            if message is None:
                try:
                    message = self._framing.next_message()
                except ProtocolViolation as error:
                    self.end(error)
                    return None
                if message is None:
                    return None
            outcome = self._take(*message, hurried)
            if isinstance(outcome, WouldBlock):
                self._held, batch.has_begun = message, outcome.begun
                return outcome
            if outcome is not None:
                self.phase = AFTER[outcome]
            left -= 1
            if hurried and (left <= 0 or batch.replies.turn_bytes > self._limits.output_bytes_max):
                return WouldBlock(_call_at_once)
        return None

    def _take(self, kind: int, body: bytes, hurried: bool) -> Outcome | WouldBlock | None:
        """Do with a message what the table says; return what it has come to, or what it waits for,
        or None where the phase stays."""
        action = TABLE[self.phase].get(kind, _REFUSE)
        copies = action is _COPY_SIMPLE or action is _COPY_EXTENDED
        batch = self._batch
        if not batch.resumes:
            if not copies:  # a COPY is one statement with all its data
                batch.steps += 1
            if not batch.is_open:
                batch.open()
        try:
            if action is _EXTENDED:
                return self._extended.run(kind, body)
            if action is _SYNC:
                return self._sync()
            if action is _SIMPLE:
                return self._simple.run(kind, body)
            if copies:
                return WouldBlock() if hurried else self._take_copy(action, kind, body)
        except ClientGone:
            raise
        except WouldBlock as waits:
            # Its frames hold it, by their callers' ones, until the cycle collector finds them.
            return waits.with_traceback(None)
        except Exception as error:  # noqa: BLE001 - whatever it is, the client gets an answer
            return self._answer_error(error, action)
        return self._end_by(action, kind)

    def _end_by(self, action: Action, kind: int) -> Outcome | None:
        """Do with a message what needs nobody: end the connection, or take no notice."""
        match action:
            case Action.REFUSE:
                self.end(ProtocolViolation(f"message type {chr(kind)!r} is not expected here"))
            case Action.BREAK_COPY:
                self._fail(
                    ProtocolViolation(
                        f"unexpected message type 0x{kind:02X} during COPY from stdin"
                    )
                )
                self.end(
                    ProtocolViolation(
                        "terminating connection because protocol synchronization was lost"
                    )
                )
            case Action.DROP:
                return None
        return Outcome.ENDED

    def _sync(self) -> Outcome | WouldBlock:
        batch = self._batch
        if self._session.status is not _IDLE:  # a failed one may be gone back in
            batch.objects.rest(wholly=True)
        self._session.answer_held = batch.statements == 1 and batch.replies.holds_tag
        waits = batch.end_transaction()
        if waits is not None:
            return waits
        batch.become_ready()
        return Outcome.DONE

    # --- COPY and errors ---------------------------------------------------------------------

    def _take_copy(self, action: Action, kind: int, body: bytes) -> Outcome | None:
        ended = self._copy_in.take(kind, body)
        if ended is None:
            return None
        if action is _COPY_SIMPLE:
            return self._simple.go_on_after_copy(*ended)
        self._batch.complete(*ended)
        return Outcome.DONE

    def _break_copy(self) -> None:
        """End a COPY that was cancelled while its client says nothing."""
        try:
            self._batch.stop_if_cancelled()
        except Exception as error:  # noqa: BLE001 - the reason, which is the answer
            self.phase = AFTER[self._answer_error(error, TABLE[self.phase][_COPY_DATA])]

    def _answer_error(self, error: Exception, action: Action) -> Outcome:
        """Fail the transaction, tell the client, and return what its batch has come to."""
        if not isinstance(error, LeaseholdError):
            self._log_defect(error)
        self._count_failure(error)
        self._fail(error)
        if isinstance(error, ENDS_ALL):
            self.end(error)
            return Outcome.ENDED
        outcome = AFTER_ERROR[action]
        if outcome is Outcome.FAILED_READY:
            self._batch.become_ready()
        else:
            self._batch.replies.flush()
        return outcome

    def _count_failure(self, error: Exception) -> None:
        code = error.sqlstate if isinstance(error, LeaseholdError) else InternalFailure.sqlstate
        self._measures.add(metrics.STATEMENT_ERRORS, 1, (code,))

    def _fail(self, error: Exception) -> None:
        self._copy_in.drop()
        self._simple.drop()
        self._batch.fail()
        if not isinstance(error, ENDS_ALL):
            self._batch.replies.say(backend.error(error_fields(error)))


def _call_at_once(soon: Callable[[], None]) -> None:
    soon()
