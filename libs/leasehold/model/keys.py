"""Keys of many rows at once, as a backfill names them."""

from __future__ import annotations

import sys
from array import array
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, Final, TypeAlias, overload

Key: TypeAlias = tuple[Any, ...]

NUMBER_BYTES: Final = 8
INTEGER_LEAST: Final = -(1 << 63)
INTEGER_MOST: Final = (1 << 63) - 1
"""Of the whole numbers that a store holds."""


def order_of(key: Key) -> tuple[tuple[bool, bool, Any], ...]:
    """Return what Python orders keys by, as a store does: text (NaN of a double, values/doubles.py)
    stands behind all numbers, NULL last."""
    return tuple([(part is None, type(part) is str, part) for part in key])


STORED_TYPES: Final = frozenset({bool, bytes, float, int, str, type(None)})


def is_key(key: Key, width: int) -> bool:
    """Say whether a row may have that as its primary key of `width` columns, so that it has a place
    in their order. ⚠ A float that is none (NaN) has none in a store, which takes it for NULL."""
    return len(key) == width and all(
        type(part) in STORED_TYPES
        and part is not None
        and part == part
        and not (type(part) is int and not INTEGER_LEAST <= part <= INTEGER_MOST)
        for part in key
    )


class IntKeys(Sequence[Key]):
    """Keys of one integer each, without an object for each: a backfill hands them from Spark's
    workers through the master to every node, and nobody between looks at one by itself.

    On the wire they are their numbers, 8 bytes each, least byte first.
    """

    __slots__ = ("numbers",)

    def __init__(self, numbers: Iterable[int]) -> None:
        """Raises OverflowError for a number beyond 64 bits, TypeError for what is none."""
        self.numbers = numbers if isinstance(numbers, array) else array("q", numbers)
        assert self.numbers.typecode == "q", self.numbers.typecode

    @classmethod
    def from_wire(cls, data: bytes) -> IntKeys:
        """Raises ValueError for bytes that are no whole numbers."""
        numbers = array("q")
        numbers.frombytes(data)
        return cls(_least_byte_first(numbers))

    def to_wire(self) -> bytes:
        return _least_byte_first(self.numbers).tobytes()

    def __len__(self) -> int:
        return len(self.numbers)

    @overload
    def __getitem__(self, index: int) -> Key: ...
    @overload
    def __getitem__(self, index: slice) -> IntKeys: ...
    def __getitem__(self, index: int | slice) -> Key | IntKeys:
        if isinstance(index, slice):
            return IntKeys(self.numbers[index])
        return (self.numbers[index],)

    def __iter__(self) -> Iterator[Key]:
        return zip(self.numbers)

    def __eq__(self, other: object) -> bool:
        """Compare with keys of either kind, also a tuple of the same: which of the two it is, is a
        matter of its way."""
        if isinstance(other, IntKeys):
            return self.numbers == other.numbers
        return tuple(self) == other if isinstance(other, tuple) else NotImplemented

    def __hash__(self) -> int:
        return hash(tuple(self))

    def __repr__(self) -> str:
        return f"IntKeys({self.numbers.tolist()})"


Keys: TypeAlias = tuple[Key, ...] | IntKeys


def _least_byte_first(numbers: array[int]) -> array[int]:
    assert numbers.itemsize == NUMBER_BYTES, numbers.itemsize
    if sys.byteorder == "little":
        return numbers
    numbers = numbers[:]
    numbers.byteswap()
    return numbers
