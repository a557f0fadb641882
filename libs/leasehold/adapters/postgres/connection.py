"""The socket of one client, on the loop's thread, and its session, on one thread at a time.

    loop: bytes ─▶ greeting ─▶ admitted │ bytes ─▶ inbox ─▶ if nobody is at it, a turn in a hurry
          (loop_turns.py says when):
          Conversation.receive ─▶ session … ─▶ transport.write
          what would wait ─▶ when it is worth it, the next turn; or at once a worker
    worker: inbox ─▶ Conversation.receive ─▶ session … ─▶ outlet ─▶ loop: transport.write

The inbox is the only hand-over: whoever finds it in use leaves the bytes there; reading pauses
while it is full. What is said leaves by the outlet (outlet.py).
"""

from __future__ import annotations

import asyncio
import contextlib
import socket
import traceback
from collections.abc import Callable
from dataclasses import dataclass
from ipaddress import ip_address
from typing import TYPE_CHECKING, Final, cast

from leasehold.adapters.os.clock import boottime_ns
from leasehold.adapters.postgres.loop_turns import LoopTurn
from leasehold.adapters.postgres.outlet import LOG, Outlet
from leasehold.adapters.postgres.reader_pace import ASIDE_LAG_S
from leasehold.model.errors import LeaseholdError
from leasehold.model.measures import Measures
from leasehold.pgwire.auth.logins import Account, TlsChannel
from leasehold.pgwire.auth.startup import (
    Admitted,
    BeginTls,
    CancelAsked,
    Effect,
    Greeting,
    HangUp,
    Say,
    Wait,
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
)

if TYPE_CHECKING:
    from leasehold.adapters.postgres.server import PgwireServer

