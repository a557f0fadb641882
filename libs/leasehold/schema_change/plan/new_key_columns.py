"""Columns that a statement adds and makes the primary key, or a part of it: ADD COLUMN … PRIMARY
KEY.

They come first, in the table as it stands: filled, then shown in the step from which on no two rows
may be equal in them (`steps`), which is the one in which the table under the other key begins to
come.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Final

from leasehold.catalog.catalog import Catalog
from leasehold.catalog.descriptor import Descriptor
from leasehold.catalog.elements import CommitContext
from leasehold.catalog.names import relation_names
from leasehold.schema_change.plan.columns import add_column
from leasehold.schema_change.plan.draft import TableDraft
from leasehold.sql.syntax.statements import (
    Action,
    AddColumn,
    AddPrimaryKey,
)

_FILLED: Final = 2
"""The steps until a new column, or an index over it, is filled."""


def find_added_keys(table: Descriptor, actions: Sequence[Action]) -> list[AddPrimaryKey]:
    """Return the primary keys that the actions add. IF NOT EXISTS of a column that is there takes
    the key back that it says, as in PostgreSQL."""
    found = [action for action in actions if isinstance(action, AddPrimaryKey)]
    columns = (action for action in actions if isinstance(action, AddColumn))
    return found + [
        action.key
        for action in columns
        if action.key and not (action.if_not_exists and action.column.name in table.by_name)
    ]


def find_new_columns(actions: Sequence[Action], key: AddPrimaryKey) -> tuple[AddColumn, ...]:
    """Return the columns that the actions add for a key, of which nothing else is said: a UNIQUE, a
    CHECK or a foreign key would be the table's that goes."""
    return tuple(
        action
        for action in actions
        if isinstance(action, AddColumn)
        and action.column.name in key.columns
        and action.column.unique is None
        and action.column.references is None
        and not action.column.checks
    )


def draft_new_columns(
    table: Descriptor, added: Sequence[AddColumn], catalog: Catalog, context: CommitContext
) -> TableDraft:
    """Return the draft of a table with new columns alone. Raises what `add_column` raises."""
    draft = TableDraft(table, relation_names(catalog), catalog, context)
    # ⚠ Rows have to have them: who comes under the other key is found by what its row has.
    draft.in_place = False
    for action in added:
        add_column(draft, replace(action, column=replace(action.column, nullable=False)))
    # ⚠ They are shown in the step in which the key is enforced, and not behind it.
    assert all(len(path.before_commit) <= _FILLED for path in draft.paths)
    return draft


def with_new_columns(table: Descriptor, draft: TableDraft) -> Descriptor:
    """Return the table as its draft leaves it."""
    new = (c for c in draft.columns.values() if table.element(c.element_id) is None)
    return replace(table, columns=(*table.columns, *new), next_element_id=draft.next_id)
