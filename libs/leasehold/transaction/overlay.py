"""The rows that a request touches, as its operations leave them one after another."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Final, TypeAlias

from leasehold.catalog.catalog import Catalog
from leasehold.catalog.descriptor import Descriptor
from leasehold.model.ids import genid
from leasehold.model.keys import Key
from leasehold.model.ports import Row
from leasehold.model.records.log import RowChange
from leasehold.transaction.mirror_table import Touched
from leasehold.transaction.uniqueness import FinalRow

Name: TypeAlias = tuple[int, Key]
"""(table id, primary key): where a row lies."""
RowReader: TypeAlias = Callable[[Descriptor, Key], Row | None]
_NONE: Final[dict[Key, int]] = {}


class Overlay:
    """The rows of one request as its operations leave them. `changes`, each with the row under it
    in `before`. `final`: rows of tables that have something to be looked at when all of the request
    is known; `refers`: foreign keys are."""

    def __init__(self, catalog: Catalog, rows: RowReader, lsn: int) -> None:
        self._catalog = catalog
        self._read = rows
        self._lsn = lsn
        self._rows: dict[Name, Row | None] = {}
        # New rows that nobody has asked for yet, by table and key: the places of their changes.
        self._new: dict[int, dict[Key, int]] = {}
        self._with_mirror: dict[Name, tuple[Descriptor, Row | None]] = {}
        self.final: dict[Name, FinalRow] = {}
        self.refers = False
        self.changes: list[RowChange] = []
        self.before: list[Row | None] = []

    @property
    def rows(self) -> Mapping[Name, Row | None]:
        """The rows that were touched, as they are now."""
        for table_id, places in self._new.items():
            for key, place in places.items():
                self._rows[table_id, key] = self._made(place)
        self._new.clear()
        return self._rows

    def row(self, descriptor: Descriptor, key: Key) -> Row | None:
        name = (descriptor.table_id, key)
        if name in self._rows:
            return self._rows[name]
        place = self._new.get(descriptor.table_id, _NONE).get(key)
        return self._read(descriptor, key) if place is None else self._made(place)

    def _made(self, place: int) -> Row | None:
        """Return the row that the change at that place has inserted."""
        return row_after(self.changes[place], None, self._lsn, place)

    def touches(self, table_id: int, keys: Iterable[Key]) -> bool:
        """Whether the request has touched one of these rows before."""
        new = self._new.get(table_id, _NONE)
        if new and not new.keys().isdisjoint(keys):
            return True
        rows = self._rows
        return bool(rows) and any((table_id, key) in rows for key in keys)

    def put_new(self, descriptor: Descriptor, keys: Sequence[Key], made: list[RowChange]) -> None:
        """Add inserts of one table, which has no mirror, in their order; `keys` are theirs, each
        once, and the request has touched none of these rows before."""
        table_id, first = descriptor.table_id, len(self.changes)
        places = zip(keys, range(first, first + len(made)), strict=True)
        self._new.setdefault(table_id, {}).update(places)
        if is_checked_at_end(descriptor, self._catalog):
            refers = descriptor.enforced_foreign_keys or self._catalog.references(table_id)
            self.refers = self.refers or bool(refers)
            for key, change in zip(keys, made, strict=True):
                self.final[table_id, key] = FinalRow(descriptor, None, change.image)
        self.changes += made
        self.before += [None] * len(made)

    def put(self, descriptor: Descriptor, row: Row | None, change: RowChange) -> None:
        """Add a change. `row`: as it is before the change."""
        name = (change.table_id, change.key)
        new = self._new.get(change.table_id)
        if new:
            new.pop(change.key, None)
        self._rows[name] = row_after(change, row, self._lsn, len(self.changes))
        refers = descriptor.enforced_foreign_keys or self._catalog.references(change.table_id)
        if refers or descriptor.enforced_uniques:
            self.refers = self.refers or bool(refers)
            before_all = self.final[name].before if name in self.final else row
            self.final[name] = FinalRow(descriptor, before_all, change.image)
        if descriptor.mirror:
            first = self._with_mirror[name][1] if name in self._with_mirror else row
            self._with_mirror[name] = (descriptor, first)
        self.changes.append(change)
        self.before.append(row)

    def touched(self) -> list[Touched]:
        """Rows of tables that have a mirror."""
        return [Touched(*known, self._rows[name]) for name, known in self._with_mirror.items()]


def is_checked_at_end(descriptor: Descriptor, catalog: Catalog) -> bool:
    return bool(
        descriptor.enforced_uniques
        or descriptor.enforced_foreign_keys
        or catalog.references(descriptor.table_id)
    )


def row_after(change: RowChange, row: Row | None, lsn: int, position: int) -> Row | None:
    """The row as later operations see it; `row`: as it is before the change."""
    if change.image is None:
        return None
    genids = dict(row.genids) if row is not None else {}
    genids.update(change.carried)
    for lock in change.locks:
        genids[lock] = genid(lsn, position)
    return Row(change.image, genids, lsn)
