"""What an error of COPY … FROM STDIN into t (a text, b integer) tells of its place, as PostgreSQL
15 tells it: the line, and the column's value or the line's text, cut behind 100 bytes."""

from __future__ import annotations

from typing import Final, NamedTuple

from leasehold.pgwire.copy.binary import HEADER
from tests.support.pgwire.copy_cases import CSV, MATCH, CopyCase

E_ACUTE: Final = "é".encode()


class Told(NamedTuple):
    """`context`: None where there is none."""

    case: CopyCase
    context: str | None


def _text(data: bytes, context: str) -> Told:
    return Told(CopyCase(data), context)


def _csv(data: bytes, context: str) -> Told:
    return Told(CopyCase(data, (), CSV, "FORMAT csv"), context)


def _match(data: bytes, context: str) -> Told:
    return Told(CopyCase(data, (), MATCH, "FORMAT csv, HEADER match"), context)


def _binary(data: bytes, context: str | None) -> Told:
    return Told(CopyCase(data, (), {"binary": True}, "FORMAT binary"), context)


TOLD: Final = (
    _text(b"a\tx\n", 'COPY t, line 1, column b: "x"'),
    _text(b"a\tx", 'COPY t, line 1, column b: "x"'),
    _text(b"a\tx\r\n", 'COPY t, line 1, column b: "x"'),
    _text(b"a\t1\nb\tz y\nc\t3\n", 'COPY t, line 2, column b: "z y"'),
    _text(b"a\t\n", 'COPY t, line 1, column b: ""'),
    _text(b'a\tx"q\\tz\\\\\n', 'COPY t, line 1, column b: "x"q\tz\\"'),
    _text(b"a\t99999999999\n", 'COPY t, line 1, column b: "99999999999"'),
    _text(b"a\t" + b"y" * 100 + b"\n", f'COPY t, line 1, column b: "{"y" * 100}"'),
    _text(b"a\t" + b"y" * 101 + b"\n", f'COPY t, line 1, column b: "{"y" * 100}..."'),
    _text(b"a\t" + b"y" * 5_000 + b"\n", f'COPY t, line 1, column b: "{"y" * 100}..."'),
    _text(b"a\t" + E_ACUTE * 50 + b"\n", f'COPY t, line 1, column b: "{"é" * 50}"'),
    _text(b"a\t" + E_ACUTE * 51 + b"\n", f'COPY t, line 1, column b: "{"é" * 50}..."'),
    _text(b"a\tx" + E_ACUTE * 60 + b"\n", f'COPY t, line 1, column b: "x{"é" * 49}..."'),
    _text(b"a\n", 'COPY t, line 1: "a"'),
    _text(b"a\t1\nb\t1\t2\n", 'COPY t, line 2: "b\t1\t2"'),
    _text(b"\\\\x\n", 'COPY t, line 1: "\\\\x"'),
    _text(b"a" * 100 + b"\n", f'COPY t, line 1: "{"a" * 100}"'),
    _text(b"a" * 200 + b"\n", f'COPY t, line 1: "{"a" * 100}..."'),
    _text(b"x" + E_ACUTE * 60 + b"\n", f'COPY t, line 1: "x{"é" * 49}..."'),
    _text(b"a\xff\t1\n", "COPY t, line 1"),
    _text(b"a\t1\n\xff\n", "COPY t, line 2"),
    _text(b"a\0b\t1\n", "COPY t, line 1"),
    _csv(b"a,x\n", 'COPY t, line 1, column b: "x"'),
    # Not of the first line: PostgreSQL counts no line ends in quotes before it has met one outside.
    _csv(b'a,1\n"b\nc",2\n"d\ne","x\ny"\n', 'COPY t, line 6, column b: "x\ny"'),
    _csv(b"a,1,2\n", 'COPY t, line 1: "a,1,2"'),
    _csv(b'"a,1\n', 'COPY t, line 1: ""a,1\n"'),
    _csv(b'a,""\n', 'COPY t, line 1, column b: ""'),
    _csv(b"a\n", 'COPY t, line 1: "a"'),
    _match(b"h,b\n", 'COPY t, line 1: "h,b"'),
    _match(b"a,b,c\n", 'COPY t, line 1: "a,b,c"'),
    _match(b"a,b\n1,x\n", 'COPY t, line 2, column b: "x"'),
    _binary(HEADER + b"\0\3\0\0\0\1a\0\0\0\3abc\0\0\0\1a\xff\xff", "COPY t, line 1"),
    _binary(HEADER + b"\0\2\0\0\0\1\xff\0\0\0\4abcd\xff\xff", "COPY t, line 1, column a"),
    _binary(HEADER + b"\0\2\0\0\0\1a\0\0\0\4abcd\0\3\0\0\0\1a", "COPY t, line 2"),
    _binary(b"xxxxxxxxxxx" + HEADER, None),
)
_U: Final = "a int primary key, b int check (b > 0), c int unique, d int not null default 0"
TABLE_OF_ROWS: Final = (
    "create table v (id int primary key)",
    f"create table u ({_U}, e int references v)",
    "insert into u values (9, 9, 9)",
)
OF_ROWS: Final = (
    (
        b"1\t1\t1\t0\t\\N\n2\t-1\t2\t0\t\\N\n3\t1\t3\t0\t\\N\n",
        "23514",
        'COPY u, line 2: "2\t-1\t2\t0\t\\N"',
    ),
    (
        b"1\t1\t1\t0\t\\N\n2\t1\t2\t\\N\t\\N\n3\t1\t3\t0\t\\N\n",
        "23502",
        'COPY u, line 2: "2\t1\t2\t\\N\t\\N"',
    ),
    (b"1\t1\t1\t0\t\\N\n1\t1\t2\t0\t\\N\n3\t1\t3\t0\t\\N\n", "23505", "COPY u, line 2"),
    (b"1\t1\t1\t0\t\\N\n9\t1\t2\t0\t\\N\n3\t1\t3\t0\t\\N\n", "23505", "COPY u, line 2"),
    (b"1\t1\t1\t0\t\\N\n2\t1\t9\t0\t\\N\n3\t1\t3\t0\t\\N\n", "23505", "COPY u, line 2"),
    (b"1\t1\t1\t0\t\\N\n2\t1\t1\t0\t\\N\n3\t1\t3\t0\t\\N\n", "23505", "COPY u, line 2"),
    (b"1\t1\t1\t0\t5\n2\t1\t2\t0\t\\N\n", "23503", None),
)
"""Rows for u, and what tells of the first wrong one: SQLSTATE and place."""
