"""What a catalog keeps beside its versions, table by table, is what one has that is loaded anew.
Whoever follows its changes hears of each table and each job that has changed."""

from __future__ import annotations

from typing import Any

import pytest

from leasehold.catalog.catalog import Catalog
from leasehold.catalog.descriptor import Descriptor
from leasehold.catalog.elements import CommitContext
from leasehold.catalog.job import Job
from leasehold.catalog.names import relation_names
from leasehold.model.errors import UnknownTable
from leasehold.model.records.log import JobForgotten, TableForgotten
from leasehold.schema_change.plan.statement_batch import StatementBatch
from leasehold.sql.ddl.schema_statements import parse_statements
from leasehold.sql.syntax.statements import (
    Explain,
)
from tests.support.schema_change.job_world import World

STATEMENTS = (
    "CREATE TABLE p (id int PRIMARY KEY, u int UNIQUE)",
    "CREATE TABLE c (id int PRIMARY KEY, p int REFERENCES p ON DELETE CASCADE, s serial)",
    "CREATE INDEX c_p ON c (p)",
    "ALTER TABLE c ADD COLUMN q int",
    "ALTER INDEX c_p RENAME TO c_by_p",
    "ALTER TABLE p RENAME TO parents",
    "ALTER TABLE c DROP CONSTRAINT c_p_fkey",
    "DROP TABLE c",
    "CREATE TABLE c (id text PRIMARY KEY)",
    "ALTER TABLE parents DROP CONSTRAINT p_u_key",
)


def loaded(catalog: Catalog) -> Catalog:
    versions = [v for table in catalog.table_ids() for v in catalog.versions(table)]
    lowest = {table: catalog.min_version(table) for table in catalog.table_ids()}
    jobs = [job.to_wire() for job in catalog.jobs.values()]
    return Catalog.load([v.to_wire() for v in versions], lowest, jobs, "")


def told(catalog: Catalog) -> dict[str, Any]:
    tables = catalog.table_ids()
    return {
        "names": {name: catalog.resolve(name).table_id for name in catalog.table_names()
                  if _resolves(catalog, name)},
        "taken": relation_names(catalog),
        "references": {
            table: {(r.child.table_id, r.child.version, r.key) for r in catalog.references(table)}
            for table in tables
        },
        "acts": catalog.has_actions,
        "running": catalog.running,
        "copying": catalog.find_copying(),
        "gentle": catalog.is_gentle(),
        "leased": [table.table_id for table in catalog.leased_tables()],
        "ended": catalog.ended_before(1 << 62),
        "ids": (catalog.next_table_id(), catalog.next_sequence_id(), catalog.next_job_id()),
    }  # fmt: skip


def _resolves(catalog: Catalog, name: str) -> bool:
    """Whether it is more than the name of a version before the newest."""
    try:
        catalog.resolve(name)
    except UnknownTable:
        return False
    return True


@pytest.fixture
def world() -> World:
    return World()


def run(world: World, sql: str) -> None:
    """Up to the end of the jobs that it begins."""
    batch = StatementBatch.on(world.catalog)
    for statement, text in parse_statements(sql):
        assert not isinstance(statement, Explain)
        batch.take(statement, text, b"id", CommitContext(7, b"s"), lambda _: 1)
    world.append(*batch.writes)
    world.until(lambda: not world.catalog.running)


def demand_searched(catalog: Catalog) -> None:
    """Compare with what a search of all versions finds, while no job runs."""
    in_use = [
        version
        for table in catalog.table_ids()
        for version in catalog.versions(table)
        if version.version >= catalog.min_version(table)
    ]
    names = {name for version in in_use for name in version.names}
    assert set(catalog.table_names()) == names
    indexes = {name for table in catalog.tables() for name in table.index_names}
    assert relation_names(catalog) == names | indexes
    keys = {
        (key.parent, version.table_id, key.element_id)
        for version in in_use
        if version.has_own_rows
        for key in version.enforced_foreign_keys
    }
    found = {
        (parent, reference.child.table_id, reference.key.element_id)
        for parent in catalog.table_ids()
        for reference in catalog.references(parent)
    }
    assert found == keys


def test_it_is_what_a_catalog_has_that_is_loaded_anew(world: World) -> None:
    before = told(world.catalog)
    for sql in STATEMENTS:
        run(world, sql)
        found = told(world.catalog)
        demand_searched(world.catalog)
        assert found == told(loaded(world.catalog)), sql
        assert found == told(world.catalog.copy()), sql
        assert found != before, sql
        before = found


def test_who_follows_hears_once_of_each_table_that_has_changed(world: World) -> None:
    known: dict[int, tuple[Descriptor, int]] = {}
    seen = 0
    for sql in STATEMENTS:
        run(world, sql)
        catalog = world.catalog
        changed = catalog.changed_since(seen)
        assert len(set(changed)) == len(changed)
        now = {t: (catalog.newest(t), catalog.min_version(t)) for t in catalog.table_ids()}
        assert {table for table in now if known.get(table) != now[table]} == set(changed), sql
        known, seen = now, catalog.changes
        assert catalog.changed_since(seen) == []


def test_of_forgotten_tables_the_newest_are_told(world: World) -> None:
    run(world, "CREATE TABLE a (id int PRIMARY KEY); CREATE TABLE b (id int PRIMARY KEY)")
    run(world, "DROP TABLE a; DROP TABLE b")
    catalog, seen = world.catalog, world.catalog.changes
    catalog.apply(TableForgotten(1), 9, 9)
    assert catalog.changed_since(seen) == [1]
    catalog.apply(TableForgotten(2), 9, 9)
    assert catalog.changed_since(seen) == [2, 1]
    assert not catalog.table_names()


def test_who_follows_hears_once_of_each_job_that_has_changed(world: World) -> None:
    known: dict[int, Job] = {}
    seen = 0
    for sql in STATEMENTS:
        run(world, sql)
        catalog = world.catalog
        changed = catalog.jobs_changed_since(seen)
        assert len(set(changed)) == len(changed)
        now = dict(catalog.jobs)
        assert {job for job in now if known.get(job) != now[job]} == set(changed), sql
        known, seen = now, catalog.job_changes
        assert catalog.jobs_changed_since(seen) == []
    forgotten = next(job for job in known.values() if job.status.ended)
    world.catalog.apply(JobForgotten(forgotten.job_id), 9, 9)
    assert world.catalog.jobs_changed_since(seen) == [forgotten.job_id]
