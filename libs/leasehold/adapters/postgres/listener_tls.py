"""TLS of the listener: the certificate that new connections get, and what one has shown."""

from __future__ import annotations

import logging
import ssl
from typing import Any, Final

from leasehold.pgwire.auth.logins import TlsChannel
from leasehold.settings.sql_port import ALPN, PgwireSettings, ServedTls

LOG: Final = logging.getLogger("leasehold.pgwire")


class ListenerTls:
    """The certificate of the settings' files. `served` may be read from any thread; connections
    keep what they began with."""

    def __init__(self, settings: PgwireSettings) -> None:
        """Raises ConfigurationError for files that can't be used."""
        self._settings = settings
        self.served: ServedTls | None = settings.read_tls()

    def read_again(self) -> None:
        """Take what the files hold now. Raises ConfigurationError where that can't be used: the old
        one then stays."""
        made = self._settings.read_tls()
        if made is None or self.served is None or made.files == self.served.files:
            return
        self.served = made
        LOG.info("%s was read again: new connections get it", self._settings.tls_cert)


def channel_of(served: ServedTls, connection: ssl.SSLObject) -> TlsChannel:
    """Return what a connection that was made with `served` has shown."""
    return TlsChannel(served.binding, _common_names(connection.getpeercert()))


def speaks_postgresql(connection: ssl.SSLObject) -> bool:
    """Return whether the client has asked for this protocol in its handshake, as one must that has
    not asked for TLS before: another one's could be led here (ALPACA)."""
    return connection.selected_alpn_protocol() == ALPN


def _common_names(certificate: dict[str, Any] | None) -> tuple[str, ...] | None:
    """Return the common names of a verified certificate, None where none was shown."""
    if not certificate:
        return None
    return tuple(
        value
        for part in certificate.get("subject", ())
        for name, value in part
        if name == "commonName"
    )
