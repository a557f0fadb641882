"""Row images → chunks of the backfill queue, bounded in rows and in bytes. PURE of Spark and Kafka.

A chunk names keys; the pair itself is derived by each node from its own row. So neither the order
of keys, nor where one chunk ends and the next begins, nor a key named twice can change what the
store holds in the end.

What the order does change is the work of every node: entries in the order of the index go to few
pages of its B-tree, in the order of the topic each goes to a page of its own, and a page is written
whole to the WAL with every commit. So images are gathered and sorted here, once for all nodes.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from itertools import takewhile
from sys import getsizeof
from types import NoneType
from typing import Any, Final, TypeAlias

import msgpack

from leasehold.adapters.codec.record_shape import TAG_BY_CLASS
from leasehold.adapters.codec.records import (
    FORMAT,
    UNREADABLE,
    restore_row_key,
    row_key,
    unpack_together,
)
from leasehold.catalog.edits import Kind
from leasehold.catalog.elements import ALL_ROWS, EXPRESSION
from leasehold.catalog.job import Job
from leasehold.model import byte_limits
from leasehold.model.errors import MalformedRequest
from leasehold.model.keys import NUMBER_BYTES, IntKeys, Key
from leasehold.model.records.events import RowImage, RowLeftOut
from leasehold.model.records.jobs import Chunk

CHUNK_ROWS_DEFAULT: Final = 5_000
CHUNK_ROWS_MAX: Final = 50_000
CHUNK_BYTES_MAX: Final = byte_limits.CHUNK
"""Well below Kafka's message limit; a master's loop decides one chunk between users' requests."""

PACED_CHUNKS_PER_SECOND: Final = 5
"""Under a rate limit a chunk is at most this part of a second's rows, or it would be a burst."""

WINDOW_ROWS_MAX: Final = 250_000
"""Images that are sorted together. Each window goes once through all of what is filled: the more
rows it has of a table, the fewer pages a node writes for as many of them."""

WINDOW_BYTES_MAX: Final = 80 << 20
"""What they take of a worker; 250,000 keys of one integer and texts of 20 letters fit."""

_HELD_BYTES: Final = 240
"""Of an image beside what its record key and its place have: objects, a dict's entry, lists."""

TOGETHER_MAX: Final = 5_000
"""Images that are unpacked together: enough to share the cost of a call, few enough for a cache."""

_HEAD_BYTES_MAX: Final = 64  # format, tag, five numbers and the head of the keys
_TAG: Final = TAG_BY_CLASS[RowImage]
_LEFT_OUT_TAG: Final = TAG_BY_CLASS[RowLeftOut]
_HEAD: Final = (FORMAT, _TAG)
_KEY: Final = 2 + RowImage._fields.index("key")
_LSN: Final = 2 + RowImage._fields.index("lsn")
_VERSION: Final = 2 + RowImage._fields.index("version")
_VALUES: Final = 2 + RowImage._fields.index("values")
_TRUNCATION: Final = row_key(())
_ORDERED: Final = frozenset((int, float, str, bytes, bool))
_unpackb: Final = msgpack.unpackb


SortKey: TypeAlias = Any
"""What images are sorted by: a storage value, or a tuple of them; rows lie by their key."""


def image_fields(image: bytes) -> tuple[Key, int, int, Mapping[int, Any] | None]:
    """Return key, LSN, version and values of an encoded RowImage, four times as fast as restoring
    it; values None: of a RowLeftOut, which stands for an image that was too large.

    Raises MalformedRequest for bytes that are no row image.
    """
    try:
        fields = _unpackb(image, use_list=False, strict_map_key=False)
        left_out = fields[1] == _LEFT_OUT_TAG
        if fields[0] != FORMAT or (fields[1] != _TAG and not left_out):
            raise ValueError(f"format {fields[0]!r:.20}, tag {fields[1]!r:.20}")
        key, lsn, version = fields[_KEY], fields[_LSN], fields[_VERSION]
        values: Any = fields[_VALUES]
        wanted: type[Any] = int if left_out else dict
        if type(key) is not tuple or type(values) is not wanted:
            raise ValueError("key or values are of other types")
        if type(lsn) is not int or type(version) is not int:
            raise ValueError("LSN or version are of other types")
    except UNREADABLE as error:
        raise MalformedRequest(
            f"{len(image)} bytes on a rows topic are no row image: {error}"
        ) from error
    return key, lsn, version, None if left_out else values


