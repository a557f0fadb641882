"""The certificate of a server (of snapshots, of the dashboard), read again when its files change;
connections go on."""

from __future__ import annotations

import logging
import ssl
from collections.abc import Sequence
from pathlib import Path
from typing import Final, Protocol

from leasehold.adapters.os.file_watch import LOOK_S, FileWatch

LOG: Final = logging.getLogger("leasehold.tls")


class CertificateFiles(Protocol):
    """Settings that name the files of a server's certificate."""

    @property
    def served_files(self) -> Sequence[Path]:
        """Return those that it is read from, the certificate's first."""
        ...

    def read_served_files(self) -> Sequence[bytes]:
        """Return a digest of each. Raises ConfigurationError."""
        ...

    def to_serve(self) -> ssl.SSLContext | None:
        """Return the TLS context to serve with, None to serve in the clear. Raises
        ConfigurationError for files that can't be used."""
        ...


class RenewedTls:
    """A server's TLS: `context` is what it is given once, and each handshake gets the newest
    certificate."""

    def __init__(
        self, settings: CertificateFiles, context: ssl.SSLContext | None, look_s: float = LOOK_S
    ) -> None:
        """Begin to watch the files. `context` is `settings.to_serve()`."""
        self.context = context
        self._settings = settings
        self._newest = context
        self._files = settings.read_served_files()
        if context is not None:
            # Called in each handshake, also of clients that name no server.
            context.sni_callback = self._take_newest
        self._watch = FileWatch(settings.served_files, self._read_again, look_s)

    def close(self) -> None:
        self._watch.close()

    def _take_newest(
        self, connection: ssl.SSLObject, name: str | None, context: ssl.SSLContext
    ) -> None:
        assert self._newest is not None
        connection.context = self._newest

    def _read_again(self) -> None:
        """Raises ConfigurationError for files that can't be used: the old ones then stay."""
        found = self._settings.read_served_files()
        if found == self._files:
            return
        made = self._settings.to_serve()
        if found == self._settings.read_served_files():  # else they are being replaced just now
            self._newest, self._files = made, found
            LOG.info("%s was read again: new callers get it", self._settings.served_files[0])
