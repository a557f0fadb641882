"""ALTER TABLE: what each action makes of the elements it names, and of those that rest on them."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from leasehold.catalog.catalog import Catalog
from leasehold.catalog.descriptor import Descriptor, from_wire
from leasehold.catalog.job import Job, Status
from leasehold.catalog.states import State
from leasehold.model.errors import (
    DuplicateObject,
    Refused,
    UnknownObject,
)
from leasehold.model.records.log import DescriptorWrite
from leasehold.schema_change.plan.plan import plan
from leasehold.schema_change.plan.results import JobPlan, NothingToDo
from leasehold.sql.syntax.statements import (
    Action,
    AddColumn,
    AddLock,
    DropColumn,
    DropConstraint,
    DropIndex,
    DropLock,
    DropNotNull,
    RenameColumn,
    RenameConstraint,
    RenameTable,
    SetDefault,
    SetNotNull,
    ValidateConstraint,
)
from tests.support.schema_change.made_statements import (
    add_check,
    add_column,
    add_unique,
    alter,
    catalog_with,
    column,
    create_index,
    create_table,
    job_plan,
    put_job,
    run_to_end,
)
from tests.support.schema_change.next_descriptor import next_descriptor

T = create_table(
    "t",
    column("a", default=1),
    column("b", "text"),
    column("c", nullable=False),
    column("raw", "json"),
    uniques=(add_unique("a", "c", name="u").unique,),
    checks=(add_check("a < c", "k").check,),
)


def beginning() -> Catalog:
    catalog = catalog_with(T, create_table("other"))
    for statement in (
        create_index("i", "t", "b", "a"),
        create_index("j", "t", "b"),
        alter("t", add_check("c > 0", "late", not_valid=True)),
    ):
        assert run_to_end(statement, catalog).status is Status.SUCCEEDED
    return catalog


def altered(*actions: Action) -> Descriptor:
    catalog = beginning()
    assert run_to_end(alter("t", *actions), catalog).status is Status.SUCCEEDED
    return catalog.newest(1)


def first(*actions: Action) -> Job:
    return job_plan(alter("t", *actions), beginning()).job


# ------------------------------------------------------------------ refusals

REFUSED: list[tuple[Action, str]] = [
    (DropColumn("nothing"), "42703"),
    (RenameColumn("nothing", "x"), "42703"),
    (SetDefault("nothing", "1"), "42703"),
    (SetNotNull("nothing"), "42703"),
    (DropNotNull("nothing"), "42703"),
    (add_unique("nothing"), "42703"),
    (add_check("nothing > 0"), "42703"),
    (AddLock("l", ("nothing",)), "42703"),
    (add_column("a"), "42701"),
    (RenameColumn("a", "b"), "42701"),
    (RenameColumn("a", "a"), "42701"),
    (RenameTable("other"), "42P07"),
    (RenameTable("i"), "42P07"),
    (RenameTable("t"), "42P07"),
    (add_unique("b", name="u"), "42P07"),
    (add_unique("b", name="i"), "42P07"),
    (add_unique("b", name="other"), "42P07"),
    (add_check("a > 0", "k"), "42710"),
    (add_check("a > 0", "u"), "42710"),
    (AddLock("row", ("a",)), "42P07"),
    (DropColumn("id"), "42P16"),
    (DropNotNull("id"), "42P16"),
    (AddLock("l", ("id",)), "42P16"),
    (ValidateConstraint("nothing"), "42704"),
    (DropConstraint("nothing"), "42704"),
    (DropConstraint("i"), "42704"),
    (DropLock("nothing"), "42704"),
    (add_unique("raw"), "0A000"),
    (add_check("a + 1"), "42804"),
    (SetDefault("a", "'seven'"), "22P02"),
    (SetDefault("a", "3000000000"), "22003"),
]


@pytest.mark.parametrize(("action", "sqlstate"), REFUSED)
def test_refused_with_its_sqlstate(action: Action, sqlstate: str) -> None:
    catalog = beginning()
    with pytest.raises(Refused) as caught:
        plan(alter("t", action), catalog)
    assert caught.value.sqlstate == sqlstate, caught.value


def test_index_of_a_constraint_is_no_object_to_drop_alone() -> None:
    """DROP INDEX u is 2BP01, with CASCADE too; the hint says how it is done."""
    for cascade in (False, True):
        with pytest.raises(Refused) as caught:
            plan(DropIndex("u", cascade=cascade), beginning())
        assert caught.value.sqlstate == "2BP01"
        hint = "You can drop constraint u on table t instead."
        assert caught.value.detail["hint"] == hint


def test_d9_busy_table_takes_no_second_job_yet_says_what_is_wrong_first() -> None:
    catalog = beginning()
    put_job(catalog, job_plan(alter("t", add_column("x")), catalog).job)
    with pytest.raises(Refused) as busy:
        plan(alter("t", DropColumn("b")), catalog)
    assert busy.value.sqlstate == "55006"
    with pytest.raises(Refused) as wrong:
        plan(alter("t", DropColumn("nothing")), catalog)
    assert wrong.value.sqlstate == "42703"


NOTICES: list[tuple[Action, str]] = [
    (AddColumn(column("a", "text"), if_not_exists=True), "'a' exists already"),
    (DropColumn("nothing", if_exists=True), "'nothing' does not exist"),
    (DropConstraint("nothing", if_exists=True), "'nothing' does not exist"),
    (DropLock("nothing", if_exists=True), "'nothing' does not exist"),
    (SetDefault("a", "1"), "has that default already"),
    (SetDefault("b", None), "has that default already"),
    (SetNotNull("c"), "is NOT NULL already"),
    (SetNotNull("id"), "is NOT NULL already"),
    (DropNotNull("a"), "is not NOT NULL"),
    (ValidateConstraint("k"), "is valid already"),
    (ValidateConstraint("u"), "is valid already"),
]


@pytest.mark.parametrize(("action", "words"), NOTICES)
def test_what_needs_nothing_done_says_so(action: Action, words: str) -> None:
    catalog = beginning()
    alone = plan(alter("t", action), catalog)
    assert isinstance(alone, NothingToDo)
    assert words in alone.notice
    beside = plan(alter("t", action, add_column("x")), catalog)
    assert isinstance(beside, JobPlan)
    assert [words in notice for notice in beside.notices] == [True]
    assert beside.job.subject == "column x"


# ------------------------------------------------------------------ what rests on a column


def names(elements: Any) -> list[str]:
    return [element.name for element in elements]


def test_dropped_column_takes_its_indexes_and_checks_along() -> None:
    table = altered(DropColumn("a"))
    assert names(table.columns) == ["id", "b", "c", "raw"]
    assert names(table.indexes) == ["j"]
    assert names(table.checks) == ["late"]


def test_index_is_delete_only_no_later_than_the_column_and_a_check_is_gone_before() -> None:
    """⚠ Else a writer who can't see the column leaves an entry, or a default, that breaks them."""
    catalog = beginning()
    job = put_job(catalog, job_plan(alter("t", DropColumn("a")), catalog).job)
    for number in range(len(job.steps)):
        table = next_descriptor(replace(job, step=number), catalog)
        body = table.to_wire()
        catalog.apply(DescriptorWrite(1, table.version, body), 5, 1)
        hidden = table.element(2) is None or table.by_id[2].state is not State.PUBLIC
        for index in (i for i in table.indexes if 2 in i.columns):
            assert not hidden or index.state <= State.WRITE_ONLY
            assert table.by_id[2].state >= index.state
        if hidden:
            assert table.check("k") is None or table.check("k") not in table.enforced_checks


