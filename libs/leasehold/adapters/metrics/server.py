"""Serves what a process tells of itself: GET /metrics, in Prometheus' text form; GET /livez and
/readyz, which an orchestrator asks: 200 or, with the reason in words, 503.

A scrape is answered by a thread of its own, from copies: it waits for nobody who works, and nobody
for it. Who does not read is cut off, and more than a few at once are turned away.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager, suppress
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler
from threading import BoundedSemaphore, Thread
from typing import Final

from leasehold.adapters.http.bounded_server import BoundedServer
from leasehold.adapters.http.hosts import is_own_host
from leasehold.adapters.metrics.exposition import Exposition
from leasehold.adapters.metrics.process_samples import process_samples
from leasehold.model.errors import ConfigurationError
from leasehold.settings.environment import ClusterSettings
from leasehold.settings.extras import need_extra

METRICS_PATH: Final = "/metrics"
LIVE_PATH: Final = "/livez"
READY_PATH: Final = "/readyz"
SOCKET_TIMEOUT_S: Final = 10
SCRAPES_AT_ONCE_MAX: Final = 4
CONNECTIONS_MAX: Final = 16
"""Each has a thread; further ones are closed unheard."""
TEXT: Final = "text/plain; charset=utf-8"
LOG: Final = logging.getLogger("leasehold.metrics")


@contextmanager
def serve_metrics(settings: ClusterSettings) -> Iterator[Exposition]:
    """Serve the parts of the process that are added to what this yields, and what every process
    has, within the block; without LEASEHOLD_METRICS_PORT nobody is served, and nothing is lost by
    adding them. Raises ConfigurationError."""
    exposition = Exposition()
    if settings.metrics_port is None:
        yield exposition
        return
    need_extra("metrics", "LEASEHOLD_METRICS_PORT", "prometheus_client")
    exposition.add("version and clients", process_samples)
    server = MetricsServer(
        exposition,
        host=settings.metrics_listen,
        port=settings.metrics_port,
        names=(settings.advertise,),
    )
    LOG.info("metrics are served on http://%s%s", server.address, METRICS_PATH)
    try:
        yield exposition
    finally:
        server.close()


class MetricsServer:
    """Serves until `close`, from threads of its own."""

    def __init__(
        self, exposition: Exposition, *, host: str, port: int, names: Collection[str] = ()
    ) -> None:
        """Listen. `names`: host names under which it may be asked, beside addresses. Raises
        ConfigurationError if the port can't be had."""
        own = frozenset(name.lower() for name in names)
        answers = _Answers(exposition)
        handler = _handler(answers, own)
        try:
            self._server = BoundedServer((host, port), handler, CONNECTIONS_MAX, LOG)
        except OSError as error:
            raise ConfigurationError(
                f"LEASEHOLD_METRICS_PORT: {host}:{port} can't be listened on: {error.strerror}",
                variable="LEASEHOLD_METRICS_PORT",
            ) from None
        self._thread = Thread(
            target=self._server.serve_forever,
            kwargs={"poll_interval": 0.1},
            name="metrics",
            daemon=True,
        )
        self._thread.start()

    @property
    def address(self) -> str:
        """Return host:port."""
        host, port = self._server.server_address[:2]
        return f"{host!s}:{port}"

    def close(self) -> None:
        """Listen no longer."""
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()


def _renderer(exposition: Exposition) -> Callable[[], bytes]:
    """Return what makes the text. Beside our own metrics it has those of the process by their
    usual names: memory, processor time, open files, garbage collections."""
    from prometheus_client import (
        CollectorRegistry,
        GCCollector,
        PlatformCollector,
        ProcessCollector,
        generate_latest,
    )

    from leasehold.adapters.metrics.collector import ExpositionCollector

    registry = CollectorRegistry()
    ProcessCollector(registry=registry)
    PlatformCollector(registry=registry)
    GCCollector(registry=registry)
    registry.register(ExpositionCollector(exposition))
    return lambda: generate_latest(registry)


class _Answers:
    """What is at the paths. A scrape is large, so that only some are made at once; who asks whether
    the process lives waits for none of them."""

    def __init__(self, exposition: Exposition) -> None:
        self._render = _renderer(exposition)
        self._health = exposition.health
        self._places = BoundedSemaphore(SCRAPES_AT_ONCE_MAX)

    def at(self, path: str) -> tuple[HTTPStatus, bytes, str]:
        """Return status, body and its type."""
        if path == METRICS_PATH:
            return self._scrape()
        if path == LIVE_PATH:
            return _healthy(self._health.why_not_alive(), b"it lives\n")
        if path == READY_PATH:
            return _healthy(self._health.why_not_ready(), b"it is ready\n")
        paths = f"only {METRICS_PATH}, {LIVE_PATH} and {READY_PATH} are here\n"
        return HTTPStatus.NOT_FOUND, paths.encode(), TEXT

    def _scrape(self) -> tuple[HTTPStatus, bytes, str]:
        if not self._places.acquire(blocking=False):
            return HTTPStatus.SERVICE_UNAVAILABLE, b"others are being answered\n", TEXT
        try:
            return HTTPStatus.OK, self._render(), f"{TEXT}; version=0.0.4"
        finally:
            self._places.release()


def _healthy(why_not: str, words: bytes) -> tuple[HTTPStatus, bytes, str]:
    if why_not:
        return HTTPStatus.SERVICE_UNAVAILABLE, f"{why_not}\n".encode(), TEXT
    return HTTPStatus.OK, words, TEXT


def _handler(answers: _Answers, names: Collection[str]) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"
        timeout = SOCKET_TIMEOUT_S

        def do_GET(self) -> None:
            self.close_connection = True
            if is_own_host(self.headers.get("Host"), names):
                self._answer(*answers.at(self.path.partition("?")[0]))
            else:
                self._answer(HTTPStatus.FORBIDDEN, b"this process answers its own host name only\n")

        def _answer(self, status: HTTPStatus, body: bytes, content_type: str = TEXT) -> None:
            with suppress(OSError):  # who has gone away asks again
                self.send_response(status)
                self.send_header("Content-Type", content_type)
                self.send_header("Content-Length", str(len(body)))
                self.send_header("Connection", "close")
                self.end_headers()
                self.wfile.write(body)

        def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - its name
            """Say nothing: a scrape every few seconds is no event."""

    return Handler
