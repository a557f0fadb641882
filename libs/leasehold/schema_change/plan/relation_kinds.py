"""Says which kind of relation a statement is about where its words leave that open."""

from __future__ import annotations

from leasehold.catalog.catalog import Catalog
from leasehold.model.errors import UnknownTable
from leasehold.schema_change.plan.indexes import find_indexed
from leasehold.sql.syntax.statements import (
    AlterTable,
    Change,
    RenameIndex,
    RenameSequence,
    RenameTable,
)


def as_named(change: Change, catalog: Catalog) -> Change:
    """Return ALTER TABLE … RENAME TO of a sequence or an index, which PostgreSQL takes, as what
    renames those; any other change as it is."""
    if not isinstance(change, AlterTable):
        return change
    match change.actions:
        case (RenameTable(to=to),):
            name, exists, position = change.table, change.if_exists, change.position
        case _:
            return change
    try:
        if catalog.resolve(name).sequence is not None:
            return RenameSequence(name, to, exists, position)
    except UnknownTable:
        if find_indexed(catalog, name) is not None:
            return RenameIndex(name, to, exists, position)
    return change
