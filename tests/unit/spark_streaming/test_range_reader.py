"""What a micro-batch is, by the checkpoint that Spark writes before it runs."""

from __future__ import annotations

import json
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from leasehold.pipeline.schedule import RunId
from spark_streaming.range_reader import (
    PIECE_OFFSETS,
    CheckpointUnreadable,
    Range,
    pieces_of,
    ranges_of,
    windows_of,
)
from spark_streaming.run_folder import RunFolder
from tests.support.disk_folder import DiskFolder

SETTINGS = '{"batchWatermarkMs":0,"batchTimestampMs":1,"conf":{}}'


def plan(folder: Path, batch_id: int, ends: Any, *, version: str = "v1") -> None:
    offsets = folder / "1-1" / "checkpoint" / "offsets"
    offsets.mkdir(parents=True, exist_ok=True)
    lines = [version, SETTINGS, ends if isinstance(ends, str) else json.dumps(ends)]
    (offsets / str(batch_id)).write_text("\n".join(lines), encoding="utf-8")


def planned(folder: Path) -> Callable[[int], bytes | None]:
    return RunFolder(DiskFolder(folder), RunId(1, 1)).planned


def test_a_batch_begins_where_the_one_before_ends(tmp_path: Path) -> None:
    plan(tmp_path, 0, {"db.rows.1": {"1": 40, "0": 50}})
    plan(tmp_path, 1, {"db.rows.1": {"0": 50, "1": 90, "2": 7}})
    assert ranges_of(planned(tmp_path), 0) == [
        Range("db.rows.1", 0, 0, 50),
        Range("db.rows.1", 1, 0, 40),
    ]
    # Nothing new in partition 0; partition 2 was not there before.
    assert ranges_of(planned(tmp_path), 1) == [
        Range("db.rows.1", 1, 40, 90),
        Range("db.rows.1", 2, 0, 7),
    ]


@pytest.mark.parametrize(
    ("offsets", "about"), [(16_384, 16_384), (1_000, 1_024), (999_999, 99_999)]
)
def test_pieces_are_from_all_over_and_overlap_nowhere(offsets: int, about: int) -> None:
    """Of a small topic they are all of it."""
    ranges = [Range("t", 0, 7, 60_007), Range("t", 1, 0, 39_999)]
    pieces = pieces_of(ranges, offsets)
    read = sum(piece.until - piece.first for piece in pieces)
    assert about <= read <= about + 2 * PIECE_OFFSETS or read == about
    for wanted in ranges:
        own = [piece for piece in pieces if piece.partition == wanted.partition]
        assert own[0].first == wanted.first
        assert all(one.until <= other.first for one, other in pairwise(own))
        assert own[-1].until <= wanted.until
        apart = {other.first - one.first for one, other in pairwise(own)}
        assert len(apart) <= 1


@given(
    st.lists(st.tuples(st.integers(0, 10_000), st.integers(1, 10_000)), max_size=4),
    st.integers(1, 12_000),
)
def test_windows_are_the_same_offsets_in_small_parts(
    sizes: list[tuple[int, int]], most: int
) -> None:
    """Goal: nothing is left out, read twice or in another order; no window is larger than asked
    for, and there are no more of them than that takes, none of them a rest of a few offsets."""
    ranges = [Range("t", n, first, first + size) for n, (first, size) in enumerate(sizes)]
    windows = windows_of(ranges, most)
    for wanted in ranges:
        own = [w for w in windows if w.partition == wanted.partition]
        assert (own[0].first, own[-1].until) == (wanted.first, wanted.until)
        assert all(one.until == other.first for one, other in pairwise(own))
        lengths = [w.until - w.first for w in own]
        assert max(lengths) <= most
        assert min(lengths) >= max(lengths) - 1
        assert (len(own) - 1) * most < wanted.until - wanted.first
    assert [w.partition for w in windows] == sorted(w.partition for w in windows)


def test_an_empty_batch_has_no_ranges(tmp_path: Path) -> None:
    plan(tmp_path, 0, {"db.rows.1": {"0": 0, "1": 0}})
    assert ranges_of(planned(tmp_path), 0) == []


@pytest.mark.parametrize(
    ("ends", "version"),
    [
        ({"t": {"0": 1}}, "v2"),
        ("-", "v1"),
        ('{"t": {"0": 1}}\n{"t": {"0": 1}}', "v1"),
        ('{"t": {"zero": 1}}', "v1"),
        ('{"t": 5}', "v1"),
        ("[1]", "v1"),
        ('{"t": {"0": 1', "v1"),
    ],
)
def test_what_it_cannot_read_it_says(tmp_path: Path, ends: Any, version: str) -> None:
    """A run that fails is tried again and told of; a batch that was read as empty would be lost."""
    plan(tmp_path, 0, ends, version=version)
    with pytest.raises(CheckpointUnreadable, match="offsets"):
        ranges_of(planned(tmp_path), 0)


def test_a_batch_without_the_one_before_is_not_read_from_the_start(tmp_path: Path) -> None:
    plan(tmp_path, 3, {"t": {"0": 9}})
    with pytest.raises(CheckpointUnreadable, match="offsets"):
        ranges_of(planned(tmp_path), 3)
