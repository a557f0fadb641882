"""A call that nothing could stop for long is refused beforehand, a loop of ours is stopped inside,
and a result that would be too large is refused before it is made."""

from __future__ import annotations

import tracemalloc
from decimal import Decimal
from typing import Any, NamedTuple

import pytest

from leasehold.model.budget import CALL_WORK_MAX, Budget, spending
from leasehold.model.errors import (
    OutOfMemory,
    QueryCanceled,
    Refused,
    RequestTooLarge,
    TooComplex,
    TooLong,
)
from leasehold.sql.functions.registry import (
    aggregate_for,
    cast_for,
    function_for,
    operator_for,
    set_for,
)
from leasehold.values.arrays import stored_form as array_form
from leasehold.values.jsonb import stored_form as json_form
from leasehold.values.numeric import stored_form
from leasehold.values.storage import to_storage
from leasehold.values.types import TEXT_BYTES_MAX, Type, array_of

TEXT, NUMERIC, JSONB, INTEGER, BYTEA = map(Type, ("text", "numeric", "jsonb", "integer", "bytea"))
BIGINT, TIMESTAMP = Type("bigint"), Type("timestamp")
TEXTS, NUMBERS, JSONS = map(array_of, (TEXT, NUMERIC, JSONB))
PLENTY = 1 << 60
LONG = "a" * TEXT_BYTES_MAX
MADE = 16 << 20
MEMORY_MAX = 400 << 20


def number(text: str) -> str:
    return stored_form(Decimal(text))


def array_of_many(value: Any) -> str:
    return array_form([value] * 100_000)


class Call(NamedTuple):
    """A call in a query. `name` "cast": of the one argument to the last type of `kinds`."""

    name: str
    kinds: tuple[Type, ...]
    values: tuple[Any, ...]

    def compute(self) -> Any:
        if self.name == "cast":
            cast = cast_for(self.kinds[0], self.kinds[1], "explicit")
            assert cast is not None
            return cast.in_queries(*self.values)
        if self.name == "generate_series":
            return set_for(self.name, self.kinds).in_queries(*self.values)
        if self.name in ("=", "<", "@>", "~~"):
            return operator_for(self.name, *self.kinds).in_queries(*self.values)
        return function_for(self.name, self.kinds).in_queries(*self.values)


def call(name: str, *kinds_and_values: Any) -> Call:
    half = len(kinds_and_values) - len(kinds_and_values) // 2
    return Call(name, kinds_and_values[:half], kinds_and_values[half:])


# ------------------------------------------------------------------ work

CLOSE_TO_ONE = number("1." + "0001" * 4_000)
GCD_LEFT, GCD_RIGHT = number("9" * 16_000 + "." + "7" * 16_383), number("8" * 16_383 + ".3")
TOO_MUCH = {
    "a power by squaring": call("power", NUMERIC, NUMERIC, CLOSE_TO_ONE, number("2147483647")),
    "its sign": call("^", NUMERIC, NUMERIC, number("9." + "9" * 16_000), number("130000")),
    "a common multiple": call("lcm", NUMERIC, NUMERIC, GCD_LEFT, GCD_RIGHT),
}


@pytest.mark.parametrize("name", TOO_MUCH)
def test_a_call_that_nothing_could_stop_is_refused(name: str) -> None:
    """Goal: 54001 in a sentence, the same on each node, and no tenth of a second without others.
    No budget is open, as where a node applies the log."""
    with pytest.raises(TooComplex, match="in which nothing could stop it"):
        TOO_MUCH[name].compute()


NINES = number("9" * 131_072)
CHARGED = {
    "product": (call("*", NUMERIC, NUMERIC, number("9" * 60_000), number("7" * 60_000)), 300_000),
    "quotient": (call("/", NUMERIC, NUMERIC, NINES, number("7" * 60_000)), 1_500_000),
    "rest": (call("%", NUMERIC, NUMERIC, NINES, number("7" * 60_000)), 1_500_000),
    "whole quotient": (call("div", NUMERIC, NUMERIC, NINES, number("7" * 60_000)), 1_500_000),
    "root": (call("sqrt", NUMERIC, NINES), 6_000_000),
    "logarithm": (call("ln", NUMERIC, number("2." + "3" * 1_000)), 900_000),
    "e to a power": (call("exp", NUMERIC, number("5999." + "3" * 900)), 700_000),
    "greatest divisor": (call("gcd", NUMERIC, NUMERIC, GCD_LEFT, GCD_RIGHT), 3_000_000),
    "factorial": (call("factorial", BIGINT, 32_000), 2_000_000),
    "JSON": (call("=", JSONB, JSONB, json_form("[1" + ",1" * 80_000 + "]"), "1"), 10_000_000),
    "a pattern": (call("~~", TEXT, TEXT, LONG, "%a_b" * 60_000), 5_000_000),
    "a template": (call("to_char", TIMESTAMP, TEXT, 0, "YYYY " * 1_600), 1_000_000),
}


