"""Both sides of an import compared: orders don't matter, each difference is found and named."""

from __future__ import annotations

import random
from collections.abc import Sequence

import pytest

from leasehold.transfer.comparison import (
    NAMED_MAX,
    differing,
    find_differences,
    lines_of,
    sum_up,
)

LINES = [b"%d\t%d\tvalue %d" % (number // 7, number, number) for number in range(5_000)]
KEYS = 2


def told(source: Sequence[bytes], target: Sequence[bytes]) -> list[tuple[str, str]]:
    ranges = differing(sum_up(target, KEYS), sum_up(source, KEYS))
    found = find_differences(source, target, KEYS, ranges)
    assert bool(found) == bool(ranges)
    return sorted((each.key, each.words) for each in found)


def test_another_order_is_no_difference() -> None:
    mixed = random.Random(7).sample(LINES, len(LINES))
    first, second = sum_up(LINES, KEYS), sum_up(mixed, KEYS)
    assert (first.total, first.checksum) == (second.total, second.checksum)
    assert first.total == len(LINES)
    assert told(LINES, mixed) == []


@pytest.mark.parametrize(
    ("target", "expected"),
    [
        (LINES[:-1], [("714, 4999", "in the source alone")]),
        ([*LINES, b"9\t9\tmore"], [("9, 9", "in the target alone")]),
        ([LINES[0] + b"!", *LINES[1:]], [("0, 0", "another one in the target")]),
        ([LINES[0], *LINES], [("0, 0", "in the target alone")]),
    ],
)
def test_a_row_that_differs_is_named(
    target: Sequence[bytes], expected: list[tuple[str, str]]
) -> None:
    """Goal: a row that is missing, too many, changed or there twice."""
    assert told(LINES, target) == expected


def test_few_of_many_differences_are_named() -> None:
    assert len(told(LINES, [])) == NAMED_MAX


def test_rows_without_a_key_are_counted_as_often_as_they_are_there() -> None:
    once, twice = sum_up([b"a", b"b"], 0), sum_up([b"a", b"b", b"b"], 0)
    assert differing(once, twice)
    assert not differing(twice, sum_up([b"b", b"a", b"b"], 0))


def test_lines_are_found_however_the_bytes_are_cut() -> None:
    data = b"".join(line + b"\n" for line in LINES[:50])
    for size in (1, 3, 7, 100, len(data)):
        pieces = [data[at : at + size] for at in range(0, len(data), size)]
        assert list(lines_of(pieces)) == LINES[:50]
