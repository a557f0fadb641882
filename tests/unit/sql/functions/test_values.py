"""Functions, operators, casts and aggregates give what a real PostgreSQL 15 has given.

`value_cases.jsonl` was recorded by `tests/integration/postgres_compat/test_values_and_postgres.py`
(RECORD=1): a call in each line, and its answer as `value:<type>|<text>` or the SQLSTATE.
"""

from __future__ import annotations

import json
from decimal import Decimal
from hashlib import md5
from pathlib import Path

import pytest

from leasehold.model.errors import (
    AmbiguousFunction,
    FeatureNotSupported,
    MomentOutOfRange,
    OutOfRange,
    TooLong,
    UnknownFunction,
)
from leasehold.sql.functions.function import unchanged
from leasehold.sql.functions.numbers.arithmetic import quotient
from leasehold.sql.functions.registry import aggregate_for, cast_for, function_for, operator_for
from leasehold.sql.functions.resolution import common_type
from leasehold.values.types import Type
from tests.support.sql.value_expressions import Argument, Case, case_of, ours

LINES = (Path(__file__).parent / "value_cases.jsonl").read_text().splitlines()
INTEGER, BIGINT, NUMERIC, DOUBLE = map(Type, ("integer", "bigint", "numeric", "double precision"))
TEXT, VARCHAR, DATE = Type("text"), Type("varchar", 3), Type("date")


def test_what_postgresql_has_answered() -> None:
    """One test over all: a case each would take longer to name than to run."""
    differing = []
    for line in LINES:
        call, answer = json.loads(line)
        mine = ours(case_of(call))
        if mine != answer and not (mine.startswith("error:") and mine[:11] == answer):
            differing.append(f"{case_of(call).sql}: {answer!r}, not {mine!r}")
    assert len(LINES) > 800
    assert not differing, "\n".join(differing)


@pytest.mark.parametrize(
    ("sign", "left", "right", "arguments"),
    [
        ("+", INTEGER, BIGINT, (INTEGER, BIGINT)),
        ("+", INTEGER, NUMERIC, (NUMERIC, NUMERIC)),
        ("+", NUMERIC, DOUBLE, (DOUBLE, DOUBLE)),
        ("+", INTEGER, None, (INTEGER, INTEGER)),
        ("-", DATE, None, (DATE, DATE)),
        ("=", VARCHAR, None, (TEXT, TEXT)),
        ("=", VARCHAR, Type("char", 3), (Type("char"), Type("char"))),
        ("=", TEXT, Type("char", 3), (TEXT, TEXT)),
        ("=", None, None, (TEXT, TEXT)),
        ("||", INTEGER, None, (INTEGER, TEXT)),
        ("||", Type("jsonb"), None, (Type("jsonb"), Type("jsonb"))),
    ],
)
def test_which_operator_is_meant(
    sign: str, left: Type | None, right: Type | None, arguments: tuple[Type, ...]
) -> None:
    assert operator_for(sign, left, right).arguments == arguments


def test_none_or_more_than_one() -> None:
    with pytest.raises(UnknownFunction):
        operator_for("||", INTEGER, DOUBLE)
    with pytest.raises(UnknownFunction):
        function_for("no_such", [INTEGER])
    with pytest.raises(UnknownFunction):
        function_for("upper", [INTEGER])
    with pytest.raises(AmbiguousFunction):
        operator_for("+", None, None)
    with pytest.raises(UnknownFunction):
        aggregate_for("sum", (TEXT,))


def shown(name: str, *arguments: tuple[str | None, str], is_operator: bool = False) -> str:
    given = tuple(Argument(None if k is None else Type(k), text) for k, text in arguments)
    return ours(Case(name, given, is_operator)).partition("|")[2]


@pytest.mark.parametrize(
    ("left", "right", "between"),
    [
        ("2020-03-01", "2020-01-31", "1 mon 1 day"),
        ("2020-01-31", "2020-03-01", "-1 mons -1 days"),
        ("2020-02-29", "2020-04-01", "-1 mons -1 days"),
        ("2019-03-15", "2020-02-29", "-11 mons -14 days"),
        ("2020-01-01", "2019-12-31 23:59:59.5", "00:00:00.5"),
    ],
)
def test_age(left: str, right: str, between: str) -> None:
    assert shown("age", ("timestamp", left), ("timestamp", right)) == between


@pytest.mark.parametrize(
    ("text", "pattern", "answer"),
    [
        *(("abcb", "a%c%b", "true"), ("aXbXc", "%b%c", "true"), ("ab", "a%b%b", "false")),
        *(("abb", "a%b%b", "true"), ("a%c", "a\\%c", "true"), ("abc", "a\\%c", "false")),
        *(("abc", "_%_%_", "true"), ("ab", "_%_%_", "false"), ("a\nb", "a_b", "true")),
        *(("x" * 200, "%x" * 60 + "y", "false"), ("", "%", "true"), ("", "_", "false")),
    ],
)
def test_like(text: str, pattern: str, answer: str) -> None:
    """Those of many % would take for ever, were every place tried for each."""
    assert shown("~~", ("text", text), ("text", pattern), is_operator=True) == answer


