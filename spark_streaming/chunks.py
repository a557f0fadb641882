"""Row images → chunks of the backfill lane, bounded in rows and in bytes. PURE of Spark and Kafka.

A chunk names keys and the LSNs of their images; the pair itself is derived by each node from its
own row. So of an image only two fields are looked at, and neither the order of keys, nor where one
chunk ends and the next begins, nor a key named twice can change what the store holds in the end.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

import msgpack

from leasehold.adapters.codec import FORMAT, UNREADABLE
from leasehold.adapters.record_shape import TAG_BY_CLASS
from leasehold.model.errors import MalformedRequest
from leasehold.model.records import Chunk, Key, RowImage

CHUNK_ROWS_DEFAULT: Final = 5_000
CHUNK_ROWS_MAX: Final = 50_000
CHUNK_BYTES_MAX: Final = 500_000
"""Well below Kafka's message limit; a master's loop decides one chunk between users' requests."""

PACED_CHUNKS_PER_SECOND: Final = 5
"""Under a rate limit a chunk is at most this part of a second's rows, or it would be a burst."""

_HEAD_BYTES_MAX: Final = 64  # format, tag, five numbers and the array head of the rows
_ROW_BYTES_MAX: Final = 1 + 9  # array head of (key, lsn) and a 64-bit LSN, around the key's bytes
_TAG: Final = TAG_BY_CLASS[RowImage]
_KEY: Final = 2 + RowImage._fields.index("key")
_LSN: Final = 2 + RowImage._fields.index("lsn")
_unpackb: Final = msgpack.unpackb


def key_and_lsn(image: bytes) -> tuple[Key, int]:
    """The two fields of an encoded RowImage that a chunk needs, four times as fast as restoring it.

    Raises MalformedRequest for bytes that are no row image.
    """
    try:
        fields = _unpackb(image, use_list=False, strict_map_key=False)
        if fields[0] != FORMAT or fields[1] != _TAG:
            raise ValueError(f"format {fields[0]!r:.20}, tag {fields[1]!r:.20}")
        key, lsn = fields[_KEY], fields[_LSN]
        if type(key) is not tuple or type(lsn) is not int:
            raise ValueError("key and LSN are of other types")
    except UNREADABLE as error:
        raise MalformedRequest(
            f"{len(image)} bytes on a rows topic are no row image: {error}"
        ) from error
    return key, lsn


def rows_per_chunk(chunk_rows: int, rows_per_second: int) -> int:
    """Rows of one chunk under a job's settings (0 rows per second = no limit)."""
    wanted = min(chunk_rows if chunk_rows > 0 else CHUNK_ROWS_DEFAULT, CHUNK_ROWS_MAX)
    if rows_per_second > 0:
        wanted = min(wanted, max(1, rows_per_second // PACED_CHUNKS_PER_SECOND))
    assert 1 <= wanted <= CHUNK_ROWS_MAX, wanted
    return wanted


class Chunker:
    """Gathers the images of one partition of a micro-batch and hands out full chunks.

    `template` is a Chunk without rows. A key met again before its chunk is full takes the place of
    the older image (old images stay in a compacted topic for a while), and a tombstone takes the
    key out: the row is gone.
    """

    def __init__(self, template: Chunk, rows_max: int, bytes_max: int = CHUNK_BYTES_MAX) -> None:
        assert not template.rows, "the template of a chunk has no rows"
        assert 1 <= rows_max <= CHUNK_ROWS_MAX, rows_max
        assert bytes_max > _HEAD_BYTES_MAX, bytes_max
        self._template = template
        self._rows_max = rows_max
        self._bytes_max = bytes_max
        self._rows: dict[bytes, tuple[Key, int]] = {}
        self._bytes = _HEAD_BYTES_MAX

    def take(self, keys: Sequence[bytes], images: Sequence[bytes | None]) -> Iterator[Chunk]:
        """Add records of the topic, in its order; yields each chunk that became full.

        Raises MalformedRequest for an image that is none.
        """
        rows = self._rows
        for record_key, image in zip(keys, images, strict=True):
            if image is None:
                if rows.pop(record_key, None) is not None:
                    self._bytes -= len(record_key) + _ROW_BYTES_MAX
                continue
            if record_key not in rows:
                size = len(record_key) + _ROW_BYTES_MAX
                if rows and self._bytes + size > self._bytes_max:
                    yield self._closed()
                self._bytes += size
            rows[record_key] = key_and_lsn(image)
            if len(rows) >= self._rows_max:
                yield self._closed()

    def rest(self) -> Iterator[Chunk]:
        """What is left, at the end of the partition."""
        if self._rows:
            yield self._closed()

    def _closed(self) -> Chunk:
        chunk = self._template._replace(rows=tuple(self._rows.values()))
        self._rows.clear()
        self._bytes = _HEAD_BYTES_MAX
        assert 1 <= len(chunk.rows) <= self._rows_max, len(chunk.rows)
        return chunk
