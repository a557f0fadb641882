"""Whole numbers in as few bytes as they need, as Avro and Protobuf have them: seven bits a byte,
the lowest first."""

from __future__ import annotations

from typing import Final

_ONE_BYTE: Final = tuple(bytes([number]) for number in range(128))
_64_BITS: Final = (1 << 64) - 1


def varint(number: int) -> bytes:
    """Return a number that is not negative."""
    if number < 128:
        return _ONE_BYTE[number]
    if number < 16_384:
        return bytes((number & 127 | 128, number >> 7))
    made = bytearray()
    while number > 127:
        made.append(number & 127 | 128)
        number >>= 7
    made.append(number)
    return bytes(made)


def zigzag(number: int) -> bytes:
    """Return a number of 64 bits, small ones of either sign in few bytes."""
    return varint((number << 1) ^ (number >> 63))


def two_complement(number: int) -> bytes:
    """Return a number of 64 bits; a negative one takes ten bytes."""
    return varint(number & _64_BITS)
