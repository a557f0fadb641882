"""TRUNCATE as a plan: which tables lose their rows, and when that can't be."""

from __future__ import annotations

import pytest

from leasehold.catalog.catalog import Catalog
from leasehold.model.errors import FeatureNotSupported, Refused, TableBusy, UnknownTable
from leasehold.model.records.log import DescriptorWrite, JobWrite
from leasehold.schema_change.plan.explain import explain
from leasehold.schema_change.plan.results import JobPlan, TruncatePlan
from tests.support.schema_change.next_descriptor import next_descriptor
from tests.unit.schema_change.test_foreign_keys import TABLES, planned, run

REFERS = "ALTER TABLE c ADD CONSTRAINT k FOREIGN KEY (a) REFERENCES p"


@pytest.fixture
def catalog() -> Catalog:
    made = Catalog()
    for sql in TABLES:
        run(made, sql)
    return made


def truncated(catalog: Catalog, sql: str) -> list[str]:
    made = planned(catalog, sql)
    assert isinstance(made, TruncatePlan), made
    return [table.name for table in made.tables]


def begun(catalog: Catalog, sql: str) -> JobPlan:
    made = planned(catalog, sql)
    assert isinstance(made, JobPlan), made
    catalog.apply(JobWrite(made.job.job_id, made.job.to_wire()), 1, 1)
    return made


def refusal(catalog: Catalog, sql: str) -> Refused:
    with pytest.raises(Refused) as caught:
        planned(catalog, sql)
    return caught.value


def test_each_table_once(catalog: Catalog) -> None:
    assert truncated(catalog, "TRUNCATE c, p, c") == ["c", "p"]
    assert isinstance(refusal(catalog, "TRUNCATE c, nothing"), UnknownTable)


def test_a_table_that_is_referred_to_needs_the_other_one_too(catalog: Catalog) -> None:
    run(catalog, REFERS)
    error = refusal(catalog, "TRUNCATE p")
    assert isinstance(error, FeatureNotSupported)
    assert "foreign key 'k' of table 'c'" in error.message
    assert truncated(catalog, "TRUNCATE p, c") == ["p", "c"]
    assert truncated(catalog, "TRUNCATE c") == ["c"]


def test_a_table_may_refer_to_itself(catalog: Catalog) -> None:
    run(catalog, "ALTER TABLE p ADD FOREIGN KEY (v) REFERENCES p")
    assert truncated(catalog, "TRUNCATE p") == ["p"]


@pytest.mark.parametrize("sql", [f"{REFERS} NOT VALID", REFERS])
def test_a_foreign_key_in_any_state_refers(catalog: Catalog, sql: str) -> None:
    run(catalog, sql)
    dropping = begun(catalog, "ALTER TABLE c DROP CONSTRAINT k").job
    gone = next_descriptor(dropping, catalog)
    catalog.apply(DescriptorWrite(gone.table_id, gone.version, gone.to_wire()), 1, 1)
    # Its newest version may be without it; the one before is in use until the fence.
    assert isinstance(refusal(catalog, "TRUNCATE p"), FeatureNotSupported)


@pytest.mark.parametrize(
    "sql", ["ALTER TABLE p ADD COLUMN e int", "CREATE INDEX i ON p (v)", "DROP TABLE p"]
)
def test_not_while_a_job_runs_which_is_named(catalog: Catalog, sql: str) -> None:
    """A backfill would meet rows that are gone, a verification a table that changed under it."""
    number = begun(catalog, sql).job.job_id
    error = refusal(catalog, "TRUNCATE c, p")
    assert isinstance(error, TableBusy)
    assert (error.sqlstate, error.detail["job"]) == ("55006", number)
    assert f"job {number}" in error.message
    assert truncated(catalog, "TRUNCATE c") == ["c"]


def test_not_while_a_job_of_another_table_needs_it(catalog: Catalog) -> None:
    begun(catalog, REFERS)
    for sql in ("TRUNCATE p", "TRUNCATE c", "TRUNCATE p, c"):
        assert isinstance(refusal(catalog, sql), TableBusy), sql


def test_identities_there_are_none_of(catalog: Catalog) -> None:
    made = planned(catalog, "TRUNCATE p RESTART IDENTITY")
    assert isinstance(made, TruncatePlan)
    assert "nothing to restart" in made.notices[0]
    assert planned(catalog, "TRUNCATE p CONTINUE IDENTITY") == planned(catalog, "TRUNCATE p")


def test_explained_it_is_one_decision_without_a_new_version(catalog: Catalog) -> None:
    rows = explain(planned(catalog, "TRUNCATE p, c"))
    assert [(r.step, r.version, r.point_of_no_return) for r in rows] == [(1, 1, True)] * 2
    assert rows[0].changes == "table p: every row goes, the version stays"
