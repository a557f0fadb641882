"""DROP TABLE, with the foreign keys of others that refer to the table."""

from __future__ import annotations

from leasehold.catalog.catalog import Catalog
from leasehold.catalog.names import find_references
from leasehold.catalog.sequence_ownership import list_own_sequences, refuse_used_elsewhere
from leasehold.schema_change.plan.busy_tables import EarlierDrops, free_table
from leasehold.schema_change.plan.dependents import Doomed, cascade_notice, describe_constraint
from leasehold.schema_change.plan.results import Changes, NothingToDo, find_table
from leasehold.schema_change.steps.table_paths import drop_table
from leasehold.sql.syntax.statements import (
    DropTable,
)


def plan_drop_table(
    statement: DropTable, catalog: Catalog, earlier: EarlierDrops
) -> Changes | NothingToDo:
    """Plan the drop of a table, with CASCADE of the foreign keys that refer to it. Raises what
    `plan` raises."""
    table = find_table(catalog, statement.name, statement)
    if isinstance(table, NothingToDo):
        return table
    free_table(catalog, table, earlier)
    ids = {column.element_id for column in table.columns}
    refuse_used_elsewhere(catalog, table, ids, {*list_own_sequences(table)}, statement.beside)
    made = Changes(table, "drop table", f"table {table.name}", [drop_table(table)])
    found = [
        (child, key)
        for child, key in find_references(catalog, table.table_id)
        if child.table_id != table.table_id
        and child.name not in statement.beside
        and (child.table_id, key.element_id) not in earlier.elements
    ]
    if found and not statement.cascade:
        what = f"table {table.name}"
        words = map(describe_constraint, found)
        raise Doomed(what, what, position=statement.position).refusal(words, table=table.name)
    made.take_along(found, catalog, earlier)
    made.notices = tuple(cascade_notice(describe_constraint(each)) for each in found)
    return made
