"""Goal: rows that are copied under another key by ranges are those of the old table at that place
of the log, once each, with genids and entries, in every store alike; a store that has others than
the log says is found.

Method: requests are decided by `verify` between the ranges of a copy, in one store as a master's;
another of the other kind gets what the log would have.
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from leasehold.catalog.descriptor import Descriptor
from leasehold.catalog.elements import ALL_ROWS, Index
from leasehold.catalog.sequence import Numbering
from leasehold.model.errors import Refused, StoreCorrupted
from leasehold.model.keys import Key
from leasehold.model.records.log import Backfill, Commit, KeySpan
from leasehold.model.records.requests import Operation
from leasehold.replication.changefeed import RowPublication, row_images
from leasehold.rows.row_copies import find_copying_index
from leasehold.values.types import Type
from tests.support.transaction.mirrored_table import (
    BY_V,
    FOLLOWED,
    FOLLOWER,
    NEW,
    OLD,
    ONE,
    K,
    V,
    by_id,
    by_k,
    found,
    same_row,
    swap,
)
from tests.support.transaction.written_table import STORES, WrittenTable, opened

ROWS = 9
VERSION = 2


class Copied:
    """A master's table and a follower's, of the other kind of store."""

    def __init__(self, master: WrittenTable, follower: WrittenTable) -> None:
        self.master = master
        self.follower = follower
        self.both = (master, follower)
        self.through: Key = ()
        self.ended = False

    def send(self, *operations: Operation) -> None:
        decided = self.master.send(*operations)
        other = self.follower
        other.lsn = self.master.lsn
        other.store.begin()
        for place, change in enumerate(decided.changes):
            version = other.catalog.version(change.table_id, change.version)
            other.store.change(version, change, other.lsn, place, None)
        other._commit()

    def begin(self, followed: Descriptor = FOLLOWED, follower: Descriptor = FOLLOWER) -> None:
        for each in self.both:
            each.publish(followed)
            each.publish(follower)

    def read(self, rows: int) -> Backfill:
        source, target = (self.master.catalog.version(t, VERSION) for t in (OLD, NEW))
        read = self.master.store.read_copy(source, target, self.through, rows)
        return Backfill(NEW, VERSION, ALL_ROWS, (), span=read.span, copied=read.copied)

    def apply(self, backfill: Backfill) -> None:
        for each in self.both:
            self.apply_to(each, backfill)

    def apply_to(self, each: WrittenTable, backfill: Backfill) -> None:
        each.lsn += 1
        source, target = (each.catalog.version(t, VERSION) for t in (OLD, NEW))
        each.store.begin()
        try:
            each.store.copy_rows(source, target, backfill, each.lsn)
        except BaseException:
            each.store.rollback()
            raise
        each._commit()

    def copy(self, rows: int) -> Backfill:
        backfill = self.read(rows)
        self.apply(backfill)
        assert backfill.span is not None
        self.through, self.ended = backfill.span.through, not backfill.span.through
        return backfill

    def copy_all(self, rows: int = 4) -> list[Backfill]:
        made = []
        while not self.ended:
            made.append(self.copy(rows))
        return made


@pytest.fixture(params=STORES)
def copied(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Copied]:
    """Rows from before, whose new keys are in another order than the old ones."""
    other = next(kind for kind in STORES if kind != request.param)
    with opened(request.param, tmp_path / "m") as store, opened(other, tmp_path / "f") as copy:
        made = Copied(WrittenTable(store, ONE), WrittenTable(copy, ONE))
        for key in range(1, ROWS + 1):
            made.send(by_id("insert", key, k=f"k{key * 3 % 10}", v=key % 3))
        made.send(by_id("update", 4, w="later"))
        made.begin()
        yield made


def same(copied: Copied, rows: int) -> None:
    for table in copied.both:
        assert found(table) == set()
        assert sum(same_row(table, key) for key in range(-2, 30)) == rows


def test_ranges_follow_each_other_and_bring_every_row_once(copied: Copied) -> None:
    made = copied.copy_all()
    assert [b.span for b in made] == [
        KeySpan((), ("k4",)),
        KeySpan(("k4",), ("k8",)),
        KeySpan(("k8",), ()),
    ]
    assert [len(b.copied.rows) for b in made if b.copied] == [4, 4, 1]
    same(copied, ROWS)


def test_rows_that_are_written_meanwhile_are_copied_by_nobody(copied: Copied) -> None:
    """One moves behind the ranges that are copied, one before them, one comes and one goes."""
    copied.copy(4)
    behind, before = 7, 3  # k1 and k9
    copied.send(by_id("update", behind, k="z"), by_id("update", before, k="a"))
    copied.send(by_id("insert", 20, k="b"), by_id("insert", 21, k="y"), by_id("delete", 2))  # k6
    rest = copied.copy_all(2)
    keys = [row[0] for b in rest if b.copied for row in b.copied.rows]
    assert keys == ["k5", "k7", "k8"]
    same(copied, ROWS + 1)


def test_a_range_that_comes_again_brings_nothing(copied: Copied) -> None:
    first = copied.copy(4)
    copied.through = ()
    again = copied.read(4)
    assert again.span == first.span
    assert again.copied is not None
    assert (again.copied.rows, again.copied.digest) == ((), 0)
    copied.apply(again)
    copied.copy_all()
    same(copied, ROWS)


def test_entries_are_put_and_go_with_their_rows(copied: Copied) -> None:
    copied.copy_all()
    for table in copied.both:
        follower = table.catalog.newest(NEW)
        assert table.store.holders(follower, BY_V, (1,), 9) == [("k1",), ("k2",), ("k3",)]
    copied.send(by_id("update", 1, v=None), by_id("delete", 4))
    for table in copied.both:
        follower = table.catalog.newest(NEW)
        assert table.store.holders(follower, BY_V, (1,), 9) == [("k1",)]
        assert table.store.holders(follower, BY_V, (None,), 9) == [("k3",)]
    same(copied, ROWS - 1)


@pytest.mark.parametrize("wrong", ["fewer", "others"])
def test_a_store_with_other_rows_than_the_log_says_is_found(copied: Copied, wrong: str) -> None:
    backfill = copied.read(4)
    assert backfill.copied is not None
    if wrong == "fewer":
        rows = backfill.copied.rows[1:]
        said = backfill.copied._replace(rows=rows)
    else:
        said = backfill.copied._replace(digest=backfill.copied.digest + 1)
    for each in copied.both:
        with pytest.raises(StoreCorrupted, match=r"store|the log has"):
            copied.apply_to(each, backfill._replace(copied=said))


def test_readers_of_images_are_told_what_the_stores_have(copied: Copied) -> None:
    copied.send(by_id("update", 2, w="x", v=None))
    told: list[RowPublication] = []
    for backfill in copied.copy_all():
        commit = Commit(b"", 1, 77, {}, (), 0, backfills=(backfill,))
        row_images(commit, copied.master.lsn, told)  # type: ignore[arg-type]
    follower = copied.master.catalog.newest(NEW)
    images = [each.image for each in told if each.image is not None]
    assert len(images) == ROWS - 1  # one was written in both tables
    for image in images:
        row = copied.master.store.row(follower, image.key)
        assert row is not None
        assert (image.values, image.genids) == (row.values, row.genids)
        assert (image.table_id, image.version, image.commit_us) == (NEW, VERSION, 77)


@pytest.mark.parametrize("seed", range(8))
def test_any_writes_between_ranges_of_any_size(copied: Copied, seed: int) -> None:
    print(f"seed {seed}")
    _copy_beside_writes(copied, random.Random(seed))
    for table in copied.both:
        swap(table)
    copied.send(by_k("insert", "new", id=29, v=1))
    for table in copied.both:
        assert found(table) == set()


def _copy_beside_writes(copied: Copied, chance: random.Random) -> None:
    while not copied.ended:
        for _ in range(chance.randint(0, 6)):
            with suppress(Refused):
                copied.send(*(_any(chance) for _ in range(chance.randint(1, 3))))
        copied.copy(chance.randint(1, 4))
    for table in copied.both:
        assert found(table) == set()


WIDE = replace(ONE.columns[2], nullable=False)
"""Column v in a key of two columns, of which many rows have the first one alike."""


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("kind", STORES)
def test_a_key_of_several_columns(kind: str, seed: int, tmp_path: Path) -> None:
    print(f"seed {seed}")
    chance = random.Random(seed)
    columns = (ONE.columns[0], ONE.columns[1], WIDE, ONE.columns[3])
    before = replace(ONE, columns=columns, indexes=(replace(ONE.indexes[0], columns=(V, K)),))
    follower = replace(FOLLOWER, columns=columns, primary_key=(V, K), indexes=())
    other = next(each for each in STORES if each != kind)
    with opened(kind, tmp_path / "m") as store, opened(other, tmp_path / "f") as copy:
        copied = Copied(WrittenTable(store, before), WrittenTable(copy, before))
        for key in range(1, 15):
            copied.send(by_id("insert", key, k=f"k{key}", v=key % 3))
        copied.begin(replace(before, version=2, mirror=NEW), follower)
        _copy_beside_writes(copied, chance)


def _any(chance: random.Random) -> Operation:
    kind = chance.choice(("insert", "update", "update", "upsert", "delete"))
    values: dict[str, Any] = {} if kind == "delete" else {"v": chance.randint(0, 3)}
    if kind in ("insert", "upsert") or (kind == "update" and chance.random() < 0.6):
        values["k"] = f"k{chance.randint(0, 12)}"
    if values and chance.random() < 0.3:
        values["w"] = chance.choice("xyz")
    return by_id(kind, chance.randint(1, 14), **values)


# ------------------------------------------------------------------ what is copied by ranges


def test_the_unique_index_over_the_key_tells_the_order() -> None:
    assert find_copying_index(FOLLOWED, FOLLOWER) == FOLLOWED.indexes[0]
    without = replace(FOLLOWED, indexes=FOLLOWED.indexes[1:])
    assert find_copying_index(without, FOLLOWER) is None


KEY = FOLLOWER.columns[1]
NUMERIC = Type("numeric", precision=5, scale=2)
OTHER_WAY = {
    "a partial index": replace(FOLLOWER, indexes=(Index(BY_V, "v", (V,), predicate="v > 0"),)),
    "a key from a sequence": replace(
        FOLLOWER,
        columns=(
            FOLLOWER.columns[0],
            replace(KEY, numbering=Numbering(1 << 30), default_expression="nextval('s')"),
        ),
    ),
    "a random key": replace(
        FOLLOWER,
        columns=(
            FOLLOWER.columns[0],
            replace(KEY, type=Type("uuid"), default_expression="gen_random_uuid()"),
        ),
    ),
    "a key whose entries are no values": replace(
        FOLLOWER, columns=(FOLLOWER.columns[0], replace(KEY, type=NUMERIC))
    ),
    "a hidden key": replace(FOLLOWER, columns=(FOLLOWER.columns[0], replace(KEY, hidden=True))),
    "another key": replace(FOLLOWER, primary_key=(V, K)),
}


@pytest.mark.parametrize("why", OTHER_WAY)
def test_what_is_filled_by_images_still(why: str) -> None:
    assert find_copying_index(FOLLOWED, OTHER_WAY[why]) is None
