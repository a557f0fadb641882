"""A follower reads a numeric off the wire without the library."""

from __future__ import annotations

from decimal import Decimal

from hypothesis import example, given
from hypothesis import strategies as st

from leasehold.values.numeric import round_number, stored_form, text_of
from services.examples.decoding import numeric_text

NUMBERS = st.builds(
    lambda digits, exponent: Decimal(digits).scaleb(exponent),
    st.integers(-(10**20), 10**20),
    st.integers(-50, 50),
)


@given(NUMBERS, st.integers(0, 60))
@example(Decimal("NaN"), 0)
@example(Decimal("-Infinity"), 0)
def test_numeric_text(number: Decimal, scale: int) -> None:
    stored = stored_form(round_number(number, scale))
    assert numeric_text(stored) == text_of(stored)
