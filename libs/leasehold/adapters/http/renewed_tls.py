"""The certificate of a server (of snapshots, of the dashboard), read again when its files change;
connections go on."""

from __future__ import annotations

import logging
import ssl
from typing import Final

from leasehold.adapters.os.file_watch import LOOK_S, FileWatch
from leasehold.settings.certificate_files import CertificateFiles

LOG: Final = logging.getLogger("leasehold.tls")


class RenewedTls:
    """A server's TLS: `context` is what it is given once, and each handshake gets the newest
    certificate."""

    def __init__(
        self, files: CertificateFiles, context: ssl.SSLContext | None, look_s: float = LOOK_S
    ) -> None:
        """Begin to watch the files. `context` is `files.context()`."""
        self.context = context
        self._files = files
        self._newest = context
        self._digest = files.digest()
        if context is not None:
            # Called in each handshake, also of clients that name no server.
            context.sni_callback = self._take_newest
        self._watch = FileWatch(files.files, self._read_again, look_s)

    def close(self) -> None:
        self._watch.close()

    def _take_newest(
        self, connection: ssl.SSLObject, name: str | None, context: ssl.SSLContext
    ) -> None:
        assert self._newest is not None
        connection.context = self._newest

    def _read_again(self) -> None:
        """Raises ConfigurationError for files that can't be used: the old ones then stay."""
        found = self._files.digest()
        if found == self._digest:
            return
        made = self._files.context()
        if found == self._files.digest():  # else they are being replaced just now
            self._newest, self._digest = made, found
            LOG.info("%s was read again: new callers get it", self._files.cert)
