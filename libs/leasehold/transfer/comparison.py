"""Compares a table of the source with the target's: rows and checksums by ranges of hashed keys.

PURE but for what it is handed. Both sides write their rows in COPY's text form, which is what was
copied. A row's key says in which of RANGES it counts, its whole line is added to that range's
checksum; so no side has to know the other's order of texts, memory is the same for a table of any
size, and a difference is found again by reading those ranges alone.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from hashlib import blake2b
from typing import Final, NamedTuple
from zlib import crc32

RANGES: Final = 1_024
NAMED_MAX: Final = 20
KEPT_MAX: Final = 200_000
"""Rows of different ranges that are kept to be told apart; beyond it none is named."""
_SUM: Final = (1 << 64) - 1


class Sums(NamedTuple):
    """What one side has: by range, how many rows, and the sum of their hashes."""

    rows: list[int]
    sums: list[int]

    @property
    def total(self) -> int:
        return sum(self.rows)

    @property
    def checksum(self) -> str:
        """Return one sum over all, in hexadecimal."""
        return f"{sum(self.sums) & _SUM:016x}"


def lines_of(data: Iterable[bytes]) -> Iterator[bytes]:
    """Yield whole lines without their ends; what COPY sends may be cut anywhere."""
    rest = b""
    for piece in data:
        if piece.endswith(b"\n") and not rest and piece.count(b"\n") == 1:
            yield piece[:-1]
            continue
        *whole, rest = (rest + piece).split(b"\n")
        yield from whole


def sum_up(lines: Iterable[bytes], keys: int) -> Sums:
    """Return the sums of a side whose first `keys` fields are the key; 0: all of them are."""
    rows, sums = [0] * RANGES, [0] * RANGES
    for line in lines:
        place = crc32(_key(line, keys)) % RANGES
        rows[place] += 1
        sums[place] = (sums[place] + _hash(line)) & _SUM
    return Sums(rows, sums)


def _key(line: bytes, keys: int) -> bytes:
    if keys == 1:
        return line.partition(b"\t")[0]
    return b"\t".join(line.split(b"\t", keys)[:keys]) if keys else line


def _hash(line: bytes) -> int:
    return int.from_bytes(blake2b(line, digest_size=8).digest(), "big")


def differing(ours: Sums, theirs: Sums) -> frozenset[int]:
    """Return the ranges in which the sides have not the same rows."""
    return frozenset(
        place
        for place in range(RANGES)
        if (ours.rows[place], ours.sums[place]) != (theirs.rows[place], theirs.sums[place])
    )


class Difference(NamedTuple):
    """A row that is not the same on both sides. `key` as COPY writes it."""

    key: str
    words: str


def find_differences(
    source: Iterable[bytes], target: Iterable[bytes], keys: int, ranges: frozenset[int]
) -> Sequence[Difference]:
    """Return at most NAMED_MAX rows that differ, of those ranges; () where they can't be told
    apart."""
    if not keys:
        return ()
    theirs: dict[bytes, int] = {}
    for line in source:
        key = _key(line, keys)
        if crc32(key) % RANGES in ranges:
            if len(theirs) >= KEPT_MAX:
                return ()
            theirs[key] = _hash(line)
    found: list[Difference] = []
    for line in target:
        key = _key(line, keys)
        if crc32(key) % RANGES not in ranges:
            continue
        expected = theirs.pop(key, None)
        if expected is None:
            found.append(_difference(key, "in the target alone"))
        elif expected != _hash(line):
            found.append(_difference(key, "another one in the target"))
    found += [_difference(key, "in the source alone") for key in theirs]
    return found[:NAMED_MAX]


def _difference(key: bytes, words: str) -> Difference:
    return Difference(key.decode(errors="replace").replace("\t", ", "), words)
