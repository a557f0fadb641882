"""What is gathered of a transaction's reads, and what a master says to it without looking at rows.

That rows written since are found, by key, range and index, the stores' own tests and those of
tests/isolation show; here it is what is bounded, refused, or known at once.
"""

from __future__ import annotations

from dataclasses import replace

import pytest

from leasehold.catalog.catalog import Catalog
from leasehold.catalog.descriptor import Descriptor
from leasehold.catalog.elements import Column, Index
from leasehold.catalog.states import State
from leasehold.model.budget import RangeLooks, RangeTooLong
from leasehold.model.errors import MalformedRequest, StaleVersion, UnknownColumn, VerifyError
from leasehold.model.ids import genid
from leasehold.model.keys import Key
from leasehold.model.ports import Row
from leasehold.model.records.log import DescriptorWrite, MinVersion
from leasehold.model.records.requests import ReadRange, ReadSet, TableReads, Visited
from leasehold.transaction.read_set import (
    KEYS_MAX,
    LOOKED_STEPS_MAX,
    RANGES_MAX,
    VISITED_MAX,
    ReadsSoFar,
    check_reads,
)
from leasehold.values.types import Type

COLUMNS = (Column(1, "id", Type("bigint"), nullable=False), Column(2, "a", Type("integer")))
BY_A, HIDDEN = Index(3, "by_a", (2,)), Index(4, "hidden", (2,), state=State.WRITE_ONLY)
T = Descriptor(1, "t", 1, COLUMNS, (1,), (BY_A, HIDDEN), 5)


class Told:
    """A store that says what it is told to, and notes what it is asked."""

    def __init__(self, floor: int | None = 0, last_write: int = 10) -> None:
        self.floor = floor
        self.last = last_write
        self.asked: list[tuple[int, ReadRange]] = []
        self.written: Key | None = None
        self.gone: Key | None = None
        self.now: Row | None = None
        self.cost = 0

    def kept_from(self, table_id: int) -> int | None:
        return self.floor

    def last_write(self, table_id: int) -> int:
        return self.last

    def row(self, descriptor: Descriptor, key: Key) -> Row | None:
        return self.now

    def written_in(
        self, descriptor: Descriptor, index_id: int, part: ReadRange, lsn: int, looks: RangeLooks
    ) -> Key | None:
        self.asked.append((index_id, part))
        if not looks.take(self.cost):
            raise RangeTooLong
        return self.written

    def gone_from(
        self, descriptor: Descriptor, index_id: int, part: ReadRange, lsn: int, looks: RangeLooks
    ) -> Key | None:
        return self.gone


def catalog(*versions: Descriptor) -> Catalog:
    made = Catalog()
    for lsn, version in enumerate(versions or (T,), 1):
        made.apply(DescriptorWrite(1, version.version, version.to_wire()), lsn, lsn)
    return made


def check(reads: TableReads, past: Told, lsn: int = 5) -> dict[int, int]:
    return check_reads(ReadSet(lsn, (reads,)), catalog(), past)


KEYS = TableReads("t", 1, keys=((1,), (2,)))


def test_a_table_that_nobody_has_written_since_is_looked_at_no_further() -> None:
    past = Told(last_write=5)
    assert check(replace_(KEYS, whole=True), past) == {1: 1}
    assert past.asked == []


def replace_(reads: TableReads, *, whole: bool) -> TableReads:
    return reads._replace(whole=whole)


@pytest.mark.parametrize("floor", [None, 6])
def test_where_the_past_is_not_known_it_is_refused(floor: int | None) -> None:
    with pytest.raises(VerifyError, match="not known any more"):
        check(KEYS, Told(floor, last_write=0))
    assert check(KEYS, Told(5, last_write=0)) == {1: 1}


def test_keys_and_ranges_are_looked_at_each_and_the_whole_by_its_last_write() -> None:
    past = Told()
    by, low = ReadRange("by_a", (7,)), ReadRange(low=(1,), high=(9,))
    check(KEYS._replace(ranges=(by, low)), past)
    assert past.asked == [
        (0, ReadRange(equal=(1,))),
        (0, ReadRange(equal=(2,))),
        (3, by),
        (0, low),
    ]
    for what in ("written", "gone"):
        found = Told()
        setattr(found, what, (2,))
        with pytest.raises(VerifyError, match=r"row \(2,\) was written since LSN 5"):
            check(KEYS, found)
    with pytest.raises(VerifyError, match="read whole"):
        check(TableReads("t", 1, whole=True), Told())


