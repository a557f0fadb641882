"""Exact numbers of many digits: right to the last one, and never seconds in one call, which nothing
can interrupt."""

from __future__ import annotations

import math
from decimal import Decimal
from random import Random

import pytest

from leasehold.model.errors import Refused, TooComplex
from leasehold.sql.functions.registry import function_for, operator_for
from leasehold.values.numeric import EXACT, decimal_of, stored_form, text_of
from leasehold.values.types import Type

NUMERIC = Type("numeric")
SEED = 20_261_128
MANY_DIGITS = "1.1067321329971346857536702099604472766909"
"""A base of more than 28 digits counts with all of them."""
LONG = "7" * 131_000 + "." + "3" * 16_383
HALF = "7" * 65_000 + "." + "3" * 16_383
FRACTION = "0." + "37" * 8_191 + "1"


def computed(name: str, *texts: str) -> Decimal:
    given = [stored_form(Decimal(text)) for text in texts]
    if name in "+-*/%^":
        return decimal_of(operator_for(name, NUMERIC, NUMERIC).compute(*given))
    return decimal_of(function_for(name, [NUMERIC] * len(given)).compute(*given))


@pytest.mark.parametrize(
    ("name", "texts", "wanted"),
    [
        ("^", ("1.2248560142083874183048964981218975407851", "0.5"), MANY_DIGITS),
        ("^", ("2", "1e-16000"), "1." + "0" * 1_000),
        ("^", ("2", "0.5"), "1.4142135623730950"),
        ("^", ("-1.5", "3"), "-3.3750000000000000"),
        ("exp", ("1",), "2.7182818284590452"),
        ("exp", ("-3.25",), "0.03877420783172201"),
        (
            "ln",
            ("1.0000000000000000000000001",),
            "0.00000000000000000000000010000000000000000",
        ),
        ("log", ("2", "64"), "6.0000000000000000"),
        ("sqrt", ("2",), "1.414213562373095"),
        ("/", ("-1", "3"), "-0.33333333333333333333"),
        ("%", ("-7.5", "2"), "-1.5"),
        ("%", ("-4", "2"), "0"),
        ("div", ("-7.9", "2"), "-3"),
        ("gcd", ("0.12", "0.018"), "0.006"),
        ("factorial", ("25",), "15511210043330985984000000"),
    ],
)
def test_digits_are_those_of_postgresql(name: str, texts: tuple[str, ...], wanted: str) -> None:
    """Goal: the values of PostgreSQL 15, to the last digit that it shows."""
    if name == "factorial":
        assert text_of(function_for(name, [Type("bigint")]).compute(int(texts[0]))) == wanted
        return
    found = computed(name, *texts)
    assert format(found, "f") == wanted


@pytest.mark.parametrize(
    ("name", "texts"),
    [
        ("/", (LONG, HALF)),
        ("%", (LONG, HALF)),
        ("div", (LONG, HALF)),
        ("sqrt", (LONG,)),
        ("ln", (LONG,)),
        ("log", (LONG,)),
        ("log", (FRACTION, LONG)),
        ("exp", (FRACTION,)),
        ("exp", ("5999.9",)),
        ("^", ("2", "1e-16000")),
        ("^", ("7" * 1_000, "131")),
        ("^", (FRACTION, FRACTION)),
        ("^", ("7" * 131_000, "1e-16000")),
        ("*", (LONG, "0." + "7" * 16_000)),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_long_arguments_are_computed(name: str, texts: tuple[str, ...]) -> None:
    """Goal: each of them is answered; one took 70 s, others a second and more."""
    assert computed(name, *texts).is_finite()


@pytest.mark.parametrize("name", ["gcd", "lcm"])
def test_divisors_of_long_numbers_are_refused(name: str) -> None:
    """Goal: what takes the square of its digits is not begun."""
    with pytest.raises(TooComplex):
        computed(name, LONG, HALF)


def test_logarithms_to_a_base_next_to_one_are_refused() -> None:
    """Goal: a logarithm of 17,000 digits, which is minutes, is not begun."""
    with pytest.raises(TooComplex):
        computed("log", "1." + "0" * 16_000 + "1", LONG)


def test_long_quotients_and_roots_are_exact() -> None:
    """Goal: quotient, remainder and root are what whole numbers say they are."""
    random = Random(SEED)
    for _ in range(40):
        size = random.choice([30, 300, 3_000, 30_000])
        left = random.randrange(10**size)
        right = random.randrange(1, 10 ** random.randrange(1, size))
        given = str(Decimal(left)), str(Decimal(right))
        assert computed("div", *given) == Decimal(left // right), SEED
        assert computed("%", *given) == Decimal(left % right), SEED
        root = computed("sqrt", given[0])
        shown = -int(root.as_tuple().exponent)
        doubled = math.isqrt(left * 4 * 100**shown)
        assert root.scaleb(shown, context=EXACT) == Decimal((doubled + 1) // 2), SEED


def test_refuses_as_postgresql_does() -> None:
    """Goal: what has no room is 22003, before it is computed."""
    for name, texts in [("exp", ("6000",)), ("^", ("1.5", "2000000000")), ("^", (LONG, "2"))]:
        with pytest.raises(Refused) as caught:
            computed(name, *texts)
        assert caught.value.sqlstate == "22003"
