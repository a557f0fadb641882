"""Everything the server says, as bytes."""

from __future__ import annotations

import struct
from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache
from typing import Final, NamedTuple

_HEAD: Final = struct.Struct("!cI")
_SHORT: Final = struct.Struct("!H")
_LONG: Final = struct.Struct("!I")
_FIELD: Final = struct.Struct("!IHIhih")


def message(kind: bytes, body: bytes = b"") -> bytes:
    return _HEAD.pack(kind, len(body) + 4) + body


PARSE_COMPLETE: Final = message(b"1")
BIND_COMPLETE: Final = message(b"2")
CLOSE_COMPLETE: Final = message(b"3")
NO_DATA: Final = message(b"n")
EMPTY_QUERY: Final = message(b"I")
COPY_DONE: Final = message(b"c")
PORTAL_SUSPENDED: Final = message(b"s")
AUTHENTICATION_OK: Final = message(b"R", _LONG.pack(0))
ENCRYPTION_REFUSED: Final = b"N"
ENCRYPTION_BEGINS: Final = b"S"
_READY: Final = {status: message(b"Z", status) for status in (b"I", b"T", b"E")}


def ready(status: bytes) -> bytes:
    """Return ReadyForQuery with the status I, T or E."""
    return _READY[status]


def sasl_mechanisms(names: Iterable[str]) -> bytes:
    return message(b"R", _LONG.pack(10) + b"".join(map(zero_ended, names)) + b"\0")


def sasl_continue(text: str) -> bytes:
    return message(b"R", _LONG.pack(11) + text.encode())


def sasl_final(text: str) -> bytes:
    return message(b"R", _LONG.pack(12) + text.encode())


def negotiate_version(minor: int, unknown: Sequence[str]) -> bytes:
    """The newest minor version spoken here, and the options that nobody here knows."""
    body = _LONG.pack(minor) + _LONG.pack(len(unknown)) + b"".join(map(zero_ended, unknown))
    return message(b"v", body)


def parameter_status(name: str, value: str) -> bytes:
    return message(b"S", zero_ended(name) + zero_ended(value))


def key_data(process: int, key: bytes) -> bytes:
    return message(b"K", _LONG.pack(process) + key)


def notification(process: int, channel: str, payload: str) -> bytes:
    """Return NotificationResponse: what the session of that process has told a channel."""
    return message(b"A", _LONG.pack(process) + zero_ended(channel) + zero_ended(payload))


@lru_cache(1_000)
def complete(tag: str) -> bytes:
    return message(b"C", zero_ended(tag))


class Field(NamedTuple):
    """A column as RowDescription tells it; `format` 0 text, 1 binary."""

    name: str
    table: int
    position: int
    oid: int
    size: int
    modifier: int
    format: int


def row_description(fields: Sequence[Field]) -> bytes:
    parts = [_SHORT.pack(len(fields))]
    for field in fields:
        parts.append(zero_ended(field.name))
        parts.append(_FIELD.pack(*field[1:]))
    return message(b"T", b"".join(parts))


def parameter_description(oids: Sequence[int]) -> bytes:
    return message(b"t", _SHORT.pack(len(oids)) + struct.pack(f"!{len(oids)}I", *oids))


def copy_in(columns: int, *, binary: bool = False) -> bytes:
    return message(b"G", _copy_forms(columns, binary=binary))


def copy_out(columns: int, *, binary: bool = False) -> bytes:
    return message(b"H", _copy_forms(columns, binary=binary))


def copy_data(data: bytes) -> bytes:
    return message(b"d", data)


def _copy_forms(columns: int, *, binary: bool) -> bytes:
    """All columns are alike."""
    return bytes([binary]) + _SHORT.pack(columns) + bytes([0, binary]) * columns


def error(fields: Mapping[str, str]) -> bytes:
    return message(b"E", _fields(fields))


def notice(fields: Mapping[str, str]) -> bytes:
    return message(b"N", _fields(fields))


def _fields(fields: Mapping[str, str]) -> bytes:
    return b"".join([key.encode() + zero_ended(text) for key, text in fields.items()]) + b"\0"


def zero_ended(text: str) -> bytes:
    # A zero byte inside would end the text early and shift everything after it.
    return text.replace("\0", "").encode(errors="replace") + b"\0"
