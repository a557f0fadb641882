"""LIKE and ILIKE, without going back and forth: each piece between two % is looked for once."""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import lru_cache
from typing import Final, NamedTuple

from leasehold.model.errors import InvalidEscapeSequence
from leasehold.sql.function import BOOLEAN, TEXT, Function

_KEPT_MAX: Final = 1_024


class _Pieces(NamedTuple):
    """Of a pattern: what stands before the first %, between them, and behind the last; each of a
    fixed number of characters, None for any one. `whole`: there is no % at all."""

    first: re.Pattern[str]
    first_width: int
    middle: tuple[re.Pattern[str], ...]
    last: re.Pattern[str]
    last_width: int
    whole: bool


@lru_cache(maxsize=_KEPT_MAX)
def _pieces(pattern: str) -> _Pieces:
    pieces: list[list[str]] = [[]]
    characters = iter(pattern)
    for character in characters:
        if character == "%":
            pieces.append([])
        elif character == "_":
            pieces[-1].append(".")
        elif character == "\\":
            literal = next(characters, None)
            if literal is None:
                raise InvalidEscapeSequence("LIKE pattern must not end with escape character")
            pieces[-1].append(re.escape(literal))
        else:
            pieces[-1].append(re.escape(character))
    compiled = [re.compile("".join(piece), re.DOTALL) for piece in pieces]
    middle = tuple(c for c, piece in zip(compiled[1:-1], pieces[1:-1], strict=True) if piece)
    whole = len(pieces) == 1
    return _Pieces(compiled[0], len(pieces[0]), middle, compiled[-1], len(pieces[-1]), whole)


def is_like(text: str, pattern: str) -> int:
    """Raises InvalidEscapeSequence (22025) for a pattern that ends in its escape character."""
    pieces = _pieces(pattern)
    if pieces.whole:
        return int(pieces.first.fullmatch(text) is not None)
    end = len(text) - pieces.last_width
    if end < pieces.first_width or not pieces.first.match(text):
        return 0
    place = pieces.first_width
    for piece in pieces.middle:
        found = piece.search(text, place, end)
        if found is None:
            return 0
        place = found.end()
    return int(pieces.last.match(text, end) is not None)


def is_ilike(text: str, pattern: str) -> int:
    return is_like(text.lower(), pattern.lower())


def like_escape(pattern: str, escape: str) -> str:
    """The same pattern with a backslash for its escape character; "" is none."""
    if len(escape) > 1:
        raise InvalidEscapeSequence("invalid escape string: it must be empty or one character")
    if escape == "\\":
        return pattern
    made: list[str] = []
    escaped = False
    for character in pattern:
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


def _not(test: Callable[[str, str], int]) -> Callable[[str, str], int]:
    return lambda text, pattern: 1 - test(text, pattern)


FUNCTIONS: Final[tuple[Function, ...]] = (
    Function("like", (TEXT, TEXT), BOOLEAN, is_like),
    Function("notlike", (TEXT, TEXT), BOOLEAN, _not(is_like)),
    Function("like_escape", (TEXT, TEXT), TEXT, like_escape),
)
OPERATORS: Final[tuple[Function, ...]] = (
    Function("~~", (TEXT, TEXT), BOOLEAN, is_like),
    Function("!~~", (TEXT, TEXT), BOOLEAN, _not(is_like)),
    Function("~~*", (TEXT, TEXT), BOOLEAN, is_ilike),
    Function("!~~*", (TEXT, TEXT), BOOLEAN, _not(is_ilike)),
)
"""What LIKE, NOT LIKE, ILIKE and NOT ILIKE stand for; with ESCAPE the pattern goes through
`like_escape` first."""
