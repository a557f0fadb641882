"""A text of SQL, and where the bytes that PostgreSQL's parser counts stand in it."""

from __future__ import annotations

from bisect import bisect_right
from typing import Final

from leasehold.model.errors import OutOfRange, SyntaxInvalid

TEXT_BYTES_MAX: Final = 1 << 20


class Source:
    """Positions that are said to people count characters from 1, as PostgreSQL's do; a location is
    a byte of the tree, from 0."""

    def __init__(self, text: str, bytes_max: int = TEXT_BYTES_MAX, before: str = "") -> None:
        """Take a text; `before` is ASCII that is parsed in front of it, and that nobody is told of.
        Raises OutOfRange above `bytes_max`, SyntaxInvalid for what is no text."""
        encoded = text.encode(errors="replace")
        if len(encoded) > bytes_max:
            raise OutOfRange(f"the text has {len(encoded)} bytes; at most {bytes_max} are read")
        self._is_ascii = text.isascii()
        if not self._is_ascii or "\0" in text:
            _refuse_no_text(text)
        self.text = before + text
        self.encoded = before.encode() + encoded
        self._before = len(before)
        self._ends: list[int] | None = None
        self._more: list[int] = []

    def written(self, begin: int, end: int) -> str:
        """What stands between two bytes."""
        if self._is_ascii:
            return self.text[begin:end]
        return self.encoded[begin:end].decode()

    def position(self, location: int) -> int:
        """Characters from 1; of a place that the tree does not know (-1), the first."""
        return self.of_character(self.character(location) + 1)

    def of_character(self, position: int) -> int:
        """A position that PostgreSQL says, which counts what stands before the text, too."""
        return max(position - self._before, 1)

    def character(self, location: int) -> int:
        """Characters from 0, with what stands before the text."""
        location = max(location, 0)
        if self._is_ascii:
            return location
        if self._ends is None:
            self._ends = self._wide()
        found = bisect_right(self._ends, location)
        return location - (self._more[found - 1] if found else 0)

    def _wide(self) -> list[int]:
        """Return behind which bytes characters of more than one end; `_more` sums up what these
        add."""
        ends: list[int] = []
        offset = more = 0
        for character in self.text:
            size = 1 if character < "\x80" else len(character.encode())
            offset += size
            if size > 1:
                more += size - 1
                ends.append(offset)
                self._more.append(more)
        return ends


def _refuse_no_text(text: str) -> None:
    for offset, character in enumerate(text, start=1):
        if character == "\0" or "\ud800" <= character <= "\udfff":
            raise SyntaxInvalid("the text holds a character that is no text", position=offset)
