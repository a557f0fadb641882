"""Finds the updates of a transaction that the master may compute on the rows as they are at its
commit.

An update whose values are computed of the very row that it changes needs no row of the past: as an
expression it conflicts with nobody, and twenty sessions that count one row up all commit at once.
It is what a replay of that statement on the newest rows would come to (T2), if nothing else in the
transaction rests on what the row was. So a row is computed at commit as long as no other statement
that writes, and none whose rows are compared (SELECTV, FOR UPDATE), reads it, before or after, and
nothing is told behind it that COMMIT does not verify: of the row itself, which is what is committed
then, or nothing; or of any others, which an update keeps others from as a lock does.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TypeAlias

from leasehold.model.keys import Key
from leasehold.model.records.requests import ANY_GENID, Expression, Operation
from leasehold.transaction.isolation import Isolation

_Name: TypeAlias = tuple[int, Key]
_Update: TypeAlias = tuple[Operation, Mapping[str, Expression]]


class AtCommit:
    """The updates of one transaction, statement by statement. What was taken back by ROLLBACK TO
    counts as read all the same."""

    def __init__(self, isolation: Isolation) -> None:
        self._own_writes = (
            isolation.own_writes
        )  # where they are not seen, two of a row don't add up
        # At a level of one moment the first of two writers wins (P4), or all reads are verified.
        self._may = isolation.replays and not isolation.one_snapshot
        self._updates: dict[_Name, list[_Update]] = {}
        self._read: dict[int, set[Key] | None] = {}  # by table; None: any of its rows

    def read(self, table_id: int, key: Key | None) -> None:
        """A statement whose outcome counts has read that row, or (None) perhaps any of them."""
        keys = self._read.setdefault(table_id, set())
        if keys is None:
            return
        if key is None:
            self._read[table_id] = None
            self._updates = {k: v for k, v in self._updates.items() if k[0] != table_id}
        else:
            keys.add(key)
            self._updates.pop((table_id, key), None)

    def __bool__(self) -> bool:
        """Return whether there is an update that may be computed at commit."""
        return bool(self._updates)

    def shown(self) -> None:
        """Rows were shown, or a statement rests on some, that COMMIT does not verify: whoever
        changes what was updated by now may have changed them as well. What was shown before that
        was of its own moment. Where own writes are not seen an update keeps nobody from anything.
        """
        if self._own_writes:
            self._updates.clear()

    def nothing(self) -> None:
        """A statement has failed, and its client was told so: who knows of what."""
        self._may = False

    def updated(
        self, table_id: int, key: Key, operation: Operation, values: Mapping[str, Expression]
    ) -> None:
        """Take an update, of which `operation` says the same by the row that was seen. A second
        update of a row goes on from the first one, where that is seen and computed as well."""
        name = (table_id, key)
        keys = self._read.get(table_id, ())
        first = operation.expect is not None
        if keys is None or key in keys or not (first or self._goes_on(name)):
            self._updates.pop(name, None)
            return
        if first:
            self._updates[name] = []
        self._updates[name].append((operation, values))

    def _goes_on(self, name: _Name) -> bool:
        return self._own_writes and name in self._updates

    def operations(self, made: Sequence[Operation]) -> tuple[Operation, ...]:
        """Return the operations of the write set as they may be asked for."""
        if not self._may:
            return tuple(made)
        instead = {
            id(o): o._replace(values=dict(v), expect=ANY_GENID)
            for o, v in _all(self._updates.values())
        }
        return tuple(instead.get(id(operation), operation) for operation in made)


def _all(updates: Iterable[list[_Update]]) -> Iterable[_Update]:
    return (update for of_row in updates for update in of_row)
