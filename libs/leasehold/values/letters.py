"""What is a letter, and its other case: by one version of Unicode, whatever Python's own is.

Indexes, generated columns and checks over these are computed on every node, and nodes may run
different Pythons beside each other (DESIGN.md of sql, *The catalogue*). In `values` and
`sql/functions` no text is asked for its `lower()`, `isalnum()` or the like; this file answers.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator
from functools import cache
from itertools import chain
from typing import Final

from leasehold.model.budget import charge
from leasehold.values.unicode_tables import LETTERS_AND_DIGITS, LOWER, UPPER

BLANKS: Final = " \t\n\r\v\f"
"""What PostgreSQL passes over around a value."""
_PIECE: Final = 16_384
"""Of a long text at once, about a millisecond: no other thread runs meanwhile."""

_CHARACTER_WORK: Final = 5


def upper(text: str) -> str:
    """Return the text in capitals, letter by letter, as PostgreSQL's usual locales have it: one
    that has no capital of a single letter stays, as ß does."""
    if text.isascii():
        return text.upper()
    return _changed(text, _other_case(UPPER))


def lower(text: str) -> str:
    """Return the text in small letters, as `upper` does: of İ an i stays, Σ is σ wherever it
    stands."""
    if text.isascii():
        return text.lower()
    return _changed(text, _other_case(LOWER))


def ascii_lower(text: str) -> str:
    """Return the text with A to Z alone in small letters: for words of a grammar, none of which has
    another letter."""
    if text.isascii():
        return text.lower()
    return text.encode(errors="surrogatepass").lower().decode(errors="surrogatepass")


def ascii_upper(text: str) -> str:
    """Return the text with a to z alone in capitals, as `ascii_lower`."""
    if text.isascii():
        return text.upper()
    return text.encode(errors="surrogatepass").upper().decode(errors="surrogatepass")


def is_letter_or_digit(character: str) -> bool:
    code = ord(character)
    firsts, lasts = _letters_and_digits()
    position = bisect_right(firsts, code) - 1
    return position >= 0 and code <= lasts[position]


def is_digits(text: str) -> bool:
    """Whether a text is 0 to 9 alone, and at least one of them."""
    return text.isascii() and text.isdecimal()


def _changed(text: str, other: dict[str, str]) -> str:
    if len(text) <= _PIECE:
        return "".join(map(other.get, text, text))
    made: list[str] = []
    for at in range(0, len(text), _PIECE):
        charge(_PIECE * _CHARACTER_WORK)
        piece = text[at : at + _PIECE]
        made.append("".join(map(other.get, piece, piece)))
    return "".join(made)


def _runs(table: str) -> Iterator[tuple[range, int]]:
    for word in table.split():
        reach, _, distance = word.partition(":")
        reach, _, step = reach.partition("/")
        first, _, last = reach.partition("-")
        end = int(last or first, 16) + 1
        yield range(int(first, 16), end, int(step or "1")), int(distance or "0", 16)


@cache
def _other_case(table: str) -> dict[str, str]:
    return {chr(code): chr(code + distance) for run, distance in _runs(table) for code in run}


@cache
def _letters_and_digits() -> tuple[list[int], list[int]]:
    """Return the first and last ones of what is side by side."""
    found = list(chain.from_iterable(_parts(run) for run, _ in _runs(LETTERS_AND_DIGITS)))
    return [first for first, _ in found], [last for _, last in found]


def _parts(run: range) -> list[tuple[int, int]]:
    return [(run[0], run[-1])] if run.step == 1 else [(code, code) for code in run]
