"""Goal: a column whose type is changed stands where it stood, at each version of the change and for
whoever is told of it. Method: the versions that a job publishes, and what readers make of each.
"""

from __future__ import annotations

from leasehold.catalog.catalog import Catalog
from leasehold.catalog.descriptor import Descriptor, from_wire
from leasehold.catalog.edits import apply_edits
from leasehold.catalog.element_forms import COLUMN_FORM
from leasehold.events.avro_schema import avro_schema
from leasehold.events.public_reading import decode_event
from leasehold.events.public_schema import encode_event
from leasehold.events.version_diff import diff
from leasehold.model.records.events import VersionEvent
from leasehold.model.records.log import Commit, DescriptorWrite
from leasehold.replication.changefeed import version_event
from leasehold.schema_change.plan.plan import plan
from leasehold.schema_change.plan.results import JobPlan
from leasehold.sql.ddl.schema_statements import parse_ddl
from leasehold.sql.syntax.statements import (
    Explain,
)
from tests.schema_change.changes import catalog_of, standing

TABLE = "CREATE TABLE t (a varchar(9), b integer, id integer PRIMARY KEY, c integer)"


def versions(given: Descriptor, sql: str) -> list[Descriptor]:
    """Those that the job publishes, with the one before it."""
    catalog: Catalog = catalog_of(given)
    statement = parse_ddl(sql)
    assert not isinstance(statement, Explain)
    made = plan(statement, catalog)
    assert isinstance(made, JobPlan)
    found = [given]
    for step in made.job.steps:
        found.append(apply_edits(found[-1], step.edits))
    return found


def test_a_column_keeps_its_place_at_every_version() -> None:
    table = standing(TABLE)
    for sql in (
        "ALTER TABLE t ALTER a TYPE varchar(5)",
        "ALTER TABLE t ALTER b TYPE text, ALTER a TYPE text, ADD COLUMN d date",
        "ALTER TABLE t ALTER b TYPE varchar(3), DROP COLUMN c",
        "ALTER TABLE t ALTER d TYPE timestamp, ALTER a TYPE varchar(2)",
    ):
        for version in versions(table, sql):
            order = [name for name in ("a", "b", "id", "c", "d") if name in version.by_name]
            assert [*version.by_name] == order
            assert [c.element_id for c in version.columns] == sorted(version.by_id)
            assert from_wire(version.to_wire()) == version
            table = version
    assert [*table.by_name] == ["a", "b", "id", "d"]


def test_a_column_of_an_earlier_release_stands_where_its_element_does() -> None:
    table = versions(standing(TABLE), "ALTER TABLE t ALTER a TYPE text USING a")[-1]
    wire = COLUMN_FORM.to_wire(table.column("a"))
    assert wire.pop("ordinal") == 1
    moved = COLUMN_FORM.from_wire(wire)
    assert (moved.ordinal, moved.position) == (0, moved.element_id)
    assert "ordinal" not in COLUMN_FORM.to_wire(table.column("b")), "nothing new is said of others"


def test_who_is_told_of_versions_sees_the_order() -> None:
    made = versions(standing(TABLE), "ALTER TABLE t ALTER a TYPE text USING a")
    names = ["a", "b", "id", "c"]
    for version in made:
        write = DescriptorWrite(version.table_id, version.version, version.to_wire())
        event: VersionEvent = version_event(write, Commit(b"", 1, 7, {}, (), 0), 5, ())
        assert [field["name"] for field in avro_schema(version)["fields"]] == names
        told = decode_event(encode_event(event))
        assert [*from_wire(told.body).by_name] == names
        assert from_wire(told.body).columns == version.columns
    changes = [change for change in diff(made[0], made[-1]) if change.kind == "column"]
    assert [change.name for change in changes] == ["a", "a"], "one takes over from the other"
    both = diff(standing(TABLE), versions(made[-1], "ALTER TABLE t ALTER b TYPE text")[-1])
    assert [change.name for change in both] == ["a", "a", "b", "b"]