def test_two_dropped_columns_share_the_index_over_both() -> None:
    job = first(DropColumn("a"), DropColumn("b"))
    assert job.subject.split(", ") == [
        "index u",
        "index i",
        "constraint k",
        "column a",
        "index j",
        "column b",
    ]
    table = altered(DropColumn("a"), DropColumn("b"))
    assert (names(table.columns), table.indexes) == (["id", "c", "raw"], ())


def test_renamed_column_rewords_its_checks_and_leaves_the_others() -> None:
    table = altered(RenameColumn("a", "z"))
    check, late = table.check("k"), table.check("late")
    assert check is not None
    assert late is not None
    assert check.expression.replace('"', "") == "z < c"
    assert (check.state, check.columns) == (State.PUBLIC, (2, 4))
    assert late.expression == "c > 0"
    assert table.index("u") == beginning().newest(1).index("u"), "an index knows ids alone"


def test_renamed_columns_check_reads_the_same_pairs_while_two_versions_live() -> None:
    catalog = beginning()
    job = put_job(catalog, job_plan(alter("t", RenameColumn("a", "z")), catalog).job)
    both = next_descriptor(job, catalog)
    assert both.column("a") is both.column("z") is both.by_id[2]
    check = both.check("k")
    assert check is not None
    assert "z" in check.expression


