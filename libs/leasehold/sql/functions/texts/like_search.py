"""The search for a piece of a LIKE pattern in a text, in time that does not grow with their
product.

A piece is what stands between two %: literal characters and _ for any one. Without _ in between
`str.find` finds it. Else each place of its longest literal is tried, as long as that takes few
steps; on texts where it would not, all places are followed at once, a bit for each.
"""

from __future__ import annotations

from typing import Final, NamedTuple

from leasehold.model.budget import charge
from leasehold.model.errors import TooComplex

_WORK_PER_CHARACTER: Final = 4
"""Comparisons for each character passed over, before places are followed by bits: that many are
about as dear as the bits are."""
_CHARACTERS_AT_ONCE: Final = 16
"""What is compared, or looked for, in the time of one comparison's call."""
_TRIED_AT_ONCE: Final = 256
_TRY_WORK: Final = 60
_SEEN_WORK: Final = 6
_BITS_PER_WORK: Final = 128
"""Of a number that is shifted and laid over another one."""
_WINDOW_LEAST: Final = 4_096
"""Places that are followed at once, or as many as the piece is wide: the bits of more would be
made for nothing where it stands near the begin."""
BIT_WORDS_MAX: Final = 2_000_000_000
"""Words of 64 bits that following by bits may take in one search: a second or two, with others
taking turns. 262,144 characters and as wide a piece as fits them take a quarter of it."""


class Piece(NamedTuple):
    """A piece of a pattern. `literals` are those between the _, each with its place in the piece;
    `anchor` is the number of the longest one."""

    width: int
    literals: tuple[tuple[int, str], ...]
    anchor: int


def piece_of(characters: list[str | None]) -> Piece:
    """Return the piece of these characters, of which None is any one."""
    literals: list[tuple[int, str]] = []
    begin = 0
    for offset, character in enumerate([*characters, None]):
        if character is None:
            if offset > begin:
                literals.append((begin, "".join(map(str, characters[begin:offset]))))
            begin = offset + 1
    anchor = max(range(len(literals)), key=lambda n: len(literals[n][1]), default=0)
    return Piece(len(characters), tuple(literals), anchor)


def stands_at(piece: Piece, text: str, offset: int) -> bool:
    """Return whether the piece stands at `offset` of a text that has room for it."""
    return _characters_compared(piece, text, offset) is None


def find(piece: Piece, text: str, offset: int, end: int) -> int:
    """The first place from `offset` on where it stands before `end`; -1: nowhere. Raises TooComplex
    where that would take too long."""
    last = end - piece.width
    if offset > last:
        return -1
    if not piece.literals:
        return offset
    behind, literal = piece.literals[piece.anchor]
    if len(piece.literals) == 1:
        found = text.find(literal, offset + behind, last + behind + len(literal))
        return found - behind if found >= 0 else -1
    begin, work, tried = offset, 0, 0
    while work <= _WORK_PER_CHARACTER * (offset - begin + piece.width):
        found = text.find(literal, offset + behind, last + behind + len(literal))
        if found < 0:
            return -1
        offset = found - behind
        compared = _characters_compared(piece, text, offset)
        if compared is None:
            return offset
        tried += 1
        if not tried % _TRIED_AT_ONCE:
            charge(_TRIED_AT_ONCE * _TRY_WORK)
        work += 1 + (len(literal) + compared) // _CHARACTERS_AT_ONCE
        offset += 1
    return _find_by_bits(piece, text, offset, last)


def _characters_compared(piece: Piece, text: str, offset: int) -> int | None:
    """Return how many characters of the literals are compared up to the first literal that does not
    fit, None where all of them fit."""
    compared = 0
    for behind, literal in piece.literals:
        compared += _CHARACTERS_AT_ONCE + len(literal)
        if not text.startswith(literal, offset + behind):
            return compared
    return None


# ------------------------------------------------------------------ all places at once


def _find_by_bits(piece: Piece, text: str, offset: int, last: int) -> int:
    """The same, of places up to `last`."""
    needed = sum(len(literal) for _, literal in piece.literals)
    if needed * (last - offset + piece.width) > 64 * BIT_WORDS_MAX:
        raise TooComplex(
            f"LIKE would compare {needed} characters beside _ at {last - offset} places"
        )
    behind = _positions_by_character(piece)
    window = max(_WINDOW_LEAST, piece.width)
    while offset <= last:
        found = _first_in_window(behind, piece.width, text, offset, min(window, last - offset + 1))
        if found >= 0:
            return offset + found
        offset += window
    return -1


def _positions_by_character(piece: Piece) -> dict[str, list[int]]:
    made: dict[str, list[int]] = {}
    for behind, literal in piece.literals:
        for offset, character in enumerate(literal, behind):
            made.setdefault(character, []).append(offset)
    return made


def _first_in_window(
    behind: dict[str, list[int]], width: int, text: str, offset: int, places: int
) -> int:
    """Bit n of `fitting` is whether the piece may stand at `offset` + n."""
    charge((places + width) * _SEEN_WORK)
    seen = text[offset : offset + places + width - 1]
    positions: dict[str, list[int]] = {character: [] for character in behind}
    for at, character in enumerate(seen):
        listed = positions.get(character)
        if listed is not None:
            listed.append(at)
    fitting = (1 << places) - 1
    for character in sorted(behind, key=lambda c: len(positions[c])):
        bits = _bits_of(positions[character], len(seen))
        for distance in behind[character]:
            charge(1 + len(seen) // _BITS_PER_WORK)
            fitting &= bits >> distance
        if not fitting:
            return -1
    return (fitting & -fitting).bit_length() - 1


def _bits_of(places: list[int], size: int) -> int:
    made = bytearray((size >> 3) + 1)
    for offset in places:
        made[offset >> 3] |= 1 << (offset & 7)
    return int.from_bytes(made, "little")
