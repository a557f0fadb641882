"""Goal: a real is read and shown as PostgreSQL reads and shows it.

Method: texts with what a PostgreSQL shows of each; every real through its text.
"""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from leasehold.model.errors import OutOfRange
from leasehold.values.singles import fewest_digits, single_of
from leasehold.values.text_io import from_text, real_text
from leasehold.values.types import Type

REAL = Type("real")
SINGLES = st.floats(allow_nan=False, allow_infinity=False, width=32)


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        *(("0.1", "0.1"), ("123456", "123456"), ("1234567", "1.234567e+06"), ("-0", "-0")),
        *(("0.0001", "0.0001"), ("0.00001", "1e-05"), ("16777217", "1.6777216e+07")),
        *(("3.4028235e38", "3.4028235e+38"), ("1e-45", "1e-45"), ("NaN", "NaN")),
        ("1234570.75", "1.2345708e+06"),  # two texts are as near: the even one
        # Above the middle of two reals by less than a double tells.
        ("1.00000005960464477539062500000001", "1.0000001"),
        ("1.000000059604644775390625", "1"),
    ],
)
def test_a_text_is_shown_as_postgresql_shows_it(text: str, shown: str) -> None:
    stored = from_text(REAL, text)
    assert real_text(float(stored)) == shown


@pytest.mark.parametrize("text", ["1e39", "-3.5e38", "1e-46", "1e400"])
def test_a_number_without_room_is_refused(text: str) -> None:
    with pytest.raises(OutOfRange, match="out of range for type real"):
        from_text(REAL, text)


@given(SINGLES)
def test_the_digits_say_the_number(number: float) -> None:
    assert from_text(REAL, real_text(number)) == number
    assert single_of(fewest_digits(number)) == number
