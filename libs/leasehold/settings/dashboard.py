"""Settings of the dashboard alone."""

from __future__ import annotations

import logging
from dataclasses import dataclass
from ipaddress import ip_address
from pathlib import Path
from typing import Final

from leasehold.model.errors import ConfigurationError
from leasehold.settings.certificate_files import CertificateFiles
from leasehold.settings.setting import choice, integer, setting
from leasehold.settings.sql_address import SqlAddress

LOG: Final = logging.getLogger("leasehold.dashboard")
ON, OFF, PROXY = "on", "off", "proxy"


def host_names(text: str) -> str:
    names = [name.strip() for name in text.split(",")]
    if not all(name and all(c.isalnum() or c in ".-_" for c in name) for name in names):
        raise ValueError("host names without a port, with commas between them")
    return ",".join(names)


@dataclass(frozen=True, slots=True, kw_only=True)
class DashboardSettings:
    """The settings of the dashboard: under which names browsers may ask, and who has to log in."""

    hosts: str = setting(
        "LEASEHOLD_DASHBOARD_HOSTS",
        "host names under which browsers ask for the dashboard, with commas; addresses, localhost"
        " and LEASEHOLD_ADVERTISE need not be named",
        default="",
        parse=host_names,
    )
    login: str | None = setting(
        "LEASEHOLD_DASHBOARD_LOGIN",
        "on: users log in as they do for SQL, at the node of LEASEHOLD_SQL_HOST and"
        " LEASEHOLD_SQL_PORT; off: whoever reaches the port sees everything; without it off on"
        " loopback, else on",
        default=None,
        parse=choice(ON, OFF),
    )
    session_min: int = setting(
        "LEASEHOLD_DASHBOARD_SESSION_MIN",
        "minutes after which who has logged in has to do so again",
        default=60,
        parse=integer(1, 24 * 60, "minutes"),
    )
    tls: str | None = setting(
        "LEASEHOLD_DASHBOARD_TLS",
        "log-ins beyond loopback without a certificate of the dashboard's own: proxy, where"
        " browsers speak TLS to a proxy before it; off, where nobody else listens on the way",
        default=None,
        parse=choice(PROXY, OFF),
    )
    tls_cert: Path | None = setting(
        "LEASEHOLD_DASHBOARD_TLS_CERT",
        "PEM file of the certificate that the dashboard is served with; read again when it changes",
        default=None,
        parse=Path,
    )
    tls_key: Path | None = setting(
        "LEASEHOLD_DASHBOARD_TLS_KEY", "PEM file of its private key", default=None, parse=Path
    )

    def __post_init__(self) -> None:
        self.served.check_both()

    @property
    def served(self) -> CertificateFiles:
        """Return what it is served with."""
        return CertificateFiles("LEASEHOLD_DASHBOARD_TLS", self.tls_cert, self.tls_key)

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(name for name in self.hosts.split(",") if name)

    @property
    def browsers_use_tls(self) -> bool:
        return self.tls_cert is not None or self.tls == PROXY

    def wants_login(self, listen: str) -> bool:
        """Return whether who comes to `listen` has to log in."""
        if self.login is None:
            return not ip_address(listen).is_loopback
        return self.login == ON

    def check_served_on(self, listen: str, sql: SqlAddress) -> None:
        """Check that who comes from elsewhere is asked who he is, and that his password does not
        travel in the clear, unless somebody has said so. Raises ConfigurationError."""
        if ip_address(listen).is_loopback:
            return
        reached = f"LEASEHOLD_LISTEN is {listen}, which other machines reach, and "
        if not self.wants_login(listen):
            LOG.warning(
                "LEASEHOLD_DASHBOARD_LOGIN=off: whoever reaches %s sees SQL and values of rows",
                listen,
            )
            return
        if not sql.port:
            raise ConfigurationError(
                f"{reached}nobody can be asked whether a user's password is right: name a node"
                " that listens for SQL in LEASEHOLD_SQL_HOST and LEASEHOLD_SQL_PORT, or listen on"
                " 127.0.0.1; only where nobody else reaches it, or a proxy asks who is there:"
                " LEASEHOLD_DASHBOARD_LOGIN=off"
            )
        if self.tls_cert is None and self.tls is None:
            raise ConfigurationError(
                f"{reached}passwords would travel in the clear: set LEASEHOLD_DASHBOARD_TLS_CERT"
                " and LEASEHOLD_DASHBOARD_TLS_KEY; behind a proxy that speaks TLS:"
                " LEASEHOLD_DASHBOARD_TLS=proxy; only where nobody else listens on the way:"
                " LEASEHOLD_DASHBOARD_TLS=off"
            )