@pytest.mark.parametrize("name", CHARGED)
def test_what_takes_milliseconds_is_charged(name: str) -> None:
    """Goal: of what takes more than 10 ms somebody is told how long."""
    made, least = CHARGED[name]
    spent = 0

    class Counting(Budget):
        def charge(self, work: int) -> None:
            nonlocal spent
            assert work <= CALL_WORK_MAX
            spent += work

    with spending(Counting(PLENTY)):
        made.compute()
    assert spent >= least


STOPPED = {
    "JSON compared": call("<", JSONB, JSONB, *[json_form("[1" + ",1" * 80_000 + "]")] * 2),
    "JSON contained": call("@>", JSONB, JSONB, *[json_form("[[1]" + ",[1]" * 40_000 + "]")] * 2),
    "a LIKE by bits": call("~~", TEXT, TEXT, "a" * 200_000, "%" + "a_" * 60_000 + "b%"),
    "a long text's letters": call("initcap", TEXT, "aB " * (MADE // 3)),
    "other long letters": call("upper", TEXT, "é" * MADE),
    "a long text translated": call("translate", TEXT, TEXT, TEXT, "a" * MADE, "a", "b"),
    "a long text cut": call("btrim", TEXT, TEXT, "a" * MADE, "a"),
    "parts of a long text": call(
        "split_part", TEXT, TEXT, INTEGER, "a," * 4_000_000, ",", 3_999_999
    ),
    "a like_escape": call("like_escape", TEXT, TEXT, LONG, "$"),
    "elements shown": call("cast", NUMBERS, TEXT, array_of_many(number("1.5"))),
    "elements cast": call("cast", NUMBERS, TEXTS, array_of_many(number("1.5"))),
    "elements read": call("cast", TEXT, NUMBERS, "{1" + ",1" * 99_000 + "}"),
    "elements in quotes": call("cast", TEXT, TEXTS, '{"a"' + ',"a"' * 60_000 + "}"),
    "elements compared": call("array_position", JSONS, JSONB, array_of_many("[1, 2]"), "[1, 3]"),
    "arrays compared": call("=", NUMBERS, NUMBERS, *[array_of_many(number("1.5"))] * 2),
    "a series": call("generate_series", NUMERIC, NUMERIC, number("1"), number("99999")),
    "specifiers": call("format", TEXT, "%%" * 100_000),
    "bytes in octal": call("encode", BYTEA, TEXT, b"\xff" * TEXT_BYTES_MAX, "escape"),
}


@pytest.mark.parametrize("name", STOPPED)
def test_a_loop_of_ours_is_stopped_inside(name: str) -> None:
    """Goal: statement_timeout and cancel hold inside of a call."""
    looks = 0

    def look() -> None:
        nonlocal looks
        looks += 1
        if looks == 3:
            raise QueryCanceled("its time is over")

    with spending(Budget(PLENTY, look=look)), pytest.raises(QueryCanceled):
        STOPPED[name].compute()
    assert looks == 3


# ------------------------------------------------------------------ memory

HUGE = number("1e131071")
TOO_LARGE = {
    "widths": call("format", TEXT, TEXT, "%1$262144s" * 20_000, "x"),
    "separators": call("array_to_string", TEXTS, TEXT, array_of_many("a"), LONG),
    "words for NULL": call("array_to_string", TEXTS, TEXT, TEXT, array_of_many(None), ",", LONG),
    "elements put": call("array_replace", TEXTS, TEXT, TEXT, array_of_many("a"), "a", LONG),
    "numbers shown": call("cast", NUMBERS, TEXT, array_of_many(HUGE)),
    "numbers cast": call("cast", NUMBERS, TEXTS, array_of_many(HUGE)),
    "numbers joined": call("array_to_string", NUMBERS, TEXT, array_of_many(HUGE), ","),
    "numbers for JSON": call("to_jsonb", NUMBERS, array_of_many(HUGE)),
    "numbers of JSON": call("cast", TEXT, JSONB, "[1e131071" + ",1e131071" * 20_000 + "]"),
    "a series": call("generate_series", NUMERIC, NUMERIC, HUGE, number("9e131071")),
    "levels": call("jsonb_pretty", JSONB, "[" * 400 + "1, " * 20_000 + "1" + "]" * 400),
    "parts of a match": call(
        "regexp_replace", TEXT, TEXT, TEXT, LONG, "a+", "\\&" * (TEXT_BYTES_MAX // 2)
    ),
    "pieces of a match": call("regexp_split_to_array", TEXT, TEXT, "a," * 110_000, ","),
    "characters": call("string_to_array", TEXT, TEXT, "a" * MADE, None),
    "words": call("string_to_array", TEXT, TEXT, "a," * (MADE // 2), ","),
    "elements": call("cast", TEXT, TEXTS, "{a" + ",a" * (MADE // 2 - 2) + "}"),
    "a pattern of LIKE": call("~~", TEXT, TEXT, "a", "%_" * (MADE // 2)),
    "a pattern of SIMILAR TO": call("similar_to_escape", TEXT, "a" * MADE),
    "a template": call("to_char", TIMESTAMP, TEXT, 0, "J" * TEXT_BYTES_MAX),
    "octal digits": call("encode", BYTEA, TEXT, b"\xff" * (8 << 20), "escape"),
    "a text of bytes": call("cast", TEXT, BYTEA, "a" * MADE),
}


@pytest.mark.parametrize("name", TOO_LARGE)
def test_a_result_that_is_far_larger_than_its_arguments_is_not_made(name: str) -> None:
    """Goal: a statement of some hundred bytes takes no gigabytes, here or on any node."""
    tracemalloc.start()
    try:
        with pytest.raises((RequestTooLarge, TooLong, TooComplex)):
            TOO_LARGE[name].compute()
        _, most = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert most < MEMORY_MAX


@pytest.mark.parametrize(
    ("name", "kinds", "values"),
    [
        ("string_agg", (BYTEA, BYTEA), (b"a" * (1 << 20), b"")),
        ("string_agg", (TEXT, TEXT), ("a" * (1 << 20), "")),
        ("jsonb_agg", (NUMERIC,), (HUGE,)),
    ],
)
def test_an_aggregate_does_not_put_together_what_is_too_large(
    name: str, kinds: tuple[Type, ...], values: tuple[Any, ...]
) -> None:
    aggregate = aggregate_for(name, kinds)

    def run() -> Any:
        state = aggregate.start()
        for _ in range(20):
            state = aggregate.step(state, *values)
        return aggregate.finish(state)

    with pytest.raises(TooLong):
        run()


# ------------------------------------------------------------------ what stays as it was


def test_short_arguments_are_not_charged() -> None:
    """Goal: an ordinary call pays nothing: what is counted begins at a thousand characters."""

    class Refusing(Budget):
        def charge(self, work: int) -> None:
            raise OutOfMemory("charged")

    calls = (
        call("*", NUMERIC, NUMERIC, number("1.5"), number("2.25")),
        call("/", NUMERIC, NUMERIC, number("1.5"), number("2.25")),
        call("sqrt", NUMERIC, number("2")),
        call("power", NUMERIC, NUMERIC, number("1.05"), number("30")),
        call("=", JSONB, JSONB, '{"a": [1, 2]}', '{"a": [1, 2]}'),
        call("jsonb_set", JSONB, TEXT, JSONB, '{"a": [1, 2]}', "{a,0}", "5"),
        call("array_position", TEXTS, TEXT, array_form(["a", "b"]), "b"),
        call("~~", TEXT, TEXT, "abcdef", "a%d_f"),
        call("initcap", TEXT, "hello world"),
        call("format", TEXT, TEXT, "%s and %%", "x"),
        call("translate", TEXT, TEXT, TEXT, "abc", "b", "x"),
        call("to_char", TIMESTAMP, TEXT, 0, "YYYY-MM-DD"),
        call("cast", NUMBERS, TEXT, array_form([number("1.5")])),
    )
    with spending(Refusing(PLENTY)):
        for each in calls:
            assert each.compute() is not None


@pytest.mark.parametrize(
    ("text", "stored"),
    [("1e3", "1000"), ("0e5", "0"), ("-0.00e1", "0.0"), ("1.50", "1.50"), ("[1E+2]", "[100]")],
)
def test_numbers_of_json_lose_their_exponent(text: str, stored: str) -> None:
    assert to_storage(JSONB)(text) == stored


@pytest.mark.parametrize("text", ["1e131072", "1e-16384", "1e99999999999999999999", "-1e999999999"])
def test_numbers_of_json_that_numeric_has_no_room_for_are_refused(text: str) -> None:
    with pytest.raises(Refused):
        to_storage(JSONB)(text)
