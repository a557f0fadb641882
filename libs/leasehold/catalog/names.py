"""Names that are taken, and names derived as PostgreSQL derives them.

A name is taken while any version that may be in use resolves it, and from the moment at which a job
that will give it is planned (D9): else two jobs could end with one name.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator

from leasehold.catalog.catalog import Catalog
from leasehold.catalog.descriptor import Descriptor
from leasehold.catalog.elements import ForeignKey, Index
from leasehold.catalog.job import Job
from leasehold.catalog.object_names import PRIMARY_KEY_LABEL, free_object_name, object_name
from leasehold.model.errors import DuplicateConstraint, DuplicateObject


def find_references(catalog: Catalog, table_id: int) -> tuple[tuple[Descriptor, ForeignKey], ...]:
    """Return foreign keys of other tables, in any state, that refer to a table, and of itself."""
    return tuple(
        (table, key)
        for table in catalog.tables()
        for key in table.foreign_keys
        if key.parent == table_id
    )


def running_jobs(catalog: Catalog) -> Iterator[Job]:
    return iter(catalog.running.values())


def relation_names(catalog: Catalog) -> set[str]:
    """Return the names of tables, views and indexes, which share theirs, as in PostgreSQL; primary
    keys have an index, too. An index that only goes with a foreign key takes none: PostgreSQL makes
    no such index, and users give its name to one of theirs."""
    names = {*catalog.table_names(), *catalog.index_names()}
    names.update(*catalog.running_names())
    names.update(catalog.access.views_by_name)
    return names


def named_indexes(table: Descriptor) -> Iterator[Index]:
    """Return the indexes that users know of."""
    return iter(table.named_indexes)


def implied_index_name(foreign_key: str) -> str:
    """Return what jobs and checks call an index that only goes with a foreign key."""
    return object_name(foreign_key, "", "index")


def constraint_names(table: Descriptor) -> set[str]:
    """Return the names of one table's checks, foreign keys, unique constraints and primary key."""
    names = {check.name for check in table.checks}
    names |= {key.name for key in table.foreign_keys}
    names |= {index.name for index in named_indexes(table)}
    return names | {table.key_constraint}


def key_object_name(table: Descriptor, said: str | None, taken: Collection[str]) -> str:
    """Return the name of a primary key that a statement calls `said`; None: a free one. `taken` are
    names of relations. Raises DuplicateObject, DuplicateConstraint for one that is taken."""
    if said is None:
        return free_object_name(table.name, "", PRIMARY_KEY_LABEL, taken)
    if said in taken or said == table.name:
        raise DuplicateObject(f"relation {said!r} already exists", constraint=said)
    if said in {c.name for c in table.checks} | {key.name for key in table.foreign_keys}:
        raise DuplicateConstraint(
            f"constraint {said!r} for relation {table.name!r} already exists",
            table=table.name,
            constraint=said,
        )
    return said
