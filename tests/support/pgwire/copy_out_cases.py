"""What COPY … TO STDOUT writes, for here and for a real PostgreSQL: options and rows."""

from __future__ import annotations

from typing import Any, Final
from zoneinfo import ZoneInfo

from leasehold.pgwire.copy.format import CopyFormat
from leasehold.pgwire.copy.output import copy_out_form
from leasehold.pgwire.session import Column, CopySource
from leasehold.values.text_io import from_text
from leasehold.values.time_zone import zone_of
from leasehold.values.types import Type

ZONE: Final = "Europe/Berlin"
COLUMNS: Final = (("a b", "text"), ("n", "integer"), ("at", "timestamptz"), ("d", "bytea"))
ROWS: Final = (
    ("plain", "1", "2024-07-01 12:00+00", "\\x00ff"),
    (None, None, None, None),
    ("", "-7", "1969-12-31 23:59:59.5+00", "\\x"),
    ("tab\tand\nline\r\x08\x0c\x0b\x01\\", "0", "2024-01-01+00", "\\x5c6e"),
    ('say "x", or \\N; it\'s |', "2147483647", "2024-10-27 00:30+00", "\\x41"),
    ("\\N", "5", "2024-10-27 01:30+00", "\\x"),
    ("NULL", "6", None, None),
    ("größe 😀", "7", None, None),
    (" a,b;c ", "8", None, None),
)
OPTIONS: Final[dict[str, CopyFormat]] = {
    "FORMAT text": CopyFormat(),
    "DELIMITER '|', NULL 'NULL'": CopyFormat(delimiter="|", null="NULL"),
    "HEADER, NULL ''": CopyFormat(header=True, null=""),
    "FORMAT csv": CopyFormat(csv=True),
    "FORMAT csv, HEADER, DELIMITER ';', NULL 'NULL'": CopyFormat(
        csv=True, header=True, delimiter=";", null="NULL"
    ),
    "FORMAT csv, QUOTE '''', ESCAPE '\\'": CopyFormat(csv=True, quote="'", escape="\\"),
    "FORMAT csv, HEADER, FORCE_QUOTE *": CopyFormat(csv=True, header=True, force_quote=None),
    "FORMAT csv, FORCE_QUOTE (n, d)": CopyFormat(csv=True, force_quote=frozenset({"n", "d"})),
    "FORMAT binary": CopyFormat(binary=True),
}


def query(columns: int) -> str:
    """Of the first so many columns, for PostgreSQL."""

    def said(text: str | None) -> str:
        return "NULL" if text is None else "'" + text.replace("'", "''") + "'"

    rows = ", ".join(f"({', '.join(map(said, row[:columns]))})" for row in ROWS)
    shown = ", ".join(f'c{n}::{kind} AS "{name}"' for n, (name, kind) in enumerate(COLUMNS))
    shown = ", ".join(shown.split(", ")[:columns])
    return f"SELECT {shown} FROM (VALUES {rows}) v ({', '.join(f'c{n}' for n in range(columns))})"


def ours(how: CopyFormat, columns: int, zone: ZoneInfo | None = None) -> bytes:
    """The data of all messages in a row."""
    kinds = [Type(kind) for _, kind in COLUMNS[:columns]]
    source = CopySource(
        tuple(Column(name, kind) for (name, _), kind in zip(COLUMNS, kinds, strict=False)), how
    )
    form = copy_out_form(source, zone or zone_of(ZONE))
    said = [form.description]
    for row in ROWS:
        pairs: Any = zip(kinds, row, strict=False)
        said.append(form.row([None if t is None else from_text(k, t) for k, t in pairs]))
    return data_of(b"".join((*said, form.last())))


def data_of(messages: bytes) -> bytes:
    """Of CopyData alone."""
    made, at = b"", 0
    while at < len(messages):
        end = at + 1 + int.from_bytes(messages[at + 1 : at + 5])
        if messages[at : at + 1] == b"d":
            made += messages[at + 5 : end]
        at = end
    return made
