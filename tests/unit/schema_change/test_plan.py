"""DDL → a plan: tables at once, jobs by steps; refusals, element ids, who is busy."""

from __future__ import annotations

from dataclasses import replace

import pytest

from leasehold.catalog.catalog import Catalog
from leasehold.catalog.descriptor import INDEXES_MAX, Descriptor
from leasehold.catalog.elements import Index
from leasehold.catalog.job import Phase, Status, job_from_wire
from leasehold.catalog.states import State
from leasehold.model.errors import (
    DependentObjects,
    DuplicateColumn,
    DuplicateObject,
    FeatureNotSupported,
    OutOfRange,
    Refused,
    TableBusy,
    UnknownColumn,
    UnknownObject,
    UnknownTable,
)
from leasehold.model.records.log import DescriptorWrite, JobWrite
from leasehold.schema_change.plan.plan import plan
from leasehold.schema_change.plan.results import CreateTablePlan, NothingToDo
from leasehold.sql.syntax.statements import (
    AddColumn,
    AlterTable,
    Change,
    DropIndex,
    DropTable,
    RenameIndex,
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
    put,
    run_to_end,
)
from tests.support.schema_change.next_descriptor import next_descriptor

T = create_table("t", column("a"), column("raw", "json"))
U = create_table("u", column("a"))
UNNAMED = create_index("t_a_idx", "t", "a", named=False, parts_of_name=("a",))
REQUIRED = alter("t", add_column("b", nullable=False, default=7))


def test_create_table_is_public_at_version_1() -> None:
    table = catalog_with(T).newest(1)
    assert (table.table_id, table.name, table.version) == (1, "t", 1)
    assert [(c.element_id, c.name, c.state) for c in table.columns] == [
        (1, "id", State.PUBLIC),
        (2, "a", State.PUBLIC),
        (3, "raw", State.PUBLIC),
    ]
    assert table.primary_key == (1,)
    assert table.next_element_id == 4
    assert not table.columns[0].nullable


@pytest.mark.parametrize(
    ("statement", "states"),
    [
        (create_index("i", "t", "a"), ["delete-only", "write-only", "public"]),
        (alter("t", add_column("b")), ["delete-only", "public"]),
        (REQUIRED, ["delete-only", "public"]),
    ],
)
def test_order_of_states(statement: Change, states: list[str]) -> None:
    job = job_plan(statement, catalog_with(T)).job
    assert [step.label for step in job.steps] == states
    assert [step.backfill for step in job.steps] == [label == "write-only" for label in states]


def test_job_is_the_intent_of_its_first_step() -> None:
    job = job_plan(create_index("i", "t", "a"), catalog_with(T)).job
    assert (job.job_id, job.table, job.subject, job.kind) == (1, "t", "index i", "create index")
    assert (job.phase, job.status, job.versions) == (Phase.PUBLISHING, Status.RUNNING, {1: 2})
    assert (job.request_id, job.created_us, job.marks) == (b"r", 9, ((0, "publishing", 9),))
    assert job_from_wire(job.to_wire()) == job


def test_descriptors_of_the_steps() -> None:
    catalog = catalog_with(T)
    before = catalog.newest(1)
    job = job_plan(REQUIRED, catalog, in_place=False).job
    seen = []
    for number in range(3):
        descriptor = next_descriptor(replace(job, step=number), catalog)
        catalog.apply(DescriptorWrite(1, descriptor.version, descriptor.to_wire()), 6, 2)
        column = descriptor.by_id[4]
        seen.append((descriptor.version, column.state, column.default, column.nullable))
        assert descriptor.next_element_id == 5
    assert seen == [
        (2, State.DELETE_ONLY, 7, False),
        (3, State.WRITE_ONLY, 7, False),
        (4, State.PUBLIC, 7, False),
    ]
    assert before.columns == catalog.newest(1).columns[:3]


def test_roll_back_takes_the_element_out_and_its_id_is_never_used_again() -> None:
    catalog = catalog_with(T)
    before = catalog.newest(1)
    job = job_plan(create_index("i", "t", "a"), catalog).job
    added = next_descriptor(job, catalog)
    catalog.apply(DescriptorWrite(1, 2, added.to_wire()), 6, 2)
    back = replace(job, steps=(job.steps[0], job.steps[0].reversed), step=1)
    removed = next_descriptor(back, catalog)
    catalog.apply(DescriptorWrite(1, 3, removed.to_wire()), 7, 3)
    assert removed == replace(before, version=3, next_element_id=5, modified_us=0)
    (edit,) = job_plan(create_index("i", "t", "a"), catalog).job.current.edits
    assert edit.element_id == 5


REFUSED: list[tuple[Change, type[Refused]]] = [
    (T, DuplicateObject),
    (create_table("u", column("x"), column("x")), DuplicateColumn),
    (create_index("i", "nothing", "a"), UnknownTable),
    (alter("nothing", add_column("b")), UnknownTable),
    (DropTable("nothing"), UnknownTable),
    (DropIndex("nothing"), UnknownObject),
    (RenameIndex("nothing", "other"), UnknownTable),
    (create_index("i", "t", "nothing"), UnknownColumn),
    (create_index("t", "t", "a"), DuplicateObject),
    (create_index("i", "t", "raw"), FeatureNotSupported),
]


@pytest.mark.parametrize(("statement", "error"), REFUSED)
def test_refused(statement: Change, error: type[Refused]) -> None:
    with pytest.raises(error) as caught:
        plan(statement, catalog_with(T))
    assert type(caught.value) is error


