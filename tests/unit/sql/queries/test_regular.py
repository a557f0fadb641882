"""Goal: regular expressions find what they find in PostgreSQL, or are refused; none is slow.

Method: recorded expressions of a PostgreSQL 15
(`tests/integration/postgres_compat/test_regular_postgres.py` holds
them and random ones against one), and patterns that make others take for ever.
"""

from __future__ import annotations

import pytest

from leasehold.model.errors import Refused
from leasehold.sql.functions.texts.regexp_matching import regular
from tests.support.sql.asked import Asked
from tests.support.sql.recorded_cases import REGULAR, REGULAR_ONLY_HERE_REFUSED, REGULAR_REFUSED


@pytest.mark.parametrize(("expression", "text"), REGULAR.items())
def test_what_an_expression_gives(asked: Asked, expression: str, text: str | None) -> None:
    assert asked.rows(f"SELECT ({expression})::text") == [(text,)]


@pytest.mark.parametrize(
    ("statement", "code"), {**REGULAR_REFUSED, **REGULAR_ONLY_HERE_REFUSED}.items()
)
def test_what_is_refused(asked: Asked, statement: str, code: str) -> None:
    with pytest.raises(Refused) as caught:
        asked.rows(statement)
    assert caught.value.sqlstate == code


@pytest.mark.parametrize("pattern", ["(a*)*b", "(a|aa)+$b", "(.*)(.*)(.*)[^a]", "a{200}a{200}b"])
def test_no_pattern_takes_for_ever(pattern: str) -> None:
    """Backtracking would not end within this test's limit, or anyone's."""
    assert not regular(pattern).found_in("a" * 20_000)


@pytest.mark.parametrize("pattern", ["(" * 100 + ")" * 100, "((a{200}){200}){200}", "a" * 9_000])
def test_a_pattern_has_bounds(pattern: str) -> None:
    with pytest.raises(Refused) as caught:
        regular(pattern)
    assert caught.value.sqlstate == "54001"


def test_a_select_by_a_pattern(asked: Asked) -> None:
    text = "SELECT id FROM flights WHERE carrier ~* $1 ORDER BY id"
    assert asked.rows(text, ("^a{2}$",)) == [(1,), (2,)]


@pytest.mark.parametrize("pattern", ["(a?)+", "(a*)*", "(a?)*b"])
def test_a_part_that_may_be_empty_again_and_again_is_not_told(asked: Asked, pattern: str) -> None:
    """PostgreSQL's last round of it takes nothing, RE2's does not come to that. Whether there is a
    match at all is the same."""
    with pytest.raises(Refused) as caught:
        asked.rows(f"SELECT regexp_match('a c', '{pattern}')")
    assert caught.value.sqlstate == "0A000"
    assert asked.rows(f"SELECT 'ab' ~ '{pattern}', regexp_match('ab', '(a)?(b)')") == [
        (True, ["a", "b"])
    ]
