"""The files of a server's certificate: checked, read and loaded in one way for all who serve TLS.

A file may be replaced at any time. Whoever loads them takes `digest()` before and after: where the
two differ, what was loaded may be of two certificates.
"""

from __future__ import annotations

import ssl
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from typing import Final

from leasehold.model.errors import ConfigurationError

PEM_BYTES_MAX: Final = 1 << 20
_PEM_BEGIN, _PEM_END = "-----BEGIN CERTIFICATE-----", "-----END CERTIFICATE-----"


@dataclass(frozen=True, slots=True)
class CertificateFiles:
    """A certificate and its key, as the variables `prefix`_CERT and `prefix`_KEY name them;
    `authority` and `revoked` (_CLIENT_CA, _CRL_FILE) are what clients' certificates are verified
    by."""

    prefix: str
    cert: Path | None
    key: Path | None
    authority: Path | None = None
    revoked: Path | None = None

    def check_both(self) -> None:
        """Raises ConfigurationError where one of certificate and key is given alone."""
        if (self.cert is None) != (self.key is None):
            raise ConfigurationError(
                f"{self.prefix}_CERT and {self.prefix}_KEY only work together; set both or neither."
            )

    @property
    def files(self) -> tuple[Path, ...]:
        """Return those that are given, the certificate's first."""
        return tuple(self._given().values())

    def digest(self) -> bytes:
        """Return a digest of what they hold now. Raises ConfigurationError."""
        parts = []
        for file in self.files:
            try:
                with file.open("rb") as source:
                    parts.append(sha256(source.read(PEM_BYTES_MAX)).digest())
            except OSError as error:
                raise self.unusable(error) from None
        return b"".join(parts)

    def context(self) -> ssl.SSLContext | None:
        """Return the TLS context to serve with, None to serve in the clear. Raises
        ConfigurationError for files that can't be used."""
        if self.cert is None:
            return None
        try:
            context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
            context.minimum_version = ssl.TLSVersion.TLSv1_2
            context.load_cert_chain(self.cert, self.key)
            if self.authority is not None:
                context.load_verify_locations(self.authority)
                # Who has none gets the words why not, which a handshake can't tell.
                context.verify_mode = ssl.CERT_OPTIONAL
                if self.revoked is not None:
                    _load_revoked(context, self.revoked)
        except (OSError, ssl.SSLError, ValueError) as error:
            raise self.unusable(error) from None
        return context

    def certificate(self) -> bytes:
        """Return the certificate (DER) that `context` shows, b"" without one. Raises
        ConfigurationError."""
        if self.cert is None:
            return b""
        try:
            text = self.cert.read_text(encoding="ascii", errors="replace")
            begin = text.index(_PEM_BEGIN)  # the first is the server's own
            end = text.index(_PEM_END, begin) + len(_PEM_END)
            return ssl.PEM_cert_to_DER_cert(text[begin:end])
        except (OSError, ValueError) as error:
            raise self.unusable(error) from None

    def unusable(self, error: Exception) -> ConfigurationError:
        """Return the error that names the variables of the files."""
        *others, last = self._given()
        names = f"{', '.join(others)} and {last}" if others else last
        words = getattr(error, "strerror", None) or error
        return ConfigurationError(f"{names} can't be used: {words}")

    def _given(self) -> dict[str, Path]:
        named = {
            "CERT": self.cert,
            "KEY": self.key,
            "CLIENT_CA": self.authority,
            "CRL_FILE": self.revoked,
        }
        return {f"{self.prefix}_{name}": file for name, file in named.items() if file is not None}


def _load_revoked(context: ssl.SSLContext, file: Path) -> None:
    """Let `context` refuse what its authorities have revoked. Raises ValueError, OSError."""
    before = context.cert_store_stats()
    context.load_verify_locations(file)
    after = context.cert_store_stats()
    # ⚠ OpenSSL takes any kind of object from such a file: a certificate in it would be trusted.
    if after["x509"] != before["x509"]:
        raise ValueError(f"{file} holds a certificate, and should hold revocation lists alone")
    if after["crl"] == before["crl"]:
        raise ValueError(f"{file} holds no revocation list")
    context.verify_flags |= ssl.VERIFY_CRL_CHECK_CHAIN
