"""TRUNCATE: which tables lose their rows, and when that can't be.

No descriptor version and no job: no element changes its state, and of no rows every version's
definition holds. So it is one decision at one LSN, like a write (DESIGN.md).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence

from leasehold.catalog.catalog import Catalog
from leasehold.catalog.descriptor import Descriptor
from leasehold.catalog.elements import ForeignKey
from leasehold.catalog.names import find_references
from leasehold.catalog.sequence_ownership import find_existing, list_own_sequences, refuse_sequence
from leasehold.model.errors import FeatureNotSupported
from leasehold.schema_change.plan.busy_tables import free_table
from leasehold.schema_change.plan.results import TruncatePlan
from leasehold.sql.syntax.statements import (
    Truncate,
)

NOTHING_TO_RESTART = "RESTART IDENTITY: no column has an identity, so there is nothing to restart"


def plan_truncate(statement: Truncate, catalog: Catalog) -> TruncatePlan:
    # ⚠ First of all: while a primary key changes there is a table more that foreign keys refer to.
    """Plan a TRUNCATE. Raises what `plan` raises."""
    for named in statement.tables:
        free_table(catalog, catalog.resolve(named.name))
    tables, notices = find_truncated(statement, catalog)
    for table in tables:
        free_table(catalog, table)
    restarted: tuple[Descriptor, ...] = ()
    if statement.restart:
        restarted = find_existing(
            dict.fromkeys(s for t in tables for s in list_own_sequences(t)), catalog
        )
    if statement.restart and not restarted:
        notices += (NOTHING_TO_RESTART,)
    return TruncatePlan(tables, notices, restarted)


def find_truncated(
    statement: Truncate, catalog: Catalog
) -> tuple[tuple[Descriptor, ...], tuple[str, ...]]:
    """Return each table once, with CASCADE those that refer to one, and the notices. Raises
    UnknownTable, and FeatureNotSupported for a table to which a foreign key of another table refers
    that is not truncated too."""
    named = (refuse_sequence(catalog.resolve(n.name), n.position) for n in statement.tables)
    found = {t.table_id: t for t in named}
    notices = []
    todo = list(found.values())
    while todo:
        table = todo.pop(0)
        for child, key in _references(catalog, table.table_id):
            if child.table_id in found:
                continue
            if not statement.cascade:
                raise _referred(table, child, key)
            found[child.table_id] = catalog.newest(child.table_id)
            todo.append(child)
            notices.append(truncate_notice(child))
    return tuple(found.values()), tuple(notices)


def truncate_notice(child: Descriptor) -> str:
    return f'truncate cascades to table "{child.name}"'


def refuse_referred(emptied: Sequence[Descriptor], tables: Iterable[Descriptor]) -> None:
    """Refuse what can be seen to be refused before the master decides: `tables` are all that there
    are. Raises FeatureNotSupported."""
    found = {table.table_id: table for table in emptied}
    for child, key in _outside(found, tables):
        raise _referred(found[key.parent], child, key)


def with_referring(
    emptied: Sequence[Descriptor], tables: Sequence[Descriptor]
) -> tuple[Descriptor, ...]:
    """Return the tables, and what CASCADE takes along, as far as can be seen before the master
    decides."""
    found = {table.table_id: table for table in emptied}
    while more := {child.table_id: child for child, _ in _outside(found, tables)}:
        found |= more
    return tuple(found.values())


def _outside(
    found: Mapping[int, Descriptor], tables: Iterable[Descriptor]
) -> Iterator[tuple[Descriptor, ForeignKey]]:
    """Yield foreign keys of other tables that refer to one that is `found`."""
    for child in tables:
        # ⚠ A table that is about to take another's place is that one, as far as this goes.
        named = child.table_id in found or child.mirror in found
        for key in child.foreign_keys if not named else ():
            if key.parent in found:
                yield child, key


def _referred(table: Descriptor, child: Descriptor, key: ForeignKey) -> FeatureNotSupported:
    return FeatureNotSupported(
        f"table {table.name!r} can't be truncated: foreign key {key.name!r} of table"
        f" {child.name!r} refers to it",
        detail=f'Table "{child.name}" references "{table.name}".',
        hint=f'Truncate table "{child.name}" at the same time, or use TRUNCATE ... CASCADE.',
        table=table.name,
        constraint=key.name,
    )


def _references(catalog: Catalog, table_id: int) -> Iterator[tuple[Descriptor, ForeignKey]]:
    """Yield foreign keys in any state, and those that a version enforces that is in use still."""
    yield from find_references(catalog, table_id)
    yield from catalog.references(table_id)
