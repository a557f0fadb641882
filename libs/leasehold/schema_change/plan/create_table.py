"""CREATE TABLE: a table's first version, which is public at once."""

from __future__ import annotations

from dataclasses import replace

from leasehold.catalog.catalog import Catalog
from leasehold.catalog.descriptor import Descriptor
from leasehold.catalog.elements import Check, Column, Derived, ForeignKey, Index
from leasehold.catalog.names import key_object_name, relation_names
from leasehold.catalog.states import State
from leasehold.model.errors import DuplicateColumn, DuplicateObject
from leasehold.schema_change.plan.busy_tables import free_table, is_table
from leasehold.schema_change.plan.column_sequences import resolve_drawn
from leasehold.schema_change.plan.constraints import add_check, add_foreign_key, add_unique
from leasehold.schema_change.plan.definitions import (
    make_column,
    make_generated_column,
    with_drawn_default,
)
from leasehold.schema_change.plan.draft import TableDraft
from leasehold.schema_change.plan.primary_key import find_included, hidden_column
from leasehold.schema_change.plan.results import CreateTablePlan, NothingToDo
from leasehold.sql.syntax.statements import (
    CreateTable,
)


def plan_create_table(statement: CreateTable, catalog: Catalog) -> CreateTablePlan | NothingToDo:
    """Plan a table that nobody has used yet. Raises what `plan` raises."""
    name = statement.name
    if is_table(catalog, name):
        if statement.if_not_exists:
            return NothingToDo(f"table {name!r} exists already, nothing was done")
        raise DuplicateObject(f"table {name!r} exists already", table=name)
    taken = relation_names(catalog)
    if name in taken:
        raise DuplicateObject(
            f"{name!r} is the name of an index, or of something that is being made or dropped:"
            " take another name, or wait until that job has ended",
            table=name,
        )
    columns: list[Column] = []
    sequences: list[Descriptor] = []
    ids: dict[str, int] = {}
    for element_id, definition in enumerate(statement.columns, start=1):
        if definition.name in ids:
            raise DuplicateColumn(
                f"column {definition.name!r} of table {name!r} is there twice",
                table=name,
                column=definition.name,
                position=definition.position,
            )
        ids[definition.name] = element_id
        column = make_column(definition, element_id)
        if definition.numbering is not None:
            names = {name, *(s.name for s in sequences), *taken}
            drawn = resolve_drawn(name, definition, catalog, names, len(sequences))
            if drawn.made is None:
                free_table(catalog, catalog.newest(drawn.numbering.sequence))
            else:
                sequences.append(replace(drawn.made, schema=statement.schema))
            column = with_drawn_default(column, drawn)
        columns.append(column)
    primary_key = tuple(ids[column] for column in statement.primary_key)
    if not primary_key:
        columns.append(hidden_column(len(columns) + 1))
        primary_key = (len(columns),)
    table = Descriptor(
        table_id=catalog.next_table_id(),
        name=name,
        version=1,
        columns=tuple(columns),
        primary_key=primary_key,
        next_element_id=len(columns) + 1,
        schema=statement.schema,
    )
    if not table.hidden_key:
        made = {sequence.name for sequence in sequences}
        key_name = key_object_name(table, statement.key_name, taken | made)
        table = replace(
            table,
            key_name="" if key_name == table.key_constraint else key_name,
            key_included=find_included(table, table.key_columns, statement.key_included),
        )
    table = _with_generated(table, statement)
    # A new table has no rows: its constraints hold, and are public with it.
    draft = TableDraft(table, {name, *taken, *(s.name for s in sequences)}, catalog, None)
    for unique in statement.uniques:
        add_unique(draft, unique)
    for check in statement.checks:
        add_check(draft, replace(check, not_valid=False))
    for key in statement.foreign_keys:
        add_foreign_key(draft, replace(key, not_valid=False))
    for parent in draft.needs:
        free_table(catalog, catalog.newest(parent))
    return CreateTablePlan(_public_at_once(table, draft), sequences=tuple(sequences))


def _with_generated(table: Descriptor, statement: CreateTable) -> Descriptor:
    """Return the table with its generated columns, each of which may stand before those that it is
    computed from."""
    said = {c.name: c.generated for c in statement.columns if c.generated is not None}
    unknown = Derived((), "", generated=True)
    marked = tuple(replace(c, derived=unknown) if c.name in said else c for c in table.columns)
    seen = replace(table, columns=marked)
    made = (make_generated_column(c, said[c.name], seen) if c.name in said else c for c in marked)
    return replace(table, columns=tuple(made))


def _public_at_once(table: Descriptor, made: TableDraft) -> Descriptor:
    """Return the table with what its draft makes, all of it public."""
    elements = [path.element for path in made.paths]
    indexes = (
        replace(e, state=State.PUBLIC, unique=e.constraint)
        for e in elements
        if isinstance(e, Index)
    )
    keys = (replace(e, state=State.PUBLIC) for e in elements if isinstance(e, ForeignKey))
    checks = (replace(e, state=State.PUBLIC) for e in elements if isinstance(e, Check))
    return replace(
        table,
        indexes=tuple(indexes),
        checks=tuple(checks),
        foreign_keys=tuple(keys),
        next_element_id=table.next_element_id + len(elements),
    )
