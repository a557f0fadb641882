"""What rests on something that is dropped: named and refused, or with CASCADE taken along."""

from __future__ import annotations

from dataclasses import replace

import pytest

from leasehold.catalog.catalog import Catalog
from leasehold.catalog.job import Job, job_from_wire
from leasehold.model.errors import DependentObjects, FeatureNotSupported, TableBusy
from leasehold.model.records.log import DescriptorWrite, JobWrite, MinVersion
from leasehold.schema_change.job.next_versions import next_descriptors
from leasehold.schema_change.plan.dependents import HINT
from leasehold.schema_change.plan.results import JobPlan, TruncatePlan
from tests.unit.schema_change.test_foreign_keys import planned, run

TABLES = (
    "CREATE TABLE p (id int PRIMARY KEY, u int CONSTRAINT pu UNIQUE, v int, up int)",
    "CREATE TABLE c (id int PRIMARY KEY, a int CONSTRAINT ca REFERENCES p (u))",
    "CREATE TABLE d (id int PRIMARY KEY REFERENCES c, a int CONSTRAINT da REFERENCES p (u))",
)
DROPS = {
    "ALTER TABLE p DROP CONSTRAINT pu": ("constraint pu on table p", "index pu"),
    "ALTER TABLE p DROP COLUMN u": ("column u of table p", "column u of table p"),
    "DROP TABLE p": ("table p", "table p"),
}
TOGETHER = {
    "drop constraint": "ALTER TABLE p DROP CONSTRAINT pu CASCADE",
    "drop column": "ALTER TABLE p DROP COLUMN u CASCADE",
}


@pytest.fixture
def catalog() -> Catalog:
    made = Catalog()
    for sql in TABLES:
        run(made, sql)
    return made


def job_of(catalog: Catalog, sql: str) -> JobPlan:
    made = planned(catalog, sql)
    assert isinstance(made, JobPlan), made
    assert job_from_wire(made.job.to_wire()) == made.job
    return made


def walked(catalog: Catalog, job: Job) -> None:
    """All its steps, of all its tables."""
    for number in range(len(job.steps)):
        job = replace(job, step=number)
        for table in next_descriptors(job, catalog):
            write = DescriptorWrite(table.table_id, table.version, table.to_wire())
            catalog.apply(write, 1, 1)
            catalog.apply(MinVersion(table.table_id, table.version), 1, 1)


def constraints(catalog: Catalog, name: str) -> list[str]:
    table = catalog.resolve(name)
    return [k.name for k in table.foreign_keys] + [i.name for i in table.indexes]


@pytest.mark.parametrize("sql", DROPS)
@pytest.mark.parametrize("way", ["", " RESTRICT"])
def test_refused_in_postgresqls_words(catalog: Catalog, sql: str, way: str) -> None:
    what, needed = DROPS[sql]
    with pytest.raises(DependentObjects) as caught:
        planned(catalog, sql + way)
    error = caught.value
    assert error.sqlstate == "2BP01"
    assert error.message == f"cannot drop {what} because other objects depend on it"
    assert str(error.detail["detail"]).splitlines() == [
        f"constraint ca on table c depends on {needed}",
        f"constraint da on table d depends on {needed}",
    ]
    assert error.detail["hint"] == HINT
    assert error.detail["table"] == "p"


@pytest.mark.parametrize("sql", TOGETHER.values())
def test_foreign_keys_of_others_go_along(catalog: Catalog, sql: str) -> None:
    made = job_of(catalog, sql)
    job = made.job
    assert made.notices == (
        "drop cascades to constraint ca on table c",
        "drop cascades to constraint da on table d",
    )
    assert (job.tables, job.joins, job.point) == ((1, 2, 3), (2, 3), 1)
    walked(catalog, job)
    assert constraints(catalog, "p") == []
    assert constraints(catalog, "c") == []
    assert constraints(catalog, "d") == ["d_id_fkey"], "that needs no index but its key"
    # They take part in the steps that change them, and in no other.
    assert [catalog.resolve(n).version for n in "pcd"] == [5, 4, 4]


@pytest.mark.parametrize("sql", TOGETHER.values())
def test_entries_are_complete_as_long_as_a_version_enforces_the_key(
    catalog: Catalog, sql: str
) -> None:
    """⚠ Who enforces it finds the row that it refers to by its entry."""
    job = job_of(catalog, sql).job
    for number in range(len(job.steps)):
        edits = {(e.table_id or 1, e.element_id): e for e in job.steps[number].edits}
        key = catalog.resolve("c").foreign_keys[0].element_id
        index = catalog.resolve("p").indexes[0].element_id
        if (2, key) in edits and edits[2, key].after is None:
            gone = number
        if (1, index) in edits and edits[1, index].state == "delete-only":
            hidden = number
    assert gone < hidden, "not in one step: two versions are in use"


