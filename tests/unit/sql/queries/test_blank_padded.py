"""Values of char(n) keep the blanks that fill them up through aggregates, and are ordered without
them: as a PostgreSQL 15 has it (`tests/integration/postgres_compat/test_arrays_postgres.py`)."""

from __future__ import annotations

import pytest

from leasehold.model.errors import FeatureNotSupported
from leasehold.sql.ddl.schema_statements import parse_ddl
from tests.support.sql.asked import Asked
from tests.support.sql.recorded_cases import CHAR


@pytest.mark.parametrize(("expression", "text"), CHAR.items())
def test_what_an_expression_gives(asked: Asked, expression: str, text: str | None) -> None:
    assert asked.rows(f"SELECT ({expression})::text") == [(text,)]


def test_the_least_and_the_greatest_are_shown_in_their_length(asked: Asked) -> None:
    rows = "(VALUES ('b'::char(3)), ('ab'::char(3)), ('a'::char(3))) v(x)"
    assert asked.rows(f"SELECT min(x), max(x) FROM {rows}") == [("a  ", "b  ")]
    found = asked.rows(f"SELECT x FROM {rows} ORDER BY x DESC")
    assert found == [("b  ",), ("ab ",), ("a  ",)]


def test_a_column_has_a_length() -> None:
    with pytest.raises(FeatureNotSupported, match="bpchar without a length") as caught:
        parse_ddl("CREATE TABLE t (a integer, b bpchar)")
    assert caught.value.detail["position"] == 30
    parse_ddl("CREATE TABLE t (a character(3), b bpchar(4), c char)")
