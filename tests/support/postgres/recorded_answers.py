"""Holds a real PostgreSQL to what unit tests have recorded of it."""

from __future__ import annotations

from collections.abc import Mapping

import pytest

from tests.support.postgres.postgres_server import postgres_server

psycopg = pytest.importorskip("psycopg", reason="NOT TESTED against PostgreSQL: no psycopg")


def hold_to(expressions: Mapping[str, str | None], refused: Mapping[str, str]) -> None:
    """`expressions`: the text of each one's value. `refused`: the SQLSTATE of each statement."""
    differ: list[str] = []
    with postgres_server() as port:  # noqa: SIM117
        with psycopg.connect(f"host=127.0.0.1 port={port} user=postgres", autocommit=True) as pg:
            for expression, text in expressions.items():
                found = pg.execute(f"SELECT ({expression})::text").fetchone()
                if found != (text,):
                    differ.append(f"{expression}: {found}, recorded: {text}")
            for statement, code in refused.items():
                with pytest.raises(psycopg.Error) as caught:
                    pg.execute(statement)
                if caught.value.sqlstate != code:
                    differ.append(f"{statement}: {caught.value.sqlstate}, recorded: {code}")
    print(f"\n{len(expressions)} expressions, {len(refused)} refusals")
    assert not differ, "\n".join(differ)