def test_an_index_with_its_own_foreign_keys(catalog: Catalog) -> None:
    run(catalog, "CREATE UNIQUE INDEX pv ON p (v)")
    run(catalog, "ALTER TABLE p ADD CONSTRAINT itself FOREIGN KEY (up) REFERENCES p (v)")
    with pytest.raises(DependentObjects) as caught:
        planned(catalog, "DROP INDEX pv")
    assert caught.value.message == "cannot drop index pv because other objects depend on it"
    made = job_of(catalog, "DROP INDEX pv CASCADE")
    assert made.notices == ("drop cascades to constraint itself on table p",)
    walked(catalog, made.job)
    assert constraints(catalog, "p") == ["pu"]


def test_generated_columns_go_along(catalog: Catalog) -> None:
    sql = "CREATE TABLE g (id int PRIMARY KEY, a int, b int GENERATED ALWAYS AS (a + 1) STORED)"
    run(catalog, sql)
    with pytest.raises(DependentObjects) as caught:
        planned(catalog, "ALTER TABLE g DROP COLUMN a")
    assert caught.value.detail["detail"] == "column b of table g depends on column a of table g"
    made = job_of(catalog, "ALTER TABLE g DROP COLUMN a CASCADE")
    assert made.notices == ("drop cascades to column b of table g",)
    walked(catalog, made.job)
    assert [c.name for c in catalog.resolve("g").columns] == ["id"]
    assert not job_of(catalog, "ALTER TABLE p DROP COLUMN v CASCADE").notices


def test_what_the_same_statement_drops_is_in_nobodys_way(catalog: Catalog) -> None:
    run(catalog, "ALTER TABLE p ADD CONSTRAINT itself FOREIGN KEY (up) REFERENCES p (u)")
    for name in ("ca", "da"):
        run(catalog, f"ALTER TABLE {name[0]} DROP CONSTRAINT {name}")
    made = job_of(catalog, "ALTER TABLE p DROP CONSTRAINT itself, DROP CONSTRAINT pu")
    assert (made.notices, len(made.job.steps)) == ((), 4)
    walked(catalog, made.job)
    assert constraints(catalog, "p") == []


def test_beside_other_actions_the_others_join_in(catalog: Catalog) -> None:
    sql = "ALTER TABLE p DROP CONSTRAINT pu CASCADE, ADD COLUMN x int NOT NULL DEFAULT 1"
    job = job_of(catalog, sql).job
    assert job.joins == (2, 3)
    walked(catalog, job)
    assert [catalog.resolve(n).version for n in "cd"] == [4, 4]


def test_d9_none_of_the_tables_may_be_busy(catalog: Catalog) -> None:
    other = job_of(catalog, "ALTER TABLE d ADD COLUMN x int").job
    catalog.apply(JobWrite(other.job_id, other.to_wire()), 1, 1)
    for sql in TOGETHER.values():
        with pytest.raises(TableBusy, match="'d'"):
            planned(catalog, sql)


def truncated(catalog: Catalog, sql: str) -> tuple[list[str], tuple[str, ...]]:
    made = planned(catalog, sql)
    assert isinstance(made, TruncatePlan), made
    return [table.name for table in made.tables], made.notices


def test_truncate_takes_all_that_refer_however_far(catalog: Catalog) -> None:
    with pytest.raises(FeatureNotSupported) as caught:
        planned(catalog, "TRUNCATE c")
    assert caught.value.detail["detail"] == 'Table "d" references "c".'
    hint = 'Truncate table "d" at the same time, or use TRUNCATE ... CASCADE.'
    assert caught.value.detail["hint"] == hint
    notice = 'truncate cascades to table "{}"'
    assert truncated(catalog, "TRUNCATE c CASCADE") == (["c", "d"], (notice.format("d"),))
    both = tuple(map(notice.format, "cd"))
    assert truncated(catalog, "TRUNCATE p CASCADE") == (["p", "c", "d"], both)
    assert truncated(catalog, "TRUNCATE d, p CASCADE") == (["d", "p", "c"], both[:1])
    assert truncated(catalog, "TRUNCATE d CASCADE") == (["d"], ())
    other = job_of(catalog, "ALTER TABLE d ADD COLUMN x int").job
    catalog.apply(JobWrite(other.job_id, other.to_wire()), 1, 1)
    with pytest.raises(TableBusy, match="'d'"):
        planned(catalog, "TRUNCATE p CASCADE")
