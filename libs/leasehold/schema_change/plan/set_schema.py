"""ALTER TABLE and ALTER SEQUENCE … SET SCHEMA: new names, in one step, of a relation and of all
that lies beside it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from leasehold.catalog.catalog import Catalog
from leasehold.catalog.descriptor import Descriptor
from leasehold.catalog.elements import Check, ForeignKey, Index
from leasehold.catalog.names import named_indexes, relation_names
from leasehold.catalog.namespaces import bare, qualified
from leasehold.catalog.schema_names import PUBLIC
from leasehold.catalog.sequence_ownership import (
    User,
    find_users,
    list_own_sequences,
    nextval_text,
)
from leasehold.model.errors import DuplicateObject, FeatureNotSupported, UnknownTable, WrongObject
from leasehold.schema_change.plan.busy_tables import free_table
from leasehold.schema_change.plan.results import Changes, NothingToDo
from leasehold.schema_change.steps.element_paths import ElementPath, rename, reword_drawn
from leasehold.schema_change.steps.table_paths import move_relation
from leasehold.sql.syntax.statements import SetSchema


def plan_set_schema(statement: SetSchema, catalog: Catalog) -> Changes | NothingToDo:
    """Plan it. Raises what `plan` raises."""
    try:
        found = catalog.resolve(statement.name)
    except UnknownTable:
        if not statement.if_exists:
            raise
        return NothingToDo(f"{statement.kind} {statement.name!r} does not exist, nothing was done")
    if statement.kind == "sequence" and found.sequence is None:
        words = f'"{statement.name}" is not a sequence'
        raise WrongObject(words, table=statement.name, position=statement.position)
    if found.schema == statement.to:
        return NothingToDo(f"{statement.kind} {statement.name!r} lies there already")
    _refuse_owned(found, catalog)
    own = {*list_own_sequences(found)} if found.sequence is None else set()
    sequences = [found] if found.sequence is not None else [*map(catalog.newest, sorted(own))]
    moved = [found, *(each for each in sequences if each is not found)]
    _check_free(moved, statement, catalog)
    users = [user for each in sequences for user in find_users(catalog, each.table_id)]
    drawing = [user for user in users if user.draws]
    tables = {each.table_id: each for each in (*moved, *(user.table for user in drawing))}
    for table in tables.values():
        free_table(catalog, table)
    paths: list[ElementPath] = []
    for each in moved:
        name = _moved(each.name, each, statement.to)
        path = move_relation(each, statement.to, name)
        paths.append(path if each is found else replace(path, table_id=each.table_id))
    paths += move_elements(found, statement.to)
    by_id = {each.table_id: each for each in sequences}
    for user in drawing:
        reworded = move_default(user, by_id[user.column.draws_from], statement.to)
        own_table = user.table.table_id == found.table_id
        paths.append(reworded if own_table else replace(reworded, table_id=user.table.table_id))
    made = Changes(found, "set schema", f"{statement.kind} {found.name}", tuple(paths))
    made.join(each for number, each in tables.items() if number != found.table_id)
    return made


def _moved(name: str, relation: Descriptor, schema: str) -> str:
    return qualified(schema, bare(relation.schema, name))


def move_default(user: User, sequence: Descriptor, schema: str) -> ElementPath:
    """Return the path of a column's default that names a sequence, which goes into a schema."""
    return reword_drawn(user.column, nextval_text(_moved(sequence.name, sequence, schema)))


def move_elements(table: Descriptor, schema: str) -> Iterator[ElementPath]:
    """Yield the paths of what lies beside a table, and gets names of its schema."""
    beside: tuple[Index | Check | ForeignKey, ...] = (
        *table.indexes,
        *table.checks,
        *table.foreign_keys,
    )
    for each in beside if table.sequence is None else ():
        yield rename(each, _moved(each.name, table, schema))


def _check_free(moved: list[Descriptor], statement: SetSchema, catalog: Catalog) -> None:
    taken = relation_names(catalog)
    for each in moved:
        names = [each.name, *(index.name for index in named_indexes(each))]
        if each.sequence is None and not each.hidden_key:
            names.append(each.key_constraint)
        for name in names:
            if _moved(name, each, statement.to) in taken:
                shown = bare(each.schema, name)
                raise DuplicateObject(
                    f'relation "{shown}" already exists in schema "{statement.to or PUBLIC}"',
                    table=shown,
                    position=statement.position,
                )


def _refuse_owned(found: Descriptor, catalog: Catalog) -> None:
    """Refuse a sequence that goes with a column: it lies where that does."""
    owner = next((u for u in find_users(catalog, found.table_id) if u.owns), None)
    if owner is not None:
        raise FeatureNotSupported(
            "cannot move an owned sequence into another schema",
            detail=f'Sequence "{found.name}" is linked to table "{owner.table.name}".',
        )