NOTHING: list[tuple[Change, str]] = [
    (replace(T, if_not_exists=True), "exists already"),
    (alter("t", AddColumn(column("a", "text"), if_not_exists=True)), "exists already"),
    (create_index("i", "t", "a", if_not_exists=True), "exists already"),
    (DropTable("nothing", if_exists=True), "does not exist"),
    (DropIndex("nothing", if_exists=True), "does not exist"),
    (RenameIndex("nothing", "other", if_exists=True), "does not exist"),
    (AlterTable("nothing", (add_column("b"),), if_exists=True), "does not exist"),
]


@pytest.mark.parametrize(("statement", "words"), NOTHING)
def test_if_exists_and_if_not_exists_do_nothing_and_say_so(statement: Change, words: str) -> None:
    catalog = catalog_with(T)
    with_index(catalog, State.PUBLIC)
    made = plan(statement, catalog)
    assert isinstance(made, NothingToDo)
    assert words in made.notice


def test_constraints_of_a_new_table_are_public_with_it() -> None:
    """Nobody has rows in it yet, so there is nothing to verify."""
    unique, check = add_unique("a").unique, add_check("a > 0").check
    made = plan(create_table("n", column("a"), uniques=(unique,), checks=(check,)), Catalog())
    assert isinstance(made, CreateTablePlan)
    (index,), (made_check,) = made.descriptor.indexes, made.descriptor.checks
    assert (index.name, index.state, index.unique) == ("n_a_key", State.PUBLIC, True)
    assert (index.constraint, index.unique_enforced) == (True, False)
    assert (made_check.name, made_check.state) == ("n_a_check", State.PUBLIC)
    assert made.descriptor.next_element_id == 5
    ids = [element.element_id for element in made.descriptor.elements]
    assert ids == [1, 2, 3, 4]


def test_index_of_a_constraint_is_dropped_as_a_constraint() -> None:
    catalog = catalog_with(create_table("n", column("a"), uniques=(add_unique("a").unique,)))
    with pytest.raises(DependentObjects, match="because constraint n_a_key on table n"):
        plan(DropIndex("n_a_key"), catalog)


def test_dropped_index_is_found_by_its_name_alone() -> None:
    catalog = catalog_with(T, U)
    with_index(catalog, State.PUBLIC)
    job = job_plan(DropIndex("i"), catalog).job
    assert (job.table, job.kind, job.subject) == ("t", "drop index", "index i")
    assert [step.label for step in job.steps] == ["write-only", "delete-only", "absent"]
    assert job.point == 1, "from delete-only on its entries are no longer made"


def test_renamed_index_answers_to_both_names_until_the_fence() -> None:
    catalog = catalog_with(T)
    table = with_index(catalog, State.PUBLIC)
    job = job_plan(RenameIndex("i", "j"), catalog).job
    both = next_descriptor(job, catalog)
    assert both.index("i") is both.index("j") is not None
    run_to_end(RenameIndex("i", "j"), catalog)
    assert catalog.newest(1).index("i") is None
    assert catalog.newest(1).indexes == (replace(table.indexes[0], name="j"),)


def with_index(catalog: Catalog, state: State, name: str = "i") -> Descriptor:
    table = catalog.newest(1)
    index = Index(table.next_element_id, name, (2,), state=state)
    made = replace(
        table,
        version=table.version + 1,
        indexes=(*table.indexes, index),
        next_element_id=table.next_element_id + 1,
    )
    put(catalog, made)
    return made


def test_index_of_that_name() -> None:
    catalog = catalog_with(T, U)
    with_index(catalog, State.PUBLIC)
    with pytest.raises(DuplicateObject):
        plan(create_index("i", "u", "a"), catalog)
    with pytest.raises(DuplicateObject):
        plan(create_table("i"), catalog)
    made = plan(create_index("i", "t", "a", if_not_exists=True), catalog)
    assert isinstance(made, NothingToDo)


def test_index_still_being_made_is_no_index_that_exists() -> None:
    catalog = catalog_with(T)
    with_index(catalog, State.WRITE_ONLY)
    with pytest.raises(DuplicateObject):
        plan(create_index("i", "t", "a", if_not_exists=True), catalog)


def test_derived_name_is_numbered_until_it_is_free() -> None:
    catalog = catalog_with(T)
    with_index(catalog, State.PUBLIC, "t_a_idx")
    assert job_plan(UNNAMED, catalog).job.current.edits[0].name == "t_a_idx1"
    with_index(catalog, State.PUBLIC, "t_a_idx1")
    assert job_plan(UNNAMED, catalog).job.current.edits[0].name == "t_a_idx2"


def test_d9_table_with_a_running_job_is_busy() -> None:
    catalog = catalog_with(T, U)
    job = job_plan(create_index("i", "t", "a"), catalog).job
    catalog.apply(JobWrite(1, job.to_wire()), 6, 2)
    with pytest.raises(TableBusy) as caught:
        plan(alter("t", add_column("b")), catalog)
    assert caught.value.detail["job"] == 1
    with pytest.raises(TableBusy):
        plan(create_index("j", "t", "a"), catalog)
    with pytest.raises(DuplicateObject):
        plan(create_index("i", "u", "a"), catalog)
    assert job_plan(create_index("j", "u", "a"), catalog).job.job_id == 2
    ended = replace(job, status=Status.CANCELLED)
    catalog.apply(JobWrite(1, ended.to_wire()), 7, 3)
    assert job_plan(create_index("i", "t", "a"), catalog).job.job_id == 2


def test_indexes_are_limited() -> None:
    catalog = catalog_with(T)
    for number in range(INDEXES_MAX):
        with_index(catalog, State.PUBLIC, f"i{number}")
    with pytest.raises(OutOfRange):
        plan(UNNAMED, catalog)
