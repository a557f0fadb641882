"""Goal: COPY reads what PostgreSQL reads, in whatever pieces it arrives.

Method: texts and rows checked against PostgreSQL 15 (an integration test does it again), each fed
whole and byte by byte.
"""

from __future__ import annotations

from collections.abc import Sequence
from time import thread_time
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from leasehold.model.errors import ROW_NUMBER, CheckViolation, LeaseholdError
from leasehold.pgwire.copy.binary import HEADER
from leasehold.pgwire.copy.format import CopyFormat
from leasehold.pgwire.copy.input import CopyRows
from leasehold.pgwire.copy.lines import CopyLines, Fields
from leasehold.pgwire.limits import Limits
from leasehold.pgwire.session import Column
from leasehold.pgwire.wire_errors import InvalidCopyText
from leasehold.values.time_zone import zone_of
from leasehold.values.types import Type
from tests.support.pgwire.copy_cases import CASES, REFUSED, CopyCase
from tests.support.pgwire.copy_contexts import TOLD, Told

LINE_MAX = 1_000
UTC = zone_of("UTC")


def read(how: CopyFormat, data: bytes, size: int) -> list[Fields]:
    lines = CopyLines(how, LINE_MAX)
    rows: list[Fields] = []
    for at in range(0, len(data), size):
        rows += lines.feed(data[at : at + size])
    return [*rows, *lines.finish()]


@pytest.mark.parametrize("size", [1, 2, 1000])
@pytest.mark.parametrize("case", CASES, ids=lambda case: repr(case.data))
def test_rows_are_those_of_postgresql(case: CopyCase, size: int) -> None:
    assert read(case.how(), case.data, size) == [list(row) for row in case.rows]


@pytest.mark.parametrize("size", [1, 7, LINE_MAX, 10 * LINE_MAX])
@pytest.mark.parametrize("begin", [b"", b"a\n"])
@pytest.mark.parametrize("csv", [False, True])
def test_a_line_has_a_limit_however_its_bytes_are_cut(csv: bool, begin: bytes, size: int) -> None:
    how = CopyFormat(csv=csv)
    whole = begin + b"x" * LINE_MAX + b"\n"
    assert read(how, whole + b"b\n", size)[-2:] == [["x" * LINE_MAX], ["b"]]
    with pytest.raises(InvalidCopyText, match="longer than 1000 bytes"):
        read(how, begin + b"x" + whole[len(begin) :] + b"b\n", size)


GATHERED_BYTES = 64 * 1024
PIECE_BYTES = 64
TIMES = 4


