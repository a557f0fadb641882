"""SET CONSTRAINTS: foreign keys are looked at when a transaction commits (DEFERRED); IMMEDIATE has
those looked at now that the session's own snapshot and write set can tell of.

What foreign keys' actions do is the master's at COMMIT, so a key that acts is asked of its own rows
alone.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace

from leasehold.adapters.sqlite.snapshot import SqliteSnapshot
from leasehold.catalog.descriptor import Descriptor
from leasehold.catalog.elements import ForeignKey
from leasehold.model.errors import UnknownObject, WrongObject
from leasehold.model.keys import Key
from leasehold.model.ports import Row
from leasehold.replica.deferred_keys import AS_DEFINED, DeferredKeys
from leasehold.replica.pending_changes import PendingChanges
from leasehold.replica.row_values import image_of
from leasehold.sql_session.reference_check import can_find
from leasehold.transaction.foreign_keys import References
from leasehold.transaction.overlay import Name
from leasehold.transaction.uniqueness import FinalRow


def check_deferrable(
    names: Iterable[str],
    tables: Sequence[Descriptor],
    deferred: DeferredKeys = AS_DEFINED,
    *,
    immediate: bool,
) -> None:
    """Check that these constraints are there, and DEFERRABLE if they are to be deferred, beside
    what is `deferred` now: others are immediate anyway. Raises UnknownObject (42704), WrongObject
    (42809)."""
    keys = (key for table in tables for key in table.foreign_keys)
    deferrable = {key.name for key in keys if deferred.may_defer(key)}
    deferrable |= {index.name for table in tables for index in table.indexes if index.deferrable}
    for name in names:
        if name in deferrable:
            continue
        if any(_has_constraint(table, name) for table in tables):
            if immediate:
                continue
            raise WrongObject(f'constraint "{name}" is not deferrable', constraint=name)
        raise UnknownObject(f'constraint "{name}" does not exist', constraint=name)


def _has_constraint(table: Descriptor, name: str) -> bool:
    if table.sequence is not None:
        return False
    key = not table.hidden_key and table.key_constraint == name
    index = table.index(name)
    checked = table.check(name) is not None or table.foreign_key(name) is not None
    return key or checked or (index is not None and index.constraint)


class DeferredCheck:
    """Looks at what a transaction has written so far. `names`: of the foreign keys that count,
    () = all; `tables` as the transaction sees them."""

    def __init__(
        self,
        pending: PendingChanges,
        snapshot: SqliteSnapshot,
        tables: Sequence[Descriptor],
        names: Sequence[str],
    ) -> None:
        self._pending = pending
        self._snapshot = snapshot
        self._names = frozenset(names)
        self._tables = {table.table_id: table for table in tables}
        self._rows: dict[Name, Row | None] = {}

    def run(self, look: Callable[[], None]) -> None:
        """Raise ForeignKeyViolation for the first row that breaks a foreign key. `look` is called
        for each row, and may end it."""
        final: dict[Name, FinalRow] = {}
        shown = {table_id: self._asked_of(table) for table_id, table in self._tables.items()}
        for (table_id, key), own in self._pending.rows.items():
            table = shown.get(table_id)
            if table is None:
                continue
            image = None if own is None else image_of(table, own)
            name = (table_id, key)
            self._rows[name] = None if image is None else Row(image, {}, 0)
            final[name] = FinalRow(table, self._stored(table, key), image)
            look()
        for _ in References(self, self._rows, self._stored, self._holders).check(final):
            look()

    def _asked_of(self, table: Descriptor) -> Descriptor:
        """Return the table with those of its foreign keys that are looked at."""
        kept = tuple(key for key in table.foreign_keys if self._counts(key))
        return table if kept == table.foreign_keys else replace(table, foreign_keys=kept)

    # ------------------------------------------------------------ what References asks

    def newest(self, table_id: int) -> Descriptor:
        return self._tables[table_id]

    def references(self, table_id: int) -> Iterable[tuple[Descriptor, ForeignKey]]:
        return [
            (table, key)
            for table in self._tables.values()
            for key in table.enforced_foreign_keys
            if key.parent == table_id and not key.acts and self._counts(key)
            if can_find(table, key.index)
        ]

    def _counts(self, key: ForeignKey) -> bool:
        """Return whether it was named, and rows that it refers to can be found."""
        parent = self._tables.get(key.parent)
        if parent is None or (self._names and key.name not in self._names):
            return False
        return can_find(parent, key.parent_index)

    def _stored(self, table: Descriptor, key: Key) -> Row | None:
        return None if self._pending.has_only_own_rows(table) else self._snapshot.get(table, key)

    def _holders(self, table: Descriptor, index_id: int, values: Key, rows_max: int) -> list[Key]:
        if self._pending.has_only_own_rows(table):
            return []
        found = self._snapshot.get_by(table, index_id, values, rows_max=rows_max)
        return [key for key, _ in found]
