"""Families of statements that migrations of real projects are made of, in words of our own: those
that run, with the rows that they leave, and those that are refused, with what is said.

Goal: what a migration tool sends between BEGIN and COMMIT comes to what it comes to in PostgreSQL,
or is refused as a whole. Method: each family on tables of its own, in a whole database in this
process; the same ones are said to a PostgreSQL by tests/integration/postgres_compat.
"""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from leasehold.dev.database import DevDatabase
from leasehold.model.errors import LeaseholdError
from tests.support.postgres.migration_families import FAMILIES, REFUSED, TABLES
from tests.support.sql_session.sql_client import SqlClient, client_of_tables

DROPPED = "drop table if exists shop, store, item, parcel, box, crate, log cascade"


@pytest.fixture
def one(database: DevDatabase) -> Iterator[SqlClient]:
    with client_of_tables(database, *TABLES, dropped_by=DROPPED) as made:
        yield made


@pytest.mark.parametrize("family", FAMILIES)
def test_a_family_that_runs(one: SqlClient, family: str) -> None:
    said, asked, expected = FAMILIES[family]
    one.ask("begin")
    for text in said:
        one.ask(text)
    one.ask("commit")
    assert one.ask(asked) == expected


@pytest.mark.parametrize("family", FAMILIES)
def test_it_is_as_if_never_said_after_rollback(one: SqlClient, family: str) -> None:
    before = [one.ask(f"select * from {table} order by 1") for table in ("shop", "item")]
    one.ask("begin")
    for text in FAMILIES[family][0]:
        one.ask(text)
    one.ask("rollback")
    assert before == [one.ask(f"select * from {table} order by 1") for table in ("shop", "item")]


@pytest.mark.parametrize("family", REFUSED)
def test_a_family_that_is_refused(one: SqlClient, family: str) -> None:
    said, code, words = REFUSED[family]
    with pytest.raises(LeaseholdError) as refused:
        one.ask("; ".join(("begin", *said, "commit")))
    one.ask("rollback")
    assert refused.value.sqlstate == code
    assert words in f"{refused.value.message} {refused.value.detail.get('hint', '')}"
    assert one.ask("select id, name from shop order by 1") == [(1, "a b"), (2, "c d")]
