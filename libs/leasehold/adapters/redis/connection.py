"""A connection to Redis that never holds up the loop which uses it: bytes out, replies in as they
come.

It is made on a thread of its own, by redis-py (address, TLS and password are the ledger's), which
is then out of the way: its commands wait for replies, and cost more than all the rest here.
"""

from __future__ import annotations

import logging
import select
import socket
import ssl
from threading import Thread
from typing import Any, Final

import redis

from leasehold.adapters.os.clock import boottime_ns
from leasehold.adapters.os.live_objects import LiveObjects
from leasehold.adapters.redis.client import connection_pool
from leasehold.adapters.redis.resp import Malformed, Replies, pack_command
from leasehold.settings.environment import RedisSettings

CONNECT_TIMEOUT_S: Final = 2.0
READ_BYTES: Final = 64 * 1024
READS_MAX: Final = 4
SILENCE_NS: Final = 1_000_000_000
"""A listener that has heard nothing for so long asks Redis whether it is there, and waits as long
again."""
PAUSE_NS: Final = 200_000_000
PAUSE_NS_MAX: Final = 5_000_000_000
_PING: Final = pack_command(b"PING")
_LATER: Final = (BlockingIOError, ssl.SSLWantReadError, ssl.SSLWantWriteError)
LOG: Final = logging.getLogger("leasehold.redis")
LIVE: Final[LiveObjects[RedisLine]] = LiveObjects()
"""The connections of this process."""


class Advice(str):
    """Words of trouble that say what to do about it: they are logged even when there was trouble
    before."""

    __slots__ = ()


class RedisLine:
    """A connection that never blocks, for one thread. `what` names for people what it carries: once
    it fails, one line says so."""

    def __init__(self, settings: RedisSettings, what: str) -> None:
        self._pool = connection_pool(settings, CONNECT_TIMEOUT_S)
        self._where = settings.where
        self._what = what
        self._connection: Any = None
        self._socket: socket.socket | None = None
        self._replies = Replies()
        self._attempt: _Attempt | None = None
        self._try_ns = 0
        self._pause_ns = 0
        self._poll = select.poll()
        self._said: dict[str, str] = {}  # the trouble that was told last, by what it keeps away
        LIVE.add(self)

    @property
    def what(self) -> str:
        return self._what

    @property
    def is_troubled(self) -> bool:
        """Whether something that it is to carry goes another way."""
        return bool(self._said)

    @property
    def up(self) -> bool:
        return self._socket is not None

    def open(self) -> bool:
        """Connect if there is no connection, with pauses between attempts; to be called again and
        again. Returns True when a new connection is there since this call."""
        if self._socket is not None:
            return False
        attempt = self._attempt
        if attempt is None:
            if boottime_ns() >= self._try_ns:
                self._attempt = _Attempt(self._pool)
            return False
        if attempt.is_alive():
            return False
        self._attempt = None
        if attempt.connection is None:
            self.lost(attempt.trouble)
            return False
        self._connection = attempt.connection
        made: socket.socket = attempt.connection._sock  # noqa: SLF001 - there is no other way to it
        made.setblocking(False)
        self._socket = made
        self._replies = Replies()
        self._poll = select.poll()
        self._poll.register(made, select.POLLIN)
        return True

    def send(self, data: bytes) -> bool:
        """Send bytes. False means that the connection is not there, or is given up because it does
        not take all of them at once."""
        if self._socket is None:
            return False
        try:
            if self._socket.send(data) == len(data):
                return True
            self.lost("it takes no more bytes")
        except _LATER:
            self.lost("it takes no more bytes")
        except OSError as error:
            self.lost(str(error))
        return False

    def read(self) -> list[Any]:
        """Return replies that have come; afterwards the connection may be no longer `up`."""
        found: list[Any] = []
        try:
            for _ in range(READS_MAX):  # who says more than can be read must not hold the loop
                if self._socket is None:
                    break
                data = self._socket.recv(READ_BYTES)
                if not data:
                    self.lost("Redis has closed the connection")
                    break
                found += self._replies.take(data)
                if len(data) < READ_BYTES and not isinstance(self._socket, ssl.SSLSocket):
                    break  # of TLS a record may be there that the socket does not tell of
        except _LATER:
            pass
        except (OSError, Malformed) as error:
            self.lost(str(error))
        return found

    def wait(self, timeout_s: float) -> None:
        """Wait until something may have come, at most `timeout_s`."""
        made = self._socket
        if made is None or (isinstance(made, ssl.SSLSocket) and made.pending()):
            return
        self._poll.poll(timeout_s * 1e3)

    def works(self, what: str = "") -> None:
        """Note that what was said by it was understood: the next trouble is a new one."""
        self._pause_ns = 0
        if self._said.pop(what or self._what, ""):
            LOG.warning("%s by Redis at %s again", what or self._what, self._where)

    def lost(self, why: str) -> None:
        """Give the connection up; the next attempt is made after a pause, doubled each time."""
        self._drop()
        self._pause_ns = min(max(2 * self._pause_ns, PAUSE_NS), PAUSE_NS_MAX)
        self._try_ns = boottime_ns() + self._pause_ns
        self.say(why)

    def say(self, why: str, what: str = "") -> None:
        """Log one line, until `works`, and one more if there is advice only then (Redis ends the
        connections of a user who loses his rights, and says why to the next): what comes for
        minutes must not fill the log. `what` names one of several things that the connection
        carries."""
        what = what or self._what
        said = self._said.get(what, "")
        if not said or (isinstance(why, Advice) and not isinstance(said, Advice)):
            self._said[what] = why
            LOG.warning(
                "no %s by Redis at %s (%s); Kafka carries them meanwhile, a little slower",
                what,
                self._where,
                why,
            )

    def close(self) -> None:
        self._drop()
        self._pool.disconnect()
        self._attempt = None  # one that is under way ends with its deadline

    def _drop(self) -> None:
        connection, self._connection, self._socket = self._connection, None, None
        if connection is not None:
            connection.disconnect()


