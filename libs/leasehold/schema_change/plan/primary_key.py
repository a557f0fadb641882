"""DROP CONSTRAINT t_pkey, ADD PRIMARY KEY (…), or one of them alone: another key for a table that
has rows and users.

A row's key is its identity: where it lies in a store, what entries, images, chunks and requests
name. So the rows go over to another table that has the same columns and the other key.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Final, NamedTuple

from leasehold.catalog.catalog import Catalog
from leasehold.catalog.descriptor import Descriptor
from leasehold.catalog.elements import (
    DEFAULT_LOCK,
    HIDDEN_NAME,
    Column,
    CommitContext,
    ForeignKey,
    Index,
)
from leasehold.catalog.names import (
    constraint_names,
    find_references,
    implied_index_name,
    key_object_name,
    relation_names,
)
from leasehold.catalog.object_names import (
    PRIMARY_KEY_LABEL,
    free_object_name,
    joined_names,
)
from leasehold.catalog.states import State
from leasehold.model.errors import (
    DependentObjects,
    DuplicateObject,
    FeatureNotSupported,
    InvalidDefinition,
    UnknownColumn,
)
from leasehold.schema_change.plan.busy_tables import free_table
from leasehold.schema_change.plan.constraints import (
    describe_absent,
    find_constraint,
    unknown_constraint,
)
from leasehold.schema_change.plan.definitions import make_index
from leasehold.schema_change.plan.dependents import (
    HINT,
    cascade_notice,
    describe_constraint,
    drop_along,
)
from leasehold.schema_change.plan.foreign_keys import Referring, find_implied_index, find_index
from leasehold.schema_change.plan.index_constraints import (
    describe_rename,
    with_columns_of_index,
)
from leasehold.schema_change.plan.new_key_columns import (
    draft_new_columns,
    find_added_keys,
    find_new_columns,
    with_new_columns,
)
from leasehold.schema_change.plan.results import Changes, NothingToDo
from leasehold.schema_change.steps.element_paths import ElementPath, drop_index
from leasehold.schema_change.steps.table_paths import (
    alter_key,
    another_key,
    hidden_key,
    lost_reference,
    refer_to,
)
from leasehold.sql.syntax.positions import with_position
from leasehold.sql.syntax.statements import (
    Action,
    AddColumn,
    AddPrimaryKey,
    AddUnique,
    DropConstraint,
    UniqueDefinition,
)
from leasehold.values.types import Type, why_no_key

KEY_CHANGE: Final = "change primary key"
KEY_DROP: Final = "drop primary key"
KEY_RENAME: Final = "rename primary key"
KEY_ALTER: Final = "alter primary key"
HIDDEN_TYPE: Final = Type("uuid")


def hidden_column(element_id: int) -> Column:
    """Return the key of a table that has no PRIMARY KEY (T7)."""
    return Column(element_id, HIDDEN_NAME, HIDDEN_TYPE, nullable=False, hidden=True)


class KeyChange(NamedTuple):
    """The change of the primary key that a statement asks for. `key`: the other one, None = none
    any more, so that rows get one that nobody sees; `unique`: what the old key's columns are from
    then on; `cascade`: foreign keys go along to whose columns nothing is UNIQUE then; `new`:
    columns of the key that the same statement adds; `notices`: what there is not to be dropped."""

    key: AddPrimaryKey | None
    unique: UniqueDefinition | None
    position: int
    cascade: bool = False
    new: tuple[AddColumn, ...] = ()
    notices: tuple[str, ...] = ()


NOTHING_BESIDE: Final = KeyChange(None, None, 1)


def read_key_change(table: Descriptor, actions: Sequence[Action]) -> KeyChange | None:
    """Return what the actions ask for if they are about the primary key, else None. DROP CONSTRAINT
    IF EXISTS of what there is not stands beside anything.

    Raises InvalidDefinition (42P16) for a second key beside the one there is, UnknownObject for a
    constraint to be dropped that is not there, FeatureNotSupported for other actions beside.
    """
    name = table.key_constraint
    added = find_added_keys(table, actions)
    dropped = [a for a in actions if isinstance(a, DropConstraint) and a.name == name]
    named = table.hidden_key or table.index(name) or table.check(name)
    if not added and (not dropped or named):
        return None
    absent = _find_absent(table, actions)
    position = (added or dropped)[-1].position
    if len(added) > 1 and table.hidden_key:
        raise InvalidDefinition(
            f"table {table.name!r} can have one primary key", table=table.name, position=position
        )
    if len(added) > 1 or (not dropped and not table.hidden_key):
        raise InvalidDefinition(
            f"table {table.name!r} can have one primary key: drop the one there is in the same"
            f" statement, DROP CONSTRAINT {name}, ADD PRIMARY KEY (…)",
            table=table.name,
            position=position,
        )
    uniques = [a.unique for a in actions if isinstance(a, AddUnique) and not table.hidden_key]
    old = [column.name for column in table.key_columns]
    unique = next((u for u in uniques if sorted(u.columns) == sorted(old)), None)
    new = find_new_columns(actions, added[0]) if added else ()
    said = sum(isinstance(action, AddPrimaryKey) for action in actions) + len(new)
    known = said + bool(dropped and not table.hidden_key) + (unique is not None) + len(absent)
    if len(actions) > known:
        drop = "" if table.hidden_key else f" DROP CONSTRAINT {name},"
        kept = "" if table.hidden_key else f" (or ADD UNIQUE ({', '.join(old)}))"
        raise FeatureNotSupported(
            f"a primary key is changed by a statement of its own: ALTER TABLE …{drop} ADD PRIMARY"
            f" KEY (…), and nothing else{kept}",
            position=position,
        )
    cascade = any(action.cascade for action in dropped)
    notices = tuple(map(describe_absent, absent))
    return KeyChange(added[0] if added else None, unique, position, cascade, new, notices)


def _find_absent(table: Descriptor, actions: Sequence[Action]) -> list[str]:
    """Return the names of the constraints that are to be dropped if there are any, and are not
    there. Raises UnknownObject for others that are not."""
    found: list[str] = []
    for action in actions:
        if not isinstance(action, DropConstraint):
            continue
        name = action.name
        is_key = name == table.key_constraint and not table.hidden_key
        if is_key or find_constraint(table, name) is not None:
            continue
        if not action.if_exists:
            raise unknown_constraint(table, name, action.position)
        found.append(name)
    return found


def plan_key_change(
    before: Descriptor, asked: KeyChange, catalog: Catalog, context: CommitContext
) -> Changes | NothingToDo:
    """Plan another primary key for a table, or none. Raises what `plan` raises."""
    key = asked.key
    if key is not None:
        key = with_columns_of_index(before, key, relation_names(catalog))
        asked = asked._replace(key=key)
    draft = draft_new_columns(before, asked.new, catalog, context)
    table = with_new_columns(before, draft)
    columns = () if key is None else key_columns(table, key)
    kind = KEY_CHANGE if columns else KEY_DROP
    said = ", ".join(column.name for column in columns or table.key_columns)
    if tuple(column.element_id for column in columns) == table.primary_key:
        assert key is not None, "to a hidden key there is always another column"
        # The name of the key that goes is free for the one that comes, as in PostgreSQL.
        taken = relation_names(catalog) - {table.key_constraint, key.index}
        name = key_object_name(table, key.name, taken)
        going = [index for index in table.indexes if key.index and index.name == key.index]
        included = find_included(table, columns, key.included, key.position)
        kept = tuple(column.position for column in table.included_columns)
        paths = [alter_key(table, name, included), *map(drop_index, going)]
        if name == table.key_constraint and included == kept:
            del paths[0]
        if not paths:
            return NothingToDo(f"({said}) is the primary key already")
        free_table(catalog, table)
        done = KEY_RENAME if included == kept else KEY_ALTER
        return Changes(table, done, f"primary key {name}", paths)
    free_table(catalog, table)
    referring = find_references(catalog, table.table_id)
    others = {child.table_id: child for child, _ in referring if child.table_id != table.table_id}
    for child in others.values():
        free_table(catalog, child)
    other_id = catalog.next_table_id()
    paths = plan_key_paths(table, columns, other_id, draft.taken, asked)
    of_referring, lost = plan_referring_paths(referring, table, paths, asked)
    paths += of_referring
    changes = Changes(before, kind, f"primary key ({said})", [*draft.paths, *paths])
    # They go on from this one's numbers, step by step.
    changes.versions |= dict.fromkeys(
        (other_id, *(sequence.table_id for sequence in draft.sequences)), table.version + 1
    )
    changes.join(others.values())
    changes.made = tuple(draft.sequences)
    for drawn in draft.needs:
        free_table(catalog, catalog.newest(drawn))
    changes.needs = tuple(sorted(draft.needs))
    notices = [*asked.notices, *draft.notices]
    notices += [cascade_notice(describe_constraint(each)) for each in lost]
    if key is not None and key.index and key.name and key.name != key.index:
        notices.insert(0, describe_rename(key.index, key.name))
    changes.notices = tuple(notices)
    return changes


def give_key(table: Descriptor, key: AddPrimaryKey, catalog: Catalog) -> Descriptor:
    """Return a table without a PRIMARY KEY that nobody has used yet, as it is with one. Raises what
    `key_columns` and `key_object_name` raise."""
    assert table.hidden_key, "another key is another table"
    taken = relation_names(catalog)
    key = with_columns_of_index(table, key, taken)
    ids = tuple(column.element_id for column in key_columns(table, key))
    columns = (
        replace(c, nullable=False, not_null_enforced=False) if c.element_id in ids else c
        for c in table.columns
        if not c.hidden
    )
    made = replace(table, columns=tuple(columns), primary_key=ids)
    included = find_included(made, made.key_columns, key.included, key.position)
    made = replace(made, key_included=included)
    made = _without_index(made, key.index)
    name = key_object_name(made, key.name, taken - {key.index})
    return replace(made, key_name="" if name == made.key_constraint else name)


def key_columns(table: Descriptor, key: AddPrimaryKey) -> tuple[Column, ...]:
    """Return the columns of the other key. Raises UnknownColumn, InvalidDefinition (42P16),
    FeatureNotSupported."""
    found = []
    for name in key.columns:
        try:
            column = table.column(name)
        except UnknownColumn as error:
            raise with_position(error, key.position) from error
        where = {"column": column.name, "position": key.position}
        if column.derived is not None:
            raise InvalidDefinition(
                f"column {name!r} is generated, which a column of a primary key can't be", **where
            )
        if words := why_no_key(column.type):
            raise FeatureNotSupported(
                f"column {name!r} can't be in the PRIMARY KEY: {words}", **where
            )
        if column.locks != (DEFAULT_LOCK,):
            raise FeatureNotSupported(
                f"column {name!r} is under a lock of its own, and a key is under none: drop the"
                " lock first",
                **where,
            )
        found.append(column)
    return tuple(found)


def find_included(
    table: Descriptor, columns: Iterable[Column], names: Iterable[str], position: int = 1
) -> tuple[int, ...]:
    """Return where the columns stand that a primary key over `columns` is to include. One that is
    named again, or is in the key, is there once. Raises UnknownColumn."""
    try:
        found = dict.fromkeys(table.column(name).position for name in names)
    except UnknownColumn as error:
        raise with_position(error, position) from error
    keys = {column.position for column in columns}
    return tuple(each for each in found if each not in keys)


def plan_key_paths(
    table: Descriptor,
    columns: tuple[Column, ...],
    other_id: int,
    taken: set[str],
    asked: KeyChange = NOTHING_BESIDE,
) -> list[ElementPath]:
    """Return the paths of both tables, () `columns`: to a hidden key. Raises DuplicateObject for a
    name that is taken, OutOfRange (limits). `taken`: names of relations."""
    if not columns:
        hidden = _still_hidden(hidden_column(table.next_element_id))
        other = _under_key(table, (hidden,), other_id)
        return hidden_key(table, _completed(other, taken, asked), hidden)
    # The name of the key that goes is free for the one that comes, as in PostgreSQL.
    own = set() if table.hidden_key else {table.key_constraint}
    replaced = "" if asked.key is None else asked.key.index
    own |= {replaced} - {""}
    said = None if asked.key is None else asked.key.name
    key_name = key_object_name(table, said, taken - own)
    used = taken | constraint_names(table) | {key_name}
    name = free_object_name(table.name, "", PRIMARY_KEY_LABEL, used)
    index = make_index(table, name, columns, table.next_element_id)
    nullable = [column for column in columns if column.nullable]
    other = _without_index(_under_key(table, columns, other_id), replaced)
    named = () if asked.key is None else asked.key.included
    other = replace(
        other,
        key_name="" if key_name == other.key_constraint else key_name,
        key_included=find_included(table, columns, named, asked.position),
    )
    return another_key(table, _completed(other, taken | {name, key_name}, asked), index, nullable)


def plan_referring_paths(
    referring: Iterable[tuple[Descriptor, ForeignKey]],
    table: Descriptor,
    paths: Iterable[ElementPath],
    asked: KeyChange,
) -> tuple[list[ElementPath], list[Referring]]:
    """Return the paths of the foreign keys that refer to `table`, its own too: they refer to the
    one that takes its place from the step on in which it does. Where nothing would keep what they
    refer to unique they go along; those are told, too. Raises DependentObjects unless that is asked
    for."""
    paths = list(paths)
    steps = max(len(path.before_commit) for path in paths)
    made = (t.element for t in paths if t.new)
    other = next(element for element in made if isinstance(element, Descriptor))
    found: list[ElementPath] = []
    lost: list[Referring] = []
    for child, key in referring:
        columns = tuple(other.by_id[element_id] for element_id in key.parent_columns)
        index = find_index(other, columns, unique=True)
        own = child.table_id == table.table_id
        if index is None and asked.cascade:
            lost.append((child, key))
            found.append(lost_reference(key, steps, 0 if own else child.table_id))
            continue
        if index is None:
            names = ", ".join(column.name for column in columns)
            raise DependentObjects(
                f"foreign key {key.name!r} of table {child.name!r} refers to ({names}) of table"
                f" {table.name!r}, which nothing else keeps unique: ADD UNIQUE ({names}) in the"
                " same statement, or drop the foreign key first",
                hint=HINT,
                table=table.name,
                constraint=key.name,
                position=asked.position,
            )
        current = other.foreign_key(key.name) if own else key
        assert current is not None, "a table with another key has all that it had"
        element_key = other.table_id if own else child.table_id
        found.append(refer_to(current, other.table_id, index, element_key))
    others = [(child, key) for child, key in lost if child.table_id != table.table_id]
    indexes = (t for t in drop_along(others) if isinstance(t.element, Index))
    return [*found, *indexes], lost


def _under_key(table: Descriptor, columns: tuple[Column, ...], other_id: int) -> Descriptor:
    """Return the same table with another key. Elements keep their ids, so that a row has one image
    in both; new ones get ids that neither has had."""
    key = tuple(column.element_id for column in columns)
    present = (_still_hidden(c) if c.hidden else c for c in table.columns)
    made = (replace(c, default_expression="") for c in columns if c.hidden)
    shown = tuple(
        replace(c, nullable=False, not_null_enforced=False) if c.element_id in key else c
        for c in (*present, *made)
    )
    return replace(
        table,
        table_id=other_id,
        columns=shown,
        primary_key=key,
        next_element_id=table.next_element_id + 1,
        mirror=table.table_id,
        former=table.table_id,
        key_name="",
        key_included=(),
        modified_us=0,
        since_lsn=0,
    )


def _completed(other: Descriptor, taken: set[str], asked: KeyChange) -> Descriptor:
    """Add the indexes that the table needs where the old key has served until now. They have every
    row from the first on, and no two are equal as long as the old key is one."""
    if asked.unique is not None:
        other = _with_unique(other, asked.unique, taken)
    if asked.cascade:
        other = _without_lost(other)
    for foreign in other.foreign_keys:
        other = _with_index(other, foreign)
    return other


def _without_index(table: Descriptor, name: str) -> Descriptor:
    """Return the table without the index that its primary key takes the place of, "" = none; its
    foreign keys that have found their rows by that one find them by the key."""
    going = {index.element_id for index in table.indexes if name and index.name == name}
    keys = (replace(k, index=0) if k.index in going else k for k in table.foreign_keys)
    left = tuple(index for index in table.indexes if index.element_id not in going)
    return replace(table, indexes=left, foreign_keys=tuple(keys))


def _without_lost(other: Descriptor) -> Descriptor:
    """Return the table without its own foreign keys to which it keeps nothing unique, and what they
    alone needed."""
    lost = [
        key
        for key in other.foreign_keys
        if key.parent == other.former
        and find_index(other, tuple(map(other.by_id.__getitem__, key.parent_columns)), unique=True)
        is None
    ]
    going = {key.element_id for key in lost}
    unneeded = [find_implied_index(other, key, going) for key in lost]
    return replace(
        other,
        foreign_keys=tuple(k for k in other.foreign_keys if k not in lost),
        indexes=tuple(i for i in other.indexes if i not in unneeded),
    )


def _with_unique(table: Descriptor, unique: UniqueDefinition, taken: set[str]) -> Descriptor:
    used = taken | constraint_names(table)
    parts = joined_names(unique.columns)
    name = unique.name or free_object_name(table.name, parts, "key", used)
    if name in used:
        raise DuplicateObject(
            f"{name!r} exists already as a constraint of table {table.name!r}, or as an index or a"
            " table",
            constraint=name,
        )
    taken.add(name)
    columns = [table.column(column) for column in unique.columns]
    index = make_index(table, name, columns, table.next_element_id)
    made = replace(index, state=State.PUBLIC, unique=True, constraint=True)
    made = replace(made, equal_nulls=unique.equal_nulls)
    next_id = table.next_element_id + 1
    return replace(table, indexes=(*table.indexes, made), next_element_id=next_id)


def _still_hidden(column: Column) -> Column:
    """Return the hidden column with a default: rows that are inserted under the other key have one
    in this table, too, while it is written."""
    return replace(column, default_expression="gen_random_uuid()")


def _with_index(table: Descriptor, foreign: ForeignKey) -> Descriptor:
    """Add an index for a foreign key whose rows were found by the old primary key."""
    if foreign.index:
        return table
    columns = tuple(table.by_id[element_id] for element_id in foreign.columns)
    indexes: Iterable[Index] = table.indexes
    found = find_index(table, columns)
    if found is None:
        name = implied_index_name(foreign.name)
        made = replace(make_index(table, name, columns, table.next_element_id), implied=True)
        found, indexes = made.element_id, (*table.indexes, made)
    keys = (
        replace(k, index=found) if k.element_id == foreign.element_id else k
        for k in table.foreign_keys
    )
    next_id = max(table.next_element_id, found + 1)
    return replace(table, indexes=tuple(indexes), foreign_keys=tuple(keys), next_element_id=next_id)
