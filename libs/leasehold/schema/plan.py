"""DDL statement → plan: what is created at once, or a job and its steps; EXPLAIN shows it.

The order of states is the table of safe steps in states.py (Claims 4 to 7); nothing here decides
one by itself. A job has one element; element ids come from the descriptor's `next_element_id`,
which the first step raises for good, so that no id is ever used for a second element.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from itertools import count
from typing import Any, Final, NamedTuple, TypeAlias

from leasehold.model.errors import (
    DuplicateColumn,
    DuplicateObject,
    FeatureNotSupported,
    NotNullViolation,
    OutOfRange,
    TableBusy,
)
from leasehold.schema.catalog import Catalog
from leasehold.schema.descriptor import (
    COLUMNS_MAX,
    INDEXES_MAX,
    NAME_BYTES_MAX,
    Column,
    Descriptor,
    Index,
    column_from_wire,
    column_to_wire,
    index_from_wire,
    index_to_wire,
)
from leasehold.schema.job import Job, Phase, Status, Step
from leasehold.schema.states import ADD_OPTIONAL, ADD_REQUIRED, State
from leasehold.sql.ddl import AddColumn, ColumnDefinition, CreateIndex, CreateTable, Statement

SETTINGS: Final[Mapping[str, int]] = {"rows_per_second": 0, "chunk_rows": 5_000}


@dataclass(frozen=True, slots=True)
class CreateTablePlan:
    """Version 1, public at once: nobody can have used a table that was not there."""

    descriptor: Descriptor


@dataclass(frozen=True, slots=True)
class JobPlan:
    """`job` is the first record of the job and the intent of its first step in one (D2)."""

    job: Job


@dataclass(frozen=True, slots=True)
class NothingToDo:
    """IF NOT EXISTS of something that is there; `notice` says so."""

    notice: str


Plan: TypeAlias = CreateTablePlan | JobPlan | NothingToDo


def plan(
    statement: Statement,
    catalog: Catalog,
    *,
    sql: str = "",
    request_id: bytes = b"",
    now_us: int = 0,
) -> Plan:
    """What `statement` asks for, on the newest versions of `catalog`.

    Raises UnknownTable, UnknownColumn, DuplicateObject (42P07), DuplicateColumn (42701),
    NotNullViolation (23502), TableBusy (55006), FeatureNotSupported, OutOfRange (limits).
    """
    match statement:
        case CreateTable():
            return _create_table(statement, catalog)
        case CreateIndex():
            made = _create_index(statement, catalog)
        case AddColumn():
            made = _add_column(statement, catalog)
    if isinstance(made, NothingToDo):
        return made
    marks = ((0, Phase.PUBLISHING.value, now_us),)
    return JobPlan(replace(made, sql=sql, request_id=request_id, created_us=now_us, marks=marks))


# ------------------------------------------------------------------ tables


def _create_table(statement: CreateTable, catalog: Catalog) -> CreateTablePlan | NothingToDo:
    name = statement.name
    if catalog.has_name(name):
        if statement.if_not_exists:
            return NothingToDo(f"table {name!r} exists already, nothing was done")
        raise DuplicateObject(f"table {name!r} exists already", table=name)
    if name in _index_names(catalog):
        raise DuplicateObject(f"{name!r} is the name of an index already", table=name)
    columns: list[Column] = []
    ids: dict[str, int] = {}
    for element_id, definition in enumerate(statement.columns, start=1):
        if definition.name in ids:
            raise DuplicateColumn(
                f"column {definition.name!r} is there twice",
                table=name,
                column=definition.name,
                position=definition.position,
            )
        ids[definition.name] = element_id
        columns.append(_column(definition, element_id))
    return CreateTablePlan(
        Descriptor(
            table_id=catalog.next_table_id(),
            name=name,
            version=1,
            columns=tuple(columns),
            primary_key=tuple(ids[column] for column in statement.primary_key),
            next_element_id=len(columns) + 1,
        )
    )


def _column(definition: ColumnDefinition, element_id: int) -> Column:
    return Column(
        element_id, definition.name, definition.type, definition.nullable, definition.default
    )


# ------------------------------------------------------------------ jobs


def busy_job(catalog: Catalog, table_id: int) -> Job | None:
    """The job that is changing a table now (D9: at most one)."""
    return next(
        (j for j in catalog.jobs.values() if j.table_id == table_id and not j.status.ended), None
    )


def _free_table(catalog: Catalog, table: Descriptor) -> None:
    job = busy_job(catalog, table.table_id)
    if job is not None:
        raise TableBusy(
            f"table {table.name!r} is being changed by job {job.job_id} ({job.kind}, {job.status}):"
            f" wait for it to end, or cancel it",
            table=table.name,
            job=job.job_id,
        )


def _index_names(catalog: Catalog) -> set[str]:
    """Names of indexes in any state, and of those that running jobs will make."""
    names = {index.name for table in catalog.tables() for index in table.indexes}
    return names | {
        job.element["name"]
        for job in catalog.jobs.values()
        if job.kind == CREATE_INDEX and not job.status.ended
    }


CREATE_INDEX: Final = "create index"
ADD_COLUMN: Final = "add column"


def _create_index(statement: CreateIndex, catalog: Catalog) -> Job | NothingToDo:
    table = catalog.resolve(statement.table)
    taken = _index_names(catalog)
    name = statement.name
    if not statement.named:
        name = _free_name(name, catalog, taken)
    elif name in taken or catalog.has_name(name):
        # An index that a job is still building is not there yet: "nothing to do" would be a lie.
        if statement.if_not_exists and _is_public(catalog, name):
            return NothingToDo(f"index {name!r} exists already, nothing was done")
        raise DuplicateObject(f"{name!r} exists already, or is being made", index=name)
    columns = tuple(table.column(column) for column in statement.columns)
    for column in columns:
        if column.type.name == "bytea":
            raise FeatureNotSupported(
                f"column {column.name!r} is bytea, which can't be indexed yet", column=column.name
            )
    _free_table(catalog, table)
    if len(table.indexes) >= INDEXES_MAX:
        raise OutOfRange(f"table {table.name!r} has {INDEXES_MAX} indexes, the most allowed")
    index = Index(table.next_element_id, name, tuple(c.element_id for c in columns))
    return _job(catalog, table, CREATE_INDEX, index_to_wire(index), ADD_REQUIRED)


def _is_public(catalog: Catalog, name: str) -> bool:
    if catalog.has_name(name):
        return True
    found = (table.index(name) for table in catalog.tables())
    return any(index is not None and index.state is State.PUBLIC for index in found)


def _free_name(name: str, catalog: Catalog, taken: set[str]) -> str:
    """PostgreSQL's way with a derived name that is taken: a number behind it."""
    if name not in taken and not catalog.has_name(name):
        return name
    for number in count(1):
        suffix = str(number)
        stem = name.encode()[: NAME_BYTES_MAX - len(suffix)].decode(errors="ignore")
        if stem + suffix not in taken and not catalog.has_name(stem + suffix):
            return stem + suffix
    raise AssertionError("count() does not end")


