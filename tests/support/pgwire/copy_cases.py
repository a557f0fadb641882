r"""What COPY reads into two columns of text: bytes and rows."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, NamedTuple

from leasehold.pgwire.copy.format import CopyFormat


class CopyCase(NamedTuple):
    """`options`: as CopyFormat and as PostgreSQL's `WITH (…)`."""

    data: bytes
    rows: tuple[tuple[str | None, str | None], ...] = ()
    options: Mapping[str, Any] = MappingProxyType({})
    written: str = ""

    def how(self) -> CopyFormat:
        return CopyFormat(**self.options)


CSV: dict[str, Any] = {"csv": True}
MATCH: dict[str, Any] = {"csv": True, "header": True, "header_matches": True}
CASES = (
    CopyCase(b""),
    CopyCase(b"a\tb\n", (("a", "b"),)),
    CopyCase(b"a\tb", (("a", "b"),)),
    CopyCase(b"a\tb\r\nc\td\r\n", (("a", "b"), ("c", "d"))),
    CopyCase(b"a\tb\rc\td\r", (("a", "b"), ("c", "d"))),
    CopyCase(b"\\N\t\\N\n\t\n", ((None, None), ("", ""))),
    CopyCase(b"\\\\N\tN\n", (("\\N", "N"),)),
    CopyCase(b"a\\tb\tc\\nd\n", (("a\tb", "c\nd"),)),
    CopyCase(b"\\b\\f\\r\\v\t\\q\\\\\n", (("\b\f\r\v", "q\\"),)),
    CopyCase(b"\\x41\\x4a7\t\\101\\0601\n", (("AJ7", "A01"),)),
    CopyCase(b"a\\\tb\tc\n", (("a\tb", "c"),)),
    CopyCase(b"a\\\nb\tc\n", (("a\nb", "c"),)),
    CopyCase(b"a\tb\n\\.\nrest", (("a", "b"),)),
    CopyCase("é€𝄞\tü\n".encode(), (("é€𝄞", "ü"),)),
    CopyCase(b"\\xc3\\xa9\t\\303\\251\n", (("é", "é"),)),
    CopyCase(b"a|b\n", (("a", "b"),), {"delimiter": "|"}, "DELIMITER '|'"),
    CopyCase(b"x\tb\n", ((None, "b"),), {"null": "x"}, "NULL 'x'"),
    CopyCase(b"h\th\na\tb\n", (("a", "b"),), {"header": True}, "HEADER"),
    CopyCase(b"a,b\n", (("a", "b"),), CSV, "FORMAT csv"),
    CopyCase(b"a,b\r\nc,d\r\n", (("a", "b"), ("c", "d")), CSV, "FORMAT csv"),
    CopyCase(b',""\n', ((None, ""),), CSV, "FORMAT csv"),
    CopyCase(b'"a ""quoted"" b","c,d"\n', (('a "quoted" b', "c,d"),), CSV, "FORMAT csv"),
    CopyCase(b'"a\nb",c\n', (("a\nb", "c"),), CSV, "FORMAT csv"),
    CopyCase(b'a"b"c,d\n', (("abc", "d"),), CSV, "FORMAT csv"),
    CopyCase(b"a\\tb,\\N\n", (("a\\tb", "\\N"),), CSV, "FORMAT csv"),
    CopyCase(b"a,b\n\\.\nrest", (("a", "b"),), CSV, "FORMAT csv"),
    CopyCase(b" a , b \n", ((" a ", " b "),), CSV, "FORMAT csv"),
    CopyCase(
        b"x,y\na,b\n", (("a", "b"),), {"csv": True, "header": True}, "FORMAT csv, HEADER true"
    ),
    CopyCase(
        b"'a\\'b';c\n",
        (("a'b", "c"),),
        {"csv": True, "delimiter": ";", "quote": "'", "escape": "\\"},
        "FORMAT csv, DELIMITER ';', QUOTE '''', ESCAPE '\\'",
    ),
)
REFUSED = (
    CopyCase(b"a,c\n1,2\n", (), MATCH, "FORMAT csv, HEADER match"),
    CopyCase(b"b,a\n1,2\n", (), MATCH, "FORMAT csv, HEADER match"),
    CopyCase(b"a\n1,2\n", (), MATCH, "FORMAT csv, HEADER match"),
    CopyCase(b"a,b,c\n1,2\n", (), MATCH, "FORMAT csv, HEADER match"),
    CopyCase(b"a,\n1,2\n", (), MATCH, "FORMAT csv, HEADER match"),
    CopyCase(b"a\n"),
    CopyCase(b"a\tb\tc\n"),
    CopyCase(b"\xff\tb\n"),
    CopyCase(b'"a,b\n', (), CSV, "FORMAT csv"),
    CopyCase(b"a\n", (), CSV, "FORMAT csv"),
)
