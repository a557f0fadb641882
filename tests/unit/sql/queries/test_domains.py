"""Casts to the types that information_schema's columns have."""

from __future__ import annotations

import pytest

from leasehold.model.errors import Refused
from tests.support.sql.asked import Asked


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("'x'::information_schema.sql_identifier", "x"),
        ("CAST('x' AS information_schema.character_data)", "x"),
        ("'7'::information_schema.cardinal_number + 1", "8"),
        ("'YES'::information_schema.yes_or_no", "YES"),
        ("('2020-01-01 00:00:00+00'::information_schema.time_stamp)::date", "2020-01-01"),
        ("(ARRAY['a']::information_schema.sql_identifier[])[1]", "a"),
    ],
)
def test_casts_to_domains(asked: Asked, text: str, shown: str) -> None:
    """Goal: a client may cast to what the columns of information_schema are."""
    assert asked.rows(f"SELECT ({text})::text") == [(shown,)]


def test_refuses_domains_that_are_none(asked: Asked) -> None:
    """Goal: another name is not taken for a type."""
    with pytest.raises(Refused):
        asked.rows("SELECT 'x'::information_schema.nothing")
