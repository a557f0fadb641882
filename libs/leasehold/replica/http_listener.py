"""The HTTP listener of a replicant: its settings, and how it stands beside the node."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from typing import Final

from leasehold.adapters.http.reads_server import ReadsServer
from leasehold.adapters.http.renewed_tls import RenewedTls
from leasehold.adapters.os.clock import boottime_ns
from leasehold.adapters.service_process import Environment
from leasehold.adapters.sqlite.store import SqliteStore
from leasehold.model.measures import Sample
from leasehold.node.kafka_node import KafkaNode
from leasehold.node.process import Prepared
from leasehold.replica.http_reads import HttpReads, Node
from leasehold.replica.row_feed import RowFeed
from leasehold.settings.environment import from_environment
from leasehold.settings.http_port import HttpSettings

LOG: Final = logging.getLogger("leasehold.http")


def http_of_environment(environ: Environment) -> Prepared:
    """Return what a replicant listens for over HTTP, as LEASEHOLD_HTTP_… says; nothing without a
    port. Raises ConfigurationError."""
    settings = from_environment(HttpSettings, environ)
    if not settings.port:
        return Prepared(settings, None)
    settings.check()
    settings.served.context()  # what can't be used is said before the node starts
    return Prepared(settings, lambda node, store: HttpListener(node, store, settings))


class HttpListener:
    """Listens once it is made, until `close`."""

    def __init__(self, node: KafkaNode, store: SqliteStore, settings: HttpSettings) -> None:
        """Listen. Raises ConfigurationError if the port can't be had, or the certificate's files
        can't be used."""
        assert settings.token is not None, "looked at before"
        self._feed = RowFeed(lambda: store.part, lambda: store.taken_out)
        node.node.followers = (*node.node.followers, self._feed)

        def check() -> None:
            if node.error is not None:
                raise node.error.with_traceback(None)

        coherent = lambda: node.node.lease.holds(boottime_ns())  # noqa: E731 - asked often
        reads = HttpReads(Node(store, coherent, self._feed, check), settings.token, settings.role)
        self._tls = RenewedTls(settings.served, settings.served.context())
        try:
            self._server = ReadsServer(
                reads.answer,
                host=settings.listen,
                port=settings.port,
                names=settings.names,
                tls=self._tls.context,
            )
        except BaseException:
            self._tls.close()
            raise
        scheme = "http" if self._tls.context is None else "https"
        LOG.info("reads and events are served on %s://%s:%d", scheme, settings.listen, self.port)

    @property
    def port(self) -> int:
        return self._server.port

    def samples(self) -> Iterator[Sample]:
        """Yield nothing: what the node measures says how it is."""
        return iter(())

    def close(self) -> None:
        """End streams, then listen no longer."""
        self._feed.close()
        self._server.close()
        self._tls.close()
