"""Bytes and values like good ones, and not good."""

from __future__ import annotations

import random
from typing import Any, Final

import msgpack

from leasehold.adapters.codec.record_shape import CLASS_BY_TAG

ODD: Final[tuple[Any, ...]] = (
    *(None, True, 0, -1, 1, 2**31, 2**63 - 1, -(2**63), 2**64 - 1, 1.5, float("nan")),
    *(b"", b"\xff" * 40, "", "x", "\x00", "漢" * 50, (), ((),), ({},), {}, {"a": 1}, {1: {}}),
    *(((1,),), ((None,), ({"a": 1},)), ((2**63,),), (1, "requests", 9, 9)),
)


def spoiled(chance: random.Random, data: bytes) -> bytes:
    """Another record like that one, or none at all."""
    kind = chance.randrange(5)
    if kind == 0:
        return chance.randbytes(chance.randrange(300))
    if kind == 1:
        return data[: chance.randrange(len(data) + 1)]
    if kind == 2:
        return one_byte_spoiled(chance, data)
    try:
        fields = list(msgpack.unpackb(data, use_list=False, strict_map_key=False))
    except (ValueError, TypeError):
        return json_spoiled(chance, data)
    if len(fields) < 2:  # spoiled before
        return chance.randbytes(chance.randrange(300))
    for _ in range(chance.randrange(1, 3)):
        fields[chance.randrange(1, len(fields))] = chance.choice(ODD)
    if kind == 4:
        fields[1] = chance.choice([*CLASS_BY_TAG, 99])
    packed: bytes = msgpack.packb(fields)
    return packed


def one_byte_spoiled(chance: random.Random, data: bytes) -> bytes:
    place = chance.randrange(max(1, len(data)))
    return data[:place] + chance.randbytes(1) + data[place + chance.randrange(3) :]


def json_spoiled(chance: random.Random, data: bytes) -> bytes:
    words = (b"null", b"5", b'"abc"', b"[]", b"{}", b"1e400", b"-9223372036854775809")
    at = chance.choice([place for place, byte in enumerate(data) if byte == ord(":")] or [0])
    end = data.find(b",", at)
    return data[: at + 1] + chance.choice(words) + data[end if end > 0 else len(data) :]
