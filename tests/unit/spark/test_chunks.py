"""Images → chunks: bounded, complete, and indifferent to repeats."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from leasehold.adapters.codec import MessagePackCodec, row_key
from leasehold.model.errors import MalformedRequest
from leasehold.model.records import Barrier, Chunk, RowImage
from spark_streaming.chunks import (
    CHUNK_ROWS_DEFAULT,
    CHUNK_ROWS_MAX,
    Chunker,
    key_and_lsn,
    rows_per_chunk,
)

CODEC = MessagePackCodec()
TEMPLATE = Chunk(7, 2, 1, 3, 9, ())


def record(key: tuple[Any, ...], lsn: int) -> tuple[bytes, bytes]:
    return row_key(key), CODEC.encode(RowImage(1, key, {0: lsn}, lsn, 3, 1, {1: key[0]}))


def chunks_of(
    records: Sequence[tuple[bytes, bytes | None]],
    rows_max: int,
    bytes_max: int = 500_000,
    feed: int = 3,
) -> list[Chunk]:
    chunker = Chunker(TEMPLATE, rows_max, bytes_max)
    found: list[Chunk] = []
    for start in range(0, len(records), feed):
        part = records[start : start + feed]
        found += chunker.take([k for k, _ in part], [v for _, v in part])
    return found + list(chunker.rest())


def test_the_two_fields_are_those_of_the_codec() -> None:
    key, image = record((1, "a", None, b"\x00"), 2**62)
    assert key_and_lsn(image) == ((1, "a", None, b"\x00"), 2**62)
    assert key == row_key((1, "a", None, b"\x00"))


@pytest.mark.parametrize("bad", [b"", b"\xc1", b"\x01", CODEC.encode(Barrier(b"x"))])
def test_foreign_bytes_are_named_as_such(bad: bytes) -> None:
    with pytest.raises(MalformedRequest, match="no row image"):
        key_and_lsn(bad)


@given(
    st.lists(st.tuples(st.integers(0, 30), st.integers(1, 1000)), max_size=80),
    st.integers(1, 10),
    st.integers(1, 7),
)
def test_every_key_is_named_with_its_last_image(
    images: list[tuple[int, int]], rows_max: int, feed: int
) -> None:
    found = chunks_of([record((k,), lsn) for k, lsn in images], rows_max, feed=feed)
    assert all(chunk[:5] == TEMPLATE[:5] for chunk in found)
    assert all(1 <= len(chunk.rows) <= rows_max for chunk in found)
    named = dict(itertools.chain.from_iterable(chunk.rows for chunk in found))
    assert named == {(k,): lsn for k, lsn in images}
    assert all(len({key for key, _ in c.rows}) == len(c.rows) for c in found)


def test_chunks_keep_to_the_bytes_bound() -> None:
    records = [record((i, "x" * (i % 90)), 2**62 + i) for i in range(500)]
    found = chunks_of(records, 5_000, bytes_max=1_000)
    assert max(len(CODEC.encode(c)) for c in found) <= 1_000
    assert sum(len(c.rows) for c in found) == 500
    assert len(found) < 60, "and are not needlessly small"


def test_a_key_beyond_the_bound_travels_alone() -> None:
    found = chunks_of([record((i, "x" * 3_000), 1) for i in range(3)], 5_000, bytes_max=1_000)
    assert [len(c.rows) for c in found] == [1, 1, 1]


def test_a_tombstone_takes_the_waiting_key_out() -> None:
    gone, kept = record((1,), 1), record((2,), 1)
    assert [c.rows for c in chunks_of([gone, kept, (gone[0], None)], 10)] == [(((2,), 1),)]
    assert chunks_of([(gone[0], None)], 10) == []
    # What came back after its deletion is named again.
    assert chunks_of([gone, (gone[0], None), record((1,), 5)], 10)[0].rows == (((1,), 5),)


@pytest.mark.parametrize(
    ("chunk_rows", "rows_per_second", "wanted"),
    [
        (0, 0, CHUNK_ROWS_DEFAULT),
        (100, 0, 100),
        (10**9, 0, CHUNK_ROWS_MAX),
        (5_000, 1_000, 200),
        (5_000, 1_000_000, 5_000),
        (5_000, 1, 1),
    ],
)
def test_rows_per_chunk(chunk_rows: int, rows_per_second: int, wanted: int) -> None:
    assert rows_per_chunk(chunk_rows, rows_per_second) == wanted
