"""Doubles: every order that a store, Python or an array puts them in is PostgreSQL's, NaN last.

Method: storage values, NaN often among them, in each of the orders, held to the order of the
numbers with NaN above them all.
"""

from __future__ import annotations

import math

import apsw
import pytest
from hypothesis import given
from hypothesis import strategies as st

from leasehold.model.keys import order_of as key_order
from leasehold.values.arrays import stored_form as array_form
from leasehold.values.doubles import (
    NAN,
    Stored,
    number_of,
    order_of,
    over_floats,
    stored_form,
)
from leasehold.values.types import Type, array_of, order_key_of

DOUBLE = Type("double precision")
STORED = st.floats(allow_nan=False) | st.just(NAN)
SQLITE = apsw.Connection("")


def compared(left: Stored, right: Stored) -> int:
    """-1, 0 or 1, as PostgreSQL compares doubles."""
    if NAN in (left, right):
        return (left == NAN) - (right == NAN)
    one, other = number_of(left), number_of(right)
    return (one > other) - (one < other)


@given(STORED, STORED)
def test_each_order_is_that_of_the_numbers_with_nan_above_them(left: Stored, right: Stored) -> None:
    wanted = compared(left, right)
    (in_sqlite,) = SQLITE.execute("SELECT (?1 > ?2) - (?1 < ?2)", (left, right)).fetchall()
    array_key = order_key_of(array_of(DOUBLE))
    assert array_key is not None
    for one, other in (
        (order_of(left), order_of(right)),
        (key_order((1, left)), key_order((1, right))),
        (array_key(array_form([1.5, left])), array_key(array_form([1.5, right]))),
    ):
        assert (one > other) - (one < other) == in_sqlite[0] == wanted  # type: ignore[operator]
    assert (order_of(left) == order_of(right)) == (wanted == 0)


@given(st.floats())
def test_a_number_comes_back(number: float) -> None:
    back = number_of(stored_form(number))
    assert back == number or (math.isnan(back) and math.isnan(number))


@pytest.mark.parametrize(
    ("given", "made"),
    [((1.5, NAN), NAN), ((NAN, 2.0), NAN), ((math.inf, -math.inf), NAN), ((1.0, 2.0), 3.0)],
)
def test_what_computes_with_floats_takes_and_gives_storage_values(
    given: tuple[Stored, Stored], made: Stored
) -> None:
    def added(left: float, right: float) -> float:
        assert type(left) is type(right) is float
        return left + right

    assert over_floats(added)(*given) == made
