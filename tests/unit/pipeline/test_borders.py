"""Goal: wherever a table is cut, and however often parts of its topic were read, ranges have about
as many rows as they should, in the order of a store.

Method: samples of known keys, whole and in parts that overlap."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from leasehold.adapters.codec.records import row_key
from leasehold.model.keys import Key, order_of
from leasehold.pipeline.borders import RANGES_MAX, SAMPLED_OF, cut_ranges, take_sample
from tests.support.cluster.spark_pipeline import backfill_job

JOB = replace(backfill_job(7, 1), by_range=True)


def keys_of(*keys: Key) -> list[bytes]:
    return [row_key(key) for key in keys]


def test_a_table_of_one_range_has_no_border() -> None:
    assert cut_ranges(JOB, [], 0) == []
    assert cut_ranges(JOB, keys_of(*((n,) for n in range(14))), 14, 10) == []


def test_borders_are_in_order_and_the_last_range_is_not_a_small_one() -> None:
    cut = cut_ranges(JOB, keys_of(*((n,) for n in reversed(range(44)))), 44, 10)
    assert [border.through for border in cut] == [(9,), (19,), (29,)]
    assert {border.rows for border in cut} == {10}
    assert {border[:5] for border in cut} == {(7, 1, 1, 3, 9)}
    cut = cut_ranges(JOB, keys_of(*((n,) for n in range(46))), 46, 10)
    assert cut[-1].through == (39,)


def test_a_sample_of_some_stands_for_all() -> None:
    cut = cut_ranges(JOB, keys_of(*((n,) for n in range(0, 1_000, 10))), 1_000, 250)
    assert [(border.through, border.rows) for border in cut] == [
        ((240,), 250),
        ((490,), 250),
        ((740,), 250),
    ]


@given(st.lists(st.tuples(st.integers(-9, 9), st.text(max_size=3))), st.integers(1, 5))
def test_ranges_hold_every_key_once_in_the_order_of_a_store(keys: list[Key], rows: int) -> None:
    samples = keys_of(*keys, *keys[: len(keys) // 2])
    through = [border.through for border in cut_ranges(JOB, samples, len(set(keys)), rows)]
    assert through == sorted(set(through), key=order_of)
    counts = [sum(order_of(k) <= order_of(t) for k in set(keys)) for t in through]
    range_rows = max(rows, -(-len(set(keys)) // RANGES_MAX))
    assert counts == [range_rows * (n + 1) for n in range(len(counts))]


@pytest.mark.parametrize("rows", [1_000, 10_000, 100_000])
def test_a_larger_table_has_larger_ranges_not_more(rows: int) -> None:
    """Each range is merged into the whole index: a row may not cost more the more there are."""
    cut = cut_ranges(JOB, keys_of(*((n,) for n in range(rows))), rows, 25)
    assert len(cut) + 1 == RANGES_MAX


def test_what_is_sampled_follows_from_the_key_alone() -> None:
    keys = keys_of(*((n,) for n in range(40_000)))
    images: list[bytes | None] = [b"image"] * len(keys)
    whole = take_sample(keys, images)
    assert whole.rows == 40_000
    assert 25 <= len(whole.keys) <= 55, "one of 1,024"
    first, again = take_sample(keys[:30_000], images[:30_000]), take_sample(keys[9:], images[9:])
    assert {*first.keys, *again.keys} == set(whole.keys)
    assert take_sample(keys, [None] * len(keys)).rows == 0, "deleted"


@pytest.mark.parametrize("of", [1, SAMPLED_OF])
def test_a_truncation_is_no_row(of: int) -> None:
    assert take_sample(keys_of(()), [b"truncated"], of).keys == ()
