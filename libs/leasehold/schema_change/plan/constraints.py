"""Constraints and their indexes: added, validated, dropped."""

from __future__ import annotations

from collections.abc import Set
from dataclasses import replace

from leasehold.catalog.descriptor import CHECKS_MAX, FOREIGN_KEYS_MAX, Descriptor
from leasehold.catalog.elements import Check, Column, Constraint, ForeignKey, Index
from leasehold.catalog.names import implied_index_name
from leasehold.catalog.object_names import distinct_names, free_object_name, joined_names
from leasehold.catalog.states import State
from leasehold.model.errors import (
    DuplicateConstraint,
    DuplicateObject,
    FeatureNotSupported,
    OutOfRange,
    UnknownObject,
    WrongObject,
)
from leasehold.schema_change.plan.definitions import make_index
from leasehold.schema_change.plan.dependents import Doomed
from leasehold.schema_change.plan.draft import TableDraft
from leasehold.schema_change.plan.foreign_keys import (
    check_actions,
    check_types,
    find_index,
    resolve_delete_sets,
    resolve_referred,
    select_referring,
)
from leasehold.schema_change.steps import element_paths, table_paths
from leasehold.schema_change.steps.element_paths import (
    ElementPath,
    make_valid,
    stays_not_valid,
)
from leasehold.sql.expressions.expression import columns_of_expression, compile_condition, zone_kept
from leasehold.sql.syntax.statements import (
    AlterConstraint,
    CheckDefinition,
    DropConstraint,
    ForeignKeyDefinition,
    RenameConstraint,
    UniqueDefinition,
    ValidateConstraint,
)


def add_unique(draft: TableDraft, unique: UniqueDefinition) -> None:
    """Add UNIQUE (…): an index of the constraint's name, which is the table's then."""
    columns = [draft.column(name, unique.position) for name in unique.columns]
    included = [draft.column(name, unique.position) for name in unique.included]
    draft.refuse_retyped([*columns, *included])
    parts = joined_names(distinct_names((*unique.columns, *unique.included)))
    name = _constraint_name(draft, unique.name, parts, "key", draft.taken)
    present = sum(isinstance(path.element, Index) for path in draft.paths)
    index = make_index(draft.table, name, columns, draft.new_id(), present=present)
    draft.taken.add(name)
    draft.names.add(name)
    index = replace(
        index,
        constraint=True,
        equal_nulls=unique.equal_nulls,
        # A column that an entry has already is there once.
        included=tuple(
            column.element_id for column in dict.fromkeys(included) if column not in columns
        ),
        deferrable=unique.deferrable,
    )
    made = element_paths.add_index(index, unique=True)
    draft.take(made, f"constraint {name}")


def add_check(draft: TableDraft, check: CheckDefinition) -> None:
    """Add CHECK (…), over columns there are or that this statement adds."""
    table = replace(draft.table, columns=tuple(draft.columns.values()))
    compile_condition(check.expression, table, check.zone)
    named = sorted(columns_of_expression(check.expression))
    over = [table.column(name) for name in named]
    draft.refuse_retyped(over)
    columns = tuple(sorted(column.element_id for column in over))
    parts = named[0] if len(named) == 1 else ""
    name = _constraint_name(draft, check.name, parts, "check", set())
    present = sum(path.new and isinstance(path.element, Check) for path in draft.paths)
    if len(table.checks) + present >= CHECKS_MAX:
        raise OutOfRange(f"table {table.name!r} has {CHECKS_MAX} checks, the most allowed")
    draft.names.add(name)
    zone = zone_kept(check.expression, table, check.zone)
    made = Check(draft.new_id(), name, check.expression, columns, zone=zone)
    draft.take(element_paths.add_check(made, not_valid=check.not_valid), f"constraint {name}")


