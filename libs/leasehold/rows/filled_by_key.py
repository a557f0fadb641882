"""Columns whose value rows have without an image of their own: what a backfill by key does to a
row, what images made before mean, and what rows of older writers get.

Every image made under the version in which such a column became write-only, or a later one, has
its pair or says NULL. An image of before lacks it, and the backfill has put the value there, by the
same rule for every row. So the log need not carry that row again, and whoever reads images puts
the value there for himself.

One whose value is there `at_once` needs no backfill: the same rule holds from the version on that
brings it, which is delete-only. In an image no pair means NULL, so who inserts a row under that
version, or the one before, gives it the value, which is what PostgreSQL would have given a row from
before the ALTER TABLE. Nobody can say NULL until the column is public, and then those who may still
write without seeing it are at the delete-only version and leave the pairs of rows as they are.
"""

from __future__ import annotations

from leasehold.catalog.descriptor import Descriptor
from leasehold.catalog.elements import Column
from leasehold.model.records.events import Image


def backfill_row(column: Column, image: Image) -> Image | None:
    """Return a row's pairs after a chunk that names it, None where it has the pair and nothing is
    done."""
    assert column.missing is not None, column
    if image.get(column.element_id) is not None:
        return None
    return {**image, column.element_id: column.missing.value}


def complete_image(descriptor: Descriptor, made_under: int, image: Image) -> Image:
    """Return the pairs that a reader at `descriptor` finds in an image made under a version: those
    it carries, and those that were put by key since."""
    lacking = {
        element_id: missing.value
        for element_id, missing in descriptor.missing.items()
        if made_under < missing.below and image.get(element_id) is None
    }
    return {**image, **lacking} if lacking else image


def complete_new_row(newest: Descriptor, made_under: int, image: Image) -> Image:
    """Return the pairs of a row that is inserted under a version, with those that the table's
    newest version says every row has at once. ⚠ Its writer knows nothing of them, and in a store
    no pair is a NULL."""
    at_once = [e for e, missing in newest.missing.items() if missing.at_once]
    if not at_once:
        return image
    full = complete_image(newest, made_under, image)
    return {**image, **{e: full[e] for e in at_once if e in full}}
