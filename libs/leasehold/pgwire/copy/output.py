"""COPY … TO STDOUT: rows of storage values → its text, CSV or binary form, as PostgreSQL's."""

from __future__ import annotations

import re
import struct
from collections.abc import Callable, Sequence
from typing import Any, Final
from zoneinfo import ZoneInfo

from leasehold.pgwire.copy.binary import HEADER, TRAILER
from leasehold.pgwire.copy.format import CopyFormat
from leasehold.pgwire.messages import backend
from leasehold.pgwire.session import CopySource
from leasehold.pgwire.values.encoding import BINARY, NULL, make_encoder, text_of
from leasehold.pgwire.values.formats import ResultForm

_SHORT: Final = struct.Struct("!h")
_ESCAPED: Final = {
    "\b": "\\b",
    "\f": "\\f",
    "\n": "\\n",
    "\r": "\\r",
    "\t": "\\t",
    "\v": "\\v",
    "\\": "\\\\",
}

Row = Callable[[Sequence[Any]], bytes]


def copy_out_form(source: CopySource, zone: ZoneInfo) -> ResultForm:
    """Return how the rows of one COPY … TO STDOUT are said; its header goes with the first row.
    Raises FeatureNotSupported for a type without a binary form."""
    how, columns = source.format, source.columns
    begins = backend.copy_out(len(columns), binary=how.binary)
    if how.binary:
        return ResultForm(begins, *_binary(source, zone), copies=True)
    write = _csv(source) if how.csv else _text(how)
    if how.header:
        begins += backend.copy_data(write([column.name for column in columns], header=True))
    shows = [text_of(column.type, zone) for column in columns]

    def row(values: Sequence[Any]) -> bytes:
        pairs = zip(shows, values if shows else (), strict=True)
        return backend.copy_data(write([None if v is None else show(v) for show, v in pairs]))

    return ResultForm(begins, row, lambda: backend.COPY_DONE, copies=True)


def _binary(source: CopySource, zone: ZoneInfo) -> tuple[Row, Callable[[], bytes]]:
    encoders = [make_encoder(column.type, BINARY, zone) for column in source.columns]
    count = _SHORT.pack(len(encoders))
    before = [HEADER]  # readers take it for a part of the first row

    def header() -> bytes:
        return before.pop() if before else b""

    def row(values: Sequence[Any]) -> bytes:
        pairs = zip(encoders, values if encoders else (), strict=True)
        body = b"".join([NULL if v is None else encode(v) for encode, v in pairs])
        return backend.copy_data(header() + count + body)

    return row, lambda: backend.copy_data(header() + TRAILER) + backend.COPY_DONE


def _text(how: CopyFormat) -> Callable[..., bytes]:
    special = re.compile("[" + re.escape("".join(_ESCAPED) + how.delimiter) + "]")
    null = how.null

    def escaped(found: re.Match[str]) -> str:
        return _ESCAPED.get(found[0], "\\" + found[0])

    def write(fields: Sequence[str | None], *, header: bool = False) -> bytes:
        said = [null if text is None else special.sub(escaped, text) for text in fields]
        return f"{how.delimiter.join(map(str, said))}\n".encode()

    return write


def _csv(source: CopySource) -> Callable[..., bytes]:
    how = source.format
    unsafe = re.compile("[" + re.escape(how.delimiter + how.quote) + "\r\n]")
    doubled = re.compile("[" + re.escape(how.quote + how.escape) + "]")
    always = [
        how.force_quote is None or column.name in how.force_quote for column in source.columns
    ]
    alone = len(always) == 1

    def field(text: str | None, *, quoted: bool) -> str:
        if text is None:
            return str(how.null)
        # A line that is \\. alone ends the data.
        if quoted or text == how.null or unsafe.search(text) or (alone and text == "\\."):
            return how.quote + doubled.sub(lambda found: how.escape + found[0], text) + how.quote
        return text

    def write(fields: Sequence[str | None], *, header: bool = False) -> bytes:
        pairs = zip(fields, always, strict=True)
        said = [field(text, quoted=quoted and not header) for text, quoted in pairs]
        return f"{how.delimiter.join(said)}\n".encode()

    return write
