"""The tables that have lost values in a transaction which rows of others may follow when it
commits: the actions of foreign keys are the master's, so no statement knows what they do."""

from __future__ import annotations

from collections.abc import Sequence

from leasehold.adapters.sqlite.snapshot import SqliteSnapshot
from leasehold.adapters.sqlite.write import RowWrite
from leasehold.catalog.descriptor import Descriptor
from leasehold.replica.pending_changes import PendingChanges


class LostValues:
    """Tables of which a transaction has taken rows, or values that foreign keys may refer to. They
    only grow: what ROLLBACK TO gives back is left to COMMIT, too."""

    def __init__(self, pending: PendingChanges) -> None:
        self._pending = pending
        self._lost: set[int] = set()

    def note(self, descriptor: Descriptor, writes: Sequence[RowWrite]) -> None:
        """Note what writes of a table take away."""
        if descriptor.table_id in self._lost:
            return
        uniques = (index.columns for index in descriptor.enforced_uniques)
        named = frozenset(descriptor.primary_key).union(*uniques)
        if any(w.before is not None and (w.after is None or w.given & named) for w in writes):
            self._lost.add(descriptor.table_id)

    def may_be_followed(self, descriptor: Descriptor, snapshot: SqliteSnapshot) -> bool:
        """Return whether rows of the table may go or change at COMMIT with those that they refer
        to, over however many tables."""
        if not self._lost:
            return False
        made = {table.table_id: table for table in self._pending.schema.made.values()}
        seen: set[int] = set()
        ahead = [descriptor]
        while ahead:
            for key in ahead.pop().enforced_foreign_keys:
                if not key.acts or key.parent in seen:
                    continue
                if key.parent in self._lost:
                    return True
                seen.add(key.parent)
                known = snapshot.versions(key.parent)
                ahead += [made[key.parent]] if key.parent in made else known[-1:]
        return False
