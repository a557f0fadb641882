"""The channel binding `tls-server-end-point` of a certificate (RFC 5929, 4.1).

It is the digest of its DER by the hash of its own signature, SHA-256 where that is MD5 or SHA-1.

Only the outermost parts of the certificate are read: signatureAlgorithm stands behind what was
signed.
"""

from __future__ import annotations

import hashlib
from typing import Final

_SEQUENCE, _OBJECT_ID, _TAGGED_0 = 0x30, 0x06, 0xA0
_HASH_OF_SIGNATURE: Final = {
    "1.2.840.113549.1.1.4": "sha256",  # RSA with MD5
    "1.2.840.113549.1.1.5": "sha256",  # RSA with SHA-1
    "1.2.840.113549.1.1.11": "sha256",
    "1.2.840.113549.1.1.12": "sha384",
    "1.2.840.113549.1.1.13": "sha512",
    "1.2.840.113549.1.1.14": "sha224",
    "1.2.840.10040.4.3": "sha256",  # DSA with SHA-1
    "2.16.840.1.101.3.4.3.2": "sha256",
    "1.2.840.10045.4.1": "sha256",  # ECDSA with SHA-1
    "1.2.840.10045.4.3.1": "sha224",
    "1.2.840.10045.4.3.2": "sha256",
    "1.2.840.10045.4.3.3": "sha384",
    "1.2.840.10045.4.3.4": "sha512",
}
_RSA_PSS: Final = "1.2.840.113549.1.1.10"
_HASH_OF_PSS: Final = {
    "1.3.14.3.2.26": "sha256",  # SHA-1, also where nothing is said
    "2.16.840.1.101.3.4.2.1": "sha256",
    "2.16.840.1.101.3.4.2.2": "sha384",
    "2.16.840.1.101.3.4.2.3": "sha512",
    "2.16.840.1.101.3.4.2.4": "sha224",
}
_SHA_1: Final = "1.3.14.3.2.26"


def endpoint_binding(certificate: bytes) -> bytes | None:
    """Return the binding, or None for a certificate whose signature has no hash of its own
    (Ed25519) or one that is not known here. `certificate` is DER."""
    try:
        name = _hash_name(certificate)
    except (IndexError, ValueError):
        return None
    return None if name is None else hashlib.new(name, certificate).digest()


def _hash_name(certificate: bytes) -> str | None:
    outer, _ = _read(certificate, _SEQUENCE)
    _, rest = _read(outer, _SEQUENCE)  # what was signed
    algorithm, _ = _read(rest, _SEQUENCE)
    named, parameters = _read(algorithm, _OBJECT_ID)
    signature = _object_id(named)
    if signature != _RSA_PSS:
        return _HASH_OF_SIGNATURE.get(signature)
    return _HASH_OF_PSS.get(_pss_hash(parameters))


def _pss_hash(parameters: bytes) -> str:
    """Return the object id of the hash that RSASSA-PSS-params name, which is the first of them."""
    fields, _ = _read(parameters, _SEQUENCE)
    if not fields or fields[0] != _TAGGED_0:
        return _SHA_1
    tagged, _ = _read(fields, _TAGGED_0)
    algorithm, _ = _read(tagged, _SEQUENCE)
    named, _ = _read(algorithm, _OBJECT_ID)
    return _object_id(named)


def _read(data: bytes, tag: int) -> tuple[bytes, bytes]:
    """Return the content of the DER element that `data` begins with, and what stands behind it."""
    if data[0] != tag:
        raise ValueError("another kind of element")
    length, at = data[1], 2
    if length & 0x80:
        count = length & 0x7F
        length, at = int.from_bytes(data[2 : 2 + count]), 2 + count
    if len(data) < at + length:
        raise ValueError("an element is cut off")
    return data[at : at + length], data[at + length :]


def _object_id(data: bytes) -> str:
    numbers = [min(data[0] // 40, 2)]
    numbers.append(data[0] - 40 * numbers[0])
    number = 0
    for byte in data[1:]:
        number = number << 7 | byte & 0x7F
        if not byte & 0x80:
            numbers.append(number)
            number = 0
    return ".".join(map(str, numbers))
