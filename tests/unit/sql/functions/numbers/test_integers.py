"""Goal: no number of a statement is too long to be told what is wrong with it."""

from __future__ import annotations

import pytest

from leasehold.model.errors import Refused
from leasehold.sql.ddl.schema_statements import parse_ddl
from leasehold.sql.session.text import read_text
from leasehold.values.integers import whole

MANY = "9" * 5_000


def test_zeros_before_a_number() -> None:
    assert whole("0" * 5_000) == 0
    assert whole("0" * 5_000 + "12") == 12
    assert whole(MANY) > 1 << 64


@pytest.mark.parametrize(
    "sql",
    [
        f"CREATE SEQUENCE s START {MANY}",
        f"CREATE SEQUENCE s CACHE -{MANY}",
        f"ALTER SEQUENCE s RESTART WITH {MANY}",
    ],
)
def test_a_long_number_of_a_schema_change(sql: str) -> None:
    with pytest.raises(Refused) as caught:
        parse_ddl(sql)
    assert caught.value.sqlstate == "22023"


def test_a_long_length_of_a_type() -> None:
    with pytest.raises(Refused) as caught:
        parse_ddl(f"CREATE TABLE n (a varchar({MANY}) PRIMARY KEY)")
    assert caught.value.sqlstate == "42601"


@pytest.mark.parametrize("sql", [f"FETCH {MANY} FROM c", f"MOVE ABSOLUTE -{MANY} IN c"])
def test_a_long_count_of_rows(sql: str) -> None:
    with pytest.raises(Refused) as caught:
        read_text(sql)
    assert caught.value.sqlstate == "42601"
