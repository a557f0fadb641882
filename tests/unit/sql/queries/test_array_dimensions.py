"""Arrays of arrays, and arrays that begin with another element than 1, are refused in the same
words and with the same hint, wherever they come from."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import pytest

from leasehold.model.errors import FeatureNotSupported, RequestTooLarge
from leasehold.pgwire.copy.format import CopyFormat
from leasehold.pgwire.copy.input import CopyRows
from leasehold.pgwire.limits import Limits
from leasehold.pgwire.session import Column
from leasehold.pgwire.values.decoding import make_decoder
from leasehold.pgwire.values.encoding import BINARY, TEXT
from leasehold.pgwire.wire_errors import InvalidBinary
from leasehold.sql.ddl.schema_statements import parse_ddl
from leasehold.sql.expressions.expression import compile_expression
from leasehold.values.arrays import ELEMENTS_MAX
from leasehold.values.storage import to_storage
from leasehold.values.time_zone import UTC
from leasehold.values.types import parse_type
from tests.support.sql.asked import FLIGHTS, Asked

INTEGERS = parse_type("integer[]")
INTEGER_OID = 23


def in_binary(*dimensions: tuple[int, int]) -> bytes:
    """Return the array's binary form: of (elements, first subscript) each; its one element is 5."""
    words = [len(dimensions), 0, INTEGER_OID, *(n for each in dimensions for n in each), 4, 5]
    return b"".join(word.to_bytes(4, signed=True) for word in words)


class Target:
    """Takes no row."""

    table, format = "t", CopyFormat()
    columns = (Column("a", INTEGERS),)

    def take(self, rows: Any) -> None:
        raise AssertionError(rows)


def copied(data: bytes) -> None:
    CopyRows(Target(), UTC, Limits()).feed(data)


def check(refused: Callable[[], object], words: str, hint: str) -> None:
    with pytest.raises(FeatureNotSupported) as caught:
        refused()
    assert caught.value.message.removeprefix("column 'a': ") == words
    assert hint in str(caught.value.detail["hint"])


DIMENSIONS = ("arrays of more than one dimension are not supported", "Keep it as jsonb")
BOUNDS = ("arrays that begin with another element than 1 are not supported", "Leave the bounds out")


@pytest.mark.parametrize(
    "statement",
    [
        "SELECT '{{1,2},{3,4}}'::integer[]",
        "SELECT '{1}'::integer[][]",
        "SELECT '{1}'::integer[2][2]",
        "SELECT ARRAY[[1,2],[3,4]]",
        "SELECT ARRAY[ARRAY[1]]",
        "SELECT ARRAY[[1]]::integer[]",
        "SELECT ARRAY(SELECT ARRAY[id] FROM flights)",
        "SELECT array_agg(ARRAY[id]) FROM flights",
        "SELECT ('{1,2}'::integer[])[1][1]",
        "SELECT ('{1,2}'::integer[])[1:2][1]",
        "SELECT 1 = ANY('{{1,2}}')",
        "SELECT '{\"a\": 1}'::jsonb #> '{{a}}'",
    ],
)
def test_a_statement(asked: Asked, statement: str) -> None:
    check(partial(asked.rows, statement), *DIMENSIONS)


@pytest.mark.parametrize(
    ("kind", "value"),
    [("integer[]", [[1, 2]]), ("integer[]", "[[1,2]]"), ("text[]", [["a"], ["b"]])],
)
def test_a_value_of_a_program_or_a_request(kind: str, value: Any) -> None:
    check(partial(to_storage(parse_type(kind)), value), *DIMENSIONS)


@pytest.mark.parametrize(
    ("form", "data"), [(TEXT, b"{{1},{2}}"), (BINARY, in_binary((1, 1), (1, 1)))]
)
def test_a_parameter(form: int, data: bytes) -> None:
    check(partial(make_decoder(INTEGERS, form, UTC), data), *DIMENSIONS)


def test_a_line_of_copy() -> None:
    check(partial(copied, b"{{1},{2}}\n"), *DIMENSIONS)
    check(partial(copied, b"[0:0]={1}\n"), *BOUNDS)


@pytest.mark.parametrize(
    "text", ["ARRAY[[id]] IS NULL", "(ARRAY[id])[1][1] = 1", "ARRAY[[1]]::integer[] = ARRAY[id]"]
)
def test_an_expression_over_a_row(text: str) -> None:
    check(partial(compile_expression, text, FLIGHTS), *DIMENSIONS)


def test_a_column() -> None:
    check(partial(parse_ddl, "CREATE TABLE t (a integer[][])"), *DIMENSIONS)


def test_bounds_in_a_text_and_in_binary(asked: Asked) -> None:
    decode = make_decoder(INTEGERS, BINARY, UTC)
    assert decode(in_binary((1, 1))) == "[5]"
    check(partial(decode, in_binary((1, 0))), *BOUNDS)
    check(partial(asked.rows, "SELECT '[0:1]={1,2}'::integer[]"), *BOUNDS)


@pytest.mark.parametrize(
    ("count", "error"), [(-1, InvalidBinary), (ELEMENTS_MAX + 1, RequestTooLarge)]
)
def test_a_number_of_elements_that_can_not_be(count: int, error: type[Exception]) -> None:
    with pytest.raises(error):
        make_decoder(INTEGERS, BINARY, UTC)(in_binary((count, 1)))
