"""Images → chunks: bounded, complete, sorted by window, and indifferent to repeats."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from leasehold.adapters.codec.records import MessagePackCodec, row_key
from leasehold.model.errors import MalformedRequest
from leasehold.model.keys import IntKeys
from leasehold.model.records.events import RowImage, RowLeftOut, RowsTruncated
from leasehold.model.records.jobs import Chunk
from leasehold.model.records.log import Barrier
from leasehold.pipeline.chunks import (
    CHUNK_ROWS_DEFAULT,
    CHUNK_ROWS_MAX,
    Chunker,
    image_fields,
    rows_per_chunk,
)

CODEC = MessagePackCodec()
TEMPLATE = Chunk(7, 2, 1, 3, 9, ())


def record(
    key: tuple[Any, ...], lsn: int, values: dict[int, Any] | None = None
) -> tuple[bytes, bytes]:
    return row_key(key), CODEC.encode(RowImage(1, key, {0: lsn}, lsn, 3, 1, values or {1: key[0]}))


def chunks_of(
    records: Sequence[tuple[bytes, bytes | None]],
    rows_max: int,
    bytes_max: int = 500_000,
    feed: int = 3,
    *,
    columns: Sequence[int] = (),
    window_max: int = 1_000,
) -> list[Chunk]:
    chunker = Chunker(TEMPLATE, columns, rows_max, bytes_max, window_max)
    found: list[Chunk] = []
    for start in range(0, len(records), feed):
        part = records[start : start + feed]
        found += chunker.take([k for k, _ in part], [v for _, v in part])
    return found + list(chunker.rest())


ODD: tuple[Any, ...] = ({}, (1,), {1: 2}, [], None)
"""What no column holds."""


def keys_of(chunks: Sequence[Chunk]) -> list[Any]:
    return [key[0] for chunk in chunks for key in chunk.keys]


def test_images_from_before_a_truncation_are_not_sent() -> None:
    gone = row_key(()), CODEC.encode(RowsTruncated(1, 5, 1))
    records = [record((1,), 3), record((2,), 4), gone, record((2,), 6)]
    chunks = chunks_of(records, 10)
    assert [chunk.keys for chunk in chunks] == [((2,),)]


def test_the_fields_are_those_of_the_codec() -> None:
    key, image = record((1, "a", None, b"\x00"), 2**62, {5: "x"})
    assert image_fields(image) == ((1, "a", None, b"\x00"), 2**62, 3, {5: "x"})
    assert key == row_key((1, "a", None, b"\x00"))


def test_a_row_whose_image_was_too_large_is_filled_like_any_other() -> None:
    """A chunk names keys; where the place of a row is not known it goes with those of NULL."""
    image = CODEC.encode(RowLeftOut(1, (2,), {0: 1}, 7, 3, 1, 9_000_000))
    assert image_fields(image) == ((2,), 7, 3, None)
    left_out = (row_key((2,)), image)
    records = [record((1,), 3, {5: "b"}), left_out, record((3,), 4, {5: "a"})]
    assert sorted(keys_of(chunks_of(records, 10, columns=(5,)))) == [1, 2, 3]
    assert keys_of(chunks_of(records, 10)) == [1, 2, 3]


@pytest.mark.parametrize("bad", [b"", b"\xc1", b"\x01", CODEC.encode(Barrier(b"x"))])
def test_foreign_bytes_are_named_as_such(bad: bytes) -> None:
    with pytest.raises(MalformedRequest, match="no row image"):
        image_fields(bad)


@pytest.mark.parametrize("bad", [b"", b"\xc1", b"\x01", CODEC.encode(Barrier(b"x")), b"\x91\x05"])
def test_what_nobody_can_read_holds_up_no_row(bad: bytes) -> None:
    """A row whose image is none goes like any other; a key that is none is no row's."""
    records: list[tuple[bytes, bytes | None]] = [record((k,), 1) for k in range(50)]
    records[31] = (records[31][0], bad)
    for columns in ((), (1,), (1, 2)):
        assert sorted(keys_of(chunks_of(records, 10, feed=50, columns=columns))) == [*range(50)]
    odd: list[tuple[bytes, bytes | None]] = [
        (key, record((31,), 1, {1: value})[1])
        for key, value in zip((b"\xc1", b"", b"\x01"), ODD[:3], strict=True)
    ]
    odd += [record((n,), 1, {1: value}) for n, value in enumerate(ODD)]
    for columns in ((), (1,), (1, 2)):
        found = chunks_of([*odd, *records], 10, feed=70, columns=columns)
        assert sorted(keys_of(found)) == [*range(50)]


def test_keys_of_one_integer_go_as_numbers_and_others_as_they_are() -> None:
    (chunk,) = chunks_of([record((k,), 1) for k in (3, -(2**63), 2**63 - 1)], 10)
    assert type(chunk.keys) is IntKeys
    assert list(chunk.keys) == [(-(2**63),), (3,), (2**63 - 1,)]
    for keys in ([(1,), (2**63,)], [("a",), ("b",)], [(1, 2), (1, 3)], [(1,), (2.5,)]):
        (chunk,) = chunks_of([record(key, 1) for key in keys], 10)
        assert chunk.keys == tuple(keys)
        assert type(chunk.keys) is tuple
    (chunk,) = chunks_of([record((k,), 1) for k in (True, False)], 10)
    assert type(chunk.keys) is tuple, "nor is a boolean a number"


