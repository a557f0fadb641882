"""What a client says, as bytes; no more than simple queries need."""

from __future__ import annotations

import struct
from collections.abc import Mapping
from typing import Final

from leasehold.pgwire.auth.startup import CANCEL_REQUEST, MAJOR, SSL_REQUEST
from leasehold.pgwire.messages.backend import message, zero_ended

_TWO: Final = struct.Struct("!II")


def startup(parameters: Mapping[str, str]) -> bytes:
    pairs = b"".join(zero_ended(name) + zero_ended(v) for name, v in parameters.items())
    return _TWO.pack(len(pairs) + 9, MAJOR << 16) + pairs + b"\0"


def cancel(process: int, key: bytes) -> bytes:
    """Return a cancel request, which is sent on a connection of its own."""
    body = struct.pack("!I", process) + key
    return _TWO.pack(len(body) + 8, CANCEL_REQUEST) + body


def sasl_initial(mechanism: str, first: str) -> bytes:
    data = first.encode()
    return message(b"p", zero_ended(mechanism) + struct.pack("!I", len(data)) + data)


def sasl_response(text: str) -> bytes:
    return message(b"p", text.encode())


def query(text: str) -> bytes:
    """Return a simple Query; `text` has no zero characters."""
    return message(b"Q", zero_ended(text))


def copy_fail(reason: str) -> bytes:
    return message(b"f", zero_ended(reason))


TLS: Final = _TWO.pack(8, SSL_REQUEST)
TERMINATE: Final = message(b"X")
