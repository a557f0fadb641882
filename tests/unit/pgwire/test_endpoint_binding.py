"""Goal: a proof is bound to the certificate as libpq binds it, whatever the certificate is signed
with; bytes that are no certificate bind nothing.

Method: certificates by openssl, and the digest that each has by RFC 5929.
"""

from __future__ import annotations

import hashlib
import ssl
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from leasehold.pgwire.auth.endpoint_binding import endpoint_binding
from tests.support.pgwire.certificates import make_certificate

RSA = ("-newkey", "rsa:2048")
PSS = (*RSA, "-sigopt", "rsa_padding_mode:pss")


@pytest.mark.parametrize(
    ("options", "digest"),
    [
        ((*RSA, "-sha1"), "sha256"),
        ((*RSA, "-sha224"), "sha224"),
        ((*RSA, "-sha256"), "sha256"),
        ((*RSA, "-sha384"), "sha384"),
        ((*RSA, "-sha512"), "sha512"),
        ((*PSS, "-sha512"), "sha512"),
        ((*PSS, "-sha256"), "sha256"),
        (("-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-sha256"), "sha256"),
        (("-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-384", "-sha384"), "sha384"),
        (("-newkey", "ed25519"), None),
    ],
)
def test_the_hash_is_that_of_the_signature(
    tmp_path: Path, options: tuple[str, ...], digest: str | None
) -> None:
    made = make_certificate(tmp_path, "node", options=options)
    der = ssl.PEM_cert_to_DER_cert(made.cert.read_text())
    wanted = None if digest is None else hashlib.new(digest, der).digest()
    assert endpoint_binding(der) == wanted
    assert endpoint_binding(der[: len(der) // 2]) is None


@given(data=st.binary(max_size=200))
def test_no_bytes_are_a_defect(data: bytes) -> None:
    assert endpoint_binding(data) is None
    assert endpoint_binding(b"\x30\x82\x00\xff\x30\x03abc\x30\x09\x06\x03" + data) is None
