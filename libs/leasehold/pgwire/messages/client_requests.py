"""What a client says, as bytes; no more than texts of statements and single ones with parameters
need."""

from __future__ import annotations

import struct
from collections.abc import Mapping, Sequence
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


def single_statement(text: str, parameters: Sequence[str]) -> bytes:
    """Return Parse, Bind, Describe, Execute and Sync of one statement whose parameters are given as
    texts; none of them has zero characters. Their types are the server's to find."""
    values = b"".join(
        struct.pack("!I", len(value)) + value for value in (each.encode() for each in parameters)
    )
    return (
        message(b"P", b"\0" + zero_ended(text) + struct.pack("!H", 0))
        + message(b"B", struct.pack("!2xHH", 0, len(parameters)) + values + struct.pack("!H", 0))
        + message(b"D", b"P\0")
        + message(b"E", b"\0" + struct.pack("!I", 0))
        + message(b"S")
    )


def copy_fail(reason: str) -> bytes:
    return message(b"f", zero_ended(reason))


TLS: Final = _TWO.pack(8, SSL_REQUEST)
TERMINATE: Final = message(b"X")
