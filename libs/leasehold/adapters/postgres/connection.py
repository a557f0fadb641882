"""The socket of one client, on the loop's thread, and its session, on one thread at a time.

    loop: bytes ─▶ greeting ─▶ admitted │ bytes ─▶ inbox ─▶ if nobody is at it, a turn in a hurry:
          Conversation.receive ─▶ session … ─▶ transport.write
          what would wait ─▶ when it is worth it, the next turn; or at once a worker
    worker: inbox ─▶ Conversation.receive ─▶ session … ─▶ say ─▶ loop: transport.write

The inbox is the only hand-over: whoever finds it in use leaves the bytes there. On a worker `say`
waits while the client does not read; reading pauses while the inbox is full.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import socket
import traceback
from collections.abc import Callable
from dataclasses import dataclass
from ipaddress import ip_address
from threading import Condition, Lock
from time import monotonic
from typing import TYPE_CHECKING, Final, cast

from leasehold.adapters.postgres.reader_pace import ASIDE_LAG_S, ReaderPace
from leasehold.model.errors import LeaseholdError
from leasehold.pgwire.auth.startup import (
    Admitted,
    BeginTls,
    CancelAsked,
    Effect,
    Greeting,
    HangUp,
    Say,
)
from leasehold.pgwire.conversation import Conversation
from leasehold.pgwire.messages import backend
from leasehold.pgwire.messages.error_fields import error_fields
from leasehold.pgwire.phases import Behind, Phase
from leasehold.pgwire.replies import ClientGone
from leasehold.pgwire.session import Session, Status, WouldBlock
from leasehold.pgwire.wire_errors import (
    Canceled,
    IdleInTransactionTooLong,
    IdleTooLong,
    TooManyConnections,
)

if TYPE_CHECKING:
    from leasehold.adapters.postgres.server import PgwireServer

LOG: Final = logging.getLogger("leasehold.pgwire")
INBOX_BYTES_MAX: Final = 1 << 20
HANDED_BYTES_MAX: Final = 1 << 18
CLOSING_S_MAX: Final = 10.0
_CLOSED: Final = Phase.CLOSED  # a member of an enum costs more than a call
KEEP_ALIVE: Final = (
    (socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1),
    (socket.IPPROTO_TCP, socket.TCP_KEEPIDLE, 60),  # s, then five probes at most
    (socket.IPPROTO_TCP, socket.TCP_KEEPINTVL, 12),
    (socket.IPPROTO_TCP, socket.TCP_KEEPCNT, 5),
)


@dataclass(frozen=True, slots=True)
class Admission:
    """The client that was let in, for whoever opens the session. `process` is the number of the
    connection."""

    user: str
    database: str
    parameters: dict[str, str]
    process: int


SessionFactory = Callable[[Admission], Session]


class PgwireClient:
    """What uvloop calls of an `asyncio.Protocol`, without being one: it is compiled, and a compiled
    class inherits from compiled ones alone."""

    def __init__(self, server: PgwireServer, process: int) -> None:
        self._server = server
        self.process = process
        self.key = b""
        self._greeting: Greeting | None = None
        self._transport: asyncio.Transport | None = None
        self._tls_task: asyncio.Task[None] | None = None
        self._lock = Lock()
        self._state = Condition(self._lock)  # entered by its lock, which takes a tenth of the time
        # Below: what both threads touch, under _lock.
        self._inbox: list[bytes] = []
        self._inbox_bytes = 0
        self._busy = False
        self._gone = False
        self._paused = False
        self._reading_paused = False
        self._handed_bytes = 0
        self._last_words: LeaseholdError | None = None
        # Below: of who is at work alone, while busy.
        self._admission: Admission | None = None
        self._minor = 0
        self._session: Session | None = None
        self._conversation: Conversation | None = None
        self._pace: ReaderPace | None = None  # of a client that had to be waited for
        self._is_to_rest = False
        # Below: the loop's, for the limits of time.
        self._seen: object = None
        self._since_s = 0.0
        self._closing_s: float | None = None
        self._due_s: float | None = None  # until then it waits to go on with what it holds
        self._in_turn = False
        self._gathered: list[bytes] = []  # in this turn

    # --- on the loop -------------------------------------------------------------------------

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)
        self._since_s = self._server.now_s()
        peer = transport.get_extra_info("peername")
        if peer is None:  # it has left again already
            self._transport.abort()
            return
        address = ip_address(peer[0])
        if not self._server.add_arrival(self, address):
            self._transport.abort()
            return
        _keep_alive(transport.get_extra_info("socket"))
        self._greeting = self._server.make_greeting(address.is_loopback)

    def data_received(self, data: bytes) -> None:
        if self._greeting is not None:
            for effect in self._greeting.receive(data):
                self._follow(effect)
            return
        if self._admission is None:  # it was turned away, and says more
            return
        with self._lock:
            self._inbox.append(data)
            self._inbox_bytes += len(data)
            if self._inbox_bytes > INBOX_BYTES_MAX and not self._reading_paused:
                self._reading_paused = True
                self._pause_reading()
            start = self._claim_work()
        if start:
            self._take_turn()

    def pause_writing(self) -> None:
        with self._lock:
            self._paused = True

    def resume_writing(self) -> None:
        with self._lock:
            self._paused = False
            self._state.notify_all()

    def eof_received(self) -> bool:
        """Return False, which ends the connection: who says no more is gone."""
        return False

    def connection_lost(self, error: Exception | None) -> None:
        self._greeting = None
        if self._tls_task is not None:
            self._tls_task.cancel()
        with self._lock:
            self._gone = True
            self._state.notify_all()
            start = self._admission is not None and self._claim_work()
        if self._closing_s is not None or self._admission is None:
            self._server.remove(self)  # there is no session to be closed before
        self.cancel(Canceled("the client is gone"))
        if start:
            self._server.workers.submit(self._work)

    def check_time(self, now_s: float) -> None:
        """End or cancel what takes longer than it may."""
        if self._due_s is not None and now_s >= self._due_s:
            # What it waits for does not come: a worker finds that out, and says so.
            self._due_s = None
            self._server.workers.submit(self._work)
        if self._closing_s is not None:
            if now_s - self._closing_s > CLOSING_S_MAX:
                self.abort()  # it does not read its last answer
            return
        if self._greeting is not None:
            if now_s - self._since_s > self._server.settings.greeting_timeout_s:
                self.abort()
            return
        conversation, session = self._conversation, self._session
        if conversation is None or session is None:
            return
        busy = self._busy or conversation.copies
        seen = (busy, conversation.steps)
        if seen != self._seen:
            self._seen, self._since_s = seen, now_s
            return
        limits, passed_s = session.time_limits, now_s - self._since_s
        if conversation.suspends and not busy and passed_s > ASIDE_LAG_S:
            self._schedule_rest()
        elif busy:
            if _is_over(passed_s, limits.statement_s):
                self.cancel(Canceled("canceling statement due to statement timeout"))
        elif conversation.status is Status.IDLE:
            if _is_over(passed_s, limits.idle_s):
                self.end(IdleTooLong("terminating connection due to idle-session timeout"))
        elif _is_over(passed_s, limits.idle_in_transaction_s):
            self.end(
                IdleInTransactionTooLong(
                    "terminating connection due to idle-in-transaction timeout"
                )
            )

    def _schedule_rest(self) -> None:
        with self._lock:
            start = self._claim_work()
        if start:
            self._is_to_rest = True
            self._server.workers.submit(self._work)

    def end(self, error: LeaseholdError) -> None:
        """End the connection with these last words, as soon as nothing runs on it."""
        if self._admission is None:
            self.abort()
            return
        with self._lock:
            self._last_words = self._last_words or error
            start = self._claim_work()
        if start:
            self._server.workers.submit(self._work)

    def cancel(self, reason: Exception) -> None:
        conversation = self._conversation
        if conversation is None or not (self._busy or conversation.copies):
            return
        conversation.cancel(reason)
        with self._lock:  # nobody is at a COPY that waits for its client
            start = conversation.interrupted and self._claim_work()
        if start:
            self._server.workers.submit(self._work)

    def _follow(self, effect: Effect) -> None:
        assert self._transport is not None
        if isinstance(effect, Say):
            self._transport.write(effect.data)
        elif isinstance(effect, BeginTls):
            self._transport.pause_reading()
            self._tls_task = self._server.begin_tls(self, self._transport)
        elif isinstance(effect, CancelAsked):
            self._server.cancel(effect.process, effect.key)
        elif isinstance(effect, HangUp):
            self._hang_up(effect.error)
        else:
            self._admit(effect)

    def tls_begun(self, made: asyncio.Transport | None) -> None:
        if made is None or self._greeting is None:
            return
        self._transport = made
        self._greeting.tls_begun()

    def tls_failed(self) -> None:
        """Let the client go: there is no TLS, or nobody, and the transport is closed."""
        self._greeting = None
        self._server.remove(self)

    def _hang_up(self, error: LeaseholdError | None) -> None:
        """Close the connection of one who was not let in; what was said to it may still be on its
        way out."""
        assert self._transport is not None
        if error is not None:
            LOG.info("refused a connection: %s", error.sqlstate)
        self._greeting = None
        self._closing_s = self._server.now_s()
        self._transport.close()

    def _admit(self, effect: Admitted) -> None:
        if not self._server.admit(self):  # told here: every worker may be busy
            assert self._transport is not None
            error = TooManyConnections("sorry, too many clients already")
            self._transport.write(backend.error(error_fields(error, "FATAL")))
            self._hang_up(error)
            return
        self._greeting = None
        self._minor = effect.minor
        self._admission = Admission(
            effect.user, effect.database, dict(effect.parameters), self.process
        )
        with self._lock:
            self._inbox = [effect.rest] if effect.rest else []
            self._busy = True
        self._server.workers.submit(self._open)

    def write_gathered(self) -> None:
        assert self._transport is not None
        said, self._gathered = self._gathered, []
        if not (self._gone or self._transport.is_closing()):
            self._transport.write(b"".join(said))

    def _write(self, data: bytes) -> None:
        assert self._transport is not None
        if not self._gone:
            self._transport.write(data)
        with self._lock:
            self._handed_bytes -= len(data)
            self._state.notify_all()

    def _pause_reading(self) -> None:
        assert self._transport is not None
        if not self._transport.is_closing():
            self._transport.pause_reading()

    def _resume_reading(self) -> None:
        assert self._transport is not None
        if not self._transport.is_closing():
            self._transport.resume_reading()

    def _close(self) -> None:
        """Close the transport once the session is closed; what was said may still be on its way
        out."""
        assert self._transport is not None
        self._closing_s = self._server.now_s()
        if self._gone:
            self._server.remove(self)
        else:
            self._transport.close()

    def abort(self) -> None:
        assert self._transport is not None
        self._greeting = None
        self._transport.abort()

    def _claim_work(self) -> bool:
        """Mark the client as busy, and return whether it was not, so that the caller has to call a
        worker. Under _lock."""
        if self._busy:
            return False
        self._busy = True
        return True

    # --- a turn on the loop --------------------------------------------------------------------

    def _take_turn(self) -> None:
        """Do what can be done at once; the rest is a worker's, or the next turn's."""
        conversation = self._conversation
        assert conversation is not None
        if self._paused:
            self._server.workers.submit(self._work)
            return
        self._in_turn = True
        waits = self._serve(conversation, hurried=True)
        if waits is None:
            return
        if waits.until is None:
            self._server.workers.submit(self._work)
        else:
            self._due_s = self._server.now_s() + waits.timeout_s
            waits.until(self._schedule_resume)

    def _schedule_resume(self) -> None:
        """Make the loop go on with what waits; called by any thread."""
        self._server.resume_soon(self)

    def resume(self) -> None:
        if self._due_s is not None:  # else it was too late, and a worker is at it
            self._due_s = None
            self._take_turn()

    # --- on a worker -------------------------------------------------------------------------

    def _open(self) -> None:
        assert self._admission is not None
        try:
            self._session = self._server.open_session(self._admission)
        except Exception as error:  # noqa: BLE001 - the client must hear of it, whatever it is
            if not isinstance(error, LeaseholdError):
                log_defect(error)
            self._turn_away(error)
            return
        self.key = self._server.make_key(self._minor)
        self._conversation = Conversation(
            self._session, self._hand_over, self._server.limits, log_defect
        )
        with contextlib.suppress(ClientGone):
            self._conversation.begin(self.process, self.key)
        self._work()

    def _turn_away(self, error: Exception) -> None:
        with contextlib.suppress(ClientGone):
            self._hand_over(backend.error(error_fields(error, "FATAL")))
        self._schedule_close()

    def _work(self) -> None:
        """Do what needs a thread that nobody else waits for."""
        conversation = self._conversation
        assert conversation is not None
        self._in_turn = False
        if self._is_writable():
            self._pace = None  # it has taken what it was told before
        self._serve(conversation, hurried=False)

    # --- on either -----------------------------------------------------------------------------

    def _serve(self, conversation: Conversation, *, hurried: bool) -> WouldBlock | None:
        """Run what is in the inbox until nothing is, or leave when the connection has ended; return
        what it waits for, in a hurry. The one loop that calls the session."""
        try:
            if self._is_to_rest:
                self._is_to_rest = False
                conversation.rest(Behind.STANDING)
            while conversation.phase is not _CLOSED:
                taken = self._take_inbox(conversation)
                if taken is None:
                    return None
                last_words, gone, data = taken
                if gone and not conversation.has_begun:
                    break
                if last_words is not None and not conversation.has_begun:
                    conversation.end(last_words)
                    continue
                waits = conversation.receive(data, hurried=hurried)
                if waits is not None and hurried:
                    return waits
        except ClientGone:
            pass
        except Exception as error:  # noqa: BLE001 - a defect ends this connection, no other one
            log_defect(error)
        self._leave(conversation)
        return None

    def _leave(self, conversation: Conversation) -> None:
        """Close the session. ⚠ Whatever that raises is caught: on the loop others wait for their
        turn behind it, on a worker the thread would end with it, and its place would be taken for
        ever."""
        try:
            conversation.close()
        except Exception as error:  # noqa: BLE001 - a defect ends this connection, no other one
            log_defect(error)
        self._schedule_close()

    def _take_inbox(
        self, conversation: Conversation
    ) -> tuple[LeaseholdError | None, bool, bytes] | None:
        """Return last words, whether the client is gone, and what has come; or None if there is
        nothing to do, and nobody is at it any more."""
        with self._lock:
            last_words, gone = self._last_words, self._gone
            data, resume = b"", False
            if not conversation.has_work:  # else what came stays, so that reading can pause
                data = b"".join(self._inbox)
                self._inbox.clear()
                self._inbox_bytes = 0
                resume, self._reading_paused = self._reading_paused, False
                if not (data or gone or last_words):
                    self._busy = False
                    return None
        if resume:
            self._server.call_soon(self._resume_reading)
        return last_words, gone, data

    def _schedule_close(self) -> None:
        """Close the transport. The client stays busy for ever, so that no worker comes here
        again."""
        self._server.call_soon(self._close)

    def _hand_over(self, data: bytes) -> Behind | None:
        """Hand data over, which on a worker waits while the client does not read. Raises
        ClientGone."""
        if self._in_turn and not self._handed_bytes:  # what was handed over comes first
            if self._gone:
                raise ClientGone
            self._gathered.append(data)
            self._server.schedule_send(self, more=len(self._gathered) > 1)
            return None
        with self._lock:
            behind = None if self._in_turn else self._wait_for_reader()
            if self._gone:
                raise ClientGone
            self._handed_bytes += len(data)
            if self._pace is not None:
                self._pace.add_given(len(data))
        self._server.call_soon(self._write, data)
        return behind

    def _wait_for_reader(self) -> Behind | None:
        """Return how far the client is behind, once it has read, or when it is farther behind than
        before: then one part more is handed over, so that its session hears of it. Under _lock.
        Raises ClientGone."""
        pace = self._pace
        if pace is None:
            if self._is_writable():
                return None
            pace = self._pace = ReaderPace(self._server.settings.write_timeout_s)
        before = pace.behind
        while not self._is_writable():
            if pace.is_given_up:
                LOG.info("closed a connection whose client did not read for too long")
                self._server.call_soon(self.abort)
                raise ClientGone
            begun_s = monotonic()
            self._state.wait_for(self._is_writable, pace.wait_s)
            pace.add_wait(monotonic() - begun_s)
            if pace.behind is not before and not pace.is_given_up:
                return pace.behind
        pace.catch_up()
        return pace.behind

    def _is_writable(self) -> bool:
        return self._gone or not (self._paused or self._handed_bytes > HANDED_BYTES_MAX)


def _keep_alive(connection: socket.socket) -> None:
    """Make the kernel notice a machine that is gone without a word: its session's transaction would
    pin the versions that it has used for ever, and hold up every change of their tables."""
    for level, option, value in KEEP_ALIVE:
        connection.setsockopt(level, option, value)


def log_defect(error: Exception) -> None:
    """Log where an exception was raised, never what it says: its words may hold values of rows."""
    frames = "".join(traceback.format_tb(error.__traceback__))
    LOG.error("internal error (%s); please report it:\n%s", type(error).__name__, frames)


def _is_over(passed_s: float, limit_s: float) -> bool:
    return 0 < limit_s < passed_s
