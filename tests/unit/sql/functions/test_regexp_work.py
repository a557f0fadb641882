"""Regular expressions can be stopped between matches, and are refused where nothing could stop one
search."""

from __future__ import annotations

import pytest

from leasehold.model.budget import Budget, spending
from leasehold.model.errors import QueryCanceled, TooComplex
from leasehold.sql.functions.registry import function_for
from leasehold.values.types import Type

TEXT = Type("text")
PLENTY = 1 << 60


def test_a_count_of_many_matches_is_stopped_between_them() -> None:
    """Goal: each match of `a*b|a` reads to the end of the text, so all of them take minutes."""
    looks = 0

    def look() -> None:
        nonlocal looks
        looks += 1
        if looks == 3:
            raise QueryCanceled("its time is over")

    count = function_for("regexp_count", (TEXT, TEXT)).compute
    with spending(Budget(PLENTY, look=look)), pytest.raises(QueryCanceled):
        count("a" * 262_144, "a*b|a")
    assert looks == 3


@pytest.mark.parametrize("name", ["regexp_like", "regexp_count"])
def test_a_search_that_nothing_could_stop_is_refused(name: str) -> None:
    """Goal: RE2 is never asked for what may take it longer than an election."""
    compute = function_for(name, (TEXT, TEXT)).compute
    with pytest.raises(TooComplex):
        compute("ab" * 131_072, "(a|b)*a" + "(a|b){255}" * 8 + "c")


@pytest.mark.parametrize(
    "pattern", [r"\w+\s+\w+", r"[a-z0-9._%+-]+@[a-z0-9.-]+\.[a-z]{2,}", r"(\d{1,3}\.){3}\d{1,3}"]
)
def test_common_patterns_may_search_the_longest_text(pattern: str) -> None:
    assert function_for("regexp_like", (TEXT, TEXT)).compute("x" * 262_144, pattern) == 0
