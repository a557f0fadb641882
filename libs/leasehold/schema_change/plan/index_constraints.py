"""ADD CONSTRAINT … {UNIQUE | PRIMARY KEY} USING INDEX: an index becomes that of a constraint.

It keeps its entries. A UNIQUE constraint is the index with the constraint's name; a primary key
needs no index of its own, so the one that is named goes.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace

from leasehold.catalog.descriptor import Descriptor
from leasehold.catalog.elements import Index
from leasehold.catalog.states import State
from leasehold.model.errors import IndexNotFit, UnknownObject, WrongObject
from leasehold.schema_change.plan.constraints import refuse_name
from leasehold.schema_change.plan.draft import TableDraft
from leasehold.schema_change.steps import element_paths
from leasehold.sql.syntax.statements import (
    AddPrimaryKey,
    AddUniqueByIndex,
)

_WHY = "Cannot create a primary key or unique constraint using such an index."


def add_unique_by_index(draft: TableDraft, action: AddUniqueByIndex) -> None:
    """Make an index of the table that of a UNIQUE constraint."""
    index = find_fitting(draft.table, action.index, action.position, draft.taken)
    if index.element_id in draft.dropped:
        raise UnknownObject(
            f"index {index.name!r} is dropped by the same statement: leave one of both out",
            position=action.position,
        )
    name = action.name or index.name
    if name != index.name:
        refuse_name(draft, name, draft.taken)
        draft.notices.append(describe_rename(index.name, name))
        draft.taken.add(name)
    draft.names.add(name)
    made = element_paths.constrain_by(index, name, action.deferrable)
    draft.take(made, f"constraint {name}")


def with_columns_of_index(
    table: Descriptor, key: AddPrimaryKey, taken: Collection[str]
) -> AddPrimaryKey:
    """Return the primary key that a statement asks for, with the columns of the index that it names
    and that one's name, unless it says another. `taken`: names of relations."""
    if not key.index:
        return key
    index = find_fitting(table, key.index, key.position, taken)
    columns, included = (
        tuple(table.by_id[element_id].name for element_id in part)
        for part in (index.columns, index.included)
    )
    return replace(key, columns=columns, name=key.name or index.name, included=included)


def find_fitting(table: Descriptor, name: str, position: int, taken: Collection[str]) -> Index:
    """Return the index of a table that a constraint may be made of. Raises UnknownObject (42704),
    IndexNotFit (55000), WrongObject (42809)."""
    index = table.index(name)
    where = {"index": name, "table": table.name, "position": position}
    if index is None or index.state is not State.PUBLIC:
        if name in taken and name not in table.index_names:
            raise IndexNotFit(f"index {name!r} does not belong to table {table.name!r}", **where)
        if name == table.key_constraint and not table.hidden_key:
            raise IndexNotFit(f"index {name!r} is already associated with a constraint", **where)
        raise UnknownObject(f"index {name!r} does not exist", **where)
    if index.constraint:
        raise IndexNotFit(f"index {name!r} is already associated with a constraint", **where)
    said = ""
    if not index.unique:
        said = f"{name!r} is not a unique index"
    elif index.expressions:
        said = f"index {name!r} contains expressions"
    elif index.predicate:
        said = f"{name!r} is a partial index"
    elif any(index.orders):
        number = next(n for n, order in enumerate(index.orders, 1) if order)
        said = f"index {name!r} column number {number} does not have default sorting behavior"
    if said:
        raise WrongObject(said, hint=_WHY, **where)
    return index


def describe_rename(index: str, name: str) -> str:
    """Return the notice that an index gets the name of its constraint."""
    return f'ALTER TABLE / ADD CONSTRAINT USING INDEX will rename index "{index}" to "{name}"'
