"""Columns whose value rows have without an image of their own: what a backfill by key does to a
row, what images made before mean, and what rows of older writers get.

Every image made under the version in which such a column became write-only, or a later one, has
its pair or says NULL. An image of before lacks it, and the backfill has put the value there, by the
same rule for every row. So the log need not carry that row again, and whoever reads images puts
the value there for himself. Where it differs by row, since the column follows others, it is
computed of what the image has (`computed_missing.py`): ⚠ of that image's own pairs, whatever the
row is by then, so that each image means what its row was.

One whose value is there `at_once` needs no backfill: the same rule holds from the version on that
brings it, which is delete-only. In an image no pair means NULL, so who inserts a row under that
version, or the one before, gives it the value, which is what PostgreSQL would have given a row from
before the ALTER TABLE. Nobody can say NULL until the column is public, and then those who may still
write without seeing it are at the delete-only version and leave the pairs of rows as they are.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final, TypeAlias

from leasehold.catalog.descriptor import Descriptor
from leasehold.catalog.elements import Column
from leasehold.model.records.events import Image
from leasehold.rows.computed_missing import compile_computed, missing_reader


def backfill_row(column: Column, image: Image) -> Image | None:
    """Return a row's pairs after a backfill has come to it, None where it has the pair, or gets no
    value, and nothing is done."""
    missing = column.missing
    assert missing is not None, column
    if image.get(column.element_id) is not None:
        return None
    value = missing.value
    if missing.computed is not None:
        value = compile_computed(missing.computed)(image)
    return None if value is None else {**image, column.element_id: value}


def complete_image(descriptor: Descriptor, made_under: int, image: Image) -> Image:
    """Return the pairs that a reader at `descriptor` finds in an image made under a version: those
    it carries, and those that were put without an image since."""
    lacking = {}
    for element_id, read in _readers(descriptor):
        if image.get(element_id) is None:
            value = read(made_under, image)
            if value is not None:
                lacking[element_id] = value
    return {**image, **lacking} if lacking else image


_KEPT_MAX: Final = 4_096
_Readers: TypeAlias = tuple[tuple[int, Callable[[int, Image], Any]], ...]
_kept: dict[tuple[int, int], tuple[Descriptor, _Readers]] = {}


def _readers(descriptor: Descriptor) -> _Readers:
    """Return the columns that images of older versions may lack, by element id, with what gives the
    value."""
    if not descriptor.missing:
        return ()
    name = descriptor.table_id, descriptor.version
    found = _kept.get(name)
    if found is None or found[0] is not descriptor:
        if len(_kept) >= _KEPT_MAX:
            _kept.clear()
        told = descriptor.missing.items()
        made = tuple((e, missing_reader(missing)) for e, missing in told)
        found = _kept[name] = (descriptor, made)
    return found[1]


def complete_new_row(newest: Descriptor, made_under: int, image: Image) -> Image:
    """Return the pairs of a row that is inserted under a version, with those that the table's
    newest version says every row has at once. ⚠ Its writer knows nothing of them, and in a store
    no pair is a NULL."""
    at_once = [e for e, missing in newest.missing.items() if missing.at_once]
    if not at_once:
        return image
    full = complete_image(newest, made_under, image)
    return {**image, **{e: full[e] for e in at_once if e in full}}