INBOX_BYTES_MAX: Final = 1 << 20
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
    connection; `account` what is known of the user, None for nothing: nobody is asked who he is."""

    user: str
    database: str
    parameters: dict[str, str]
    process: int
    account: Account | None = None


SessionFactory = Callable[[Admission], Session]


class PgwireClient:
    """What uvloop calls of an `asyncio.Protocol`, without being one: it is compiled, and a compiled
    class inherits from compiled ones alone."""

    def __init__(self, server: PgwireServer, process: int) -> None:
        self._server = server
        self.process = process
        self.key = b""
        self._greeting: Greeting | None = None
        self._outlet = Outlet(server, self.abort)
        self._tls_task: asyncio.Task[None] | None = None
        self._lock = self._outlet.lock
        self._turn = LoopTurn(self._take_turn)
        # Below: what both threads touch, under _lock.
        self._inbox: list[bytes] = []
        self._inbox_bytes = 0
        self._busy = False
        self._reading_paused = False
        self._last_words: LeaseholdError | None = None
        # Below: of who is at work alone, while busy.
        self._admission: Admission | None = None
        self._minor = 0
        self._session: Session | None = None
        self._conversation: Conversation | None = None
        self._measures: Measures | None = None
        self._is_to_rest = self._is_to_tell = False
        self.address = ""
        self._early: list[bytes] | None = None  # what came by TLS before it was told that it began
        # Below: the loop's, for the limits of time.
        self._seen: object = None
        self._since_s = 0.0
        self._closing_s: float | None = None
        self._due_s: float | None = None  # until then it waits to go on with what it holds

    @property
    def _transport(self) -> asyncio.Transport:
        transport = self._outlet.transport
        assert transport is not None
        return transport

    # --- on the loop -------------------------------------------------------------------------

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._outlet.transport = cast(asyncio.Transport, transport)
        self._since_s = self._server.now_s()
        peer = transport.get_extra_info("peername")
        if peer is None:  # it has left again already
            self._transport.abort()
            return
        address = ip_address(peer[0])
        self.address = f"{peer[0]}:{peer[1]}"
        if not self._server.add_arrival(self, address):
            self._transport.abort()
            return
        _keep_alive(transport.get_extra_info("socket"))
        self._greeting = self._server.make_greeting(address)

    def data_received(self, data: bytes) -> None:
        if self._early is not None:
            self._early.append(data)
            return
        if self._greeting is not None:
            self._follow_all(self._greeting.receive(data))
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
            self._server.turns.ask(self._turn)

    def pause_writing(self) -> None:
        self._outlet.pause()

    def resume_writing(self) -> None:
        self._outlet.resume()
        self.tell()

    def eof_received(self) -> bool:
        """Return False, which ends the connection: who says no more is gone."""
        return False

    def connection_lost(self, error: Exception | None) -> None:
        self._greeting = None
        if self._tls_task is not None:
            self._tls_task.cancel()
        with self._lock:
            self._outlet.lose()
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

    def tell(self) -> None:
        """Tell the client what waits for it (NOTIFY), if its session is idle. ⚠ Not while it does
        not read: what it is told would be nowhere bounded. It is told then when it reads, and one
        that is busy when it is not."""
        conversation = self._conversation
        if conversation is None or self._outlet.is_paused or not conversation.tells:
            return
        with self._lock:
            start = self._claim_work()
        if start:
            self._is_to_tell = True
            self._server.turns.ask(self._turn)

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

    def _follow_all(self, effects: list[Effect]) -> None:
        for effect in effects:
            self._follow(effect)

    def _follow(self, effect: Effect) -> None:
        if isinstance(effect, Say):
            self._transport.write(effect.data)
        elif isinstance(effect, BeginTls):
            self._transport.pause_reading()
            self._early = []
            self._tls_task = self._server.begin_tls(self, self._transport, effect.first)
        elif isinstance(effect, Wait):
            self._transport.pause_reading()
            self._server.loop.call_later(effect.seconds, self._resume_greeting)
        elif isinstance(effect, CancelAsked):
            self._server.cancel(effect.process, effect.key)
        elif isinstance(effect, HangUp):
            self._hang_up(effect.error)
        else:
            self._admit(effect)

    def _resume_greeting(self) -> None:
        """Look at the password of one who had to wait, if he still does."""
        if self._greeting is not None:
            self._resume_reading()
            self._follow_all(self._greeting.resume())

    def tls_begun(self, made: asyncio.Transport, channel: TlsChannel) -> None:
        if self._greeting is None:
            return
        self._outlet.transport = made
        self._greeting.tls_begun(channel)
        early, self._early = self._early, None
        if early:
            self._follow_all(self._greeting.receive(b"".join(early)))

    def tls_failed(self) -> None:
        """Let the client go: there is no TLS, or nobody, and the transport is closed."""
        self._server.log.refused("", self.address, "no TLS was made")
        self._greeting = None
        self._server.remove(self)

    def _hang_up(self, error: LeaseholdError | None) -> None:
        """Close the connection of one who was not let in; what was said to it may still be on its
        way out."""
        if error is not None:
            user = "" if self._greeting is None else self._greeting.user
            self._server.log.refused(user, self.address, error.sqlstate)
        self._greeting = None
        self._closing_s = self._server.now_s()
        self._transport.close()

    def _admit(self, effect: Admitted) -> None:
        try:
            self._server.admit(self, effect)
        except LeaseholdError as error:
            # Told here: every worker may be busy.
            self._transport.write(backend.error(error_fields(error, "FATAL")))
            self._hang_up(error)
            return
        self._greeting = None
        self._minor = effect.minor
        self._admission = Admission(
            effect.user, effect.database, dict(effect.parameters), self.process, effect.account
        )
        with self._lock:
            self._inbox = [effect.rest] if effect.rest else []
            self._busy = True
        self._server.workers.submit(self._open)

    def _pause_reading(self) -> None:
        if not self._transport.is_closing():
            self._transport.pause_reading()

    def _resume_reading(self) -> None:
        if not self._transport.is_closing():
            self._transport.resume_reading()

    def _close(self) -> None:
        """Close the transport once the session is closed; what was said may still be on its way
        out."""
        self._closing_s = self._server.now_s()
        if self._outlet.is_gone:
            self._server.remove(self)
        else:
            self._transport.close()

    def abort(self) -> None:
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
        if self._outlet.is_paused:
            self._is_to_tell = False
            self._server.workers.submit(self._work)
            return
        self._outlet.begin_turn()
        waits = self._serve(conversation, hurried=True)
        if waits is None:
            if conversation.tells:  # what has come meanwhile, or was more than a portion
                self._server.call_soon(self.tell)
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
            self._server.turns.ask(self._turn)

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
        self._measures = self._server.measures.open()
        self._conversation = Conversation(
            self._session,
            self._outlet.hand_over,
            self._server.limits,
            log_defect,
            self._measures,
            boottime_ns,
        )
        with contextlib.suppress(ClientGone):
            self._conversation.begin(self.process, self.key)
        self._work()

    def _turn_away(self, error: Exception) -> None:
        with contextlib.suppress(ClientGone):
            self._outlet.hand_over(backend.error(error_fields(error, "FATAL")))
        self._schedule_close()

    def _work(self) -> None:
        """Do what needs a thread that nobody else waits for."""
        conversation = self._conversation
        assert conversation is not None
        self._outlet.begin_work()
        self._serve(conversation, hurried=False)
        if conversation.tells:
            self._server.call_soon(self.tell)

    # --- on either -----------------------------------------------------------------------------

    def _serve(self, conversation: Conversation, *, hurried: bool) -> WouldBlock | None:
        """Run what is in the inbox until nothing is, or leave when the connection has ended; return
        what it waits for, in a hurry. The one loop that calls the session."""
        try:
            if self._is_to_rest:
                self._is_to_rest = False
                conversation.rest(Behind.STANDING)
            if self._is_to_tell:
                self._is_to_tell = False
                conversation.tell()
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
        if self._measures is not None:
            self._server.measures.close(self._measures)
        self._schedule_close()

    def _take_inbox(
        self, conversation: Conversation
    ) -> tuple[LeaseholdError | None, bool, bytes] | None:
        """Return last words, whether the client is gone, and what has come; or None if there is
        nothing to do, and nobody is at it any more."""
        with self._lock:
            last_words, gone = self._last_words, self._outlet.is_gone
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
