"""Goal: while a column changes its type, every write gives the new one what USING makes of the row,
in the time zone in which it was said, whoever writes. Method: images composed under each version
that a job publishes; what has travelled is the same.
"""

from __future__ import annotations

from typing import Any

import pytest

from leasehold.catalog.descriptor import Descriptor, from_wire
from leasehold.catalog.edits import apply_edits
from leasehold.catalog.element_forms import (
    CHECK_FORM,
    COLUMN_FORM,
    derived_from_wire,
    derived_to_wire,
)
from leasehold.catalog.elements import Check, Derived
from leasehold.catalog.states import State
from leasehold.model.errors import InvalidArgument
from leasehold.model.records.log import ChangeKind
from leasehold.rows.key_values import compose
from leasehold.schema_change.plan.plan import plan
from leasehold.schema_change.plan.results import JobPlan
from leasehold.sql.ddl.schema_statements import parse_statements
from leasehold.sql.syntax.statements import (
    CreateTable,
    Explain,
)
from tests.schema_change.changes import catalog_of, standing

TABLE = "CREATE TABLE t (id integer PRIMARY KEY, a integer, b integer, at timestamp)"
ID, A, B, AT = 1, 2, 3, 4
NEW = 5
HOUR = 3_600_000_000
NOON = 1_593_604_800_000_000
"""Of 2020-07-01."""


def versions(sql: str, *zones: str) -> list[Descriptor]:
    ((statement, _),) = parse_statements(f"ALTER TABLE t {sql}", zones)
    assert not isinstance(statement, Explain)
    found = [standing(TABLE)]
    made = plan(statement, catalog_of(found[0]))
    assert isinstance(made, JobPlan)
    for step in made.job.steps:
        found.append(apply_edits(found[-1], step.edits))
        assert from_wire(found[-1].to_wire()) == found[-1]
    return found


def following(found: list[Descriptor]) -> list[Descriptor]:
    """Those in which the new column is written and follows the old one."""
    written = [v for v in found if NEW in v.by_id and v.by_id[NEW].state is State.WRITE_ONLY]
    assert len(written) == 2, "leniently, then strictly"
    return written


def test_using_follows_every_column_that_it_names() -> None:
    for version in following(versions("ALTER a TYPE bigint USING coalesce(a, b * 1000)")):
        made: Any = compose(version, ChangeKind.INSERT, None, {ID: 1, B: 5})
        assert made[NEW] == 5_000, "what is NULL has a value"
        made = compose(version, ChangeKind.UPDATE, made, {B: 6})
        assert made[NEW] == 6_000, "another column than its own has changed"
        made = compose(version, ChangeKind.BACKFILL, {ID: 1, B: 7}, {})
        assert made[NEW] == 7_000
        made = compose(version, ChangeKind.UPDATE, made, {A: 3, B: None})
        assert made[NEW] == 3


@pytest.mark.parametrize(("zone", "hours"), [("", 0), ("America/New_York", 4), ("<+02>-2", -2)])
def test_each_write_converts_in_the_zone_of_the_statement(zone: str, hours: int) -> None:
    zones = (zone,) if zone else ()
    found = versions("ALTER at TYPE timestamptz", *zones)
    for version in following(found):
        made: Any = compose(version, ChangeKind.INSERT, None, {ID: 1, AT: NOON})
        assert made[NEW] == NOON + hours * HOUR
    back = found[-3]
    assert back.by_id[AT].state is State.WRITE_ONLY, "for those who still read it"
    made = compose(back, ChangeKind.INSERT, None, {ID: 1, NEW: NOON})
    assert made[AT] == NOON - hours * HOUR


def test_a_zone_is_kept_only_where_it_makes_a_difference() -> None:
    for sql in ("ALTER at TYPE date", "ALTER a TYPE bigint USING a"):
        found = versions(sql, "Asia/Tokyo")
        derived = [c.derived for v in found for c in v.columns if c.derived is not None]
        assert {each.zone for each in derived} == {""}
    found = versions("ALTER at TYPE timestamptz", "UTC")
    assert {c.derived.zone for v in found for c in v.columns if c.derived} == {""}


def test_what_is_kept_of_zones_travels_and_old_forms_are_read() -> None:
    derived = Derived((1,), "at", strict=True, zone="Asia/Tokyo")
    assert derived_from_wire(derived_to_wire(derived)) == derived
    plain = derived._replace(zone="")
    assert len(derived_to_wire(plain)) == len(derived_to_wire(derived)) - 1, (
        "as an earlier release writes it"
    )
    assert derived_from_wire(derived_to_wire(plain)) == plain
    check = Check(7, "c", "at > 0", (1,), zone="Asia/Tokyo")
    assert CHECK_FORM.from_wire(CHECK_FORM.to_wire(check)) == check
    old = {k: v for k, v in CHECK_FORM.to_wire(check).items() if k != "zone"}
    assert CHECK_FORM.from_wire(old).zone == ""
    column = standing(TABLE).column("a")
    assert COLUMN_FORM.from_wire(COLUMN_FORM.to_wire(column)) == column
    assert not {"zone", "moment_zone", "ordinal"} & COLUMN_FORM.to_wire(column).keys()


def test_zones_are_of_one_statement_after_the_other() -> None:
    one = "CREATE TABLE {} (id integer PRIMARY KEY, at timestamptz DEFAULT '2020-07-01 12:00')"
    text = "; ".join(one.format(name) for name in "abc")

    def hours(*zones: str) -> list[int]:
        found = []
        for statement, _ in parse_statements(text, zones):
            assert isinstance(statement, CreateTable)
            found.append((statement.columns[1].default - NOON) // HOUR)
        return found

    assert hours() == [0, 0, 0]
    assert hours("Asia/Tokyo") == [-9, -9, -9]
    assert hours("UTC", "Asia/Tokyo") == [0, -9, -9]
    assert hours("UTC", "Asia/Tokyo", "America/New_York") == [0, -9, 4]
    with pytest.raises(InvalidArgument):
        hours("Nowhere/None")
