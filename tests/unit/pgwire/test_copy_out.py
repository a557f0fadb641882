"""COPY … TO STDOUT writes what a real PostgreSQL 15 has written, and reads it back.

`copy_out_recorded.json`: by number of columns and options, the data in hexadecimal digits
(`tests/integration/postgres_compat/test_wire_and_postgres.py` compares with PostgreSQL itself).
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from leasehold.model.errors import LeaseholdError
from leasehold.pgwire.copy.binary import HEADER, TRAILER
from leasehold.pgwire.copy.format import CopyFormat
from leasehold.pgwire.copy.input import CopyRows
from leasehold.pgwire.limits import Limits
from leasehold.pgwire.session import Column
from leasehold.values.text_io import from_text
from leasehold.values.time_zone import zone_of
from leasehold.values.types import Type
from tests.support.pgwire.copy_out_cases import COLUMNS, OPTIONS, ROWS, ZONE, ours

RECORDED = json.loads((Path(__file__).parent / "copy_out_recorded.json").read_text())
BINARY = CopyFormat(binary=True)
ONE = b"\0\1\0\0\0\4\0\0\0\7"


class Taken:
    """A `CopyTarget`."""

    def __init__(self, how: CopyFormat, columns: Sequence[tuple[str, str]]) -> None:
        self.table, self.format = "t", how
        self.columns = [Column(name, Type(kind)) for name, kind in columns]
        self.rows: list[Sequence[Any]] = []

    def take(self, rows: Sequence[Sequence[Any]]) -> None:
        self.rows += rows


def read(
    data: bytes, how: CopyFormat, columns: Sequence[tuple[str, str]], step: int
) -> list[Sequence[Any]]:
    taken = Taken(how, columns)
    rows = CopyRows(taken, zone_of(ZONE), Limits(copy_line_bytes_max=1_000))
    for begin in range(0, len(data), step):
        rows.feed(data[begin : begin + step])
    rows.finish()
    return taken.rows


@pytest.mark.parametrize("name", RECORDED)
def test_what_postgresql_has_written(name: str) -> None:
    count, options = name.split(" ", 1)
    assert ours(OPTIONS[options], int(count)).hex() == RECORDED[name]


@pytest.mark.parametrize("step", [1, 7, 10_000])
@pytest.mark.parametrize(
    "options", ["FORMAT text", "FORMAT csv, FORCE_QUOTE (n, d)", "FORMAT binary"]
)
def test_what_was_written_is_read(options: str, step: int) -> None:
    how = OPTIONS[options]
    found = read(ours(how, len(COLUMNS)), how, COLUMNS, step)
    kinds = [Type(kind) for _, kind in COLUMNS]
    assert found == [
        tuple(None if t is None else from_text(k, t) for k, t in zip(kinds, row, strict=True))
        for row in ROWS
    ]


def test_a_binary_trailer_may_be_missing() -> None:
    assert read(HEADER + ONE, BINARY, [("n", "integer")], 3) == [(7,)]
    assert read(HEADER + TRAILER, BINARY, [("n", "integer")], 3) == []
    extended = HEADER[:-4] + b"\0\0\0\2" + b"xy" + ONE
    assert read(extended, BINARY, [("n", "integer")], 3) == [(7,)]


@pytest.mark.parametrize(
    ("data", "code"),
    [
        (b"", "22P04"),
        (b"PGCOPY", "22P04"),
        (b"nonsense" * 4, "22P04"),
        (HEADER[:11] + b"\0\1\0\0" + HEADER[15:], "22P04"),  # with oids
        (HEADER[:11] + b"\x80\0\0\0" + HEADER[15:], "22P04"),
        (HEADER[:-4] + b"\x7f\0\0\0", "22P04"),
        (HEADER + b"\0", "22P04"),
        (HEADER + ONE[:-1], "22P04"),
        (HEADER + b"\0\2" + ONE[2:], "22P04"),
        (HEADER + b"\0\2" + ONE[2:] * 2, "22P04"),
        (HEADER + b"\0\0", "22P04"),
        (HEADER + b"\xff\xfe", "22P04"),
        (HEADER + b"\0\1\xff\xff\xff\xfe", "22P04"),
        (HEADER + b"\0\1\0\0\x7f\0" + b"x" * 5_000, "22P04"),
        (HEADER + b"\0\1\0\0\0\3abc", "22P03"),
        (HEADER + ONE + TRAILER + b"x", "22P04"),
    ],
)
@pytest.mark.parametrize("step", [5, 10_000])
def test_binary_data_that_is_refused(data: bytes, code: str, step: int) -> None:
    with pytest.raises(LeaseholdError) as caught:
        read(data, BINARY, [("n", "integer")], step)
    assert caught.value.sqlstate in (code, "08P01")