@pytest.mark.parametrize(
    ("left", "right", "scale", "made"),
    [("1", "8", 2, "0.13"), ("-1", "8", 2, "-0.13"), ("1", "3", 3, "0.333"), ("2", "3", 0, "1")],
)
def test_half_is_rounded_away_from_zero(left: str, right: str, scale: int, made: str) -> None:
    assert str(quotient(Decimal(left), Decimal(right), scale)) == made


@pytest.mark.parametrize(
    ("size", "digest"),
    [
        ("9" * 5_000, "ba09bd7578ea0ceb4992912ede670d4e"),
        ("-" + "7" * 4_400, "4cb08f629da4ee49cfbc25a7099be4ae"),
    ],
)
def test_a_size_of_more_digits_than_python_writes(size: str, digest: str) -> None:
    """PostgreSQL 15 has given: md5(pg_size_pretty(…))."""
    made = shown("pg_size_pretty", ("numeric", size))
    assert made.endswith(" PB")
    assert md5(made.encode(), usedforsecurity=False).hexdigest() == digest


def test_numbers_without_measure_are_refused_as_postgresql_does() -> None:
    function = function_for("make_interval", [INTEGER] * 6 + [DOUBLE])
    for seconds in (float("inf"), float("nan"), 1e305):
        with pytest.raises(MomentOutOfRange, match="interval out of range"):
            function.compute(0, 0, 0, 0, 0, 0, seconds)
    formatted = function_for("format", [TEXT, TEXT])
    for pattern in ("%2147483648s", "%99999999999$s", "%" + "9" * 5_000 + "s"):
        with pytest.raises(OutOfRange, match="number is out of range"):
            formatted.compute(pattern, "x")
    with pytest.raises(TooLong):
        formatted.compute("%2147483647s", "x")
    assert formatted.compute("%5s|%1$-3s|", "a") == "    a|a  |"


def test_clocks_that_are_put_forward_or_back() -> None:
    zone = (None, "Europe/Berlin")
    twice = shown("timezone", zone, ("timestamp", "2020-10-25 02:30"))
    never = shown("timezone", zone, ("timestamp", "2020-03-29 02:30"))
    assert (twice, never) == ("2020-10-25 01:30:00+00", "2020-03-29 01:30:00+00")


def test_a_types_name_is_a_cast() -> None:
    assert function_for("date", [None]).result == DATE


@pytest.mark.parametrize(
    ("source", "target", "contexts"),
    [
        (INTEGER, NUMERIC, ("implicit", "assignment", "explicit")),
        (NUMERIC, INTEGER, ("assignment", "explicit")),
        (INTEGER, TEXT, ("assignment", "explicit")),
        (TEXT, INTEGER, ("explicit",)),
        (INTEGER, DATE, ()),
        (DATE, Type("timestamptz"), ("implicit", "assignment", "explicit")),
        (Type("timestamptz"), DATE, ("assignment", "explicit")),
        (Type("boolean"), INTEGER, ("explicit",)),
    ],
)
def test_which_casts_are_made_where(source: Type, target: Type, contexts: tuple[str, ...]) -> None:
    made = [
        context
        for context in ("implicit", "assignment", "explicit")
        if cast_for(source, target, context) is not None
    ]
    assert tuple(made) == contexts


@pytest.mark.parametrize(
    ("name", "kinds"),
    [("regexp_matches", [None] * 2), ("to_char", [INTEGER, None]), ("jsonb_each", [None])],
)
def test_what_postgresql_has_and_is_not_here(name: str, kinds: list[Type | None]) -> None:
    with pytest.raises(FeatureNotSupported):
        function_for(name, kinds)
    with pytest.raises(FeatureNotSupported):
        operator_for("@?", Type("jsonb"), None)


def test_a_cast_that_changes_nothing_says_so() -> None:
    cast = cast_for(INTEGER, BIGINT, "implicit")
    assert cast is not None
    assert cast.compute is unchanged


def test_a_common_type() -> None:
    assert common_type([INTEGER, NUMERIC]) == NUMERIC
    assert common_type([None, None]) == TEXT
    assert common_type([VARCHAR, VARCHAR]) == VARCHAR
    assert common_type([VARCHAR, None]) == Type("varchar")
    assert common_type([VARCHAR, TEXT]) == Type("varchar")  # each is the other, so the first one is
    assert common_type([TEXT, VARCHAR]) == TEXT
    assert common_type([DATE, Type("timestamp")]) == Type("timestamp")
