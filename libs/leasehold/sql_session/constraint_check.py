"""Checks what a statement writes against CHECK and UNIQUE constraints, as far as its snapshot and
the transaction's write set prove a violation, so that it is told where a savepoint catches it.

What is not found here the master finds at COMMIT: another one's row that comes meanwhile, and
whatever foreign keys' actions do.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final, NamedTuple, TypeAlias

from leasehold.adapters.sqlite.snapshot import SqliteSnapshot
from leasehold.adapters.sqlite.write import RowWrite
from leasehold.catalog.descriptor import Descriptor
from leasehold.catalog.elements import Index
from leasehold.catalog.states import READABLE
from leasehold.model.budget import Budget, size_of
from leasehold.model.errors import ROW_NUMBER, DuplicateKey, FeatureNotSupported, Refused
from leasehold.model.keys import Key
from leasehold.model.records.events import Image
from leasehold.model.records.requests import ReadRange
from leasehold.replica.deferred_keys import AS_DEFINED, DeferredKeys
from leasehold.replica.pending_changes import PendingChanges
from leasehold.replica.row_values import image_of
from leasehold.rows.index_entries import EntryOf, entries_kept, key_of
from leasehold.sql_session.lost_values import LostValues
from leasehold.transaction.binding import binding
from leasehold.transaction.duplicate_key import primary_key_exists, unique_key_exists
from leasehold.transaction.read_set import ReadsSoFar

CLAIM_BYTES: Final = 200
"""Of a key that is remembered, beside its values: about what holds it."""
CLAIMANTS_MAX: Final = 16
"""Rows that have had one key, which ROLLBACK TO may give back to any: the last ones."""
STORED_ROWS_MAX: Final = 2
"""A unique index has one row of a key; two where it was broken before it was enforced."""


Claims: TypeAlias = dict[tuple[int, int, Key], list[Key]]
"""Rows that have had a key of a unique index, by table, index and key."""


class Claim(NamedTuple):
    """A row that has a key of a unique index since a statement."""

    index_id: int
    values: Key
    row: Key


class _Statement(NamedTuple):
    """What a statement makes of rows, by primary key (None: gone), and where it has read them."""

    descriptor: Descriptor
    rows: Mapping[Key, Image | None]
    snapshot: SqliteSnapshot


class ConstraintCheck:
    """The check of one transaction's statements. It keeps the keys of unique indexes that were
    written; one that was taken back since is found out when it is met."""

    def __init__(
        self,
        pending: PendingChanges,
        budget: Budget,
        reads: ReadsSoFar | None = None,
        temporary: Claims | None = None,
        *,
        lost: LostValues,
    ) -> None:
        """Begin. `budget` holds what is remembered; `reads` is told of each row that was found in
        the way, where what was read is verified; `temporary` has the keys of temporary tables, over
        the session's transactions; `lost` is told what the statements take away."""
        self._pending = pending
        self._reads = reads
        self._budget = budget
        self._claims: Claims = {}
        self._temporary: Claims = {} if temporary is None else temporary
        self._lost = lost

    def check(
        self,
        descriptor: Descriptor,
        writes: Sequence[RowWrite],
        snapshot: SqliteSnapshot,
        deferred: DeferredKeys = AS_DEFINED,
    ) -> Sequence[Claim]:
        """Return what `remember` takes, once it is written; of constraints that are left to COMMIT
        nothing. Raises CheckViolation, DuplicateKey, and what a CHECK or the key of an index raises
        on a row."""
        bound = binding(descriptor)
        for number, write in enumerate(writes):
            if write.after is None:
                continue
            try:
                bound.check_shown(write.before, write.after)
            except Refused as error:
                error.detail = {**error.detail, ROW_NUMBER: number}
                raise
        uniques = [
            index
            for index in descriptor.enforced_uniques
            if index.state in READABLE and (descriptor.temporary or not deferred.has_unique(index))
        ]
        self._lost.note(descriptor, writes)
        if not uniques or self._lost.may_be_followed(descriptor, snapshot):
            return ()
        statement = _Statement(descriptor, rows_left(descriptor, writes), snapshot)
        claims: list[Claim] = []
        for index, entry_of in entries_kept(descriptor):
            if index in uniques:
                claims += self._check_unique(statement, index, entry_of, writes)
        return claims

    def check_deferred(
        self, names: Sequence[str], tables: Sequence[Descriptor], snapshot: SqliteSnapshot
    ) -> None:
        """Look at the deferrable UNIQUE constraints `names` (() = all) over what was written so
        far. Raises DuplicateKey."""
        written = {table_id for table_id, _ in self._pending.rows}
        for table in tables:
            indexes = [
                (index, entry_of)
                for index, entry_of in entries_kept(table)
                if index.deferrable and (not names or index.name in names)
            ]
            if not indexes or table.temporary or table.table_id not in written:
                continue
            try:
                images = self._pending.images((table.table_id,))[table.table_id][1]
            except FeatureNotSupported:  # a value that the master decides: COMMIT tells
                continue
            writes = [RowWrite(key, {}, image, None, frozenset()) for key, image in images.items()]
            statement = _Statement(table, rows_left(table, writes), snapshot)
            for index, entry_of in indexes:
                self.remember(table, self._check_unique(statement, index, entry_of, writes))

    def remember(self, descriptor: Descriptor, claims: Sequence[Claim]) -> None:
        """Remember the keys that a statement has written. Raises OutOfMemory."""
        known = self._claims_of(descriptor)
        for index_id, values, row in claims:
            self._budget.hold(CLAIM_BYTES + size_of(values))
            rows = known.setdefault((descriptor.table_id, index_id, values), [])
            if row not in rows:
                rows.append(row)
                del rows[:-CLAIMANTS_MAX]

    def _claims_of(self, descriptor: Descriptor) -> Claims:
        return self._temporary if descriptor.temporary else self._claims

    # ------------------------------------------------------------ unique keys

    def _check_unique(
        self, statement: _Statement, index: Index, entry_of: EntryOf, writes: Sequence[RowWrite]
    ) -> list[Claim]:
        claimed: dict[Key, Key] = {}
        for number, write in enumerate(writes):
            if write.after is None:
                continue
            values = key_of(index, entry_of(write.after))
            if values is None or not index.can_collide(values):
                continue
            if write.before is not None and key_of(index, entry_of(write.before)) == values:
                continue  # a duplicate from before the constraint is not made worse
            row = _primary(statement.descriptor, write.after)
            other = claimed.setdefault(values, row)
            if other != row or self._is_taken(statement, index, entry_of, values, row):
                if self._reads is not None:
                    name = statement.descriptor.read_name(index)
                    self._reads.range(statement.descriptor, ReadRange(name, values))
                error = self._duplicate(statement, index, values, write)
                error.detail = {**error.detail, ROW_NUMBER: number}
                raise error
        return [Claim(index.element_id, values, row) for values, row in claimed.items()]

    def _is_taken(
        self, statement: _Statement, index: Index, entry_of: EntryOf, values: Key, row: Key
    ) -> bool:
        """Return whether another row than `row` has that key."""
        descriptor, rows, snapshot = statement
        table = descriptor.table_id

        def has_it(other: Key) -> bool | None:
            """Return None where this transaction has not written the row."""
            if other in rows:
                image = rows[other]
            elif (table, other) in self._pending.rows:
                own = self._pending.rows[table, other]
                try:
                    image = None if own is None else image_of(descriptor, own)
                except FeatureNotSupported:  # a value that the master decides
                    return False
            else:
                return None
            return image is not None and key_of(index, entry_of(image)) == values

        claims = self._claims_of(descriptor).get((table, index.element_id, values), ())
        if any(claim != row and has_it(claim) for claim in claims):
            return True
        if self._pending.has_only_own_rows(descriptor):
            return False
        found = snapshot.get_by(descriptor, index.element_id, values, rows_max=STORED_ROWS_MAX)
        return any(other != row and has_it(other) is not False for other, _ in found)

    def _duplicate(
        self, statement: _Statement, index: Index, values: Key, write: RowWrite
    ) -> DuplicateKey:
        """Return the error; as in PostgreSQL the primary key is the first to be told."""
        descriptor = statement.descriptor
        if write.before is None and not descriptor.hidden_key:
            name = (descriptor.table_id, write.key)
            own = self._pending.rows
            fresh = self._pending.has_only_own_rows(descriptor)
            stored = not fresh and statement.snapshot.get(descriptor, write.key) is not None
            if own[name] is not None if name in own else stored:
                return primary_key_exists(descriptor, write.key)
        return unique_key_exists(descriptor, index, values)


def _primary(descriptor: Descriptor, image: Image) -> Key:
    return tuple(image.get(element) for element in descriptor.primary_key)


def rows_left(descriptor: Descriptor, writes: Sequence[RowWrite]) -> dict[Key, Image | None]:
    """Return what becomes of rows; one that moves is found under its new key."""
    rows: dict[Key, Image | None] = {write.key: None for write in writes}
    for write in writes:
        if write.after is not None:
            rows[_primary(descriptor, write.after)] = write.after
    return rows
