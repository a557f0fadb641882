"""Columns that a backfill fills by key: what it does to a row, and what images made before mean.

Every image made under the version in which such a column became write-only, or a later one, has
its pair or says NULL. An image of before lacks it, and the backfill has put the value there, by the
same rule for every row. So the log need not carry that row again, and whoever reads images puts
the value there for himself.
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