def test_ranges_that_are_too_long_together_count_as_the_whole_table() -> None:
    """A master looked through all rows of each, in one turn, whatever their number."""
    past = Told()
    ranges = tuple(ReadRange(low=(number,)) for number in range(4))
    past.cost = LOOKED_STEPS_MAX // len(ranges)
    assert check(TableReads("t", 1, ranges=ranges), past) == {1: 1}
    past.cost += 1
    with pytest.raises(VerifyError, match="too long to be looked through"):
        check(TableReads("t", 1, ranges=ranges), past)
    past.last = 5
    assert check(TableReads("t", 1, ranges=ranges), past) == {1: 1}, "nobody has written to it"


@pytest.mark.parametrize(
    ("reads", "error"),
    [
        (TableReads("t", 1, keys=((1, 2),)), MalformedRequest),
        (TableReads("t", 1, ranges=(ReadRange(equal=(1,), low=(2,)),)), MalformedRequest),
        (TableReads("t", 1, ranges=(ReadRange("by_a", (1, 2)),)), MalformedRequest),
        (TableReads("t", 1, visited=(Visited((), ()),)), MalformedRequest),
        (TableReads("t", 1, ranges=(ReadRange("by_b", (1,)),)), UnknownColumn),
        (TableReads("t", 1, ranges=(ReadRange("hidden", (1,)),)), UnknownColumn),
    ],
)
def test_what_the_table_has_not_is_refused(reads: TableReads, error: type[Exception]) -> None:
    with pytest.raises(error):
        check(reads, Told())


def test_d5_what_was_read_under_a_replaced_version_proves_nothing() -> None:
    known = catalog(T, replace(T, version=2))
    reads = ReadSet(5, (KEYS,))
    assert check_reads(reads, known, Told()) == {1: 1}
    known.apply(MinVersion(1, 2), 3, 3)
    with pytest.raises(StaleVersion):
        check_reads(reads, known, Told())


def test_a_visited_row_must_have_the_genids_it_had() -> None:
    seen = TableReads("t", 1, visited=(Visited((1,), ((0, genid(3, 0)),)),))
    past = Told(floor=None)
    for now, holds in ((genid(3, 0), True), (genid(4, 0), False), (None, False)):
        past.now = None if now is None else Row({1: 1}, {0: now}, 3)
        if holds:
            assert check(seen, past) == {1: 1}, "at any level, with or without a past"
            continue
        with pytest.raises(VerifyError, match="SELECTV"):
            check(seen, past)


# ------------------------------------------------------------------ gathering


def gathered(so_far: ReadsSoFar) -> TableReads:
    found = so_far.read_set(5)
    assert found is not None
    return found.tables[0]


def test_many_keys_or_ranges_become_the_table() -> None:
    so_far = ReadsSoFar()
    for key in range(KEYS_MAX):
        so_far.key(T, (key,))
        so_far.key(T, (key,))
    assert len(gathered(so_far).keys) == KEYS_MAX
    so_far.key(T, (KEYS_MAX,))
    assert gathered(so_far) == TableReads("t", 1, whole=True)
    so_far = ReadsSoFar()
    for number in range(RANGES_MAX + 1):
        assert number == 0 or not gathered(so_far).whole
        so_far.range(T, ReadRange(low=(number,)))
    assert gathered(so_far).whole
    so_far = ReadsSoFar()
    so_far.range(T, ReadRange())
    assert gathered(so_far).whole, "without bounds it is the table"
    so_far = ReadsSoFar()
    so_far.range(T, ReadRange("by_a"))
    assert not gathered(so_far).whole, "a partial index holds a part"


def test_nothing_read_is_nothing_to_verify() -> None:
    assert ReadsSoFar().read_set(5) is None


def test_selectv_is_bounded_and_keeps_what_was_seen_first() -> None:
    so_far = ReadsSoFar()
    so_far.visited(T, (1,), {0: 7})
    so_far.visited(T, (1,), {0: 8})
    assert gathered(so_far).visited == (Visited((1,), ((0, 7),)),)
    for key in range(VISITED_MAX):
        so_far.visited(T, (key,), {0: 7})
    with pytest.raises(MalformedRequest, match="serializable"):
        so_far.visited(T, (VISITED_MAX,), {0: 7})
