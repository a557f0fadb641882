"""The tests of LIKE and ILIKE, without going back and forth: each piece between two % is looked for
once."""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from typing import Final

from leasehold.model.budget import charge_each
from leasehold.model.errors import InvalidEscapeSequence, TooComplex
from leasehold.sql.functions.function import BOOLEAN, TEXT, Function
from leasehold.sql.functions.texts.like_search import Piece, find, piece_of, stands_at
from leasehold.values.letters import lower
from leasehold.values.types import TEXT_BYTES_MAX

_KEPT_MAX: Final = 1_024
_KEPT_CHARACTERS_MAX: Final = 1_000
"""A longer pattern is reread each time: many long ones would be kept for nobody."""
_READ_WORK: Final = 15
_PIECE_WORK: Final = 60
_MADE_WORK: Final = 200


Test = Callable[[str], bool]


def _check_pattern(pattern: str) -> None:
    """Raises TooComplex for a longer one than a row may have."""
    if len(pattern) > TEXT_BYTES_MAX:
        raise TooComplex(f"a pattern of LIKE has at most {TEXT_BYTES_MAX} characters")


def _read(pattern: str) -> Test:
    """What a pattern asks of a text. Raises InvalidEscapeSequence, TooComplex."""
    _check_pattern(pattern)
    pieces: list[list[str | None]] = [[]]
    characters = iter(charge_each(pattern, _READ_WORK))
    for character in characters:
        if character == "%":
            pieces.append([])
        elif character == "_":
            pieces[-1].append(None)
        elif character == "\\":
            literal = next(characters, None)
            if literal is None:
                raise InvalidEscapeSequence("LIKE pattern must not end with escape character")
            pieces[-1].append(literal)
        else:
            pieces[-1].append(character)
    first, last = piece_of(pieces[0]), piece_of(pieces[-1])
    found = [piece for piece in pieces[1:-1] if piece]
    middle = tuple([piece_of(piece) for piece in charge_each(found, _MADE_WORK)])
    if len(pieces) == 1:
        return lambda text: len(text) == first.width and stands_at(first, text, 0)
    if not first.width and not last.width and len(middle) == 1 and len(middle[0].literals) == 1:
        (only,) = middle
        if only.width == len(only.literals[0][1]):  # %word%
            word = only.literals[0][1]
            return lambda text: word in text
    return _test_of_pieces(first, middle, last)


def _test_of_pieces(first: Piece, middle: tuple[Piece, ...], last: Piece) -> Test:
    """Return the test of a pattern with a % between each two pieces; `middle` are looked for one
    behind the other."""

    def fits(text: str) -> bool:
        end = len(text) - last.width
        if end < first.width or not stands_at(first, text, 0):
            return False
        offset = first.width
        for piece in charge_each(middle, _PIECE_WORK):
            found = find(piece, text, offset, end)
            if found < 0:
                return False
            offset = found + piece.width
        return stands_at(last, text, end)

    return fits


_kept = lru_cache(maxsize=_KEPT_MAX)(_read)


def is_like(text: str, pattern: str) -> int:
    """Raises InvalidEscapeSequence (22025) for a pattern that ends in its escape character,
    TooComplex (54001) where comparing would take too long."""
    test = (_kept if len(pattern) <= _KEPT_CHARACTERS_MAX else _read)(pattern)
    return int(test(text))


def is_ilike(text: str, pattern: str) -> int:
    return is_like(lower(text), lower(pattern))


def like_escape(pattern: str, escape: str) -> str:
    """The same pattern with a backslash for its escape character; "" is none."""
    if len(escape) > 1:
        raise InvalidEscapeSequence("invalid escape string: it must be empty or one character")
    if escape == "\\":
        return pattern
    _check_pattern(pattern)
    made: list[str] = []
    escaped = False
    for character in charge_each(pattern, _READ_WORK):
        if character == escape and not escaped:
            escaped = True
            continue
        if escaped or character == "\\":
            made.append("\\")
        made.append(character)
        escaped = False
    if escaped:
        made.append("\\")
    return "".join(made)


def negated(test: Callable[[str, str], int]) -> Callable[[str, str], int]:
    return lambda text, pattern: 1 - test(text, pattern)


FUNCTIONS: Final[tuple[Function, ...]] = (
    Function("like", (TEXT, TEXT), BOOLEAN, is_like),
    Function("notlike", (TEXT, TEXT), BOOLEAN, negated(is_like)),
    Function("like_escape", (TEXT, TEXT), TEXT, like_escape),
)
OPERATORS: Final[tuple[Function, ...]] = (
    Function("~~", (TEXT, TEXT), BOOLEAN, is_like),
    Function("!~~", (TEXT, TEXT), BOOLEAN, negated(is_like)),
    Function("~~*", (TEXT, TEXT), BOOLEAN, is_ilike),
    Function("!~~*", (TEXT, TEXT), BOOLEAN, negated(is_ilike)),
)
"""What LIKE, NOT LIKE, ILIKE and NOT ILIKE stand for; with ESCAPE the pattern goes through
`like_escape` first."""
