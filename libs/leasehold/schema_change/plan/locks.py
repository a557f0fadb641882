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
from leasehold.schema_change.steps.element_paths import ElementPath
from leasehold.sql.syntax.statements import AddLock, DropLock


class LockActions:
    """The actions on locks of one draft; one column moves once in a statement."""

    def __init__(self, draft: TableDraft) -> None:
        self._draft = draft
        self._locks: list[Lock] = []
        self._moved: set[int] = set()
        self._moves: list[tuple[int, int]] = []
        self._moves_path: ElementPath | None = None

    def add(self, action: AddLock) -> None:
        table = self._draft.table
        if action.name == DEFAULT_LOCK_NAME or table.lock(action.name) is not None:
            raise DuplicateObject(
                f"lock {action.name!r} exists already", lock=action.name, position=action.position
            )
        if len(table.row_locks) + len(self._locks) >= LOCKS_MAX:
            raise OutOfRange(f"table {table.name!r} has {LOCKS_MAX} locks, the most allowed")
        lock = Lock(self._draft.new_id(), action.name)
        self._locks.append(lock)
        columns = [self._draft.column(name, action.position) for name in action.columns]
        for column in columns:
            if column.element_id in table.primary_key:
                raise InvalidDefinition(
                    f"column {column.name!r} belongs to the primary key, which has no lock: it is"
                    " never updated",
                    column=column.name,
                    position=action.position,
                )
        self._draft.take(element_paths.add_lock(lock), f"lock {lock.name}")
        self._move(columns, lock.element_id)

    def drop(self, action: DropLock) -> None:
        lock = self._draft.table.lock(action.name)
        if lock is None:
            if not action.if_exists:
                raise UnknownObject(
                    f"lock {action.name!r} of table {self._draft.table.name!r} does not exist",
                    lock=action.name,
                    position=action.position,
                )
            self._draft.notices.append(f"lock {action.name!r} does not exist, nothing was done")
            return
        self._draft.take(element_paths.retire_lock(lock), f"lock {lock.name}")
        # Those that a job is dropping are covered too: every column has a lock until it is gone.
        covered = [c for c in self._draft.table.columns if lock.element_id in c.locks]
        self._move(covered, DEFAULT_LOCK)

    def _move(self, columns: Iterable[Column], target: int) -> None:
        """Move columns to another lock; one column moves once in a statement."""
        columns = tuple(columns)
        moves = [(target, column.locks[0]) for column in columns]
        for column in columns:
            if column.element_id in self._moved:
                raise FeatureNotSupported(
                    f"column {column.name!r} moves between locks twice in one statement",
                    column=column.name,
                )
            self._moved.add(column.element_id)
            self._draft.paths.append(element_paths.move_column(column, target))
        self._moves += [move for move in dict.fromkeys(moves) if move not in self._moves]
        self._draft.paths = [t for t in self._draft.paths if t is not self._moves_path]
        self._moves_path = table_paths.record_moves(self._draft.table, self._moves)
        self._draft.paths.append(self._moves_path)
