"""DROP TABLE, with the foreign keys of others that refer to the table, and the defaults of others
that draw from its sequences."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from leasehold.catalog.catalog import Catalog
from leasehold.catalog.descriptor import Descriptor
from leasehold.catalog.names import find_references
from leasehold.catalog.sequence_ownership import (
    User,
    find_existing,
    find_used_elsewhere,
    list_own_sequences,
    refuse_used_elsewhere,
)
from leasehold.schema_change.plan.busy_tables import EarlierDrops, free_table
from leasehold.schema_change.plan.dependents import Doomed, cascade_notice, describe_constraint
from leasehold.schema_change.plan.results import (
    Changes,
    NothingToDo,
    drop_default_of,
    find_table,
)
from leasehold.schema_change.steps.table_paths import drop_sequence, drop_table
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
    own = {*list_own_sequences(table)}
    users = find_used_elsewhere(catalog, table, ids, own, statement.beside)
    if not statement.cascade:
        refuse_used_elsewhere(catalog, table, users)
    if users:
        made = _with_defaults(table, users, catalog)
    else:
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
    along = [describe_constraint(each) for each in found] + [user.words for user in users]
    made.notices = tuple(map(cascade_notice, along))
    return made


def _with_defaults(table: Descriptor, users: Sequence[User], catalog: Catalog) -> Changes:
    """Return the drop of a table, and of defaults of others that draw from its sequences: these go
    when nobody draws any more. ⚠ So it is a job of one of the others, which stays."""
    first, *others = {user.table.table_id: user.table for user in users}.values()
    sequences = find_existing(list_own_sequences(table), catalog)
    for each in (first, *others, *sequences):
        free_table(catalog, each)
    made = Changes(
        first,
        "drop table",
        f"table {table.name}",
        (
            *(drop_default_of(user, first) for user in users),
            replace(drop_table(table), table_id=table.table_id),
            *(drop_sequence(sequence, 1) for sequence in sequences),
        ),
    )
    made.join((*others, table, *sequences))
    return made
