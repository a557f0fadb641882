"""DDL → steps: the order of states (Claims 4 to 7), refusals, element ids, EXPLAIN."""

from __future__ import annotations

from dataclasses import replace

import pytest

from leasehold.model.errors import (
    DuplicateColumn,
    DuplicateObject,
    FeatureNotSupported,
    NotNullViolation,
    OutOfRange,
    TableBusy,
    UnknownColumn,
    UnknownTable,
)
from leasehold.model.records import DescriptorWrite, JobWrite
from leasehold.schema.catalog import Catalog
from leasehold.schema.descriptor import INDEXES_MAX, Descriptor, Index
from leasehold.schema.job import Phase, Status, Step, job_from_wire
from leasehold.schema.plan import (
    CreateTablePlan,
    JobPlan,
    NothingToDo,
    explain,
    next_descriptor,
    plan,
)
from leasehold.schema.states import State
from leasehold.sql.ddl import parse_ddl


def catalog_with(*tables: str) -> Catalog:
    catalog = Catalog()
    for sql in tables:
        made = plan(parse_ddl(sql), catalog)
        assert isinstance(made, CreateTablePlan)
        descriptor = made.descriptor
        catalog.apply(DescriptorWrite(descriptor.table_id, 1, descriptor.to_wire()), 5, 1)
    return catalog


T = "create table t (id bigint primary key, a int, raw bytea)"


def job_plan(sql: str, catalog: Catalog) -> JobPlan:
    made = plan(parse_ddl(sql), catalog, sql=sql, request_id=b"r", now_us=9)
    assert isinstance(made, JobPlan)
    return made


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
    ("sql", "states"),
    [
        ("create index on t (a)", [State.DELETE_ONLY, State.WRITE_ONLY, State.PUBLIC]),
        ("alter table t add b text", [State.DELETE_ONLY, State.PUBLIC]),
        (
            "alter table t add b int not null default 1",
            [State.DELETE_ONLY, State.WRITE_ONLY, State.PUBLIC],
        ),
    ],
)
def test_order_of_states(sql: str, states: list[State]) -> None:
    job = job_plan(sql, catalog_with(T)).job
    assert [step.state for step in job.steps] == states
    assert [step.backfill for step in job.steps] == [s is State.WRITE_ONLY for s in states]


def test_job_is_the_intent_of_its_first_step() -> None:
    job = job_plan("create index i on t (a)", catalog_with(T)).job
    assert (job.job_id, job.table, job.element_id) == (1, "t", 4)
    assert (job.phase, job.status, job.versions) == (Phase.PUBLISHING, Status.RUNNING, {1: 2})
    assert (job.request_id, job.created_us, job.marks) == (b"r", 9, ((0, "publishing", 9),))
    assert job_from_wire(job.to_wire()) == job


def test_descriptors_of_the_steps() -> None:
    catalog = catalog_with(T)
    before = catalog.newest(1)
    job = job_plan("alter table t add b int not null default 7", catalog).job
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
    job = job_plan("create index i on t (a)", catalog).job
    added = next_descriptor(job, catalog)
    catalog.apply(DescriptorWrite(1, 2, added.to_wire()), 6, 2)
    back = replace(job, steps=(*job.steps[:1], Step(4, State.ABSENT)), step=1)
    removed = next_descriptor(back, catalog)
    catalog.apply(DescriptorWrite(1, 3, removed.to_wire()), 7, 3)
    numbers = {"version": 3, "next_element_id": 5, "modified_us": 0}
    assert removed.to_wire() == {**before.to_wire(), **numbers}
    assert job_plan("create index i on t (a)", catalog).job.element_id == 5


REFUSED = [
    ("create table t (x int primary key)", DuplicateObject),
    ("create table u (x int primary key, x int)", DuplicateColumn),
    ("create index i on nothing (a)", UnknownTable),
    ("alter table nothing add b int", UnknownTable),
    ("create index i on t (nothing)", UnknownColumn),
    ("create index t on t (a)", DuplicateObject),
    ("create index i on t (raw)", FeatureNotSupported),
    ("alter table t add a int", DuplicateColumn),
    ("alter table t add b int not null", NotNullViolation),
    ("alter table t add b int default 1", FeatureNotSupported),
]


@pytest.mark.parametrize(("sql", "error"), REFUSED)
def test_refused(sql: str, error: type[Exception]) -> None:
    with pytest.raises(error) as caught:
        plan(parse_ddl(sql), catalog_with(T))
    assert type(caught.value) is error


