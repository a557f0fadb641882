"""The listener for PostgreSQL clients: one loop for all sockets, a worker for each that is busy.

A statement runs on a worker's thread, so that a slow one stops neither other clients nor whatever
else this process does; there are as many workers as clients at most, so none waits for another's
statement.
"""

from __future__ import annotations

import asyncio
import errno
import hmac
import secrets
import ssl
from collections import deque
from collections.abc import Callable, Collection, Sequence
from contextlib import suppress
from ipaddress import IPv4Address, IPv6Address
from threading import Event, Thread
from typing import Any, Final, cast

from leasehold.adapters.os.file_watch import FileWatch
from leasehold.adapters.os.shared_measures import SharedMeasures
from leasehold.adapters.os.worker_threads import WorkerThreads
from leasehold.adapters.postgres.admissions import Admissions
from leasehold.adapters.postgres.arrivals import ARRIVING_MIN, Arrivals, origin_of
from leasehold.adapters.postgres.connection import PgwireClient, SessionFactory, log_defect
from leasehold.adapters.postgres.listener_tls import ListenerTls, channel_of, speaks_postgresql
from leasehold.adapters.postgres.login_log import LoginLog
from leasehold.adapters.postgres.loop_turns import LoopTurns
from leasehold.adapters.postgres.outlet import LOG, Outlet
from leasehold.model.audit import AuditLog, NotAudited
from leasehold.model.errors import ConfigurationError, LeaseholdError
from leasehold.pgwire.auth.logins import Logins
from leasehold.pgwire.auth.startup import Admitted, Greeting
from leasehold.pgwire.limits import Limits
from leasehold.pgwire.wire_errors import AdminShutdown, Canceled
from leasehold.settings.sql_port import PgwireSettings

KEY_BYTES: Final = {0: 4, 2: 32}
"""By the minor version of the protocol."""
WATCH_INTERVAL_S: Final = 0.05
BACKLOG: Final = 512
PORT_PATIENCE_S: Final = 20.0
PORT_RETRY_S: Final = 0.2


