r"""Bytes of COPY → lines of fields, as PostgreSQL reads its text and CSV formats.

Text: one row a line, `\N` NULL, backslash escapes, `\.` alone ends. CSV: quotes may hold line ends;
what is quoted is never NULL. A line may end in \n, \r or \r\n; the first one decides for all.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from typing import Final

from leasehold.pgwire.copy.format import CopyFormat
from leasehold.pgwire.messages.frontend import as_text
from leasehold.pgwire.wire_errors import InvalidCopyText

Fields = list[str | None]
Split = Callable[[bytes], Fields]

_ESCAPES: Final = {b"b": b"\b", b"f": b"\f", b"n": b"\n", b"r": b"\r", b"t": b"\t", b"v": b"\v"}
_ESCAPE: Final = re.compile(rb"\\(x[0-9a-fA-F]{1,2}|[0-7]{1,3}|.)", re.DOTALL)
_LINE_END: Final = re.compile(rb"[\r\n]")


def text_splitter() -> Split:
    """Return what cuts a line of COPY's text form, without its end, into fields. It raises
    InvalidBytes."""
    return _text_splitter(CopyFormat())


class CopyLines:
    """Gathers bytes and gives whole lines. `ended`: `\\.` was met; what follows is dropped."""

    def __init__(self, how: CopyFormat, line_bytes_max: int) -> None:
        self._how = how
        self._most = line_bytes_max
        # What came in one piece is cut as it is; only a line that comes in several is gathered.
        self._data: bytes | bytearray = b""
        self._line_end: bytes | None = None
        self._header = how.header and not how.header_matches  # which its reader looks at
        self._quote = how.quote.encode()
        self._escape = how.escape.encode()
        self._split = _csv_splitter(how) if how.csv else _text_splitter(how)
        # Of the line that is not whole yet: no byte is looked at twice, in however many pieces.
        self._start = 0
        self._sought = 0  # up to here there is no end of it
        self._counted = 0  # up to here its quotes are known:
        self._inside = False
        self.number = 0
        """Of the line that was given last or is refused, from 1."""
        self.line: bytes | None = None
        """That line without its end, as it came; None of one that is too long."""
        self.ended = False

    def feed(self, data: bytes) -> Iterator[Fields]:
        """Fields of every line that is whole by now. Raises InvalidCopyText, InvalidBytes."""
        if not self.ended:
            if not self._data:
                self._data = data
            elif isinstance(self._data, bytearray):
                self._data += data
            else:
                self._data = bytearray(self._data) + data
            yield from self._whole(last=False)

    def finish(self) -> Iterator[Fields]:
        """The same for a last line that has no end."""
        yield from self._whole(last=True)

    def _whole(self, *, last: bool) -> Iterator[Fields]:
        data = self._data
        while not self.ended:
            end = self._end_of_line(data, last=last)
            if end is None:
                break
            line = bytes(data[self._start : end])
            self._check_length(len(line))
            self.line = line
            self._begin_line(end + len(self._line_end or b""))
            self.number += 1 + line.count(self._line_end or b"\n")
            if line == b"\\.":
                self.ended = True
            elif self._header:
                self._header = False
            else:
                yield self._split(line)
        self._keep_rest()

    def _begin_line(self, start: int) -> None:
        self._start = self._sought = self._counted = start
        self._inside = False

    def _keep_rest(self) -> None:
        self._check_length(len(self._data) - self._start)
        if self.ended or self._start >= len(self._data):
            self._data = b""
            self._begin_line(0)
        elif self._start:
            self._data = bytearray(self._data[self._start :])
            self._sought -= self._start
            self._counted -= self._start
            self._start = 0

    def _check_length(self, size: int) -> None:
        """Raise InvalidCopyText for a line that is too long. ⚠ Whole lines are checked, too: else
        it would matter how the bytes are cut."""
        if size > self._most and not self.ended:
            self.number, self.line = self.number + 1, None
            raise InvalidCopyText(f"a line of COPY is longer than {self._most} bytes")

    def _end_of_line(self, data: bytes | bytearray, *, last: bool) -> int | None:
        if self._start >= len(data):
            return None
        while True:
            end = self._next_line_end(data, last=last)
            if end < 0:
                if not last:
                    return None
                self._whole_quotes()
                return len(data)
            if self._how.csv:
                self._count_quotes(data, end)
                goes_on = self._inside
            else:
                goes_on = data[end - 1] == 0x5C and _is_escaped(data, self._start, end)
            if not goes_on:
                return end
            self._sought = end + 1

    def _next_line_end(self, data: bytes | bytearray, *, last: bool) -> int:
        """Return where the next line ends, or -1 if that is not known yet."""
        if self._line_end is not None:
            end = data.find(self._line_end, self._sought)
            if end < 0:  # the first half of one may be there
                self._sought = max(len(data) + 1 - len(self._line_end), self._sought)
            return end
        found = _LINE_END.search(data, self._sought)
        if found is None:
            self._sought = len(data)
            return -1
        end = self._sought = found.start()
        if data[end] == 0x0D and end + 1 == len(data) and not last:
            return -1  # what follows decides
        if self._how.csv:
            self._count_quotes(data, end)
        if not self._inside:
            self._line_end = b"\r\n" if data[end : end + 2] == b"\r\n" else bytes(found[0])
        return end

    def _count_quotes(self, data: bytes | bytearray, end: int) -> None:
        """Count the quotes up to `end`, where a line may end, and note whether a field is open
        there."""
        quote, escape = self._quote, self._escape
        at, self._counted = self._counted, end
        if escape == quote:
            if data.count(quote, at, end) % 2:
                self._inside = not self._inside
            return
        inside = self._inside
        while at < end:
            byte = data[at : at + 1]
            if inside and byte == escape and data[at + 1 : min(at + 2, end)] in (quote, escape):
                at += 1
            elif byte == quote:
                inside = not inside
            at += 1
        self._inside = inside

    def _whole_quotes(self) -> None:
        if not self._how.csv:
            return
        self._count_quotes(self._data, len(self._data))
        if self._inside:
            self.number, self.line = self.number + 1, bytes(self._data[self._start :])
            raise InvalidCopyText("unterminated CSV quoted field")


def _is_escaped(data: bytes | bytearray, start: int, end: int) -> bool:
    """Return whether a backslash that is not escaped itself stands before `end`."""
    at = end
    while at > start and data[at - 1] == 0x5C:
        at -= 1
    return (end - at) % 2 == 1


def _text_splitter(how: CopyFormat) -> Split:
    separator, delimiter = how.delimiter, how.delimiter.encode()
    null_text = how.null or ""
    null = null_text.encode()
    escaped_nulls = null.count(b"\\")
    marks = re.compile(rb"[\\" + re.escape(delimiter) + rb"]")

    def split(line: bytes) -> Fields:
        backslashes = line.count(b"\\")
        if not backslashes and escaped_nulls:
            return as_text(line).split(separator)  # type: ignore[return-value]
        parts = line.split(delimiter)
        if backslashes == escaped_nulls * parts.count(null):  # nothing else is escaped
            return [None if part == null else as_text(part) for part in parts]
        made: Fields = []
        start = at = 0
        while True:
            found = marks.search(line, at)
            if found is not None and found[0] != delimiter:  # what follows is part of the field
                at = found.end() + 1
                continue
            raw = line[start:] if found is None else line[start : found.start()]
            made.append(None if raw == null else as_text(_ESCAPE.sub(_unescaped, raw)))
            if found is None:
                return made
            start = at = found.end()

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
