"""Names while they change: every version in use is found by its own, no name means two things, and
no other table takes a name that somebody may still use."""

from __future__ import annotations

import pytest

from leasehold.catalog.edits import Kind
from leasehold.catalog.job import Phase
from leasehold.model.errors import DuplicateObject, Refused, UnknownTable
from leasehold.model.records.log import DescriptorWrite
from leasehold.schema_change.plan.results import CreateTablePlan
from tests.schema_change.changes import TABLE, Change, changed, planned
from tests.schema_change.menu import A2, UNIQUE
from tests.schema_change.model import Model
from tests.schema_change.test_menu import explored, title
from tests.schema_change.timeline import Position

RENAME_TABLE = changed("ALTER TABLE t RENAME TO u", domain=A2)
RENAME_INDEX = changed("ALTER INDEX i RENAME TO j", TABLE, UNIQUE, domain=A2)
RENAME_COLUMN = changed("ALTER TABLE t RENAME COLUMN a TO z", domain={**A2, "z": (0, 1)})
DROP_TABLE = changed("DROP TABLE t", TABLE, UNIQUE, domain=A2)
ADD_COLUMN = changed("ALTER TABLE t ADD COLUMN c integer")

NAMED = (Kind.TABLE, Kind.INDEX)


def places(change: Change) -> list[tuple[Position, int]]:
    """Every position of the job, with the fence where it can be: one below while it drains."""
    model = Model(change, rows=1)
    report = explored(model)
    assert report.exhausted
    positions = [position for position in model.timeline.all if not position.cleaned]
    assert len(positions) > 1
    return [(p, int(p.job.phase is Phase.DRAINING)) for p in positions]


@pytest.mark.parametrize("change", [RENAME_TABLE, DROP_TABLE, RENAME_INDEX], ids=title)
def test_no_table_takes_a_name_that_is_in_use_or_promised(change: Change) -> None:
    """CREATE TABLE at every place of the job: refused as long as a version in use has the name or
    the job gives it; else the name is the new table's alone."""
    for position, low in places(change):
        versions = position.versions[len(position.versions) - 1 - low :]
        names = {name for version in versions for name in version.names}
        names |= {i.name for v in versions if v.names for i in v.indexes}
        if not position.job.status.ended:
            named = [e for s in position.job.steps for e in s.edits if e.kind in NAMED]
            names |= {edit.name for edit in named}
        for name in ("t", "u", "i", "j", "free"):
            catalog = position.catalog(low)
            try:
                made = planned(TABLE.replace("TABLE t", f"TABLE {name}"), catalog)
            except DuplicateObject:
                assert name in names or not position.job.status.ended, (name, position.words)
                continue
            assert name not in names, (name, position.words)
            assert isinstance(made, CreateTablePlan)
            body = made.descriptor.to_wire()
            catalog.apply(DescriptorWrite(made.descriptor.table_id, 1, body), 0, 0)
            assert catalog.resolve(name).table_id == made.descriptor.table_id
            for version in versions:
                for own in version.names:
                    assert catalog.resolve(own, version.version).table_id == 1


@pytest.mark.parametrize("change", [RENAME_TABLE, RENAME_COLUMN], ids=title)
def test_both_names_resolve_as_long_as_two_versions_live(change: Change) -> None:
    """And no longer: at the end the old name is free again, after a cancel the new one is."""
    old, new = ("t", "u") if change is RENAME_TABLE else ("a", "z")
    for position, low in places(change):
        known = {}
        for name in (old, new):
            catalog = position.catalog(low)
            table = catalog.newest(1)
            try:
                found = catalog.resolve(name) if change is RENAME_TABLE else table.column(name)
            except Refused:
                continue
            known[name] = found
        versions = position.versions[len(position.versions) - 1 - low :]
        if change is RENAME_TABLE:
            wanted = {version.name for version in versions}
        else:
            wanted = {c.name for v in versions for c in v.columns if c.element_id == 2}
        assert wanted <= known.keys(), position.words
        if position.job.status.ended:
            assert len(known) == 1


def test_the_other_name_is_unknown_to_a_version_that_never_had_it() -> None:
    for position, low in places(RENAME_TABLE):
        catalog = position.catalog(low)
        first = position.versions[0]
        if len(position.versions) == 2 and low:
            assert catalog.resolve("t", first.version).version == first.version
            with pytest.raises(UnknownTable):
                catalog.resolve("u", first.version)
            return
    pytest.fail("the first version was never in use beside the second")
