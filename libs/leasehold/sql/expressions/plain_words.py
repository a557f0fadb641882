"""Words of PostgreSQL in an expression that is to be kept, said in words that every release reads:
num_nonnulls(a, b) as a sum, CURRENT_TIMESTAMP(3) as a cast, 'ab'::bpchar as 'ab'::character(2),
and what `array_lists` has."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from leasehold.model.errors import FeatureNotSupported
from leasehold.sql.expressions.array_lists import with_plain_arrays
from leasehold.sql.syntax import tree
from leasehold.sql.syntax.kept import expression_of, words_of
from leasehold.sql.syntax.present_times import PRECISION_MAX, PRESENT_TIMES
from leasehold.sql.syntax.scanning import Token

_COUNTS: Final = {"num_nonnulls": "IS NOT NULL", "num_nulls": "IS NULL"}
_BLANK_PADDED: Final = "bpchar"
_SAID: Final = (*_COUNTS, *PRESENT_TIMES, _BLANK_PADDED)


def with_plain_words(text: str) -> str:
    """Return an expression in plain words. Raises what the scanner refuses, and FeatureNotSupported
    for a cast to bpchar of what is no constant."""
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
        if word == _BLANK_PADDED and self._word(index + 1) != "(" and self._is_type(index):
            return self._replace(index, index + 1, f"character({self._length_before(index - 1)})")
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

    def _is_type(self, index: int) -> bool:
        of_catalog = (self._word(index - 2), self._word(index - 1)) == ("pg_catalog", ".")
        return of_catalog or self._word(index - 1) in ("::", "as")

    def _length_before(self, index: int) -> int:
        """Return how long a constant is, in parentheses or not, that is cast by the sign there.

        ⚠ Without a length bpchar takes all of it, while earlier releases read it as one character.
        """
        at = index - 1
        if self._word(index) == "::" and self._word(at) == ")":
            at -= 1
            cast = self._word(at) == _BLANK_PADDED and self._word(at - 1) == "::"
            begin = at - 3 if cast else at - 1
            if self._word(begin) != "(" or self._is_name(begin - 1):
                at = -1
            elif cast:
                return self._length_before(at - 1)
        node = None
        if self._word(index) == "::" and at >= 0 and self._tokens[at].word.endswith("'"):
            node = expression_of(self._tokens[at].word)
        if not isinstance(node, tree.Constant):
            raise FeatureNotSupported(
                "a cast to bpchar without a length is supported of constants alone in what a table"
                " keeps, written with ::",
                hint="Say CAST(... AS character(n)).",
            )
        return max(len(node.text.rstrip(" ")), 1)

    def _is_name(self, index: int) -> bool:
        return index >= 0 and (self._tokens[index].quoted or self._tokens[index].is_name)

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
