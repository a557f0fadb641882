"""Certificates of a local cluster, made by openssl: an authority of its own, and whom it vouches
for."""

from __future__ import annotations

import subprocess
from collections.abc import Sequence
from pathlib import Path
from typing import Final, NamedTuple

from infra.processes import ProcessFailure
from leasehold.settings.private_files import make_private_file

AUTHORITY: Final = "ca"
AUTHORITY_DAYS: Final = 3_650
DAYS: Final = 365
RENEWED_BEFORE_S: Final = 30 * 86_400
OPENSSL_TIMEOUT_S: Final = 60
_KEY: Final = ("-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes")


class Certificate(NamedTuple):
    cert: Path
    key: Path
    """PKCS 8, without a password; for its owner's eyes."""


class Authority:
    """An authority whose files stand in `folder`, with the certificates that it has signed."""

    def __init__(self, folder: Path, hosts: Sequence[str] = ()) -> None:
        """Sign for this machine's loopback, and for `hosts`."""
        self._folder = folder
        names = ("IP:127.0.0.1", *(f"DNS:{name}" for name in ("localhost", *hosts)))
        self._names = f"subjectAltName={','.join(names)}"

    def make(self, name: str) -> None:
        """Make a certificate where there is none that is good for another month. Raises
        ProcessFailure."""
        made = self._named(name)
        if not _is_good(made):
            issuer = self._authority()
            signed = ("-CA", str(issuer.cert), "-CAkey", str(issuer.key))
            leaf = ("-addext", "basicConstraints=critical,CA:FALSE", "-addext", self._names)
            _make(made, name, DAYS, *signed, *leaf)
        both = self._folder / f"{name}.both.pem"
        make_private_file(both)
        both.write_text(made.key.read_text("ascii") + made.cert.read_text("ascii"), "ascii")

    def _authority(self) -> Certificate:
        made = self._named(AUTHORITY)
        if not _is_good(made):
            # Version 3 of X.509 has an authority say that it is one; openssl's defaults say it.
            _make(made, "Leasehold's local cluster", AUTHORITY_DAYS)
        return made

    def _named(self, name: str) -> Certificate:
        return Certificate(self._folder / f"{name}.pem", self._folder / f"{name}.key")


def _make(made: Certificate, name: str, days: int, *more: str) -> None:
    make_private_file(made.key)
    command = ["req", "-x509", *_KEY, "-days", str(days), "-subj", f"/CN={name}", *more]
    _openssl(*command, "-keyout", str(made.key), "-out", str(made.cert))


def _is_good(made: Certificate) -> bool:
    if not (made.cert.exists() and made.key.exists()):
        return False
    words = ("x509", "-checkend", str(RENEWED_BEFORE_S), "-noout", "-in", str(made.cert))
    return _run(*words).returncode == 0


def _openssl(*words: str) -> None:
    done = _run(*words)
    if done.returncode != 0:
        told = done.stderr.decode(errors="replace").strip()
        raise ProcessFailure(f"openssl could not make a certificate ({' '.join(words)}):\n{told}")


def _run(*words: str) -> subprocess.CompletedProcess[bytes]:
    try:
        return subprocess.run(
            ["openssl", *words],
            capture_output=True,
            timeout=OPENSSL_TIMEOUT_S,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        raise ProcessFailure(
            f"certificates need openssl, which can't be run ({error}); install it, or leave"
            " SECURE=1 out"
        ) from error
