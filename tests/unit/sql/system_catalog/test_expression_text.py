"""Conditions in the form in which PostgreSQL shows them: forms that a PostgreSQL 15 has shown."""

from __future__ import annotations

from typing import Final

import pytest

from leasehold.sql.expressions.expression import with_exact_numbers
from leasehold.sql.expressions.plain_words import with_plain_words
from leasehold.sql.system_catalog.expression_text import show_expression
from tests.schema_change.changes import standing

TABLE: Final = standing(
    "CREATE TABLE t (id int PRIMARY KEY, s smallint, a int, b bigint, n numeric(5, 2), r real,"
    " f double precision, x text, v varchar(9), d date, at timestamptz, o boolean, j jsonb,"
    " c char(3))"
)
FORMS: Final = {
    "a > 0": ("(a > 0)", "a > 0"),
    "n > 0 and n < 0.5": ("((n > (0)::numeric) AND (n < 0.5))", "n > 0::numeric AND n < 0.5"),
    "a > -5 or n > -1.5": (
        "((a > '-5'::integer) OR (n > '-1.5'::numeric))",
        "a > '-5'::integer OR n > '-1.5'::numeric",
    ),
    "r > 0.5": ("(r > (0.5)::double precision)", "r > 0.5::double precision"),
    "v <> 'no'": ("((v)::text <> 'no'::text)", "v::text <> 'no'::text"),
    "length(v) < 6": ("(length((v)::text) < 6)", "length(v::text) < 6"),
    "a not between 1 and b": ("((a < 1) OR (a > b))", "a < 1 OR a > b"),
    "b in (1, 2)": (
        "(b = ANY (ARRAY[(1)::bigint, (2)::bigint]))",
        "b = ANY (ARRAY[1::bigint, 2::bigint])",
    ),
    "v in ('a', 'b')": (
        "((v)::text = ANY ((ARRAY['a'::character varying, 'b'::character varying])::text[]))",
        "v::text = ANY (ARRAY['a'::character varying, 'b'::character varying]::text[])",
    ),
    "a in (1, 2) and o": ("((a = ANY (ARRAY[1, 2])) AND o)", "(a = ANY (ARRAY[1, 2])) AND o"),
    "x not like 'a%'": ("(x !~~ 'a%'::text)", "x !~~ 'a%'::text"),
    "d > '2020-1-2'": ("(d > '2020-01-02'::date)", "d > '2020-01-02'::date"),
    "not (a is null or o is not true)": (
        "(NOT ((a IS NULL) OR (o IS NOT TRUE)))",
        "NOT (a IS NULL OR o IS NOT TRUE)",
    ),
    "(a + 1) * 2 > b - 1 - a": (
        "(((a + 1) * 2) > ((b - 1) - a))",
        "((a + 1) * 2) > (b - 1 - a)",
    ),
    "a - (b - 1) is distinct from 3": (
        "((a - (b - 1)) IS DISTINCT FROM 3)",
        "(a - (b - 1)) IS DISTINCT FROM 3",
    ),
    "coalesce(x, 'a') = v": (
        "(COALESCE(x, 'a'::text) = (v)::text)",
        "COALESCE(x, 'a'::text) = v::text",
    ),
    "n * 2 > f": (
        "(((n * (2)::numeric))::double precision > f)",
        "(n * 2::numeric)::double precision > f",
    ),
    "c = 'ab'::bpchar": ("(c = 'ab'::bpchar)", "c = 'ab'::bpchar"),
    "c = any (array['ab'::bpchar, 'c'])": (
        "(c = ANY (ARRAY['ab'::bpchar, 'c'::bpchar]))",
        "c = ANY (ARRAY['ab'::bpchar, 'c'::bpchar])",
    ),
    "a > 0 and (b > 0 and o)": ("((a > 0) AND ((b > 0) AND o))", "a > 0 AND b > 0 AND o"),
}


@pytest.mark.parametrize("text", FORMS)
def test_conditions_have_its_form(text: str) -> None:
    kept = with_exact_numbers(with_plain_words(text))
    forms = tuple(show_expression(kept, TABLE, short=short) for short in (False, True))
    assert forms == FORMS[text]


@pytest.mark.parametrize("text", [*FORMS, "a in (3)", "s + b > n", "'5' < a"])
def test_a_form_has_itself_for_its_form(text: str) -> None:
    """So that it may be kept in the place of what was written; a list may not, of which
    no kept expression has this form."""
    kept = with_exact_numbers(with_plain_words(text))
    full = show_expression(kept, TABLE, short=False)
    assert full is not None
    if "ARRAY" not in full:
        again = with_exact_numbers(with_plain_words(full))
        assert show_expression(again, TABLE, short=False) == full


@pytest.mark.parametrize(
    "text",
    [
        *("j ?| '{a}'", "at > '2020-01-01'", "x like 'a' escape 'b'", "to_char(id, '9')"),
        *("nothing > 1", "c = 'a'::character(3)"),
    ],
)
def test_what_is_not_known_has_none(text: str) -> None:
    """A constant of a type that each session shows otherwise is such a part, too."""
    assert show_expression(text, TABLE, short=False) is None
