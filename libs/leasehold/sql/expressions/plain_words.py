"""Words of PostgreSQL in an expression that is to be kept, said in words that every release reads:
num_nonnulls(a, b) as a sum, CURRENT_TIMESTAMP(3) as a cast, and what `array_lists` has."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from leasehold.sql.expressions.array_lists import with_plain_arrays
from leasehold.sql.syntax.kept import words_of
from leasehold.sql.syntax.present_times import PRECISION_MAX, PRESENT_TIMES
from leasehold.sql.syntax.scanning import Token

_COUNTS: Final = {"num_nonnulls": "IS NOT NULL", "num_nulls": "IS NULL"}
_SAID: Final = (*_COUNTS, *PRESENT_TIMES)


def with_plain_words(text: str) -> str:
    """Return an expression in plain words. Raises what the scanner refuses."""
    text = with_plain_arrays(text)
    folded = text.lower()
    if not any(word in folded for word in _SAID):
        return text
    return _Saying(text).said()


class _Saying:
    """A writer of an expression in plain words, in one pass over its own."""

    def __init__(self, text: str) -> None:
        self._tokens: Sequence[Token] = words_of(text)
        self._encoded = text.encode()
        self._parts: list[bytes] = []
        self._at = 0  # up to where the text is said
        self._depth = 0
        self._counts: list[tuple[int, str]] = []  # how deep each one stands, and its test

    def said(self) -> str:
        index = 0
        while index < len(self._tokens):
            index += self._put(index)
        return b"".join((*self._parts, self._encoded[self._at :])).decode()

    def _put(self, index: int) -> int:
        """Say what stands at a token, and return how many tokens that are."""
        word, (depth, test) = self._word(index), self._counts[-1] if self._counts else (-1, "")
        if word in PRESENT_TIMES and self._is_called(index) and self._word(index + 3) == ")":
            digits = self._word(index + 2)
            if digits.isdecimal():
                said = f"{word}::{PRESENT_TIMES[word]}({min(int(digits), PRECISION_MAX)})"
                return self._replace(index, index + 4, said)
        if word in _COUNTS and self._is_called(index) and self._word(index + 2) != ")":
            self._depth += 1
            self._counts.append((self._depth, _COUNTS[word]))
            return self._replace(index, index + 2, "(((")
        self._depth += word in ("(", "[")
        if word == "," and depth == self._depth:
            return self._replace(index, index + 1, f") {test})::integer + ((")
        if word == ")" and depth == self._depth:
            self._counts.pop()
            self._depth -= 1
            return self._replace(index, index + 1, f") {test})::integer)")
        self._depth -= word in (")", "]")
        return 1

    def _word(self, index: int) -> str:
        if not 0 <= index < len(self._tokens) or self._tokens[index].quoted:
            return ""
        return self._tokens[index].word

    def _is_called(self, index: int) -> bool:
        return self._word(index + 1) == "(" and self._word(index - 1) != "."

    def _replace(self, first: int, end: int, said: str) -> int:
        self._parts += (self._encoded[self._at : self._tokens[first].begin], said.encode())
        self._at = self._tokens[end - 1].end
        return end - first