@pytest.mark.parametrize(
    ("how", "begin", "text"),
    [
        (CopyFormat(), b"", b"x"),
        (CopyFormat(), b"a\n", b"x"),
        (CopyFormat(), b"", b"x\\\n"),
        (CopyFormat(csv=True), b'"', b"x\n"),
        (CopyFormat(csv=True), b'a\r\n"', b'x\r""\r\n'),
        (CopyFormat(csv=True, escape="\\"), b'a\n"', b'x\\"\n'),
    ],
    ids=lambda value: repr(value)[:30],
)
def test_no_byte_of_a_line_is_looked_at_again_with_every_piece(
    how: CopyFormat, begin: bytes, text: bytes
) -> None:
    """Processor time of a line four times as long: that of four, not of sixteen."""

    def took_s(size: int) -> float:
        lines = CopyLines(how, 1 << 30)
        data = begin + text * (size // len(text))
        begun_s = thread_time()
        for at in range(0, len(data), PIECE_BYTES):
            found = [*lines.feed(data[at : at + PIECE_BYTES])]
            assert at == 0 or not found, "it is one line"
        return thread_time() - begun_s

    short_s, long_s = (
        min(took_s(size) for _ in range(3)) for size in (GATHERED_BYTES, TIMES * GATHERED_BYTES)
    )
    assert long_s < 2 * TIMES * short_s


class Target:
    """Takes everything."""

    def __init__(self, how: CopyFormat) -> None:
        self.table, self.format = "t", how
        self.columns = [Column("a", Type("text")), Column("b", Type("integer"))]
        self.rows: list[Sequence[Any]] = []

    def take(self, rows: Sequence[Sequence[Any]]) -> None:
        self.rows += rows


def taken(how: CopyFormat, data: bytes) -> list[Sequence[Any]]:
    target = Target(how)
    rows = CopyRows(target, UTC, Limits())
    rows.feed(data)
    rows.finish()
    return target.rows


@pytest.mark.parametrize("csv", [True, False])
def test_a_header_that_names_the_columns_is_no_row(csv: bool) -> None:
    how = CopyFormat(csv=csv, header=True, header_matches=True)
    data = b"a,b\nx,1\n" if csv else b"a\tb\nx\t1\n"
    assert taken(how, data) == [("x", 1)]


FORCED = [
    ({"force_null": frozenset("a")}, b'"",1\n,2\n"x",3\n', [None, None, "x"]),
    ({"force_not_null": frozenset("a")}, b'"",1\n,2\n', ["", ""]),
    (
        {"force_null": frozenset("a"), "force_not_null": frozenset("a"), "null": "N"},
        b'"N",1\nN,2\n',
        [None, "N"],
    ),
    ({"force_null": frozenset("b")}, b'"",""\n', [""]),
]


@pytest.mark.parametrize(("options", "data", "found"), FORCED)
def test_columns_may_be_told_what_null_is(options: Any, data: bytes, found: list[Any]) -> None:
    assert [row[0] for row in taken(CopyFormat(csv=True, **options), data)] == found


@pytest.mark.parametrize("case", REFUSED, ids=lambda case: repr(case.data))
def test_what_is_no_row_is_refused(case: CopyCase) -> None:
    rows = CopyRows(Target(case.how()), UTC, Limits())

    def copy() -> None:
        rows.feed(case.data)
        rows.finish()

    with pytest.raises(LeaseholdError) as caught:
        copy()
    assert caught.value.sqlstate in ("22P04", "22021")
    assert str(caught.value.detail["where"]).startswith("COPY t, line 1")


@pytest.mark.parametrize("size", [1, 10_000])
@pytest.mark.parametrize("told", TOLD, ids=lambda told: repr(told.case.data)[:40])
def test_an_error_tells_its_place_as_postgresql_does(told: Told, size: int) -> None:
    rows = CopyRows(Target(told.case.how()), UTC, Limits())
    data = told.case.data

    def copy() -> None:
        for at in range(0, len(data), size):
            rows.feed(data[at : at + size])
        rows.finish()

    with pytest.raises(LeaseholdError) as caught:
        copy()
    assert caught.value.detail.get("where") == told.context


class Refusing(Target):
    """Refuses rows, `taken` portions before excepted; the error names one of them, or none."""

    def __init__(self, how: CopyFormat, row_number: int | None, taken: int = 0) -> None:
        super().__init__(how)
        self._detail = {} if row_number is None else {ROW_NUMBER: row_number}
        self._left = taken

    def take(self, rows: Sequence[Sequence[Any]]) -> None:
        if not self._left:
            raise CheckViolation("no", **self._detail)
        self._left -= 1


@pytest.mark.parametrize(
    ("data", "row_number", "where"),
    [
        (b'a,1\n"b\nc",2\nd,3\n', 1, 'COPY t, line 3: ""b\nc",2"'),
        (b'a,1\n"b\nc",2\nd,3\n', 2, 'COPY t, line 4: "d,3"'),
        (b"a,1\n" + b"x" * 100 + b",2\n", 1, f'COPY t, line 2: "{"x" * 100}..."'),
        (b'a,1\n"b\nc",2\nd,3\n', None, None),
    ],
)
def test_a_row_that_the_table_refuses_is_told_by_its_own_line(
    data: bytes, row_number: int | None, where: str | None
) -> None:
    rows = CopyRows(Refusing(CopyFormat(csv=True), row_number), UTC, Limits())
    rows.feed(data)
    with pytest.raises(CheckViolation) as caught:
        rows.finish()
    assert caught.value.detail["where"] == where


def test_a_row_of_a_later_portion_is_told_by_its_own_line() -> None:
    rows = CopyRows(Refusing(CopyFormat(), 1, taken=1), UTC, Limits(copy_rows_max=2))
    rows.feed(b"a\t1\nb\t2\nc\t3\n")
    with pytest.raises(CheckViolation) as caught:
        rows.feed(b"d\t4\n")
    assert caught.value.detail["where"] == 'COPY t, line 4: "d\t4"'


def test_a_field_of_a_size_that_can_not_be_is_told_by_its_row() -> None:
    rows = CopyRows(Target(CopyFormat(binary=True)), UTC, Limits())
    whole = b"\0\2\0\0\0\1a\0\0\0\4abcd"
    with pytest.raises(InvalidCopyText) as caught:
        rows.feed(HEADER + whole + b"\0\2\xff\xff\xff\xfe")
    assert caught.value.detail["where"] == "COPY t, line 2"


def test_a_line_that_is_too_long_is_told_without_its_text() -> None:
    rows = CopyRows(Target(CopyFormat()), UTC, Limits(copy_line_bytes_max=10))
    with pytest.raises(InvalidCopyText) as caught:
        rows.feed(b"a\t1\n" + b"x" * 11)
    assert caught.value.detail["where"] == "COPY t, line 2"


def test_an_error_says_line_and_column_and_rows_are_handed_over_in_portions() -> None:
    target = Target(CopyFormat())
    rows = CopyRows(target, UTC, Limits(copy_rows_max=2))
    rows.feed(b"a\t1\nb\t2\nc\t3\n")
    assert target.rows == [("a", 1), ("b", 2)]
    with pytest.raises(LeaseholdError) as caught:
        rows.feed(b"d\tx\n")
    assert caught.value.detail["where"] == 'COPY t, line 4, column b: "x"'


def test_a_line_that_never_ends_is_refused() -> None:
    lines = CopyLines(CopyFormat(), LINE_MAX)
    assert list(lines.feed(b"x" * LINE_MAX)) == []
    with pytest.raises(InvalidCopyText, match="longer than 1000 bytes"):
        list(lines.feed(b"x"))


@pytest.mark.parametrize(
    "options",
    [
        {"delimiter": "ab"},
        {"delimiter": "\n"},
        {"delimiter": "a"},
        {"delimiter": "€"},
        {"csv": True, "delimiter": '"'},
        {"csv": True, "quote": "''"},
        {"null": "a\tb"},
        {"null": "\n"},
        {"quote": "'"},
        {"csv": True, "null": 'a"b'},
    ],
)
def test_options_that_do_not_go_together_are_refused(options: dict[str, object]) -> None:
    with pytest.raises(LeaseholdError) as caught:
        CopyFormat(**options)  # type: ignore[arg-type]
    assert caught.value.sqlstate in ("22023", "0A000")


FIELDS = st.none() | st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"))


@given(rows=st.lists(st.lists(FIELDS, min_size=2, max_size=2), max_size=5), size=st.integers(1, 50))
def test_what_is_escaped_is_read_back(rows: list[Fields], size: int) -> None:
    text = "".join("\t".join(map(escaped, row)) + "\n" for row in rows)
    lines = CopyLines(CopyFormat(), 1 << 20)
    data = text.encode()
    found = [r for at in range(0, len(data), size) for r in lines.feed(data[at : at + size])]
    assert [*found, *lines.finish()] == rows


def escaped(field: str | None) -> str:
    if field is None:
        return "\\N"
    for raw, written in (("\\", "\\\\"), ("\t", "\\t"), ("\n", "\\n"), ("\r", "\\r")):
        field = field.replace(raw, written)
    return field


@given(data=st.binary(max_size=60), csv=st.booleans(), size=st.integers(1, 20))
def test_no_bytes_are_a_defect(data: bytes, csv: bool, size: int) -> None:
    try:
        in_pieces = read(CopyFormat(csv=csv), data, size)
    except LeaseholdError:
        with pytest.raises(LeaseholdError):
            read(CopyFormat(csv=csv), data, 1000)
    else:
        assert in_pieces == read(CopyFormat(csv=csv), data, 1000)
