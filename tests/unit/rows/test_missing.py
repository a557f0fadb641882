"""A column filled by key: what a chunk does to a row, what images of before mean, and from which
version on they don't. The version is known only when it is made."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, cast

import pytest

from leasehold.catalog.catalog import Catalog
from leasehold.catalog.descriptor import Descriptor, from_wire
from leasehold.catalog.edits import apply_edits
from leasehold.catalog.element_forms import COLUMN_FORM
from leasehold.catalog.elements import MISSING_BYTES_MAX, Column, Missing
from leasehold.catalog.job import Step
from leasehold.catalog.states import State
from leasehold.model.records.log import ChangeKind, DescriptorWrite
from leasehold.rows.filled_by_key import backfill_row, complete_image, complete_new_row
from leasehold.rows.key_values import compose
from leasehold.schema_change.plan.plan import plan
from leasehold.schema_change.plan.results import JobPlan
from leasehold.sql.ddl.schema_statements import parse_ddl
from leasehold.sql.syntax.statements import (
    AlterTable,
)
from leasehold.values.types import Type

TABLE = Descriptor(1, "t", 5, (Column(1, "id", Type("integer"), False),), (1,), next_element_id=2)


def steps_of(sql: str, table: Descriptor = TABLE, **knows: bool) -> tuple[Step, ...]:
    catalog = Catalog()
    catalog.apply(DescriptorWrite(1, table.version, table.to_wire()), 0, 1)
    statement = parse_ddl(sql)
    assert isinstance(statement, AlterTable)
    made = plan(statement, catalog, **cast(Any, knows))
    assert isinstance(made, JobPlan)
    return made.job.steps


def versions_of(sql: str, table: Descriptor = TABLE, **knows: bool) -> list[Descriptor]:
    """The table before the statement and after each of its steps, as the log carries them."""
    versions = [table]
    for step in steps_of(sql, table, **knows):
        made = apply_edits(versions[-1], tuple(step.edits))
        assert from_wire(made.to_wire()) == made
        versions.append(made)
    return versions


@pytest.mark.parametrize("kind", ["NOT NULL DEFAULT 7", "DEFAULT 7"])
def test_the_version_in_which_it_is_filled_is_the_one_that_counts(kind: str) -> None:
    sql = f"ALTER TABLE t ADD COLUMN c integer {kind}"
    versions = versions_of(sql)
    at_once = Missing(6, 7, at_once=True)
    assert [v.missing for v in versions] == [{}, {2: at_once}, {2: at_once}]
    assert [c.state for c in versions[1].at_once] == [State.DELETE_ONLY]
    versions = versions_of(sql, in_place=False)
    states = [c.state for v in versions for c in v.columns if c.name == "c"]
    assert states[:2] == [State.DELETE_ONLY, State.WRITE_ONLY]
    told = [v.missing for v in versions]
    assert told == [{}, {}, *[{2: Missing(7, 7)}] * (len(versions) - 2)]


def test_the_way_back_takes_it_out() -> None:
    sql = "ALTER TABLE t ADD COLUMN c integer NOT NULL DEFAULT 7"
    first, second, *_ = steps_of(sql, in_place=False)
    risen = apply_edits(apply_edits(TABLE, first.edits), second.edits)
    assert apply_edits(risen, second.reversed.edits).missing == {}
    first, *_ = steps_of(sql)
    assert apply_edits(apply_edits(TABLE, first.edits), first.reversed.edits).missing == {}


def test_an_earlier_release_refuses_what_is_there_at_once() -> None:
    """It would leave the rows without it; what a backfill puts there is said as before."""
    column = Column(2, "c", Type("integer"), False, 7, missing=Missing(7, 7, at_once=True))
    assert COLUMN_FORM.to_wire(column)["missing"] == [7, 7, True]
    assert COLUMN_FORM.from_wire(COLUMN_FORM.to_wire(column)) == column
    by_key = replace(column, missing=Missing(7, 7))
    assert COLUMN_FORM.to_wire(by_key)["missing"] == [7, 7]


def test_a_new_row_of_an_older_writer_has_what_every_row_has() -> None:
    """Of a column that a backfill fills it has nothing: that one comes to it later."""
    column = Column(2, "c", Type("integer"), True, 8, missing=Missing(7, 7, at_once=True))
    other = Column(3, "d", Type("integer"), True, 9, State.WRITE_ONLY, missing=Missing(7, 9))
    newest = replace(TABLE, version=7, columns=(*TABLE.columns, column, other))
    assert complete_new_row(newest, 6, {1: 1}) == {1: 1, 2: 7}
    assert complete_new_row(newest, 6, {1: 1, 2: 5}) == {1: 1, 2: 5}
    assert complete_new_row(newest, 7, {1: 1}) == {1: 1}
    hidden = replace(newest, columns=(*TABLE.columns, replace(column, state=State.DELETE_ONLY)))
    assert compose(hidden, ChangeKind.INSERT, None, {1: 1}) == {1: 1, 2: 7}
    assert compose(hidden, ChangeKind.UPDATE, {1: 1}, {}) == {1: 1}, "a NULL stays one"


def test_what_happens_to_the_default_later_changes_nothing_for_old_rows() -> None:
    sql = "ALTER TABLE t ADD COLUMN c integer NOT NULL DEFAULT 7, ALTER COLUMN c SET DEFAULT 8"
    newest = versions_of(sql)[-1]
    assert newest.by_name["c"].default == 8
    assert complete_image(newest, 5, {1: 1}) == {1: 1, 2: 7}


def test_a_column_of_another_type_is_another_column_and_told_by_images_where_not_all_know() -> None:
    risen = versions_of("ALTER TABLE t ADD COLUMN c integer NOT NULL DEFAULT 7")[-1]
    sql = "ALTER TABLE t ALTER COLUMN c TYPE text"
    for version in versions_of(sql, risen, computed=False)[-3:]:
        public = version.by_name["c"]
        assert (public.type.name, public.missing) == ("text", None)


@pytest.mark.parametrize(("length", "by_key"), [(MISSING_BYTES_MAX, True), (257, False)])
def test_a_long_default_is_told_by_images(length: int, by_key: bool) -> None:
    newest = versions_of(f"ALTER TABLE t ADD COLUMN c text NOT NULL DEFAULT '{'x' * length}'")[-1]
    assert bool(newest.missing) == by_key


def test_an_image_of_before_gets_the_value_and_a_later_one_says_null() -> None:
    public = Column(2, "c", Type("integer"), default=8, missing=Missing(7, 7))
    table = replace(TABLE, version=9, columns=(*TABLE.columns, public))
    assert complete_image(table, 6, {1: 1}) == {1: 1, 2: 7}
    assert complete_image(table, 6, {1: 1, 2: 9}) == {1: 1, 2: 9}
    assert complete_image(table, 7, {1: 1}) == {1: 1}


def test_a_pair_that_is_there_stays() -> None:
    column = Column(2, "c", Type("integer"), False, 7, State.WRITE_ONLY, missing=Missing(7, 7))
    assert backfill_row(column, {1: 1}) == {1: 1, 2: 7}
    assert backfill_row(column, {1: 1, 2: 0}) is None


def test_an_image_under_the_version_that_is_filled_has_the_pair() -> None:
    """What `complete_image` rests on: any insert or update there puts it."""
    column = Column(2, "c", Type("integer"), True, 7, State.WRITE_ONLY, missing=Missing(6, 7))
    table = replace(TABLE, version=6, columns=(*TABLE.columns, column))
    assert compose(table, ChangeKind.UPDATE, {1: 1}, {})[2] == 7
    assert compose(table, ChangeKind.INSERT, None, {1: 1})[2] == 7


def test_columns_written_by_earlier_releases_have_none() -> None:
    body = COLUMN_FORM.to_wire(Column(2, "c", Type("integer"), False, 7))
    del body["missing"]
    assert COLUMN_FORM.from_wire(body).missing is None
