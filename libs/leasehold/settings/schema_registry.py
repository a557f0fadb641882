"""How to reach a schema registry, for feeds in Avro and Protobuf."""

from __future__ import annotations

import ssl
from dataclasses import dataclass
from pathlib import Path
from typing import Final
from urllib.parse import urlsplit

from leasehold.model.errors import ConfigurationError
from leasehold.settings.setting import choice, integer, setting

REGISTER: Final = "register"
LOOK_UP: Final = "look-up"
REFUSE: Final = "refuse"
WARN: Final = "warn"
OFF: Final = "off"


def registry_urls(text: str) -> str:
    """Check `https://host:port/path`, or several with commas between them."""
    for part in text.split(","):
        try:
            address = urlsplit(part.strip())
            usable = address.scheme in ("http", "https") and address.hostname and address.port != 0
        except ValueError:  # the port is no number
            usable = False
        if not usable or address.username or address.query or address.fragment:
            raise ValueError(
                "http://host:port or https://host:port, with a path where the registry has one,"
                " without a user; several with commas between them"
            )
    return text


@dataclass(frozen=True, slots=True, kw_only=True)
class SchemaRegistrySettings:
    """A registry with Confluent's REST API: Confluent's own, Karapace, Apicurio's under
    `/apis/ccompat/v7`."""

    urls: str | None = setting(
        "LEASEHOLD_REGISTRY",
        "schema registry for feeds in Avro and Protobuf, https://host:port/path with commas;"
        " without it there are none",
        default=None,
        parse=registry_urls,
    )
    username: str | None = setting(
        "LEASEHOLD_REGISTRY_USERNAME", "user of the registry (basic authentication)", default=None
    )
    password: str | None = setting(
        "LEASEHOLD_REGISTRY_PASSWORD", "his password", default=None, secret=True
    )
    ca: Path | None = setting(
        "LEASEHOLD_REGISTRY_CA",
        "PEM file of the authority to trust for the registry (default: the system's)",
        default=None,
        parse=Path,
    )
    certificate: Path | None = setting(
        "LEASEHOLD_REGISTRY_CERTIFICATE",
        "PEM file of our certificate for the registry",
        default=None,
        parse=Path,
    )
    key: Path | None = setting(
        "LEASEHOLD_REGISTRY_KEY", "PEM file of its private key", default=None, parse=Path
    )
    key_password: str | None = setting(
        "LEASEHOLD_REGISTRY_KEY_PASSWORD", "password of that key", default=None, secret=True
    )
    timeout_ms: int = setting(
        "LEASEHOLD_REGISTRY_TIMEOUT_MS",
        "how long one answer of the registry may take",
        default=5_000,
        parse=integer(100, 60_000, "milliseconds"),
    )
    wait_ms: int = setting(
        "LEASEHOLD_REGISTRY_WAIT_MS",
        "how long a registry that is away is waited for: the changefeed publishes nothing"
        " meanwhile, and a feed that needs a new schema is then held until it answers",
        default=2_000,
        parse=integer(100, 3_600_000, "milliseconds"),
    )
    schemas: str = setting(
        "LEASEHOLD_REGISTRY_SCHEMAS",
        f"{REGISTER}: the changefeed registers schemas; {LOOK_UP}: it takes those that somebody"
        " else has registered",
        default=REGISTER,
        parse=choice(REGISTER, LOOK_UP),
    )
    check: str = setting(
        "LEASEHOLD_REGISTRY_CHECK",
        f"a schema change that the registry takes for incompatible: {REFUSE} it, also where the"
        f" registry is away; {WARN}; {OFF}: don't ask",
        default=REFUSE,
        parse=choice(REFUSE, WARN, OFF),
    )

    def __post_init__(self) -> None:
        if (self.username is None) != (self.password is None):
            raise ConfigurationError(
                "LEASEHOLD_REGISTRY_USERNAME and LEASEHOLD_REGISTRY_PASSWORD only work together;"
                " set both or neither."
            )
        if (self.certificate is None) != (self.key is None):
            raise ConfigurationError(
                "LEASEHOLD_REGISTRY_CERTIFICATE and LEASEHOLD_REGISTRY_KEY only work together;"
                " set both or neither."
            )

    def ssl_context(self) -> ssl.SSLContext:
        """Verifies the registry's name and certificate. Raises ConfigurationError."""
        try:
            context = ssl.create_default_context(cafile=self.ca)
            if self.certificate is not None:
                context.load_cert_chain(self.certificate, self.key, self.key_password)
        except (OSError, ssl.SSLError) as error:
            raise ConfigurationError(
                "The TLS files for the schema registry (LEASEHOLD_REGISTRY_CA, _CERTIFICATE, _KEY)"
                f" can't be used: {error}."
            ) from None
        return context