class PgwireServer:
    """The listener. `start` returns once it listens; `stop` once every client is gone, or `grace_s`
    is over.

    `open_session` runs on a worker; what it raises of the tree of errors is the client's answer.
    """

    def __init__(
        self,
        open_session: SessionFactory,
        settings: PgwireSettings,
        limits: Limits | None = None,
        port_patience_s: float = PORT_PATIENCE_S,
        *,
        logins: Sequence[Logins] = (),
        mock_secret: bytes | None = None,
        audit: AuditLog | None = None,
    ) -> None:
        """Check the settings. `port_patience_s` is how long a port is waited for that somebody else
        has; `logins` are who may log in beside the users of the settings; `mock_secret` is known to
        all nodes, and to nobody else."""
        settings.check()
        self._port_patience_s = port_patience_s
        self.open_session = open_session
        self.settings = settings
        self.limits = limits or Limits()
        self._tls = ListenerTls(settings)
        self.workers = WorkerThreads("sql", settings.connections_max)
        self.loop: asyncio.AbstractEventLoop
        self.turns: LoopTurns
        self.port = 0
        self._admissions = Admissions(settings, logins, mock_secret, self.now_s)
        self._files: FileWatch | None = None
        self.measures = SharedMeasures()
        """What the statements of all clients come to."""
        self.log = LoginLog(audit or NotAudited())
        self._clients: dict[int, PgwireClient] = {}
        self._arrivals = Arrivals(max(settings.connections_max, ARRIVING_MIN))
        self._to_send: list[Outlet] = []
        self._to_resume: deque[PgwireClient] = deque()
        self._resume_is_scheduled = False
        self._last_process = 0
        self._stopping = False
        self._empty = Event()
        self._listener: asyncio.Server | None = None
        self._watch: asyncio.TimerHandle | None = None
        self._at_work = Thread(target=self._run, name="sql-listener", daemon=True)

    # --- from any thread ---------------------------------------------------------------------

    def start(self) -> None:
        """Listen. Raises ConfigurationError if the port can't be had, or not in time."""
        import uvloop  # an extra: who only embeds a replica listens for nobody

        self.loop = uvloop.new_event_loop()
        self.loop.set_exception_handler(_log_loop_defect)
        self.turns = LoopTurns(self.loop.call_soon, self._send)
        try:
            listener = self.loop.run_until_complete(self._listen())
        except OSError as error:
            self.loop.close()
            raise ConfigurationError(
                f"LEASEHOLD_SQL_PORT: {self.settings.host}:{self.settings.port} can't be listened "
                f"on: {error.strerror}"
            ) from None
        self._listener = listener
        self.port = listener.sockets[0].getsockname()[1]
        if self.settings.in_the_clear:
            LOG.warning(
                "LEASEHOLD_SQL_TLS=off: rows go over the network in the clear, from %s:%d",
                self.settings.host,
                self.port,
            )
        self._files = FileWatch(self.settings.files, self._read_files)
        self._at_work.start()

    def stop(self, grace_s: float = 5.0) -> None:
        """Tell clients that it ends (57P01), and cancel running statements; no thread is left."""
        if self._files is not None:
            self._files.close()
        self.call_soon(self._shut)
        if not self._empty.wait(grace_s):
            LOG.warning("%d clients did not end within %.1f s", len(self._clients), grace_s)
            self.call_soon(self._abort_all)  # a statement that waits for its reader ends by that
            self._empty.wait(grace_s)
        if not self.workers.stop(grace_s):
            LOG.warning("a statement did not end within %.1f s of its cancellation", grace_s)
        self.call_soon(self.loop.stop)
        self._at_work.join()
        self.loop.close()

    def call_soon(self, call: Callable[..., Any], *arguments: Any) -> None:
        """Make a call on the loop's thread as soon as it comes to it; none once the listener has
        stopped, as everybody is gone then: a statement may outlast it that did not heed its
        cancellation in time."""
        with suppress(RuntimeError):  # the loop is closed
            self.loop.call_soon_threadsafe(call, *arguments)

    def resume_soon(self, client: PgwireClient) -> None:
        """Make the loop go on with a client. It is woken for the first of many whose answers come
        at once, and not for each."""
        self._to_resume.append(client)
        if not self._resume_is_scheduled:
            self._resume_is_scheduled = True
            self.call_soon(self._resume_clients)

    def make_key(self, minor: int) -> bytes:
        return secrets.token_bytes(KEY_BYTES[minor])

    def cancel_client(self, process: int, reason: Exception) -> bool:
        """Cancel what a client runs, and return whether there is such a client."""
        client = self._clients.get(process)
        if client is not None:
            self.call_soon(client.cancel, reason)
        return client is not None

    def end_client(self, process: int, why: str = "") -> bool:
        """Cancel what a client runs and end its connection (57P01), which is told `why`; return
        whether there is such a client."""
        client = self._clients.get(process)
        if client is None:
            return False
        reason = AdminShutdown(why or "terminating connection due to administrator command")
        self.call_soon(client.end, reason)
        self.call_soon(client.cancel, reason)
        return True

    def tell_clients(self, processes: Collection[int]) -> None:
        """Tell clients what waits for them, as soon as their sessions are idle."""
        if processes:
            self.call_soon(self._tell, processes)

    # --- on the loop -------------------------------------------------------------------------

    def _tell(self, processes: Collection[int]) -> None:
        for process in processes:
            client = self._clients.get(process)
            if client is not None:
                client.tell()

    def now_s(self) -> float:
        return self.loop.time()

    def make_greeting(self, address: IPv4Address | IPv6Address) -> Greeting:
        offered = self._tls.served is not None
        return Greeting(self._admissions.welcome(address, tls_offered=offered), self.limits)

    def add_arrival(self, client: PgwireClient, address: IPv4Address | IPv6Address) -> bool:
        """Note a client that has connected, and return False if nobody is let in any more. Where
        too many have add_arrival, another one goes."""
        if self._stopping:
            return False
        self._clients[client.process] = client
        displaced = self._arrivals.enter(client.process, origin_of(address))
        if displaced is not None:
            LOG.info(
                "closed a connection that had not yet authenticated, to make room for a newer one"
            )
            self._clients[displaced].abort()
        return True

    def admit(self, client: PgwireClient, admitted: Admitted) -> None:
        """Give a client a session's place; until then it takes none. Raises TooManyConnections,
        AuthenticationRefused, AuditUnavailable."""
        user = admitted.user
        self._admissions.enter(client.process, user, admitted.account)
        how = self.settings.method.value
        if admitted.is_secret:
            how += ", TLS"
        try:
            self.log.admitted(client.process, user, admitted.database, client.address, how)
        except LeaseholdError:
            self._admissions.leave(client.process)
            raise
        self._arrivals.leave(client.process)

    def remove(self, client: PgwireClient) -> None:
        self._arrivals.leave(client.process)
        user = self._admissions.leave(client.process)
        if user is not None:
            self.log.ended(client.process, user, client.address)
        self._clients.pop(client.process, None)
        if self._stopping and not self._clients:
            self._empty.set()

    def schedule_send(self, outlet: Outlet, *, more: bool) -> None:
        """Send what clients are told at the end of a round of turns: a client that is woken takes
        the processor, often from this very thread. `more` says that this one has said something
        before and still goes on; nobody waits for that."""
        if more:
            self._send()
            return
        self._to_send.append(outlet)

    def _send(self) -> None:
        outlets, self._to_send = self._to_send, []
        for outlet in outlets:
            outlet.write_gathered()

    def _resume_clients(self) -> None:
        self._resume_is_scheduled = False  # before it looks: who comes from here on tells it again
        while self._to_resume:
            self._to_resume.popleft().resume()

    def cancel(self, process: int, key: bytes) -> None:
        client = self._clients.get(process)
        if client is not None and client.key and hmac.compare_digest(client.key, key):
            client.cancel(Canceled("canceling statement due to user request"))

    async def _listen(self) -> asyncio.Server:
        """Bind the port. Ports of SQL lie where the kernel takes those of outgoing connections
        from: one may be taken by anybody's, for as long as that lasts."""
        settings = self.settings
        loop = asyncio.get_running_loop()
        give_up_s = loop.time() + self._port_patience_s
        told = False
        while True:
            try:
                return await loop.create_server(
                    self._make_client, settings.host, settings.port, backlog=BACKLOG
                )
            except OSError as error:
                if error.errno != errno.EADDRINUSE or loop.time() >= give_up_s:
                    raise
            if not told:
                LOG.warning("port %d is taken, by a connection perhaps: waiting", settings.port)
                told = True
            await asyncio.sleep(PORT_RETRY_S)

    def _make_client(self) -> asyncio.BaseProtocol:
        self._last_process += 1
        return cast(asyncio.BaseProtocol, PgwireClient(self, self._last_process))

    def begin_tls(
        self, client: PgwireClient, transport: asyncio.Transport, first: bytes
    ) -> asyncio.Task[None]:
        return self.loop.create_task(self._begin_tls(client, transport, first))

    async def _begin_tls(
        self, client: PgwireClient, transport: asyncio.Transport, first: bytes
    ) -> None:
        """Make TLS. `first` is what was read of the client's handshake already."""
        served = self._tls.served
        assert served is not None
        protocol = cast(asyncio.BaseProtocol, client)
        starting = self.loop.create_task(
            self.loop.start_tls(transport, protocol, served.context, server_side=True)
        )
        try:
            if first:
                # Until TLS stands between the transport and the client, and is told that it does.
                await asyncio.sleep(0)
                await asyncio.sleep(0)
                _hand_over(transport, first)
            made = await starting
        except (OSError, asyncio.CancelledError):
            starting.cancel()
            client.tls_failed()
            return
        if made is None:
            client.tls_failed()
            return
        connection: ssl.SSLObject = made.get_extra_info("ssl_object")
        if first and not speaks_postgresql(connection):
            made.abort()
        else:
            client.tls_begun(made, channel_of(served, connection))

    def _run(self) -> None:
        self._check_times()
        self.loop.run_forever()

    def _check_times(self) -> None:
        now_s = self.now_s()
        self._end_revoked()
        for client in list(self._clients.values()):
            client.check_time(now_s)
        self._watch = self.loop.call_later(WATCH_INTERVAL_S, self._check_times)

    def _end_revoked(self) -> None:
        """End the sessions of those who may not log in any more."""
        for process in self._admissions.revoked():
            LOG.info("connection %d ends: its user may not log in any more", process)
            self.end_client(process)

    def _read_files(self) -> None:
        """Read users and certificates again, on the thread that has seen them change. Raises
        ConfigurationError for one that can't be used; the other one is taken all the same."""
        try:
            self._tls.read_again()
        finally:
            users = self.settings.read_users()
            if users is not None:
                self._admissions.users.replace(users)

    def _shut(self) -> None:
        self._stopping = True
        assert self._listener is not None
        self._listener.close()
        if self._watch is not None:
            self._watch.cancel()
        reason = AdminShutdown("terminating connection due to administrator command")
        for client in list(self._clients.values()):
            client.end(reason)
            client.cancel(reason)
        if not self._clients:
            self._empty.set()

    def _abort_all(self) -> None:
        for client in list(self._clients.values()):
            client.abort()


def _hand_over(transport: asyncio.Transport, data: bytes) -> None:
    """Give bytes to who has taken the client's place on the transport, as if they came now."""
    protocol = cast(asyncio.BufferedProtocol, transport.get_protocol())
    while data:
        room = protocol.get_buffer(len(data))
        size = min(len(data), len(room))  # type: ignore[arg-type]
        room[:size] = data[:size]  # type: ignore[index]
        protocol.buffer_updated(size)
        data = data[size:]


def _log_loop_defect(loop: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
    """Log a defect instead of the loop's own words, which show the arguments of calls: what was to
    be sent."""
    error = context.get("exception")
    if isinstance(error, OSError):  # a handshake that failed, a connection that broke
        LOG.info("a connection ended: %s", type(error).__name__)
    elif isinstance(error, Exception):
        log_defect(error)
