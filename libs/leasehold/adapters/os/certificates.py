"""Reads from PEM files when certificates end.

The standard library tells that of a certificate that a peer has shown, and of no file; a library
for it (cryptography) is not among those that every installation has. So their DER is walked to the
two times that stand in each: RFC 5280, section 4.1.
"""

from __future__ import annotations

import re
import ssl
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Final

PEM_BYTES_MAX: Final = 1 << 20
CERTIFICATES_MAX: Final = 1_000
_PEM: Final = re.compile(
    r"-----BEGIN CERTIFICATE-----[A-Za-z0-9+/=\s]+-----END CERTIFICATE-----", re.ASCII
)
_SEQUENCE, _VERSION, _UTC_TIME, _GENERAL_TIME = 0x30, 0xA0, 0x17, 0x18
_FIELDS_BEFORE_VALIDITY: Final = 3
"""Serial number, algorithm, issuer."""


def read_ends_us(file: Path) -> list[int]:
    """Return when each certificate in a PEM file ends (unix µs). Raises OSError, and ValueError for
    a file without one or with one that can't be read."""
    with file.open("rb") as source:
        text = source.read(PEM_BYTES_MAX + 1)
    if len(text) > PEM_BYTES_MAX:
        raise ValueError(f"it is larger than {PEM_BYTES_MAX} bytes")
    blocks = _PEM.findall(text.decode("ascii", "replace"))[:CERTIFICATES_MAX]
    if not blocks:
        raise ValueError("there is no certificate in it")
    return [end_of(ssl.PEM_cert_to_DER_cert(block)) for block in blocks]


def end_of(der: bytes) -> int:
    """Return when a certificate ends (unix µs). Raises ValueError for bytes that are none."""
    (_, certificate), *_ = _elements(der)
    (_, signed), *_ = _elements(certificate)
    parts = _elements(signed)
    tag, content = _next(parts)
    if tag == _VERSION:
        tag, content = _next(parts)
    for _ in range(_FIELDS_BEFORE_VALIDITY):
        tag, content = _next(parts)
    if tag != _SEQUENCE:
        raise ValueError("a certificate without a time of validity")
    times = _elements(content)
    _next(times)
    return _unix_us(*_next(times))


def _next(parts: Iterator[tuple[int, bytes]]) -> tuple[int, bytes]:
    found = next(parts, None)
    if found is None:
        raise ValueError("a certificate that ends early")
    return found


def _elements(der: bytes) -> Iterator[tuple[int, bytes]]:
    """Yield the elements that bytes hold: tag and content. Raises ValueError."""
    at = 0
    while at < len(der):
        if at + 2 > len(der):
            raise ValueError("an element that ends early")
        tag, length, at = der[at], der[at + 1], at + 2
        if length >= 0x80:
            count = length & 0x7F
            length, at = int.from_bytes(der[at : at + count], "big"), at + count
        if at + length > len(der):
            raise ValueError("an element that ends early")
        yield tag, der[at : at + length]
        at += length


def _unix_us(tag: int, content: bytes) -> int:
    text = content.decode("ascii")
    if tag == _UTC_TIME:
        # RFC 5280: two digits from 50 on are of the last century.
        text = ("19" if text[:2] >= "50" else "20") + text
    elif tag != _GENERAL_TIME:
        raise ValueError("a time of an unknown kind")
    return int(datetime.strptime(text, "%Y%m%d%H%M%SZ").replace(tzinfo=UTC).timestamp() * 1_000_000)