@given(
    st.lists(st.tuples(st.integers(0, 30), st.integers(1, 1000)), max_size=80),
    st.integers(1, 10),
    st.integers(1, 7),
    st.integers(1, 30),
)
def test_every_key_is_named_once_in_a_window(
    images: list[tuple[int, int]], rows_max: int, feed: int, window_max: int
) -> None:
    records = [record((k,), lsn) for k, lsn in images]
    found = chunks_of(records, rows_max, feed=feed, window_max=window_max)
    assert all(chunk[:5] == TEMPLATE[:5] for chunk in found)
    assert all(1 <= len(chunk.keys) <= rows_max for chunk in found)
    assert {key for chunk in found for key in chunk.keys} == {(k,) for k, _ in images}
    assert all(len(set(c.keys)) == len(c.keys) for c in found)


def test_an_index_is_filled_in_its_own_order() -> None:
    records = [record((k,), 1, {1: k, 2: f"city {k % 7}", 3: -k}) for k in range(50)]
    by_city = keys_of(chunks_of(records, 10, columns=(2,)))
    assert by_city == sorted(range(50), key=lambda k: k % 7)
    by_both = keys_of(chunks_of(records, 10, columns=(2, 3)))
    assert by_both == sorted(range(50), key=lambda k: (k % 7, -k))


def test_a_column_is_filled_in_the_order_of_the_rows() -> None:
    keys = [(3, "b"), (1, "z"), (3, "a"), (2, "x")]
    (chunk,) = chunks_of([record(key, 1) for key in keys], 10)
    assert chunk.keys == tuple(sorted(keys))


@pytest.mark.parametrize("columns", [(2,), (2, 3)])
def test_what_cannot_be_compared_is_sorted_by_type(columns: tuple[int, ...]) -> None:
    # NULLs, an absent pair, and numbers in a column that became text since.
    values: list[dict[int, Any]] = [{2: "b"}, {2: None}, {2: 7}, {}, {2: "a"}, {2: 5, 3: None}]
    records = [record((k,), 1, {1: k, **each}) for k, each in enumerate(values)]
    assert keys_of(chunks_of(records, 10, columns=columns)) == [1, 3, 5, 2, 4, 0]


def test_no_more_than_a_window_is_held() -> None:
    chunker = Chunker(TEMPLATE, (), 10, window_max=4)
    records = [record((k,), 1) for k in range(9, 0, -1)]
    found = list(chunker.take([k for k, _ in records], [v for _, v in records]))
    assert keys_of(found) == [6, 7, 8, 9, 2, 3, 4, 5]
    assert keys_of(list(chunker.rest())) == [1]


@pytest.mark.parametrize("feed", [1, 3, 50])
@pytest.mark.parametrize(
    ("columns", "letters"), [((), 0), ((2,), 400), ((2, 3), 400)], ids=["keys", "one", "two"]
)
def test_nor_more_bytes_than_a_window_has(
    columns: tuple[int, ...], letters: int, feed: int
) -> None:
    # Places of 400 letters, or of a key's few bytes: windows of 10 and of about 28 rows.
    records = [record((k,), 1, {2: "x" * letters, 3: k}) for k in range(50)]
    chunker = Chunker(TEMPLATE, columns, 100, window_bytes_max=7_400 + 160 * len(columns[1:]) * 10)
    sizes = []
    for start in range(0, 50, feed):
        part = records[start : start + feed]
        sizes += [len(c.keys) for c in chunker.take([k for k, _ in part], [v for _, v in part])]
    sizes += [len(c.keys) for c in chunker.rest()]
    assert sum(sizes) == 50
    if columns:
        assert 8 <= max(sizes) <= 12, sizes
    else:
        assert 25 <= max(sizes) <= 32, sizes


def test_what_was_handed_out_no_longer_counts() -> None:
    gone = row_key(()), CODEC.encode(RowsTruncated(1, 5, 1))
    chunker = Chunker(TEMPLATE, (), 100, window_bytes_max=10_000)
    _, image = record((1,), 1)
    for _ in range(3):
        assert not list(chunker.take([row_key((k,)) for k in range(30)], [image] * 30))
        assert not list(chunker.take([gone[0]], [gone[1]]))
    for _ in range(3):
        assert not list(chunker.take([row_key((k,)) for k in range(30)], [image] * 30))
        assert len(list(chunker.rest())) == 1


def test_chunks_keep_to_the_bytes_bound() -> None:
    records = [record((i, "x" * (i % 90)), 2**62 + i) for i in range(500)]
    found = chunks_of(records, 5_000, bytes_max=1_000)
    assert max(len(CODEC.encode(c)) for c in found) <= 1_000
    assert sum(len(c.keys) for c in found) == 500
    assert len(found) < 60, "and are not needlessly small"


def test_chunks_of_numbers_keep_to_it_too() -> None:
    found = chunks_of([record((2**62 + i,), 1) for i in range(500)], 5_000, bytes_max=1_000)
    assert 900 < max(len(CODEC.encode(c)) for c in found) <= 1_000
    assert sum(len(c.keys) for c in found) == 500


def test_a_key_beyond_the_bound_travels_alone() -> None:
    found = chunks_of([record((i, "x" * 3_000), 1) for i in range(3)], 5_000, bytes_max=1_000)
    assert [len(c.keys) for c in found] == [1, 1, 1]


def test_a_tombstone_takes_the_waiting_key_out() -> None:
    gone, kept = record((1,), 1), record((2,), 1)
    assert [c.keys for c in chunks_of([gone, kept, (gone[0], None)], 10)] == [((2,),)]
    assert chunks_of([(gone[0], None)], 10) == []
    # What came back after its deletion is named again.
    assert chunks_of([gone, (gone[0], None), record((1,), 5)], 10)[0].keys == ((1,),)


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
