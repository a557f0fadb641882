"""The settings of the SQL listener: its address, who may come, and how long a client may take."""

from __future__ import annotations

import ssl
from collections.abc import Mapping
from dataclasses import dataclass
from ipaddress import ip_address
from pathlib import Path

from leasehold.model.errors import ConfigurationError
from leasehold.pgwire.auth.scram_server import Verifier, verifier_of_text
from leasehold.settings.setting import PORT_OR_ANY, integer, own_address, setting


def users(text: str) -> Mapping[str, Verifier]:
    """Read `name=verifier`, one a line; verifiers as PostgreSQL stores them
    (pg_authid.rolpassword)."""
    found: dict[str, Verifier] = {}
    for line in filter(None, map(str.strip, text.splitlines())):
        name, sign, verifier = line.partition("=")
        if not (sign and name.strip()):
            raise ValueError("lines of name=verifier")
        found[name.strip()] = verifier_of_text(verifier)
    return found


@dataclass(frozen=True, slots=True, kw_only=True)
class PgwireSettings:
    """The settings of the SQL listener. Without `users` everybody on this machine is let in, and
    nobody from elsewhere."""

    host: str = setting(
        "LEASEHOLD_SQL_HOST",
        "address on which SQL is listened for; others than loopback need LEASEHOLD_SQL_USERS",
        default="127.0.0.1",
        parse=own_address,
    )
    port: int = setting(
        "LEASEHOLD_SQL_PORT",
        "port for PostgreSQL clients; 0: a replicant does not listen for them",
        default=0,
        parse=PORT_OR_ANY,
    )
    users: Mapping[str, Verifier] = setting(
        "LEASEHOLD_SQL_USERS",
        "who may come: lines of name=SCRAM-SHA-256$…; empty: all on loopback, without a password",
        default=None,
        parse=users,
        secret=True,
    )
    tls_cert: Path | None = setting(
        "LEASEHOLD_SQL_TLS_CERT",
        "PEM file of the listener's certificate; from other machines TLS is then required",
        default=None,
        parse=Path,
    )
    tls_key: Path | None = setting(
        "LEASEHOLD_SQL_TLS_KEY", "PEM file of its private key", default=None, parse=Path
    )
    connections_max: int = setting(
        "LEASEHOLD_SQL_CONNECTIONS_MAX",
        "clients at once that were let in; further ones are refused (53300)",
        default=100,
        parse=integer(1, 10_000),
    )
    computing_max: int = setting(
        "LEASEHOLD_SQL_COMPUTING_MAX",
        "statements that compute for more than some milliseconds and do so at the same time; 0: one"
        " less than there are processors, 1 at least and 4 at most",
        default=0,
        parse=integer(0, 1_000),
    )
    greeting_timeout_s: int = setting(
        "LEASEHOLD_SQL_GREETING_TIMEOUT_S",
        "seconds from the connection to its being let in",
        default=10,  # clients ask for a password before they connect, or connect anew
        parse=integer(1, 600, "seconds"),
    )
    write_timeout_s: int = setting(
        "LEASEHOLD_SQL_WRITE_TIMEOUT_S",
        "seconds that a client may be behind with reading; each KiB that it reads makes up for one",
        default=300,
        parse=integer(1, 86_400, "seconds"),
    )

    def tls(self) -> ssl.SSLContext | None:
        """Raises ConfigurationError for files that can't be used."""
        if self.tls_cert is None:
            return None
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.minimum_version = ssl.TLSVersion.TLSv1_2
        try:
            context.load_cert_chain(self.tls_cert, self.tls_key)
        except (OSError, ssl.SSLError) as error:
            raise ConfigurationError(
                f"LEASEHOLD_SQL_TLS_CERT and LEASEHOLD_SQL_TLS_KEY can't be used: {error.strerror}"
            ) from None
        return context

    def check(self) -> None:
        """Raises ConfigurationError: nobody from elsewhere may come without a secret."""
        if not self.users and not ip_address(self.host).is_loopback:
            raise ConfigurationError(
                f"LEASEHOLD_SQL_HOST is {self.host}, which other machines reach, and "
                "LEASEHOLD_SQL_USERS is not set; name the users, or listen on 127.0.0.1."
            )
