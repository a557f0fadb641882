"""What a transaction drops with CASCADE, and what others lose by it: one job, in which a sequence
outlasts the version that draws from it."""

from __future__ import annotations

import pytest

from leasehold.catalog.catalog import Catalog
from leasehold.catalog.edits import Kind
from leasehold.catalog.elements import CommitContext
from leasehold.catalog.job import Job, job_from_wire
from leasehold.model.records.log import JobWrite
from leasehold.schema_change.plan.statement_batch import StatementBatch
from leasehold.sql.ddl.schema_statements import parse_statements
from leasehold.sql.syntax.statements import Explain

MADE = (
    "CREATE SEQUENCE s",
    "CREATE TABLE o (id serial PRIMARY KEY)",
    "CREATE TABLE u (id int PRIMARY KEY, n int DEFAULT nextval('s'))",
    "CREATE TABLE v (id int PRIMARY KEY, n int DEFAULT nextval('o_id_seq'), o int REFERENCES o)",
)
SAID = {
    "drop sequence s cascade": ("s", "u"),
    "alter table u alter n drop default; drop sequence s": ("s", "u"),
    "alter table u alter n set default 5; drop sequence s": ("s", "u"),
    "drop table o cascade": ("o_id_seq", "v"),
    "alter table v alter n drop default; drop table o cascade": ("o_id_seq", "v"),
}


@pytest.fixture
def catalog() -> Catalog:
    made = Catalog()
    for lsn, write in enumerate(taken(made, "; ".join(MADE), whole=False).writes):
        made.apply(write, 0, lsn)
    return made


def taken(catalog: Catalog, sql: str, *, whole: bool) -> StatementBatch:
    """What a request, or a transaction, says."""
    batch = StatementBatch.on(catalog, whole=whole)
    for statement, text in parse_statements(sql):
        assert not isinstance(statement, Explain)
        batch.take(statement, text, b"id", CommitContext(7, b"s"), lambda _: 42)
    return batch


def job_of(catalog: Catalog, sql: str) -> Job:
    """The one job of a transaction that says this."""
    writes = taken(catalog, sql, whole=True).writes
    (write,) = (write for write in writes if isinstance(write, JobWrite))
    return job_from_wire(write.body)


@pytest.mark.parametrize("sql", SAID)
def test_a_sequence_goes_a_step_later_than_what_draws_from_it(catalog: Catalog, sql: str) -> None:
    job = job_of(catalog, sql)
    sequence, table = (catalog.resolve(name).table_id for name in SAID[sql])
    steps = [
        (number, edit.kind, edit.table_id or job.table_id)
        for number, step in enumerate(job.steps)
        for edit in step.edits
    ]
    lost = min(n for n, kind, of in steps if (kind, of) == (Kind.COLUMN, table))
    goes = min(n for n, kind, of in steps if (kind, of) == (Kind.TABLE, sequence))
    assert lost == job.point, "with the rows of the transaction"
    assert goes == lost + 1


def test_a_table_of_a_request_loses_its_default_at_once(catalog: Catalog) -> None:
    said = "create table n (c int default nextval('r')); drop sequence r cascade"
    made = taken(catalog, f"create sequence r; {said}", whole=False)
    (table,) = made.made.values()
    assert not table.by_name["c"].has_default
    said = "create table n (c int default nextval('o_id_seq')); drop table o cascade"
    made = taken(catalog, f"alter table v alter n drop default; {said}", whole=True)
    (table,) = made.made.values()
    assert not table.by_name["c"].has_default
    assert {each.name for each in made.dropped.values()} == {"o", "o_id_seq"}


def test_what_was_made_and_taken_back_is_needed_by_nobody(catalog: Catalog) -> None:
    said = "create sequence r; alter table u alter n set default nextval('r')"
    assert job_of(catalog, f"{said}; drop sequence r cascade").needs == (
        catalog.resolve("s").table_id,
    )
