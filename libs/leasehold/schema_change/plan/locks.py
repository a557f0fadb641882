"""Locks: columns move to them and back (Claim 8)."""

from __future__ import annotations

from collections.abc import Iterable

from leasehold.catalog.descriptor import LOCKS_MAX
from leasehold.catalog.elements import DEFAULT_LOCK, DEFAULT_LOCK_NAME, Column, Lock
from leasehold.model.errors import (
    DuplicateObject,
    FeatureNotSupported,
    InvalidDefinition,
    OutOfRange,
    UnknownObject,
)
from leasehold.schema_change.plan.draft import TableDraft
from leasehold.schema_change.steps import element_paths, table_paths
from leasehold.sql.syntax.statements import (
    AddLock,
    DropLock,
)


def add_lock(draft: TableDraft, action: AddLock) -> None:
    table = draft.table
    if action.name == DEFAULT_LOCK_NAME or table.lock(action.name) is not None:
        raise DuplicateObject(
            f"lock {action.name!r} exists already", lock=action.name, position=action.position
        )
    if len(table.row_locks) + len(draft.new_locks) >= LOCKS_MAX:
        raise OutOfRange(f"table {table.name!r} has {LOCKS_MAX} locks, the most allowed")
    lock = Lock(draft.new_id(), action.name)
    draft.new_locks.append(lock)
    columns = [draft.column(name, action.position) for name in action.columns]
    for column in columns:
        if column.element_id in table.primary_key:
            raise InvalidDefinition(
                f"column {column.name!r} belongs to the primary key, which has no lock: it is"
                " never updated",
                column=column.name,
                position=action.position,
            )
    draft.take(element_paths.add_lock(lock), f"lock {lock.name}")
    _move(draft, columns, lock.element_id)


def drop_lock(draft: TableDraft, action: DropLock) -> None:
    lock = draft.table.lock(action.name)
    if lock is None:
        if not action.if_exists:
            raise UnknownObject(
                f"lock {action.name!r} of table {draft.table.name!r} does not exist",
                lock=action.name,
                position=action.position,
            )
        draft.notices.append(f"lock {action.name!r} does not exist, nothing was done")
        return
    draft.take(element_paths.retire_lock(lock), f"lock {lock.name}")
    # Those that a job is dropping are covered too: every column has a lock until it is gone.
    covered = [c for c in draft.table.columns if lock.element_id in c.locks]
    _move(draft, covered, DEFAULT_LOCK)


def _move(draft: TableDraft, columns: Iterable[Column], target: int) -> None:
    """Move columns to another lock; one column moves once in a statement."""
    columns = tuple(columns)
    moves = [(target, column.locks[0]) for column in columns]
    for column in columns:
        if column.element_id in draft.moved:
            raise FeatureNotSupported(
                f"column {column.name!r} moves between locks twice in one statement: send two"
                " statements",
                column=column.name,
            )
        draft.moved.add(column.element_id)
        draft.paths.append(element_paths.move_column(column, target))
    draft.moves += [move for move in dict.fromkeys(moves) if move not in draft.moves]
    draft.paths = [t for t in draft.paths if t is not draft.moves_path]
    draft.moves_path = table_paths.record_moves(draft.table, draft.moves)
    draft.paths.append(draft.moves_path)
