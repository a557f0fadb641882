"""The settings of reads and events over HTTP: where, for whom, as which role."""

from __future__ import annotations

from dataclasses import dataclass
from ipaddress import ip_address
from pathlib import Path

from leasehold.model.errors import ConfigurationError
from leasehold.settings.certificate_files import CertificateFiles
from leasehold.settings.setting import PORT_OR_ANY, own_address, setting
from leasehold.settings.snapshot import token


@dataclass(frozen=True, slots=True, kw_only=True)
class HttpSettings:
    """The settings of a replicant's HTTP listener. It reads, and never writes."""

    listen: str = setting(
        "LEASEHOLD_HTTP_LISTEN",
        "address on which HTTP is listened for; one that other machines reach needs"
        " LEASEHOLD_HTTP_TLS_CERT",
        default="127.0.0.1",
        parse=own_address,
    )
    port: int = setting(
        "LEASEHOLD_HTTP_PORT",
        "port for reads and events over HTTP; 0: a replicant does not listen for them",
        default=0,
        parse=PORT_OR_ANY,
    )
    token: str | None = setting(
        "LEASEHOLD_HTTP_TOKEN",
        "what a client says that it may come: Authorization: Bearer …",
        default=None,
        parse=token,
        secret=True,
    )
    role: str = setting(
        "LEASEHOLD_HTTP_ROLE",
        "role as which its clients read; without one they read everything",
        default="",
    )
    hosts: str = setting(
        "LEASEHOLD_HTTP_HOSTS",
        "host names, with commas, under which it may be asked beside addresses and localhost",
        default="",
    )
    tls_cert: Path | None = setting(
        "LEASEHOLD_HTTP_TLS_CERT",
        "PEM file of the certificate that HTTP is served with; read again when it changes",
        default=None,
        parse=Path,
    )
    tls_key: Path | None = setting(
        "LEASEHOLD_HTTP_TLS_KEY", "PEM file of its private key", default=None, parse=Path
    )

    def __post_init__(self) -> None:
        self.served.check_both()

    @property
    def served(self) -> CertificateFiles:
        """Return what it is served with."""
        return CertificateFiles("LEASEHOLD_HTTP_TLS", self.tls_cert, self.tls_key)

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(name.strip() for name in self.hosts.split(",") if name.strip())

    def check(self) -> None:
        """Raise ConfigurationError for a listener that everybody could ask."""
        if self.tls_cert is None and not ip_address(self.listen).is_loopback:
            raise ConfigurationError(
                f"LEASEHOLD_HTTP_LISTEN is {self.listen}, which other machines reach, and rows and"
                " the token would travel in the clear: set LEASEHOLD_HTTP_TLS_CERT and"
                " LEASEHOLD_HTTP_TLS_KEY, or listen on loopback and let a proxy that speaks TLS"
                " pass requests on",
                variable="LEASEHOLD_HTTP_LISTEN",
            )
        if self.token is None:
            raise ConfigurationError(
                "LEASEHOLD_HTTP_PORT is set and LEASEHOLD_HTTP_TOKEN is not: say what clients are"
                " to know (openssl rand -hex 32), or name a file of it in"
                " LEASEHOLD_HTTP_TOKEN_FILE",
                variable="LEASEHOLD_HTTP_TOKEN",
            )
