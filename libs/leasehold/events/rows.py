"""Row images (element ids and storage values) as rows (column names and Python values). PURE."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

from leasehold.catalog.descriptor import Descriptor
from leasehold.catalog.elements import Column
from leasehold.model.errors import MalformedRequest
from leasehold.model.keys import Key
from leasehold.model.records.events import Image, RowImage, RowLeftOut, RowsTruncated
from leasehold.rows.filled_by_key import complete_image
from leasehold.values.storage import from_storage


class RowRecord(NamedTuple):
    """A record of a rows topic: the image is None for a row that was deleted; the key is empty when
    all rows from before it were."""

    table_id: int
    key: Key
    image: RowImage | RowLeftOut | RowsTruncated | None


class RowEvent(NamedTuple):
    """A row of a table as of `lsn`, under the version that its reader held.

    `key`: primary-key column → value. `values`: public column → value, key columns included; None
    for a row that was deleted (`lsn` is then 0: a compacted topic's tombstone has none). `version`
    is the reader's, `made_under` the writer's. `left_out_bytes`: 0, or the size of an image that no
    message had room for: then `values` has the key columns alone, and a node has the row.
    """

    table: str
    key: dict[str, Any]
    values: dict[str, Any] | None
    lsn: int
    version: int
    made_under: int
    commit_us: int
    left_out_bytes: int = 0


class TruncationEvent(NamedTuple):
    """Every row of the table that is older than `lsn` is gone."""

    table: str
    lsn: int
    commit_us: int


def decode_row(descriptor: Descriptor, key: Key, image: RowImage | RowLeftOut | None) -> RowEvent:
    """Return the row that a reader holding `descriptor` sees.

    Elements that are not public at that version are not there for it; a public column whose pair
    the image lacks is NULL, or what every row got that had been written before the column came.
    """
    named = {
        column.name: from_storage(column.type, value)
        for column, value in zip(descriptor.key_columns, key, strict=True)
    }
    if image is None:
        return RowEvent(descriptor.name, named, None, 0, descriptor.version, 0, 0)
    assert image.table_id == descriptor.table_id, (image.table_id, descriptor.table_id)
    if isinstance(image, RowLeftOut):
        shown = descriptor.by_name
        values = {name: value for name, value in named.items() if name in shown}
        left_out_bytes = image.image_bytes
    else:
        pairs = complete_image(descriptor, image.version, image.values)
        values, left_out_bytes = {}, 0
        for column, value in public_pairs(descriptor, key, pairs):
            values[column.name] = from_storage(column.type, value)
    return RowEvent(
        descriptor.name,
        named,
        values,
        image.lsn,
        descriptor.version,
        image.version,
        image.commit_us,
        left_out_bytes,
    )


def read_row(descriptor: Descriptor, key: Key, image: RowImage | RowLeftOut | None) -> RowEvent:
    """Return what `decode_row` does of a record that came from outside. Raises MalformedRequest,
    and nothing else, for what is no row of that table."""
    try:
        return decode_row(descriptor, key, image)
    except Exception as error:  # whatever it is: nobody can read this record
        raise MalformedRequest(
            f"a record of table {descriptor.name!r} under key {key!r:.80} is no row of it"
            f" ({type(error).__name__}: {str(error)[:200]})"
        ) from error


def public_pairs(descriptor: Descriptor, key: Key, values: Image) -> Iterator[tuple[Column, Any]]:
    """Yield each public column with its storage value; key columns may travel in the key alone."""
    known = {**values, **dict(zip(descriptor.primary_key, key, strict=True))}
    for column in descriptor.by_name.values():
        yield column, known.get(column.element_id)
