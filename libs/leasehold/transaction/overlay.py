"""The rows that a request touches, as its operations leave them one after another."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TypeAlias

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


class Overlay:
    """The rows of one request as its operations leave them. `changes`, each with the row under it
    in `before`. `final`: rows of tables that have something to be looked at when all of the request
    is known; `refers`: foreign keys are."""

    def __init__(self, catalog: Catalog, rows: RowReader, lsn: int) -> None:
        self._catalog = catalog
        self._read = rows
        self._lsn = lsn
        self._rows: dict[Name, Row | None] = {}
        self._with_mirror: dict[Name, tuple[Descriptor, Row | None]] = {}
        self.final: dict[Name, FinalRow] = {}
        self.refers = False
        self.changes: list[RowChange] = []
        self.before: list[Row | None] = []

    @property
    def rows(self) -> Mapping[Name, Row | None]:
        """The rows that were touched, as they are now."""
        return self._rows

    def row(self, descriptor: Descriptor, key: Key) -> Row | None:
        name = (descriptor.table_id, key)
        return self._rows[name] if name in self._rows else self._read(descriptor, key)

    def put(self, descriptor: Descriptor, row: Row | None, change: RowChange) -> None:
        """Add a change. `row`: as it is before the change."""
        name = (change.table_id, change.key)
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