def add_foreign_key(draft: TableDraft, definition: ForeignKeyDefinition) -> None:
    """Add FOREIGN KEY (…) REFERENCES …, with an index over its columns where there is none. It may
    refer to what is UNIQUE by the same statement."""
    table = draft.table
    columns = tuple(draft.column(name, definition.position) for name in definition.columns)
    draft.refuse_retyped(columns)
    itself = definition.table in table.names
    parent = _with_uniques(draft) if itself else draft.parent(definition.table)
    to = resolve_referred(definition, parent)
    check_types(columns, to, definition.position)
    check_actions(columns, definition)
    parts = joined_names(definition.columns)
    name = _constraint_name(draft, definition.name, parts, "fkey", set())
    present = sum(path.new and isinstance(path.element, ForeignKey) for path in draft.paths)
    if len(table.foreign_keys) + present >= FOREIGN_KEYS_MAX:
        raise OutOfRange(
            f"table {table.name!r} has {FOREIGN_KEYS_MAX} foreign keys, the most allowed"
        )
    draft.names.add(name)
    index = _index_for(draft, columns, name)
    ids = tuple(column.element_id for column in columns)
    to_ids = tuple(column.element_id for column in to.columns)
    key = ForeignKey(
        draft.new_id(),
        name,
        ids,
        parent.table_id,
        to_ids,
        to.index_id,
        index,
        on_delete=definition.on_delete,
        on_update=definition.on_update,
        full=definition.full,
        delete_sets=resolve_delete_sets(columns, definition),
        deferred=definition.deferrable == "deferred",
        deferrable=definition.deferrable == "immediate",
    )
    path = element_paths.add_check(key, not_valid=definition.not_valid)
    needed = {index, to.index_id} if itself else {index}
    made = (p for p in draft.paths if p.new and isinstance(p.element, Index))
    behind = element_paths.delay_behind(path, (p for p in made if p.name[1] in needed))
    draft.take(behind, f"constraint {name}")
    if not itself:
        draft.needs.add(parent.table_id)


def _with_uniques(draft: TableDraft) -> Descriptor:
    """Return the table with the columns and the UNIQUE constraints that are made, and without what
    is dropped."""
    table = draft.table
    there = {column.element_id for column in table.columns}
    new = (c for c in draft.columns.values() if c.element_id not in there | draft.retyped)
    made = (path.element for path in draft.paths if path.new)
    uniques = (
        replace(each, state=State.PUBLIC, unique=True)
        for each in made
        if isinstance(each, Index) and each.constraint
    )
    kept = (index for index in table.indexes if index.element_id not in draft.dropped)
    return replace(table, columns=(*table.columns, *new), indexes=(*kept, *uniques))


def validate_constraint(draft: TableDraft, action: ValidateConstraint) -> None:
    made = _find_made(draft, action.name)
    found = _constraint(draft, action.name) if made is None else made.element
    if found is None:
        raise unknown_constraint(draft.table, action.name, action.position)
    if made is not None and isinstance(found, Check | ForeignKey) and stays_not_valid(made):
        valid = make_valid(made, found)
        draft.paths = [valid if each is made else each for each in draft.paths]
        return
    assert isinstance(found, Index | Check | ForeignKey), "a constraint"
    if made is not None or isinstance(found, Index) or found.state is State.PUBLIC:
        draft.notices.append(f"constraint {action.name!r} is valid already")
        return
    draft.take(element_paths.validate_check(found), f"constraint {found.name}")


def alter_constraint(draft: TableDraft, action: AlterConstraint) -> None:
    """Change when a foreign key is looked at. Raises UnknownObject (42704), WrongObject (42809)."""
    table = draft.table
    made = _find_made(draft, action.name)
    found = _constraint(draft, action.name) if made is None else made.element
    of_key = action.name == table.key_constraint and not table.hidden_key
    if found is None and not of_key:
        raise unknown_constraint(table, action.name, action.position)
    if not isinstance(found, ForeignKey):
        raise WrongObject(
            f"constraint {action.name!r} of table {table.name!r} is not a foreign key: of one that"
            " is not, it can't be changed when it is looked at",
            table=table.name,
            constraint=action.name,
            position=action.position,
        )
    if found.deferral == action.deferrable:
        draft.notices.append(f"constraint {action.name!r} is so already")
        return
    if made is None:
        draft.take(element_paths.defer(found, action.deferrable), f"constraint {found.name}")
    else:
        made.element = element_paths.deferred(found, action.deferrable)


def drop_constraint(draft: TableDraft, action: DropConstraint) -> None:
    found = _constraint(draft, action.name)
    if found is None:
        if not action.if_exists:
            raise unknown_constraint(draft.table, action.name, action.position)
        draft.notices.append(describe_absent(action.name))
        return
    match found:
        case ForeignKey():
            draft.drop_foreign_key(found)
        case Index():
            _drop_unique(draft, found, action)
        case Check():
            draft.drop_once(element_paths.drop_check(found), found, f"constraint {found.name}")


def _drop_unique(draft: TableDraft, index: Index, action: DropConstraint) -> None:
    table = draft.table
    doomed = Doomed(
        f"constraint {index.name} on table {table.name}",
        f"index {index.name}",
        action.cascade,
        action.position,
    )
    waits = draft.drop_referring(select_referring(draft.references(), index), doomed)
    own = (k for k in table.foreign_keys if k.element_id not in draft.dropped)
    needed = any(key.index == index.element_id for key in own)
    path = (element_paths.hide_index if needed else element_paths.drop_index)(index, waits=waits)
    draft.drop_once(path, index, f"constraint {index.name}")


