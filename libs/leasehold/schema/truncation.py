"""TRUNCATE: which tables lose their rows, and when that can't be.

No descriptor version and no job: no element changes its state, and of no rows every version's
definition holds. So it is one decision at one LSN, like a write (DESIGN.md).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from leasehold.model.errors import FeatureNotSupported
from leasehold.schema.catalog import Catalog
from leasehold.schema.descriptor import Descriptor
from leasehold.schema.elements import ForeignKey
from leasehold.schema.names import references_of
from leasehold.schema.sequences import refuse_sequence
from leasehold.sql.statements import Truncate

NOTHING_TO_RESTART = "RESTART IDENTITY: no column has an identity, so there is nothing to restart"


def truncated_tables(statement: Truncate, catalog: Catalog) -> tuple[Descriptor, ...]:
    """Each table once. Raises UnknownTable, and FeatureNotSupported for a table to which a foreign
    key of another table refers that is not named too."""
    named = (refuse_sequence(catalog.resolve(n.name), n.position) for n in statement.tables)
    found = {t.table_id: t for t in named}
    for table in found.values():
        for child, key in _references(catalog, table.table_id):
            if child.table_id not in found:
                raise _referred(table, child, key)
    return tuple(found.values())


def refuse_referred(emptied: Sequence[Descriptor], tables: Iterable[Descriptor]) -> None:
    """What can be seen of it before the master decides: `tables` are all that there are. Raises
    FeatureNotSupported."""
    found = {table.table_id: table for table in emptied}
    for child in tables:
        # ⚠ A table that is about to take another's place is that one, as far as this goes.
        named = child.table_id in found or child.twin in found
        for key in child.foreign_keys if not named else ():
            if key.parent in found:
                raise _referred(found[key.parent], child, key)


def _referred(table: Descriptor, child: Descriptor, key: ForeignKey) -> FeatureNotSupported:
    return FeatureNotSupported(
        f"table {table.name!r} can't be truncated: foreign key {key.name!r} of table"
        f" {child.name!r} refers to it; truncate {child.name!r} in the same statement,"
        " or drop the foreign key first",
        table=table.name,
        constraint=key.name,
    )


def _references(catalog: Catalog, table_id: int) -> Iterator[tuple[Descriptor, ForeignKey]]:
    """In any state, and those that a version enforces that is in use still."""
    yield from references_of(catalog, table_id)
    yield from catalog.references(table_id)
