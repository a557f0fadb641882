"""The settings of the SQL listener: its address, who may come, and how long a client may take."""

from __future__ import annotations

import ssl
from collections.abc import Mapping
from dataclasses import dataclass
from ipaddress import ip_address
from pathlib import Path
from typing import Final, NamedTuple

from leasehold.model.errors import ConfigurationError
from leasehold.pgwire.auth.endpoint_binding import endpoint_binding
from leasehold.pgwire.auth.logins import ClientCertificate, Method
from leasehold.pgwire.auth.scram_server import Verifier, verifier_of_text
from leasehold.settings.certificate_files import CertificateFiles
from leasehold.settings.setting import (
    PORT_OR_ANY,
    choice,
    integer,
    own_address,
    read_value_file,
    setting,
)
from leasehold.settings.sql_address import ENCRYPT, OFF, VERIFY

ALPN: Final = "postgresql"


class ServedTls(NamedTuple):
    """What a listener makes TLS with. `binding`: its certificate's, for SCRAM. `files`: a digest of
    what was read."""

    context: ssl.SSLContext
    binding: bytes | None
    files: bytes


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
    """The settings of the SQL listener. Where nothing is said of `auth` and users everybody on this
    machine is let in, and nobody from elsewhere."""

    host: str = setting(
        "LEASEHOLD_SQL_HOST",
        "address on which SQL is listened for; others than loopback need users and a certificate",
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
        "administrators who may come: lines of name=SCRAM-SHA-256$…; without any, nobody on"
        " loopback is asked for a password",
        default=None,
        parse=users,
        secret=True,
    )
    users_file: Path | None = setting(
        "LEASEHOLD_SQL_USERS_FILE",
        "file of such lines instead; it is read again when it changes",
        default=None,
        parse=Path,
    )
    auth: str | None = setting(
        "LEASEHOLD_SQL_AUTH",
        "how clients show who they are: trust (not at all, on loopback alone), scram-sha-256 (by a"
        " password) or cert (by a certificate for their name); without it scram-sha-256 where users"
        " are set, else trust",
        default=None,
        parse=choice(*(each.value for each in Method)),
    )
    tls: str | None = setting(
        "LEASEHOLD_SQL_TLS",
        "off: also beyond loopback without a certificate, where nobody else listens on the way (to"
        " clients the word means the same)",
        default=None,
        parse=choice(VERIFY, ENCRYPT, OFF),
    )
    tls_cert: Path | None = setting(
        "LEASEHOLD_SQL_TLS_CERT",
        "PEM file of the listener's certificate; from other machines TLS is then required. It is"
        " read again when it changes, as are the three below",
        default=None,
        parse=Path,
    )
    tls_key: Path | None = setting(
        "LEASEHOLD_SQL_TLS_KEY", "PEM file of its private key", default=None, parse=Path
    )
    tls_client_ca: Path | None = setting(
        "LEASEHOLD_SQL_TLS_CLIENT_CA",
        "PEM file of the authority whose certificates clients may show",
        default=None,
        parse=Path,
    )
    tls_crl_file: Path | None = setting(
        "LEASEHOLD_SQL_TLS_CRL_FILE",
        "PEM file of the lists of what that authority has revoked: a client that shows such a"
        " certificate is refused; a list of each authority has to be there, and not be out of date",
        default=None,
        parse=Path,
    )
    tls_clientcert: str = setting(
        "LEASEHOLD_SQL_TLS_CLIENTCERT",
        "what a client must show beside its password: no certificate, verify-ca (one of the"
        " authority) or verify-full (one whose common name is the user's)",
        default="no",
        parse=choice(*(each.value for each in ClientCertificate)),
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
    reserved_connections: int = setting(
        "LEASEHOLD_SQL_RESERVED_CONNECTIONS",
        "how many of those are kept for administrators, at most all but one",
        default=3,
        parse=integer(0, 10_000),
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

    @property
    def method(self) -> Method:
        if self.auth is not None:
            return Method(self.auth)
        return Method.SCRAM if self.users or self.users_file is not None else Method.TRUST

    @property
    def certificate(self) -> ClientCertificate:
        """What certificate is asked for; whoever logs in by one needs it for his name."""
        if self.method is Method.CERT:
            return ClientCertificate.VERIFY_FULL
        return ClientCertificate(self.tls_clientcert)

    @property
    def reserved(self) -> int:
        return min(self.reserved_connections, self.connections_max - 1)

    @property
    def open_to(self) -> str:
        """A sentence on who is let in without being asked, for whoever looks at the node; "" where
        all are asked."""
        if not self.port or self.method is not Method.TRUST:
            return ""
        return f"open: who comes to {self.host}:{self.port} is asked for no password"

    @property
    def files(self) -> tuple[Path, ...]:
        """Return those that are read again when they change."""
        users_files = () if self.users_file is None else (self.users_file,)
        return users_files + self.served.files

    def read_users(self) -> Mapping[str, Verifier] | None:
        """Return the users that the file names now, None where there is no file. Raises
        ConfigurationError."""
        if self.users_file is None:
            return None
        try:
            return users(read_value_file("LEASEHOLD_SQL_USERS", self.users_file))
        except ValueError as error:
            raise ConfigurationError(
                f"{self.users_file} is no file of users; expected {error}"
            ) from None

    @property
    def served(self) -> CertificateFiles:
        """Return what TLS is served with, and clients' certificates are verified by."""
        return CertificateFiles(
            "LEASEHOLD_SQL_TLS",
            self.tls_cert,
            self.tls_key,
            authority=self.tls_client_ca,
            revoked=self.tls_crl_file,
        )

    def read_tls(self) -> ServedTls | None:
        """Return what TLS is served with, None without a certificate. Raises ConfigurationError for
        files that can't be used."""
        before = self.served.digest()
        context = self.served.context()
        if context is None:
            return None
        context.set_alpn_protocols([ALPN])
        try:
            binding = endpoint_binding(self.served.certificate())
        except ValueError as error:
            raise self.served.unusable(error) from None
        if before != self.served.digest():
            raise ConfigurationError(f"{self.tls_cert} or a file beside it is being replaced")
        return ServedTls(context, binding, before)

    def check(self) -> None:
        """Raises ConfigurationError: nobody from elsewhere may come without a secret, nor in the
        clear unless that was said; certificates need an authority that vouches for them."""
        self._check_certificates()
        if ip_address(self.host).is_loopback:
            return
        reached = f"LEASEHOLD_SQL_HOST is {self.host}, which other machines reach, and "
        if self.auth == Method.TRUST.value:
            raise ConfigurationError(
                f"{reached}LEASEHOLD_SQL_AUTH is trust: set it to scram-sha-256 or cert, or listen"
                " on 127.0.0.1"
            )
        if self.method is Method.TRUST:
            raise ConfigurationError(
                f"{reached}nobody is asked who he is: name administrators in LEASEHOLD_SQL_USERS or"
                " a file (LEASEHOLD_SQL_USERS_FILE), or set LEASEHOLD_SQL_AUTH=scram-sha-256 where"
                " roles of the database have passwords, or listen on 127.0.0.1"
            )
        if self.tls_cert is None and self.tls != OFF:
            raise ConfigurationError(
                f"{reached}there is no certificate: set LEASEHOLD_SQL_TLS_CERT and"
                " LEASEHOLD_SQL_TLS_KEY; only where nobody else listens on the way:"
                " LEASEHOLD_SQL_TLS=off"
            )

    def _check_certificates(self) -> None:
        if self.tls_crl_file is not None and (self.tls_cert is None or self.tls_client_ca is None):
            raise ConfigurationError(
                "LEASEHOLD_SQL_TLS_CRL_FILE says which certificates of clients are revoked: set"
                " LEASEHOLD_SQL_TLS_CLIENT_CA to the authority's file, and LEASEHOLD_SQL_TLS_CERT"
                " and LEASEHOLD_SQL_TLS_KEY"
            )
        if self.certificate is ClientCertificate.NO:
            return
        if self.tls_cert is None or self.tls_client_ca is None:
            raise ConfigurationError(
                "clients are to show certificates (LEASEHOLD_SQL_AUTH,"
                " LEASEHOLD_SQL_TLS_CLIENTCERT): set LEASEHOLD_SQL_TLS_CLIENT_CA to the authority's"
                " file, and LEASEHOLD_SQL_TLS_CERT and LEASEHOLD_SQL_TLS_KEY"
            )

    @property
    def in_the_clear(self) -> bool:
        """Whether passwords' proofs and rows reach other machines without TLS."""
        return self.tls_cert is None and not ip_address(self.host).is_loopback
