"""Expressions that are kept are said in words that every release reads."""

from __future__ import annotations

from typing import Final

import pytest

from leasehold.catalog.elements import CommitContext
from leasehold.model.errors import FeatureNotSupported
from leasehold.sql.expressions.default import compile_default, default_of_text, is_random
from leasehold.sql.expressions.expression import compile_expression
from leasehold.sql.expressions.plain_words import with_plain_words
from leasehold.values.types import Type, parse_type
from tests.support.sql.asked import FLIGHTS

PLAIN: Final = {
    "num_nonnulls(a, b) = 1": "(((a) IS NOT NULL)::integer + (( b) IS NOT NULL)::integer) = 1",
    "num_nulls(coalesce(a, b[1]), num_nulls('x,)'))": (
        "(((coalesce(a, b[1])) IS NULL)::integer + (( ((('x,)') IS NULL)::integer)) IS"
        " NULL)::integer)"
    ),
    "current_timestamp(3) + '1 day'": "current_timestamp::timestamptz(3) + '1 day'",
    "localtime ( 9 )": "localtime::time(6)",
    "a = any (array['x', 'y'])": "a IN ('x', 'y')",
    "a = 'xy'::bpchar": "a = 'xy'::character(2)",
    "a = (E'x\\'  ')::BPCHAR": "a = (E'x\\'  ')::character(2)",
    "''::bpchar": "''::character(1)",
    "a = any (array['xy'::bpchar, 'z'])": "a IN ('xy'::character(2), 'z')",
    "a = any ('{xy,z}'::bpchar[])": "a = any ('{xy,z}'::character(6)[])",
    "('xy'::bpchar)::bpchar": "('xy'::character(2))::character(2)",
}


@pytest.mark.parametrize("text", PLAIN)
def test_said_in_plain_words(text: str) -> None:
    assert with_plain_words(text) == PLAIN[text]


@pytest.mark.parametrize(
    "text",
    [
        *("num_nulls()", "'num_nulls(a)'", "x.num_nulls(a)", '"num_nulls"(a)', "localtime(a)"),
        *("a = 'x'::bpchar(3)", "bpchar = 'x'", "a = 'x::bpchar'", "t.bpchar = 'x'"),
    ],
)
def test_what_stays(text: str) -> None:
    assert with_plain_words(text) == text


@pytest.mark.parametrize(
    "text",
    [
        *("a::bpchar = 'x'", "lower('X')::bpchar", "(a)::bpchar", "(lower('x'::bpchar))::bpchar"),
        *("'x'::text::bpchar", "CAST('x' AS bpchar)", "'x'::pg_catalog.bpchar"),
    ],
)
def test_a_cast_to_bpchar_of_what_is_no_constant_is_refused(text: str) -> None:
    with pytest.raises(FeatureNotSupported, match="bpchar without a length"):
        with_plain_words(text)


def test_a_constant_of_bpchar_is_all_of_it() -> None:
    assert default_of_text("'abc'::bpchar", Type("char", 5)).value == "abc"
    row = {column.element_id: "LH" for column in FLIGHTS.columns if column.name == "carrier"}
    text = with_plain_words("carrier::char(3) = 'LH'::bpchar")
    assert compile_expression(text, FLIGHTS)(row) == 1


def test_a_long_text_is_read_once() -> None:
    text = " + ".join(["num_nulls(a)"] * 2_000)
    assert with_plain_words(text).count("IS NULL") == 2_000


def test_random_defaults_differ_by_row_and_call() -> None:
    text = default_of_text("md5(random()::text)", parse_type("text")).expression
    assert text == "md5(random()::text)"
    assert is_random(text)
    compute = compile_default(text, parse_type("text"))
    context = CommitContext(1, b"seed")
    made = [compute(context, 1, 2, (key,)) for key in range(50)]
    assert len(set(made)) == 50
    assert made[7] == compute(context, 1, 2, (7,)), "the same everywhere"
    both = compile_default("random() - random()", parse_type("double precision"))
    assert both(context, 1, 2, (1,)) != 0
    once = compile_default("random()", parse_type("double precision"))
    values = [once(context, 1, 2, (key,)) for key in range(2_000)]
    assert 0 <= min(values) < 0.02
    assert 0.98 < max(values) < 1
