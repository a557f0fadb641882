"""A key that two rows have is told as PostgreSQL tells it."""

from __future__ import annotations

import pytest

from leasehold.rows.duplicated_keys import read_detail, tell_duplicated


@pytest.mark.parametrize(
    ("names", "values", "detail"),
    [
        ("a", "1", "Key (a)=(1) is duplicated."),
        ("a, b", "1, x", "Key (a, b)=(1, x) is duplicated."),
        ("lower(a)", "(x) = (y)", "Key (lower(a))=((x) = (y)) is duplicated."),
    ],
)
def test_the_detail_names_the_key(names: str, values: str, detail: str) -> None:
    assert read_detail(tell_duplicated("u", names, values)) == detail


@pytest.mark.parametrize(
    "words", ["", "check 'c' is not met", tell_duplicated("u", "a", "x" * 40)[:30], "a: (b) = (c)"]
)
def test_of_other_words_there_is_none(words: str) -> None:
    assert read_detail(words) == ""
