"""How nodes hand their stores to each other: where, to whom, and whether encrypted.

A snapshot holds every row, so it is for whoever proves to know the token, which is shown to
nobody; with a certificate the rows travel encrypted. All nodes of a database are given the same.
Nodes of one user on one machine need not be given any: the first of them makes one, in a file below
LEASEHOLD_DATA that is closed to others.
"""

from __future__ import annotations

import logging
import os
import secrets
import ssl
from dataclasses import dataclass
from ipaddress import ip_address
from pathlib import Path
from typing import Final

from leasehold.model.errors import ConfigurationError
from leasehold.settings.certificate_files import CertificateFiles
from leasehold.settings.private_files import FOLDER_MODE, keep_private, make_private_file
from leasehold.settings.setting import PORT_OR_ANY, choice, setting

LOG: Final = logging.getLogger("leasehold.snapshot")
OFF: Final = "off"
TOKEN_CHARACTERS_LEAST: Final = 16
TOKEN_FILE: Final = "snapshot-token"  # noqa: S105 - the file's name
"""Below LEASEHOLD_DATA; LEASEHOLD_SNAPSHOT_TOKEN_FILE may name it for a node with another one."""
TOKEN_BYTES: Final = 32


def token(text: str) -> str:
    """What can't be guessed, such as `openssl rand -hex 32`. (Earlier releases put it into an HTTP
    header.)"""
    plain = text.isascii() and text.isprintable() and " " not in text
    if not plain or len(text) < TOKEN_CHARACTERS_LEAST:
        raise ValueError(
            f"at least {TOKEN_CHARACTERS_LEAST} printable ASCII characters without a space"
        )
    return text


@dataclass(frozen=True, slots=True, kw_only=True)
class SnapshotSettings:
    """The settings of snapshots that nodes give each other. Without `tls_cert` and `tls_ca` they
    travel in the clear."""

    port: int = setting(
        "LEASEHOLD_SNAPSHOT_PORT",
        "port on which a node hands out snapshots; 0 takes any free one",
        default=0,
        parse=PORT_OR_ANY,
    )
    token: str | None = setting(
        "LEASEHOLD_SNAPSHOT_TOKEN",
        "what a node must know to be handed a snapshot, and who hands it out; the same for all",
        default=None,
        parse=token,
        secret=True,
    )
    tls_cert: Path | None = setting(
        "LEASEHOLD_SNAPSHOT_TLS_CERT",
        "PEM file of the certificate that snapshots are served with; names LEASEHOLD_ADVERTISE",
        default=None,
        parse=Path,
    )
    tls_key: Path | None = setting(
        "LEASEHOLD_SNAPSHOT_TLS_KEY", "PEM file of its private key", default=None, parse=Path
    )
    tls_ca: Path | None = setting(
        "LEASEHOLD_SNAPSHOT_TLS_CA",
        "PEM file of the authority to trust; where none is given, those of the system",
        default=None,
        parse=Path,
    )

    tls: str | None = setting(
        "LEASEHOLD_SNAPSHOT_TLS",
        "off: also beyond loopback without a certificate, where nobody else listens on the way",
        default=None,
        parse=choice(OFF),
    )

    def __post_init__(self) -> None:
        self.served.check_both()

    @property
    def uses_tls(self) -> bool:
        return self.tls_cert is not None or self.tls_ca is not None

    def check_served_on(self, listen: str) -> None:
        """Check that rows go over a network encrypted, unless somebody has said that they need not.
        Raises ConfigurationError."""
        if self.token is None or self.tls_cert is not None or ip_address(listen).is_loopback:
            return
        if self.tls != OFF:
            raise ConfigurationError(
                f"LEASEHOLD_LISTEN is {listen}, which other machines reach, and copies of the store"
                " have no certificate: set LEASEHOLD_SNAPSHOT_TLS_CERT, LEASEHOLD_SNAPSHOT_TLS_KEY"
                " and LEASEHOLD_SNAPSHOT_TLS_CA; only where nobody else listens on the way:"
                " LEASEHOLD_SNAPSHOT_TLS=off"
            )
        LOG.warning(
            "LEASEHOLD_SNAPSHOT_TLS=off: copies of the store go over the network in the clear"
        )

    @property
    def served(self) -> CertificateFiles:
        """Return what snapshots are served with."""
        return CertificateFiles("LEASEHOLD_SNAPSHOT_TLS", self.tls_cert, self.tls_key)

    def to_fetch(self) -> ssl.SSLContext | None:
        """Return the TLS context to fetch with, which verifies the server's name and certificate;
        None to fetch in the clear. Raises ConfigurationError for a file that can't be used."""
        if not self.uses_tls:
            return None
        try:
            return ssl.create_default_context(cafile=self.tls_ca)
        except (OSError, ssl.SSLError) as error:
            words = error.strerror or error
            raise ConfigurationError(f"LEASEHOLD_SNAPSHOT_TLS_CA can't be used: {words}") from None


def token_made_here(data: Path) -> str:
    """The token of this machine's nodes, which is made where there is none: whole, and once,
    however many processes begin at a time. Raises ConfigurationError."""
    found = token_kept_here(data)
    if found is not None:
        return found
    unfinished = data / f".{TOKEN_FILE}-{os.getpid()}"
    try:
        data.mkdir(mode=FOLDER_MODE, parents=True, exist_ok=True)
        make_private_file(unfinished)
        unfinished.write_text(f"{secrets.token_hex(TOKEN_BYTES)}\n", encoding="ascii")
        try:
            (data / TOKEN_FILE).hardlink_to(unfinished)
        except FileExistsError:
            pass  # another one was quicker
        finally:
            unfinished.unlink()
    except OSError as error:
        raise ConfigurationError(
            f"the nodes' token can't be written below {data} ({error.strerror}); see to the"
            " folder, or set LEASEHOLD_SNAPSHOT_TOKEN"
        ) from error
    made = token_kept_here(data)
    assert made is not None, "it was put there before"
    return made


def token_kept_here(data: Path) -> str | None:
    """The token that a node on this machine has made, None where none did. Raises
    ConfigurationError for one that others may read, or that can't be read."""
    file = data / TOKEN_FILE
    try:
        keep_private(file)
        return token(file.read_text(encoding="ascii").strip())
    except FileNotFoundError:
        return None
    except (OSError, ValueError) as error:
        raise ConfigurationError(
            f"the nodes' token in {file} can't be used ({error}); remove the file and start the"
            " nodes of this machine again, or set LEASEHOLD_SNAPSHOT_TOKEN"
        ) from error
