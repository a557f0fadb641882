"""Statements of more constants, or of queries more often named, than SQLite takes."""

from __future__ import annotations

import pytest

from leasehold.model.errors import TooComplex
from leasehold.sql.binding import expressions
from tests.support.sql.asked import Asked

MANY = 33_000
"""SQLite takes 32,766 values for one statement."""


def _listed(first: int, shown: str = "{}") -> str:
    return ", ".join(shown.format(number) for number in range(first, first + MANY))


@pytest.mark.parametrize(
    ("condition", "rows"),
    [
        (f"id IN ({_listed(3)})", [(3,), (4,), (5,)]),
        (f"id NOT IN ({_listed(3)})", [(1,), (2,)]),
        (f"id + 1 IN ({_listed(6)})", [(5,)]),
        (f"carrier IN ({_listed(1, chr(39) + 'x{}' + chr(39))}, 'LH')", [(4,), (5,)]),
        (f"price IN ({_listed(99, '{}.500')})", [(1,)]),
        (f"id IN ({_listed(4)}, NULL)", [(4,), (5,)]),
        (f"id NOT IN ({_listed(4)}, NULL)", []),
        (f"id::text IN ({_listed(4, chr(39) + '{}' + chr(39))})", [(4,), (5,)]),
    ],
    ids=["in", "not in", "computed", "text", "numeric", "null", "not in null", "cast"],
)
def test_long_lists_are_looked_through(
    asked: Asked, condition: str, rows: list[tuple[int]]
) -> None:
    """Goal: IN of any number of constants is answered as a short list is."""
    assert asked.rows(f"SELECT id FROM flights WHERE {condition} ORDER BY id") == rows


@pytest.mark.parametrize(
    "condition",
    [
        "id IN (1, 3, NULL)",
        "id NOT IN (1, 3)",
        "price IN (99.5, 100.000, 7)",
        "day IN ('2024-01-31', '2000-01-01')",
        "open IN (true, NULL)",
        "'[1.0]'::jsonb IN ('[1]', '[2]')",
        "carrier NOT IN ('AA', 'aa', NULL)",
        "seats + 0.0 IN (10, 20.0)",
    ],
)
def test_an_array_answers_as_a_list_does(
    asked: Asked, condition: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Goal: the two forms of IN agree on every type."""
    text = f"SELECT id, {condition} FROM flights WHERE ({condition}) IS NOT FALSE ORDER BY id"
    as_list = asked.rows(text)
    monkeypatch.setattr(expressions, "LISTED_CONSTANTS_MAX", 0)
    assert asked.rows(f"{text}, 1") == as_list


def test_too_many_values_are_refused(asked: Asked) -> None:
    """Goal: 54001 with a sentence, where SQLite has no room for so many."""
    rows = ", ".join(f"({number})" for number in range(MANY))
    with pytest.raises(TooComplex):
        asked.rows(f"SELECT count(*) FROM (VALUES {rows}) AS v (a)")


@pytest.mark.parametrize("levels", [8, 9, 10])
def test_queries_that_name_the_one_before_twice_are_refused(asked: Asked, levels: int) -> None:
    """Goal: 54001, not a defect, however SQLite says that there are too many."""
    parts = ["q0 AS (SELECT 1 AS x)"]
    parts += [
        f"q{n} AS (SELECT a.x FROM q{n - 1} AS a, q{n - 1} AS b)" for n in range(1, levels + 1)
    ]
    with pytest.raises(TooComplex):
        asked.rows(f"WITH {', '.join(parts)} SELECT count(*) FROM q{levels}")
