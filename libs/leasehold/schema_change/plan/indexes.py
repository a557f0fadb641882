"""CREATE INDEX, DROP INDEX and ALTER INDEX … RENAME."""

from __future__ import annotations

from dataclasses import replace

from leasehold.catalog.catalog import Catalog
from leasehold.catalog.descriptor import Descriptor
from leasehold.catalog.elements import Index
from leasehold.catalog.names import find_references, named_indexes, relation_names
from leasehold.catalog.object_names import free_object_name, joined_names
from leasehold.catalog.sequence_ownership import refuse_sequence
from leasehold.catalog.states import State
from leasehold.model.errors import DependentObjects, DuplicateObject, UnknownObject, UnknownTable
from leasehold.schema_change.plan.busy_tables import EarlierDrops, free_table, is_table
from leasehold.schema_change.plan.definitions import define_index
from leasehold.schema_change.plan.dependents import (
    Doomed,
    cascade_notice,
    describe_constraint,
    drop_along,
)
from leasehold.schema_change.plan.foreign_keys import select_referring
from leasehold.schema_change.plan.results import Changes, NothingToDo
from leasehold.schema_change.steps.element_paths import (
    add_index,
    drop_index,
    hide_index,
    rename,
    show_index,
)
from leasehold.schema_change.steps.table_paths import rename_key
from leasehold.sql.syntax.statements import (
    CreateIndex,
    DropIndex,
    RenameIndex,
)


def plan_create_index(statement: CreateIndex, catalog: Catalog) -> Changes | NothingToDo:
    table = refuse_sequence(catalog.resolve(statement.table))
    taken = relation_names(catalog)
    name = statement.name
    shown = _implied(statement, table)
    if not statement.named:
        parts = joined_names(statement.parts_of_name)
        name = free_object_name(statement.table, parts, "idx", taken)
    elif name in taken:
        # An index that a job is still building is not there yet: "nothing to do" would be a lie.
        if statement.if_not_exists and _is_public(catalog, name):
            return NothingToDo(f"index {name!r} exists already, nothing was done")
        raise DuplicateObject(f"{name!r} exists already, or is being made", index=name)
    index = define_index(statement, table, name)
    free_table(catalog, table)
    if shown is not None:
        return Changes(table, "create index", f"index {name}", [show_index(shown, name)])
    kind = "create unique index" if statement.unique else "create index"
    return Changes(table, kind, f"index {name}", [add_index(index, unique=statement.unique)])


def _implied(statement: CreateIndex, table: Descriptor) -> Index | None:
    """Return the index of a foreign key that is just what the statement asks for."""
    if statement.unique or statement.included or statement.orders:
        return None
    if statement.predicate is not None:
        return None
    for index in table.indexes:
        columns = tuple(table.by_id[e].name for e in index.columns if e in table.by_id)
        if index.implied and index.state is State.PUBLIC and columns == statement.columns:
            return index
    return None


def _is_public(catalog: Catalog, name: str) -> bool:
    if is_table(catalog, name):
        return True
    found = (table.index(name) for table in catalog.tables())
    return any(index is not None and index.state is State.PUBLIC for index in found)


def _index_named(catalog: Catalog, name: str) -> tuple[Descriptor, Index] | None:
    for table in catalog.tables():
        index = table.index(name)
        if index is not None and index.state is State.PUBLIC and not index.implied:
            return table, index
    return None


def find_indexed(catalog: Catalog, name: str) -> Descriptor | None:
    """Return the table that has an index of that name; a primary key has one, too."""
    for table in catalog.tables():
        if table.sequence is None and (
            (not table.hidden_key and table.key_constraint == name)
            or any(name in (index.name, index.alias) for index in named_indexes(table))
        ):
            return table
    return None


def _table_of_key(catalog: Catalog, name: str) -> Descriptor | None:
    """Return the table whose primary key, and its index, are called so."""
    named = (t for t in catalog.tables() if t.key_constraint == name and not t.hidden_key)
    return next((t for t in named if t.sequence is None and t.state is State.PUBLIC), None)


def plan_drop_index(
    statement: DropIndex, catalog: Catalog, earlier: EarlierDrops
) -> Changes | NothingToDo:
    found = _index_named(catalog, statement.name)
    if found is None:
        keyed = _table_of_key(catalog, statement.name)
        if keyed is not None:
            raise _index_of_constraint(keyed, statement.name, statement.position)
        if statement.if_exists:
            return NothingToDo(f"index {statement.name!r} does not exist, nothing was done")
        raise UnknownObject(
            f"index {statement.name!r} does not exist",
            index=statement.name,
            position=statement.position,
        )
    table, index = found
    if index.constraint:
        raise _index_of_constraint(table, index.name, statement.position)
    free_table(catalog, table, earlier)
    return _index_dropped(statement, table, index, catalog, earlier)


def _index_of_constraint(table: Descriptor, name: str, position: int) -> DependentObjects:
    constraint = f"constraint {name} on table {table.name}"
    return DependentObjects(
        f"cannot drop index {name} because {constraint} requires it",
        hint=f"You can drop {constraint} instead.",
        index=name,
        position=position,
    )


def _index_dropped(
    statement: DropIndex, table: Descriptor, index: Index, catalog: Catalog, earlier: EarlierDrops
) -> Changes:
    """Plan the drop of an index. ⚠ Of its own table's foreign keys one may refer to it, which goes,
    and another find its rows by it, for which it stays without its name."""
    found = select_referring(find_references(catalog, table.table_id), index)
    left = [(t, k) for t, k in found if (t.table_id, k.element_id) not in earlier.elements]
    if left and not statement.cascade:
        what = f"index {index.name}"
        doomed = Doomed(what, what, position=statement.position)
        raise doomed.refusal(map(describe_constraint, left), index=index.name)
    others = [(t, k) for t, k in left if t.table_id != table.table_id]
    own = [(t, k) for t, k in left if t.table_id == table.table_id]
    gone = {k.element_id for _, k in own} | {e for t, e in earlier.elements if t == table.table_id}
    staying = (key for key in table.foreign_keys if key.element_id not in gone)
    needed = any(key.index == index.element_id for key in staying)
    path = (hide_index if needed else drop_index)(index, waits=int(bool(found)))
    along = (replace(t, table_id=0) for t in drop_along(own))
    kept = (each for each in along if each.name != path.name)
    made = Changes(table, "drop index", f"index {index.name}", (path, *kept))
    made.take_along(others, catalog, earlier)
    made.notices = tuple(cascade_notice(describe_constraint(each)) for each in left)
    return made


def plan_rename_index(statement: RenameIndex, catalog: Catalog) -> Changes | NothingToDo:
    found = _index_named(catalog, statement.name)
    keyed = None if found is not None else _table_of_key(catalog, statement.name)
    if found is None and keyed is None:
        if statement.if_exists:
            return NothingToDo(f"index {statement.name!r} does not exist, nothing was done")
        # PostgreSQL looks for any relation here, and for an index in DROP INDEX.
        raise UnknownTable(
            f"relation {statement.name!r} does not exist",
            index=statement.name,
            position=statement.position,
        )
    if statement.to in relation_names(catalog):
        raise DuplicateObject(f"{statement.to!r} exists already, or is being made")
    if keyed is not None:
        free_table(catalog, keyed)
        words = f"index {statement.name}"
        return Changes(keyed, "rename index", words, [rename_key(keyed, statement.to)])
    assert found is not None
    table, index = found
    free_table(catalog, table)
    return Changes(table, "rename index", f"index {index.name}", [rename(index, statement.to)])
