"""An HTTP server with a thread for each connection, and a bound on how many there are."""

from __future__ import annotations

import logging
import socket
import ssl
import sys
from contextlib import suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import BoundedSemaphore
from typing import Any


class BoundedServer(ThreadingHTTPServer):
    """Closes connections beyond `connections_max` unheard. `log` is told of those that broke off.
    With `waits_at_close` False the connections that are open end by themselves. `tls`: with whose
    certificate they are encrypted, None = in the clear; a handshake lasts `handshake_s` at most."""

    daemon_threads = True

    def __init__(
        self,
        address: tuple[str, int],
        handler: type[BaseHTTPRequestHandler],
        connections_max: int,
        log: logging.Logger,
        *,
        waits_at_close: bool = True,
        tls: ssl.SSLContext | None = None,
        handshake_s: float = 30,
    ) -> None:
        """Listen at `address`. Raises OSError."""
        self._places = BoundedSemaphore(connections_max)
        self._log = log
        self._tls = tls
        self._handshake_s = handshake_s
        self.block_on_close = waits_at_close
        super().__init__(address, handler)

    def process_request(self, request: Any, client_address: Any) -> None:
        if self._places.acquire(blocking=False):
            super().process_request(request, client_address)
        else:
            self.shutdown_request(request)

    def process_request_thread(self, request: Any, client_address: Any) -> None:
        try:
            super().process_request_thread(request, client_address)
        finally:
            self._places.release()

    def finish_request(self, request: Any, client_address: Any) -> None:
        if self._tls is None:
            super().finish_request(request, client_address)
            return
        # In the connection's own thread: who never ends a handshake keeps nobody else waiting.
        request.settimeout(self._handshake_s)
        with self._tls.wrap_socket(request, server_side=True) as encrypted:
            super().finish_request(encrypted, client_address)
            with suppress(OSError):
                encrypted.shutdown(socket.SHUT_WR)

    def handle_error(self, _request: Any, client_address: Any) -> None:
        self._log.info("the connection of %s broke off: %s", client_address[0], sys.exception())
