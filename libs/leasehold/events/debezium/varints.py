"""Whole numbers in as few bytes as they need, as Avro and Protobuf have them: seven bits a byte,
the lowest first."""

from __future__ import annotations

from typing import Final

_LAST: Final = tuple(bytes([number]) for number in range(128))
_MORE: Final = tuple(bytes([number | 128]) for number in range(128))
"""Seven bits, behind which others follow."""
_64_BITS: Final = (1 << 64) - 1


def varint(number: int) -> bytes:
    """Return a number that is not negative."""
    if number < 128:
        return _LAST[number]
    if number < 16_384:
        return _MORE[number & 127] + _LAST[number >> 7]
    lowest = _MORE[number & 127] + _MORE[number >> 7 & 127]
    if number < 2_097_152:
        return lowest + _LAST[number >> 14]
    return lowest + _MORE[number >> 14 & 127] + varint(number >> 21)


def zigzag(number: int) -> bytes:
    """Return a number of 64 bits, small ones of either sign in few bytes."""
    return varint((number << 1) ^ (number >> 63))


def two_complement(number: int) -> bytes:
    """Return a number of 64 bits; a negative one takes ten bytes."""
    return varint(number & _64_BITS)
