"""Goal: what the unit tests say that PostgreSQL makes of arrays is what it makes of them.

Method: each expression and each refusal of `recorded_cases.py`, asked of a real PostgreSQL.
"""

from __future__ import annotations

import pytest

from tests.integration.postgres_server import postgres_server
from tests.unit.query.recorded_cases import CASES, REFUSED

psycopg = pytest.importorskip("psycopg", reason="NOT TESTED against PostgreSQL: no psycopg")


@pytest.mark.integration
def test_the_recorded_cases_are_those_of_postgresql() -> None:
    differ: list[str] = []
    with postgres_server() as port:  # noqa: SIM117
        with psycopg.connect(f"host=127.0.0.1 port={port} user=postgres", autocommit=True) as pg:
            for expression, text in CASES.items():
                found = pg.execute(f"SELECT ({expression})::text").fetchone()
                if found != (text,):
                    differ.append(f"{expression}: {found}, recorded: {text}")
            for statement, code in REFUSED.items():
                with pytest.raises(psycopg.Error) as caught:
                    pg.execute(statement)
                if caught.value.sqlstate != code:
                    differ.append(f"{statement}: {caught.value.sqlstate}, recorded: {code}")
    print(f"\n{len(CASES)} expressions, {len(REFUSED)} refusals")
    assert not differ, "\n".join(differ)