def test_required_column_without_default_says_what_to_do() -> None:
    with pytest.raises(NotNullViolation, match="old rows would lack the value: give a DEFAULT"):
        plan(parse_ddl("alter table t add b int not null"), catalog_with(T))


def test_if_not_exists() -> None:
    catalog = catalog_with(T)
    for sql in (
        "create table if not exists t (x int primary key)",
        "alter table t add column if not exists a text",
    ):
        made = plan(parse_ddl(sql), catalog)
        assert isinstance(made, NothingToDo)
        assert "exists already" in made.notice


def with_index(catalog: Catalog, state: State, name: str = "i") -> Descriptor:
    table = catalog.newest(1)
    index = Index(table.next_element_id, name, (2,), state=state)
    made = replace(
        table,
        version=table.version + 1,
        indexes=(*table.indexes, index),
        next_element_id=table.next_element_id + 1,
    )
    catalog.apply(DescriptorWrite(1, made.version, made.to_wire()), 6, 2)
    return made


def test_index_of_that_name() -> None:
    catalog = catalog_with(T, "create table u (id int primary key, a int)")
    with_index(catalog, State.PUBLIC)
    with pytest.raises(DuplicateObject):
        plan(parse_ddl("create index i on u (a)"), catalog)
    with pytest.raises(DuplicateObject):
        plan(parse_ddl("create table i (x int primary key)"), catalog)
    made = plan(parse_ddl("create index if not exists i on t (a)"), catalog)
    assert isinstance(made, NothingToDo)


def test_index_still_being_made_is_no_index_that_exists() -> None:
    catalog = catalog_with(T)
    with_index(catalog, State.WRITE_ONLY)
    with pytest.raises(DuplicateObject):
        plan(parse_ddl("create index if not exists i on t (a)"), catalog)


def test_derived_name_is_numbered_until_it_is_free() -> None:
    catalog = catalog_with(T)
    with_index(catalog, State.PUBLIC, "t_a_idx")
    assert job_plan("create index on t (a)", catalog).job.element["name"] == "t_a_idx1"
    with_index(catalog, State.PUBLIC, "t_a_idx1")
    assert job_plan("create index on t (a)", catalog).job.element["name"] == "t_a_idx2"


def test_d9_table_with_a_running_job_is_busy() -> None:
    catalog = catalog_with(T, "create table u (id int primary key, a int)")
    job = job_plan("create index i on t (a)", catalog).job
    catalog.apply(JobWrite(1, job.to_wire()), 6, 2)
    with pytest.raises(TableBusy) as caught:
        plan(parse_ddl("alter table t add b int"), catalog)
    assert caught.value.detail["job"] == 1
    with pytest.raises(TableBusy):
        plan(parse_ddl("create index j on t (a)"), catalog)
    with pytest.raises(DuplicateObject):
        plan(parse_ddl("create index i on u (a)"), catalog)
    assert job_plan("create index j on u (a)", catalog).job.job_id == 2
    ended = replace(job, status=Status.CANCELLED)
    catalog.apply(JobWrite(1, ended.to_wire()), 7, 3)
    assert job_plan("create index i on t (a)", catalog).job.job_id == 2


def test_indexes_are_limited() -> None:
    catalog = catalog_with(T)
    for number in range(INDEXES_MAX):
        with_index(catalog, State.PUBLIC, f"i{number}")
    with pytest.raises(OutOfRange):
        plan(parse_ddl("create index on t (a)"), catalog)


def test_explain_names_states_waits_and_the_point_of_no_return() -> None:
    rows = explain(job_plan("create index i on t (a)", catalog_with(T)))
    assert [(r.step, r.version, r.element, r.state) for r in rows] == [
        (1, 2, "index i", "delete-only"),
        (2, 3, "index i", "write-only"),
        (3, 4, "index i", "public"),
    ]
    assert [row.point_of_no_return for row in rows] == [False, False, True]
    assert "backfill" in rows[1].waits_for
    assert "verify" in rows[1].waits_for
    assert "backfill" not in rows[0].waits_for + rows[2].waits_for


def test_explain_of_a_table_and_of_nothing() -> None:
    created = plan(parse_ddl("create table u (id int primary key)"), Catalog())
    assert [row.state for row in explain(created)] == ["public"]
    assert explain(NothingToDo("there already"))[0].waits_for == "there already"
