"""Checks what a statement writes against foreign keys that are not deferred, as far as what is
newest and the transaction's write set prove a violation, so that a savepoint catches it.

What is not proved here the master finds at COMMIT: rows that others write meanwhile, whatever the
actions of foreign keys do, and keys whose rows can't be found yet by an index.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Final, NamedTuple

from leasehold.adapters.sqlite.snapshot import SqliteSnapshot
from leasehold.adapters.sqlite.write import RowWrite
from leasehold.catalog.descriptor import Descriptor
from leasehold.catalog.elements import ForeignKey, OnChange
from leasehold.catalog.states import READABLE
from leasehold.model.errors import FeatureNotSupported, NotHeldHere
from leasehold.model.keys import Key
from leasehold.model.ports import Row
from leasehold.model.records.events import Image
from leasehold.model.records.requests import ReadRange
from leasehold.replica.deferred_keys import DeferredKeys
from leasehold.replica.pending_changes import PendingChanges
from leasehold.replica.row_values import values_in_row
from leasehold.sql_session.constraint_check import rows_left
from leasehold.sql_session.lost_values import LostValues
from leasehold.transaction.foreign_keys import (
    key_with,
    keys_by,
    mixed_values,
    refers_to_none,
    still_referred_to,
    values_of,
)
from leasehold.transaction.overlay import Name
from leasehold.transaction.read_set import ReadsSoFar

OWN_ROWS_MAX: Final = 1_000
"""Rows written before that are looked through for a value which no key finds; with more of them the
master looks, at COMMIT."""
Groups = Mapping[int, Sequence[RowWrite]]
"""What a statement writes, by table id."""


def can_find(table: Descriptor, index_id: int) -> bool:
    """Return whether rows can be found by that index: 0, the primary key, or one that is public."""
    readable = (index for index in table.indexes if index.state in READABLE)
    return not index_id or any(index.element_id == index_id for index in readable)


class _Place(NamedTuple):
    """Columns of a table in which values are looked for, and the index by which they are found."""

    table: Descriptor
    columns: tuple[int, ...]
    index_id: int


class ReferenceCheck:
    """The check of one transaction's statements. `reads` is told what was looked for in vain, or
    found in the way, where what was read is verified."""

    def __init__(
        self, pending: PendingChanges, lost: LostValues, reads: ReadsSoFar | None = None
    ) -> None:
        self._pending = pending
        self._lost = lost
        self._reads = reads

    def check(
        self,
        targets: Mapping[int, Descriptor],
        groups: Groups,
        snapshot: SqliteSnapshot,
        deferred: DeferredKeys,
    ) -> None:
        """Check a statement before it is written. Its losses have been noted. Raises
        ForeignKeyViolation for the first row that refers to none, or that is referred to and
        goes."""
        concerned = [id_ for id_ in groups if self._is_concerned(targets[id_], snapshot)]
        if not concerned:
            return
        statement = _StatementCheck(
            self._pending, self._lost, self._reads, targets, groups, snapshot, deferred
        )
        for table_id in concerned:
            statement.check_table(targets[table_id], groups[table_id])

    def _is_concerned(self, table: Descriptor, snapshot: SqliteSnapshot) -> bool:
        """Return whether a foreign key may refer to a table, or belong to it: to most none does."""
        if table.temporary:
            return False
        keyed = table.enforced_foreign_keys or snapshot.catalog.referring.get(table.table_id)
        return bool(keyed) or self._pending.schema.script is not None


class _StatementCheck:
    """The check of one statement. `_written`: its rows as it leaves them."""

    def __init__(
        self,
        pending: PendingChanges,
        lost: LostValues,
        reads: ReadsSoFar | None,
        targets: Mapping[int, Descriptor],
        groups: Groups,
        snapshot: SqliteSnapshot,
        deferred: DeferredKeys,
    ) -> None:
        self._pending, self._lost, self._reads = pending, lost, reads
        self._targets, self._snapshot, self._deferred = targets, snapshot, deferred
        self._written: dict[Name, Image | None] = {}
        for table_id, writes in groups.items():
            left = rows_left(targets[table_id], writes)
            self._written.update({(table_id, key): image for key, image in left.items()})
        schema = pending.schema
        self._made = {table.table_id: table for table in schema.made.values()}
        self._dropped = {table.table_id for table in schema.dropped.values()}
        self._values: dict[_Place, set[Key]] = {}
        self._own_values: dict[_Place, set[Key] | None] = {}

    def check_table(self, table: Descriptor, writes: Sequence[RowWrite]) -> None:
        """Check the rows of one table. Raises ForeignKeyViolation."""
        keys = [key for key in table.enforced_foreign_keys if not self._deferred.has(key)]
        referring = list(self._referring(table)) if any(w.before for w in writes) else []
        for write in writes:
            for key in keys if write.after is not None else ():
                self._check_child(table, key, write)
            for child, key in referring if write.before is not None else ():
                self._check_parent(table, child, key, write)

    # ------------------------------------------------------------ rows

    def _check_child(self, table: Descriptor, key: ForeignKey, write: RowWrite) -> None:
        assert write.after is not None
        values = values_of(write.after, key.columns)
        before = write.before
        if before is not None and all(before.get(c) == write.after.get(c) for c in key.columns):
            return  # what was broken before the key is not made worse
        if key.is_mixed(write.after):
            raise mixed_values(table, key, write.after)
        parent = self._find_table(key.parent)
        if values is None or parent is None or not can_find(parent, key.parent_index):
            return
        if self._lost.may_be_followed(parent, self._snapshot):
            return  # an action may make the row that it refers to
        place = _Place(parent, key.parent_columns, key.parent_index)
        if self._has(place, values) is False:
            self._note_read(place, values)
            raise refers_to_none(table, key, values, parent)

    def _check_parent(
        self, parent: Descriptor, child: Descriptor, key: ForeignKey, write: RowWrite
    ) -> None:
        action = key.on_delete if write.after is None else key.on_update
        restricts = action is OnChange.RESTRICT  # which nothing defers, and no other row makes good
        if action.acts or (self._deferred.has(key) and not restricts):
            return
        values = values_of(write.before, key.parent_columns)
        if values is None or values == values_of(write.after, key.parent_columns):
            return
        if not can_find(child, key.index) or self._lost.may_be_followed(child, self._snapshot):
            return  # an action may take the row away that refers to it
        place = _Place(child, key.columns, key.index)
        if not self._has(place, values):
            return
        taken_over = _Place(parent, key.parent_columns, key.parent_index)
        if not restricts and (
            not can_find(parent, key.parent_index) or self._has(taken_over, values) is not False
        ):
            return  # another row has taken its place, or may have
        self._note_read(place, values)
        raise still_referred_to(parent, child, key, values)

    def _note_read(self, place: _Place, values: Key) -> None:
        if self._reads is None:
            return
        index = next((i for i in place.table.indexes if i.element_id == place.index_id), None)
        if index is None:
            self._reads.key(place.table, key_with(place.table, place.columns, values))
        else:
            self._reads.range(place.table, ReadRange(place.table.read_name(index), values))

    # ------------------------------------------------------------ tables

    def _find_table(self, table_id: int) -> Descriptor | None:
        """Return a table as this transaction reads it, None where it is not known."""
        if table_id in self._targets:
            return self._targets[table_id]
        if table_id in self._made:
            return self._made[table_id]
        shown = self._pending.schema.shown.get(table_id)
        if shown is not None:
            return shown.table
        known = self._snapshot.versions(table_id)
        return known[-1] if known and table_id not in self._dropped else None

    def _referring(self, parent: Descriptor) -> Iterator[tuple[Descriptor, ForeignKey]]:
        """Yield the foreign keys that are enforced and refer to a table."""
        there = self._snapshot.catalog.referring.get(parent.table_id, ())
        for table_id in dict.fromkeys((*there, *self._made, *self._pending.schema.shown)):
            table = self._find_table(table_id)
            for key in () if table is None else table.enforced_foreign_keys:
                if key.parent == parent.table_id:
                    assert table is not None
                    yield table, key

    # ------------------------------------------------------------ values

    def _has(self, place: _Place, values: Key) -> bool | None:
        """Return whether a row has these values behind the statement; None: that can't be said."""
        table = place.table
        if not place.index_id:
            return self._has_key(place, values)
        if values in self._values_written(place):
            return True
        own = self._own_values_of(place)
        if own is not None and values in own:
            return True
        if not self._pending.has_only_own_rows(table):
            rows_max = len(self._pending.rows) + len(self._written) + 1
            found = self._stored_keys(place, values, rows_max)
            if found is None:
                return None
            names = ((table.table_id, key) for key in found)
            if any(n not in self._written and n not in self._pending.rows for n in names):
                return True
        return None if own is None else False

    def _has_key(self, place: _Place, values: Key) -> bool | None:
        """Return the same of the primary key, by which own rows are found, too."""
        table = place.table
        name = (table.table_id, key_with(place.table, place.columns, values))
        if name in self._written:
            return self._written[name] is not None
        if name in self._pending.rows:
            return self._pending.rows[name] is not None
        if self._pending.has_only_own_rows(table):
            return False
        found = self._stored_keys(place, values, 1)
        return None if found is None else bool(found)

    def _stored_keys(self, place: _Place, values: Key, rows_max: int) -> Sequence[Key] | None:
        """Return keys of stored rows; None: not all of the table's rows are on this node."""
        table, columns, index_id = place
        try:
            return keys_by(table, columns, index_id, values, rows_max, self._stored, self._holders)
        except NotHeldHere:
            return None

    def _stored(self, table: Descriptor, key: Key) -> Row | None:
        return self._snapshot.get(table, key)

    def _holders(self, table: Descriptor, index_id: int, values: Key, rows_max: int) -> list[Key]:
        found = self._snapshot.get_by(table, index_id, values, rows_max=rows_max)
        return [key for key, _ in found]

    def _values_written(self, place: _Place) -> set[Key]:
        """Return what rows of the statement have in these columns."""
        found = self._values.get(place)
        if found is None:
            images = (i for (t, _), i in self._written.items() if t == place.table.table_id)
            found = {v for i in images if (v := values_of(i, place.columns)) is not None}
            self._values[place] = found
        return found

    def _own_values_of(self, place: _Place) -> set[Key] | None:
        """Return what rows of earlier statements have in these columns; None where they are too
        many, or one has a value that is decided at COMMIT."""
        if place not in self._own_values:
            self._own_values[place] = self._find_own_values(place)
        return self._own_values[place]

    def _find_own_values(self, place: _Place) -> set[Key] | None:
        rows = self._pending.rows
        if len(rows) > OWN_ROWS_MAX:
            return None
        found: set[Key] = set()
        for name, row in rows.items():
            if name[0] != place.table.table_id or row is None or name in self._written:
                continue
            try:
                values = values_in_row(place.table, place.columns, row)
            except FeatureNotSupported:
                return None
            if None not in values:
                found.add(values)
        return found