def sorted_columns(job: Job) -> tuple[int, ...]:
    """Return element ids of the columns that a job's images are sorted by; () = by key. Those of an
    index up to its first expression, which only nodes compute; of a table that gets the rows under
    another key, that key."""
    if job.element_id == ALL_ROWS:
        made = (e.after for step in job.steps for e in step.edits if e.table_id and not e.before)
        return tuple(next((body["primary_key"] for body in made if body is not None), ()))
    backfilling = job.backfilling
    if backfilling is None or backfilling.kind is not Kind.INDEX or backfilling.after is None:
        return ()
    return tuple(takewhile(lambda column: column != EXPRESSION, backfilling.after["columns"]))


def _type_first(sort_key: SortKey) -> list[tuple[str, Any]]:
    """Return a sort key for what can't be compared: NULLs, values of a type that a column once had,
    and what is no value at all."""
    parts = sort_key if type(sort_key) is tuple else (sort_key,)
    return [(type(part).__name__, part if type(part) in _ORDERED else 0) for part in parts]


def rows_per_chunk(chunk_rows: int, rows_per_second: int) -> int:
    """Return the rows of one chunk under a job's settings (0 rows per second = no limit)."""
    wanted = min(chunk_rows if chunk_rows > 0 else CHUNK_ROWS_DEFAULT, CHUNK_ROWS_MAX)
    if rows_per_second > 0:
        wanted = min(wanted, max(1, rows_per_second // PACED_CHUNKS_PER_SECOND))
    assert 1 <= wanted <= CHUNK_ROWS_MAX, wanted
    return wanted


def chunk_template(job: Job) -> Chunk:
    """Return a chunk of the job's run, without keys."""
    table_id = job.worked_table
    return Chunk(job.job_id, job.run, table_id, job.versions[table_id], job.element_id, ())


class Chunker:
    """Gathers the images of one partition of a micro-batch, sorts them, and hands out chunks.

    `template` is what `chunk_template` gives, `columns` what `sorted_columns` gives. A key met
    again in the same window takes the place of the older image (old images stay in a compacted
    topic for a while), and a tombstone takes the key out: the row is gone.
    """

    def __init__(
        self,
        template: Chunk,
        columns: Sequence[int],
        rows_max: int,
        bytes_max: int = CHUNK_BYTES_MAX,
        window_max: int = WINDOW_ROWS_MAX,
        window_bytes_max: int = WINDOW_BYTES_MAX,
    ) -> None:
        assert not len(template.keys), "the template of a chunk has no keys"
        assert 1 <= rows_max <= CHUNK_ROWS_MAX, rows_max
        assert bytes_max > _HEAD_BYTES_MAX, bytes_max
        assert window_max >= 1, window_max
        self._template = template
        self._columns = tuple(columns)
        self._rows_max = rows_max
        self._bytes_max = bytes_max
        self._window_max = window_max
        self._window_bytes_max = window_bytes_max
        self._window: dict[bytes, SortKey] = {}
        self._window_bytes = 0  # of all that was taken: what is named again counts twice

    def take(self, keys: Sequence[bytes], images: Sequence[bytes | None]) -> Iterator[Chunk]:
        """Add records of the topic, in its order; yield the chunks of each window that is full."""
        assert len(keys) == len(images), (len(keys), len(images))
        if _TRUNCATION in keys:  # what stood before it on this partition is gone
            after = len(keys) - list(reversed(keys)).index(_TRUNCATION)
            keys, images = keys[after:], images[after:]
            self._clear()
        for start in range(0, len(keys), TOGETHER_MAX):
            end = start + TOGETHER_MAX
            yield from self._take(keys[start:end], images[start:end])

    def _take(self, keys: Sequence[bytes], images: Sequence[bytes | None]) -> Iterator[Chunk]:
        window, sort_keys = self._window, sort_keys_of(self._columns, images)
        size = held_bytes(keys, sort_keys)
        if not self._full(len(keys), size) and None not in images:
            window.update(zip(keys, sort_keys, strict=True))
            self._window_bytes += size
            return
        for key, sort_key, image in zip(keys, sort_keys, images, strict=True):
            if image is None:
                window.pop(key, None)
            else:
                window[key] = sort_key
                self._window_bytes += held_bytes((key,), (sort_key,))
                if self._full():
                    yield from self.rest()

    def rest(self) -> Iterator[Chunk]:
        """Yield the chunks of what was gathered; at the end of the partition, what is left."""
        records, keys = readable_keys(list(self._window))
        window = self._window
        order = _order([window[record] for record in records] if self._columns else keys)
        self._clear()
        try:
            numbers = [number for (number,) in map(keys.__getitem__, order)]
            if {int}.issuperset(map(type, numbers)):
                yield from self._chunks_of_numbers(IntKeys(numbers))
                return
        except (ValueError, OverflowError):  # keys of another width, numbers beyond 64 bits
            pass
        yield from self._chunks_of_keys(order, keys, records)

    def _full(self, rows: int = 0, size: int = 0) -> bool:
        """Say whether the window is full, with so many rows and bytes more."""
        return (
            len(self._window) + rows >= self._window_max
            or self._window_bytes + size >= self._window_bytes_max
        )

    def _clear(self) -> None:
        self._window.clear()
        self._window_bytes = 0

    def _chunks_of_numbers(self, keys: IntKeys) -> Iterator[Chunk]:
        fit = (self._bytes_max - _HEAD_BYTES_MAX) // NUMBER_BYTES
        step = max(1, min(self._rows_max, fit))
        for start in range(0, len(keys), step):
            yield self._template._replace(keys=keys[start : start + step])

    def _chunks_of_keys(
        self, order: Sequence[int], keys: Sequence[Key], records: Sequence[bytes]
    ) -> Iterator[Chunk]:
        gathered: list[Key] = []
        size = _HEAD_BYTES_MAX
        for index in order:
            key_size = len(records[index])
            if gathered and (size + key_size > self._bytes_max or len(gathered) >= self._rows_max):
                yield self._template._replace(keys=tuple(gathered))
                gathered.clear()
                size = _HEAD_BYTES_MAX
            gathered.append(keys[index])
            size += key_size
        if gathered:
            yield self._template._replace(keys=tuple(gathered))


def _order(sort_keys: Sequence[SortKey]) -> list[int]:
    """Return the numbers of the places, from the least to the greatest."""
    try:
        return sorted(range(len(sort_keys)), key=sort_keys.__getitem__)
    except TypeError:  # so that only who has such values pays for them
        return sorted(range(len(sort_keys)), key=lambda number: _type_first(sort_keys[number]))


def held_bytes(keys: Sequence[bytes], sort_keys: Sequence[SortKey]) -> int:
    """Return about what images take of memory while they are sorted, by record key and place."""
    size = _HELD_BYTES * len(keys) + sum(map(len, keys))
    kinds = set(map(type, sort_keys))
    if kinds == {NoneType}:
        return size
    if tuple in kinds:
        size += sum(
            getsizeof(part)
            for sort_key in sort_keys
            if type(sort_key) is tuple
            for part in sort_key
        )
    return size + sum(map(getsizeof, sort_keys))


def readable_keys(records: Sequence[bytes]) -> tuple[Sequence[bytes], Sequence[Key]]:
    """Return record keys of a rows topic, and what they say. One that can't be read is left out:
    it is of none of the changefeed's records, and no row."""
    try:
        keys = unpack_together(records)
        if {tuple}.issuperset(map(type, keys)):
            return records, keys
    except UNREADABLE:
        pass
    found: dict[bytes, Key] = {}
    for record in records:
        with suppress(MalformedRequest):
            found[record] = restore_row_key(record)
    return list(found), list(found.values())


def _values_of(image: bytes) -> Mapping[int, Any]:
    try:
        return image_fields(image)[3] or {}
    except MalformedRequest:
        return {}


def sort_keys_of(columns: Sequence[int], images: Sequence[bytes | None]) -> Sequence[SortKey]:
    """Return each image's place; None for a tombstone, for an image that was left out or can't be
    read (its row is named like any other: nodes have it), and where keys are the places: then
    images need no look."""
    if not columns:
        return [None] * len(images)
    if None in images:
        sort_keys = iter(sort_keys_of(columns, [image for image in images if image is not None]))
        return [None if image is None else next(sort_keys) for image in images]
    whole: Any = images
    try:
        fields = unpack_together(whole)
        if not {_HEAD}.issuperset([image[:2] for image in fields]):
            raise ValueError("another format or tag")
        values = [image[_VALUES] for image in fields]
        if not {dict}.issuperset(map(type, values)):
            raise ValueError("values are of another type")
    except UNREADABLE:
        values = [_values_of(image) for image in whole]
    if len(columns) == 1:
        (column,) = columns
        return [each.get(column) for each in values]
    return [tuple(map(each.get, columns)) for each in values]
