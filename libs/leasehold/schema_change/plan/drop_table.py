"""DROP TABLE, with the foreign keys of others that refer to the table."""

from __future__ import annotations

from leasehold.catalog.catalog import Catalog
from leasehold.catalog.names import references_of
from leasehold.catalog.sequence_ownership import owned_by, refuse_used_elsewhere
from leasehold.schema_change.plan.busy_tables import Going, free_table
from leasehold.schema_change.plan.dependents import Doomed, cascades_to, constraint_words
from leasehold.schema_change.plan.results import Changes, NothingToDo, find_table
from leasehold.schema_change.steps.element_paths import drop_table
from leasehold.sql.syntax.statements import DropTable


def plan_drop_table(statement: DropTable, catalog: Catalog, going: Going) -> Changes | NothingToDo:
    table = find_table(catalog, statement.name, statement)
    if isinstance(table, NothingToDo):
        return table
    free_table(catalog, table, going)
    ids = {column.element_id for column in table.columns}
    refuse_used_elsewhere(catalog, table, ids, {*owned_by(table)}, statement.beside)
    made = Changes(table, "drop table", f"table {table.name}", [drop_table(table)])
    found = [
        (child, key)
        for child, key in references_of(catalog, table.table_id)
        if child.table_id != table.table_id
        and child.name not in statement.beside
        and (child.table_id, key.element_id) not in going.elements
    ]
    if found and not statement.cascade:
        what = f"table {table.name}"
        words = map(constraint_words, found)
        raise Doomed(what, what, position=statement.position).refused(words, table=table.name)
    made.take_along(found, catalog, going)
    made.notices = tuple(cascades_to(constraint_words(each)) for each in found)
    return made