def _add_column(statement: AddColumn, catalog: Catalog) -> Job | NothingToDo:
    table = catalog.resolve(statement.table)
    definition = statement.column
    named = {"table": table.name, "column": definition.name, "position": definition.position}
    found = next((c for c in table.columns if c.name == definition.name), None)
    if found is not None and found.state is State.PUBLIC:
        if statement.if_not_exists:
            return NothingToDo(f"column {found.name!r} exists already, nothing was done")
        raise DuplicateColumn(
            f"column {definition.name!r} exists already in table {table.name!r}", **named
        )
    _free_table(catalog, table)
    assert found is None, f"{definition.name} is not public and no job is running"
    required = not definition.nullable
    if required and definition.default is None:
        raise NotNullViolation(
            f"column {definition.name!r} is NOT NULL and old rows would lack the value:"
            " give a DEFAULT",
            **named,
        )
    if not required and definition.default is not None:
        raise FeatureNotSupported(
            f"column {definition.name!r}: a nullable column with a DEFAULT can't be added yet:"
            " say NOT NULL too, or leave the DEFAULT out",
            **named,
        )
    if len(table.columns) >= COLUMNS_MAX:
        raise OutOfRange(
            f"table {table.name!r} has {COLUMNS_MAX} columns, the most allowed", **named
        )
    column = _column(definition, table.next_element_id)
    states = ADD_REQUIRED if required else ADD_OPTIONAL
    return _job(catalog, table, ADD_COLUMN, column_to_wire(column), states)


