"""Unique constraints, looked at when the whole request is known (T3): two equal keys inside a
request are fine if they differ at its end.

An index enforces uniqueness only once its entries are complete, so they are all that is asked.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Mapping, Sequence
from typing import NamedTuple

from leasehold.catalog.descriptor import Descriptor
from leasehold.catalog.elements import Index
from leasehold.model.errors import VerifyError
from leasehold.model.keys import Key
from leasehold.model.ports import Row
from leasehold.model.records.events import Image
from leasehold.rows.index_entries import entries_kept, key_of, key_shown
from leasehold.transaction.duplicate_key import unique_key_exists

HolderReader = Callable[[Descriptor, int, Key, int], Sequence[Key]]
"""(descriptor, index id, key, at most so many) → primary keys of rows whose entry has that key."""


class FinalRow(NamedTuple):
    """A row that a request touches: `before` it, and its image after all of it (None: gone)."""

    descriptor: Descriptor
    before: Row | None
    image: Image | None


def check_unique(
    rows: dict[tuple[int, Key], FinalRow], holders: HolderReader
) -> Generator[None, None, None]:
    """Raise DuplicateKey for the first new key of an entry that another row has as well; yield
    behind each row.

    A row whose key stays as it was is not looked at: it may be a duplicate from before the
    constraint, which its other columns don't make worse. NULLs differ from each other unless it
    says otherwise, and a row outside an index's predicate is no duplicate of any.
    """
    claimed: dict[tuple[int, int, Key], Key] = {}
    for (table_id, key), row in rows.items():
        if row.image is None:
            continue
        for index in row.descriptor.enforced_uniques:
            values = _key(index, row.descriptor, row.image)
            if values is None or not index.can_collide(values):
                continue
            if row.before is not None:
                before = _key(index, row.descriptor, row.before.values)
                if before == values:
                    continue
            other = claimed.setdefault((table_id, index.element_id, values), key)
            if other == key:
                found = holders(row.descriptor, index.element_id, values, len(rows) + 1)
                table = row.descriptor
                other = next((o for o in found if _still(rows, o, index, table, values)), key)
            if other != key:
                raise unique_key_exists(row.descriptor, index, values)
        yield


class Sought(NamedTuple):
    """A row that INSERT … ON CONFLICT has made, since by these unique indexes none was in its
    way."""

    descriptor: Descriptor
    image: Image
    indexes: tuple[str, ...]


def check_sought(
    sought: Sequence[Sought],
    rows: Mapping[tuple[int, Key], FinalRow],
    holders: HolderReader,
) -> None:
    """Raise VerifyError for a row that is in the way by now.

    ⚠ Before a duplicate is told, of whatever index: ON CONFLICT asks its arbiters first, and what
    one of them would find now is no error of the statement's. `rows`: those that the request has
    touched so far; its own new ones are in no one's way."""
    for descriptor, image, names in sought:
        for index in descriptor.enforced_uniques:
            if index.name not in names:
                continue
            values = _key(index, descriptor, image)
            if values is None or not index.can_collide(values):
                continue
            for other in holders(descriptor, index.element_id, values, len(rows) + 1):
                if _still(rows, other, index, descriptor, values):
                    words = ", ".join(descriptor.key_words(index))
                    shown = key_shown(descriptor, index, values)
                    raise in_the_way(descriptor, f"({words}) = ({shown})", values)


def in_the_way(descriptor: Descriptor, words: str, key: Key) -> VerifyError:
    return VerifyError(
        f"verify error in table {descriptor.name!r}: ON CONFLICT has found no row with {words:.500}"
        ", and there is one now",
        table=descriptor.name,
        key=list(key),
    )


def _key(index: Index, descriptor: Descriptor, image: Image) -> Key | None:
    """Return the key of the row's entry, None for a row that the index has no entry of."""
    entry_of = next(made for each, made in entries_kept(descriptor) if each is index)
    return key_of(index, entry_of(image))


def _still(
    rows: Mapping[tuple[int, Key], FinalRow],
    key: Key,
    index: Index,
    table: Descriptor,
    values: Key,
) -> bool:
    """Will the row at `key`, which has the entry now, have it after the request? By the index of
    `table`: ⚠ what a foreign key has done to a row is done under another version, maybe."""
    row = rows.get((table.table_id, key))
    return row is None or (row.image is not None and _key(index, table, row.image) == values)
