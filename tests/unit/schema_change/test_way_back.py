"""Goal: a job that is turned back, wherever it stands, leaves its table exactly as it found it.

Method: a list of statements over one table; each is planned, run by the moves of `job_moves` with
its descriptors and fences applied to a catalog, and turned back at every place before its point of
no return. The end must equal the beginning but for the numbers that only rise.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest

from leasehold.catalog.catalog import Catalog
from leasehold.catalog.descriptor import Descriptor
from leasehold.catalog.job import Job, Status
from leasehold.catalog.states import State
from leasehold.schema_change.job.transitions import can_turn_back, turn_back
from leasehold.sql.syntax.statements import (
    AddLock,
    AlterType,
    Change,
    DropColumn,
    DropConstraint,
    DropIndex,
    DropLock,
    DropNotNull,
    DropTable,
    RenameColumn,
    RenameConstraint,
    RenameIndex,
    RenameTable,
    SetDefault,
    SetNotNull,
    ValidateConstraint,
)
from leasehold.values.types import Type
from tests.support.schema_change.made_statements import (
    add_check,
    add_column,
    add_unique,
    advance,
    alter,
    catalog_with,
    column,
    create_index,
    create_table,
    job_plan,
    put_job,
    run_to_end,
)


def beginning() -> Catalog:
    """A table with something of every kind, made by jobs as well."""
    catalog = catalog_with(
        create_table(
            "t",
            column("a", default=1),
            column("b", "text"),
            column("c", nullable=False),
            column("d", nullable=False, default=4),
            column("f", nullable=False, default=6),
            uniques=(add_unique("a", "d", name="u").unique,),
            checks=(add_check("a < c", "k").check,),
        )
    )
    for statement in (
        create_index("i", "t", "b", "c"),
        alter("t", add_check("c > 0", "late", not_valid=True)),
        alter("t", AddLock("l", ("b",))),
    ):
        assert run_to_end(statement, catalog).status is Status.SUCCEEDED
    return catalog


CHANGES: dict[str, Change] = {
    "index": create_index("j", "t", "a"),
    "unique index": create_index("j", "t", "a", "b", unique=True),
    "drop index": DropIndex("i"),
    "rename index": RenameIndex("i", "j"),
    "drop table": DropTable("t"),
    "optional column": alter("t", add_column("e")),
    "nullable column with default": alter("t", add_column("e", default=3)),
    "required column": alter("t", add_column("e", nullable=False, default=3)),
    "required column without default": alter("t", add_column("e", nullable=False)),
    "unique column": alter("t", add_column("e", "text", unique=add_unique("e").unique)),
    "drop column in unique and check": alter("t", DropColumn("a")),
    "drop column in index and under lock": alter("t", DropColumn("b")),
    "drop column in both, no default": alter("t", DropColumn("c")),
    "drop required column": alter("t", DropColumn("d")),
    "type": alter("t", AlterType("f", Type("bigint"))),
    "type and default": alter(
        "t", AlterType("f", Type("text")), SetDefault("f", "'x'"), DropNotNull("f")
    ),
    "rename column": alter("t", RenameColumn("c", "z")),
    "rename table": alter("t", RenameTable("v")),
    "rename unique": alter("t", RenameConstraint("u", "v")),
    "rename check": alter("t", RenameConstraint("k", "v")),
    "rename check not valid": alter("t", RenameConstraint("late", "later")),
    "set default": alter("t", SetDefault("b", "'x'")),
    "drop default": alter("t", SetDefault("a", None)),
    "set not null": alter("t", SetNotNull("a")),
    "drop not null": alter("t", DropNotNull("c")),
    "drop not null beside a default": alter("t", DropNotNull("d")),
    "unique": alter("t", add_unique("b")),
    "check": alter("t", add_check("d > 0")),
    "check not valid": alter("t", add_check("d > 0", not_valid=True)),
    "validate": alter("t", ValidateConstraint("late")),
    "drop check": alter("t", DropConstraint("k")),
    "drop check not valid": alter("t", DropConstraint("late")),
    "drop unique": alter("t", DropConstraint("u")),
    "lock": alter("t", AddLock("m", ("a", "d"))),
    "drop lock": alter("t", DropLock("l")),
    "several that rise": alter(
        "t", add_column("e", default=3), add_unique("e"), add_check("e > a"), SetNotNull("b")
    ),
    "several that fall": alter(
        "t", DropColumn("a"), DropColumn("b"), add_column("e", nullable=False, default=0)
    ),
    "several on the same columns": alter(
        "t", SetDefault("a", "5"), SetNotNull("a"), DropNotNull("d"), AddLock("m", ("a",))
    ),
}


def plain(descriptor: Descriptor) -> Descriptor:
    return replace(descriptor, version=0, next_element_id=0, modified_us=0)


def places(statement: Change) -> list[int]:
    """After how many moves a job can be turned back."""
    catalog = beginning()
    job = put_job(catalog, job_plan(statement, catalog).job)
    found = []
    moves = 0
    while not job.status.ended:
        if can_turn_back(job):
            found.append(moves)
        job = advance(catalog, job)
        moves += 1
    return found


def turn(statement: Change, moves: int, error: str) -> tuple[Catalog, Job]:
    catalog = beginning()
    job = put_job(catalog, job_plan(statement, catalog).job)
    for _ in range(moves):
        job = advance(catalog, job)
    job = put_job(catalog, turn_back(job, 9, error))
    while not job.status.ended:
        job = advance(catalog, job)
    return catalog, job


@pytest.mark.parametrize("name", CHANGES)
def test_turned_back_anywhere_the_table_is_as_before(name: str) -> None:
    statement = CHANGES[name]
    before = plain(beginning().newest(1))
    found = places(statement)
    assert found[0] == 0
    for moves in found:
        catalog, job = turn(statement, moves, "why")
        after = catalog.newest(1)
        assert plain(after) == before, moves
        assert (job.status, job.error) == (Status.FAILED, "why")
        assert catalog.min_version(1) == after.version == job.versions[1] - (moves == 0)
        assert catalog.table_names() == {"t"}


@pytest.mark.parametrize("name", CHANGES)
def test_a_job_turned_back_can_be_asked_for_again(name: str) -> None:
    """Names and places are free again; ids are not, since something may remember the old ones."""
    statement = CHANGES[name]
    for moves in places(statement)[-1:]:
        catalog, job = turn(statement, moves, "")
        assert job.status is Status.CANCELLED
        made = {e.element_id for s in job.steps for e in s.edits if e.before is None}
        again = run_to_end(statement, catalog)
        assert again.status is Status.SUCCEEDED
        anew = {e.element_id for s in again.steps for e in s.edits if e.before is None}
        known = {e.element_id for e in beginning().newest(1).elements}
        assert moves == 0 or not (made & anew) - known


@pytest.mark.parametrize("name", CHANGES)
def test_no_version_on_the_way_refuses_for_a_column_that_it_does_not_show(name: str) -> None:
    """⚠ A writer could not give the value; what the version gives by itself is another thing."""
    catalog = beginning()
    run_to_end(CHANGES[name], catalog)
    for version in catalog.versions(1):
        over = [*(c.columns for c in version.enforced_checks)]
        over += [index.columns for index in version.enforced_uniques]
        assert set().union(*over) <= version.public_ids, version.version
        for each in version.written:
            given = each.default is not None or each.derived is not None
            assert not each.refuses_null or given or each.state is State.PUBLIC, version.version


@pytest.mark.parametrize("name", CHANGES)
def test_no_version_on_the_way_shows_two_columns_of_one_name(name: str) -> None:
    catalog = beginning()
    run_to_end(CHANGES[name], catalog)
    for version in catalog.versions(1):
        names = [c.name for c in version.columns if c.state is State.PUBLIC]
        names += [c.alias for c in version.columns if c.alias]
        assert len(set(names)) == len(names), version.version


@pytest.mark.parametrize("name", CHANGES)
def test_run_to_its_end_nothing_is_left_halfway(name: str) -> None:
    """Every element is public or gone; the two exceptions are asked for by name."""
    statement = CHANGES[name]
    catalog = beginning()
    job = run_to_end(statement, catalog)
    assert job.status is Status.SUCCEEDED
    table = catalog.newest(1)
    assert table.version == catalog.min_version(1) == job.versions[1]
    halfway = {e.name for e in table.elements if e.state is not State.PUBLIC}
    not_valid = {c.name for c in table.checks if c.state is State.WRITE_ONLY}
    retired = {k.name for k in table.row_locks if k.state is State.DELETE_ONLY}
    assert halfway == not_valid | retired
    assert not_valid <= {"late", "later", "t_d_check"}
    assert retired <= {"l"}
    for each in table.columns:
        assert (each.not_null_enforced, each.filled, each.alias) == (False, False, "")
        assert len(each.locks) == 1
    for index in table.indexes:
        assert (index.unique_enforced, index.alias) == (False, "")
    assert not table.alias


def break_reversal(change: Callable[[Job], Job]) -> Descriptor:
    catalog = beginning()
    job = put_job(catalog, job_plan(create_index("j", "t", "a"), catalog).job)
    job = advance(catalog, job)
    job = put_job(catalog, change(turn_back(job, 9, "why")))
    while not job.status.ended:
        job = advance(catalog, job)
    return catalog.newest(1)


def test_a_reverse_step_that_is_left_out_shows() -> None:
    """The check above can fail: without the reverse steps the element stays."""
    whole = break_reversal(lambda job: job)
    assert plain(whole) == plain(beginning().newest(1))
    cut = break_reversal(lambda job: replace(job, steps=job.steps[:-1]))
    assert plain(cut) != plain(whole)
