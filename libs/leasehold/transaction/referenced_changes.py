"""Records which values that others refer to a request takes away, and when.

A foreign key's action concerns the rows that referred to a value when it was taken away, in the
order of the request's operations: a row that is made to refer to it later is meant for another one
that has come in the place. So each row is known by what it is and not by its key, which may change,
and of each reference it is known which operation made it.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple, TypeAlias

from leasehold.catalog.catalog import Catalog
from leasehold.catalog.descriptor import Descriptor
from leasehold.model.keys import Key
from leasehold.model.records.events import Image

Identity: TypeAlias = tuple[int, Key, int]
"""Of a row: its table, its first key, and the operation that has inserted it, 0 = stored before."""


class Loss(NamedTuple):
    """A row of a table that others refer to has changed; `after` None: it is gone. `number` is that
    of the operation, from 1."""

    number: int
    row: Identity
    before: Image
    after: Image | None


class ReferencedChanges:
    """The losses of one request; knows only of rows that an action may come from or go to."""

    def __init__(self, catalog: Catalog) -> None:
        self._catalog = catalog
        self._concerned: dict[tuple[int, int], bool] = {}
        self._identities: dict[tuple[int, Key], Identity] = {}
        self._set_at: dict[tuple[Identity, int], int] = {}
        self.found: list[Loss] = []

    def concerns(self, descriptor: Descriptor) -> bool:
        """Whether a foreign key that acts refers to the table, or belongs to it."""
        name = (descriptor.table_id, descriptor.version)
        found = self._concerned.get(name)
        if found is None:
            newest = self._catalog.newest(descriptor.table_id)
            keys = (*descriptor.enforced_foreign_keys, *newest.enforced_foreign_keys)
            found = any(key.acts for key in keys) or self.is_referred_to(descriptor.table_id)
            self._concerned[name] = found
        return found

    def is_referred_to(self, table_id: int) -> bool:
        return any(key.acts for _, key in self._catalog.references(table_id))

    def identity(self, table_id: int, key: Key) -> Identity:
        """Return who the row is that lies there now."""
        return self._identities.get((table_id, key), (table_id, key, 0))

    def inserted(self, table_id: int, key: Key, number: int) -> None:
        self._identities[table_id, key] = (table_id, key, number)

    def changed(self, row: Identity, before: Image, after: Image | None, number: int) -> None:
        if after is not None:
            for column in before.keys() | after.keys():
                if before.get(column) != after.get(column):
                    self._set_at[row, column] = number
        if self.is_referred_to(row[0]):
            self.found.append(Loss(number, row, before, after))

    def left(self, table_id: int, key: Key) -> Identity:
        """Take that a row lies there no more; return who it is."""
        return self._identities.pop((table_id, key), (table_id, key, 0))

    def landed(self, table_id: int, key: Key, row: Identity) -> None:
        self._identities[table_id, key] = row

    def set_at(self, row: Identity, columns: Iterable[int]) -> int:
        """The last operation that has set one of these columns, 0 = none of this request."""
        return max(row[2], *(self._set_at.get((row, column), 0) for column in columns))
