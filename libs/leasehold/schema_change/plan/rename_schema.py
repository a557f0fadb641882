"""ALTER SCHEMA … RENAME TO: new names, in one step, of all that lies in a schema.

Tables and sequences get names that begin with the new one by a job of them all, as one does by SET
SCHEMA. The commit that shows these names gives the schema its own, and views and enum types theirs
(`job/renamed_schema.py`): who reads after it finds all of it under the new name, and as long as a
version of before may be in use, under the old one as well.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Final

from leasehold.catalog.catalog import Catalog
from leasehold.catalog.descriptor import Descriptor
from leasehold.catalog.names import relation_names
from leasehold.catalog.namespaces import SEPARATOR, bare, qualified
from leasehold.catalog.sequence_ownership import find_users
from leasehold.catalog.view import TEXT_BYTES_MAX
from leasehold.lease.commands import TABLES_PER_CALL_MAX
from leasehold.model.errors import OutOfRange, TableBusy, UnknownSchema
from leasehold.schema_change.job.renamed_schema import rename_schema
from leasehold.schema_change.plan.busy_tables import free_table
from leasehold.schema_change.plan.results import Changes, NothingToDo
from leasehold.schema_change.plan.set_schema import move_default, move_elements
from leasehold.schema_change.steps.element_paths import ElementPath
from leasehold.schema_change.steps.table_paths import move_relation
from leasehold.sql.syntax.object_statements import RenameNamespace

KIND: Final = "rename schema"


def plan_rename_schema(statement: RenameNamespace, catalog: Catalog) -> Changes | NothingToDo:
    """Plan it; nothing to do where no table and no sequence lies in the schema. Whether it may get
    that name was looked at before. Raises UnknownSchema (3F000), TableBusy (55006), OutOfRange."""
    found = catalog.access.namespaces_by_name.get(statement.name)
    if found is None:
        raise UnknownSchema(f'schema "{statement.name}" does not exist')
    schema, to = found.name, statement.to
    moved = sorted(
        (t for t in catalog.tables() if t.schema == schema and t.names),
        key=lambda table: (table.sequence is not None, table.table_id),
    )
    _refuse_names_of_jobs(schema, moved, catalog)
    _check_views(found.namespace_id, to, catalog)
    if not moved:
        return NothingToDo(f"schema {schema!r} is renamed at once: no table lies in it")
    drawing = [
        user
        for sequence in moved
        if sequence.sequence is not None
        for user in find_users(catalog, sequence.table_id)
        if user.draws
    ]
    tables = {table.table_id: table for table in (*moved, *(user.table for user in drawing))}
    if len(tables) > TABLES_PER_CALL_MAX:
        raise OutOfRange(
            f"{len(tables)} tables and sequences lie in schema {schema!r}, or draw from what does;"
            f" at most {TABLES_PER_CALL_MAX} are renamed at once"
        )
    for table in tables.values():
        free_table(catalog, table)
    first = moved[0]
    paths: list[ElementPath] = []
    for table in moved:
        number = 0 if table is first else table.table_id
        path = move_relation(table, to, qualified(to, bare(schema, table.name)))
        paths.append(replace(path, table_id=number))
        paths += (replace(each, table_id=number) for each in move_elements(table, to))
    by_id = {table.table_id: table for table in moved}
    for user in drawing:
        sequence = by_id[user.column.draws_from]
        number = 0 if user.table.table_id == first.table_id else user.table.table_id
        paths.append(replace(move_default(user, sequence, to), table_id=number))
    made = Changes(first, KIND, f"schema {schema}", paths)
    made.join(each for number, each in tables.items() if number != first.table_id)
    made.renames = (found.namespace_id, to)
    return made


def _refuse_names_of_jobs(schema: str, moved: list[Descriptor], catalog: Catalog) -> None:
    """Refuse a schema in which a job gives a name, or takes one. Raises TableBusy."""
    access = catalog.access
    known = {*access.views_by_name}
    for table in moved:
        known |= {*table.names, *table.index_names}
    begin = schema + SEPARATOR
    busy = sorted(n for n in relation_names(catalog) - known if n.startswith(begin))
    if busy:
        raise TableBusy(
            f"a job that has not ended gives or takes the name {busy[0]!r:.80} in schema"
            f" {schema!r}",
            table=busy[0],
        )


def _check_views(namespace_id: int, to: str, catalog: Catalog) -> None:
    """Check that the texts of views have room for the new name. Raises OutOfRange."""
    after = rename_schema(catalog.access, namespace_id, to)
    for view in after.views.values():
        if view is not catalog.access.views[view.table_id] and _is_too_long(view.text):
            raise OutOfRange(
                f"the query of view {view.name!r} would have more than {TEXT_BYTES_MAX} bytes with"
                " the new name of the schema"
            )


def _is_too_long(text: str) -> bool:
    return len(text.encode()) > TEXT_BYTES_MAX
