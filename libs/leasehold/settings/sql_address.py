"""The address at which SQL is asked for, as whom, and how the way there is protected."""

from __future__ import annotations

import ssl
from dataclasses import dataclass
from ipaddress import ip_address
from pathlib import Path
from typing import Final

from leasehold.model.errors import ConfigurationError
from leasehold.settings.setting import PORT_OR_ANY, choice, setting

PORT_OF_MAKE_UP: Final = 54331
VERIFY, ENCRYPT, OFF = "verify", "encrypt", "off"
PREFER, REQUIRE, DISABLE = "prefer", "require", "disable"


@dataclass(frozen=True, slots=True, kw_only=True)
class SqlAddress:
    """Variables shared with a node's listener mean the same: where that listens is where it is
    asked, on this machine."""

    host: str = setting(
        "LEASEHOLD_SQL_HOST", "name or address of the node that is asked", default="127.0.0.1"
    )
    port: int = setting(
        "LEASEHOLD_SQL_PORT",
        f"its port for PostgreSQL clients; 0: {PORT_OF_MAKE_UP}, the first one of make up",
        default=0,
        parse=PORT_OR_ANY,
    )
    user: str = setting("LEASEHOLD_SQL_USER", "as whom", default="leasehold")
    password: str = setting(
        "LEASEHOLD_SQL_PASSWORD", "the user's password", default="", secret=True
    )
    tls: str | None = setting(
        "LEASEHOLD_SQL_TLS",
        "verify (the certificate, by the CA), encrypt (whoever answers) or off; without it verify,"
        " but off on loopback as long as no CA is given",
        default=None,
        parse=choice(VERIFY, ENCRYPT, OFF),
    )
    tls_ca: Path | None = setting(
        "LEASEHOLD_SQL_TLS_CA",
        "PEM file of the certificates that are trusted; without it the system's",
        default=None,
        parse=Path,
    )

    tls_client_cert: Path | None = setting(
        "LEASEHOLD_SQL_TLS_CLIENT_CERT",
        "PEM file of the certificate that is shown to the node",
        default=None,
        parse=Path,
    )
    tls_client_key: Path | None = setting(
        "LEASEHOLD_SQL_TLS_CLIENT_KEY", "PEM file of its private key", default=None, parse=Path
    )
    channel_binding: str = setting(
        "LEASEHOLD_SQL_CHANNEL_BINDING",
        "require, prefer or disable: whether a password's proof holds on this connection alone",
        default=PREFER,
        parse=choice(PREFER, REQUIRE, DISABLE),
    )

    @property
    def peer(self) -> tuple[str, int]:
        everywhere = self.host in ("0.0.0.0", "::")  # noqa: S104 - a listener's word, asked here
        return "127.0.0.1" if everywhere else self.host, self.port or PORT_OF_MAKE_UP

    def tls_context(self) -> ssl.SSLContext | None:
        """Return the TLS context of a connection, None for plain text. Raises ConfigurationError
        for a CA that can't be used."""
        wanted = self.tls
        if wanted is None:
            wanted = OFF if _is_loopback(self.peer[0]) and self.tls_ca is None else VERIFY
        if wanted == OFF:
            return None
        try:
            context = ssl.create_default_context(cafile=self.tls_ca)
        except (OSError, ssl.SSLError) as error:
            raise ConfigurationError(
                f"LEASEHOLD_SQL_TLS_CA names {str(self.tls_ca)!r}, which can't be used:"
                f" {error.strerror or error}"
            ) from None
        context.set_alpn_protocols(["postgresql"])
        if self.tls_client_cert is not None:
            try:
                context.load_cert_chain(self.tls_client_cert, self.tls_client_key)
            except (OSError, ssl.SSLError) as error:
                raise ConfigurationError(
                    "LEASEHOLD_SQL_TLS_CLIENT_CERT and LEASEHOLD_SQL_TLS_CLIENT_KEY can't be used:"
                    f" {error.strerror or error}"
                ) from None
        if wanted == ENCRYPT:
            context.check_hostname = False
            context.verify_mode = ssl.CERT_NONE
        return context


def _is_loopback(host: str) -> bool:
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"
