"""Keeps two tables with the same rows, while a table changes its primary key: who writes a row of
one writes it in the other, too, in the same commit.

Both move together, so the same version number means the same step in both. What an operation does
to the mirror follows from the mirror's state in that version, as with an element: nothing where it
is absent; delete-only, the row is taken away, whatever was written of it; from write-only on it is
written. Each row of the mirror is thereby equal to its row at any time, genids included: who has
seen a row in one table may change it in the other. Read at the end of a request: two rows may have
exchanged their keys.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterable
from typing import NamedTuple, TypeAlias

from leasehold.catalog.catalog import Catalog
from leasehold.catalog.descriptor import Descriptor
from leasehold.catalog.states import WRITTEN, State
from leasehold.model.errors import StaleVersion
from leasehold.model.keys import Key
from leasehold.model.ports import Row
from leasehold.model.records.events import Image
from leasehold.model.records.log import ChangeKind, RowChange
from leasehold.values.types import words_of

RowReader: TypeAlias = Callable[[Descriptor, Key], Row | None]


class Touched(NamedTuple):
    """A row of a table that has a mirror, before and after all of a request."""

    descriptor: Descriptor
    before: Row | None
    after: Row | None


class Followed(NamedTuple):
    """A change of a mirror's row, and the row under it."""

    descriptor: Descriptor
    change: RowChange
    before: Row | None


def mirror_of(descriptor: Descriptor, catalog: Catalog) -> Descriptor | None:
    """The mirror at the very version, unless it is absent there."""
    if not descriptor.mirror:
        return None
    mirror = catalog.version(descriptor.mirror, descriptor.version)
    return None if mirror.state is State.ABSENT else mirror


def key_in(mirror: Descriptor, image: Image) -> Key | None:
    """A row's key in the other table; None: it has none, for a part of it is NULL."""
    key = tuple(image.get(element_id) for element_id in mirror.primary_key)
    return None if None in key else key


def follow_writes(
    touched: Iterable[Touched], catalog: Catalog, rows: RowReader
) -> Generator[None, None, list[Followed]]:
    """Return what becomes of the mirrors' rows; yield behind each.

    Raises StaleVersion (40001) for a row whose key in the mirror is another row's: those who read
    the old key are about to finish, and then it may be given twice."""
    found: list[Followed] = []
    by_mirror: dict[int, list[Touched]] = {}
    for each in touched:
        by_mirror.setdefault(each.descriptor.table_id, []).append(each)
    for each_table in by_mirror.values():
        mirror = mirror_of(each_table[0].descriptor, catalog)
        if mirror is not None:
            for followed in _of_one(each_table, mirror, rows):
                if followed is not None:
                    found.append(followed)
                yield
    return found


def _of_one(
    touched: list[Touched], mirror: Descriptor, rows: RowReader
) -> Iterable[Followed | None]:
    """Yield the changes of a mirror, None where a row that is looked at is none yet."""
    gone: dict[Key, None] = {}
    made: dict[Key, Row] = {}
    for _, before, _ in touched:
        if before is not None and (key := key_in(mirror, before.values)) is not None:
            gone[key] = None
    for descriptor, _, after in touched:
        if after is None or mirror.state not in WRITTEN:
            continue
        key = key_in(mirror, after.values)
        if key is None:
            continue  # not enforced yet: a job that is to verify it finds the row
        current = rows(mirror, key) if key not in gone else None
        if key in made or current is not None:
            raise _taken(descriptor, mirror, key)
        made[key] = after
        yield None
    for key in (*gone, *(key for key in made if key not in gone)):
        current = rows(mirror, key) if key in gone else None
        change = _change(mirror, key, current, made.get(key))
        if change is not None:
            yield Followed(mirror, change, current)


def _change(mirror: Descriptor, key: Key, current: Row | None, row: Row | None) -> RowChange | None:
    if row is not None:
        return written(mirror, key, current, row)
    if current is None:
        return None
    table, version = mirror.table_id, mirror.version
    return RowChange(ChangeKind.DELETE, table, version, key, None, current.genids, ())


def written(mirror: Descriptor, key: Key, current: Row | None, row: Row) -> RowChange:
    """The row of a mirror as `row` is, with its genids: none is new."""
    kind = ChangeKind.INSERT if current is None else ChangeKind.UPDATE
    before = {} if current is None else current.genids
    genids = genids_of(mirror, row)
    return RowChange(kind, mirror.table_id, mirror.version, key, row.values, before, (), genids)


def genids_of(descriptor: Descriptor, row: Row) -> dict[int, int]:
    """Return the genid of every lock, 0 where the row was not written since the lock was made."""
    return {lock: row.genids.get(lock, 0) for lock in descriptor.locks}


def _taken(descriptor: Descriptor, mirror: Descriptor, key: Key) -> StaleVersion:
    names = ", ".join(column.name for column in mirror.key_columns)
    kinds = (column.type for column in mirror.key_columns)
    shown = ", ".join(words_of(kind, value) for kind, value in zip(kinds, key, strict=True))
    return StaleVersion(
        f"table {descriptor.name!r} is changing its primary key, and ({names}) = ({shown}) is"
        " another row's, which some still find it by: try again",
        table=descriptor.name,
        key=list(key),
    )
