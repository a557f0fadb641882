"""Certificates for a test, made by openssl: an authority, and whom it vouches for."""

from __future__ import annotations

import subprocess
from pathlib import Path
from typing import NamedTuple

RSA = ("-newkey", "rsa:2048")


class Certificate(NamedTuple):
    cert: Path
    key: Path


def revoke(
    folder: Path, issuer: Certificate, *revoked: Certificate, outdated: bool = False
) -> Path:
    """Make the list of all that `issuer` has revoked."""
    made, index = folder / "revoked.pem", folder / "index.txt"
    index.write_text("")
    settings = folder / "ca.cnf"
    settings.write_text(
        "[ca]\ndefault_ca=own\n[own]\ndefault_md=sha256\n"
        f"database={index}\ncertificate={issuer.cert}\nprivate_key={issuer.key}\n"
    )
    command = ["openssl", "ca", "-config", str(settings)]
    for each in revoked:
        subprocess.run([*command, "-revoke", str(each.cert)], check=True, capture_output=True)
    command += ["-gencrl", "-out", str(made)]
    if outdated:
        command += ["-crl_lastupdate", "200101000000Z", "-crl_nextupdate", "200102000000Z"]
    else:
        command += ["-crldays", "2"]
    subprocess.run(command, check=True, capture_output=True)
    return made


def make_certificate(
    folder: Path,
    name: str,
    issuer: Certificate | None = None,
    options: tuple[str, ...] = RSA,
    file: str = "",
) -> Certificate:
    """Make one for the common name `name`, and for localhost; signed by itself without an
    issuer."""
    made = Certificate(folder / f"{file or name}.pem", folder / f"{file or name}.key")
    command = ["openssl", "req", "-x509", "-nodes", "-days", "2", "-subj", f"/CN={name}"]
    command += ["-addext", "subjectAltName=DNS:localhost,IP:127.0.0.1", *options]
    command += ["-keyout", str(made.key), "-out", str(made.cert)]
    if issuer is not None:
        command += ["-CA", str(issuer.cert), "-CAkey", str(issuer.key)]
        command += ["-addext", "basicConstraints=CA:FALSE"]
    subprocess.run(command, check=True, capture_output=True)
    made.key.chmod(0o600)
    return made
