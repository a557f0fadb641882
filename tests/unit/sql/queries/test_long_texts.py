"""Texts on their way through a query may be longer than what a column holds."""

from __future__ import annotations

from typing import Any

import pytest

from leasehold.model.errors import RequestTooLarge, TooLong
from leasehold.sql.functions.registry import function_for, operator_for
from leasehold.sql.functions.texts.text import MADE_CHARACTERS_MAX
from leasehold.values.types import TEXT_BYTES_MAX, Type
from tests.support.sql.asked import Asked

TEXT, INTEGER = Type("text"), Type("integer")


@pytest.mark.parametrize(
    ("expression", "wanted"),
    [
        ("length(repeat('x', 5000000))", 5_000_000),
        ("length(lpad('a', 3000000)) + length(rpad('a', 3000000, 'xyz'))", 6_000_000),
        ("length(replace(repeat('a', 1000000), 'a', 'bcd'))", 3_000_000),
        ("length(repeat('x', 5000000) || repeat('y', 5000000))", 10_000_000),
        ("length(repeat('x', 500000) || 1)", 500_001),
        ("length(split_part(repeat('a,', 2000000), ',', 1000000))", 1),
        (
            "(SELECT length(string_agg(repeat('x', 200000), '')) FROM generate_series(1, 3))",
            600_000,
        ),
    ],
)
def test_long_texts_are_made(asked: Asked, expression: str, wanted: Any) -> None:
    """Goal: an intermediate value, or an answer, may have some million characters."""
    assert asked.rows(f"SELECT {expression}") == [(wanted,)]


@pytest.mark.parametrize(
    ("expression", "error"),
    [
        ("repeat('x', {})", RequestTooLarge),
        ("lpad('x', {})", RequestTooLarge),
        ("repeat('x', {} - 1) || 'xx'", TooLong),
    ],
)
def test_they_have_a_limit(asked: Asked, expression: str, error: type[Exception]) -> None:
    """Goal: memory is bounded all the same."""
    with pytest.raises(error):
        asked.rows(f"SELECT length({expression.format(MADE_CHARACTERS_MAX + 1)})")


def test_what_is_kept_has_the_limit_of_a_column() -> None:
    """Goal: a DEFAULT, a CHECK or an index means the same on every node and for ever."""
    repeat = function_for("repeat", [TEXT, INTEGER])
    with pytest.raises(RequestTooLarge):
        repeat.compute("x", TEXT_BYTES_MAX + 1)
    assert len(repeat.in_queries("x", TEXT_BYTES_MAX + 1)) == TEXT_BYTES_MAX + 1
    with pytest.raises(TooLong):
        operator_for("||", TEXT, TEXT).compute("x" * TEXT_BYTES_MAX, "x")