def test_column_added_with_its_constraints_is_one_job() -> None:
    job = first(
        add_column(
            "x",
            default=2,
            unique=add_unique("x").unique,
            checks=(add_check("x > 1").check,),
        )
    )
    assert job.subject == "column x, constraint t_x_key, constraint t_x_check"
    assert job.kind == "add column"
    assert first(add_column("x"), add_column("y")).kind == "alter table"


def test_constraint_may_name_a_column_that_the_same_statement_adds() -> None:
    table = altered(add_column("x"), add_check("x > a"), add_unique("x", "b"))
    x = table.column("x").element_id
    assert table.checks[-1].columns == (2, x)
    assert table.indexes[-1].columns == (x, 3)


# ------------------------------------------------------------------ names


def test_renamed_constraint_is_the_same_under_another_name() -> None:
    table = altered(RenameConstraint("u", "v"))
    before = beginning().newest(1)
    assert names(table.indexes) == ["v" if n == "u" else n for n in names(before.indexes)]
    assert [replace(i, name="") for i in table.indexes] == [
        replace(i, name="") for i in before.indexes
    ]
    table = altered(RenameConstraint("late", "l"))
    late = table.check("l")
    assert late == replace(before.check("late"), name="l")  # type: ignore[type-var]
    assert first(RenameConstraint("k", "l")).kind == "rename constraint"


def test_renamed_unique_answers_to_both_names_while_two_versions_live() -> None:
    """As its index does, which is the same element: a writer's version knows one of them."""
    catalog = beginning()
    job = put_job(catalog, job_plan(alter("t", RenameConstraint("u", "v")), catalog).job)
    both = next_descriptor(job, catalog)
    assert both.index("u") is both.index("v") is not None
    with pytest.raises(DuplicateObject):
        plan(create_table("u"), catalog)


@pytest.mark.parametrize(
    ("name", "to", "error"),
    [
        ("nothing", "v", UnknownObject),
        ("i", "v", UnknownObject),  # an index that is no constraint
        ("u", "k", DuplicateObject),
        ("k", "u", DuplicateObject),
        ("u", "other", DuplicateObject),  # tables and indexes share their names
        ("t_pkey", "u", DuplicateObject),
    ],
)
def test_constraint_that_can_not_be_renamed_so(name: str, to: str, error: type[Refused]) -> None:
    with pytest.raises(error):
        first(RenameConstraint(name, to))


def test_a_primary_key_is_renamed_and_keeps_its_name_when_its_table_is() -> None:
    assert altered(RenameConstraint("t_pkey", "v")).key_constraint == "v"
    assert altered(RenameTable("w")).key_constraint == "t_pkey"
    again = from_wire(altered(RenameTable("w")).to_wire())
    assert (again.name, again.key_constraint) == ("w", "t_pkey")
    older = {k: v for k, v in again.to_wire().items() if k != "key_name"}
    assert from_wire(older).key_constraint == "w_pkey", "as an earlier release has renamed it"


def test_check_may_have_the_name_of_another_table() -> None:
    assert altered(RenameConstraint("k", "other")).check("other") is not None


def test_names_of_constraints_are_derived_as_postgresql_derives_them() -> None:
    table = altered(
        add_unique("a"),
        add_unique("a", "b"),
        add_unique("a"),
        add_check("a > 0"),
        add_check("a > -1"),
        add_check("a <> c"),
    )
    assert names(table.indexes)[-3:] == ["t_a_key", "t_a_b_key", "t_a_key1"]
    assert names(table.checks)[-3:] == ["t_a_check", "t_a_check1", "t_check"]


def test_derived_name_that_another_table_has_is_numbered() -> None:
    catalog = beginning()
    run_to_end(create_index("t_b_key", "other", "id"), catalog)
    job = job_plan(alter("t", add_unique("b")), catalog).job
    assert job.subject == "constraint t_b_key1"
