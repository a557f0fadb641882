"""A job changes as many tables as one call of the ledger publishes, and is refused beyond."""

from __future__ import annotations

import pytest

from leasehold.catalog.catalog import Catalog
from leasehold.catalog.elements import CommitContext
from leasehold.model.errors import OutOfRange
from leasehold.schema_change.plan import job_size
from leasehold.schema_change.plan.statement_batch import StatementBatch
from leasehold.sql.ddl.schema_statements import parse_statements
from leasehold.sql.syntax.statements import Explain
from tests.unit.schema_change.test_foreign_keys import run

TABLES = 4


@pytest.fixture
def catalog(monkeypatch: pytest.MonkeyPatch) -> Catalog:
    monkeypatch.setattr(job_size, "TABLES_PER_CALL_MAX", TABLES)
    made = Catalog()
    run(made, "CREATE TABLE parent (id int PRIMARY KEY)")
    for number in range(TABLES):
        run(
            made,
            f"CREATE TABLE child{number} (id int PRIMARY KEY, p int REFERENCES parent)",
        )
    run(made, "CREATE TABLE serial (id serial PRIMARY KEY)")
    return made


def take(catalog: Catalog, sql: str, *, whole: bool = False) -> StatementBatch:
    batch = StatementBatch.on(catalog, whole=whole)
    for statement, text in parse_statements(sql):
        assert not isinstance(statement, Explain)
        batch.take(statement, text, b"id", CommitContext(7, b"s"), lambda _: 42)
    return batch


def test_as_many_as_the_ledger_takes_are_one_job(catalog: Catalog) -> None:
    dropped = take(catalog, "DROP TABLE child0, child1, child2, child3")
    assert len(dropped.writes) == 1
    assert len(dropped.dropped) == TABLES


@pytest.mark.parametrize(
    "sql",
    [
        "DROP TABLE parent CASCADE",  # with the foreign keys of four others
        "DROP TABLE child0, child1, child2, child3, parent",
        "DROP TABLE child0; DROP TABLE child1, child2; DROP TABLE child3; DROP TABLE parent",
    ],
)
@pytest.mark.parametrize("whole", [False, True])
def test_more_are_refused_with_how_many(catalog: Catalog, sql: str, whole: bool) -> None:
    with pytest.raises(OutOfRange) as caught:
        take(catalog, sql, whole=whole)
    assert f"of {TABLES + 1} tables and sequences" in caught.value.message
    assert "several statements" in str(caught.value.detail["hint"])


@pytest.mark.parametrize(
    "more",
    [
        "ALTER TABLE serial ADD COLUMN c text",
        "CREATE TABLE more (id integer PRIMARY KEY)",
    ],
)
def test_all_that_a_transaction_changes_counts_together(catalog: Catalog, more: str) -> None:
    sql = f"DROP TABLE child0, child1, child2; ALTER TABLE child3 ADD COLUMN c text; {more}"
    take(catalog, sql)
    with pytest.raises(OutOfRange):
        take(catalog, sql, whole=True)
