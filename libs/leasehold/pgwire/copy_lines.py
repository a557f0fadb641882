r"""Bytes of COPY → lines of fields, as PostgreSQL reads its text and CSV formats.

Text: one row a line, `\N` NULL, backslash escapes, `\.` alone ends. CSV: quotes may hold line ends;
what is quoted is never NULL. A line may end in \n, \r or \r\n; the first one decides for all.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from typing import Final

from leasehold.pgwire.copy_format import CopyFormat
from leasehold.pgwire.frontend import as_text
from leasehold.pgwire.wire_errors import InvalidCopyText

Fields = list[str | None]
Split = Callable[[bytes], Fields]

_ESCAPES: Final = {b"b": b"\b", b"f": b"\f", b"n": b"\n", b"r": b"\r", b"t": b"\t", b"v": b"\v"}
_ESCAPE: Final = re.compile(rb"\\(x[0-9a-fA-F]{1,2}|[0-7]{1,3}|.)", re.DOTALL)
_LINE_ENDS: Final = (b"\r\n", b"\n", b"\r")


class CopyLines:
    """Gathers bytes and gives whole lines. `ended`: `\\.` was met; what follows is dropped."""

    def __init__(self, how: CopyFormat, line_bytes_max: int) -> None:
        self._how = how
        self._most = line_bytes_max
        self._data = bytearray()
        self._line_end: bytes | None = None
        self._header = how.header and not how.header_matches  # which its reader looks at
        self._quote = how.quote.encode()
        self._escape = how.escape.encode()
        self._split = _csv_splitter(how) if how.csv else _text_splitter(how)
        self.number = 0
        """Of the line that was given last, from 1."""
        self.ended = False

    def feed(self, data: bytes) -> Iterator[Fields]:
        """Fields of every line that is whole by now. Raises InvalidCopyText, InvalidBytes."""
        if not self.ended:
            self._data += data
            yield from self._whole(last=False)

    def finish(self) -> Iterator[Fields]:
        """The same for a last line that has no end."""
        yield from self._whole(last=True)

    def _whole(self, *, last: bool) -> Iterator[Fields]:
        start = 0
        data = bytes(self._data)
        while not self.ended:
            end = self._end_of_line(data, start, last=last)
            if end is None:
                break
            line = data[start:end]
            start = end + len(self._line_end or b"")
            self.number += 1 + line.count(self._line_end or b"\n")
            if line == b"\\.":
                self.ended = True
            elif self._header:
                self._header = False
            else:
                yield self._split(line)
        self._data = bytearray() if self.ended else bytearray(data[start:])
        if len(self._data) > self._most:
            raise InvalidCopyText(f"a line of COPY is longer than {self._most} bytes")

    def _end_of_line(self, data: bytes, start: int, *, last: bool) -> int | None:
        if start >= len(data):
            return None
        at = start
        while True:
            end = self._next_line_end(data, at, last=last)
            if end is None:
                if not last:
                    return None
                self._whole_quotes(data[start:])
                return len(data)
            if not self._how.csv:
                if _is_escaped(data, start, end):
                    at = end + 1
                    continue
                return end
            if self._inside_quotes(data[start:end]):
                at = end + 1
                continue
            return end

    def _next_line_end(self, data: bytes, at: int, *, last: bool) -> int | None:
        if self._line_end is None:
            found = re.compile(rb"\r\n|\n|\r").search(data, at)
            if found is None or (found[0] == b"\r" and found.end() == len(data) and not last):
                return None
            if not self._how.csv or not self._inside_quotes(data[: found.start()]):
                self._line_end = found[0]
            return found.start()
        end = data.find(self._line_end, at)
        return None if end < 0 else end

    def _inside_quotes(self, line: bytes) -> bool:
        quote, escape = self._quote, self._escape
        if escape == quote:
            return line.count(quote) % 2 == 1
        inside, at = False, 0
        while at < len(line):
            byte = line[at : at + 1]
            if inside and byte == escape and line[at + 1 : at + 2] in (quote, escape):
                at += 1
            elif byte == quote:
                inside = not inside
            at += 1
        return inside

    def _whole_quotes(self, line: bytes) -> None:
        if self._how.csv and self._inside_quotes(line):
            self.number += 1
            raise InvalidCopyText("unterminated CSV quoted field")


def _is_escaped(data: bytes, start: int, end: int) -> bool:
    """Does a backslash that is none itself stand before `end`?"""
    at = end
    while at > start and data[at - 1] == 0x5C:
        at -= 1
    return (end - at) % 2 == 1


def _text_splitter(how: CopyFormat) -> Split:
    delimiter = how.delimiter.encode()
    null = (how.null or "").encode()
    # A delimiter behind a backslash is part of a field.
    field = re.compile(rb"((?:[^\\" + re.escape(delimiter) + rb"]|\\.)*)", re.DOTALL)

    def split(line: bytes) -> Fields:
        if b"\\" not in line:
            parts = line.split(delimiter)
            return [None if part == null else as_text(part) for part in parts]
        made: Fields = []
        at = 0
        while True:
            found = field.match(line, at)
            assert found is not None
            raw, at = found[1], found.end()
            if at < len(line) and line[at : at + 1] == b"\\":  # a backslash at the very end
                raw, at = raw + b"\\", at + 1
            made.append(None if raw == null else as_text(_ESCAPE.sub(_unescaped, raw)))
            if at >= len(line):
                return made
            at += 1

    return split


def _unescaped(found: re.Match[bytes]) -> bytes:
    word = found[1]
    if word[:1] == b"x" and len(word) > 1:
        return bytes((int(word[1:], 16),))
    if word[:1].isdigit() and word[:1] < b"8":
        return bytes((int(word, 8) & 0xFF,))
    return _ESCAPES.get(word, word)


def _csv_splitter(how: CopyFormat) -> Split:
    delimiter, quote, escape = how.delimiter, how.quote, how.escape
    null = how.null

    def split(line: bytes) -> Fields:
        text = as_text(line)
        if quote not in text:
            return [None if part == null else part for part in text.split(delimiter)]
        made: Fields = []
        at, end = 0, len(text)
        part: list[str] = []
        quoted = inside = False
        while at < end:
            character = text[at]
            if inside:
                if (
                    character == escape
                    and text[at + 1 : at + 2] in (quote, escape)
                    and (at + 1 < end)
                ):
                    part.append(text[at + 1])
                    at += 1
                elif character == quote:
                    inside = False
                else:
                    part.append(character)
            elif character == delimiter:
                made.append(_csv_field(part, quoted, null))
                part, quoted = [], False
            elif character == quote:
                inside = quoted = True
            else:
                part.append(character)
            at += 1
        made.append(_csv_field(part, quoted, null))
        return made

    return split


def _csv_field(part: list[str], quoted: bool, null: str | None) -> str | None:
    text = "".join(part)
    return None if not quoted and text == null else text