class KeptAlive:
    """The watch over a connection that listens: it may die without a word to its other end."""

    def __init__(self, line: RedisLine) -> None:
        self._line = line
        self._heard_ns = 0
        self._asked = False

    def look(self, *, heard: bool) -> None:
        """Ask Redis whether it is there, or give it up, after silence; to be called again and
        again. `heard`: something came, or the connection is new."""
        now_ns = boottime_ns()
        if heard:
            self._heard_ns, self._asked = now_ns, False
        elif now_ns - self._heard_ns > 2 * SILENCE_NS:
            self._line.lost("it does not answer")
        elif now_ns - self._heard_ns > SILENCE_NS and not self._asked:
            self._asked = True
            self._line.send(_PING)


class _Attempt(Thread):
    """An attempt to connect: names are resolved, and TLS and the password take several round
    trips."""

    def __init__(self, pool: redis.ConnectionPool) -> None:
        super().__init__(name="redis-line", daemon=True)
        self._pool = pool
        self.connection: Any = None
        self.trouble = ""
        self.start()

    def run(self) -> None:
        # ⚠ Not by `make_connection`: the pool counts those for good, and makes a hundred at most.
        # Redis away for some minutes would have used them up, and been away for ever.
        pool = self._pool
        try:
            connection: Any = pool.connection_class(**pool.connection_kwargs)
            connection.connect()
        except Exception as error:  # noqa: BLE001 - one line says it, no traceback of each
            self.trouble = explain_failure(error)
        else:
            self.connection = connection


def explain_failure(error: Exception) -> str:
    """Return what is to be said of a connection that could not be made."""
    if isinstance(error, redis.AuthenticationError):
        return Advice(f"{error}; check the user in LEASEHOLD_REDIS, and LEASEHOLD_REDIS_PASSWORD")
    if "CERTIFICATE_VERIFY_FAILED" in str(error):
        return Advice(
            f"{error}; LEASEHOLD_REDIS_CA names the file of the authority to trust, and the host in"
            " LEASEHOLD_REDIS has to be one that the certificate names"
        )
    return str(error)
