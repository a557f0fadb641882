"""Hands GET requests to whoever answers them, and writes answers and streams of events.

A thread for each connection; more than so many are closed unheard, and who does not take what is
written is cut off.
"""

from __future__ import annotations

import logging
import ssl
from collections.abc import Callable, Collection, Iterator, Mapping
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler
from threading import Thread
from typing import Any, Final, Protocol

from leasehold.adapters.codec.json_text import json_text
from leasehold.adapters.http.bounded_server import BoundedServer
from leasehold.adapters.http.hosts import is_own_host, is_own_origin
from leasehold.model.errors import ConfigurationError

SOCKET_TIMEOUT_S: Final = 30
CONNECTIONS_MAX: Final = 300
"""Each has a thread."""
JSON: Final = "application/json; charset=utf-8"
EVENTS: Final = "text/event-stream; charset=utf-8"
RETRY_AFTER_S: Final = 1
LOG: Final = logging.getLogger("leasehold.http")


class Answered(Protocol):
    """An answer: a body of JSON, or events, which are closed when nobody takes them any longer."""

    @property
    def status(self) -> HTTPStatus: ...
    @property
    def body(self) -> Mapping[str, Any]: ...
    @property
    def events(self) -> Iterator[bytes] | None: ...


Answering = Callable[[str, str, str], Answered]
"""Returns the answer to a target, under what Authorization and Last-Event-ID say."""


class ReadsServer:
    """Serves until `close`, from threads of its own."""

    def __init__(
        self,
        answer: Answering,
        *,
        host: str,
        port: int,
        names: Collection[str] = (),
        tls: ssl.SSLContext | None = None,
    ) -> None:
        """Listen. `names`: host names under which it may be asked, beside addresses. `tls`: None =
        in the clear. Raises ConfigurationError if the port can't be had."""
        handler = _handler(answer, frozenset(name.lower() for name in names))
        try:
            self._server = BoundedServer(
                *((host, port), handler, CONNECTIONS_MAX, LOG),
                waits_at_close=False,
                tls=tls,
                handshake_s=SOCKET_TIMEOUT_S,
            )
        except OSError as error:
            raise ConfigurationError(
                f"LEASEHOLD_HTTP_PORT: {host}:{port} can't be listened on: {error.strerror}",
                variable="LEASEHOLD_HTTP_PORT",
            ) from None
        self._thread = Thread(
            target=self._server.serve_forever,
            kwargs={"poll_interval": 0.1},
            name="http reads",
            daemon=True,
        )
        self._thread.start()

    @property
    def port(self) -> int:
        return int(self._server.server_address[1])

    def close(self) -> None:
        """Listen no longer. Streams end with what feeds them."""
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()


def _handler(answer: Answering, names: Collection[str]) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"
        timeout = SOCKET_TIMEOUT_S

        def do_GET(self) -> None:
            host = self.headers.get("Host", "")
            own = is_own_host(host, names)
            if not (own and is_own_origin(self.headers.get("Origin"), host, names)):
                told = {"code": "28000", "message": "this node answers its own host name only"}
                self._write(HTTPStatus.FORBIDDEN, {"error": told})
                return
            given = self.headers.get("Authorization", ""), self.headers.get("Last-Event-ID", "")
            found = answer(self.path, *given)
            if found.events is None:
                self._write(found.status, found.body)
            else:
                self._stream(found.events)

        def _write(self, status: HTTPStatus, told: Mapping[str, Any]) -> None:
            body = json_text(dict(told)).encode() + b"\n"
            self.send_response(status)
            if status is HTTPStatus.SERVICE_UNAVAILABLE:
                self.send_header("Retry-After", str(RETRY_AFTER_S))
            if status is HTTPStatus.UNAUTHORIZED:
                self.send_header("WWW-Authenticate", "Bearer")
            self.send_header("Content-Type", JSON)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def _stream(self, events: Iterator[bytes]) -> None:
            """Write events until they end, or the client has gone away."""
            self.close_connection = True
            try:
                self.send_response(HTTPStatus.OK)
                self.send_header("Content-Type", EVENTS)
                self.send_header("Cache-Control", "no-store")
                self.send_header("Connection", "close")
                self.end_headers()
                for each in events:
                    self.wfile.write(each)
            except OSError:
                LOG.debug("%s takes no more events", self.client_address[0])
            finally:
                close = getattr(events, "close", None)
                if close is not None:
                    close()

        def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - its name
            """Say nothing: a read is no event."""

    return Handler