def _job(
    catalog: Catalog,
    table: Descriptor,
    kind: str,
    element: Mapping[str, Any],
    states: tuple[State, ...],
) -> Job:
    element_id = element["id"]
    assert element_id == table.next_element_id, "element ids are never used again"
    assert states[-1] is State.PUBLIC
    return Job(
        job_id=catalog.next_job_id(),
        sql="",
        table_id=table.table_id,
        table=table.name,
        request_id=b"",
        kind=kind,
        element_id=element_id,
        element=element,
        steps=tuple(Step(element_id, s, backfill=s is State.WRITE_ONLY) for s in states),
        step=0,
        phase=Phase.PUBLISHING,
        status=Status.RUNNING,
        versions={table.table_id: table.version + 1},
        settings=SETTINGS,
    )


# ------------------------------------------------------------------ descriptors of a job


def next_descriptor(job: Job, catalog: Catalog) -> Descriptor:
    """The version that the job's current step publishes: the newest with the element moved.

    The first step adds the element and raises `next_element_id`; a roll-back takes the element
    out again and leaves everything but `version` and `next_element_id` as it was.
    """
    newest = catalog.newest(job.table_id)
    state = job.current.state
    if newest.element(job.element_id) is not None:
        return newest.with_state(job.element_id, state)
    assert state is State.DELETE_ONLY, f"an element begins delete-only, not {state.label}"
    assert newest.next_element_id == job.element_id, "element ids are never used again"
    added = replace(newest, next_element_id=job.element_id + 1, modified_us=0)
    if job.kind == CREATE_INDEX:
        index = replace(index_from_wire(job.element), state=state)
        added = replace(added, indexes=(*newest.indexes, index))
    else:
        column = replace(column_from_wire(job.element), state=state)
        added = replace(added, columns=(*newest.columns, column))
    return replace(added, version=newest.version + 1)


# ------------------------------------------------------------------ EXPLAIN


class ExplainRow(NamedTuple):
    """One line of `ddl --explain`. `step` counts from 1; `waits_for` in plain words."""

    step: int
    version: int
    element: str
    state: str
    waits_for: str
    point_of_no_return: bool


def explain(planned: Plan) -> tuple[ExplainRow, ...]:
    """What a plan will do, step by step, without doing it."""
    match planned:
        case NothingToDo(notice):
            return (ExplainRow(0, 0, "", "", notice, False),)
        case CreateTablePlan(descriptor):
            words = "nothing: a new table is public at once"
            return (ExplainRow(1, 1, f"table {descriptor.name}", "public", words, True),)
        case JobPlan(job):
            return tuple(_explain_step(job, number) for number in range(len(job.steps)))


def _explain_step(job: Job, number: int) -> ExplainRow:
    step = job.steps[number]
    version = job.versions[job.table_id] + number
    what = "index" if job.kind == CREATE_INDEX else "column"
    waits = [f"agents that still hold a version below {version - 1}"] if version > 2 else []
    waits.append(f"agents that hold a version below {version} to move on")
    if step.backfill:
        waits.append("the backfill of the rows there are")
        waits.append("every coherent node to verify the element")
    return ExplainRow(
        number + 1,
        version,
        f"{what} {job.element['name']}",
        step.state.label,
        "; ".join(waits),
        step.state is State.PUBLIC,
    )
