"""Row images → chunks of the backfill lane, bounded in rows and in bytes. PURE of Spark and Kafka.

A chunk names keys and the LSNs of their images; the pair itself is derived by each node from its
own row. So neither the order of keys, nor where one chunk ends and the next begins, nor a key named
twice can change what the store holds in the end.

What the order does change is the work of every node: entries in the order of the index go to few
pages of its B-tree, in the order of the topic each goes to a page of its own, and a page is written
whole to the WAL with every commit. So images are gathered and sorted here, once for all nodes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import takewhile
from typing import Any, Final, TypeAlias

import msgpack

from leasehold.adapters.codec import FORMAT, UNREADABLE, row_key
from leasehold.adapters.record_shape import TAG_BY_CLASS
from leasehold.model.errors import MalformedRequest
from leasehold.model.records import Chunk, Key, RowImage
from leasehold.schema.edits import Kind
from leasehold.schema.elements import ALL_ROWS, EXPRESSION
from leasehold.schema.job import Job

CHUNK_ROWS_DEFAULT: Final = 5_000
CHUNK_ROWS_MAX: Final = 50_000
CHUNK_BYTES_MAX: Final = 500_000
"""Well below Kafka's message limit; a master's loop decides one chunk between users' requests."""

PACED_CHUNKS_PER_SECOND: Final = 5
"""Under a rate limit a chunk is at most this part of a second's rows, or it would be a burst."""

WINDOW_ROWS_MAX: Final = 125_000
"""Images that are sorted together: about 50 MB of a worker. Twice as many save a node little."""

_HEAD_BYTES_MAX: Final = 64  # format, tag, five numbers and the array head of the rows
_ROW_BYTES_MAX: Final = 1 + 9  # array head of (key, lsn) and a 64-bit LSN, around the key's bytes
_TAG: Final = TAG_BY_CLASS[RowImage]
_KEY: Final = 2 + RowImage._fields.index("key")
_LSN: Final = 2 + RowImage._fields.index("lsn")
_VERSION: Final = 2 + RowImage._fields.index("version")
_VALUES: Final = 2 + RowImage._fields.index("values")
_TRUNCATION: Final = row_key(())
_unpackb: Final = msgpack.unpackb


Place: TypeAlias = Any
"""What images are sorted by: a storage value, or a tuple of them."""


def image_fields(image: bytes) -> tuple[Key, int, int, Mapping[int, Any]]:
    """Key, LSN, version and values of an encoded RowImage, four times as fast as restoring it.

    Raises MalformedRequest for bytes that are no row image.
    """
    try:
        fields = _unpackb(image, use_list=False, strict_map_key=False)
        if fields[0] != FORMAT or fields[1] != _TAG:
            raise ValueError(f"format {fields[0]!r:.20}, tag {fields[1]!r:.20}")
        key, lsn, version, values = fields[_KEY], fields[_LSN], fields[_VERSION], fields[_VALUES]
        if type(key) is not tuple or type(values) is not dict:
            raise ValueError("key or values are of other types")
        if type(lsn) is not int or type(version) is not int:
            raise ValueError("LSN or version are of other types")
    except UNREADABLE as error:
        raise MalformedRequest(
            f"{len(image)} bytes on a rows topic are no row image: {error}"
        ) from error
    return key, lsn, version, values


def sorted_columns(job: Job) -> tuple[int, ...]:
    """Element ids of the columns that a job's images are sorted by; () = by key. Those of an
    index up to its first expression, which only nodes compute; of a table that gets the rows under
    another key, that key."""
    if job.element_id == ALL_ROWS:
        made = (e.after for step in job.steps for e in step.edits if e.table_id and not e.before)
        return tuple(next((body["primary_key"] for body in made if body is not None), ()))
    filling = job.filling
    if filling is None or filling.kind is not Kind.INDEX or filling.after is None:
        return ()
    return tuple(takewhile(lambda column: column != EXPRESSION, filling.after["columns"]))


