"""What is said to one client, on its way from whoever is at its session to the socket.

In a turn of the loop it gathers, and the server has it written behind all turns. On a worker it is
handed to the loop part by part, and handing over waits while the client does not read.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from threading import Condition, Lock
from time import monotonic
from typing import TYPE_CHECKING, Final

from leasehold.adapters.postgres.reader_pace import ReaderPace
from leasehold.pgwire.phases import Behind
from leasehold.pgwire.replies import ClientGone

if TYPE_CHECKING:
    from leasehold.adapters.postgres.server import PgwireServer

LOG: Final = logging.getLogger("leasehold.pgwire")
HANDED_BYTES_MAX: Final = 1 << 18


class Outlet:
    """The way out to one client. `abort` ends its connection, on the loop. `lock` guards what the
    loop and a worker both touch, of the client's inbox, too."""

    def __init__(self, server: PgwireServer, abort: Callable[[], None]) -> None:
        self._server = server
        self._abort = abort
        self.transport: asyncio.Transport | None = None
        self.lock = Lock()
        self._state = Condition(self.lock)  # entered by its lock, which takes a tenth of the time
        # Below: what both threads touch, under `lock`.
        self.is_gone = False
        self.is_paused = False
        self._handed_bytes = 0
        # Below: of who is at work alone.
        self._in_turn = False
        self._gathered: list[bytes] = []  # in this turn
        self._pace: ReaderPace | None = None  # of a client that had to be waited for

    # --- on the loop -------------------------------------------------------------------------

    def pause(self) -> None:
        with self.lock:
            self.is_paused = True

    def resume(self) -> None:
        with self.lock:
            self.is_paused = False
            self._state.notify_all()

    def lose(self) -> None:
        """Note that the client is gone. Under `lock`."""
        self.is_gone = True
        self._state.notify_all()

    def write_gathered(self) -> None:
        assert self.transport is not None
        said, self._gathered = self._gathered, []
        if not (self.is_gone or self.transport.is_closing()):
            self.transport.write(b"".join(said))

    def _write(self, data: bytes) -> None:
        assert self.transport is not None
        if not self.is_gone:
            self.transport.write(data)
        with self.lock:
            self._handed_bytes -= len(data)
            self._state.notify_all()

    # --- of who is at the session ------------------------------------------------------------

    def begin_turn(self) -> None:
        """Gather what is said from here on: this is the loop's thread."""
        self._in_turn = True

    def begin_work(self) -> None:
        """Wait for the client from here on: this is a worker's thread."""
        self._in_turn = False
        if self._is_writable():
            self._pace = None  # it has taken what it was told before

    def hand_over(self, data: bytes) -> Behind | None:
        """Hand data over, which on a worker waits while the client does not read; return how far it
        is behind. Raises ClientGone."""
        if self._in_turn and not self._handed_bytes:  # what was handed over comes first
            if self.is_gone:
                raise ClientGone
            self._gathered.append(data)
            self._server.schedule_send(self, more=len(self._gathered) > 1)
            return None
        with self.lock:
            behind = None if self._in_turn else self._wait_for_reader()
            if self.is_gone:
                raise ClientGone
            self._handed_bytes += len(data)
            if self._pace is not None:
                self._pace.add_given(len(data))
        self._server.call_soon(self._write, data)
        return behind

    def _wait_for_reader(self) -> Behind | None:
        """Return how far the client is behind, once it has read, or when it is farther behind than
        before: then one part more is handed over, so that its session hears of it. Under `lock`.
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
                self._server.call_soon(self._abort)
                raise ClientGone
            begun_s = monotonic()
            self._state.wait_for(self._is_writable, pace.wait_s)
            pace.add_wait(monotonic() - begun_s)
            if pace.behind is not before and not pace.is_given_up:
                return pace.behind
        pace.catch_up()
        return pace.behind

    def _is_writable(self) -> bool:
        return self.is_gone or not (self.is_paused or self._handed_bytes > HANDED_BYTES_MAX)
