"""Ranges of keys: each row in one of them, gone on with behind the last row that is there."""

from __future__ import annotations

import pytest

from leasehold.transfer.batches import BATCH_BYTES, BATCH_ROWS, gather
from leasehold.transfer.ranges import (
    RANGES_MAX,
    KeyRange,
    Place,
    copy_query,
    count_ranges,
    cut,
    read_place,
)
from leasehold.transfer.schema_plan import PlannedColumn, PlannedTable


def table(*key: str, rows: int = 0) -> PlannedTable:
    columns = [PlannedColumn(name, "integer", f'"{name}"') for name in ("v", "a", "b")]
    types = ("integer",) * len(key)
    return PlannedTable("t", columns, key, types, (), {}, False, rows, 0)


@pytest.mark.parametrize(("sample", "count"), [(0, 5), (1, 5), (3, 5), (100, 4), (100, 1)])
def test_ranges_meet_each_other_and_leave_nothing_out(sample: int, count: int) -> None:
    """Goal: the first begins and the last ends without a border, and each begins where the one
    before it ends, however few keys the sample has."""
    ranges = cut([(str(number // 2),) for number in range(sample)], count)
    assert 1 <= len(ranges) <= count
    assert [each.number for each in ranges] == list(range(len(ranges)))
    assert (ranges[0].above, ranges[-1].to) == (None, None)
    assert [each.to for each in ranges[:-1]] == [each.above for each in ranges[1:]]
    assert len({each.above for each in ranges}) == len(ranges)


def test_a_table_is_cut_by_what_it_has_about() -> None:
    assert [count_ranges(table("a", rows=rows)) for rows in (-1, 0, 250_000, 250_001)] == [
        *(1, 1, 1, 2)
    ]
    assert count_ranges(table("a", rows=10**12)) == RANGES_MAX
    assert count_ranges(table(rows=10**12)) == 1


def test_a_range_is_read_from_its_border_and_then_from_its_last_row() -> None:
    of = KeyRange(3, ("1", "it's"), ("9", "\\"))
    begun = copy_query(table("a", "b"), "s", of, Place())
    assert "(\"a\", \"b\") > ('1'::integer, 'it''s'::integer)" in begun
    assert "<= ('9'::integer, E'\\\\'::integer)" in begun
    assert begun.startswith('SELECT "a", "b", "v" FROM ONLY "s"."t" AS copied')
    assert begun.endswith('ORDER BY copied."a", copied."b"')
    place = Place(("5", "x"))
    assert "> ('5'::integer, 'x'::integer)" in copy_query(table("a", "b"), "s", of, place)
    assert read_place(3, place.to_text(of)) == (of, place)


def test_a_table_without_a_key_is_read_whole() -> None:
    query = copy_query(table(), "s", KeyRange(0, None, None), Place())
    assert query == 'SELECT "v", "a", "b" FROM ONLY "s"."t" AS copied'


def test_batches_are_bounded_and_know_their_last_key() -> None:
    lines = [b"%d\t\\N\t%d\n" % (number, -number) for number in range(BATCH_ROWS + 1)]
    first, second = gather(table("a", "b"), lines)
    assert [first.rows[1], len(first.rows), first.last] == [
        [1, None, -1],
        BATCH_ROWS,
        (str(BATCH_ROWS - 1), ""),
    ]
    assert second.rows == [[BATCH_ROWS, None, -BATCH_ROWS]]
    long = b"1\t2\t3" + b" " * BATCH_BYTES + b"\n"
    assert [len(each.rows) for each in gather(table("a"), [long] * 2)] == [1, 1]