def free_names(draft: TableDraft, dropped: Set[str]) -> None:
    """Let what the statement adds have the names of what it drops, wherever that is said: as in
    PostgreSQL, which drops first. Here both stand beside each other until the new one is
    public, which harms nobody: constraints are named in DDL and errors alone, and reads by an
    index are told apart (`Descriptor.read_name`)."""
    table = draft.table
    uniques = {index.name for index in table.indexes if index.constraint}
    own = uniques | {check.name for check in table.checks}
    own |= {key.name for key in table.foreign_keys}
    draft.names -= dropped & own
    draft.taken -= dropped & uniques


def rename_constraint(draft: TableDraft, action: RenameConstraint) -> None:
    """Rename a constraint. A UNIQUE constraint and its index are one element, hence one
    name."""
    table = draft.table
    if action.name == table.key_constraint and not table.hidden_key:
        refuse_name(draft, action.to, draft.taken)
        draft.take(table_paths.rename_key(table, action.to), f"constraint {action.name}")
        return
    found = _constraint(draft, action.name)
    if found is None:
        raise unknown_constraint(draft.table, action.name, action.position)
    relations = draft.taken if isinstance(found, Index) else set()
    refuse_name(draft, action.to, relations)
    draft.take(element_paths.rename(found, action.to), f"constraint {found.name}")


def _index_for(draft: TableDraft, columns: tuple[Column, ...], foreign_key: str) -> int:
    """Return the id of an index over exactly these columns, which is made where there is none."""
    there = find_index(draft.table, columns)
    if there is not None and there not in draft.dropped:
        return there
    ids = tuple(column.element_id for column in columns)
    for path in draft.paths:
        if path.new and isinstance(path.element, Index) and path.element.columns == ids:
            return path.element.element_id
    name = implied_index_name(foreign_key)
    present = sum(isinstance(path.element, Index) for path in draft.paths)
    index = make_index(draft.table, name, columns, draft.new_id(), present=present)
    made = element_paths.add_index(replace(index, implied=True), unique=False)
    draft.take(made, f"index {name}")
    return index.element_id


def _constraint_name(
    draft: TableDraft, given: str | None, parts: str, label: str, taken: set[str]
) -> str:
    if given is None:
        table = draft.table.name
        return free_object_name(table, parts, label, taken | draft.names)
    refuse_name(draft, given, taken)
    return given


def refuse_name(draft: TableDraft, name: str, taken: set[str]) -> None:
    """Refuse a name that is taken. Raises DuplicateObject (42P07) for the name of a table or an
    index, DuplicateConstraint (42710) for one of this table's constraints."""
    if name in taken:
        raise DuplicateObject(f"relation {name!r} already exists", constraint=name)
    if name in draft.names:
        table = draft.table.name
        raise DuplicateConstraint(
            f"constraint {name!r} for relation {table!r} already exists",
            table=table,
            constraint=name,
        )


def _constraint(draft: TableDraft, name: str) -> Constraint | Index | None:
    """Return the constraint of that name, unless this statement has dropped it."""
    found = find_constraint(draft.table, name)
    return None if found is None or found.element_id in draft.dropped else found


def _find_made(draft: TableDraft, name: str) -> ElementPath | None:
    """Return the path of the constraint of that name that this statement makes. It comes before
    one of the table, which has the name as well where the statement drops it. Raises
    FeatureNotSupported for one that is made anew."""
    anew = {id(path) for _, path in draft.remade}
    found = next((p for p in draft.paths if p.new and _is_constraint(p, name)), None)
    if found is not None and id(found) in anew:
        raise FeatureNotSupported(
            f"constraint {name!r} is made anew by the same statement, since a column that it is"
            " over gets another type: change the constraint by a statement of its own",
            table=draft.table.name,
            constraint=name,
        )
    return found


def _is_constraint(path: ElementPath, name: str) -> bool:
    match path.element:
        case Check(name=own) | ForeignKey(name=own) | Index(name=own, constraint=True):
            return own == name
    return False


def find_constraint(table: Descriptor, name: str) -> Constraint | Index | None:
    """Return the constraint of that name, None where there is none but perhaps the primary key."""
    index = table.index(name)
    unique = index if index is not None and index.constraint else None
    return table.check(name) or table.foreign_key(name) or unique


def describe_absent(name: str) -> str:
    """Return the notice that a constraint to be dropped IF EXISTS does not."""
    return f"constraint {name!r} does not exist, nothing was done"


def unknown_constraint(table: Descriptor, name: str, position: int) -> UnknownObject:
    """Return the error of who names a constraint that the table has not."""
    return UnknownObject(
        f"constraint {name!r} of table {table.name!r} does not exist",
        table=table.name,
        constraint=name,
        position=position,
    )
