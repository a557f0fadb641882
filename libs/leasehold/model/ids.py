"""Identifiers: request ids, genids, incarnations. No clock and no randomness of its own."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import count
from typing import Final
from uuid import UUID

from leasehold.model.errors import InvalidText

GENID_POSITION_BITS: Final = 20
OPERATIONS_PER_COMMIT_MAX: Final = 1 << GENID_POSITION_BITS
INCARNATION_BYTES: Final = 8
DIGEST_BYTES: Final = 16
_RANDOM_BITS: Final = (1 << 62) - 1


SEQUENCES_FROM: Final = 1 << 30
"""Ids of sequences, among those of tables: who reads the log knows them without a catalog."""


ENUMS_FROM: Final = 1 << 28
"""Ids of enum types, among those of tables."""


def is_enum_id(table_id: int) -> bool:
    return ENUMS_FROM <= table_id < 2 * ENUMS_FROM


def is_sequence_id(table_id: int) -> bool:
    return bool(table_id & SEQUENCES_FROM)


def genid(lsn: int, position: int) -> int:
    """Return the version of one row: the LSN that wrote it and the operation's position in that
    commit.

    Never reused, because LSNs are dense and never given twice (L2). Fits 63 bits for 8.7e12 LSNs.
    """
    assert 0 <= position < OPERATIONS_PER_COMMIT_MAX, position
    return lsn << GENID_POSITION_BITS | position


def genid_lsn(value: int) -> int:
    """Return the LSN that wrote a genid."""
    return value >> GENID_POSITION_BITS


def request_id(unix_ms: int, random: bytes) -> bytes:
    """Return a UUIDv7 (RFC 9562): 48 bits of milliseconds, then 74 random bits from `random` (10
    bytes).

    Ids are time-ordered because their own time decides how long an outcome is remembered (L5).
    """
    assert len(random) == 10, "UUIDv7 takes ten random bytes"
    value = bytearray(unix_ms.to_bytes(6, "big") + random)
    value[6] = value[6] & 0x0F | 0x70
    value[8] = value[8] & 0x3F | 0x80
    return bytes(value)


def hidden_key(request: bytes, ordinal: int) -> str:
    """Return the key of a row that has none of its own (T7), in storage form: the request's id,
    counted on in its random bits by the row's place in the request. So the same request makes the
    same row however often it comes, and rows that came together lie together."""
    assert 0 <= ordinal < 1 << 32, ordinal
    value = int.from_bytes(request, "big")
    random = value & _RANDOM_BITS
    return str(UUID(int=value - random + (random + ordinal & _RANDOM_BITS)))


def hidden_keys(request: bytes) -> Iterator[str]:
    """Yield the keys of one request's rows, one after the other."""
    for ordinal in count():
        yield hidden_key(request, ordinal)


def request_time_ms(value: bytes) -> int:
    """Return the unix time in milliseconds inside a request id.

    Raises InvalidText when `value` is not a UUIDv7: an id without a time of its own could be
    decided a second time after its outcome was collected (L5).
    """
    if len(value) != 16 or value[6] >> 4 != 7 or value[8] >> 6 != 2:
        raise InvalidText("a request id must be a UUID of version 7, which carries its own time")
    return time_ms_of(value)


def time_ms_of(request: bytes) -> int:
    """Return the unix time, in milliseconds, of an id which is known to have one."""
    return int.from_bytes(request[:6], "big")


def first_id(time_us: int) -> bytes:
    """Return the least bytes of an id whose own time is not before `time_us`."""
    return (-(-time_us // 1_000)).to_bytes(6, "big") + bytes(10)


def parse_request_id(text: str) -> bytes:
    """Return the 16 bytes of an id's text form, `0191…`. Raises InvalidText."""
    try:
        value = UUID(text).bytes
    except (ValueError, AttributeError, TypeError) as error:
        raise InvalidText(f"request id {text!r:.80} is not a UUID") from error
    request_time_ms(value)
    return value


def format_request_id(value: bytes) -> str:
    return str(UUID(bytes=value))
