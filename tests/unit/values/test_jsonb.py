"""The storage form of jsonb: PostgreSQL's own text, one for each value."""

from __future__ import annotations

import tracemalloc
from decimal import Decimal
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from leasehold.model.errors import InvalidText, OutOfRange, UntranslatableCharacter
from leasehold.values.jsonb import (
    NESTING_MAX,
    is_stored_form,
    ordered_form,
    stored_form,
    text_of,
    value_of,
)
from leasehold.values.storage import to_storage
from leasehold.values.types import Type

TEXTS = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"))
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | TEXTS,
    lambda inner: st.lists(inner) | st.dictionaries(st.text("abc"), inner),
)


@given(JSON)
def test_one_text_for_each_value(value: Any) -> None:
    stored = text_of(value)
    assert stored_form(stored) == stored
    assert value_of(stored) == value
    assert is_stored_form(stored)


@pytest.mark.parametrize(
    ("text", "stored"),
    [
        ('{"bb":1,"a":2,"c":3}', '{"a": 2, "c": 3, "bb": 1}'),
        ('{"é":1,"zz":2,"b":0}', '{"b": 0, "zz": 2, "é": 1}'),
        ('{"a":1,"a":2}', '{"a": 2}'),
        ("[1.50, 1e2, 1.5e-3, -0, -0.0]", "[1.50, 100, 0.0015, 0, 0.0]"),
        (' "a\\u0041\\n\\u0001\\/" ', '"aA\\n\\u0001/"'),
        ("null", "null"),
        ('"\\ud83d\\ude00"', '"😀"'),
        ("[]", "[]"),
        ("{}", "{}"),
    ],
)
def test_stored_form(text: str, stored: str) -> None:
    assert stored_form(text) == stored


@pytest.mark.parametrize(
    "text",
    ["", "{", "[1,]", "{'a':1}", "NaN", "01", "1.", '"\n"', '"\\ud83d"', "[1] 2", "é"],
)
def test_bad_text(text: str) -> None:
    with pytest.raises(InvalidText):
        stored_form(text)


def test_limits() -> None:
    with pytest.raises(UntranslatableCharacter):
        stored_form('"\\u0000"')
    with pytest.raises(OutOfRange):
        stored_form("[" * (NESTING_MAX + 2) + "]" * (NESTING_MAX + 2))
    with pytest.raises(OutOfRange):
        stored_form("[" * 50_000 + "]" * 50_000)
    with pytest.raises(OutOfRange):
        stored_form("1e200000")


@pytest.mark.parametrize("number", ["1.0000000000000000e-20000000", "1e-16384", "1e20000000"])
def test_zeros_that_no_numeric_has_are_never_written(number: str) -> None:
    """Ten characters may say a billion of zeros."""
    tracemalloc.start()
    with pytest.raises(OutOfRange, match="overflows numeric"):
        text_of({"a": [Decimal(number)]})
    _, most = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert most < 1_000_000


def test_whole_numbers_have_as_many_digits_as_numeric() -> None:
    """Python itself writes an int of at most 4,300."""
    assert text_of(10**5_000) == "1" + "0" * 5_000
    with pytest.raises(OutOfRange):
        text_of(10**131_073)


def test_objects_are_nested_as_deeply_as_arrays() -> None:
    """Python's own limit of depth counts calls: there is one a level."""
    deep = '{"a": ' * NESTING_MAX + "1" + "}" * NESTING_MAX
    assert stored_form(deep) == deep


def test_values_of_python_are_taken_as_they_are() -> None:
    store = to_storage(Type("jsonb"))
    assert store({"b": [1, 2.5, None]}) == '{"b": [1, 2.5, null]}'
    assert store('"text"') == '"text"'
    assert store(True) == "true"
    with pytest.raises(InvalidText):
        store({1: 2})


ASCENDING = (
    *("[]", "null", '"B"', '"a"', '"aa"', '"b"', "-10.5", "-1", "0", "0.001", "1", "2", "10"),
    *("false", "true", "[null]", '["z"]', "[1]", "[[]]", "[{}]", "[1, 0]", "[[1, 2], 0]", "{}"),
    *('{"aa": 5}', '{"b": 1}', '{"b": 2}', '{"b": [1]}', '{"a": 2, "b": 1}', '{"b": 1, "aa": 9}'),
)
"""As PostgreSQL 15 orders them."""


def test_order() -> None:
    """Goal: bytes are ordered as PostgreSQL orders the values."""
    forms = [ordered_form(text) for text in ASCENDING]
    assert [ASCENDING[forms.index(form)] for form in sorted(forms)] == list(ASCENDING)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("[1.0]", "[1]"),
        ('{"a": [1.50, {"b": 100}]}', '{"a": [1.5, {"b": 100.000}]}'),
        ("-0.0", "0"),
        ("1e2", "100"),
    ],
)
def test_numbers_are_equal_by_value(one: str, other: str) -> None:
    """Goal: zeros behind the point make no other value, though each is shown as it was given."""
    assert ordered_form(stored_form(one)) == ordered_form(stored_form(other))


@given(JSON, JSON)
def test_other_values_have_other_bytes(one: Any, other: Any) -> None:
    """Goal: no two values that differ are found equal."""
    same = text_of(one) == text_of(other)
    assert (ordered_form(text_of(one)) == ordered_form(text_of(other))) == same
