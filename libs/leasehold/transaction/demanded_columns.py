"""Columns that every row must have from a commit on, whoever writes it: those that a transaction
fills and sets NOT NULL."""

from __future__ import annotations

from typing import TYPE_CHECKING

from leasehold.catalog.descriptor import Descriptor
from leasehold.model.errors import NotNullViolation
from leasehold.model.keys import Key
from leasehold.model.ports import Row
from leasehold.model.records.events import Image

if TYPE_CHECKING:
    from leasehold.transaction.verify import Decided


def count_filled(decided: Decided, table_id: int, element_id: int) -> int:
    """Return how many of the rows that lack a column's pair have it, or are gone, when what was
    decided is committed."""
    before: dict[Key, Row | None] = {}
    after: dict[Key, Image | None] = {}
    for change, row in zip(decided.changes, decided.before, strict=True):
        if change.table_id == table_id:
            before.setdefault(change.key, row)
            after[change.key] = change.image
    lacking = (k for k, row in before.items() if row and row.values.get(element_id) is None)
    images = (after[key] for key in lacking)
    return sum(image is None or image.get(element_id) is not None for image in images)


def check_demanded(newest: Descriptor, writer: Descriptor, image: Image) -> None:
    """Refuse a row of a writer at an older version in which a column is empty that every row must
    have: one that he can't see, or one that may be empty at his version.

    Raises NotNullViolation."""
    for column in newest.columns:
        if not column.demanded or image.get(column.element_id) is not None:
            continue
        raise NotNullViolation(
            f"null value in column {column.name!r} of relation {newest.name!r} violates not-null"
            " constraint",
            table=writer.name,
            column=column.name,
        )