def place_by(columns: Sequence[int]) -> Callable[[Key, Mapping[int, Any]], Place]:
    """(key, values) → place: by the columns of an index; without any, by the key, as rows lie."""
    if not columns:
        return lambda key, _: key
    if len(columns) == 1:
        (column,) = columns
        return lambda _, values: values.get(column)
    wanted = tuple(columns)
    return lambda _, values: tuple(map(values.get, wanted))


def _type_first(place: Place) -> list[tuple[str, Any]]:
    """Sorts what can't be compared: NULLs, and values of a type that a column once had."""
    parts = place if type(place) is tuple else (place,)
    return [(type(part).__name__, part) for part in parts]


def rows_per_chunk(chunk_rows: int, rows_per_second: int) -> int:
    """Rows of one chunk under a job's settings (0 rows per second = no limit)."""
    wanted = min(chunk_rows if chunk_rows > 0 else CHUNK_ROWS_DEFAULT, CHUNK_ROWS_MAX)
    if rows_per_second > 0:
        wanted = min(wanted, max(1, rows_per_second // PACED_CHUNKS_PER_SECOND))
    assert 1 <= wanted <= CHUNK_ROWS_MAX, wanted
    return wanted


class Chunker:
    """Gathers the images of one partition of a micro-batch, sorts them, and hands out chunks.

    `template` is a Chunk without rows; `columns` is what `place_by` takes. A key met again in the
    same window takes the place of the older image (old images stay in a compacted topic for a
    while), and a tombstone takes the key out: the row is gone.
    """

    def __init__(
        self,
        template: Chunk,
        columns: Sequence[int],
        rows_max: int,
        bytes_max: int = CHUNK_BYTES_MAX,
        window_max: int = WINDOW_ROWS_MAX,
    ) -> None:
        assert not template.rows, "the template of a chunk has no rows"
        assert 1 <= rows_max <= CHUNK_ROWS_MAX, rows_max
        assert bytes_max > _HEAD_BYTES_MAX, bytes_max
        assert window_max >= 1, window_max
        self._template = template
        self._place = place_by(columns)
        self._rows_max = rows_max
        self._bytes_max = bytes_max
        self._window_max = window_max
        self._window: dict[bytes, tuple[Place, tuple[Key, int]]] = {}

    def take(self, keys: Sequence[bytes], images: Sequence[bytes | None]) -> Iterator[Chunk]:
        """Add records of the topic, in its order; yields the chunks of each window that is full.

        Raises MalformedRequest for an image that is none.
        """
        window, place = self._window, self._place
        for record_key, image in zip(keys, images, strict=True):
            if record_key == _TRUNCATION:
                window.clear()  # what stood before it on this partition is gone
                continue
            if image is None:
                window.pop(record_key, None)
                continue
            key, lsn, _, values = image_fields(image)
            window[record_key] = place(key, values), (key, lsn)
            if len(window) >= self._window_max:
                yield from self.rest()

    def rest(self) -> Iterator[Chunk]:
        """The chunks of what was gathered; at the end of the partition, what is left."""
        rows: list[tuple[Key, int]] = []
        size = _HEAD_BYTES_MAX
        for record_key, (_, row) in self._in_order():
            row_size = len(record_key) + _ROW_BYTES_MAX
            if rows and (size + row_size > self._bytes_max or len(rows) >= self._rows_max):
                yield self._template._replace(rows=tuple(rows))
                rows.clear()
                size = _HEAD_BYTES_MAX
            rows.append(row)
            size += row_size
        self._window.clear()
        if rows:
            yield self._template._replace(rows=tuple(rows))

    def _in_order(self) -> list[tuple[bytes, tuple[Place, tuple[Key, int]]]]:
        images = list(self._window.items())
        try:
            images.sort(key=lambda image: image[1][0])
        except TypeError:  # so that only who has such values pays for them
            images.sort(key=lambda image: _type_first(image[1][0]))
        return images
