"""What PostgreSQL writes of lists and arrays, in words that every release reads."""

from __future__ import annotations

import pytest

from leasehold.sql.expressions.array_lists import with_plain_arrays

PLAIN = {
    "(a = ANY (ARRAY['x'::text, 'y'::text]))": "(a IN ('x'::text, 'y'::text))",
    "((b)::text = ANY ((ARRAY['x'::character varying, 'y'::character varying])::text[]))": (
        "((b)::text IN (('x'::character varying)::text, ('y'::character varying)::text))"
    ),
    "c = any(array[1, -2, null])": "c IN (1, -2, null)",
    "c = SOME (ARRAY[1])": "c IN (1)",
    "(b)::text <> ALL ((ARRAY['x'::varchar])::pg_catalog.text[])": (
        "(b)::text NOT IN (('x'::varchar)::pg_catalog.text)"
    ),
    "n != all (array[1.5]::numeric(8, 2)[]) and b = any (array['(,]'])": (
        "n NOT IN ((1.5)::numeric(8, 2)) and b IN ('(,]')"
    ),
    "ARRAY[]::text[]": "'{}'::text[]",
    "ARRAY['a', 'b']": """'{"a","b"}'::text[]""",
    "ARRAY['it''s'::text, E'a\\\\b', NULL]": """E'{"it''s","a\\\\\\\\b",NULL}'::text[]""",
    "(ARRAY[1, -2])::bigint[]": "('{1,-2}'::integer[])::bigint[]",
    "array[true, false]": "'{true,false}'::boolean[]",
    "a > ANY (ARRAY[1, 2])": "a > ANY ('{1,2}'::integer[])",
    "a <> ANY (ARRAY[1, 2])": "a <> ANY ('{1,2}'::integer[])",
    "a = ALL (ARRAY[1, 2])": "a = ALL ('{1,2}'::integer[])",
    "a = ANY (ARRAY[]::int[])": "a = ANY ('{}'::int[])",
    "array[1.5, 2]::numeric[]": "'{1.5,2}'::numeric[]",
}
AS_IT_IS = (
    "a = 1",
    "'array' = b",
    "a = ANY (b)",
    "a = ANY (ARRAY[b, 1])",
    "array_length(a, 1) < 5",
    "ARRAY[]",
    "ARRAY[[1], [2]]",
    "ARRAY[1, 'x']",
)


@pytest.mark.parametrize("text", PLAIN)
def test_constants_become_lists_and_constants(text: str) -> None:
    assert with_plain_arrays(text) == PLAIN[text]


@pytest.mark.parametrize("text", AS_IT_IS)
def test_anything_else_stays(text: str) -> None:
    assert with_plain_arrays(text) == text
