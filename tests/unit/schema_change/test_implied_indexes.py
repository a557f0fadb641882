"""The index that a foreign key needs: PostgreSQL makes none, so nobody is shown it."""

from __future__ import annotations

import pytest

from leasehold.catalog.catalog import Catalog
from leasehold.catalog.element_forms import INDEX_FORM
from leasehold.catalog.elements import Element
from leasehold.model.errors import DuplicateObject, UnknownObject, UnknownTable
from leasehold.schema_change.plan.drops import find_drops
from leasehold.schema_change.plan.explain import describe_changes
from leasehold.schema_change.plan.results import JobPlan
from tests.unit.schema_change.test_foreign_keys import planned, run

PARENT = "CREATE TABLE p (id int PRIMARY KEY)"
CHILD = "CREATE TABLE c (id int PRIMARY KEY, a int REFERENCES p, b int)"


@pytest.fixture
def catalog() -> Catalog:
    made = Catalog()
    for sql in (PARENT, CHILD):
        run(made, sql)
    return made


def indexes(catalog: Catalog) -> list[tuple[str, bool]]:
    return [(index.name, index.implied) for index in catalog.resolve("c").indexes]


def test_it_is_marked_and_read_back(catalog: Catalog) -> None:
    (index,) = catalog.resolve("c").indexes
    assert index.implied
    assert INDEX_FORM.from_wire(INDEX_FORM.to_wire(index)) == index
    body = {k: v for k, v in INDEX_FORM.to_wire(index).items() if k != "implied"}
    assert not INDEX_FORM.from_wire(body).implied, "as an earlier release has written it"


def test_an_index_that_is_asked_for_is_that_one(catalog: Catalog) -> None:
    job = run(catalog, "CREATE INDEX by_a ON c (a)")
    assert [describe_changes(step) for step in job.steps] == ["index by_a → named by_a, shown"]
    assert indexes(catalog) == [("by_a", False)]
    run(catalog, "DROP INDEX by_a")
    assert indexes(catalog) == [("by_a", True)]
    run(catalog, "CREATE INDEX ON c (a)")
    assert indexes(catalog) == [("c_a_idx", False)]
    run(catalog, "CREATE INDEX ON c (a)")
    assert indexes(catalog) == [("c_a_idx", False), ("c_a_idx1", False)]


@pytest.mark.parametrize("sql", ["CREATE UNIQUE INDEX u ON c (a)", "CREATE INDEX u ON c (a, b)"])
def test_another_one_is_made(catalog: Catalog, sql: str) -> None:
    run(catalog, sql)
    assert indexes(catalog) == [("c_a_fkey_index", True), ("u", False)]


def test_it_takes_no_name_that_users_want(catalog: Catalog) -> None:
    """Neither a new one nor one of a log that is there, which was called as users call theirs."""
    run(catalog, "CREATE UNIQUE INDEX IF NOT EXISTS c_a_fkey_index ON c (a)")
    assert indexes(catalog) == [("c_a_fkey_index", True), ("c_a_fkey_index", False)]
    run(catalog, "CREATE INDEX by_a ON c (a)")
    run(catalog, "DROP INDEX by_a")
    assert indexes(catalog) == [("by_a", True), ("c_a_fkey_index", False)]
    run(catalog, "CREATE TABLE by_a (id int PRIMARY KEY)")
    run(catalog, "ALTER INDEX c_a_fkey_index RENAME TO c_a_idx")
    for sql in ("CREATE INDEX by_a ON c (b)", "CREATE UNIQUE INDEX c_a_idx ON c (b)"):
        with pytest.raises(DuplicateObject):
            run(catalog, sql)


def test_reads_by_it_are_told_from_reads_by_another_one_of_its_name(catalog: Catalog) -> None:
    """What a transaction has read travels with the index's name."""
    alone = catalog.resolve("c")
    (implied,) = alone.indexes
    assert alone.read_name(implied) == implied.name, "as older nodes write and read it"
    run(catalog, f"CREATE UNIQUE INDEX {implied.name} ON c (a)")
    table = catalog.resolve("c")
    assert [table.read_index(table.read_name(index)) for index in table.indexes] == [*table.indexes]
    assert table.read_index(implied.name) == table.index(implied.name) == table.indexes[1]
    assert alone.read_index(implied.name) == implied
    assert table.read_index("\0" + "99") is None


def test_it_has_no_name_for_anybody(catalog: Catalog) -> None:
    (index,) = catalog.resolve("c").indexes
    with pytest.raises(UnknownObject):
        run(catalog, f"DROP INDEX {index.name}")
    with pytest.raises(UnknownTable):
        run(catalog, f"ALTER INDEX {index.name} RENAME TO d")
    run(catalog, "CREATE INDEX c_a_idx ON c (a)")
    with pytest.raises(DuplicateObject):
        run(catalog, "CREATE INDEX c_a_idx ON c (a)")


def test_it_goes_with_its_last_foreign_key(catalog: Catalog) -> None:
    run(catalog, "ALTER TABLE c ADD CONSTRAINT again FOREIGN KEY (a) REFERENCES p")
    run(catalog, "ALTER TABLE c DROP CONSTRAINT again")
    assert indexes(catalog) == [("c_a_fkey_index", True)]
    run(catalog, "ALTER TABLE c DROP CONSTRAINT c_a_fkey")
    assert indexes(catalog) == []


def test_one_that_was_asked_for_stays(catalog: Catalog) -> None:
    run(catalog, "CREATE INDEX by_a ON c (a)")
    run(catalog, "ALTER TABLE c DROP CONSTRAINT c_a_fkey")
    assert indexes(catalog) == [("by_a", False)]


def test_a_unique_one_that_is_dropped_stays_as_a_plain_one(catalog: Catalog) -> None:
    run(catalog, "CREATE UNIQUE INDEX u ON p (id)")
    run(catalog, "ALTER TABLE c DROP CONSTRAINT c_a_fkey")
    run(catalog, "CREATE UNIQUE INDEX v ON c (a)")
    run(catalog, "ALTER TABLE c ADD FOREIGN KEY (a) REFERENCES p")
    assert indexes(catalog) == [("v", False)]
    job = run(catalog, "DROP INDEX v")
    assert (len(job.steps), job.point) == (2, 1), "as long as it can be undone it is unique"
    (index,) = catalog.resolve("c").indexes
    assert (index.implied, index.refuses_duplicates) == (True, False)
    with pytest.raises(UnknownObject):
        planned(catalog, "DROP INDEX v")
    run(catalog, "ALTER TABLE c DROP CONSTRAINT c_a_fkey")
    assert indexes(catalog) == []


def test_it_goes_with_a_parent_that_takes_its_foreign_keys(catalog: Catalog) -> None:
    run(catalog, "ALTER TABLE c ADD CONSTRAINT again FOREIGN KEY (a) REFERENCES p")
    made = planned(catalog, "DROP TABLE p CASCADE")
    assert isinstance(made, JobPlan)
    assert find_drops(made.job) == {(1, 0), *((2, e.element_id) for e in gone(catalog))}
    assert made.job.versions == {1: 2, 2: catalog.resolve("c").version + 1}
    assert len(made.notices) == 2


def gone(catalog: Catalog) -> list[Element]:
    table = catalog.resolve("c")
    return [*table.foreign_keys, *table.indexes]
