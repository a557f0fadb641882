"""Enum types in a catalog: which columns are of one, and which id a new one gets.

The catalog keeps of each type its name and its labels as they are from here on (`Access.enums`). A
column has in its table's descriptor the labels that this version of the table knows: so whoever has
the descriptor reads and writes its values, and a new label walks through versions as everything
else does that a table knows.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any, Final, NamedTuple

from leasehold.catalog.catalog import Catalog
from leasehold.catalog.descriptor import Descriptor
from leasehold.catalog.edits import Kind
from leasehold.catalog.element_forms import COLUMN_FORM
from leasehold.catalog.elements import Column
from leasehold.catalog.names import running_jobs
from leasehold.catalog.states import State
from leasehold.model.ids import ENUMS_FROM
from leasehold.values.enums import KEPT, Enumeration

_KEPT: Final = re.compile(f'"{KEPT}([0-9]+)"')


def as_called(table: Descriptor, enums: Mapping[int, Enumeration]) -> Descriptor:
    """Return a table whose columns and texts call enum types as these are called now, for whoever
    is shown it."""
    if all(column.type.enum is None for column in table.columns):
        return table

    def shown(text: str) -> str:
        return _KEPT.sub(lambda found: _name_of(found, enums), text)

    columns = []
    for column in table.columns:
        enum, derived = column.type.enum, column.derived
        known = None if enum is None else enums.get(enum.type_id)
        if enum is not None and known is not None and known.quoted != enum.quoted:
            called = replace(enum, name=known.name, schema=known.schema)
            kind = replace(column.type, enum=called)
            column = replace(column, type=kind)
        if derived is not None:
            column = replace(column, derived=derived._replace(expression=shown(derived.expression)))
        columns.append(column)
    return replace(
        table,
        columns=tuple(columns),
        checks=tuple(replace(c, expression=shown(c.expression)) for c in table.checks),
        indexes=tuple(
            replace(i, expressions=tuple(map(shown, i.expressions)), predicate=shown(i.predicate))
            for i in table.indexes
        ),
    )


def enums_of(table: Descriptor) -> dict[int, Enumeration]:
    """Return the enum types of a table's columns, by their ids."""
    enums = (column.type.enum for column in table.columns)
    return {enum.type_id: enum for enum in enums if enum is not None}


def _name_of(found: re.Match[str], enums: Mapping[int, Enumeration]) -> str:
    known = enums.get(int(found[1]))
    return found[0] if known is None else known.quoted


class EnumColumn(NamedTuple):
    """A column of an enum type, or of an array of one."""

    table: Descriptor
    column: Column


def columns_of_enum(catalog: Catalog, type_id: int) -> Iterator[EnumColumn]:
    """Yield the columns of a type in the newest versions of all tables, as the jobs that run will
    leave them: those that go are left out, those that come are among them."""
    for table in catalog.tables():
        columns = {c.element_id: c for c in table.columns if c.state is State.PUBLIC}
        columns |= {c.element_id: c for c in table.columns if c.state is not State.PUBLIC}
        for element_id, body in _ends_of(catalog, table.table_id).items():
            columns.pop(element_id, None)
            if body is not None:
                columns[element_id] = COLUMN_FORM.from_wire(body)
        for element_id in sorted(columns):
            column = columns[element_id]
            if column.type.enum is not None and column.type.enum.type_id == type_id:
                yield EnumColumn(table, column)


def _ends_of(catalog: Catalog, table_id: int) -> dict[int, Mapping[str, Any] | None]:
    """Return the columns of a table that jobs which run change, as the last step leaves each."""
    found: dict[int, Mapping[str, Any] | None] = {}
    for job in running_jobs(catalog):
        for step in job.steps:
            for edit in step.edits:
                if edit.kind is Kind.COLUMN and (edit.table_id or job.table_id) == table_id:
                    found[edit.element_id] = edit.after
    return found


def next_enum_id(catalog: Catalog) -> int:
    """Return the id of the next type: above those of all types, also of such as only columns know,
    which are on their way in or out."""
    return max((ENUMS_FROM, *catalog.access.enums, *(e for e, _ in _known_to_columns(catalog)))) + 1


def id_of_enum_to_come(catalog: Catalog, name: str) -> int:
    """Return the id of a type that columns have under this name and the catalog has not; 0: there
    is none. A transaction's columns come with its job, and its types with its rows."""
    known = catalog.access.enums
    found = (e for e, n in _known_to_columns(catalog) if n == name and e not in known)
    return max(found, default=0)


def _known_to_columns(catalog: Catalog) -> Iterator[tuple[int, str]]:
    """Yield ids and names of the types of columns, in all versions that are kept, and in jobs."""
    for table_id in catalog.table_ids():
        for version in catalog.versions(table_id):
            for column in version.columns:
                if column.type.enum is not None:
                    yield column.type.enum.type_id, column.type.enum.name
    for job in running_jobs(catalog):
        for step in job.steps:
            for edit in step.edits:
                yield from _enums_in(edit.after)


def _enums_in(body: Any) -> Iterator[tuple[int, str]]:
    if isinstance(body, Mapping):
        for name, value in body.items():
            if name == "enum" and isinstance(value, Mapping):
                yield value["type_id"], value["name"]
            else:
                yield from _enums_in(value)
    elif isinstance(body, list | tuple):
        for each in body:
            yield from _enums_in(each)
