"""The storage form of numeric: ordered by memcmp as the numbers are, nothing is lost.

Method: random decimals of every size against Python's own order, and texts that a damaged store
might hold.
"""

from __future__ import annotations

from decimal import Decimal
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from leasehold.model.errors import InvalidText, OutOfRange, Refused
from leasehold.values.numeric import (
    SCALE_MAX,
    decimal_of,
    decimal_of_text,
    fit_number,
    is_stored_form,
    round_number,
    sort_key,
    stored_form,
    text_of,
    words_of,
)
from leasehold.values.storage import to_storage
from leasehold.values.types import Type, parse_type

DIGITS = st.integers(-(10**25), 10**25)
NUMBERS = st.builds(
    lambda digits, exponent: Decimal(digits).scaleb(exponent),
    st.one_of(DIGITS, st.integers(-99, 99)),
    st.integers(-60, 60),
).map(lambda number: number or Decimal(0))
SPECIAL = st.sampled_from([Decimal("Infinity"), Decimal("-Infinity")])


@given(st.one_of(NUMBERS, SPECIAL), st.one_of(NUMBERS, SPECIAL))
def test_memcmp_order_is_numeric_order(left: Decimal, right: Decimal) -> None:
    a, b = stored_form(left), stored_form(right)
    assert (left < right) == (sort_key(a).encode() < sort_key(b).encode())
    assert (left == right) == (sort_key(a) == sort_key(b))
    if left < right:
        assert a.encode() < b.encode(), "the whole text is in order, too"


@given(st.one_of(NUMBERS, SPECIAL))
def test_nan_is_greater_than_all(number: Decimal) -> None:
    assert stored_form(Decimal("NaN")) > stored_form(number)


@given(NUMBERS, st.integers(0, 70))
def test_round_trip_keeps_the_scale(number: Decimal, scale: int) -> None:
    shown = round_number(number, scale)
    stored = stored_form(shown)
    assert decimal_of(stored).as_tuple() == shown.as_tuple()
    assert text_of(stored) == format(shown, "f")
    assert is_stored_form(stored)
    assert stored_form(decimal_of_text(text_of(stored))) == stored


@pytest.mark.parametrize(
    ("text", "stored"),
    [
        ("0", "C0"),
        ("-0.00", "C2"),
        ("1.50", "DQ15 2"),
        ("-1.5", "BMmi~1"),
        ("100", "DS1 0"),
        ("1e50", "D~1000511 0"),
        ("NaN", "F0"),
        ("inf", "E0"),
        ("-Infinity", "A0"),
    ],
)
def test_stored_form_stays_what_it_is(text: str, stored: str) -> None:
    """It lies in logs and stores."""
    assert to_storage(Type("numeric"))(text) == stored


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        *((" 1.5 ", "1.5"), ("+.5", "0.5"), ("5.", "5"), ("1.50e2", "150"), ("1.5e-2", "0.015")),
        *(("1e3", "1000"), ("-nan", None), ("--1", None), ("1_0", None), ("", None), ("٣", None)),
        *(("0x10", None), ("1e", None), (".", None), ("1e-3", "0.001")),
    ],
)
def test_text(text: str, shown: str | None) -> None:
    if shown is None:
        with pytest.raises(InvalidText):
            decimal_of_text(text)
    else:
        assert text_of(stored_form(decimal_of_text(text))) == shown


def test_limits() -> None:
    assert len(text_of(stored_form(decimal_of_text("1e131071")))) == 131_072
    assert text_of(stored_form(decimal_of_text(f"1e-{SCALE_MAX}"))) == f"0.{'0' * (SCALE_MAX - 1)}1"
    for text in ("1e131072", "-1e999999", f"1e-{SCALE_MAX + 1}"):
        with pytest.raises(OutOfRange):
            decimal_of_text(text)
    with pytest.raises(OutOfRange):
        stored_form(Decimal("1e131072"))


@pytest.mark.parametrize(
    ("kind", "value", "shown"),
    [
        ("numeric(5,2)", "123.455", "123.46"),
        ("numeric(5,2)", "-123.455", "-123.46"),
        ("numeric(5,2)", 1, "1.00"),
        ("numeric(5,2)", 0.1, "0.10"),
        ("numeric(5,2)", "999.995", None),
        ("numeric(5,2)", "NaN", "NaN"),
        ("numeric(5,2)", "Infinity", None),
        ("numeric(3)", "2.5", "3"),
        ("numeric(2,-3)", "12345", "12000"),
        ("numeric(2,-3)", "99500", None),
        ("numeric(2,4)", "0.00123", "0.0012"),
        ("numeric(2,4)", "0.01", None),
        ("numeric", 0.1, "0.1"),
        ("numeric", Decimal("1E+3"), "1000"),
    ],
)
def test_fitted(kind: str, value: Any, shown: str | None) -> None:
    store = to_storage(parse_type(kind))
    if shown is None:
        with pytest.raises(OutOfRange):
            store(value)
    else:
        assert text_of(store(value)) == shown


def test_other_values_are_refused() -> None:
    values: tuple[Any, ...] = (True, b"1", [], "one")
    for value in values:
        with pytest.raises(Refused):
            to_storage(Type("numeric"))(value)


@pytest.mark.parametrize("bad", ["", "1", "C", "DQ15 ", "DQ150 2", "DQ015 2", "DQ15 0", "XQ1 0", 5])
def test_a_damaged_form_is_found(bad: Any) -> None:
    assert not is_stored_form(bad)


@pytest.mark.parametrize("text", ["0", "7", "700", "-12.5", "0.001", "1e50", "-1e-60", "NaN"])
def test_words_of_a_key(text: str) -> None:
    stored = stored_form(decimal_of_text(text))
    assert words_of(sort_key(stored)) == text_of(stored) == words_of(stored)


def test_fitted_without_a_precision_changes_nothing() -> None:
    assert fit_number(Decimal("1.50"), None, None).as_tuple() == Decimal("1.50").as_tuple()
